/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Items by object id: an intrusive chained table. Clients may choose the bytes of an id, so the
 * hash has a secret key: nobody can choose ids that fall into one chain.
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
	uint64_t key[2];
};

#define idmap_item(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* The key of tables in that arena. With none in the arena any numbers do. */
static inline void idmap_key(const struct arena *a, uint64_t key[2])
{
	key[0] = a->hash_key[0] ^ 0x9e3779b97f4a7c15ull;
	key[1] = a->hash_key[1] ^ 0xc2b2ae3d27d4eb4full;
}

/* Room for about so many items; the memory must be zero. */
static inline void idmap_carve(struct idmap *m, struct arena *a, uint32_t items)
{
	uint32_t buckets = 16;

	while (buckets < items)
		buckets *= 2;
	m->bucket = arena_carve(a, buckets * sizeof(*m->bucket));
	m->mask = buckets - 1;
	idmap_key(a, m->key);
}

static inline uint32_t idmap_bucket(const struct idmap *m, const struct object_id *id)
{
	return (uint32_t)object_id_hash(m->key, id) & m->mask;
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
