/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Synchronisation groups of libsarissa: members push contributions clock by clock, and pull their
 * sums when the policy of the group allows it.
 *
 *     sar_group_spec spec = {.op = SAR_SUM, .dtype = SAR_F32, .count = 1000, .members = 8,
 *                            .policy = "bsp"};
 *     sar_group_create(s, "sgd", &spec);                       (one process only)
 *     sar_group_join(s, "sgd", NULL, &m);
 *     sar_group_push(m, gradient, sizeof(gradient));
 *     sar_group_pull(m, SAR_FOREVER, &r);
 *     use(r.buffer.data);
 *     sar_release(s, &r.buffer);
 *     sar_group_leave(m);
 *
 * Units, threads, fork, restarts, errors: as in sarissa.h. A sar_member is for one thread at a
 * time. Several threads of a process may each be a member of one group. A member's clock counts its
 * pushes from 1. Rounds of a group are numbered from 1. Each has at most one result, which names
 * exactly the contributions in it. docs/user/groups.md explains policies, and what holds when
 * members, nodes or control processes die.
 */
#ifndef SARISSA_GROUP_H
#define SARISSA_GROUP_H

#include <sarissa/sarissa.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define SAR_GROUP_NAME_MAX   100  /* bytes, without the terminating zero; no '/' and no blanks */
#define SAR_COHORT_MAX	     31	  /* the same; letters, digits, '-', '_' and '.' */
#define SAR_POLICY_MAX	     255  /* bytes of its text, without the terminating zero */
#define SAR_GROUP_MEMBERS    1023 /* of one group */
#define SAR_STALENESS	     8	  /* buckets: staleness 0, 1, 2, 3, 4-7, 8-15, 16-31, more */
#define SAR_SWITCHES_MAX     4	  /* of one group */
#define SAR_POLICY_TABLE_MAX 1024 /* bytes of a policy's table, with the terminating zero */

enum {
	SAR_GROUP_TOTAL = 1, /* sar_group_spec.flags: each result includes the one before, as in a
				parameter server. Not with SAR_AVG */
};

typedef struct sar_group_spec {
	uint32_t op, dtype; /* enum sar_reduce_op, enum sar_dtype */
	uint64_t count;	    /* elements of each contribution and result */
	uint32_t members;   /* rounds begin when so many have joined; 0, 1: at the first */
	uint32_t flags;
	const char *policy; /* text, see sar_group_policy */
	/* IPv4 addresses of up to SAR_SWITCHES_MAX switches that make rounds (sarissa-switch(8)),
	 * with commas between them; NULL: none. The nodes make those that the switches do not. */
	const char *switches;
	uint64_t reserved[3];
} sar_group_spec;

typedef struct sar_member sar_member; /* one membership of this process */

typedef struct sar_group_result {
	sar_buffer buffer; /* count elements; data is NULL when there is no result yet */
	uint64_t round;	   /* 0: no result yet */
	uint64_t version;  /* of the policy in force when the pull ended */
	uint64_t clock;	   /* of the member; the policy may have moved it on */
	uint32_t attempt;
	uint32_t through; /* 1: a switch made it; 0: the nodes did */
	uint64_t reserved[4];
} sar_group_result;

/* One contribution in a result. */
typedef struct sar_contributor {
	uint64_t member;    /* sar_member_number of it */
	uint64_t clock;	    /* of the contribution */
	uint64_t staleness; /* how many clocks it was behind the newest when it was decided */
	uint32_t node;
	uint32_t reserved32;
	uint64_t reserved[4];
} sar_contributor;

typedef struct sar_member_info {
	uint64_t member, clock;
	uint64_t round;	     /* newest round that it has pulled */
	uint64_t waiting_ns; /* in all of its pulls */
	uint64_t counted;    /* contributions in results */
	uint64_t late;	     /* carried into a later round */
	uint64_t refused;    /* too late for the policy */
	uint32_t node;
	uint32_t waits; /* 1: in a pull now */
	char cohort[SAR_COHORT_MAX + 1];
	uint64_t reserved[8];
} sar_member_info;

