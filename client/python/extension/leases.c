/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of a Handle about how long objects live: leases, and times of single objects. A lease
 * is a number here; Python's Lease has the name of it.
 */
#include "python.h"

static PyObject *lease_done(int r, struct python_name *name)
{
	if (r < 0)
		python_fail(r, name);
	if (name)
		python_name_end(name);
	return r < 0 ? NULL : (Py_INCREF(Py_None), Py_None);
}

/* (name or None, ttl_ns): its number */
PyObject *leases_open(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	const char *name;
	long long ttl_ns;
	uint64_t lease;
	if (!PyArg_ParseTuple(args, "zL", &name, &ttl_ns) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_lease(self->s, name, ttl_ns, &lease);
	PYTHON_WAIT_END(r < 0)
	return r < 0 ? python_fail(r, NULL) : PyLong_FromUnsignedLongLong(lease);
}

PyObject *leases_end(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	unsigned long long lease;
	if (!PyArg_ParseTuple(args, "K", &lease) || handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_lease_end(self->s, lease);
	PYTHON_WAIT_END(r < 0)
	return lease_done(r, NULL);
}

/* The lease that holds all that this handle makes from then on. 0: none */
PyObject *leases_use(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	unsigned long long lease;
	if (!PyArg_ParseTuple(args, "K", &lease) || handle_open(self) < 0)
		return NULL;
	return lease_done(sar_set_lease(self->s, lease), NULL);
}

typedef int lease_call(sar *s, uint64_t lease, sar_id id);

/* (lease, name) */
static PyObject *leases_by(PyObject *object, PyObject *args, lease_call *call)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	unsigned long long lease;
	PyObject *given;
	if (!PyArg_ParseTuple(args, "KO", &lease, &given) || handle_open(self) < 0 ||
	    python_name(given, &name) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = call(self->s, lease, name.id);
	PYTHON_WAIT_END(r < 0)
	return lease_done(r, &name);
}

PyObject *leases_hold(PyObject *self, PyObject *args)
{
	return leases_by(self, args, sar_hold);
}

PyObject *leases_drop(PyObject *self, PyObject *args)
{
	return leases_by(self, args, sar_drop);
}

/* (name, ttl_ns); 0: without end */
PyObject *leases_expire(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	long long ttl_ns;
	PyObject *given;
	if (!PyArg_ParseTuple(args, "OL", &given, &ttl_ns) || handle_open(self) < 0 ||
	    python_name(given, &name) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_expire(self->s, name.id, ttl_ns);
	PYTHON_WAIT_END(r < 0)
	return lease_done(r, &name);
}
