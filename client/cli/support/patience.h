/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says on standard error what a command waits for when nothing has happened for 5 s, and again
 * after ever longer times. A thread of its own, beside the call that waits. One per command.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_PATIENCE_H
#define SARISSA_CLIENT_CLI_SUPPORT_PATIENCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "sarissa/sarissa.h"

struct patience {
	sar *s;
	const char *name; /* of the object; NULL: the command only needs the node */
	bool limited;	  /* by --timeout: then that is not named */
	bool started, ended;
	uint64_t moved_ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

/* limited: there is a limit of time, or no option for one. */
void patience_begin(struct patience *p, sar *s, const char *name, bool limited);
/* Something has arrived. */
void patience_moved(struct patience *p);
/* Before the connection is closed. Also of one that has not begun. */
void patience_end(struct patience *p);

#endif
