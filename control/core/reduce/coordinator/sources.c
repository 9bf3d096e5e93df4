/* SPDX-License-Identifier: BSD-3-Clause */
#include "sources.h"

static int sources_order(const struct message_reduce *m, uint16_t a, uint16_t b)
{
	return memcmp(&m->sources[a], &m->sources[b], sizeof(m->sources[a]));
}

/* Lets the source at that place sink in a heap of count places. */
static void sources_sink(const struct message_reduce *m, uint16_t *heap, uint32_t at,
			 uint32_t count)
{
	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		uint16_t moved = heap[at];

		child += child + 1 < count && sources_order(m, heap[child], heap[child + 1]) < 0;
		if (sources_order(m, moved, heap[child]) >= 0)
			return;
		heap[at] = heap[child];
		heap[child] = moved;
	}
}

/* Heapsort: n log n comparisons whatever the ids are. */
bool sources_sort(struct sources_sorted *s, const struct message_reduce *m)
{
	bool twice = false;

	s->of = m;
	for (uint32_t i = 0; i < m->count; i++)
		s->at[i] = (uint16_t)i;
	for (uint32_t i = m->count / 2; i > 0; i--)
		sources_sink(m, s->at, i - 1, m->count);
	for (uint32_t left = m->count; left > 1; left--) {
		uint16_t greatest = s->at[0];

		s->at[0] = s->at[left - 1];
		s->at[left - 1] = greatest;
		sources_sink(m, s->at, 0, left - 1);
		twice |= sources_order(m, greatest, s->at[0]) == 0;
	}
	return !twice;
}

bool sources_have(const struct sources_sorted *s, const struct object_id *id)
{
	uint32_t from = 0, to = s->of->count;

	while (from < to) {
		uint32_t middle = (from + to) / 2;
		int order = memcmp(id, &s->of->sources[s->at[middle]], sizeof(*id));

		if (order == 0)
			return true;
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return false;
}
