/* SPDX-License-Identifier: BSD-3-Clause */
/* Topology files: those of regular networks are read back as they were meant; each fault is told
 * with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "file.h"
#include "show.h"
#include "units.h"
#include <cmocka.h>

static char path[] = "/tmp/sarissa-topology-XXXXXX";
static char error[TOPOLOGY_ERROR_BYTES];

static int make_file(void **state)
{
	int fd = mkstemp(path);

	close(fd);
	return fd < 0;
}

static int remove_file(void **state)
{
	return unlink(path);
}

static struct topology *read_text(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	error[0] = '\0';
	return topology_read(path, error);
}

/* What the error says behind the path. */
static void assert_refused(const char *text, const char *why)
{
	assert_null(read_text(text));
	assert_memory_equal(error, path, strlen(path));
	assert_string_equal(error + strlen(path), why);
}

static void files_of_shapes_are_read_back(void **state)
{
	static const char *const names[] = {"flat:16",	   "bcube:3,1", "bcube:2,3", "torus:4x3",
					    "torus:2x2x2", "fattree:4", "bcube:8,0"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct topology *t;
		struct network w;
		struct shape s;
		FILE *f;

		assert_null(shape_parse(names[i], &s));
		f = fopen(path, "w");
		assert_non_null(f);
		shape_write(names[i], &s, "8G", "20us", f);
		fclose(f);
		t = topology_read(path, error);
		if (!t)
			fail_msg("%s: %s", names[i], error);
		topology_of_shape(&s, 1000000000, 20000, &w);
		assert_null(network_wrong(&t->network));
		assert_int_equal(t->network.places, s.places);
		assert_int_equal(t->network.levels, w.levels);
		assert_memory_equal(t->network.level, w.level, sizeof(w.level));
		for (uint32_t n = 0; n < s.places; n++)
			assert_int_equal(network_place(&t->network, n), n);
		topology_free(t);
	}
}

static void shapes_that_are_none_are_refused(void **state)
{
	static const char *const names[] = {
		"",	     "flat",	  "flat:1",	"flat:1025",   "ring:4",   "bcube:3",
		"bcube:1,1", "bcube:3,9", "bcube:40,1", "torus:",      "torus:4x", "torus:4x1",
		"fattree:3", "fattree:5", "flat:8 ",	"bcube:3,1,1", "torus:4y4"};
	struct shape s;

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!shape_parse(names[i], &s))
			fail_msg("'%s' was taken", names[i]);
}

#define TWO_NODES                                        \
	"switches: [s0]\n"                               \
	"nodes:\n"                                       \
	"  - {node: 3, rails: [{to: s0, rate: 100M}]}\n" \
	"  - {node: 7, domain: rack1, rails: [{to: s0, rate: 200M, latency: 5us, numa: 1}]}\n"

static void a_file_without_a_shape_is_one_level(void **state)
{
	struct topology *t = read_text(TWO_NODES);

	assert_non_null(t);
	assert_int_equal(t->network.levels, 1);
	assert_int_equal(t->network.places, 2);
	assert_int_equal(t->network.level[0].bytes_per_s, 12500000);
	assert_int_equal(t->network.level[0].latency_ns, 5000);
	assert_int_equal(network_place(&t->network, 3), 0);
	assert_int_equal(network_place(&t->network, 7), 1);
	assert_int_equal(network_place(&t->network, 0), NETWORK_NONE);
	assert_string_equal(t->node[1].domain, "rack1");
	assert_int_equal(t->node[0].rail[0].numa, -1);
	assert_int_equal(t->node[1].rail[0].numa, 1);
	topology_free(t);
}

