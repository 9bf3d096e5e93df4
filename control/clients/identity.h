/* SPDX-License-Identifier: BSD-3-Clause */
/* The process and user behind a client, as the kernel knew them at its connect. */
#ifndef SARISSA_CONTROL_CLIENTS_IDENTITY_H
#define SARISSA_CONTROL_CLIENTS_IDENTITY_H

#include "core/control.h"

/* Whether that process of before still runs; false also when the kernel cannot tell, and of a
 * process of another pid namespace. */
bool identity_lives(uint32_t process, uint64_t birth);
struct control_client identity_of(int fd, enum control_creators creators);

#endif
