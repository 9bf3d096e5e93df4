/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: the clients of this node, and their requests. Every byte of a request is checked before
 * use; a bad one is answered -EINVAL. A request that cannot be answered at once becomes a wait,
 * which ends with its answer, its timeout, or its session. Called by the shell and by events of the
 * modules below. It must not know the wire or workers.
 */
#ifndef SARISSA_CONTROL_CORE_SESSION_SESSIONS_H
#define SARISSA_CONTROL_CORE_SESSION_SESSIONS_H

#include "core/control.h"
#include "internal/session.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/timers.h"
#include "core/store/await.h"
#include "quota.h"

struct call;
struct control;
struct excerpt;
struct fetch;
struct node;
struct object;
struct text;

struct session {
	_Atomic uint64_t *pins; /* NULL: not open */
	struct list waits;	/* struct wait.of_session */
	uint32_t waiting;	/* how many */
	struct list creating;	/* struct object.of_session */
	struct list leases;	/* struct lease_use.of_session */
	struct list members;	/* of groups: struct agent_member.of_session */
	bool attached;
	bool brings; /* control_session_brings */
	struct control_client client;
	struct user *user; /* NULL: the client is unknown */
};

struct wait {
	struct list of_session;
	struct idmap_node by_seq; /* in the map while it can be cancelled */
	struct await await;
	struct list link; /* WAIT for a part: on sessions.polled; WATCH: on watching */
	struct timer timer;
	struct session *session; /* NULL: of another node (broadcast.c) */
	struct fetch *fetch;	 /* GET, a pull of a group (GROUP): before the object has a place */
	struct object *object; /* WAIT, CREATE, PUT, GET of a whole object that arrives, GET_RANGES
				  of one that is here */
	struct call *call;     /* CREATE, PUT, DELETE, STAT, LIST, REDUCED: ends with the wait */
	struct excerpt *excerpt; /* GET_RANGES of an object that is not here: ends with the wait */
	struct object_id id;
	uint64_t generation;
	uint64_t lease;	    /* CREATE, PUT: lease that will hold the object; 0: none */
	uint64_t watermark; /* WAIT, GET of a whole object, GET_RANGES */
	uint64_t cursor;    /* LIST, STAT; PUT: membership_epoch of its HAVE; of another node: its
			       request    number */
	uint64_t number;    /* of this use of the item, as STATUS calls may outlive it */
	uint32_t seq;
	uint32_t pin;
	uint32_t shard;	  /* LIST: index of the owner being asked; PUT: node of the owner asked; of
			     another node: its number */
	uint32_t pending; /* STATUS, BROADCAST, WATCH: nodes that have not answered */
	uint16_t op;
	bool numbered; /* it is in by_seq */
	bool sealed;   /* SEAL: the object is sealed; waits for the second copy (directory/backup.h)
			*/
	bool whole;    /* GET: answered when all of the object is readable */
	bool brief;    /* STAT */
	bool progress; /* REDUCED: the client wants the progress of a running reduce */
	bool paused;   /* LIST, WATCH: the client is slow */
	bool missed;   /* WATCH: events are missed: said when all owners have answered */
	uint32_t named;			  /* LIST: nodes below were asked, or named as missing */
	uint64_t silent_ns;		  /* LIST: spent on owners that did not answer */
	char prefix[OBJECT_NAME_MAX + 1]; /* LIST, WATCH: of names */
};

enum { SESSION_PAGES = 64 };

enum { SESSION_WATCHES = 64 }; /* of all clients of this node */

enum { PREFETCHES = 1024 }; /* objects that other nodes have asked this one to fetch */

enum { CREATE_WAITS_MAX = 256 }; /* CREATEs that wait for room at a time; more fail at once */

struct create_wait { /* a CREATE that waits until nodes of pinned replicas have answered */
	struct list link;
	struct wait *wait;
	uint64_t number; /* of the wait: it may end before */
	uint64_t until_ns;
	struct session_request request;
};

struct sessions {
	struct pool create_waits;
	struct list creates; /* struct create_wait.link */
	struct pool pool;
	struct pool waits;
	struct list prefetches; /* waits of other nodes */
	uint32_t prefetching;	/* how many */
	struct idmap by_seq;	/* waits of clients that have numbered them */
	struct users users;
	struct pool pages;		 /* STAT: that wait for the holders' progress */
	struct control_plan heard;	 /* the latest of what other nodes told of theirs */
	struct session_object described; /* the answer to a STAT of another node */
	uint32_t open;
	uint64_t waits_count; /* ever started */
	struct list polled;   /* waits for a part of an object: events come only at whole blocks */
	struct timer poll;
	struct list watching; /* struct wait.link, of WATCH */
	uint32_t watches;     /* how many */
	uint64_t view;	      /* members.view whose owners they ask */
};

