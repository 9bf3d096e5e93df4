/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of the completions of one poll. For the queue that they lie in, under its lock. It must
 * not know what an operation is.
 */
#ifndef SARISSA_CLIENT_QUEUE_WORDS_H
#define SARISSA_CLIENT_QUEUE_WORDS_H

#include "sarissa/sarissa.h"

struct words {
	char *text; /* texts with their zeros */
	size_t bytes, room;
	uint32_t poll; /* which one it is; 0: none yet */
};

/* Another poll begins: those of the one before are forgotten. */
void words_clear(struct words *w);
/* The text, of at most room bytes, is the completion's. Without memory it gets none. */
void words_add(struct words *w, sar_completion *c, const char *text, size_t room);
void words_free(struct words *w);

#endif
