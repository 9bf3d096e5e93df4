/* SPDX-License-Identifier: BSD-3-Clause */
/* Says in words which event a call waits for that has not returned. It never waits for another
 * control, so that a program can tell its user that there is none. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "queue/deadline.h"
#include "api/error.h"
#include "handle.h"

#define WAITS_ASK_NS 3000000000

struct waits {
	char *out;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static void waits_say(struct waits *w, const char *format,
							    ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(w->out, w->room, format, args);
	va_end(args);
	n = n < 0 ? 0 : n;
	size_t used = (size_t)n < w->room ? (size_t)n : w->room ? w->room - 1 : 0;
	w->out += used;
	w->room -= used;
}

static int waits_gone(struct sar *s, struct waits *w)
{
	waits_say(w,
		  "the node at %s has gone: start it again (sarissa-control, sarissa-dataplane); "
		  "the call goes on then",
		  s->path);
	return -ENOTCONN;
}

/* The one complete copy that is there when its node does not answer, or NULL. */
static const struct session_holder *waits_silent(const struct session_object *o)
{
	const struct session_holder *silent = NULL;
	for (uint32_t i = 0; i < o->holders && i < SESSION_HOLDERS; i++) {
		if (o->holder[i].complete && o->holder[i].down_ms == 0)
			return NULL;
		if (o->holder[i].complete)
			silent = &o->holder[i];
	}
	return silent;
}

static void waits_object(struct waits *w, const struct session_object *o)
{
	const struct session_holder *silent = waits_silent(o);
	if (o->copies == 0 && o->lost > 0)
		waits_say(w,
			  "lost with node %u (down for %" PRIu64
			  " s): start that node again, or put it again",
			  o->lost_node, o->down_ms / 1000);
	else if (silent)
		waits_say(w,
			  "node %u, which has it, has been silent for %" PRIu64
			  " s: start it again, or wait",
			  silent->node, silent->down_ms / 1000);
	else if (o->copies == 0 && o->flags & SESSION_OBJECT_REDUCED)
		waits_say(w, "a reduce makes it, and has not ended: see 'sarissa stat'");
	else if (o->copies == 0 && o->local_watermark == UINT64_MAX)
		waits_say(w, "nobody has all of it yet: who puts it has not ended");
	else if (o->local_watermark == UINT64_MAX)
		waits_say(w, "%u %s all of it, and nothing has arrived here yet", o->copies,
			  o->copies == 1 ? "node has" : "nodes have");
	else
		waits_say(w, "%" PRIu64 " of %" PRIu64 " bytes have arrived here%s",
			  o->local_watermark, o->size,
			  o->copies ? "" : ", and nobody has more: who puts it has not ended");
}

/* Asks the control that there is, once. */
static int waits_ask(struct sar *s, uint16_t op, const sar_id *id, uint16_t flags,
		     size_t item_bytes, struct mux_result *result)
{
	struct session_request request = handle_request(op, id);
	request.flags = flags;
	int r = mux_call(&s->mux, &request, NULL, item_bytes, deadline_after(WAITS_ASK_NS), result);
	return r < 0 ? r : result->reply.status;
}

/* The first source that a reduce lacks. False: it is none, or lacks none. */
static bool waits_source(struct sar *s, const sar_id *id, struct waits *w, sar_id *source)
{
	struct mux_result result;
	uint32_t present = 0, missing = 0;
	int r = waits_ask(s, SESSION_REDUCED, id, SESSION_FLAG_PROGRESS,
			  sizeof(struct session_sources), &result);
	const struct session_sources *page = result.items;
	for (size_t i = 0; r == 0 && i < result.items_count; i++) {
		if (page[i].missing && missing == 0 && page[i].count > 0)
			memcpy(source->bytes, page[i].source[0].bytes, SAR_ID_BYTES);
		*(page[i].missing ? &missing : &present) += page[i].count;
	}
	mux_result_free(&result);
	if (missing > 0)
		waits_say(w, "%u of %u sources of the reduce %s missing: ", missing,
			  missing + present, missing == 1 ? "is" : "are");
	return missing > 0;
}

static void waits_stat(struct sar *s, const sar_id *id, struct waits *w, bool source)
{
	struct mux_result result;
	sar_id missing;
	int r = waits_ask(s, SESSION_STAT, id, 0, sizeof(struct session_object), &result);
	const struct session_object *object = result.items_count ? result.items : NULL;
	if (source && object && *object->name)
		waits_say(w, "'%.*s': ", SAR_NAME_MAX, object->name);
	if (!source && (r == -ENOENT || (object && object->flags & SESSION_OBJECT_REDUCED)) &&
	    waits_source(s, id, w, &missing))
		waits_stat(s, &missing, w, true);
	else if (r == 0 && object)
		waits_object(w, object);
	else if (r == -ENOENT)
		waits_say(w, "%s", "nobody has put it");
	else if (r == -EHOSTUNREACH)
		waits_say(w, "a part of the directory does not answer, and may know of it: see "
			     "'sarissa status'");
	else
		waits_say(w, "the node's control does not answer: see whether it runs with "
			     "'sarissa doctor'");
	mux_result_free(&result);
}

int sar_waits_for(sar *s, const sar_id *id, char *out, size_t room)
{
	struct waits w = {.out = out, .room = room};
	struct error_kept kept;
	int r = handle_check(s);
	if (r < 0)
		return r;
	if (!out || room == 0)
		return error_set(-EINVAL, "sar_waits_for: no room for the words");
	*out = '\0';
	error_keep(&kept);
	r = handle_lost(s) ? waits_gone(s, &w) : 0;
	if (r == 0 && id) {
		waits_stat(s, id, &w, false);
		w = (struct waits){.out = out, .room = room};
		r = handle_lost(s) ? waits_gone(s, &w) : 0;
	}
	error_restore(&kept);
	return r;
}
