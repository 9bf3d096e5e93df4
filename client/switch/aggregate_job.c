/* SPDX-License-Identifier: BSD-3-Clause */
#include "aggregate_job.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
	NONE = UINT16_MAX,
	EXPONENT_ZERO = -127,	/* all values are 0 */
	EXPONENT_STRANGE = 127, /* a value is infinite, NaN or from 2^126 on: the result is NaN */
	BLOCK_BITS = 30,
};

#define RTO_MIN_NS   5000000ull
#define RTO_MAX_NS   60000000ull
#define RTO_FIRST_NS 20000000ull
#define PROBE_NS     2000000ull

void aggregate_job_init(struct aggregate_job *j, const struct aggregate_job_spec *spec,
			uint64_t now_ns)
{
	memset(j, 0, offsetof(struct aggregate_job, fresh));
	j->spec = *spec;
	j->chunks = (uint32_t)((spec->bytes + spec->payload - 1) / spec->payload);
	j->lead = spec->dtype == AGGREGATE_BLOCK ? spec->window : 0;
	j->slots = j->chunks < spec->window ? j->chunks : spec->window;
	j->left = j->slots;
	j->source_ready = spec->bytes;
	j->heard_ns = now_ns;
	j->in_all = UINT64_MAX;
	j->fewest = spec->members;
	j->oldest = j->newest = NONE;
	for (uint32_t i = 0; i < j->slots; i++) {
		j->slot[i] =
			(struct aggregate_job_slot){.chunk = i, .next = NONE, .previous = NONE};
		j->fresh[i] = (uint16_t)i;
	}
	j->fresh_end = j->slots;
}

static void aggregate_list_remove(struct aggregate_job *j, struct aggregate_job_slot *s)
{
	if (s->previous == NONE)
		j->oldest = s->next;
	else
		j->slot[s->previous].next = s->next;
	if (s->next == NONE)
		j->newest = s->previous;
	else
		j->slot[s->next].previous = s->previous;
}

static void aggregate_list_add(struct aggregate_job *j, struct aggregate_job_slot *s)
{
	uint16_t at = (uint16_t)(s - j->slot);
	s->next = NONE;
	s->previous = j->newest;
	if (j->newest == NONE)
		j->oldest = at;
	else
		j->slot[j->newest].next = at;
	j->newest = at;
}

/* The bytes of a data chunk in the arrays. */
static uint32_t aggregate_data_bytes(const struct aggregate_job *j, uint32_t data)
{
	uint64_t at = (uint64_t)data * j->spec.payload, left = j->spec.bytes - at;
	return left < j->spec.payload ? (uint32_t)left : j->spec.payload;
}

/* Of its packet. */
static uint32_t aggregate_padded(uint32_t bytes)
{
	return (bytes + AGGREGATE_STEP - 1) / AGGREGATE_STEP * AGGREGATE_STEP;
}

static uint32_t aggregate_payload_bytes(const struct aggregate_job *j, uint32_t chunk)
{
	return chunk < j->lead ? 0 : aggregate_padded(aggregate_data_bytes(j, chunk - j->lead));
}

/* The least e with |x| <= 2^e for all of them. */
static signed char aggregate_block_exponent(const float *x, uint32_t count)
{
	float most = 0;
	int e;
	for (uint32_t i = 0; i < count; i++) {
		float v = fabsf(x[i]);
		if (!(v < 0x1p126f))
			return EXPONENT_STRANGE;
		most = v > most ? v : most;
	}
	if (most == 0)
		return EXPONENT_ZERO;
	frexpf(most, &e);
	return (signed char)(e < EXPONENT_ZERO + 1 ? EXPONENT_ZERO + 1 : e);
}

/* How many bits a value may have so that the sum of all members fits. */
static int aggregate_block_bits(const struct aggregate_job *j)
{
	int bits = BLOCK_BITS;
	for (unsigned n = 1; n < j->spec.members; n *= 2)
		bits--;
	return bits;
}

static void aggregate_block_write(const struct aggregate_job *j, const float *x, uint32_t count,
				  signed char exponent, int32_t *out)
{
	int bits = aggregate_block_bits(j);
	double scale = exponent == EXPONENT_STRANGE ? 0 : ldexp(1, bits - exponent);
	double most = ldexp(1, bits);
	for (uint32_t i = 0; i < count; i++) {
		double v = rint(x[i] * scale);
		out[i] = !(fabs(v) <= most) ? (v < 0   ? (int32_t)-most
					       : v > 0 ? (int32_t)most
						       : 0)
					    : (int32_t)v;
	}
}

