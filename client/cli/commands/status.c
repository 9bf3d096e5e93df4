/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa status: the nodes as this one sees them, and what this one counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/doctor/counters_file.h"
#include "internal/ids.h"
#include "cli/support/json.h"
#include "cli/doctor/paths.h"
#include "cli/support/text.h"

static const char *status_state(uint32_t state)
{
	static const char *const names[] = {"never seen", "up", "down"};
	return state < 3 ? names[state] : "unknown";
}

static void status_json_local(struct json *j, const sar_node *n, const char *socket)
{
	char spec[PORT_NOTE_BYTES], why[PORT_NOTE_BYTES];
	json_unsigned(j, "store_bytes", n->store_bytes);
	json_unsigned(j, "store_used", n->store_used);
	json_unsigned(j, "objects", n->objects);
	json_unsigned(j, "sessions", n->sessions);
	json_bool(j, "hugepages", n->hugepages);
	json_bool(j, "busy_poll", n->busy_poll);
	json_signed(j, "control_pid", n->control_pid);
	json_signed(j, "dataplane_pid", n->dataplane_pid);
	json_string(j, "link", n->link);
	if (counters_file_port(socket, 0, spec, why)) {
		json_string(j, "port_spec", spec);
		json_string(j, "port_why", why);
	}
}

/* The nodes come in the order in which they answer. */
struct status_table {
	sar_node node[NODES_MAX];
	size_t count;
	struct paths paths;
	const char *socket; /* the local node's */
};

/* Control knows of a connection and of the port what they were when they were made; the dataplane
 * what they are now. */
static sar_node status_now(const sar_node *n, const struct status_table *t)
{
	static struct counters_file_view view;
	const struct path *path = paths_to(&t->paths, n);
	sar_node now = *n;
	if (n->self && counters_file_read(t->socket, &view) == 0)
		counters_file_link(&view, now.link, sizeof(now.link));
	if (path && !n->self) {
		now.mtu = (uint32_t)path->values.gauges.mtu;
		now.rtt_ns = path->values.gauges.rtt_ns;
	}
	return now;
}

static int status_json(const sar_node *one, void *arg)
{
	const struct status_table *t = arg;
	sar_node now = status_now(one, t);
	const sar_node *n = &now;
	struct json j;
	char ip[TEXT_BYTES];
	json_begin(&j, stdout);
	json_unsigned(&j, "node", n->node);
	json_bool(&j, "self", n->self);
	json_string(&j, "state", status_state(n->state));
	json_string(&j, "ip", text_ip(ip, n->ip));
	json_unsigned(&j, "port", n->port);
	json_unsigned(&j, "workers", n->workers);
	json_unsigned(&j, "incarnation", n->incarnation);
	json_unsigned(&j, "mtu", n->mtu);
	json_unsigned(&j, "rtt_ns", n->rtt_ns);
	json_unsigned(&j, "arriving", n->arriving);
	json_unsigned(&j, "sending", n->sending);
	if (n->self)
		status_json_local(&j, n, t->socket);
	json_end(&j);
	return 0;
}

/* The local node comes first: what only it has goes before the table. */
static void status_head(const sar_node *n, const char *socket)
{
	char spec[PORT_NOTE_BYTES], why[PORT_NOTE_BYTES];
	char used[TEXT_BYTES];
	char dataplane[TEXT_BYTES] = "does not run";
	if (n->dataplane_pid > 0)
		snprintf(dataplane, sizeof(dataplane), "pid %d", n->dataplane_pid);
	printf("this node   %u, control pid %d, dataplane %s\n", n->node, n->control_pid,
	       dataplane);
	printf("store       %s, %s\n", text_used(used, n->store_used, n->store_bytes),
	       n->hugepages ? "huge pages" : "ordinary pages");
	printf("objects     %llu here, %llu clients\n", (unsigned long long)n->objects,
	       (unsigned long long)n->sessions);
	printf("link        ");
	text_safe(stdout, *n->link ? n->link : "-");
	printf(", %u worker%s, %s\n", n->workers, n->workers == 1 ? "" : "s",
	       n->busy_poll ? "always polling" : "sleeping when idle");
	for (unsigned rail = 0; counters_file_port(socket, rail, spec, why); rail++) {
		printf(rail == 0 ? "port        " : "rail %-5u  ", rail);
		text_safe(stdout, spec);
		printf(" (");
		text_safe(stdout, why);
		printf(")\n");
	}
	printf("\n%5s  %-10s  %-24s  %5s  %10s  %7s  %8s  %7s\n", "NODE", "STATE", "ADDRESS", "MTU",
	       "RTT", "WORKERS", "ARRIVING", "SENDING");
}

static void status_line(const sar_node *n)
{
	char address[TEXT_BYTES], rtt[TEXT_BYTES] = "-";
	if (n->rtt_ns > 0 && !n->self)
		text_duration(rtt, n->rtt_ns);
	printf("%5u  %-10s  %-24s  %5u  %10s  %7u  %8u  %7u\n", n->node, status_state(n->state),
	       text_endpoint(address, n->ip, n->port), n->mtu, rtt, n->workers, n->arriving,
	       n->sending);
}

