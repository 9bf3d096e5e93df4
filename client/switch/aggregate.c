/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a group at a switch: sockets and memory around aggregate_job. Results come by
 * multicast, so that a switch sends one frame to all. Used by the library's users and by
 * aggregate_object.c; it knows nothing of nodes and objects.
 */
#include "aggregate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "api/error.h"
#include "internal/reduce.h"

enum {
	BURST = 40, /* packets of a send: a UDP datagram that the kernel cuts */
	ARRIVALS = 64,
	SOCKET_BYTES = 4 << 20,
	ASK_MS = 20, /* an INSTALL is repeated */
};

struct sar_switch {
	int out, in;
	char address[INET_ADDRSTRLEN];
	uint32_t switch_ip; /* network byte order */
	uint32_t group, round, window;
	uint8_t member, members;
	uint64_t token; /* of this process, so that no other one can take its place */
	bool singly;	/* each packet is a datagram of its own */
	struct aggregate_job job;
	uint8_t burst[BURST * AGGREGATE_PACKET_MAX];
	uint8_t arrival[ARRIVALS][AGGREGATE_PACKET_MAX + AGGREGATE_STEP];
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int aggregate_socket_fail(const sar_switch *w, const char *what)
{
	int error = errno;
	return error_set(-error, "switch %s: %s: %s", w->address, what, strerror(error));
}

/* The way to the switch; local: our address on it. */
static int aggregate_open_out(sar_switch *w, struct in_addr *local)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(AGGREGATE_PORT)};
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	int bytes = SOCKET_BYTES;
	to.sin_addr.s_addr = w->switch_ip;
	w->out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->out < 0 || connect(w->out, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockname(w->out, (struct sockaddr *)&own, &length) < 0)
		return aggregate_socket_fail(w, "no way there");
	setsockopt(w->out, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*local = own.sin_addr;
	return 0;
}

