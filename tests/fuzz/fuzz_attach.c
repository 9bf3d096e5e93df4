/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How control and dataplane meet: the request as the dataplane reads it, with a store and a table
 * that it may adopt, and the reply as control reads it, with all that control maps. Each is nearly
 * right, in packets of any length with any descriptors. What is accepted is touched as its owner
 * would, and no descriptor may be left.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "../../control/shell/attach.h"
#include "../../dataplane/io/node/attach.h"
#include "../../dataplane/io/node/shm.h"
#include "input.h"
#include "internal/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STORE_BYTES = 1 << 16, SLOTS = 32, WORKERS = 2, FDS = ATTACH_OWN_FDS + WORKERS, ROUNDS = 3 };

static struct {
	struct shm store, table, private, ipc;
	struct ipc_header ipc_header; /* as they are when they are right */
	uint8_t table_header[sizeof(struct object_table)];
	uint8_t private_header[sizeof(struct object_private)];
	int small_fd, wake_fd;
	uint64_t sum; /* of what was read, so that it is */
} rig;

static const uint64_t seed[2] = {1, 2};

static struct shm memory(uint64_t bytes)
{
	struct shm m = {.bytes = bytes,
			.fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING)};

	INPUT_MUST(m.fd >= 0 && ftruncate(m.fd, (off_t)bytes) == 0);
	INPUT_MUST(fcntl(m.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	m.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	INPUT_MUST(m.base != MAP_FAILED);
	return m;
}

static void rig_once(void)
{
	if (rig.ipc.base)
		return;
	INPUT_MUST(shm_ipc_create(WORKERS, &rig.ipc) == 0);
	rig.store = memory(STORE_BYTES);
	rig.table = memory((object_table_bytes(SLOTS) + 4095) / 4096 * 4096);
	object_table_begin((struct object_table *)rig.table.base, SLOTS, STORE_BYTES, 1, seed);
	rig.private = memory((object_private_bytes(SLOTS) + 4095) / 4096 * 4096);
	object_private_begin((struct object_private *)rig.private.base,
			     (const struct object_table *)rig.table.base);
	memcpy(rig.private_header, rig.private.base, sizeof(rig.private_header));
	memcpy(rig.table_header, rig.table.base, sizeof(rig.table_header));
	memcpy(&rig.ipc_header, rig.ipc.base, sizeof(rig.ipc_header));
	rig.small_fd = memory(4096).fd;
	rig.wake_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void some_headers(struct input *in)
{
	struct ipc_header h = rig.ipc_header;
	uint8_t t[sizeof(rig.table_header)];
	uint8_t choice = input_byte(in);

	memcpy(t, rig.table_header, sizeof(t));
	input_spoil(in, t, sizeof(t), choice & 3);
	input_spoil(in, &h, sizeof(h), choice >> 2 & 3);
	memcpy(rig.table.base, t, sizeof(t));
	memcpy(rig.private.base, rig.private_header, sizeof(rig.private_header));
	if (choice & 64)
		input_spoil(in, rig.private.base, sizeof(rig.private_header), 1);
	memcpy(rig.ipc.base, &h, sizeof(h));
}

/* A packet with descriptors of which some may not be those that belong there. */
static void packet_send(struct input *in, int fd, const void *bytes, size_t length,
			const int *right, unsigned count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 32)];
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	uint8_t choice = input_byte(in);
	int fds[32];

	for (unsigned i = 0; i < 32; i++)
		fds[i] = i < count ? right[i] : rig.wake_fd;
	if (choice & 1)
		fds[input_byte(in) % 8] = choice & 2 ? rig.small_fd : rig.wake_fd;
	if (choice & 4)
		count = input_byte(in) % 32;
	if (choice & 8)
		part.iov_len = input_u16(in) % (length + 1);
	if (count > 0) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	}
	sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void touch(const void *from, uint64_t bytes)
{
	const uint8_t *p = from;

	if (bytes)
		rig.sum += p[0] + p[bytes - 1];
}

/* All that is looked for in it. */
static void touch_table(const struct object_table *t)
{
	for (uint32_t i = 0; i < t->slots; i++)
		touch(&t->slot[i], sizeof(t->slot[i]));
	for (uint32_t i = 0; i < t->buckets; i++)
		touch(object_table_bucket(t, i), sizeof(struct object_bucket));
}

static void touch_private(struct object_private *p)
{
	touch(p->note, p->slots * sizeof(*p->note));
	touch(object_private_tombstone(p), p->tombstones * sizeof(struct object_tombstone));
	touch((uint8_t *)p + object_private_texts(p->slots, 0),
	      object_private_bytes(p->slots) - object_private_texts(p->slots, 0));
}

