/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * View: an object that is read. It exports the node's memory, read-only, by the buffer protocol;
 * the object is pinned until the view and all that was made from it (memoryviews, arrays) have
 * gone. A handle makes it; after that it needs no open node.
 *
 * Private: the same memory, writable for this process alone. It keeps its view.
 */
#include "python.h"

#include <errno.h>
#include <sys/mman.h>
#include "api/get.h"

struct private_view {
	PyObject object;
	struct view *of;
	struct map_range range;
};

PyObject *view_new(struct handle *handle, const sar_buffer *buffer)
{
	struct view *self = (struct view *)PyType_GenericAlloc((PyTypeObject *)handle->view, 0);
	if (!self)
		return NULL;
	Py_INCREF(handle);
	self->handle = handle;
	self->buffer = *buffer;
	handle->views++;
	return (PyObject *)self;
}

static void view_dealloc(PyObject *object)
{
	struct view *self = (struct view *)object;
	if (self->handle) {
		sar_release(self->handle->s, &self->buffer);
		self->handle->views--;
	}
	Py_XDECREF((PyObject *)self->handle);
	python_free(object);
}

static int view_export(PyObject *object, struct python_buffer *out, int flags)
{
	struct view *self = (struct view *)object;
	return PyBuffer_FillInfo(out, object, self->buffer.data, (Py_ssize_t)self->buffer.size, 1,
				 flags);
}

static PyObject *view_ready(PyObject *object, void *none)
{
	return PyLong_FromUnsignedLongLong(((struct view *)object)->buffer.ready);
}

static PyObject *view_bytes(PyObject *object, void *none)
{
	return PyLong_FromUnsignedLongLong(((struct view *)object)->buffer.size);
}

static PyObject *view_address(PyObject *object, void *none)
{
	return PyLong_FromVoidPtr(((struct view *)object)->buffer.data);
}

static PyObject *view_handle(PyObject *object, void *none)
{
	PyObject *handle = (PyObject *)((struct view *)object)->handle;
	Py_INCREF(handle);
	return handle;
}

/* The metadata of the object; b"": it has none. */
static PyObject *view_meta(PyObject *object, void *none)
{
	const sar_buffer *b = &((struct view *)object)->buffer;
	return PyBytes_FromStringAndSize(b->meta, (Py_ssize_t)b->meta_bytes);
}

static int view_private_export(PyObject *object, struct python_buffer *out, int flags)
{
	struct private_view *self = (struct private_view *)object;
	return PyBuffer_FillInfo(out, object, self->range.data, (Py_ssize_t)self->of->buffer.size,
				 0, flags);
}

static void view_private_dealloc(PyObject *object)
{
	struct private_view *self = (struct private_view *)object;
	if (self->range.base)
		munmap(self->range.base, self->range.bytes);
	Py_XDECREF((PyObject *)self->of);
	python_free(object);
}

/* private(): a Private, or None: the bytes have to be copied. */
static PyObject *view_private(PyObject *object, PyObject *none)
{
	struct view *self = (struct view *)object;
	struct map_range range;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = get_private(self->handle->s, &self->buffer, &range);
	Py_END_ALLOW_THREADS
	if (r < 0)
		Py_RETURN_NONE;
	struct private_view *made = (struct private_view *)PyType_GenericAlloc(
		(PyTypeObject *)self->handle->private_view, 0);
	if (!made) {
		munmap(range.base, range.bytes);
		return NULL;
	}
	Py_INCREF(object);
	made->of = self;
	made->range = range;
	return (PyObject *)made;
}

static PyMethodDef view_methods[] = {{"private", view_private, METH_NOARGS, NULL}, {0}};
static PyGetSetDef view_fields[] = {
	{"ready", view_ready, NULL, NULL, NULL},     {"nbytes", view_bytes, NULL, NULL, NULL},
	{"address", view_address, NULL, NULL, NULL}, {"handle", view_handle, NULL, NULL, NULL},
	{"meta", view_meta, NULL, NULL, NULL},	     {0},
};
static PyType_Slot view_slots[] = {
	{PYTHON_GETBUFFER_SLOT, view_export}, {Py_tp_dealloc, view_dealloc},
	{Py_tp_methods, view_methods},	      {Py_tp_getset, view_fields},
	{Py_tp_new, python_not_made},	      {0},
};
static PyType_Spec view_spec = {
	.name = "sarissa._sarissa.View",
	.basicsize = sizeof(struct view),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = view_slots,
};

PyObject *view_add(PyObject *module)
{
	return python_type(module, &view_spec, "View");
}

static PyType_Slot private_slots[] = {
	{PYTHON_GETBUFFER_SLOT, view_private_export},
	{Py_tp_dealloc, view_private_dealloc},
	{Py_tp_new, python_not_made},
	{0},
};
static PyType_Spec private_spec = {
	.name = "sarissa._sarissa.Private",
	.basicsize = sizeof(struct private_view),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = private_slots,
};

PyObject *view_private_add(PyObject *module)
{
	return python_type(module, &private_spec, "Private");
}
