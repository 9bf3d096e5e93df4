/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a node in the world. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include "control_test.h"
#include "control_world.h"

struct session_request world_request(uint16_t op, const char *name)
{
	struct session_request r = {.magic = SESSION_MAGIC,
				    .op = op,
				    .version = SESSION_VERSION,
				    .timeout_ns = -1,
				    .pin = SESSION_PIN_NONE};

	if (name) {
		r.id = world_id(name);
		strcpy(r.name, name);
	}
	return r;
}

struct object_id world_id(const char *name)
{
	struct object_id id;
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, XXH3_128bits(name, strlen(name)));
	memcpy(id.bytes, c.digest, sizeof(id.bytes));
	return id;
}

uint32_t world_open(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];
	struct session_request r = world_request(SESSION_ATTACH, NULL);
	int session = control_session_open(n->core, n->pins[0], w->now_ns);

	if (session > 0) { /* the next one to open gets the same number, and its own page */
		control_session_close(n->core, (uint32_t)session, w->now_ns);
		session = control_session_open(n->core, n->pins[session], w->now_ns);
	}
	if (session < 0)
		abort();
	world_unpin(w, node, (uint32_t)session);
	world_call(w, node, (uint32_t)session, &r, 0);
	return (uint32_t)session;
}

uint32_t world_send(struct world *w, uint32_t node, uint32_t session, struct session_request *r)
{
	struct world_node *n = &w->node[node];

	r->seq = ++n->seq;
	control_session_request(n->core, session, r, sizeof(*r), w->now_ns);
	return r->seq;
}

struct world_reply *world_reply_to(struct world *w, uint32_t node, uint32_t seq)
{
	struct world_node *n = &w->node[node];

	for (uint32_t i = 0; i < n->replies_count; i++)
		if (!n->replies[i].taken && n->replies[i].reply.seq == seq) {
			n->replies[i].taken = true;
			return &n->replies[i];
		}
	return NULL;
}

struct wanted {
	uint32_t node, seq;
	struct world_reply *found;
};

static bool world_answered(struct world *w, void *arg)
{
	struct wanted *wanted = arg;

	wanted->found = world_reply_to(w, wanted->node, wanted->seq);
	return wanted->found != NULL;
}

struct world_reply *world_wait(struct world *w, uint32_t node, uint32_t seq, uint64_t for_ns)
{
	struct wanted wanted = {node, seq, NULL};

	world_until(w, world_answered, &wanted, for_ns);
	return wanted.found;
}

struct world_reply *world_call(struct world *w, uint32_t node, uint32_t session,
			       struct session_request *r, uint64_t for_ns)
{
	return world_wait(w, node, world_send(w, node, session, r), for_ns);
}

uint32_t world_reduce_send(struct world *w, uint32_t node, uint32_t session, const char *target,
			   const struct object_id *sources, struct session_reduction how,
			   uint32_t flags, int64_t timeout_ns)
{
	struct session_request r = world_request(SESSION_REDUCE, target);
	size_t ids = sizeof(*sources) * how.count;
	uint8_t *packet = malloc(sizeof(r) + ids);

	r.seq = ++w->node[node].seq;
	r.timeout_ns = timeout_ns;
	r.flags = flags;
	r.reduction = how;
	memcpy(packet, &r, sizeof(r));
	if (ids > 0)
		memcpy(packet + sizeof(r), sources, ids);
	control_session_request(w->node[node].core, session, packet, sizeof(r) + ids, w->now_ns);
	free(packet);
	return r.seq;
}

int world_reduce(struct world *w, uint32_t node, uint32_t session, const char *target,
		 const struct object_id *sources, struct session_reduction how, uint32_t flags,
		 int64_t timeout_ns)
{
	uint32_t seq = world_reduce_send(w, node, session, target, sources, how, flags, timeout_ns);
	struct world_reply *a = world_wait(w, node, seq, 40 * WORLD_SECOND);

	return a ? a->reply.status : -EBUSY;
}

