/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one core moves: two endpoints in one thread, joined by a net_ring device, through the
 * dataplane's own receive and transmit paths. Beside it, in the same run: memcpy of the same
 * chunks, and testpmd forwarding on the same kind of device.
 */
#include "dataplane_end.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include "internal/program/arguments.h"

static const char usage[] =
	"Usage: dataplane [--seconds S] [--mib N] [--mtu BYTES]... [--patience S]\n"
	"                 [--no-testpmd]\n"
	"Two endpoints on one core over net_ring, one line of JSON per MTU. Default: MTU 1500, 3498\n"
	"and 9000, 2 s each, objects of 64 MiB, each of which may take 30 s. Cycles are those of\n"
	"both endpoints together, per packet with payload.\n";

struct both {
	struct pair_result plain, staged;
};

struct row {
	uint16_t mtu;
	struct pair_result plain, staged;   /* without and with the accounting, which costs */
	struct pair_result sum, sum_staged; /* the same, added to an object of the receiver */
	struct both fan, forward;	    /* the object sent twice; sent on by its receiver */
	struct local_result local;	    /* no packets: two objects of one node */
	double memcpy_bytes_per_s, testpmd_pps;
};

static double per_packet(const struct pair_result *r, uint64_t cycles)
{
	return (double)cycles / (double)r->packets;
}

/* The transport's own work: no copies, no integrity, no driver. */
static uint64_t protocol(const struct pair_result *r)
{
	return r->stage.receive + r->stage.ack + r->stage.transmit;
}

/* The time that reading the clock adds to the stages, all together. */
static double accounting(const struct row *r)
{
	return per_packet(&r->staged, r->staged.cycles) - per_packet(&r->plain, r->plain.cycles);
}

static double gbit(const struct row *r)
{
	return (double)r->plain.bytes * 8e-9 / r->plain.seconds;
}

static void print_copies(const char *name, const struct both *b)
{
	printf("\"%s\":{\"payload_gbit_s\":%.3f,\"cycles_per_packet\":{\"total\":%.1f,", name,
	       (double)b->plain.bytes * 8e-9 / b->plain.seconds,
	       per_packet(&b->plain, b->plain.cycles));
	stages_print(&b->staged.stage, b->staged.packets);
	printf("}},");
}

static void print_json(const struct row *r)
{
	const struct pair_result *p = &r->plain, *s = &r->staged;
	double pps = (double)p->packets / p->seconds;
	printf("{\"op\":\"dataplane\",\"mtu\":%u,\"chunk_bytes\":%u,\"bytes\":%llu,"
	       "\"seconds\":%.3f,\"packets_per_s\":%.0f,\"payload_gbit_s\":%.3f,"
	       "\"tsc_hz\":%llu,\"cycles_per_packet\":{\"total\":%.1f,\"accounting\":%.1f,",
	       r->mtu, p->chunk_bytes, (unsigned long long)p->bytes, p->seconds, pps, gbit(r),
	       (unsigned long long)rte_get_tsc_hz(), per_packet(p, p->cycles), accounting(r));
	stages_print(&s->stage, s->packets);
	printf("},");
	printf("\"memcpy_gbit_s\":%.3f,\"memcpy_ratio\":%.4f,", r->memcpy_bytes_per_s * 8e-9,
	       gbit(r) / (r->memcpy_bytes_per_s * 8e-9));
	print_copies("fan_out", &r->fan);
	print_copies("forward", &r->forward);
	const struct pair_result *sum = &r->sum, *ss = &r->sum_staged;
	printf("\"sum_f32\":{\"payload_gbit_s\":%.3f,\"cycles_per_packet\":{\"total\":%.1f,"
	       "\"protocol\":%.1f,\"receive\":%.1f,\"add\":%.1f}},",
	       (double)sum->bytes * 8e-9 / sum->seconds, per_packet(sum, sum->cycles),
	       per_packet(ss, protocol(ss)), per_packet(ss, ss->stage.receive),
	       per_packet(ss, ss->stage.copy_in));
	printf("\"local_sum_f32\":{\"cycles_per_chunk\":%.1f,\"kernel\":%.1f},", r->local.cycles,
	       r->local.kernel_cycles);
	if (r->testpmd_pps > 0)
		printf("\"testpmd_packets_per_s\":%.0f,\"testpmd_ratio\":%.5f}\n", r->testpmd_pps,
		       pps / r->testpmd_pps);
	else
		printf("\"testpmd_packets_per_s\":null,\"testpmd_ratio\":null}\n");
}

struct settings {
	bool testpmd;
	double seconds, patience_s;
	uint64_t object_bytes;
	uint16_t mtu[8];
	unsigned mtus;
};

