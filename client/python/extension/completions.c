/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue: operations that are submitted and not waited for. Each has a ticket, the caller's number.
 * poll() and wait() give (ticket, result) of those that have ended; a result is what the blocking
 * call returns, or the exception that it would raise. What C reads or writes until then is kept
 * by the queue, in a dict by ticket. A Queue that is made for a call has one operation, which run()
 * waits for.
 */
#include "completions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { POLL_ROOM = 16, CALL_TICKET = 0 };
static const char KEPT[] = "sarissa.kept";

static void kept_free(struct kept *kept)
{
	python_name_end(&kept->name);
	python_name_end(&kept->label);
	if (kept->data.owner)
		PyBuffer_Release(&kept->data);
	Py_XDECREF(kept->view);
	free(kept->ids);
	free(kept->nodes);
	free(kept->got);
	free(kept->group);
	free(kept);
}

static void kept_end(PyObject *capsule)
{
	struct kept *kept = PyCapsule_GetPointer(capsule, KEPT);
	if (kept)
		kept_free(kept);
}

struct kept *kept_new(struct queue *self, PyObject *name)
{
	if (handle_open(self->handle) < 0)
		return NULL;
	struct kept *kept = calloc(1, sizeof(*kept));
	if (!kept)
		return (struct kept *)PyErr_NoMemory();
	if (name && python_name(name, &kept->name) < 0) {
		free(kept);
		return NULL;
	}
	return kept;
}

int queue_keep(struct queue *self, unsigned long long ticket, struct kept *kept)
{
	PyObject *capsule = PyCapsule_New(kept, KEPT, kept_end);
	if (!capsule) {
		kept_free(kept);
		return -1;
	}
	PyObject *key = PyLong_FromUnsignedLongLong(ticket);
	int r = key ? PyDict_SetItem(self->kept, key, capsule) : -1;
	Py_XDECREF(key);
	Py_DECREF(capsule);
	return r;
}

PyObject *queue_submitted(struct queue *self, unsigned long long ticket, const struct kept *kept,
			  int r)
{
	if (r >= 0)
		Py_RETURN_NONE;
	python_fail(r, &kept->name);
	PyObject *kind, *value, *trace;
	PyErr_Fetch(&kind, &value, &trace);
	PyObject *key = PyLong_FromUnsignedLongLong(ticket);
	if (key)
		PyDict_DelItem(self->kept, key);
	Py_XDECREF(key);
	PyErr_Restore(kind, value, trace);
	return NULL;
}

typedef int submit_get(sar_queue *q, sar_id id, int64_t timeout_ns, uint64_t ticket);

/* (ticket, name, timeout_ns) */
static PyObject *queue_get_by(PyObject *object, PyObject *args, submit_get *submit)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	long long timeout_ns;
	PyObject *name;
	if (!PyArg_ParseTuple(args, "KOL", &ticket, &name, &timeout_ns))
		return NULL;
	struct kept *kept = kept_new(self, name);
	if (!kept || queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       submit(self->q, kept->name.id, timeout_ns, ticket));
}

static PyObject *queue_get(PyObject *self, PyObject *args)
{
	return queue_get_by(self, args, sar_submit_get);
}

static PyObject *queue_begin(PyObject *self, PyObject *args)
{
	return queue_get_by(self, args, sar_submit_get_begin);
}

