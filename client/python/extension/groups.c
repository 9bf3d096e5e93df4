/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of the operations on groups, which operations.c does, and GroupMember: one membership.
 * It keeps its handle, and leaves when it goes.
 */
#include "operations.h"

#include <errno.h>
#include <stdlib.h>

struct member {
	PyObject object;
	struct handle *handle;
	sar_member *m;
};

/* ---- groups ---------------------------------------------------------------------------------- */

/* (name, op, dtype, count, members, flags, policy, switches or None) */
static int group_create_read(struct call *c, PyObject *args)
{
	sar_group_spec *spec = &c->spec;
	unsigned long long count;
	if (!PyArg_ParseTuple(args, "sIIKIIsz", &c->text, &spec->op, &spec->dtype, &count,
			      &spec->members, &spec->flags, &spec->policy, &spec->switches))
		return -1;
	spec->count = count;
	return 0;
}

static int group_create_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_create(q, c->text, &c->spec, ticket);
}

const struct operation operation_group_create = {.read = group_create_read,
						 .submit = group_create_submit};

/* (name) */
static int group_read(struct call *c, PyObject *args)
{
	return PyArg_ParseTuple(args, "s", &c->text) ? 0 : -1;
}

static int group_remove_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_remove(q, c->text, ticket);
}

const struct operation operation_group_remove = {.read = group_read, .submit = group_remove_submit};

static PyObject *group_value(struct call *c, const sar_completion *end)
{
	return PyLong_FromUnsignedLongLong(end->value);
}

/* (name, policy): its version */
static int group_policy_read(struct call *c, PyObject *args)
{
	return PyArg_ParseTuple(args, "ss", &c->text, &c->more) ? 0 : -1;
}

static int group_policy_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_policy(q, c->text, c->more, ticket);
}

const struct operation operation_group_policy = {
	.read = group_policy_read, .submit = group_policy_submit, .result = group_value};

static int group_explain_wait(struct call *c)
{
	c->pile.item = malloc(SAR_POLICY_TABLE_MAX);
	return c->pile.item ? sar_policy_explain(c->handle->s, c->text, c->pile.item) : -ENOMEM;
}

static PyObject *group_explain_result(struct call *c, const sar_completion *end)
{
	return PyUnicode_FromString(c->pile.item);
}

const struct operation operation_policy_explain = {
	.read = group_read, .wait = group_explain_wait, .result = group_explain_result};

static PyObject *groups_member_info(const void *item)
{
	const sar_member_info *m = item;
	return Py_BuildValue(
		"{sKsKsKsKsKsKsKsIsOss}", "member", (unsigned long long)m->member, "clock",
		(unsigned long long)m->clock, "round", (unsigned long long)m->round, "waiting_ns",
		(unsigned long long)m->waiting_ns, "counted", (unsigned long long)m->counted,
		"late", (unsigned long long)m->late, "refused", (unsigned long long)m->refused,
		"node", m->node, "waits", m->waits ? Py_True : Py_False, "cohort", m->cohort);
}

static PyObject *groups_number(const void *number)
{
	return PyLong_FromUnsignedLongLong(*(const uint64_t *)number);
}

/* "10.0.0.1" */
static PyObject *groups_switch(const void *ip)
{
	const uint8_t *part = ip;
	return PyUnicode_FromFormat("%u.%u.%u.%u", part[0], part[1], part[2], part[3]);
}

static PyObject *groups_switches(const sar_group_info *info)
{
	size_t count = 0;
	while (count < SAR_SWITCHES_MAX && info->switches[count][0])
		count++;
	return operations_list(info->switches, count, sizeof(info->switches[0]), groups_switch);
}

