/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets a connection sends now, and their bytes. Called by engine.c in turn for each
 * connection that may have something to send.
 */
#ifndef SARISSA_DATAPLANE_CORE_TRANSMIT_H
#define SARISSA_DATAPLANE_CORE_TRANSMIT_H

#include "engine.h"

struct conn;

/* Writes up to count packets; returns how many. */
unsigned transmit_conn(struct engine *e, struct conn *c, struct packet_out *out, unsigned count);

#endif
