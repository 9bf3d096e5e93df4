/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of a Handle that answer with numbers and lists: reduces, the directory, the nodes.
 * What C tells in a callback is copied there, and made Python's when the call has ended.
 */
#include "python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static PyObject *python_id(const sar_id *id)
{
	return PyBytes_FromStringAndSize((const char *)id->bytes, SAR_ID_BYTES);
}

static PyObject *python_ids(const sar_id *id, size_t count)
{
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list && i < count; i++) {
		PyObject *one = python_id(&id[i]);
		if (!one || PyList_Append(list, one) < 0)
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

sar_id *handle_ids(PyObject *names, Py_ssize_t *count)
{
	*count = PyList_Size(names);
	if (*count < 0)
		return NULL;
	sar_id *ids = malloc(sizeof(*ids) * ((size_t)*count + 1));
	if (!ids)
		return (sar_id *)PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < *count; i++) {
		struct python_name name;
		PyObject *given = PyList_GetItem(names, i);
		if (!given || python_name(given, &name) < 0) {
			free(ids);
			return NULL;
		}
		ids[i] = name.id;
		python_name_end(&name);
	}
	return ids;
}

int reduce_request(PyObject *args, struct reduce_request *out)
{
	PyObject *given, *sources;
	Py_ssize_t count;
	long long deadline_ns;
	*out = (struct reduce_request){0};
	if (!PyArg_ParseTuple(args, "OOIIIILIL", &given, &sources, &out->how.op, &out->how.dtype,
			      &out->how.num, &out->how.flags, &out->timeout_ns, &out->how.min,
			      &deadline_ns))
		return -1;
	out->how.deadline_ns = deadline_ns;
	out->ids = handle_ids(sources, &count);
	if (!out->ids)
		return -1;
	out->count = count > SAR_SOURCES_MAX ? SAR_SOURCES_MAX + 1 : (unsigned)count;
	if (python_name(given, &out->target) == 0)
		return 0;
	free(out->ids);
	return -1;
}

void reduce_request_end(struct reduce_request *request)
{
	python_name_end(&request->target);
	free(request->ids);
	request->ids = NULL;
}

