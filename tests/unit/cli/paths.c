/* SPDX-License-Identifier: BSD-3-Clause */
/* What `sarissa peers` and doctor find wrong with a path, and what changes between two looks; what
 * they say of the port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cli/doctor/counters_file.h"
#include "cli/doctor/paths.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

enum { PATHS = 4 };

/* Four that are as good as each other. */
static struct paths usual_ones(void)
{
	static struct path row[PATHS];
	for (uint32_t i = 0; i < PATHS; i++)
		row[i] = (struct path){.node = i,
				       .conn = i + 1,
				       .values = {.counters = {.tx_bytes = 1 << 30,
							       .rx_pkts = 10000,
							       .lost_pkts = 50,
							       .lost_spurious = 50},
						  .gauges = {.up = 1,
							     .written_ns = 5 * S,
							     .age_ns = 4 * S,
							     .tx_pkts = 10000,
							     .rtt_ns = 2 * MS,
							     .rtt_least_ns = 100000 + i,
							     .best_bytes_per_s = 1000 << 20,
							     .path_bytes_per_s = 900 << 20}}};
	return (struct paths){.row = row, .count = PATHS};
}

static const char *note_of(const struct paths *p, uint32_t i)
{
	static char note[PATHS_NOTE_BYTES];
	struct paths_note_usual usual = paths_note_usual(p);
	bool found = paths_note(&p->row[i], &usual, note);
	assert_int_equal(found, *note != '\0');
	return note;
}

static void nothing_is_wrong(void **state)
{
	struct paths p = usual_ones(), none = {.row = NULL};
	for (uint32_t i = 0; i < PATHS; i++)
		assert_string_equal(note_of(&p, i), "");
	assert_int_equal(paths_note_usual(&none).rtt_ns, 0);
}

static void each_ill_has_its_note(void **state)
{
	struct paths p = usual_ones();
	p.row[0].values.counters.lost_pkts = 250;
	p.row[1].values.gauges.missing_pkts = 300;
	p.row[2].values.gauges.path_bytes_per_s = p.row[2].values.gauges.best_bytes_per_s = 20
											    << 20;
	p.row[3].values.gauges.rtt_least_ns = 30 * MS;
	assert_string_equal(note_of(&p, 0), "2.0 % of what is sent to it is lost");
	assert_string_equal(note_of(&p, 1), "2.9 % of what it sends is lost");
	assert_string_equal(note_of(&p, 2),
			    "slow: 20.0 MiB/s when it was full, others 1000.0 MiB/s");
	assert_string_equal(note_of(&p, 3), "far: 30.00 ms at least, others 100.0 us");
	p.mtu = 1500;
	p.row[3].values.gauges.mtu = 1404;
	assert_string_equal(note_of(&p, 3), "far: 30.00 ms at least, others 100.0 us");
	p.row[3].values.gauges.age_ns = 5 * S;
	assert_string_equal(note_of(&p, 3),
			    "narrow: carries packets of 1404 bytes, the link here of 1500; longer "
			    "chunks go in parts");
	p.row[3].values.gauges.age_ns = 4 * S;
	p.row[3].values.gauges.waiting_ns = 450 * MS;
	assert_string_equal(note_of(&p, 3), "has not answered for 450.00 ms");
	p.row[3].values.gauges.up = 0;
	assert_string_equal(note_of(&p, 3), "has not answered for 4.00 s");
}

/* A share of few packets, a slow path that nothing was compared with, a path that never was full.
 */
static void too_little_says_nothing(void **state)
{
	struct paths p = usual_ones();
	p.row[0].values.gauges.tx_pkts = 999;
	p.row[0].values.counters.lost_pkts = 600;
	assert_string_equal(note_of(&p, 0), "");
	p.row[1].values.gauges.path_bytes_per_s = 0;
	p.row[1].values.gauges.best_bytes_per_s = 1000;
	assert_string_equal(note_of(&p, 1), "");
	p.row[2].values.gauges.path_bytes_per_s = p.row[2].values.gauges.best_bytes_per_s = 1000;
	p.count = 1;
	p.row[0] = p.row[2];
	assert_string_equal(note_of(&p, 0), "");
}

/* Four neighbours on one switch, as one saw them whose two cores seven others used: the process
 * over there gets its turn late, and a peer to which little is sent has no round trip without that.
 */
