/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation: an object that is being written. It exports its memory, writable, and counts the users
 * of that memory: the object is sealed, or aborted, only when there are none. A Creation that is
 * collected before is aborted, with a warning.
 */
#include "python.h"

#include <errno.h>

struct creation {
	PyObject object;
	struct handle *handle;
	sar_buffer buffer;
	Py_ssize_t exports;
	int ended;
};

PyObject *creation_new(struct handle *handle, const sar_buffer *buffer)
{
	struct creation *self =
		(struct creation *)PyType_GenericAlloc((PyTypeObject *)handle->creation, 0);
	if (!self)
		return NULL;
	Py_INCREF(handle);
	self->handle = handle;
	self->buffer = *buffer;
	handle->views++;
	return (PyObject *)self;
}

static void creation_drop(void *what)
{
	struct creation *self = what;
	sar_abort(self->handle->s, &self->buffer);
}

/* Nobody can seal it any more. */
static void creation_give_up(struct creation *self)
{
	PyObject *kind, *value, *trace;
	PyErr_Fetch(&kind, &value, &trace);
	if (PyErr_ResourceWarning(NULL, 1,
				  "a Writer was dropped without seal() or abort(): its object is "
				  "given up") < 0)
		PyErr_WriteUnraisable(NULL);
	python_end_soon(creation_drop, self);
	self->handle->views--;
	PyErr_Restore(kind, value, trace);
}

static void creation_dealloc(PyObject *object)
{
	struct creation *self = (struct creation *)object;
	if (!self->ended && self->handle)
		creation_give_up(self);
	Py_XDECREF((PyObject *)self->handle);
	python_free(object);
}

static int creation_check(struct creation *self)
{
	if (!self->ended)
		return 0;
	PyErr_SetString(PyExc_ValueError, "the object is sealed or given up already");
	return -1;
}

static int creation_export(PyObject *object, struct python_buffer *out, int flags)
{
	struct creation *self = (struct creation *)object;
	if (self->ended) {
		PyErr_SetString(PyExc_BufferError, "the object is sealed or given up already");
		return -1;
	}
	int r = PyBuffer_FillInfo(out, object, self->buffer.data, (Py_ssize_t)self->buffer.size, 0,
				  flags);
	if (r == 0)
		self->exports++;
	return r;
}

static void creation_unexport(PyObject *object, struct python_buffer *buffer)
{
	((struct creation *)object)->exports--;
}

static PyObject *creation_publish(PyObject *object, PyObject *args)
{
	struct creation *self = (struct creation *)object;
	unsigned long long ready;
	if (!PyArg_ParseTuple(args, "K", &ready) || creation_check(self) < 0)
		return NULL;
	sar_buffer buffer = self->buffer;
	int r;
	self->exports++; /* no other thread may end it meanwhile */
	PYTHON_WAIT_BEGIN
	r = sar_publish(self->handle->s, &buffer, ready);
	PYTHON_WAIT_END(r < 0)
	self->exports--;
	if (buffer.ready > self->buffer.ready)
		self->buffer.ready = buffer.ready;
	if (r < 0)
		return python_fail(r, NULL);
	Py_RETURN_NONE;
}

/* Marks it as ended, before other threads run. */
static int creation_take(struct creation *self)
{
	if (creation_check(self) < 0)
		return -1;
	if (self->exports) {
		PyErr_SetString(PyExc_BufferError, "views of the object's data are still in use");
		return -1;
	}
	self->ended = 1;
	self->handle->views--;
	return 0;
}

static PyObject *creation_seal(PyObject *object, PyObject *none)
{
	struct creation *self = (struct creation *)object;
	if (creation_take(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_seal(self->handle->s, &self->buffer);
	PYTHON_WAIT_END(r < 0)
	if (r < 0) {
		python_fail(r, NULL);
		(r == -EINTR ? python_end_soon : python_end)(creation_drop, self);
		return NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *creation_abort(PyObject *object, PyObject *none)
{
	struct creation *self = (struct creation *)object;
	if (creation_take(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_abort(self->handle->s, &self->buffer);
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		return python_fail(r, NULL);
	Py_RETURN_NONE;
}

static PyMethodDef creation_methods[] = {
	{"publish", creation_publish, METH_VARARGS, NULL},
	{"seal", creation_seal, METH_NOARGS, NULL},
	{"abort", creation_abort, METH_NOARGS, NULL},
	{0},
};
static PyType_Slot creation_slots[] = {
	{PYTHON_GETBUFFER_SLOT, creation_export},
	{PYTHON_RELEASEBUFFER_SLOT, creation_unexport},
	{Py_tp_new, python_not_made},
	{Py_tp_dealloc, creation_dealloc},
	{Py_tp_methods, creation_methods},
	{0},
};
static PyType_Spec creation_spec = {
	.name = "sarissa._sarissa.Creation",
	.basicsize = sizeof(struct creation),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = creation_slots,
};

PyObject *creation_add(PyObject *module)
{
	return python_type(module, &creation_spec, "Creation");
}
