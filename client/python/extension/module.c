/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Python extension sarissa._sarissa: libsarissa's calls as methods that let other threads run
 * while they wait. The package's Python files make the interface from it; nobody else imports it.
 * It keeps no state of its own, so each interpreter of a process may have one.
 */
#include "python.h"

#include <errno.h>
#include <string.h>

int python_name(PyObject *given, struct python_name *out)
{
	if (python_prefix(given, out) < 0)
		return -1;
	if (!out->text || *out->text)
		return 0;
	python_name_end(out);
	PyErr_SetString(PyExc_ValueError, "a name has one character or more: name the object");
	return -1;
}

int python_prefix(PyObject *given, struct python_name *out)
{
	*out = (struct python_name){0};
	if (PyUnicode_Check(given)) {
		out->bytes = PyUnicode_AsEncodedString(given, "utf-8", "surrogateescape");
		if (!out->bytes) {
			PyErr_Clear();
			PyErr_Format(PyExc_ValueError,
				     "the name %A has no UTF-8: use other characters, or an id of "
				     "%d bytes",
				     given, SAR_ID_BYTES);
			return -1;
		}
		Py_ssize_t bytes = PyBytes_Size(out->bytes);
		out->text = PyBytes_AsString(out->bytes);
		out->id = sar_id_of(out->text, (size_t)bytes);
		if (strlen(out->text) == (size_t)bytes)
			return 0;
		python_name_end(out);
		PyErr_SetString(PyExc_ValueError, "a name has no zero bytes");
		return -1;
	}
	struct python_buffer buffer;
	if (PyObject_GetBuffer(given, &buffer, 0) == 0) {
		bool fits = buffer.bytes == SAR_ID_BYTES;
		if (fits)
			memcpy(out->id.bytes, buffer.data, SAR_ID_BYTES);
		PyBuffer_Release(&buffer);
		if (fits)
			return 0;
	}
	PyErr_Clear();
	PyErr_Format(PyExc_ValueError, "an object is named by a str, or by an id of %d bytes",
		     SAR_ID_BYTES);
	return -1;
}

void python_name_end(struct python_name *name)
{
	Py_CLEAR(name->bytes);
	name->text = NULL;
}

/* The nodes that the last failure of this thread is about. */
static PyObject *module_missing_nodes(void)
{
	uint32_t node[256];
	int count = sar_error_nodes(node, sizeof(node) / sizeof(node[0]));
	PyObject *list = PyList_New(0);
	for (int i = 0; list && i < count; i++) {
		PyObject *number = PyLong_FromUnsignedLong(node[i]);
		if (!number || PyList_Append(list, number) < 0)
			Py_CLEAR(list);
		Py_XDECREF(number);
	}
	return list;
}

PyObject *python_error(int code, const char *words, const struct python_name *name, PyObject *nodes,
		       PyObject *found)
{
	PyObject *errors = nodes ? PyImport_ImportModule("sarissa._errors") : NULL;
	PyObject *error =
		errors ? PyObject_CallMethod(errors, "error", "iyOy#y#O", -code, words, nodes,
					     name ? name->text : NULL,
					     name && name->bytes ? PyBytes_Size(name->bytes) : 0,
					     name ? (const char *)name->id.bytes : "",
					     (Py_ssize_t)(name ? SAR_ID_BYTES : 0),
					     found ? found : Py_None)
		       : NULL;
	Py_XDECREF(errors);
	return error;
}

PyObject *python_fail_with(int code, const char *words, const struct python_name *name,
			   PyObject *found)
{
	if (code == -EINTR && PyErr_Occurred()) /* what a signal's handler has raised */
		return NULL;
	PyObject *nodes = module_missing_nodes(); /* before anything else may fail */
	PyObject *error = nodes ? python_error(code, words, name, nodes, found) : NULL;
	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	Py_XDECREF(nodes);
	return NULL;
}

PyObject *python_fail(int code, const struct python_name *name)
{
	char words[1024];
	const char *detail = sar_error_detail();
	if (!*detail)
		detail = sar_strerror(code);
	PyOS_snprintf(words, sizeof(words), "%s", detail);
	return python_fail_with(code, words, name, NULL);
}