PyObject *handle_reduce(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct reduce_request request;
	if (handle_open(self) < 0 || reduce_request(args, &request) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_reduce(self->s, request.target.id, request.target.text, request.ids, request.count,
		       &request.how, request.timeout_ns);
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		python_fail(r, &request.target);
	reduce_request_end(&request);
	return r < 0 ? NULL : (Py_INCREF(Py_None), Py_None);
}

PyObject *handle_reduce_sources(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct python_name target;
	PyObject *given, *list = NULL;
	long long timeout_ns;
	if (!PyArg_ParseTuple(args, "OL", &given, &timeout_ns) || handle_open(self) < 0 ||
	    python_name(given, &target) < 0)
		return NULL;
	sar_id *ids = calloc(SAR_SOURCES_MAX, sizeof(*ids));
	int r = -ENOMEM;
	if (!ids) {
		PyErr_NoMemory();
	} else {
		PYTHON_WAIT_BEGIN
		r = sar_reduce_sources(self->s, target.id, timeout_ns, ids, SAR_SOURCES_MAX);
		PYTHON_WAIT_END(r < 0)
		if (r < 0)
			python_fail(r, &target);
		else
			list = python_ids(ids, r < SAR_SOURCES_MAX ? (size_t)r : SAR_SOURCES_MAX);
	}
	free(ids);
	python_name_end(&target);
	return list;
}

PyObject *handle_reduce_progress(PyObject *object, PyObject *args)
{
	struct handle *self = (struct handle *)object;
	struct python_name target;
	PyObject *given, *list = NULL;
	unsigned present = 0;
	if (!PyArg_ParseTuple(args, "O", &given) || handle_open(self) < 0 ||
	    python_name(given, &target) < 0)
		return NULL;
	sar_id *ids = calloc(SAR_SOURCES_MAX, sizeof(*ids));
	int r = -ENOMEM;
	if (!ids) {
		PyErr_NoMemory();
	} else {
		PYTHON_WAIT_BEGIN
		r = sar_reduce_progress(self->s, target.id, ids, SAR_SOURCES_MAX, &present);
		PYTHON_WAIT_END(r < 0)
		if (r < 0)
			python_fail(r, &target);
		else
			list = python_ids(ids, r < SAR_SOURCES_MAX ? (size_t)r : SAR_SOURCES_MAX);
	}
	free(ids);
	python_name_end(&target);
	return list ? Py_BuildValue("NI", list, present) : NULL;
}

PyObject *python_info(const sar_info *info)
{
	size_t length = strnlen(info->name, sizeof(info->name));
	PyObject *name = PyUnicode_DecodeUTF8(info->name, (Py_ssize_t)length, "surrogateescape");
	PyObject *id = name ? python_id(&info->id) : NULL;
	if (!id) {
		Py_XDECREF(name);
		return NULL;
	}
	return Py_BuildValue("NNKKKIIIIKIKy#", id, name, (unsigned long long)info->size,
			     (unsigned long long)info->generation,
			     (unsigned long long)info->local_ready, info->copies, info->partial,
			     info->lost, info->lost_node, (unsigned long long)info->down_ns,
			     info->leases, (unsigned long long)info->expires_ns,
			     (const char *)info->meta, (Py_ssize_t)info->meta_bytes);
}

PyObject *handle_info(PyObject *object, PyObject *given)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	sar_info info;
	if (handle_open(self) < 0 || python_name(given, &name) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_info_get(self->s, name.id, &info);
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		python_fail(r, &name);
	python_name_end(&name);
	return r < 0 ? NULL : python_info(&info);
}

/* Copies of what a callback is told. */
struct pile {
	void *item;
	size_t count, room, item_bytes;
};

static int handle_pile_add(struct pile *pile, const void *item)
{
	if (pile->count == pile->room) {
		size_t room = pile->room ? 2 * pile->room : 64;
		void *more = realloc(pile->item, room * pile->item_bytes);
		if (!more)
			return -ENOMEM;
		pile->item = more;
		pile->room = room;
	}
	memcpy((char *)pile->item + pile->count++ * pile->item_bytes, item, pile->item_bytes);
	return 0;
}

static int handle_list_take(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	return handle_pile_add(arg, info);
}

static int handle_nodes_take(const sar_node *node, void *arg)
{
	return handle_pile_add(arg, node);
}

static PyObject *python_node(const sar_node *node)
{
	return Py_BuildValue("IIIy#II", node->node, node->self, node->state, (const char *)node->ip,
			     (Py_ssize_t)sizeof(node->ip), (unsigned)node->port, node->workers);
}

/* A list of what is in the pile. */
static PyObject *handle_pile_list(const struct pile *pile, bool of_nodes)
{
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list && i < pile->count; i++) {
		PyObject *one = of_nodes ? python_node(&((const sar_node *)pile->item)[i])
					 : python_info(&((const sar_info *)pile->item)[i]);
		if (!one || PyList_Append(list, one) < 0)
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

/* prefix: of names; NULL: a list of nodes */
static PyObject *handle_listed(struct handle *self, const char *prefix)
{
	bool of_nodes = !prefix;
	struct pile pile = {.item_bytes = of_nodes ? sizeof(sar_node) : sizeof(sar_info)};
	char words[1024];
	if (handle_open(self) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = of_nodes ? sar_nodes(self->s, handle_nodes_take, &pile)
		     : sar_list_prefix(self->s, prefix, handle_list_take, &pile);
	PYTHON_WAIT_END(r < 0)
	PyOS_snprintf(words, sizeof(words), "%s",
		      *sar_error_detail() ? sar_error_detail() : sar_strerror(r));
	PyObject *list = r == -EINTR && PyErr_Occurred() ? NULL : handle_pile_list(&pile, of_nodes);
	free(pile.item);
	if (r < 0 && list) {
		python_fail_with(r, words, NULL, list);
		Py_CLEAR(list);
	}
	return list;
}

PyObject *handle_list(PyObject *self, PyObject *given)
{
	struct python_name prefix;
	if (!PyUnicode_Check(given)) {
		PyErr_SetString(PyExc_TypeError,
				"names are listed by what they begin with, a str: info() tells of "
				"one id");
		return NULL;
	}
	if (python_prefix(given, &prefix) < 0)
		return NULL;
	PyObject *list = handle_listed((struct handle *)self, prefix.text);
	python_name_end(&prefix);
	return list;
}

PyObject *handle_nodes(PyObject *self, PyObject *none)
{
	return handle_listed((struct handle *)self, NULL);
}

/* waits_for(name): what a call about it waits for now; that the node has gone is no error here. */
PyObject *handle_waits_for(PyObject *object, PyObject *given)
{
	struct handle *self = (struct handle *)object;
	struct python_name name;
	char words[SAR_DETAIL_MAX];
	if (handle_open(self) < 0 || python_name(given, &name) < 0)
		return NULL;
	int r;
	PYTHON_WAIT_BEGIN
	r = sar_waits_for(self->s, &name.id, words, sizeof(words));
	r = r == -ENOTCONN ? 0 : r;
	PYTHON_WAIT_END(r < 0)
	if (r < 0)
		python_fail(r, &name);
	python_name_end(&name);
	return r < 0 ? NULL : PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
}
