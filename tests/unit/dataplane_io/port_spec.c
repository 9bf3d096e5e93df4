/* SPDX-License-Identifier: BSD-3-Clause */
/* The --port option: short forms, what is wrong with the others, and the driver's arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "io/ports/port.h"

static struct port_spec good(const char *text)
{
	struct port_spec s;
	const char *why = NULL;
	assert_true(port_spec_parse(text, &s, &why));
	assert_string_equal(s.text, text);
	return s;
}

/* The port of a rail, as far as its device's argument needs it. */
static void device(const char *text, uint8_t rail, unsigned d, char *out)
{
	static struct port p;
	struct options o = {.port = good(text), .rail = rail};
	p = (struct port){.type = o.port.type, .mtu = 1500, .queues = 2};
	assert_true(port_devargs(&o, &p, d, out, PORT_SPEC_DEVARGS));
	assert_false(port_devargs(&o, &p, d, out + PORT_SPEC_DEVARGS, (unsigned)strlen(out)));
}

static void args(const char *text, const char *want)
{
	char out[2 * PORT_SPEC_DEVARGS];
	device(text, 0, 3, out);
	assert_string_equal(out, want);
}

static void test_fields(void **state)
{
	struct port_spec s = good("af_xdp:eth0,queues=4,copy");
	assert_string_equal(s.type->name, "af_xdp");
	assert_string_equal(s.name, "eth0");
	assert_int_equal(s.queues, 4);
	assert_true(s.copy);
	s = good("memif:7,role=server,socket=/run/m.sock");
	assert_string_equal(s.type->name, "memif");
	assert_true(s.server);
	assert_string_equal(s.socket, "/run/m.sock");
	s = good("vdev:net_pcap0,iface=lo,x=1");
	assert_string_equal(s.name, "net_pcap0,iface=lo,x=1");
}

static void test_udp(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2},
			     v6[16] = {0xfd, 0x77, [15] = 1};
	struct port_spec s = good("udp:127.0.0.2,single,buffer=16");
	assert_string_equal(s.type->name, "udp");
	assert_true(s.type->sockets);
	assert_true(s.has_addr && s.single);
	assert_int_equal(s.buffer, 16384);
	assert_memory_equal(s.addr.ip, v4, 16);
	s = good("udp:fd77::1");
	assert_true(s.has_addr && !s.single);
	assert_memory_equal(s.addr.ip, v6, 16);
	s = good("udp:eth0");
	assert_false(s.has_addr);
	assert_string_equal(s.name, "eth0");
	assert_true(good("udp:0.0.0.0").has_addr);
	assert_true(good("udp:::").has_addr);
}

static void test_devargs(void **state)
{
	char out[2 * PORT_SPEC_DEVARGS], want[PORT_SPEC_DEVARGS];
	device("af_xdp:eth0", 0, 3, out);
	snprintf(want, sizeof(want),
		 "net_af_xdp3,iface=eth0,start_queue=3,xdp_prog=%s,force_copy=0,busy_budget=0",
		 xdp_object(XDP_OBJECT));
	assert_string_equal(out, want);
	args("tap:t0", "net_tap0,iface=t0");
	args("memif:1", "net_memif1,id=1,role=client,bsize=2048,rsize=10");
	args("memif:1,role=server,socket=/a/b",
	     "net_memif1,id=1,role=server,socket-abstract=no,socket=/a/b,bsize=2048,rsize=10");
	args("vhost:/run/v.sock", "net_vhost0,iface=/run/v.sock,queues=2");
	args("ring:r", "net_ring_r");
	args("vdev:net_null0,size=64", "net_null0,size=64");
}

static void names(const char *text, unsigned rail, const char *name)
{
	char out[2 * PORT_SPEC_DEVARGS];
	device(text, (uint8_t)rail, 1, out);
	assert_int_equal(strcspn(out, ","), strlen(name));
	assert_memory_equal(out, name, strlen(name));
}

static void each_port_of_a_node_has_a_name_of_its_own(void **state)
{
	names("af_xdp:eth0", 0, "net_af_xdp1");
	names("af_xdp:eth1", 1, "net_af_xdp17");
	names("af_xdp:eth2", 7, "net_af_xdp113");
	names("tap:t0", 2, "net_tap2");
	names("vhost:/run/v.sock", 3, "net_vhost3");
}

static bool same(const char *a, const char *b)
{
	struct port_spec x = good(a), y = good(b);
	assert_int_equal(port_spec_same(&x, &y), port_spec_same(&y, &x));
	return port_spec_same(&x, &y);
}

static void one_device_is_not_two_ports(void **state)
{
	assert_true(same("af_xdp:eth0", "af_xdp:eth0,copy"));
	assert_true(same("af_xdp:eth0", "udp:eth0"));
	assert_true(same("udp:10.0.0.1", "udp:10.0.0.1,single"));
	assert_true(same("pci:0000:3b:00.0", "pci:0000:3b:00.0,mprq_en=1"));
	assert_true(same("vdev:net_null0,size=64", "vdev:net_null0"));
	assert_true(same("memif:1", "memif:1,role=server"));
	assert_false(same("af_xdp:eth0", "af_xdp:eth1"));
	assert_false(same("udp:10.0.0.1", "udp:10.0.0.2"));
	assert_false(same("udp:eth0", "udp:10.0.0.2"));
	assert_false(same("tap:eth0", "af_xdp:eth0"));
	assert_false(same("vdev:net_null0", "vdev:net_null01"));
	assert_false(same("memif:1", "memif:2"));
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"eth0",
		"xdp:eth0",
		"af_xdp:",
		"af_xdp:,copy",
		"af_xdp:a_name_of_16_byte",
		"af_xdp:eth0,queues=0",
		"af_xdp:eth0,queues=17",
		"af_xdp:eth0,queues=2x",
		"af_xdp:eth0,queues=",
		"af_xdp:eth0,fast",
		"af_xdp:eth0,",
		"udp:",
		"udp:,single",
		"udp:10.0.0.1,fast",
		"udp:10.0.0.1,buffer=0",
		"udp:10.0.0.1,buffer=2m",
		"udp:10.0.0.1:7400",
		"udp:10.0.0.256x_is_no_name",
		"udp:[fd77::1]",
		"udp:fd77::1::",
		"udp:224.0.0.1",
		"udp:ff02::1",
		"udp:fe80::1",
		"tap:t0,copy",
		"memif:x",
		"memif:1,role=boss",
		"memif:1,socket=relative",
		"vhost:",
		"vhost:relative",
		"vhost:/run/v.sock,queues=2",
		"ring:a_ring_name_of_more_than_24_bytes",
		"pci:",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct port_spec s;
		const char *why = NULL;
		assert_false(port_spec_parse(texts[i], &s, &why));
		assert_non_null(why);
	}
	struct port_spec none;
	const char *types = NULL;
	assert_false(port_spec_parse("eth0", &none, &types));
	assert_string_equal(
		types,
		"it must start with af_xdp:, udp:, tap:, memif:, vhost:, ring:, pci: or vdev:");
	char long_text[400] = "vdev:";
	memset(long_text + 5, 'x', 300);
	struct port_spec s;
	const char *why;
	assert_false(port_spec_parse(long_text, &s, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_devargs),
		cmocka_unit_test(each_port_of_a_node_has_a_name_of_its_own),
		cmocka_unit_test(one_device_is_not_two_ports),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
