/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a Queue about groups: sarissa.aio's. Each keeps its member until it ends. */
#include "completions.h"

#include <stdlib.h>

/* Kept for an operation that is about to be submitted; NULL with an exception. */
static struct kept *group_keep(struct queue *self, unsigned long long ticket, PyObject *member)
{
	if (member && !groups_member(member))
		return NULL;
	struct kept *kept = kept_new(self, NULL);
	if (!kept)
		return NULL;
	kept->group = calloc(1, sizeof(*kept->group));
	Py_XINCREF(member);
	kept->view = member;
	if (queue_keep(self, ticket, kept) < 0)
		return NULL;
	if (!kept->group) {
		PyErr_NoMemory();
		return NULL;
	}
	return kept;
}

/* (ticket, name, op, dtype, count, members, flags, policy, switches or None) */
PyObject *queue_group_create(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket, count;
	sar_group_spec spec = {0};
	const char *name;
	if (!PyArg_ParseTuple(args, "KsIIKIIsz", &ticket, &name, &spec.op, &spec.dtype, &count,
			      &spec.members, &spec.flags, &spec.policy, &spec.switches))
		return NULL;
	spec.count = count;
	struct kept *kept = group_keep(self, ticket, NULL);
	return !kept ? NULL
		     : queue_submitted(self, ticket, kept,
				       sar_submit_group_create(self->q, name, &spec, ticket));
}

/* (ticket, name) */
PyObject *queue_group_remove(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	const char *name;
	if (!PyArg_ParseTuple(args, "Ks", &ticket, &name))
		return NULL;
	struct kept *kept = group_keep(self, ticket, NULL);
	return !kept ? NULL
		     : queue_submitted(self, ticket, kept,
				       sar_submit_group_remove(self->q, name, ticket));
}

/* (ticket, name, policy): its version */
PyObject *queue_group_policy(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	const char *name, *policy;
	if (!PyArg_ParseTuple(args, "Kss", &ticket, &name, &policy))
		return NULL;
	struct kept *kept = group_keep(self, ticket, NULL);
	return !kept ? NULL
		     : queue_submitted(self, ticket, kept,
				       sar_submit_group_policy(self->q, name, policy, ticket));
}

/* (ticket, name) */
PyObject *queue_group_info(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	const char *name;
	if (!PyArg_ParseTuple(args, "Ks", &ticket, &name))
		return NULL;
	struct kept *kept = group_keep(self, ticket, NULL);
	return !kept ? NULL
		     : queue_submitted(self, ticket, kept,
				       sar_submit_group_info(self->q, name, &kept->group->info,
							     kept->group->member, SAR_GROUP_MEMBERS,
							     ticket));
}

/* (ticket, name, cohort or None) */
PyObject *queue_group_join(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	const char *name, *cohort;
	if (!PyArg_ParseTuple(args, "Ksz", &ticket, &name, &cohort))
		return NULL;
	struct kept *kept = group_keep(self, ticket, NULL);
	return !kept ? NULL
		     : queue_submitted(self, ticket, kept,
				       sar_submit_group_join(self->q, name, cohort,
							     &kept->group->joined, ticket));
}

/* (ticket, member) */
PyObject *queue_group_leave(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	PyTypeObject *type = (PyTypeObject *)self->handle->member;
	unsigned long long ticket;
	PyObject *member;
	if (!PyArg_ParseTuple(args, "KO!", &ticket, type, &member))
		return NULL;
	struct kept *kept = group_keep(self, ticket, member);
	if (!kept)
		return NULL;
	int r = sar_submit_group_leave(self->q, groups_member(member), ticket);
	if (r == 0)
		groups_left(member);
	return queue_submitted(self, ticket, kept, r);
}

/* (ticket, member, data): the clock */
PyObject *queue_group_push(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	PyTypeObject *type = (PyTypeObject *)self->handle->member;
	unsigned long long ticket;
	PyObject *member, *data;
	if (!PyArg_ParseTuple(args, "KO!O", &ticket, type, &member, &data))
		return NULL;
	struct python_buffer buffer;
	if (PyObject_GetBuffer(data, &buffer, 0) < 0)
		return NULL;
	struct kept *kept = group_keep(self, ticket, member);
	if (!kept) {
		PyBuffer_Release(&buffer);
		return NULL;
	}
	kept->data = buffer;
	return queue_submitted(self, ticket, kept,
			       sar_submit_group_push(self->q, groups_member(member),
						     kept->data.data, (uint64_t)kept->data.bytes,
						     ticket));
}

/* (ticket, member, timeout_ns): as GroupMember.pull */
PyObject *queue_group_pull(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	PyTypeObject *type = (PyTypeObject *)self->handle->member;
	unsigned long long ticket;
	long long timeout_ns;
	PyObject *member;
	if (!PyArg_ParseTuple(args, "KO!L", &ticket, type, &member, &timeout_ns))
		return NULL;
	struct kept *kept = group_keep(self, ticket, member);
	return !kept ? NULL
		     : queue_submitted(self, ticket, kept,
				       sar_submit_group_pull(self->q, groups_member(member),
							     timeout_ns, &kept->group->pulled,
							     ticket));
}

/* (ticket, member, round, attempt): as GroupMember.contributors */
PyObject *queue_group_contributors(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	PyTypeObject *type = (PyTypeObject *)self->handle->member;
	unsigned long long ticket, round;
	sar_group_result result = {0};
	PyObject *member;
	if (!PyArg_ParseTuple(args, "KO!KI", &ticket, type, &member, &round, &result.attempt))
		return NULL;
	result.round = round;
	struct kept *kept = group_keep(self, ticket, member);
	if (!kept)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       sar_submit_group_contributors(self->q, groups_member(member),
							     &result, kept->group->contributor,
							     SAR_SOURCES_MAX, ticket));
}

PyObject *completions_of_group(struct handle *handle, sar_completion *c, struct kept *kept)
{
	struct kept_group *g = kept->group;
	switch (c->op) {
	case SAR_OP_GROUP_INFO:
		return groups_described(&g->info, g->member, c->value);
	case SAR_OP_GROUP_JOIN:
		return groups_made(handle, g->joined);
	case SAR_OP_GROUP_PULL:
		return groups_pulled(handle, &g->pulled, &c->buffer);
	case SAR_OP_GROUP_CONTRIBUTORS:
		return groups_contributors(g->contributor, c->result);
	default:
		return PyLong_FromUnsignedLongLong(c->value);
	}
}
