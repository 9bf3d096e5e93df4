/* SPDX-License-Identifier: BSD-3-Clause */
#include "spill_file.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

struct spill_sum *spill_file_sum_new(void)
{
	return (struct spill_sum *)(void *)XXH3_createState();
}

void spill_file_sum_begin(struct spill_sum *s)
{
	XXH3_64bits_reset((XXH3_state_t *)(void *)s);
}

void spill_file_sum_add(struct spill_sum *s, const void *bytes, uint64_t count)
{
	XXH3_64bits_update((XXH3_state_t *)(void *)s, bytes, count);
}

uint64_t spill_file_sum_end(const struct spill_sum *s)
{
	return XXH3_64bits_digest((const XXH3_state_t *)(const void *)s);
}

void spill_file_name(const struct control_spill *file, char out[SPILL_NAME])
{
	for (int i = 0; i < OBJECT_ID_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", file->id.bytes[i]);
	snprintf(out + 32, SPILL_NAME - 32, "-%016" PRIx64 ".spill", file->generation);
}

bool spill_file_parse_name(const char *name, struct object_id *id, uint64_t *generation)
{
	struct control_spill file = {.size = 0};
	char expected[SPILL_NAME];

	if (strlen(name) != SPILL_NAME - 1)
		return false;
	for (int i = 0; i < OBJECT_ID_BYTES; i++)
		if (sscanf(name + 2 * i, "%2hhx", &file.id.bytes[i]) != 1)
			return false;
	if (sscanf(name + 33, "%16" SCNx64, &file.generation) != 1)
		return false;
	spill_file_name(&file, expected);
	*id = file.id;
	*generation = file.generation;
	return strcmp(name, expected) == 0;
}

static uint64_t spill_file_header_sum(const struct spill_header *h)
{
	return XXH3_64bits(h, offsetof(struct spill_header, header_sum));
}

void spill_file_header_make(struct spill_header *h, const struct control_spill *file, uint64_t sum)
{
	memset(h, 0, SPILL_BLOCK);
	h->magic = SPILL_MAGIC;
	h->id = file->id;
	h->generation = file->generation;
	h->size = file->size;
	h->incarnation = file->incarnation;
	h->bytes_sum = sum;
	h->header_sum = spill_file_header_sum(h);
}

bool spill_file_header_is(const struct spill_header *h, const struct control_spill *file)
{
	return h->magic == SPILL_MAGIC && h->header_sum == spill_file_header_sum(h) &&
	       object_id_equal(&h->id, &file->id) && h->generation == file->generation &&
	       h->size == file->size && h->incarnation == file->incarnation;
}

uint64_t spill_file_bytes(const struct control_spill *file)
{
	return SPILL_BLOCK + (file->size + SPILL_BLOCK - 1) / SPILL_BLOCK * SPILL_BLOCK;
}