/* ---- the dataplane reads -------------------------------------------------------------------- */

static void adopt(const int fds[ATTACH_STORE_FDS])
{
	struct shm store = {.fd = -1}, table = {.fd = -1}, private = {.fd = -1};

	if (shm_adopt(fds[0], &store) < 0)
		close(fds[0]);
	if (shm_adopt(fds[1], &table) < 0)
		close(fds[1]);
	if (store.base && table.base && shm_table_valid(&table, store.bytes)) {
		touch(store.base, store.bytes);
		touch_table((const struct object_table *)table.base);
		shm_private_adopt(fds[2], &table, &private);
	}
	if (private.fd < 0)
		close(fds[2]);
	shm_release(&private);
	shm_release(&table);
	shm_release(&store);
}

static bool none(const int fds[ATTACH_STORE_FDS])
{
	return fds[0] == -1 && fds[1] == -1 && fds[2] == -1;
}

static void run_request(struct input *in, const int pair[2])
{
	struct attach_request right = {.magic = ATTACH_MAGIC, .version = IPC_VERSION}, got;
	int fds[ATTACH_STORE_FDS] = {rig.store.fd, rig.table.fd, rig.private.fd};
	uint8_t choice = input_byte(in), bytes[sizeof(right) + 8] = {0};

	right.has_store = choice & 1;
	memcpy(bytes, &right, sizeof(right));
	input_spoil(in, bytes, sizeof(right), choice >> 1 & 1);
	packet_send(in, pair[1], bytes, sizeof(right) + (choice & 4 ? 8 : 0), fds,
		    right.has_store ? ATTACH_STORE_FDS : 0);
	int r = attach_read_request(pair[0], &got, fds);
	INPUT_MUST(r == 0 || none(fds));
	if (r == 0 && got.has_store)
		adopt(fds);
	else
		INPUT_MUST(none(fds));
}

/* ---- control reads -------------------------------------------------------------------------- */

static void touch_rings(const struct attach *a)
{
	const struct ipc_header *h = a->ipc;
	const uint8_t *base = (const uint8_t *)h;

	for (unsigned w = 0; w < a->reply.workers; w++) {
		touch(base + h->command_ring_offset[w], sizeof(struct ring));
		touch(base + h->event_ring_offset[w], sizeof(struct ring));
	}
	touch(base + h->msg_tx_offset, (uint64_t)MSG_SLOTS * MSG_SLOT_BYTES);
	touch(base + h->msg_rx_offset, (uint64_t)MSG_SLOTS * MSG_SLOT_BYTES);
}

static void run_reply(struct input *in, const int pair[2])
{
	struct attach_reply right = {.magic = ATTACH_MAGIC,
				     .version = IPC_VERSION,
				     .workers = WORKERS,
				     .rails = 2,
				     .store_bytes = STORE_BYTES};
	int fds[FDS] = {rig.store.fd, rig.table.fd, rig.private.fd, rig.ipc.fd,
			rig.wake_fd,  rig.wake_fd,  rig.wake_fd};
	struct attach a;

	attach_init(&a);
	for (int round = 0; round < ROUNDS && in->left > 0; round++) {
		struct attach_reply reply = right;
		uint8_t choice = input_byte(in);

		reply.adopted = choice & 1;
		input_spoil(in, &reply, sizeof(reply), choice >> 1 & 3);
		some_headers(in);
		packet_send(in, pair[1], &reply, sizeof(reply), fds, FDS);
		a.socket = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
		if (attach_finish(&a) != 1) {
			attach_end(&a);
			continue;
		}
		touch(a.store, a.store_bytes);
		touch_table(a.table);
		touch_private(a.private);
		touch_rings(&a);
		for (unsigned k = 0; k < a.reply.rails; k++)
			touch(a.reply.rail[k].port, strlen(a.reply.rail[k].port));
		attach_end(&a);
	}
	attach_forget_old(&a);
	a.old_store = a.store; /* nothing else lets it go */
	a.old_table = a.table;
	a.old_store_bytes = a.store_bytes;
	a.old_table_bytes = a.table_bytes;
	a.old_private = a.private;
	a.old_private_bytes = a.private_bytes;
	attach_forget_old(&a);
	if (a.store_fd >= 0)
		close(a.store_fd);
	if (a.table_fd >= 0)
		close(a.table_fd);
	if (a.private_fd >= 0)
		close(a.private_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	int pair[2];
	unsigned before;

	rig_once();
	before = input_open_fds();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
		return 0;
	some_headers(&in);
	if (input_byte(&in) & 1)
		run_reply(&in, pair);
	else
		run_request(&in, pair);
	close(pair[0]);
	close(pair[1]);
	INPUT_MUST(input_open_fds() == before);
	return 0;
}
