/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "internal/node_group.h"
#include "internal/ring.h"

#define HUGE_BYTES (2ull << 20)
/* From where on, where it is free: an IOMMU may take addresses of no more than 39 bits, as those of
 * virtual machines and desktops do, and a card reads the store by our own addresses of it. Before
 * it DPDK has 64 GiB of addresses for each size of pages and memory node. */
#define SHM_PLACE      (1ull << 38)
#define SHM_PLACES_END (1ull << 39)
#define SHM_STEP       (1ull << 36)
#define SHM_SEALS      (F_SEAL_SHRINK | F_SEAL_GROW)
#define HUGE_FOLDER    "/sys/kernel/mm/hugepages/hugepages-%llukB/"
#define GIANT_BYTES    (1ull << 30)

static uint64_t shm_read_count(const char *path)
{
	unsigned long long n = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static uint64_t shm_free_bytes(unsigned long long page)
{
	char path[96];
	snprintf(path, sizeof(path), HUGE_FOLDER "free_hugepages", page >> 10);
	uint64_t pages = shm_read_count(path);
	snprintf(path, sizeof(path), HUGE_FOLDER "resv_hugepages", page >> 10);
	uint64_t reserved = shm_read_count(path);
	return pages > reserved ? (pages - reserved) * page : 0;
}

uint64_t shm_huge_free_bytes(void)
{
	return shm_free_bytes(HUGE_BYTES);
}

static uint64_t shm_round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static int shm_map_somewhere(struct shm *out)
{
	for (uint64_t place = SHM_PLACE; place < SHM_PLACES_END; place += SHM_STEP) {
		out->base = mmap((void *)place, out->bytes, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED_NOREPLACE, out->fd, 0);
		if (out->base == (void *)place)
			return 0;
		if (out->base != MAP_FAILED) /* a kernel before 4.17 */
			munmap(out->base, out->bytes);
		else if (errno != EEXIST)
			break;
	}
	out->base = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
	if (out->base != MAP_FAILED)
		return 0;
	out->base = NULL;
	return -errno;
}

/* Maps out->fd, which is out->bytes long. A core file leaves it out: it has the size of the store,
 * and others' objects. */
static int shm_map(struct shm *out)
{
	int error = shm_map_somewhere(out);
	if (!error)
		madvise(out->base, out->bytes, MADV_DONTDUMP);
	return error;
}

/* page: 0 for ordinary ones. */
static int shm_create(const char *name, uint64_t bytes, uint64_t page, struct shm *out)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	*out = (struct shm){.fd = -1, .huge = page > 0, .page_bytes = page ? page : 4096};
	out->bytes = shm_round_up(bytes, out->page_bytes);
	if (page)
		flags |= MFD_HUGETLB | (page == GIANT_BYTES ? MFD_HUGE_1GB : MFD_HUGE_2MB);
	out->fd = memfd_create(name, flags);
	if (out->fd < 0)
		return -errno;
	int error = 0;
	/* Anybody can open a memfd: a process with a read-only one could open it for writing
	 * through /proc. */
	if (fchmod(out->fd, 0600) < 0 || ftruncate(out->fd, (off_t)out->bytes) < 0 ||
	    fcntl(out->fd, F_ADD_SEALS, SHM_SEALS) < 0)
		error = -errno;
	if (!error)
		error = shm_map(out);
	if (error)
		shm_release(out);
	return error;
}

int shm_store_create(uint64_t bytes, struct shm *out)
{
	if (bytes % GIANT_BYTES == 0 && shm_free_bytes(GIANT_BYTES) >= bytes &&
	    shm_create("sarissa-store", bytes, GIANT_BYTES, out) == 0)
		return 0;
	if (shm_free_bytes(HUGE_BYTES) >= shm_round_up(bytes, HUGE_BYTES) &&
	    shm_create("sarissa-store", bytes, HUGE_BYTES, out) == 0)
		return 0;
	int error = shm_create("sarissa-store", bytes, 0, out);
	if (!error)
		madvise(out->base, out->bytes, MADV_HUGEPAGE); /* where the kernel is set to */
	return error;
}

int shm_table_create(uint32_t slots, uint64_t store_bytes, uint64_t incarnation, struct shm *out)
{
	uint64_t seed[2];
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	int error = shm_create("sarissa-table", object_table_bytes(slots), 0, out);
	if (!error)
		object_table_begin((struct object_table *)out->base, slots, store_bytes,
				   incarnation, seed);
	return error;
}

/* We keep it, and need not see it. */
static void shm_unmap(struct shm *s)
{
	munmap(s->base, s->bytes);
	s->base = NULL;
}

