/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control core of one node, without I/O: records of the dataplane, messages of other nodes,
 * requests of clients and the time go in; records, messages and replies come out. It has no clock,
 * socket, log or global state, and allocates only in init. One thread at a time. The shell
 * (control/, tests/sim) calls, in each turn:
 *
 *     control_event()            for each record from a worker but MSG and MSG_SENT, which the
 *                                mailbox (control/rpc) turns into
 *     control_message()          for each message
 *     control_session_request()  for each request of a client
 *     control_tick()             when now >= control_next_timeout()
 *     control_copy()             with private staging buffers
 *     control_commands()         for each worker, and passes the records on
 *
 * Messages and replies leave through control_ops during these calls. The shell must not call back
 * in from there.
 */
#ifndef SARISSA_CONTROL_CORE_CONTROL_H
#define SARISSA_CONTROL_CORE_CONTROL_H

#include <stddef.h>
#include "internal/control_counters.h"
#include "internal/ipc.h"
#include "internal/object_private.h"
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

struct control_spill { /* an object to spill */
	struct object_id id;
	uint64_t generation;
	uint64_t size;
	uint64_t incarnation; /* of the store that it belongs to */
	uint32_t slot;
};

struct control_ops {
	void *arg;
	/* Sends a message on a connection of worker 0. It is lost when the connection dies, and
	 * when false is returned (no slot free): calls are repeated. */
	bool (*send)(void *arg, uint32_t conn, const struct message *m);
	/* Queues a reply, with tail bytes behind it (a session_object or session_node). For a
	 * successful ATTACH or CREATE the shell adds the file descriptors. Returns false when the
	 * session's queue is long: a LIST then pauses until control_session_writable. */
	bool (*reply)(void *arg, uint32_t session, const struct session_reply *r, const void *tail,
		      uint32_t tail_bytes);
	/* One line about something rare. May be NULL. */
	void (*log)(void *arg, enum control_log_level level, const char *text);
	/* Whether a client of an earlier control process still has the store mapped: objects of
	 * that time are not freed before. May be NULL. */
	bool (*old_clients)(void *arg);
	/* Private staging buffers (session/staging.h), by slot of the table. memory: makes one of
	 * so many bytes, or (brought) uses the one that came with the client's request, if it has
	 * that size; 0 or -errno. memory_read: 0 or -errno. */
	int (*memory)(void *arg, uint32_t slot, uint64_t bytes, bool brought);
	int (*memory_read)(void *arg, uint32_t slot, uint64_t at, void *to, uint64_t bytes);
	void (*memory_drop)(void *arg, uint32_t slot);
	/* Spilling to files (store/spill.h); not called when config.spill_max is 0. spill_write,
	 * spill_read: begin to write the object at that offset of the store, or to read it there.
	 * 0: control_spilled or control_restored follows, in a later turn; or -errno. spill_remove:
	 * its file is not needed any more. spill_find: 0 if its file exists. */
	int (*spill_write)(void *arg, const struct control_spill *file, uint64_t offset);
	int (*spill_read)(void *arg, const struct control_spill *file, uint64_t offset);
	void (*spill_remove)(void *arg, const struct control_spill *file);
	int (*spill_find)(void *arg, const struct control_spill *file);
	/* Whether that client process of an earlier control process still runs. May be NULL. */
	bool (*lives)(void *arg, uint32_t process, uint64_t birth);
};

enum { CONTROL_QUOTAS_MAX = 64 };

struct network;
struct planner;

struct control_config {
	uint32_t node;		      /* number of this node; UINT32_MAX: a seed assigns one */
	uint32_t nodes;		      /* number of nodes, or with seeds its bound; <= NODES_MAX */
	uint32_t shards;	      /* number of shard owners; 0: every live member is one */
	uint32_t seeds_count;	      /* 0: a fixed list of nodes */
	const struct net_addr *seeds; /* worker 0 of some nodes; copied */
	const struct net_addr *addrs; /* fixed list: worker 0 of each node; copied */
	uint64_t incarnation;	      /* of this process: larger than all earlier ones */
	const uint32_t *shard_nodes;  /* configured shard owners; copied */
	uint64_t seed;		      /* random, and never the same twice for a node */
	uint64_t hash_key[2];	      /* random and secret: of the tables that find things by id */
	int32_t pid;		      /* for SESSION_STATUS */
	struct lease_kept *leases;    /* outlives control (lease/kept.h); or NULL */

