/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending over a socket: what the kernel may answer. The engine is a real one with more to send;
 * the kernel is ours (sendmmsg is wrapped): it takes so many bursts, then says what it is told to
 * say. */
#include <errno.h>
#include <limits.h>
#include <netinet/udp.h>
#include "fixtures/core_test.h"
#include "io/observe/log.h"
#include "io/ports/udp.h"
#include "io/node/worker.h"

enum {
	CHUNKS = 300,
	PEERS = 2,
	STUCK_NS = 20000000,
	LENGTH = CHUNK_BODY + RIG_CHUNK, /* of a packet */
};

#define MINUTE_NS UINT64_C(60000000000)

static struct {
	unsigned takes; /* bursts, until it says */
	int says;	/* this */
	bool refuses;	/* bursts of more than one packet: EIO */
	int narrow;	/* what it says of a burst of packets beyond its MTU, EMSGSIZE of one; 0: it
			   takes all */
	unsigned calls, bursts, packets, longest;
	uint64_t bytes;
	uint8_t last[LENGTH]; /* the last whole packet */
} kernel;
static unsigned warnings;

void log_warning(const char *format, ...)
{
	assert_non_null(format);
	warnings++;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned count, int flags);

static uint16_t segment_of(struct msghdr *m)
{
	uint16_t segment = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_SEGMENT)
			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
	return segment;
}

/* Puts the datagram together and cuts it, as the kernel does. */
static void take(struct msghdr *m)
{
	static uint8_t data[65536];
	unsigned length = 0, segment = segment_of(m), packets = 0;
	for (size_t k = 0; k < m->msg_iovlen; k++) {
		assert_true(length + m->msg_iov[k].iov_len <= UDP_BURST_BYTES);
		memcpy(data + length, m->msg_iov[k].iov_base, m->msg_iov[k].iov_len);
		length += (unsigned)m->msg_iov[k].iov_len;
	}
	if (segment == 0)
		segment = length;
	for (unsigned at = 0; at < length; at += segment, packets++)
		if (length - at == LENGTH || (segment == LENGTH && length - at > LENGTH))
			memcpy(kernel.last, data + at, LENGTH);
	kernel.packets += packets;
	kernel.bytes += length;
	kernel.bursts++;
	if (packets > kernel.longest)
		kernel.longest = packets;
}

static bool is_long(struct msghdr *m)
{
	size_t length = 0;
	for (size_t k = 0; k < m->msg_iovlen; k++)
		length += m->msg_iov[k].iov_len;
	return segment_of(m) == LENGTH || length == LENGTH;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned count, int flags)
{
	unsigned n = 0;
	assert_int_equal(fd, 7);
	assert_true(flags & MSG_DONTWAIT);
	kernel.calls++;
	for (; n < count && kernel.takes > 0; n++, kernel.takes--) {
		if (kernel.refuses && segment_of(&m[n].msg_hdr) > 0)
			break;
		if (kernel.narrow && is_long(&m[n].msg_hdr))
			break;
		take(&m[n].msg_hdr);
	}
	if (n > 0)
		return (int)n;
	errno = kernel.takes == 0		? kernel.says
		: !kernel.narrow		? EIO
		: segment_of(&m[0].msg_hdr) > 0 ? kernel.narrow
						: EMSGSIZE;
	return -1;
}

struct wire {
	struct rig *r;
	struct worker w;
	struct port port;
	struct session session;
	struct udp udp;
};

static void bursting(struct engine_config *f)
{
	f->window_pkts = 512;
	f->burst_bytes[0] = UDP_BURST_BYTES;
	f->burst_ns[0] = UDP_BURST_NS;
}

static void offer(struct wire *x, uint32_t n, struct peer *peer)
{
	uint64_t size = (uint64_t)CHUNKS * RIG_CHUNK;
	struct record source = record_source(n, size, size);
	struct record out = record_edge(COMMAND_OUT, n, n, peer, 0, CHUNKS);
	struct packet p;

	source.buffer.chunk_bytes = RIG_CHUNK;
	memset(rig_data(x->r, n), 0xaa, size);
	rig_command(x->r, &source);
	rig_command(x->r, &out);
	peer_begin(x->r, peer, &p);
	forge_grant(&p, record_handle(n), CHUNKS);
	peer_send(x->r, peer, &p);
	peer->c->window_pkts = 512;
	peer->c->cc.cwnd_bytes = 1 << 20;
	peer->c->cc.pace_ns_per_kib = 0;
}

