/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients send: requests for the core, and descriptors, whose last close must not be the
 * loop's. Nothing of it is trusted (core/session/sessions.c checks it). One thread.
 */
#ifndef SARISSA_CONTROL_REQUESTS_H
#define SARISSA_CONTROL_REQUESTS_H

#include "client.h"

/* Those that are there. */
void requests_read(struct client *k);

#endif
