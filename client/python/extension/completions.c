/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue: operations that are submitted and not waited for. Each has a ticket, the caller's number.
 * poll() and wait() give (ticket, result) of those that have ended; a result is what the method of
 * the handle returns, or the exception that it would raise. What C reads or writes until then is
 * kept by the queue, in a dict by ticket. It knows of an operation its row only.
 */
#include "operations.h"

#include <errno.h>
#include <string.h>

enum { POLL_ROOM = 16 };
static const char KEPT[] = "sarissa.kept";

struct queue {
	PyObject object;
	struct handle *handle;
	sar_queue *q;
	PyObject *kept; /* ticket: capsule of struct call, whose context is its row */
};

static void queue_kept_end(PyObject *capsule)
{
	struct call *c = PyCapsule_GetPointer(capsule, KEPT);
	if (c)
		operations_free(c);
}

/* From here on the queue has it. -1 with an exception. */
static int queue_keep(struct queue *self, PyObject *ticket, const struct operation *row,
		      struct call *c)
{
	PyObject *capsule = PyCapsule_New(c, KEPT, queue_kept_end);
	if (!capsule) {
		operations_free(c);
		return -1;
	}
	PyCapsule_SetContext(capsule, (void *)(uintptr_t)row);
	int r = PyDict_SetItem(self->kept, ticket, capsule);
	Py_DECREF(capsule);
	return r;
}

/* (ticket, ...): the arguments of the row follow */
static PyObject *queue_submit(PyObject *object, PyObject *args, const struct operation *row)
{
	struct queue *self = (struct queue *)object;
	PyObject *ticket = PyTuple_GetItem(args, 0);
	unsigned long long number = ticket ? PyLong_AsUnsignedLongLong(ticket) : 0;
	PyObject *rest = PyErr_Occurred() ? NULL : PyTuple_GetSlice(args, 1, PyTuple_Size(args));
	struct call *c = rest ? operations_read(row, self->handle, rest) : NULL;
	int r = c && queue_keep(self, ticket, row, c) == 0 ? row->submit(self->q, c, number) : 0;
	Py_XDECREF(rest);
	if (r < 0) {
		struct python_name name = operations_name(c, c->name.id);
		PyObject *kind, *value, *trace;
		python_fail(r, &name);
		PyErr_Fetch(&kind, &value, &trace);
		PyDict_DelItem(self->kept, ticket);
		PyErr_Restore(kind, value, trace);
	}
	return PyErr_Occurred() ? NULL : (Py_INCREF(Py_None), Py_None);
}

