/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names and metadata of the objects, in the private part of the table (object_private.h). A
 * note names its box; which boxes are free is known here alone, and found again from the notes.
 */
#include "state.h"

#define TEXTS_NONE  0
#define TEXTS_TAKEN UINT32_MAX

void texts_carve(struct texts *t, struct arena *a, uint32_t slots)
{
	for (unsigned i = 0; i < OBJECT_TEXT_SIZES; i++)
		t->size[i].next = arena_carve(a, sizeof(uint32_t) * slots);
}

void texts_reset(struct control *c)
{
	for (unsigned i = 0; i < OBJECT_TEXT_SIZES; i++) {
		struct text_size *s = &c->store->objects.texts.size[i];

		memset(s->next, 0, sizeof(uint32_t) * s->fresh);
		s->fresh = s->free = 0;
	}
}

static uint8_t *texts_at(struct control *c, uint32_t text)
{
	unsigned size = text >> OBJECT_TEXT_SHIFT;
	uint32_t box = (text & ((1u << OBJECT_TEXT_SHIFT) - 1)) - 1;

	return (uint8_t *)c->private + object_private_texts(c->table->slots, size) +
	       (uint64_t)box * object_text_bytes[size];
}

const struct object_meta *texts_meta(struct control *c, uint32_t slot)
{
	static const struct object_meta none;
	uint32_t text = c->private->note[slot].text;

	return text ? (const struct object_meta *)(void *)texts_at(c, text) : &none;
}

void texts_copy_meta(struct control *c, uint32_t slot, struct object_meta *out)
{
	const struct object_meta *m = texts_meta(c, slot);

	*out = (struct object_meta){.bytes = m->bytes};
	memcpy(out->data, m->data, m->bytes);
}

const char *texts_name(struct control *c, uint32_t slot)
{
	const struct object_meta *m = texts_meta(c, slot);

	return c->private->note[slot].text ? (const char *)m->data + m->bytes : "";
}

void texts_copy_name(struct control *c, uint32_t slot, char out[OBJECT_NAME_BYTES])
{
	const char *name = texts_name(c, slot);
	size_t length = strlen(name);

	memset(out, 0, OBJECT_NAME_BYTES);
	memcpy(out, name, length);
}

/* A free box of that size: there is one for each slot. */
static uint32_t texts_take(struct text_size *s)
{
	uint32_t box = s->free;

	if (box)
		s->free = s->next[box - 1];
	else
		box = ++s->fresh;
	s->next[box - 1] = TEXTS_TAKEN;
	return box;
}

uint32_t texts_write(struct control *c, const char *name, const struct object_meta *meta)
{
	uint8_t bytes = meta ? meta->bytes : 0;
	size_t length = strnlen(name, OBJECT_NAME_MAX);
	uint32_t size = 0, text;
	uint8_t *to;

	if (length == 0 && bytes == 0)
		return 0;
	while (object_text_bytes[size] < length + bytes + 2)
		size++;
	text = size << OBJECT_TEXT_SHIFT | texts_take(&c->store->objects.texts.size[size]);
	to = texts_at(c, text);
	*to = bytes;
	crash_point();
	if (bytes)
		memcpy(to + 1, meta->data, bytes);
	memcpy(to + 1 + bytes, name, length);
	to[1 + bytes + length] = 0;
	crash_point();
	return text;
}

void texts_give(struct control *c, uint32_t text)
{
	struct text_size *s = &c->store->objects.texts.size[text >> OBJECT_TEXT_SHIFT];
	uint32_t box = text & ((1u << OBJECT_TEXT_SHIFT) - 1);

	if (text == 0)
		return;
	assert(s->next[box - 1] == TEXTS_TAKEN);
	s->next[box - 1] = s->free;
	s->free = box;
}

bool texts_adopt(struct control *c, uint32_t text, uint32_t meta_bytes)
{
	uint32_t size = text >> OBJECT_TEXT_SHIFT, box = text & ((1u << OBJECT_TEXT_SHIFT) - 1);
	struct text_size *s = &c->store->objects.texts.size[size];
	const uint8_t *at;

	if (text == 0)
		return meta_bytes == 0;
	if (size >= OBJECT_TEXT_SIZES || box == 0 || box > c->table->slots ||
	    s->next[box - 1] == TEXTS_TAKEN)
		return false;
	at = texts_at(c, text);
	if (at[0] != meta_bytes || at[0] > OBJECT_META_BYTES ||
	    at[0] + 2u > object_text_bytes[size])
		return false;
	if (!memchr(at + 1 + at[0], 0,
		    object_text_bytes[size] - 1u - at[0] < OBJECT_NAME_BYTES
			    ? object_text_bytes[size] - 1u - at[0]
			    : OBJECT_NAME_BYTES))
		return false;
	s->next[box - 1] = TEXTS_TAKEN;
	if (box > s->fresh)
		s->fresh = box;
	return true;
}

void texts_adopted(struct control *c)
{
	for (unsigned i = 0; i < OBJECT_TEXT_SIZES; i++) {
		struct text_size *s = &c->store->objects.texts.size[i];

		for (uint32_t box = s->fresh; box > 0; box--) {
			if (s->next[box - 1] == TEXTS_TAKEN)
				continue;
			s->next[box - 1] = s->free;
			s->free = box;
		}
	}
}
