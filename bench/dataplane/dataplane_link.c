/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of two processes that move objects over a real port: scripts/bench dataplane starts both. An
 * object is cut into a stripe per worker; each worker has a lane of its own to its like in the
 * other process. What the two must agree on lies in a file that both map.
 */
#include "dataplane_end.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_ring.h>
#include "internal/program/arguments.h"
#include "io/ports/eal.h"
#include "io/observe/log.h"
#include "io/ports/port.h"

enum { SENDER, RECEIVER, ENDS, OBJECTS_MAX = 4096, PATIENCE_S = 20, SETTLE_NS = 50000000 };
#define MEMCPY_S    0.3
#define OBJECTS_END UINT32_MAX

static const char usage[] =
	"Usage: dataplane_link send|receive SHARED_FILE SECONDS MIB OPTION...\n"
	"OPTIONs are those of sarissa-dataplane. Says 'open' when its port is, then waits for a line.\n";

struct shared {
	struct {
		struct net_addr addr;
		uint8_t mac[6];
		_Atomic bool open;
	} end[ENDS];
	_Atomic uint32_t go; /* the object that may begin; OBJECTS_END: none any more */
	struct {
		_Atomic uint32_t armed, taken; /* the object that the receiver's worker is at */
	} lane[WORKERS_MAX];
};

struct lane {
	struct end end;
	struct object object;
	struct link *link;
	unsigned index;
	uint32_t number;	   /* of the object */
	uint64_t cycles, packets;  /* of turns with work, without accounting by stage */
	struct stage_cycles stage; /* of the objects with it */
	uint64_t staged_packets, resends;
	bool failed;
};

struct link {
	unsigned side, workers;
	struct shared *shared;
	struct port port;
	uint8_t *store;
	uint64_t store_bytes, stripe_bytes;
	uint64_t run_ns;
	struct lane *lane;
	struct worker *worker;
	uint64_t object_ns[OBJECTS_MAX]; /* at the sender's first worker */
	unsigned objects;
};

/* A turn without work only gives way to the other end, which may share the core. */
static void lane_turn(struct lane *l)
{
	struct stage_cycles before = {0}, after = {0};
	bool staged = l->end.worker->stages != NULL;
	uint64_t start = rte_rdtsc();
	if (staged)
		end_stages(&l->end, &before);
	if (end_turn(&l->end) == 0) {
		sched_yield();
	} else if (staged) {
		end_stages(&l->end, &after);
		stages_add(&l->stage, &after, &before);
	} else {
		l->cycles += rte_rdtsc() - start;
	}
}

static bool lane_until(struct lane *l, bool (*done)(const struct lane *l), const char *what)
{
	uint64_t end_ns = worker_now_ns() + PATIENCE_S * 1000000000ull;
	while (!done(l)) {
		if (worker_now_ns() > end_ns) {
			fprintf(stderr, "bench: worker %u, object %u: %s\n", l->index, l->number,
				what);
			return false;
		}
		lane_turn(l);
	}
	return true;
}

static bool lane_connected(const struct lane *l)
{
	return l->end.conn != 0;
}

static bool lane_may_begin(const struct lane *l)
{
	return atomic_load(&l->link->shared->go) >= l->number;
}

static bool lane_armed(const struct lane *l)
{
	return atomic_load(&l->link->shared->lane[l->index].armed) >= l->number;
}

static bool lane_sent(const struct lane *l)
{
	return l->end.outs_done > 0;
}

static bool lane_taken(const struct lane *l)
{
	return l->end.buffers_done > 0;
}

static bool all_taken(const struct lane *l)
{
	for (unsigned w = 0; w < l->link->workers; w++)
		if (atomic_load(&l->link->shared->lane[w].taken) < l->number)
			return false;
	return true;
}

static bool lane_dropped(const struct lane *l)
{
	return l->end.dropped > 0;
}

static bool lane_move_out(struct lane *l)
{
	struct link *k = l->link;
	if (!lane_until(l, lane_armed, "the receiver is not ready"))
		return false;
	uint64_t start_ns = worker_now_ns();
	end_send(&l->end, &l->object);
	if (!lane_until(l, lane_sent, "the object is not sent") ||
	    !lane_until(l, all_taken, "the object does not arrive"))
		return false;
	if (l->index == 0 && k->objects < OBJECTS_MAX && !l->end.worker->stages)
		k->object_ns[k->objects++] = worker_now_ns() - start_ns;
	return true;
}

