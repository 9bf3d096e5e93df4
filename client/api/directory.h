/* SPDX-License-Identifier: BSD-3-Clause */
/* What queues know of the directory beyond their users. */
#ifndef SARISSA_CLIENT_API_DIRECTORY_H
#define SARISSA_CLIENT_API_DIRECTORY_H

#include "internal/session.h"
#include "sarissa/sarissa.h"

/* An object as users see it. */
void directory_info(const struct session_object *object, sar_info *out);

#endif