int world_reduced(struct world *w, uint32_t node, uint32_t session, const char *target,
		  int64_t timeout_ns, struct object_id *out)
{
	struct session_request r = world_request(SESSION_REDUCED, target);
	struct world_reply *a;
	int count = 0;

	r.timeout_ns = timeout_ns;
	world_send(w, node, session, &r);
	while ((a = world_wait(w, node, r.seq, 60 * WORLD_SECOND)) != NULL) {
		if (!(a->reply.flags & SESSION_FLAG_MORE))
			return a->reply.status ? a->reply.status : count;
		if (out)
			memcpy(out + count, a->sources.source, sizeof(*out) * a->sources.count);
		count += (int)a->sources.count;
	}
	return -EBUSY;
}

/* The content comes in blocks, whose bytes repeat: byte by byte it takes a quarter of the time of
 * control_wide. */
enum { BLOCK = 2048, PERIOD = 256 };

static const uint8_t *block_at(uint64_t at, uint64_t seed)
{
	static uint8_t block[BLOCK];

	for (uint64_t i = 0; i < PERIOD; i++)
		block[i] = (uint8_t)((i * 131 + seed) ^ (at / BLOCK));
	for (uint64_t i = PERIOD; i < BLOCK; i += PERIOD)
		memcpy(block + i, block, PERIOD);
	return block;
}

static uint64_t block_bytes(uint64_t at, uint64_t size)
{
	return size - at < BLOCK ? size - at : BLOCK;
}

void world_fill(uint8_t *bytes, uint64_t size, uint64_t seed)
{
	for (uint64_t at = 0; at < size; at += BLOCK)
		memcpy(bytes + at, block_at(at, seed), block_bytes(at, size));
}

bool world_holds(const uint8_t *bytes, uint64_t size, uint64_t seed)
{
	for (uint64_t at = 0; at < size; at += BLOCK)
		if (memcmp(bytes + at, block_at(at, seed), block_bytes(at, size)) != 0)
			return false;
	return true;
}

bool world_sums(const uint8_t *bytes, uint64_t size, uint64_t set)
{
	static uint32_t *sum, *one; /* kept: several nodes are asked for the same */
	static uint64_t of, summed;

	if (of != size || summed != set) {
		free(sum);
		free(one);
		sum = calloc(1, size);
		one = malloc(size);
		assert_true(sum && one);
		for (uint64_t rest = set; rest; rest &= rest - 1) {
			world_fill((uint8_t *)one, size, (uint64_t)__builtin_ctzll(rest) + 1);
			for (uint64_t k = 0; k < size / 4; k++)
				sum[k] += one[k];
		}
		of = size;
		summed = set;
	}
	return memcmp(bytes, sum, size) == 0;
}

void world_unpin(struct world *w, uint32_t node, uint32_t session)
{
	memset(w->node[node].pins[session], 0, sizeof(w->node[node].pins[session]));
}

uint32_t world_put_send(struct world *w, uint32_t node, uint32_t session, const char *name,
			uint64_t size, uint64_t seed)
{
	struct session_request r = world_request(SESSION_PUT, name);
	uint8_t *packet = malloc(sizeof(r) + size);

	r.seq = ++w->node[node].seq;
	r.size = size;
	memcpy(packet, &r, sizeof(r));
	world_fill(packet + sizeof(r), size, seed);
	control_session_request(w->node[node].core, session, packet, sizeof(r) + size, w->now_ns);
	free(packet);
	return r.seq;
}

int world_put_whole(struct world *w, uint32_t node, uint32_t session, const char *name,
		    uint64_t size, uint64_t seed)
{
	uint32_t seq = world_put_send(w, node, session, name, size, seed);
	const struct world_reply *a = world_wait(w, node, seq, 20 * WORLD_SECOND);

	return a ? a->reply.status : -EBUSY;
}

