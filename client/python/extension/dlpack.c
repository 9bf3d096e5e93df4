/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DLPack both ways: a capsule from anything with the buffer protocol, and the memory of somebody
 * else's capsule as an object with the buffer protocol. What comes in is checked in full: it is
 * in the machine's memory, and its bytes follow one another.
 */
#include "dlpack.h"
#include "python.h"

#include <stdlib.h>

static const char PLAIN[] = "dltensor", VERSIONED[] = "dltensor_versioned";

/* The data that a capsule of ours keeps; its deleter frees them. */
struct exported {
	union {
		struct dlpack_managed plain;
		struct dlpack_versioned versioned;
	} as;
	struct python_buffer buffer;
	int64_t shape[]; /* then as many strides */
};

/* The thread that drops the memory need not hold the interpreter's lock. */
static void dlpack_exported_end(struct exported *self)
{
	if (Py_IsInitialized()) {
		PyGILState_STATE state = PyGILState_Ensure();
		PyBuffer_Release(&self->buffer);
		PyGILState_Release(state);
	}
	free(self);
}

static void dlpack_exported_end_plain(struct dlpack_managed *managed)
{
	dlpack_exported_end(managed->context);
}

static void dlpack_exported_end_versioned(struct dlpack_versioned *managed)
{
	dlpack_exported_end(managed->context);
}

/* Of a capsule that nobody has taken. */
static void dlpack_capsule_end(PyObject *capsule)
{
	struct exported *self = NULL;
	if (PyCapsule_IsValid(capsule, PLAIN))
		self = PyCapsule_GetPointer(capsule, PLAIN);
	else if (PyCapsule_IsValid(capsule, VERSIONED))
		self = PyCapsule_GetPointer(capsule, VERSIONED);
	if (self)
		dlpack_exported_end(self);
}

/* Elements from one to the next along each dimension. */
static void dlpack_exported_strides(int64_t *shape, Py_ssize_t dimensions, bool fortran)
{
	int64_t *strides = shape + dimensions, stride = 1;
	for (Py_ssize_t i = 0; i < dimensions; i++) {
		Py_ssize_t at = fortran ? i : dimensions - 1 - i;
		strides[at] = stride;
		stride *= shape[at] > 0 ? shape[at] : 1;
	}
}

static struct exported *dlpack_exported_new(PyObject *owner, PyObject *shape, bool fortran)
{
	Py_ssize_t dimensions = PyTuple_Size(shape);
	if (dimensions < 0)
		return NULL;
	struct exported *self =
		calloc(1, sizeof(*self) + 2 * (size_t)dimensions * sizeof(self->shape[0]));
	if (!self)
		return (struct exported *)PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < dimensions; i++)
		self->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
	if (PyErr_Occurred() || PyObject_GetBuffer(owner, &self->buffer, 0) < 0) {
		free(self);
		return NULL;
	}
	dlpack_exported_strides(self->shape, dimensions, fortran);
	return self;
}

/* dlpack_export(owner, code, bits, shape, fortran, versioned): a capsule. */
PyObject *dlpack_export(PyObject *module, PyObject *args)
{
	PyObject *owner, *shape;
	unsigned code, bits;
	int fortran, versioned;
	if (!PyArg_ParseTuple(args, "OIIO!pp", &owner, &code, &bits, &PyTuple_Type, &shape,
			      &fortran, &versioned))
		return NULL;
	struct exported *self = dlpack_exported_new(owner, shape, fortran);
	if (!self)
		return NULL;
	struct dlpack_tensor tensor = {.data = self->buffer.data,
				       .device_type = DLPACK_CPU,
				       .dimensions = (int32_t)PyTuple_Size(shape),
				       .type_code = (uint8_t)code,
				       .type_bits = (uint8_t)bits,
				       .type_lanes = 1,
				       .shape = self->shape,
				       .strides = self->shape + PyTuple_Size(shape)};
	if (versioned)
		self->as.versioned = (struct dlpack_versioned){
			.major = DLPACK_MAJOR,
			.minor = DLPACK_MINOR,
			.context = self,
			.deleter = dlpack_exported_end_versioned,
			.flags = self->buffer.readonly ? DLPACK_READ_ONLY : 0,
			.tensor = tensor};
	else
		self->as.plain = (struct dlpack_managed){
			.tensor = tensor, .context = self, .deleter = dlpack_exported_end_plain};
	PyObject *capsule = PyCapsule_New(self, versioned ? VERSIONED : PLAIN, dlpack_capsule_end);
	if (!capsule)
		dlpack_exported_end(self);
	return capsule;
}

/* Memory that came in a capsule. */
struct borrowed {
	PyObject object;
	struct dlpack_managed *plain;
	struct dlpack_versioned *versioned;
	void *data;
	Py_ssize_t bytes;
};

static void dlpack_imported_dealloc(PyObject *object)
{
	struct borrowed *self = (struct borrowed *)object;
	if (self->plain && self->plain->deleter)
		self->plain->deleter(self->plain);
	if (self->versioned && self->versioned->deleter)
		self->versioned->deleter(self->versioned);
	python_free(object);
}

