/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "text.h"

static int cli_exit_of(int error)
{
	switch (-error) {
	case ETIMEDOUT:
		return CLI_TIMED_OUT;
	case ENOENT:
	case ECONNREFUSED:
	case ENOTCONN:
		return CLI_NOT_FOUND;
	case EHOSTUNREACH:
		return CLI_PARTIAL;
	default:
		return CLI_FAILED;
	}
}

int cli_fail(int error, const char *format, ...)
{
	va_list args;
	fflush(stdout);
	fputs("sarissa: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return cli_exit_of(error);
}

/* The node often begins with the object's name already. */
static bool cli_names(const char *detail, const char *subject)
{
	size_t length = strlen(subject);
	detail += *detail == '\'';
	return strncmp(detail, subject, length) == 0 && detail[length] == '\'';
}

int cli_fail_detail(int error, const char *subject)
{
	const char *detail = sar_error_detail();
	fflush(stdout);
	fputs("sarissa: ", stderr);
	if (subject && !cli_names(detail, subject)) {
		text_safe(stderr, subject);
		fputs(": ", stderr);
	}
	text_safe(stderr, *detail ? detail : sar_strerror(error));
	fputc('\n', stderr);
	return cli_exit_of(error);
}

int cli_open(const struct cli_args *args, sar **out)
{
	int r = sar_open(args->socket, out);
	return r == 0 ? CLI_DONE : cli_fail_detail(r, NULL);
}

static bool cli_hex_id(const char *name, sar_id *out)
{
	const char *digits = name + 3;
	if (strncmp(name, "id:", 3) != 0 || strlen(digits) != 2 * SAR_ID_BYTES)
		return false;
	for (int i = 0; i < SAR_ID_BYTES; i++) {
		unsigned byte;
		if (!isxdigit((unsigned char)digits[2 * i]) ||
		    !isxdigit((unsigned char)digits[2 * i + 1]) ||
		    sscanf(digits + 2 * i, "%2x", &byte) != 1)
			return false;
		out->bytes[i] = (uint8_t)byte;
	}
	return true;
}

sar_id cli_id(const char *name)
{
	sar_id id;
	return cli_hex_id(name, &id) ? id : sar_id_of(name, strlen(name));
}

const char *cli_called(const char *name)
{
	sar_id id;
	return cli_hex_id(name, &id) ? NULL : name;
}

int cli_check_name(const char *name)
{
	if (*name != '\0' && strlen(name) <= SAR_NAME_MAX)
		return CLI_DONE;
	cli_fail(-EINVAL, "a name has 1 to %d bytes, this one %zu: choose another", SAR_NAME_MAX,
		 strlen(name));
	return CLI_USAGE;
}

uint64_t cli_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int cli_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return CLI_DONE;
	return cli_fail(-EIO, "cannot write to standard output: %s", strerror(errno));
}
