/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of completions, which are too long for each completion to carry them. They lie one
 * after the other in the queue until its next poll; a completion says where its own begin. queue.c
 * and watch.c add them under the queue's lock. Nothing here knows what an operation is.
 */
#include "words.h"

#include <stdlib.h>
#include <string.h>
#include "queue.h"

_Static_assert(sizeof(sar_completion) <= 144, "an array of them is cheap");

void words_clear(struct words *w)
{
	w->bytes = 0;
	w->poll++;
}

void words_free(struct words *w)
{
	free(w->text);
}

void words_add(struct words *w, sar_completion *c, const char *text, size_t room)
{
	size_t length = strnlen(text, room);
	if (length == 0)
		return;
	if (w->room - w->bytes < length + 1) {
		size_t wanted = 2 * w->room + room;
		char *grown = realloc(w->text, wanted);
		if (!grown)
			return; /* the general text is told instead */
		w->text = grown;
		w->room = wanted;
	}
	memcpy(w->text + w->bytes, text, length);
	w->text[w->bytes + length] = '\0';
	c->words = (uint32_t)w->bytes + 1;
	c->poll = w->poll;
	w->bytes += length + 1;
}

const char *sar_completion_detail(sar_queue *q, const sar_completion *c)
{
	const char *text = c->result < 0 ? sar_strerror(c->result) : "";
	pthread_mutex_lock(&q->lock);
	if (c->poll == q->words.poll && c->words > 0 && c->words <= q->words.bytes)
		text = q->words.text + c->words - 1;
	pthread_mutex_unlock(&q->lock);
	return text;
}
