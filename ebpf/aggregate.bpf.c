/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The aggregator of docs/user/aggregation.md as an XDP program on the ports of a bridge: sums of
 * i32, and of blocks of f32. Packets, slots and answers are those of dataplane/core/aggregate.c; a
 * test compares the two. What is not for it goes on to the bridge.
 *
 * There is no timer: a deadline is looked at when a packet of its chunk comes, and members that
 * wait ask again every few milliseconds. A slot is changed under its lock.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "aggregate.h"
#include "headers.h"

enum { SLOT_FREE, SLOT_OPEN, SLOT_DONE };
#define IDLE_NS 10000000000ull	    /* AGGREGATE_IDLE_NS */
enum { OP_SUM = 1, DTYPE_I32 = 7 }; /* internal/reduce.h */

struct slot {
	struct bpf_spin_lock lock;
	__u32 round, chunk, bytes;
	__u64 seen, opened_ns;
	__u32 deadline_us;
	__u8 state, operation, quorum, members;
	__s32 exponent;
	__u8 end, differs, pad[2];
	__u32 payload[AGGREGATE_XDP_WORDS];
};

/* By number. The loader takes out those that nobody has used for ten seconds. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AGGREGATE_XDP_GROUPS);
	__type(key, __u32);
	__type(value, struct aggregate_xdp_group);
} groups SEC(".maps");

/* Ranges of slots that no group has. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, AGGREGATE_XDP_GROUPS);
	__type(value, __u32);
} places SEC(".maps");

/* Groups that found no room, and when that was: a host has them, for as long as they may live. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} passed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AGGREGATE_XDP_SLOTS);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AGGREGATE_XDP_MEMBERS);
	__type(key, __u32);
	__type(value, struct aggregate_xdp_member);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, AGGREGATE_XDP_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, AGGREGATE_XDP_STAGES);
	__type(key, __u32);
	__type(value, __u32);
} stages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AGGREGATE_XDP_VERDICTS);
	__type(key, __u32);
	__type(value, __u64);
} verdicts SEC(".maps");

struct frame {
	struct ethernet_header ethernet;
	struct ipv4_header ip;
	struct udp_header udp;
	struct aggregate_header header;
} __attribute__((packed));

static __always_inline void aggregate_count(__u32 verdict)
{
	__u64 *n = bpf_map_lookup_elem(&verdicts, &verdict);
	if (n)
		(*n)++;
}

/* The headers of a frame to the aggregator, with the bytes of its payload; NULL: it is another. */
static __always_inline struct frame *aggregate_frame_read(struct xdp_md *ctx, __u32 *bytes,
							  bool *ours)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct frame *f = data;
	*ours = false;
	if ((void *)&f->header > end || f->ethernet.type != bpf_htons(ETHERTYPE_IPV4) ||
	    f->ip.version_words != 0x45 || f->ip.protocol != PROTOCOL_UDP ||
	    (f->ip.fragment & bpf_htons(IPV4_FRAGMENT_MASK)) ||
	    f->udp.destination != bpf_htons(AGGREGATE_PORT))
		return NULL;
	__u32 total = bpf_ntohs(f->ip.length), datagram = bpf_ntohs(f->udp.length);
	if (total > (__u32)(end - data) - ETHERNET_BYTES || datagram < UDP_BYTES ||
	    datagram > total - IPV4_BYTES_MIN)
		return NULL;
	*ours = true;
	*bytes = datagram - UDP_BYTES - AGGREGATE_HEADER;
	if (datagram < UDP_BYTES + AGGREGATE_HEADER || *bytes > AGGREGATE_PAYLOAD_MAX ||
	    *bytes % AGGREGATE_STEP || (void *)(f + 1) > end)
		return NULL;
	return f;
}

struct sums {
	__u32 sum, weighted;
};

static __always_inline void aggregate_sums_add(struct sums *s, __u32 word)
{
	s->sum += word;
	s->weighted += s->sum;
}