static void each_fault_has_its_line(void **state)
{
	assert_refused("", ":1: the file is empty: see 'sarissa topology flat:4'");
	assert_refused("nodes: 3\n", ":1: nodes is a list");
	assert_refused("[1, 2]\n", ":1: a topology is a mapping of keys");
	assert_refused("nodes: [\n", ":2: no YAML: did not find expected node content");
	assert_refused("switches: [s0]\n", ":1: a topology needs the key 'nodes'");
	assert_refused("switches: [s0]\ncolour: red\n", ":2: a topology has no key 'colour'");
	assert_refused("switches:\n  - s0\n  - s0\n", ":3: switch 's0' is named twice");
	assert_refused("switches: [s0]\nnodes:\n  - {node: 0, rails: [{to: s1, rate: 1G}]}\n",
		       ":3: unknown switch 's1': list it under 'switches'");
	assert_refused("switches: [s0]\nnodes:\n  - {node: 0, rails: [{to: s0, rate: 0}]}\n",
		       ":3: rate '0' is no rate above 0: write bits per second, as 100M or 25G");
	assert_refused("switches: [s0]\nnodes:\n  - {node: 0, rails: [{to: s0}]}\n",
		       ":3: a rail needs the key 'rate'");
	assert_refused("switches: [s0]\nnodes:\n  - {node: 4000, rails: []}\n",
		       ":3: node '4000' is not a number from 0 to 1023");
	assert_refused(TWO_NODES "  - {node: 3, rails: [{to: s0, rate: 1G}]}\n",
		       ":5: node 3 is named twice");
	assert_refused("nodes:\n  - {node: 0, node: 1, rails: []}\n",
		       ":2: the key 'node' stands twice");
	assert_refused("nodes:\n  - {node: 0, at: [0], rails: []}\n",
		       ":2: coordinates need a 'shape' before the nodes");
	assert_refused("shape: 'bcube:2,1'\nnodes:\n  - {node: 0, at: [0, 2], rails: []}\n",
		       ":3: coordinate '2' is not a number from 0 to 1");
	assert_refused("shape: 'bcube:2,1'\nnodes:\n  - {node: 0, at: [0], rails: []}\n",
		       ":3: 'at' has 1 coordinates, the shape has 2 levels");
	assert_refused("shape: ball\n", ":1: shape 'ball': no such shape: flat:N, bcube:N,K "
					"(N^(K+1) nodes), torus:AxB or AxBxC, fattree:K");
}

static void faults_of_the_whole_name_what_they_are_about(void **state)
{
	assert_refused("switches: [a]\nnodes:\n  - {node: 0, rails: [{to: a, rate: 1G}]}\n",
		       ":3: a topology has at least two nodes, not 1");
	assert_refused("switches: [a, b]\nnodes:\n  - {node: 0, rails: [{to: a, rate: 1G}]}\n"
		       "  - {node: 1, rails: [{to: b, rate: 1G}]}\n",
		       ":4: the topology is not connected: no way from node 0 to node 1");
	assert_refused("switches: [a, b]\nnodes:\n  - {node: 0, rails: [{to: a, rate: 1G}]}\n"
		       "  - {node: 1, rails: [{to: b, rate: 1G}]}\n"
		       "links:\n  - {between: [a, b], rate: 1G}\n  - {between: [b, a], rate: 1G}\n",
		       ":7: the link between 'b' and 'a' is named twice");
	assert_refused("nodes:\n  - {node: 0, rails: [{to: 1, rate: 1G}]}\n"
		       "  - {node: 1, rails: [{to: 2, rate: 1G}]}\n",
		       ":3: node 1 has a rail to node 2, which is unknown");
	assert_refused("switches: [a]\nnodes:\n  - {node: 0, rails: [{to: 1, rate: 1G}]}\n"
		       "  - {node: 1, rails: [{to: a, rate: 1G}]}\n",
		       ":3: nodes 0 and 1 do not name the same links between them");
	assert_refused("switches: [a]\nnodes:\n"
		       "  - {node: 0, rails: [{to: a, rate: 1G}, {to: a, rate: 1G}]}\n"
		       "  - {node: 1, rails: [{to: a, rate: 1G}]}\n",
		       ":3: the link from node 0 to switch 'a' is named twice");
	assert_refused(
		"shape: 'bcube:2,0'\nswitches: [a, b]\nnodes:\n"
		"  - {node: 0, at: [0], rails: [{to: a, rate: 1G}]}\n"
		"  - {node: 1, at: [1], rails: [{to: b, rate: 1G}]}\n"
		"links: [{between: [a, b], rate: 1G}]\n",
		":4: rail 0 of nodes 0 and 1, one group of level 0, leads to different switches");
	assert_refused("shape: 'flat:3'\nswitches: [a]\nnodes:\n"
		       "  - {node: 0, at: [0], rails: [{to: a, rate: 1G}]}\n"
		       "  - {node: 1, at: [1], rails: [{to: a, rate: 1G}]}\n",
		       ":4: the shape has 3 nodes, the file 2");
}