static void aggregate_block_read(const struct aggregate_job *j, const int32_t *in, uint32_t count,
				 signed char exponent, float *x)
{
	double scale =
		exponent == EXPONENT_STRANGE ? NAN : ldexp(1, exponent - aggregate_block_bits(j));
	for (uint32_t i = 0; i < count; i++)
		x[i] = (float)(in[i] * scale);
}

static const uint8_t *aggregate_data_at(const struct aggregate_job *j, uint32_t data)
{
	return (const uint8_t *)j->spec.source + (uint64_t)data * j->spec.payload;
}

/* The values of a data chunk, padded with zeros. */
static void aggregate_write_values(const struct aggregate_job *j, uint32_t data,
				   signed char exponent, uint8_t *out)
{
	uint32_t bytes = aggregate_data_bytes(j, data);
	memset(out + bytes, 0, aggregate_padded(bytes) - bytes);
	if (j->spec.dtype != AGGREGATE_BLOCK) {
		memcpy(out, aggregate_data_at(j, data), bytes);
		return;
	}
	float x[AGGREGATE_PAYLOAD_MAX / sizeof(float)];
	int32_t values[AGGREGATE_PAYLOAD_MAX / sizeof(float)];
	memcpy(x, aggregate_data_at(j, data), bytes);
	aggregate_block_write(j, x, bytes / sizeof(float), exponent, values);
	memcpy(out, values, bytes);
}

static signed char aggregate_chunk_exponent(const struct aggregate_job *j, uint32_t chunk)
{
	float x[AGGREGATE_PAYLOAD_MAX / sizeof(float)];
	if (j->lead == 0)
		return 0;
	if (chunk >= j->chunks)
		return EXPONENT_ZERO;
	uint32_t bytes = aggregate_data_bytes(j, chunk);
	memcpy(x, aggregate_data_at(j, chunk), bytes);
	return aggregate_block_exponent(x, bytes / sizeof(float));
}

/* Whether all that the packet of the chunk needs is at the source. */
static bool aggregate_source_has(const struct aggregate_job *j, uint32_t chunk)
{
	uint32_t last = chunk < j->chunks ? chunk : j->chunks - 1; /* with lead: its exponent */
	return (uint64_t)last * j->spec.payload + aggregate_data_bytes(j, last) <= j->source_ready;
}

static uint32_t aggregate_write_packet(struct aggregate_job *j, struct aggregate_job_slot *s,
				       uint8_t kind, uint64_t now_ns, uint8_t *out)
{
	uint32_t bytes = kind == AGGREGATE_POLL ? 0 : aggregate_payload_bytes(j, s->chunk);
	struct aggregate_header h = {.kind = kind,
				     .member = j->spec.member,
				     .members = j->spec.members,
				     .bitmap = j->spec.token,
				     .group = j->spec.group,
				     .round = j->spec.round,
				     .chunk = s->chunk,
				     .slot = (uint16_t)(s->chunk % j->spec.window),
				     .operation = aggregate_operation(j->spec.op, j->spec.dtype)};
	if (kind == AGGREGATE_CONTRIBUTION)
		h.exponent = aggregate_chunk_exponent(j, s->chunk);
	if (bytes > 0) {
		uint32_t data = s->chunk - j->lead;
		h.flags =
			aggregate_end(data == j->chunks - 1, bytes - aggregate_data_bytes(j, data));
		aggregate_write_values(j, data, s->exponent, out + sizeof(h));
	}
	memcpy(out, &h, sizeof(h));
	aggregate_seal(out, sizeof(h) + bytes);
	if (j->oldest == NONE)
		j->heard_ns = now_ns; /* a silence begins when something is under way */
	if (s->state != AGGREGATE_JOB_FRESH)
		aggregate_list_remove(j, s);
	aggregate_list_add(j, s);
	s->sent_ns = now_ns;
	if (kind == AGGREGATE_CONTRIBUTION)
		s->first_ns = now_ns;
	s->order = ++j->order;
	s->state = kind == AGGREGATE_POLL ? AGGREGATE_JOB_POLLED : AGGREGATE_JOB_SENT;
	j->packets++;
	return sizeof(h) + bytes;
}

