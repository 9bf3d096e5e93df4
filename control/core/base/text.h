/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short texts for people, put together piece by piece into a bounded buffer; what does not fit is
 * cut off. Names that came from outside are shown with their control characters replaced.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_TEXT_H
#define SARISSA_CONTROL_CORE_BASE_TEXT_H

#include "internal/ids.h"

struct text {
	char bytes[256];
	uint32_t length;
};

void text_add(struct text *t, const char *s);
void text_add_number(struct text *t, uint64_t n);
/* The name, or when it is empty the id in hexadecimal. */
void text_add_object(struct text *t, const struct object_id *id, const char *name);
void text_add_addr(struct text *t, const struct net_addr *a);

#endif
