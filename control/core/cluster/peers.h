/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other nodes, and the links to them. A node is known by its address, from the configured list
 * or from other nodes (join.c), and by the number in its HELLO; both must agree.
 *
 * A link is a wanted connection between a worker of this node and one of another. It is opened when
 * first wanted, and reopened with growing pauses while a user wants it. The link between the
 * workers 0 carries all messages. Links to watched nodes (gossip.c) and to configured shard owners
 * always exist. Called by all modules above. It must not know objects.
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
	bool watched;	    /* the worker reports its silence */
	struct timer timer; /* CLOSED: tries again */
};

struct conn {		 /* one per handle index of a worker */
	uint32_t handle; /* 0: free */
	uint32_t rtt_us;
	uint64_t incarnation;
	struct link *link;
	uint16_t mtu;
	uint8_t owed;  /* HELLOs that could not leave yet: bit per enum message_announce */
	bool greeted;  /* the first one has left */
	bool named;    /* a HELLO has come; its incarnation may have ended */
	bool hello;    /* a valid HELLO has come: all messages count */
	uint8_t rail;  /* that it was opened on */
	uint8_t asked; /* bit per rail: a path is asked for, or up */
	uint8_t paths; /* bit per rail: it is up */
};

enum node_state {
	NODE_UNKNOWN, /* never seen */
	NODE_UP,      /* its HELLO has come on a present connection */
	NODE_DOWN,
};

struct node {
	uint32_t number;
	uint32_t workers; /* from its HELLO; at least 1 */
	struct net_addr addr;
	struct message_rails rails; /* from its HELLO, or from gossip */
	uint8_t state;
	bool tombstones_left;	 /* tombstones were not sent to it, as it was silent */
	bool unremoved;		 /* a REMOVE could not be sent to it: it must announce all */
	uint32_t tombstones_out; /* open TOMBSTONE calls to it */
	uint64_t tombstones_ns;	 /* when it last answered one, or the first was sent */
	bool probing;		 /* a message is open that shows whether it is alive */
	struct link *main;	 /* worker 0 to worker 0; NULL until wanted */
	struct list links;
	struct list calls; /* struct call.of_node */
	uint32_t plans;	   /* COMBINEs among them */
	uint64_t store_incarnation;
	uint64_t incarnation; /* of its dataplane */
	struct timer forget;  /* DOWN: when the directory forgets its copies */

	uint8_t member; /* enum member_state */
	bool beyond;	/* it was logged that copies of it are refused (tombstone_copies_beyond) */
	bool ahead;	/* it was logged that its clock is (clock.c) */
	uint8_t unlike; /* bit per rail: it was logged that its address is of another family */
	bool guest;	/* has an address, but no number yet */
	uint32_t reserved;    /* guest: the number assigned to it, + 1 */
	uint32_t position;    /* among the live members */
	uint64_t epoch;	      /* rises when all must be announced to its shard again */
	uint64_t acked_epoch; /* of the last acknowledged ANNOUNCED; 0: none, it has no
			       * entries of this node */
	uint64_t acked_view;  /* members.view of that ANNOUNCED; 0: none */
	uint64_t heard_view;  /* members.view of its last ANNOUNCED to us */
	bool heard;	      /* that is the present view */
	uint64_t member_incarnation;
	uint64_t dead_ns; /* when it was last considered dead */
	bool seen;	  /* it was alive in the last settled view, or in one since then */
	bool missed;	  /* silent: suspect, unless a member hears from it soon */
	bool died; /* it was considered dead, has refuted that, or has restarted: other members may
		    * have acted on that */
	uint32_t asked_by[2]; /* nodes + 1 that miss it, and wait for an answer; 0: none */
	uint64_t asked_ns;
	uint64_t fresh_ns;     /* until then its last answer is recent enough (store/replica.h) */
	uint64_t mute_ns;      /* it has not answered store/replica.c: not asked until then */
	bool asking;	       /* that question is out */
	uint64_t losses;       /* what it last said of its own (store/replica.h) */
	uint64_t unkept_ns;    /* until then it gets no KEEP, as it did not answer one */
	uint64_t probed_ns;    /* time of an unanswered probe; 0: none */
	uint64_t corrected_ns; /* when we last sent it a correction about the members */
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

/* The node that sent the message, or NULL: ignore it. HELLOs are handled here. */
struct node *handshake_message(struct control *c, uint32_t conn, const struct message *m);

/* Sends to a node, or to this one; opens a connection when there is none. False: the message did
 * not leave. */
bool peers_send(struct control *c, struct node *n, const struct message *m);

/* The link between these workers, opened if need be; NULL when the table is full. */
struct link *peers_link(struct control *c, struct node *n, unsigned worker, unsigned peer_worker);

/* Has the workers report the silence of the neighbours in the ring, and of no other node. */
void peers_watch(struct control *c);

/* The node is alive again: links to it open without the rest of a pause. */
void peers_back(struct control *c, struct node *n);

/* Closes all connections with the node. The next one begins with a HELLO. */
void peers_sever(struct control *c, const struct node *n);

/* For join.c: gives a connection to its node; changes a node's address; removes a guest. */
void peers_rebind(struct control *c, struct conn *conn, struct node *n);
void peers_readdress(struct control *c, struct node *n, const struct net_addr *addr);
void peers_unlink(struct control *c, struct node *n);
void handshake_refuse(struct control *c, struct conn *conn, const struct message_hello *hello,
		      const char *why);
/* Sends a HELLO that assigns the peer a number. */
void peers_give(struct control *c, uint32_t conn, uint32_t number);
/* Sends HELLO on all connections: something in it has changed. */
void handshake_hello_all(struct control *c);
/* This node has a number now: sends HELLO on all connections. */
void handshake_joined(struct control *c);

/* Notes this node's rails, as the dataplane names them; asks for a path of a connection on each
 * rail that both nodes have. */
void peers_own_rails(struct control *c);
void peers_open_rails(struct control *c, struct conn *conn);

/* Between peers.c and handshake.c: owes a HELLO on the connection, and sends it now or soon. */
void handshake_greeting(struct control *c, uint32_t handle, enum message_announce announce);
void handshake_greet(struct control *c, struct conn *conn);
void peers_greet_later(struct control *c, struct link *l);
void peers_close_conn(struct control *c, unsigned worker, uint32_t handle);

struct conn *peers_conn(struct control *c, unsigned worker, uint32_t handle);
struct node *peers_node(struct control *c, uint32_t number);

#endif
