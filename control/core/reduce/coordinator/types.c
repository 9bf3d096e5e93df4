/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the sources of a reduce fit together, and the request: sizes, and what the descriptions
 * in their metadata say (internal/array_meta.h). Called by contributions.c for each source that is
 * found, and by coordinator.c for a second request of the same target. It must not know plans.
 */
#include <errno.h>
#include "core/base/text.h"
#include "internal/array_meta.h"
#include "state.h"
#include "sources.h"

enum { TYPES_NAME_SHOWN = 60 }; /* bytes of a name: two of them fit a text */

static void types_add_name(struct text *t, const struct object_id *id, const char *name)
{
	char cut[TYPES_NAME_SHOWN + 4];

	if (strnlen(name, TYPES_NAME_SHOWN + 1) > TYPES_NAME_SHOWN) {
		memcpy(cut, name, TYPES_NAME_SHOWN);
		strcpy(cut + TYPES_NAME_SHOWN, "...");
		name = cut;
	}
	text_add_object(t, id, name);
}

static void types_add_source(struct text *t, const struct reduce_named *n, const char *verb)
{
	char shown[ARRAY_META_SHOWN];
	struct array_meta a;

	text_add(t, "source ");
	types_add_name(t, &n->id, n->name);
	text_add(t, verb);
	if (array_meta_read(&n->meta, &a)) {
		text_add(t, array_meta_show(&a, shown));
		return;
	}
	text_add_number(t, n->size);
	text_add(t, " bytes");
}

static bool types_same(const struct array_meta *a, const struct array_meta *b)
{
	return a->dtype == b->dtype && a->dims == b->dims &&
	       memcmp(a->shape, b->shape, sizeof(a->shape[0]) * a->dims) == 0 &&
	       (a->dims < 2 || a->order == b->order);
}

/* An array of a type that no reduce takes. */
static void types_say_strange(struct text *t, const struct reduce_named *n,
			      const struct array_meta *a)
{
	types_add_source(t, n, " is ");
	text_add(t, ", and a reduce takes no ");
	text_add(t, a->text);
	text_add(t, ": convert it to f16, bf16, f32, f64, i8 to i64 or u8 to u64");
}

/* The request asks for another type. */
static void types_say_asked(struct text *t, const struct reduce *r, const struct reduce_named *n,
			    const struct array_meta *a)
{
	bool other = r->from.described.known;

	types_add_source(t, n, " is ");
	if (other) {
		text_add(t, ", ");
		types_add_source(t, &r->from.described, " is ");
	}
	text_add(t, ", and the reduce asks for ");
	text_add(t, reduce_dtype_name(r->want.dtype));
	text_add(t, ": ask for ");
	text_add(t, reduce_dtype_name(a->dtype));
	if (r->want.dtype == REDUCE_I8 && a->dtype == REDUCE_I64)
		text_add(t, ", as numpy's i8 is i64 here");
	if (r->want.dtype == REDUCE_U8 && a->dtype == REDUCE_U64)
		text_add(t, ", as numpy's u8 is u64 here");
	else if (other)
		text_add(t, ", or convert them to one type");
}

static void types_say_differ(struct text *t, const struct reduce *r, const struct reduce_named *n)
{
	types_add_source(t, n, " is ");
	text_add(t, ", ");
	types_add_source(t, &r->from.described, " is ");
	text_add(t, ": all sources of a reduce have one type, shape and order");
}

/* Bytes, and the request does not say of which type. */
static void types_say_untyped(struct text *t, const struct reduce_named *n)
{
	types_add_source(t, n, " has ");
	text_add(
		t,
		" that do not say what they are, and the reduce names no type: name the dtype (--dtype)");
}

/* Checks a source's description. Returns whether it fits. */
static bool types_described(struct reduce *r, const struct reduce_named *n,
			    const struct array_meta *a, struct text *t)
{
	struct array_meta first;

	if (a->dtype == 0) {
		types_say_strange(t, n, a);
		return false;
	}
	if (r->from.described.known && array_meta_read(&r->from.described.meta, &first) &&
	    !types_same(a, &first)) {
		if (r->want.asked_dtype && a->dtype != r->want.asked_dtype)
			types_say_asked(t, r, n, a);
		else
			types_say_differ(t, r, n);
		return false;
	}
	if (r->want.asked_dtype && a->dtype != r->want.asked_dtype) {
		types_say_asked(t, r, n, a);
		r->from.misfit = *n;
		return false;
	}
	r->want.dtype = a->dtype;
	if (!r->from.described.known)
		r->from.described = *n;
	return true;
}