static __always_inline void aggregate_sums_header(struct sums *s, const struct aggregate_header *h)
{
	const __u32 *word = (const __u32 *)h;
	for (int i = 0; i < AGGREGATE_HEADER / 4; i++)
		aggregate_sums_add(s, i == 1 ? 0 : word[i]);
}

static __always_inline __u32 aggregate_sums_check(const struct sums *s)
{
	return s->weighted ^ (s->sum << 16 | s->sum >> 16);
}

static __always_inline bool aggregate_frame_intact(struct frame *f, __u32 bytes, void *end)
{
	struct sums s = {0, 0};
	__u32 *word = (__u32 *)(f + 1), words = bytes / 4;
	aggregate_sums_header(&s, &f->header);
	for (__u32 i = 0; i < AGGREGATE_XDP_WORDS; i++) {
		if (i >= words || (void *)(word + 1) > end)
			break;
		aggregate_sums_add(&s, *word++);
	}
	return aggregate_sums_check(&s) == f->header.check;
}

/* Turns the frame into an answer to the group: addresses, lengths, and the check of the header. */
static __always_inline void aggregate_frame_answer(struct frame *f, __u32 bytes,
						   struct sums *payload)
{
	__u32 group = f->header.group, sum = 0;
	__be32 from = f->ip.destination;
	__u8 to[6] = {0x01, 0, 0x5e, 83, group >> 8, group};
	static const __u8 own[6] = {0x02, 0x5a, 0x53, 0, 0, 1};
	__builtin_memcpy(f->ethernet.destination, to, 6);
	__builtin_memcpy(f->ethernet.source, own, 6);
	f->ip.traffic_class = 0;
	f->ip.length = bpf_htons(IPV4_BYTES_MIN + UDP_BYTES + AGGREGATE_HEADER + bytes);
	f->ip.id = 0;
	f->ip.fragment = bpf_htons(0x4000);
	f->ip.ttl = 1;
	f->ip.checksum = 0;
	f->ip.source = from;
	f->ip.destination = bpf_htonl(0xef530000u | (group & 0xffff));
	f->udp.source = bpf_htons(AGGREGATE_PORT);
	f->udp.destination = bpf_htons(AGGREGATE_RESULT_PORT);
	f->udp.length = bpf_htons(UDP_BYTES + AGGREGATE_HEADER + bytes);
	f->udp.checksum = 0;
	const __u16 *half = (const __u16 *)&f->ip;
	for (int i = 0; i < IPV4_BYTES_MIN / 2; i++)
		sum += half[i];
	sum = (sum & 0xffff) + (sum >> 16);
	f->ip.checksum = ~((sum & 0xffff) + (sum >> 16));
	/* the weight of a header's word rises by the number of words behind it */
	struct sums s = {0, 0};
	aggregate_sums_header(&s, &f->header);
	s.weighted += s.sum * (bytes / 4) + payload->weighted;
	s.sum += payload->sum;
	f->header.check = aggregate_sums_check(&s);
}

/* An answer without payload, back to where the packet came from: not by XDP_TX, which a veth passes
 * on only to a peer with a program of its own. */
