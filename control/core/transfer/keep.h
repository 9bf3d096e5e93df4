/* SPDX-License-Identifier: BSD-3-Clause */
/* KEEP: a second copy that a shard owner asks this node to hold. */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_KEEP_H
#define SARISSA_CONTROL_CORE_TRANSFER_KEEP_H

struct control;
struct message_have;

/* 0: this node has the copy, pinned; or -errno. */
int keep_copy(struct control *c, const struct message_have *have);

#endif
