/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "clients/answers.h"
#include "internal/program/open_files.h"
#include "clients/identity.h"
#include "files/lease_file.h"
#include "lock.h"
#include "log.h"
#include "topology/file.h"

enum {
	RETRY_MS = 100,
	READY_MS = 5000,
	LEAVE_MS = 50, /* for the goodbye to reach the others */
	OWN_DESCRIPTORS = 64,
	REPLY_MS = 10000, /* a dataplane that does not answer an attach in so long is left */
};

uint64_t host_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- handles that come and go: libuv wants them on the heap -------------------------------- */

static void host_free_handle(uv_handle_t *handle)
{
	free(handle);
}

static uv_poll_t *host_poll(struct host *h, int fd, uv_poll_cb callback)
{
	uv_poll_t *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->data = h;
	if (uv_poll_init(&h->loop, p, fd) < 0) {
		free(p);
		return NULL;
	}
	if (uv_poll_start(p, UV_READABLE, callback) == 0)
		return p;
	uv_close((uv_handle_t *)p, host_free_handle);
	return NULL;
}

static void host_unpoll(uv_poll_t **p)
{
	if (*p)
		uv_close((uv_handle_t *)*p, host_free_handle);
	*p = NULL;
}

/* Ends the process in good order; status is its exit status. */
static void host_stop(struct host *h, int status)
{
	h->status = status;
	h->stopping = true;
	uv_stop(&h->loop);
}

/* ---- the dataplane ------------------------------------------------------------------------- */

static void host_try_attach(uv_timer_t *timer);

static void host_retry(struct host *h)
{
	host_unpoll(&h->attaching);
	host_unpoll(&h->wake);
	attach_end(&h->attach);
	if (h->leaving) {
		host_stop(h, 0);
		return;
	}
	uv_timer_start(&h->retry, host_try_attach, RETRY_MS, 0);
}

static void host_lost_dataplane(struct host *h)
{
	log_warning("the dataplane has gone: objects stay readable here, transfers go on when it "
		    "is started again");
	h->attached = false;
	notify_status(&h->notify, "waiting for the dataplane");
	control_detach(h->core, host_now_ns());
	host_retry(h);
}