PyObject *python_type(PyObject *module, PyType_Spec *spec, const char *name)
{
	PyObject *type = PyType_FromSpec(spec);
	if (!type)
		return NULL;
	Py_INCREF(type);
	if (PyModule_AddObject(module, name, type) < 0) {
		Py_DECREF(type);
		Py_CLEAR(type);
	}
	return type;
}

PyObject *python_not_made(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	PyErr_SetString(PyExc_TypeError, "the calls of a Handle make these objects");
	return NULL;
}

void python_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyObject *module_id_of(PyObject *module, PyObject *key)
{
	struct python_buffer buffer;
	if (PyObject_GetBuffer(key, &buffer, 0) < 0)
		return NULL;
	sar_id id = sar_id_of(buffer.data, (size_t)buffer.bytes);
	PyBuffer_Release(&buffer);
	return PyBytes_FromStringAndSize((const char *)id.bytes, SAR_ID_BYTES);
}

/* The hash of the first and last KiB. */
static PyObject *module_sample(PyObject *module, PyObject *data)
{
	enum { SAMPLE_BYTES = 1024 };
	char sampled[2 * SAMPLE_BYTES];
	struct python_buffer buffer;
	if (PyObject_GetBuffer(data, &buffer, 0) < 0)
		return NULL;
	size_t bytes = (size_t)buffer.bytes, part = bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES;
	if (part > 0) {
		memcpy(sampled, buffer.data, part);
		memcpy(sampled + part, (char *)buffer.data + bytes - part, part);
	}
	PyBuffer_Release(&buffer);
	sar_id id = sar_id_of(sampled, 2 * part);
	return PyBytes_FromStringAndSize((const char *)id.bytes, SAR_ID_BYTES);
}

/* module_same(a, b): whether two memories have equal bytes. Other threads run meanwhile. */
static PyObject *module_same(PyObject *module, PyObject *args)
{
	struct python_buffer a, b;
	PyObject *first, *second;
	if (!PyArg_ParseTuple(args, "OO", &first, &second) || PyObject_GetBuffer(first, &a, 0) < 0)
		return NULL;
	if (PyObject_GetBuffer(second, &b, 0) < 0) {
		PyBuffer_Release(&a);
		return NULL;
	}
	bool equal = a.bytes == b.bytes;
	Py_BEGIN_ALLOW_THREADS
	if (equal && a.data != b.data)
		equal = memcmp(a.data, b.data, (size_t)a.bytes) == 0;
	Py_END_ALLOW_THREADS
	PyBuffer_Release(&a);
	PyBuffer_Release(&b);
	return PyBool_FromLong(equal);
}

/* Of what an object may be named by. */
static PyObject *module_id_from(PyObject *module, PyObject *given)
{
	struct python_name name;
	if (python_name(given, &name) < 0)
		return NULL;
	python_name_end(&name);
	return PyBytes_FromStringAndSize((const char *)name.id.bytes, SAR_ID_BYTES);
}

static PyMethodDef module_methods[] = {
	{"id_of", module_id_of, METH_O, NULL},
	{"id_from", module_id_from, METH_O, NULL},
	{"sample", module_sample, METH_O, NULL},
	{"same", module_same, METH_VARARGS, NULL},
	{"brief", python_brief, METH_O, NULL},
	{"dlpack_export", dlpack_export, METH_VARARGS, NULL},
	{"dlpack_import", dlpack_import, METH_O, NULL},
	{0},
};

static int module_fill(PyObject *module)
{
	if (handle_add(module) < 0 || completions_add(module) < 0 || dlpack_add(module) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "version", sar_version());
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_fill}, {0}};
static PyModuleDef module_is = {
	PyModuleDef_HEAD_INIT,
	.m_name = "sarissa._sarissa",
	.m_methods = module_methods,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__sarissa(void); /* the interpreter looks for it by this name */
PyMODINIT_FUNC PyInit__sarissa(void)
{
	return PyModuleDef_Init(&module_is);
}
