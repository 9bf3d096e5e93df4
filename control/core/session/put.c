/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests by which a client makes an object: CREATE, PUT, RESUME, PUBLISH, SEAL, ABORT. A put
 * begins here in control: the store makes the slot, and the shard owner agrees to the id (HAVE).
 * create_wait.c keeps a CREATE that waits for room, seal.c a SEAL that waits for the owner. Called
 * by sessions.c with checked requests. It must not know workers.
 */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "core/directory/state.h"
#include "core/lease/state.h"
#include "core/transfer/fetch.h"
#include "state.h"

static const char *session_state_name(uint16_t state)
{
	return state == OBJECT_CREATING	  ? "being created"
	       : state == OBJECT_FETCHING ? "arriving from another node"
					  : "complete";
}

/* [G3.1] */
static void session_exists(struct control *c, struct session *s, const struct session_request *r,
			   uint32_t slot)
{
	struct text t = {.length = 0};

	text_add_object(&t, &r->id, texts_name(c, slot));
	text_add(&t, " exists already (");
	text_add_number(&t, c->table->slot[slot].size);
	text_add(&t, " bytes, ");
	text_add(&t, session_state_name(c->table->slot[slot].state));
	text_add(&t, " on this node): delete it first");
	reply_error(c, s, r->op, r->seq, -EEXIST, t.bytes);
}

/* Stops the GET of a fetch of this id: after the HAVE of the create the directory would take it for
 * the loss of the copy. The fetch continues if the create fails. */
static void session_fetch_hush(struct control *c, const struct object_id *id)
{
	struct fetch *f = placement_unplaced(c, id);

	if (!f)
		return;
	if (f->call)
		rpc_cancel(c, f->call);
	f->call = NULL;
	fetch_rest(c, f);
	timers_cancel(&c->timers, &f->timer);
}

/* The slot of a new object. 0 or -errno and why; -EAGAIN: when other nodes have answered. */
static int session_place(struct control *c, const struct session *s, const struct object_id *id,
			 const char *name, const struct object_meta *meta, uint64_t size,
			 uint32_t *slot, struct text *why)
{
	const struct tombstone *t = directory_tombstone(&c->directory->shard, id);
	int error = owned_may(c, s->client.user, objects_need(size, meta), why);

	if (error)
		return error;
	if (t) /* later than the tombstone: the owner may get that after this object */
		env_generation_after(c, t->generation);
	error = objects_insert(c, id, name, meta, size, env_generation(c), c->dataplane.chunk_bytes,
			       OBJECT_CREATING, slot);
	if (error)
		objects_no_room(c, error, size, why);
	else
		owned_charge(c, *slot, s->client.user);
	return error;
}

/* The slot of an object that the session will write. 0 or -errno and why. */
static int session_insert(struct control *c, struct session *s, const struct object_id *id,
			  const char *name, const struct object_meta *meta, uint64_t size,
			  uint32_t *slot, struct text *why)
{
	int error = session_place(c, s, id, name, meta, size, slot, why);

	if (error)
		return error;
	objects_set_creator(c, *slot, &s->client);
	if (s->client.staged)
		error = staging_start(c, s, *slot, false, why);
	if (error)
		objects_kill(c, *slot, "");
	else
		session_fetch_hush(c, id);
	return error;
}

static bool session_created(struct control *c, struct call *call, const struct message *answer);

/* Asks the directory to admit the create; the client gets its answer after that. The HAVE of a PUT
 * carries the value, which receivers may get from then on. */