static void host_woken(uv_poll_t *p, int status, int events)
{
	struct host *h = p->data;
	uint64_t count;

	if (read(h->attach.control_wake, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_debug("eventfd: %s", strerror(errno));
}

/* After the attach the socket can only say its end. */
static void host_socket_ended(uv_poll_t *p, int status, int events)
{
	host_lost_dataplane(p->data);
}

static int host_core(struct host *h, uint32_t slots);

/* Clients are let in as soon as the node is one of the cluster. */
static void host_membership(struct host *h)
{
	if (!h->core) /* no dataplane yet */
		return;
	switch (control_membership(h->core)) {
	case CONTROL_JOINING:
		return;
	case CONTROL_FENCED: /* it has said why */
		host_stop(h, 1);
		return;
	case CONTROL_MEMBER:
		break;
	}
	if (h->member || !h->attached)
		return;
	h->member = true;
	log_info("this is node %u", control_number(h->core));
	if (clients_listen(&h->clients))
		host_stop(h, 1);
	else
		notify_say(&h->notify, NOTIFY_READY);
}

/* Whether all links of the topology are of use to a dataplane of so many ports. */
static void host_rails(const struct host *h, uint32_t rails)
{
	struct topology *t = h->topology ? h->topology : h->options->topology;
	char why[TOPOLOGY_WHY_BYTES];

	if (!t)
		return;
	t->network.crossed = rails > 1 && topology_unlike(t, why);
	if (t->network.crossed)
		log_warning("--topology: %s: %s; no allreduce is planned along its levels",
			    h->options->topology_path, why);
}

static void host_begin(struct host *h)
{
	uint8_t *ipc = (uint8_t *)h->attach.ipc;
	struct control_attach a = {h->attach.reply, h->attach.store, h->attach.table,
				   h->attach.private};
	int error;

	if (!h->core && host_core(h, a.table->slots)) {
		host_stop(h, 1);
		return;
	}
	if (!h->attach.kept) /* another store: what clients have mapped says nothing any more */
		clients_close_all(&h->clients);
	if (!h->attach.kept)
		spill_forget(&h->spill);
	a.reply.adopted = h->attach.kept;
	mailbox_init(&h->mailbox, h->mailbox_memory, h->arena, ipc + h->attach.ipc->msg_tx_offset,
		     MSG_SLOTS, ipc + h->attach.ipc->msg_rx_offset, MSG_SLOTS);
	h->attached = true; /* what the core says from within goes out */
	error = control_attach(h->core, &a, host_now_ns());
	attach_forget_old(&h->attach);
	if (error) {
		log_error("the dataplane's object table does not hold: restart sarissa-dataplane");
		host_stop(h, 1);
		return;
	}
	spill_sweep(&h->spill);
	h->waiting_logged = false;
	log_info("attached to %s, %u worker%s, store of %llu MiB%s", a.reply.rail[0].port,
		 a.reply.workers, a.reply.workers == 1 ? "" : "s",
		 (unsigned long long)(a.reply.store_bytes >> 20), h->attach.kept ? ", kept" : "");
	for (unsigned k = 1; k < a.reply.rails; k++)
		log_info("rail %u: %s", k, a.reply.rail[k].port);
	host_rails(h, a.reply.rails);
	notify_status(&h->notify, "attached to %s", a.reply.rail[0].port);
	if (control_membership(h->core) == CONTROL_JOINING)
		log_info("asking the seeds for a number");
	host_membership(h);
}

static void host_attach_failed(struct host *h, int error)
{
	if (error == -EPROTONOSUPPORT) {
		log_error("the dataplane is of another version: run programs of one version");
		host_stop(h, 1);
		return;
	}
	if (!h->waiting_logged)
		log_warning("the dataplane refused (%s): trying again until it takes us",
			    strerror(-error));
	h->waiting_logged = true;
	host_retry(h);
}

static void host_reply_came(uv_poll_t *p, int status, int events)
{
	struct host *h = p->data;
	int result = attach_finish(&h->attach);

	if (result == 0)
		return;
	host_unpoll(&h->attaching);
	uv_timer_stop(&h->retry);
	if (result < 0) {
		host_attach_failed(h, result);
		return;
	}
	h->attaching = host_poll(h, h->attach.socket, host_socket_ended);
	h->wake = host_poll(h, h->attach.control_wake, host_woken);
	if (h->attaching && h->wake)
		host_begin(h);
	else
		host_attach_failed(h, -ENOMEM);
}

static void host_no_reply(uv_timer_t *timer)
{
	host_attach_failed(timer->data, -ETIMEDOUT);
}

static void host_try_attach(uv_timer_t *timer)
{
	struct host *h = timer->data;
	int error = attach_begin(&h->attach, h->options->rundir);

	if (error == 0) {
		h->attaching = host_poll(h, h->attach.socket, host_reply_came);
		uv_timer_start(&h->retry, h->attaching ? host_no_reply : host_try_attach, REPLY_MS,
			       0);
		return;
	}
	if (!h->waiting_logged && error == -EACCES)
		log_warning("not allowed to reach the dataplane in %s: run both as one user",
			    h->options->rundir);
	else if (!h->waiting_logged)
		log_info("waiting for the dataplane: start sarissa-dataplane --rundir %s",
			 h->options->rundir);
	h->waiting_logged = true;
	uv_timer_start(&h->retry, host_try_attach, RETRY_MS, 0);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void host_timed_out(uv_timer_t *timer)
{
	/* the turn that follows looks at the time */
}

static void host_turned(struct host *h)
{
	uint64_t busy_ns = host_now_ns() - uv_metrics_idle_time(&h->loop);

	report_turn(&h->report, busy_ns - h->busy_ns, control_counters(h->core)->ticks_late);
	h->busy_ns = busy_ns;
}

static void host_idle(uv_idle_t *idle)
{
	/* its being active keeps the loop from sleeping */
}

static void host_left(uv_timer_t *timer)
{
	host_stop(timer->data, 0);
}

/* The others have heard of it. */
static void host_ends_soon(struct host *h)
{
	h->leaving = true;
	uv_timer_start(&h->retry, host_left, LEAVE_MS, 0);
}

/* Before the loop sleeps: everything is handled, and the next timeout set. */
static void host_prepare(uv_prepare_t *prepare)
{
	struct host *h = prepare->data;
	uint64_t next, now, plan_ns;
	bool more;

	if (!h->core) /* no dataplane yet */
		return;
	more = control_copy(h->core, host_now_ns());
	more |= host_pump(h);
	next = control_next_timeout(h->core);
	now = host_now_ns();
	host_membership(h);
	if (control_has_left(h->core) && !h->leaving) {
		log_info("this node leaves the cluster, as a client has asked");
		host_ends_soon(h);
	}
	clients_settle(&h->clients);
	report_write(&h->report, h->core, now);
	plan_ns = report_plan(&h->report, h->core, now);
	next = plan_ns < next ? plan_ns : next;
	if (more)
		uv_idle_start(&h->busy, host_idle);
	else
		uv_idle_stop(&h->busy);
	host_turned(h);
	if (next == UINT64_MAX) {
		uv_timer_stop(&h->timeout);
		return;
	}
	uv_update_time(&h->loop);
	uv_timer_start(&h->timeout, host_timed_out,
		       next <= now ? 0 : (next - now + 999999) / 1000000, 0);
}

/* Restarts are what signals are for: the other members keep what is here for the grace of a
 * restart. */
static void host_signal(uv_signal_t *handle, int number)
{
	struct host *h = handle->data;

	log_info("%s: ending", strsignal(number));
	notify_say(&h->notify, NOTIFY_STOPPING);
	if (h->leaving || !h->attached) {
		host_stop(h, 0);
		return;
	}
	control_rest(h->core, host_now_ns());
	host_ends_soon(h);
}

/* Reads the topology again. If the file is wrong the earlier one stays. */
static void host_reload(uv_signal_t *handle, int number)
{
	struct host *h = handle->data;
	struct topology *t = options_topology_reload(h->options);

	if (!h->options->topology)
		log_info("%s: nothing to read again, as there is no --topology", strsignal(number));
	if (!t)
		return;
	if (h->core)
		control_network(h->core, &t->network);
	topology_free(h->topology);
	h->topology = t;
	if (h->attached)
		host_rails(h, h->attach.reply.rails);
	log_info("%s: %u nodes, read again", h->options->topology_path, t->nodes);
}

static bool host_send(void *arg, uint32_t conn, const struct message *m)
{
	struct host *h = arg;

	return h->attached && mailbox_send(&h->mailbox, conn, m);
}

static bool host_reply(void *arg, uint32_t session, const struct session_reply *r, const void *tail,
		       uint32_t tail_bytes)
{
	struct host *h = arg;

	return answers_reply(&h->clients, session, r, tail, tail_bytes);
}

static void host_log(void *arg, enum control_log_level level, const char *text)
{
	log_line(level, "%s", text);
}

/* Called by the loop, so it says that the loop goes round. */
static void host_alive(uv_timer_t *timer)
{
	struct host *h = timer->data;

	notify_say(&h->notify, NOTIFY_WATCHDOG);
}

/* A boot must not wait for a cable, or for other nodes: from now on `status` tells the rest. */
static void host_waits(uv_timer_t *timer)
{
	struct host *h = timer->data;

	if (!h->member)
		notify_say(&h->notify, NOTIFY_READY);
}

/* [G1.12] */
static void host_watchdog(struct host *h)
{
	uint64_t period_ms = h->notify.watchdog_ns / 3000000u;

	uv_timer_init(&h->loop, &h->watchdog);
	uv_timer_init(&h->loop, &h->patience);
	h->watchdog.data = h->patience.data = h;
	uv_timer_start(&h->patience, host_waits, READY_MS, 0);
	notify_status(&h->notify, "waiting for the dataplane");
	if (period_ms > 0)
		uv_timer_start(&h->watchdog, host_alive, period_ms, period_ms);
}

/* ---- start --------------------------------------------------------------------------------- */

static bool host_old_clients(void *arg)
{
	const struct host *h = arg;

	return answers_of_before(&h->attach);
}

static int host_staging_make(void *arg, uint32_t slot, uint64_t bytes, bool brought)
{
	struct host *h = arg;

	return staging_memory_make(&h->staging, slot, bytes, brought);
}

static int host_staging_read(void *arg, uint32_t slot, uint64_t at, void *to, uint64_t bytes)
{
	const struct host *h = arg;

	return staging_memory_read(&h->staging, slot, at, to, bytes);
}

static void host_staging_drop(void *arg, uint32_t slot)
{
	struct host *h = arg;

	staging_memory_drop(&h->staging, slot);
}

static bool host_lives(void *arg, uint32_t process, uint64_t birth)
{
	const struct host *h = arg;

	return identity_lives(process, birth) || answers_process_has(&h->attach, birth);
}

/* Zeroed memory whose untouched pages cost nothing. */
static void *host_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTDUMP); /* values of small objects and names are in it */
	return p;
}

/* Best effort: what is not there is made when it is touched. */
static void host_populate(void *memory, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory / page * page;

	if (madvise((void *)from, (uintptr_t)memory + bytes - from, MADV_POPULATE_WRITE) < 0)
		log_debug("madvise: %s", strerror(errno));
}

/* Greater than that of any earlier life, as long as the clock does not go back; else the others
 * say so, and the core chooses a greater one. */
static uint64_t host_incarnation(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Two for each client, one for each private staging buffer. */
static void host_descriptors(uint32_t sessions, uint32_t creations)
{
	uint64_t may = open_files_raise(), want = 2 * sessions + creations + OWN_DESCRIPTORS;

	if (may < want)
		log_warning("only %llu files may be open, and %u clients may need %llu: raise the "
			    "hard limit of open files (LimitNOFILE=), or use fewer --sessions",
			    (unsigned long long)may, sessions, (unsigned long long)want);
}

/* The core, for a table of so many slots: made when the first dataplane has attached. */
static int host_core(struct host *h, uint32_t slots)
{
	const struct control_ops ops = {h,
					host_send,
					host_reply,
					host_log,
					host_old_clients,
					host_staging_make,
					host_staging_read,
					host_staging_drop,
					spill_op_write,
					spill_op_read,
					spill_op_remove,
					spill_op_find,
					host_lives};
	struct control_config config;
	void *memory;

	control_config_default(&config);
	control_config_slots(&config, slots);
	host_descriptors(h->options->sessions, config.creations_max);
	config.node = h->options->node;
	config.nodes = h->options->nodes > 0 ? h->options->nodes : NODES_MAX;
	config.addrs = h->options->addrs;
	config.seeds = h->options->seeds;
	config.seeds_count = h->options->seeds_count;
	config.incarnation = host_incarnation();
	config.shards = h->options->shards;
	config.shard_nodes = h->options->shard_nodes;
	config.sessions_max = h->options->sessions;
	config.rest_ns = h->options->restart_grace_s * UINT64_C(1000000000);
	config.sessions_user_max = config.sessions_max - config.sessions_max / 4;
	config.pid = getpid();
	config.planner = h->options->planner;
	config.network = h->topology		? &h->topology->network
			 : h->options->topology ? &h->options->topology->network
						: NULL;
	config.quota_bytes = h->options->quota_bytes;
	config.quotas_count = h->options->quotas_count;
	memcpy(config.quotas, h->options->quotas, sizeof(config.quotas));
	config.spill_max = h->options->spill ? h->options->spill_max : 0;
	config.leases = lease_file_map(h->options->rundir);
	if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed) ||
	    getrandom(config.hash_key, sizeof(config.hash_key), 0) != sizeof(config.hash_key)) {
		log_error("no random numbers (%s): the kernel is too old", strerror(errno));
		return 1;
	}
	memory = host_memory(control_bytes(&config));
	h->mailbox_memory = host_memory(mailbox_bytes(MSG_SLOTS, MSG_SLOTS));
	h->arena = host_memory(MAILBOX_ARENA_BYTES);
	if (memory && h->mailbox_memory && h->arena &&
	    staging_memory_init(&h->staging, &h->clients.closer, config.table_slots) == 0)
		h->core = control_init(memory, &config, &ops, host_now_ns());
	if (h->core)
		control_tables(h->core, host_populate);
	if (h->core)
		return 0;
	log_error("no memory for the directory: free some, or use fewer --sessions or --objects");
	return 1;
}

