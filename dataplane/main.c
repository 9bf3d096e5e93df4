/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa-dataplane (docs/man/sarissa-dataplane.8): reads the options and runs the node (io/node).
 * It must not know ports. */
#include "internal/program/standard_fds.h"
#include "io/observe/log.h"
#include "io/node/node.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --role switch, as the first option: another program takes this one's place. */
static int become_switch(char **argv)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("sarissa-switch"));
	path[n > 0 ? n : 0] = 0;
	char *slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash + 1, "sarissa-switch");
		execv(path, argv);
	}
	log_error("--role switch: %s does not start (%s): install it beside sarissa-dataplane",
		  path, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	static struct options options[RAILS_MAX];
	standard_fds_hold();
	if (argc > 2 && strcmp(argv[1], "--role") == 0 && strcmp(argv[2], "switch") == 0)
		return become_switch(argv);
	switch (options_parse(argc, argv, options)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_WRONG:
		return 2;
	case OPTIONS_RUN:
		break;
	}
	log_set_level(options->log_level);
	return node_run(options);
}
