/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the directory: delete, info, holders, list, nodes. */
#include <errno.h>
#include <stdio.h>
#include "directory.h"
#include "error.h"
#include "queue/run.h"

int sar_delete(sar *s, sar_id id)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	return r < 0 ? r : run_end(&run, sar_submit_delete(&run.q, id, 0), &end);
}

int sar_leave(sar *s)
{
	struct session_request request = handle_request(SESSION_LEAVE, NULL);
	return run_command(s, &request, HANDLE_CALL_NS, NULL);
}

void directory_info(const struct session_object *object, sar_info *out)
{
	*out = (sar_info){.size = object->size,
			  .generation = object->generation,
			  .local_ready = object->local_watermark,
			  .copies = object->copies,
			  .partial = object->partial,
			  .lost = object->lost,
			  .lost_node = object->lost_node,
			  .down_ns = object->down_ms * 1000000,
			  .is_inline = object->flags & SESSION_OBJECT_INLINE,
			  .making = (object->flags & SESSION_OBJECT_REDUCED) != 0,
			  .leases = object->leases,
			  .lease_node = object->lease_node,
			  .expires_ns = object->expires_ms * 1000000};
	memcpy(out->id.bytes, object->id.bytes, sizeof(out->id.bytes));
	memcpy(out->name, object->name, sizeof(out->name) - 1);
	out->meta_bytes = object->meta.bytes < SAR_META_MAX ? object->meta.bytes : SAR_META_MAX;
	memcpy(out->meta, object->meta.data, out->meta_bytes);
}

static void directory_lease(const struct session_object *object, sar_lease_info *out)
{
	*out = (sar_lease_info){.lease = object->lease,
				.node = object->lease_node,
				.ending = object->lease_ms != 0,
				.left_ns = object->lease_ms * 1000000};
	memcpy(out->name, object->lease_name, sizeof(out->name) - 1);
}

/* The answer of STAT: one session_object, or several with more holders each. */
static int directory_stat(sar *s, sar_id id, uint32_t flags, struct mux_result *out)
{
	struct session_request request = handle_request(SESSION_STAT, &id);
	request.flags = flags;
	int r = run_request(s, &request, NULL, sizeof(struct session_object), HANDLE_CALL_NS, out);
	if (r == 0 && out->items_count == 0) {
		mux_result_free(out);
		r = error_set(-EPROTO, "the node's answer is incomplete: use libraries and node of "
				       "one version");
	}
	return r;
}

int sar_info_get(sar *s, sar_id id, sar_info *out)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	return r < 0 ? r : run_end(&run, sar_submit_info(&run.q, id, out, 0), &end);
}

int sar_lease_get(sar *s, sar_id id, sar_lease_info *out)
{
	struct mux_result result;
	int r = directory_stat(s, id, SESSION_FLAG_BRIEF, &result);
	if (r < 0)
		return r;
	const struct session_object *object = result.items;
	if (object->leases == 0)
		r = error_set(-ENOENT, "no lease holds it: it lives until it is deleted");
	else
		directory_lease(object, out);
	mux_result_free(&result);
	return r < 0 ? error_name(r, id.bytes, NULL) : 0;
}

static void directory_holder(const struct session_holder *holder, sar_holder *out)
{
	*out = (sar_holder){.node = holder->node,
			    .complete = holder->complete,
			    .ready = holder->watermark,
			    .arrived = holder->arrived,
			    .upstream = holder->upstreams ? (int32_t)holder->upstream[0] : -1,
			    .upstreams = holder->upstreams < SAR_UPSTREAMS_MAX ? holder->upstreams
									       : SAR_UPSTREAMS_MAX,
			    .sending = holder->sending,
			    .down_ns = holder->down_ms * 1000000};
	for (uint32_t i = 0; i < out->upstreams; i++)
		out->upstream_node[i] = holder->upstream[i];
}

int sar_holders(sar *s, sar_id id, sar_holder *out, unsigned room)
{
	struct mux_result result;
	unsigned count = 0;
	int r = directory_stat(s, id, 0, &result);
	if (r < 0)
		return r;
	const struct session_object *page = result.items;
	for (size_t i = 0; i < result.items_count; i++) {
		for (uint32_t k = 0; k < page[i].holders && k < SESSION_HOLDERS; k++, count++)
			if (count < room)
				directory_holder(&page[i].holder[k], &out[count]);
	}
	mux_result_free(&result);
	return (int)count;
}

/* 0, or -EHOSTUNREACH and whose parts of the directory are not in the list. */
static int directory_missing(const struct session_object *object, size_t count)
{
	char nodes[96] = "";
	size_t missing = 0, used = 0;
	for (size_t i = 0; i < count; i++) {
		if (!(object[i].flags & SESSION_OBJECT_MISSING))
			continue;
		if (used < sizeof(nodes) - 16)
			used += (size_t)snprintf(nodes + used, sizeof(nodes) - used, "%s%u",
						 missing ? ", " : "", object[i].holder[0].node);
		else if (nodes[used - 1] != '.')
			used += (size_t)snprintf(nodes + used, sizeof(nodes) - used, ", ...");
		missing++;
	}
	if (missing == 0)
		return 0;
	error_set(
		-EHOSTUNREACH,
		"the list is not complete: the directory's part on node%s %s is out of reach: see "
		"'sarissa status'",
		missing > 1 ? "s" : "", nodes);
	for (size_t i = 0; i < count; i++)
		if (object[i].flags & SESSION_OBJECT_MISSING)
			error_set_node(object[i].holder[0].node);
	return -EHOSTUNREACH;
}

int sar_list_prefix(sar *s, const char *prefix,
		    int (*fn)(const sar_info *info, const sar_lease_info *lease, void *arg),
		    void *arg)
{
	struct session_request request = handle_request(SESSION_LIST, NULL);
	struct mux_result result = {.items_count = 0};
	int r = handle_name(&request, prefix);
	if (r < 0)
		return r;
	r = run_request(s, &request, NULL, sizeof(struct session_object), HANDLE_CALL_NS, &result);
	const struct session_object *object = result.items;
	for (size_t i = 0; r == 0 && i < result.items_count; i++) {
		sar_info info;
		sar_lease_info lease;
		if (object[i].flags & SESSION_OBJECT_MISSING)
			continue;
		directory_info(&object[i], &info);
		directory_lease(&object[i], &lease);
		r = fn(&info, info.leases ? &lease : NULL, arg);
	}
	if (r == 0) /* last: fn may have failed at something else meanwhile */
		r = directory_missing(object, result.items_count);
	mux_result_free(&result);
	return r;
}

struct directory_visitor {
	int (*fn)(const sar_info *info, void *arg);
	void *arg;
};

static int directory_visit(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	const struct directory_visitor *v = arg;
	return v->fn(info, v->arg);
}

int sar_list(sar *s, int (*fn)(const sar_info *info, void *arg), void *arg)
{
	struct directory_visitor v = {fn, arg};
	return sar_list_prefix(s, NULL, directory_visit, &v);
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
		.arriving = node->arriving,
		.sending = node->sending,
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
	struct session_request request = handle_request(SESSION_STATUS, NULL);
	struct mux_result result;
	int r = run_request(s, &request, NULL, sizeof(struct session_node), HANDLE_CALL_NS,
			    &result);
	const struct session_node *node = result.items;
	for (size_t i = 0; r == 0 && i < result.items_count; i++) {
		sar_node public;
		directory_node(&node[i], &public);
		r = fn(&public, arg);
	}
	mux_result_free(&result);
	return r;
}