static void session_create_ask(struct control *c, struct wait *w, uint32_t slot)
{
	bool whole = w->op == SESSION_PUT;
	struct message m;

	w->object = objects_at(c, slot);
	list_append(&w->object->waits, &w->await.link);
	announce_have(c, slot, &m);
	m.have.create = 1;
	if (whole)
		m.have.state = MESSAGE_COPY_COMPLETE;
	if (w->lease &&
	    !holds_create_begin(c, w->lease, &w->id, m.have.generation, &m.have.lease)) {
		waits_end(c, w, -EAGAIN, "its lease has just ended, or lets it just go: try again");
		objects_kill(c, slot, "");
		return;
	}
	w->call = rpc_start(c, ownership_shard(c, &w->id), &m, whole ? slot : TABLE_SLOT_NONE,
			    c->config.directory_ns, session_created, w);
	if (!w->call) {
		holds_create_not(c, w->lease, &w->id, false);
		waits_no_call(c, w);
		objects_kill(c, slot, "");
		return;
	}
	w->call->cookie = w->cursor = membership_epoch(c, w->call->node);
	w->shard = w->call->node->number;
}

/* Whether the shard owner or its incarnation has changed since the first HAVE. An earlier owner may
 * have admitted the PUT that this one refuses, and have given the value to receivers. */
static bool session_put_unsure(struct control *c, const struct wait *w, const struct call *call)
{
	return w->op == SESSION_PUT &&
	       (call->node->number != w->shard || membership_epoch(c, call->node) != w->cursor);
}

/* A deleted object had a later generation: some clock is ahead of this node's. Creates the object
 * with a later one. The client of a PUT has to send the bytes again. */
static void session_create_later(struct control *c, struct wait *w, uint64_t generation)
{
	uint32_t slot = objects_slot(c, w->object);
	uint64_t size = c->table->slot[slot].size;
	bool deleted = generation == c->table->slot[slot].generation;
	struct object_meta meta;
	char name[OBJECT_NAME_BYTES];
	struct text t;
	int error;

	texts_copy_name(c, slot, name);
	texts_copy_meta(c, slot, &meta);
	list_remove(&w->await.link);
	objects_kill(c, slot, "");
	env_generation_after(c, generation);
	if (w->op == SESSION_PUT) {
		holds_create_not(c, w->lease, &w->id, false);
		waits_end(c, w, deleted ? -ESTALE : -ERESTART,
			  deleted ? "the object was deleted while it was put: put it again"
				  : "it must have a later generation: create it");
		return;
	}
	error = session_insert(c, w->session, &w->id, name, &meta, size, &slot, &t);
	if (error)
		holds_create_not(c, w->lease, &w->id, false);
	if (error)
		waits_end(c, w, error == -EAGAIN ? -ENOSPC : error, t.bytes);
	else
		session_create_ask(c, w, slot);
}

static void session_creates(struct session *s, struct object *o)
{
	o->creator = s;
	list_append(&s->creating, &o->of_session);
}

bool session_may_wait(const struct control *c, const struct call *call)
{
	return call->deadline_ns - c->now_ns > c->config.backoff_max_ns;
}

/* The HAVE was sent several times, and the refusal answers one of them. The object in its way may
 * have been deleted since, and a later one have been accepted. Asks with a new request number,
 * whose answer is certain. Returns whether it asks. */
static bool session_create_sure(struct control *c, struct wait *w, const struct call *call,
				const struct message *answer)
{
	struct node *n = call->node;

	if (!answer || answer->reply.status != -EEXIST || call->sent_ns != 0 ||
	    n == c->cluster->self || c->now_ns >= call->deadline_ns)
		return false;
	w->call = rpc_start(c, n, &call->message, call->value_slot, call->deadline_ns - c->now_ns,
			    session_created, w);
	if (w->call)
		w->call->cookie = call->cookie;
	return w->call != NULL;
}

