/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault of a path: by itself, or beside those to the other nodes. */
#include <stdio.h>
#include <stdlib.h>
#include "paths.h"
#include "cli/support/text.h"

#define NOTE_SILENT_NS UINT64_C(300000000)
#define NOTE_FAR_NS    UINT64_C(10000000)    /* a busy host gives a process its turn so late */
#define NOTE_LEAST_NS  UINT64_C(60000000000) /* how long a least round trip stands, at most */
#define NOTE_MTU_NS    UINT64_C(5000000000)
#define NOTE_LOSS      0.01

enum {
	NOTE_PKTS = 1000,   /* fewer say nothing about a share of 1 % */
	NOTE_FAR = 4,	    /* times the usual round trip */
	NOTE_ROUNDS = 1000, /* packets in the life of a least: of fewer each may have met a delay */
	NOTE_SLOW = 4,	    /* a part of the usual rate; less may come of sharing a link */
};

static uint64_t paths_note_of_lost(const struct path *p)
{
	const struct peer_counters *c = &p->values.counters;
	return c->lost_pkts > c->lost_spurious ? c->lost_pkts - c->lost_spurious : 0;
}

double paths_note_lost(const struct path *p)
{
	uint64_t sent = p->values.gauges.tx_pkts;
	return sent > 0 ? (double)paths_note_of_lost(p) / (double)sent : 0;
}

static uint64_t paths_note_expected(const struct path *p)
{
	return p->values.counters.rx_pkts + p->values.gauges.missing_pkts;
}

double paths_note_missed(const struct path *p)
{
	uint64_t expected = paths_note_expected(p);
	return expected > 0 ? (double)p->values.gauges.missing_pkts / (double)expected : 0;
}

static uint64_t paths_note_rate(const struct path *p)
{
	const struct peer_gauges *g = &p->values.gauges;
	return g->best_bytes_per_s > g->path_bytes_per_s ? g->best_bytes_per_s
							 : g->path_bytes_per_s;
}

static uint64_t paths_note_rtt(const struct path *p)
{
	return p->values.gauges.rtt_least_ns;
}

static int paths_note_compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return (left > right) - (left < right);
}

/* Of an even number the better one of the two in the middle: higher or lower. */
static uint64_t paths_note_middle(const struct paths *p, uint64_t (*of)(const struct path *),
				  bool higher)
{
	uint64_t *value = calloc(p->count + 1, sizeof(*value)), middle = 0;
	size_t known = 0;
	for (size_t i = 0; value && i < p->count; i++)
		if (of(&p->row[i]) > 0)
			value[known++] = of(&p->row[i]);
	if (known > 0) {
		qsort(value, known, sizeof(*value), paths_note_compare);
		middle = value[(known - !higher) / 2];
	}
	free(value);
	return middle;
}

struct paths_note_usual paths_note_usual(const struct paths *p)
{
	return (struct paths_note_usual){.rtt_ns = paths_note_middle(p, paths_note_rtt, false),
					 .bytes_per_s = paths_note_middle(p, paths_note_rate, true),
					 .mtu = p->mtu};
}

static bool paths_note_losses(const struct path *p, char note[PATHS_NOTE_BYTES])
{
	bool to = p->values.gauges.tx_pkts >= NOTE_PKTS && paths_note_lost(p) > NOTE_LOSS;
	bool from = paths_note_expected(p) >= NOTE_PKTS && paths_note_missed(p) > NOTE_LOSS;
	if (to)
		snprintf(note, PATHS_NOTE_BYTES, "%.1f %% of what is sent to it is lost",
			 100 * paths_note_lost(p));
	else if (from)
		snprintf(note, PATHS_NOTE_BYTES, "%.1f %% of what it sends is lost",
			 100 * paths_note_missed(p));
	return to || from;
}

/* Once the search for what it carries must have ended. */
static bool paths_note_mtu(const struct path *p, const struct paths_note_usual *usual,
			   char note[PATHS_NOTE_BYTES])
{
	const struct peer_gauges *g = &p->values.gauges;
	bool narrow = g->age_ns >= NOTE_MTU_NS && g->mtu < usual->mtu;
	if (narrow)
		snprintf(note, PATHS_NOTE_BYTES,
			 "narrow: carries packets of %llu bytes, the link here of %llu; longer "
			 "chunks go in parts",
			 (unsigned long long)g->mtu, (unsigned long long)usual->mtu);
	return narrow;
}

/* Whether there were so many round trips that the least of them met no delay. */
static bool paths_note_rounds(const struct peer_gauges *g)
{
	uint64_t lives = g->age_ns / NOTE_LEAST_NS + 1;
	return g->tx_pkts / lives >= NOTE_ROUNDS;
}

static bool paths_note_pace(const struct path *p, const struct paths_note_usual *usual,
			    char note[PATHS_NOTE_BYTES])
{
	const struct peer_gauges *g = &p->values.gauges;
	char own[TEXT_BYTES], others[TEXT_BYTES];
	bool slow = g->path_bytes_per_s > 0 && g->path_bytes_per_s < usual->bytes_per_s / NOTE_SLOW;
	bool far = paths_note_rounds(g) && g->rtt_least_ns > usual->rtt_ns * NOTE_FAR &&
		   g->rtt_least_ns > usual->rtt_ns + NOTE_FAR_NS;
	if (slow)
		snprintf(note, PATHS_NOTE_BYTES, "slow: %.16s/s when it was full, others %.16s/s",
			 text_size(own, g->path_bytes_per_s),
			 text_size(others, usual->bytes_per_s));
	else if (far)
		snprintf(note, PATHS_NOTE_BYTES, "far: %.16s at least, others %.16s",
			 text_duration(own, g->rtt_least_ns), text_duration(others, usual->rtt_ns));
	return slow || far;
}

bool paths_note(const struct path *p, const struct paths_note_usual *usual,
		char note[PATHS_NOTE_BYTES])
{
	const struct peer_gauges *g = &p->values.gauges;
	char age[TEXT_BYTES];
	*note = '\0';
	uint64_t waiting_ns = g->up ? g->waiting_ns : g->age_ns;
	if (waiting_ns >= NOTE_SILENT_NS) {
		snprintf(note, PATHS_NOTE_BYTES, "has not answered for %.16s",
			 text_duration(age, waiting_ns));
		return true;
	}
	/* what is too long for a path is lost there, so the losses may come of it */
	return paths_note_mtu(p, usual, note) || paths_note_losses(p, note) ||
	       paths_note_pace(p, usual, note);
}
