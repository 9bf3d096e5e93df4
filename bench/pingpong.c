/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A question and an answer over one TCP connection, again and again: what a look-up between two
 * nodes is compared with. Blocking sockets without Nagle's delay.
 *
 *   pingpong serve PORT ASK_BYTES ANSWER_BYTES BUSY_US
 *       answers every question of one connection; prints {} when it listens
 *   pingpong ask IP PORT ASK_BYTES ANSWER_BYTES BUSY_US
 *       for each line COUNT on standard input, COUNT times        {"ns", "cpu_ns"}
 *
 * BUSY_US: SO_BUSY_POLL of the socket; 0: none.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal/program/arguments.h"
#include "payload.h"
#include "samples.h"

enum { BYTES_MAX = 1 << 20 };

static struct samples samples;
static uint8_t data[BYTES_MAX];

static void fail(const char *what)
{
	printf("{\"error\": \"%s: %s\"}\n", what, strerror(errno));
	exit(1);
}

static void options(int fd, int busy_us)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    (busy_us > 0 &&
	     setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &busy_us, sizeof(busy_us)) < 0))
		fail("setsockopt");
}

static bool take(int fd, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = recv(fd, data + at, bytes - at, 0);
		if (n < 0 && errno != EINTR)
			fail("recv");
		if (n == 0)
			return false;
		at += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static void give(int fd, size_t bytes)
{
	if (send(fd, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		fail("send");
}

/* An object without bytes has a message all the same. */
static size_t bytes_of(const char *what, const char *text)
{
	uint64_t n = argument_need(what, text, 0, BYTES_MAX);

	return n < 1 ? 1 : n;
}

static struct sockaddr_in port_of(const char *text)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)argument_need("PORT", text, 1, UINT16_MAX))};
}

static int busy_of(const char *text)
{
	return (int)argument_need("BUSY_US", text, 0, 1000000);
}

static int serve(char **argv)
{
	struct sockaddr_in at = port_of(argv[0]);
	size_t ask = bytes_of("ASK_BYTES", argv[1]), answer = bytes_of("ANSWER_BYTES", argv[2]);
	int busy_us = busy_of(argv[3]), one = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 1) < 0)
		fail("listen");
	printf("{}\n");
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		fail("accept");
	options(fd, busy_us);
	while (take(fd, ask))
		give(fd, answer);
	return 0;
}

static int ask(char **argv)
{
	struct sockaddr_in to = port_of(argv[1]);
	size_t bytes = bytes_of("ASK_BYTES", argv[2]), answer = bytes_of("ANSWER_BYTES", argv[3]);
	int busy_us = busy_of(argv[4]), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char line[64];

	if (inet_pton(AF_INET, argv[0], &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		fail("connect");
	options(fd, busy_us);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		unsigned count = (unsigned)argument_need("COUNT", line, 1, SAMPLES_MAX);
		samples_begin(&samples);
		while (samples.count < count) {
			int64_t start_ns = payload_now_ns();
			give(fd, bytes);
			if (!take(fd, answer))
				fail("the other side has ended");
			samples.ns[samples.count++] = payload_now_ns() - start_ns;
		}
		samples_print(&samples);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "serve") == 0)
		return serve(argv + 2);
	if (argc == 7 && strcmp(argv[1], "ask") == 0)
		return ask(argv + 2);
	fprintf(stderr, "Usage: pingpong serve PORT ASK_BYTES ANSWER_BYTES BUSY_US\n"
			"       pingpong ask IP PORT ASK_BYTES ANSWER_BYTES BUSY_US\n");
	return 2;
}
