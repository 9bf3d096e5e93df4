/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handle: one connection to the node. Calls, views and creations hold references to it, so it is
 * closed when the last of them has gone; end() only ends waits and refuses new calls.
 * A call keeps nothing of the interpreter while it waits.
 */
#include "python.h"

#include <errno.h>
#include "api/get.h"
#include "link/handle.h"

int handle_open(const struct handle *self)
{
	if (!self->ended)
		return 0;
	python_fail_with(-ESHUTDOWN, "the node is closed: open another one", NULL, NULL);
	return -1;
}

static PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	const char *path;
	if (!PyArg_ParseTuple(args, "z", &path))
		return NULL;
	struct handle *self = (struct handle *)PyType_GenericAlloc(type, 0);
	if (!self)
		return NULL;
	self->view = PyObject_GetAttrString((PyObject *)type, "_view");
	self->private_view = PyObject_GetAttrString((PyObject *)type, "_private");
	self->creation = PyObject_GetAttrString((PyObject *)type, "_creation");
	self->queue = PyObject_GetAttrString((PyObject *)type, "_queue");
	self->member = PyObject_GetAttrString((PyObject *)type, "_member");
	if (!self->view || !self->private_view || !self->creation || !self->queue ||
	    !self->member) {
		Py_DECREF(self);
		return NULL;
	}
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_open(path, &self->s);
	PYTHON_WAIT_END(r < 0)
	if (r < 0) {
		python_fail(r, NULL);
		Py_CLEAR(self);
	}
	return (PyObject *)self;
}

static void handle_close(void *s)
{
	sar_close(s);
}

static void handle_dealloc(PyObject *object)
{
	struct handle *self = (struct handle *)object;
	if (self->s)
		python_end(handle_close, self->s);
	Py_XDECREF(self->view);
	Py_XDECREF(self->private_view);
	Py_XDECREF(self->creation);
	Py_XDECREF(self->queue);
	Py_XDECREF(self->member);
	python_free(object);
}

static PyObject *handle_end(PyObject *object, PyObject *none)
{
	struct handle *self = (struct handle *)object;
	self->ended = 1;
	Py_BEGIN_ALLOW_THREADS
	sar_end_waits(self->s);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

/* here(name): the view of an object that is complete on this node, or None. TooManyViews also when
 * it is elsewhere, as an operation of a queue would wait for a release. No system call. */
static PyObject *handle_here(PyObject *object, PyObject *given)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	sar_buffer buffer = {0};
	if (handle_open(self) < 0 || python_name(given, &name) < 0)
		return NULL;
	int r = handle_check(self->s);
	uint32_t pin;
	if (r == 0)
		r = get_here(self->s, &name.id, &buffer);
	if (r == 0 && (r = handle_take_pin(self->s, &pin)) == 0) /* it will need one */
		pins_give(&self->s->pins, pin);
	if (r < 0)
		python_fail(r, &name);
	python_name_end(&name);
	if (r != 1)
		return r < 0 ? NULL : (Py_INCREF(Py_None), Py_None);
	PyObject *view = view_new(self, &buffer);
	if (!view)
		sar_release(self->s, &buffer);
	return view;
}

static PyObject *handle_check_open(PyObject *object, PyObject *none)
{
	if (handle_open((struct handle *)object) < 0)
		return NULL;
	Py_RETURN_NONE;
}

int python_meta(PyObject *given, sar_put_options *out)
{
	char *bytes;
	Py_ssize_t length;
	*out = (sar_put_options){.size = sizeof(*out)};
	if (given == Py_None)
		return 0;
	if (PyBytes_AsStringAndSize(given, &bytes, &length) < 0)
		return -1;
	out->meta = bytes;
	out->meta_bytes = (size_t)length;
	return 0;
}

/* put(name, data, label=None, meta=None): label names in lists what is put by an id; meta are the
 * bytes of its metadata. */
static PyObject *handle_put(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct python_name name, label = {0};
	struct python_buffer data;
	PyObject *given, *source, *labelled = Py_None, *meta = Py_None;
	sar_put_options options;
	if (!PyArg_ParseTuple(args, "OO|OO", &given, &source, &labelled, &meta) ||
	    handle_open(self) < 0 || python_meta(meta, &options) < 0 ||
	    python_name(given, &name) < 0)
		return NULL;
	int r = labelled == Py_None ? 0 : python_name(labelled, &label);
	if (r == 0 && PyObject_GetBuffer(source, &data, 0) == 0) {
		PYTHON_WAIT_BEGIN
		r = sar_put_with(self->s, name.id, label.text ? label.text : name.text, data.data,
				 (uint64_t)data.bytes, &options);
		PYTHON_WAIT_END(r < 0)
		if (r < 0)
			python_fail(r, label.text ? &label : &name);
		PyBuffer_Release(&data);
	}
	python_name_end(&label);
	python_name_end(&name);
	return PyErr_Occurred() ? NULL : (Py_INCREF(Py_None), Py_None);
}