	/* limits; all memory follows from them */
	uint32_t table_slots; /* at least those of the object table */
	uint32_t sessions_max;
	uint32_t sessions_user_max; /* of one user, but for the daemons' user and root */
	uint32_t waits_max;	    /* waiting requests of all sessions */
	uint32_t grid_slots;	    /* slots of a reduce from which on receivers feed each other */
	const struct network *network; /* between the nodes; not copied; NULL: unknown */
	const struct planner *planner; /* of reduces, where it fits; NULL: the best one */
	uint32_t creations_max;	       /* private staging buffers */
	uint32_t creations_user_max;   /* of one user */
	uint32_t calls_max;	       /* requests to other nodes that are not answered yet */
	uint32_t loopback_max;	       /* messages to this node itself, queued */
	uint32_t links_max;	       /* connections that this node wants */
	uint32_t conns_max;	       /* connections that a worker may have (engine_config) */
	uint32_t stages_max;	       /* buffers at a time, <= BUFFERS_MAX */
	uint32_t edges_max;	       /* per direction, <= EDGES_MAX */
	uint32_t fetches_max;	       /* objects that arrive at this node */
	uint32_t serves_max;	       /* streams from this node */
	uint32_t requesters_max;       /* reduces of clients of this node */
	uint32_t groups_max;	       /* that this node owns, at a time */
	uint32_t group_members_max;    /* of all of these; and clients here that are members */
	uint32_t reduces_max;	       /* reduces that this node coordinates, or remembers */
	uint32_t reduce_sources_max;   /* sources of all of them */
	uint64_t reduce_value_bytes;   /* sums of small sources */
	uint32_t participants_max;     /* objects that are built here from parts */
	uint32_t parts_max;	       /* parts of all of them */
	uint32_t pushes_max;	       /* PUSHes that came before their COMBINE */
	uint32_t entries_max;	       /* directory: objects */
	uint32_t copies_max;	       /* directory: copies of all objects */
	uint32_t waiters_max;	       /* directory: waiting GETs */
	uint32_t tombstones;	       /* directory: tombstones; a power of two */
	uint64_t quota_bytes;	       /* of objects that one user has put here; UINT64_MAX: none */
	uint32_t quotas_count;	       /* users with a quota of their own */
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
	uint64_t retry_ns;	      /* between repetitions of a request */
	uint64_t call_ns;	      /* deadline of a request to another node */
	uint64_t directory_ns;	      /* the same, of a client's request to an owner: longer than
				       * the detection of a death */
	uint64_t status_ns;	      /* without an answer for so long, a node is shown as down */
	uint64_t link_ns;	      /* limit for a connection to a holder */
	uint64_t down_ns;	      /* limit for a part's node that is down */
	uint64_t coordinator_lost_ns; /* a coordinator that is silent for so long is lost */
	uint64_t stall_ns;	      /* a stalled stream is checked after so long */
	uint64_t backoff_min_ns;      /* pauses between attempts to connect, or to find a holder */
	uint64_t backoff_max_ns;
	uint64_t forget_ns;	/* after which a shard forgets the copies of a node that is down */
	uint64_t replica_ns;	/* period of announcing copies without a known pinned replica */
	uint64_t pins_ns;	/* period of looking at the pins of zombies */
	uint64_t poll_ns;	/* period of looking at waits for a part of an object */
	uint64_t gossip_ns;	/* period of probes */
	uint64_t silence_ns;	/* without an answer to a probe for so long, a node is missed */
	uint64_t probe_ns;	/* the same, without a connection */
	uint64_t watch_ns;	/* the same, by silence of a neighbour's dataplane; 0: off */
	uint64_t confirm_ns;	/* time for others to reach a missed node, before it is suspect */
	uint64_t suspect_ns;	/* a suspect that does not refute for so long is dead */
	uint64_t rest_ns;	/* a control that is started again has so long to come back */
	uint64_t settle_ns;	/* after a death or a loss: how long holders may still announce */
	uint64_t settle_max_ns; /* longest time that an owner is unsettled */
	uint64_t join_ns;	/* after its start a seed assigns no numbers for so long */
};

/* Memory that the shell mapped after an attach_reply. */
struct control_attach {
	struct attach_reply reply;
	uint8_t *store;
	struct object_table *table;
	struct object_private *private;
};

/* Sets all limits and times to defaults; the rest to zero. */
void control_config_default(struct control_config *config);

/* The limits that follow from the number of slots of the dataplane's object table. */
void control_config_slots(struct control_config *config, uint32_t slots);

/* Bytes of memory for this configuration; 0: a field is out of its bounds. */
size_t control_bytes(const struct control_config *config);

/* Builds a core in memory (zeroed, 64-aligned, control_bytes() long; pages that stay untouched cost
 * nothing). Returns it, or NULL when a field is out of its bounds. There is nothing to free. */
struct control *control_init(void *memory, const struct control_config *config,
			     const struct control_ops *ops, uint64_t now_ns);

/* From now on this is the network between the nodes (NULL: unknown), as control_config.network.
 * Plans that are made stay. */
void control_network(struct control *c, const struct network *network);

/* Calls take() for the tables in which each new object touches another page: some MiB. The shell
 * touches them in advance, as a first touch costs as much as a look-up. */
void control_tables(const struct control *c, void (*take)(void *memory, size_t bytes));