static PyObject *groups_described(struct call *c, const sar_completion *end)
{
	const sar_group_info *i = &c->group;
	PyObject *members =
		operations_list(c->members, end->value, sizeof(*c->members), groups_member_info);
	if (!members)
		return NULL;
	return Py_BuildValue(
		"{sIsIsIsIsKsIsIsKsKsKsKsKsKsKsKsKsKsKsKsKsssssNsNsN}", "op", i->op, "dtype",
		i->dtype, "flags", i->flags, "start", i->members, "count",
		(unsigned long long)i->count, "live", i->live, "owner", i->owner, "version",
		(unsigned long long)i->version, "round", (unsigned long long)i->round, "clock",
		(unsigned long long)i->clock, "rounds", (unsigned long long)i->rounds, "counted",
		(unsigned long long)i->counted, "late", (unsigned long long)i->late, "refused",
		(unsigned long long)i->refused, "lost", (unsigned long long)i->lost, "waiting_ns",
		(unsigned long long)i->waiting_ns, "switched", (unsigned long long)i->switched,
		"fallen", (unsigned long long)i->fallen, "gone_first",
		(unsigned long long)i->gone_first, "gone_last", (unsigned long long)i->gone_last,
		"policy", i->policy, "table", i->table, "staleness",
		operations_list(i->staleness, SAR_STALENESS, sizeof(uint64_t), groups_number),
		"switches", groups_switches(i), "members", members);
}

static int group_info_read(struct call *c, PyObject *args)
{
	c->members = operations_room(SAR_GROUP_MEMBERS, sizeof(*c->members));
	return c->members ? group_read(c, args) : -1;
}

static int group_info_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_info(q, c->text, &c->group, c->members, SAR_GROUP_MEMBERS, ticket);
}

const struct operation operation_group_info = {
	.read = group_info_read, .submit = group_info_submit, .result = groups_described};

/* ---- members --------------------------------------------------------------------------------- */

static void groups_member_leave(void *m)
{
	sar_group_leave(m);
}

static PyObject *groups_member_new(struct call *c, const sar_completion *end)
{
	PyTypeObject *type = (PyTypeObject *)c->handle->member;
	struct member *made = (struct member *)PyType_GenericAlloc(type, 0);
	if (!made) {
		python_end_soon(groups_member_leave, c->joined);
		return NULL;
	}
	Py_INCREF(c->handle);
	made->handle = c->handle;
	made->m = c->joined;
	return (PyObject *)made;
}

static void groups_member_dealloc(PyObject *object)
{
	struct member *self = (struct member *)object;
	if (self->m)
		python_end_soon(groups_member_leave, self->m);
	Py_XDECREF((PyObject *)self->handle);
	python_free(object);
}

static int groups_member_open(const struct member *self)
{
	if (!self->m) {
		PyErr_SetString(PyExc_ValueError, "the member has left: join again");
		return -1;
	}
	return handle_open(self->handle);
}

/* (name, cohort or None) */
static int groups_member_join_read(struct call *c, PyObject *args)
{
	return PyArg_ParseTuple(args, "sz", &c->text, &c->more) ? 0 : -1;
}

static int groups_member_join_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_join(q, c->text, c->more, &c->joined, ticket);
}

static int groups_member_join_wait(struct call *c)
{
	return sar_group_join(c->handle->s, c->text, c->more, &c->joined);
}

const struct operation operation_group_join = {.read = groups_member_join_read,
					       .submit = groups_member_join_submit,
					       .wait = groups_member_join_wait,
					       .result = groups_member_new};

/* One that has not left, and is kept until the end. */
static int groups_member_used(struct call *c, PyObject *member)
{
	struct member *self = (struct member *)member;
	if (!PyObject_TypeCheck(member, (PyTypeObject *)c->handle->member)) {
		PyErr_SetString(PyExc_TypeError, "no member of a group");
		return -1;
	}
	if (groups_member_open(self) < 0)
		return -1;
	Py_INCREF(member);
	c->used = member;
	c->member = self->m;
	return 0;
}

/* (member) */
static int groups_member_leave_read(struct call *c, PyObject *args)
{
	PyObject *member;
	return PyArg_ParseTuple(args, "O", &member) ? groups_member_used(c, member) : -1;
}

/* The member is C's. */
static int groups_member_leave_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	int r = sar_submit_group_leave(q, c->member, ticket);
	if (r == 0)
		((struct member *)c->used)->m = NULL;
	return r;
}

static int groups_member_leave_wait(struct call *c)
{
	((struct member *)c->used)->m = NULL;
	return sar_group_leave(c->member);
}

const struct operation operation_group_leave = {.read = groups_member_leave_read,
						.submit = groups_member_leave_submit,
						.wait = groups_member_leave_wait};

