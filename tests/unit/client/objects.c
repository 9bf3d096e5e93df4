/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of this node: put, get, list, delete, misuse, and that a local get makes no system call.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fixtures/client_fake.h"
#include "fixtures/client_test.h"
#include "api/get.h"
#include "link/handle.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static const uint64_t sizes[] = {0, 1, 63, 64, 4095, 4096, 4097, 65535, 65536, 65537, 1048583};

static void objects_of_every_size(void **state)
{
	struct client *c = *state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *data = test_pattern(sizes[i]);
		sar_id id = sar_id_of(&i, sizeof(i));
		sar_buffer b;
		assert_int_equal(sar_put(c->s, id, "a name", data, sizes[i]), 0);
		assert_int_equal(sar_get(c->s, id, 0, &b), 0);
		assert_int_equal(b.size, sizes[i]);
		assert_int_equal(b.ready, sizes[i]);
		assert_non_null(b.data);
		assert_memory_equal(b.data, data, sizes[i]);
		sar_release(c->s, &b);
		assert_null(b.data);
		free(data);
	}
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 0);
}

/* What is written into a private map is seen there only, and beyond it lies nobody else's object.
 */
static void a_private_map_of_an_object(void **state)
{
	struct client *c = *state;
	sar_id id = sar_id_of("private", 7);
	for (size_t i = 1; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *data = test_pattern(sizes[i]);
		struct map_range one, other;
		sar_buffer b;
		assert_int_equal(sar_put(c->s, id, "private", data, sizes[i]), 0);
		assert_int_equal(sar_get(c->s, id, 0, &b), 0);
		assert_int_equal(get_private(c->s, &b, &one), 0);
		assert_int_equal(get_private(c->s, &b, &other), 0);
		assert_memory_equal(one.data, data, sizes[i]);
		memset(one.data, 0xee, sizes[i]);
		assert_memory_equal(other.data, data, sizes[i]);
		assert_memory_equal(b.data, data, sizes[i]);
		munmap(one.base, one.bytes);
		munmap(other.base, other.bytes);
		sar_release(c->s, &b);
		assert_int_equal(get_private(c->s, &b, &one), -EINVAL);
		assert_int_equal(sar_delete(c->s, id), 0);
		free(data);
	}
}

/* The caller may have closed our descriptor, and another file may have its number now. */
static void a_private_map_without_its_descriptor(void **state)
{
	struct client *c = *state;
	sar_id id = sar_id_of("private", 7);
	struct map_range range;
	sar_buffer b;
	assert_int_equal(sar_put(c->s, id, "private", "bytes", 5), 0);
	assert_int_equal(sar_get(c->s, id, 0, &b), 0);
	int fd = open("/dev/zero", O_RDWR);
	assert_int_equal(dup2(fd, c->s->map.fd), c->s->map.fd);
	assert_int_equal(get_private(c->s, &b, &range), -ENOTSUP);
	close(fd);
	sar_release(c->s, &b);
}

