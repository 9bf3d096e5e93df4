/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/text.h"
#include "core/group/state.h"
#include "core/lease/state.h"
#include "core/transfer/fetch.h"
#include "internal/array_meta.h"
#include "state.h"

void sessions_carve(struct sessions *s, struct arena *a, const struct control_config *config)
{
	pool_carve(&s->pool, a, sizeof(struct session), config->sessions_max);
	pool_carve(&s->waits, a, sizeof(struct wait), config->waits_max);
	idmap_carve(&s->by_seq, a, config->waits_max);
	quota_carve(&s->users, a, config->sessions_max);
	session_stat_carve(s, a);
}

struct session *sessions_at(struct control *c, uint32_t number)
{
	struct session *s;

	if (number >= c->session->sessions.pool.fresh)
		return NULL;
	s = pool_at(&c->session->sessions.pool, number);
	return s->pins ? s : NULL;
}

int control_session_open(struct control *c, _Atomic uint64_t *pins, uint64_t now_ns)
{
	struct session *s;

	c->now_ns = now_ns;
	if (!c->table)
		return -EAGAIN;
	s = pool_take(&c->session->sessions.pool);
	if (!s)
		return -EMFILE;
	s->pins = pins;
	objects_pins(c, pool_index(&c->session->sessions.pool, s), pins);
	list_init(&s->waits);
	list_init(&s->creating);
	list_init(&s->leases);
	list_init(&s->members);
	c->session->sessions.open++;
	return (int)pool_index(&c->session->sessions.pool, s);
}

int control_session_client(struct control *c, uint32_t number, const struct control_client *who)
{
	struct session *s = sessions_at(c, number);

	if (!s || s->user)
		return 0;
	s->user = quota_join(&c->session->sessions.users, who->user,
			     who->daemons ? c->config.sessions_max : c->config.sessions_user_max);
	if (!s->user) {
		c->counters.clients_greedy++;
		return -EDQUOT;
	}
	s->user->waiting += s->waiting;
	s->client = *who;
	s->brings = session_left_staged(c, s);
	return 0;
}

static void sessions_end_waits(struct control *c, struct session *s)
{
	/* the end of a wait may end the next one: it may be for an object that this session creates
	 */
	for (struct list *l; (l = list_first(&s->waits)) != NULL;) {
		struct wait *w = list_item(l, struct wait, of_session);
		struct object *o =
			w->op == SESSION_CREATE || w->op == SESSION_PUT ? w->object : NULL;
		struct fetch *f = w->fetch;

		waits_free(c, w);
		if (f)
			fetch_unwanted(c, f);
		if (o)
			announce_abandon(c, objects_slot(c, o), "its creator has gone");
	}
}

/* [G1.10] */
bool sessions_close(struct control *c, uint32_t number)
{
	struct session *s = sessions_at(c, number);

	if (!s)
		return false;
	s->pins = NULL; /* from here on the client pins nothing */
	objects_pins(c, number, NULL);
	sessions_end_waits(c, s);
	list_each(l, after, &s->creating)
	{
		struct object *o = list_item(l, struct object, of_session);

		announce_abandon(c, objects_slot(c, o), "its creator has gone: get it again");
	}
	leases_leave(c, &s->leases);
	agents_leave(c, &s->members);
	quota_leave(&c->session->sessions.users, s->user);
	c->session->sessions.open--;
	pool_give(&c->session->sessions.pool, s);
	objects_reap(c);
	return true;
}

static void session_attach(struct control *c, struct session *s, const struct session_request *r)
{
	struct session_reply reply;

	reply_make(r, &reply);
	reply.store_bytes = c->table->store_bytes;
	reply.table_bytes = object_table_bytes(c->table->slots);
	reply.generation = c->table->control_epoch;
	reply.flags = s->brings ? SESSION_FLAG_BRING : 0;
	s->attached = true;
	reply_send(c, s, &reply);
}

