/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa peers: the connections to other nodes, how fast and how good they are. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cli/cli.h"
#include "cli/support/json.h"
#include "cli/doctor/paths.h"
#include "cli/support/text.h"

static int peers_read(const struct cli_args *args, struct paths *out)
{
	int r = paths_read(args->socket, out);
	return r < 0 ? cli_fail_counters(r, out->file) : CLI_DONE;
}

/* The counts within --over, or since each connection began. */
static int peers_look(const struct cli_args *args, struct paths *now)
{
	static struct paths before;
	struct timespec pause = {.tv_sec = args->over_ns / 1000000000,
				 .tv_nsec = args->over_ns % 1000000000};
	if (args->over_ns == 0)
		return peers_read(args, now);
	int status = peers_read(args, &before);
	if (status != CLI_DONE)
		return status;
	nanosleep(&pause, NULL);
	status = peers_read(args, now);
	if (status == CLI_DONE)
		paths_since(now, &before);
	paths_free(&before);
	return status;
}

static void peers_json(const struct path *p, const char *note)
{
	const struct counter_info *info = peer_values_info();
	uint64_t value[PEER_VALUES_COUNT];
	char ip[TEXT_BYTES];
	struct json j;
	json_begin(&j, stdout);
	if (p->node == PATHS_NO_NODE)
		json_null(&j, "node");
	else
		json_signed(&j, "node", p->node);
	json_string(&j, "ip", text_ip(ip, p->addr.ip));
	json_unsigned(&j, "port", p->addr.port);
	json_unsigned(&j, "worker", p->worker);
	json_unsigned(&j, "over_ns", p->over_ns);
	memcpy(value, &p->values, sizeof(value));
	for (unsigned i = 0; i < PEER_VALUES_COUNT; i++)
		json_unsigned(&j, info[i].name, value[i]);
	if (*note)
		json_string(&j, "note", note);
	else
		json_null(&j, "note");
	json_end(&j);
}

static void peers_head(bool per_second)
{
	printf("%5s  %-24s  %6s  %9s  %9s  %9s  %11s  %11s  %11s  %6s  %6s  %s\n", "NODE",
	       "ADDRESS", "WORKER", "RTT", "LEAST", "WINDOW", "PATH",
	       per_second ? "SENDING" : "SENT", per_second ? "RECEIVING" : "RECEIVED", "LOST",
	       "MISSED", "NOTE");
}

/* An amount, or what of it falls on a second; "-" when nothing was told in that time. */
static const char *peers_amount(char out[TEXT_BYTES], const struct path *p, uint64_t bytes,
				bool per_second)
{
	if (!per_second)
		return text_size(out, bytes);
	return p->over_ns > 0 ? text_rate(out, bytes, p->over_ns) : "-";
}

static void peers_line(const struct path *p, bool per_second, const char *note)
{
	const struct peer_counters *c = &p->values.counters;
	const struct peer_gauges *g = &p->values.gauges;
	char address[TEXT_BYTES], rtt[TEXT_BYTES], least[TEXT_BYTES], window[TEXT_BYTES],
		path[TEXT_BYTES] = "-", sent[TEXT_BYTES], received[TEXT_BYTES],
		node[TEXT_BYTES] = "-";
	if (p->node != PATHS_NO_NODE)
		snprintf(node, sizeof(node), "%lld", (long long)p->node);
	if (g->path_bytes_per_s > 0)
		text_rate(path, g->path_bytes_per_s, 1000000000);
	printf("%5s  %-24s  %6u  %9s  %9s  %9s  %11s  %11s  %11s  %5.1f%%  %5.1f%%%s%s\n", node,
	       text_endpoint(address, p->addr.ip, p->addr.port), p->worker,
	       text_duration(rtt, g->rtt_ns), text_duration(least, g->rtt_least_ns),
	       text_size(window, g->window_bytes), path,
	       peers_amount(sent, p, c->tx_bytes, per_second),
	       peers_amount(received, p, c->rx_bytes, per_second), 100 * paths_note_lost(p),
	       100 * paths_note_missed(p), *note ? "  " : "", note);
}

int peers_run(const struct cli_args *args)
{
	static struct paths p;
	bool per_second = args->over_ns > 0;
	int status = peers_look(args, &p);
	if (status != CLI_DONE)
		return status;
	paths_name(&p, args->socket);
	paths_sort(&p);
	struct paths_note_usual usual = paths_note_usual(&p);
	if (!args->json)
		peers_head(per_second);
	for (size_t i = 0; i < p.count; i++) {
		char note[PATHS_NOTE_BYTES];
		paths_note(&p.row[i], &usual, note);
		if (args->json)
			peers_json(&p.row[i], note);
		else
			peers_line(&p.row[i], per_second, note);
	}
	paths_free(&p);
	return cli_flush();
}
