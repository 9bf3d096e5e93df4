/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "lanes.h"
#include <string.h>
#include "internal/record.h"

_Static_assert(LANE_BYTES_MIN / CHUNK_BYTES_MAX > LANE_GRAIN_CHUNKS, "no lane is empty");
_Static_assert(LANE_GRAIN_CHUNKS % (64 * 8) == 0, "a lane's bits are whole cache lines");

uint32_t lane_count(uint64_t size, uint32_t workers)
{
	uint64_t most = size / LANE_BYTES_MIN;

	if (workers > LANES_MAX)
		workers = LANES_MAX;
	if (most > workers)
		most = workers;
	return most > 1 ? (uint32_t)most : 1;
}

uint32_t lane_first(uint32_t chunks, uint32_t lanes, uint32_t lane)
{
	assert(lanes >= 1 && lane <= lanes);
	uint64_t first = (uint64_t)chunks * lane / lanes;

	return lane == lanes ? chunks : (uint32_t)(first - first % LANE_GRAIN_CHUNKS);
}

uint32_t lane_of(uint32_t chunks, uint32_t lanes, uint32_t chunk)
{
	assert(lanes >= 1 && lanes <= LANES_MAX);
	uint32_t lane = lanes - 1;

	while (chunk < lane_first(chunks, lanes, lane))
		lane--;
	return lane;
}

static uint32_t lane_home(const struct object_id *id)
{
	uint32_t home;

	memcpy(&home, id->bytes + 8, sizeof(home));
	return home;
}

unsigned lane_worker(const struct object_id *id, uint32_t workers, uint32_t lane)
{
	return workers ? (lane_home(id) % workers + lane) % workers : 0;
}

void lane_settle(struct object_id *id, const struct object_id *other, uint32_t lane)
{
	uint32_t home = lane_home(other) + lane;

	memcpy(id->bytes + 8, &home, sizeof(home));
}