static int status_keep(const sar_node *n, void *arg)
{
	struct status_table *t = arg;
	if (t->count < NODES_MAX)
		t->node[t->count++] = status_now(n, t);
	return 0;
}

static int status_compare(const void *a, const void *b)
{
	uint32_t left = ((const sar_node *)a)->node, right = ((const sar_node *)b)->node;
	return (left > right) - (left < right);
}

static void status_print(struct status_table *t)
{
	if (t->count > 0)
		status_head(&t->node[0], t->socket);
	qsort(t->node, t->count, sizeof(*t->node), status_compare);
	for (size_t i = 0; i < t->count; i++)
		status_line(&t->node[i]);
}

static void status_counters_json(const struct counters_file_view *view)
{
	const struct counter_info *info = counters_info();
	for (uint32_t w = 0; w < view->header.workers; w++) {
		struct json j;
		json_begin(&j, stdout);
		json_unsigned(&j, "worker", w);
		json_signed(&j, "dataplane_pid", view->header.pid);
		json_unsigned(&j, "incarnation", view->header.incarnation);
		json_unsigned(&j, "started_ns", view->header.started_ns);
		json_object(&j, "counters");
		for (unsigned i = 0; i < COUNTERS_COUNT; i++)
			json_unsigned(&j, info[i].name, counters_file_value(&view->worker[w], i));
		json_close(&j, '}');
		json_end(&j);
	}
}

static void status_counters_print(const struct counters_file_view *view)
{
	const struct counter_info *info = counters_info();
	printf("\n%20s  %-20s  %s\n", "COUNT", "COUNTER", "MEANING");
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		uint64_t total = counters_file_total(view, i);
		if (total > 0)
			printf("%20llu  %-20s  %s (%s)\n", (unsigned long long)total, info[i].name,
			       info[i].help, info[i].unit);
	}
}

static void status_control(const struct cli_args *args)
{
	static struct control_file_view view;
	const struct counter_info *info = counters_file_control_info();
	uint64_t value[CONTROL_VALUES_COUNT];
	struct json j;
	if (counters_file_control_read(args->socket, &view) < 0)
		return; /* the dataplane's are there without a control */
	memcpy(value, &view.block, sizeof(value));
	if (args->json) {
		json_begin(&j, stdout);
		json_signed(&j, "control_pid", view.header.pid);
		json_unsigned(&j, "started_ns", view.header.started_ns);
		json_object(&j, "control");
		for (unsigned i = 0; i < CONTROL_VALUES_COUNT; i++)
			json_unsigned(&j, info[i].name, value[i]);
		json_close(&j, '}');
		json_end(&j);
		return;
	}
	printf("\n%20s  %-21s  %s\n", "CONTROL", "COUNTER", "MEANING");
	for (unsigned i = 0; i < CONTROL_VALUES_COUNT; i++)
		if (value[i] > 0)
			printf("%20llu  %-21s  %s%s%s%s\n", (unsigned long long)value[i],
			       info[i].name, info[i].help, *info[i].unit ? " (" : "", info[i].unit,
			       *info[i].unit ? ")" : "");
}

static int status_counters(const struct cli_args *args)
{
	static struct counters_file_view view;
	int r = counters_file_read(args->socket, &view);
	if (r < 0)
		return cli_fail_counters(r, view.path);
	(args->json ? status_counters_json : status_counters_print)(&view);
	status_control(args);
	return CLI_DONE;
}

/* Where the store's room is not all: what went to files. */
static void status_spilled(const struct cli_args *args)
{
	static struct control_file_view view;
	char used[TEXT_BYTES];
	if (args->json || counters_file_control_read(args->socket, &view) < 0 ||
	    view.block.gauges.spill_max == 0)
		return;
	printf("this node: %llu objects in files, %s; %llu came back, %llu errors\n",
	       (unsigned long long)view.block.gauges.spill_objects,
	       text_size(used, view.block.gauges.spill_used),
	       (unsigned long long)view.block.counters.restored,
	       (unsigned long long)view.block.counters.spill_errors);
}

static int status_nodes(const struct cli_args *args)
{
	sar *s;
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	static struct status_table table;
	table.socket = args->socket;
	paths_read(args->socket, &table.paths); /* without them control's word must do */
	int r = sar_nodes(s, args->json ? status_json : status_keep, &table);
	status_print(&table);
	status_spilled(args);
	paths_free(&table.paths);
	if (r < 0)
		status = cli_fail_detail(r, NULL);
	sar_close(s);
	return status;
}

/* The counters are there also without a node. */
int status_run(const struct cli_args *args)
{
	int nodes = status_nodes(args);
	int counters = args->counters ? status_counters(args) : CLI_DONE;
	int flushed = cli_flush();
	return nodes != CLI_DONE ? nodes : counters != CLI_DONE ? counters : flushed;
}

int status_leave_run(const struct cli_args *args)
{
	sar *s;
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = sar_leave(s);
	status = r == 0 ? CLI_DONE : cli_fail_detail(r, NULL);
	sar_close(s);
	return status;
}
