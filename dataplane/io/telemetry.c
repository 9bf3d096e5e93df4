/* SPDX-License-Identifier: BSD-3-Clause */
#include "telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define add_number rte_tel_data_add_dict_uint
#else
#define add_number rte_tel_data_add_dict_u64
#endif

static const struct node *telemetry_node;

/* params: the number of a worker, or nothing for the sum over all. */
static int telemetry_counters(const char *command, const char *params, struct rte_tel_data *d)
{
	const struct node *n = telemetry_node;
	unsigned first = 0, last = n->options->workers - 1;
	uint64_t sum[COUNTERS_COUNT] = {0};
	if (params && *params) {
		char *end;
		unsigned long w = strtoul(params, &end, 10);
		if (*end || w > last)
			return -EINVAL;
		first = last = (unsigned)w;
	}
	for (unsigned w = first; w <= last; w++) {
		const uint64_t *from = (const uint64_t *)n->worker[w].counters;
		for (unsigned i = 0; i < COUNTERS_COUNT; i++)
			sum[i] += from[i];
	}
	rte_tel_data_start_dict(d);
	for (unsigned i = 0; i < COUNTERS_COUNT; i++)
		add_number(d, counters_info()[i].name, sum[i]);
	return 0;
}

static int telemetry_workers(const char *command, const char *params, struct rte_tel_data *d)
{
	const struct node *n = telemetry_node;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "port", n->port.text);
	add_number(d, "mtu", n->port.mtu);
	add_number(d, "udp_port", n->port.addr.port);
	for (unsigned w = 0; w < n->options->workers; w++) {
		char name[32];
		struct rte_tel_data *row = rte_tel_data_alloc();
		if (!row)
			return -ENOMEM;
		const struct counters *c = n->worker[w].counters;
		rte_tel_data_start_dict(row);
		add_number(row, "lcore", w + 1);
		add_number(row, "attached", n->worker[w].serving != NULL);
		add_number(row, "sleeping", n->worker[w].sleeping);
		add_number(row, "loops", c->io_loops);
		add_number(row, "sleeps", c->io_sleeps);
		add_number(row, "busy_cycles", c->io_busy_cycles);
		snprintf(name, sizeof(name), "worker%u", w);
		rte_tel_data_add_dict_container(d, name, row, 0);
	}
	return 0;
}

void telemetry_register(const struct node *n)
{
	telemetry_node = n;
	rte_telemetry_register_cmd("/sarissa/counters", telemetry_counters,
				   "Counters of this node. Parameter: a worker, or none for all.");
	rte_telemetry_register_cmd("/sarissa/workers", telemetry_workers,
				   "What the workers do. No parameters.");
}
