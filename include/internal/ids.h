/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of things that more than one process speaks of: object ids, network addresses, handles.
 * Plain values: copied freely, owned by nobody.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_IDS_H
#define SARISSA_INCLUDE_INTERNAL_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	OBJECT_ID_BYTES = 16,
	OBJECT_NAME_MAX = 255,	       /* bytes, without the terminating zero */
	OBJECT_INLINE_MAX = 64 * 1024, /* bytes; up to here a value travels in a message */
	WORKERS_MAX = 16,
	NODES_MAX = 1024,
	RAILS_MAX = 8,		 /* ports of a node; rail i of one node meets rail i of others */
	UDP_PORT_DEFAULT = 7400, /* worker w listens on port base + w */
};

/* 128 bits: XXH3-128 of the name, or any 16 bytes the caller likes. */
struct object_id {
	uint8_t bytes[OBJECT_ID_BYTES];
};

static inline bool object_id_equal(const struct object_id *a, const struct object_id *b)
{
	return memcmp(a->bytes, b->bytes, OBJECT_ID_BYTES) == 0;
}

/*
 * A hash of an id with a key of random numbers, of which each bit may be used. Who does not know
 * the key cannot choose ids that fall together: NH of UMAC (Black et al., CRYPTO 1999), folded.
 */
static inline uint64_t object_id_hash(const uint64_t key[2], const struct object_id *id)
{
	uint64_t word[2];
	memcpy(word, id->bytes, sizeof(word));
	unsigned __int128 product = (unsigned __int128)(word[0] + key[0]) * (word[1] + key[1]);
	uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
	return folded ^ folded >> 32;
}

/* A UDP endpoint. IPv4 addresses stand as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct net_addr {
	uint8_t ip[16];
	uint16_t port; /* host order */
	uint8_t pad[6];
};
_Static_assert(sizeof(struct net_addr) == 24, "net_addr is part of the shared-memory records");

static inline bool net_addr_equal(const struct net_addr *a, const struct net_addr *b)
{
	return memcmp(a->ip, b->ip, 16) == 0 && a->port == b->port;
}

static inline bool net_addr_is_v4(const struct net_addr *a)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	return memcmp(a->ip, prefix, 12) == 0;
}

/*
 * A connection handle, an edge id and a buffer id are 32 bits: a table index (low 16) and a
 * generation (high 16) that changes at every reuse of the index, so that a late reference to the
 * former owner is recognised. Zero is never a valid handle: generations start at 1.
 */
static inline uint32_t handle_make(uint16_t index, uint16_t generation)
{
	return (uint32_t)generation << 16 | index;
}

static inline uint16_t handle_index(uint32_t handle)
{
	return (uint16_t)(handle & 0xffff);
}

static inline uint16_t handle_generation(uint32_t handle)
{
	return (uint16_t)(handle >> 16);
}

static inline uint16_t handle_next_generation(uint16_t generation)
{
	return generation == UINT16_MAX ? 1 : (uint16_t)(generation + 1);
}

#endif
