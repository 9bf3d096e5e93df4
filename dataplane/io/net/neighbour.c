/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbour.h"

#define KNOWN_BIT (1ull << 48)

struct key {
	uint64_t word[2];
};

static uint64_t neighbour_load(_Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_acquire);
}

static void neighbour_store(_Atomic uint64_t *p, uint64_t v)
{
	atomic_store_explicit(p, v, memory_order_release);
}

static struct key neighbour_key_of(const uint8_t *ip)
{
	struct key k;
	memcpy(k.word, ip, 16);
	return k;
}

/* Fibonacci hashing of the folded address; the low bytes of an address vary most. */
static uint32_t neighbour_key_home(struct key k)
{
	uint64_t h = (k.word[0] ^ (k.word[1] >> 32 | k.word[1] << 32)) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 40) & (NEIGHBOURS - 1);
}

static bool neighbour_entry_is(struct neighbour *n, struct key k)
{
	return neighbour_load(&n->ip[0]) == k.word[0] && neighbour_load(&n->ip[1]) == k.word[1];
}

static bool neighbour_entry_empty(struct neighbour *n)
{
	return neighbour_entry_is(n, (struct key){{0, 0}});
}

static struct neighbour *neighbour_table_find(struct neighbour_table *t, struct key k)
{
	uint32_t home = neighbour_key_home(k);
	for (uint32_t i = 0; i < NEIGHBOUR_PROBE; i++) {
		struct neighbour *n = &t->entry[(home + i) & (NEIGHBOURS - 1)];
		if (neighbour_entry_is(n, k))
			return n;
	}
	return NULL;
}

static void neighbour_table_lock(struct neighbour_table *t)
{
	while (atomic_flag_test_and_set_explicit(&t->lock, memory_order_acquire))
		;
}

static void neighbour_table_unlock(struct neighbour_table *t)
{
	atomic_flag_clear_explicit(&t->lock, memory_order_release);
}

/* Nobody has sent to it, or not for long. */
static bool neighbour_entry_idle(struct neighbour *n, uint64_t now_ns)
{
	uint64_t used_ns = neighbour_load(&n->used_ns);
	uint64_t keep_ns = neighbour_load(&n->mac) ? NEIGHBOUR_KEEP_NS : NEIGHBOUR_UNANSWERED_NS;
	return used_ns == 0 || used_ns + keep_ns < now_ns;
}

/* When it was last sent to or heard of. */
static uint64_t neighbour_entry_last_ns(struct neighbour *n)
{
	uint64_t used_ns = neighbour_load(&n->used_ns),
		 confirmed_ns = neighbour_load(&n->confirmed_ns);
	return used_ns > confirmed_ns ? used_ns : confirmed_ns;
}

/* A place that is empty, or the longest idle one. */
static struct neighbour *neighbour_table_place(struct neighbour_table *t, struct key k,
					       uint64_t now_ns)
{
	uint32_t home = neighbour_key_home(k);
	struct neighbour *oldest = NULL;
	for (uint32_t i = 0; i < NEIGHBOUR_PROBE; i++) {
		struct neighbour *n = &t->entry[(home + i) & (NEIGHBOURS - 1)];
		if (neighbour_entry_empty(n))
			return n;
		if (neighbour_entry_idle(n, now_ns) &&
		    (!oldest || neighbour_entry_last_ns(n) < neighbour_entry_last_ns(oldest)))
			oldest = n;
	}
	return oldest;
}

/* Under the lock. A reader that compares the address before and after it reads mac never gets
 * another address's mac: mac is cleared first and set last. */
static struct neighbour *neighbour_table_create(struct neighbour_table *t, struct key k, bool used,
						uint64_t now_ns)
{
	struct neighbour *n = neighbour_table_find(t, k);
	if (n)
		return n;
	n = neighbour_table_place(t, k, now_ns);
	if (!n)
		return NULL;
	neighbour_store(&n->mac, 0);
	neighbour_store(&n->ip[0], k.word[0]);
	neighbour_store(&n->ip[1], k.word[1]);
	neighbour_store(&n->used_ns, used ? now_ns : 0);
	neighbour_store(&n->confirmed_ns, now_ns);
	neighbour_store(&n->ask_at_ns, now_ns);
	atomic_store_explicit(&n->asked, 0, memory_order_release);
	atomic_store_explicit(&n->wanted, 0, memory_order_release);
	return n;
}

