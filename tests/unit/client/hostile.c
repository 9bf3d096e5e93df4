/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that answers nonsense: every call ends with an error, nothing outside of the maps is
 * touched, and no descriptor leaks. */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>
#include "fixtures/client_test.h"

/* What the next answer to op looks like. */
static struct {
	enum session_op op;
	enum {
		BAD_OFFSET,
		BAD_SIZE,
		BAD_SLOT,
		BAD_OVERFLOW,
		BAD_OP,
		BAD_MAGIC,
		BAD_SHORT,
		BAD_LONG,
		BAD_STATUS,
		BAD_SEQ_THEN_HANG_UP,
		BAD_NO_FD,
		BAD_MANY_FDS,
		BAD_NO_PIN,
		BAD_EMPTY_THEN_HANG_UP,
		BAD_STORE_BYTES,
		BAD_TABLE_BYTES,
		BAD_ITEM,
		BAD_COUNT,
	} kind;
} bad;

static void bad_values(struct fake *f, int conn, const struct session_request *request,
		       struct session_reply *reply)
{
	reply->size = request->op == SESSION_CREATE ? request->size : 4096;
	reply->generation = 5;
	reply->store_bytes = FAKE_STORE_BYTES;
	reply->table_bytes = f->table_bytes;
	if (bad.kind == BAD_OFFSET)
		reply->offset = FAKE_STORE_BYTES - 1;
	if (bad.kind == BAD_OVERFLOW)
		reply->offset = UINT64_MAX - 10;
	if (bad.kind == BAD_SIZE)
		reply->size = UINT64_MAX;
	if (bad.kind == BAD_SLOT)
		reply->slot = FAKE_SLOTS;
	if (bad.kind == BAD_OP)
		reply->op = SESSION_SEAL;
	if (bad.kind == BAD_MAGIC)
		reply->magic = 0;
	if (bad.kind == BAD_STATUS)
		reply->status = 5;
	if (bad.kind == BAD_SEQ_THEN_HANG_UP)
		reply->seq += 1000;
	if (bad.kind == BAD_STORE_BYTES)
		reply->store_bytes = 1ull << 50;
	if (bad.kind == BAD_TABLE_BYTES)
		reply->table_bytes -= 1;
	if (f->conn[conn].pins && bad.kind != BAD_NO_PIN && request->pin < SESSION_PINS)
		atomic_store(&f->conn[conn].pins[request->pin],
			     pin_make(reply->slot, reply->generation));
}

static bool hook_bad(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		uint8_t more[2000];
	} packet = {.reply = fake_reply(request, 0)};
	if (request->op != bad.op)
		return false;
	bad_values(f, conn, request, &packet.reply);
	size_t length = sizeof(packet.reply);
	unsigned fds = request->op == SESSION_CREATE ? 1 : request->op == SESSION_ATTACH ? 3 : 0;
	int fd[8] = {f->store_fd, f->table_fd, f->store_fd, 0, 0, 0, 0, 0};
	if (bad.kind == BAD_SHORT)
		length -= 1;
	if (bad.kind == BAD_LONG)
		length = sizeof(packet);
	if (bad.kind == BAD_ITEM)
		length += 100;
	if (bad.kind == BAD_EMPTY_THEN_HANG_UP)
		length = 0;
	if (bad.kind == BAD_NO_FD)
		fds = 0;
	if (bad.kind == BAD_MANY_FDS)
		fds = 8;
	fake_send(f, conn, &packet, length, fd, fds);
	if (bad.kind == BAD_SEQ_THEN_HANG_UP || bad.kind == BAD_EMPTY_THEN_HANG_UP) {
		close(f->conn[conn].fd);
		f->conn[conn].fd = -1;
	}
	return true;
}

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int setup_bad(void **state)
{
	struct client *c = calloc(1, sizeof(*c));
	c->fake.hook = hook_bad;
	fake_start(&c->fake);
	bad.op = SESSION_OPS;
	*state = c;
	return 0;
}

static void plan_bad(struct client *c, enum session_op op, int kind)
{
	pthread_mutex_lock(&c->fake.lock);
	bad.op = op;
	bad.kind = kind;
	pthread_mutex_unlock(&c->fake.lock);
}

/* Opens, makes the call that gets the bad answer, closes; says what came out. */
static int provoke(struct client *c, enum session_op op, int kind)
{
	sar *s;
	sar_buffer b;
	sar_info info;
	unsigned before = count_fds();
	plan_bad(c, op == SESSION_ATTACH ? op : SESSION_OPS, kind);
	int r = sar_open(c->fake.path, &s);
	if (r == 0) {
		plan_bad(c, op, kind);
		if (op == SESSION_CREATE)
			r = sar_create(s, test_id("bad"), NULL, 4096, &b);
		else if (op == SESSION_GET)
			r = sar_get(s, test_id("bad"), 60000000000, &b);
		else
			r = sar_info_get(s, test_id("bad"), &info);
		sar_close(s);
	}
	for (int i = 0; i < 60000 && count_fds() > before; i++)
		usleep(1000); /* the fake closes its end */
	assert_true(count_fds() <= before);
	assert_true(sar_error_detail()[0] != '\0');
	return r;
}

