/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session of one control process: the memory of both sides is mapped, the workers serve it, and
 * all of it is let go when that process has gone. Called by node.c on the main thread; workers only
 * read `wanted`.
 */
#include "node.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "io/observe/log.h"

enum { PIN_WAIT_MS = 200 };

/* Every worker serves what it should, or nothing. */
static void session_switch(struct node *n, bool serve)
{
	for (unsigned w = 0; w < n->options->workers; w++) {
		const struct session *s = serve ? &n->session[w] : NULL;
		atomic_store_explicit(&n->worker[w].wanted, s, memory_order_release);
		eventfd_write(n->worker[w].wake_fd, 1);
	}
	struct timespec pause = {.tv_nsec = 100000};
	for (unsigned w = 0; w < n->options->workers; w++)
		while (atomic_load_explicit(&n->worker[w].serving, memory_order_acquire) !=
		       (serve ? &n->session[w] : NULL))
			nanosleep(&pause, NULL);
}

/* The workers leave their engines; store and table stay. */
static void session_end(struct node *n)
{
	session_switch(n, false);
	for (unsigned w = 0; w < n->options->workers; w++) {
		if (n->engine_memory[w])
			munmap(n->engine_memory[w], n->engine_bytes);
		n->engine_memory[w] = NULL;
	}
	shm_release(&n->ipc);
}