/* (ticket, view, upto, timeout_ns) */
static PyObject *queue_wait_for(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket, upto;
	long long timeout_ns;
	PyObject *view;
	if (!PyArg_ParseTuple(args, "KO!KL", &ticket, (PyTypeObject *)self->handle->view, &view,
			      &upto, &timeout_ns))
		return NULL;
	struct kept *kept = kept_new(self, NULL);
	if (!kept)
		return NULL;
	Py_INCREF(view);
	kept->view = view;
	if (queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(
		self, ticket, kept,
		sar_submit_wait(self->q, &((struct view *)view)->buffer, upto, timeout_ns, ticket));
}

/* (ticket, name, data, label or None, meta=None) */
static PyObject *queue_put(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	PyObject *name, *data, *label, *meta = Py_None;
	sar_put_options options; /* copied as the put is submitted */
	if (!PyArg_ParseTuple(args, "KOOO|O", &ticket, &name, &data, &label, &meta) ||
	    python_meta(meta, &options) < 0)
		return NULL;
	struct kept *kept = kept_new(self, name);
	if (!kept)
		return NULL;
	if (PyObject_GetBuffer(data, &kept->data, 0) < 0 ||
	    (label != Py_None && python_name(label, &kept->label) < 0)) {
		kept_free(kept);
		return NULL;
	}
	if (queue_keep(self, ticket, kept) < 0)
		return NULL;
	const char *text = kept->label.text ? kept->label.text : kept->name.text;
	return queue_submitted(self, ticket, kept,
			       sar_submit_put_with(self->q, kept->name.id, text, kept->data.data,
						   (uint64_t)kept->data.bytes, &options, ticket));
}

/* (ticket, name) */
static PyObject *queue_delete(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	PyObject *name;
	if (!PyArg_ParseTuple(args, "KO", &ticket, &name))
		return NULL;
	struct kept *kept = kept_new(self, name);
	if (!kept || queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       sar_submit_delete(self->q, kept->name.id, ticket));
}

/* (ticket, name) */
static PyObject *queue_info(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	PyObject *name;
	if (!PyArg_ParseTuple(args, "KO", &ticket, &name))
		return NULL;
	struct kept *kept = kept_new(self, name);
	if (!kept || queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       sar_submit_info(self->q, kept->name.id, &kept->info, ticket));
}

typedef int submit_reduce(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
			  unsigned count, const sar_reduction *how, int64_t timeout_ns,
			  uint64_t ticket);

/* (ticket, (target, sources, op, dtype, num, flags, timeout_ns, min, deadline_ns)) */
static PyObject *queue_reduce_by(PyObject *object, PyObject *args, submit_reduce *submit)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	PyObject *wanted;
	if (!PyArg_ParseTuple(args, "KO!", &ticket, &PyTuple_Type, &wanted))
		return NULL;
	struct kept *kept = kept_new(self, NULL);
	struct reduce_request request;
	if (!kept)
		return NULL;
	if (reduce_request(wanted, &request) < 0) {
		kept_free(kept);
		return NULL;
	}
	kept->name = request.target;
	kept->ids = request.ids;
	if (queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       submit(self->q, kept->name.id, kept->name.text, kept->ids,
				      request.count, &request.how, request.timeout_ns, ticket));
}

static PyObject *queue_reduce(PyObject *self, PyObject *args)
{
	return queue_reduce_by(self, args, sar_submit_reduce);
}

static PyObject *queue_allreduce(PyObject *self, PyObject *args)
{
	return queue_reduce_by(self, args, sar_submit_allreduce);
}

