/* SPDX-License-Identifier: BSD-3-Clause */
#include "client_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

static int64_t fake_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct session_reply fake_reply(const struct session_request *request, int status)
{
	return (struct session_reply){
		.magic = SESSION_MAGIC, .op = request->op, .seq = request->seq, .status = status};
}

void fake_send(struct fake *f, int conn, const void *bytes, size_t length, const int *fd,
	       unsigned fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
	} control;
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (f->mute && ((const struct session_reply *)bytes)->op == f->mute)
		return;
	if (fds > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fds);
		memcpy(CMSG_DATA(c), fd, sizeof(int) * fds);
	}
	sendmsg(f->conn[conn].fd, &message, MSG_NOSIGNAL);
}

void fake_status(struct fake *f, int conn, const struct session_request *request, int status)
{
	struct session_reply reply = fake_reply(request, status);
	fake_send(f, conn, &reply, sizeof(reply), NULL, 0);
}

static void fake_write_begin(struct object_slot *s)
{
	atomic_fetch_add(&s->sequence, 1);
}

static void fake_write_end(struct object_slot *s)
{
	atomic_fetch_add(&s->sequence, 1);
}

void fake_state(struct fake *f, uint32_t slot, enum object_state state)
{
	fake_write_begin(&f->table->slot[slot]);
	f->table->slot[slot].state = (uint16_t)state;
	fake_write_end(&f->table->slot[slot]);
}

/* Gives the object of a slot a place in the index, and takes it from those that have gone. */
static void fake_index(struct fake *f, uint32_t slot)
{
	struct object_key key = object_table_key(f->table, &f->table->slot[slot].id);
	for (unsigned k = 0; k < 2 * OBJECT_BUCKET_PLACES; k++) {
		if (k == OBJECT_BUCKET_PLACES)
			key.bucket = object_key_other(f->table, key.bucket, key.mark);
		_Atomic uint64_t *place =
			&object_table_bucket(f->table, key.bucket)->place[k % OBJECT_BUCKET_PLACES];
		uint32_t i = (uint32_t)*place - 1;
		if (i < FAKE_SLOTS && i != slot && f->table->slot[i].state != OBJECT_FREE &&
		    f->table->slot[i].state != OBJECT_ZOMBIE)
			continue;
		*place = object_place_make(key.mark, slot);
		return;
	}
	CHECK(!"two buckets are full");
}

/* Under lock. -1 when the store or the table is full. */
int64_t fake_make(struct fake *f, const struct object_id *id, uint64_t size,
		  enum object_state state)
{
	static uint64_t generation = 1000;
	uint64_t room = (size + 4095) / 4096 * 4096;
	if (f->used + room > FAKE_STORE_BYTES)
		return -1;
	for (uint32_t i = 0; i < FAKE_SLOTS; i++) {
		struct object_slot *s = &f->table->slot[i];
		if (s->state != OBJECT_FREE)
			continue;
		fake_write_begin(s);
		s->id = *id;
		s->generation = ++generation;
		s->offset = f->used;
		s->size = size;
		atomic_store(&s->watermark, 0);
		s->state = (uint16_t)state;
		fake_write_end(s);
		fake_index(f, i);
		memset(f->name[i], 0, sizeof(f->name[i]));
		f->used += room;
		return i;
	}
	return -1;
}

static void fake_attach(struct fake *f, int conn, const struct session_request *request)
{
	char path[64];
	int fd[3];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->store_fd);
	fd[0] = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->table_fd);
	fd[1] = open(path, O_RDONLY | O_CLOEXEC);
	fd[2] = memfd_create("pins", MFD_CLOEXEC);
	CHECK(fd[0] >= 0 && fd[1] >= 0 && ftruncate(fd[2], SESSION_PIN_BYTES) == 0);
	f->conn[conn].pins =
		mmap(NULL, SESSION_PIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd[2], 0);
	struct session_reply reply = fake_reply(request, 0);
	reply.store_bytes = FAKE_STORE_BYTES;
	reply.table_bytes = f->table_bytes;
	for (uint32_t i = 0; i < FAKE_SLOTS; i++)
		if (f->staged && f->table->slot[i].state == OBJECT_CREATING && f->creator[i] == -1)
			reply.flags = SESSION_FLAG_BRING;
	reply.generation = f->table->control_epoch;
	fake_send(f, conn, &reply, sizeof(reply), fd, 3);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