/* Without coordinates nodes of one switch, or of one domain, are near each other. */
static void racks_are_domains_or_switches(void **state)
{
	struct topology *t = read_text("switches: [a, b]\nnodes:\n"
				       "  - {node: 0, rails: [{to: a, rate: 1G}]}\n"
				       "  - {node: 1, rails: [{to: b, rate: 1G}]}\n"
				       "  - {node: 2, rails: [{to: a, rate: 1G}]}\n"
				       "  - {node: 3, domain: x, rails: [{to: a, rate: 1G}]}\n"
				       "  - {node: 9, domain: x, rails: [{to: b, rate: 1G}]}\n"
				       "links: [{between: [a, b], rate: 1G}]\n");

	if (!t)
		fail_msg("%s", error);
	assert_int_equal(network_distance(&t->network, 0, 0), 0);
	assert_int_equal(network_distance(&t->network, 0, 2), 1);
	assert_int_equal(network_distance(&t->network, 0, 1), 2);
	assert_int_equal(network_distance(&t->network, 0, 3), 2);
	assert_int_equal(network_distance(&t->network, 3, 9), 1);
	assert_int_equal(network_distance(&t->network, 3, 4), NETWORK_NONE);
	assert_true(t->network.narrow); /* of three nodes at a switch, one's rate leads away */
	assert_int_equal(network_nearer(&t->network, 1), 1);
	assert_int_equal(network_nearer(&t->network, 2), 0);
	topology_free(t);
}

/* A torus joins the rail to the next node with that to the one before. */
static void links_between_unlike_rails_are_named(void **state)
{
	struct topology *t =
		read_text("nodes:\n"
			  "  - {node: 4, rails: [{to: 5, rate: 1G}, {to: 6, rate: 1G}]}\n"
			  "  - {node: 5, rails: [{to: 4, rate: 1G}, {to: 6, rate: 1G}]}\n"
			  "  - {node: 6, rails: [{to: 4, rate: 1G}, {to: 5, rate: 1G}]}\n");
	char why[TOPOLOGY_WHY_BYTES];

	if (!t)
		fail_msg("%s", error);
	assert_string_equal(topology_unlike(t, why),
			    "line 2: rail 1 of node 4 leads to node 6, whose rail 1 does not lead "
			    "back: give the dataplane one port, and the kernel routes");
	topology_free(t);
	t = read_text("switches: [a]\nnodes:\n"
		      "  - {node: 0, rails: [{to: 1, rate: 1G}, {to: a, rate: 1G}]}\n"
		      "  - {node: 1, rails: [{to: 0, rate: 1G}, {to: a, rate: 1G}]}\n");
	if (!t)
		fail_msg("%s", error);
	assert_null(topology_unlike(t, why));
	topology_free(t);
}

static void links_of_a_node_are_listed(void **state)
{
	struct topology *t = read_text(
		"switches: [a, b]\nnodes:\n"
		"  - {node: 0, rails: [{to: a, rate: 16M, latency: 5ns}, {to: 3, rate: 8M}]}\n"
		"  - {node: 1, rails: [{to: a, rate: 8M}]}\n"
		"  - {node: 2, rails: [{to: b, rate: 24M}]}\n"
		"  - {node: 3, rails: [{to: 0, rate: 8M}]}\n"
		"links: [{between: [b, a], rate: 4M, latency: 3ns}]\n");
	char *shown = NULL;
	size_t bytes;
	FILE *out = open_memstream(&shown, &bytes);

	if (!t)
		fail_msg("%s", error);
	assert_non_null(out);
	show_links(t, 0, out);
	show_links(t, 7, out);
	fclose(out);
	assert_string_equal(shown, "1 8000000 5\n2 4000000 8\n3 8000000 0\n");
	free(shown);
	topology_free(t);
}

