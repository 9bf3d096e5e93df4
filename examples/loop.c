/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue in a loop of one's own: names come on standard input, and the size of each object is told
 * as soon as it is on this node. One thread waits for both, with the queue's descriptor.
 *
 *     cc loop.c -o loop $(pkg-config --cflags --libs sarissa)
 *     printf 'a\nb\n' | ./loop
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <sarissa/sarissa.h>

enum { MANY = 1000, SOME = 16 };

static char name[MANY][SAR_NAME_MAX + 1];
static unsigned names, wanted;

static int failed(const char *what)
{
	fprintf(stderr, "loop: %s: %s\n", what, sar_error_detail());
	return 1;
}

/* Asks for the objects whose names have come. Returns 0 at the end of the input. */
static int take_input(sar_queue *q)
{
	static char line[4096];
	static size_t length;
	ssize_t got = read(STDIN_FILENO, line + length, sizeof(line) - 1 - length);
	if (got <= 0)
		return 0;
	length += (size_t)got;
	for (char *end; (end = memchr(line, '\n', length)) && names < MANY; names++) {
		size_t bytes = (size_t)(end - line);
		snprintf(name[names], sizeof(name[names]), "%.*s", (int)bytes, line);
		if (sar_submit_get(q, sar_id_of(line, bytes), SAR_FOREVER, names) < 0)
			failed(name[names]);
		else
			wanted++;
		length -= bytes + 1;
		memmove(line, end + 1, length);
	}
	return names < MANY && length < sizeof(line) - 1;
}

/* Until fewer come than there is room for, there may be more. */
static void take_completions(sar *s, sar_queue *q)
{
	sar_completion c[SOME];
	int count;
	do {
		count = sar_poll(q, c, SOME);
		for (int i = 0; i < count; i++) {
			if (c[i].result < 0)
				printf("%s: %s\n", name[c[i].user_data],
				       sar_completion_detail(q, &c[i]));
			else
				printf("%s: %llu bytes\n", name[c[i].user_data],
				       (unsigned long long)c[i].buffer.size);
			sar_release(s, &c[i].buffer);
			wanted--;
		}
		fflush(stdout);
	} while (count == SOME);
}

static int loop(sar *s, sar_queue *q)
{
	int input = 1, epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event on[2] = {{.events = EPOLLIN, .data.fd = STDIN_FILENO},
				    {.events = EPOLLIN, .data.fd = sar_fd(q)}};
	for (int i = 0; i < 2; i++) {
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, on[i].data.fd, &on[i]) < 0) {
			perror("loop: epoll_ctl");
			return 1;
		}
	}
	while (input || wanted > 0) {
		struct epoll_event event;
		if (epoll_wait(epoll_fd, &event, 1, -1) != 1)
			continue;
		if (event.data.fd != STDIN_FILENO) {
			take_completions(s, q);
		} else if (!take_input(q)) {
			input = 0;
			epoll_ctl(epoll_fd, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		}
	}
	close(epoll_fd);
	return 0;
}

int main(void)
{
	sar *s;
	sar_queue *q;
	if (sar_open(NULL, &s) < 0 || sar_queue_open(s, MANY, &q) < 0)
		return failed("open");
	int status = loop(s, q);
	sar_queue_close(q);
	sar_close(s);
	return status;
}