static uint64_t aggregate_rto_ns(const struct aggregate_job *j, unsigned tries)
{
	uint64_t ns = j->rtt_ns ? 2 * j->rtt_ns + 4 * j->deviation_ns : RTO_FIRST_NS;
	ns = ns < RTO_MIN_NS ? RTO_MIN_NS : ns;
	ns <<= tries < 5 ? tries : 5;
	return ns > RTO_MAX_NS ? RTO_MAX_NS : ns;
}

/* The slot to ask about: later packets have been answered, or its time is over. */
static struct aggregate_job_slot *aggregate_lost_slot(struct aggregate_job *j, uint64_t now_ns)
{
	if (j->oldest == NONE)
		return NULL;
	struct aggregate_job_slot *s = &j->slot[j->oldest];
	if (s->state == AGGREGATE_JOB_SENT &&
	    (int32_t)(j->order_heard - s->order) > AGGREGATE_JOB_REORDER)
		return s;
	if (now_ns - s->sent_ns < aggregate_rto_ns(j, s->tries))
		return NULL;
	if (now_ns - j->probed_ns >= PROBE_NS) {
		j->probed_ns = now_ns;
		j->probes = 0;
	}
	return j->probes++ < AGGREGATE_JOB_PROBES ? s : NULL;
}

uint32_t aggregate_job_next(struct aggregate_job *j, uint64_t now_ns, void *out)
{
	const uint32_t mask = AGGREGATE_JOB_WINDOW_MAX - 1;
	while (j->repeat_first != j->repeat_end) {
		struct aggregate_job_slot *s = &j->slot[j->repeat[j->repeat_first++ & mask]];
		if (s->state != AGGREGATE_JOB_POLLED)
			continue;
		j->resent++;
		return aggregate_write_packet(j, s, AGGREGATE_CONTRIBUTION, now_ns, out);
	}
	struct aggregate_job_slot *s = aggregate_lost_slot(j, now_ns);
	if (s) {
		s->tries += s->tries < UINT8_MAX;
		j->polls++;
		return aggregate_write_packet(j, s, AGGREGATE_POLL, now_ns, out);
	}
	while (j->fresh_first != j->fresh_end) {
		s = &j->slot[j->fresh[j->fresh_first & mask]];
		if (!s->over && !aggregate_source_has(j, s->chunk))
			return 0;
		j->fresh_first++;
		if (!s->over)
			return aggregate_write_packet(j, s, AGGREGATE_CONTRIBUTION, now_ns, out);
	}
	return 0;
}

static void aggregate_measure(struct aggregate_job *j, const struct aggregate_job_slot *s,
			      uint64_t now_ns)
{
	/* since its chunk was sent, asked about or not: slow answers would never count otherwise */
	uint64_t rtt = now_ns - s->first_ns;
	if (s->state == AGGREGATE_JOB_FRESH)
		return;
	if (j->rtt_ns == 0) {
		j->rtt_ns = rtt + 1;
		j->deviation_ns = rtt / 2;
		return;
	}
	uint64_t off = rtt > j->rtt_ns ? rtt - j->rtt_ns : j->rtt_ns - rtt;
	j->deviation_ns += off / 4 - j->deviation_ns / 4;
	j->rtt_ns += rtt / 8 - j->rtt_ns / 8;
}

/* The slot goes on with its next chunk. A FRESH one, which a quorum has left out, is in its ring
 * already. */
static void aggregate_slot_advance(struct aggregate_job *j, struct aggregate_job_slot *s)
{
	if (s->state != AGGREGATE_JOB_FRESH) {
		aggregate_list_remove(j, s);
		j->fresh[j->fresh_end++ & (AGGREGATE_JOB_WINDOW_MAX - 1)] = (uint16_t)(s - j->slot);
	}
	s->state = AGGREGATE_JOB_FRESH;
	s->tries = 0;
	s->chunk += j->spec.window;
	if (s->chunk - j->lead >= j->chunks && s->chunk >= j->lead) {
		s->over = true;
		j->left--;
	}
	while (j->prefix < j->lead + j->chunks &&
	       (j->prefix % j->spec.window >= j->slots ||
		j->slot[j->prefix % j->spec.window].chunk > j->prefix))
		j->prefix++;
}