/* Bytes of a request, with the data that follows it. */
static size_t sessions_length(const struct session_request *r)
{
	uint32_t count = r->op == SESSION_REDUCE ? r->reduction.count : 0;

	if (r->op == SESSION_PUT && r->size <= SESSION_PUT_MAX)
		return sizeof(*r) + r->size;
	if (r->op == SESSION_BROADCAST && r->size <= SESSION_NODES_MAX * sizeof(uint32_t))
		return sizeof(*r) + r->size;
	if (r->op == SESSION_GET_RANGES &&
	    r->size <= SESSION_RANGES_MAX * sizeof(struct object_range))
		return sizeof(*r) + r->size;
	if (r->op == SESSION_GROUP)
		return sizeof(*r) + sizeof(struct group_request);
	return sizeof(*r) + (size_t)count * OBJECT_ID_BYTES;
}

/* [G2.1] */
static const char *sessions_check_meta(const struct session_request *r)
{
	struct array_meta array;

	if (r->meta.bytes > OBJECT_META_BYTES)
		return "metadata have at most 128 bytes: put the rest into the object";
	if (r->op != SESSION_CREATE && r->op != SESSION_PUT)
		return "only a new object has metadata: use a library and a node of one version";
	if (!array_meta_marked(&r->meta))
		return NULL;
	if (!array_meta_read(&r->meta, &array))
		return "metadata that begin with 0xa1 describe an array, and these do not: see "
		       "sarissa/array.h";
	if (!array_meta_fits(&array, r->size))
		return "the array that the metadata describe has another size than the object: "
		       "describe it as it is";
	return NULL;
}

/* Of GET_RANGES. */
static bool sessions_ranges_hold(const struct session_request *r, const uint8_t *ranges)
{
	uint64_t before = 0, bytes = 0;
	struct object_range range;

	if (r->size == 0 || r->size > SESSION_RANGES_MAX * sizeof(range) ||
	    r->size % sizeof(range) || r->pin == SESSION_PIN_NONE)
		return false;
	for (uint64_t at = 0; at < r->size; at += sizeof(range)) {
		memcpy(&range, ranges + at, sizeof(range));
		if (range.offset < before || range.bytes > SESSION_RANGES_BYTES - bytes ||
		    range.bytes > UINT64_MAX - range.offset)
			return false;
		before = range.offset;
		bytes += range.bytes;
	}
	return true;
}

/* Why a request cannot be served, or NULL. */
static const char *sessions_check(const struct session *s, const struct session_request *r,
				  const uint8_t *behind, size_t length)
{
	static const struct session_reduction none;

	if (length < sizeof(*r) || r->magic != SESSION_MAGIC || r->version != SESSION_VERSION ||
	    length != sessions_length(r))
		return "malformed request: use a library and a node of one version";
	if (r->op == 0 || r->op >= SESSION_OPS)
		return "unknown operation: use a library and a node of one version";
	if (r->op == SESSION_REDUCE ? r->reduction.count > SESSION_SOURCES_MAX
				    : memcmp(&r->reduction, &none, sizeof(none)) != 0)
		return "a reduce has at most 1024 sources, another request none: reduce in steps";
	if (r->op == SESSION_PUT && r->size > SESSION_PUT_MAX)
		return "too many bytes for one request: create the object";
	if (r->op == SESSION_BROADCAST &&
	    (r->size > SESSION_NODES_MAX * sizeof(uint32_t) || r->size % sizeof(uint32_t) != 0))
		return "a broadcast names at most 1024 nodes: broadcast in steps";
	if (!memchr(r->name, 0, sizeof(r->name)))
		return "the name is not terminated";
	if (r->pin != SESSION_PIN_NONE && r->pin >= SESSION_PINS)
		return "no such pin";
	if (!s->attached && r->op != SESSION_ATTACH)
		return "attach first";
	if (r->op == SESSION_GET_RANGES && !sessions_ranges_hold(r, behind))
		return "ranges in no order, or too many: use a library and a node of one version";
	return r->meta.bytes > 0 ? sessions_check_meta(r) : NULL;
}

