/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a command line beyond getopt_long: numbers, and the name of what was refused. */
#ifndef SARISSA_INCLUDE_INTERNAL_PROGRAM_ARGUMENTS_H
#define SARISSA_INCLUDE_INTERNAL_PROGRAM_ARGUMENTS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log_prefix.h"

/* A number of digits alone, from low to high. False, and out as it was: it is none. */
static inline bool argument_number(const char *text, int base, uint64_t low, uint64_t high,
				   uint64_t *out)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, base);
	if (*text < '0' || *text > '9' || *end || errno || v < low || v > high)
		return false;
	*out = v;
	return true;
}

/* In the journal such a line is an error. */
static inline const char *argument_level(void)
{
	return log_is_journal(getenv("JOURNAL_STREAM"), STDERR_FILENO) ? "<3>" : "";
}

/* A number, or the end of the program when there is none; what: how the user knows it. */
static inline uint64_t argument_need(const char *what, const char *text, uint64_t low,
				     uint64_t high)
{
	uint64_t v = 0;

	if (argument_number(text, 10, low, high, &v))
		return v;
	fprintf(stderr, "%s%s: '%s' is not a number from %llu to %llu\n", argument_level(), what,
		text, (unsigned long long)low, (unsigned long long)high);
	exit(2);
}

/* With decimals, from 0. */
static inline double argument_need_real(const char *what, const char *text, double high)
{
	char *end;
	double v = strtod(text, &end);

	if (end != text && *end == '\0' && v >= 0 && v <= high)
		return v;
	fprintf(stderr, "%s%s: '%s' is not a number from 0 to %g\n", argument_level(), what, text,
		high);
	exit(2);
}

/* The option that getopt_long has just refused: it is still at a word of several letters behind one
 * dash. */
static inline const char *argument_refused(int argc, char **argv)
{
	const char *here = optind < argc ? argv[optind] : "";
	bool letters = here[0] == '-' && here[1] != '-' && optopt > 0 && optopt < 256;

	return letters && strchr(here, optopt) ? here : argv[optind - 1];
}

#endif
