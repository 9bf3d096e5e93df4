/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory's part that queues use and users of the library do not see. */
#ifndef SARISSA_CLIENT_API_DIRECTORY_H
#define SARISSA_CLIENT_API_DIRECTORY_H

#include "internal/session.h"
#include "sarissa/sarissa.h"

/* An object as users see it. */
void directory_info(const struct session_object *object, sar_info *out);

#endif
