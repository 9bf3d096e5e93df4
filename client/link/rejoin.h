/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connects to the node: the first time, and again after a restart of control. Called by
 * calls that wait (run.c) and for queues (joiner.c), from any thread.
 *
 * Pins are copied to the new control's page. Only then is the old table unmapped, which has kept
 * the objects in their places; objects under creation are resumed. If the new control has another
 * store, as the dataplane died too, buffers in use stay readable for this process alone, and
 * objects under creation are lost, by name.
 */
#ifndef SARISSA_CLIENT_LINK_REJOIN_H
#define SARISSA_CLIENT_LINK_REJOIN_H

#include "handle.h"

/* Connects and attaches for the first time. -ECONNREFUSED and others of sar_open. */
int rejoin_first(struct sar *s);

/* 0 when a control is there for a request of that op; waits for one until until_ns, but tries at
 * least once. -ENOTCONN: there was none; -EPROTO: it is of no use to us; -ESHUTDOWN: nobody is to
 * wait. */
int rejoin(struct sar *s, uint16_t op, int64_t until_ns);

/* Tries once, unless nobody was there just before. */
void rejoin_nudge(struct sar *s);

#endif
