/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for the path MTU over a path of a known width, and paths that become narrower. */
#include "fixtures/core_test.h"

struct path {
	struct rig *r;
	struct peer peer;
	struct conn *c;
	uint32_t width; /* IP bytes; 0: nothing passes */
	uint32_t seen_max;
	uint32_t large; /* packets above MTU_BASE */
};

static void path_begin(struct path *p, struct rig *r, uint32_t width)
{
	p->r = r;
	p->peer = rig_connect(r, 1);
	p->c = p->peer.c;
	p->width = width;
	p->seen_max = 0;
	p->c->mtu = MTU_BASE;
	path_mtu_start(r->e, p->c);
	conn_wake(r->e, p->c);
}

/* Runs for a while: what fits is acknowledged a little later, the rest vanishes. */
static void path_run(struct path *p, uint64_t ns)
{
	uint64_t end = p->r->now_ns + ns;
	struct packet out;

	while (p->r->now_ns < end && p->c->handle == p->peer.conn) {
		while (p->r->now_ns < end && rig_take(p->r, &out)) {
			uint32_t bytes = out.length + ENGINE_OVERHEAD_V4;
			p->seen_max = bytes > p->seen_max ? bytes : p->seen_max;
			p->large += bytes > MTU_BASE;
			p->r->now_ns += 100000;
			if (bytes <= p->width)
				peer_ack(p->r, &p->peer, out.pn);
		}
		uint64_t next = engine_next_timeout(p->r->e);
		if (next > p->r->now_ns)
			p->r->now_ns = next < end ? next : end;
		engine_tick(p->r->e, p->r->now_ns);
	}
}

static void the_search_finds_the_width(void **state)
{
	(void)state;
	for (uint32_t width = MTU_BASE; width <= 1500; width += 11) {
		struct path p;

		path_begin(&p, rig_new(NULL), width);
		for (uint32_t k = 0; k < 100 && p.c->pmtu.searching; k++)
			path_run(&p, UINT64_C(10000000));
		assert_false(p.c->pmtu.searching);
		assert_in_range(p.c->mtu, width < MTU_BASE + 16 ? MTU_BASE : width - 16, width);
		assert_true(p.seen_max <= 1500);
		rig_free(p.r);
	}
}

/* Lost probes of which each time the second arrives: not a narrow path. */
static void losses_do_not_mislead_the_search(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet out;
	uint32_t probes = 0;

	peer.c->mtu = MTU_BASE;
	path_mtu_start(r->e, peer.c);
	conn_wake(r->e, peer.c);
	while (peer.c->pmtu.searching) {
		while (rig_take(r, &out)) {
			bool probe = out.length + ENGINE_OVERHEAD_V4 > MTU_BASE;
			r->now_ns += 100000;
			if (!probe || probes++ % 3 == 2)
				peer_ack(r, &peer, out.pn);
		}
		r->now_ns = numbers_max(r->now_ns, engine_next_timeout(r->e));
		engine_tick(r->e, r->now_ns);
	}
	assert_int_equal(peer.c->mtu, 1500);
}

static void a_wider_path_is_found_in_time(void **state)
{
	struct path p;

	path_begin(&p, *state, 1400);
	path_run(&p, UINT64_C(1100000000));
	assert_in_range(p.c->mtu, 1384, 1400);
	p.width = 1500;
	path_run(&p, UINT64_C(1000000000));
	assert_int_equal(p.c->mtu, 1500);
	assert_int_equal(p.c->pmtu.next_ns, NEVER);
	p.large = 0;
	path_run(&p, UINT64_C(40000000000));
	assert_int_equal(p.c->mtu, 1500);
	assert_int_equal(p.large, 0);
}

/* Where it stays narrow the searches become rare. */
static void a_narrow_path_is_searched_ever_less(void **state)
{
	struct path p;

	path_begin(&p, *state, 1400);
	path_run(&p, UINT64_C(40000000000));
	p.large = 0;
	path_run(&p, UINT64_C(100000000000));
	assert_in_range(p.large, 10, 100);
	p.width = 1500;
	path_run(&p, UINT64_C(33000000000));
	assert_int_equal(p.c->mtu, 1500);
}

static struct record source_of(uint32_t chunks)
{
	return record_source(0, (uint64_t)chunks * RIG_CHUNK, (uint64_t)chunks * RIG_CHUNK);
}

