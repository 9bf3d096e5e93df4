/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa-control: decides for one node which object moves where. Reads the options, and runs
 * host.c until a signal ends it. It must not know the core. */
#include <signal.h>
#include "host.h"
#include "internal/program/standard_fds.h"
#include "log.h"

int main(int argc, char **argv)
{
	static struct options options;
	static struct host host;

	standard_fds_hold();
	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_WRONG:
		return 2;
	case OPTIONS_RUN:
		break;
	}
	log_set_level(options.log_level);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* `ulimit -f` counts memory for objects, too */
	if (host_init(&host, &options))
		return 1;
	return host_run(&host);
}
