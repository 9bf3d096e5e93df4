/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other nodes, and the links to them. A node is known by its address, from the configured list
 * or from other nodes (join.c), and by the number in its HELLO; both must agree.
 *
 * A link is a wanted connection between a worker of this node and one of another. It is opened when
 * first wanted, and reopened with growing pauses while a user wants it. The link between the
 * workers 0 carries all messages. Links to watched nodes (gossip.c) and to configured shard owners
 * always exist. Called by all rooms above. It must not know objects.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_PEERS_H
#define SARISSA_CONTROL_CORE_CLUSTER_PEERS_H

#include "internal/record.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/timers.h"

enum link_state {
	LINK_CLOSED,
	LINK_OPENING, /* PEER_OPEN is out */
	LINK_UP,
};

struct link {
	struct list of_node;
	struct node *node;
	uint32_t conn; /* the connection in use while UP */
	uint16_t worker, peer_worker;
	uint8_t state;
	uint8_t attempts;
	bool wanted;
	bool watched;	    /* the worker tells when it is silent */
	struct timer timer; /* CLOSED: tries again */
};

struct conn {		 /* one per handle index of a worker */
	uint32_t handle; /* 0: free */
	uint32_t rtt_us;
	uint64_t incarnation;
	struct link *link;
	uint64_t narrow_ns;    /* when the path last failed to carry a chunk */
	uint32_t narrow_bytes; /* of so many; 0: never */
	uint16_t mtu;
	uint8_t owed;  /* HELLOs that could not leave yet: bit per enum message_announce */
	bool greeted;  /* the first one has left */
	bool named;    /* the peer has said who it is here; it may be out of date */
	bool hello;    /* and it is not: all messages count */
	uint8_t rail;  /* that it was opened on */
	uint8_t asked; /* bit per rail: a path there is asked for, or there */
	uint8_t paths; /* bit per rail: it is up */
};

enum node_state {
	NODE_UNKNOWN, /* never seen */
	NODE_UP,      /* its HELLO has come on a connection that lives */
	NODE_DOWN,
};

struct node {
	uint32_t number;
	uint32_t workers; /* from its HELLO; at least 1 */
	struct net_addr addr;
	struct message_rails rails; /* as it says of itself, or others of it */
	uint8_t state;
	bool tombstones_left;	 /* there are tombstones that it was not told, as it was silent */
	bool unremoved;		 /* no call was free for a REMOVE to it: it must tell all it has */
	uint32_t tombstones_out; /* those under way to it */
	uint64_t tombstones_ns;	 /* when it answered one last, or they began */
	bool probing;		 /* a message is out that shows whether it lives */
	struct link *main;	 /* worker 0 to worker 0; NULL until wanted */
	struct list links;
	struct list calls; /* struct call.of_node */
	uint64_t store_incarnation;
	uint64_t incarnation; /* of its dataplane */
	struct timer forget;  /* DOWN: when the directory forgets its copies */

	uint8_t member; /* enum member_state */
	bool beyond;	/* it was logged that copies of it are refused (tombstone_copies_beyond) */
	bool ahead;	/* it was logged that its clock is (clock.c) */
	bool guest;	/* has an address, but no number yet */
	uint32_t reserved;    /* guest: the number that we have given it, + 1 */
	uint32_t position;    /* among the live members */
	uint64_t epoch;	      /* rises when its part of the directory must be told all again */
	uint64_t acked_epoch; /* it has confirmed that it knows all as of then; 0: none of ours is
			       there */
	uint64_t acked_view;  /* members.view as of which it knows so; 0: it does not */
	uint64_t heard_view;  /* members.view as of which it last told us all that it has */
	bool heard;	      /* that was the present one, since the live members changed last */
	uint64_t member_incarnation;
	uint64_t dead_ns; /* when it was taken for dead last */
	bool seen;	  /* it lived in a view since the last that had settled, or in that */
	bool missed;	  /* it is silent: unless it is heard of soon, it is suspect */
	bool died; /* it was taken for dead, has refuted that, or has restarted: other members may
		      have acted on it */
	uint32_t asked_by[2]; /* node + 1 that wants to know when we hear of it; 0: nobody */
	uint64_t asked_ns;
	uint64_t fresh_ns;  /* until then its last sign of life is young enough (store/replica.h) */
	uint64_t mute_ns;   /* it has not answered the question of store/replica.c: not asked until
			       then */
	bool asking;	    /* that question is out */
	uint64_t unkept_ns; /* until then it is asked for no second copies, as it did not answer */
	uint64_t probed_ns; /* a probe of then is not answered; 0: none is out */
	uint64_t corrected_ns; /* when it last heard from us that it is wrong about the members */
	struct list news;      /* members.news */
	struct timer suspicion;
};

struct peers {
	struct node *nodes;
	struct conn *conns; /* by worker, then handle index */
	struct pool links;
};

struct control_config;
void peers_carve(struct peers *p, struct arena *a, const struct control_config *config);
void peers_init(struct control *c);

void peers_event(struct control *c, unsigned worker, const struct record *r);
/* All connections are gone. */
void peers_detach(struct control *c);
/* Opens what is wanted. */
void peers_attach(struct control *c);

/* Whose message this is, or NULL when it must be ignored; takes HELLOs itself. */
struct node *peers_message(struct control *c, uint32_t conn, const struct message *m);

/* Sends to a node, or to ourselves; asks for a connection when there is none. False when the
 * message did not leave. */
bool peers_send(struct control *c, struct node *n, const struct message *m);

/* The link between these workers, opened if need be; NULL when the table is full. */
struct link *peers_link(struct control *c, struct node *n, unsigned worker, unsigned peer_worker);

/* Has the workers tell of silence of those that we watch closely, and of no others. */
void peers_watch(struct control *c);

/* It lives again: nobody waits out a pause before it is connected with. */
void peers_back(struct control *c, struct node *n);

/* It is lost: so is what was agreed with it. The next connection begins with a HELLO. */
void peers_sever(struct control *c, const struct node *n);

/* For join.c: a connection's node is found out; a node has moved; a guest has gone. */
void peers_rebind(struct control *c, struct conn *conn, struct node *n);
void peers_readdress(struct control *c, struct node *n, const struct net_addr *addr);
void peers_unlink(struct control *c, struct node *n);
void peers_refuse(struct control *c, struct conn *conn, const struct message_hello *hello,
		  const char *why);
/* Says hello with a number for the other side. */
void peers_give(struct control *c, uint32_t conn, uint32_t number);
/* Says hello again wherever there is a connection: something in it has changed. */
void peers_hello_all(struct control *c);
/* This node has a number now: says hello on all present connections. */
void peers_joined(struct control *c);

/* What the dataplane says of our own rails; asks for a path of a connection on each rail that both
 * nodes have. */
void peers_own_rails(struct control *c);
void peers_open_rails(struct control *c, struct conn *conn);

/* Between peers.c and handshake.c: a HELLO is owed on the connection, and leaves, or soon. */
void peers_hello(struct control *c, uint32_t handle, enum message_announce announce);
void peers_greet(struct control *c, struct conn *conn);
void peers_greet_later(struct control *c, struct link *l);
void peers_close_conn(struct control *c, unsigned worker, uint32_t handle);

struct conn *peers_conn(struct control *c, unsigned worker, uint32_t handle);
struct node *peers_node(struct control *c, uint32_t number);

#endif
