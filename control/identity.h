/* SPDX-License-Identifier: BSD-3-Clause */
/* Who a client is, as the kernel knows it: as it was when it connected. */
#ifndef SARISSA_CONTROL_IDENTITY_H
#define SARISSA_CONTROL_IDENTITY_H

#include "core/control.h"

struct control_client identity_of(int fd, enum control_creators creators);

#endif