int world_put(struct world *w, uint32_t node, uint32_t session, const char *name, uint64_t size,
	      uint64_t seed)
{
	struct session_request r = world_request(SESSION_CREATE, name);
	struct world_reply *a;

	r.size = size;
	a = world_call(w, node, session, &r, 20 * WORLD_SECOND);
	if (a == NULL || a->reply.status)
		return a ? a->reply.status : -EBUSY;
	world_fill(w->node[node].store + a->reply.offset, size, seed);
	r = world_request(SESSION_SEAL, NULL);
	r.slot = a->reply.slot;
	r.generation = a->reply.generation;
	a = world_call(w, node, session, &r, WORLD_SECOND);
	return a ? a->reply.status : -EBUSY;
}

struct session_request world_wait_for(const struct session_reply *got)
{
	struct session_request r = world_request(SESSION_WAIT, NULL);

	r.slot = got->slot;
	r.generation = got->generation;
	r.watermark = UINT64_MAX;
	return r;
}

struct object_meta world_meta(const struct world *w, uint32_t node, uint32_t slot)
{
	const struct object_slot *s = &w->node[node].table->slot[slot];
	struct object_meta meta = {.bytes = s->meta_bytes};

	memcpy(meta.data, w->node[node].store + s->offset + s->size, meta.bytes);
	return meta;
}

int world_fetch(struct world *w, uint32_t node, uint32_t session, const char *name,
		int64_t timeout_ns, const uint8_t **bytes, uint64_t *size)
{
	struct session_request r = world_request(SESSION_GET, name);
	uint64_t patience = 60 * WORLD_SECOND;
	struct world_reply *a;

	r.timeout_ns = timeout_ns;
	r.pin = 0;
	a = world_call(w, node, session, &r, patience);
	if (a == NULL || a->reply.status)
		return a ? a->reply.status : -EBUSY;
	*size = a->reply.size;
	r = world_wait_for(&a->reply);
	r.timeout_ns = timeout_ns;
	a = world_call(w, node, session, &r, patience);
	if (a == NULL || a->reply.status)
		return a ? a->reply.status : -EBUSY;
	*bytes = w->node[node].store + a->reply.offset;
	return a->reply.watermark == *size ? 0 : -EIO;
}

int world_get(struct world *w, uint32_t node, uint32_t session, const char *name, uint64_t size,
	      uint64_t seed, int64_t timeout_ns)
{
	const uint8_t *bytes;
	uint64_t got;
	int status = world_fetch(w, node, session, name, timeout_ns, &bytes, &got);

	if (status)
		return status;
	return got == size && world_holds(bytes, size, seed) ? 0 : -EIO;
}

void world_trouble(struct world *w, uint32_t from, uint64_t draw)
{
	uint32_t node = from + draw % (w->nodes - from), kind = draw / 8 % 8;

	if (kind == 0)
		w->cut_worker[draw / 64 % 2] ^= true;
	else if (kind == 1)
		w->cut[node] ^= true;
	else if (kind == 2)
		w->loss_permille = draw / 64 % 40;
	else if (kind <= 4)
		world_change_workers(w, node, 1 + draw / 64 % 2);
	else if (kind == 5) {
		world_kill_control(w, node);
		world_start_control(w, node);
	}
}

void world_heal(struct world *w)
{
	memset(w->cut, 0, sizeof(w->cut));
	memset(w->cut_worker, 0, sizeof(w->cut_worker));
	w->loss_permille = 0;
	w->old_clients = false;
}

void world_end(struct world *w)
{
	struct control_usage u;

	for (uint32_t i = 0; i < w->nodes; i++)
		world_unpin(w, i, 0);
	w->loss_permille = 0;
	world_run(w, 12 * WORLD_SECOND); /* all are forgotten that nobody asks for */
	for (uint32_t i = 0; i < w->nodes; i++) {
		control_usage(w->node[i].core, &u);
		assert_int_equal(u.fetches + u.serves + u.stages + u.edges + u.calls, 0);
		assert_int_equal(u.participants + u.parts, 0);
		assert_int_equal(u.scratch_bytes, 0);
	}
	world_free(w);
}
