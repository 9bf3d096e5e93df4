/* SPDX-License-Identifier: BSD-3-Clause */
/* How one link's figures follow from measurements: fanout.h. Called for each measurement; it must
 * not know whose link it is, nor what follows from it. */
#include "fanout.h"

#define FANOUT_SECOND	UINT64_C(1000000000)
#define FANOUT_RATE_MIN UINT64_C(10000)
#define FANOUT_RATE_MAX UINT64_C(1000000000000)

enum { FANOUT_FORGET = 32 }; /* measurements until a better one of before is forgotten by 63 % */

struct fanout_link fanout_prior(void)
{
	return (struct fanout_link){.start_ns = 100000, .hop_ns = 20000, .bytes_per_s = 1250000000};
}

static void fanout_least(uint64_t *least, bool *seen, uint64_t ns)
{
	if (ns > FANOUT_SECOND)
		ns = FANOUT_SECOND;
	*least = ns < *least || !*seen ? ns : *least + (ns - *least) / FANOUT_FORGET;
	*seen = true;
}

void fanout_saw_start(struct fanout_link *l, uint64_t ns)
{
	fanout_least(&l->start_ns, &l->start_seen, ns);
	/* handshakes are rare and may all have met a busy machine */
	if (l->hop_ns > l->start_ns / 2)
		l->hop_ns = l->start_ns / 2;
}

void fanout_saw_hop(struct fanout_link *l, uint64_t ns)
{
	fanout_least(&l->hop_ns, &l->hop_seen, ns);
}

void fanout_saw_rate(struct fanout_link *l, uint64_t bytes_per_s)
{
	uint64_t rate = bytes_per_s < FANOUT_RATE_MIN	? FANOUT_RATE_MIN
			: bytes_per_s > FANOUT_RATE_MAX ? FANOUT_RATE_MAX
							: bytes_per_s;

	l->bytes_per_s = rate > l->bytes_per_s || !l->rate_seen
				 ? rate
				 : l->bytes_per_s - (l->bytes_per_s - rate) / FANOUT_FORGET;
	l->rate_seen = true;
}

uint64_t fanout_rate(const struct fanout_link *l, uint64_t bytes, uint64_t taken_ns)
{
	uint64_t ns = l->start_ns < taken_ns / 2 ? taken_ns - l->start_ns : taken_ns / 2;

	if (bytes < FANOUT_RATE_BYTES || ns == 0)
		return 0;
	return (uint64_t)((double)bytes * (double)FANOUT_SECOND / (double)ns);
}