static void bad_create(void **state)
{
	static const int kinds[] = {BAD_OFFSET, BAD_OVERFLOW, BAD_SIZE,	   BAD_SLOT,
				    BAD_OP,	BAD_MAGIC,    BAD_SHORT,   BAD_LONG,
				    BAD_STATUS, BAD_NO_FD,    BAD_MANY_FDS};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		assert_int_equal(provoke(*state, SESSION_CREATE, kinds[i]), -EPROTO);
	struct client *c = *state;
	for (int i = 0; i < 60000 && atomic_load(&c->fake.aborts) < 5; i++)
		usleep(1000);
	assert_true(atomic_load(&c->fake.aborts) >= 5); /* what was misplaced is given back */
}

static void bad_get(void **state)
{
	static const int kinds[] = {BAD_OFFSET, BAD_OVERFLOW, BAD_SIZE, BAD_SLOT,   BAD_OP,
				    BAD_MAGIC,	BAD_SHORT,    BAD_LONG, BAD_STATUS, BAD_NO_PIN};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		assert_int_equal(provoke(*state, SESSION_GET, kinds[i]), -EPROTO);
	assert_int_equal(provoke(*state, SESSION_GET, BAD_SEQ_THEN_HANG_UP), -ENOTCONN);
	assert_int_equal(provoke(*state, SESSION_GET, BAD_EMPTY_THEN_HANG_UP), -ENOTCONN);
}

static void bad_stat(void **state)
{
	assert_int_equal(provoke(*state, SESSION_STAT, BAD_ITEM), -EPROTO);
	assert_int_equal(provoke(*state, SESSION_STAT, BAD_LONG), -EPROTO);
	assert_int_equal(provoke(*state, SESSION_STAT, BAD_COUNT), -EPROTO);
}

static void bad_attach(void **state)
{
	static const int kinds[] = {BAD_STORE_BYTES, BAD_TABLE_BYTES, BAD_NO_FD,  BAD_MANY_FDS,
				    BAD_SHORT,	     BAD_LONG,	      BAD_STATUS, BAD_OP};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		assert_int_equal(provoke(*state, SESSION_ATTACH, kinds[i]), -EPROTO);
	assert_int_equal(provoke(*state, SESSION_ATTACH, BAD_SEQ_THEN_HANG_UP), -ENOTCONN);
}

/* A table whose entry points outside of the store, or whose header does not hold. */
static void bad_table(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("outside");
	sar_buffer b;
	uint32_t slot = fake_fetching(&c->fake, &id, 10, 10);
	assert_int_equal(sar_open(c->fake.path, &c->s), 0);
	c->fake.table->slot[slot].offset = FAKE_STORE_BYTES - 5;
	assert_int_equal(sar_get(c->s, test_id("outside"), 0, &b), -EPROTO);
	c->fake.table->slot[slot].offset = 0;
	c->fake.table->slot[slot].size = UINT64_MAX;
	assert_int_equal(sar_get(c->s, test_id("outside"), 0, &b), -EPROTO);
	c->fake.table->slot[slot].size = 10;
	c->fake.table->slot[slot].meta_bytes = SAR_META_MAX + 1;
	assert_int_equal(sar_get(c->s, test_id("outside"), 0, &b), -EPROTO);
	c->fake.table->slot[slot].meta_bytes = 6;
	c->fake.table->slot[slot].offset = FAKE_STORE_BYTES - 15;
	assert_int_equal(sar_get(c->s, test_id("outside"), 0, &b), -EPROTO);
	c->fake.table->slot[slot].offset = 0;
	assert_int_equal(sar_get(c->s, test_id("outside"), 0, &b), 0);
	sar_close(c->s);
	c->s = NULL;
	c->fake.table->slots = 1u << 31;
	assert_int_equal(provoke(c, SESSION_STAT, BAD_COUNT), -EPROTO);
	c->fake.table->slots = FAKE_SLOTS - 1;
	assert_int_equal(provoke(c, SESSION_STAT, BAD_COUNT), -EPROTO);
	c->fake.table->slots = FAKE_SLOTS;
}

#define test_bad(name) cmocka_unit_test_setup_teardown(name, setup_bad, client_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_bad(bad_create), test_bad(bad_get),   test_bad(bad_stat),
		test_bad(bad_attach), test_bad(bad_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
