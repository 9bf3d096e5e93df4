/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads what clients send: requests, which go to the core, and descriptors, which closer.c must
 * close, not the loop. Called by clients.c. Nothing is trusted (core/session/sessions.c
 * checks it). One thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_REQUESTS_H
#define SARISSA_CONTROL_CLIENTS_REQUESTS_H

#include "client.h"

/* Those that are there. */
void requests_read(struct client *k);

#endif
