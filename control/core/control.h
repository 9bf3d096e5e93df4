/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control core of one node, without I/O: records of the dataplane, messages of other nodes,
 * requests of clients and the time go in; records, messages and replies come out. No clock,
 * socket, allocation after init, log or global state inside.
 *
 * Who may call: one thread at a time. The shell (control/, tests/sim), in each turn:
 *
 *     control_event()            for each record from a worker but MSG and MSG_SENT, which the
 *                                mailbox (control/rpc) turns into
 *     control_message()          for each message
 *     control_session_request()  for each request of a client
 *     control_tick()             when now >= control_next_timeout()
 *     control_copy()             with clients that write apart from the store
 *     control_commands()         and hands the records to the workers
 *
 * Messages and replies leave through control_ops while one of these runs; the shell must not call
 * back in from there.
 */
#ifndef SARISSA_CONTROL_CORE_CONTROL_H
#define SARISSA_CONTROL_CORE_CONTROL_H

#include <stddef.h>
#include "internal/control_counters.h"
#include "internal/ipc.h"
#include "internal/object_table.h"
#include "internal/record.h"
#include "internal/session.h"
#include "core/message/message.h"

struct control;
struct lease_kept;

enum control_log_level {
	CONTROL_LOG_ERROR,
	CONTROL_LOG_WARNING,
	CONTROL_LOG_INFO,
	CONTROL_LOG_DEBUG,
};

struct control_spill { /* an object that goes to a file */
	struct object_id id;
	uint64_t generation;
	uint64_t size;
	uint64_t incarnation; /* of the store that it belongs to */
	uint32_t slot;
};

struct control_ops {
	void *arg;
	/* Sends a message on a connection of worker 0. It may be lost when the connection dies or
	 * when false is returned (no slot free): whoever needs an answer asks again. */
	bool (*send)(void *arg, uint32_t conn, const struct message *m);
	/* Queues a reply, with tail bytes behind it (a session_object or session_node). For a
	 * successful ATTACH or CREATE the shell adds the file descriptors. Returns false when the
	 * session's queue is long: a LIST then pauses until control_session_writable. */
	bool (*reply)(void *arg, uint32_t session, const struct session_reply *r, const void *tail,
		      uint32_t tail_bytes);
	/* One line about something rare. May be NULL. */
	void (*log)(void *arg, enum control_log_level level, const char *text);
	/* Whether a client of an earlier control of this store still has it mapped: nothing that
	 * was there then is freed before it has gone. May be NULL. */
	bool (*old_clients)(void *arg);
	/* Of a creation apart from the store (session/staging.h), by slot of the table. memory:
	 * makes so many bytes for it, or takes what was brought along with the request when it is
	 * so long; 0 or -errno. memory_read: 0 or -errno. Called only for sessions that are apart,
	 * or what they have left behind. */
	int (*memory)(void *arg, uint32_t slot, uint64_t bytes, bool brought);
	int (*memory_read)(void *arg, uint32_t slot, uint64_t at, void *to, uint64_t bytes);
	void (*memory_drop)(void *arg, uint32_t slot);
	/* Of objects that go to files (store/spill.h); not called when config.spill_max is 0.
	 * spill_write, spill_read: begin to write the object, whose bytes lie at offset in the
	 * store, or to read it to there; 0, and control_spilled or control_restored follows, not
	 * from within; or -errno. spill_remove: its file is of no use any more. spill_find: 0 when
	 * its file is there. */
	int (*spill_write)(void *arg, const struct control_spill *file, uint64_t offset);
	int (*spill_read)(void *arg, const struct control_spill *file, uint64_t offset);
	void (*spill_remove)(void *arg, const struct control_spill *file);
	int (*spill_find)(void *arg, const struct control_spill *file);
	/* Whether that process, which was a client of an earlier control, still runs. May be NULL.
	 */
	bool (*lives)(void *arg, uint32_t process, uint64_t birth);
};

enum { CONTROL_QUOTAS_MAX = 64 };

struct network;
struct planner;

struct control_config {
	uint32_t node;		      /* this one's number; UINT32_MAX with seeds: they give one */
	uint32_t nodes;		      /* count, <= NODES_MAX; with seeds: numbers are below */
	uint32_t shards;	      /* 0: every member keeps a part of the directory */
	uint32_t seeds_count;	      /* 0: the nodes are those of the list, and no others */
	const struct net_addr *seeds; /* of the worker 0 of some nodes; copied */
	const struct net_addr *addrs; /* without seeds: of each node's worker 0; copied */
	uint64_t incarnation;	      /* of this life: greater than that of any earlier one */
	const uint32_t *shard_nodes;  /* nodes that keep a part of the directory; copied */
	uint64_t seed;		      /* random: no two lives of a node have the same */
	int32_t pid;		      /* told in SESSION_STATUS */
	struct lease_kept *leases;    /* outlives control (lease/kept.h); or NULL */