/* Counts start at 0 when a new owner takes the group over. */
typedef struct sar_group_info {
	uint32_t op, dtype, flags;
	uint32_t members; /* rounds begin when so many have joined */
	uint64_t count;
	uint32_t live;	  /* members now */
	uint32_t owner;	  /* node that decides its rounds */
	uint64_t version; /* of the policy; 1 is that of the creation */
	uint64_t round;	  /* newest result; 0: none */
	uint64_t clock;	  /* largest one in a result */
	uint64_t rounds, counted, late, refused;
	uint64_t lost; /* contributions and members that died */
	uint64_t waiting_ns;
	uint64_t staleness[SAR_STALENESS];
	char policy[SAR_POLICY_MAX + 1];
	char table[SAR_POLICY_TABLE_MAX];
	uint64_t switched;		       /* of rounds: that a switch has made */
	uint64_t fallen;		       /* of the others: that a switch had begun */
	uint8_t switches[SAR_SWITCHES_MAX][4]; /* IPv4 addresses; 0.0.0.0: no more */
	uint64_t gone_first, gone_last;	       /* newest rounds whose results were lost; 0: none */
	uint64_t reserved[8];
} sar_group_info;

/*
 * Makes a group. It exists until sar_group_remove.
 *
 * Shapes: name has 1 to SAR_GROUP_NAME_MAX bytes.
 * Errors: SAR_E_EXISTS a group of that name exists. SAR_E_INVALID the policy is wrong (the error
 * text says where), K is larger than spec->members, the type, operation, count or a switch is
 * wrong, or the name has a '/' or a blank. SAR_E_NAME the name or the policy is too long.
 * SAR_E_FULL the owner has no room for another group. SAR_E_BUSY the owner has no room for the
 * group's object at the moment: try again. SAR_E_CANCELLED the group was removed while it was made.
 * SAR_E_TIMED_OUT no owner has answered: whether the group exists is not known, so try again, and
 * take SAR_E_EXISTS for it.
 */
int sar_group_create(sar *s, const char *name, const sar_group_spec *spec);

/*
 * Becomes a member at the group's clock, under the policy's row for cohort. NULL: the row for all.
 *
 * Ownership: *out is the caller's until sar_group_leave, which must come before sar_close.
 * Errors: SAR_E_NOT_FOUND no such group. SAR_E_INVALID the policy has no row for the cohort.
 * SAR_E_FULL.
 */
int sar_group_join(sar *s, const char *name, const char *cohort, sar_member **out);

/*
 * Ends the membership: its contributions count, and nobody waits for it any more. A member whose
 * process ends without this call is dead: the open round loses its contributions.
 *
 * Ownership: m is gone, whatever is returned. NULL does nothing.
 * Errors: SAR_E_IN_USE an operation of a queue has m, which stays.
 */
int sar_group_leave(sar_member *m);

uint64_t sar_member_number(const sar_member *m); /* as in sar_contributor */
uint64_t sar_member_clock(const sar_member *m);	 /* of its last push, or as the last pull said */

/*
 * Contributes for the next clock. Does not wait for other members.
 *
 * Shapes: bytes is count elements of the group's type.
 * Ownership: data stays the caller's and is not used after the call.
 * Errors: SAR_E_LATE the round has closed, and the policy refuses late contributions: nothing was
 * counted; keep it as a residual, pull, and go on. SAR_E_BUSY the member is too far ahead of the
 * slowest, or too many of its contributions wait: pull first. SAR_E_INVALID another size than the
 * group's. SAR_E_IN_USE an operation of a queue has m. SAR_E_ENDED this member was taken for
 * dead: leave, and join again. SAR_E_NOT_FOUND the group was removed. Those of sar_put.
 */
int sar_group_push(sar_member *m, const void *data, uint64_t bytes);

/*
 * Waits until the policy lets the member go on, and gets the newest result. That has the member's
 * last contribution, unless others must still close the round of it, and the member is under asp or
 * ssp, or the policy has changed since that round opened.
 * While a switch makes the round, the calling thread sends this member's contribution, and the call
 * may take longer than its timeout.
 *
 * Shapes: before the first push, a pull of a group without results returns at once, with round 0.
 * Ownership: out->buffer is the caller's until sar_release.
 * Errors: SAR_E_TIMED_OUT. SAR_E_LOST the round of its contribution ended without a result, or
 * rounds were lost with all nodes that had the results; the words name them: pull again.
 * SAR_E_INVALID somebody has put an object of another size under the name of the result.
 * SAR_E_IN_USE, SAR_E_ENDED, as for sar_group_push. SAR_E_NOT_FOUND. Those of sar_get.
 */
int sar_group_pull(sar_member *m, int64_t timeout_ns, sar_group_result *out);

/*
 * Writes up to room contributors of a result, and returns how many the result has.
 *
 * Errors: SAR_E_NOT_FOUND the result is deleted: all members have pulled a later one, or eight came
 * after.
 */
int sar_group_contributors(sar_member *m, const sar_group_result *result, sar_contributor *out,
			   unsigned room);

