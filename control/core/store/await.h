/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait of a client for an object or a reduce, as the modules that make these see it: a link on a
 * list. The module session owns the wait, and hears of its end by events.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_AWAIT_H
#define SARISSA_CONTROL_CORE_STORE_AWAIT_H

#include <stdbool.h>
#include "core/base/list.h"

struct await {
	struct list link; /* on object.waits, fetch.waits or reduction.waits */
	bool nowait;	  /* it ends as soon as nobody is known to have the object */
	bool limited;	  /* by a time: it may wait for room */
	bool group;	  /* of a group (group/shell.c), not of a client */
};

#endif
