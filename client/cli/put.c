/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa put. A file of known size is read straight into the store and published as it goes; from
 * a pipe, whose size is known only at its end, memory takes the bytes first. When the command is
 * killed the node takes back what was not sealed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli.h"
#include "progress.h"
#include "text.h"
#include "transfer.h"

struct put {
	const char *name, *file;
	int fd;
	sar *s;
	struct progress progress;
};

/* Reads up to bytes; fewer only at the end of the file. -errno. */
static int64_t put_read(int fd, uint8_t *to, uint64_t bytes)
{
	uint64_t done = 0;
	while (done < bytes) {
		ssize_t n = read(fd, to + done, bytes - done);
		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

static int put_read_failed(const struct put *p, int error)
{
	return cli_fail(-EIO, "cannot read %s: %s", p->file, strerror(-error));
}

/* Fills the object block by block with fill(), publishing as it goes. Returns an exit status and
 * has said why; the object is the caller's to seal or abort. */
static int put_blocks(struct put *p, sar_buffer *b,
		      int (*fill)(struct put *p, uint8_t *to, uint64_t at, uint64_t bytes,
				  const void *arg),
		      const void *arg)
{
	for (uint64_t done = 0; done < b->size;) {
		uint64_t bytes = b->size - done;
		if (bytes > TRANSFER_BLOCK_BYTES)
			bytes = TRANSFER_BLOCK_BYTES;
		int status = fill(p, (uint8_t *)b->data + done, done, bytes, arg);
		if (status != CLI_DONE)
			return status;
		done += bytes;
		int r = done < b->size ? sar_publish(p->s, b, done) : 0;
		if (r < 0)
			return cli_fail_detail(r, p->name);
		progress_show(&p->progress, done, b->size);
	}
	return CLI_DONE;
}

static int put_object(struct put *p, uint64_t size,
		      int (*fill)(struct put *p, uint8_t *to, uint64_t at, uint64_t bytes,
				  const void *arg),
		      const void *arg)
{
	sar_buffer b;
	bool anonymous = strncmp(p->name, "id:", 3) == 0;
	int r = sar_create(p->s, cli_id(p->name), anonymous ? NULL : p->name, size, &b);
	if (r < 0)
		return cli_fail_detail(r, p->name);
	int status = put_blocks(p, &b, fill, arg);
	if (status == CLI_DONE) {
		r = sar_seal(p->s, &b);
		if (r == 0)
			return CLI_DONE;
		status = cli_fail_detail(r, p->name);
	}
	sar_abort(p->s, &b);
	return status;
}

static int put_fill_file(struct put *p, uint8_t *to, uint64_t at, uint64_t bytes, const void *arg)
{
	int64_t n = put_read(p->fd, to, bytes);
	if (n < 0)
		return put_read_failed(p, (int)n);
	if ((uint64_t)n < bytes)
		return cli_fail(-EIO, "%s became shorter while it was read: put it again", p->file);
	return CLI_DONE;
}

/* Gives the pages back as it goes: the bytes exist twice only for a block. */
static int put_fill_memory(struct put *p, uint8_t *to, uint64_t at, uint64_t bytes, const void *arg)
{
	uint8_t *from = (uint8_t *)(uintptr_t)arg + at;
	memcpy(to, from, bytes);
	madvise(from, bytes, MADV_DONTNEED);
	return CLI_DONE;
}

static int put_store_bytes(const sar_node *node, void *arg)
{
	if (!node->self)
		return 0;
	*(uint64_t *)arg = node->store_bytes;
	return 1;
}

/* Takes all of a pipe into memory at `to`, which has room for one byte more than the store. */
static int put_take(struct put *p, uint8_t *to, uint64_t store_bytes, uint64_t *size)
{
	for (*size = 0;;) {
		uint64_t room = store_bytes + 1 - *size;
		uint64_t want = room < TRANSFER_BLOCK_BYTES ? room : TRANSFER_BLOCK_BYTES;
		int64_t n = put_read(p->fd, to + *size, want);
		if (n < 0)
			return put_read_failed(p, (int)n);
		*size += (uint64_t)n;
		if (*size > store_bytes)
			return cli_fail(-EFBIG,
					"%s holds more than the node's store: raise the store, or "
					"split the object",
					p->file);
		if ((uint64_t)n < want)
			return CLI_DONE;
		progress_show(&p->progress, *size, 0);
	}
}

/* Unknown size: reserve addresses for the largest object there can be; only what comes takes
 * memory. */
static int put_stream(struct put *p, uint64_t *size)
{
	uint64_t store_bytes = 0;
	sar_info info;
	if (sar_info_get(p->s, cli_id(p->name), &info) == 0)
		return cli_fail(-EEXIST, "%s: exists already: remove it first", p->name);
	int r = sar_nodes(p->s, put_store_bytes, &store_bytes);
	if (r < 0)
		return cli_fail_detail(r, NULL);
	void *memory = mmap(NULL, store_bytes + 1, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return cli_fail(-ENOMEM,
				"no addresses for a copy of %s: raise ulimit -v, or put a "
				"regular file",
				p->file);
	int status = put_take(p, memory, store_bytes, size);
	if (status == CLI_DONE)
		status = put_object(p, *size, put_fill_memory, memory);
	munmap(memory, store_bytes + 1);
	return status;
}

/* Bytes from here to the end of a regular file; 0 for anything else, and for files that do not
 * tell their size (/proc). */
static uint64_t put_known_size(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	off_t at = lseek(fd, 0, SEEK_CUR);
	return at >= 0 && at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
}

static int put_open_file(struct put *p)
{
	struct stat st;
	p->fd = STDIN_FILENO;
	if (strcmp(p->file, "-") == 0) {
		p->file = "standard input";
		return CLI_DONE;
	}
	p->fd = open(p->file, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0)
		return cli_fail(-EIO, "cannot open %s: %s", p->file, strerror(errno));
	if (fstat(p->fd, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_fail(-EIO, "%s is a directory: put a file, for example of tar", p->file);
	return CLI_DONE;
}

int put_run(const struct cli_args *args)
{
	struct put p = {.name = args->names[0], .file = args->names[1]};
	uint64_t started_ns = cli_now_ns(), size;
	int status = cli_check_name(p.name);
	if (status == CLI_DONE)
		status = put_open_file(&p);
	if (status == CLI_DONE)
		status = cli_open(args, &p.s);
	if (status != CLI_DONE)
		return status;
	progress_begin(&p.progress, "put", p.name, 0);
	size = put_known_size(p.fd);
	status = size > 0 ? put_object(&p, size, put_fill_file, NULL) : put_stream(&p, &size);
	progress_end(&p.progress, status == CLI_DONE ? size : 0);
	sar_close(p.s);
	if (status != CLI_DONE || !args->json)
		return status;
	transfer_report(stdout, p.name, size, started_ns);
	return cli_flush();
}
