/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the two processes of the node run, and are those that are installed. */
#include "doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli/support/text.h"

struct doctor_process {
	const char *name;
	const struct counters_file *header;
	const char *path;
	int error;	      /* of reading it */
	int32_t reported_pid; /* by control; 0: it does not know one */
	const char *lacks;    /* what does not work without it */
};

/* Whether the program was replaced, or removed, since it was started; false where we may not look.
 */
static bool doctor_replaced(int32_t pid)
{
	static const char deleted[] = " (deleted)";
	char link[64], target[512];
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	ssize_t n = readlink(link, target, sizeof(target) - 1), tail = sizeof(deleted) - 1;
	return n > tail && memcmp(target + n - tail, deleted, (size_t)tail) == 0;
}

static uint64_t doctor_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void doctor_process_age(struct doctor *d, const struct doctor_process *p)
{
	uint64_t now = doctor_now_ns(), started = p->header->started_ns;
	char age[TEXT_BYTES], fix[128];
	bool other = strncmp(p->header->version, sar_version(), sizeof(p->header->version)) != 0;
	if (started > now + 1000000000u)
		doctor_report(d, DOCTOR_WARN, p->name,
			      "keep the clock right (NTP); other nodes refuse a new life of this "
			      "node that seems older than the last one, for 3 s at most",
			      "was started in the future: the clock was set back by %s at least",
			      text_duration(age, started - now));
	snprintf(fix, sizeof(fix), "restart sarissa-%s: the other process keeps the store",
		 p->name);
	if (other)
		doctor_report(d, DOCTOR_WARN, p->name, fix,
			      "is of version %.15s, this command of %s", p->header->version,
			      sar_version());
	else if (doctor_replaced((int32_t)p->header->pid))
		doctor_report(d, DOCTOR_WARN, p->name, fix,
			      "is old: its program was replaced on disk since it was started");
	else
		doctor_report(d, DOCTOR_OK, p->name, NULL, "runs, pid %lld, for %s",
			      (long long)p->header->pid,
			      text_clock(age, started < now ? (now - started) / 1000000000u : 0));
}

static void doctor_process(struct doctor *d, const struct doctor_process *p)
{
	char fix[160];
	snprintf(fix, sizeof(fix),
		 "start sarissa-%s; its log (journalctl -u sarissa-%s) says why it "
		 "ended",
		 p->name, p->name);
	if (p->error == -EPROTO)
		doctor_report(d, DOCTOR_FAIL, p->name, "use command and node of one version",
			      "%s is of another version", p->path);
	else if (p->error && p->reported_pid > 0)
		doctor_report(d, DOCTOR_WARN, p->name, "run as a user that may read it",
			      "runs, pid %d, but %s cannot be read: %s", p->reported_pid, p->path,
			      strerror(-p->error));
	else if (p->error)
		doctor_report(d, DOCTOR_FAIL, p->name, fix, "has never run here (no %s): %s",
			      p->path, p->lacks);
	else if (doctor_alive((int32_t)p->header->pid))
		doctor_process_age(d, p);
	else if (p->reported_pid == (int32_t)p->header->pid)
		doctor_report(d, DOCTOR_WARN, p->name,
			      "run the command in the node's pid namespace to see its processes",
			      "runs, but no process %d is visible here", p->reported_pid);
	else
		doctor_report(d, DOCTOR_FAIL, p->name, fix, "has ended, pid %lld: %s",
			      (long long)p->header->pid, p->lacks);
}

void doctor_check_processes(struct doctor *d)
{
	const struct doctor_process control = {
		.name = "control",
		.header = &d->control.header,
		.path = d->control.path,
		.error = d->control_error,
		.reported_pid = d->has_node ? d->node.control_pid : 0,
		.lacks = "no put, no get of what is not here; clients can read what they hold"};
	const struct doctor_process dataplane = {
		.name = "dataplane",
		.header = &d->dataplane.header,
		.path = d->dataplane.path,
		.error = d->dataplane_error,
		.reported_pid = d->has_node ? d->node.dataplane_pid : 0,
		.lacks = "objects of this node can be read, nothing moves between nodes"};
	doctor_process(d, &control);
	doctor_process(d, &dataplane);
}