static bool session_created(struct control *c, struct call *call, const struct message *answer)
{
	struct wait *w = call->owner;
	struct object *o = w->object;
	struct session *s = w->session;
	uint32_t slot = objects_slot(c, o);

	if (answer && answer->reply.status == -EAGAIN && session_may_wait(c, call))
		return true;
	if (session_create_sure(c, w, call, answer))
		return false;
	w->call = NULL;
	if (answer && answer->reply.status == 0) {
		holds_create_made(c, w->lease, &w->id, c->table->slot[slot].generation, call->node,
				  call->cookie);
		if (w->op == SESSION_PUT)
			objects_seal(c, slot, true);
		else
			session_creates(s, o);
		announce_agreed(c, slot, call->node, call->cookie);
		waits_place(c, w, slot);
		placement_superseded(c, &c->table->slot[slot].id, slot);
		return false;
	}
	if (answer && session_put_unsure(c, w, call)) {
		waits_end(c, w, -ETIMEDOUT,
			  "the members have changed while it was put, and some "
			  "may have it: put it again");
		announce_abandon(c, slot, "it could not be put");
		return false;
	}
	if (answer && answer->reply.status != -ESTALE)
		holds_create_not(c, w->lease, &w->id, false);
	if (answer && answer->reply.status == -ESTALE &&
	    answer->reply.generation > env_generation_max(c)) {
		waits_end(c, w, -ERANGE,
			  "it was deleted with a generation more than an hour ahead of the clock "
			  "of this node: use another name");
		announce_abandon(c, slot, "it could not be created");
		return false;
	}
	if (answer && answer->reply.status == -ESTALE) {
		session_create_later(c, w, answer->reply.generation);
		return false;
	}
	if (answer)
		waits_end(c, w, answer->reply.status, answer->reply.text);
	else
		waits_no_directory(c, w);
	announce_abandon(c, slot, "it could not be created");
	return false;
}

/* Whether the slot has an object that this client was creating at an earlier control process, and
 * that no session has resumed yet. */
static bool session_left_behind(struct control *c, const struct session *s, uint32_t slot)
{
	const struct object_slot *image = &c->table->slot[slot];
	const struct object *o = objects_at(c, slot);
	const struct object_note *note = &c->private->note[slot];

	return image->state == OBJECT_CREATING && o->unclaimed && s->client.process != 0 &&
	       note->process == s->client.process && note->user == s->client.user &&
	       note->birth == s->client.birth;
}

bool session_left_staged(struct control *c, const struct session *s)
{
	list_each(l, after, &c->store->objects.unclaimed)
	{
		uint32_t slot = objects_slot(c, list_item(l, struct object, of_session));

		if (c->table->slot[slot].flags & OBJECT_FLAG_STAGED &&
		    session_left_behind(c, s, slot))
			return true;
	}
	return false;
}

bool control_session_brings(struct control *c, uint32_t number)
{
	const struct session *s = sessions_at(c, number);

	return s && s->brings;
}

/* No connection of that process may bring private staging buffers any more. */
static void session_bring_no_more(struct control *c, const struct control_client *who)
{
	for (uint32_t i = 0; i < c->session->sessions.pool.fresh; i++) {
		struct session *s = sessions_at(c, i);

		if (s && s->client.process == who->process && s->client.user == who->user &&
		    s->client.birth == who->birth)
			s->brings = false;
	}
}

void sessions_forfeit(struct control *c, uint32_t number)
{
	const struct session *s = sessions_at(c, number);

	list_each(l, after, &c->store->objects.unclaimed)
	{
		struct object *o = list_item(l, struct object, of_session);
		uint32_t slot = objects_slot(c, o);

		if (!s || !session_left_behind(c, s, slot))
			continue;
		objects_claim(o);
		announce_abandon(c, slot, "its creator has brought something else");
	}
	if (s)
		session_bring_no_more(c, &s->client);
}

/* Whether the request has brought the memory that the creation needs; otherwise the client is
 * answered. */
static bool session_has_memory(struct control *c, struct session *s,
			       const struct session_request *r, uint32_t slot)
{
	struct text why;
	int error = 0;

	if ((s->client.staged || c->table->slot[slot].flags & OBJECT_FLAG_STAGED) &&
	    !objects_at(c, slot)->creation)
		error = staging_start(c, s, slot, false, &why);
	if (error)
		reply_error(c, s, r->op, r->seq, error, why.bytes);
	return error == 0;
}

