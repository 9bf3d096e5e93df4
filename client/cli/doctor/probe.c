/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa topology probe`: measures the links of this node that a topology file names, one after
 * the other, against the running cluster, and says what differs from the file. sarissa-plan reads
 * the file and prints the links. An object goes to each node at the other end, which a broadcast
 * names; latencies are those of the connections.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal/ids.h"
#include "cli/support/json.h"
#include "paths.h"

enum {
	PROBE_LEAST_BYTES = 1 << 20,
	PROBE_MOST_BYTES = 64 << 20,
	PROBE_SHARE = 6,   /* an object takes a link that part of a second */
	PROBE_ROUNDS = 2,  /* the first one warms up */
	PROBE_FRAMES = 93, /* per cent of a link that are payload at MTU 1500 */
	PROBE_LESS = 85,   /* per cent of the rate that is still as the file says */
	PROBE_MORE = 125,
	PROBE_LATE = 3, /* times the latency, and */
};

#define PROBE_LATE_NS	 UINT64_C(500000) /* what the processes at both ends may take */
#define PROBE_TIMEOUT_NS INT64_C(60000000000)

/* All links to one node. */
struct probe_link {
	uint32_t links;
	double bits_per_s; /* of one, the slowest; of all together */
	double all_bits_per_s;
	uint64_t latency_ns; /* one way, the least; 0: the file does not say */
};

struct probe {
	sar *s;
	uint32_t self;
	struct probe_link link[NODES_MAX];
	uint64_t rtt_ns[NODES_MAX];
	bool up[NODES_MAX];
	bool json, differs;
};

/* ---- what the file says ---------------------------------------------------------------------- */

static void probe_take(struct probe *p, uint32_t node, double bits_per_s, uint64_t latency_ns)
{
	struct probe_link *l = &p->link[node];

	if (l->links == 0 || bits_per_s < l->bits_per_s)
		l->bits_per_s = bits_per_s;
	if (l->links == 0 || latency_ns < l->latency_ns)
		l->latency_ns = latency_ns;
	l->all_bits_per_s += bits_per_s;
	l->links++;
}

static bool probe_read(struct probe *p, FILE *from)
{
	unsigned long long latency_ns, bits_per_s;
	unsigned node, count = 0;

	while (fscanf(from, "%u %llu %llu\n", &node, &bits_per_s, &latency_ns) == 3) {
		if (node >= NODES_MAX || bits_per_s == 0)
			return false;
		probe_take(p, node, (double)bits_per_s, latency_ns);
		count++;
	}
	return count > 0;
}

/* The links of this node, from sarissa-plan, which says itself what is wrong with the file. */
static int probe_file(struct probe *p, const struct cli_args *args, char *path)
{
	char verb[] = "topology", what[] = "links", number[16];
	char *words[] = {verb, what, path, number};
	struct cli_args own = *args;
	int fd[2], status = 0;
	bool read_all;
	pid_t child;
	FILE *from;

	snprintf(number, sizeof(number), "%u", p->self);
	own.words = words;
	own.words_count = 4;
	own.json = false;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return cli_fail(-errno, "topology: no pipe: %s", strerror(errno));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		dup2(fd[1], STDOUT_FILENO);
		_exit(plan_become(&own));
	}
	close(fd[1]);
	from = child < 0 ? NULL : fdopen(fd[0], "r");
	if (!from) {
		close(fd[0]);
		return cli_fail(-ENOMEM, "topology: cannot start sarissa-plan");
	}
	read_all = probe_read(p, from);
	fclose(from);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
	return read_all
		       ? CLI_DONE
		       : cli_fail(-ENOENT, "topology: %s names no link between node %u and another",
				  path, p->self);
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static int probe_node(const sar_node *n, void *arg)
{
	struct probe *p = arg;

	if (n->node >= NODES_MAX)
		return 0;
	if (n->self)
		p->self = n->node;
	p->up[n->node] = n->state == SAR_NODE_UP;
	p->rtt_ns[n->node] = n->rtt_ns;
	return 0;
}

/* Nanoseconds until a node has an object of so many bytes from here; 0: an error, and said why. */
static uint64_t probe_once(struct probe *p, uint32_t node, const void *bytes, uint64_t size,
			   unsigned round)
{
	char name[64];
	uint64_t begin;
	sar_id id;
	int error;

	snprintf(name, sizeof(name), "probe-%ld-%u-%u-%u", (long)getpid(), p->self, node, round);
	id = sar_id_of(name, strlen(name));
	error = sar_put(p->s, id, name, bytes, size);
	begin = cli_now_ns();
	if (error == 0)
		error = sar_broadcast(p->s, id, &node, 1, PROBE_TIMEOUT_NS);
	begin = cli_now_ns() - begin;
	if (error)
		cli_fail_detail(error, NULL);
	sar_delete(p->s, id);
	return error ? 0 : begin ? begin : 1;
}

/* Bits per second of a link, frames and all, the best of some rounds; 0: an error. */
static double probe_rate(struct probe *p, uint32_t node)
{
	double bytes = p->link[node].bits_per_s / 8 / PROBE_SHARE, best = 0;
	uint64_t size = bytes < PROBE_LEAST_BYTES  ? PROBE_LEAST_BYTES
			: bytes > PROBE_MOST_BYTES ? PROBE_MOST_BYTES
						   : (uint64_t)bytes;
	void *data = calloc(1, size);

	if (!data) {
		cli_fail(-ENOMEM, "topology: out of memory");
		return 0;
	}
	for (unsigned round = 0; round < PROBE_ROUNDS; round++) {
		uint64_t ns = probe_once(p, node, data, size, round);
		double rate = ns ? (double)size * 8e9 / (double)ns * 100 / PROBE_FRAMES : 0;

		if (ns == 0) {
			best = 0;
			break;
		}
		best = rate > best ? rate : best;
	}
	free(data);
	return best;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* The difference, or "". */
static const char *probe_judge(const struct probe_link *l, double rate, uint64_t latency_ns)
{
	if (rate < l->bits_per_s * PROBE_LESS / 100)
		return "slower than the file says";
	if (rate > l->all_bits_per_s * PROBE_MORE / 100)
		return "faster than the file says";
	if (l->latency_ns && latency_ns > PROBE_LATE * l->latency_ns + PROBE_LATE_NS)
		return "further than the file says";
	return "";
}

static void probe_json(const struct probe *p, uint32_t node, double rate, uint64_t latency_ns,
		       const char *differs)
{
	const struct probe_link *l = &p->link[node];
	struct json j;

	json_begin(&j, stdout);
	json_unsigned(&j, "node", p->self);
	json_unsigned(&j, "to", node);
	json_unsigned(&j, "links", l->links);
	json_unsigned(&j, "file_bps", (uint64_t)l->bits_per_s);
	json_unsigned(&j, "measured_bps", (uint64_t)rate);
	json_unsigned(&j, "file_latency_ns", l->latency_ns);
	json_unsigned(&j, "measured_latency_ns", latency_ns);
	json_string(&j, "differs", differs);
	json_end(&j);
}

static void probe_line(const struct probe *p, uint32_t node, double rate, uint64_t latency_ns,
		       const char *differs)
{
	const struct probe_link *l = &p->link[node];

	printf("%5u %6u %9.1f M %9.1f M %9.3f ms %9.3f ms  %s\n", node, l->links,
	       l->bits_per_s / 1e6, rate / 1e6, (double)l->latency_ns / 1e6,
	       (double)latency_ns / 1e6, differs);
}

/* One way: half of the least round trip that the node's connections have seen; before they have
 * seen one, of the first. */
static uint64_t probe_latency(const struct probe *p, uint32_t node, const char *socket)
{
	uint64_t least = UINT64_MAX;
	static struct paths paths;

	if (paths_read(socket, &paths) < 0)
		return p->rtt_ns[node] / 2;
	paths_name(&paths, socket);
	for (size_t i = 0; i < paths.count; i++) {
		uint64_t rtt_ns = paths.row[i].values.gauges.rtt_least_ns;

		if (paths.row[i].node == (int64_t)node && rtt_ns > 0 && rtt_ns < least)
			least = rtt_ns;
	}
	paths_free(&paths);
	return (least < UINT64_MAX ? least : p->rtt_ns[node]) / 2;
}

static int probe_all(struct probe *p, const char *socket)
{
	if (!p->json)
		printf("%5s %6s %11s %11s %12s %12s\n", "TO", "LINKS", "FILE", "MEASURED", "FILE",
		       "MEASURED");
	for (uint32_t node = 0; node < NODES_MAX; node++) {
		const char *differs = "not up";
		uint64_t latency_ns = 0;
		double rate = 0;

		if (p->link[node].links == 0)
			continue;
		if (p->up[node]) {
			rate = probe_rate(p, node);
			if (rate <= 0)
				return CLI_FAILED;
			latency_ns = probe_latency(p, node, socket);
			differs = probe_judge(&p->link[node], rate, latency_ns);
		}
		p->differs |= *differs != '\0';
		(p->json ? probe_json : probe_line)(p, node, rate, latency_ns, differs);
		fflush(stdout);
	}
	return p->differs ? CLI_FAILED : CLI_DONE;
}

int probe_run(const struct cli_args *args)
{
	static struct probe p;
	int status, error;

	p = (struct probe){.json = args->json};
	if (args->count != 2)
		return cli_wrong("topology", "probe takes a topology file");
	status = cli_open(args, &p.s);
	if (status != CLI_DONE)
		return status;
	error = sar_nodes(p.s, probe_node, &p);
	status = error ? cli_fail_detail(error, NULL) : probe_file(&p, args, args->names[1]);
	if (status == CLI_DONE)
		status = probe_all(&p, args->socket);
	return cli_close(p.s, status);
}
