/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test sees of the first fetch of a control core, whose inner names clash with ours. */
#ifndef SARISSA_TESTS_SIM_PEEK_H
#define SARISSA_TESTS_SIM_PEEK_H

#include <stdint.h>

struct control;

/* Chunks in all, and those that are not there; 0: it fetches nothing. */
uint32_t peek_chunks(struct control *core);
uint32_t peek_missing(struct control *core);
/* The number of the node that feeds it; UINT32_MAX: none does, or several do. */
uint32_t peek_feeder(struct control *core);

/* The node that coordinates the first reduce that it follows; UINT32_MAX: it follows none. */
uint32_t peek_coordinator(struct control *core);

/* While it has no dataplane: as if all from the middle chunk on had come, whose bytes the caller
 * has written. Returns that chunk. */
uint32_t peek_give_half(struct control *core);

#endif
