/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects in this node's store: space, slots of the shared table, users. Only objects.c writes
 * the table, but for watermarks, which workers advance. Called by all modules above. It must not
 * know fetches, sums or requests of clients. The memory of a ZOMBIE is freed when no client pins it
 * and no stage uses it; of an object of an earlier control, when that control's clients have gone,
 * too.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_OBJECTS_H
#define SARISSA_CONTROL_CORE_STORE_OBJECTS_H

#include "core/base/allocator.h"
#include "internal/object_private.h"
#include "core/base/list.h"
#include "core/cluster/state.h"
#include "core/message/message.h"
#include "core/base/timers.h"
#include "slots.h"
#include "texts.h"

struct control;
struct call;
struct participant;
struct creation;
struct fetch;
struct owner;
struct session;
struct stage;

struct object {			/* one per slot; the part that clients do not see */
	struct list link;	/* SEALED and evictable: on lru, else on spills.kept; ZOMBIE: on
				 * zombies */
	struct list restore;	/* SPILLED: on spills.wanted */
	struct list of_session; /* CREATING: of its creator, or objects.unclaimed */
	struct list waits;	/* struct await.link */
	struct list serves;	/* struct serve.of_object */
	struct list mirrors;	/* struct stage.mirror */
	struct session *creator;
	struct owner *owned;		 /* the user whose quota the bytes count in; NULL: none */
	struct stage *stage;		 /* not one that is being dropped */
	struct fetch *fetch;		 /* FETCHING */
	struct participant *participant; /* CREATING: a reduce builds it */
	struct creation *creation;  /* CREATING: a client writes it in a private staging buffer */
	struct announced announced; /* to its shard owner */
	uint64_t pinned_scan;	    /* the last scan that found a pin */
	uint64_t rate; /* bytes per second at which it arrived, until that is announced */
	uint32_t range;
	uint32_t holds;		  /* stages that touch its bytes */
	uint32_t replica;	  /* node + 1 with the pinned replica; 0: not known */
	uint32_t replica_unknown; /* times in a row that the directory knew none */
	uint32_t replica_doubts;  /* replicas.doubts when the directory was last asked */
	uint64_t replica_incarnation;
	uint64_t replica_store; /* its store_incarnation; 0: not known */
	bool found;		/* slots_find finds it */
	bool indexed;		/* so do clients */
	bool hidden;		/* of a participant: not announced */
	bool gathered;		/* of a participant: assembled from segments, not a sum */
	bool changed;		/* changed while the announcement was under way */
	bool adopted;  /* from an earlier control process, whose clients' pins are not known here */
	bool yields;   /* interim: its next HAVE asks whether it may give its pin back */
	bool yielded;  /* it may, and has not told the owner anything since */
	bool spilling; /* being written to a file */
	bool restoring; /* SPILLED: being read */
	bool fileless;	/* SPILLED: a new control has found that its file is damaged or gone */
	bool unclaimed; /* CREATING: its creator, a client of an earlier control process, has not
			 * reconnected yet */
};

/* So long nobody looks again whether what is evictable would be room enough. */

struct objects {
	struct object *meta;
	struct slots slots;
	struct texts texts;
	uint64_t *order;	 /* two for each slot, of recovery_attach */
	bool table_full;	 /* the last objects_insert found no slot */
	struct allocator space;	 /* of the store, up to the scratch space */
	uint64_t scratch_offset; /* where the space of objects ends */
	struct list lru;	 /* oldest first */
	struct list zombies;
	struct announcer announcer;
	struct list unclaimed;
	struct list late; /* came with an answer of the directory: announced later */
	struct timer reap, later, replica_timer;
	uint32_t replica_sweep; /* next slot of a look for pinned replicas */
	uint64_t scan;
	uint64_t primary_ns, primary_bytes;   /* of primary copies, and when they were counted */
	uint64_t tight_until_ns, tight_bytes; /* so many did not fit */
	_Atomic uint64_t **pins; /* SESSION_PINS words of each client, by number; NULL: none */
	uint32_t pins_count;
	uint32_t count, zombie_count;
	bool old_clients; /* clients of an earlier control process may still read or write adopted
			     objects */
};

struct control_config;
void objects_carve(struct objects *o, struct arena *a, const struct control_config *config);

/* * Takes over the table of an earlier control process: sealed objects stay. While its clients
 * still live, their creations wait for them to reconnect, fetches continue, and the rest becomes
 * zombies; without such clients all of that is freed. 0 or -EPROTO. */
int recovery_attach(struct control *c);
/* The creator of an unclaimed object has come back. */
void objects_claim(struct object *o);

struct object *objects_at(struct control *c, uint32_t slot);
uint32_t objects_slot(struct control *c, const struct object *o);
/* The slot that readers find under this id, or TABLE_SLOT_NONE. */
uint32_t slots_find(struct control *c, const struct object_id *id);
/* Whether the slot still is that object (and not a zombie). */
bool objects_is(struct control *c, uint32_t slot, uint64_t generation);
/* Whether some of its bytes are not readable yet. */
bool objects_incomplete(const struct control *c, uint32_t slot);
const char *texts_name(struct control *c, uint32_t slot);
/* With zeroes behind it. */
void texts_copy_name(struct control *c, uint32_t slot, char out[OBJECT_NAME_BYTES]);
/* Until the object is gone. Never NULL: without metadata its length is 0. */
const struct object_meta *texts_meta(struct control *c, uint32_t slot);
/* A whole struct: what texts_meta points to may end behind its `bytes`. */
void texts_copy_meta(struct control *c, uint32_t slot, struct object_meta *out);

