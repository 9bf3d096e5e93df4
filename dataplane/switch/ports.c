/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch itself: AF_XDP ports of DPDK. A frame to the aggregator is added up; all others, and
 * those of groups that it has no room for, are forwarded as a bridge does. When the process ends,
 * its programs go with it, and whatever the kernel does with the interfaces takes over.
 */
#include "switch.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include "bridge.h"
#include "io/node/worker.h"
#include "io/observe/log.h"
#include "io/ports/port.h"

enum {
	BURST = 32,
	HELD_MAX = 256, /* frames that wait for a port */
	DESCRIPTORS = 1024,
	ANSWERS = 8191, /* answers under way */
	MTU = 1500,
};

struct port_out {
	unsigned count;
	struct rte_mbuf *held[HELD_MAX];
};

struct ports {
	struct switch_state *w;
	unsigned count;
	uint16_t id[SWITCH_PORTS_MAX];
	int fd[SWITCH_PORTS_MAX];
	struct rte_mempool *answers;
	struct port_out out[SWITCH_PORTS_MAX];
	struct bridge bridge;
};

static int ports_start_eal(unsigned ports)
{
	char memory[16];
	snprintf(memory, sizeof(memory), "%u",
		 EAL_MIB + pool_mib(true, MTU, ports, false) + 8 + ANSWERS * 4 / 1024);
	char *args[] = {"sarissa-switch", "--lcores=0",	 "-m",	     memory,
			"--no-huge",	  "--no-shconf", "--no-pci", "--no-telemetry",
			"--iova-mode=va", NULL};
	log_take_dpdk();
	if (rte_eal_init(sizeof(args) / sizeof(*args) - 1, args) >= 0)
		return 0;
	log_error("DPDK does not start (%s, %s): see --log-level debug", rte_strerror(rte_errno),
		  log_dpdk_error());
	return -EIO;
}

static int port_refuse(const char *name, int error, const char *what)
{
	const char *detail = *xdp_attach_error() ? xdp_attach_error() : log_dpdk_error();
	log_error("port af_xdp:%s: %s (%s%s%s): is it up, and without an XDP program?", name, what,
		  strerror(-error), *detail ? "; " : "", detail);
	return error;
}

static int port_open_one(struct ports *p, unsigned i)
{
	const char *name = p->w->options->interface[i];
	char devargs[PATH_MAX + 128], pool_name[32];
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	uint16_t id;
	if (if_nametoindex(name) == 0)
		return port_refuse(name, -ENODEV, "no such interface");
	snprintf(devargs, sizeof(devargs),
		 "net_af_xdp%u,iface=%s,start_queue=0,xdp_prog=%s,busy_budget=0", i, name,
		 xdp_object("switch_redirect.bpf.o"));
	log_dpdk_forget();
	int error = rte_dev_probe(devargs);
	*strchr(devargs, ',') = 0;
	if (error || rte_eth_dev_get_port_by_name(devargs, &id))
		return port_refuse(name, error ? error : -ENODEV, "the device does not come up");
	snprintf(pool_name, sizeof(pool_name), "port%u", i);
	struct rte_mempool *pool =
		pool_create(pool_name, true, MTU, PORT_XDP_FILL, DESCRIPTORS, 1, SOCKET_ID_ANY);
	if (!pool)
		return port_refuse(name, -ENOMEM, "no memory for packet buffers");
	error = rte_eth_dev_configure(id, 1, 1, &conf);
	if (!error)
		error = rte_eth_rx_queue_setup(id, 0, PORT_XDP_FILL, (unsigned)SOCKET_ID_ANY, NULL,
					       pool);
	if (!error)
		error = rte_eth_tx_queue_setup(id, 0, DESCRIPTORS, (unsigned)SOCKET_ID_ANY, NULL);
	if (!error)
		error = rte_eth_dev_start(id);
	if (error)
		return port_refuse(name, error, "it does not start");
	rte_eth_promiscuous_enable(id);
	p->id[i] = id;
	p->fd[i] = xdp_find_socket(p->fd, i);
	p->count = i + 1;
	return 0;
}

static int ports_open(struct ports *p)
{
	unsigned ports = p->w->options->ports;
	int error = ports_start_eal(ports);
	if (error)
		return error;
	p->answers = rte_pktmbuf_pool_create("answers", ANSWERS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					     SOCKET_ID_ANY);
	if (!p->answers) {
		log_error("no memory for answers");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < ports && !error; i++)
		error = port_open_one(p, i);
	return error;
}

static void port_flush(struct ports *p, unsigned i)
{
	struct port_out *o = &p->out[i];
	unsigned sent = 0;
	while (sent < o->count) {
		unsigned n = rte_eth_tx_burst(p->id[i], 0, o->held + sent,
					      (uint16_t)RTE_MIN(o->count - sent, (unsigned)BURST));
		if (n == 0)
			break;
		sent += n;
	}
	p->w->count.sent += sent;
	o->count -= sent;
	memmove(o->held, o->held + sent, o->count * sizeof(*o->held));
}

/* Takes the buffer over. */
static void port_send(struct ports *p, unsigned i, struct rte_mbuf *m)
{
	struct port_out *o = &p->out[i];
	if (o->count == HELD_MAX)
		port_flush(p, i);
	if (o->count == HELD_MAX) {
		p->w->count.dropped++;
		rte_pktmbuf_free(m);
		return;
	}
	o->held[o->count++] = m;
}

