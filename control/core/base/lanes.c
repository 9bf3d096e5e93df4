/* SPDX-License-Identifier: BSD-3-Clause */
#include "lanes.h"
#include <string.h>
#include "internal/record.h"

_Static_assert(STRIPE_BYTES_MIN / CHUNK_BYTES_MAX > STRIPE_GRAIN_CHUNKS, "no stripe is empty");
_Static_assert(STRIPE_GRAIN_CHUNKS % (64 * 8) == 0, "a stripe's bits are whole cache lines");

uint32_t stripe_count(uint64_t size, uint32_t workers)
{
	uint64_t most = size / STRIPE_BYTES_MIN;

	if (workers > STRIPES_MAX)
		workers = STRIPES_MAX;
	if (most > workers)
		most = workers;
	return most > 1 ? (uint32_t)most : 1;
}

uint32_t stripe_first(uint32_t chunks, uint32_t stripes, uint32_t stripe)
{
	uint64_t first = (uint64_t)chunks * stripe / stripes;

	return stripe == stripes ? chunks : (uint32_t)(first - first % STRIPE_GRAIN_CHUNKS);
}

uint32_t stripe_of(uint32_t chunks, uint32_t stripes, uint32_t chunk)
{
	uint32_t stripe = stripes - 1;

	while (chunk < stripe_first(chunks, stripes, stripe))
		stripe--;
	return stripe;
}

static uint32_t stripe_home(const struct object_id *id)
{
	uint32_t home;

	memcpy(&home, id->bytes + 8, sizeof(home));
	return home;
}

unsigned stripe_worker(const struct object_id *id, uint32_t workers, uint32_t stripe)
{
	return workers ? (stripe_home(id) % workers + stripe) % workers : 0;
}

void stripe_settle(struct object_id *id, const struct object_id *other, uint32_t stripe)
{
	uint32_t home = stripe_home(other) + stripe;

	memcpy(id->bytes + 8, &home, sizeof(home));
}
