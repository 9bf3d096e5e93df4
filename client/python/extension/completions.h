/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that all operations of a Queue share: completions.c, and completions_group.c for those of
 * groups.
 */
#ifndef SARISSA_CLIENT_PYTHON_EXTENSION_COMPLETIONS_H
#define SARISSA_CLIENT_PYTHON_EXTENSION_COMPLETIONS_H

#include "python.h"
#include "queue/run_open.h"
#include "sarissa/group.h"

struct queue {
	PyObject object;
	struct handle *handle;
	sar_queue *q;
	struct run *run; /* q is its; NULL: q is open until the Queue goes */
	PyObject *kept;	 /* ticket: capsule of struct kept */
};

/* Python objects that an operation uses until it ends. */
struct kept {
	struct python_name name;
	struct python_name label;
	struct python_buffer data; /* of a put */
	PyObject *view;		   /* of a wait; of a group: its member */
	sar_id *ids;
	uint32_t *nodes;
	sar_buffer *got; /* of a gather: count of them */
	unsigned count;
	sar_info info;
	struct kept_group *group; /* of an operation of a group */
};

struct kept_group {
	sar_member *joined;
	sar_group_result pulled;
	sar_group_info info;
	sar_member_info member[SAR_GROUP_MEMBERS];
	sar_contributor contributor[SAR_SOURCES_MAX];
};

/* NULL with an exception. name, or NULL. */
struct kept *kept_new(struct queue *self, PyObject *name);
/* Before an operation is submitted: from here on the queue has it. -1 with an exception. */
int queue_keep(struct queue *self, unsigned long long ticket, struct kept *kept);
/* After it: None, or an exception when nothing is under way. */
PyObject *queue_submitted(struct queue *self, unsigned long long ticket, const struct kept *kept,
			  int r);

/* completions_group.c */
PyObject *queue_group_create(PyObject *self, PyObject *args);
PyObject *queue_group_remove(PyObject *self, PyObject *args);
PyObject *queue_group_policy(PyObject *self, PyObject *args);
PyObject *queue_group_info(PyObject *self, PyObject *args);
PyObject *queue_group_join(PyObject *self, PyObject *args);
PyObject *queue_group_leave(PyObject *self, PyObject *args);
PyObject *queue_group_push(PyObject *self, PyObject *args);
PyObject *queue_group_pull(PyObject *self, PyObject *args);
PyObject *queue_group_contributors(PyObject *self, PyObject *args);
/* Returns the result of such an operation. */
PyObject *completions_of_group(struct handle *handle, sar_completion *c, struct kept *kept);

/* groups.c */
PyObject *groups_made(struct handle *handle, sar_member *m);
/* NULL with an exception: it has left. */
sar_member *groups_member(PyObject *member);
/* It has left: the member is not its any more. */
void groups_left(PyObject *member);
PyObject *groups_described(const sar_group_info *info, const sar_member_info *member,
			   size_t members);
PyObject *groups_pulled(struct handle *handle, const sar_group_result *result, sar_buffer *buffer);
PyObject *groups_contributors(const sar_contributor *who, int count);

#endif
