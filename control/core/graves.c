/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

enum { GRAVES_SENDING_MAX = 32, GRAVES_STEP = 4096 };

void graves_init(struct control *c)
{
	c->graves.sweep = c->config.tombstones;
}

void graves_sweep(struct control *c)
{
	c->graves.sweep = 0;
}

static bool graves_told(struct control *c, struct call *call, const struct message *answer)
{
	c->graves.sending--;
	return false; /* one that never answers is dead by now: then all are told again */
}

static void graves_tell(struct control *c, struct node *n, const struct tombstone *t)
{
	struct message m = {.kind = MESSAGE_BURY};

	if (n == NULL || n == c->self)
		return;
	m.bury.id = t->id;
	m.bury.generation = t->generation;
	m.bury.request = t->request;
	m.bury.node = t->node;
	if (calls_start(c, n, &m, TABLE_SLOT_NONE, c->config.directory_ns, graves_told, NULL))
		c->graves.sending++;
}

static void graves_tell_both(struct control *c, const struct tombstone *t)
{
	struct node *keeper[2];

	reshard_keepers(c, &t->id, keeper);
	graves_tell(c, keeper[0], t);
	graves_tell(c, keeper[1], t);
}

void graves_pump(struct control *c)
{
	struct directory *d = &c->directory;
	uint32_t end = c->graves.sweep + GRAVES_STEP;

	if (!members_joined(c))
		return;
	while (d->fresh_count > 0 && c->graves.sending < GRAVES_SENDING_MAX - 1)
		graves_tell_both(c, &d->tombstones[d->fresh[--d->fresh_count]]);
	if (d->fresh_lost) { /* more at a time than are noted */
		d->fresh_lost = false;
		graves_sweep(c);
	}
	if (end > c->config.tombstones || d->buried == 0)
		end = c->config.tombstones;
	if (d->buried == 0)
		c->graves.sweep = end;
	for (; c->graves.sweep < end && c->graves.sending < GRAVES_SENDING_MAX - 1;
	     c->graves.sweep++)
		if (d->tombstones[c->graves.sweep].generation != 0)
			graves_tell_both(c, &d->tombstones[c->graves.sweep]);
}

void graves_take(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	directory_take_bury(&c->directory, &m->bury);
	reduce_buried(c, &m->bury);
	peers_send(c, n, &answer);
}
