/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "internal/program/log_prefix.h"

static enum control_log_level log_level = CONTROL_LOG_INFO;

void log_set_level(enum control_log_level level)
{
	log_level = level;
}

void log_line(enum control_log_level level, const char *format, ...)
{
	char line[1024], prefix[LOG_PREFIX_BYTES];
	va_list args;

	if (level > log_level)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_prefix(prefix, "sarissa-control", level, STDERR_FILENO);
	fprintf(stderr, "%s: %s\n", prefix, line);
}
