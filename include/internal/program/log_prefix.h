/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each line of a daemon's log begins with: "2026-11-23T21:27:36.123Z PROGRAM: warning", where
 * info has no word. UTC, so that the logs of several nodes can be merged. Where stderr goes to the
 * journal, which notes the time itself, it is "<4>PROGRAM": the journal takes the level from there
 * (sd-daemon(3)). Called by the logs of control, dataplane and switch; knows no text.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PROGRAM_LOG_PREFIX_H
#define SARISSA_INCLUDE_INTERNAL_PROGRAM_LOG_PREFIX_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { LOG_PREFIX_BYTES = 96 };

/* $JOURNAL_STREAM is "DEVICE:INODE" of the journal's stream (systemd.exec(5)). It is inherited,
 * also by a process whose stderr goes elsewhere since then. */
static inline bool log_is_journal(const char *stream, int fd)
{
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(fd, &st) == 0 &&
	       st.st_dev == device && st.st_ino == inode;
}

/* level: 0 error, 1 warning, 2 info, 3 debug, as both daemons number theirs. */
static inline void log_prefix(char out[LOG_PREFIX_BYTES], const char *program, unsigned level,
			      int fd)
{
	static const char journal[] = {'3', '4', '6', '7'}; /* sd-daemon(3) */
	static const char *const word[] = {": error", ": warning", "", ": debug"};
	char seconds[32];
	struct timespec now;
	struct tm utc;

	level = level > 3 ? 3 : level;
	if (log_is_journal(getenv("JOURNAL_STREAM"), fd)) {
		snprintf(out, LOG_PREFIX_BYTES, "<%c>%s", journal[level], program);
		return;
	}
	snprintf(out, LOG_PREFIX_BYTES, "%s%s", program, word[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &utc) && strftime(seconds, sizeof(seconds), "%FT%T", &utc) > 0)
		snprintf(out, LOG_PREFIX_BYTES, "%s.%03ldZ %s%s", seconds, now.tv_nsec / 1000000,
			 program, word[level]);
}

#endif
