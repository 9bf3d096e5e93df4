/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What calls of groups ask, and what the answers mean: shared by the calls that wait (group.c) and
 * by operations of queues (queue/group.c). Nothing here waits or sends.
 */
#ifndef SARISSA_CLIENT_API_GROUP_H
#define SARISSA_CLIENT_API_GROUP_H

#include "switch/group_switch.h"
#include "link/handle.h"
#include "internal/group.h"
#include "sarissa/group.h"

enum { GROUP_TRIES = 5 }; /* of a put; of a pull whose result was deleted before it could be got */

#define GROUP_DECISION_NS 1000000000 /* for a decision that is there to be found */
#define GROUP_REPORT_NS	  1000000000 /* for the report of a round at a switch */
#define GROUP_GET_NS	  2000000000 /* for a result that is there, and a second for each MB */

struct sar_member {
	sar *s;
	struct group_request join; /* that announces it again */
	uint64_t count, item_bytes;
	uint32_t op, dtype;
	struct group_switch at_switch;
	uint32_t start, live; /* of the group, when the owner answered last */
	uint64_t rounds;      /* newest result then */
	bool unsure;	      /* the owner's answer about its clock is missing */
	_Atomic bool busy;    /* an operation of a queue has it */
};

/* A request; 0 or -errno with error_set's words. */
int group_ask(struct group_request *r, uint32_t step, const char *name);
int group_ask_create(struct group_request *r, const char *name, const sar_group_spec *spec);
int group_ask_policy(struct group_request *r, const char *name, const char *policy);
int group_ask_explain(struct group_request *r, const char *policy);
/* Of a member that does not exist yet, with a number of its own. */
int group_ask_join(struct group_request *r, const char *name, const char *cohort);
struct group_request group_of_member(const sar_member *m, uint32_t step);
/* The push of the next clock. */
struct group_request group_of_push(const sar_member *m);

/* Takes the answer out of a result. */
void group_answered(const struct mux_result *result, struct group_answer *out);
/* The member that an answer to a JOIN makes; NULL: out of memory. */
sar_member *group_member_new(sar *s, const struct group_request *join,
			     const struct group_answer *a);
/* Its clock, and which of its contributions have had their round. */
void group_learn(sar_member *m, const struct group_answer *a);
/* Its push was taken. */
void group_pushed(sar_member *m, uint64_t clock);
/* A pull has ended: out without its buffer, and the id of the result, if there is one. */
void group_pulled(sar_member *m, const struct group_answer *a, sar_group_result *out, sar_id *id);
void group_info(const struct group_answer *a, sar_group_info *out);
void group_member_info(const struct group_member_info *m, sar_member_info *out);

/* -EBUSY: an operation of a queue has the member. */
int group_member_free(const sar_member *m);
/* -EINVAL: a contribution has another size. */
int group_push_check(const sar_member *m, uint64_t bytes);
/* Whether nobody knows if the owner has heard a request that ended so. */
bool group_unsure(int error);
/* The name of its contribution of a clock; of a decision ('d') or result ('r'). */
sar_id group_contribution(const sar_member *m, uint64_t clock, char name[SAR_NAME_MAX + 1]);
sar_id group_round(const sar_member *m, char kind, uint64_t round, uint32_t attempt,
		   char name[SAR_NAME_MAX + 1]);
/* How long to get a result: it may be lost, and the owner then names another one. */
int64_t group_get_ns(const sar_member *m);
/* Whether a pull asks again after a get that ended so: there is a newer result, or it is lost. */
bool group_pull_retries(int error);
/* Whether an object that was got as a result can be one: anybody may have put it. */
int group_result_check(const sar_member *m, const sar_buffer *result);
/* A pull has timed out: whom it has waited for, if members have not joined yet. Returns error. */
int group_pull_late(const sar_member *m, int error);
/* The contributors that a decision names: how many; -ENOMEM. */
int group_contributors(const sar_buffer *decision, sar_contributor *out, unsigned room);
int group_decision_gone(const sar_member *m, const sar_group_result *result);

#endif
