/* SPDX-License-Identifier: BSD-3-Clause */
/* The sources of a request in the order of their ids. Called by wrong.c and types.c. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_SOURCES_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_SOURCES_H

#include "state.h"

struct sources_sorted {
	const struct message_reduce *of;
	uint16_t at[MESSAGE_SOURCES_MAX]; /* places in of->sources */
};

/* Whether each stands there once. */
bool sources_sort(struct sources_sorted *s, const struct message_reduce *m);
bool sources_have(const struct sources_sorted *s, const struct object_id *id);

#endif