/* A reply that points to a slot, which gets pinned for the client. */
static void fake_place(struct fake *f, int conn, const struct session_request *request, int64_t i)
{
	const struct object_slot *s = &f->table->slot[i];
	struct session_reply reply = fake_reply(request, 0);
	reply.slot = (uint32_t)i;
	reply.generation = s->generation;
	reply.offset = s->offset;
	reply.size = s->size;
	reply.watermark = s->state == OBJECT_SEALED ? s->size : atomic_load(&s->watermark);
	if (request->op != SESSION_WAIT && request->pin != SESSION_PIN_NONE)
		atomic_store(&f->conn[conn].pins[request->pin],
			     pin_make((uint32_t)i, s->generation));
	const int *fd = &f->store_fd;
	if (f->staged && request->op == SESSION_CREATE) {
		f->memory[i] = memfd_create("creation", MFD_CLOEXEC);
		CHECK(ftruncate(f->memory[i], (off_t)s->size) == 0);
		reply.flags = SESSION_FLAG_STAGED;
		fd = &f->memory[i];
	}
	fake_send(f, conn, &reply, sizeof(reply), fd, request->op == SESSION_CREATE);
}

static void fake_close(int *fd)
{
	if (*fd)
		close(*fd);
	*fd = 0;
}

static void fake_create(struct fake *f, int conn, const struct session_request *request)
{
	struct object_slot image;
	int64_t i = object_table_find(f->table, &request->id, &image);
	bool again = request->flags & SESSION_FLAG_RETRY && i >= 0 &&
		     image.state == OBJECT_CREATING && image.watermark == 0;
	if (again && (f->creator[i] == -1 ||
		      (f->creator[i] == conn && atomic_load(&f->conn[conn].pins[request->pin]) ==
							pin_make((uint32_t)i, image.generation)))) {
		f->creator[i] = conn;
		fake_place(f, conn, request, i);
	} else if (i >= 0) {
		fake_status(f, conn, request, -EEXIST);
	} else if ((i = fake_make(f, &request->id, request->size, OBJECT_CREATING)) < 0) {
		struct session_reply reply = fake_reply(request, -ENOSPC);
		snprintf(reply.text, sizeof(reply.text), "the store is full: remove something");
		fake_send(f, conn, &reply, sizeof(reply), NULL, 0);
	} else {
		memcpy(f->name[i], request->name, sizeof(f->name[i]));
		f->creator[i] = conn;
		fake_place(f, conn, request, i);
	}
}

static void fake_resume(struct fake *f, int conn, const struct session_request *request)
{
	uint64_t word = atomic_load(&f->conn[conn].pins[request->pin]);
	uint32_t i = (uint32_t)word - 1;
	if (i >= FAKE_SLOTS || pin_make(i, f->table->slot[i].generation) != word ||
	    f->table->slot[i].state != OBJECT_CREATING || f->creator[i] != -1)
		return fake_status(f, conn, request, -ESTALE);
	f->creator[i] = conn;
	f->memory[i] = f->brought;
	f->brought = 0;
	atomic_fetch_add(&f->resumed, 1);
	fake_place(f, conn, request, i);
}

/* True when it has been answered. */
static bool fake_try_wait(struct fake *f, int conn, const struct session_request *request)
{
	struct object_slot image;
	if (request->op == SESSION_GET) {
		int64_t i = object_table_find(f->table, &request->id, &image);
		if (i >= 0)
			fake_place(f, conn, request, i);
		return i >= 0;
	}
	const struct object_slot *s = &f->table->slot[request->slot];
	if (s->generation == request->generation && s->flags & OBJECT_FLAG_REPLACED) {
		fake_status(f, conn, request, -ERESTART);
		return true;
	}
	if (s->state == OBJECT_ZOMBIE || s->generation != request->generation) {
		fake_status(f, conn, request, -ESTALE);
		return true;
	}
	if (s->state != OBJECT_SEALED && atomic_load(&s->watermark) < request->watermark)
		return false;
	fake_place(f, conn, request, request->slot);
	return true;
}