/* A dataplane is attached. With the same store and table as before (adopted by a new dataplane) all
 * work goes on. Otherwise the table is taken over: sealed objects stay, others are freed; all
 * sessions must have been closed. Returns 0 or -errno (the table is not valid). */
int control_attach(struct control *c, const struct control_attach *a, uint64_t now_ns);

/* The dataplane is gone, and its connections, buffers and edges with it. */
void control_detach(struct control *c, uint64_t now_ns);

void control_event(struct control *c, unsigned worker, const struct record *event, uint64_t now_ns);
void control_message(struct control *c, uint32_t conn, const struct message *m, uint64_t now_ns);

/* Moves up to count records for a worker out. */
unsigned control_commands(struct control *c, unsigned worker, struct record *out, unsigned count);

/* A client has connected. pins: SESSION_PINS words, zero, valid until control_session_close
 * returns. Returns the session's number, or -EMFILE. */
int control_session_open(struct control *c, _Atomic uint64_t *pins, uint64_t now_ns);

/* The process behind a session. Only the creator of an object (the same process of the same user)
 * may resume its creation at another control process. */
#define CONTROL_PROCESS_ELSEWHERE UINT32_MAX

struct control_client {
	uint32_t process; /* 0: unknown; CONTROL_PROCESS_ELSEWHERE: in a pid namespace that has no
			   * number for it, and known by its birth alone */
	uint32_t user;
	uint64_t birth; /* start time of the process, so that no two are equal; 0: unknown */
	bool staged;	/* it creates objects in private staging buffers */
	bool daemons;	/* the daemons' user or root: may have all sessions */
};
/* 0; -EDQUOT: its user has too many sessions, and this one must be closed. */
int control_session_client(struct control *c, uint32_t session, const struct control_client *who);

/* Whether the client may bring private staging buffers from an earlier control process. The reply
 * to ATTACH says so. It stays true for the whole connection, though the objects may be deleted or
 * complete by then. */
bool control_session_brings(struct control *c, uint32_t session);

/* The client has brought a wrong file: aborts all objects that its process was creating at an
 * earlier control process, and lets none of its sessions bring buffers. */
void control_session_forfeit(struct control *c, uint32_t session, uint64_t now_ns);

/* The client is gone, or must go: aborts its creations, and ends its waits and pins. */
void control_session_close(struct control *c, uint32_t session, uint64_t now_ns);

/* The object of that slot has been written to its file, or read back; error: 0 or -errno. */
void control_spilled(struct control *c, uint32_t slot, int error, uint64_t now_ns);
void control_restored(struct control *c, uint32_t slot, int error, uint64_t now_ns);
/* Whether a spill file that an earlier control process left is of a present object. */
bool control_is_spilled(const struct control *c, const struct object_id *id, uint64_t generation);

/* One packet of a client, any bytes. */
void control_session_request(struct control *c, uint32_t session, const void *bytes, size_t length,
			     uint64_t now_ns);

/* The session's queue has room again. */
void control_session_writable(struct control *c, uint32_t session, uint64_t now_ns);

/* Once per turn: copies some published bytes from private staging buffers into the store. Returns
 * whether there were any; there may be more. */
bool control_copy(struct control *c, uint64_t now_ns);

void control_tick(struct control *c, uint64_t now_ns);
/* When control_tick next has something to do; UINT64_MAX: never. */
uint64_t control_next_timeout(const struct control *c);

/* Whether this node is a member of the cluster. Before that no session may be opened. */
enum control_membership {
	CONTROL_JOINING,
	CONTROL_MEMBER,
	CONTROL_FENCED, /* its number is assigned to another node: it must restart */
};
enum control_membership control_membership(const struct control *c);
uint32_t control_number(const struct control *c); /* UINT32_MAX: none yet */
/* Number of live members, in this node's view, itself included. */
uint32_t control_members(const struct control *c);

/* Says goodbye to the other members. After that only running work goes on. */
void control_leave(struct control *c, uint64_t now_ns);
/* Whether it has, at the word of a client. */
bool control_has_left(const struct control *c);
/* Tells them instead that this control is about to be started again: for rest_ns the node keeps its
 * objects, its shard of the directory and its groups. */
void control_rest(struct control *c, uint64_t now_ns);

/* For tests and invariants: bytes of the store in use, objects, things under way. */
struct control_usage {
	uint64_t store_bytes, scratch_bytes;
	uint32_t objects, zombies, fetches, serves, participants, parts, pulls, pushes, reduces,
		requesters, stages, edges, calls, waits, entries, links_up, nodes_up;
};
void control_usage(const struct control *c, struct control_usage *out);

/* The latest plan that this node knows of: of its own, or of a node that it has asked for a
 * client's STATUS. Valid until the next call to the core. */
const struct control_plan *control_last_plan(const struct control *c);

/* internal/control_counters.h */
const struct control_counters *control_counters(const struct control *c);
/* How full everything is now; looks at every object here, so not in every turn. */
void control_gauges(struct control *c, struct control_gauges *out);

#endif