static void a_busy_host_is_not_far(void **state)
{
	static const struct {
		uint64_t pkts, age_ns, rtt_least_ns, rtt_ns;
	} seen[PATHS] = {
		{180000, 60 * S, 92000, 1900000},
		{2400, 60 * S, 310000, 7300000},
		{600, 300 * S, 19200000, 22000000}, /* keep-alives: few in the life of a least */
		{2300, 60 * S, 8100000, 12000000},
	};
	struct paths p = usual_ones();
	for (uint32_t i = 0; i < PATHS; i++) {
		p.row[i].values.gauges.tx_pkts = seen[i].pkts;
		p.row[i].values.gauges.age_ns = seen[i].age_ns;
		p.row[i].values.counters.lost_pkts = p.row[i].values.counters.lost_spurious = 0;
		p.row[i].values.gauges.rtt_least_ns = seen[i].rtt_least_ns;
		p.row[i].values.gauges.rtt_ns = seen[i].rtt_ns;
	}
	for (uint32_t i = 0; i < PATHS; i++)
		assert_string_equal(note_of(&p, i), "");
	/* another site is, once enough was sent there */
	p.row[2].values.gauges.tx_pkts = 6000;
	assert_string_equal(note_of(&p, 2), "far: 19.20 ms at least, others 310.0 us");
	p.row[2].values.gauges.age_ns = S; /* a young one */
	p.row[2].values.gauges.tx_pkts = 99;
	assert_string_equal(note_of(&p, 2), "");
}

static void only_the_change_counts(void **state)
{
	struct paths before = usual_ones(), now = before;
	static struct path later[PATHS];
	memcpy(later, before.row, sizeof(later));
	now.row = later;
	later[0].values.counters.tx_bytes += 1000;
	later[0].values.gauges.tx_pkts += 10;
	later[0].values.gauges.age_ns += S;
	later[0].values.gauges.written_ns += S;
	later[1].conn = 99; /* another connection to the same node */
	later[1].over_ns = 4 * S;
	paths_since(&now, &before);
	assert_int_equal(later[0].values.counters.tx_bytes, 1000);
	assert_int_equal(later[0].values.gauges.tx_pkts, 10);
	assert_int_equal(later[0].values.counters.lost_pkts, 0);
	assert_int_equal(later[0].over_ns, S);
	assert_int_equal(later[1].values.counters.tx_bytes, 1 << 30);
	assert_int_equal(later[1].over_ns, 4 * S);
}

static void shares_of_nothing_are_nothing(void **state)
{
	struct path p = {.values = {.counters = {.lost_pkts = 3, .lost_spurious = 5}}};
	assert_true(paths_note_lost(&p) == 0 && paths_note_missed(&p) == 0);
	p.values.gauges.tx_pkts = 10;
	assert_true(paths_note_lost(&p) == 0);
}

/* What the port said at its start, when a device refuses bursts by now; no text is cut. */
static void a_link_is_told_as_it_is_now(void **state)
{
	static struct counters_file_view view = {.header.workers = 2};
	char link[64] = "udp 10.0.0.1 (gso, gro)", xdp[64] = "af_xdp eth0 (native, copy)";
	char small[24] = "udp 10.0.0.1 (gso, gro)";
	counters_file_link(&view, link, sizeof(link));
	assert_string_equal(link, "udp 10.0.0.1 (gso, gro)");
	view.worker[1].io_gso_off = 1;
	counters_file_link(&view, link, sizeof(link));
	assert_string_equal(link, "udp 10.0.0.1 (gso refused, gro)");
	counters_file_link(&view, xdp, sizeof(xdp));
	assert_string_equal(xdp, "af_xdp eth0 (native, copy)");
	counters_file_link(&view, small, sizeof(small));
	assert_string_equal(small, "udp 10.0.0.1 (gso, gro)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_wrong),
		cmocka_unit_test(each_ill_has_its_note),
		cmocka_unit_test(too_little_says_nothing),
		cmocka_unit_test(a_busy_host_is_not_far),
		cmocka_unit_test(only_the_change_counts),
		cmocka_unit_test(shares_of_nothing_are_nothing),
		cmocka_unit_test(a_link_is_told_as_it_is_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