/* A CREATE that the client sent to an earlier control process before: that may have made the slot,
 * or even have answered. Returns false when the slot has another object. */
static bool session_create_repeated(struct control *c, struct session *s,
				    const struct session_request *r, uint32_t slot)
{
	const struct object_slot *image = &c->table->slot[slot];
	struct object *o = objects_at(c, slot);
	struct wait *w;

	if (!(r->flags & SESSION_FLAG_RETRY) || r->pin == SESSION_PIN_NONE ||
	    image->size != r->size || image->watermark != 0)
		return false;
	if (o->creator == s && atomic_load(&s->pins[r->pin]) == pin_make(slot, image->generation)) {
		if (session_has_memory(c, s, r, slot))
			reply_place(c, s, r->op, r->seq, r->pin, slot);
		return true;
	}
	if (!session_left_behind(c, s, slot))
		return false;
	w = waits_start(c, s, r);
	if (!w)
		return true;
	objects_claim(o);
	if (session_has_memory(c, s, r, slot)) {
		session_create_ask(c, w, slot);
		return true;
	}
	waits_free(c, w);
	announce_abandon(c, slot, "its creator has no memory to write it in");
	return true;
}

void session_create(struct control *c, struct session *s, const struct session_request *r)
{
	uint32_t slot = slots_find(c, &r->id);
	struct wait *w;
	struct text t;
	int error;

	if (slot != TABLE_SLOT_NONE) {
		if (!session_create_repeated(c, s, r, slot))
			session_exists(c, s, r, slot);
		return;
	}
	if (!session_lease_may(c, s, r))
		return;
	error = session_insert(c, s, &r->id, r->name, &r->meta, r->size, &slot, &t);
	if (error == -EAGAIN) {
		create_wait_await(c, s, r);
		return;
	}
	if (error) {
		reply_error(c, s, r->op, r->seq, error, t.bytes);
		return;
	}
	w = waits_start(c, s, r);
	if (w)
		session_create_ask(c, w, slot);
	else
		objects_kill(c, slot, "");
}

bool session_create_retry(struct control *c, struct wait *w, const struct session_request *r,
			  bool last)
{
	uint32_t slot = slots_find(c, &r->id);
	struct session *s = w->session;
	struct text t;
	int error;

	if (slot != TABLE_SLOT_NONE) {
		waits_free(c, w);
		session_exists(c, s, r, slot);
		return true;
	}
	error = session_insert(c, s, &r->id, r->name, &r->meta, r->size, &slot, &t);
	if (error == -EAGAIN && (!last || spill_leaving(c)))
		return false;
	if (error)
		waits_end(c, w, error == -EAGAIN ? -ENOSPC : error, t.bytes);
	else
		session_create_ask(c, w, slot);
	return true;
}

void session_put(struct control *c, struct session *s, const struct session_request *r,
		 const uint8_t *bytes)
{
	uint32_t slot = slots_find(c, &r->id);
	struct wait *w;
	struct text t;
	int error;

	if (slot != TABLE_SLOT_NONE) {
		session_exists(c, s, r, slot);
		return;
	}
	if (!session_lease_may(c, s, r))
		return;
	error = session_place(c, s, &r->id, r->name, &r->meta, r->size, &slot, &t);
	if (error == -EAGAIN) {
		reply_error(c, s, r->op, r->seq, -ERESTART, "it must wait for room: create it");
		return;
	}
	if (error) {
		reply_error(c, s, r->op, r->seq, error, t.bytes);
		return;
	}
	w = waits_start(c, s, r);
	if (!w) {
		objects_kill(c, slot, "");
		return;
	}
	session_fetch_hush(c, &r->id);
	memcpy(c->memory + c->table->slot[slot].offset, bytes, r->size);
	session_create_ask(c, w, slot);
}