/* Bytes that an object takes in the store: its own and its metadata (or NULL). UINT64_MAX, which no
 * store has, when no word counts them. */
uint64_t objects_need(uint64_t size, const struct object_meta *meta);
uint64_t objects_bytes(const struct control *c, uint32_t slot);

/* Only the word that readers see. */
void objects_set_state(struct control *c, uint32_t slot, enum object_state state);

/* Records the creator of an object in the table, for a later control process. */
struct control_client;
void objects_set_creator(struct control *c, uint32_t slot, const struct control_client *who);
/* A client writes it in a private staging buffer. */
void objects_set_staged(struct control *c, uint32_t slot);

/* Bytes of copies that may be evicted, if the nodes of their pinned replicas live. With very many
 * copies it is less than that: not all are looked at. */
uint64_t objects_evictable_bytes(struct control *c);

/* Whether an object of so many bytes would fit if all went that is no primary copy: what readers,
 * writers and fetches have in use is given back some time. False as well when it fits by bytes now:
 * then it lacks something else. */
bool objects_may_free(struct control *c, uint64_t size);
/* Whether objects_insert may find room by now. */
bool objects_may_fit(struct control *c, uint64_t size);

/* Makes an object, evicting others for its space; meta may be NULL: none. Sets *slot, or returns
 * -EFBIG, -ENOSPC, or -EAGAIN: there may be room when other nodes have answered (create_wait_await,
 * replica_answered). */
int objects_insert(struct control *c, const struct object_id *id, const char *name,
		   const struct object_meta *meta, uint64_t size, uint64_t generation,
		   uint32_t chunk_bytes, enum object_state state, uint32_t *slot);
/* Bytes before watermark are readable. */
void objects_publish(struct control *c, uint32_t slot, uint64_t watermark);
/* The whole object is final; the caller announces it. */
void objects_seal(struct control *c, uint32_t slot, bool primary);
/* Takes the object from its readers: waits end with -ESTALE, the memory is freed when nobody uses
 * it. */
void objects_kill(struct control *c, uint32_t slot, const char *why);
/* Removes it; another generation follows: waits end with -ERESTART, so clients get it again. */
void objects_replace(struct control *c, uint32_t slot, const char *why);
/* Removes it, and no generation follows: local waits end with -ECANCELED. */
void objects_cancel(struct control *c, uint32_t slot, const char *why);
/* Removes it, as its other bytes are lost: waits end with -ENODATA. */
void objects_lose(struct control *c, uint32_t slot, const char *why);
/* A stage has let go. */
void objects_release(struct control *c, uint32_t slot);
/* More bytes have arrived. */
void objects_progress(struct control *c, uint32_t slot);
/* The object was used: it becomes the last to be evicted. */
void objects_touch(struct control *c, uint32_t slot);
/* This copy becomes the pinned replica; interim: until the one that was put is there again. */
void objects_appoint(struct control *c, uint32_t slot, bool interim);
/* It is an ordinary copy again, which may be evicted. */
void objects_demote(struct control *c, uint32_t slot);
/* Registers the pin words of a client; NULL: it has gone. */
void objects_pins(struct control *c, uint32_t reader, _Atomic uint64_t *pins);
bool objects_pinned(struct control *c, uint32_t slot);
/* Scans the pin words of all clients; whether the last scan found an object unpinned. */
void objects_scan_pins(struct control *c);
bool objects_unpinned(const struct control *c, const struct object *o);
/* Space of the store, evicting others for it; errors as of objects_insert. */
int objects_allocate(struct control *c, uint64_t bytes, uint32_t *range);
/* A SPILLED object has its bytes again, in its range. */
void objects_restored(struct control *c, uint32_t slot);
/* Frees the zombies that nobody uses any more. */
void objects_reap(struct control *c);

/* Writes why there was no room for an object of that size (the last objects_insert). */
struct text;
void objects_no_room(struct control *c, int error, uint64_t size, struct text *t);

/* Whether the description of an object, which comes from another node, makes sense. */
bool objects_valid(uint64_t generation, uint64_t size, uint32_t chunk_bytes);

/* announce.c: announcing this node's objects to their shard owners */
void announce_init(struct control *c);
void announce_object(struct control *c, uint32_t slot);
/* Announces it a little later, so as not to delay other receivers of the object. */
void announce_later(struct control *c, uint32_t slot);
/* Whether the owner of its id may not know the object. */
bool announce_unacked(struct control *c, uint32_t slot);
/* The owner has acknowledged the object with another answer than to a HAVE: announces it again if
 * the owner, or the epoch, has changed since. */
void announce_agreed(struct control *c, uint32_t slot, const struct node *owner, uint64_t epoch);
/* Tells the directory that the object is gone (generation 0: that a GET is no longer wanted). */
void announce_disown(struct control *c, const struct object_id *id, uint64_t generation);
/* Whether nothing of that generation is here. */
bool announce_disowns(struct control *c, const struct object_id *id, uint64_t generation);
/* A HAVE about the object as it is now, without its value. */
void announce_have(struct control *c, uint32_t slot, struct message *m);
/* Sets the value of a HAVE to the object's bytes, when they are few and final. */
void announce_value(struct control *c, uint32_t slot, struct message_have *have);

/* Gives an object under creation up. */
void announce_abandon(struct control *c, uint32_t slot, const char *why);

#endif
