/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, levels and files of regular networks: shape.h. BCube(n, k) is as in Guo et al. (SIGCOMM
 * 2009): n^(k+1) servers with k + 1 ports, level l joining those that differ in digit l. The fat
 * tree is the three-tier one of Al-Fares et al. (SIGCOMM 2008): k^3/4 servers with one port.
 */
#include "shape.h"
#include <stdlib.h>
#include <string.h>

#define SHAPE_NAMES \
	"no such shape: flat:N, bcube:N,K (N^(K+1) nodes), torus:AxB or AxBxC, fattree:K"

/* A number from low to high, and what follows it. */
static bool shape_number(const char **at, uint32_t low, uint32_t high, uint32_t *out)
{
	char *end;
	unsigned long v;

	if (**at < '0' || **at > '9')
		return false;
	v = strtoul(*at, &end, 10);
	*at = end;
	*out = (uint32_t)v;
	return v >= low && v <= high;
}

static const char *shape_levels(struct shape *s)
{
	uint64_t places = 1;

	for (uint32_t l = 0; l < s->levels; l++)
		places *= s->members[l];
	if (places < 2 || places > NETWORK_NODES_MAX)
		return "a shape has 2 to 1024 nodes";
	s->places = (uint32_t)places;
	return NULL;
}

static const char *shape_parse_bcube(const char *at, struct shape *s)
{
	uint32_t members, last;

	if (!shape_number(&at, 2, NETWORK_NODES_MAX, &members) || *at++ != ',' ||
	    !shape_number(&at, 0, NETWORK_LEVELS_MAX - 1, &last) || *at)
		return "bcube:N,K takes a group's nodes N, from 2 on, and the highest level K, 0 to 7";
	s->levels = last + 1;
	for (uint32_t l = 0; l < s->levels; l++)
		s->members[l] = members;
	return shape_levels(s);
}

static const char *shape_parse_torus(const char *at, struct shape *s)
{
	do {
		if (s->levels == NETWORK_LEVELS_MAX ||
		    !shape_number(&at, 2, NETWORK_NODES_MAX, &s->members[s->levels++]) ||
		    (*at && *at != 'x'))
			return "torus:AxBxC takes the nodes of up to 8 axes, each from 2 on";
	} while (*at++ == 'x');
	return shape_levels(s);
}

const char *shape_parse(const char *name, struct shape *out)
{
	const char *at = strchr(name, ':');
	size_t length = at ? (size_t)(at - name) : 0;
	struct shape s = {.kind = SHAPE_NONE};
	const char *wrong = SHAPE_NAMES;
	uint32_t k;

	if (!at++)
		return SHAPE_NAMES;
	if (length == 4 && strncmp(name, "flat", length) == 0) {
		s.kind = SHAPE_FLAT;
		s.levels = 1;
		wrong = shape_number(&at, 2, NETWORK_NODES_MAX, &s.members[0]) && *at == '\0'
				? shape_levels(&s)
				: "flat:N takes the number of nodes, 2 to 1024";
	} else if (length == 5 && strncmp(name, "bcube", length) == 0) {
		s.kind = SHAPE_BCUBE;
		wrong = shape_parse_bcube(at, &s);
	} else if (length == 5 && strncmp(name, "torus", length) == 0) {
		s.kind = SHAPE_TORUS;
		wrong = shape_parse_torus(at, &s);
	} else if (length == 7 && strncmp(name, "fattree", length) == 0) {
		s.kind = SHAPE_FATTREE;
		s.levels = 3;
		if (!shape_number(&at, 4, 16, &k) || *at || k % 2)
			return "fattree:K takes the ports of a switch, an even number from 4 to 16";
		s.members[0] = s.members[1] = k / 2;
		s.members[2] = k;
		wrong = shape_levels(&s);
	}
	if (!wrong)
		*out = s;
	return wrong;
}

bool shape_ring(const struct shape *s)
{
	return s->kind == SHAPE_TORUS;
}

uint32_t shape_rail(const struct shape *s, uint32_t level)
{
	if (s->kind == SHAPE_TORUS)
		return 2 * level;
	return s->kind == SHAPE_BCUBE ? level : 0;
}

uint32_t shape_rails(const struct shape *s)
{
	return shape_rail(s, s->levels - 1) + (shape_ring(s) ? 2 : 1);
}