static void aggregate_take_result(struct aggregate_job *j, struct aggregate_job_slot *s,
				  const struct aggregate_header *h, const uint8_t *payload,
				  uint64_t now_ns)
{
	if (s->chunk >= j->lead) {
		uint32_t data = s->chunk - j->lead, bytes = aggregate_data_bytes(j, data);
		uint8_t *to = (uint8_t *)j->spec.target + (uint64_t)data * j->spec.payload;
		if (j->spec.dtype == AGGREGATE_BLOCK) {
			float x[AGGREGATE_PAYLOAD_MAX / sizeof(float)];
			int32_t values[AGGREGATE_PAYLOAD_MAX / sizeof(float)];
			memcpy(values, payload, bytes);
			aggregate_block_read(j, values, bytes / sizeof(float), s->exponent, x);
			memcpy(to, x, bytes);
		} else {
			memcpy(to, payload, bytes);
		}
		j->in_all &= h->bitmap;
		j->fewest = h->member < j->fewest ? h->member : j->fewest;
	}
	s->exponent = h->exponent;
	aggregate_measure(j, s, now_ns);
	/* an answer to a poll says nothing of what was sent before it */
	if (s->state == AGGREGATE_JOB_SENT && (int32_t)(s->order - j->order_heard) > 0)
		j->order_heard = s->order;
	aggregate_slot_advance(j, s);
}

static int aggregate_refusal(uint8_t reason)
{
	switch (reason) {
	case AGGREGATE_NO_KERNEL:
		return -ENOTSUP;
	case AGGREGATE_NO_ROOM:
		return -ENOSPC;
	default:
		return -EINVAL;
	}
}

bool aggregate_job_take(struct aggregate_job *j, uint64_t now_ns, const void *packet,
			uint32_t bytes)
{
	struct aggregate_header h;
	memcpy(&h, packet, sizeof(h));
	if (h.group != j->spec.group || h.round != j->spec.round || j->slots == 0 ||
	    h.chunk % j->spec.window >= j->slots)
		return false;
	struct aggregate_job_slot *s = &j->slot[h.chunk % j->spec.window];
	j->heard_ns = now_ns;
	if (s->over || s->chunk != h.chunk)
		return true; /* of a chunk that is in */
	switch (h.kind) {
	case AGGREGATE_RESULT:
		if (bytes - AGGREGATE_HEADER == aggregate_payload_bytes(j, s->chunk))
			aggregate_take_result(j, s, &h, (const uint8_t *)packet + sizeof(h),
					      now_ns);
		else
			j->error = -EINVAL;
		break;
	case AGGREGATE_WAIT:
		if (s->state == AGGREGATE_JOB_POLLED && !(h.bitmap >> j->spec.member & 1) &&
		    j->repeat_end - j->repeat_first < AGGREGATE_JOB_WINDOW_MAX)
			j->repeat[j->repeat_end++ & (AGGREGATE_JOB_WINDOW_MAX - 1)] =
				(uint16_t)(s - j->slot);
		break;
	case AGGREGATE_GONE:
		j->error = -ESTALE;
		break;
	case AGGREGATE_REFUSED:
		j->error = aggregate_refusal(h.flags);
		break;
	default:
		break;
	}
	return true;
}

uint64_t aggregate_job_timeout(const struct aggregate_job *j)
{
	if (j->oldest == NONE)
		return UINT64_MAX;
	const struct aggregate_job_slot *s = &j->slot[j->oldest];
	uint64_t at = s->sent_ns + aggregate_rto_ns(j, s->tries), probe = j->probed_ns + PROBE_NS;
	return at < probe && j->probes >= AGGREGATE_JOB_PROBES ? probe : at;
}

int aggregate_job_status(const struct aggregate_job *j, uint64_t now_ns)
{
	if (j->left == 0)
		return 1;
	if (j->error)
		return j->error;
	/* a packet that is under way for less than that is no silence */
	bool asked = j->oldest != NONE && j->slot[j->oldest].tries > 0;
	return asked && now_ns - j->heard_ns > AGGREGATE_JOB_SILENCE_NS ? -ENETUNREACH : 0;
}

uint64_t aggregate_job_ready(const struct aggregate_job *j)
{
	if (j->prefix <= j->lead)
		return 0;
	uint64_t bytes = (uint64_t)(j->prefix - j->lead) * j->spec.payload;
	return bytes < j->spec.bytes ? bytes : j->spec.bytes;
}
