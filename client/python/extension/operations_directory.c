/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of the operations that ask the directory, and of those on leases. operations.c does
 * them. Short ones have no form for queues.
 */
#include "operations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int operations_read_nothing(struct call *c, PyObject *args)
{
	return PyArg_ParseTuple(args, "") ? 0 : -1;
}

static PyObject *operations_result_info_of(const void *item)
{
	const sar_info *info = item;
	size_t length = strnlen(info->name, sizeof(info->name));
	PyObject *name = PyUnicode_DecodeUTF8(info->name, (Py_ssize_t)length, "surrogateescape");
	if (!name)
		return NULL;
	return Py_BuildValue("y#NKKKIIIIKIKy#", (const char *)info->id.bytes,
			     (Py_ssize_t)SAR_ID_BYTES, name, (unsigned long long)info->size,
			     (unsigned long long)info->generation,
			     (unsigned long long)info->local_ready, info->copies, info->partial,
			     info->lost, info->lost_node, (unsigned long long)info->down_ns,
			     info->leases, (unsigned long long)info->expires_ns,
			     (const char *)info->meta, (Py_ssize_t)info->meta_bytes);
}

static int operations_submit_info(sar_queue *q, struct call *c, uint64_t ticket)
{
	return sar_submit_info(q, c->name.id, &c->info, ticket);
}

static PyObject *operations_result_info(struct call *c, const sar_completion *end)
{
	return operations_result_info_of(&c->info);
}

const struct operation operation_info = {.read = operations_name_read,
					 .submit = operations_submit_info,
					 .result = operations_result_info};

static int operations_wait_pile(struct pile *pile, const void *item, size_t bytes)
{
	if (pile->count == pile->room) {
		size_t room = pile->room ? 2 * pile->room : 64;
		void *more = realloc(pile->item, room * bytes);
		if (!more)
			return -ENOMEM;
		pile->item = more;
		pile->room = room;
	}
	memcpy((char *)pile->item + pile->count++ * bytes, item, bytes);
	return 0;
}

static int operations_wait_list_take(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	return operations_wait_pile(arg, info, sizeof(*info));
}

static int operations_wait_list(struct call *c)
{
	return sar_list_prefix(c->handle->s, c->name.text, operations_wait_list_take, &c->pile);
}

static PyObject *operations_result_list(struct call *c, const sar_completion *end)
{
	return operations_list(c->pile.item, c->pile.count, sizeof(sar_info),
			       operations_result_info_of);
}

const struct operation operation_list = {.read = operations_prefix_read,
					 .wait = operations_wait_list,
					 .result = operations_result_list,
					 .partial = true};

static int operations_wait_nodes_take(const sar_node *node, void *arg)
{
	return operations_wait_pile(arg, node, sizeof(*node));
}

static int operations_wait_nodes(struct call *c)
{
	return sar_nodes(c->handle->s, operations_wait_nodes_take, &c->pile);
}

static PyObject *operations_result_node(const void *item)
{
	const sar_node *node = item;
	return Py_BuildValue("IIIy#II", node->node, node->self, node->state, (const char *)node->ip,
			     (Py_ssize_t)sizeof(node->ip), (unsigned)node->port, node->workers);
}

static PyObject *operations_result_nodes(struct call *c, const sar_completion *end)
{
	return operations_list(c->pile.item, c->pile.count, sizeof(sar_node),
			       operations_result_node);
}

const struct operation operation_nodes = {.read = operations_read_nothing,
					  .wait = operations_wait_nodes,
					  .result = operations_result_nodes,
					  .partial = true};

static int operations_wait_holders(struct call *c)
{
	c->pile.item = calloc(SAR_NODES_MAX, sizeof(sar_holder));
	int r = c->pile.item ? sar_holders(c->handle->s, c->name.id, c->pile.item, SAR_NODES_MAX)
			     : -ENOMEM;
	c->pile.count = r < 0 ? 0 : r < SAR_NODES_MAX ? (size_t)r : SAR_NODES_MAX;
	return r;
}

/* (node, complete, bytes, seconds since the death of the node or 0) */
static PyObject *operations_result_holder(const void *item)
{
	const sar_holder *holder = item;
	return Py_BuildValue("IIKd", holder->node, holder->complete,
			     (unsigned long long)holder->arrived, (double)holder->down_ns / 1e9);
}

static PyObject *operations_result_holders(struct call *c, const sar_completion *end)
{
	return operations_list(c->pile.item, c->pile.count, sizeof(sar_holder),
			       operations_result_holder);
}

const struct operation operation_holders = {.read = operations_name_read,
					    .wait = operations_wait_holders,
					    .result = operations_result_holders};

/* That the node has gone is no error here. */
static int operations_wait_waits_for(struct call *c)
{
	int r = sar_waits_for(c->handle->s, &c->name.id, c->words, sizeof(c->words));
	return r == -ENOTCONN ? 0 : r;
}

static PyObject *operations_result_words(struct call *c, const sar_completion *end)
{
	return PyUnicode_DecodeUTF8(c->words, (Py_ssize_t)strlen(c->words), "replace");
}

const struct operation operation_waits_for = {.read = operations_name_read,
					      .wait = operations_wait_waits_for,
					      .result = operations_result_words};

/* ---- leases --------------------------------------------------------------------------------- */

/* (name or None, ttl_ns): its number */
static int operations_read_lease(struct call *c, PyObject *args)
{
	return PyArg_ParseTuple(args, "zL", &c->text, &c->timeout_ns) ? 0 : -1;
}

static int operations_wait_lease(struct call *c)
{
	return sar_lease(c->handle->s, c->text, c->timeout_ns, &c->lease);
}

static PyObject *operations_result_lease(struct call *c, const sar_completion *end)
{
	return PyLong_FromUnsignedLongLong(c->lease);
}

const struct operation operation_lease = {.read = operations_read_lease,
					  .wait = operations_wait_lease,
					  .result = operations_result_lease};

static int operations_read_number(struct call *c, PyObject *args)
{
	return PyArg_ParseTuple(args, "K", &c->number) ? 0 : -1;
}

static int operations_wait_lease_end(struct call *c)
{
	return sar_lease_end(c->handle->s, c->number);
}

const struct operation operation_lease_end = {.read = operations_read_number,
					      .wait = operations_wait_lease_end};

/* The lease that holds all that this handle makes from then on. 0: none */
static int operations_wait_use_lease(struct call *c)
{
	return sar_set_lease(c->handle->s, c->number);
}

const struct operation operation_use_lease = {.read = operations_read_number,
					      .wait = operations_wait_use_lease};

/* (lease, name) */
static int operations_read_held(struct call *c, PyObject *args)
{
	PyObject *name;
	return PyArg_ParseTuple(args, "KO", &c->number, &name) ? python_name(name, &c->name) : -1;
}

static int operations_wait_hold(struct call *c)
{
	return sar_hold(c->handle->s, c->number, c->name.id);
}

const struct operation operation_hold = {.read = operations_read_held,
					 .wait = operations_wait_hold};

static int operations_wait_drop(struct call *c)
{
	return sar_drop(c->handle->s, c->number, c->name.id);
}

const struct operation operation_drop = {.read = operations_read_held,
					 .wait = operations_wait_drop};

static int operations_wait_expire(struct call *c)
{
	return sar_expire(c->handle->s, c->name.id, c->timeout_ns);
}

const struct operation operation_expire = {.read = operations_time_read,
					   .wait = operations_wait_expire};
