/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One object at a time, put at node 0 and got by all others, in whole nodes of virtual time
 * (full.h). A wrong byte or an unexpected answer fails the test.
 */
#ifndef SARISSA_TESTS_SIM_FULL_CAST_H
#define SARISSA_TESTS_SIM_FULL_CAST_H

#include "full.h"
#include "model/testkit.h"

enum { CAST_NODES_MAX = 16 };

struct cast_task {
	struct session_reply reply; /* the last, but to a WAIT */
	int32_t status;		    /* of the last */
	char text[256];
	uint32_t session, seq;
	bool answered, done;
	uint64_t done_ns;
};

struct cast {
	struct world w;
	struct full_group g;
	struct cast_task task[CAST_NODES_MAX];
	uint32_t nodes;
	uint64_t size;
	uint64_t patience_ns; /* of a request; 0: for ever */
	bool may_fail;	      /* a get may end with an error: the task's status and text */
	bool allreduce;	      /* all will get the sums */
};

/* Links of that rate to nodes with room for some objects of that size; all are attached. */
void cast_open(struct cast *c, uint32_t nodes, uint64_t size, uint64_t mbit, uint32_t shards);
/* With nodes of another configuration. */
void cast_open_as(struct cast *c, uint32_t nodes, uint64_t size, uint64_t mbit, uint32_t shards,
		  const struct control_config *config);
void cast_close(struct cast *c);
/* Its client connects to a restarted control. */
void cast_attach(struct cast *c, uint32_t node);
/* At that node; at node 0, and all know it. */
void cast_put_at(struct cast *c, uint32_t node, uint8_t id);
void cast_put(struct cast *c, uint8_t id);
/* A node asks for the sum of num of the count objects first, first + 1, ...; it may get it then. */
void cast_reduce(struct cast *c, uint32_t node, uint8_t target, uint8_t first, uint32_t count,
		 uint32_t num);
/* An object at each of the first count nodes: 1, 2, 3, ... */
void cast_put_sources(struct cast *c, uint32_t count);
/* Opens them with those. */
void cast_open_sources(struct cast *c, uint32_t nodes, uint32_t count, uint64_t size,
		       uint64_t mbit);
/* Until the node that has begun to get a sum has it, though the sum may begin again. */
void cast_sum_ends(struct cast *c, uint32_t node, uint8_t target);
void cast_kill(struct cast *c, uint32_t node);
/* One node asks; it has all of it, or was told why not, when its task is done. */
void cast_begin(struct cast *c, uint32_t node, uint8_t id);
bool cast_all_done(void *cast);
void cast_check(struct cast *c, uint32_t node, uint8_t id);
/* All but node 0 get it. Returns when the last one had it, in ns since all asked. */
uint64_t cast_get(struct cast *c, uint8_t id);
/* Deletes it, and unpins it everywhere. */
void cast_remove(struct cast *c, uint8_t id);
/* Bytes of chunks that the source has sent. */
uint64_t cast_sent(const struct cast *c);

#endif
