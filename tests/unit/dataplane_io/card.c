/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel shows of a network card, in a folder that stands for /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/ports/card.h"

static char sys[] = "/tmp/sarissa-card-XXXXXX";

static void shell(const char *format, const char *a, const char *b)
{
	char command[1024];
	snprintf(command, sizeof(command), format, sys, a, b);
	assert_int_equal(system(command), 0);
}

/* A card with a driver of the kernel ("": none), with an IOMMU before it or not. */
static void put(const char *class, const char *driver, const char *group)
{
	shell("rm -rf %s/bus; mkdir -p %1$s/bus/pci/devices/0000:3b:00.0", "", "");
	shell("echo %2$s >%1$s/bus/pci/devices/0000:3b:00.0/class", class, "");
	shell("echo 1 >%s/bus/pci/devices/0000:3b:00.0/numa_node", "", "");
	if (*driver)
		shell("ln -s ../../drivers/%2$s %1$s/bus/pci/devices/0000:3b:00.0/driver", driver,
		      "");
	if (*group)
		shell("ln -s /sys/kernel/iommu_groups/%2$s "
		      "%1$s/bus/pci/devices/0000:3b:00.0/iommu_group",
		      group, "");
}

static enum card_verdict judged(const char *text, struct card *out)
{
	return card_read(sys, text, out);
}

static void what_is_no_address(void **state)
{
	static const char *const wrong[] = {"",
					    "nonsense",
					    "3b:00",
					    "3b:00.8",
					    "3b:20.0",
					    "0000:3b:00.0x",
					    "12345:3b:00.0",
					    "eth0",
					    "0000:3b:00.0;rm",
					    ",3b:00.0"};
	struct card c;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(judged(wrong[i], &c), CARD_NO_ADDRESS);
}

static void where_it_is(void **state)
{
	struct card c;
	put("0x020000", "vfio-pci", "17");
	assert_int_equal(judged("0000:3b:00.0", &c), CARD_GOOD);
	assert_string_equal(c.driver, "vfio-pci");
	assert_int_equal(c.memory_node, 1);
	assert_int_equal(judged("3b:00.0", &c), CARD_GOOD);
	assert_int_equal(judged("3b:00.0,mprq_en=1", &c), CARD_GOOD);
	assert_string_equal(c.address, "0000:3b:00.0");
	assert_int_equal(judged("0000:3b:00.1", &c), CARD_MISSING);
	assert_int_equal(judged("0001:3b:00.0", &c), CARD_MISSING);
}

static void who_has_it(void **state)
{
	struct card c;
	put("0x010802", "vfio-pci", "17");
	assert_int_equal(judged("3b:00.0", &c), CARD_NOT_NETWORK);
	put("0x020000", "", "17");
	assert_int_equal(judged("3b:00.0", &c), CARD_UNBOUND);
	put("0x020000", "ice", "17");
	assert_int_equal(judged("3b:00.0", &c), CARD_OF_KERNEL);
	assert_string_equal(c.driver, "ice");
	put("0x020000", "mlx5_core", "");
	assert_int_equal(judged("3b:00.0", &c), CARD_GOOD);
	put("0x020000", "vfio-pci", "");
	assert_int_equal(judged("3b:00.0", &c), CARD_NO_IOMMU);
	assert_false(card_is_uio(&c));
	put("0x020000", "igb_uio", "");
	assert_int_equal(judged("3b:00.0", &c), CARD_GOOD);
	assert_true(card_is_uio(&c));
	put("0x020000", "uio_pci_generic", "");
	assert_int_equal(judged("3b:00.0", &c), CARD_GOOD);
	assert_true(card_is_uio(&c));
}

static void nodes_of_cores(void **state)
{
	shell("mkdir -p %s/devices/system/cpu/cpu3/node0", "", "");
	assert_int_equal(card_core_node(sys, 3), -1); /* one node: nothing to choose */
	shell("mkdir -p %s/devices/system/node/node1 %1$s/devices/system/cpu/cpu4/node1", "", "");
	assert_int_equal(card_core_node(sys, 3), 0);
	assert_int_equal(card_core_node(sys, 4), 1);
	assert_int_equal(card_core_node(sys, 5), -1);
}

static int begin(void **state)
{
	return mkdtemp(sys) ? 0 : -1;
}

static int end(void **state)
{
	shell("rm -rf %s", "", "");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_address),
		cmocka_unit_test(where_it_is),
		cmocka_unit_test(who_has_it),
		cmocka_unit_test(nodes_of_cores),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
