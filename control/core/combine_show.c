/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node builds for a target, shown to the one who coordinates that next. */
#include <errno.h>
#include "state.h"

bool combine_orphaned(const struct combine *k)
{
	return k->seats > 0 && !members_live(k->coordinator);
}

static const struct combine *show_find(const struct control *c, const struct object_id *target)
{
	list_each(l, after, &c->combines.active)
	{
		const struct combine *k = list_item(l, struct combine, active);

		if (combine_orphaned(k) && object_id_equal(&k->target, target))
			return k;
	}
	return NULL;
}

static void show_parts(const struct combine *k, struct message_combine *m,
		       struct message_part *parts)
{
	m->parts = parts;
	list_each(l, after, &k->parts)
	{
		const struct part *p = list_item(l, struct part, of_combine);

		parts[m->count++] = (struct message_part){.id = p->id,
							  .generation = p->generation,
							  .node = p->node->number,
							  .first = p->first,
							  .count = p->count,
							  .to = p->to,
							  .size = p->size,
							  .stripe = p->stripe};
	}
}

static void show(struct control *c, const struct combine *k, struct message_combine *m)
{
	m->id = k->by_id.id;
	m->generation = k->generation;
	m->target = k->target;
	m->reduce = k->reduce;
	m->size = k->size;
	m->chunk_bytes = k->chunk_bytes;
	m->op = k->sum.op;
	m->dtype = k->sum.dtype;
	m->need = k->need;
	m->seats = k->seats;
	m->degree = k->degree;
	show_parts(k, m, c->reduces.parts);
}

void combine_show(struct control *c, struct node *n, const struct message *m)
{
	const struct combine *k = show_find(c, &m->combined.target);
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	/* From now on, nothing that the one before has said still counts here. */
	if (control_shard(c, &m->combined.target) != n) {
		answer.reply.status = -EAGAIN;
	} else if (k == NULL) {
		answer.reply.status = -ENOENT;
	} else {
		answer.kind = MESSAGE_SHOWN;
		show(c, k, &answer.combine);
	}
	peers_send(c, n, &answer);
}
