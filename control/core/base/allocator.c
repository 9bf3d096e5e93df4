/* SPDX-License-Identifier: BSD-3-Clause */
#include "allocator.h"

static struct range *allocator_at(const struct allocator *a, uint32_t number)
{
	return number == 0 ? NULL : pool_at(&a->ranges, number);
}

void allocator_carve(struct allocator *a, struct arena *arena, uint32_t ranges_max)
{
	/* Between any two taken ranges lies at most one free one. */
	pool_carve(&a->ranges, arena, sizeof(struct range), 2 * ranges_max + 2);
}

/* The class of a free range of that length: it holds only ranges of at least the class's size. */
static void allocator_class(uint64_t length, unsigned *order, unsigned *step)
{
	*order = 63 - (unsigned)__builtin_clzll(length);
	*step = *order < 4 ? (unsigned)(length << (4 - *order)) & 15
			   : (unsigned)(length >> (*order - 4)) & 15;
}

static void allocator_list(struct allocator *a, uint32_t number)
{
	struct range *r = allocator_at(a, number);
	unsigned order, step;

	allocator_class(r->length, &order, &step);
	r->taken = false;
	r->prev = 0;
	r->next = a->free[order][step];
	if (r->next)
		allocator_at(a, r->next)->prev = number;
	a->free[order][step] = number;
	a->steps[order] |= (uint16_t)(1u << step);
	a->orders |= 1ull << order;
}

static void allocator_unlist(struct allocator *a, uint32_t number)
{
	struct range *r = allocator_at(a, number);
	unsigned order, step;

	allocator_class(r->length, &order, &step);
	if (r->next)
		allocator_at(a, r->next)->prev = r->prev;
	if (r->prev)
		allocator_at(a, r->prev)->next = r->next;
	else
		a->free[order][step] = r->next;
	if (a->free[order][step] == 0)
		a->steps[order] &= (uint16_t) ~(1u << step);
	if (a->steps[order] == 0)
		a->orders &= ~(1ull << order);
}

void allocator_reset(struct allocator *a, uint64_t bytes, uint64_t grain_bytes)
{
	struct pool *p = &a->ranges;
	struct range *r;

	p->fresh = p->used = 0;
	p->free = POOL_NONE;
	memset(a->free, 0, sizeof(a->free));
	memset(a->steps, 0, sizeof(a->steps));
	a->orders = 0;
	a->used_bytes = 0;
	a->grain_bytes = grain_bytes;
	a->length = bytes / grain_bytes;
	a->last = 0;
	pool_take(p); /* number 0 */
	if (a->length == 0)
		return;
	r = pool_take(p);
	r->length = a->length;
	a->last = pool_index(p, r);
	allocator_list(a, a->last);
}

/* Cuts a listed free range to length; the rest becomes a free range behind it. */
static bool allocator_cut(struct allocator *a, uint32_t number, uint64_t length)
{
	struct range *r = allocator_at(a, number), *rest;

	if (r->length == length) {
		allocator_unlist(a, number);
		return true;
	}
	assert(!r->taken && length > 0 && length < r->length);
	rest = pool_take(&a->ranges);
	if (!rest)
		return false;
	allocator_unlist(a, number);
	rest->offset = r->offset + length;
	rest->length = r->length - length;
	rest->before = number;
	rest->after = r->after;
	r->length = length;
	r->after = pool_index(&a->ranges, rest);
	if (rest->after)
		allocator_at(a, rest->after)->before = r->after;
	else
		a->last = r->after;
	allocator_list(a, r->after);
	return true;
}

static uint32_t allocator_mark(struct allocator *a, uint32_t number)
{
	struct range *r = allocator_at(a, number);

	assert(!r->taken && r->length > 0);
	r->taken = true;
	r->prev = r->next = 0;
	a->used_bytes += r->length * a->grain_bytes;
	assert(a->used_bytes <= a->length * a->grain_bytes);
	return number;
}

/* The first non-empty class whose every range has at least length grains. */
static uint32_t allocator_search(const struct allocator *a, uint64_t length)
{
	unsigned order, step;
	uint64_t orders;
	uint16_t steps;

	allocator_class(length, &order, &step);
	if (order > 4) { /* round up to a class boundary: what is in a class then fits */
		allocator_class(length + (1ull << (order - 4)) - 1, &order, &step);
	}
	if (order >= ALLOCATOR_ORDERS)
		return 0;
	steps = (uint16_t)(a->steps[order] & (0xffffu << step));
	if (steps == 0) {
		orders = order + 1 < 64 ? a->orders & (~0ull << (order + 1)) : 0;
		if (orders == 0)
			return 0;
		order = (unsigned)__builtin_ctzll(orders);
		steps = a->steps[order];
	}
	return a->free[order][__builtin_ctz(steps)];
}

