/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handle: one connection to the node. Calls, views and creations hold references to it, so it is
 * closed when the last of them has gone; end() only ends waits and refuses new calls.
 * A call keeps nothing of the interpreter while it waits.
 */
#include "operations.h"

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

#define HANDLE_WAIT(name)                                                                  \
	static PyObject *handle_##name(PyObject *self, PyObject *args, PyObject *keywords) \
	{                                                                                  \
		return operations_wait(&operation_##name, self, args, keywords);           \
	}
OPERATIONS_QUEUED(HANDLE_WAIT)
OPERATIONS_CALLED(HANDLE_WAIT)

#define HANDLE_METHOD(name) \
	{#name, (PyCFunction)(void (*)(void))handle_##name, METH_VARARGS | METH_KEYWORDS, NULL},
static PyMethodDef handle_methods[] = {
	OPERATIONS_QUEUED(HANDLE_METHOD) OPERATIONS_CALLED(HANDLE_METHOD)
	/* and what is no operation */
	{"check", handle_check_open, METH_NOARGS, NULL},
	{"end", handle_end, METH_NOARGS, NULL},
	{"queue", completions_new, METH_VARARGS, NULL},
	{"here", handle_here, METH_O, NULL},
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
