/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Items by object id: an intrusive chained table. Ids are hashes already, or bytes that a local
 * client chose: a bad choice slows its own node down, bounded by the size of the pool behind.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_IDMAP_H
#define SARISSA_CONTROL_CORE_BASE_IDMAP_H

#include "arena.h"
#include "internal/ids.h"

struct idmap_node {
	struct idmap_node *next;
	struct object_id id;
};

struct idmap {
	struct idmap_node **bucket;
	uint32_t mask;
};

#define idmap_item(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Room for about so many items; the memory must be zero. */
static inline void idmap_carve(struct idmap *m, struct arena *a, uint32_t items)
{
	uint32_t buckets = 16;

	while (buckets < items)
		buckets *= 2;
	m->bucket = arena_carve(a, buckets * sizeof(*m->bucket));
	m->mask = buckets - 1;
}

static inline uint32_t idmap_hash(const struct object_id *id)
{
	uint64_t a, b;

	memcpy(&a, id->bytes, 8);
	memcpy(&b, id->bytes + 8, 8);
	a = (a ^ b) * 0x9e3779b97f4a7c15ull; /* Fibonacci hashing: Knuth, TAOCP 3, 6.4 */
	return (uint32_t)(a >> 32);
}

static inline uint32_t idmap_bucket(const struct idmap *m, const struct object_id *id)
{
	return idmap_hash(id) & m->mask;
}

static inline struct idmap_node *idmap_find(const struct idmap *m, const struct object_id *id)
{
	struct idmap_node *n = m->bucket[idmap_bucket(m, id)];

	while (n && !object_id_equal(&n->id, id))
		n = n->next;
	return n;
}

/* The id must not be in the map. */
static inline void idmap_insert(struct idmap *m, struct idmap_node *n, const struct object_id *id)
{
	struct idmap_node **head = &m->bucket[idmap_bucket(m, id)];

	n->id = *id;
	n->next = *head;
	*head = n;
}

static inline void idmap_remove(struct idmap *m, struct idmap_node *n)
{
	struct idmap_node **at = &m->bucket[idmap_bucket(m, &n->id)];

	while (*at != n) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = n->next;
	n->next = NULL;
}

#endif
