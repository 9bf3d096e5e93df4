/* SPDX-License-Identifier: BSD-3-Clause */
#include "map.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "api/error.h"
#include "internal/session.h"

static uint64_t map_page_bytes(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)fs.f_bsize;
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t map_round_up(uint64_t bytes, uint64_t page_bytes)
{
	return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/* Maps bytes of fd when the file really is so long: a shorter one would raise SIGBUS later. */
static int map_file(int fd, uint64_t bytes, int protection, void **out)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (bytes == 0 || bytes > INT64_MAX || (uint64_t)st.st_size < bytes)
		return -EPROTO;
	void *at = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, bytes, MADV_DONTDUMP); /* a core file is not for the objects of others */
	*out = at;
	return 0;
}

static int map_parts(struct map *m, const int fd[3])
{
	void *store = NULL, *table = NULL;
	int r = map_file(fd[0], m->store_bytes, PROT_READ, &store);
	m->store = store;
	if (r < 0)
		return r;
	if (m->table_bytes < sizeof(struct object_table))
		return -EPROTO;
	r = map_file(fd[1], m->table_bytes, PROT_READ, &table);
	m->table = table;
	if (r < 0)
		return r;
	if (!object_table_valid(m->table, m->table_bytes, m->store_bytes))
		return -EPROTO;
	r = map_file(fd[2], SESSION_PIN_BYTES, PROT_READ | PROT_WRITE, &m->pins);
	/* A child makes no calls, and must not keep the table of an earlier control mapped: by the
	 * mappings the next control knows which clients have not come back. */
	madvise(table, m->table_bytes, MADV_DONTFORK);
	return r;
}

int map_open(struct map *m, const int fd[3], uint64_t store_bytes, uint64_t table_bytes)
{
	*m = (struct map){.store_bytes = store_bytes,
			  .table_bytes = table_bytes,
			  .align = map_page_bytes(fd[0]),
			  .table_align = map_page_bytes(fd[1]),
			  .fd = -1};
	struct stat st = {0};
	fstat(fd[0], &st);
	m->device = st.st_dev;
	m->inode = st.st_ino;
	int r = map_parts(m, fd);
	if (r == 0) {
		m->fd = fcntl(fd[0], F_DUPFD_CLOEXEC, 0);
		return 0;
	}
	map_close(m);
	if (r == -EPROTO)
		return error_set(r, "the node's store or object table does not hold what it "
				    "announces: use libraries and node of one version");
	return error_set(r, "cannot map the node's store: raise this process's limit of address "
			    "space (ulimit -v)");
}

static void map_remove(const void *at, uint64_t bytes, uint64_t page_bytes)
{
	if (at)
		munmap((void *)(uintptr_t)at, map_round_up(bytes, page_bytes));
}

void map_close(struct map *m)
{
	if (m->store && m->fd >= 0)
		close(m->fd);
	map_remove(m->store, m->store_bytes, m->align);
	map_remove(m->table, m->table_bytes, m->table_align);
	map_remove(m->pins, SESSION_PIN_BYTES, (uint64_t)sysconf(_SC_PAGESIZE));
	*m = (struct map){.pins = NULL};
}

bool map_same(const struct map *a, const struct map *b)
{
	return a->device == b->device && a->inode == b->inode && a->store_bytes == b->store_bytes &&
	       a->table->incarnation == b->table->incarnation;
}

int map_replace_table(struct map *m, struct map *other)
{
	void *at = (void *)(uintptr_t)m->table, *from = (void *)(uintptr_t)other->table;
	if (m->table_bytes != other->table_bytes)
		return -EPROTO;
	if (mremap(from, m->table_bytes, m->table_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		return -errno;
	other->table = NULL;
	return 0;
}

void *map_nothing(void)
{
	static _Alignas(64) uint8_t nothing[64];
	return nothing;
}

int map_range_open(int fd, uint64_t offset, uint64_t size, struct map_range *out)
{
	if (size == 0) {
		*out = (struct map_range){.data = map_nothing()};
		return 0;
	}
	struct stat st;
	uint64_t align = map_page_bytes(fd);
	uint64_t begin = offset / align * align;
	uint64_t end = map_round_up(offset + size, align);
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < offset + size)
		return -EPROTO;
	void *base = mmap(NULL, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			  (off_t)begin);
	if (base == MAP_FAILED)
		return -errno;
	madvise(base, end - begin, MADV_DONTDUMP);
	*out = (struct map_range){.base = base,
				  .bytes = end - begin,
				  .data = (uint8_t *)base + (offset - begin),
				  .page = (uint8_t)__builtin_ctzll(align)};
	return 0;
}

int map_private(const struct map *m, uint64_t offset, uint64_t size, struct map_range *out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat st;
	if (size == 0 || !map_holds(m, offset, size))
		return -EINVAL;
	/* a private huge page is taken when it is written: without a free one the process dies */
	if (m->align != page || m->fd < 0 || fstat(m->fd, &st) < 0 || st.st_dev != m->device ||
	    st.st_ino != m->inode)
		return -ENOTSUP;
	uint64_t begin = offset / page * page, end = map_round_up(offset + size, page);
	void *base = mmap(NULL, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
			  m->fd, (off_t)begin);
	if (base == MAP_FAILED)
		return -errno;
	*out = (struct map_range){
		.base = base, .bytes = end - begin, .data = (uint8_t *)base + (offset - begin)};
	return 0;
}
