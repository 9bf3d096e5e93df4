/* SPDX-License-Identifier: BSD-3-Clause */
#include "decode.h"
#include <string.h>

/* Runs that rise and do not touch each other, inside the range asked for. */
static bool decode_skips(const Rpc__Stream *in, struct message_stream *out)
{
	uint64_t at = in->first, end = (uint64_t)in->first + in->count;

	if (in->n_skip % 2 || in->n_skip > 2 * MESSAGE_SKIPS_MAX)
		return false;
	out->skips = (uint32_t)(in->n_skip / 2);
	for (uint32_t i = 0; i < out->skips; i++) {
		const struct chunk_run run = {in->skip[2 * i], in->skip[2 * i + 1]};

		if (run.first < at || run.count == 0 || (uint64_t)run.first + run.count > end)
			return false;
		at = (uint64_t)run.first + run.count;
		out->skip[i] = run;
	}
	return true;
}

bool decode_range(const Rpc__Stream *in, struct message_stream *out)
{
	out->generation = in->generation;
	out->chunk_bytes = in->chunk_bytes;
	out->first = in->first;
	out->count = in->count;
	return in->generation != 0 && in->count > 0 && in->first <= UINT32_MAX - in->count &&
	       decode_chunk(in->chunk_bytes, 0) && decode_skips(in, out) &&
	       decode_id(&in->id, &out->id);
}

/* Streams inside the range; those that end. */
bool decode_stream(const Rpc__Stream *in, struct message_stream *out)
{
	uint64_t end = (uint64_t)in->first + in->count;
	bool cut = in->lanes > 0 && in->lanes <= LANES_MAX;

	if (!decode_range(in, out) || !cut || in->n_replaces > MESSAGE_SUBSTREAMS_MAX ||
	    in->n_substream == 0 || in->n_substream % 4 ||
	    in->n_substream > 4 * MESSAGE_SUBSTREAMS_MAX)
		return false;
	out->check = in->check != 0;
	out->lanes = in->lanes;
	out->substreams = (uint32_t)(in->n_substream / 4);
	memcpy(out->substream, in->substream, in->n_substream * sizeof(*in->substream));
	out->replaced = (uint32_t)in->n_replaces;
	for (uint32_t i = 0; i < out->replaced; i++)
		out->replaces[i] = in->replaces[i];
	for (uint32_t i = 0; i < out->substreams; i++) {
		const struct message_substream *s = &out->substream[i];

		if (s->stream == 0 || s->worker >= WORKERS_MAX || s->count == 0 ||
		    s->first < in->first || (uint64_t)s->first + s->count > end)
			return false;
	}
	return true;
}
