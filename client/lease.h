/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls that make objects need of leases. */
#ifndef SARISSA_CLIENT_LEASE_H
#define SARISSA_CLIENT_LEASE_H

#include "sarissa/sarissa.h"

/* The object is there already, with the bytes of a put: the handle's lease holds it as well, if
 * another one does. 0 or -errno. */
int lease_join(sar *s, sar_id id);

#endif
