/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules between the fields of a message. Called by codec.c, through the tables of rows.c. */
#ifndef SARISSA_CONTROL_RPC_CHECK_H
#define SARISSA_CONTROL_RPC_CHECK_H

#include "rows.h"

/* m has the fields that rows describe, each within its bounds. false: not valid. */
bool check_have(const void *wire, struct rows_arena *a, struct message *m);
bool check_keep(const void *wire, struct rows_arena *a, struct message *m);
bool check_get(const void *wire, struct rows_arena *a, struct message *m);
bool check_got(const void *wire, struct rows_arena *a, struct message *m);
bool check_object(const void *wire, struct rows_arena *a, struct message *m);
bool check_range(const void *wire, struct rows_arena *a, struct message *m);
bool check_stream(const void *wire, struct rows_arena *a, struct message *m);
bool check_watch(const void *wire, struct rows_arena *a, struct message *m);
bool check_objects(const void *wire, struct rows_arena *a, struct message *m);
bool check_node(const void *wire, struct rows_arena *a, struct message *m);
bool check_reduced(const void *wire, struct rows_arena *a, struct message *m);
bool check_used(const void *wire, struct rows_arena *a, struct message *m);
bool check_result(const void *wire, struct rows_arena *a, struct message *m);
bool check_recall(const void *wire, struct rows_arena *a, struct message *m);
bool check_combine(const void *wire, struct rows_arena *a, struct message *m);
bool check_combined(const void *wire, struct rows_arena *a, struct message *m);
bool check_release(const void *wire, struct rows_arena *a, struct message *m);
bool check_pull_reply(const void *wire, struct rows_arena *a, struct message *m);
bool check_push(const void *wire, struct rows_arena *a, struct message *m);
bool check_group(const void *wire, struct rows_arena *a, struct message *m);
bool check_grouped(const void *wire, struct rows_arena *a, struct message *m);

#endif
