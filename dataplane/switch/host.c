/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The aggregator on a host: a UDP socket. It serves groups for which a switch has no room (the
 * switch forwards their packets here), or a network without such a switch. Results go by multicast.
 */
#include "switch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal/program/notify.h"
#include "io/node/worker.h"
#include "io/observe/log.h"

enum { BURST = 64, SOCKET_BYTES = 8 << 20 };

struct host {
	struct switch_state *w;
	int fd;
	unsigned count;
	struct mmsghdr out[BURST];
	struct iovec out_at[BURST];
	struct sockaddr_in to[BURST];
	uint8_t packet[BURST][AGGREGATE_PACKET_MAX];
	uint8_t arrival[BURST][AGGREGATE_PACKET_MAX + AGGREGATE_STEP];
};

static int host_open(struct host *h)
{
	const char *address = h->w->options->host;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(AGGREGATE_PORT)};
	int one = 1, bytes = SOCKET_BYTES;
	inet_pton(AF_INET, address, &at.sin_addr);
	h->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd < 0 || bind(h->fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    setsockopt(h->fd, IPPROTO_IP, IP_MULTICAST_IF, &at.sin_addr, sizeof(at.sin_addr)) < 0 ||
	    setsockopt(h->fd, IPPROTO_IP, IP_MULTICAST_LOOP, &one, sizeof(one)) < 0) {
		int error = errno;
		log_error(
			"port udp:%s: %s: is it an address of this host, and its UDP port %u free?",
			address, strerror(error), AGGREGATE_PORT);
		return -error;
	}
	if (setsockopt(h->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(h->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return 0;
}

/* A packet that the kernel does not take is lost; members ask again. */
static void host_flush(struct host *h)
{
	int n = h->count ? sendmmsg(h->fd, h->out, h->count, MSG_DONTWAIT) : 0;
	h->w->count.sent += n > 0 ? (unsigned)n : 0;
	h->w->count.dropped += h->count - (n > 0 ? (unsigned)n : 0);
	h->count = 0;
}

static void host_send(struct host *h, const struct aggregate_answer *a)
{
	uint8_t ip[4];
	unsigned i = h->count++;
	aggregate_address(a->header.group, ip);
	h->to[i] = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_port = htons(AGGREGATE_RESULT_PORT)};
	memcpy(&h->to[i].sin_addr, ip, 4);
	h->out_at[i] = (struct iovec){h->packet[i], aggregate_write(a, h->packet[i])};
	h->out[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &h->to[i],
						 .msg_namelen = sizeof(h->to[i]),
						 .msg_iov = &h->out_at[i],
						 .msg_iovlen = 1}};
	if (h->count == BURST)
		host_flush(h);
}

static int host_receive(struct host *h)
{
	struct mmsghdr m[BURST];
	struct iovec v[BURST];
	struct aggregate_answer a;
	for (unsigned i = 0; i < BURST; i++) {
		v[i] = (struct iovec){h->arrival[i], sizeof(h->arrival[i])};
		m[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &v[i], .msg_iovlen = 1}};
	}
	int n = recvmmsg(h->fd, m, BURST, MSG_DONTWAIT, NULL);
	uint64_t now = worker_now_ns();
	for (int i = 0; i < n; i++) {
		struct aggregate_source from = {0};
		h->w->count.received++;
		if (aggregate_take(&h->w->pool, now, from, h->arrival[i], m[i].msg_len, &a) >=
		    AGGREGATE_COMPLETE)
			host_send(h, &a);
	}
	return n;
}

static void host_wait(struct host *h)
{
	struct pollfd p = {.fd = h->fd, .events = POLLIN};
	uint64_t now = worker_now_ns(), at = aggregate_timeout(&h->w->pool);
	uint64_t most = now + 1000000000u;
	uint64_t left = at <= now ? 0 : (at < most ? at : most) - now;
	struct timespec t = {.tv_sec = (time_t)(left / 1000000000u),
			     .tv_nsec = (long)(left % 1000000000u)};
	ppoll(&p, 1, &t, NULL);
}

int host_run(struct switch_state *w, const volatile sig_atomic_t *stop)
{
	static struct host h;
	struct aggregate_answer a;
	h.w = w;
	int error = host_open(&h);
	if (error)
		return error;
	log_info("aggregates at %s, UDP port %u: %u groups of %u slots", w->options->host,
		 AGGREGATE_PORT, w->options->groups, w->options->window);
	while (!*stop) {
		while (host_receive(&h) > 0)
			host_flush(&h);
		while (aggregate_expire(&w->pool, worker_now_ns(), &a))
			host_send(&h, &a);
		host_flush(&h);
		host_wait(&h);
	}
	close(h.fd);
	return 0;
}