uint32_t allocator_take(struct allocator *a, uint64_t bytes)
{
	uint64_t length = bytes / a->grain_bytes + (bytes % a->grain_bytes != 0);
	uint32_t number;
	unsigned order, step;

	if (length == 0)
		length = 1;
	if (length > a->length)
		return 0;
	number = allocator_search(a, length);
	if (number == 0) { /* the exact class may still hold one that is long enough */
		allocator_class(length, &order, &step);
		number = a->free[order][step];
		while (number && allocator_at(a, number)->length < length)
			number = allocator_at(a, number)->next;
	}
	if (number == 0 || !allocator_cut(a, number, length))
		return 0;
	return allocator_mark(a, number);
}

uint32_t allocator_take_at(struct allocator *a, uint64_t offset, uint64_t bytes)
{
	uint64_t length = bytes / a->grain_bytes + (bytes % a->grain_bytes != 0);
	uint64_t start = offset / a->grain_bytes, gap;
	struct range *r = allocator_at(a, a->last);

	if (length == 0)
		length = 1;
	if (offset % a->grain_bytes || !r || r->taken || start < r->offset)
		return 0;
	gap = start - r->offset;
	if (gap > r->length || length > r->length - gap)
		return 0;
	if (gap > 0) { /* leave the gap free, go on with the rest */
		if (gap == r->length || !allocator_cut(a, a->last, gap))
			return 0;
		allocator_list(a, allocator_at(a, a->last)->before);
	}
	start = a->last;
	if (!allocator_cut(a, (uint32_t)start, length))
		return 0;
	return allocator_mark(a, (uint32_t)start);
}

/* Joins a free range with the one behind it; both are off the lists. */
static void allocator_join(struct allocator *a, uint32_t number)
{
	struct range *r = allocator_at(a, number);
	uint32_t behind = r->after;
	struct range *gone = allocator_at(a, behind);

	assert(gone && !gone->taken && gone->before == number);
	assert(gone->offset == r->offset + r->length);
	r->length += gone->length;
	r->after = gone->after;
	if (r->after)
		allocator_at(a, r->after)->before = number;
	else
		a->last = number;
	pool_give(&a->ranges, gone);
}

void allocator_give(struct allocator *a, uint32_t number)
{
	struct range *r = allocator_at(a, number);

	assert(r && r->taken);
	assert(a->used_bytes >= r->length * a->grain_bytes);
	r->taken = false;
	a->used_bytes -= r->length * a->grain_bytes;
	if (r->after && !allocator_at(a, r->after)->taken) {
		allocator_unlist(a, r->after);
		allocator_join(a, number);
	}
	if (r->before && !allocator_at(a, r->before)->taken) {
		number = r->before;
		allocator_unlist(a, number);
		allocator_join(a, number);
	}
	allocator_list(a, number);
}

uint64_t allocator_offset(const struct allocator *a, uint32_t number)
{
	assert(number != 0 && allocator_at(a, number)->taken);
	return allocator_at(a, number)->offset * a->grain_bytes;
}

uint64_t allocator_bytes(const struct allocator *a, uint32_t number)
{
	return allocator_at(a, number)->length * a->grain_bytes;
}

/* How often the range stands on the list of its class. */
static uint32_t allocator_listed(const struct allocator *a, uint32_t number)
{
	uint32_t count = 0;
	unsigned order, step;

	allocator_class(allocator_at(a, number)->length, &order, &step);
	if (!(a->orders >> order & 1) || !(a->steps[order] >> step & 1))
		return 0;
	for (uint32_t n = a->free[order][step]; n && count < 2; n = allocator_at(a, n)->next)
		count += n == number;
	return count;
}

bool allocator_valid(const struct allocator *a)
{
	uint64_t at = a->length, used = 0;
	uint32_t behind = 0, ranges = 1; /* number 0 */

	for (uint32_t n = a->last; n; ranges++) {
		const struct range *r = allocator_at(a, n), *after = allocator_at(a, behind);

		if (r->length == 0 || r->offset + r->length != at || r->after != behind)
			return false;
		if (!r->taken && ((after && !after->taken) || allocator_listed(a, n) != 1))
			return false;
		used += r->taken ? r->length : 0;
		at = r->offset;
		behind = n;
		n = r->before;
	}
	return at == 0 && used * a->grain_bytes == a->used_bytes && ranges == a->ranges.used;
}
