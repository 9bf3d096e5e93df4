/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rte_log.h>
#include "internal/program/log_prefix.h"

enum { DPDK_CRITICAL_MAX = 32 /* lines: they may repeat without end */ };

static int log_level = LOG_INFO;
static const char *log_name = "sarissa-dataplane";
static pthread_mutex_t dpdk_lock = PTHREAD_MUTEX_INITIALIZER;
static char dpdk_error[256];

void log_set_name(const char *name)
{
	log_name = name;
}

void log_set_level(int level)
{
	log_level = level;
}

static void log_write(int level, const char *format, va_list args)
{
	char line[1024], prefix[LOG_PREFIX_BYTES];
	if (level > log_level)
		return;
	vsnprintf(line, sizeof(line), format, args);
	log_prefix(prefix, log_name, (unsigned)level, STDERR_FILENO);
	fprintf(stderr, "%s: %s\n", prefix, line);
}

#define LOG_FUNCTION(name, level)               \
	void name(const char *format, ...)      \
	{                                       \
		va_list args;                   \
		va_start(args, format);         \
		log_write(level, format, args); \
		va_end(args);                   \
	}

LOG_FUNCTION(log_error, LOG_ERROR)
LOG_FUNCTION(log_warning, LOG_WARNING)
LOG_FUNCTION(log_info, LOG_INFO)
LOG_FUNCTION(log_debug, LOG_DEBUG)

/* DPDK says it on its way to abort(), or where it cannot go on: whatever the level. */
static void dpdk_critical(const char *data, size_t n)
{
	static unsigned said;
	while (n > 0 &&
	       data[n - 1] == ':') /* a list of calls would follow, in lines of their own */
		n--;
	if (n > 0 && said++ < DPDK_CRITICAL_MAX)
		log_error("DPDK: %.*s: it may end this process: see --log-level debug", (int)n,
			  data);
}

static ssize_t log_dpdk_write(void *cookie, const char *data, size_t size)
{
	int level = rte_log_cur_msg_loglevel();
	if (log_level >= LOG_DEBUG)
		fwrite(data, 1, size, stderr);
	if (level > (int)RTE_LOG_ERR)
		return (ssize_t)size;
	size_t n = size;
	while (n > 0 && (data[n - 1] == '\n' || data[n - 1] == ' '))
		n--;
	if (level <= (int)RTE_LOG_CRIT && log_level < LOG_DEBUG)
		dpdk_critical(data, n);
	if (n >= sizeof(dpdk_error))
		n = sizeof(dpdk_error) - 1;
	pthread_mutex_lock(&dpdk_lock);
	if (n > 0 && !*dpdk_error) {
		memcpy(dpdk_error, data, n);
		dpdk_error[n] = 0;
	}
	pthread_mutex_unlock(&dpdk_lock);
	return (ssize_t)size;
}

void log_take_dpdk(void)
{
	static const cookie_io_functions_t functions = {.write = log_dpdk_write};
	FILE *f = fopencookie(NULL, "w", functions);
	if (!f)
		return;
	setvbuf(f, NULL, _IOLBF, 256);
	rte_openlog_stream(f);
}

const char *log_dpdk_error(void)
{
	return dpdk_error;
}

void log_dpdk_forget(void)
{
	pthread_mutex_lock(&dpdk_lock);
	*dpdk_error = 0;
	pthread_mutex_unlock(&dpdk_lock);
}