static bool types_sized(struct reduce *r, const struct reduce_named *n,
			const struct message_got *got, struct text *t)
{
	if (r->from.sized && got->size != r->from.size) {
		types_add_source(t, n, " has ");
		text_add(t, ", ");
		types_add_source(t, &r->from.first, " has ");
		text_add(t, ": all must have one size");
		return false;
	}
	if (got->size % reduce_dtype_bytes(r->want.dtype)) {
		types_add_source(t, n, " has ");
		text_add(t, ", no multiple of the ");
		text_add_number(t, reduce_dtype_bytes(r->want.dtype));
		text_add(t, " of ");
		text_add(t, reduce_dtype_name(r->want.dtype));
		text_add(t, ": name the right type");
		return false;
	}
	if (got->chunk_bytes < CHUNK_BYTES_MIN || got->chunk_bytes > CHUNK_BYTES_MAX ||
	    got->chunk_bytes % 64) {
		types_add_source(t, n, " has ");
		text_add(t, " in chunks that this version does not know: use nodes of one version");
		return false;
	}
	return true;
}

void reduce_types_misfit(const struct reduce *r, struct text *why)
{
	struct array_meta a;

	*why = (struct text){.length = 0};
	if (array_meta_read(&r->from.misfit.meta, &a))
		types_say_asked(why, r, &r->from.misfit, &a);
}

bool reduce_types_hold(struct reduce *r, const struct reduce_source *s,
		       const struct message_got *got, struct text *why)
{
	struct reduce_named n = {.known = true, .id = s->id, .size = got->size, .meta = got->meta};
	struct array_meta a;
	bool array = array_meta_read(&got->meta, &a);

	*why = (struct text){.length = 0};
	memcpy(n.name, got->name, sizeof(n.name));
	if (array && !types_described(r, &n, &a, why))
		return false;
	if (!array && r->want.asked_dtype == 0) {
		types_say_untyped(why, &n);
		return false;
	}
	if (!types_sized(r, &n, got, why))
		return false;
	if (!r->from.sized)
		r->from.first = n;
	if (array && !array_meta_marked(&r->from.meta))
		r->from.meta = n.meta;
	return true;
}

/* ---- two requests of one target ------------------------------------------------------------- */

/* Each stands once in both. */
static bool types_same_sources(const struct reduce *r, const struct message_reduce *m)
{
	struct sources_sorted sorted;

	if (m->count != r->from.count)
		return false;
	sources_sort(&sorted, m);
	for (uint32_t k = 0; k < r->from.count; k++)
		if (!sources_have(&sorted, &r->from.source[k].id))
			return false;
	return true;
}

static void types_say_other(struct text *t, const char *what, const char *first, const char *second)
{
	text_add(t, "one participant asks for ");
	text_add(t, what);
	text_add(t, first);
	text_add(t, ", another one for ");
	text_add(t, what);
	text_add(t, second);
	text_add(t, ": all ask for the same");
}

enum reduce_differs reduce_differs(const struct reduce *r, const struct message_reduce *m,
				   struct text *why)
{
	uint32_t asked = r->want.asked_dtype ? r->want.asked_dtype : r->want.dtype;

	*why = (struct text){.length = 0};
	if (!types_same_sources(r, m)) {
		text_add(why, "another reduce makes this target, of other sources (");
		text_add_number(why, r->from.count);
		text_add(why, ", this one names ");
		text_add_number(why, m->count);
		text_add(why, "): name another one");
		return REDUCE_OTHER_SOURCES;
	}
	if (r->want.op != m->op) {
		types_say_other(why, "", reduce_op_name(r->want.op), reduce_op_name(m->op));
		return REDUCE_OTHER_KIND;
	}
	if (asked && m->dtype && asked != m->dtype) {
		types_say_other(why, "the type ", reduce_dtype_name(asked),
				reduce_dtype_name(m->dtype));
		return REDUCE_OTHER_KIND;
	}
	text_add(why, "another reduce makes this target: name another one");
	return REDUCE_SAME;
}