#define QUEUE_SUBMIT(name)                                            \
	static PyObject *queue_##name(PyObject *self, PyObject *args) \
	{                                                             \
		return queue_submit(self, args, &operation_##name);   \
	}
OPERATIONS_QUEUED(QUEUE_SUBMIT)
OPERATIONS_SUBMITTED(QUEUE_SUBMIT)

static PyObject *queue_cancel(PyObject *object, PyObject *ticket)
{
	unsigned long long number = PyLong_AsUnsignedLongLong(ticket);
	if (PyErr_Occurred())
		return NULL;
	int r = sar_cancel(((struct queue *)object)->q, number);
	return PyLong_FromLong(r < 0 ? 0 : r);
}

static PyObject *queue_fd(PyObject *object, PyObject *none)
{
	return PyLong_FromLong(sar_fd(((struct queue *)object)->q));
}

/* ---- completions ---------------------------------------------------------------------------- */

static PyObject *completions_failed(const sar_completion *end, const struct call *c)
{
	struct python_name name = operations_name(c, end->id);
	PyObject *nodes = PyList_New(0);
	PyObject *error = nodes ? python_error(end->result, c->said, &name, nodes, NULL) : NULL;
	Py_XDECREF(nodes);
	return error;
}

/* (ticket, result or exception) */
static PyObject *completions_completed(struct queue *self, sar_completion *end)
{
	PyObject *key = PyLong_FromUnsignedLongLong(end->user_data);
	PyObject *capsule = key ? PyDict_GetItem(self->kept, key) : NULL;
	struct call *c = capsule ? PyCapsule_GetPointer(capsule, KEPT) : NULL;
	if (!c) {
		sar_release(self->handle->s, &end->buffer);
		Py_XDECREF(key);
		return NULL;
	}
	c->said = sar_completion_detail(self->q, end);
	PyObject *result = end->result < 0
				   ? completions_failed(end, c)
				   : operations_result(PyCapsule_GetContext(capsule), c, end);
	if (!result) { /* of memory only: the operation's own exception says it */
		PyObject *kind, *trace;
		PyErr_Fetch(&kind, &result, &trace);
		Py_XDECREF(trace);
		if (!result)
			result = kind;
		else
			Py_XDECREF(kind);
	}
	if (!(end->flags & SAR_MORE))
		PyDict_DelItem(self->kept, key);
	return Py_BuildValue("NN", key, result);
}

static int completions_take(struct queue *self, sar_completion *c, int count, PyObject *list)
{
	for (int i = 0; i < count; i++) {
		PyObject *one = completions_completed(self, &c[i]);
		if (!one || PyList_Append(list, one) < 0)
			PyErr_Clear();
		Py_XDECREF(one);
	}
	return count;
}

/* All that have ended, without waiting. Copies some of the bytes of large puts. */
static PyObject *queue_poll(PyObject *object, PyObject *none)
{
	struct queue *self = (struct queue *)object;
	sar_completion c[POLL_ROOM];
	PyObject *list = PyList_New(0);
	int n = list ? POLL_ROOM : 0;
	while (n == POLL_ROOM) {
		Py_BEGIN_ALLOW_THREADS
		n = sar_poll(self->q, c, POLL_ROOM);
		Py_END_ALLOW_THREADS
		completions_take(self, c, n, list);
	}
	return list;
}

/* wait(timeout_ns): those that have ended, of which there is one when it returns before its time.
 */
static PyObject *queue_wait(PyObject *object, PyObject *timeout)
{
	struct queue *self = (struct queue *)object;
	sar_completion c[POLL_ROOM];
	long long timeout_ns = PyLong_AsLongLong(timeout);
	PyObject *list = PyErr_Occurred() ? NULL : PyList_New(0);
	int n;
	if (!list)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	n = sar_poll_wait(self->q, c, POLL_ROOM, 1, timeout_ns);
	Py_END_ALLOW_THREADS
	completions_take(self, c, n, list);
	return list;
}

/* (capacity): a Queue */
PyObject *completions_new(PyObject *object, PyObject *args)
{
	struct handle *handle = (struct handle *)object;
	unsigned capacity;
	if (!PyArg_ParseTuple(args, "I", &capacity) || handle_open(handle) < 0)
		return NULL;
	struct queue *self = (struct queue *)PyType_GenericAlloc((PyTypeObject *)handle->queue, 0);
	if (!self)
		return NULL;
	self->kept = PyDict_New();
	int r = self->kept ? sar_queue_open(handle->s, capacity, &self->q) : -ENOMEM;
	if (r < 0) {
		if (self->kept)
			python_fail(r, NULL);
		Py_DECREF(self);
		return NULL;
	}
	Py_INCREF(object);
	self->handle = handle;
	return (PyObject *)self;
}

static void queue_end(void *q)
{
	sar_queue_close(q);
}

static void queue_dealloc(PyObject *object)
{
	struct queue *self = (struct queue *)object;
	if (self->q)
		python_end(queue_end, self->q);
	Py_XDECREF(self->kept); /* now that nobody uses it */
	Py_XDECREF((PyObject *)self->handle);
	python_free(object);
}

#define QUEUE_METHOD(name) {#name, queue_##name, METH_VARARGS, NULL},
static PyMethodDef queue_methods[] = {
	OPERATIONS_QUEUED(QUEUE_METHOD) OPERATIONS_SUBMITTED(QUEUE_METHOD)
	/* and what is no operation */
	{"cancel", queue_cancel, METH_O, NULL},
	{"fd", queue_fd, METH_NOARGS, NULL},
	{"poll", queue_poll, METH_NOARGS, NULL},
	{"wait", queue_wait, METH_O, NULL},
	{0},
};
static PyType_Slot queue_slots[] = {
	{Py_tp_new, python_not_made},
	{Py_tp_dealloc, queue_dealloc},
	{Py_tp_methods, queue_methods},
	{0},
};
static PyType_Spec queue_spec = {
	.name = "sarissa._sarissa.Queue",
	.basicsize = sizeof(struct queue),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = queue_slots,
};

int completions_add(PyObject *module)
{
	PyObject *type = python_type(module, &queue_spec, "Queue");
	PyObject *maker = type ? PyObject_GetAttrString(module, "Handle") : NULL;
	int r = maker ? PyObject_SetAttrString(maker, "_queue", type) : -1;
	Py_XDECREF(maker);
	Py_XDECREF(type);
	return r;
}
