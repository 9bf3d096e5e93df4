/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading objects: get, get_begin, wait, release. */
#include <errno.h>
#include "buffer.h"
#include "error.h"
#include "get.h"
#include "link/rejoin.h"
#include "queue/run.h"

bool get_fill(struct sar *s, const struct get_place *p, sar_buffer *out)
{
	struct map_bytes meta;
	if (!map_meta(&s->map, p->slot, p->offset, p->size, &meta))
		return false;
	struct buffer own = {.kind = BUFFER_READ,
			     .pin = (uint16_t)p->pin,
			     .slot = p->slot,
			     .store = atomic_load(&s->stores),
			     .generation = p->generation};
	void *data = (void *)(uintptr_t)(s->map.store + p->offset);
	*out = (sar_buffer){.data = p->size == 0 ? map_nothing() : data,
			    .size = p->size,
			    .ready = p->ready < p->size ? p->ready : p->size,
			    .meta = meta.data,
			    .meta_bytes = meta.bytes};
	buffer_set(out, &own);
	return true;
}

static bool get_same(const struct object_slot *a, const struct object_slot *b)
{
	return object_id_equal(&a->id, &b->id) && a->generation == b->generation &&
	       a->offset == b->offset && a->size == b->size;
}

/* One look at this node's table: 1 when out is set, 0 when there is no complete object, or -errno.
 * True only as long as the turn of the pins stays the same. */
static int get_look(struct sar *s, const struct object_id *id, sar_buffer *out)
{
	struct object_slot before, after;
	int64_t slot = object_table_find(s->map.table, id, &before);
	if (slot < 0 || before.state != OBJECT_SEALED)
		return 0;
	uint32_t pin;
	int r = handle_take_pin(s, &pin);
	if (r < 0)
		return r;
	pins_set(&s->pins, pin, (uint32_t)slot, before.generation);
	bool held = object_slot_read(s->map.table, (uint32_t)slot, &after) &&
		    after.state == OBJECT_SEALED && get_same(&before, &after);
	struct get_place place = {.pin = pin,
				  .slot = (uint32_t)slot,
				  .generation = after.generation,
				  .offset = after.offset,
				  .size = after.size,
				  .ready = after.size};
	if (held && get_fill(s, &place, out))
		return 1;
	handle_give_pin(s, pin);
	return held ? error_set(-EPROTO, "the node's object table points outside of its store: use "
					 "libraries and node of one version")
		    : 0;
}

/*
 * A complete object of this node, without a system call: find it, announce the read, and see that
 * it is still there. Returns 1 when out is set, 0 when control has to be asked, or -errno. While no
 * control runs nobody takes anything away, and the next one will know our pins (rejoin.h). rejoins:
 * it is looked for meanwhile.
 */
static int get_local(struct sar *s, const sar_id *id, bool rejoins, sar_buffer *out)
{
	struct object_id object;
	memcpy(object.bytes, id->bytes, sizeof(object.bytes));
	for (;;) {
		if (rejoins && handle_lost(s))
			rejoin_nudge(s);
		uint32_t turn = pins_turn(&s->pins);
		int r = get_look(s, &object, out);
		if (pins_turn_is(&s->pins, turn) && !handle_replaced(s))
			return r;
		if (r == 1)
			(rejoins ? sar_release : get_give_back)(s, out);
		if (pins_turn_is(&s->pins, turn))
			return 0; /* another control has taken over and cannot be reached yet */
	}
}

int get_here(struct sar *s, const sar_id *id, sar_buffer *out)
{
	return get_local(s, id, false, out);
}

/* Checks the arguments and takes the object from this node when it is complete here: 1 when out is
 * set, 0 when control has to be asked, or -errno. */
static int get_try(struct sar *s, const sar_id *id, int64_t timeout_ns, sar_buffer *out)
{
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_get: a timeout is not negative: use SAR_FOREVER to "
					  "wait without limit");
	int r = handle_check(s);
	return r < 0 ? r : get_local(s, id, true, out);
}

/* op: SAR_OP_GET or SAR_OP_GET_BEGIN. */
static int get_run(struct sar *s, const sar_id *id, uint16_t op, int64_t timeout_ns,
		   sar_buffer *out)
{
	struct run run;
	sar_completion end;
	int r = get_try(s, id, timeout_ns, out);
	if (r == 0)
		r = run_begin(&run, s, 1);
	if (r != 0)
		return r < 0 ? r : 0;
	r = run_end(&run,
		    op == SAR_OP_GET ? sar_submit_get(&run.q, *id, timeout_ns, 0)
				     : sar_submit_get_begin(&run.q, *id, timeout_ns, 0),
		    &end);
	if (r == 0)
		*out = end.buffer;
	return r;
}

