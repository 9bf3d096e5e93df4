/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spills objects to files when the store is full, and restores them when their bytes are asked for.
 * Only pinned replicas: other copies are evicted. A spilled object keeps its slot, without bytes,
 * and its directory entry; a request for its bytes is answered "come again". The shell writes and
 * reads the files (control_ops), and calls control_spilled and control_restored.
 *
 *   SEALED   --no room, nobody has it pinned or is fed by it-->  SEALED, being written
 *   written  --still not used-->                                 SPILLED
 *   written  --used meanwhile, or not written-->                 SEALED
 *   SPILLED  --asked for, and there is room-->                   SPILLED, being read
 *   read     --whole-->                                          SEALED; the file goes
 *   read     --damaged, or gone-->                               lost: waits end with -ENODATA
 */
#ifndef SARISSA_CONTROL_CORE_STORE_SPILL_H
#define SARISSA_CONTROL_CORE_STORE_SPILL_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/list.h"

enum { SPILL_WRITES_MAX = 4, SPILL_READS_MAX = 4 };

struct control;
struct object;

struct spills {
	struct list kept; /* struct object.link: pinned replicas, the one least lately used first */
	struct list wanted;	/* struct object.restore: objects to read when there is room */
	uint64_t files_bytes;	/* spilled, and being written */
	uint64_t leaving_bytes; /* of the store, being written */
	uint32_t writes, reads;
	uint32_t objects; /* spilled */
	uint64_t mute_ns; /* no write before this time: the last one failed */
};

void spill_init(struct control *c);
/* Begins to spill until there will be room for so many bytes, of which evictable ones come from
 * copies that may be evicted. False: there will not be. */
bool spill_make_room(struct control *c, uint64_t bytes, uint64_t evictable);
/* Whether objects are being spilled. */
bool spill_leaving(const struct control *c);
/* The bytes of a SPILLED object are needed: reads it when there is room; if there can be none,
 * local waits for it end with -ENOSPC. */
void spill_restore(struct control *c, uint32_t slot);
/* There may be room: reads more of the wanted objects. */
void spill_pump(struct control *c);
/* The results of a write and of a read, as control_spilled and control_restored report them. */
void spill_wrote(struct control *c, uint32_t slot, int error);
void spill_has_read(struct control *c, uint32_t slot, int error);
/* The object, which is SPILLED, is being killed. */
void spill_killed(struct control *c, uint32_t slot);
/* An earlier control process has spilled the object of the slot: looks for its file. If that is
 * damaged or gone, the object is lost (spill_lost) when its owner knows that it was here. */
void spill_find(struct control *c, uint32_t slot);
/* The file of the object is damaged or gone: the object is lost, and its owner hears so. */
void spill_lost(struct control *c, uint32_t slot);

#endif