/*
 * Changes the policy while the group runs. *version, unless NULL, is its number. The open round
 * ends under the policy that opened it. A looser limit holds at once. A tighter one holds from the
 * first clock on that no member has pushed yet.
 *
 * A policy is a word with its argument, for all members ("bsp", "ssp 4") or per cohort ("fast: bsp,
 * slow: ssp 4"). 'sarissa policy --help' names the words and options; docs/user/groups.md says what
 * they mean.
 *
 * Errors: SAR_E_INVALID with the position of the wrong word; K larger than the number of members; a
 * cohort with members has no row. SAR_E_BUSY another change is under way, or has come first.
 * SAR_E_CANCELLED the group was removed meanwhile. SAR_E_NOT_FOUND.
 */
int sar_group_policy(sar *s, const char *name, const char *policy, uint64_t *version);

/* Writes the table that a policy compiles to. It needs no group. Errors: SAR_E_INVALID, as for a
 * policy. */
int sar_policy_explain(sar *s, const char *policy, char table[SAR_POLICY_TABLE_MAX]);

/*
 * Describes a group. fn, unless NULL, is called for each member. If it returns other than 0, the
 * call ends and returns that.
 *
 * Errors: SAR_E_NOT_FOUND.
 */
int sar_group_info_get(sar *s, const char *name, sar_group_info *out,
		       int (*fn)(const sar_member_info *member, void *arg), void *arg);

/* Ends a group and deletes its objects. Its members' calls return SAR_E_NOT_FOUND; one that is
 * under way may return SAR_E_ENDED. sar_group_leave frees a member as before. Errors:
 * SAR_E_NOT_FOUND. */
int sar_group_remove(sar *s, const char *name);

/*
 * The calls above as operations of a queue (sar_queue_open). Ends come as completions, with what
 * the call returns as result and SAR_OP_GROUP_... as op. A member is for one operation at a time:
 * another one is refused at once with SAR_E_IN_USE, and so are calls, until the completion was
 * polled. SAR_E_BUSY of a create, policy or push is the owner's answer, and comes as a completion.
 */

/* Submits a sar_group_create. spec is not used after the call. */
int sar_submit_group_create(sar_queue *q, const char *name, const sar_group_spec *spec,
			    uint64_t user_data);

/* Submits a sar_group_remove. */
int sar_submit_group_remove(sar_queue *q, const char *name, uint64_t user_data);

/* Submits a sar_group_policy. The completion's value is the version. */
int sar_submit_group_policy(sar_queue *q, const char *name, const char *policy, uint64_t user_data);

/*
 * Submits a sar_group_info_get.
 *
 * Shapes: *out and up to room members are set when the completion comes. Its value says how many;
 * out->live how many there are.
 */
int sar_submit_group_info(sar_queue *q, const char *name, sar_group_info *out,
			  sar_member_info *members, unsigned room, uint64_t user_data);

/*
 * Submits a sar_group_join. *out is set when the completion comes.
 *
 * Cancelled, it leaves again before its completion comes. A join that is under way at
 * sar_queue_close ends at the latest with sar_close.
 */
int sar_submit_group_join(sar_queue *q, const char *name, const char *cohort, sar_member **out,
			  uint64_t user_data);

/* Submits a sar_group_leave: m is gone, unless this returns an error. It cannot be cancelled. */
int sar_submit_group_leave(sar_queue *q, sar_member *m, uint64_t user_data);

/*
 * Submits a sar_group_push. The completion's value is the clock of the contribution.
 *
 * A push that was cancelled may count. The next push of the member finds out.
 */
int sar_submit_group_push(sar_queue *q, sar_member *m, const void *data, uint64_t bytes,
			  uint64_t user_data);

/*
 * Submits a sar_group_pull. *out is set when the completion comes, but for out->buffer: the result
 * is the completion's buffer, and its value the round.
 *
 * While a switch makes the round, a thread of the library sends this member's contribution, and the
 * completion may come later than the timeout. The thread ends before the completion comes. A pull
 * that is cancelled, or whose queue is closed, gives its part up within a second; sar_queue_close
 * waits for that. The nodes make the round if the switch cannot without it.
 */
int sar_submit_group_pull(sar_queue *q, sar_member *m, int64_t timeout_ns, sar_group_result *out,
			  uint64_t user_data);

/* Submits a sar_group_contributors. result is not used after the call. Errors: SAR_E_INVALID the
 * result is of no round. */
int sar_submit_group_contributors(sar_queue *q, sar_member *m, const sar_group_result *result,
				  sar_contributor *out, unsigned room, uint64_t user_data);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