static void host_handles(struct host *h)
{
	uv_loop_init(&h->loop);
	uv_loop_configure(&h->loop, UV_METRICS_IDLE_TIME);
	uv_signal_init(&h->loop, &h->interrupt);
	uv_signal_init(&h->loop, &h->terminate);
	uv_signal_init(&h->loop, &h->hangup);
	uv_timer_init(&h->loop, &h->retry);
	uv_timer_init(&h->loop, &h->timeout);
	uv_prepare_init(&h->loop, &h->prepare);
	uv_idle_init(&h->loop, &h->busy);
	h->interrupt.data = h->terminate.data = h->hangup.data = h;
	h->retry.data = h->prepare.data = h;
	uv_signal_start(&h->interrupt, host_signal, SIGINT);
	uv_signal_start(&h->terminate, host_signal, SIGTERM);
	uv_signal_start(&h->hangup, host_reload, SIGHUP);
	uv_prepare_start(&h->prepare, host_prepare);
	host_watchdog(h);
}

int host_init(struct host *h, const struct options *options)
{
	*h = (struct host){.options = options};
	notify_open(&h->notify);
	attach_init(&h->attach);
	h->lock_fd = lock_take(options->rundir);
	if (h->lock_fd < 0)
		return 1;
	report_open(&h->report, options->rundir);
	h->report.creators = options->creators;
	host_handles(h);
	if (spill_open(&h->spill, h, options->spill))
		return 1;
	h->busy_ns = host_now_ns();
	return clients_init(&h->clients, h);
}

int host_run(struct host *h)
{
	host_try_attach(&h->retry);
	if (!h->stopping)
		uv_run(&h->loop, UV_RUN_DEFAULT);
	h->report.due_ns = 0; /* a last time */
	if (h->core)
		report_write(&h->report, h->core, host_now_ns());
	clients_leave(&h->clients);
	/* a thread that closes something for ever keeps this process, and all that it has open */
	attach_end(&h->attach);
	close(h->lock_fd);
	return h->status;
}