static void fake_wait(struct fake *f, int conn, const struct session_request *request)
{
	if (fake_try_wait(f, conn, request))
		return;
	if (request->timeout_ns == 0) {
		fake_status(f, conn, request, request->op == SESSION_GET ? -ENOENT : -ETIMEDOUT);
		return;
	}
	for (int w = 0; w < FAKE_WAITS; w++) {
		if (f->wait[w].conn >= 0)
			continue;
		f->wait[w] = (struct fake_wait){
			conn, *request,
			request->timeout_ns < 0 ? INT64_MAX : fake_now() + request->timeout_ns};
		return;
	}
	fake_status(f, conn, request, -EAGAIN);
}

static void fake_cancel(struct fake *f, int conn, const struct session_request *request)
{
	bool found = false;
	for (int w = 0; w < FAKE_WAITS; w++) {
		if (f->wait[w].conn != conn || f->wait[w].request.seq != request->generation)
			continue;
		f->wait[w].conn = -1;
		found = true;
	}
	fake_status(f, conn, request, found ? 0 : -ENOENT);
}

/* The object is here, and the nodes have it at once. */
static void fake_broadcast(struct fake *f, int conn, const struct session_request *request,
			   const uint8_t *bytes, size_t length)
{
	struct object_slot image;
	bool known = object_table_find(f->table, &request->id, &image) >= 0;
	bool whole = length == sizeof(*request) + request->size;
	if (whole && request->size <= sizeof(f->broadcast))
		memcpy(f->broadcast, bytes + sizeof(*request), request->size);
	fake_status(f, conn, request, !whole ? -EINVAL : known ? 0 : -ETIMEDOUT);
}

/* PUBLISH, SEAL, ABORT: the slot must be the caller's creation. */
static void fake_change(struct fake *f, int conn, const struct session_request *request)
{
	struct object_slot *s = &f->table->slot[request->slot % FAKE_SLOTS];
	if (request->op == SESSION_ABORT)
		atomic_fetch_add(&f->aborts, 1);
	if (request->op == SESSION_SEAL && request->flags & SESSION_FLAG_RETRY &&
	    s->state == OBJECT_SEALED && s->generation == request->generation)
		return fake_status(f, conn, request, 0);
	if (s->state != OBJECT_CREATING || s->generation != request->generation ||
	    f->creator[request->slot] != conn) {
		bool deleted = s->state == OBJECT_ZOMBIE || s->generation != request->generation;
		fake_status(f, conn, request, deleted ? -ESTALE : -EINVAL);
		return;
	}
	uint64_t from = atomic_load(&s->watermark);
	uint64_t to = request->op == SESSION_SEAL ? s->size : request->watermark;
	if (f->staged && request->op != SESSION_ABORT &&
	    pread(f->memory[request->slot], f->store + s->offset + from, to - from, (off_t)from) !=
		    (ssize_t)(to - from))
		return fake_status(f, conn, request, -ESTALE);
	atomic_store(&s->watermark, to);
	if (request->op != SESSION_PUBLISH)
		fake_close(&f->memory[request->slot]);
	if (request->op == SESSION_SEAL)
		fake_state(f, request->slot, OBJECT_SEALED);
	if (request->op == SESSION_ABORT)
		fake_state(f, request->slot, OBJECT_ZOMBIE);
	fake_status(f, conn, request, 0);
}

/* The target is there at once, of FAKE_REDUCED_BYTES bytes of pattern. */
static void fake_reduce(struct fake *f, int conn, const struct session_request *request,
			const uint8_t *bytes, size_t length)
{
	size_t ids = sizeof(struct object_id) * request->reduction.count;
	struct object_slot image;
	int64_t i;
	if (length != sizeof(*request) + ids)
		return fake_status(f, conn, request, -EINVAL);
	bool again = request->flags & SESSION_FLAG_RETRY;
	i = object_table_find(f->table, &request->id, &image);
	if (i >= 0 && !again)
		return fake_status(f, conn, request, -EEXIST);
	if (i < 0)
		i = fake_make(f, &request->id, FAKE_REDUCED_BYTES, OBJECT_SEALED);
	for (uint64_t k = 0; k < FAKE_REDUCED_BYTES; k++)
		f->store[f->table->slot[i].offset + k] = fake_pattern(k);
	memcpy(f->name[i], request->name, sizeof(f->name[i]));
	f->reduce = *request;
	memcpy(f->reduce_source, bytes + sizeof(*request), ids);
	fake_status(f, conn, request, 0);
}