/* True for one caller each time a question is due. */
static bool neighbour_entry_ask(struct neighbour *n, uint64_t now_ns)
{
	uint64_t due = neighbour_load(&n->ask_at_ns);
	if (now_ns < due)
		return false;
	uint32_t asked = atomic_load_explicit(&n->asked, memory_order_relaxed);
	uint64_t wait = NEIGHBOUR_ASK_MAX_NS;
	if (asked < 6 && NEIGHBOUR_ASK_MIN_NS << asked < wait)
		wait = NEIGHBOUR_ASK_MIN_NS << asked;
	if (!atomic_compare_exchange_strong(&n->ask_at_ns, &due, now_ns + wait))
		return false;
	atomic_fetch_add_explicit(&n->asked, 1, memory_order_relaxed);
	return true;
}

void neighbour_init(struct neighbour_table *t, bool ageing)
{
	atomic_flag_clear(&t->lock);
	t->ageing = ageing;
}

unsigned neighbour_find(struct neighbour_table *t, const uint8_t *ip, uint64_t now_ns, uint8_t *mac)
{
	struct key k = neighbour_key_of(ip);
	struct neighbour *n = neighbour_table_find(t, k);
	if (!n) {
		neighbour_table_lock(t);
		n = neighbour_table_create(t, k, true, now_ns);
		neighbour_table_unlock(t);
		if (!n)
			return 0;
	}
	uint64_t word = neighbour_load(&n->mac);
	if (!neighbour_entry_is(n, k))
		return 0;
	uint64_t used_ns =
		neighbour_load(&n->used_ns); /* written now and then, for the sake of its line */
	if (used_ns == 0 || used_ns + NEIGHBOUR_ASK_MAX_NS < now_ns)
		neighbour_store(&n->used_ns, now_ns);
	if (!(word & KNOWN_BIT)) {
		if (!neighbour_entry_ask(n, now_ns))
			return 0;
		atomic_store_explicit(&n->wanted, 1, memory_order_release);
		return NEIGHBOUR_ASK;
	}
	memcpy(mac, &word, 6);
	if (!t->ageing || now_ns < neighbour_load(&n->confirmed_ns) + NEIGHBOUR_FRESH_NS)
		return NEIGHBOUR_KNOWN;
	if (now_ns > neighbour_load(&n->confirmed_ns) + NEIGHBOUR_STALE_NS)
		neighbour_forget(t, ip);
	return NEIGHBOUR_KNOWN | (neighbour_entry_ask(n, now_ns) ? NEIGHBOUR_ASK : 0);
}

void neighbour_learn(struct neighbour_table *t, const uint8_t *ip, const uint8_t *mac, bool create,
		     uint64_t now_ns)
{
	struct key k = neighbour_key_of(ip);
	uint64_t word = KNOWN_BIT;
	memcpy(&word, mac, 6);
	neighbour_table_lock(t);
	struct neighbour *n =
		create ? neighbour_table_create(t, k, false, now_ns) : neighbour_table_find(t, k);
	if (n) {
		neighbour_store(&n->confirmed_ns, now_ns);
		neighbour_store(&n->ask_at_ns, now_ns);
		atomic_store_explicit(&n->asked, 0, memory_order_relaxed);
		neighbour_store(&n->mac, word);
	}
	neighbour_table_unlock(t);
}

enum neighbour_state neighbour_at(struct neighbour_table *t, uint32_t i, uint64_t now_ns,
				  uint8_t *ip)
{
	struct neighbour *n = &t->entry[i];
	struct key k = {{neighbour_load(&n->ip[0]), neighbour_load(&n->ip[1])}};
	if (neighbour_entry_empty(n))
		return NEIGHBOUR_EMPTY;
	memcpy(ip, k.word, 16);
	if (neighbour_load(&n->mac) == 0)
		return atomic_load_explicit(&n->wanted, memory_order_acquire) ? NEIGHBOUR_WANTED
									      : NEIGHBOUR_UNUSED;
	return neighbour_load(&n->used_ns) + NEIGHBOUR_KEEP_NS < now_ns ? NEIGHBOUR_UNUSED
									: NEIGHBOUR_IN_USE;
}

void neighbour_take(struct neighbour_table *t, uint32_t i)
{
	atomic_store_explicit(&t->entry[i].wanted, 0, memory_order_release);
}

void neighbour_forget(struct neighbour_table *t, const uint8_t *ip)
{
	neighbour_table_lock(t);
	struct neighbour *n = neighbour_table_find(t, neighbour_key_of(ip));
	if (n)
		neighbour_store(&n->mac, 0);
	neighbour_table_unlock(t);
}
