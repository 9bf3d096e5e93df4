/* SPDX-License-Identifier: BSD-3-Clause */
#include "spill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shell/host.h"
#include "shell/log.h"

/* ---- one object on its way ------------------------------------------------------------------- */

static void spill_step(struct spill_op *op);

/* How much of the object the next read or write is about, in whole blocks: what lies behind its
 * end in the store is nobody's. */
static uint32_t spill_next(const struct spill_op *op)
{
	uint64_t left = op->file.size - op->done;

	if (left >= SPILL_PIECE)
		return SPILL_PIECE;
	return (uint32_t)((left + SPILL_BLOCK - 1) / SPILL_BLOCK * SPILL_BLOCK);
}

static uint64_t spill_real(const struct spill_op *op)
{
	uint64_t left = op->file.size - op->done;

	return left < op->piece ? left : op->piece;
}

static uint8_t *spill_bytes(const struct spill_op *op)
{
	return op->all->host->attach.store + op->offset + op->done;
}

static void spill_unlink(const struct spill *s, const struct control_spill *file)
{
	char name[SPILL_NAME];

	spill_file_name(file, name);
	if (unlinkat(s->folder, name, 0) < 0 && errno != ENOENT)
		log_debug("unlink %s: %s", name, strerror(errno));
}

/* It has ended: the core hears so, when it still cares. */
static void spill_end(struct spill_op *op, int error)
{
	struct host *h = op->all->host;
	bool read = op->read, stale = op->stale;
	uint32_t slot = op->file.slot;

	close(op->fd);
	op->used = false;
	if (!read && (error || stale))
		spill_unlink(op->all, &op->file);
	if (stale)
		return;
	if (read)
		control_restored(h->core, slot, error, host_now_ns());
	else
		control_spilled(h->core, slot, error, host_now_ns());
}

static void spill_submit(struct spill_op *op, void *memory, uint32_t bytes, uint64_t at)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&op->all->ring);

	/* a place for each op, and one is under way of each */
	if (op->read)
		io_uring_prep_read(sqe, op->fd, memory, bytes, at);
	else
		io_uring_prep_write(sqe, op->fd, memory, bytes, at);
	io_uring_sqe_set_data(sqe, op);
	io_uring_submit(&op->all->ring);
}

static void spill_header(struct spill_op *op)
{
	op->piece = 0;
	spill_submit(op, op->header, SPILL_BLOCK, 0);
}

static void spill_piece(struct spill_op *op)
{
	op->piece = spill_next(op);
	spill_submit(op, spill_bytes(op), op->piece, SPILL_BLOCK + op->done);
}

/* The header comes first of a file that is read, and last of one that is written. */
static void spill_step(struct spill_op *op)
{
	if (op->done < op->file.size) {
		spill_piece(op);
	} else if (op->read) {
		spill_end(op, spill_file_sum_end(op->sum) == op->header->bytes_sum ? 0 : -EBADMSG);
	} else {
		spill_file_header_make(op->header, &op->file, spill_file_sum_end(op->sum));
		spill_header(op);
	}
}

static void spill_done(struct spill_op *op, int result)
{
	uint32_t wanted = op->piece ? op->piece : SPILL_BLOCK;

	if (op->stale || result < 0) { /* -EBADMSG is ours: what a checksum has proved */
		spill_end(op, result >= 0 ? -ECANCELED : result == -EBADMSG ? -EIO : result);
	} else if (op->piece == 0 && !op->read) {
		spill_end(op, (uint32_t)result == wanted ? 0 : -ENOSPC);
	} else if (op->piece == 0) {
		if ((uint32_t)result == wanted && spill_file_header_is(op->header, &op->file))
			spill_step(op);
		else
			spill_end(op, -EBADMSG);
	} else if (result == 0 || result % SPILL_BLOCK != 0) {
		spill_end(op, op->read ? -EBADMSG : -ENOSPC); /* cut off */
	} else {
		op->piece = (uint32_t)result;
		spill_file_sum_add(op->sum, spill_bytes(op), spill_real(op));
		op->done += spill_real(op);
		spill_step(op);
	}
}

