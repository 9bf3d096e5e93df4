/* SPDX-License-Identifier: BSD-3-Clause */
/* What the directory knows: delete, info, holders, list, nodes. */
#include <errno.h>
#include "deadline.h"
#include "error.h"
#include "handle.h"

int sar_delete(sar *s, sar_id id)
{
	struct session_request request = handle_request(SESSION_DELETE);
	memcpy(request.id.bytes, id.bytes, sizeof(id.bytes));
	return handle_command(s, &request);
}

static void directory_info(const struct session_object *object, sar_info *out)
{
	*out = (sar_info){.size = object->size,
			  .generation = object->generation,
			  .local_ready = object->local_watermark,
			  .copies = object->copies,
			  .partial = object->partial,
			  .is_inline = object->flags & 1};
	memcpy(out->id.bytes, object->id.bytes, sizeof(out->id.bytes));
	memcpy(out->name, object->name, sizeof(out->name) - 1);
}

/* The one session_object that STAT answers with. */
static int directory_stat(sar *s, sar_id id, struct session_object *out)
{
	struct session_request request = handle_request(SESSION_STAT);
	struct mux_result result;
	memcpy(request.id.bytes, id.bytes, sizeof(id.bytes));
	int r = handle_call(s, &request, sizeof(*out), deadline_after(HANDLE_CALL_NS), &result);
	if (r < 0)
		return r;
	if (result.items_count == 1)
		memcpy(out, result.items, sizeof(*out));
	else
		r = error_set(-EPROTO, "the node's answer is incomplete: use libraries and node of "
				       "one version");
	mux_result_free(&result);
	return r;
}

int sar_info_get(sar *s, sar_id id, sar_info *out)
{
	struct session_object object;
	int r = directory_stat(s, id, &object);
	if (r == 0)
		directory_info(&object, out);
	return r;
}

int sar_holders(sar *s, sar_id id, sar_holder *out, unsigned room)
{
	struct session_object object;
	int r = directory_stat(s, id, &object);
	if (r < 0)
		return r;
	const unsigned limit = sizeof(object.holder) / sizeof(object.holder[0]);
	unsigned count = object.holders < limit ? object.holders : limit;
	for (unsigned i = 0; i < count && i < room; i++)
		out[i] = (sar_holder){.node = object.holder[i].node,
				      .complete = object.holder[i].complete,
				      .ready = object.holder[i].watermark,
				      .upstream = object.holder[i].upstream,
				      .sending = object.holder[i].sending};
	return (int)count;
}

int sar_list(sar *s, int (*fn)(const sar_info *info, void *arg), void *arg)
{
	struct session_request request = handle_request(SESSION_LIST);
	struct mux_result result;
	int r = handle_call(s, &request, sizeof(struct session_object),
			    deadline_after(HANDLE_CALL_NS), &result);
	const struct session_object *object = result.items;
	for (size_t i = 0; r == 0 && i < result.items_count; i++) {
		sar_info info;
		directory_info(&object[i], &info);
		r = fn(&info, arg);
	}
	mux_result_free(&result);
	return r;
}

static void directory_node(const struct session_node *node, sar_node *out)
{
	*out = (sar_node){
		.node = node->node,
		.self = node->self != 0,
		.state = node->state,
		.workers = node->workers,
		.incarnation = node->incarnation,
		.store_bytes = node->store_bytes,
		.store_used = node->store_used,
		.objects = node->objects,
		.sessions = node->sessions,
		.port = node->addr.port,
		.mtu = node->mtu,
		.rtt_ns = (uint64_t)node->rtt_us * 1000,
		.hugepages = node->hugepages,
		.busy_poll = node->busy_poll,
		.control_pid = node->control_pid,
		.dataplane_pid = node->dataplane_pid,
	};
	memcpy(out->ip, node->addr.ip, sizeof(out->ip));
	memcpy(out->link, node->port, sizeof(out->link) - 1);
}

int sar_nodes(sar *s, int (*fn)(const sar_node *node, void *arg), void *arg)
{
	struct session_request request = handle_request(SESSION_STATUS);
	struct mux_result result;
	int r = handle_call(s, &request, sizeof(struct session_node),
			    deadline_after(HANDLE_CALL_NS), &result);
	const struct session_node *node = result.items;
	for (size_t i = 0; r == 0 && i < result.items_count; i++) {
		sar_node public;
		directory_node(&node[i], &public);
		r = fn(&public, arg);
	}
	mux_result_free(&result);
	return r;
}