	/* limits; all memory follows from them */
	uint32_t table_slots; /* at least those of the object table */
	uint32_t sessions_max;
	uint32_t sessions_user_max; /* of one user other than the daemons' and root */
	uint32_t waits_max;	    /* requests of clients that wait, all sessions together */
	uint32_t grid_slots;	    /* of a reduce, from which on they pass stripes on */
	uint64_t twotree_bytes;	    /* up to so many, reduces for one node get two trees; 0: none */
	const struct network *network; /* between the nodes; outlives control; NULL: unknown */
	const struct planner *planner; /* of reduces, where it fits; NULL: the best one */
	uint64_t delegate_bytes;     /* of a reduce, from which on who asks for it coordinates it */
	uint32_t creations_max;	     /* objects that are written apart from the store */
	uint32_t creations_user_max; /* by one user */
	uint32_t calls_max;	     /* requests to other nodes that are not answered yet */
	uint32_t loopback_max;	     /* messages to this node itself, queued */
	uint32_t links_max;	     /* connections that this node wants */
	uint32_t conns_max;	     /* connections that a worker may have (engine_config) */
	uint32_t stages_max;	     /* buffers at a time, <= BUFFERS_MAX */
	uint32_t edges_max;	     /* per direction, <= EDGES_MAX */
	uint32_t fetches_max;	     /* objects under way to this node */
	uint32_t serves_max;	     /* streams from this node */
	uint32_t requesters_max;     /* reduces that clients of this node have asked for */
	uint32_t reduces_max;	     /* targets that are, or were, made under our direction */
	uint32_t reduce_sources_max; /* of all of them */
	uint64_t reduce_value_bytes; /* sums of small ones */
	uint32_t participants_max;   /* objects that are made from others here */
	uint32_t parts_max;	     /* of all of them */
	uint32_t pushes_max;	     /* contributions that came before we know what for */
	uint32_t entries_max;	     /* directory: objects */
	uint32_t copies_max;	     /* directory: copies of all objects */
	uint32_t waiters_max;	     /* directory: nodes that wait for an object */
	uint32_t tombstones;	     /* directory: deleted objects remembered; a power of two */
	uint64_t quota_bytes;	     /* of objects that one user has put here; UINT64_MAX: any */
	uint32_t quotas_count;	     /* users of which another one holds */
	struct control_quota {
		uint32_t user;
		uint64_t bytes;
	} quotas[CONTROL_QUOTAS_MAX];
	uint64_t spill_max;	 /* bytes of objects in files; 0: none is spilled */
	uint64_t inline_bytes;	 /* directory: values kept */
	uint32_t references_max; /* directory: leases that hold an object, of all objects */
	uint32_t leases_max;	 /* that clients of this node have opened */
	uint32_t holds_max;	 /* objects that these hold */

	/* times */
	uint64_t retry_ns;     /* a request is repeated after so long */
	uint64_t call_ns;      /* a request to another node fails after so long */
	uint64_t directory_ns; /* a client's to the directory: longer than a death stays unknown */
	uint64_t status_ns;    /* a node that does not answer in so long is shown as down */
	uint64_t link_ns;      /* a holder that cannot be connected to in so long is given up */
	uint64_t down_ns;      /* so is a part's node that is known to be down */
	uint64_t coordinator_lost_ns; /* a coordinator not heard of for so long is gone */
	uint64_t stall_ns;	      /* a stream that does not move is asked about after so long */
	uint64_t backoff_min_ns;      /* between attempts to connect, to find a holder */
	uint64_t backoff_max_ns;
	uint64_t forget_ns;  /* the directory forgets the copies of a node down for so long */
	uint64_t replica_ns; /* how often copies that nobody is known to guard are told of again */
	uint64_t pins_ns;    /* how often the pins of deleted objects are looked at again */
	uint64_t poll_ns;    /* how often a wait for a part of an object is looked at again */
	uint64_t gossip_ns;  /* one of the watched nodes is probed every so often */
	uint64_t silence_ns; /* a probe that is not answered in so long makes a node suspect */
	uint64_t probe_ns;   /* so does a connection that does not come back in so long */
	uint64_t watch_ns;   /* so does silence of a neighbour's dataplane for so long; 0: not */
	uint64_t confirm_ns; /* before any of these makes it suspect, others have so long to reach
				it */
	uint64_t suspect_ns; /* a suspect that does not refute it in so long is dead */
	uint64_t settle_ns;  /* for so long after a death or a loss somebody may still be about to
				say  that it has all of an object */
	uint64_t settle_max_ns; /* so long at most an owner waits for the members to tell all that
				   they hold, after a change of them */
	uint64_t join_ns;	/* a seed gives no numbers for so long after its start */
};

/* What the shell mapped after an attach_reply. */
struct control_attach {
	struct attach_reply reply;
	uint8_t *store;
	struct object_table *table;
};

/* Sensible values for every limit and time; the rest stays zero. */
void control_config_default(struct control_config *config);

/* Bytes of memory for this configuration; 0 when a field is out of its bounds. */
size_t control_bytes(const struct control_config *config);

