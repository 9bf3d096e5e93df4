/* SPDX-License-Identifier: BSD-3-Clause */
/* The content upon which the sender and the receiver of valid DATA have agreed. */
#ifndef SARISSA_PKTGEN_SCENARIOS_PROGRAMS_CONTENT_H
#define SARISSA_PKTGEN_SCENARIOS_PROGRAMS_CONTENT_H

#include "../../bench/payload.h"
#include "internal/ids.h"

enum { SENDER_PORT = 7600 }; /* of the first sender; the others follow */

/* The stream that sender i serves, by the receiver's id. */
static inline uint32_t content_stream(uint32_t sender)
{
	return handle_make((uint16_t)sender, 1);
}

static inline void content_fill(uint8_t *out, uint32_t bytes, uint32_t sender, uint32_t chunk)
{
	payload_fill(out, bytes, (uint64_t)sender << 32 | chunk);
}

#endif