/* The path becomes too narrow for the chunks of a running edge: they go in parts from then on.
 * [P11] */
static void a_path_that_becomes_narrow(void **state)
{
	struct path p;
	struct record source = source_of(700);

	path_begin(&p, *state, 1500);
	path_run(&p, 10000000);
	assert_int_equal(p.c->mtu, 1500);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &p.peer, 0, 700);
	rig_command(p.r, &source);
	rig_command(p.r, &out);
	struct out_edge *o = out_edge_find(p.r->e, out.edge.edge);
	o->credit = 700;
	path_run(&p, 10000000);
	assert_int_equal(p.r->counters.tx_parts, 0);
	p.width = 1400;
	uint32_t before = o->acked_count;
	for (uint32_t ms = 0; o->acked_count == before; ms += 10) {
		assert_in_range(ms, 0, 1000);
		path_run(&p, 10000000);
	}
	path_run(&p, UINT64_C(3000000000));
	rig_expect(p.r, EVENT_OUT_DONE);
	rig_silent(p.r);
	assert_int_equal(o->acked_count, 700);
	assert_int_equal(p.r->counters.path_narrowed, 1);
	assert_in_range(p.c->mtu, 1384, 1400);
	assert_int_equal(p.c->tx.lost_count, 0);
	assert_int_equal(p.c->tx.inflight_pkts, 0);
}

/* Packets of a verdict that was wrong: the path only took so long. */
static void a_late_acknowledgement_overturns_the_verdict(void **state)
{
	struct path p;
	struct record source = source_of(700);
	struct packet out;
	uint64_t held = 0;

	path_begin(&p, *state, 1500);
	path_run(&p, 10000000);
	struct record edge = record_edge(COMMAND_OUT, 0, 0, &p.peer, 0, 700);
	rig_command(p.r, &source);
	rig_command(p.r, &edge);
	while (p.c->mtu == 1500) {
		while (rig_take(p.r, &out)) {
			bool large = out.length + ENGINE_OVERHEAD_V4 > MTU_BASE;
			held = out.length > RIG_CHUNK ? out.pn : held;
			p.r->now_ns += 100000;
			if (!large)
				peer_ack(p.r, &p.peer, out.pn);
		}
		p.r->now_ns = numbers_max(p.r->now_ns, engine_next_timeout(p.r->e));
		engine_tick(p.r->e, p.r->now_ns);
	}
	assert_int_equal(p.c->mtu, MTU_BASE);
	peer_ack(p.r, &p.peer, held);
	assert_true(p.c->mtu > 1400);
	path_run(&p, 10000000);
	assert_int_equal(p.c->mtu, 1500);
}

/* ---- busy hosts and full queues ----------------------------------------------------------- */

enum { BUSY_HELD = 4096 };

/* A path that takes every size, to a host that stands still now and then, through a queue that
 * others keep full for a while: then a packet finds room for so many bytes or fewer. */
struct busy {
	struct path p;
	uint64_t seed;
	uint64_t stall_ns, stall_end_ns; /* of the receiver */
	uint64_t storm_ns, storm_end_ns; /* of the queue */
	uint64_t held[BUSY_HELD];	 /* what the receiver finds when it wakes */
	uint32_t held_count;
};

static uint64_t busy_draw_ns(struct busy *b, uint64_t least_ms, uint64_t most_ms)
{
	return (least_ms + draw_below(&b->seed, most_ms - least_ms)) * 1000000;
}

static void busy_weather(struct busy *b)
{
	uint64_t now = b->p.r->now_ns;

	if (now >= b->stall_end_ns) {
		b->stall_ns = now + busy_draw_ns(b, 0, 30);
		b->stall_end_ns = b->stall_ns + busy_draw_ns(b, 1, 80);
	}
	if (now >= b->storm_end_ns) {
		b->storm_ns = now + busy_draw_ns(b, 10, 40);
		b->storm_end_ns = b->storm_ns + busy_draw_ns(b, 1, 100);
	}
	if (now < b->stall_ns) {
		for (uint32_t k = 0; k < b->held_count; k++)
			peer_ack(b->p.r, &b->p.peer, b->held[k]);
		b->held_count = 0;
	}
}

