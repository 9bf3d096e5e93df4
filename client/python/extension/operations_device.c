/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of the operations on memory of a GPU, which is named by its address: the caller keeps it
 * until they end. operations.h has the table. Nothing here knows a library with tensors.
 */
#include "operations.h"

#include "sarissa/device.h"

static void *operations_device_stream(const struct call *c)
{
	return (void *)(uintptr_t)c->device_stream;
}

/* (name, memory, nbytes, stream, timeout_ns) */
static int operations_read_device_get(struct call *c, PyObject *args)
{
	PyObject *name;
	return PyArg_ParseTuple(args, "OKKKL", &name, &c->device, &c->device_bytes,
				&c->device_stream, &c->timeout_ns)
		       ? python_name(name, &c->name)
		       : -1;
}

static int operations_wait_device_get(struct call *c)
{
	uint64_t bytes = 0;
	int r = sar_device_get(c->handle->s, c->name.id, c->device, c->device_bytes,
			       operations_device_stream(c), c->timeout_ns, &bytes);
	c->number = bytes;
	return r;
}

static PyObject *operations_result_device_get(struct call *c, const sar_completion *end)
{
	return PyLong_FromUnsignedLongLong(c->number);
}

const struct operation operation_device_get = {.read = operations_read_device_get,
					       .wait = operations_wait_device_get,
					       .result = operations_result_device_get};

/* (name, memory, nbytes, stream, meta=None) */
static int operations_read_device_put(struct call *c, PyObject *args)
{
	PyObject *name, *meta = Py_None;
	if (!PyArg_ParseTuple(args, "OKKK|O", &name, &c->device, &c->device_bytes,
			      &c->device_stream, &meta) ||
	    operations_meta_read(c, meta) < 0)
		return -1;
	return python_name(name, &c->name);
}

static int operations_wait_device_put(struct call *c)
{
	return sar_device_put(c->handle->s, c->name.id, c->name.text, c->device, c->device_bytes,
			      operations_device_stream(c), &c->options);
}

const struct operation operation_device_put = {.read = operations_read_device_put,
					       .wait = operations_wait_device_put};
