/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "json.h"
#include "text.h"

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

int doctor_run(const struct cli_args *args)
{
	struct doctor d = {.args = args};
	doctor_check_node(&d);
	doctor_check_counters(&d);
	doctor_check_host(&d);
	if (!args->json)
		printf("\n%u ok, %u to look at, %u wrong\n", d.count[DOCTOR_OK],
		       d.count[DOCTOR_WARN], d.count[DOCTOR_FAIL]);
	int flushed = cli_flush();
	if (flushed != CLI_DONE)
		return flushed;
	if (d.no_node)
		return CLI_NOT_FOUND;
	return d.count[DOCTOR_FAIL] ? CLI_FAILED : CLI_DONE;
}
