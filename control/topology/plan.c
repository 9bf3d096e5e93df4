/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks every planner for its shape, prints the candidates from the fastest on, and draws the plan
 * that is chosen: plan.h. The graph that is drawn has passed the verifier.
 */
#include "plan.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/planner/planner.h"
#include "simulate.h"

enum { PLAN_CANDIDATES_MAX = 32 };

struct plan_candidate {
	const struct planner *planner;
	const char *unfit; /* NULL: it has a choice */
	struct planner_choice choice;
	struct simulated simulated;
};

struct plan {
	const struct plan_asked *asked;
	struct planner_limits limits;
	struct planner_group *group;
	struct planner_request request;
	struct plan_candidate candidate[PLAN_CANDIDATES_MAX]; /* the fastest first */
	uint32_t candidates;
	const struct planner *chosen;
};

static int plan_fail(const char *what, const char *todo)
{
	fprintf(stderr, "sarissa: plan: %s: %s\n", what, todo);
	return 1;
}

static void plan_request(struct plan *p)
{
	const struct plan_asked *a = p->asked;
	struct topology_link link = topology_known(a->network, (struct topology_link){0, 0, 0});

	p->limits = planner_limits_usual;
	if (a->options->simulate) { /* no graph is built */
		p->limits.flat_slots_max = p->limits.graph.fan_in_max = GRAPH_SLOTS_MAX;
		p->limits.graph.parts_max = p->limits.route_segments_max = 1 << 20;
		p->limits.vertices_max = UINT32_MAX;
	}
	for (uint32_t i = 0; i < a->network->places; i++)
		p->group[i] = (struct planner_group){a->node[i], 1, link, 0};
	p->request = (struct planner_request){.size = a->size,
					      .chunk_bytes = a->chunk_bytes,
					      .needed = a->network->places,
					      .group = p->group,
					      .groups = a->network->places,
					      .present = a->network->places,
					      .caller = a->node[0],
					      .everyone = a->options->op == PLAN_ALLREDUCE,
					      .rate_seen = true,
					      .all = link,
					      .network = a->network,
					      .limits = &p->limits};
}

static int plan_order(const void *a, const void *b)
{
	const struct plan_candidate *x = a, *y = b;

	if (!x->unfit != !y->unfit)
		return x->unfit ? 1 : -1;
	if (!x->unfit && x->simulated.ns != y->simulated.ns)
		return x->simulated.ns < y->simulated.ns ? -1 : 1;
	if (x->unfit || x->choice.estimate_ns == y->choice.estimate_ns)
		return strcmp(x->planner->name, y->planner->name);
	return x->choice.estimate_ns < y->choice.estimate_ns ? -1 : 1;
}