static uint32_t shape_weight(const struct shape *s, uint32_t level)
{
	uint32_t weight = 1;

	for (uint32_t l = 0; l < level; l++)
		weight *= s->members[l];
	return weight;
}

static uint32_t shape_coordinate(const struct shape *s, uint32_t place, uint32_t level)
{
	return place / shape_weight(s, level) % s->members[level];
}

/* Of a BCube: the number of the switch of a level that a place is at. */
static uint32_t shape_bcube_switch(const struct shape *s, uint32_t place, uint32_t level)
{
	uint32_t weight = shape_weight(s, level);

	return place / weight / s->members[level] * weight + place % weight;
}

static void shape_write_rail(const struct shape *s, uint32_t place, uint32_t rail, FILE *out)
{
	uint32_t level = s->kind == SHAPE_TORUS ? rail / 2 : rail;
	uint32_t members = s->members[level], at = shape_coordinate(s, place, level);
	uint32_t step = rail % 2 ? members - 1 : 1;

	switch (s->kind) {
	case SHAPE_TORUS:
		fprintf(out, "%u",
			place - at * shape_weight(s, level) +
				(at + step) % members * shape_weight(s, level));
		break;
	case SHAPE_BCUBE:
		fprintf(out, "s%u.%u", level, shape_bcube_switch(s, place, level));
		break;
	case SHAPE_FATTREE:
		fprintf(out, "edge%u.%u", shape_coordinate(s, place, 2),
			shape_coordinate(s, place, 1));
		break;
	default:
		fprintf(out, "s0");
	}
}

static void shape_write_switches(const struct shape *s, FILE *out)
{
	uint32_t half = s->members[0];

	if (s->kind == SHAPE_TORUS)
		return;
	fprintf(out, "switches:\n");
	if (s->kind == SHAPE_FLAT)
		fprintf(out, "  - s0\n");
	for (uint32_t l = 0; s->kind == SHAPE_BCUBE && l < s->levels; l++)
		for (uint32_t i = 0; i < s->places / s->members[l]; i++)
			fprintf(out, "  - s%u.%u\n", l, i);
	for (uint32_t pod = 0; s->kind == SHAPE_FATTREE && pod < s->members[2]; pod++)
		for (uint32_t i = 0; i < half; i++)
			fprintf(out, "  - edge%u.%u\n  - aggregate%u.%u\n", pod, i, pod, i);
	for (uint32_t i = 0; s->kind == SHAPE_FATTREE && i < half * half; i++)
		fprintf(out, "  - core%u\n", i);
}

/* Each edge switch to all aggregation switches of its pod, each of these to its own core switches.
 */
static void shape_write_links(const struct shape *s, const char *rate, const char *latency,
			      FILE *out)
{
	static const char link[] = "  - {between: [%s, %s], rate: %s, latency: %s}\n";
	uint32_t half = s->members[0];
	char a[32], b[32];

	if (s->kind != SHAPE_FATTREE)
		return;
	fprintf(out, "links:\n");
	for (uint32_t pod = 0; pod < s->members[2]; pod++)
		for (uint32_t i = 0; i < half; i++)
			for (uint32_t j = 0; j < half; j++) {
				snprintf(a, sizeof(a), "aggregate%u.%u", pod, i);
				snprintf(b, sizeof(b), "edge%u.%u", pod, j);
				fprintf(out, link, b, a, rate, latency);
				snprintf(b, sizeof(b), "core%u", i * half + j);
				fprintf(out, link, a, b, rate, latency);
			}
}

void shape_write(const char *name, const struct shape *s, const char *rate, const char *latency,
		 FILE *out)
{
	fprintf(out, "# a topology of Sarissa: docs/user/topology.md\nshape: '%s'\n", name);
	shape_write_switches(s, out);
	fprintf(out, "nodes:\n");
	for (uint32_t place = 0; place < s->places; place++) {
		fprintf(out, "  - node: %u\n    at: [", place);
		for (uint32_t l = 0; l < s->levels; l++)
			fprintf(out, "%s%u", l ? ", " : "", shape_coordinate(s, place, l));
		fprintf(out, "]\n    rails:\n");
		for (uint32_t rail = 0; rail < shape_rails(s); rail++) {
			fprintf(out, "      - {to: ");
			shape_write_rail(s, place, rail, out);
			fprintf(out, ", rate: %s, latency: %s}\n", rate, latency);
		}
	}
	shape_write_links(s, rate, latency, out);
}
