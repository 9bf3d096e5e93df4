/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory a client shares with its node: store and object table read-only, the pin page
 * writable, and for an object under creation its own range of the store, or memory for it alone,
 * writable.
 *
 * Sizes and offsets come from another process: nothing is touched before it was checked against
 * what is really mapped. Any thread may use a map; only one may make or remove it.
 */
#ifndef SARISSA_CLIENT_LINK_MAP_H
#define SARISSA_CLIENT_LINK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include "internal/object_meta.h"
#include "internal/object_table.h"

struct map {
	/* read by any thread while another one rejoins: the reader then checks the turn (pins.h) */
	const uint8_t *_Atomic store;
	_Atomic uint64_t store_bytes;
	const struct object_table *table;
	uint64_t table_bytes;
	uint64_t align; /* page size of the store, huge or not; munmap wants whole pages */
	uint64_t table_align;
	uint64_t device, inode; /* of the store */
	int fd;	    /* of the store, for map_private; -1: none. Ours while store is set */
	void *pins; /* SESSION_PIN_BYTES */
};

/* Maps what ATTACH brought: fds {store, table, pins} and their sizes. The fds stay the caller's.
 * 0; -EPROTO when sizes or the table's header do not hold; -ENOMEM and others from mmap. */
int map_open(struct map *m, const int fd[3], uint64_t store_bytes, uint64_t table_bytes);
void map_close(struct map *m);
/* Whether both are of one store. */
bool map_same(const struct map *a, const struct map *b);
/* Puts the table of other in the place of ours, at the same address; other has none afterwards.
 * What readers see changes from one load to the next. 0 or -errno. */
int map_replace_table(struct map *m, struct map *other);

/* Whether size bytes at offset lie in the store. */
static inline bool map_holds(const struct map *m, uint64_t offset, uint64_t size)
{
	uint64_t bytes = m->store_bytes;
	return offset <= bytes && size <= bytes - offset;
}

struct map_bytes {
	const void *data; /* NULL: there are none */
	uint32_t bytes;
};

/* Whether the slot, which is pinned, its object's size bytes at offset and the metadata behind them
 * are in the table and the store. The metadata stay there as long as the pin. */
static inline bool map_meta(const struct map *m, uint32_t slot, uint64_t offset, uint64_t size,
			    struct map_bytes *out)
{
	if (slot >= m->table->slots || !map_holds(m, offset, size))
		return false;
	out->bytes = m->table->slot[slot].meta_bytes;
	out->data = out->bytes ? m->store + offset + size : NULL;
	return out->bytes <= OBJECT_META_BYTES && map_holds(m, offset + size, out->bytes);
}

struct map_range {
	void *base;   /* of the mapping: whole pages; NULL for an empty object */
	size_t bytes; /* of the mapping */
	uint8_t *data;
	uint8_t page; /* bytes of a page, as a power of two; 0: there is no mapping */
};

/* Maps the pages of [offset, offset + size) writable; the range has been checked. fd stays the
 * caller's. 0 or -errno. */
int map_range_open(int fd, uint64_t offset, uint64_t size, struct map_range *out);

/* Maps [offset, offset + size) of the store writable for this process alone: a page is copied when
 * it is first written. Until then it shows the store's bytes, so they must stay pinned. The caller
 * unmaps out->base. 0; -ENOTSUP when the store lies in huge pages, or its descriptor was closed by
 * others; -EINVAL beyond the store, or empty; others from mmap. */
int map_private(const struct map *m, uint64_t offset, uint64_t size, struct map_range *out);

/* Where the data of an empty object "lies": a pointer that is not NULL. */
void *map_nothing(void);

#endif
