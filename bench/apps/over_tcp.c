/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same applications over plain TCP: a connection from each worker to the server, which sends to
 * all and receives from all at once, and adds up what came first by itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../payload.h"
#include "app.h"

enum { CONNECT_TRIES = 1000, CONNECT_WAIT_NS = 10000000 };

/* One worker, as the server sees it. */
struct end {
	int fd;
	bool sending;
	uint64_t sent, got; /* bytes of what is under way */
	float *piece;	    /* whole when got is all of it */
};

static struct {
	const struct run *run;
	struct end end[RANKS_MAX];
	struct ticket ticket; /* what is being given */
	const float *model;
	float *buffer; /* server: the sum; worker: the model */
	int fd;	       /* of a worker, to the server */
} tcp;

static void fail(const char *what)
{
	app_fail("%s: %s", what, strerror(errno));
}

/* All of it; false when the other side has closed. */
static bool receive(int fd, void *to, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes;) {
		ssize_t n = recv(fd, (uint8_t *)to + at, bytes - at, 0);
		if (n < 0 && errno != EINTR)
			fail("receive");
		if (n == 0)
			return false;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return true;
}

static void tcp_accept(struct sockaddr_in *address)
{
	int on = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
	if (listening < 0 || setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(listening, (struct sockaddr *)address, sizeof(*address)) ||
	    listen(listening, RANKS_MAX))
		fail("listen");
	for (uint32_t i = 1; i < tcp.run->ranks; i++) {
		uint32_t rank = 0;
		int fd = accept(listening, NULL, NULL);
		if (fd < 0 || !receive(fd, &rank, sizeof(rank)))
			fail("accept");
		if (rank == 0 || rank >= tcp.run->ranks || tcp.end[rank].fd)
			app_fail("a worker calls itself %u", rank);
		struct end *e = &tcp.end[rank];
		e->fd = fd;
		e->piece = malloc(tcp.run->up_bytes);
		if (!e->piece || fcntl(fd, F_SETFL, O_NONBLOCK))
			fail("no memory");
	}
	close(listening);
}

/* The server may come a little later than its workers. */
static void tcp_connect(const struct sockaddr_in *address)
{
	for (int tries = 0; tries < CONNECT_TRIES; tries++) {
		tcp.fd = socket(AF_INET, SOCK_STREAM, 0);
		if (tcp.fd < 0)
			fail("socket");
		if (connect(tcp.fd, (const struct sockaddr *)address, sizeof(*address)) == 0) {
			if (send(tcp.fd, &tcp.run->rank, sizeof(tcp.run->rank), MSG_NOSIGNAL) < 0)
				fail("send");
			return;
		}
		close(tcp.fd);
		payload_sleep_until(payload_now_ns() + CONNECT_WAIT_NS);
	}
	fail("connect");
}

static void tcp_open(const struct run *r)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(r->port)};
	tcp.run = r;
	tcp.buffer = malloc(r->model_bytes > r->up_bytes ? r->model_bytes : r->up_bytes);
	if (!tcp.buffer || inet_pton(AF_INET, r->server, &address.sin_addr) != 1)
		app_fail("--server wants the address of rank 0");
	if (r->rank == 0)
		tcp_accept(&address);
	else
		tcp_connect(&address);
}

/* Lets through what workers had under way when they were told to stop, until they hang up. */
static void end_close(struct end *e)
{
	fcntl(e->fd, F_SETFL, 0);
	while (recv(e->fd, e->piece, tcp.run->up_bytes, 0) > 0)
		;
	close(e->fd);
	free(e->piece);
}

static void tcp_close(void)
{
	for (uint32_t i = 1; i < tcp.run->ranks && tcp.run->rank == 0; i++)
		end_close(&tcp.end[i]);
	if (tcp.run->rank != 0)
		close(tcp.fd);
	free(tcp.buffer);
}

static bool is_whole(const struct end *e)
{
	return e->got == tcp.run->up_bytes;
}