int shm_private_create(const struct shm *table, struct shm *out)
{
	const struct object_table *t = (const struct object_table *)table->base;
	int error = shm_create("sarissa-private", object_private_bytes(t->slots), 0, out);
	if (error)
		return error;
	object_private_begin((struct object_private *)out->base, t);
	shm_unmap(out);
	return 0;
}

int shm_private_adopt(int fd, const struct shm *table, struct shm *out)
{
	struct shm s;
	int error = shm_adopt(fd, &s);
	if (error)
		return error;
	bool valid = object_private_valid((const struct object_private *)s.base, s.bytes,
					  (const struct object_table *)table->base);
	shm_unmap(&s);
	if (!valid)
		return -EINVAL;
	*out = s;
	return 0;
}

bool shm_table_valid(const struct shm *table, uint64_t store_bytes)
{
	return object_table_valid((const struct object_table *)table->base, table->bytes,
				  store_bytes);
}

int shm_ipc_create(unsigned workers, struct shm *out)
{
	uint64_t at = shm_round_up(sizeof(struct ipc_header), 4096),
		 ring = shm_round_up(sizeof(struct ring), 4096);
	uint64_t messages = shm_round_up((uint64_t)MSG_SLOTS * MSG_SLOT_BYTES, 4096);
	int error = shm_create("sarissa-ipc", at + 2 * workers * ring + 2 * messages, 0, out);
	if (error)
		return error;
	struct ipc_header *h = shm_ipc(out);
	h->version = IPC_VERSION;
	h->workers = workers;
	h->bytes = out->bytes;
	for (unsigned w = 0; w < workers; w++, at += 2 * ring) {
		h->command_ring_offset[w] = at;
		h->event_ring_offset[w] = at + ring;
	} /* memory is zero: the rings are empty */
	h->msg_tx_offset = at;
	h->msg_rx_offset = at + messages;
	h->magic = IPC_MAGIC;
	return 0;
}

int shm_adopt(int fd, struct shm *out)
{
	struct stat s;
	struct statfs fs;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SHM_SEALS) != SHM_SEALS || fstat(fd, &s) < 0 ||
	    fstatfs(fd, &fs) < 0 || s.st_size <= 0 || s.st_size % 4096)
		return -EINVAL;
	*out = (struct shm){.fd = fd,
			    .bytes = (uint64_t)s.st_size,
			    .huge = fs.f_type == HUGETLBFS_MAGIC,
			    .page_bytes = (uint64_t)fs.f_bsize};
	return shm_map(out);
}

int shm_prefer_node(void *base, uint64_t bytes, int node)
{
	enum { PREFERRED = 1, NODES = 64 }; /* MPOL_PREFERRED */
	unsigned long mask = node >= 0 && node < NODES ? 1ul << node : 0;
	if (!mask || syscall(SYS_mbind, base, bytes, PREFERRED, &mask, NODES + 1ul, 0) == 0)
		return 0;
	return -errno;
}

void shm_release(struct shm *s)
{
	if (s->base)
		munmap(s->base, s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct shm){.fd = -1};
}

/* For our own group only: with the ids and numbers in them a local user could make packets that
 * peers take for ours. A new file under the old name: readers that still map the old one keep a
 * whole one. All of it is allotted at once: a worker that writes must not meet a full file system.
 */
static int shm_file_create(const char *rundir, const char *name, struct counters_file header,
			   struct counters_file **out)
{
	char path[128], final[128];
	struct timespec now;
	uint64_t bytes = sizeof(header) + header.workers * header.stride;
	snprintf(path, sizeof(path), "%s/%s.new", rundir, name);
	snprintf(final, sizeof(final), "%s/%s", rundir, name);
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	struct counters_file *f = MAP_FAILED;
	int error = -posix_fallocate(fd, 0, (off_t)bytes);
	if (!error) {
		f = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		error = f == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (error)
		return error;
	clock_gettime(CLOCK_REALTIME, &now);
	header.pid = getpid();
	header.started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	strcpy(header.version, SARISSA_VERSION);
	*f = header;
	node_group_give(path);
	if (rename(path, final) < 0)
		return -errno;
	*out = f;
	return 0;
}

int shm_counters_create(const char *rundir, unsigned workers, struct counters_file **out)
{
	const struct counters_file header = {
		.magic = COUNTERS_FILE_MAGIC,
		.workers = workers,
		.counters = COUNTERS_COUNT,
		.stride = shm_round_up(sizeof(struct counters), 64),
	};
	return shm_file_create(rundir, "counters", header, out);
}

int shm_peers_create(const char *rundir, unsigned workers, unsigned conns_max,
		     struct counters_file **out)
{
	const struct counters_file header = {
		.magic = PEERS_FILE_MAGIC,
		.workers = workers,
		.counters = PEER_VALUES_COUNT,
		.stride = conns_max * sizeof(struct peer_block),
	};
	return shm_file_create(rundir, "peers", header, out);
}
