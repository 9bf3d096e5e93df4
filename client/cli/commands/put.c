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
#include "cli/cli.h"
#include "internal/program/arguments.h"
#include "internal/reduce.h"
#include "cli/support/patience.h"
#include "cli/support/place.h"
#include "cli/support/progress.h"
#include "sarissa/array.h"
#include "cli/support/text.h"
#include "transfer.h"

struct put {
	const char *name, *file;
	int fd;
	off_t start;	 /* of the bytes in the file */
	uint8_t *memory; /* what a pipe brought */
	uint64_t size;
	sar *s;
	struct progress progress;
	const struct cli_args *args;
	uint64_t lease; /* 0: none */
	uint8_t meta[SAR_META_MAX];
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

static int put_fill_file(void *arg, void *to, uint64_t at, uint64_t bytes, int last)
{
	struct put *p = arg;
	if (at == 0 && lseek(p->fd, p->start, SEEK_SET) < 0)
		return put_read_failed(p, -errno);
	int64_t n = put_read(p->fd, to, bytes);
	if (n < 0)
		return put_read_failed(p, (int)n);
	if ((uint64_t)n < bytes)
		return cli_fail(-EIO, "%s became shorter while it was read: put it again", p->file);
	progress_show(&p->progress, at + bytes, p->size);
	return CLI_DONE;
}

/* Gives the pages back as it goes: the bytes exist twice only for a block. */
static int put_fill_memory(void *arg, void *to, uint64_t at, uint64_t bytes, int last)
{
	struct put *p = arg;
	memcpy(to, p->memory + at, bytes);
	if (last)
		madvise(p->memory + at, bytes, MADV_DONTNEED);
	progress_show(&p->progress, at + bytes, p->size);
	return CLI_DONE;
}

/* "2,3" into the lengths. False: it is no shape. */
static bool put_shape(const char *text, sar_array *out)
{
	for (out->dims = 0; out->dims < SAR_ARRAY_DIMS_MAX;) {
		char one[24] = "";
		size_t length = strcspn(text, ",");
		if (length >= sizeof(one))
			return false;
		memcpy(one, text, length);
		if (!argument_number(one, 10, 0, INT64_MAX, &out->shape[out->dims++]))
			return false;
		text += length;
		if (*text++ == '\0')
			return true;
	}
	return false;
}

/* The meaning of the bytes by --dtype and --shape. An exit status and has said why. */
static int put_describe(struct put *p, sar_put_options *out)
{
	const struct cli_args *args = p->args;
	uint32_t bytes = reduce_dtype_bytes(args->reduction.dtype);
	sar_array array = {.dtype = args->reduction.dtype, .order = 'C', .dims = 1};
	*out = (sar_put_options){
		.size = sizeof(*out), .meta = p->meta, .ttl_ns = args->ttl_ns, .lease = p->lease};
	if (array.dtype == 0)
		return CLI_DONE;
	if (args->shape && !put_shape(args->shape, &array))
		return cli_fail(-EINVAL, "--shape takes at most %d lengths like 2,3, not %s",
				SAR_ARRAY_DIMS_MAX, args->shape);
	if (!args->shape && p->size % bytes)
		return cli_fail(-EINVAL,
				"%s has %llu bytes, no multiple of the %u of %s: name its "
				"type with --dtype",
				p->file, (unsigned long long)p->size, bytes,
				reduce_dtype_name(array.dtype));
	if (!args->shape)
		array.shape[0] = p->size / bytes;
	int n = sar_array_describe(&array, p->meta);
	if (n < 0)
		return cli_fail_detail(n, p->name);
	out->meta_bytes = (size_t)n;
	return CLI_DONE;
}

/* Returns an exit status and has said why. */
static int put_object(struct put *p, sar_fill *fill)
{
	sar_put_options options;
	int r = put_describe(p, &options);
	if (r != CLI_DONE)
		return r;
	r = sar_put_from_with(p->s, cli_id(p->name), cli_called(p->name), p->size, fill, p,
			      &options);
	return r < 0 ? cli_fail_detail(r, p->name) : r;
}

static int put_store_bytes(const sar_node *node, void *arg)
{
	if (!node->self)
		return 0;
	*(uint64_t *)arg = node->store_bytes;
	return 1;
}

/* Takes all of a pipe into memory, which has room for one byte more than the store. */
static int put_take(struct put *p, uint64_t store_bytes)
{
	for (p->size = 0;;) {
		uint64_t room = store_bytes + 1 - p->size;
		uint64_t want = room < TRANSFER_BLOCK_BYTES ? room : TRANSFER_BLOCK_BYTES;
		int64_t n = put_read(p->fd, p->memory + p->size, want);
		if (n < 0)
			return put_read_failed(p, (int)n);
		p->size += (uint64_t)n;
		if (p->size > store_bytes)
			return cli_fail(-EFBIG,
					"%s holds more than the node's store: raise the store, or "
					"split the object",
					p->file);
		if ((uint64_t)n < want)
			return CLI_DONE;
		progress_show(&p->progress, p->size, 0);
	}
}

/* Unknown size: reserve addresses for the largest object there can be; only what comes takes
 * memory. */
static int put_stream(struct put *p)
{
	uint64_t store_bytes = 0;
	int r = sar_nodes(p->s, put_store_bytes, &store_bytes);
	if (r < 0)
		return cli_fail_detail(r, NULL);
	p->memory = mmap(NULL, store_bytes + 1, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->memory == MAP_FAILED)
		return cli_fail(-ENOMEM,
				"no addresses for a copy of %s: raise ulimit -v, or put a "
				"regular file",
				p->file);
	int status = put_take(p, store_bytes);
	if (status == CLI_DONE)
		status = put_object(p, put_fill_memory);
	munmap(p->memory, store_bytes + 1);
	return status;
}

/* Sets where the bytes of a regular file lie. False for anything else, and for files that do not
 * tell their size (/proc). */
static bool put_knows_size(struct put *p)
{
	struct stat st;
	if (fstat(p->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	p->start = lseek(p->fd, 0, SEEK_CUR);
	if (p->start < 0 || p->start >= st.st_size)
		return false;
	p->size = (uint64_t)(st.st_size - p->start);
	return true;
}

/* A descriptor of the caller is read from where it stands. */
static int put_open_file(struct put *p)
{
	static struct place place;
	struct stat st;
	bool standard = strcmp(p->file, "-") == 0;
	int r = standard ? 0 : place_find(p->file, &place);
	p->fd = standard ? place_descriptor(STDIN_FILENO) : r < 0 ? r : place.fd;
	if (standard)
		p->file = "standard input";
	if (p->fd == -EBADF)
		return cli_fail(-EIO, "%s is closed: open it, or name a file", p->file);
	if (standard && p->fd < 0)
		return cli_fail(-EIO, "cannot read %s: %s", p->file, strerror(-p->fd));
	if (p->fd < 0)
		p->fd = open(p->file, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0)
		return cli_fail(-EIO, "cannot open %s: %s", p->file, strerror(errno));
	if (fstat(p->fd, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_fail(-EIO, "%s is a directory: put a file, for example of tar", p->file);
	return CLI_DONE;
}

int put_run(const struct cli_args *args)
{
	struct put p = {.name = args->names[0], .file = args->names[1], .args = args};
	uint64_t started_ns = cli_now_ns();
	int status = cli_check_name(p.name);
	if (args->shape && args->reduction.dtype == 0) {
		cli_fail(-EINVAL, "--shape says how long an array is: give its --dtype");
		return CLI_USAGE;
	}
	if (status == CLI_DONE)
		status = put_open_file(&p);
	if (status == CLI_DONE)
		status = cli_open(args, &p.s);
	if (status != CLI_DONE)
		return status;
	if (args->lease) {
		int r = sar_lease(p.s, args->lease, args->lease_ttl_ns, &p.lease);
		if (r < 0) {
			sar_close(p.s);
			return cli_fail_detail(r, NULL);
		}
	}
	struct patience patience;
	patience_begin(&patience, p.s, NULL, true);
	progress_begin(&p.progress, "put", p.name, 0);
	status = put_knows_size(&p) ? put_object(&p, put_fill_file) : put_stream(&p);
	progress_end(&p.progress, status == CLI_DONE ? p.size : 0);
	patience_end(&patience);
	sar_close(p.s);
	if (status != CLI_DONE || !args->json)
		return status;
	transfer_report(stdout, p.name, p.size, started_ns);
	return cli_flush();
}
