/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads ebpf/aggregate.bpf.c onto ports of a bridge of the kernel, and looks after it: groups that
 * nobody uses are taken out, counters are read at the end. The links that hold the programs die
 * with this process.
 */
#include "switch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ebpf/aggregate.h"
#include "io/node/worker.h"
#include "io/observe/log.h"
#include "io/ports/xdp.h"

enum { CPUS_MAX = 1024 };

struct xdp_shell {
	struct switch_state *w;
	struct bpf_object *object;
	int groups, places, verdicts;
	int link[SWITCH_PORTS_MAX];
	unsigned links;
};

static int xdp_shell_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = 0;
	if (level == LIBBPF_WARN)
		log_debug("%s", line);
	return 0;
}

static int xdp_shell_map_of(const struct xdp_shell *x, const char *name)
{
	return bpf_object__find_map_fd_by_name(x->object, name);
}

static int xdp_shell_set_stage(const struct xdp_shell *x, uint32_t key, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(x->object, name);
	int fd = program ? bpf_program__fd(program) : -1;
	return fd < 0 ? -ENOENT
		      : bpf_map_update_elem(xdp_shell_map_of(x, "stages"), &key, &fd, BPF_ANY);
}

static int xdp_shell_load(struct xdp_shell *x)
{
	const char *path = xdp_object("aggregate.bpf.o");
	libbpf_set_print(xdp_shell_quiet);
	x->object = bpf_object__open_file(path, NULL);
	int error = x->object ? bpf_object__load(x->object) : -errno;
	if (error) {
		log_error(
			"XDP program %s: %s: is it installed, and does the kernel have XDP (6.1 on)?",
			path, strerror(-error));
		return error;
	}
	x->groups = xdp_shell_map_of(x, "groups");
	x->places = xdp_shell_map_of(x, "places");
	x->verdicts = xdp_shell_map_of(x, "verdicts");
	for (uint32_t i = 0; i < AGGREGATE_XDP_GROUPS && !error; i++)
		error = bpf_map_update_elem(x->places, NULL, &i, BPF_ANY);
	if (!error)
		error = xdp_shell_set_stage(x, AGGREGATE_XDP_TAKE, "sar_take");
	if (error)
		log_error("XDP program %s: not of this version: install it again", path);
	return error;
}

static int xdp_shell_attach(struct xdp_shell *x, unsigned i)
{
	const char *name = x->w->options->interface[i];
	uint32_t key = i, index = if_nametoindex(name);
	struct bpf_program *program = bpf_object__find_program_by_name(x->object, "sar_aggregate");
	int error = index ? bpf_map_update_elem(xdp_shell_map_of(x, "ports"), &key, &index, BPF_ANY)
			  : -ENODEV;
	if (!error) {
		LIBBPF_OPTS(bpf_link_create_opts, native, .flags = XDP_FLAGS_DRV_MODE);
		x->link[i] =
			bpf_link_create(bpf_program__fd(program), (int)index, BPF_XDP, &native);
		error = x->link[i] < 0 ? x->link[i] : 0;
	}
	if (error)
		log_error(
			"port xdp:%s: %s: is it there, with native XDP and without another program?",
			name, strerror(-error));
	else
		x->links = i + 1;
	return error;
}

/* As aggregate_take does when it needs the place. */
static void xdp_shell_tidy(struct xdp_shell *x)
{
	struct aggregate_xdp_group g;
	uint32_t id, next;
	uint64_t now = worker_now_ns();
	for (int r = bpf_map_get_next_key(x->groups, NULL, &id); r == 0;) {
		r = bpf_map_get_next_key(x->groups, &id, &next);
		if (bpf_map_lookup_elem(x->groups, &id, &g) == 0 && now > g.used_ns &&
		    now - g.used_ns > AGGREGATE_IDLE_NS && bpf_map_delete_elem(x->groups, &id) == 0)
			bpf_map_update_elem(x->places, NULL, &g.place, BPF_ANY);
		id = next;
	}
}

static void xdp_shell_count(struct xdp_shell *x)
{
	static uint64_t each[CPUS_MAX];
	int cpus = libbpf_num_possible_cpus();
	for (uint32_t v = 0; cpus > 0 && cpus <= CPUS_MAX && v < AGGREGATE_VERDICTS; v++) {
		if (bpf_map_lookup_elem(x->verdicts, &v, each) != 0)
			continue;
		for (int c = 0; c < cpus; c++)
			x->w->pool.count[v] += each[c];
	}
}

int xdp_shell_run(struct switch_state *w, const volatile sig_atomic_t *stop)
{
	static struct xdp_shell x;
	struct timespec second = {.tv_sec = 1};
	_Static_assert((int)AGGREGATE_XDP_VERDICTS == (int)AGGREGATE_VERDICTS, "the same order");
	x.w = w;
	int error = xdp_shell_load(&x);
	for (unsigned i = 0; i < w->options->ports && !error; i++)
		error = xdp_shell_attach(&x, i);
	if (!error)
		log_info(
			"switches %u ports of a bridge by XDP, aggregates at UDP port %u: %u groups of "
			"%u slots",
			x.links, AGGREGATE_PORT, AGGREGATE_XDP_GROUPS, AGGREGATE_XDP_WINDOW);
	while (!error && !*stop) {
		nanosleep(&second, NULL);
		xdp_shell_tidy(&x);
	}
	if (!error)
		xdp_shell_count(&x);
	for (unsigned i = 0; i < x.links; i++)
		close(x.link[i]);
	bpf_object__close(x.object);
	return error;
}