static void busy_packet(struct busy *b, const struct packet *out)
{
	uint64_t now = b->p.r->now_ns;

	if (now >= b->storm_ns && now < b->storm_end_ns && out->length > draw_below(&b->seed, 1600))
		return;
	assert_true(b->held_count < BUSY_HELD);
	b->held[b->held_count++] = out->pn;
}

/* For so long, the engine itself late by up to some milliseconds; the least MTU on the way. */
static uint16_t busy_run(struct busy *b, uint64_t ns)
{
	uint64_t end = b->p.r->now_ns + ns;
	uint16_t least = UINT16_MAX;
	struct packet out;

	while (b->p.r->now_ns < end) {
		while (rig_take(b->p.r, &out))
			busy_packet(b, &out);
		b->p.r->now_ns += draw_below(&b->seed, 20) == 0 ? busy_draw_ns(b, 1, 20) : 200000;
		busy_weather(b);
		engine_tick(b->p.r->e, b->p.r->now_ns);
		least = b->p.c->mtu < least ? b->p.c->mtu : least;
	}
	return least;
}

static void few_connections(struct engine_config *f)
{
	f->conns_max = 2;
	f->edges_max = 16;
}

static void busy_hosts_are_not_narrow_paths(void **state)
{
	struct rig *r = rig_new(few_connections);
	static struct busy b;
	uint32_t wrong = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		memset(&b, 0, sizeof(b));
		b.seed = seed;
		memset(r->memory, 0, r->bytes);
		memset(rig_bitmap(r, RIG_BUFFERS), 0, RIG_BITMAP_BYTES);
		r->e = engine_init(r->memory, &r->config, r->now_ns);
		path_begin(&b.p, r, 1500);
		path_run(&b.p, 10000000);
		struct record source = source_of(700);
		struct record edge = record_edge(COMMAND_OUT, 0, 0, &b.p.peer, 0, 700);
		rig_command(r, &source);
		rig_command(r, &edge);
		out_edge_find(r->e, edge.edge.edge)->credit = 700;
		wrong += busy_run(&b, 600000000) < 1500;
	}
	rig_free(r);
	assert_int_equal(wrong, 0);
}

/* Nothing passes at all: that is a dead peer, not a narrow path. */
static void silence_is_not_a_narrow_path(void **state)
{
	struct path p;
	struct record source = source_of(700);

	path_begin(&p, *state, 1500);
	path_run(&p, 10000000);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &p.peer, 0, 700);
	rig_command(p.r, &source);
	rig_command(p.r, &out);
	p.width = 0;
	path_run(&p, UINT64_C(1500000000));
	assert_int_equal(p.c->mtu, 1500);
	rig_silent(p.r);
	p.width = 1500;
	path_run(&p, UINT64_C(1000000000));
	assert_int_equal(out_edge_find(p.r->e, out.edge.edge)->acked_count, UNSCHEDULED_CHUNKS);
}

/* Chunks that no packet of this path carries, and others that do. */
static void too_large_from_the_start(void **state)
{
	struct path p;
	struct record source = source_of(20), other = source_of(20);

	path_begin(&p, *state, 1300);
	source.buffer.chunk_bytes = 4096;
	other.buffer.buffer = record_handle(1);
	other.buffer.chunk_bytes = 1024;
	rig_command(p.r, &source);
	rig_command(p.r, &other);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &p.peer, 0, 7);
	struct record good = record_edge(COMMAND_OUT, 1, 1, &p.peer, 0, 27);
	rig_command(p.r, &out);
	rig_command(p.r, &good);
	path_run(&p, UINT64_C(2000000000));
	rig_expect(p.r, EVENT_OUT_DONE);
	rig_expect(p.r, EVENT_OUT_DONE);
	rig_silent(p.r);
	assert_int_equal(p.r->counters.tx_parts, 6 * 4 + 4); /* the last chunk has 3584 bytes */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_search_finds_the_width),
		test_rig(losses_do_not_mislead_the_search),
		test_rig(a_wider_path_is_found_in_time),
		test_rig(a_narrow_path_is_searched_ever_less),
		test_rig(a_path_that_becomes_narrow),
		test_rig(a_late_acknowledgement_overturns_the_verdict),
		cmocka_unit_test(busy_hosts_are_not_narrow_paths),
		test_rig(silence_is_not_a_narrow_path),
		test_rig(too_large_from_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