void session_resume(struct control *c, struct session *s, const struct session_request *r)
{
	uint64_t word = r->pin == SESSION_PIN_NONE ? 0 : atomic_load(&s->pins[r->pin]);
	uint32_t slot = (uint32_t)word - 1;
	struct object *o;
	struct text why;

	if (slot >= c->table->slots || pin_make(slot, c->table->slot[slot].generation) != word ||
	    !session_left_behind(c, s, slot)) {
		reply_error(c, s, r->op, r->seq, -ESTALE,
			    "no such object is being created by this process: create it again");
		return;
	}
	o = objects_at(c, slot);
	objects_claim(o);
	session_creates(s, o);
	if (c->table->slot[slot].flags & OBJECT_FLAG_STAGED)
		staging_start(c, s, slot, true, &why); /* else what follows says so */
	announce_object(c, slot);
	reply_place(c, s, r->op, r->seq, r->pin, slot);
}

/* The object that the session creates in this slot, or NULL and the client is answered. */
static struct object *session_creating(struct control *c, struct session *s,
				       const struct session_request *r)
{
	struct object *o;

	if (r->slot >= c->table->slots) {
		reply_error(c, s, r->op, r->seq, -EINVAL, "no such slot");
		return NULL;
	}
	o = objects_at(c, r->slot);
	if (objects_is(c, r->slot, r->generation) && o->creator == s)
		return o;
	if (objects_is(c, r->slot, r->generation))
		reply_error(c, s, r->op, r->seq, -EINVAL,
			    "the object is not being created by this client: it may be sealed");
	else
		reply_error(c, s, r->op, r->seq, -ESTALE,
			    "the object was deleted while it was created, or control was started "
			    "again and could not keep it: create it again");
	return NULL;
}

void session_publish(struct control *c, struct session *s, const struct session_request *r)
{
	struct session_reply reply;

	if (!session_creating(c, s, r))
		return;
	reply_make(r, &reply);
	reply.watermark = c->table->slot[r->slot].watermark;
	if (r->watermark > c->table->slot[r->slot].size || r->watermark < reply.watermark) {
		reply_error(c, s, r->op, r->seq, -EINVAL,
			    "the watermark goes back or beyond the object");
		return;
	}
	if (c->table->slot[r->slot].flags & OBJECT_FLAG_STAGED) {
		staging_await(c, s, r, r->watermark);
		return;
	}
	objects_publish(c, r->slot, r->watermark);
	reply.watermark = r->watermark;
	reply_send(c, s, &reply);
}

/* Whether an earlier control process has sealed the object already. */
static bool session_sealed(struct control *c, const struct session_request *r)
{
	return r->flags & SESSION_FLAG_RETRY && objects_is(c, r->slot, r->generation) &&
	       (c->table->slot[r->slot].state == OBJECT_SEALED ||
		c->table->slot[r->slot].state == OBJECT_SPILLED);
}

void session_seal(struct control *c, struct session *s, const struct session_request *r)
{
	struct session_reply reply;

	if (!session_sealed(c, r)) {
		if (!session_creating(c, s, r))
			return;
		if (c->table->slot[r->slot].flags & OBJECT_FLAG_STAGED) {
			staging_await(c, s, r, c->table->slot[r->slot].size);
			return;
		}
		objects_seal(c, r->slot, true);
		announce_object(c, r->slot);
		/* The object is sealed. Without room for a wait the client is answered at once. */
		if (seal_waits(c, r->slot) && waits_room(c, s)) {
			seal_await(c, waits_start(c, s, r), r->slot);
			return;
		}
	}
	reply_make(r, &reply);
	reply.slot = r->slot;
	reply.generation = r->generation;
	reply.size = reply.watermark = c->table->slot[r->slot].size;
	reply_send(c, s, &reply);
}

void session_abort(struct control *c, struct session *s, const struct session_request *r)
{
	struct session_reply reply;

	if (!session_creating(c, s, r))
		return;
	announce_abandon(c, r->slot, "its creator has given it up: get it again");
	reply_make(r, &reply);
	reply_send(c, s, &reply);
}