static bool lane_move_in(struct lane *l)
{
	struct shared *s = l->link->shared;
	end_take(&l->end, &l->object);
	atomic_store(&s->lane[l->index].armed, l->number);
	if (!lane_until(l, lane_taken, "the object does not arrive"))
		return false;
	atomic_store(&s->lane[l->index].taken, l->number);
	return true;
}

/* One object; every other one with accounting by stage. */
static bool lane_move(struct lane *l)
{
	struct end *e = &l->end;
	const struct counters *c = &e->counters;
	bool out = l->link->side == SENDER;
	uint64_t before = out ? c->tx_chunks : c->rx_chunks;
	e->buffers_done = e->outs_done = 0;
	e->dropped = 0;
	l->object.handle = handle_make(1, (uint16_t)(l->number % UINT16_MAX + 1));
	end_account(e, l->number % 2 == 0);
	if (!(out ? lane_move_out(l) : lane_move_in(l)))
		return false;
	end_drop(e, l->object.handle);
	if (!lane_until(l, lane_dropped, "its buffer is not given up"))
		return false;
	*(e->worker->stages ? &l->staged_packets : &l->packets) +=
		(out ? c->tx_chunks : c->rx_chunks) - before;
	return true;
}

/* Both ends of a lane find each other; the path MTU is found in the first milliseconds. */
static bool lane_open(struct lane *l)
{
	struct link *k = l->link;
	struct net_addr addr = k->shared->end[1 - k->side].addr;
	addr.port = (uint16_t)(addr.port + l->index);
	end_connect(&l->end, &addr);
	if (!lane_until(l, lane_connected, "the two ends do not connect"))
		return false;
	for (uint64_t end_ns = worker_now_ns() + SETTLE_NS; worker_now_ns() < end_ns;)
		lane_turn(l);
	l->cycles = 0;
	return true;
}

static int lane_run(void *arg)
{
	struct lane *l = arg;
	struct link *k = l->link;
	_Atomic uint32_t *go = &k->shared->go;
	bool leads = k->side == SENDER && l->index == 0;
	l->failed = !lane_open(l);
	uint64_t end_ns = worker_now_ns() + k->run_ns;
	for (l->number = 1; !l->failed; l->number++) {
		if (leads) /* two at least: one of each kind */
			atomic_store(go, l->number > 2 && worker_now_ns() > end_ns ? OBJECTS_END
										   : l->number);
		l->failed = !lane_until(l, lane_may_begin, "the first worker does not go on");
		if (l->failed || atomic_load(go) == OBJECTS_END)
			break;
		l->failed = !lane_move(l);
	}
	l->resends = l->end.counters.tx_chunk_resends;
	return 0;
}

static struct shared *shared_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *s = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, sizeof(struct shared)) == 0)
		s = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return s == MAP_FAILED ? NULL : s;
}

static bool link_memory(struct link *k, uint64_t object_bytes)
{
	char name[32];
	uint16_t chunk_bytes = engine_chunk_bytes(k->port.mtu, net_addr_is_v4(&k->port.addr));
	k->workers = k->port.workers;
	uint64_t chunks = chunk_count(object_bytes / k->workers, chunk_bytes);
	uint64_t maps = (chunk_counted_bytes(chunks) + 4095) / 4096 * 4096;
	k->stripe_bytes = (chunks * chunk_bytes + 4095) / 4096 * 4096;
	k->store_bytes = k->workers * (k->stripe_bytes + maps);
	k->store = end_memory(k->store_bytes);
	k->lane = end_memory(k->workers * sizeof(*k->lane));
	k->worker = end_memory(k->workers * sizeof(*k->worker));
	if (!k->store || !k->lane || !k->worker)
		return false;
	for (unsigned w = 0; w < k->workers; w++) {
		struct lane *l = &k->lane[w];
		l->link = k;
		l->index = w;
		l->object =
			(struct object){.store_offset = w * k->stripe_bytes,
					.bytes = chunks * chunk_bytes,
					.bitmap_offset = k->workers * k->stripe_bytes + w * maps,
					.chunk_bytes = chunk_bytes};
		if (!end_open(&l->end, &k->port, k->worker, w, k->side + 1, k->store,
			      k->store_bytes))
			return false;
		snprintf(name, sizeof(name), "handover%u", w);
		k->worker[w].rail[0].handover =
			rte_ring_create(name, WORKER_HANDOVER, SOCKET_ID_ANY, RING_F_SC_DEQ);
		if (!k->worker[w].rail[0].handover)
			return false;
		if (k->side == SENDER)
			end_fill(k->store + l->object.store_offset, l->object.bytes, w);
	}
	return true;
}

