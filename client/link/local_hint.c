/* SPDX-License-Identifier: BSD-3-Clause */
#include "local_hint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HINT_PATH_BYTES = 512, HINT_NAME_MAX = 24 };

/* As client/cli/local/local_state.c makes them. */
static void local_hint_folder(char out[HINT_PATH_BYTES])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (runtime && *runtime == '/')
		snprintf(out, HINT_PATH_BYTES, "%.400s/sarissa", runtime);
	else
		snprintf(out, HINT_PATH_BYTES, "/tmp/sarissa-%u", (unsigned)geteuid());
}

/* The path is FOLDER/NAME/I/control.sock: its node does not run. */
static void local_hint_node(const char *inside, char *out, size_t room)
{
	char name[HINT_NAME_MAX + 1];
	unsigned node;
	if (sscanf(inside, "/%24[^/]/%u/control.sock", name, &node) == 2)
		snprintf(
			out, room,
			"node %u of the local cluster '%s' is down: sarissa local start %u --name %s",
			node, name, node, name);
}

/* The first cluster, "main" before others, of which any node may be there. */
static void local_hint_cluster(const char *folder, char *out, size_t room)
{
	char path[HINT_PATH_BYTES + 300], found[HINT_NAME_MAX + 1] = "";
	struct stat st;
	if (lstat(folder, &st) < 0 || st.st_uid != geteuid()) /* not what others write there */
		return;
	DIR *names = opendir(folder);
	for (const struct dirent *e; names && (e = readdir(names));) {
		snprintf(path, sizeof(path), "%s/%s/cluster", folder, e->d_name);
		if (*e->d_name == '.' || strlen(e->d_name) > HINT_NAME_MAX ||
		    access(path, F_OK) < 0 || (*found && strcmp(e->d_name, "main") != 0))
			continue;
		strcpy(found, e->d_name);
	}
	if (names)
		closedir(names);
	if (*found && strcmp(found, "main") == 0)
		snprintf(out, room, "a local cluster is running: eval \"$(sarissa local env 0)\"");
	else if (*found)
		snprintf(out, room,
			 "a local cluster is running: eval \"$(sarissa local env 0 --name %s)\"",
			 found);
}

void local_hint(const char *path, char *out, size_t room)
{
	char folder[HINT_PATH_BYTES];
	local_hint_folder(folder);
	*out = '\0';
	if (strncmp(path, folder, strlen(folder)) == 0)
		local_hint_node(path + strlen(folder), out, room);
	else
		local_hint_cluster(folder, out, room);
}