/* Several members may be on one host: each gets every packet of its group. */
static int aggregate_open_in(sar_switch *w, struct in_addr local)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(AGGREGATE_RESULT_PORT)};
	struct ip_mreqn join = {.imr_address = local};
	int one = 1, bytes = SOCKET_BYTES;
	uint8_t ip[4];
	aggregate_address(w->group, ip);
	memcpy(&at.sin_addr, ip, 4);
	memcpy(&join.imr_multiaddr, ip, 4);
	w->in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->in < 0 || setsockopt(w->in, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(w->in, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    setsockopt(w->in, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof(join)) < 0)
		return aggregate_socket_fail(w, "no way back");
	if (setsockopt(w->in, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(w->in, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return 0;
}

/* Whether it answers our INSTALL of that version, or of an earlier one that a later has overtaken.
 */
static bool aggregate_answers_install(const sar_switch *w, const struct aggregate_header *h,
				      uint32_t version)
{
	return h->group == w->group && h->member == w->member &&
	       ((h->kind == AGGREGATE_INSTALLED && (int32_t)(h->round - version) >= 0) ||
		(h->kind == AGGREGATE_REFUSED && h->round == version && h->slot == 0 &&
		 h->chunk == 0 && h->operation == 0));
}

/* Takes what has arrived from the switch: undamaged packets, for the job, or with an installed only
 * the answer to our INSTALL, whose version it has. Returns how many came. */
static int aggregate_receive(sar_switch *w, struct aggregate_header *installed)
{
	struct aggregate_header h;
	struct mmsghdr m[ARRIVALS];
	struct iovec v[ARRIVALS];
	struct sockaddr_in from[ARRIVALS];
	for (unsigned i = 0; i < ARRIVALS; i++) {
		v[i] = (struct iovec){w->arrival[i], sizeof(w->arrival[i])};
		m[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &from[i],
						    .msg_namelen = sizeof(from[i]),
						    .msg_iov = &v[i],
						    .msg_iovlen = 1}};
	}
	int n = recvmmsg(w->in, m, ARRIVALS, MSG_DONTWAIT, NULL);
	uint64_t now = now_ns();
	for (int i = 0; i < n; i++) {
		if (from[i].sin_addr.s_addr != w->switch_ip ||
		    !aggregate_intact(w->arrival[i], m[i].msg_len))
			continue;
		memcpy(&h, w->arrival[i], sizeof(h));
		if (installed && aggregate_answers_install(w, &h, installed->round))
			*installed = h;
		else if (!installed)
			aggregate_job_take(&w->job, now, w->arrival[i], m[i].msg_len);
	}
	return n < 0 ? 0 : n;
}

/* One datagram, or several of `each` bytes (the last may be shorter). False: no room now. */
static bool aggregate_send_burst(sar_switch *w, uint32_t bytes, uint32_t each)
{
	union {
		char room[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control;
	struct iovec v = {w->burst, bytes};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	if (bytes > each) {
		uint16_t size = (uint16_t)each;
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(c), &size, sizeof(size));
	}
	if (sendmsg(w->out, &m, MSG_DONTWAIT) >= 0)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return false;
	w->singly |= bytes > each; /* this kernel, or this interface, does not cut */
	return true;
}

static bool aggregate_send_singly(sar_switch *w, uint32_t bytes, uint32_t each)
{
	struct mmsghdr m[BURST];
	struct iovec v[BURST];
	unsigned count = 0;
	for (uint32_t at = 0; at < bytes; at += each, count++) {
		v[count] = (struct iovec){w->burst + at, bytes - at < each ? bytes - at : each};
		m[count] = (struct mmsghdr){.msg_hdr = {.msg_iov = &v[count], .msg_iovlen = 1}};
	}
	return sendmmsg(w->out, m, count, MSG_DONTWAIT) == (int)count;
}

/* All that may leave. Packets that the kernel has no room for count as lost. */
static void aggregate_transmit(sar_switch *w)
{
	uint32_t used = 0, each = 0, count = 0;
	uint64_t now = now_ns();
	uint8_t packet[AGGREGATE_PACKET_MAX];
	for (;;) {
		uint32_t bytes = aggregate_job_next(&w->job, now, packet);
		bool fits = bytes > 0 && count > 0 && count < BURST && bytes <= each &&
			    used == count * each;
		if (!fits && used > 0 &&
		    !(w->singly ? aggregate_send_singly(w, used, each)
				: aggregate_send_burst(w, used, each)))
			return;
		if (bytes == 0)
			return;
		if (!fits)
			used = count = 0, each = bytes;
		memcpy(w->burst + used, packet, bytes);
		used += bytes;
		count++;
	}
}

static void aggregate_wait_in(sar_switch *w, uint64_t until_ns)
{
	struct pollfd p = {.fd = w->in, .events = POLLIN};
	uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
	struct timespec t = {.tv_sec = (time_t)(left / 1000000000u),
			     .tv_nsec = (long)(left % 1000000000u)};
	ppoll(&p, 1, &t, NULL);
}

static int aggregate_refused(const sar_switch *w, uint8_t why)
{
	switch (why) {
	case AGGREGATE_NO_ROOM:
		return error_set(-ENOSPC, "switch %s: no room for another group", w->address);
	case AGGREGATE_OTHER_MEMBER:
		return error_set(-EEXIST, "switch %s: another process is member %u of group %u",
				 w->address, w->member, w->group);
	default:
		return error_set(-EEXIST,
				 "switch %s: group %u is there with another number of members: "
				 "take another group",
				 w->address, w->group);
	}
}

static int aggregate_installed(sar_switch *w, const struct aggregate_header *got, uint32_t version)
{
	struct aggregate_policy policy;
	memcpy(&policy, &got->bitmap, sizeof(policy));
	if (got->round != version)
		return error_set(-ESTALE, "switch %s: group %u has gone on to version %u",
				 w->address, w->group, got->round);
	w->window = policy.window;
	if (w->window == 0 || w->window > AGGREGATE_JOB_WINDOW_MAX || (w->window & (w->window - 1)))
		return error_set(-EPROTO,
				 "switch %s: a window of %u slots: it is of another version",
				 w->address, w->window);
	return 0;
}

int aggregate_install(sar_switch *w, const struct aggregate_join *how)
{
	struct {
		struct aggregate_header h;
		struct aggregate_place place;
	} ask = {.h = {.kind = AGGREGATE_INSTALL,
		       .member = how->member,
		       .members = how->members,
		       .group = w->group,
		       .round = how->version},
		 .place = {.key = how->key, .token = w->token}};
	struct aggregate_policy policy = {.quorum = how->quorum, .deadline_us = how->deadline_us};
	struct aggregate_header got = {.round = how->version};
	w->member = how->member;
	w->members = how->members;
	w->round = how->round;
	memcpy(&ask.h.bitmap, &policy, sizeof(policy));
	aggregate_seal(&ask, sizeof(ask));
	uint64_t begin = now_ns(), next = begin;
	while (now_ns() - begin < AGGREGATE_JOB_SILENCE_NS) {
		if (now_ns() >= next) {
			send(w->out, &ask, sizeof(ask), MSG_DONTWAIT);
			next += ASK_MS * 1000000u;
		}
		aggregate_wait_in(w, next);
		while (got.kind == 0 && aggregate_receive(w, &got) > 0)
			;
		if (got.kind == AGGREGATE_REFUSED)
			return aggregate_refused(w, got.flags);
		if (got.kind == AGGREGATE_INSTALLED)
			return aggregate_installed(w, &got, how->version);
	}
	return error_set(-ENETUNREACH, "switch %s: nothing answers there", w->address);
}

int aggregate_open(const char *address, uint32_t group, sar_switch **out)
{
	struct in_addr ip, local = {0};
	if (!address || inet_pton(AF_INET, address, &ip) != 1)
		return error_set(-EINVAL, "switch '%s': not an IPv4 address",
				 address ? address : "");
	sar_switch *w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, "switch %s: no memory", address);
	snprintf(w->address, sizeof(w->address), "%s", address);
	w->switch_ip = ip.s_addr;
	w->group = group;
	w->in = w->out = -1;
	int r = aggregate_open_out(w, &local);
	if (r == 0)
		r = aggregate_open_in(w, local);
	while (r == 0 && w->token == 0)
		if (getrandom(&w->token, sizeof(w->token), 0) < 0)
			r = aggregate_socket_fail(w, "no random number");
	if (r == 0)
		*out = w;
	else
		sar_switch_leave(w);
	return r;
}

int sar_switch_join(const sar_switch_options *how, sar_switch **out)
{
	sar_switch *w;
	if (how->members < 1 || how->members > AGGREGATE_MEMBERS_MAX ||
	    how->member >= how->members || how->quorum > how->members)
		return error_set(-EINVAL,
				 "switch %s: member %u of %u, quorum %u: at most %u, from 0 on",
				 how->address ? how->address : "", how->member, how->members,
				 how->quorum, AGGREGATE_MEMBERS_MAX);
	if (how->deadline_ns < 0 || how->deadline_ns / 1000 > UINT32_MAX)
		return error_set(-EINVAL, "switch %s: a deadline is 0 to 4294 s",
				 how->address ? how->address : "");
	int r = aggregate_open(how->address, how->group, &w);
	if (r < 0)
		return r;
	struct aggregate_join join = {.member = (uint8_t)how->member,
				      .members = (uint8_t)how->members,
				      .quorum = (uint8_t)(how->quorum ? how->quorum : how->members),
				      .deadline_us = (uint32_t)(how->deadline_ns / 1000),
				      .version = 1,
				      .key = how->key};
	r = aggregate_install(w, &join);
	if (r == 0)
		*out = w;
	else
		sar_switch_leave(w);
	return r;
}

void sar_switch_leave(sar_switch *w)
{
	if (!w)
		return;
	if (w->in >= 0)
		close(w->in);
	if (w->out >= 0)
		close(w->out);
	free(w);
}

static int aggregate_fail(const sar_switch *w, int error)
{
	switch (error) {
	case -ENETUNREACH:
		return error_set(error, "switch %s: silent for 0.2 s", w->address);
	case -ESTALE:
		return error_set(error, "switch %s: the others went on without member %u",
				 w->address, w->member);
	case -ENOTSUP:
		return error_set(error, "switch %s: it cannot compute that", w->address);
	case -ETIMEDOUT:
		return error_set(error, "switch %s: other members have not sent theirs",
				 w->address);
	default:
		return error_set(error,
				 "switch %s: members differ in sizes, types or operations: "
				 "member %u has %llu bytes",
				 w->address, w->member, (unsigned long long)w->job.spec.bytes);
	}
}

int aggregate_begin(sar_switch *w, const void *source, void *target, uint64_t bytes,
		    const sar_reduction *how)
{
	bool block = how->flags & SAR_REDUCE_BLOCK;
	uint32_t size = reduce_dtype_bytes(how->dtype);
	if (!reduce_op_valid(how->op) || size == 0 || bytes % size || how->num || how->min ||
	    (how->flags & ~(uint32_t)(SAR_REDUCE_BLOCK | SAR_REDUCE_SPREAD)))
		return error_set(-EINVAL, "switch %s: op, dtype, flags or size do not fit",
				 w->address);
	if (block && (how->op != SAR_SUM || how->dtype != SAR_F32))
		return error_set(-EINVAL, "switch %s: blocks are sums of f32", w->address);
	if (bytes / AGGREGATE_PAYLOAD_MAX >= UINT32_MAX / 2)
		return error_set(-EFBIG, "switch %s: too many bytes", w->address);
	struct aggregate_job_spec spec = {.source = source,
					  .target = target,
					  .bytes = bytes,
					  .group = w->group,
					  .round = w->round++,
					  .window = w->window,
					  .payload = AGGREGATE_PAYLOAD_MAX,
					  .member = w->member,
					  .members = w->members,
					  .token = w->token,
					  .op = (uint8_t)how->op,
					  .dtype = (uint8_t)(block ? AGGREGATE_BLOCK : how->dtype)};
	aggregate_job_init(&w->job, &spec, now_ns());
	return 0;
}

int aggregate_step(sar_switch *w, uint64_t source_ready, uint64_t until_ns)
{
	if (source_ready > w->job.source_ready)
		w->job.source_ready = source_ready;
	for (;;) {
		while (aggregate_receive(w, NULL) > 0)
			;
		uint64_t now = now_ns();
		int status = aggregate_job_status(&w->job, now);
		if (status != 0)
			return status < 0 ? aggregate_fail(w, status) : status;
		aggregate_transmit(w);
		uint64_t at = aggregate_job_timeout(&w->job);
		if (now >= until_ns)
			return 0;
		aggregate_wait_in(w, at < until_ns ? at : until_ns);
	}
}

void aggregate_result(const sar_switch *w, uint64_t begin_ns, sar_switch_result *out)
{
	const struct aggregate_job *j = &w->job;
	uint64_t all = w->members == 64 ? UINT64_MAX : (1ull << w->members) - 1;
	*out = (sar_switch_result){.in_all = j->in_all & all,
				   .fewest = j->fewest,
				   .through = 1,
				   .packets = j->packets,
				   .polls = j->polls,
				   .resent = j->resent,
				   .duration_ns = (int64_t)(now_ns() - begin_ns)};
}

void aggregate_place(const sar_switch *w, unsigned *member, unsigned *members)
{
	*member = w->member;
	*members = w->members;
}

uint64_t aggregate_ready(const sar_switch *w)
{
	return aggregate_job_ready(&w->job);
}

uint32_t aggregate_round(const sar_switch *w)
{
	return w->round;
}

void aggregate_round_set(sar_switch *w, uint32_t round)
{
	w->round = round;
}

uint64_t aggregate_now_ns(void)
{
	return now_ns();
}

int sar_switch_allreduce(sar_switch *w, const void *source, void *target, uint64_t bytes,
			 const sar_reduction *how, int64_t timeout_ns, sar_switch_result *out)
{
	uint64_t begin = now_ns();
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_switch_allreduce: a timeout below 0");
	uint64_t until = timeout_ns == SAR_FOREVER ? UINT64_MAX : begin + (uint64_t)timeout_ns;
	int r = aggregate_begin(w, source, target, bytes, how);
	if (r == 0)
		r = aggregate_step(w, bytes, until);
	else
		return r;
	if (r == 0)
		return aggregate_fail(w, -ETIMEDOUT);
	if (r < 0)
		return r;
	if (out)
		aggregate_result(w, begin, out);
	return 0;
}