static void all_of_a_file_is_shown(void **state)
{
	struct topology *t = read_text(
		"switches: ['a\"\\', \"b\\t\"]\n"
		"nodes:\n"
		"  - {node: 4, rails: [{to: 'a\"\\', rate: 1G, latency: 2us}, {to: 0, rate: 8M}]}\n"
		"  - {node: 0, domain: r1, rails: [{to: 4, rate: 8M}]}\n"
		"links: [{between: ['a\"\\', \"b\\t\"], rate: 16M, latency: 3ns}]\n");
	char *shown = NULL;
	size_t bytes;
	FILE *out = open_memstream(&shown, &bytes);

	if (!t)
		fail_msg("%s", error);
	assert_non_null(out);
	show_topology(t, out);
	fclose(out);
	assert_string_equal(
		shown,
		"{\"switches\": [\"a\\\"\\\\\", \"b\\u0009\"], \"nodes\": ["
		"{\"node\": 4, \"domain\": \"\", \"rails\": ["
		"{\"switch\": \"a\\\"\\\\\", \"rate_bps\": 1000000000, \"latency_ns\": 2000}, "
		"{\"node\": 0, \"rate_bps\": 8000000, \"latency_ns\": 0}]}, "
		"{\"node\": 0, \"domain\": \"r1\", \"rails\": ["
		"{\"node\": 4, \"rate_bps\": 8000000, \"latency_ns\": 0}]}], "
		"\"links\": [{\"between\": [\"a\\\"\\\\\", \"b\\u0009\"], "
		"\"rate_bps\": 16000000, \"latency_ns\": 3}]}\n");
	free(shown);
	topology_free(t);
}

static void a_file_that_is_too_large_is_not_read(void **state)
{
	assert_int_equal(truncate(path, 10 << 20), 0);
	assert_null(topology_read(path, error));
	assert_string_equal(error + strlen(path),
			    ": a topology is a regular file of at most 4 MiB");
	assert_null(topology_read("/dev/zero", error));
	assert_string_equal(error, "/dev/zero: a topology is a regular file of at most 4 MiB");
}

static void units_are_read(void **state)
{
	uint64_t v = 1;

	assert_true(units_rate("100M", &v));
	assert_int_equal(v, 12500000);
	assert_true(units_rate("2.5G", &v));
	assert_int_equal(v, 312500000);
	assert_true(units_time("1.5ms", &v));
	assert_int_equal(v, 1500000);
	assert_true(units_size("64M", &v));
	assert_int_equal(v, 64 << 20);
	assert_false(units_rate("0", &v) || units_rate("-1G", &v) || units_rate("1Q", &v) ||
		     units_rate("", &v) || units_rate("0x10", &v) || units_rate("inf", &v) ||
		     units_time("5", &v) || units_time("nan", &v) || units_size("1e99", &v));
	assert_int_equal(v, 64 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_shapes_are_read_back),
		cmocka_unit_test(shapes_that_are_none_are_refused),
		cmocka_unit_test(a_file_without_a_shape_is_one_level),
		cmocka_unit_test(each_fault_has_its_line),
		cmocka_unit_test(faults_of_the_whole_name_what_they_are_about),
		cmocka_unit_test(racks_are_domains_or_switches),
		cmocka_unit_test(links_between_unlike_rails_are_named),
		cmocka_unit_test(links_of_a_node_are_listed),
		cmocka_unit_test(all_of_a_file_is_shown),
		cmocka_unit_test(a_file_that_is_too_large_is_not_read),
		cmocka_unit_test(units_are_read),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
