/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detects stalled streams at the receiver. No event says that a sender has stopped: its connection
 * ends only after seconds. So fetches and participants watch what is missing, and ask a sender that
 * is quiet for WATCH_QUIET_NS (STREAM with check set). No answer within four times the recent
 * answer time, within WATCH_SILENT_MIN_NS and WATCH_SILENT_MAX_NS, means that it is silent. A
 * sender that answers has nothing to send, and is asked again after growing pauses. A verdict may
 * be wrong on a busy machine: it must cost only work, and a late answer raises the threshold.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_STALL_H
#define SARISSA_CONTROL_CORE_CLUSTER_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/times.h"

enum watch_verdict {
	WATCH_FLOWS,  /* chunks came since the last look */
	WATCH_WAITS,  /* none came: no verdict yet */
	WATCH_ASK,    /* ask the sender, then call stall_asked */
	WATCH_SILENT, /* the sender was asked, and does not answer */
};

struct watch {
	uint64_t moved_ns; /* last look that found new chunks */
	uint64_t asked_ns; /* 0: not asked, or answered */
	uint64_t retry_ns; /* when it may be asked again */
	uint32_t missing;  /* at the last look */
	uint32_t answers;  /* since something came */
	bool silent;
};

struct watches {	    /* one per node */
	uint64_t answer_ns; /* longest recent answer; fades */
};

void stall_begin(struct watch *w, uint32_t missing, uint64_t now_ns);
/* missing: chunks, now. */
enum watch_verdict stall_look(const struct watches *ws, struct watch *w, uint32_t missing,
			      uint64_t now_ns);
void stall_asked(struct watch *w, uint64_t now_ns);
/* The sender has answered. check: that it still sends; else it is about to send. */
void stall_answered(struct watch *w, bool check, uint64_t now_ns);
/* A question to a sender was answered after so long. */
void stall_saw_answer(struct watches *ws, uint64_t ns);
/* Until the next look. */
uint64_t stall_delay(const struct watches *ws, const struct watch *w, uint64_t now_ns);

#endif