static int begin(void **state)
{
	struct wire *x = aligned_alloc(64, (sizeof(*x) + 63) / 64 * 64);
	struct peer peer[PEERS];

	memset(x, 0, sizeof(*x));
	memset(&kernel, 0, sizeof(kernel));
	warnings = 0;
	kernel.takes = 1000;
	x->r = rig_new(bursting);
	x->port = (struct port){.mtu = 1500, .workers = 1, .addr = x->r->config.addr};
	x->udp.fd = 7;
	x->udp.v4 = x->udp.segments = true;
	x->udp.head_stride = 1536;
	x->udp.heads = aligned_alloc(64, (size_t)UDP_PACKETS * 1536);
	for (uint32_t n = 0; n < PEERS; n++)
		peer[n] = rig_connect(x->r, n + 1);
	for (uint32_t n = 0; n < PEERS; n++)
		offer(x, n, &peer[n]);
	x->session.engine = x->r->e;
	x->w = (struct worker){.rails = 1,
			       .rail[0] = {.port = &x->port, .udp = &x->udp},
			       .workers = 1,
			       .session = &x->session,
			       .counters = &x->r->counters};
	x->r->counters.tx_pkts = x->r->counters.tx_bytes = 0;
	*state = x;
	return 0;
}

static int end(void **state)
{
	struct wire *x = *state;

	free(x->udp.heads);
	rig_free(x->r);
	free(x);
	return 0;
}

static unsigned send_after(struct wire *x, uint64_t ns)
{
	return udp_transmit(&x->w, &x->w.rail[0], x->r->now_ns += ns);
}

static void packets_leave_in_bursts(void **state)
{
	struct wire *x = *state;

	assert_int_equal(send_after(x, 1000), UDP_PACKETS);
	assert_int_equal(kernel.packets, UDP_PACKETS);
	assert_int_equal(kernel.calls, 1);
	assert_true(kernel.longest >= 40 && kernel.longest <= UDP_SEGMENTS);
	assert_true(kernel.bursts <= 8);
	assert_int_equal(x->r->counters.io_tx_bursts, kernel.bursts);
	assert_int_equal(x->r->counters.tx_bytes, kernel.bytes);
	assert_int_equal(x->w.rail[0].held_count, 0);
	assert_int_equal(kernel.last[LENGTH - 1], 0xaa);
}

/* What waits keeps its bytes, whatever becomes of the store, and the engine is not asked. */
static void a_full_socket_holds(struct wire *x, int error, bool wants_room)
{
	kernel.takes = 1;
	kernel.says = error;
	send_after(x, 1000);
	unsigned left = kernel.packets, held = UDP_PACKETS - left;
	assert_int_equal(x->w.rail[0].held_count, held);
	assert_int_equal(x->w.rail[0].wants_room, wants_room);
	assert_int_equal(x->r->counters.io_tx_full, held);
	memset(rig_data(x->r, 0), 0xbb, CHUNKS * RIG_CHUNK);
	memset(rig_data(x->r, 1), 0xbb, CHUNKS * RIG_CHUNK);
	assert_int_equal(send_after(x, 1000), 0);
	assert_int_equal(x->r->counters.tx_pkts, UDP_PACKETS);
	kernel.takes = 20;
	assert_true(send_after(x, 1000) >= held);
	assert_int_equal(x->w.rail[0].held_count, 0);
	assert_int_equal(x->r->counters.io_tx_lost, 0);
	assert_false(x->w.rail[0].wants_room);
}

static void a_full_buffer_is_waited_for(void **state)
{
	struct wire *x = *state;
	a_full_socket_holds(x, EAGAIN, true);
}

static void a_full_queue_is_tried_again(void **state)
{
	a_full_socket_holds(*state, ENOBUFS, false);
}

static void what_was_held_is_what_was_made(void **state)
{
	struct wire *x = *state;

	kernel.takes = 0;
	kernel.says = EAGAIN;
	send_after(x, 1000);
	memset(rig_data(x->r, 0), 0xbb, CHUNKS * RIG_CHUNK);
	memset(rig_data(x->r, 1), 0xbb, CHUNKS * RIG_CHUNK);
	kernel.takes = 1;
	send_after(x, 1000);
	assert_int_equal(kernel.last[LENGTH - 1], 0xaa);
}

static void a_port_that_takes_nothing_loses(void **state)
{
	struct wire *x = *state;

	kernel.takes = 0;
	kernel.says = ENOBUFS;
	send_after(x, 1000);
	send_after(x, STUCK_NS);
	assert_int_equal(x->w.rail[0].held_count, UDP_PACKETS);
	send_after(x, 1001);
	assert_int_equal(x->r->counters.io_tx_lost, UDP_PACKETS);
	assert_true(x->r->counters.tx_pkts > UDP_PACKETS); /* the engine goes on */
}

