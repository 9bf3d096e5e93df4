/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node owns the directory shard of an id; changes with the live members. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_OWNERSHIP_H
#define SARISSA_CONTROL_CORE_CLUSTER_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message;
struct node;
struct object_id;

/* The shard owner of an id; whether a node owns a shard. */
struct node *ownership_shard(struct control *c, const struct object_id *id);
bool ownership_is_shard(const struct control *c, const struct node *n);

/* Whether this node has become the owner of the id, and some members have not announced all of
 * their objects yet (settle.c). */
bool ownership_settling(struct control *c, const struct object_id *id);
/* Whether that node, which is not live now, would own the id rather than this one. */
bool ownership_before(const struct control *c, const struct node *n, const struct object_id *id);
/* Whether this node has been the owner of the id in all views since the last settled one. */
bool ownership_constant(const struct control *c, const struct object_id *id);
/* The next shard owner from *cursor on; NULL: no more. */
struct node *ownership_next(struct control *c, uint32_t *cursor);
/* The owner and the next owner of an id, which both have its tombstones; NULL: there is none. */
void ownership_replicas(struct control *c, const struct object_id *id, struct node *owners[2]);
/* The next node after `than` in the order of owners of the id, other than this node; NULL: none. */
struct node *ownership_stand_in(struct control *c, const struct object_id *id,
				const struct node *than);
/* The node for the second copy of a small object: of the other live nodes that answer, the next
 * owner; NULL: there is none. */
struct node *ownership_backup(struct control *c, const struct object_id *id);
void ownership_redirect(struct control *c, struct node *n, uint64_t request);

#endif