static unsigned descriptors(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Written in memory of their own, of which nothing stays. */
static void objects_written_to_staging(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	c->fake.staged = true;
	assert_int_equal(sar_delete(c->s, test_id("gone")), -ENOENT); /* it is done attaching */
	unsigned before = descriptors();
	objects_of_every_size(state);
	assert_int_equal(sar_create(c->s, test_id("gone"), NULL, 100, &b), 0);
	assert_int_equal(sar_abort(c->s, &b), 0);
	assert_int_equal(descriptors(), before);
}

static void deleted_is_gone(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("twice");
	assert_int_equal(sar_put(c->s, id, NULL, "abc", 3), 0);
	assert_int_equal(sar_delete(c->s, id), 0);
	assert_int_equal(sar_delete(c->s, id), -ENOENT);
	sar_buffer b;
	assert_int_equal(sar_get(c->s, id, 0, &b), -ENOENT);
	assert_int_equal(sar_put(c->s, id, NULL, "xyz", 3), 0);
}

static void create_publish_seal(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("stream");
	sar_buffer w, r;
	assert_int_equal(sar_create(c->s, id, "stream", 10000, &w), 0);
	assert_int_equal(w.size, 10000);
	memset(w.data, 'a', 5000);
	assert_int_equal(sar_publish(c->s, &w, 5000), 0);
	assert_int_equal(sar_publish(c->s, &w, 4000), -EINVAL);
	assert_int_equal(sar_publish(c->s, &w, 10001), -EINVAL);
	assert_int_equal(sar_get_begin(c->s, id, 0, &r), 0);
	assert_int_equal(r.size, 10000);
	assert_int_equal(r.ready, 5000);
	assert_int_equal(sar_wait(c->s, &r, 5000, 0), 0);
	assert_int_equal(sar_wait(c->s, &r, 5001, 0), -ETIMEDOUT);
	assert_int_equal(sar_wait(c->s, &w, 1, 0), -EINVAL);
	memset((char *)w.data + 5000, 'b', 5000);
	assert_int_equal(sar_seal(c->s, &w), 0);
	assert_int_equal(sar_seal(c->s, &w), -EINVAL);
	assert_int_equal(sar_publish(c->s, &w, 10000), -EINVAL);
	assert_int_equal(sar_abort(c->s, &w), -EINVAL);
	assert_int_equal(sar_wait(c->s, &r, UINT64_MAX, 0), 0);
	assert_int_equal(r.ready, 10000);
	assert_int_equal(((char *)r.data)[4999], 'a');
	assert_int_equal(((char *)r.data)[9999], 'b');
	assert_int_equal(sar_seal(c->s, &r), -EINVAL);
	sar_release(c->s, &r);
	sar_release(c->s, &r);
}

static void abort_is_stale_for_readers(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("given up");
	sar_buffer w, r;
	assert_int_equal(sar_create(c->s, id, NULL, 100, &w), 0);
	assert_int_equal(sar_get_begin(c->s, id, 0, &r), 0);
	assert_int_equal(sar_abort(c->s, &w), 0);
	assert_null(w.data);
	assert_int_equal(sar_wait(c->s, &r, 1, SAR_FOREVER), -ESTALE);
	sar_release(c->s, &r);
	assert_int_equal(sar_get(c->s, id, 0, &r), -ENOENT);
}

/* Is the last failure's text about the object: begins with its id or name, and says it once? */
static bool says(const char *name, const char *rest)
{
	const char *detail = sar_error_detail();
	size_t length = strlen(name);
	if (strncmp(detail, name, length) == 0 && strncmp(detail + length, ": ", 2) == 0 &&
	    !strstr(detail + length, name) && strstr(detail, rest))
		return true;
	print_message("%s\n", detail);
	return false;
}

static void failures_name_the_object(void **state)
{
	struct client *c = *state;
	char named[3 + 2 * SAR_ID_BYTES + 1] = "id:";
	sar_id id = test_id("x");
	sar_buffer w, r;
	sar_info info;
	for (int i = 0; i < SAR_ID_BYTES; i++)
		snprintf(named + 3 + 2 * i, 3, "%02x", id.bytes[i]);

	assert_int_equal(sar_get(c->s, id, 0, &r), -ENOENT);
	assert_true(says(named, "no such object"));
	assert_int_equal(sar_get(c->s, id, 1000000, &r), -ETIMEDOUT);
	assert_true(says(named, ""));
	assert_int_equal(sar_get_begin(c->s, id, 0, &r), -ENOENT);
	assert_true(says(named, ""));
	assert_int_equal(sar_info_get(c->s, id, &info), -ENOENT);
	assert_true(says(named, ""));
	assert_int_equal(sar_holders(c->s, id, NULL, 0), -ENOENT);
	assert_true(says(named, ""));
	assert_int_equal(sar_delete(c->s, id), -ENOENT);
	assert_true(says(named, ""));
	assert_int_equal(sar_reduce_sources(c->s, id, 0, NULL, 0), -ENOENT);
	assert_true(says(named, ""));

	assert_int_equal(sar_put(c->s, id, "x", "1234", 4), 0);
	assert_int_equal(sar_put(c->s, id, "x", "123", 3), -EEXIST);
	assert_true(says("'x'", "with 4 bytes"));
	assert_int_equal(sar_put(c->s, id, NULL, "123", 3), -EEXIST);
	assert_true(says(named, "with 4 bytes"));
	assert_int_equal(sar_put(c->s, id, "a\nb", "1235", 4), -EEXIST);
	assert_true(says("'a?b'", "other bytes"));
	assert_int_equal(sar_create(c->s, id, "x", 4, &w), -EEXIST);
	assert_true(says("'x'", ""));
	assert_int_equal(sar_delete(c->s, id), 0);

	assert_int_equal(sar_create(c->s, id, "x", 4, &w), 0);
	assert_int_equal(sar_get_begin(c->s, id, 0, &r), 0);
	assert_int_equal(sar_wait(c->s, &r, 1, 0), -ETIMEDOUT);
	assert_true(says(named, "0 of 4 bytes"));
	assert_int_equal(sar_wait(c->s, &r, 1, 1000000), -ETIMEDOUT);
	assert_true(says(named, ""));
	assert_int_equal(sar_abort(c->s, &w), 0);
	assert_int_equal(sar_wait(c->s, &r, 1, 0), -ESTALE);
	sar_release(c->s, &r);

	char longest[SAR_NAME_MAX + 1], quoted[SAR_NAME_MAX + 3];
	memset(longest, 'n', SAR_NAME_MAX);
	longest[SAR_NAME_MAX] = '\0';
	snprintf(quoted, sizeof(quoted), "'%s'", longest);
	assert_int_equal(sar_create(c->s, id, longest, FAKE_STORE_BYTES + 1, &w), -ENOSPC);
	assert_true(says(quoted, "remove something"));
}

static void store_full_says_why(void **state)
{
	struct client *c = *state;
	sar_buffer w;
	assert_int_equal(sar_create(c->s, test_id("big"), "big", FAKE_STORE_BYTES + 1, &w),
			 -ENOSPC);
	assert_true(says("'big'", ": the store is full: remove something"));
	assert_int_equal(sar_create(c->s, test_id("big"), NULL, UINT64_MAX, &w), -EFBIG);
	char name[SAR_NAME_MAX + 2];
	memset(name, 'n', sizeof(name));
	name[SAR_NAME_MAX + 1] = '\0';
	assert_int_equal(sar_create(c->s, test_id("n"), name, 1, &w), -ENAMETOOLONG);
	name[SAR_NAME_MAX] = '\0';
	assert_int_equal(sar_create(c->s, test_id("n"), name, 1, &w), 0);
	assert_int_equal(sar_abort(c->s, &w), 0);
}

static void pin_stands_while_in_use(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("pinned");
	struct object_id object;
	struct object_slot image;
	memcpy(object.bytes, id.bytes, sizeof(object.bytes));
	assert_int_equal(sar_put(c->s, id, NULL, "pinned", 6), 0);
	int64_t slot = object_table_find(c->fake.table, &object, &image);
	assert_true(slot >= 0);
	assert_false(fake_pinned(&c->fake, (uint32_t)slot));
	sar_buffer a, b;
	assert_int_equal(sar_get(c->s, id, 0, &a), 0);
	assert_int_equal(sar_get(c->s, id, 0, &b), 0);
	sar_release(c->s, &a);
	assert_true(fake_pinned(&c->fake, (uint32_t)slot));
	assert_int_equal(sar_delete(c->s, id), 0);
	assert_memory_equal(b.data, "pinned", 6);
	assert_int_equal(sar_wait(c->s, &b, 6, 0), 0);
	sar_release(c->s, &b);
	assert_false(fake_pinned(&c->fake, (uint32_t)slot));
}

static void too_many_buffers(void **state)
{
	struct client *c = *state;
	static sar_buffer b[SESSION_PINS];
	sar_buffer more;
	sar_id id = test_id("many");
	assert_int_equal(sar_put(c->s, id, NULL, "x", 1), 0);
	for (int i = 0; i < SESSION_PINS; i++)
		assert_int_equal(sar_get(c->s, id, 0, &b[i]), 0);
	assert_int_equal(sar_get(c->s, id, 0, &more), -EMFILE);
	assert_int_equal(sar_create(c->s, test_id("other"), NULL, 1, &more), -EMFILE);
	sar_release(c->s, &b[500]);
	assert_int_equal(sar_get(c->s, id, 0, &more), 0);
	sar_release(c->s, &more);
	for (int i = 0; i < SESSION_PINS; i++)
		sar_release(c->s, &b[i]);
}

static int count_one(const sar_info *info, void *arg)
{
	assert_int_equal(info->copies, 1);
	return ++*(int *)arg == 3 ? 77 : 0;
}

static int count_node(const sar_node *node, void *arg)
{
	int *count = arg;
	assert_int_equal(node->self, *count == 0);
	assert_int_equal(node->state, *count == 0 ? SAR_NODE_UP : SAR_NODE_DOWN);
	(*count)++;
	return 0;
}

static void directory_calls(void **state)
{
	struct client *c = *state;
	int count = 0;
	assert_int_equal(sar_list(c->s, count_one, &count), 0);
	assert_int_equal(count, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sar_put(c->s, sar_id_of(&i, sizeof(i)), NULL, &i, sizeof(i)), 0);
	assert_int_equal(sar_list(c->s, count_one, &count), 77);
	assert_int_equal(count, 3);
	count = 0;
	assert_int_equal(sar_nodes(c->s, count_node, &count), 0);
	assert_int_equal(count, 2);
	sar_info info;
	sar_holder holder[2];
	int one = 1;
	sar_id id = sar_id_of(&one, sizeof(one));
	assert_int_equal(sar_info_get(c->s, id, &info), 0);
	assert_int_equal(info.size, sizeof(int));
	assert_memory_equal(info.id.bytes, id.bytes, sizeof(id.bytes));
	assert_int_equal(sar_holders(c->s, id, holder, 2), 1);
	assert_int_equal(holder[0].complete, 1);
	assert_int_equal(sar_holders(c->s, id, NULL, 0), 1);
	assert_int_equal(sar_info_get(c->s, test_id("nobody"), &info), -ENOENT);
}

/* Kills this thread at the first system call other than exit_group. */
static void forbid_system_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(99);
}