static void a_device_without_bursts_gets_single_packets(void **state)
{
	struct wire *x = *state;

	kernel.refuses = true;
	assert_int_equal(send_after(x, 1000), UDP_PACKETS);
	assert_int_equal(kernel.packets, UDP_PACKETS);
	assert_int_equal(kernel.longest, 1);
	assert_int_equal(warnings, 1);
	assert_int_equal(x->r->counters.io_gso_refused, 1);
	assert_int_equal(x->r->counters.io_gso_off, 1);
	assert_int_equal(x->r->counters.io_tx_lost, 0);
	send_after(x, MINUTE_NS);
	assert_int_equal(x->r->counters.io_gso_refused, 2); /* tried again, told once */
	assert_int_equal(x->r->counters.io_gso_off, 1);
	assert_int_equal(warnings, 1);
}

static void bursts_come_back(void **state)
{
	struct wire *x = *state;

	kernel.refuses = true;
	send_after(x, 1000);
	kernel.refuses = false;
	send_after(x, MINUTE_NS);
	assert_true(kernel.longest > 1);
	assert_int_equal(x->r->counters.io_gso_refused, 1);
	assert_int_equal(x->r->counters.io_gso_off, 0);
}

/* Packets that are too long for the device are refused one by one, too: bursts go on. */
static void a_narrow_device_takes_bursts(void **state)
{
	static const int errors[] = {EINVAL, EMSGSIZE}; /* of older and of newer kernels */
	struct wire *x = *state;

	for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
		uint64_t before = x->r->counters.io_tx_refused;
		kernel.narrow = errors[k];
		send_after(x, 1000);
		assert_true(x->r->counters.io_tx_refused >= before + UDP_PACKETS / 2);
		assert_int_equal(x->r->counters.io_gso_refused, 0);
		assert_int_equal(x->r->counters.io_gso_off, 0);
		assert_true(x->udp.segments);
	}
	assert_int_equal(warnings, 0);
	assert_int_equal(x->r->counters.io_tx_refused, x->r->counters.io_tx_lost);
}

/* EINVAL of all that leaves: the interface has lost our address for a while. */
static void an_address_that_is_gone_is_not_the_device(void **state)
{
	static const int errors[] = {EINVAL, EIO, ENETUNREACH, EADDRNOTAVAIL};
	struct wire *x = *state;

	for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
		kernel.takes = 0;
		kernel.says = errors[k];
		send_after(x, 1000);
		kernel.takes = INT_MAX;
		send_after(x, 1000);
		assert_int_equal(x->r->counters.io_gso_refused, 0);
		assert_int_equal(x->r->counters.io_gso_off, 0);
		assert_true(x->udp.segments);
	}
	assert_int_equal(warnings, 0);
}

static void what_the_kernel_refuses_is_lost(void **state)
{
	static const int errors[] = {EPERM, ENETUNREACH, EMSGSIZE, EIO};
	struct wire *x = *state;

	x->udp.segments = false;
	for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
		uint64_t before = x->r->counters.io_tx_refused;
		kernel.takes = 0;
		kernel.says = errors[k];
		send_after(x, 1000);
		assert_int_equal(x->w.rail[0].held_count, 0);
		assert_true(x->r->counters.io_tx_refused > before);
	}
	assert_int_equal(x->r->counters.io_tx_refused, x->r->counters.io_tx_lost);
	assert_int_equal(kernel.packets, 0);
}

/* EPERM has one meaning, and the operator has to be told it. */
static void a_filter_of_this_host_is_named(void **state)
{
	struct wire *x = *state;

	x->udp.segments = false;
	for (unsigned k = 0; k < 2; k++) {
		kernel.takes = 0;
		kernel.says = EPERM;
		send_after(x, 1000);
	}
	assert_true(x->r->counters.io_tx_filtered > 0);
	assert_int_equal(x->r->counters.io_tx_filtered, x->r->counters.io_tx_refused);
	assert_int_equal(warnings, 1);
}

#define test_wire(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_wire(packets_leave_in_bursts),
		test_wire(a_full_buffer_is_waited_for),
		test_wire(a_full_queue_is_tried_again),
		test_wire(what_was_held_is_what_was_made),
		test_wire(a_port_that_takes_nothing_loses),
		test_wire(a_device_without_bursts_gets_single_packets),
		test_wire(bursts_come_back),
		test_wire(a_narrow_device_takes_bursts),
		test_wire(an_address_that_is_gone_is_not_the_device),
		test_wire(what_the_kernel_refuses_is_lost),
		test_wire(a_filter_of_this_host_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