/* The first num are in it. */
static void fake_reduced(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_sources sources;
	} packet;
	uint32_t count = f->reduce.reduction.num;
	if (!object_id_equal(&f->reduce.id, &request->id))
		return fake_status(f, conn, request, -ENOENT);
	if (f->reduce_goes_on)
		return fake_status(f, conn, request, -ETIMEDOUT);
	count = count ? count : f->reduce.reduction.count;
	for (uint32_t at = 0; at < count; at += SESSION_SOURCES) {
		packet.reply = fake_reply(request, 0);
		packet.reply.flags = SESSION_FLAG_MORE;
		packet.sources = (struct session_sources){
			.count = count - at < SESSION_SOURCES ? count - at : SESSION_SOURCES};
		memcpy(packet.sources.source, f->reduce_source + at,
		       sizeof(struct object_id) * packet.sources.count);
		fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	}
	fake_status(f, conn, request, 0);
}

static void fake_serve(struct fake *f, int conn, const struct session_request *request,
		       const uint8_t *bytes, size_t length)
{
	struct object_slot image;
	int64_t i;
	atomic_fetch_add(&f->requests[request->op % SESSION_OPS], 1);
	f->tail = bytes + sizeof(*request);
	f->tail_bytes = length - sizeof(*request);
	if (f->hook && f->hook(f, conn, request))
		return;
	switch (request->op) {
	case SESSION_ATTACH:
		return fake_attach(f, conn, request);
	case SESSION_CREATE:
		return fake_create(f, conn, request);
	case SESSION_PUT:
		return fake_put(f, conn, request, bytes, length);
	case SESSION_RESUME:
		return fake_resume(f, conn, request);
	case SESSION_PUBLISH:
	case SESSION_SEAL:
	case SESSION_ABORT:
		return fake_change(f, conn, request);
	case SESSION_GET:
	case SESSION_WAIT:
		return fake_wait(f, conn, request);
	case SESSION_DELETE:
		i = object_table_find(f->table, &request->id, &image);
		if (i >= 0)
			fake_state(f, (uint32_t)i, OBJECT_ZOMBIE);
		return fake_status(f, conn, request, i >= 0 ? 0 : -ENOENT);
	case SESSION_STAT:
		return fake_stat(f, conn, request);
	case SESSION_LIST:
		return fake_list(f, conn, request);
	case SESSION_STATUS:
		return fake_nodes(f, conn, request);
	case SESSION_REDUCE:
		return fake_reduce(f, conn, request, bytes, length);
	case SESSION_REDUCED:
		return fake_reduced(f, conn, request);
	case SESSION_CANCEL:
		return fake_cancel(f, conn, request);
	case SESSION_BROADCAST:
		return fake_broadcast(f, conn, request, bytes, length);
	case SESSION_HOLD:
		f->hold = *request;
		return fake_status(f, conn, request, 0);
	default:
		return fake_status(f, conn, request, -EINVAL);
	}
}

static void fake_waits(struct fake *f)
{
	int64_t now = fake_now();
	for (int w = 0; w < FAKE_WAITS; w++) {
		struct fake_wait *wait = &f->wait[w];
		if (wait->conn < 0)
			continue;
		if (fake_try_wait(f, wait->conn, &wait->request)) {
			wait->conn = -1;
		} else if (now >= wait->until_ns) {
			fake_status(f, wait->conn, &wait->request, -ETIMEDOUT);
			wait->conn = -1;
		}
	}
}

