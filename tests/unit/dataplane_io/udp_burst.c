/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets go out as one burst: the kernel cuts at equal distances, for one address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "io/ports/udp.h"

enum { HEAD = 16, CHUNK = 1408 };

static struct packet_out packets[UDP_PACKETS];

static void fill(unsigned count)
{
	memset(packets, 0, sizeof(packets));
	for (unsigned k = 0; k < count; k++) {
		packets[k].head_length = HEAD;
		packets[k].payload_length = CHUNK;
		packets[k].to = (struct net_addr){.ip = {[15] = 1}, .port = 7400};
	}
}

static void one_length_and_a_rest(void **state)
{
	fill(20);
	assert_int_equal(udp_burst_packets(packets, 20), 20);
	assert_int_equal(udp_burst_packets(packets, 1), 1);
	packets[9].payload_length = 100; /* as the last of an object */
	assert_int_equal(udp_burst_packets(packets, 20), 10);
	packets[10].payload_length = 100;
	assert_int_equal(udp_burst_packets(packets, 20), 10);
	packets[5].payload_length++; /* a longer one begins a burst of its own */
	assert_int_equal(udp_burst_packets(packets, 20), 5);
	assert_int_equal(udp_burst_packets(packets + 5, 15), 2);
	packets[0].payload_length = 1;
	assert_int_equal(udp_burst_packets(packets, 20), 1);
}

static void a_head_counts_as_much_as_payload(void **state)
{
	fill(4);
	packets[1].head_length += 16;
	packets[1].payload_length -= 16;
	assert_int_equal(udp_burst_packets(packets, 4), 4);
}

static void to_one_address(void **state)
{
	fill(20);
	packets[7].to.port++;
	assert_int_equal(udp_burst_packets(packets, 20), 7);
	fill(20);
	packets[3].to.ip[0] = 1;
	assert_int_equal(udp_burst_packets(packets, 20), 3);
}

/* An acknowledgement behind chunks is no ECN-capable packet, and a chunk behind one is. */
static void of_one_codepoint(void **state)
{
	fill(20);
	for (unsigned k = 0; k < 20; k++)
		packets[k].ecn = 2;
	assert_int_equal(udp_burst_packets(packets, 20), 20);
	packets[7].ecn = 0;
	assert_int_equal(udp_burst_packets(packets, 20), 7);
	assert_int_equal(udp_burst_packets(packets + 7, 13), 1);
	assert_int_equal(udp_burst_packets(packets + 8, 12), 12);
	packets[19].ecn = 0;
	packets[19].payload_length = 40;
	assert_int_equal(udp_burst_packets(packets + 8, 12), 11);
}

static void as_much_as_the_kernel_takes(void **state)
{
	fill(UDP_PACKETS);
	assert_int_equal(udp_burst_packets(packets, UDP_PACKETS), UDP_BURST_BYTES / (HEAD + CHUNK));
	for (unsigned k = 0; k < UDP_PACKETS; k++)
		packets[k].payload_length = 100;
	assert_int_equal(udp_burst_packets(packets, UDP_PACKETS), UDP_SEGMENTS);
	for (unsigned k = 0; k < UDP_PACKETS; k++)
		packets[k].payload_length = 8896;
	assert_int_equal(udp_burst_packets(packets, UDP_PACKETS), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_length_and_a_rest),
		cmocka_unit_test(a_head_counts_as_much_as_payload),
		cmocka_unit_test(to_one_address),
		cmocka_unit_test(of_one_codepoint),
		cmocka_unit_test(as_much_as_the_kernel_takes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