struct control_config;
void sessions_carve(struct sessions *s, struct arena *a, const struct control_config *config);
/* The open session of that number, or NULL. */
struct session *sessions_at(struct control *c, uint32_t number);

/* The work of control_session_close, _request, _writable and _forfeit. Return whether there was
 * anything to do. */
bool sessions_close(struct control *c, uint32_t number);
bool sessions_request(struct control *c, uint32_t number, const void *bytes, size_t length);
bool sessions_writable(struct control *c, uint32_t number);
void sessions_forfeit(struct control *c, uint32_t number);

/* waits.c */
struct wait *waits_start(struct control *c, struct session *s, const struct session_request *r);
/* CANCEL: ends the wait of the request that it names. */
void session_cancel(struct control *c, struct session *s, const struct session_request *r);
/* Whether one more request may wait. If not, waits_start answers it. */
bool waits_room(const struct control *c, const struct session *s);
/* Whether the wait is a pull of a group, for which the fetch is only a head start: its link to that
 * has ended then, and it waits on. */
bool waits_ahead(struct wait *w);
/* The wait ends with -ETIMEDOUT after that time; < 0: never. */
void waits_timeout(struct control *c, struct wait *w, int64_t timeout_ns);
/* The wait, if the item still is the wait with that number; else NULL. */
struct wait *waits_of(struct control *c, void *item, uint64_t number);
void waits_free(struct control *c, struct wait *w);
void waits_end(struct control *c, struct wait *w, int32_t status, const char *text);
/* Ends the wait: no answer has come from the directory; no call was free. */
void waits_no_directory(struct control *c, struct wait *w);
void waits_no_call(struct control *c, struct wait *w);
/* Answers with where the object in slot lies, pinned for the client. A GET of a whole object is
 * answered when all of it is readable. */
void waits_place(struct control *c, struct wait *w, uint32_t slot);
/* Ends the waits on an object that are satisfied; all of them. */
void waits_check_object(struct control *c, struct object *o);
void waits_fail_object(struct control *c, struct object *o, int32_t status, const char *why);
/* Also polls the watermark for the wait: events come only once per block. */
void waits_poll(struct control *c, struct wait *w);

/* reply.c */
void reply_make(const struct session_request *r, struct session_reply *out);
void reply_send(struct control *c, struct session *s, struct session_reply *r);
void reply_error(struct control *c, struct session *s, uint16_t op, uint32_t seq, int32_t status,
		 const char *text);
void reply_place(struct control *c, struct session *s, uint16_t op, uint32_t seq, uint32_t pin,
		 uint32_t slot);
bool reply_item(struct control *c, const struct wait *w, const void *item, uint32_t bytes);

/* put.c, get.c, info.c, stat.c: one function per operation */
void session_create(struct control *c, struct session *s, const struct session_request *r);
/* Retries a CREATE that waits for room (store/replica.h); last: for the last time. Returns whether
 * it waits for room no more. */
bool session_create_retry(struct control *c, struct wait *w, const struct session_request *r,
			  bool last);
void session_publish(struct control *c, struct session *s, const struct session_request *r);
void session_seal(struct control *c, struct session *s, const struct session_request *r);
void session_abort(struct control *c, struct session *s, const struct session_request *r);
void session_resume(struct control *c, struct session *s, const struct session_request *r);
void session_get(struct control *c, struct session *s, const struct session_request *r);
void session_wait(struct control *c, struct session *s, const struct session_request *r);
/* excerpt.c; ranges: r->size bytes, valid during the call */
void session_get_ranges(struct control *c, struct session *s, const struct session_request *r,
			const uint8_t *ranges);
void session_delete(struct control *c, struct session *s, const struct session_request *r);
void session_stat(struct control *c, struct session *s, const struct session_request *r);
void session_list(struct control *c, struct session *s, const struct session_request *r);
void session_status(struct control *c, struct session *s, const struct session_request *r);
/* bytes: r->size, valid during the call */
void session_put(struct control *c, struct session *s, const struct session_request *r,
		 const uint8_t *bytes);
