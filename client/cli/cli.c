/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/support/text.h"

static int cli_exit_of(int error)
{
	switch (-error) {
	case ETIMEDOUT:
		return CLI_TIMED_OUT;
	case ENOENT:
		return CLI_NOT_FOUND;
	case ECONNREFUSED:
	case ENOTCONN:
		return CLI_NO_NODE;
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

int cli_wrong(const char *command, const char *format, ...)
{
	va_list args;
	fflush(stdout);
	fprintf(stderr, "sarissa: %s%s", command ? command : "", command ? ": " : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": see 'sarissa %s%s--help'\n", command ? command : "", command ? " " : "");
	return CLI_USAGE;
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

/* The text behind the name of the object in "'name'...", or NULL: it does not begin so. */
static const char *cli_after_name(const char *detail, const char *subject)
{
	if (*detail++ != '\'')
		return NULL;
	for (; *subject; subject++, detail++) {
		bool control = (unsigned char)*subject < ' ' || *subject == 0x7f;
		if (*detail != (control ? '?' : *subject))
			return NULL;
	}
	return *detail == '\'' ? detail + 1 : NULL;
}

/* The text behind a name: the library begins with the object's name, or with its id. */
static const char *cli_unnamed(const char *detail, const char *subject, bool *named)
{
	sar_id own = cli_id(subject), id;
	char first[3 + 2 * SAR_ID_BYTES + 1] = "";
	const char *rest = cli_after_name(detail, subject);
	*named = rest && *rest != ':';
	if (rest && *rest == ':')
		return rest + 1 + (rest[1] == ' ');
	strncpy(first, detail, sizeof(first) - 1);
	rest = detail + strlen(first);
	if (cli_hex_id(first, &id) && memcmp(&id, &own, sizeof(id)) == 0 && *rest == ':')
		return rest + 1 + (rest[1] == ' ');
	return detail;
}

const char *cli_detail(const char *subject)
{
	bool named;
	return cli_unnamed(sar_error_detail(), subject, &named);
}

int cli_fail_detail(int error, const char *subject)
{
	return cli_fail_with(error, sar_error_detail(), subject);
}

int cli_fail_with(int error, const char *detail, const char *subject)
{
	bool named = false;
	fflush(stdout);
	fputs("sarissa: ", stderr);
	if (subject)
		detail = cli_unnamed(detail, subject, &named);
	if (subject && !named) {
		text_safe(stderr, subject);
		fputs(": ", stderr);
	}
	text_safe(stderr, *detail ? detail : sar_strerror(error));
	fputc('\n', stderr);
	return cli_exit_of(error);
}

int cli_fail_counters(int error, const char *path)
{
	if (error == -EPROTO)
		return cli_fail(error,
				"%s is of another version: use command and node of one version",
				path);
	return cli_fail(error == -ENOENT ? -ECONNREFUSED : error,
			"cannot read %s: %s: start sarissa-dataplane", path, strerror(-error));
}

int cli_open(const struct cli_args *args, sar **out)
{
	int r = sar_open(args->socket, out);
	return r == 0 ? CLI_DONE : cli_fail_detail(r, NULL);
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

int cli_close(sar *s, int status)
{
	sar_close(s);
	int flushed = cli_flush();
	return status != CLI_DONE ? status : flushed;
}

void *cli_grown(void *items, size_t count, size_t item_bytes)
{
	if (count & (count - 1)) /* no power of two: the last growth has left room */
		return items;
	return realloc(items, (count ? 2 * count : 1) * item_bytes);
}
