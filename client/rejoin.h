/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting to the node: the first time, and again when control was killed and started anew.
 * Any thread.
 *
 * What the process holds goes along. Its pins are copied to the page that the new control looks
 * at, and only then the old table is let go, which has kept the objects of before in their places
 * until now; objects under creation are resumed. Where the new control has another store (the
 * dataplane died as well) what is held stays readable, but is only ours; what was being created is
 * lost, by name.
 */
#ifndef SARISSA_CLIENT_REJOIN_H
#define SARISSA_CLIENT_REJOIN_H

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
