/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done with any row, and the rows of the operations on objects. handle.c and completions.c
 * call it. Other rows are in operations_directory.c and groups.c. It knows no queue of a user.
 */
#include "operations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "queue/run.h"

/* ---- any row -------------------------------------------------------------------------------- */

static void operations_end(struct call *c)
{
	python_name_end(&c->name);
	python_name_end(&c->label);
	if (c->data.owner)
		PyBuffer_Release(&c->data);
	Py_XDECREF(c->used);
	free(c->ids);
	free(c->nodes);
	free(c->got);
	free(c->ranges);
	free(c->contributors);
	free(c->members);
	free(c->pile.item);
	free(c->listed.ids);
}

void operations_free(struct call *c)
{
	operations_end(c);
	free(c);
}

struct call *operations_read(const struct operation *row, struct handle *handle, PyObject *args)
{
	if (handle_open(handle) < 0)
		return NULL;
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return (struct call *)PyErr_NoMemory();
	c->handle = handle;
	if (row->read(c, args) == 0)
		return c;
	operations_free(c);
	return NULL;
}

PyObject *operations_result(const struct operation *row, struct call *c, const sar_completion *end)
{
	if (row->result)
		return row->result(c, end);
	Py_RETURN_NONE;
}

struct python_name operations_name(const struct call *c, sar_id id)
{
	struct python_name name = c->label.text ? c->label : c->name;
	name.id = id;
	return name;
}

/* Without the interpreter's lock. */
static int operations_run(const struct operation *row, struct call *c, sar_completion *end)
{
	struct run run;
	if (row->wait)
		return row->wait(c);
	int r = run_begin(&run, c->handle->s, 1 + c->parts);
	return r < 0 ? r : run_end(&run, row->submit(&run.q, c, 0), end);
}

static PyObject *operations_failed(const struct operation *row, struct call *c, int r, sar_id id)
{
	char words[SAR_DETAIL_MAX];
	struct python_name name = operations_name(c, id);
	if (!row->partial || (r == -EINTR && PyErr_Occurred()))
		return python_fail(r, &name);
	PyOS_snprintf(words, sizeof(words), "%s",
		      *sar_error_detail() ? sar_error_detail() : sar_strerror(r));
	PyObject *found = row->result(c, NULL);
	if (found)
		python_fail_with(r, words, NULL, found);
	Py_XDECREF(found);
	return NULL;
}

PyObject *operations_wait(const struct operation *row, PyObject *object, PyObject *args,
			  PyObject *keywords)
{
	struct handle *self = (struct handle *)object;
	struct call c = {.handle = self};
	PyObject *look = keywords ? PyDict_GetItemString(keywords, "look") : NULL;
	PyObject *out = NULL;
	if (handle_open(self) < 0)
		return NULL;
	if (row->read(&c, args) == 0) {
		sar_completion end = {.id = c.name.id};
		PyObject *before = look ? python_look(look) : NULL;
		int r;
		PYTHON_WAIT_BEGIN
		r = operations_run(row, &c, &end);
		PYTHON_WAIT_END(r < 0)
		if (look)
			python_look(before);
		end.result = r;
		out = r < 0 ? operations_failed(row, &c, r, end.id)
			    : operations_result(row, &c, &end);
	}
	operations_end(&c);
	return out;
}

