/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A topology as JSON: show.h. Nodes have their numbers, switches their names. The file's order is
 * kept, so that rail r of a node is entry r of its list.
 */
#include "show.h"

/* The file may have any valid UTF-8 in its names. */
static void show_name(const char *name, FILE *out)
{
	fputc('"', out);
	for (; *name; name++) {
		if ((unsigned char)*name < 0x20)
			fprintf(out, "\\u%04x", (unsigned)*name);
		else if (*name == '"' || *name == '\\')
			fprintf(out, "\\%c", *name);
		else
			fputc(*name, out);
	}
	fputc('"', out);
}

static void show_speed(uint64_t bytes_per_s, uint64_t latency_ns, FILE *out)
{
	fprintf(out, ", \"rate_bps\": %llu, \"latency_ns\": %llu}",
		(unsigned long long)(bytes_per_s * 8), (unsigned long long)latency_ns);
}

static void show_node(const struct topology *t, const struct topology_node *n, FILE *out)
{
	fprintf(out, "{\"node\": %u, \"domain\": ", n->number);
	show_name(n->domain, out);
	fputs(", \"rails\": [", out);
	for (uint32_t k = 0; k < n->rails; k++) {
		const struct topology_rail *rail = &n->rail[k];

		fputs(k ? ", {" : "{", out);
		if (rail->to_node) {
			fprintf(out, "\"node\": %u", t->node[rail->to].number);
		} else {
			fputs("\"switch\": ", out);
			show_name(t->switch_[rail->to].name, out);
		}
		show_speed(rail->bytes_per_s, rail->latency_ns, out);
	}
	fputs("]}", out);
}

void show_topology(const struct topology *t, FILE *out)
{
	fputs("{\"switches\": [", out);
	for (uint32_t i = 0; i < t->switches; i++) {
		fputs(i ? ", " : "", out);
		show_name(t->switch_[i].name, out);
	}
	fputs("], \"nodes\": [", out);
	for (uint32_t i = 0; i < t->nodes; i++) {
		fputs(i ? ", " : "", out);
		show_node(t, &t->node[i], out);
	}
	fputs("], \"links\": [", out);
	for (uint32_t i = 0; i < t->trunks; i++) {
		const struct topology_trunk *link = &t->trunk[i];

		fputs(i ? ", {\"between\": [" : "{\"between\": [", out);
		show_name(t->switch_[link->a].name, out);
		fputs(", ", out);
		show_name(t->switch_[link->b].name, out);
		fputc(']', out);
		show_speed(link->bytes_per_s, link->latency_ns, out);
	}
	fputs("]}\n", out);
}

static void show_link(const struct topology_node *to, uint64_t a, uint64_t b, uint64_t latency_ns,
		      FILE *out)
{
	fprintf(out, "%u %llu %llu\n", to->number, (unsigned long long)((a < b ? a : b) * 8),
		(unsigned long long)latency_ns);
}

/* Of a rail to a switch: the nodes there, and at the switches that are linked with it. */
static void show_switch(const struct topology *t, const struct topology_node *n,
			const struct topology_rail *rail, FILE *out)
{
	for (uint32_t i = 0; i < t->nodes; i++) {
		const struct topology_node *o = &t->node[i];

		for (uint32_t k = 0; o != n && k < o->rails; k++) {
			const struct topology_rail *far = &o->rail[k];
			uint64_t rate = rail->bytes_per_s, latency = rail->latency_ns;

			if (far->to_node)
				continue;
			if (far->to == rail->to)
				show_link(o, rate, far->bytes_per_s, latency, out);
			for (uint32_t j = 0; j < t->trunks; j++) {
				const struct topology_trunk *l = &t->trunk[j];

				if ((l->a != rail->to || l->b != far->to) &&
				    (l->b != rail->to || l->a != far->to))
					continue;
				rate = l->bytes_per_s < rate ? l->bytes_per_s : rate;
				show_link(o, rate, far->bytes_per_s, latency + l->latency_ns, out);
			}
		}
	}
}

void show_links(const struct topology *t, uint32_t number, FILE *out)
{
	for (uint32_t i = 0; i < t->nodes; i++) {
		const struct topology_node *n = &t->node[i];

		for (uint32_t k = 0; n->number == number && k < n->rails; k++) {
			const struct topology_rail *rail = &n->rail[k];

			if (rail->to_node)
				show_link(&t->node[rail->to], rail->bytes_per_s, rail->bytes_per_s,
					  rail->latency_ns, out);
			else
				show_switch(t, n, rail, out);
		}
	}
}