static bool measure(struct row *r, const struct settings *s)
{
	struct pair *p = pair_open(r->mtu, s->object_bytes, s->patience_s);
	double seconds = s->seconds;
	struct pair_result warm;
	if (!p)
		return false;
	bool done = pair_run(p, seconds / 4, false, PAIR_COPY, &warm) &&
		    pair_run(p, seconds, false, PAIR_COPY, &r->plain) &&
		    pair_run(p, seconds / 2, true, PAIR_COPY, &r->staged) &&
		    pair_run(p, seconds / 4, false, PAIR_FAN, &warm) &&
		    pair_run(p, seconds, false, PAIR_FAN, &r->fan.plain) &&
		    pair_run(p, seconds / 2, true, PAIR_FAN, &r->fan.staged) &&
		    pair_run(p, seconds, false, PAIR_FORWARD, &r->forward.plain) &&
		    pair_run(p, seconds / 2, true, PAIR_FORWARD, &r->forward.staged) &&
		    pair_run(p, seconds / 4, false, PAIR_SUM, &warm) &&
		    pair_run(p, seconds, false, PAIR_SUM, &r->sum) &&
		    pair_run(p, seconds / 2, true, PAIR_SUM, &r->sum_staged);
	if (done) {
		pair_memcpy(p, seconds / 8);
		r->memcpy_bytes_per_s = pair_memcpy(p, seconds / 2);
		r->testpmd_pps = s->testpmd ? testpmd_run((uint16_t)(r->mtu + 14), 2) : 0;
	}
	pair_close(p);
	return done && local_run(r->plain.chunk_bytes, s->object_bytes, &r->local);
}

static bool settings_parse(int argc, char **argv, struct settings *s)
{
	static const struct option rows[] = {{"seconds", required_argument, NULL, 's'},
					     {"mib", required_argument, NULL, 'b'},
					     {"mtu", required_argument, NULL, 'm'},
					     {"patience", required_argument, NULL, 'p'},
					     {"no-testpmd", no_argument, NULL, 't'},
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};
	*s = (struct settings){
		.testpmd = true, .seconds = 2, .patience_s = 30, .object_bytes = 64u << 20};
	for (int c; (c = getopt_long(argc, argv, "", rows, NULL)) != -1;) {
		switch (c) {
		case 't':
			s->testpmd = false;
			break;
		case 's':
			s->seconds = argument_need_real("--seconds", optarg, 1e6);
			break;
		case 'p':
			s->patience_s = argument_need_real("--patience", optarg, 1e9);
			break;
		case 'b':
			s->object_bytes = argument_need("--mib", optarg, 1, 1 << 20) << 20;
			break;
		case 'm':
			if (s->mtus < 8)
				s->mtu[s->mtus++] =
					(uint16_t)argument_need("--mtu", optarg, 1280, 9000);
			break;
		case 'h':
			printf("%s", usage);
			exit(0);
		default:
			return false;
		}
	}
	if (s->mtus == 0) {
		memcpy(s->mtu, (uint16_t[]){1500, 3498, 9000}, 3 * sizeof(*s->mtu));
		s->mtus = 3;
	}
	return s->seconds > 0 && s->patience_s > 0 && optind == argc;
}

int main(int argc, char **argv)
{
	static char *eal[] = {"dataplane",
			      "--no-huge",
			      "--no-shconf",
			      "-m",
			      "512",
			      "--no-pci",
			      "--no-telemetry",
			      "--log-level=error",
			      "--lcores=0",
			      "--vdev=net_ring0",
			      "--vdev=net_ring1",
			      "--vdev=net_ring2",
			      "--vdev=net_ring3",
			      "--vdev=net_ring4",
			      "--vdev=net_ring5",
			      "--vdev=net_ring6",
			      "--vdev=net_ring7",
			      NULL};
	struct settings s;
	if (!settings_parse(argc, argv, &s)) {
		fprintf(stderr, "%s", usage);
		return 2;
	}
	if (rte_eal_init(sizeof(eal) / sizeof(*eal) - 1, eal) < 0) {
		fprintf(stderr, "bench: DPDK does not start\n");
		return 1;
	}
	/* Other work on the machine is not to be measured; without this right, it is. Not for
	 * testpmd: it would leave the kernel no core. */
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK,
			   &(struct sched_param){.sched_priority = 1});
	for (unsigned i = 0; i < s.mtus; i++) {
		struct row r = {.mtu = s.mtu[i]};
		if (!measure(&r, &s))
			return 1;
		print_json(&r);
		fflush(stdout);
	}
	rte_eal_cleanup();
	return 0;
}