PyObject *operations_list(const void *items, size_t count, size_t item_bytes,
			  PyObject *(*one)(const void *item))
{
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list && i < count; i++) {
		PyObject *item = one((const char *)items + i * item_bytes);
		if (!item || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

void *operations_room(size_t count, size_t item_bytes)
{
	void *room = calloc(count + 1, item_bytes);
	return room ? room : PyErr_NoMemory();
}

/* ---- arguments ------------------------------------------------------------------------------ */

int operations_name_read(struct call *c, PyObject *args)
{
	PyObject *name;
	return PyArg_ParseTuple(args, "O", &name) ? python_name(name, &c->name) : -1;
}

int operations_time_read(struct call *c, PyObject *args)
{
	PyObject *name;
	return PyArg_ParseTuple(args, "OL", &name, &c->timeout_ns) ? python_name(name, &c->name)
								   : -1;
}

/* The numbers of a list. */
static int operations_read_nodes(struct call *c, PyObject *list)
{
	Py_ssize_t length = PyList_Size(list);
	c->nodes = length < 0 ? NULL : operations_room((size_t)length, sizeof(*c->nodes));
	if (!c->nodes)
		return -1;
	c->count = length > SAR_NODES_MAX ? SAR_NODES_MAX + 1 : (unsigned)length;
	for (unsigned i = 0; i < c->count; i++) {
		PyObject *number = PyList_GetItem(list, i);
		unsigned long node = PyLong_AsUnsignedLong(number);
		bool wrong = PyErr_Occurred() ? PyErr_ExceptionMatches(PyExc_OverflowError)
					      : node > UINT32_MAX;
		if (wrong) {
			PyErr_Clear();
			PyErr_Format(PyExc_ValueError,
				     "no node has the number %R: use those of nodes()", number);
		}
		if (PyErr_Occurred())
			return -1;
		c->nodes[i] = (uint32_t)node;
	}
	return 0;
}

static int operations_read_ids(struct call *c, PyObject *names)
{
	Py_ssize_t length = PyList_Size(names);
	c->ids = length < 0 ? NULL : operations_room((size_t)length, sizeof(*c->ids));
	if (!c->ids)
		return -1;
	c->count = length > SAR_SOURCES_MAX ? SAR_SOURCES_MAX + 1 : (unsigned)length;
	for (unsigned i = 0; i < (size_t)length; i++) {
		struct python_name name;
		PyObject *given = PyList_GetItem(names, i);
		if (!given || python_name(given, &name) < 0)
			return -1;
		c->ids[i] = name.id;
		python_name_end(&name);
	}
	return 0;
}

int operations_meta_read(struct call *c, PyObject *given)
{
	char *bytes;
	Py_ssize_t length;
	c->options = (sar_put_options){.size = sizeof(c->options)};
	if (given == Py_None)
		return 0;
	if (PyBytes_AsStringAndSize(given, &bytes, &length) < 0)
		return -1;
	c->options.meta = bytes;
	c->options.meta_bytes = (size_t)length;
	return 0;
}

/* ---- objects -------------------------------------------------------------------------------- */

static PyObject *operations_result_view(struct call *c, const sar_completion *end)
{
	sar_buffer buffer = end->buffer;
	PyObject *view = view_new(c->handle, &buffer);
	if (!view)
		sar_release(c->handle->s, &buffer);
	return view;
}

static int operations_submit_get(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_get(q, c->name.id, c->timeout_ns, ticket);
}

const struct operation operation_get = {.read = operations_time_read,
					.submit = operations_submit_get,
					.result = operations_result_view};

static int operations_submit_begin(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_get_begin(q, c->name.id, c->timeout_ns, ticket);
}

const struct operation operation_begin = {.read = operations_time_read,
					  .submit = operations_submit_begin,
					  .result = operations_result_view};

/* (view, upto, timeout_ns) */
static int operations_read_wait_for(struct call *c, PyObject *args)
{
	if (!PyArg_ParseTuple(args, "O!KL", (PyTypeObject *)c->handle->view, &c->used, &c->number,
			      &c->timeout_ns)) {
		c->used = NULL;
		return -1;
	}
	Py_INCREF(c->used);
	return 0;
}

static int operations_submit_wait_for(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_wait(q, &((struct view *)c->used)->buffer, c->number, c->timeout_ns,
			       ticket);
}

static PyObject *operations_result_wait_for(struct call *c, const sar_completion *end)
{
	struct view *view = (struct view *)c->used;
	if (end->value > view->buffer.ready)
		view->buffer.ready = end->value;
	return PyLong_FromUnsignedLongLong(end->value);
}

const struct operation operation_wait_for = {.read = operations_read_wait_for,
					     .submit = operations_submit_wait_for,
					     .result = operations_result_wait_for};

/* (name, data, label=None, meta=None): label names in lists what is put by an id. */
static int operations_read_put(struct call *c, PyObject *args)
{
	PyObject *name, *data, *label = Py_None, *meta = Py_None;
	if (!PyArg_ParseTuple(args, "OO|OO", &name, &data, &label, &meta) ||
	    operations_meta_read(c, meta) < 0 || python_name(name, &c->name) < 0)
		return -1;
	if (label != Py_None && python_name(label, &c->label) < 0)
		return -1;
	return PyObject_GetBuffer(data, &c->data, 0);
}

static int operations_submit_put(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_put_with(q, c->name.id, c->label.text ? c->label.text : c->name.text,
				   c->data.data, (uint64_t)c->data.bytes, &c->options, ticket);
}

const struct operation operation_put = {.read = operations_read_put,
					.submit = operations_submit_put};

/* (name, size, meta=None) */
static int operations_read_create(struct call *c, PyObject *args)
{
	PyObject *name, *meta = Py_None;
	if (!PyArg_ParseTuple(args, "OK|O", &name, &c->number, &meta) ||
	    operations_meta_read(c, meta) < 0)
		return -1;
	return python_name(name, &c->name);
}

static int operations_submit_create(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_create_with(q, c->name.id, c->name.text, c->number, &c->options, ticket);
}

static PyObject *operations_result_create(struct call *c, const sar_completion *end)
{
	sar_buffer buffer = end->buffer;
	PyObject *creation = creation_new(c->handle, &buffer);
	if (!creation)
		sar_abort(c->handle->s, &buffer);
	return creation;
}

const struct operation operation_create = {.read = operations_read_create,
					   .submit = operations_submit_create,
					   .result = operations_result_create};

static int operations_submit_delete(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_delete(q, c->name.id, ticket);
}

const struct operation operation_delete = {.read = operations_name_read,
					   .submit = operations_submit_delete};

/* (names, timeout_ns) */
static int operations_read_gather(struct call *c, PyObject *args)
{
	PyObject *names;
	if (!PyArg_ParseTuple(args, "OL", &names, &c->timeout_ns) ||
	    operations_read_ids(c, names) < 0)
		return -1;
	c->parts = c->count;
	c->got = operations_room(c->count, sizeof(*c->got));
	return c->got ? 0 : -1;
}

static int operations_submit_gather(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_gather(q, c->ids, c->count, c->timeout_ns, c->got, ticket);
}

static PyObject *operations_result_gather(struct call *c, const sar_completion *end)
{
	PyObject *list = PyList_New(0);
	for (unsigned i = 0; i < c->count; i++) {
		PyObject *view = list ? view_new(c->handle, &c->got[i]) : NULL;
		if (!view)
			sar_release(c->handle->s, &c->got[i]);
		if (list && (!view || PyList_Append(list, view) < 0))
			Py_CLEAR(list);
		Py_XDECREF(view);
	}
	return list;
}

const struct operation operation_gather = {.read = operations_read_gather,
					   .submit = operations_submit_gather,
					   .result = operations_result_gather};

/* (name, nodes, timeout_ns) */
static int operations_read_broadcast(struct call *c, PyObject *args)
{
	PyObject *name, *nodes;
	if (!PyArg_ParseTuple(args, "OOL", &name, &nodes, &c->timeout_ns) ||
	    python_name(name, &c->name) < 0)
		return -1;
	return operations_read_nodes(c, nodes);
}

static int operations_submit_broadcast(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_broadcast(q, c->name.id, c->nodes, c->count, c->timeout_ns, ticket);
}

const struct operation operation_broadcast = {.read = operations_read_broadcast,
					      .submit = operations_submit_broadcast};

int operations_prefix_read(struct call *c, PyObject *args)
{
	PyObject *prefix;
	if (!PyArg_ParseTuple(args, "O", &prefix))
		return -1;
	if (PyUnicode_Check(prefix))
		return python_prefix(prefix, &c->name);
	PyErr_SetString(PyExc_TypeError,
			"names are listed by what they begin with, a str: info() tells of one id");
	return -1;
}

static int operations_submit_watch(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_watch(q, c->name.text, ticket);
}

/* (event, id, name, size) */
static PyObject *operations_result_watch(struct call *c, const sar_completion *end)
{
	PyObject *name =
		PyUnicode_DecodeUTF8(c->said, (Py_ssize_t)strlen(c->said), "surrogateescape");
	if (!name)
		return NULL;
	return Py_BuildValue("Iy#NK", end->event, (const char *)end->id.bytes,
			     (Py_ssize_t)SAR_ID_BYTES, name, (unsigned long long)end->value);
}

/* A result for each event until it is cancelled. */
const struct operation operation_watch = {.read = operations_prefix_read,
					  .submit = operations_submit_watch,
					  .result = operations_result_watch};

/* ---- reduces -------------------------------------------------------------------------------- */

/* (target, sources, op, dtype, num, flags, timeout_ns, min, deadline_ns) */
static int operations_read_reduce(struct call *c, PyObject *args)
{
	PyObject *target, *sources;
	long long deadline_ns;
	sar_reduction *how = &c->how;
	if (!PyArg_ParseTuple(args, "OOIIIILIL", &target, &sources, &how->op, &how->dtype,
			      &how->num, &how->flags, &c->timeout_ns, &how->min, &deadline_ns) ||
	    operations_read_ids(c, sources) < 0)
		return -1;
	how->deadline_ns = deadline_ns;
	c->parts = 2;
	return python_name(target, &c->name);
}

static int operations_submit_reduce(sar_queue *q, struct call *c, uint64_t ticket)
{
	return submit_reduce_begin(q, c->name.id, c->name.text, c->ids, c->count, &c->how,
				   c->timeout_ns, ticket);
}

const struct operation operation_reduce = {.read = operations_read_reduce,
					   .submit = operations_submit_reduce};

static int operations_submit_allreduce(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_allreduce(q, c->name.id, c->name.text, c->ids, c->count, &c->how,
				    c->timeout_ns, ticket);
}

const struct operation operation_allreduce = {.read = operations_read_reduce,
					      .submit = operations_submit_allreduce,
					      .result = operations_result_view};

static int operations_read_listed(struct call *c)
{
	c->listed.room = SAR_SOURCES_MAX;
	c->listed.ids = operations_room(SAR_SOURCES_MAX, sizeof(*c->listed.ids));
	return c->listed.ids ? 0 : -1;
}

static PyObject *operations_result_id(const void *id)
{
	return PyBytes_FromStringAndSize(id, SAR_ID_BYTES);
}

static PyObject *operations_result_sources(struct call *c, const sar_completion *end)
{
	size_t count = end->result < SAR_SOURCES_MAX ? (size_t)end->result : SAR_SOURCES_MAX;
	return operations_list(c->listed.ids, count, sizeof(sar_id), operations_result_id);
}

/* (target, timeout_ns) */
static int operations_read_sources(struct call *c, PyObject *args)
{
	return operations_time_read(c, args) < 0 ? -1 : operations_read_listed(c);
}

static int operations_submit_sources(sar_queue *q, struct call *c, uint64_t ticket)
{
	return submit_reduce_list(q, c->name.id, false, c->timeout_ns, &c->listed, ticket);
}

const struct operation operation_reduce_sources = {.read = operations_read_sources,
						   .submit = operations_submit_sources,
						   .result = operations_result_sources};

/* (target) */
static int operations_read_progress(struct call *c, PyObject *args)
{
	return operations_name_read(c, args) < 0 ? -1 : operations_read_listed(c);
}

static int operations_submit_progress(sar_queue *q, struct call *c, uint64_t ticket)
{
	return submit_reduce_list(q, c->name.id, true, 0, &c->listed, ticket);
}

static PyObject *operations_result_progress(struct call *c, const sar_completion *end)
{
	PyObject *list = operations_result_sources(c, end);
	return list ? Py_BuildValue("NI", list, c->listed.present) : NULL;
}

const struct operation operation_reduce_progress = {.read = operations_read_progress,
						    .submit = operations_submit_progress,
						    .result = operations_result_progress};
