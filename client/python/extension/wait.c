/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of C that may wait. The interpreter runs on, and the main thread, in which Python runs the
 * handlers of signals, looks at them several times a second (interrupt.h). So does what a caller of
 * Python wants to do meanwhile, in any thread (python_look).
 */
#include "python.h"

#include <stdlib.h>
#include <unistd.h>
#include "queue/deadline.h"

enum { WAIT_BRIEF_NS = 500000000 };

static _Thread_local int64_t wait_until_ns; /* 0: without end */
static _Thread_local PyObject *wait_look;   /* called meanwhile, or NULL */

PyObject *python_look(PyObject *look)
{
	PyObject *before = wait_look;
	wait_look = look;
	return before;
}

static int wait_looked(void)
{
	PyObject *look = python_look(NULL); /* it may wait itself */
	PyObject *done = look ? PyObject_CallFunctionObjArgs(look, NULL) : NULL;
	python_look(look);
	Py_XDECREF(done);
	return look && !done ? -1 : 0;
}

static bool wait_main(void)
{
	return gettid() == getpid();
}

/* True: a handler or the look has raised, or the time of python_brief is over. */
static bool wait_asked(void *arg)
{
	struct python_wait *wait = arg;
	if (wait_until_ns && deadline_now() >= wait_until_ns)
		return true;
	if (!wait_main() && !wait_look)
		return false;
	PyEval_RestoreThread(wait->thread);
	int r = wait_main() ? PyErr_CheckSignals() : 0;
	if (r == 0)
		r = wait_looked();
	wait->thread = PyEval_SaveThread();
	return r < 0;
}

void python_wait_begin(struct python_wait *wait)
{
	struct interrupt looks = {.asked = wait_asked, .arg = wait};
	wait->before = interrupt_set(wait_until_ns || wait_look || wait_main() ? &looks : NULL);
	wait->thread = PyEval_SaveThread();
}

struct wait_raised {
	PyObject *kind, *value, *trace;
};

static int wait_raise(void *arg)
{
	struct wait_raised *raised = arg;
	PyErr_Restore(raised->kind, raised->value, raised->trace);
	free(raised);
	return -1;
}

/* The exception that is set is raised between two steps of Python's, as a handler's would be. */
static void wait_raise_later(void)
{
	struct wait_raised *raised = malloc(sizeof(*raised));
	if (!raised) {
		PyErr_WriteUnraisable(NULL);
		return;
	}
	PyErr_Fetch(&raised->kind, &raised->value, &raised->trace);
	if (Py_AddPendingCall(wait_raise, raised) == 0)
		return;
	wait_raise(raised);
	PyErr_WriteUnraisable(NULL);
}

void python_wait_end(struct python_wait *wait, bool failed)
{
	PyEval_RestoreThread(wait->thread);
	interrupt_set(&wait->before);
	if (!failed && PyErr_Occurred())
		wait_raise_later();
}

static int64_t wait_brief_begin(void)
{
	int64_t before = wait_until_ns;
	if (!before)
		wait_until_ns = deadline_after(WAIT_BRIEF_NS);
	return before;
}

PyObject *python_brief(PyObject *module, PyObject *call)
{
	int64_t before = wait_brief_begin();
	PyObject *result = PyObject_CallFunctionObjArgs(call, NULL);
	wait_until_ns = before;
	return result;
}

void python_end_soon(void (*end)(void *what), void *what)
{
	int64_t before = wait_brief_begin();
	python_end(end, what);
	wait_until_ns = before;
}

void python_end(void (*end)(void *what), void *what)
{
	PyObject *kind, *value, *trace;
	PyErr_Fetch(&kind, &value, &trace);
	PYTHON_WAIT_BEGIN
	end(what);
	PYTHON_WAIT_END(false) /* nobody could catch it here */
	PyErr_Restore(kind, value, trace);
}