/* A card may still read packets out of the store that is about to go. */
static bool session_store_is_pinned(const struct node *n)
{
	struct timespec pause = {.tv_nsec = 1000000};
	for (unsigned ms = 0; ms < PIN_WAIT_MS; ms++) {
		bool pinned = false;
		for (unsigned w = 0; w < n->options->workers; w++)
			pinned |= rte_mbuf_ext_refcnt_read(&n->worker[w].pinned) > 1;
		if (!pinned)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static void session_store_drop(struct node *n)
{
	if (!n->store.base)
		return;
	if (session_store_is_pinned(n))
		n->store.base = NULL; /* rather leak the mapping than let the card read nothing */
	else
		port_unmap_store(n->port, n->rails, n->store.base, n->store.bytes);
	shm_release(&n->store);
	shm_release(&n->table);
	shm_release(&n->private);
}

static int session_store_adopt(struct node *n, int fds[ATTACH_STORE_FDS])
{
	struct shm store = {.fd = -1}, table = {.fd = -1}, private = {.fd = -1};
	int error = shm_adopt(fds[0], &store);
	if (!error)
		error = shm_adopt(fds[1], &table);
	if (!error && !shm_table_valid(&table, store.bytes))
		error = -EINVAL;
	if (!error)
		error = shm_private_adopt(fds[2], &table, &private);
	if (error) {
		if (store.fd < 0)
			close(fds[0]);
		if (table.fd < 0)
			close(fds[1]);
		close(fds[2]);
		shm_release(&table);
		shm_release(&store);
		return error;
	}
	session_store_drop(n);
	n->store = store;
	n->table = table;
	n->private = private;
	return 0;
}

static int session_store_make(struct node *n)
{
	int error = shm_store_create(n->options->store_bytes, &n->store);
	if (!error)
		error = shm_table_create(n->options->objects, n->store.bytes, n->incarnation,
					 &n->table);
	if (!error)
		error = shm_private_create(&n->table, &n->private);
	if (error) {
		shm_release(&n->table);
		shm_release(&n->store);
		log_error("no memory for a store of %llu MiB (%s): use a smaller --store",
			  (unsigned long long)(n->options->store_bytes >> 20), strerror(-error));
		return error;
	}
	log_info("store of %llu MiB in %s", (unsigned long long)(n->store.bytes >> 20),
		 n->store.page_bytes > 2u << 20 ? "huge pages of 1 GiB"
		 : n->store.huge		? "huge pages"
						: "ordinary pages");
	error = shm_prefer_node(n->store.base, n->store.bytes, n->memory_node);
	if (error)
		log_warning("the store cannot be placed at the card's memory node %d (%s): see "
			    "numactl -H",
			    n->memory_node, strerror(-error));
	return 0;
}

void session_map_store(struct node *n, unsigned k)
{
	struct port *p = &n->port[k];
	const char *text = n->options[k].port.text;
	log_dpdk_forget();
	int error = port_map_store(p, n->store.base, n->store.bytes, n->store.page_bytes);
	if (error) {
		log_warning("port %s: the card cannot read the store (%s): payload is copied once",
			    text, *log_dpdk_error() ? log_dpdk_error() : strerror(-error));
		p->payload = PAYLOAD_COPY;
	}
	if (p->payload == PAYLOAD_DMA)
		log_info("port %s: the card reads payload from the store", text);
}

static int session_memory(struct node *n, bool bring, int fds[ATTACH_STORE_FDS])
{
	bool had = n->store.base != NULL;
	int error = 0;
	if (bring) {
		error = session_store_adopt(n, fds);
		if (error)
			log_error("control brought a store that does not hold: restart it");
	} else if (!had) {
		error = session_store_make(n);
	}
	if (error || (had && !bring))
		return error;
	prefault_store(&n->prefault, n->store.base, n->store.bytes);
	for (unsigned k = 0; k < n->rails; k++)
		if (!n->away[k].is)
			session_map_store(n, k);
	return 0;
}

static void session_config(struct node *n, unsigned w, struct engine_config *c)
{
	const struct options *o = n->options;
	struct ipc_header *h = shm_ipc(&n->ipc);
	engine_config_default(c);
	c->incarnation = n->incarnation;
	c->addr = n->port[0].addr;
	c->addr.port = (uint16_t)(c->addr.port + w);
	c->mtu = n->port[0].mtu;
	c->rails = (uint8_t)n->rails;
	c->workers = (uint16_t)o->workers;
	c->conns_max = o->peers_max;
	for (unsigned k = 0; k < n->rails; k++) {
		c->burst_bytes[k] = n->port[k].burst_bytes;
		c->burst_ns[k] = n->port[k].burst_ns;
		c->rate_bps[k] = o[k].rate_bps / o->workers;
	}
	if (o->credit_bytes)
		c->credit_bytes = o->credit_bytes / o->workers;
	if (o->delay_target_ns)
		c->delay_target_ns = o->delay_target_ns;
	if (o->ack_delay_ns)
		c->ack_delay_ns = o->ack_delay_ns;
	c->store = n->store.base;
	c->store_bytes = n->store.bytes;
	c->table = (struct object_table *)n->table.base;
	c->msg_tx = n->ipc.base + h->msg_tx_offset;
	c->msg_tx_bytes = (uint64_t)MSG_SLOTS * MSG_SLOT_BYTES;
	c->msg_rx = n->ipc.base + h->msg_rx_offset;
	c->msg_rx_slots = w == 0 ? MSG_SLOTS : 0;
	c->counters = n->worker[w].counters;
	c->peers = shm_file_worker(n->peers, w);
}

static int session_engine(struct node *n, unsigned w)
{
	struct engine_config c;
	session_config(n, w, &c);
	if (getrandom(c.key, sizeof(c.key), 0) != sizeof(c.key))
		return -EIO;
	n->engine_bytes = engine_bytes(&c);
	if (n->engine_bytes == 0)
		return -EINVAL;
	for (uint32_t i = 0; i < c.conns_max; i++) /* of the session before */
		peer_block_clear(&c.peers[i]);
	/* the windows of a connection that never was cost no memory */
	void *memory = mmap(NULL, n->engine_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, n->engine_bytes, MADV_DONTDUMP); /* as large as the windows of all peers */
	n->engine_memory[w] = memory;
	shm_prefer_node(memory, n->engine_bytes, n->memory_node);
	struct ipc_header *h = shm_ipc(&n->ipc);
	n->commands[w] = ring_end(n->ipc.base + h->command_ring_offset[w]);
	n->events[w] = ring_end(n->ipc.base + h->event_ring_offset[w]);
	n->session[w] = (struct session){
		.engine = engine_init(memory, &c, worker_now_ns()),
		.commands = &n->commands[w],
		.events = &n->events[w],
		.sleeping = &h->worker[w].sleeping,
		.control_sleeping = &h->control_sleeping,
		.control_wake = n->control_wake,
		.store = n->store.base,
		.store_bytes = n->store.bytes,
	};
	return n->session[w].engine ? 0 : -EINVAL;
}

/* A boot number that no earlier life of this endpoint had, as long as the clock does not go back
 * by more than it was down. */
static uint64_t session_incarnation(uint64_t last)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return now > last ? now : last + 1;
}

static void session_reply(const struct node *n, bool adopted, struct attach_reply *r)
{
	r->workers = n->options->workers;
	r->adopted = adopted;
	r->store_bytes = n->store.bytes;
	r->incarnation = n->incarnation;
	r->addr = n->port[0].addr;
	r->mtu = n->port[0].mtu;
	r->chunk_bytes = CHUNK_BYTES_MAX;
	r->rails = (uint8_t)n->rails;
	for (unsigned k = 0; k < n->rails; k++) {
		const struct port *p = &n->port[k];
		uint16_t fits = engine_chunk_bytes(p->mtu, net_addr_is_v4(&p->addr));
		r->chunk_bytes = RTE_MIN(r->chunk_bytes, fits);
		r->rail[k] =
			(struct attach_rail){.addr = p->addr, .rate_bps = n->options[k].rate_bps};
		memcpy(r->rail[k].port, p->text, sizeof(r->rail[k].port));
	}
	r->hugepages = n->store.huge;
	r->busy_poll = n->options->busy_poll;
}

int session_begin(struct node *n, const struct attach_request *request, int fds[ATTACH_STORE_FDS],
		  struct attach_reply *reply)
{
	session_end(n);
	n->incarnation = session_incarnation(n->incarnation);
	n->counters->incarnation = n->incarnation;
	int error = session_memory(n, request->has_store, fds);
	if (error)
		return error;
	error = shm_ipc_create(n->options->workers, &n->ipc);
	for (unsigned w = 0; w < n->options->workers && !error; w++)
		error = session_engine(n, w);
	if (error) {
		log_error("no memory for connections (%s): free some, or use fewer --workers",
			  strerror(-error));
		session_end(n);
		return error;
	}
	session_switch(n, true);
	session_reply(n, request->has_store, reply);
	return 0;
}