static int dlpack_imported_export(PyObject *object, struct python_buffer *out, int flags)
{
	struct borrowed *self = (struct borrowed *)object;
	return PyBuffer_FillInfo(out, object, self->data, self->bytes, 1, flags);
}

static PyType_Slot borrowed_slots[] = {
	{PYTHON_GETBUFFER_SLOT, dlpack_imported_export},
	{Py_tp_dealloc, dlpack_imported_dealloc},
	{Py_tp_new, python_not_made},
	{0},
};
static PyType_Spec borrowed_spec = {
	.name = "sarissa._sarissa.Borrowed",
	.basicsize = sizeof(struct borrowed),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = borrowed_slots,
};

int dlpack_add(PyObject *module)
{
	PyObject *type = python_type(module, &borrowed_spec, "Borrowed");
	Py_XDECREF(type);
	PyObject *strided = PyErr_NewException("sarissa._sarissa.Strided", PyExc_TypeError, NULL);
	if (strided && PyModule_AddObject(module, "Strided", strided) < 0)
		Py_CLEAR(strided);
	return type && strided ? 0 : -1;
}

/* Returns the fault of a tensor, or NULL and its bytes. *strided: only that they do not follow one
 * another. */
static const char *dlpack_tensor_wrong(const struct dlpack_tensor *tensor, Py_ssize_t *bytes,
				       bool *strided)
{
	*strided = false;
	if (tensor->device_type != DLPACK_CPU && tensor->device_type != DLPACK_CUDA_HOST)
		return "this array lies in the memory of a device: bring it to the host first";
	if (tensor->type_lanes != 1 || tensor->type_bits < 8 || tensor->type_bits % 8 != 0)
		return "this array has elements that are no whole bytes: convert it";
	if (tensor->dimensions < 0 || tensor->dimensions > DLPACK_DIMENSIONS_MAX ||
	    (tensor->dimensions > 0 && !tensor->shape))
		return "this DLPack capsule makes no sense: its dimensions are wrong";
	Py_ssize_t total = tensor->type_bits / 8;
	int64_t stride = 1;
	bool follow = true;
	for (int32_t i = tensor->dimensions - 1; i >= 0; i--) {
		int64_t length = tensor->shape[i];
		if (length < 0 || __builtin_mul_overflow(total, length, &total))
			return "this DLPack capsule makes no sense: its shape is wrong";
		follow =
			follow && (!tensor->strides || length == 1 || tensor->strides[i] == stride);
		stride *= length; /* does not overflow where total does not */
	}
	*bytes = total;
	*strided = !follow && total > 0;
	return *strided ? "the bytes of this array do not follow one another: put it.contiguous()"
			: NULL;
}

static PyObject *dlpack_imported_tuple(struct borrowed *self, const struct dlpack_tensor *tensor)
{
	PyObject *shape = PyTuple_New(tensor->dimensions);
	for (int32_t i = 0; shape && i < tensor->dimensions; i++) {
		PyObject *length = PyLong_FromLongLong(tensor->shape[i]);
		if (!length || PyTuple_SetItem(shape, i, length) < 0)
			Py_CLEAR(shape);
	}
	if (!shape) {
		Py_DECREF(self);
		return NULL;
	}
	return Py_BuildValue("NIIN", self, tensor->type_code, tensor->type_bits, shape);
}

/* dlpack_import(capsule): (memory, code, bits, shape). */
PyObject *dlpack_import(PyObject *module, PyObject *capsule)
{
	bool versioned = PyCapsule_IsValid(capsule, VERSIONED);
	void *pointer = PyCapsule_GetPointer(capsule, versioned ? VERSIONED : PLAIN);
	if (!pointer)
		return NULL;
	if (versioned && ((struct dlpack_versioned *)pointer)->major != DLPACK_MAJOR) {
		PyErr_SetString(PyExc_BufferError, "this DLPack capsule is of another version");
		return NULL;
	}
	const struct dlpack_tensor *tensor = versioned
						     ? &((struct dlpack_versioned *)pointer)->tensor
						     : &((struct dlpack_managed *)pointer)->tensor;
	Py_ssize_t bytes;
	bool strided;
	const char *wrong = dlpack_tensor_wrong(tensor, &bytes, &strided);
	if (wrong) {
		PyObject *kind = strided ? PyObject_GetAttrString(module, "Strided") : NULL;
		PyErr_SetString(kind ? kind : PyExc_TypeError, wrong);
		Py_XDECREF(kind);
		return NULL;
	}
	PyObject *type = PyObject_GetAttrString(module, "Borrowed");
	struct borrowed *self =
		type ? (struct borrowed *)PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
	Py_XDECREF(type);
	if (!self || PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned"
							  : "used_dltensor") < 0) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	self->plain = versioned ? NULL : pointer;
	self->versioned = versioned ? pointer : NULL;
	self->data = (char *)tensor->data + tensor->byte_offset;
	self->bytes = bytes;
	return dlpack_imported_tuple(self, tensor);
}
