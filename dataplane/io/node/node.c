/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include "attach.h"
#include "io/ports/eal.h"
#include "io/net/ether.h"
#include "internal/program/open_files.h"
#include "io/observe/log.h"
#include "io/observe/telemetry.h"

/* The folder is ours alone while we run. The kernel drops the lock with the process. */
static int node_lock(struct node *n)
{
	char path[128];
	mkdir(n->options->rundir, 0755); /* where it is there, or cannot be, the lock tells */
	snprintf(path, sizeof(path), "%s/dataplane.lock", n->options->rundir);
	n->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (n->lock_fd < 0) {
		log_error("cannot use the run directory %s (%s): create it, or name another with "
			  "--rundir",
			  n->options->rundir, strerror(errno));
		return -errno;
	}
	if (flock(n->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	log_error("another sarissa-dataplane runs in %s: stop it, or name another --rundir",
		  n->options->rundir);
	return -EBUSY;
}

/* The ports and why they were chosen, for `sarissa status` and `doctor`: two lines for each rail.
 * Nothing else depends on the file, so a full disk only costs them these lines. */
static void node_note_ports(const struct options *first)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/port", first->rundir);
	FILE *file = fopen(path, "we");
	for (const struct options *o = first; o < first + first->rails; o++) {
		const char *why = *o->port_why ? o->port_why : "named by --port";
		if (file)
			fprintf(file, "%s\n%s\n", o->port.text, why);
		if (*o->port_why)
			log_info("--port auto takes %s: %s", o->port.text, o->port_why);
	}
	if (file)
		fclose(file);
}

/* Pages are allocated when objects come. A page that is missing would fail only then, at the first
 * process that touches it. */
static int node_check_store(const struct options *o)
{
	uint64_t have = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (o->store_bytes <= have)
		return 0;
	log_error("--store %llu: this machine has %llu MiB of memory: use a smaller --store",
		  (unsigned long long)(o->store_bytes >> 20), (unsigned long long)(have >> 20));
	return -ENOMEM;
}

/* All signals wait in a descriptor; the workers inherit the mask. Real-time ones are blocked too,
 * for the tap driver (port.c), and SIGIO, which the kernel sends when those run over. */
static int node_signals(struct node *n)
{
	sigset_t ends, blocked;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	blocked = ends;
	sigaddset(&blocked, SIGIO);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		sigaddset(&blocked, s);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* `ulimit -f` counts the store, too */
	n->signal_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	return n->signal_fd < 0 ? -errno : 0;
}

static int node_eventfd(int *out)
{
	*out = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *out < 0 ? -errno : 0;
}

void node_rail_queues(const struct node *n, struct worker *w, unsigned k)
{
	const struct port *p = &n->port[k];
	struct rail *r = &w->rail[k];
	r->ins = 0;
	for (unsigned q = w->index; q < p->queues; q += w->workers)
		r->in[r->ins++] = &p->queue[q];
}

static int node_make_rail(struct node *n, struct worker *w, unsigned k)
{
	char name[32];
	struct rail *r = &w->rail[k];
	snprintf(name, sizeof(name), "handover%u.%u", w->index, k);
	*r = (struct rail){
		.index = (uint8_t)k,
		.port = &n->port[k],
		.out = &n->port[k].queue[w->index],
		.udp = n->port[k].udp[w->index],
		.handover = rte_ring_create(name, WORKER_HANDOVER, SOCKET_ID_ANY, RING_F_SC_DEQ),
	};
	node_rail_queues(n, w, k);
	return r->handover ? 0 : -ENOMEM;
}

static int node_make_worker(struct node *n, unsigned i)
{
	struct worker *w = &n->worker[i];
	int error = 0;
	*w = (struct worker){
		.index = i,
		.workers = n->options->workers,
		.all = n->worker,
		.rails = n->rails,
		.resolver_fd = n->resolver_fd,
		.prefault = &n->prefault,
		.busy_poll = n->options->busy_poll,
		.counters = shm_file_worker(n->counters, i),
		.scratch = malloc(ETHER_FRAME_MAX),
	};
	for (unsigned k = 0; k < n->rails && !error; k++)
		error = node_make_rail(n, w, k);
	rte_mbuf_ext_refcnt_set(&w->pinned, 1);
	if (error || !w->scratch)
		return -ENOMEM;
	return node_eventfd(&w->wake_fd);
}

static int node_make_workers(struct node *n)
{
	unsigned count = n->options->workers;
	int error = shm_counters_create(n->options->rundir, count, &n->counters);
	if (!error)
		error = shm_peers_create(n->options->rundir, count, n->options->peers_max,
					 &n->peers);
	if (!error)
		error = node_eventfd(&n->control_wake);
	if (!error)
		error = prefault_open(&n->prefault);
	n->worker = aligned_alloc(64, count * sizeof(*n->worker));
	if (!n->worker)
		error = -ENOMEM;
	for (unsigned i = 0; i < count && !error; i++)
		error = node_make_worker(n, i);
	if (error)
		log_error("cannot set up the workers in %s (%s): check its space and rights",
			  n->options->rundir, strerror(-error));
	return error;
}

int node_open_netlink(struct node *n, unsigned k)
{
	struct port *p = &n->port[k];
	if (!p->neighbours || p->answers) /* nobody to ask, or we ask the link ourselves */
		return 0;
	n->netlink[k] = malloc(sizeof(*n->netlink[k]));
	return n->netlink[k] ? netlink_open(n->netlink[k], p->interface.index, p->neighbours)
			     : -ENOMEM;
}

void node_close_netlink(struct node *n, unsigned k)
{
	if (n->netlink[k])
		netlink_close(n->netlink[k]);
	free(n->netlink[k]);
	n->netlink[k] = NULL;
}

static int node_open_resolver(struct node *n)
{
	int error = 0;
	n->resolver_fd = -1;
	for (unsigned k = 0; k < n->rails && !error; k++) {
		error = node_open_netlink(n, k);
		if (!error && n->netlink[k] && n->resolver_fd < 0)
			error = node_eventfd(&n->resolver_fd);
	}
	if (error)
		log_error("cannot ask the kernel for neighbours (%s): is netlink allowed here?",
			  strerror(-error));
	return error;
}

static void node_start_workers(struct node *n)
{
	for (unsigned i = 0; i < n->options->workers; i++)
		rte_eal_remote_launch(worker_run, &n->worker[i], i + 1);
}

static void node_stop_workers(struct node *n)
{
	for (unsigned i = 0; i < n->options->workers; i++) {
		atomic_store(&n->worker[i].stop, true);
		eventfd_write(n->worker[i].wake_fd, 1);
	}
	rte_eal_mp_wait_lcore();
}

static void node_drop_control(struct node *n)
{
	if (n->control_fd >= 0)
		close(n->control_fd);
	n->control_fd = -1;
}

static void node_accept(struct node *n)
{
	int fd = attach_accept(n->listen_fd);
	if (fd < 0)
		return;
	if (n->control_fd < 0) {
		n->control_fd = fd;
		n->control_pid = 0;
		return;
	}
	struct attach_reply busy = {
		.magic = ATTACH_MAGIC, .version = IPC_VERSION, .pid = getpid(), .error = -EBUSY};
	attach_write_reply(fd, &busy, NULL, 0);
	if (n->refused_fd >= 0) /* open until the next: its request must still find a reader */
		close(n->refused_fd);
	n->refused_fd = fd;
}

static void node_attach(struct node *n)
{
	struct attach_request request;
	struct attach_reply reply = {
		.magic = ATTACH_MAGIC, .version = IPC_VERSION, .pid = getpid()};
	int brought[ATTACH_STORE_FDS], out[ATTACH_FDS_MAX];
	int error = attach_read_request(n->control_fd, &request, brought);
	if (error == -EAGAIN)
		return;
	if (!error && n->control_pid != 0)
		error = -EPROTO; /* one request per connection */
	else if (!error)
		error = session_begin(n, &request, brought, &reply);
	if (!error) {
		n->control_pid = request.pid ? request.pid : -1;
		out[0] = n->store.fd;
		out[1] = n->table.fd;
		out[2] = n->private.fd;
		out[3] = n->ipc.fd;
		out[4] = n->control_wake;
		for (unsigned w = 0; w < n->options->workers; w++)
			out[ATTACH_OWN_FDS + w] = n->worker[w].wake_fd;
		error = attach_write_reply(n->control_fd, &reply, out,
					   ATTACH_OWN_FDS + n->options->workers);
		log_info("control (pid %d) attached", request.pid);
	} else if (error != -ECONNRESET) {
		reply.error = error;
		attach_write_reply(n->control_fd, &reply, NULL, 0);
	}
	if (error)
		node_drop_control(n);
}

static void node_control_event(struct node *n, short events)
{
	bool attached = n->control_pid != 0;
	if (events & POLLIN)
		node_attach(n);
	else if (events & (POLLHUP | POLLERR))
		node_drop_control(n);
	if (attached && n->control_fd < 0)
		log_info("control has gone: running transfers go on, a new one may attach");
}

enum {
	WATCH_SIGNAL,
	WATCH_LISTEN,
	WATCH_CONTROL,
	WATCH_RESOLVER,
	WATCH_PREFAULT,
	WATCH_NETLINK, /* of each rail */
	WATCHES = WATCH_NETLINK + RAILS_MAX
};

static int node_sooner_ms(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static int node_wait_ms(const struct node *n)
{
	int wait_ms = watchdog_wait_ms(&n->watchdog, worker_now_ns());
	wait_ms = node_sooner_ms(wait_ms, prefault_wait_ms(&n->prefault, worker_now_ns()));
	for (unsigned k = 0; k < n->rails; k++) {
		if (n->netlink[k])
			wait_ms = node_sooner_ms(wait_ms, netlink_wait_ms(n->netlink[k]));
		if (!n->away[k].is)
			wait_ms = node_sooner_ms(wait_ms,
						 device_look_ms(&n->port[k], worker_now_ns()));
	}
	wait_ms = node_sooner_ms(wait_ms, away_wait_ms(n, worker_now_ns()));
	return n->capture ? node_sooner_ms(wait_ms, CAPTURE_MS) : wait_ms;
}

/* Workers' questions about neighbours, and the kernel's news of them. */
static void node_resolve(struct node *n, const struct pollfd *fds)
{
	eventfd_t count;
	if (fds[WATCH_RESOLVER].revents)
		eventfd_read(n->resolver_fd, &count);
	for (unsigned k = 0; k < n->rails; k++) {
		struct netlink *one = n->netlink[k];
		if (!one || !(fds[WATCH_RESOLVER].revents || fds[WATCH_NETLINK + k].revents ||
			      netlink_is_due(one, worker_now_ns())))
			continue;
		netlink_take_events(one, worker_now_ns());
		netlink_resolve(one, worker_now_ns());
	}
}

static void node_look(struct node *n)
{
	for (unsigned k = 0; k < n->rails; k++)
		if (!n->away[k].is)
			device_look(&n->port[k], n->options[k].port.text, n->worker[0].counters,
				    worker_now_ns());
}

/* The main thread's loop: everything that is not a packet. */
static void node_loop(struct node *n)
{
	for (;;) {
		struct pollfd fds[WATCHES] = {
			[WATCH_SIGNAL] = {.fd = n->signal_fd, .events = POLLIN},
			[WATCH_LISTEN] = {.fd = n->listen_fd, .events = POLLIN},
			[WATCH_CONTROL] = {.fd = n->control_fd, .events = POLLIN},
			[WATCH_RESOLVER] = {.fd = n->resolver_fd, .events = POLLIN},
			[WATCH_PREFAULT] = {.fd = n->prefault.more ? -1 : n->prefault.wake_fd,
					    .events = POLLIN},
		};
		for (unsigned k = 0; k < RAILS_MAX; k++)
			fds[WATCH_NETLINK + k] =
				(struct pollfd){.fd = n->netlink[k] ? n->netlink[k]->events_fd : -1,
						.events = POLLIN};
		if (poll(fds, WATCHES, node_wait_ms(n)) < 0 && errno != EINTR)
			return;
		if (fds[WATCH_SIGNAL].revents)
			return;
		if (fds[WATCH_CONTROL].revents)
			node_control_event(n, fds[WATCH_CONTROL].revents);
		if (fds[WATCH_LISTEN].revents)
			node_accept(n);
		if (fds[WATCH_PREFAULT].revents ||
		    prefault_wait_ms(&n->prefault, worker_now_ns()) == 0)
			prefault_step(&n->prefault);
		node_resolve(n, fds);
		if (n->capture)
			capture_write(n->capture);
		node_look(n);
		away_step(n, worker_now_ns());
		watchdog_step(&n->watchdog, n->worker, n->options->workers, worker_now_ns());
	}
}

/* Chunks must fit every rail. */
static void node_one_mtu(struct node *n)
{
	uint16_t least = n->port[0].mtu;
	for (unsigned k = 1; k < n->rails; k++) {
		if (n->port[k].mtu != least)
			log_warning("the ports' MTUs differ: all are used with the smallest");
		least = RTE_MIN(least, n->port[k].mtu);
	}
	for (unsigned k = 0; k < n->rails; k++)
		n->port[k].mtu = least;
}

/* Traffic from one memory node to another is slow: rings, packets, store. */
static void node_check_places(const struct options *o, const struct card *card)
{
	if (card->memory_node < 0 || card_core_node("/sys", 0) < 0)
		return; /* not a card, or one node alone */
	if (!o->cores)
		log_warning("port %s: the card is at memory node %d, and workers float over all: "
			    "name cores of that node with --cores",
			    o->port.text, card->memory_node);
	for (unsigned w = 0; o->cores && w < o->workers; w++) {
		int node = card_core_node("/sys", o->core[w]);
		if (node >= 0 && node != card->memory_node)
			log_warning("worker %u: core %d is at memory node %d, the card at node %d: "
				    "name cores of that node with --cores",
				    w, o->core[w], node, card->memory_node);
	}
}

/* Cards at several memory nodes leave the store where the kernel puts it. */
static void node_find_memory(struct node *n)
{
	bool differ = false;
	n->memory_node = -1;
	for (unsigned k = 0; k < n->rails; k++) {
		int at = n->port[k].card.memory_node;
		differ |= at >= 0 && n->memory_node >= 0 && at != n->memory_node;
		if (at >= 0)
			n->memory_node = at;
		node_check_places(&n->options[k], &n->port[k].card);
	}
	if (differ)
		n->memory_node = -1;
}

/* Now that interfaces have told their addresses. */
static int node_check_addresses(const struct node *n)
{
	for (unsigned k = 1; k < n->rails; k++)
		for (unsigned i = 0; i < k; i++)
			if (memcmp(n->port[i].addr.ip, n->port[k].addr.ip, 16) == 0) {
				log_error("port %s has the address of port %s: a rail has its own, "
					  "see --addr",
					  n->options[k].port.text, n->options[i].port.text);
				return -EADDRINUSE;
			}
	return 0;
}

static int node_open_ports(struct node *n)
{
	const struct options *o = n->options;
	int error = 0;
	for (unsigned k = 0; k < n->rails && !error; k++)
		error = port_plan(&o[k], &n->port[k]);
	if (!error)
		error = node_check_addresses(n);
	if (!error)
		error = eal_start(o, n->port, &n->huge_pages);
	n->eal = !error;
	for (unsigned k = 0; k < n->rails && !error; k++)
		error = port_open(&o[k], &n->port[k]);
	if (error)
		return error;
	node_one_mtu(n);
	node_find_memory(n);
	return 0;
}

static int node_open(struct node *n)
{
	const struct options *o = n->options;
	open_files_raise();
	int error = node_check_store(o);
	if (!error)
		error = node_lock(n);
	if (!error)
		node_note_ports(o);
	if (!error)
		error = node_signals(n);
	if (!error && !eal_has_rights(o))
		error = -EPERM;
	if (!error)
		error = node_open_ports(n);
	if (!error)
		error = node_open_resolver(n);
	if (!error)
		error = node_make_workers(n);
	if (!error && o->capture && !(n->capture = capture_start(o->capture, n->port, n->rails)))
		error = -EIO;
	if (error)
		return error;
	n->listen_fd = attach_listen(o->rundir);
	if (n->listen_fd >= 0)
		return 0;
	log_error("cannot listen in %s (%s): check its rights", o->rundir, strerror(-n->listen_fd));
	return n->listen_fd;
}

static void node_close(struct node *n)
{
	if (n->listen_fd >= 0)
		attach_unlink(n->options->rundir);
	if (n->capture)
		capture_stop(n->capture);
	free(n->prefault.mapped);
	for (unsigned k = 0; k < n->rails; k++) {
		node_close_netlink(n, k);
		port_close(&n->port[k]);
	}
	if (n->eal)
		rte_eal_cleanup();
}

static void node_tell_ready(const struct node *n)
{
	const struct port *p = &n->port[0];
	bool buffers = false;
	for (unsigned k = 0; k < n->rails; k++)
		buffers |= !n->port[k].type->sockets;
	const char *pages = n->huge_pages ? ", packets in huge pages"
			    : !buffers	  ? ""
					  : ", packets in ordinary pages (no huge pages free)";
	log_info("ready on %s, MTU %u, %u worker%s%s", p->text, p->mtu, p->workers,
		 p->workers > 1 ? "s" : "", pages);
	for (unsigned k = 1; k < n->rails; k++)
		log_info("rail %u: %s", k, n->port[k].text);
}

int node_run(const struct options *o)
{
	static struct node n;
	n = (struct node){.options = o,
			  .rails = o->rails,
			  .store.fd = -1,
			  .table.fd = -1,
			  .ipc.fd = -1,
			  .lock_fd = -1,
			  .listen_fd = -1,
			  .control_fd = -1,
			  .refused_fd = -1,
			  .resolver_fd = -1};
	int error = node_open(&n);
	if (!error) {
		telemetry_register(&n);
		for (unsigned k = 0; k < n.rails; k++)
			link_begin(&n.port[k].link, worker_now_ns());
		node_start_workers(&n);
		node_tell_ready(&n);
		watchdog_start(&n.watchdog, n.worker, o->workers, worker_now_ns());
		notify_status(&n.watchdog.notify, "%s", n.port[0].text);
		node_loop(&n);
		notify_say(&n.watchdog.notify, NOTIFY_STOPPING);
		node_stop_workers(&n);
	}
	node_close(&n);
	return error ? 1 : 0;
}
