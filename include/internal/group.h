/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Synchronisation groups: what a member asks of the owner of its group, and the answer. A client
 * sends a group_request behind its session_request (SESSION_GROUP); its control passes it on to the
 * owner, which is the shard owner of the group's id. Fixed widths, host byte order on the socket.
 *
 * Objects of a group, by name:  .group/NAME            what was created (immutable)
 *                               .group/NAME/p/VERSION  a policy
 *                               .group/NAME/C/MEMBER   contribution of a member for clock C
 *                               .group/NAME/d/ROUND    decision: who is in the round
 *                               .group/NAME/r/ROUND    its result
 * ROUND is a number, with .ATTEMPT behind it when a source of the first attempt was lost. A result
 * that a switch has made has GROUP_BY_SWITCH in its attempt.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_GROUP_H
#define SARISSA_INCLUDE_INTERNAL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_PREFIX ".group/"

/* Of clocks, rounds and versions that a group is told of: anybody may put objects under its names,
 * and it counts on from what it has read. What its members ask for later has twice as much room. */
#define GROUP_NUMBER_MAX (UINT64_MAX / 4)

enum {
	GROUP_NAME_MAX = 100,	/* bytes of NAME, without the terminating zero; no '/' in it */
	GROUP_COHORT_MAX = 31,	/* bytes, without the terminating zero */
	GROUP_POLICY_MAX = 255, /* the same */
	GROUP_RING = 64,	/* clock values that a cohort's counters hold at a time */
	GROUP_SLACK_MAX = GROUP_RING - 2,
	GROUP_COHORTS_MAX = 8,
	GROUP_MEMBERS_MAX =
		1023,		/* of one group: with the last total, a reduce has 1,024 sources */
	GROUP_PENDING_MAX = 64, /* contributions of a member that are in no result yet */
	GROUP_HISTOGRAM = 8,	/* staleness 0, 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, more */
	GROUP_PAGE = 16,	/* members in one answer */
	GROUP_TABLE_BYTES = 1024,  /* a policy as a table for people */
	GROUP_SWITCHES_MAX = 4,	   /* of one group */
	GROUP_SWITCH_MEMBERS = 64, /* of a round that a switch makes: AGGREGATE_MEMBERS_MAX */
	GROUP_BY_SWITCH = 256,	   /* in the attempt of a result, above all attempts */
};

enum group_step {
	GROUP_CREATE = 1, /* op, dtype, count, flags, members, policy, switches */
	GROUP_OPEN,	  /* -> what was created, and how it stands */
	GROUP_JOIN,	  /* member, cohort; GROUP_REJOIN: clock, pending, seen -> clock */
	GROUP_LEAVE,	  /* member; GROUP_LOST: its process has died */
	GROUP_PUSH,	  /* member, clock, count, dtype: the contribution is put */
	GROUP_PULL,   /* member, clock -> round, attempt, clock, as soon as the policy allows; or a
			 job, if the request is SWITCHABLE: the next pull tells how it ended */
	GROUP_POLICY, /* policy -> version */
	GROUP_INFO,   /* cursor -> as OPEN, and a page of members */
	GROUP_REMOVE,
	GROUP_EXPLAIN, /* policy -> table; no group */
	GROUP_STEPS,
};

enum group_flag {
	GROUP_TOTAL = 1,       /* CREATE: the result of a round adds the one before */
	GROUP_REJOIN = 2,      /* JOIN: it is a member already, of an earlier owner */
	GROUP_LOST = 4,	       /* LEAVE */
	GROUP_NOW = 8,	       /* PULL: the newest result, without waiting */
	GROUP_SWITCHABLE = 16, /* PULL: the member can take part in a round at a switch */
	GROUP_SWITCHED = 32,   /* PULL: the job is done: the member has the result of its round */
	GROUP_UNSWITCHED = 64, /* PULL: the job has failed, for job_error */
	GROUP_WITHDRAWN = 128, /* PULL: nobody waits for the one before, of request `job` */
	GROUP_FLAGS = 255,
};