static void spill_woken(uv_poll_t *poll, int status, int events)
{
	struct spill *s = poll->data;
	struct io_uring_cqe *cqe;
	uint64_t count;

	if (read(s->event, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_debug("eventfd: %s", strerror(errno));
	while (io_uring_peek_cqe(&s->ring, &cqe) == 0) {
		struct spill_op *op = io_uring_cqe_get_data(cqe);
		int result = cqe->res;

		io_uring_cqe_seen(&s->ring, cqe);
		spill_done(op, result);
	}
}

/* ---- what the core asks for ------------------------------------------------------------------ */

/* A file system without O_DIRECT is used with its cache. */
static int spill_open_file(const struct spill *s, const struct control_spill *file, int flags)
{
	char name[SPILL_NAME];
	int fd;

	spill_file_name(file, name);
	fd = openat(s->folder, name, flags | O_DIRECT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EINVAL)
		fd = openat(s->folder, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

static int spill_begin(struct spill *s, const struct control_spill *file, uint64_t offset,
		       bool is_read)
{
	struct spill_op *op = s->op;
	int fd;

	while (op < s->op + SPILL_OPS && op->used)
		op++;
	if (op == s->op + SPILL_OPS)
		return -EAGAIN;
	fd = spill_open_file(s, file, is_read ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return fd == -EBADMSG ? -EIO : fd;
	op->used = true;
	op->stale = false;
	op->read = is_read;
	op->file = *file;
	op->offset = offset;
	op->done = 0;
	op->fd = fd;
	spill_file_sum_begin(op->sum);
	if (is_read)
		spill_header(op);
	else
		spill_step(op);
	return 0;
}

int spill_op_write(void *arg, const struct control_spill *file, uint64_t offset)
{
	struct host *h = arg;
	int error = spill_begin(&h->spill, file, offset, false);

	if (error && error != -EAGAIN && !h->spill.logged)
		log_error("cannot write in %s (%s): see the disk of --spill", h->spill.path,
			  strerror(-error));
	h->spill.logged = error != 0;
	return error;
}

int spill_op_read(void *arg, const struct control_spill *file, uint64_t offset)
{
	struct host *h = arg;

	return spill_begin(&h->spill, file, offset, true);
}

void spill_op_remove(void *arg, const struct control_spill *file)
{
	struct host *h = arg;

	spill_unlink(&h->spill, file);
}

int spill_op_find(void *arg, const struct control_spill *file)
{
	struct host *h = arg;
	struct spill_header *header = h->spill.op[0].header;
	int fd = spill_open_file(&h->spill, file, O_RDONLY);
	struct stat st;
	int error = 0;

	if (fd < 0)
		return fd == -EBADMSG ? -EIO : fd;
	if (fstat(fd, &st) < 0)
		error = -EIO;
	else if ((uint64_t)st.st_size != spill_file_bytes(file))
		error = -EBADMSG;
	else if (pread(fd, header, SPILL_BLOCK, 0) != SPILL_BLOCK)
		error = -EIO; /* the whole block is there: another time, perhaps */
	else if (!spill_file_header_is(header, file))
		error = -EBADMSG;
	close(fd);
	return error;
}

/* ---- the folder ------------------------------------------------------------------------------ */

void spill_forget(struct spill *s)
{
	for (int i = 0; s->path && i < SPILL_OPS; i++)
		s->op[i].stale = s->op[i].used;
}

static bool spill_under_way(const struct spill *s, const struct object_id *id, uint64_t generation)
{
	for (int i = 0; i < SPILL_OPS; i++)
		if (s->op[i].used && s->op[i].file.generation == generation &&
		    object_id_equal(&s->op[i].file.id, id))
			return true;
	return false;
}

void spill_sweep(struct spill *s)
{
	int fd = s->path ? openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct control_spill file = {.size = 0};

	for (struct dirent *e; d && (e = readdir(d));)
		if (spill_file_parse_name(e->d_name, &file.id, &file.generation) &&
		    !spill_under_way(s, &file.id, file.generation) &&
		    !control_is_spilled(s->host->core, &file.id, file.generation))
			spill_unlink(s, &file);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static int spill_refuse(const char *path, const char *what, int error)
{
	log_error("--spill %s: %s (%s): name another folder, or start without it", path, what,
		  strerror(error));
	return 1;
}

static bool spill_memory(struct spill *s)
{
	for (int i = 0; i < SPILL_OPS; i++) {
		s->op[i].all = s;
		s->op[i].header = aligned_alloc(SPILL_BLOCK, SPILL_BLOCK);
		s->op[i].sum = spill_file_sum_new();
		if (!s->op[i].header || !s->op[i].sum)
			return false;
	}
	return true;
}

int spill_open(struct spill *s, struct host *host, const char *path)
{
	int error;

	s->host = host;
	s->path = path;
	if (!path)
		return 0;
	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0)
		return spill_refuse(path, "cannot be opened", errno);
	if (faccessat(s->folder, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return spill_refuse(path, "cannot be written to", errno);
	if (flock(s->folder, LOCK_EX | LOCK_NB) < 0)
		return spill_refuse(path, "another node uses it", errno);
	error = io_uring_queue_init(SPILL_OPS, &s->ring, 0);
	if (error < 0)
		return spill_refuse(path, "the kernel gives no io_uring", -error);
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->event < 0 || io_uring_register_eventfd(&s->ring, s->event) < 0 ||
	    uv_poll_init(&host->loop, &s->poll, s->event) < 0 || !spill_memory(s))
		return spill_refuse(path, "no descriptors or memory for it", errno);
	s->poll.data = s;
	return uv_poll_start(&s->poll, UV_READABLE, spill_woken) < 0;
}