/* The other end's addresses are learned once both ports are open and joined. */
static bool link_meet(struct link *k)
{
	struct shared *s = k->shared;
	char line[8];
	s->end[k->side].addr = k->port.addr;
	memcpy(s->end[k->side].mac, k->port.mac, sizeof(k->port.mac));
	atomic_store(&s->end[k->side].open, true);
	printf("open\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || !atomic_load(&s->end[1 - k->side].open))
		return false;
	neighbour_learn(k->port.neighbours, s->end[1 - k->side].addr.ip, s->end[1 - k->side].mac,
			true, worker_now_ns());
	return true;
}

static bool link_run(struct link *k)
{
	bool failed = false;
	for (unsigned w = 0; w < k->workers; w++)
		rte_eal_remote_launch(lane_run, &k->lane[w], w + 1);
	for (unsigned w = 0; w < k->workers; w++)
		while (rte_eal_get_lcore_state(w + 1) == RUNNING) /* EAL's own wait would spin */
			usleep(1000);
	for (unsigned w = 0; w < k->workers; w++) {
		const struct lane *l = &k->lane[w];
		failed |= l->failed;
		if (l->failed || k->side == SENDER ||
		    end_filled(k->store + l->object.store_offset, l->object.bytes, w))
			continue;
		fprintf(stderr, "bench: the received bytes are wrong\n");
		failed = true;
	}
	return !failed;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* The rate at which a core copies the same chunks while the other side is idle; 0: no memory. */
static double link_memcpy(const struct link *k)
{
	const struct object *o = &k->lane[0].object;
	uint8_t *to = k->side == SENDER ? end_memory(o->bytes) : NULL;
	double rate = 0;
	if (to) {
		memset(to, 1, o->bytes);
		rate = end_memcpy(to, k->store + o->store_offset, o->bytes, o->chunk_bytes,
				  MEMCPY_S);
		munmap(to, o->bytes);
	}
	return rate;
}

static void link_print(struct link *k)
{
	static const struct stage_cycles none;
	struct lane all = {0};
	for (unsigned w = 0; w < k->workers; w++) {
		const struct lane *l = &k->lane[w];
		all.cycles += l->cycles;
		all.packets += l->packets;
		all.staged_packets += l->staged_packets;
		all.resends += l->resends;
		stages_add(&all.stage, &l->stage, &none);
	}
	qsort(k->object_ns, k->objects, sizeof(*k->object_ns), by_value);
	printf("{\"bytes\":%llu,\"chunk_bytes\":%u,\"objects\":%u,\"seconds\":%.6f,"
	       "\"resent_share\":%.5f,\"memcpy_gbit_s\":%.3f,\"cycles_per_packet\":{\"total\":%.1f,",
	       (unsigned long long)(k->workers * k->lane[0].object.bytes),
	       k->lane[0].object.chunk_bytes, k->objects,
	       (double)k->object_ns[k->objects / 2] * 1e-9,
	       (double)all.resends / (double)(all.packets + all.staged_packets),
	       link_memcpy(k) * 8e-9, (double)all.cycles / (double)all.packets);
	stages_print(&all.stage, all.staged_packets);
	printf("}}\n");
}

/* The tap driver asks for a signal per packet, which nobody takes. */
static void block_signals(void)
{
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGIO);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		sigaddset(&blocked, s);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

int main(int argc, char **argv)
{
	static struct link k;
	static struct options o[RAILS_MAX];
	bool huge;
	if (argc < 6 || (strcmp(argv[1], "send") != 0 && strcmp(argv[1], "receive") != 0)) {
		fprintf(stderr, "%s", usage);
		return 2;
	}
	k.side = strcmp(argv[1], "send") == 0 ? SENDER : RECEIVER;
	k.run_ns = (uint64_t)(argument_need_real("SECONDS", argv[3], 1e6) * 1e9);
	uint64_t object_bytes = argument_need("MIB", argv[4], 1, 1 << 20) << 20;
	if (options_parse(argc - 4, argv + 4, o) != OPTIONS_RUN)
		return 2;
	log_set_level(LOG_WARNING);
	block_signals();
	k.shared = shared_map(argv[2]);
	if (!k.shared) {
		fprintf(stderr, "bench: cannot map %s: check its folder\n", argv[2]);
		return 1;
	}
	if (port_plan(o, &k.port) || eal_start(o, &k.port, &huge) || port_open(o, &k.port))
		return 1;
	if (!link_memory(&k, object_bytes)) {
		fprintf(stderr, "bench: not enough memory for an object of %s MiB\n", argv[4]);
		return 1;
	}
	bool done = link_meet(&k) && link_run(&k);
	if (done)
		link_print(&k);
	port_close(&k.port);
	return done ? 0 : 1;
}