/* Builds a core in memory (zeroed, 64-aligned, control_bytes() long; pages that stay untouched cost
 * nothing). Returns it, or NULL when a field is out of its bounds. There is nothing to free. */
struct control *control_init(void *memory, const struct control_config *config,
			     const struct control_ops *ops, uint64_t now_ns);

/* Tells take() the parts of the memory in which each new object touches another place: some MiB
 * that had better be there before, since a first touch costs as much as a table look-up. */
void control_tables(const struct control *c, void (*take)(void *memory, size_t bytes));

/* The dataplane is there. With the store and table of before (adopted by a new dataplane) whatever
 * was under way goes on; otherwise the table is taken over: sealed objects stay, the rest is freed,
 * and all sessions must have been closed. Returns 0 or -errno (the table is not one of ours). */
int control_attach(struct control *c, const struct control_attach *a, uint64_t now_ns);

/* The dataplane has gone: its connections, buffers and edges with it. */
void control_detach(struct control *c, uint64_t now_ns);

void control_event(struct control *c, unsigned worker, const struct record *event, uint64_t now_ns);
void control_message(struct control *c, uint32_t conn, const struct message *m, uint64_t now_ns);

/* Moves up to count records for a worker out. */
unsigned control_commands(struct control *c, unsigned worker, struct record *out, unsigned count);

/* A client has connected. pins: SESSION_PINS words, zero, valid until control_session_close
 * returns. Returns the session's number, or -EMFILE. */
int control_session_open(struct control *c, _Atomic uint64_t *pins, uint64_t now_ns);

/* Who it is. Only who made an object may go on with it at another control: the same process of the
 * same user. */
struct control_client {
	uint32_t process; /* 0: unknown */
	uint32_t user;
	uint64_t birth; /* never two processes with the same; 0: unknown */
	bool staged;	/* it must not write to the store itself */
	bool daemons;	/* it is the daemons' user, or root: all sessions may be its */
};
/* 0; -EDQUOT: its user has as many sessions as one may have, and this one must be closed. */
int control_session_client(struct control *c, uint32_t session, const struct control_client *who);

/* Whether it was creating objects apart from the store at an earlier control when it came, and may
 * bring their memory: its ATTACH is told, and it holds as long as the connection, for what it was
 * told of may be deleted or complete by then. */
bool control_session_brings(struct control *c, uint32_t session);

/* It has brought something else: all that its process was creating at an earlier control is given
 * up, and none of its connections may bring anything. */
void control_session_forfeit(struct control *c, uint32_t session, uint64_t now_ns);

/* The client has gone, or must go: what it was creating vanishes, its waits and pins end. */
void control_session_close(struct control *c, uint32_t session, uint64_t now_ns);

/* The object of that slot has been written to its file, or read back; error: 0 or -errno. */
void control_spilled(struct control *c, uint32_t slot, int error, uint64_t now_ns);
void control_restored(struct control *c, uint32_t slot, int error, uint64_t now_ns);
/* Whether the core knows that object to be in a file: of those left by an earlier control. */
bool control_is_spilled(const struct control *c, const struct object_id *id, uint64_t generation);

/* One packet of a client, any bytes. */
void control_session_request(struct control *c, uint32_t session, const void *bytes, size_t length,
			     uint64_t now_ns);

/* The session's queue has room again. */
void control_session_writable(struct control *c, uint32_t session, uint64_t now_ns);

/* Once in each turn of the shell: some of what is written apart goes into the store. Returns
 * whether there was anything to do, so that there may be more. */
bool control_copy(struct control *c, uint64_t now_ns);

void control_tick(struct control *c, uint64_t now_ns);
/* When control_tick next has something to do; UINT64_MAX: never by itself. */
uint64_t control_next_timeout(const struct control *c);

/* Whether this node is one of the cluster. Before it is, no session may be opened. */
enum control_membership {
	CONTROL_JOINING,
	CONTROL_MEMBER,
	CONTROL_FENCED, /* its number is another's now: it must start again */
};
enum control_membership control_membership(const struct control *c);
uint32_t control_number(const struct control *c); /* UINT32_MAX: none yet */
/* Members that live, as this node sees them, itself included. */
uint32_t control_members(const struct control *c);

/* Says goodbye to the others. After that only what is under way goes on. */
void control_leave(struct control *c, uint64_t now_ns);

/* For tests and invariants: bytes of the store in use, objects, things under way. */
struct control_usage {
	uint64_t store_bytes, scratch_bytes;
	uint32_t objects, zombies, fetches, serves, participants, parts, pulls, pushes, reduces,
		requesters, stages, edges, calls, waits, entries, links_up, nodes_up;
};
void control_usage(const struct control *c, struct control_usage *out);

/* internal/control_counters.h */
const struct control_counters *control_counters(const struct control *c);
/* How full everything is now; looks at every object here, so not in every turn. */
void control_gauges(struct control *c, struct control_gauges *out);

#endif
