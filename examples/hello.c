/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts some objects and gets them back, all at once and in one thread.
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs sarissa)
 *         (not installed, with the build folder B: before that
 *         export PKG_CONFIG_PATH=B/meson-uninstalled LD_LIBRARY_PATH=B/client)
 *     ./hello                  (on a node; $SARISSA_SOCKET names another one than the host's)
 */
#include <sarissa/sarissa.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 4 };

static const char *const word[WORDS] = {"Hello", "from", "the", "store"};

static sar_id id_of(unsigned i)
{
	char name[32];
	return sar_id_of(name, (size_t)snprintf(name, sizeof(name), "hello/%u", i));
}

/* Waits for all of them, and keeps what the gets have got. */
static int wait_for(sar_queue *q, unsigned count, sar_buffer got[WORDS])
{
	while (count-- > 0) {
		sar_completion c;
		if (sar_poll_wait(q, &c, 1, 1, SAR_FOREVER) != 1)
			return -1;
		if (c.result < 0) {
			fprintf(stderr, "hello: %s\n", sar_completion_detail(q, &c));
			return c.result;
		}
		if (c.op == SAR_OP_GET)
			got[c.user_data] = c.buffer;
	}
	return 0;
}

int main(void)
{
	sar *s;
	sar_queue *q;
	sar_buffer got[WORDS] = {{0}};
	int r = sar_open(NULL, &s);
	if (r < 0) {
		fprintf(stderr, "hello: %s\n", sar_error_detail());
		return 1;
	}
	sar_queue_open(s, 2 * WORDS, &q);
	for (unsigned i = 0; i < WORDS; i++) /* before the objects are there */
		sar_submit_get(q, id_of(i), SAR_FOREVER, i);
	for (unsigned i = 0; i < WORDS; i++)
		sar_submit_put(q, id_of(i), NULL, word[i], strlen(word[i]), i);
	r = wait_for(q, 2 * WORDS, got);
	for (unsigned i = 0; r == 0 && i < WORDS; i++)
		printf("%.*s%s", (int)got[i].size, (const char *)got[i].data,
		       i + 1 < WORDS ? " " : "\n");
	for (unsigned i = 0; i < WORDS; i++)
		sar_release(s, &got[i]);
	for (unsigned i = 0; r == 0 && i < WORDS; i++)
		sar_submit_delete(q, id_of(i), i);
	if (r == 0)
		r = wait_for(q, WORDS, got);
	sar_queue_close(q);
	sar_close(s);
	return r < 0;
}
