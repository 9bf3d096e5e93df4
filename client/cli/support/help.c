/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a page of the manual is: installed beside this command (PREFIX/bin, PREFIX/share/man), in
 * the source tree that this command was built in, or where man(1) looks. A function's page is the
 * one that names it. man(1) shows it, or mandoc(1).
 */
#include "help.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/local/local.h"
#include "text.h"

#define HELP_SOURCES "../../../docs/man" /* from build/client/cli */

enum {
	HELP_PATH_BYTES = 4096 + 64,
	HELP_NAME_MAX = 40,
	HELP_NO_PROGRAM = 127, /* as a shell says it */
};

struct help_page {
	char name[HELP_NAME_MAX + 1];
	char section; /* '1', '3' or '8'; 0: any */
};

/* "NAME", "NAME.3" or "NAME(3)". False: no page can have such a name. */
static bool help_parse(const char *topic, struct help_page *out)
{
	size_t length = strspn(topic, "abcdefghijklmnopqrstuvwxyz_-");
	const char *rest = topic + length;
	*out = (struct help_page){.section = 0};
	if (length == 0 || length > HELP_NAME_MAX)
		return false;
	memcpy(out->name, topic, length);
	if (*rest == '\0')
		return true;
	if ((*rest != '.' && *rest != '(') || !rest[1] || !strchr("138", rest[1]))
		return false;
	out->section = rest[1];
	return strcmp(rest + 2, *rest == '(' ? ")" : "") == 0;
}

/* Whether its first lines, the section NAME, have the function's name. */
static bool help_names(const char *path, const char *name)
{
	char line[256], word[HELP_NAME_MAX + 1];
	bool found = false;
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file) && strncmp(line, ".Nd", 3) != 0)
		found = sscanf(line, ".Nm %40s", word) == 1 && strcmp(word, name) == 0;
	if (file)
		fclose(file);
	return found;
}

/* In the source tree, where a page has no other names. */
static bool help_search(const char *own, const char *name, char path[HELP_PATH_BYTES])
{
	glob_t pages;
	bool found = false;
	snprintf(path, HELP_PATH_BYTES, "%s/" HELP_SOURCES "/sar_*.3", own);
	if (glob(path, 0, NULL, &pages) != 0)
		return false;
	for (size_t i = 0; i < pages.gl_pathc && !found; i++) {
		found = help_names(pages.gl_pathv[i], name);
		if (found)
			snprintf(path, HELP_PATH_BYTES, "%s", pages.gl_pathv[i]);
	}
	globfree(&pages);
	return found;
}

static bool help_is_there(char path[HELP_PATH_BYTES])
{
	if (access(path, R_OK) == 0)
		return true;
	strncat(path, ".gz", HELP_PATH_BYTES - strlen(path) - 1); /* as packages have it */
	return access(path, R_OK) == 0;
}

static bool help_find(const struct help_page *page, char path[HELP_PATH_BYTES])
{
	const char *own = local_own_folder();
	for (const char *section = "183"; *section; section++) {
		if (page->section && page->section != *section)
			continue;
		snprintf(path, HELP_PATH_BYTES, "%s/../share/man/man%c/%s.%c", own, *section,
			 page->name, *section);
		if (help_is_there(path))
			return true;
		snprintf(path, HELP_PATH_BYTES, "%s/" HELP_SOURCES "/%s.%c", own, page->name,
			 *section);
		if (help_is_there(path))
			return true;
	}
	return (!page->section || page->section == '3') && help_search(own, page->name, path);
}

/* Runs the program with this file behind those words. Its exit status. */
static int help_run(const char *const words[], const char *path)
{
	const char *argv[4] = {words[0], words[1], path};
	int status = -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		execvp(argv[0], (char *const *)argv);
		_exit(HELP_NO_PROGRAM);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		continue;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : HELP_NO_PROGRAM;
}

static int help_print(const char *path)
{
	if (help_run((const char *const[]){"man", "-l"}, path) == 0 ||
	    help_run((const char *const[]){"mandoc", "-a"}, path) == 0)
		return CLI_DONE;
	return cli_fail(-ENOENT, "neither man nor mandoc shows %s: install mandoc", path);
}

int help_show(const char *topic)
{
	struct help_page page;
	char path[HELP_PATH_BYTES];
	if (help_parse(topic, &page) && help_find(&page, path))
		return help_print(path);
	fputs("sarissa: no manual page is called '", stderr);
	text_safe(stderr, topic);
	fputs("': name a command, a function sar_..., sarissa-control or sarissa-dataplane\n",
	      stderr);
	return CLI_USAGE;
}
