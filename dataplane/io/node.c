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
#include "eal.h"
#include "ether.h"
#include "internal/open_files.h"
#include "log.h"
#include "telemetry.h"

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

/* What carries the packets and why, for `sarissa status` and `doctor`: two lines. Nothing else
 * depends on the file, so a full disk only costs them these lines. */
static void node_note_port(const struct options *o)
{
	const char *why = *o->port_why ? o->port_why : "named by --port";
	char path[128];
	snprintf(path, sizeof(path), "%s/port", o->rundir);
	FILE *file = fopen(path, "we");
	if (file) {
		fprintf(file, "%s\n%s\n", o->port.text, why);
		fclose(file);
	}
	if (*o->port_why)
		log_info("--port auto takes %s: %s", o->port.text, o->port_why);
}

/* Its pages are taken as objects come: what is not there would be missed only then, by whoever
 * touches it. */
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

static int node_make_worker(struct node *n, unsigned i)
{
	char name[32];
	struct worker *w = &n->worker[i];
	snprintf(name, sizeof(name), "handover%u", i);
	*w = (struct worker){
		.index = i,
		.workers = n->options->workers,
		.all = n->worker,
		.port = &n->port,
		.out = &n->port.queue[i],
		.udp = n->port.udp[i],
		.resolver_fd = n->resolver_fd,
		.prefault = &n->prefault,
		.busy_poll = n->options->busy_poll,
		.handover = rte_ring_create(name, WORKER_HANDOVER, SOCKET_ID_ANY, RING_F_SC_DEQ),
		.counters = shm_file_worker(n->counters, i),
		.scratch = malloc(ETHER_FRAME_MAX),
	};
	for (unsigned q = i; q < n->port.queues; q += w->workers)
		w->in[w->ins++] = &n->port.queue[q];
	rte_mbuf_ext_refcnt_set(&w->pinned, 1);
	if (!w->handover || !w->scratch)
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

/* Where the kernel owns our address it also knows our neighbours; sockets need not ask. */
static int node_open_resolver(struct node *n)
{
	n->resolver_fd = -1;
	if (n->port.answers || n->port.kind == PORT_UDP)
		return 0;
	n->netlink = malloc(sizeof(*n->netlink));
	int error = n->netlink
			    ? netlink_open(n->netlink, n->port.interface.index, n->port.neighbours)
			    : -ENOMEM;
	if (!error)
		error = node_eventfd(&n->resolver_fd);
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
	int brought[2], out[ATTACH_FDS_MAX];
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
		out[2] = n->ipc.fd;
		out[3] = n->control_wake;
		for (unsigned w = 0; w < n->options->workers; w++)
			out[4 + w] = n->worker[w].wake_fd;
		error = attach_write_reply(n->control_fd, &reply, out, 4 + n->options->workers);
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
	WATCH_NETLINK,
	WATCH_PREFAULT,
	WATCHES
};

static int node_sooner_ms(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static int node_wait_ms(const struct node *n)
{
	int wait_ms = watchdog_wait_ms(&n->watchdog, worker_now_ns());
	wait_ms = node_sooner_ms(wait_ms, prefault_wait_ms(&n->prefault, worker_now_ns()));
	if (n->netlink)
		wait_ms = node_sooner_ms(wait_ms, netlink_wait_ms(n->netlink));
	return n->capture ? node_sooner_ms(wait_ms, CAPTURE_MS) : wait_ms;
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
			[WATCH_NETLINK] = {.fd = n->netlink ? n->netlink->events_fd : -1,
					   .events = POLLIN},
			[WATCH_PREFAULT] = {.fd = n->prefault.more ? -1 : n->prefault.wake_fd,
					    .events = POLLIN},
		};
		eventfd_t count;
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
		if (fds[WATCH_RESOLVER].revents)
			eventfd_read(n->resolver_fd, &count);
		if (n->netlink && (fds[WATCH_RESOLVER].revents || fds[WATCH_NETLINK].revents ||
				   netlink_is_due(n->netlink, worker_now_ns()))) {
			netlink_take_events(n->netlink, worker_now_ns());
			netlink_resolve(n->netlink, worker_now_ns());
		}
		if (n->capture)
			capture_write(n->capture);
		watchdog_step(&n->watchdog, n->worker, n->options->workers, worker_now_ns());
	}
}

static int node_open(struct node *n)
{
	const struct options *o = n->options;
	open_files_raise();
	int error = node_check_store(o);
	if (!error)
		error = node_lock(n);
	if (!error)
		node_note_port(o);
	if (!error)
		error = node_signals(n);
	if (!error && !eal_has_rights(o))
		error = -EPERM;
	if (!error)
		error = port_plan(o, &n->port);
	if (!error)
		error = eal_start(o, &n->port, &n->huge_pages);
	n->eal = !error;
	if (!error)
		error = port_open(o, &n->port);
	if (!error)
		error = node_open_resolver(n);
	if (!error)
		error = node_make_workers(n);
	if (!error && o->capture && !(n->capture = capture_start(o->capture, &n->port)))
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
	if (n->netlink)
		netlink_close(n->netlink);
	free(n->netlink);
	free(n->prefault.mapped);
	port_close(&n->port);
	if (n->eal)
		rte_eal_cleanup();
}

static void node_tell_ready(const struct node *n)
{
	const char *pages = n->huge_pages	       ? ", packets in huge pages"
			    : n->port.kind == PORT_UDP ? ""
						       : ", packets in ordinary pages (no huge "
							 "pages free)";
	log_info("ready on %s, MTU %u, %u worker%s%s", n->port.text, n->port.mtu, n->port.workers,
		 n->port.workers > 1 ? "s" : "", pages);
}

int node_run(const struct options *o)
{
	static struct node n;
	n = (struct node){.options = o,
			  .port = {.xdp.lock_fd = -1},
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
		node_start_workers(&n);
		node_tell_ready(&n);
		watchdog_start(&n.watchdog, n.worker, o->workers, worker_now_ns());
		notify_status(&n.watchdog.notify, "%s", n.port.text);
		node_loop(&n);
		notify_say(&n.watchdog.notify, NOTIFY_STOPPING);
		node_stop_workers(&n);
	}
	node_close(&n);
	return error ? 1 : 0;
}