/* broadcast.c; named: r->size bytes, valid during the call */
void session_broadcast(struct control *c, struct session *s, const struct session_request *r,
		       const uint8_t *named);
/* Another node asks this one to fetch an object. */
void session_prefetch(struct control *c, struct node *n, const struct message *m);
/* A wait of another node's PREFETCH: its object has a place here; the wait ends. */
void broadcast_placed(struct control *c, struct wait *w, uint32_t slot);
void broadcast_end(struct control *c, struct wait *w, int32_t status, const char *text);
/* reduce.c; sources: r->reduction.count, valid during the call */
void session_reduce(struct control *c, struct session *s, const struct session_request *r,
		    const struct object_id *sources);
void session_reduced(struct control *c, struct session *s, const struct session_request *r);
/* The reduce of the wait (REDUCE, REDUCED) has ended. */
void session_reduce_ended(struct control *c, struct wait *w, const struct message_used *used);
/* lease.c */
void session_lease(struct control *c, struct session *s, const struct session_request *r);
void session_lease_end(struct control *c, struct session *s, const struct session_request *r);
void session_hold(struct control *c, struct session *s, const struct session_request *r);
void session_release(struct control *c, struct session *s, const struct session_request *r);
void session_expire(struct control *c, struct session *s, const struct session_request *r);
/* Whether the lease of a CREATE or PUT, if it names one, can hold an object more; answers if not.
 */
bool session_lease_may(struct control *c, struct session *s, const struct session_request *r);
/* Of the lease module, by wiring.c. */
void session_lease_answer(struct control *c, void *waiter, uint64_t number, int32_t status,
			  uint64_t generation, const char *text);
/* group.c; bytes: r->size, valid during the call */
void session_group(struct control *c, struct session *s, const struct session_request *r,
		   const uint8_t *bytes);
/* The wait ends without an answer: who was about to join is not left behind as a member. */
void session_group_left(struct control *c, const struct wait *w);
/* watch.c */
void session_watch(struct control *c, struct session *s, const struct session_request *r);
/* It ends: nobody need tell it anything any more. */
void session_watch_end(struct control *c, struct wait *w);
/* The client has read: what waited for that goes on. */
void session_watch_resume(struct control *c, struct wait *w);
/* Other nodes own the directory now. */
void session_watch_view(struct control *c);
/* The session's queue has room again. */
void session_list_resume(struct control *c, struct session *s);
/* Whether the client has a private staging buffer of an earlier control that was not resumed. */
bool session_left_staged(struct control *c, const struct session *s);
/* stat.c */
void session_stat_carve(struct sessions *s, struct arena *a);
/* STAT of another node: how far the copy here is. */
void session_tell(struct control *c, struct node *n, const struct message *m);
/* Adds what only this node knows. */
void session_localise(struct control *c, struct session_object *o);
/* create_wait.c */
void create_wait_carve(struct sessions *s, struct arena *a);
/* objects_insert said -EAGAIN for this CREATE: it is tried again, and the session answered. */
void create_wait_await(struct control *c, struct session *s, const struct session_request *r);
/* The node of a pinned replica has answered, or will not. */
void create_wait_retry(struct control *c);
/* seal.c */
/* Whether a SEAL of that object waits for the owner's acknowledgement. */
bool seal_waits(struct control *c, uint32_t slot);
/* Answers the wait when the owner has the value. False: it need not wait. */
bool seal_await(struct control *c, struct wait *w, uint32_t slot);
/* The owner has it. */
void seal_acked(struct control *c, struct object *o);
/* missing.c */
/* Whether the node is taken for dead, and its shard may be missing here. */
bool session_lacks(struct control *c, const struct node *n);
/* Fills in the item that says that the shard of this node is missing. */
void session_missing_item(const struct node *n, struct session_object *out);
/* The owner cannot answer, because a member does not answer it: mostly that member is back, or
 * dead, within a second. Whether to ask again; the last answer goes to the client. */
bool session_may_wait(const struct control *c, const struct call *call);
/* Ends a wait: the owner of its id has not answered. */
void session_unanswered(struct control *c, struct wait *w, const struct node *owner);
/* Ends a wait: there is no such object, with this status and text, as far as this node can know. */
void session_absent(struct control *c, struct wait *w, int32_t status, const char *text);
void session_describe_node(struct control *c, struct session_node *out);

#endif
