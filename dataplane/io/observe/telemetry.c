/* SPDX-License-Identifier: BSD-3-Clause */
#include "telemetry.h"

#include <arpa/inet.h>
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
	for (unsigned k = 0; k < n->rails; k++) {
		char name[16] = "port";
		if (k > 0)
			snprintf(name, sizeof(name), "port%u", k);
		rte_tel_data_add_dict_string(d, name, n->port[k].text);
	}
	add_number(d, "mtu", n->port[0].mtu);
	add_number(d, "udp_port", n->port[0].addr.port);
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

/* params: "A" or "A,B"; what is not there is 0. */
static bool telemetry_two(const char *params, unsigned long out[2])
{
	char *end = NULL;
	out[0] = out[1] = 0;
	if (!params || !*params)
		return true;
	out[0] = strtoul(params, &end, 10);
	if (*end == ',')
		out[1] = strtoul(end + 1, &end, 10);
	return *end == '\0';
}

/* The worker and a place of its table of connections that the parameters name; NULL: no such. */
static const struct peer_block *telemetry_place(const char *params, unsigned long at[2])
{
	const struct node *n = telemetry_node;
	if (!telemetry_two(params, at) || at[0] >= n->options->workers ||
	    at[1] >= n->options->peers_max)
		return NULL;
	return (const struct peer_block *)shm_file_worker(n->peers, (unsigned)at[0]) + at[1];
}

static int telemetry_peers(const char *command, const char *params, struct rte_tel_data *d)
{
	unsigned long at[2];
	const struct peer_block *b = telemetry_place(params, at);
	struct peer_block one;
	if (!b)
		return -EINVAL;
	rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	for (; at[1] < telemetry_node->options->peers_max; at[1]++, b++)
		if (peer_block_read(b, &one) && rte_tel_data_add_array_int(d, (int)at[1]) < 0)
			break; /* the next question begins there */
	return 0;
}

static int telemetry_peer(const char *command, const char *params, struct rte_tel_data *d)
{
	unsigned long at[2];
	const struct peer_block *b = telemetry_place(params, at);
	struct peer_block one;
	uint64_t value[PEER_VALUES_COUNT];
	char ip[INET6_ADDRSTRLEN];
	if (!b || !peer_block_read(b, &one))
		return -EINVAL;
	bool v4 = net_addr_is_v4(&one.addr);
	inet_ntop(v4 ? AF_INET : AF_INET6, one.addr.ip + (v4 ? 12 : 0), ip, sizeof(ip));
	memcpy(value, &one.values, sizeof(value));
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "ip", ip);
	add_number(d, "port", one.addr.port);
	for (unsigned i = 0; i < PEER_VALUES_COUNT; i++)
		add_number(d, peer_values_info()[i].name, value[i]);
	return 0;
}

void telemetry_register(const struct node *n)
{
	telemetry_node = n;
	rte_telemetry_register_cmd("/sarissa/counters", telemetry_counters,
				   "Counters of this node. Parameter: a worker, or none for all.");
	rte_telemetry_register_cmd("/sarissa/workers", telemetry_workers,
				   "What the workers do. No parameters.");
	rte_telemetry_register_cmd("/sarissa/peers", telemetry_peers,
				   "Places with a connection. Parameters: a worker, the first "
				   "place to look at; or none.");
	rte_telemetry_register_cmd("/sarissa/peer", telemetry_peer,
				   "A connection. Parameters: a worker, its place.");
}
