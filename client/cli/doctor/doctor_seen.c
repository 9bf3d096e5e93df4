/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor_seen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DOCTOR_SEEN_MAGIC (0x4e45455352415300ull + COUNTERS_COUNT + CONTROL_COUNTERS_COUNT)

enum { PATH_BYTES = 512 };

/* Makes the folder and names the file in it: the socket's path with % for each slash. */
static bool doctor_seen_path(const char *socket, char *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	bool own = state && *state == '/';
	if (!own && !(home && *home == '/'))
		return false;
	int n = snprintf(out, PATH_BYTES, own ? "%s" : "%s/.local/state", own ? state : home);
	if (n < 0 || n + 32 + strlen(socket) >= PATH_BYTES)
		return false;
	strcat(out, "/sarissa/");
	for (char *slash = strchr(out + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		bool made = mkdir(out, 0700) == 0 || errno == EEXIST;
		*slash = '/';
		if (!made)
			return false;
	}
	char *name = out + strlen(out);
	strcat(name, "doctor-");
	strcat(name, socket);
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '%';
	return true;
}

bool doctor_seen_load(const char *socket, struct doctor_seen *out)
{
	char path[PATH_BYTES];
	FILE *file = doctor_seen_path(socket, path) ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	bool whole = fread(out, sizeof(*out), 1, file) == 1 && out->magic == DOCTOR_SEEN_MAGIC;
	fclose(file);
	return whole;
}

void doctor_seen_save(const char *socket, struct doctor_seen *seen)
{
	char path[PATH_BYTES], new[PATH_BYTES + 8];
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	seen->magic = DOCTOR_SEEN_MAGIC;
	seen->at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (!doctor_seen_path(socket, path))
		return;
	snprintf(new, sizeof(new), "%s.new", path);
	FILE *file = fopen(new, "we");
	if (!file)
		return;
	bool written = fwrite(seen, sizeof(*seen), 1, file) == 1;
	if (fclose(file) == 0 && written)
		rename(new, path);
}