static void fake_hang_up(struct fake *f, int conn)
{
	close(f->conn[conn].fd);
	f->conn[conn].fd = -1;
	if (f->conn[conn].pins)
		munmap(f->conn[conn].pins, SESSION_PIN_BYTES);
	f->conn[conn].pins = NULL;
	for (uint32_t i = 0; i < FAKE_SLOTS && !f->stop; i++)
		if (f->table->slot[i].state == OBJECT_CREATING && f->creator[i] == conn)
			fake_state(f, i, OBJECT_ZOMBIE);
	for (int w = 0; w < FAKE_WAITS; w++)
		if (f->wait[w].conn == conn)
			f->wait[w].conn = -1;
}

static void fake_accept(struct fake *f)
{
	int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	for (int i = 0; fd >= 0 && i < FAKE_CONNS; i++) {
		if (f->conn[i].fd < 0) {
			f->conn[i].fd = fd;
			return;
		}
	}
	close(fd);
}

static ssize_t fake_receive(struct fake *f, int fd, void *bytes, size_t room)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {bytes, room};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n > 0 && CMSG_FIRSTHDR(&m))
		memcpy(&f->brought, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	f->descriptors += f->brought > 0;
	return n;
}

static void *fake_run(void *arg)
{
	struct fake *f = arg;
	while (!atomic_load(&f->stop)) {
		struct pollfd set[FAKE_CONNS + 2] = {{f->listen_fd, POLLIN, 0},
						     {f->wake_fd, POLLIN, 0}};
		for (int i = 0; i < FAKE_CONNS; i++)
			set[i + 2] = (struct pollfd){f->conn[i].fd, POLLIN, 0};
		poll(set, FAKE_CONNS + 2, 5);
		pthread_mutex_lock(&f->lock);
		if (set[0].revents & POLLIN)
			fake_accept(f);
		for (int i = 0; i < FAKE_CONNS; i++) {
			union {
				struct session_request request;
				uint8_t bytes[SESSION_REQUEST_BYTES_MAX + 1];
			} packet;
			if (set[i + 2].fd < 0 || !set[i + 2].revents)
				continue;
			ssize_t n = fake_receive(f, set[i + 2].fd, &packet, sizeof(packet));
			if (n >= (ssize_t)sizeof(packet.request))
				fake_serve(f, i, &packet.request, packet.bytes, (size_t)n);
			else if (n == 0 || (n < 0 && errno != EAGAIN))
				fake_hang_up(f, i);
			fake_close(&f->brought);
		}
		fake_waits(f);
		pthread_mutex_unlock(&f->lock);
	}
	return NULL;
}

static void fake_memory(struct fake *f)
{
	static const uint64_t seed[2] = {1, 2};
	f->table_bytes = object_table_bytes(FAKE_SLOTS);
	f->store_fd = memfd_create("store", MFD_CLOEXEC);
	f->table_fd = memfd_create("table", MFD_CLOEXEC);
	CHECK(ftruncate(f->store_fd, FAKE_STORE_BYTES) == 0);
	CHECK(ftruncate(f->table_fd, (off_t)f->table_bytes) == 0);
	f->store = mmap(NULL, FAKE_STORE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->store_fd, 0);
	f->table = mmap(NULL, f->table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->table_fd, 0);
	CHECK(f->store != MAP_FAILED && f->table != MAP_FAILED);
	object_table_begin(f->table, FAKE_SLOTS, FAKE_STORE_BYTES, 1, seed);
}

