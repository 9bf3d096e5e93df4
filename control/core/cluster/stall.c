/* SPDX-License-Identifier: BSD-3-Clause */
#include "stall.h"

enum {
	WATCH_ANSWERS = 4, /* doublings */
	WATCH_FORGET = 8,  /* answers until a slow one is forgotten by 63 % */
	WATCH_PATIENCE = 4,
};

static uint64_t stall_patience(const struct watches *ws)
{
	uint64_t ns = WATCH_PATIENCE * ws->answer_ns;

	if (ns < WATCH_SILENT_MIN_NS)
		return WATCH_SILENT_MIN_NS;
	return ns < WATCH_SILENT_MAX_NS ? ns : WATCH_SILENT_MAX_NS;
}

void stall_saw_answer(struct watches *ws, uint64_t ns)
{
	if (ns > WATCH_SILENT_MAX_NS)
		ns = WATCH_SILENT_MAX_NS;
	ws->answer_ns -= ws->answer_ns / WATCH_FORGET;
	if (ns > ws->answer_ns)
		ws->answer_ns = ns;
}

void stall_begin(struct watch *w, uint32_t missing, uint64_t now_ns)
{
	*w = (struct watch){.moved_ns = now_ns, .missing = missing};
}

/* [G6.1] */
enum watch_verdict stall_look(const struct watches *ws, struct watch *w, uint32_t missing,
			      uint64_t now_ns)
{
	if (missing != w->missing) {
		stall_begin(w, missing, now_ns);
		return WATCH_FLOWS;
	}
	if (w->asked_ns != 0) {
		w->silent = now_ns - w->asked_ns >= stall_patience(ws);
		return w->silent ? WATCH_SILENT : WATCH_WAITS;
	}
	if (now_ns - w->moved_ns < WATCH_QUIET_NS || now_ns < w->retry_ns)
		return WATCH_WAITS;
	return WATCH_ASK;
}

void stall_asked(struct watch *w, uint64_t now_ns)
{
	if (w->asked_ns == 0)
		w->asked_ns = now_ns;
}

void stall_answered(struct watch *w, bool check, uint64_t now_ns)
{
	if (!check) {
		stall_begin(w, w->missing, now_ns);
		return;
	}
	w->asked_ns = 0;
	w->silent = false;
	w->retry_ns = now_ns + (WATCH_RETRY_NS << w->answers);
	w->answers += w->answers < WATCH_ANSWERS;
}

uint64_t stall_delay(const struct watches *ws, const struct watch *w, uint64_t now_ns)
{
	uint64_t at = w->moved_ns + WATCH_QUIET_NS;

	if (w->asked_ns != 0)
		at = w->asked_ns + stall_patience(ws);
	else if (w->retry_ns > at)
		at = w->retry_ns;
	if (w->silent)
		at = now_ns + WATCH_SILENT_MIN_NS;
	return at > now_ns + WATCH_LOOK_MIN_NS ? at - now_ns : WATCH_LOOK_MIN_NS;
}