int sar_get_begin(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out)
{
	return get_run(s, &id, SAR_OP_GET_BEGIN, timeout_ns, out);
}

int get_refresh(struct sar *s, sar_buffer *b, const struct buffer *own)
{
	struct object_slot now;
	int r = handle_check(s);
	if (r < 0)
		return r;
	if (own->store != atomic_load(&s->stores))
		return error_set(-ERESTART, "the node has lost its store: get it again");
	if (!object_slot_read(s->map.table, own->slot, &now))
		return 0; /* control is changing it: b->ready stays true */
	bool same = now.generation == own->generation && now.size == b->size;
	uint64_t ready = atomic_load_explicit(&now.watermark, memory_order_relaxed);
	if (same && now.state == OBJECT_SEALED)
		ready = b->size;
	if (same && ready > b->ready)
		b->ready = ready < b->size ? ready : b->size;
	if (b->ready == b->size || (same && now.state != OBJECT_ZOMBIE && now.state != OBJECT_FREE))
		return 0;
	if (same && now.flags & OBJECT_FLAG_REPLACED)
		return error_set(-ERESTART, "the object was put again, or its reduce restarted: "
					    "get it again");
	if (same && now.flags & OBJECT_FLAG_LOST)
		return error_set(-ENODATA, "lost: a part of it exists nowhere: put it again");
	return error_set(-ESTALE, "the object was deleted while it arrived: get it again");
}

int sar_wait(sar *s, sar_buffer *b, uint64_t upto, int64_t timeout_ns)
{
	if (buffer_get(b).kind != BUFFER_READ)
		return error_set(-EINVAL, "sar_wait: not a buffer from sar_get or sar_get_begin");
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_wait: a timeout is not negative: use SAR_FOREVER to "
					  "wait without limit");
	struct buffer own = buffer_get(b);
	struct error_kept words;
	struct run run;
	sar_completion end;
	get_refresh(s, b, &own); /* the WAIT says what is wrong */
	if (b->ready >= upto || b->ready == b->size)
		return 0;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = run_end(&run, sar_submit_wait(&run.q, b, upto, timeout_ns, 0), &end);
	if (r == 0) {
		b->ready = end.value;
		return 0;
	}
	error_keep(&words);
	get_refresh(s, b, &own);
	error_restore(&words);
	return r;
}

int sar_get(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out)
{
	return get_run(s, &id, SAR_OP_GET, timeout_ns, out);
}

int sar_get_into(sar *s, sar_id id, void *memory, uint64_t bytes, int64_t timeout_ns,
		 uint64_t *size)
{
	struct run run;
	sar_completion end = {0};
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = run_end(&run, sar_submit_get_into(&run.q, id, memory, bytes, timeout_ns, 0), &end);
	if (size)
		*size = end.value;
	return r;
}

int sar_get_ranges(sar *s, sar_id id, const sar_range *ranges, unsigned count, int64_t timeout_ns)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_get_ranges(&run.q, id, ranges, count, timeout_ns, 0), &end);
}

void get_give_back(struct sar *s, sar_buffer *b)
{
	struct buffer own = buffer_get(b);
	if (own.kind == BUFFER_PRIVATE)
		buffer_unmap(b, &own, BUFFER_PRIVATE_MORE);
	else if (own.kind != BUFFER_READ)
		return;
	*b = (sar_buffer){0};
	if (own.kind == BUFFER_PRIVATE)
		return;
	if (*s->fork_guard == 0)
		return;
	handle_give_pin(s, own.pin);
}

void sar_release(sar *s, sar_buffer *b)
{
	get_give_back(s, b);
	/* Until we have joined it, a new control takes all that was there for held by us. */
	if (*s->fork_guard != 0 && handle_replaced(s))
		rejoin_nudge(s);
}

int get_private(struct sar *s, const sar_buffer *b, struct map_range *out)
{
	struct buffer own = buffer_get(b);
	int r = handle_check(s);
	if (r < 0)
		return r;
	if (own.kind != BUFFER_READ || b->ready < b->size)
		return -EINVAL;
	if (pthread_mutex_trylock(&s->joining) != 0)
		return -ENOTSUP; /* the store may be another one soon */
	if (own.store == atomic_load(&s->stores))
		r = map_private(&s->map, (uint64_t)((const uint8_t *)b->data - s->map.store),
				b->size, out);
	else
		r = -ENOTSUP;
	pthread_mutex_unlock(&s->joining);
	return r;
}
