/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated applications that reduce: sources are put, some late, some never; somebody asks for
 * their sum; others get it before, while and after it is made; sources and targets are deleted and
 * put again. Elements are u32, so each result must be, in every byte, the sum of exactly num of the
 * sources as they once were, or with a deadline of min or more (reducers_sum.c).
 */
#ifndef SARISSA_TESTS_SIM_FULL_REDUCERS_H
#define SARISSA_TESTS_SIM_FULL_REDUCERS_H

#include "full.h"

/* In a healthy cluster a reduce has ended after so long. */
#define REDUCERS_FINISH_NS (15 * WORLD_S)
/* After the start the members have met. */
#define REDUCERS_MET_NS WORLD_S

enum {
	REDUCERS_JOBS = 96,    /* of one run */
	REDUCERS_ACTIVE = 4,   /* at a time */
	REDUCERS_SOURCES = 8,  /* of one job */
	REDUCERS_VERSIONS = 8, /* puts of one source */
	REDUCERS_RESULTS = 24, /* generations of one target */
	REDUCERS_TASKS = 512,
	REDUCERS_EVENTS = 48, /* of one job */
	REDUCERS_TARGET = 255,
	REDUCERS_WIDE_SOURCES = 3,
	REDUCERS_WIDE_MIN = 15 << 20, /* bytes: two stripes from 16 MiB on */
	REDUCERS_WIDE_MAX = 20 << 20,
};

struct reducer_version {
	uint64_t generation;
	uint32_t node;
	bool sealed;
};

struct reducer_source {
	struct reducer_version version[REDUCERS_VERSIONS];
	uint32_t versions;
	uint32_t node; /* that puts it */
};

/* What was seen of one generation of the target. */
struct reducer_result {
	uint64_t generation, seen; /* bytes */
	uint8_t *bytes;
	bool judged; /* complete, and a sum */
};

enum reducer_work {
	REDUCER_PUT,
	REDUCER_REDUCE,
	REDUCER_ASK,
	REDUCER_GET,
	REDUCER_DELETE,
};

struct reducer_event { /* something that an application will do */
	uint64_t at_ns;
	uint8_t work;
	uint8_t what; /* source or REDUCERS_TARGET */
	uint32_t node;
};

struct reducer_job {
	uint32_t number, count, num, size, caller, flags;
	uint32_t min;	     /* at the deadline so many suffice, num is count; 0: there is none */
	int64_t deadline_ns; /* of each request */
	uint64_t begun_ns, end_ns; /* nothing new after that */
	int64_t timeout_ns;
	struct reducer_source source[REDUCERS_SOURCES];
	struct reducer_result result[REDUCERS_RESULTS];
	uint32_t results;
	struct reducer_event event[REDUCERS_EVENTS];
	uint32_t events;
	uint32_t asked;	   /* REDUCEs */
	uint32_t accepted; /* of them */
	bool deleted;	   /* the target, at some time */
	bool ended;	   /* somebody was told how */
	bool caller_died;  /* the caller's control died meanwhile */
	bool parted;	   /* the caller lived and was taken for dead: as two sides, see splits */
	bool active;
	int32_t status;
	uint32_t used; /* bit per source */
};

struct reducer_task {
	struct reducer_job *job; /* NULL: free */
	uint32_t node, seq, life;
	uint8_t work, what, step;
	bool final, partial;
	uint64_t begun_ns, at_ns, limit_ns;
	uint64_t generation, offset, size, written;
	uint32_t slot, pin, tries;
	uint32_t used;
};

struct reducers {
	struct full_group *g;
	struct prng *draw;
	struct reducer_job job[REDUCERS_JOBS];
	uint32_t jobs;
	struct reducer_task task[REDUCERS_TASKS];
	uint32_t session[16], life[16], seq[16]; /* of each node */
	bool open[16];
	bool quiet, losses; /* no new work; stores have been lost */
	bool wide;	    /* large objects, over several workers */
	bool exchanged;	    /* only sums that are exchanged as values, where all goes well */
	bool deadlines;	    /* all have one */
	bool calm;	    /* nothing is ever wrong: packets arrive, processes live */
	bool splits;	    /* two sides may each make a result, of which the newer stays */
	uint64_t puts, gets, bytes, reduced, failures, restarts;
	uint64_t errors[128]; /* by errno, of reduces */
};

/* Whether a result of the job may hold so many sources. */
static inline bool reducers_enough(const struct reducer_job *j, uint32_t sources)
{
	return sources <= j->num && sources >= (j->min ? j->min : j->num);
}

void reducers_open(struct reducers *c, struct full_group *g, struct prng *draw, bool wide);
void reducers_close(struct reducers *c);
/* Everybody does what is due. */
void reducers_step(struct reducers *c);
void reducers_store_lost(struct reducers *c, uint32_t node);
/* Nobody is in the middle of something. */
bool reducers_idle(const struct reducers *c);
/* In a healthy cluster: puts what is missing, and asks how each reduce has ended. */
void reducers_finish(struct reducers *c);
/* Gets all results that must exist at all nodes. */
void reducers_read_all(struct reducers *c);
/* Deletes everything. */
void reducers_delete_all(struct reducers *c);
void reducers_leave(struct reducers *c);
void reducers_print(const struct reducers *c);

/* reducers.c, for reducers_job.c: a request that will be made at once, and what follows it */
struct reducer_task *reducers_task(struct reducers *c, struct reducer_job *j, uint32_t node,
				   enum reducer_work work, uint32_t what);
/* reducers_job.c: begins and ends jobs. */
void reducers_jobs(struct reducers *c);

/* reducers_sum.c */
uint64_t reducers_seed(const struct reducer_job *j, uint32_t source, uint64_t generation);
/* Some bytes of a generation of the target were seen. used: bit per source, 0: not known. */
void reducers_saw(struct reducers *c, struct reducer_job *j, uint32_t node, uint64_t generation,
		  const uint8_t *bytes, uint64_t upto, uint32_t used);

#endif