/* (ticket, names, timeout_ns) */
static PyObject *queue_gather(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	long long timeout_ns;
	Py_ssize_t count;
	PyObject *names;
	if (!PyArg_ParseTuple(args, "KOL", &ticket, &names, &timeout_ns))
		return NULL;
	struct kept *kept = kept_new(self, NULL);
	if (!kept)
		return NULL;
	kept->ids = handle_ids(names, &count);
	kept->got = kept->ids ? calloc((size_t)count + 1, sizeof(*kept->got)) : NULL;
	if (!kept->got) {
		if (kept->ids)
			PyErr_NoMemory();
		kept_free(kept);
		return NULL;
	}
	kept->count = count > SAR_SOURCES_MAX ? SAR_SOURCES_MAX + 1 : (unsigned)count;
	if (queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(
		self, ticket, kept,
		sar_submit_gather(self->q, kept->ids, kept->count, timeout_ns, kept->got, ticket));
}

/* The numbers of a list. */
static uint32_t *completions_nodes_of(PyObject *list, unsigned *count)
{
	Py_ssize_t length = PyList_Size(list);
	if (length < 0)
		return NULL;
	uint32_t *nodes = calloc((size_t)length + 1, sizeof(*nodes));
	if (!nodes)
		return (uint32_t *)PyErr_NoMemory();
	*count = length > SAR_NODES_MAX ? SAR_NODES_MAX + 1 : (unsigned)length;
	for (unsigned i = 0; i < *count; i++) {
		PyObject *number = PyList_GetItem(list, i);
		unsigned long node = PyLong_AsUnsignedLong(number);
		bool wrong = PyErr_Occurred() ? PyErr_ExceptionMatches(PyExc_OverflowError)
					      : node > UINT32_MAX;
		if (wrong) {
			PyErr_Clear();
			PyErr_Format(PyExc_ValueError,
				     "no node has the number %R: use those of nodes()", number);
		}
		if (PyErr_Occurred()) {
			free(nodes);
			return NULL;
		}
		nodes[i] = (uint32_t)node;
	}
	return nodes;
}

/* (ticket, name, nodes, timeout_ns) */
static PyObject *queue_broadcast(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	long long timeout_ns;
	PyObject *name, *nodes;
	if (!PyArg_ParseTuple(args, "KOOL", &ticket, &name, &nodes, &timeout_ns))
		return NULL;
	struct kept *kept = kept_new(self, name);
	if (!kept)
		return NULL;
	kept->nodes = completions_nodes_of(nodes, &kept->count);
	if (!kept->nodes) {
		kept_free(kept);
		return NULL;
	}
	if (queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       sar_submit_broadcast(self->q, kept->name.id, kept->nodes,
						    kept->count, timeout_ns, ticket));
}

/* (ticket, prefix): a result for each event until it is cancelled */
static PyObject *queue_watch(PyObject *object, PyObject *args)
{
	struct queue *self = (struct queue *)object;
	unsigned long long ticket;
	PyObject *prefix;
	if (!PyArg_ParseTuple(args, "KO!", &ticket, &PyUnicode_Type, &prefix))
		return NULL;
	struct kept *kept = kept_new(self, NULL);
	if (kept && python_prefix(prefix, &kept->name) < 0) {
		kept_free(kept);
		return NULL;
	}
	if (!kept || queue_keep(self, ticket, kept) < 0)
		return NULL;
	return queue_submitted(self, ticket, kept,
			       sar_submit_watch(self->q, kept->name.text, ticket));
}

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

static PyObject *completions_gathered(struct handle *handle, struct kept *kept)
{
	PyObject *list = PyList_New(0);
	for (unsigned i = 0; i < kept->count; i++) {
		PyObject *view = list ? view_new(handle, &kept->got[i]) : NULL;
		if (!view)
			sar_release(handle->s, &kept->got[i]);
		if (list && (!view || PyList_Append(list, view) < 0))
			Py_CLEAR(list);
		Py_XDECREF(view);
	}
	return list;
}

static PyObject *completions_viewed(struct handle *handle, sar_buffer *buffer)
{
	PyObject *view = view_new(handle, buffer);
	if (!view)
		sar_release(handle->s, buffer);
	return view;
}

/* Returns the result of an operation. */
static PyObject *completions_brought(struct handle *handle, sar_completion *c, struct kept *kept)
{
	switch (c->op) {
	case SAR_OP_GET:
	case SAR_OP_GET_BEGIN:
	case SAR_OP_ALLREDUCE:
		return completions_viewed(handle, &c->buffer);
	case SAR_OP_WAIT:
		if (c->value > ((struct view *)kept->view)->buffer.ready)
			((struct view *)kept->view)->buffer.ready = c->value;
		return PyLong_FromUnsignedLongLong(c->value);
	case SAR_OP_INFO:
		return python_info(&kept->info);
	case SAR_OP_GATHER:
		return completions_gathered(handle, kept);
	default:
		if (kept->group)
			return completions_of_group(handle, c, kept);
		return PyLong_FromLong(c->result);
	}
}

static PyObject *completions_failed(const sar_completion *c, const char *words,
				    const struct kept *kept)
{
	struct python_name name = kept->name;
	name.id = c->id; /* of a gather: the one that has failed */
	PyObject *nodes = PyList_New(0);
	PyObject *error = nodes ? python_error(c->result, words, &name, nodes, NULL) : NULL;
	Py_XDECREF(nodes);
	return error;
}

/* (event, id, name, size) */
static PyObject *completions_watched(const sar_completion *c, const char *words)
{
	PyObject *name = PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "surrogateescape");
	if (!name)
		return NULL;
	return Py_BuildValue("Iy#NK", c->event, (const char *)c->id.bytes, (Py_ssize_t)SAR_ID_BYTES,
			     name, (unsigned long long)c->value);
}

/* (ticket, result or exception) */
static PyObject *completions_completed(struct queue *self, sar_completion *c)
{
	PyObject *key = PyLong_FromUnsignedLongLong(c->user_data);
	PyObject *capsule = key ? PyDict_GetItem(self->kept, key) : NULL;
	struct kept *kept = capsule ? PyCapsule_GetPointer(capsule, KEPT) : NULL;
	if (!kept) {
		sar_release(self->handle->s, &c->buffer);
		Py_XDECREF(key);
		return NULL;
	}
	bool goes_on = c->flags & SAR_MORE;
	const char *words = sar_completion_detail(self->q, c);
	PyObject *result = c->result < 0 ? completions_failed(c, words, kept)
			   : goes_on	 ? completions_watched(c, words)
					 : completions_brought(self->handle, c, kept);
	if (!result) { /* of memory only: the operation's own exception says it */
		PyObject *kind, *trace;
		PyErr_Fetch(&kind, &result, &trace);
		Py_XDECREF(trace);
		if (!result)
			result = kind;
		else
			Py_XDECREF(kind);
	}
	if (!goes_on)
		PyDict_DelItem(self->kept, key);
	return Py_BuildValue("NN", key, result);
}

