/* SPDX-License-Identifier: BSD-3-Clause */
/* The same broadcast with the real dataplane core and every packet: what the model is held to. */
#include "scale_run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "full/full.h"

struct full_client {
	uint32_t session, seq, slot;
	uint64_t generation, done_ns;
	int32_t status;
};

struct full_cast {
	struct world w;
	struct full_group g;
	struct full_client *clients;
	struct object_id id;
	uint64_t size;
	uint32_t ended;
};

static void cast_request(struct full_cast *c, uint32_t node, uint16_t op, uint64_t watermark)
{
	struct full_client *k = &c->clients[node];
	struct session_request r = {.magic = SESSION_MAGIC,
				    .version = SESSION_VERSION,
				    .op = op,
				    .seq = ++k->seq,
				    .id = c->id,
				    .slot = k->slot,
				    .generation = k->generation,
				    .size = c->size,
				    .watermark = watermark,
				    .timeout_ns = -1};
	full_request(&c->g.full[node], k->session, &r);
}

static void cast_reply(void *context, struct full *f, const struct full_reply *reply)
{
	struct full_cast *c = context;
	struct full_client *k = &c->clients[f->n->index];
	const struct session_reply *r = &reply->reply;
	if (r->op == SESSION_ATTACH || r->seq != k->seq)
		return;
	k->slot = r->slot;
	k->generation = r->generation;
	if (r->op == SESSION_CREATE && r->status == 0) {
		cast_request(c, f->n->index, SESSION_SEAL, 0);
	} else if (r->op == SESSION_GET && r->status == 0 && r->watermark < r->size) {
		cast_request(c, f->n->index, SESSION_WAIT, UINT64_MAX);
	} else {
		k->status = r->status;
		k->done_ns = world_now(&c->w);
		c->ended++;
	}
}

static bool cast_done(void *context)
{
	const struct full_cast *c = context;
	return c->ended == c->w.count;
}

static void cast_open(struct full_cast *c, const struct scale_options *o)
{
	struct network_link link = {.rate_bps = (uint64_t)(o->rate_gbit * 1e9),
				    .delay_ns = o->hop_ns};
	struct node_options n = full_options(2 * o->size + (16 << 20));
	struct control_config config;
	full_config(&config);
	n.config.mtu = o->mtu;
	world_init(&c->w, o->nodes, &link, &n, o->seed, false);
	full_open(&c->g, &c->w, &config, 0, o->wake_ns + o->turn_ns);
	c->g.on_reply = cast_reply;
	c->g.context = c;
	c->clients = calloc(o->nodes, sizeof(*c->clients));
	assert(c->clients);
	c->size = o->size;
	for (int i = 0; i < OBJECT_ID_BYTES; i++)
		c->id.bytes[i] = (uint8_t)(prng_mix(o->seed + (uint64_t)i) & 0xff);
	world_run(&c->w, 2 * WORLD_S);
	for (uint32_t i = 0; i < o->nodes; i++) {
		int s = full_session(&c->g.full[i]);
		assert(s >= 0);
		c->clients[i].session = (uint32_t)s;
		cast_request(c, i, SESSION_ATTACH, 0);
	}
}

/* The bytes that node_kill and the invariants expect of an object are the simulator's own; here
 * only the times count, so the source's bytes stay what they are. */
void scale_full(const struct scale_options *o, struct scale_result *out)
{
	static struct full_cast c;
	uint64_t begin;
	*out = (struct scale_result){.bound_ns = (uint64_t)((double)o->size * 8 / o->rate_gbit)};
	c = (struct full_cast){.ended = 0};
	cast_open(&c, o);
	cast_request(&c, 0, SESSION_CREATE, 0);
	world_run(&c.w, WORLD_S);
	assert(c.clients[0].done_ns && c.clients[0].status == 0);
	begin = world_now(&c.w);
	for (uint32_t i = 1; i < o->nodes; i++)
		cast_request(&c, i, SESSION_GET, 0);
	world_until(&c.w, o->limit_ns, cast_done, &c);
	for (uint32_t i = 1; i < o->nodes; i++) {
		const struct full_client *k = &c.clients[i];
		out->unfinished += k->done_ns == 0;
		out->failed += k->status != 0;
		out->gets += k->done_ns != 0;
		out->ns = k->done_ns > begin + out->ns ? k->done_ns - begin : out->ns;
	}
	out->source_copies = (double)c.w.net.endpoints[0].up.bytes / (double)o->size;
	free(c.clients);
	full_close(&c.g);
}
