/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the Python extension share: the limited API of Python 3.9, the buffer protocol,
 * names of objects, errors. Only these files include it.
 *
 * One binary serves every Python from 3.9 on. The limited API has the buffer protocol from 3.11 on
 * only, but the interpreters have had the same functions, slots and struct since 3.9 (3.11 made
 * them stable as they were), so they are declared here.
 */
#ifndef SARISSA_CLIENT_PYTHON_EXTENSION_PYTHON_H
#define SARISSA_CLIENT_PYTHON_EXTENSION_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <stdbool.h>
#include "link/interrupt.h"
#include "sarissa/sarissa.h"

enum { PYTHON_GETBUFFER_SLOT = 1, PYTHON_RELEASEBUFFER_SLOT = 2 };
enum { PYTHON_BUFFER_WRITABLE = 1, PYTHON_BUFFER_FORMAT = 4, PYTHON_BUFFER_SHAPE = 8 };

/* Py_buffer */
struct python_buffer {
	void *data;
	PyObject *owner;
	Py_ssize_t bytes;
	Py_ssize_t item_bytes;
	int readonly;
	int dimensions;
	char *format;
	Py_ssize_t *shape;
	Py_ssize_t *strides;
	Py_ssize_t *suboffsets;
	void *internal;
};

extern int PyObject_GetBuffer(PyObject *object, struct python_buffer *out, int flags);
extern void PyBuffer_Release(struct python_buffer *buffer);
extern int PyBuffer_FillInfo(struct python_buffer *out, PyObject *owner, void *data,
			     Py_ssize_t bytes, int readonly, int flags);

/* The name that a caller gives for an object. text is NULL when it is an id. */
struct python_name {
	sar_id id;
	PyObject *bytes; /* what text points into */
	const char *text;
};

/* From a str or 16 bytes. 0, or -1 with an exception. python_name_end when it is used no more. */
int python_name(PyObject *given, struct python_name *out);
/* Like python_name(); a str may be empty. */
int python_prefix(PyObject *given, struct python_name *out);
void python_name_end(struct python_name *name);

/* Raises the exception of a negative errno with the words of this thread's last failure; name, or
 * NULL: what the object is called where the words have its id only. Returns NULL. */
PyObject *python_fail(int code, const struct python_name *name);
/* The exception itself, a new reference, with words of elsewhere. nodes: a list of numbers. found:
 * what it keeps as `found`, or NULL. */
PyObject *python_error(int code, const char *words, const struct python_name *name, PyObject *nodes,
		       PyObject *found);
/* python_fail with words of elsewhere. found: what the exception keeps as `found`, or NULL. */
PyObject *python_fail_with(int code, const char *words, const struct python_name *name,
			   PyObject *found);

/* Makes a type and adds it to the module. A new reference. */
PyObject *python_type(PyObject *module, PyType_Spec *spec, const char *name);
/* The tp_new of types that only our C makes: TypeError. */
PyObject *python_not_made(PyTypeObject *type, PyObject *args, PyObject *keywords);
/* Ends an object of a type made from a spec. */
void python_free(PyObject *self);

/* wait.c: around calls of C that may wait, instead of Py_BEGIN_ALLOW_THREADS and its end. Other
 * threads of the interpreter run meanwhile. In the main thread the call ends with -EINTR when a
 * signal's handler raises; then python_fail keeps that exception. When the call has been done all
 * the same (not failed), the exception comes a little later. */
#define PYTHON_WAIT_BEGIN                          \
	{                                          \
		struct python_wait python_wait_is; \
		python_wait_begin(&python_wait_is);
#define PYTHON_WAIT_END(failed)                   \
	python_wait_end(&python_wait_is, failed); \
	}
struct python_wait {
	PyThreadState *thread;
	struct interrupt before;
};
/* A function that calls of this thread call several times a second, or NULL: when it raises, they
 * end as with a signal's handler. Returns what it was. */
PyObject *python_look(PyObject *look);
void python_wait_begin(struct python_wait *wait);
void python_wait_end(struct python_wait *wait, bool failed);
/* Calls end(what) for an object that goes, without the interpreter's lock. An exception that is
 * under way stays; that of a signal's handler comes a little later. */
void python_end(void (*end)(void *what), void *what);
/* Like python_end(), for an end that the node can make in its own time: waits half a second at
 * most. */
void python_end_soon(void (*end)(void *what), void *what);
/* brief(call): calls it. Its waits take half a second together, and then end with EINTR. */
PyObject *python_brief(PyObject *module, PyObject *call);

/* handle.c */
struct handle {
	PyObject object;
	sar *s;
	int ended; /* its node is closed: no new calls */
	PyObject *view, *private_view, *creation, *queue, *member; /* the types of what it makes */
	Py_ssize_t views; /* and creations that have not ended */
};
int handle_add(PyObject *module);
/* Raises Closed when the node is closed: -1. */
int handle_open(const struct handle *self);
/* groups.c: the type GroupMember. */
PyObject *groups_add(PyObject *module);

/* completions.c */
int completions_add(PyObject *module);
PyObject *completions_new(PyObject *handle, PyObject *args);

/* view.c, creation.c */
struct view {
	PyObject object;
	struct handle *handle;
	sar_buffer buffer;
};
PyObject *view_add(PyObject *module);
PyObject *view_new(struct handle *handle, const sar_buffer *buffer);
PyObject *view_private_add(PyObject *module);
PyObject *creation_add(PyObject *module);
PyObject *creation_new(struct handle *handle, const sar_buffer *buffer);

/* dlpack.c */
PyObject *dlpack_export(PyObject *module, PyObject *args);
PyObject *dlpack_import(PyObject *module, PyObject *capsule);
int dlpack_add(PyObject *module);

#endif
