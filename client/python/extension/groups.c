/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of a Handle about groups, and GroupMember: one membership. It keeps its handle, and
 * leaves when it goes. A pull waits in pieces, so that the interpreter sees signals (_groups.py).
 */
#include "completions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct member {
	PyObject object;
	struct handle *handle;
	sar_member *m;
};

static PyObject *groups_done(int r)
{
	if (r < 0)
		return python_fail(r, NULL);
	Py_RETURN_NONE;
}

/* (name, op, dtype, count, members, flags, policy, switches or None) */
PyObject *groups_create(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	sar_group_spec spec = {0};
	unsigned long long count;
	const char *name;
	if (!PyArg_ParseTuple(args, "sIIKIIsz", &name, &spec.op, &spec.dtype, &count, &spec.members,
			      &spec.flags, &spec.policy, &spec.switches) ||
	    handle_open(self) < 0)
		return NULL;
	spec.count = count;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_create(self->s, name, &spec);
	PYTHON_WAIT_END(r < 0)
	return groups_done(r);
}

PyObject *groups_remove(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	const char *name;
	if (!PyArg_ParseTuple(args, "s", &name) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_remove(self->s, name);
	PYTHON_WAIT_END(r < 0)
	return groups_done(r);
}

/* (name, policy): its version */
PyObject *groups_policy(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	const char *name, *policy;
	uint64_t version = 0;
	if (!PyArg_ParseTuple(args, "ss", &name, &policy) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_policy(self->s, name, policy, &version);
	PYTHON_WAIT_END(r < 0)
	return r < 0 ? python_fail(r, NULL) : PyLong_FromUnsignedLongLong(version);
}

PyObject *groups_explain(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	char table[SAR_POLICY_TABLE_MAX];
	const char *policy;
	if (!PyArg_ParseTuple(args, "s", &policy) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_policy_explain(self->s, policy, table);
	PYTHON_WAIT_END(r < 0)
	return r < 0 ? python_fail(r, NULL) : PyUnicode_FromString(table);
}

/* ---- what a group is --------------------------------------------------------------------------
 */

struct pile { /* copies of what the callback is told */
	sar_member_info *item;
	size_t count, room;
};

static int groups_take(const sar_member_info *info, void *arg)
{
	struct pile *pile = arg;
	if (pile->count == pile->room) {
		size_t room = pile->room ? 2 * pile->room : 64;
		sar_member_info *more = realloc(pile->item, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		pile->item = more;
		pile->room = room;
	}
	pile->item[pile->count++] = *info;
	return 0;
}

static PyObject *groups_member_info(const sar_member_info *m)
{
	return Py_BuildValue(
		"{sKsKsKsKsKsKsKsIsOss}", "member", (unsigned long long)m->member, "clock",
		(unsigned long long)m->clock, "round", (unsigned long long)m->round, "waiting_ns",
		(unsigned long long)m->waiting_ns, "counted", (unsigned long long)m->counted,
		"late", (unsigned long long)m->late, "refused", (unsigned long long)m->refused,
		"node", m->node, "waits", m->waits ? Py_True : Py_False, "cohort", m->cohort);
}

static PyObject *groups_staleness(const sar_group_info *info)
{
	PyObject *list = PyList_New(0);
	for (int i = 0; list && i < SAR_STALENESS; i++) {
		PyObject *one = PyLong_FromUnsignedLongLong(info->staleness[i]);
		if (!one || PyList_Append(list, one) < 0)
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

/* ["10.0.0.1", ...] */
static PyObject *groups_switches(const sar_group_info *info)
{
	PyObject *list = PyList_New(0);
	for (int i = 0; list && i < SAR_SWITCHES_MAX && info->switches[i][0]; i++) {
		const uint8_t *ip = info->switches[i];
		PyObject *one = PyUnicode_FromFormat("%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
		if (!one || PyList_Append(list, one) < 0)
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

PyObject *groups_described(const sar_group_info *i, const sar_member_info *member, size_t count)
{
	PyObject *members = PyList_New(0);
	for (size_t k = 0; members && k < count; k++) {
		PyObject *one = groups_member_info(&member[k]);
		if (!one || PyList_Append(members, one) < 0)
			Py_CLEAR(members);
		Py_XDECREF(one);
	}
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
		"policy", i->policy, "table", i->table, "staleness", groups_staleness(i),
		"switches", groups_switches(i), "members", members);
}

PyObject *groups_info(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct pile pile = {0};
	sar_group_info info;
	const char *name;
	if (!PyArg_ParseTuple(args, "s", &name) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_info_get(self->s, name, &info, groups_take, &pile);
	PYTHON_WAIT_END(r < 0)
	PyObject *out =
		r < 0 ? python_fail(r, NULL) : groups_described(&info, pile.item, pile.count);
	free(pile.item);
	return out;
}

/* ---- members ----------------------------------------------------------------------------------
 */

static void groups_leave(void *m)
{
	sar_group_leave(m);
}

PyObject *groups_made(struct handle *handle, sar_member *m)
{
	PyTypeObject *type = (PyTypeObject *)handle->member;
	struct member *made = (struct member *)PyType_GenericAlloc(type, 0);
	if (!made) {
		python_end_soon(groups_leave, m);
		return NULL;
	}
	Py_INCREF(handle);
	made->handle = handle;
	made->m = m;
	return (PyObject *)made;
}

/* (name, cohort or None) */
PyObject *groups_join(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	const char *name, *cohort;
	sar_member *m = NULL;
	if (!PyArg_ParseTuple(args, "sz", &name, &cohort) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_join(self->s, name, cohort, &m);
	PYTHON_WAIT_END(r < 0)
	return r < 0 ? python_fail(r, NULL) : groups_made(self, m);
}

static int group_member_open(const struct member *self)
{
	if (!self->m) {
		PyErr_SetString(PyExc_ValueError, "the member has left: join again");
		return -1;
	}
	return handle_open(self->handle);
}

sar_member *groups_member(PyObject *member)
{
	struct member *self = (struct member *)member;
	return group_member_open(self) < 0 ? NULL : self->m;
}

void groups_left(PyObject *member)
{
	((struct member *)member)->m = NULL;
}

static PyObject *group_member_leave(PyObject *object, PyObject *none)
{
	struct member *self = (struct member *)object;
	sar_member *m = self->m;
	if (!m)
		Py_RETURN_NONE;
	self->m = NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_leave(m);
	PYTHON_WAIT_END(r < 0)
	return groups_done(r);
}

static void group_member_dealloc(PyObject *object)
{
	struct member *self = (struct member *)object;
	if (self->m)
		python_end_soon(groups_leave, self->m);
	Py_XDECREF((PyObject *)self->handle);
	python_free(object);
}

static PyObject *group_member_push(PyObject *object, PyObject *source)
{
	struct member *self = (struct member *)object;
	struct python_buffer data;
	if (group_member_open(self) < 0 || PyObject_GetBuffer(source, &data, 0) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_push(self->m, data.data, (uint64_t)data.bytes);
	PYTHON_WAIT_END(r < 0)
	PyBuffer_Release(&data);
	return groups_done(r);
}

PyObject *groups_pulled(struct handle *handle, const sar_group_result *result, sar_buffer *buffer)
{
	PyObject *view = Py_None;
	if (result->round)
		view = view_new(handle, buffer);
	else
		Py_INCREF(view);
	if (!view) {
		sar_release(handle->s, buffer);
		return NULL;
	}
	return Py_BuildValue("NKIKI", view, (unsigned long long)result->round, result->attempt,
			     (unsigned long long)result->version, result->through);
}

/* pull(timeout_ns): (View or None, round, attempt, version, through) */
static PyObject *group_member_pull(PyObject *object, PyObject *args)
{
	struct member *self = (struct member *)object;
	sar_group_result result;
	long long timeout_ns;
	if (!PyArg_ParseTuple(args, "L", &timeout_ns) || group_member_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_pull(self->m, timeout_ns, &result);
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		return python_fail(r, NULL);
	return groups_pulled(self->handle, &result, &result.buffer);
}

PyObject *groups_contributors(const sar_contributor *who, int count)
{
	PyObject *list = PyList_New(0);
	for (int i = 0; list && i < count && i < SAR_SOURCES_MAX; i++) {
		PyObject *one = Py_BuildValue("KKKI", (unsigned long long)who[i].member,
					      (unsigned long long)who[i].clock,
					      (unsigned long long)who[i].staleness, who[i].node);
		if (!one || PyList_Append(list, one) < 0)
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

/* contributors(round, attempt): [(member, clock, staleness, node)] */
static PyObject *group_member_contributors(PyObject *object, PyObject *args)
{
	struct member *self = (struct member *)object;
	sar_group_result result = {0};
	unsigned long long round;
	if (!PyArg_ParseTuple(args, "KI", &round, &result.attempt) || group_member_open(self) < 0)
		return NULL;
	result.round = round;
	sar_contributor *who = calloc(SAR_SOURCES_MAX, sizeof(*who));
	if (!who)
		return PyErr_NoMemory();
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_group_contributors(self->m, &result, who, SAR_SOURCES_MAX);
	PYTHON_WAIT_END(r < 0)
	PyObject *list = r < 0 ? python_fail(r, NULL) : groups_contributors(who, r);
	free(who);
	return list;
}

static PyObject *group_member_number(PyObject *object, void *none)
{
	struct member *self = (struct member *)object;
	return group_member_open(self) < 0
		       ? NULL
		       : PyLong_FromUnsignedLongLong(sar_member_number(self->m));
}

static PyObject *group_member_clock(PyObject *object, void *none)
{
	struct member *self = (struct member *)object;
	return group_member_open(self) < 0 ? NULL
					   : PyLong_FromUnsignedLongLong(sar_member_clock(self->m));
}

static PyMethodDef member_methods[] = {
	{"push", group_member_push, METH_O, NULL},
	{"pull", group_member_pull, METH_VARARGS, NULL},
	{"contributors", group_member_contributors, METH_VARARGS, NULL},
	{"leave", group_member_leave, METH_NOARGS, NULL},
	{0},
};
static PyGetSetDef member_fields[] = {
	{"number", group_member_number, NULL, NULL, NULL},
	{"clock", group_member_clock, NULL, NULL, NULL},
	{0},
};
static PyType_Slot member_slots[] = {
	{Py_tp_dealloc, group_member_dealloc},
	{Py_tp_methods, member_methods},
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