/* One buffer to all of those ports; drivers copy what is not from their own pool. */
static void ports_send(struct ports *p, uint64_t ports, struct rte_mbuf *m)
{
	unsigned count = (unsigned)__builtin_popcountll(ports);
	if (count == 0) {
		rte_pktmbuf_free(m);
		return;
	}
	rte_mbuf_refcnt_update(m, (int16_t)(count - 1));
	for (unsigned i = 0; i < p->count; i++)
		if (ports >> i & 1)
			port_send(p, i, m);
}

static void ports_answer(struct ports *p, const struct aggregate_answer *a)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->answers);
	if (!m) {
		p->w->count.dropped++;
		return;
	}
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t bytes = aggregate_write(a, frame + BRIDGE_FRAME_HEADERS);
	bridge_write_headers(frame, bytes, a->header.group, a->origin);
	m->data_len = (uint16_t)(BRIDGE_FRAME_HEADERS + bytes);
	m->pkt_len = m->data_len;
	ports_send(p, a->ports, m);
}

/* To all others. A driver sends a buffer of its own pool as it is, so that only one may have it:
 * the rest get copies. */
static void ports_flood(struct ports *p, unsigned from, struct rte_mbuf *m)
{
	p->w->count.flooded++;
	struct rte_mbuf *copy = m->pkt_len <= RTE_MBUF_DEFAULT_DATAROOM
					? rte_pktmbuf_copy(m, p->answers, 0, UINT32_MAX)
					: NULL;
	rte_pktmbuf_free(m);
	if (copy)
		ports_send(p, ((1ull << p->count) - 1) & ~(1ull << from), copy);
}

static void ports_forward(struct ports *p, unsigned from, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	unsigned to = bridge_forward(&p->bridge, from, frame);
	bridge_fill_checksum(frame, m->data_len);
	if (to == from) {
		rte_pktmbuf_free(m);
		return;
	}
	if (to == BRIDGE_NO_PORT) {
		ports_flood(p, from, m);
		return;
	}
	p->w->count.forwarded++;
	port_send(p, to, m);
}

static void ports_take(struct ports *p, unsigned from, struct rte_mbuf *m, uint64_t now)
{
	const struct switch_options *o = p->w->options;
	struct aggregate_answer a;
	struct aggregate_source source = {.port = from};
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t bytes;
	if (m->data_len < 14) {
		rte_pktmbuf_free(m);
		return;
	}
	if (o->has_address && bridge_answer_arp(frame, m->data_len, o->address)) {
		port_send(p, from, m);
		return;
	}
	const uint8_t *packet = bridge_contribution(frame, m->data_len, &bytes, &source.origin);
	if (!packet) {
		ports_forward(p, from, m);
		return;
	}
	enum aggregate_verdict v = aggregate_take(&p->w->pool, now, source, packet, bytes, &a);
	if (v == AGGREGATE_PASS) {
		ports_forward(p, from, m);
		return;
	}
	bridge_forward(&p->bridge, from, frame); /* its sender is learnt */
	rte_pktmbuf_free(m);
	if (v >= AGGREGATE_COMPLETE)
		ports_answer(p, &a);
}

/* One look at each port that has frames: to look at an empty one would be a system call. */
static void ports_turn(struct ports *p, const struct pollfd *f)
{
	struct rte_mbuf *m[BURST];
	struct aggregate_answer a;
	for (unsigned i = 0; i < p->count; i++) {
		if (!(f[i].revents & POLLIN))
			continue;
		unsigned n = rte_eth_rx_burst(p->id[i], 0, m, BURST);
		uint64_t now = n ? worker_now_ns() : 0;
		for (unsigned k = 0; k < n; k++)
			ports_take(p, i, m[k], now);
		p->w->count.received += n;
	}
	while (aggregate_expire(&p->w->pool, worker_now_ns(), &a))
		ports_answer(p, &a);
	for (unsigned i = 0; i < p->count; i++)
		if (p->out[i].count)
			port_flush(p, i);
}

static void ports_wait(struct ports *p, struct pollfd *f)
{
	uint64_t now = worker_now_ns(), at = aggregate_timeout(&p->w->pool),
		 most = now + 100000000u;
	for (unsigned i = 0; i < p->count; i++) {
		f[i] = (struct pollfd){.fd = p->fd[i], .events = POLLIN};
		if (p->out[i].count)
			most = now + 1000000u;
	}
	uint64_t left = at <= now ? 0 : (at < most ? at : most) - now;
	struct timespec t = {.tv_nsec = (long)left};
	if (ppoll(f, p->count, &t, NULL) <= 0)
		memset(f, 0, p->count * sizeof(*f));
}

static void ports_close(struct ports *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		rte_eth_dev_stop(p->id[i]);
		rte_eth_dev_close(p->id[i]);
	}
	xdp_attach_end(0);
	rte_eal_cleanup();
}

int ports_run(struct switch_state *w, const volatile sig_atomic_t *stop)
{
	static struct ports p;
	p.w = w;
	w->pool.own = UINT32_MAX; /* no host has that address */
	if (w->options->has_address)
		memcpy(&w->pool.own, w->options->address, 4);
	int error = ports_open(&p);
	if (!error)
		log_info("switches %u ports, aggregates at UDP port %u: %u groups of %u slots",
			 p.count, AGGREGATE_PORT, w->options->groups, w->options->window);
	while (!error && !*stop) {
		struct pollfd f[SWITCH_PORTS_MAX];
		ports_wait(&p, f);
		ports_turn(&p, f);
	}
	ports_close(&p);
	return error;
}
