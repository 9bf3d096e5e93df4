/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services that every module may ask for: numbers drawn at random, generations by the clock,
 * pauses, the log. All of it comes from the configuration and from the time of the present turn.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_ENV_H
#define SARISSA_CONTROL_CORE_BASE_ENV_H

#include <stdint.h>
#include "core/control.h"

struct control;
struct text;

uint64_t env_random(struct control *c);
/* The generation of a new object. Later ones are greater, on all nodes as far as their clocks
 * agree. */
uint64_t env_generation(struct control *c);
/* The greatest generation that a correct clock may have made. */
uint64_t env_generation_max(const struct control *c);
/* Makes later generations of this node greater than that, unless that is greater than
 * env_generation_max. If the clock is behind that, how much greater is drawn: a control of this
 * node that began without its store would make the same generation again, of other bytes. */
void env_generation_after(struct control *c, uint64_t generation);
/* A pause that grows with the attempts, with some jitter. */
uint64_t env_backoff(struct control *c, uint32_t attempts);
void env_log(struct control *c, enum control_log_level level, const struct text *t);

#endif
