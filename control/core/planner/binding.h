/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding: which slot a contribution takes. The coordinator offers contributions in the order of
 * arrival, first those that were there when it planned to the slots booked for their nodes, then
 * all others, and stops at the first one that finds no slot. Pure; the state is closure.h's.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_BINDING_H
#define SARISSA_CONTROL_CORE_PLANNER_BINDING_H

#include "closure.h"

/* The first open slot that is booked for that node; GRAPH_NONE: there is none. */
uint32_t binding_booked(const struct graph *g, const struct graph_run *run, uint32_t node);
/* The open slot that prefers that node and is not another's, else the first open slot; GRAPH_NONE:
 * all are taken. */
uint32_t binding_slot(const struct graph *g, const struct graph_run *run, uint32_t node);
/* A contribution of that node takes an open slot. Returns whether the slot has all that it wants:
 * then its vertices can be built. */
bool binding_take(const struct graph *g, struct graph_run *run, uint32_t slot, uint32_t node);

#endif
