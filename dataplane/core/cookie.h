/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a stranger must bring back before anything is kept for him, and how often strangers can make
 * us do anything at all.
 */
#ifndef SARISSA_DATAPLANE_CORE_COOKIE_H
#define SARISSA_DATAPLANE_CORE_COOKIE_H

#include "engine.h"
#include "wire.h"

struct engine;

/* What strangers can make us do, each at a bounded rate of its own. */
enum budget {
	BUDGET_COOKIE,
	BUDGET_ACCEPT,
	BUDGET_RESET,
	BUDGETS,
};

void cookie_make(const struct engine *e, const struct net_addr *addr, uint32_t conn,
		 uint64_t incarnation, uint64_t time, uint8_t cookie[WIRE_COOKIE_BYTES]);
bool cookie_holds(const struct engine *e, const struct net_addr *addr, uint32_t conn,
		  uint64_t incarnation, uint64_t time, const uint8_t cookie[WIRE_COOKIE_BYTES]);
/* One answer's worth of its rate; false when it is spent. */
bool cookie_budget(struct engine *e, enum budget what);
uint64_t cookie_random(const struct engine *e, uint64_t what);

#endif
