/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client reads of its node: replies over the socket, the object table, and what an ATTACH
 * brings. The replies are there before the calls are made and behind them the socket is at its end,
 * so nothing waits. Whatever a call hands out is touched, and no descriptor may be left.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "link/handle.h"
#include "input.h"
#include "sarissa/sarissa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STORE_BYTES = 1 << 16, SLOTS = 8, REPLIES = 24, CALLS = 12, BUFFERS = 4 };

static struct {
	uint8_t *store;
	struct object_table *table;
	int store_fd, table_fd, pins_fd, small_fd;
	_Atomic uint64_t pins[SESSION_PINS];
	uint64_t sum; /* of what was read, so that it is */
} rig;

static const uint64_t seed[2] = {1, 2};

static int memory(uint64_t bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	INPUT_MUST(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	return fd;
}

static void rig_once(void)
{
	if (rig.store)
		return;
	rig.store = calloc(1, STORE_BYTES); /* of just this size */
	rig.table = calloc(1, object_table_bytes(SLOTS));
	rig.store_fd = memory(STORE_BYTES);
	rig.table_fd = memory(object_table_bytes(SLOTS));
	rig.pins_fd = memory(SESSION_PIN_BYTES);
	rig.small_fd = memory(100);
	INPUT_MUST(rig.store && rig.table);
}

/* Few ids. */
static sar_id some_id(struct input *in)
{
	sar_id id = {{input_byte(in) % 4}};

	return id;
}

static void some_table(struct input *in)
{
	memset(rig.table, 0, object_table_bytes(SLOTS));
	object_table_begin(rig.table, SLOTS, STORE_BYTES, 1, seed);
	for (uint32_t i = 0; i < 4; i++) {
		struct object_slot *slot = &rig.table->slot[i];

		slot->id.bytes[0] = (uint8_t)i;
		slot->state = input_byte(in) % (OBJECT_ZOMBIE + 1);
		slot->generation = 1;
		slot->size = 64;
		slot->watermark = 64;
		slot->chunk_bytes = 64;
		struct object_key key = object_table_key(rig.table, &slot->id);
		object_table_bucket(rig.table, key.bucket)->place[i] =
			object_place_make(key.mark, input_byte(in) % 16 ? i : i * 77);
	}
	input_spoil(in, rig.table->slot, sizeof(struct object_slot) * 4, input_byte(in) % 4);
}

/* ---- replies ------------------------------------------------------------------------------- */

static void reply_send(int fd, const void *bytes, size_t length, const int *fds, unsigned count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

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

/* What follows the reply to this request. */
static size_t reply_item(uint16_t op)
{
	switch (op) {
	case SESSION_STAT:
	case SESSION_LIST:
	case SESSION_WATCH:
		return sizeof(struct session_object);
	case SESSION_STATUS:
		return sizeof(struct session_node);
	case SESSION_REDUCED:
		return sizeof(struct session_sources);
	case SESSION_GROUP:
		return sizeof(struct group_answer);
	default:
		return 0;
	}
}

static void put_reply(struct input *in, int fd, uint32_t *seq)
{
	_Alignas(8) uint8_t room[sizeof(struct session_reply) + sizeof(union session_item) + 64];
	struct session_reply r = {.magic = SESSION_MAGIC, .generation = 1, .size = 64};
	uint8_t choice = input_byte(in);
	int fds[8] = {rig.store_fd, rig.store_fd, rig.small_fd, rig.table_fd,
		      rig.pins_fd,  rig.store_fd, rig.store_fd, rig.store_fd};
	size_t length = sizeof(r);

	memset(room, 0, sizeof(room));
	r.op = SESSION_CREATE + input_byte(in) % (SESSION_OPS - SESSION_CREATE);
	r.seq = *seq;
	r.slot = choice & 3;
	r.watermark = 64;
	r.flags = choice & 4 ? SESSION_FLAG_MORE : choice & 8 ? SESSION_FLAG_STAGED : 0;
	r.status = choice & 16 ? -(int32_t)input_byte(in) : 0;
	if (!(r.flags & SESSION_FLAG_MORE))
		++*seq;
	memcpy(room, &r, sizeof(r));
	if (choice & 32)
		length += reply_item(r.op);
	if (choice & 64)
		input_spoil(in, room, length, 1 + input_byte(in) % 4);
	if (choice & 128)
		length = input_u16(in) % (sizeof(room) + 1);
	reply_send(fd, room, length, fds + (choice & 1),
		   choice & 128 ? input_byte(in) % 8 : r.op == SESSION_CREATE);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void touch(const sar_buffer *b)
{
	const uint8_t *p = b->data;

	INPUT_MUST(b->ready <= b->size && (p || !b->size));
	for (uint64_t i = 0; i < b->size; i += 61)
		rig.sum += p[i];
	if (b->size)
		rig.sum += p[b->size - 1];
}

static int see_info(const sar_info *info, void *arg)
{
	INPUT_MUST(strlen(info->name) <= SAR_NAME_MAX);
	rig.sum += info->size;
	return 0;
}

static int see_node(const sar_node *node, void *arg)
{
	INPUT_MUST(strlen(node->link) < sizeof(node->link));
	rig.sum += node->objects;
	return 0;
}

static void call_directory(struct input *in, sar *s, uint8_t which)
{
	sar_holder holders[8];
	sar_id ids[4] = {some_id(in), {{9}}, {{10}}, {{11}}};
	unsigned present;
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	sar_info info;
	int r;

	switch (which % 6) {
	case 0:
		if (sar_info_get(s, ids[0], &info) == 0)
			see_info(&info, NULL);
		break;
	case 1:
		r = sar_holders(s, ids[0], holders, 8);
		for (int i = 0; i < r && i < 8; i++)
			INPUT_MUST(holders[i].upstreams <= SAR_UPSTREAMS_MAX);
		break;
	case 2:
		sar_list(s, see_info, NULL);
		break;
	case 3:
		sar_nodes(s, see_node, NULL);
		break;
	case 4:
		sar_reduce(s, ids[0], "sum", ids + 1, 3, &how, SAR_FOREVER);
		break;
	default:
		r = sar_reduce_sources(s, ids[0], 0, ids, 4);
		INPUT_MUST(r <= (int)(1u << 30));
		r = sar_reduce_progress(s, ids[0], ids, 4, &present);
		INPUT_MUST(r < 0 ? present == 0 : present <= (unsigned)r);
		INPUT_MUST(r <= (int)(1u << 30));
	}
}

static void call(struct input *in, sar *s, sar_buffer *b)
{
	uint8_t which = input_byte(in);
	sar_buffer *own = &b[which >> 4 & 3];

	switch (which % 8) {
	case 0:
	case 1:
		sar_release(s, own);
		if (!own->data && (which & 1 ? sar_get(s, some_id(in), 0, own)
					     : sar_get_begin(s, some_id(in), 0, own)) == 0)
			touch(own);
		break;
	case 2:
		if (!own->data && sar_create(s, some_id(in), "n", input_byte(in), own) == 0) {
			memset(own->data, 1, own->size);
			sar_publish(s, own, own->size / 2);
		}
		break;
	case 3:
		if (sar_seal(s, own) < 0)
			sar_abort(s, own);
		break;
	case 4:
		if (sar_wait(s, own, own->size, 0) == 0)
			touch(own);
		break;
	case 5:
		sar_put(s, some_id(in), "p", "0123456789abcdef", input_byte(in) % 17);
		break;
	case 6:
		sar_delete(s, some_id(in));
		break;
	default:
		call_directory(in, s, which >> 3);
	}
}

/* ---- the connection ------------------------------------------------------------------------ */

static void give_back(void *owner, uint16_t op, uint32_t pin, struct mux_result *result)
{
	struct sar *s = owner;

	if (pin != SESSION_PIN_NONE)
		pins_give(&s->pins, pin);
}

static void run_calls(struct input *in, int fd)
{
	static char nowhere[200];
	static uint32_t forks = 1;
	static struct sar s;
	sar_buffer b[BUFFERS] = {{0}};

	memset(nowhere, 'x', sizeof(nowhere) - 1); /* too long: nobody is looked for */
	memset(&s, 0, sizeof(s));
	memset(rig.pins, 0, sizeof(rig.pins));
	INPUT_MUST(mux_init(&s.mux, fd, give_back, &s) == 0);
	pthread_mutex_init(&s.joining, NULL);
	pthread_mutex_init(&s.reduces.lock, NULL);
	pthread_mutex_init(&s.kept.lock, NULL);
	s.map = (struct map){.store = rig.store,
			     .store_bytes = STORE_BYTES,
			     .table = rig.table,
			     .table_bytes = object_table_bytes(SLOTS),
			     .align = 4096,
			     .table_align = 4096};
	s.pins.word = rig.pins;
	for (unsigned i = 0; i < 4; i++) /* what GET has pinned, often */
		rig.pins[i] = pin_make(i, 1);
	s.fork_guard = &forks;
	s.path = nowhere;
	for (int i = 0; i < CALLS && in->left > 0; i++)
		call(in, &s, b);
	for (int i = 0; i < BUFFERS; i++) {
		sar_release(&s, &b[i]);
		sar_abort(&s, &b[i]);
	}
	mux_fini(&s.mux);
	kept_fini(&s.kept);
	reduces_fini(&s.reduces);
}

static void run_replies(struct input *in)
{
	int pair[2];
	uint32_t seq = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return;
	some_table(in);
	for (unsigned left = input_byte(in) % REPLIES; left > 0; left--)
		put_reply(in, pair[1], &seq);
	shutdown(pair[1], SHUT_WR);
	run_calls(in, pair[0]);
	close(pair[1]);
}

/* Sizes and a table's header of a node that is of another version, or worse. */
static void run_map(struct input *in)
{
	struct object_table header = {0};
	int fd[3] = {rig.store_fd, rig.table_fd, rig.pins_fd};
	uint64_t store_bytes = STORE_BYTES, table_bytes = object_table_bytes(SLOTS);
	uint8_t choice = input_byte(in);
	struct map m;

	object_table_begin(&header, SLOTS, STORE_BYTES, 1, seed);
	input_spoil(in, &header, sizeof(header), choice & 3);
	INPUT_MUST(pwrite(rig.table_fd, &header, sizeof(header), 0) == sizeof(header));
	if (choice & 4)
		input_spoil(in, &store_bytes, sizeof(store_bytes), 1);
	if (choice & 8)
		input_spoil(in, &table_bytes, sizeof(table_bytes), 1);
	if (choice & 16)
		fd[input_byte(in) % 3] = rig.small_fd;
	if (map_open(&m, fd, store_bytes, table_bytes) < 0)
		return;
	rig.sum += m.store[0] + m.store[m.store_bytes - 1];
	for (uint32_t i = 0; i < m.table->slots; i++)
		rig.sum += m.table->slot[i].size;
	map_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned before;

	rig_once();
	before = input_open_fds();
	if (input_byte(&in) % 8 == 7)
		run_map(&in);
	else
		run_replies(&in);
	INPUT_MUST(input_open_fds() == before);
	return 0;
}
