/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cli/support/json.h"
#include "cli/support/text.h"

static const char *const doctor_levels[] = {"ok", "warn", "fail"};

static void doctor_json(enum doctor_level level, const char *what, const char *fix,
			const char *text)
{
	struct json j;
	json_begin(&j, stdout);
	json_string(&j, "check", what);
	json_string(&j, "level", doctor_levels[level]);
	json_string(&j, "text", text);
	if (fix)
		json_string(&j, "fix", fix);
	else
		json_null(&j, "fix");
	json_end(&j);
}

void doctor_report(struct doctor *d, enum doctor_level level, const char *what, const char *fix,
		   const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	d->count[level]++;
	if (d->args->json) {
		doctor_json(level, what, fix, text);
		return;
	}
	printf("%-4s  %-12s  ", doctor_levels[level], what);
	text_safe(stdout, text);
	putchar('\n');
	if (fix)
		printf("%20s-> %s\n", "", fix);
}

bool doctor_read_line(const char *path, char *out, unsigned room)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool got = fgets(out, (int)room, file) != NULL;
	fclose(file);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return got;
}

/* A zombie, which kill() still finds, is not alive. */
bool doctor_alive(int32_t pid)
{
	char path[64], line[512];
	if (pid <= 0 || (kill(pid, 0) < 0 && errno != EPERM))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!doctor_read_line(path, line, sizeof(line)))
		return true; /* hidden from this user */
	const char *name_end = strrchr(line, ')');
	return !name_end || strncmp(name_end, ") Z", 3) != 0;
}

bool doctor_since(const struct doctor *d, enum doctor_process_kind kind, size_t i, uint64_t total,
		  char text[DOCTOR_SINCE_BYTES])
{
	bool control = kind == DOCTOR_CONTROL;
	bool same = control ? d->before.control_started_ns == d->now.control_started_ns
			    : d->before.dataplane_started_ns == d->now.dataplane_started_ns;
	uint64_t before = control ? d->before.control[i] : d->before.dataplane[i];
	char ago[TEXT_BYTES];
	*text = '\0';
	if (!d->looked || !same || total < before)
		return true;
	text_clock(ago, (d->now.at_ns - d->before.at_ns) / 1000000000u);
	if (total == before)
		snprintf(text, DOCTOR_SINCE_BYTES, ", none since the last look %s ago", ago);
	else
		snprintf(text, DOCTOR_SINCE_BYTES, ", %llu of them since the last look %s ago",
			 (unsigned long long)(total - before), ago);
	return total > before;
}

static void doctor_load(struct doctor *d)
{
	struct timespec now;
	d->looked = doctor_seen_load(d->args->socket, &d->before);
	clock_gettime(CLOCK_REALTIME, &now);
	d->now.at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	d->looked &= d->before.at_ns <= d->now.at_ns;
	d->dataplane_error = counters_file_read(d->args->socket, &d->dataplane);
	for (unsigned i = 0; i < COUNTERS_COUNT && !d->dataplane_error; i++)
		d->now.dataplane[i] = counters_file_total(&d->dataplane, i);
	d->now.dataplane_started_ns = d->dataplane.header.started_ns;
	d->control_error = counters_file_control_read(d->args->socket, &d->control);
	if (!d->control_error)
		memcpy(d->now.control, &d->control.block.counters, sizeof(d->now.control));
	d->now.control_started_ns = d->control.header.started_ns;
}

int doctor_run(const struct cli_args *args)
{
	static struct doctor d;
	d.args = args;
	doctor_load(&d);
	doctor_check_node(&d);
	doctor_check_processes(&d);
	doctor_check_control(&d);
	doctor_check_counters(&d);
	doctor_check_card(&d);
	doctor_check_paths(&d);
	doctor_check_host(&d);
	doctor_seen_save(args->socket, &d.now);
	if (!args->json)
		printf("\n%u ok, %u to look at, %u wrong\n", d.count[DOCTOR_OK],
		       d.count[DOCTOR_WARN], d.count[DOCTOR_FAIL]);
	int flushed = cli_flush();
	if (flushed != CLI_DONE)
		return flushed;
	if (d.no_node)
		return CLI_NO_NODE;
	return d.count[DOCTOR_FAIL] ? CLI_FAILED : CLI_DONE;
}
