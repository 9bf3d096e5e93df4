/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of the operations that bring bytes into memory of Python, which is kept until they end.
 * operations.h has the table. Nothing here knows where the bytes come from.
 */
#include "operations.h"

static PyObject *operations_result_size(struct call *c, const sar_completion *end)
{
	return PyLong_FromUnsignedLongLong(end->value);
}

static int operations_ranges_memory(struct call *c, PyObject *name, PyObject *memory)
{
	if (python_name(name, &c->name) < 0)
		return -1;
	return PyObject_GetBuffer(memory, &c->data, PYTHON_BUFFER_WRITABLE);
}

/* (name, memory, timeout_ns) */
static int operations_read_get_into(struct call *c, PyObject *args)
{
	PyObject *name, *memory;
	return PyArg_ParseTuple(args, "OOL", &name, &memory, &c->timeout_ns)
		       ? operations_ranges_memory(c, name, memory)
		       : -1;
}

static int operations_submit_get_into(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_get_into(q, c->name.id, c->data.data, (uint64_t)c->data.bytes,
				   c->timeout_ns, ticket);
}

const struct operation operation_get_into = {.read = operations_read_get_into,
					     .submit = operations_submit_get_into,
					     .result = operations_result_size};

/* Lets the ranges of a list lie in the memory one after the other. */
static int operations_ranges_of(struct call *c, PyObject *list)
{
	Py_ssize_t count = PyList_Size(list);
	uint64_t room = (uint64_t)c->data.bytes;
	uint8_t *where = c->data.data;
	c->ranges = count < 0 ? NULL : operations_room((size_t)count, sizeof(*c->ranges));
	if (!c->ranges)
		return -1;
	for (Py_ssize_t i = 0; i < count; i++) {
		unsigned long long offset, bytes;
		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "KK", &offset, &bytes))
			return -1;
		if (bytes > room) {
			PyErr_SetString(PyExc_ValueError, "the memory has no room for the ranges");
			return -1;
		}
		c->ranges[i] = (sar_range){offset, bytes, where};
		where += bytes;
		room -= bytes;
	}
	c->count = count > SAR_RANGES_MAX ? SAR_RANGES_MAX + 1 : (unsigned)count;
	return 0;
}

/* (name, memory, [(offset, bytes)...], timeout_ns) */
static int operations_read_get_ranges(struct call *c, PyObject *args)
{
	PyObject *name, *memory, *list;
	if (!PyArg_ParseTuple(args, "OOO!L", &name, &memory, &PyList_Type, &list, &c->timeout_ns) ||
	    operations_ranges_memory(c, name, memory) < 0)
		return -1;
	return operations_ranges_of(c, list);
}

static int operations_submit_get_ranges(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_get_ranges(q, c->name.id, c->ranges, c->count, c->timeout_ns, ticket);
}

const struct operation operation_get_ranges = {.read = operations_read_get_ranges,
					       .submit = operations_submit_get_ranges,
					       .result = operations_result_size};
