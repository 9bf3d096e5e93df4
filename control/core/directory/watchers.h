/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watchers: nodes that ask for the events of this shard's objects whose names begin with a prefix.
 * The shard keeps a bounded log of events. A request names the number of the next event that its
 * node wants, which acknowledges those before it. The reply waits until there is an event. A node
 * that asks for events older than the log learns that it missed some. Called by the directory and
 * its agent. It must not know sessions or time.
 *
 *   BEGIN  the objects that exist come first, in pages; then the events since
 *   JOIN   the events from now on
 *   NEXT   the events from message_watch.next on, or the next page
 *   STOP   the node wants no more
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_WATCHERS_H
#define SARISSA_CONTROL_CORE_DIRECTORY_WATCHERS_H

#include "core/base/arena.h"
#include "core/base/list.h"
#include "core/message/message.h"

enum {
	WATCHERS_MAX = 256,    /* of one shard; one more is refused */
	WATCHERS_EVENTS = 512, /* in the log: a node that is further behind has missed some */
};

struct directory;
struct entry;

struct watcher {
	struct list link;
	uint32_t node;
	uint64_t number;  /* the node's own */
	uint64_t request; /* that waits for an event; 0: none */
	uint64_t began;	  /* number of the first event after the objects that existed */
	uint64_t next;	  /* the node has the events before this one */
	uint64_t scanned; /* those from next to here are not of its prefix */
	char prefix[OBJECT_NAME_MAX + 1];
};

struct watchers {
	struct pool pool;
	struct list list;
	struct session_object *log; /* WATCHERS_EVENTS of them, by number */
	uint64_t number;	    /* of the next event */
};

void watchers_carve(struct watchers *ws, struct arena *a);
void watchers_init(struct watchers *ws);
/* WATCH */
void watchers_message(struct directory *d, uint32_t node, const struct message *m);
/* The entry has changed: tells what is new. Use directory_noted, which costs nothing when nobody
 * watches. */
void watchers_look(struct directory *d, struct entry *e);
/* Its generation ends. */
void watchers_gone(struct directory *d, struct entry *e);
/* The node has died or restarted: it sends the requests that it still needs again. */
void watchers_drop(struct directory *d, uint32_t node);

#endif