/* In a process of its own: opens, forbids system calls, reads id a thousand times. */
static int get_without_system_calls(const char *path, sar_id id)
{
	pid_t pid = fork();
	if (pid == 0) {
		sar *s;
		sar_buffer b;
		if (sar_open(path, &s) < 0)
			_exit(98);
		forbid_system_calls();
		for (int i = 0; i < 1000; i++) {
			if (sar_get(s, id, i % 2 ? SAR_FOREVER : 1000000000, &b) < 0)
				_exit(97);
			if (b.size != 5 || memcmp(b.data, "local", 5) != 0)
				_exit(96);
			sar_release(s, &b);
		}
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void local_get_makes_no_system_call(void **state)
{
	struct client *c = *state;
	if (SANITIZED)
		SKIP("the sanitizers' run-time library makes system calls of its own");
	assert_int_equal(sar_put(c->s, test_id("here"), NULL, "local", 5), 0);
	int status = get_without_system_calls(c->fake.path, test_id("here"));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
		SKIP("no seccomp here");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* and the measure does measure: an object that is not here needs the node */
	status = get_without_system_calls(c->fake.path, test_id("elsewhere"));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void library_and_headers_have_one_version(void **state)
{
	char text[32];
	snprintf(text, sizeof(text), "%d.%d.%d", SAR_VERSION_MAJOR, SAR_VERSION_MINOR,
		 SAR_VERSION_PATCH);
	assert_string_equal(sar_version(), text);
}

static void child_cannot_use_the_handle(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	assert_int_equal(sar_put(c->s, test_id("f"), NULL, "f", 1), 0);
	assert_int_equal(sar_get(c->s, test_id("f"), 0, &b), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sar_buffer mine;
		int r = sar_get(c->s, test_id("f"), 0, &mine);
		int q = sar_delete(c->s, test_id("f"));
		sar_release(c->s, &b);
		sar_close(c->s);
		_exit(r == -EINVAL && q == -EINVAL ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sar_wait(c->s, &b, 1, 0), 0);
	sar_release(c->s, &b);
	assert_int_equal(sar_get(c->s, test_id("f"), 0, &b), 0);
	sar_release(c->s, &b);
}

static uint32_t slot_of(struct client *c, const char *name)
{
	struct object_id object = test_object(name);
	struct object_slot image;
	int64_t slot = object_table_find(c->fake.table, &object, &image);
	assert_true(slot >= 0);
	return (uint32_t)slot;
}

/* The page of pins is shared with it: what it tries to make or give up must not clear a word. */
static void child_leaves_the_pins_alone(void **state)
{
	struct client *c = *state;
	sar_buffer made, b;
	int go[2], status;
	char byte = 0;
	assert_int_equal(sar_put(c->s, test_id("f"), NULL, "f", 1), 0);
	assert_int_equal(sar_create(c->s, test_id("made"), NULL, 8, &made), 0);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sar_buffer mine;
		int wrong = read(go[0], &byte, 1) != 1;
		wrong += sar_create(c->s, test_id("other"), NULL, 8, &mine) != -EINVAL;
		wrong += sar_put(c->s, test_id("other"), NULL, "o", 1) != -EINVAL;
		wrong += sar_abort(c->s, &made) != -EINVAL;
		_exit(wrong);
	}
	assert_int_equal(sar_get(c->s, test_id("f"), 0, &b), 0);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(fake_pinned(&c->fake, slot_of(c, "f")));
	assert_true(fake_pinned(&c->fake, slot_of(c, "made")));
	sar_release(c->s, &b);
	assert_int_equal(sar_seal(c->s, &made), 0);
	close(go[0]);
	close(go[1]);
}

/* Where the library has mapped the table. */
static void *table_mapped(size_t *bytes)
{
	char line[512];
	unsigned long begin = 0, end = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, " r--s ") && strstr(line, "memfd:table"))
			assert_int_equal(sscanf(line, "%lx-%lx", &begin, &end), 2);
	fclose(maps);
	*bytes = end - begin;
	return (void *)begin;
}

/* It has not inherited the table: what it has mapped there since is its own. */
static void child_closes_only_what_it_has(void **state)
{
	struct client *c = *state;
	size_t bytes;
	int status;
	void *at = table_mapped(&bytes);
	assert_non_null(at);
	pid_t pid = fork();
	if (pid == 0) {
		volatile char *mine =
			mmap(at, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (mine != at)
			_exit(99);
		mine[0] = 1;
		sar_close(c->s);
		_exit(mine[0] - 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void *get_later(void *arg)
{
	struct client *c = arg;
	sar_buffer b;
	int r = sar_get(c->s, test_id("later"), 60000000000, &b);
	if (r == 0)
		sar_release(c->s, &b);
	return (void *)(intptr_t)r;
}

/* Whom the other threads of the parent wait for does not come in the child. */
static void child_closes_while_others_wait(void **state)
{
	struct client *c = *state;
	pthread_t thread[3];
	void *result;
	int status;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, get_later, c), 0);
	while (atomic_load(&c->fake.requests[SESSION_GET]) < 3)
		usleep(1000);
	usleep(50000); /* until they sleep */
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		sar_close(c->s);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sar_put(c->s, test_id("later"), NULL, "l", 1), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_null(result);
	}
}

/* Nor for a lock that another thread of the parent had. */
static void child_waits_for_no_lock(void **state)
{
	const sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	struct client *c = *state;
	sar_id source = test_id("source"), target = test_id("sum");
	int status;
	assert_int_equal(sar_reduce(c->s, target, NULL, &source, 1, &how, SAR_FOREVER), 0);
	pthread_mutex_lock(&c->s->reduces.lock);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		int wrong = sar_reduce_sources(c->s, target, 0, NULL, 0) != -EINVAL;
		wrong += sar_delete(c->s, target) != -EINVAL;
		_exit(wrong);
	}
	pthread_mutex_unlock(&c->s->reduces.lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void arguments_and_texts(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	sar *s;
	assert_int_equal(sar_get(c->s, test_id("x"), -1, &b), -EINVAL);
	assert_int_equal(sar_put(c->s, test_id("x"), NULL, NULL, 1), -EINVAL);
	assert_int_equal(sar_open("/nonexistent/control.sock", &s), -ECONNREFUSED);
	assert_non_null(strstr(sar_error_detail(), "/nonexistent/control.sock"));
	assert_string_equal(sar_strerror(-ENOSPC), "the store is full");
	assert_string_equal(sar_strerror(ENOSPC), "the store is full");
	assert_string_equal(sar_strerror(123456), "unknown error");
	/* the published test vector of XXH3-128 with an empty input and seed 0 */
	static const uint8_t empty[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
					  0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
	sar_id id = sar_id_of(NULL, 0);
	assert_memory_equal(id.bytes, empty, sizeof(empty));
	sar_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(objects_of_every_size),
		test_client(a_private_map_of_an_object),
		test_client(a_private_map_without_its_descriptor),
		test_client(objects_written_to_staging),
		test_client(deleted_is_gone),
		test_client(create_publish_seal),
		test_client(abort_is_stale_for_readers),
		test_client(failures_name_the_object),
		test_client(store_full_says_why),
		test_client(pin_stands_while_in_use),
		test_client(too_many_buffers),
		test_client(directory_calls),
		test_client(local_get_makes_no_system_call),
		test_client(library_and_headers_have_one_version),
		test_client(child_cannot_use_the_handle),
		test_client(child_leaves_the_pins_alone),
		test_client(child_closes_only_what_it_has),
		test_client(child_closes_while_others_wait),
		test_client(child_waits_for_no_lock),
		test_client(arguments_and_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