struct group_request {
	uint32_t step; /* enum group_step */
	uint32_t flags;
	uint32_t op, dtype; /* enum reduce_op, enum reduce_dtype */
	uint64_t count;	    /* elements */
	uint64_t member;    /* a number that nobody else draws; 0: none */
	uint64_t clock;	    /* JOIN, PULL: the last one pushed; PUSH: of the contribution */
	uint64_t pending;   /* JOIN: bit i: that of clock - i is in no result that was pulled */
	uint64_t seen;	    /* JOIN, PULL: the newest round pulled; 0: none */
	uint32_t seen_attempt;
	uint32_t members;   /* CREATE: rounds begin when so many have joined */
	uint32_t cursor;    /* INFO: of the page; 0: the first */
	uint32_t job_error; /* PULL, UNSWITCHED: an errno; 0: the member has given it up */
	uint64_t joined;    /* JOIN again: as the answer to the first one said */
	uint64_t job;	    /* PULL, SWITCHED, UNSWITCHED: round of the job; WITHDRAWN: see there */
	uint32_t job_attempt;
	uint32_t switches;			/* CREATE: how many */
	uint32_t switch_ip[GROUP_SWITCHES_MAX]; /* IPv4, the first byte in the low bits */
	char name[GROUP_NAME_MAX + 4];
	char cohort[GROUP_COHORT_MAX + 1];
	char policy[GROUP_POLICY_MAX + 1];
};

struct group_member_info {
	uint64_t member;
	uint64_t clock;
	uint64_t round;	     /* the newest that it has pulled */
	uint64_t waiting_ns; /* in all of its pulls */
	uint64_t counted;    /* contributions in decided rounds */
	uint64_t late, refused;
	uint32_t node;
	uint32_t waits; /* 1: in a pull now */
	char cohort[GROUP_COHORT_MAX + 1];
};

/* A member's part in a round that a switch makes (docs/user/aggregation.md). */
struct group_job {
	uint64_t round; /* 0: no job */
	uint64_t clock; /* of the member's contribution */
	uint64_t key;	/* that the members share */
	uint64_t base;	/* round whose result member 0 adds; 0: none */
	uint32_t attempt, base_attempt;
	uint32_t version; /* of the members at the switch; rounds there have it as number, too */
	uint32_t group;	  /* number at the switch */
	uint32_t ip;	  /* of the switch, as switch_ip */
	uint32_t member, members;
	uint32_t reserved;
};

struct group_answer {
	uint32_t step;
	uint32_t flags; /* GROUP_TOTAL */
	uint32_t op, dtype;
	uint64_t count;
	uint64_t clock;	 /* JOIN, PUSH, PULL: of the member */
	uint64_t done;	 /* the same: all its contributions up to this clock have had their round */
	uint64_t joined; /* JOIN: the round that was open then; PUSH: that of the contribution, or
			    a later one if the owner dies */
	uint64_t round;	 /* of the newest result; 0: none */
	uint64_t version;			       /* of the policy in force */
	uint64_t rounds, counted, late, refused, lost; /* since this owner has the group */
	uint64_t gone_first, gone_last; /* rounds that were lost after their end; 0: none */
	uint64_t top;			/* largest clock in a decided round */
	uint64_t waiting_ns;
	uint64_t histogram[GROUP_HISTOGRAM]; /* of the staleness of contributions */
	uint32_t attempt;		     /* of `round` */
	uint32_t members;		     /* with which rounds begin */
	uint32_t live;
	uint32_t owner;	   /* node */
	uint32_t cursor;   /* INFO: of the next page; 0: this was the last */
	uint32_t page;	   /* INFO: entries of member */
	uint64_t switched; /* of rounds: that a switch made */
	uint64_t fallen;   /* of the others: that a switch had begun */
	uint32_t switches, reserved;
	uint32_t switch_ip[GROUP_SWITCHES_MAX];
	struct group_job job; /* PULL */
	char policy[GROUP_POLICY_MAX + 1];
	char table[GROUP_TABLE_BYTES]; /* EXPLAIN, POLICY, INFO */
	struct group_member_info member[GROUP_PAGE];
};

/* The fault of a request's numbers, or NULL. Its texts are for others to check. */
static inline const char *group_request_wrong(const struct group_request *r)
{
	bool member = r->step >= GROUP_JOIN && r->step <= GROUP_PULL;
	uint64_t most = 2 * GROUP_NUMBER_MAX;

	if (r->step == 0 || r->step >= GROUP_STEPS || r->flags & ~(uint32_t)GROUP_FLAGS)
		return "unknown request of a group: use a library and a node of one version";
	if (member && r->member == 0)
		return "the number of a member is not 0";
	if (r->clock > most || r->seen > most || r->joined > most ||
	    r->seen_attempt >= 2 * GROUP_BY_SWITCH)
		return "a clock or round is out of range";
	if (r->switches > GROUP_SWITCHES_MAX)
		return "a group has at most 4 switches: name fewer";
	for (uint32_t i = 0; i < r->switches; i++)
		if (r->switch_ip[i] == 0)
			return "0.0.0.0 is the address of no switch: name its own";
	return NULL;
}

#endif
