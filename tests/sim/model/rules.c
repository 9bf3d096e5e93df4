/* SPDX-License-Identifier: BSD-3-Clause */
#include "rules.h"

#include <assert.h>

#include "wire/wire_field.h"

struct rule *rules_add(struct rules *r, uint32_t from, uint32_t type, uint32_t frame)
{
	assert(r->count < RULES_MAX);
	struct rule *rule = &r->rule[r->count++];
	*rule = (struct rule){.from = from,
			      .to = RULE_ANY,
			      .type = type,
			      .frame = frame,
			      .chunk = RULE_ANY,
			      .strikes = 1,
			      .verdict = NETWORK_DROP};
	return rule;
}

static uint32_t rules_frame_bytes(const uint8_t *f, uint32_t room)
{
	if (room < 4)
		return 0;
	switch (f[0]) {
	case FRAME_DATA:
		return DATA_BYTES + wire_get16(f + DATA_AT_LENGTH);
	case FRAME_ACK:
		return ACK_AT_BITMAP + 8u * f[ACK_AT_WORDS];
	case FRAME_GRANT:
		return GRANT_BYTES;
	case FRAME_MSG:
		return MSG_FRAME_BYTES + wire_get16(f + MSG_AT_LENGTH);
	case FRAME_PART:
		return PART_FRAME_BYTES + wire_get16(f + DATA_AT_LENGTH);
	case FRAME_PING:
		return PING_BYTES;
	case FRAME_RESET_STREAM:
		return RESET_STREAM_BYTES;
	case FRAME_CLOSE:
		return CLOSE_BYTES;
	case FRAME_ECN:
		return ECN_BYTES;
	default:
		return 0;
	}
}

/* CHUNK and ACK packets are two more ways to say PAYLOAD, and DATA or ACK. */
static uint32_t rules_type(const uint8_t *packet)
{
	return wire_is_short(packet) ? WIRE_PAYLOAD : packet[WIRE_AT_VERSION_TYPE] & 15;
}

const uint8_t *rules_frame(const uint8_t *packet, uint16_t length, uint32_t frame)
{
	uint32_t at = WIRE_BODY, step;
	if (length >= CHUNK_BODY && wire_is_chunk(packet) && frame != FRAME_ACK)
		return frame == FRAME_DATA ? packet : NULL;
	if (length >= CHUNK_BODY && wire_is_chunk(packet))
		return packet[WIRE_AT_FLAGS] & CHUNK_FLAG_ACK ? packet + CHUNK_BODY : NULL;
	if (length >= WIRE_ACK_BYTES && wire_is_short(packet))
		return frame == FRAME_ACK ? packet + WIRE_ACK_AT_SHORT : NULL;
	if (length < WIRE_BODY || rules_type(packet) != WIRE_PAYLOAD)
		return NULL;
	while (at < length && (step = rules_frame_bytes(packet + at, length - at)) != 0) {
		if (packet[at] == frame)
			return packet + at;
		at += step;
	}
	return NULL;
}

static bool rules_match(const struct rule *r, const struct network_packet *p)
{
	if ((r->from != RULE_ANY && r->from != p->from) || (r->to != RULE_ANY && r->to != p->to))
		return false;
	if (r->type != RULE_ANY && rules_type(p->data) != r->type)
		return false;
	if (r->frame != RULE_ANY) {
		const uint8_t *f = rules_frame(p->data, p->length, r->frame);
		if (!f)
			return false;
		if (r->chunk != RULE_ANY && wire_get32(f + DATA_AT_CHUNK) != r->chunk)
			return false;
	}
	return !r->armed || r->armed(r->context);
}

enum network_verdict rules_apply(void *context, const struct network_packet *p)
{
	struct rules *rules = context;
	enum network_verdict verdict = NETWORK_PASS;
	for (uint32_t i = 0; i < rules->count; i++) {
		struct rule *r = &rules->rule[i];
		if (!rules_match(r, p))
			continue;
		uint64_t nth = r->matched++;
		if (nth < r->skip || nth >= r->skip + r->strikes)
			continue;
		r->struck++;
		verdict = r->verdict;
	}
	return verdict;
}
