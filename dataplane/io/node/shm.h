/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that processes share: the store, the object table and its private part, and the ipc area,
 * each one memfd, and the counters file. Main thread only.
 *
 * The fds are sealed against any change of size, so that no process that holds them can make
 * another one fault. An adopted fd must carry those seals.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_SHM_H
#define SARISSA_DATAPLANE_IO_NODE_SHM_H

#include "internal/counters.h"
#include "internal/ipc.h"
#include "internal/object_private.h"
#include "internal/peer_counters.h"

struct shm {
	int fd; /* -1: none */
	uint8_t *base;
	uint64_t bytes;
	bool huge;	     /* not in ordinary pages */
	uint64_t page_bytes; /* 4 KiB, 2 MiB or 1 GiB */
};

/* A new store of bytes, in the largest pages of which enough are free: 1 GiB, which it must fill, 2
 * MiB, or ordinary ones. Returns 0 or -errno. */
int shm_store_create(uint64_t bytes, struct shm *out);

/* A new, empty object table of so many slots for a store of store_bytes. Returns 0 or -errno. */
int shm_table_create(uint32_t slots, uint64_t store_bytes, uint64_t incarnation, struct shm *out);

/* Its private part, which is not mapped. Returns 0 or -errno. */
int shm_private_create(const struct shm *table, struct shm *out);
/* Takes the private part that another process brought. Owns fd on success only. Returns 0, -EINVAL
 * when it does not belong to the table, or another -errno. */
int shm_private_adopt(int fd, const struct shm *table, struct shm *out);

/* A new ipc area with empty rings. Returns 0 or -errno. */
int shm_ipc_create(unsigned workers, struct shm *out);

/* Maps a memfd that another process brought. Owns fd on success only. Returns 0, -EINVAL when it
 * is no sealed memfd, or another -errno. */
int shm_adopt(int fd, struct shm *out);

/* Whether an adopted table belongs to a store of store_bytes. */
bool shm_table_valid(const struct shm *table, uint64_t store_bytes);

/* Pages of that memory which nobody has touched yet will come from this memory node, while it has
 * some
 * (-1: no matter). Returns 0 or -errno. */
int shm_prefer_node(void *base, uint64_t bytes, int node);

/* Unmaps and closes; *s is then empty. */
void shm_release(struct shm *s);

/* Bytes of 2 MiB pages that nobody uses or has reserved. */
uint64_t shm_huge_free_bytes(void);

static inline struct ipc_header *shm_ipc(const struct shm *ipc)
{
	return (struct ipc_header *)ipc->base;
}

/* Creates RUNDIR/counters (replacing an earlier one) with a zero block for each worker. The
 * mapping stays until the process ends. Returns 0 or -errno. */
int shm_counters_create(const char *rundir, unsigned workers, struct counters_file **out);
/* Makes RUNDIR/peers: conns_max empty places for each worker. */
int shm_peers_create(const char *rundir, unsigned workers, unsigned conns_max,
		     struct counters_file **out);

/* A worker's place: its struct counters, or the first of its peer_blocks. */
static inline void *shm_file_worker(struct counters_file *f, unsigned worker)
{
	return (uint8_t *)f + sizeof(*f) + worker * f->stride;
}

#endif
