/* SPDX-License-Identifier: BSD-3-Clause */
/* What puts know of buffers from sar_create beyond their users. */
#ifndef SARISSA_CLIENT_CREATE_H
#define SARISSA_CLIENT_CREATE_H

#include <stdbool.h>
#include "sarissa/sarissa.h"

/* Whether it is written apart from the store, and control copies. */
bool create_is_apart(sar *s, const sar_buffer *b);
/* As sar_publish, but it does not wait for each answer, or copy: the client may be some MiB ahead.
 * What fails is found by a later one, or the seal. */
int create_publish(sar *s, sar_buffer *b, uint64_t ready);

#endif