/* create(name, size, meta=None) */
static PyObject *handle_create(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	sar_buffer buffer = {0};
	PyObject *given, *creation = NULL, *meta = Py_None;
	sar_put_options options;
	unsigned long long size;
	if (!PyArg_ParseTuple(args, "OK|O", &given, &size, &meta) || handle_open(self) < 0 ||
	    python_meta(meta, &options) < 0 || python_name(given, &name) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_create_with(self->s, name.id, name.text, size, &options, &buffer);
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		python_fail(r, &name);
	else if (!(creation = creation_new(self, &buffer)))
		sar_abort(self->s, &buffer);
	python_name_end(&name);
	return creation;
}

static PyObject *handle_delete(PyObject *object, PyObject *given)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	if (handle_open(self) < 0 || python_name(given, &name) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_delete(self->s, name.id);
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		python_fail(r, &name);
	python_name_end(&name);
	return r < 0 ? NULL : (Py_INCREF(Py_None), Py_None);
}

static PyMethodDef handle_methods[] = {
	{"check", handle_check_open, METH_NOARGS, NULL},
	{"end", handle_end, METH_NOARGS, NULL},
	{"queue", completions_new, METH_VARARGS, NULL},
	{"here", handle_here, METH_O, NULL},
	{"put", handle_put, METH_VARARGS, NULL},
	{"create", handle_create, METH_VARARGS, NULL},
	{"delete", handle_delete, METH_O, NULL},
	{"reduce", handle_reduce, METH_VARARGS, NULL},
	{"reduce_sources", handle_reduce_sources, METH_VARARGS, NULL},
	{"reduce_progress", handle_reduce_progress, METH_VARARGS, NULL},
	{"info", handle_info, METH_O, NULL},
	{"list", handle_list, METH_O, NULL},
	{"lease", leases_open, METH_VARARGS, NULL},
	{"lease_end", leases_end, METH_VARARGS, NULL},
	{"use_lease", leases_use, METH_VARARGS, NULL},
	{"hold", leases_hold, METH_VARARGS, NULL},
	{"drop", leases_drop, METH_VARARGS, NULL},
	{"expire", leases_expire, METH_VARARGS, NULL},
	{"group_create", groups_create, METH_VARARGS, NULL},
	{"group_remove", groups_remove, METH_VARARGS, NULL},
	{"group_policy", groups_policy, METH_VARARGS, NULL},
	{"group_info", groups_info, METH_VARARGS, NULL},
	{"group_join", groups_join, METH_VARARGS, NULL},
	{"policy_explain", groups_explain, METH_VARARGS, NULL},
	{"nodes", handle_nodes, METH_NOARGS, NULL},
	{"waits_for", handle_waits_for, METH_O, NULL},
	{0},
};

static PyObject *handle_views(PyObject *object, void *none)
{
	return PyLong_FromSsize_t(((struct handle *)object)->views);
}

static PyGetSetDef handle_fields[] = {{"views", handle_views, NULL, NULL, NULL}, {0}};

static PyType_Slot handle_slots[] = {
	{Py_tp_new, handle_new},
	{Py_tp_dealloc, handle_dealloc},
	{Py_tp_methods, handle_methods},
	{Py_tp_getset, handle_fields},
	{0},
};
static PyType_Spec handle_spec = {
	.name = "sarissa._sarissa.Handle",
	.basicsize = sizeof(struct handle),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = handle_slots,
};

int handle_add(PyObject *module)
{
	PyObject *type = python_type(module, &handle_spec, "Handle");
	PyObject *view = view_add(module), *creation = creation_add(module);
	PyObject *member = groups_add(module), *private_view = view_private_add(module);
	int r = type && view && creation && member && private_view &&
				PyObject_SetAttrString(type, "_member", member) == 0 &&
				PyObject_SetAttrString(type, "_view", view) == 0 &&
				PyObject_SetAttrString(type, "_private", private_view) == 0 &&
				PyObject_SetAttrString(type, "_creation", creation) == 0
			? 0
			: -1;
	Py_XDECREF(type);
	Py_XDECREF(view);
	Py_XDECREF(private_view);
	Py_XDECREF(creation);
	Py_XDECREF(member);
	return r;
}
