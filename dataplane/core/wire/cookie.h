/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a stranger must bring back before anything is kept for him, and how often strangers can make
 * us do anything at all.
 */
#ifndef SARISSA_DATAPLANE_CORE_WIRE_COOKIE_H
#define SARISSA_DATAPLANE_CORE_WIRE_COOKIE_H

#include "core/engine.h"
#include "wire_field.h"

struct engine;

/* Work that strangers can make us do, each kind at a bounded rate of its own. */
enum budget {
	BUDGET_COOKIE,
	BUDGET_ACCEPT,
	BUDGET_RESET,
	BUDGETS,
};

/* For the HELLO whose body this is, from that address: a cookie serves no other id, incarnation or
 * path. */
void cookie_make(const struct engine *e, const struct net_addr *addr, const uint8_t *hello,
		 uint64_t time, uint8_t cookie[WIRE_COOKIE_BYTES]);
/* That the cookie in the HELLO is the one that was made for it. */
bool cookie_holds(const struct engine *e, const struct net_addr *addr, const uint8_t *hello);
/* One answer's worth of its rate; false when it is spent. */
bool cookie_budget(struct engine *e, enum budget what);
uint64_t cookie_random(const struct engine *e, uint64_t what);

#endif
