/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of a reduce's request that its fields alone show. The coordinator looks at what comes from
 * other nodes, sessions at what their clients ask: of the coordinator's headers sessions may
 * include only this one. It must not know what is in the cluster.
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_WRONG_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_WRONG_H

struct message_reduce;

/* The fault of a request's fields, or NULL. */
const char *reduce_wrong(const struct message_reduce *m);

#endif