static int plan_candidates(struct plan *p)
{
	struct planner_choice choice;

	for (uint32_t i = 0; planner_table[i] && p->candidates < PLAN_CANDIDATES_MAX; i++) {
		struct plan_candidate *c = &p->candidate[p->candidates];

		if (p->asked->options->planner &&
		    strcmp(p->asked->options->planner, planner_table[i]->name) != 0)
			continue;
		p->candidates++;
		c->planner = planner_table[i];
		c->unfit = planner_unfit(c->planner, &p->request);
		if (!c->unfit && planner_shape(&p->request, c->planner, &c->choice) != 0)
			c->unfit = "the request contradicts itself";
		if (c->unfit || !p->asked->options->simulate)
			continue;
		if (!c->planner->next)
			c->unfit = "it is not simulated";
		else if (simulate_allreduce(&p->request, c->planner, &c->choice, &c->simulated) !=
			 0)
			return plan_fail("out of memory", "simulate fewer nodes");
	}
	if (p->candidates == 0)
		return plan_fail("no such planner", "leave --planner out to see all");
	qsort(p->candidate, p->candidates, sizeof(*p->candidate), plan_order);
	if (p->candidate[0].unfit)
		return plan_fail(p->candidate[0].unfit, "no planner fits");
	p->chosen = p->candidate[0].planner;
	if (!p->asked->options->planner && !p->asked->options->simulate &&
	    planner_choose(&p->request, &choice) == 0)
		p->chosen = choice.planner;
	return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* A time that no plan can beat: the bytes that each node must send, over all its ports. */
static double plan_bound_ns(const struct plan *p)
{
	const struct network *w = p->asked->network;
	double bytes = (double)p->asked->size, rate = 0;

	for (uint32_t l = 0; l < w->levels; l++)
		if (l == 0 || w->level[l].rail != w->level[l - 1].rail)
			rate += (double)w->level[l].bytes_per_s * (w->level[l].ring ? 2 : 1);
	if (p->asked->options->op == PLAN_ALLREDUCE)
		bytes *= 2.0 * (w->places - 1) / w->places;
	return bytes * 1e9 / rate;
}

static void plan_why(const struct plan *p, const struct plan_candidate *c, char *out, size_t bytes)
{
	const struct plan_candidate *best = &p->candidate[0];

	if (c->unfit)
		snprintf(out, bytes, "does not fit: %s", c->unfit);
	else if (c->planner == p->chosen)
		snprintf(out, bytes, "chosen");
	else if (c == best && p->asked->options->op == PLAN_REDUCE)
		snprintf(out, bytes,
			 "not chosen: its estimate was never confirmed (docs/study/tried.md)");
	else if (c->choice.estimate_ns < best->choice.estimate_ns / 200 * 201)
		snprintf(out, bytes, "level with %s", p->chosen->name);
	else
		snprintf(out, bytes, "%.0f %% slower than %s",
			 100.0 * ((double)c->choice.estimate_ns / (double)best->choice.estimate_ns -
				  1),
			 best->planner->name);
}

static void plan_print(const struct plan *p, const struct plan_candidate *c)
{
	double bound = plan_bound_ns(p), ns = (double)c->choice.estimate_ns;
	char why[160];

	plan_why(p, c, why, sizeof(why));
	if (p->asked->options->json && c->unfit)
		printf("{\"planner\": \"%s\", \"chosen\": false, \"why\": \"%s\"}\n",
		       c->planner->name, why);
	else if (p->asked->options->simulate && p->asked->options->json)
		printf("{\"planner\": \"%s\", \"chosen\": %s, \"predicted_ns\": %.0f, "
		       "\"simulated_ns\": %llu, \"bound_ns\": %.0f, \"starts\": %u, "
		       "\"fan_in\": %u, \"messages\": %llu}\n",
		       c->planner->name, c->planner == p->chosen ? "true" : "false", ns,
		       (unsigned long long)c->simulated.ns, bound, c->simulated.starts,
		       c->simulated.fan_in, (unsigned long long)c->simulated.messages);
	else if (p->asked->options->json)
		printf("{\"planner\": \"%s\", \"chosen\": %s, \"predicted_ns\": %.0f, "
		       "\"bound_ns\": %.0f, \"segments\": %u, \"why\": \"%s\"}\n",
		       c->planner->name, c->planner == p->chosen ? "true" : "false", ns, bound,
		       c->choice.size.segments, why);
	else if (c->unfit)
		printf("%-12s %12s %8s %9s  %s\n", c->planner->name, "-", "-", "-", why);
	else if (p->asked->options->simulate)
		printf("%-12s %9.3f ms %6.2f x %9u  simulated %.3f ms, %.2f x; %u starts\n",
		       c->planner->name, ns / 1e6, ns / bound, c->choice.size.segments,
		       (double)c->simulated.ns / 1e6, (double)c->simulated.ns / bound,
		       c->simulated.starts);
	else
		printf("%-12s %9.3f ms %6.2f x %9u  %s\n", c->planner->name, ns / 1e6, ns / bound,
		       c->choice.size.segments, why);
}

static void plan_table(const struct plan *p)
{
	if (!p->asked->options->json)
		printf("%s of %llu bytes by %u nodes with %u rail%s each; bound %.3f ms\n"
		       "%-12s %12s %8s %9s\n",
		       p->asked->options->op == PLAN_ALLREDUCE ? "allreduce" : "reduce",
		       (unsigned long long)p->asked->size, p->asked->network->places,
		       network_rails(p->asked->network),
		       network_rails(p->asked->network) == 1 ? "" : "s", plan_bound_ns(p) / 1e6,
		       "planner", "predicted", "bound", "segments");
	for (uint32_t i = 0; i < p->candidates; i++)
		if (p->asked->options->why || p->candidate[i].planner == p->chosen)
			plan_print(p, &p->candidate[i]);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Each pair of nodes once per rail, with the bytes that flow on the way up. */
static void plan_draw(const struct plan *p, const struct graph *g, FILE *out)
{
	static const char *const colour[] = {"steelblue", "tomato",    "seagreen",
					     "orchid",	  "goldenrod", "slategray"};

	fprintf(out, "digraph plan {\n\tlabel=\"%s, %llu bytes\";\n\tnode [shape=circle];\n",
		g->planner, (unsigned long long)g->size);
	for (uint32_t i = 0; i < g->slots; i++)
		fprintf(out, "\ts%u [label=\"%u\"];\n", i, g->slot[i].host);
	for (uint32_t a = 0; a < g->slots; a++)
		for (uint32_t b = 0; b < g->slots; b++)
			for (uint32_t rail = 0; rail < network_rails(p->asked->network); rail++) {
				uint64_t chunks = 0;

				for (uint32_t j = 0; j < g->segments; j++) {
					const struct graph_vertex *v =
						&g->vertex[graph_vertex_of(g, j, b)];

					for (uint32_t k = 0; k < v->ins; k++)
						if (g->edge[v->in + k].rail == rail &&
						    graph_slot_of(g, g->edge[v->in + k].vertex) ==
							    a)
							chunks += g->segment[j].count;
				}
				if (chunks)
					fprintf(out,
						"\ts%u -> s%u [color=\"%s\", label=\"%.1f%%\"];\n",
						a, b, colour[rail % 6],
						100.0 * (double)chunks * g->chunk_bytes /
							(double)g->size);
			}
	fprintf(out, "}\n");
}

/* dot reads the graph from a pipe; its own words go to standard error. */
static int plan_svg(const struct plan *p, const struct graph *g)
{
	int fd[2], status = 0;
	pid_t child;
	FILE *out;

	if (pipe2(fd, O_CLOEXEC) < 0 || (child = fork()) < 0)
		return plan_fail("cannot start dot", strerror(errno));
	if (child == 0) {
		dup2(fd[0], STDIN_FILENO);
		execlp("dot", "dot", "-Tsvg", "-o", p->asked->options->svg, (char *)NULL);
		_exit(127);
	}
	close(fd[0]);
	signal(SIGPIPE, SIG_IGN);
	out = fdopen(fd[1], "w");
	if (out) {
		plan_draw(p, g, out);
		fclose(out);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return plan_fail("dot did not draw the plan", "install graphviz, or use --dot");
}

static int plan_graph(const struct plan *p)
{
	struct planner_choice choice;
	const char *wrong;
	struct graph g;
	void *memory;
	int status;

	if (planner_shape(&p->request, p->chosen, &choice) != 0)
		return plan_fail("the plan has no shape", "report this");
	memory = aligned_alloc(64, (planner_bytes(&choice) + 63) / 64 * 64);
	if (!memory)
		return plan_fail("out of memory", "draw a smaller plan");
	status = planner_build(&p->request, &choice, memory, planner_bytes(&choice), &g);
	wrong = status == 0 ? verify_graph(&g, &p->limits.graph) : "it was not built";
	if (wrong)
		status = plan_fail(wrong, "the verifier refuses the plan: report this");
	else if (p->asked->options->dot)
		plan_draw(p, &g, stdout);
	if (!wrong && p->asked->options->svg)
		status = plan_svg(p, &g);
	free(memory);
	return status;
}

int plan_run(const struct plan_asked *a)
{
	struct plan p = {.asked = a};
	int status = 0;

	p.group = calloc(a->network->places, sizeof(*p.group));
	if (!p.group)
		return plan_fail("out of memory", "ask for fewer nodes");
	plan_request(&p);
	status = plan_candidates(&p);
	if (status == 0 && !a->options->dot)
		plan_table(&p);
	if (status == 0 && !a->options->simulate && (a->options->dot || a->options->svg))
		status = plan_graph(&p);
	free(p.group);
	return status;
}
