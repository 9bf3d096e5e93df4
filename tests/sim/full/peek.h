/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test sees of a control core, whose inner names clash with ours; NULL: killed. */
#ifndef SARISSA_TESTS_SIM_FULL_PEEK_H
#define SARISSA_TESTS_SIM_FULL_PEEK_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct network; /* control's, for its configuration; not the simulator's */
struct object_id;

/* The newest generation of the id that the directory here knows to be deleted, or 0. */
uint64_t peek_tombstone(const struct control *core, const struct object_id *id);
/* Whether its part of the directory knows of a copy at that node. */
bool peek_noted(const struct control *core, const struct object_id *id, uint32_t node);
/* How many nodes are alive in its eyes and have said so, itself included, or 0. */
uint32_t peek_reached(const struct control *core);

/* Whether it takes that node for dead, or has heard its goodbye. */
bool peek_gone(const struct control *core, uint32_t node);
/* Whether that node's HELLO has come on a present connection. */
bool peek_reaches(const struct control *core, uint32_t node);
/* When it took another node for dead last; 0: never. */
uint64_t peek_death_ns(const struct control *core);

/* Bytes per second that it reckons with where that node takes part in a sum. */
uint64_t peek_rate(const struct control *core, uint32_t node);

/* Of its first fetch. Chunks in all, and those that are not there; 0: it fetches nothing. */
uint32_t peek_chunks(struct control *core);
uint32_t peek_missing(struct control *core);
/* The number of the node that feeds it; UINT32_MAX: none does, or several do. */
uint32_t peek_feeder(struct control *core);

/* The node that coordinates the first reduce that it follows; UINT32_MAX: it follows none. */
uint32_t peek_coordinator(struct control *core);

/* The planner of a reduce that it coordinates and that runs; NULL: there is none. */
const char *peek_planner(const struct control *core);

/* So many racks of so many nodes, with narrow links between them; valid until the next call. */
const struct network *peek_racks(uint32_t members, uint32_t racks);
/* BCube with a port for each level; valid until the next call. */
const struct network *peek_cube(uint32_t members, uint32_t levels, uint64_t mbit);

/* While it has no dataplane: as if all from the middle chunk on had come, whose bytes the caller
 * has written. Returns that chunk. */
uint32_t peek_give_half(struct control *core);

#endif