static __always_inline int aggregate_answer_short(struct xdp_md *ctx, __u32 verdict)
{
	struct sums nothing = {0, 0};
	int more = (int)(ctx->data_end - ctx->data) - (int)sizeof(struct frame);
	if (more && bpf_xdp_adjust_tail(ctx, -more))
		return XDP_DROP;
	struct frame *f = (void *)(long)ctx->data;
	if ((void *)(f + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	aggregate_frame_answer(f, 0, &nothing);
	aggregate_count(verdict);
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

static __always_inline int aggregate_refuse(struct xdp_md *ctx, struct frame *f, __u8 reason)
{
	f->header.kind = AGGREGATE_REFUSED;
	f->header.flags = reason;
	f->header.bitmap = 0;
	return aggregate_answer_short(ctx, AGGREGATE_XDP_REFUSE);
}

static long aggregate_slot_free(__u32 i, void *first)
{
	__u32 key = *(__u32 *)first + i;
	struct slot *s = bpf_map_lookup_elem(&slots, &key);
	if (s)
		s->state = SLOT_FREE;
	return 0;
}

static long aggregate_member_free(__u32 i, void *place)
{
	__u32 key = *(__u32 *)place * AGGREGATE_MEMBERS_MAX + i;
	struct aggregate_xdp_member *m = bpf_map_lookup_elem(&members, &key);
	if (m)
		m->token = 0;
	return 0;
}

/* The group, perhaps made here; NULL: there is no room. */
static __always_inline struct aggregate_xdp_group *
aggregate_group_need(const struct aggregate_header *h, const struct aggregate_policy *policy,
		     __u64 secret)
{
	__u32 id = h->group, place, first;
	struct aggregate_xdp_group *g = bpf_map_lookup_elem(&groups, &id);
	if (g)
		return g;
	struct aggregate_xdp_group fresh = {.version = h->round,
					    .quorum = policy->quorum,
					    .deadline_us = policy->deadline_us,
					    .members = h->members,
					    .used_ns = bpf_ktime_get_ns(),
					    .key = secret};
	__u64 now = fresh.used_ns, *since = bpf_map_lookup_elem(&passed, &id);
	if (since && now - *since <= IDLE_NS) {
		*since = now;
		return NULL;
	}
	if (bpf_map_pop_elem(&places, &place)) {
		bpf_map_update_elem(&passed, &id, &now, BPF_ANY);
		return NULL;
	}
	fresh.place = place;
	first = place * AGGREGATE_BANKS * AGGREGATE_XDP_WINDOW;
	/* a group begins with its slots free; another one may have had them */
	bpf_loop(AGGREGATE_BANKS * AGGREGATE_XDP_WINDOW, aggregate_slot_free, &first, 0);
	bpf_loop(AGGREGATE_MEMBERS_MAX, aggregate_member_free, &place, 0);
	if (bpf_map_update_elem(&groups, &id, &fresh, BPF_NOEXIST))
		bpf_map_push_elem(&places, &place, 0); /* another CPU has made it just now */
	return bpf_map_lookup_elem(&groups, &id);
}

static __always_inline struct aggregate_xdp_member *
aggregate_member_of(const struct aggregate_xdp_group *g, __u32 member)
{
	__u32 key = g->place * AGGREGATE_MEMBERS_MAX + (member & (AGGREGATE_MEMBERS_MAX - 1));
	return bpf_map_lookup_elem(&members, &key);
}

/* False: another process has the place, with this version or a later one. */
static __always_inline bool aggregate_take_place(const struct aggregate_xdp_group *g,
						 const struct aggregate_header *h, __u64 token)
{
	struct aggregate_xdp_member *m = aggregate_member_of(g, h->member);
	if (!m)
		return false;
	if (m->token != 0 && (__s32)(h->round - m->version) <= 0)
		return m->token == token; /* the holder's own is an old packet, or a repeated one */
	m->token = token;
	m->version = h->round;
	return true;
}

static __always_inline int aggregate_take_install(struct xdp_md *ctx, struct frame *f, __u32 bytes)
{
	struct aggregate_header h = f->header;
	struct aggregate_policy policy;
	struct aggregate_place place;
	__u64 now = bpf_ktime_get_ns();
	__builtin_memcpy(&policy, &h.bitmap, sizeof(policy));
	if (bytes != sizeof(place) || (void *)(f + 1) + sizeof(place) > (void *)(long)ctx->data_end)
		goto bad;
	__builtin_memcpy(&place, f + 1, sizeof(place));
	if (policy.quorum == 0 || policy.quorum > h.members || place.token == 0)
		goto bad;
	struct aggregate_xdp_group *g = aggregate_group_need(&h, &policy, place.key);
	f = (void *)(long)ctx->data;
	if ((void *)(f + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	if (!g) {
		aggregate_count(AGGREGATE_XDP_PASS);
		return XDP_PASS;
	}
	if (g->key != place.key) {
		aggregate_count(AGGREGATE_XDP_FOREIGN);
		return XDP_DROP;
	}
	bpf_spin_lock(&g->lock);
	if ((__s32)(h.round - g->version) > 0) {
		g->version = h.round;
		g->members = h.members;
		g->quorum = policy.quorum;
		g->deadline_us = policy.deadline_us;
	}
	bpf_spin_unlock(&g->lock);
	if (g->members != h.members)
		return aggregate_refuse(ctx, f, AGGREGATE_OTHER_GROUP);
	if (!aggregate_take_place(g, &h, place.token))
		return aggregate_refuse(ctx, f, AGGREGATE_OTHER_MEMBER);
	bpf_spin_lock(&g->lock);
	h.round = g->version;
	policy.quorum = g->quorum;
	policy.deadline_us = g->deadline_us;
	bpf_spin_unlock(&g->lock);
	g->used_ns = now;
	policy.reserved = 0;
	policy.window = AGGREGATE_XDP_WINDOW;
	f->header.kind = AGGREGATE_INSTALLED;
	f->header.flags = 0;
	f->header.round = h.round;
	__builtin_memcpy(&f->header.bitmap, &policy, sizeof(policy));
	return aggregate_answer_short(ctx, AGGREGATE_XDP_ANSWER);
bad:
	aggregate_count(AGGREGATE_XDP_BAD);
	return XDP_DROP;
}

SEC("xdp")
int sar_aggregate(struct xdp_md *ctx)
{
	__u32 bytes = 0;
	bool ours;
	struct frame *f = aggregate_frame_read(ctx, &bytes, &ours);
	if (!f && !ours)
		return XDP_PASS;
	if (!f || !aggregate_frame_intact(f, bytes, (void *)(long)ctx->data_end) ||
	    f->header.members == 0 || f->header.members > AGGREGATE_MEMBERS_MAX ||
	    f->header.member >= f->header.members)
		goto bad;
	if (f->header.kind == AGGREGATE_INSTALL)
		return aggregate_take_install(ctx, f, bytes);
	if (f->header.kind != AGGREGATE_CONTRIBUTION &&
	    (f->header.kind != AGGREGATE_POLL || bytes != 0))
		goto bad;
	__u32 id = f->header.group;
	struct aggregate_xdp_group *g = bpf_map_lookup_elem(&groups, &id);
	if (!g) {
		__u64 *since = bpf_map_lookup_elem(&passed, &id);
		if (since)
			*since = bpf_ktime_get_ns();
		aggregate_count(AGGREGATE_XDP_PASS);
		return XDP_PASS;
	}
	struct aggregate_xdp_member *m = aggregate_member_of(g, f->header.member);
	if (!m || m->token != f->header.bitmap || m->token == 0) {
		aggregate_count(AGGREGATE_XDP_FOREIGN);
		return XDP_DROP;
	}
	if (g->members != f->header.members)
		return aggregate_refuse(ctx, f, AGGREGATE_OTHER_GROUP);
	if (f->header.slot != f->header.chunk % AGGREGATE_XDP_WINDOW)
		goto bad;
	bpf_tail_call(ctx, &stages, AGGREGATE_XDP_TAKE);
	aggregate_count(AGGREGATE_XDP_PASS); /* the loader has not put it there yet */
	return XDP_PASS;
bad:
	aggregate_count(AGGREGATE_XDP_BAD);
	return XDP_DROP;
}

/* A slot's state when its lock is given back. */
struct verdict {
	__u32 what, bytes;
	__u64 seen;
	__s32 exponent;
	__u8 refused;
};

/* By the policy with which the slot was opened, whatever the group's is now. */
static __always_inline bool aggregate_slot_whole(const struct slot *s, __u32 in, __u64 now)
{
	if (in == s->members)
		return true;
	return in >= s->quorum &&
	       (s->deadline_us == 0 || now >= s->opened_ns + s->deadline_us * 1000ull);
}

static __always_inline __u32 aggregate_bits(__u64 x)
{
	x -= x >> 1 & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return x * 0x0101010101010101ull >> 56;
}

static __always_inline void aggregate_slot_open(struct slot *s, const struct aggregate_header *h,
						const struct aggregate_xdp_group *g, __u32 bytes,
						__u64 now)
{
	s->seen = 0;
	s->opened_ns = now;
	s->round = h->round;
	s->chunk = h->chunk;
	s->bytes = bytes;
	s->operation = h->operation;
	s->end = h->flags;
	s->differs = 0;
	s->quorum = g->quorum;
	s->members = g->members;
	s->deadline_us = g->deadline_us;
	s->exponent = h->exponent;
	s->state = SLOT_OPEN;
}

static __always_inline void aggregate_slot_add(struct slot *s, const __u32 *word, __u32 bytes,
					       void *end, bool first)
{
	__u32 words = bytes / 4;
	for (__u32 i = 0; i < AGGREGATE_XDP_WORDS; i++) {
		if (i >= words || (const void *)(word + 1) > end)
			break;
		s->payload[i] = first ? *word : s->payload[i] + *word;
		word++;
	}
}

/* Under the lock: as take_member and take_chunk of dataplane/core/aggregate.c. */
static __always_inline void aggregate_slot_take(struct slot *s, const struct aggregate_header *h,
						const struct aggregate_xdp_group *g,
						const __u32 *word, __u32 bytes, void *end,
						__u64 now, struct verdict *v)
{
	int later =
		s->state == SLOT_FREE ? 1 : aggregate_later(h->round, h->chunk, s->round, s->chunk);
	bool seen = later == 0 && (s->seen >> (h->member & 63) & 1);
	bool overdue = false;
	v->what = AGGREGATE_XDP_LATE;
	v->bytes = 0;
	v->seen = 0;
	if (later < 0)
		return;
	if (later == 0 && s->differs) {
		v->what = AGGREGATE_XDP_REFUSE;
		v->refused = AGGREGATE_OTHER_SHAPE;
		return;
	}
	if (later == 0 && s->state == SLOT_OPEN &&
	    aggregate_slot_whole(s, aggregate_bits(s->seen), now)) {
		s->state = SLOT_DONE; /* its deadline has passed meanwhile */
		overdue = true;
	}
	if (later == 0 && s->state == SLOT_DONE) {
		v->what = overdue ? AGGREGATE_XDP_EXPIRED
			  : seen  ? AGGREGATE_XDP_REPEAT
				  : AGGREGATE_XDP_LATE;
		goto result;
	}
	if (h->kind == AGGREGATE_POLL) {
		v->what = AGGREGATE_XDP_ANSWER;
		v->seen = later ? 0 : s->seen;
		v->exponent = later ? 0 : s->exponent;
		return;
	}
	v->what = AGGREGATE_XDP_DUPLICATE;
	if (seen)
		return;
	if ((h->operation & 15) != OP_SUM ||
	    (h->operation >> 4 != DTYPE_I32 && h->operation >> 4 != AGGREGATE_BLOCK)) {
		v->what = AGGREGATE_XDP_REFUSE;
		v->refused = AGGREGATE_NO_KERNEL;
		return;
	}
	if (later)
		aggregate_slot_open(s, h, g, bytes, now);
	s->differs = s->bytes != bytes || s->operation != h->operation || s->end != h->flags;
	if (s->differs) {
		v->what = AGGREGATE_XDP_REFUSE;
		v->refused = AGGREGATE_OTHER_SHAPE;
		return;
	}
	aggregate_slot_add(s, word, bytes, end, later);
	if (h->exponent > s->exponent)
		s->exponent = h->exponent;
	s->seen |= 1ull << (h->member & 63);
	v->what = AGGREGATE_XDP_ADDED;
	if (!aggregate_slot_whole(s, aggregate_bits(s->seen), now))
		return;
	s->state = SLOT_DONE;
	v->what = AGGREGATE_XDP_COMPLETE;
result:
	v->bytes = s->bytes;
	v->seen = s->seen;
	v->exponent = s->exponent;
}

/* A poll came in a buffer without room for a result. "Not in" makes the member send its chunk
 * again, and the result goes into that packet's place. */
static __always_inline int aggregate_answer_not_in(struct xdp_md *ctx)
{
	struct frame *f = (void *)(long)ctx->data;
	if ((void *)(f + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	f->header.kind = AGGREGATE_WAIT;
	f->header.member = 0;
	f->header.bitmap = 0;
	return aggregate_answer_short(ctx, AGGREGATE_XDP_ANSWER);
}

/* The result of the slot in the place of the packet. A done slot changes only when a later chunk
 * takes it; then its identity differs, and the result is not sent. */
static __always_inline int aggregate_answer_result(struct xdp_md *ctx, struct slot *s,
						   __u32 verdict, __u32 bytes)
{
	struct sums sums = {0, 0};
	int more = (int)(sizeof(struct frame) + bytes) - (int)(ctx->data_end - ctx->data);
	if (bytes > AGGREGATE_PAYLOAD_MAX)
		return XDP_DROP;
	if (more && bpf_xdp_adjust_tail(ctx, more))
		return aggregate_answer_not_in(ctx);
	struct frame *f = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	if ((void *)(f + 1) > end)
		return XDP_DROP;
	__u32 *word = (__u32 *)(f + 1), words = bytes / 4;
	for (__u32 i = 0; i < AGGREGATE_XDP_WORDS; i++) {
		if (i >= words || (void *)(word + 1) > end)
			break;
		*word = s->payload[i];
		aggregate_sums_add(&sums, *word++);
	}
	if (s->round != f->header.round || s->chunk != f->header.chunk)
		return XDP_DROP;
	aggregate_frame_answer(f, bytes, &sums);
	aggregate_count(verdict);
	if (verdict == AGGREGATE_XDP_COMPLETE || verdict == AGGREGATE_XDP_EXPIRED)
		return bpf_redirect_map(&ports, 0, BPF_F_BROADCAST);
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

SEC("xdp")
int sar_take(struct xdp_md *ctx)
{
	__u32 bytes = 0, key = 0;
	bool ours;
	struct verdict v = {0};
	struct frame *f = aggregate_frame_read(ctx, &bytes, &ours);
	if (!f)
		return XDP_DROP;
	struct aggregate_header h = f->header;
	key = h.group;
	struct aggregate_xdp_group *known = bpf_map_lookup_elem(&groups, &key), g = {0};
	if (!known)
		return XDP_PASS;
	__u64 now = bpf_ktime_get_ns();
	known->used_ns = now;
	bpf_spin_lock(&known->lock);
	g.quorum = known->quorum;
	g.deadline_us = known->deadline_us;
	g.members = known->members;
	bpf_spin_unlock(&known->lock);
	key = known->place * AGGREGATE_BANKS * AGGREGATE_XDP_WINDOW +
	      aggregate_slot(h.round, h.chunk, AGGREGATE_XDP_WINDOW);
	struct slot *s = bpf_map_lookup_elem(&slots, &key);
	if (!s)
		return XDP_DROP;
	void *end = (void *)(long)ctx->data_end;
	bpf_spin_lock(&s->lock);
	aggregate_slot_take(s, &h, &g, (__u32 *)(f + 1), bytes, end, now, &v);
	bpf_spin_unlock(&s->lock);
	if (v.what == AGGREGATE_XDP_ADDED || v.what == AGGREGATE_XDP_DUPLICATE) {
		aggregate_count(v.what);
		return XDP_DROP;
	}
	if (v.what == AGGREGATE_XDP_REFUSE)
		return aggregate_refuse(ctx, f, v.refused);
	bool result = v.bytes > 0 || v.what == AGGREGATE_XDP_COMPLETE ||
		      v.what == AGGREGATE_XDP_REPEAT || v.what == AGGREGATE_XDP_EXPIRED || v.seen;
	f->header.flags = 0;
	f->header.bitmap = v.seen;
	f->header.kind = v.what == AGGREGATE_XDP_ANSWER ? AGGREGATE_WAIT
			 : result			? AGGREGATE_RESULT
							: AGGREGATE_GONE;
	if (f->header.kind != AGGREGATE_GONE) {
		f->header.member = aggregate_bits(v.seen);
		f->header.exponent = v.exponent;
	}
	if (f->header.kind != AGGREGATE_RESULT)
		return aggregate_answer_short(ctx, v.what);
	return aggregate_answer_result(ctx, s, v.what, v.bytes);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
