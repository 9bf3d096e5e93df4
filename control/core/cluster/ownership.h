/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node owns the directory shard of an id, and what a change of the members does to that. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_OWNERSHIP_H
#define SARISSA_CONTROL_CORE_CLUSTER_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message;
struct node;
struct object_id;

/* Whose part of the directory an id belongs to; who keeps any. */
struct node *control_shard(struct control *c, const struct object_id *id);
bool control_is_shard(const struct control *c, const struct node *n);

/* Whether an id has come to us and some members have not told us yet what they hold (settle.c). */
bool ownership_settling(struct control *c, const struct object_id *id);
/* Whether this node has kept it in all views since the last that had settled. */
bool ownership_constant(const struct control *c, const struct object_id *id);
/* The next node from *cursor on that keeps a part of the directory; NULL: no more. */
struct node *ownership_next(struct control *c, uint32_t *cursor);
/* The owner of an id, and who would be its owner after that one; NULL: nobody. */
void ownership_replicas(struct control *c, const struct object_id *id, struct node *owners[2]);
/* Who would keep them next if that one did not; not ourselves; NULL: nobody is left. */
struct node *ownership_stand_in(struct control *c, const struct object_id *id,
				const struct node *than);
/* Who holds the second copy of a small object of this shard: of the other nodes that live and
 * answer the one that would be its next owner; NULL: there are none. */
struct node *ownership_backup(struct control *c, const struct object_id *id);
void ownership_redirect(struct control *c, struct node *n, uint64_t request);

#endif
