/* SPDX-License-Identifier: BSD-3-Clause */
/* Where no node answers: whether this user has a local cluster (sarissa local) that was meant. */
#ifndef SARISSA_CLIENT_LINK_LOCAL_HINT_H
#define SARISSA_CLIENT_LINK_LOCAL_HINT_H

#include <stddef.h>

/* "what is the matter: what to do" into out, or an empty string. path: the socket that was tried.
 */
void local_hint(const char *path, char *out, size_t room);

#endif