/* (member, data): the clock */
static int groups_member_push_read(struct call *c, PyObject *args)
{
	PyObject *member, *data;
	if (!PyArg_ParseTuple(args, "OO", &member, &data) || groups_member_used(c, member) < 0)
		return -1;
	return PyObject_GetBuffer(data, &c->data, 0);
}

static int groups_member_push_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_push(q, c->member, c->data.data, (uint64_t)c->data.bytes, ticket);
}

const struct operation operation_group_push = {.read = groups_member_push_read,
					       .submit = groups_member_push_submit,
					       .result = group_value};

/* (member, timeout_ns): (View or None, round, attempt, version, through) */
static int groups_member_pull_read(struct call *c, PyObject *args)
{
	PyObject *member;
	return PyArg_ParseTuple(args, "OL", &member, &c->timeout_ns) ? groups_member_used(c, member)
								     : -1;
}

static int groups_member_pull_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_pull(q, c->member, c->timeout_ns, &c->pulled, ticket);
}

static PyObject *groups_member_pull_result(struct call *c, const sar_completion *end)
{
	const sar_group_result *result = &c->pulled;
	sar_buffer buffer = end->buffer;
	PyObject *view = Py_None;
	if (result->round)
		view = view_new(c->handle, &buffer);
	else
		Py_INCREF(view);
	if (!view) {
		sar_release(c->handle->s, &buffer);
		return NULL;
	}
	return Py_BuildValue("NKIKI", view, (unsigned long long)result->round, result->attempt,
			     (unsigned long long)result->version, result->through);
}

const struct operation operation_group_pull = {.read = groups_member_pull_read,
					       .submit = groups_member_pull_submit,
					       .result = groups_member_pull_result};

/* (member, round, attempt): [(member, clock, staleness, node)] */
static int groups_member_contributors_read(struct call *c, PyObject *args)
{
	PyObject *member;
	if (!PyArg_ParseTuple(args, "OKI", &member, &c->number, &c->pulled.attempt) ||
	    groups_member_used(c, member) < 0)
		return -1;
	c->pulled.round = c->number;
	c->contributors = operations_room(SAR_SOURCES_MAX, sizeof(*c->contributors));
	return c->contributors ? 0 : -1;
}

static int groups_member_contributors_submit(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_group_contributors(q, c->member, &c->pulled, c->contributors,
					     SAR_SOURCES_MAX, ticket);
}

static PyObject *groups_member_contributor(const void *item)
{
	const sar_contributor *who = item;
	return Py_BuildValue("KKKI", (unsigned long long)who->member,
			     (unsigned long long)who->clock, (unsigned long long)who->staleness,
			     who->node);
}

static PyObject *groups_member_contributors_result(struct call *c, const sar_completion *end)
{
	size_t count = end->result < SAR_SOURCES_MAX ? (size_t)end->result : SAR_SOURCES_MAX;
	return operations_list(c->contributors, count, sizeof(*c->contributors),
			       groups_member_contributor);
}

const struct operation operation_group_contributors = {.read = groups_member_contributors_read,
						       .submit = groups_member_contributors_submit,
						       .result = groups_member_contributors_result};

static PyObject *groups_member_number(PyObject *object, void *none)
{
	struct member *self = (struct member *)object;
	return groups_member_open(self) < 0
		       ? NULL
		       : PyLong_FromUnsignedLongLong(sar_member_number(self->m));
}

static PyObject *groups_member_clock(PyObject *object, void *none)
{
	struct member *self = (struct member *)object;
	return groups_member_open(self) < 0
		       ? NULL
		       : PyLong_FromUnsignedLongLong(sar_member_clock(self->m));
}

static PyGetSetDef member_fields[] = {
	{"number", groups_member_number, NULL, NULL, NULL},
	{"clock", groups_member_clock, NULL, NULL, NULL},
	{0},
};
static PyType_Slot member_slots[] = {
	{Py_tp_dealloc, groups_member_dealloc},
	{Py_tp_getset, member_fields},
	{Py_tp_new, python_not_made},
	{0},
};
static PyType_Spec member_spec = {
	.name = "sarissa._sarissa.GroupMember",
	.basicsize = sizeof(struct member),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = member_slots,
};

PyObject *groups_add(PyObject *module)
{
	return python_type(module, &member_spec, "GroupMember");
}
