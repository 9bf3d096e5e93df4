/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second copy of a small object. The directory has its value, so it is on two nodes, unless the
 * node that put it is the shard owner or has died. Then the owner asks the next owner to hold a
 * pinned replica (KEEP), which is announced and deleted like any other copy. A put waits for it, at
 * most BACKUP_ANSWER_NS; after that, and after a death, copies are made in the background. Called
 * by the directory (directory_out) and by control.c.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_BACKUP_H
#define SARISSA_CONTROL_CORE_DIRECTORY_BACKUP_H

#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

enum { BACKUPS = 256 }; /* KEEPs under way at a time */

struct arena;
struct control;
struct entry;
struct node;
struct object;
struct wait;

struct backup {		  /* a KEEP that is under way */
	uint64_t request; /* the HAVE that is answered afterwards; 0: none */
	uint32_t node;	  /* whose */
	struct message_reply answer;
};

struct backups {
	struct pool pool;
	uint32_t sweep; /* next entry to look at; UINT32_MAX: none */
	struct timer timer;
};

void backup_carve(struct backups *b, struct arena *a);
void backup_init(struct control *c);
/* directory_out.keep, directory_out.alone */
bool backup_keep(void *arg, struct entry *e, uint32_t node, const struct message *answer);
void backup_later(void *arg);
/* directory_out.crowded */
void backup_crowded(void *arg);
/* Asks for some of the copies that are missing. */
void backup_pump(struct control *c);
/* Sets the value of a KEEP. False: the object is no more. */
bool backup_fill(struct control *c, struct message_have *have);

#endif
