/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "clients/closer.h"
#include "internal/plan_file.h"
#include "log.h"

#define REPORT_NS    UINT64_C(1000000000)
#define TELL_NS	     UINT64_C(60000000000)
#define PLAN_NS	     UINT64_C(100000000)
#define REPORT_BYTES (sizeof(struct counters_file) + sizeof(struct control_block))

static void *report_map(const char *path)
{
	void *p = MAP_FAILED;
	int fd;

	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return NULL;
	/* a full disk fails here, not at a write through the mapping */
	errno = posix_fallocate(fd, 0, (off_t)REPORT_BYTES);
	if (errno == 0)
		p = mmap(NULL, REPORT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* A new file under the old name: a reader that has mapped the old one keeps all of it. */
void report_open(struct report *r, const char *rundir)
{
	char path[128], final[128];
	struct timespec now;

	*r = (struct report){.rundir = rundir};
	snprintf(path, sizeof(path), "%s/plan.last", rundir);
	unlink(path); /* an earlier process's */
	snprintf(path, sizeof(path), "%s/control.counters.new", rundir);
	snprintf(final, sizeof(final), "%s/control.counters", rundir);
	r->file = report_map(path);
	if (!r->file || rename(path, final) < 0) {
		log_warning("cannot write %s (%s): there will be no counters of control", final,
			    strerror(errno));
		r->file = NULL;
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	*r->file = (struct counters_file){
		.magic = CONTROL_FILE_MAGIC,
		.workers = 1,
		.counters = CONTROL_VALUES_COUNT,
		.stride = sizeof(struct control_block),
		.pid = getpid(),
		.started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
		.version = SARISSA_VERSION,
	};
	r->block = (struct control_block *)(r->file + 1);
}

void report_turn(struct report *r, uint64_t took_ns, uint64_t ticks_late)
{
	bool is_long = took_ns > REPORT_TURN_LONG_NS, late = ticks_late != r->ticks_late;

	r->shell.turns_long += is_long;
	r->held_up += is_long || (late && !r->was_long);
	r->was_long = is_long;
	r->ticks_late = ticks_late;
	if (r->turn_ns < took_ns)
		r->turn_ns = took_ns;
}

static void report_held_up(struct report *r, uint64_t now_ns)
{
	if (r->held_up == r->held_up_reported || now_ns < r->tell_due_ns)
		return;
	r->held_up_reported = r->held_up;
	r->tell_due_ns = now_ns + TELL_NS;
	log_warning(
		"was held up for more than 100 ms, %llu times so far, while requests waited and "
		"others could suspect this node: give it CPU time, and memory that is not "
		"swapped out",
		(unsigned long long)r->held_up);
}

void report_write(struct report *r, struct control *core, uint64_t now_ns)
{
	uint64_t total[CONTROL_COUNTERS_COUNT], shell[CONTROL_COUNTERS_COUNT];

	if (!r->file || now_ns < r->due_ns)
		return;
	r->due_ns = now_ns + REPORT_NS;
	memcpy(total, control_counters(core), sizeof(total));
	memcpy(shell, &r->shell, sizeof(shell));
	for (unsigned i = 0; i < CONTROL_COUNTERS_COUNT; i++)
		total[i] += shell[i];
	memcpy(&r->block->counters, total, sizeof(total));
	report_held_up(r, now_ns);
	control_gauges(core, &r->block->gauges);
	r->block->gauges.creators = r->creators;
	r->block->gauges.closes_held = r->closes_held;
	r->block->gauges.closes_held_max = CLOSERS_MAX - 1;
	r->block->gauges.turn_us = r->turn_ns / 1000;
	r->turn_ns = 0;
}

_Static_assert((int)PLAN_FILE_LEVELS_MAX == (int)CONTROL_PLAN_LEVELS_MAX,
	       "one has as many as the other");

static struct plan_file report_plan_of(const struct control_plan *p)
{
	struct plan_file f = {.magic = PLAN_FILE_MAGIC,
			      .nodes = p->nodes,
			      .levels = p->levels,
			      .node = p->node,
			      .everyone = p->everyone,
			      .repaired = p->repaired,
			      .network = p->network,
			      .size = p->size,
			      .predicted_ns = p->predicted_ns,
			      .measured_ns = p->measured_ns};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	f.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(f.planner, sizeof(f.planner), "%s", p->planner);
	for (uint32_t l = 0; l < p->levels; l++) {
		f.level[l].bytes = p->level[l].bytes;
		f.level[l].predicted_ns = p->level[l].predicted_ns;
		f.level[l].measured_ns = p->level[l].measured_ns;
	}
	return f;
}

uint64_t report_plan(struct report *r, const struct control *core, uint64_t now_ns)
{
	const struct control_plan *p = control_last_plan(core);
	char path[128], final[128];
	struct plan_file f;
	bool written;
	int fd;

	if (p->generation == r->plan_generation && p->measured_ns == r->plan_ns)
		return UINT64_MAX;
	if (now_ns < r->plan_due_ns)
		return r->plan_due_ns;
	r->plan_generation = p->generation;
	r->plan_ns = p->measured_ns;
	r->plan_due_ns = now_ns + PLAN_NS;
	f = report_plan_of(p);
	snprintf(path, sizeof(path), "%s/plan.last.new", r->rundir);
	snprintf(final, sizeof(final), "%s/plan.last", r->rundir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return UINT64_MAX; /* nothing but this command needs it */
	written = write(fd, &f, sizeof(f)) == (ssize_t)sizeof(f);
	close(fd);
	if (!written || rename(path, final) < 0)
		unlink(path);
	return UINT64_MAX;
}