static int queue_take(struct queue *self, sar_completion *c, int count, PyObject *list)
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
		queue_take(self, c, n, list);
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
	queue_take(self, c, n, list);
	return list;
}

/* run(look): the result of the operation of a call, or what it or look() raises, which is called
 * several times a second. */
static PyObject *queue_run(PyObject *object, PyObject *look)
{
	struct queue *self = (struct queue *)object;
	PyObject *key = PyLong_FromLong(CALL_TICKET);
	PyObject *capsule = key ? PyDict_GetItem(self->kept, key) : NULL;
	struct kept *kept = capsule ? PyCapsule_GetPointer(capsule, KEPT) : NULL;
	Py_XDECREF(key);
	if (!kept || !self->run)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no call");
	sar_completion end = {.id = kept->name.id};
	PyObject *before = python_look(look);
	int r;
	PYTHON_WAIT_BEGIN
	r = run_close(self->run, 0, &end);
	PYTHON_WAIT_END(r < 0)
	python_look(before);
	self->run = NULL;
	self->q = NULL;
	if (r >= 0)
		return completions_brought(self->handle, &end, kept);
	struct python_name name = kept->name;
	name.id = end.id; /* of a gather: the one that has failed */
	return python_fail(r, &name);
}

/* (capacity, call): a Queue; call: for one operation of ticket 0, which run() waits for. It has no
 * descriptor. */
PyObject *completions_new(PyObject *object, PyObject *args)
{
	struct handle *handle = (struct handle *)object;
	unsigned capacity;
	int call = 0;
	if (!PyArg_ParseTuple(args, "I|p", &capacity, &call) || handle_open(handle) < 0)
		return NULL;
	struct queue *self = (struct queue *)PyType_GenericAlloc((PyTypeObject *)handle->queue, 0);
	if (!self)
		return NULL;
	self->kept = PyDict_New();
	int r = !self->kept ? -ENOMEM
		: call	    ? run_open(handle->s, capacity, &self->run, &self->q)
			    : sar_queue_open(handle->s, capacity, &self->q);
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

/* Of a call that was not run. */
static void queue_call_end(void *run)
{
	sar_completion none;
	run_close(run, -ECANCELED, &none);
}

static void queue_dealloc(PyObject *object)
{
	struct queue *self = (struct queue *)object;
	if (self->run)
		python_end(queue_call_end, self->run);
	else if (self->q)
		python_end(queue_end, self->q);
	Py_XDECREF(self->kept); /* now that nobody uses it */
	Py_XDECREF((PyObject *)self->handle);
	python_free(object);
}

static PyMethodDef queue_methods[] = {
	{"get", queue_get, METH_VARARGS, NULL},
	{"begin", queue_begin, METH_VARARGS, NULL},
	{"wait_for", queue_wait_for, METH_VARARGS, NULL},
	{"put", queue_put, METH_VARARGS, NULL},
	{"delete", queue_delete, METH_VARARGS, NULL},
	{"info", queue_info, METH_VARARGS, NULL},
	{"reduce", queue_reduce, METH_VARARGS, NULL},
	{"allreduce", queue_allreduce, METH_VARARGS, NULL},
	{"gather", queue_gather, METH_VARARGS, NULL},
	{"broadcast", queue_broadcast, METH_VARARGS, NULL},
	{"watch", queue_watch, METH_VARARGS, NULL},
	{"group_create", queue_group_create, METH_VARARGS, NULL},
	{"group_remove", queue_group_remove, METH_VARARGS, NULL},
	{"group_policy", queue_group_policy, METH_VARARGS, NULL},
	{"group_info", queue_group_info, METH_VARARGS, NULL},
	{"group_join", queue_group_join, METH_VARARGS, NULL},
	{"group_leave", queue_group_leave, METH_VARARGS, NULL},
	{"group_push", queue_group_push, METH_VARARGS, NULL},
	{"group_pull", queue_group_pull, METH_VARARGS, NULL},
	{"group_contributors", queue_group_contributors, METH_VARARGS, NULL},
	{"cancel", queue_cancel, METH_O, NULL},
	{"fd", queue_fd, METH_NOARGS, NULL},
	{"poll", queue_poll, METH_NOARGS, NULL},
	{"wait", queue_wait, METH_O, NULL},
	{"run", queue_run, METH_O, NULL},
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