/* Objects that only this node has go with it, so other users may not ask for that. */
static void session_leave(struct control *c, struct session *s, const struct session_request *r)
{
	if (s->user && !s->client.daemons) {
		reply_error(c, s, r->op, r->seq, -EPERM,
			    "only root and the user of the daemons may let this node leave");
		return;
	}
	membership_say_end(c, MEMBER_LEFT);
	reply_error(c, s, r->op, r->seq, 0, "");
}

typedef void session_handler(struct control *c, struct session *s, const struct session_request *r);

static session_handler *const session_handlers[SESSION_OPS] = {
	[SESSION_ATTACH] = session_attach,   [SESSION_CREATE] = session_create,
	[SESSION_PUBLISH] = session_publish, [SESSION_SEAL] = session_seal,
	[SESSION_ABORT] = session_abort,     [SESSION_GET] = session_get,
	[SESSION_WAIT] = session_wait,	     [SESSION_DELETE] = session_delete,
	[SESSION_STAT] = session_stat,	     [SESSION_LIST] = session_list,
	[SESSION_STATUS] = session_status,   [SESSION_REDUCED] = session_reduced,
	[SESSION_RESUME] = session_resume,   [SESSION_CANCEL] = session_cancel,
	[SESSION_LEASE] = session_lease,     [SESSION_LEASE_END] = session_lease_end,
	[SESSION_HOLD] = session_hold,	     [SESSION_RELEASE] = session_release,
	[SESSION_EXPIRE] = session_expire,   [SESSION_WATCH] = session_watch,
	[SESSION_LEAVE] = session_leave,
};

static bool sessions_other_version(struct control *c, struct session *s,
				   const struct session_request *r)
{
	struct text t = {.length = 0};

	if (r->magic != SESSION_MAGIC || r->version == SESSION_VERSION)
		return false;
	text_add(&t, "the library speaks version ");
	text_add_number(&t, r->version);
	text_add(&t, " of sessions, the node version ");
	text_add_number(&t, SESSION_VERSION);
	text_add(&t, ": use a library and a node of one version");
	reply_error(c, s, r->op, r->seq, -EPROTONOSUPPORT, t.bytes);
	return true;
}

bool sessions_request(struct control *c, uint32_t number, const void *bytes, size_t length)
{
	struct session *s = sessions_at(c, number);
	struct session_request r = {0};
	const char *wrong;

	if (!s)
		return false;
	c->counters.requests++;
	memcpy(&r, bytes, length < sizeof(r) ? length : sizeof(r));
	wrong = sessions_check(s, &r, (const uint8_t *)bytes + sizeof(r), length);
	if (wrong) {
		c->counters.requests_bad++;
		if (!sessions_other_version(c, s, &r))
			reply_error(c, s, r.op, r.seq, -EINVAL, wrong);
		return false;
	}
	if (r.op == SESSION_REDUCE) /* ids need no alignment */
		session_reduce(c, s, &r, (const void *)((const uint8_t *)bytes + sizeof(r)));
	else if (r.op == SESSION_PUT)
		session_put(c, s, &r, (const uint8_t *)bytes + sizeof(r));
	else if (r.op == SESSION_GROUP)
		session_group(c, s, &r, (const uint8_t *)bytes + sizeof(r));
	else if (r.op == SESSION_BROADCAST)
		session_broadcast(c, s, &r, (const uint8_t *)bytes + sizeof(r));
	else if (r.op == SESSION_GET_RANGES)
		session_get_ranges(c, s, &r, (const uint8_t *)bytes + sizeof(r));
	else
		session_handlers[r.op](c, s, &r);
	return true;
}

bool sessions_writable(struct control *c, uint32_t number)
{
	struct session *s = sessions_at(c, number);

	if (s)
		session_list_resume(c, s);
	return s != NULL;
}
