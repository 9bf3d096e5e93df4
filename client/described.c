/* SPDX-License-Identifier: BSD-3-Clause */
#include "described.h"

#include <errno.h>
#include <string.h>
#include "error.h"
#include "internal/array_meta.h"

_Static_assert(SAR_META_MAX == OBJECT_META_BYTES, "as many bytes here and there");

static struct described_one *described_place(struct described *d, const struct object_id *id)
{
	uint32_t hash;
	memcpy(&hash, id->bytes + 4, sizeof(hash));
	return &d->recent[hash & (DESCRIBED_RECENT - 1)];
}

void described_add(struct described *d, const struct object_id *id, uint64_t generation,
		   const struct object_meta *meta)
{
	struct described_one *one = described_place(d, id);
	pthread_mutex_lock(&d->lock);
	*one = (struct described_one){*id, generation, *meta};
	pthread_mutex_unlock(&d->lock);
}

bool described_find(struct described *d, const struct object_id *id, uint64_t generation,
		    struct object_meta *out)
{
	const struct described_one *one = described_place(d, id);
	pthread_mutex_lock(&d->lock);
	bool found = one->generation == generation && object_id_equal(&one->id, id);
	if (found)
		*out = one->meta;
	pthread_mutex_unlock(&d->lock);
	return found;
}

void described_set(struct described *d, uint32_t pin, const struct object_meta *meta,
		   sar_buffer *out)
{
	if (meta->bytes == 0)
		return;
	d->of_pin[pin] = *meta;
	out->meta = d->of_pin[pin].data;
	out->meta_bytes = meta->bytes;
}

/* Whether a later version of the struct says something that this library does not know. */
static bool described_newer(const sar_put_options *options)
{
	const uint8_t *bytes = (const uint8_t *)options;
	for (size_t i = sizeof(*options); i < options->size; i++)
		if (bytes[i] != 0)
			return true;
	return false;
}

int described_options(const sar_put_options *options, struct object_meta *out)
{
	struct array_meta array;
	out->bytes = 0;
	if (!options)
		return 0;
	if (options->size < sizeof(*options))
		return error_set(-EINVAL,
				 "the options have size %zu: set it to "
				 "sizeof(sar_put_options)",
				 options->size);
	if (described_newer(options))
		return error_set(-EINVAL, "the options say what this library does not know: use a "
					  "library of that version");
	if (options->meta_bytes > SAR_META_MAX || (options->meta_bytes > 0 && !options->meta))
		return error_set(-EINVAL,
				 "%zu bytes of metadata: give at most %d, and put the "
				 "rest into the object",
				 options->meta_bytes, SAR_META_MAX);
	out->bytes = (uint8_t)options->meta_bytes;
	if (out->bytes > 0)
		memcpy(out->data, options->meta, out->bytes);
	if (array_meta_marked(out) && !array_meta_read(out, &array))
		return error_set(-EINVAL, "metadata that begin with 0xa1 describe an array, and "
					  "these do not: write them with sar_array_describe");
	return 0;
}
