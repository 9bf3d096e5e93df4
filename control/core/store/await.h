/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody who waits for an object or a reduce, as it hangs on the lists of the rooms that make
 * those. The room that made it (session) knows who that is, and hears of the end by events. */
#ifndef SARISSA_CONTROL_CORE_STORE_AWAIT_H
#define SARISSA_CONTROL_CORE_STORE_AWAIT_H

#include <stdbool.h>
#include "core/base/list.h"

struct await {
	struct list link; /* on object.waits, fetch.waits or reduction.waits */
	bool nowait;	  /* it ends as soon as nobody is known to have the object */
};

#endif
