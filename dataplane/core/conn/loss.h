/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips, queues on the path, and which packets are lost: after RACK-TLP (RFC 8985) on
 * QUIC-style packet numbers (RFC 9002). sent.c brings the samples, conn.c runs the timers.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_LOSS_H
#define SARISSA_DATAPLANE_CORE_CONN_LOSS_H

#include "conn.h"
#include "core/engine_state.h"
#include "core/numbers.h"

/* One of the two ends stood still, or the path is another: what leaves from now on will show. */
bool loss_is_pause(struct conn *c, uint64_t pn, uint64_t sample_ns);
void loss_rtt(struct engine *e, struct conn *c, uint64_t sample_ns);
/* The peer's clock when a packet arrived that was sent at sent_ns of ours. */
void loss_one_way(struct engine *e, struct conn *c, uint32_t arrival_us, uint64_t sent_ns);
/* After both, of one packet: what is taken for the way there without a queue follows the clocks. */
void loss_drift(const struct engine *e, struct conn *c);
/* How long the latest packet stood in queues on its way there. */
uint64_t loss_queue_ns(const struct conn *c);
/* The measured path includes a queue, of unknown length: takes half of it for the path. The path is
 * measured again a second later, as it may be so long. */
void loss_base_halve(const struct engine *e, struct conn *c);
/* After new acknowledgements, or when the reorder deadline is due. */
void loss_detect(struct engine *e, struct conn *c);
/* When the tail probe is due; NEVER when nothing is outstanding. */
uint64_t loss_probe_ns(const struct engine *e, const struct conn *c);
void loss_probe(struct engine *e, struct conn *c);
/* Its probes need no answer any more. */
void loss_answered(struct engine *e, struct conn *c);
/* Whose silence has ended with a packet. It was of all only if one of them owed an answer: else an
 * answer after a long round trip would have us ask the others, and theirs the next, without end. */
enum loss_silence { SILENCE_OF_NOBODY, SILENCE_OF_ONE, SILENCE_OF_ALL };
static inline enum loss_silence loss_heard(struct engine *e, struct conn *c)
{
	bool one = e->now_ns - c->last_rx_ns >= numbers_max(LOSS_SILENCE_NS, c->loss.min_rtt_ns);
	bool all = e->unanswered > 0 && e->now_ns - e->heard_ns >= LOSS_SILENCE_NS;

	c->last_rx_ns = e->heard_ns = e->now_ns;
	return !one ? SILENCE_OF_NOBODY : all ? SILENCE_OF_ALL : SILENCE_OF_ONE;
}
/* When all that is in the packet has been looked at. */
void loss_silence_ended(struct engine *e, struct conn *c, enum loss_silence of);
void loss_spurious(struct conn *c);
/* A round trip has passed. */
void loss_round(struct conn *c);

#endif