/* The ticket, then the model. */
static void end_send(struct end *e)
{
	const uint64_t head = sizeof(tcp.ticket);
	const uint64_t all = head + (tcp.model ? tcp.run->model_bytes : 0);
	while (e->sent < all) {
		bool in_head = e->sent < head;
		const uint8_t *from = in_head ? (const uint8_t *)&tcp.ticket + e->sent
					      : (const uint8_t *)tcp.model + (e->sent - head);
		ssize_t n = send(e->fd, from, (in_head ? head : all) - e->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			fail("send");
		e->sent += (uint64_t)n;
	}
	e->sending = false;
}

static void end_receive(struct end *e)
{
	while (!is_whole(e)) {
		ssize_t n =
			recv(e->fd, (uint8_t *)e->piece + e->got, tcp.run->up_bytes - e->got, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			app_fail("a worker has gone");
		e->got += (uint64_t)n;
	}
}

/* Waits until a connection can go on, and lets all go on that can. */
static void tcp_turn(void)
{
	struct pollfd polls[RANKS_MAX];
	uint32_t ranks = tcp.run->ranks;
	for (uint32_t i = 1; i < ranks; i++) {
		const struct end *e = &tcp.end[i];
		polls[i] = (struct pollfd){
			.fd = e->fd,
			.events = (short)((is_whole(e) ? 0 : POLLIN) | (e->sending ? POLLOUT : 0))};
	}
	if (poll(polls + 1, ranks - 1, PATIENCE_S * 1000) <= 0)
		app_fail("nothing moves any more");
	for (uint32_t i = 1; i < ranks; i++) {
		if (polls[i].revents & POLLOUT)
			end_send(&tcp.end[i]);
		if (polls[i].revents & (POLLIN | POLLHUP | POLLERR))
			end_receive(&tcp.end[i]);
	}
}

static bool any_sending(void)
{
	for (uint32_t i = 1; i < tcp.run->ranks; i++)
		if (tcp.end[i].sending)
			return true;
	return false;
}

static void tcp_give(const bool *to, const struct ticket *ticket, const float *model)
{
	tcp.ticket = *ticket;
	tcp.model = model;
	for (uint32_t i = 1; i < tcp.run->ranks; i++) {
		tcp.end[i].sending = to[i];
		tcp.end[i].sent = 0;
	}
	while (any_sending())
		tcp_turn();
}

/* Adds what is whole, as far as it is wanted. Returns how many there were. */
static uint32_t add_whole(uint32_t want, bool *used)
{
	uint64_t elements = tcp.run->up_bytes / sizeof(float);
	uint32_t added = 0;
	for (uint32_t i = 1; i < tcp.run->ranks && added < want; i++) {
		struct end *e = &tcp.end[i];
		if (used[i] || !is_whole(e))
			continue;
		for (uint64_t k = 0; k < elements; k++)
			tcp.buffer[k] += e->piece[k];
		e->got = 0;
		used[i] = true;
		added++;
	}
	return added;
}

static const float *tcp_reduce(uint32_t want, bool *used)
{
	memset(tcp.buffer, 0, tcp.run->up_bytes);
	for (uint32_t added = add_whole(want, used); added < want;) {
		tcp_turn();
		added += add_whole(want - added, used);
	}
	return tcp.buffer;
}

static void tcp_gather(const float **pieces)
{
	for (uint32_t i = 1; i < tcp.run->ranks; i++) {
		while (!is_whole(&tcp.end[i]))
			tcp_turn();
		pieces[i] = tcp.end[i].piece;
	}
	for (uint32_t i = 1; i < tcp.run->ranks; i++) /* read before the next one can come */
		tcp.end[i].got = 0;
}

static const float *tcp_take(struct ticket *ticket)
{
	if (!receive(tcp.fd, ticket, sizeof(*ticket)))
		app_fail("the server has gone");
	if (ticket->stop)
		return NULL;
	if (!receive(tcp.fd, tcp.buffer, tcp.run->model_bytes))
		app_fail("the server has gone");
	return tcp.buffer;
}

static void tcp_bring(const float *piece)
{
	for (uint64_t at = 0; at < tcp.run->up_bytes;) {
		ssize_t n = send(tcp.fd, (const uint8_t *)piece + at, tcp.run->up_bytes - at,
				 MSG_NOSIGNAL);
		if (n < 0)
			fail("send");
		at += (uint64_t)n;
	}
}

const struct transport over_tcp = {
	"tcp", tcp_open, tcp_close, tcp_give, tcp_reduce, tcp_gather, tcp_take, tcp_bring,
};
