/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa-dataplane: see docs/man/sarissa-dataplane.8. */
#include "io/log.h"
#include "io/node.h"

int main(int argc, char **argv)
{
	static struct options options[RAILS_MAX];
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
