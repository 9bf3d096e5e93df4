/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors of this connection's private staging buffers, by the pins of their creations.
 * They are kept until the creations end, as a restarted control must get them (SESSION_RESUME). Any
 * thread.
 */
#ifndef SARISSA_CLIENT_LINK_KEPT_H
#define SARISSA_CLIENT_LINK_KEPT_H

#include <pthread.h>
#include <stdbool.h>
#include "internal/session.h"

struct kept {
	pthread_mutex_t lock;
	int fd[SESSION_PINS]; /* less one; 0: none */
};

/* Takes fd over. */
void kept_add(struct kept *k, uint32_t pin, int fd);
bool kept_has(struct kept *k, uint32_t pin);
/* Closes that of the pin, if it has one. */
void kept_close(struct kept *k, uint32_t pin);
/* Another descriptor of the same, the caller's to close; -1: there is none. */
int kept_copy(struct kept *k, uint32_t pin);
void kept_fini(struct kept *k);

#endif