static void fake_listen(struct fake *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, f->path);
	unlink(f->path);
	atomic_store(&f->stop, false);
	atomic_fetch_add(&f->table->control_epoch, 1);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(bind(f->listen_fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(listen(f->listen_fd, 8) == 0);
	CHECK(pthread_create(&f->thread, NULL, fake_run, f) == 0);
}

void fake_start(struct fake *f)
{
	bool (*hook)(struct fake *, int, const struct session_request *) = f->hook;
	*f = (struct fake){.hook = hook};
	strcpy(f->dir, "/tmp/sarissa-test-XXXXXX");
	CHECK(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/control.sock", f->dir);
	for (int i = 0; i < FAKE_CONNS; i++)
		f->conn[i].fd = -1;
	for (int i = 0; i < FAKE_WAITS; i++)
		f->wait[i].conn = -1;
	fake_memory(f);
	f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&f->lock, NULL);
	fake_listen(f);
}

void fake_kill(struct fake *f)
{
	if (atomic_exchange(&f->stop, true))
		return;
	uint64_t one = 1;
	CHECK(write(f->wake_fd, &one, sizeof(one)) == sizeof(one));
	pthread_join(f->thread, NULL);
	CHECK(read(f->wake_fd, &one, sizeof(one)) == sizeof(one));
	close(f->listen_fd);
	for (int i = 0; i < FAKE_CONNS; i++)
		if (f->conn[i].fd >= 0)
			fake_hang_up(f, i);
	for (uint32_t i = 0; i < FAKE_SLOTS; i++) {
		f->creator[i] = -1;
		fake_close(&f->memory[i]);
	}
}

static void fake_forget(struct fake *f)
{
	close(f->store_fd);
	close(f->table_fd);
	munmap(f->store, FAKE_STORE_BYTES);
	munmap(f->table, f->table_bytes);
}

void fake_restart(struct fake *f, bool same_store)
{
	if (!same_store) {
		uint64_t epoch = f->table->control_epoch, incarnation = f->table->incarnation;
		fake_forget(f);
		fake_memory(f);
		f->table->incarnation = incarnation + 1;
		f->table->control_epoch = epoch - 1; /* so that this alone tells nothing */
		f->used = 0;
	}
	fake_listen(f);
}

void fake_stop(struct fake *f)
{
	fake_kill(f);
	close(f->wake_fd);
	fake_forget(f);
	unlink(f->path);
	rmdir(f->dir);
}

uint32_t fake_fetching(struct fake *f, const struct object_id *id, uint64_t size, uint64_t ready)
{
	pthread_mutex_lock(&f->lock);
	int64_t slot = fake_make(f, id, size, OBJECT_FETCHING);
	CHECK(slot >= 0);
	for (uint64_t i = 0; i < size; i++)
		f->store[f->table->slot[slot].offset + i] = fake_pattern(i);
	pthread_mutex_unlock(&f->lock);
	fake_advance(f, (uint32_t)slot, ready);
	return (uint32_t)slot;
}

void fake_advance(struct fake *f, uint32_t slot, uint64_t ready)
{
	pthread_mutex_lock(&f->lock);
	atomic_store(&f->table->slot[slot].watermark, ready);
	if (ready == f->table->slot[slot].size)
		fake_state(f, slot, OBJECT_SEALED);
	fake_waits(f);
	pthread_mutex_unlock(&f->lock);
}

void fake_replace(struct fake *f, uint32_t slot)
{
	pthread_mutex_lock(&f->lock);
	fake_write_begin(&f->table->slot[slot]);
	f->table->slot[slot].flags |= OBJECT_FLAG_REPLACED;
	f->table->slot[slot].state = OBJECT_ZOMBIE;
	fake_write_end(&f->table->slot[slot]);
	pthread_mutex_unlock(&f->lock);
}

void fake_delete(struct fake *f, uint32_t slot)
{
	pthread_mutex_lock(&f->lock);
	fake_state(f, slot, OBJECT_ZOMBIE);
	fake_waits(f);
	pthread_mutex_unlock(&f->lock);
}

bool fake_pinned(struct fake *f, uint32_t slot)
{
	bool found = false;
	pthread_mutex_lock(&f->lock); /* a page goes when its connection does */
	uint64_t pin = pin_make(slot, f->table->slot[slot].generation);
	for (int i = 0; i < FAKE_CONNS; i++)
		for (int p = 0; f->conn[i].pins && p < SESSION_PINS; p++)
			found |= atomic_load(&f->conn[i].pins[p]) == pin;
	pthread_mutex_unlock(&f->lock);
	return found;
}

unsigned fake_waiting(struct fake *f)
{
	unsigned count = 0;
	pthread_mutex_lock(&f->lock);
	for (int w = 0; w < FAKE_WAITS; w++)
		count += f->wait[w].conn >= 0;
	pthread_mutex_unlock(&f->lock);
	return count;
}

unsigned fake_pins(struct fake *f)
{
	unsigned count = 0;
	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < FAKE_CONNS; i++)
		for (int p = 0; f->conn[i].pins && p < SESSION_PINS; p++)
			count += atomic_load(&f->conn[i].pins[p]) != 0;
	pthread_mutex_unlock(&f->lock);
	return count;
}
