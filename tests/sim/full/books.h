/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The books of a control core: what it counts in two places must agree, what belongs together must
 * point at each other, and nothing may be in two states. For tests only; slow.
 */
#ifndef SARISSA_TESTS_SIM_FULL_BOOKS_H
#define SARISSA_TESTS_SIM_FULL_BOOKS_H

struct control;

/* Between any two turns; the first thing that does not hold, or NULL. core NULL: killed. */
const char *books_check(struct control *core);
/* When all is deleted, nobody asks for anything and all pauses are over: what is still there. */
const char *books_check_idle(struct control *core);

#endif
