/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a command line as rows of a table. One reader for all programs sets the fields of
 * a structure by the rows, has one line for what is wrong, and prints the help. The callers have
 * the rows, the structure and the way to say the line. Main thread; getopt_long has one state.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PROGRAM_OPTION_H
#define SARISSA_INCLUDE_INTERNAL_PROGRAM_OPTION_H

#include <stddef.h>
#include "arguments.h"

enum { OPTION_ROWS_MAX = 63, OPTION_LINE_BYTES = 512, OPTION_COLUMNS = 80, OPTION_INDENT = 25 };

enum option_kind {
	OPTION_IS_STOP,	   /* the caller acts when it comes: help, version */
	OPTION_IS_FLAG,	   /* the bits of unit are set in the field */
	OPTION_IS_TEXT,	   /* the value itself: const char * */
	OPTION_IS_NUMBER,  /* low to high, times unit */
	OPTION_IS_SECONDS, /* low to high ns, given in seconds with decimals */
	OPTION_IS_CHOICE,  /* the place among choices, from low */
	OPTION_IS_TAKEN,   /* by take */
};

struct option_row {
	const char *name, *argument, *help; /* argument: its value's name; NULL: it has none */
	enum option_kind kind;
	size_t offset, bytes; /* of the field in the structure */
	uint64_t low, high, unit;
	const char *choices;				    /* words with one space between them */
	const char *(*take)(const char *value, void *into); /* NULL, or what is wrong */
	const char *of; /* the only command for which the row is; NULL: for each that names it */
};

#define OPTION_AT(s, f)		.offset = offsetof(s, f), .bytes = sizeof(((s *)0)->f)
#define OPTION_STOP		.kind = OPTION_IS_STOP
#define OPTION_BITS(s, f, bits) .kind = OPTION_IS_FLAG, .unit = (bits), OPTION_AT(s, f)
#define OPTION_FLAG(s, f)	OPTION_BITS(s, f, 1)
#define OPTION_TEXT(s, f)	.kind = OPTION_IS_TEXT, OPTION_AT(s, f)
#define OPTION_NUMBER(s, f, least, most, times) \
	.kind = OPTION_IS_NUMBER, .low = (least), .high = (most), .unit = (times), OPTION_AT(s, f)
#define OPTION_SECONDS(s, f, least, most) \
	.kind = OPTION_IS_SECONDS, .low = (least), .high = (most), OPTION_AT(s, f)
#define OPTION_CHOICE(s, f, first, words) \
	.kind = OPTION_IS_CHOICE, .low = (first), .choices = (words), OPTION_AT(s, f)
#define OPTION_TAKE(function) .kind = OPTION_IS_TAKEN, .take = (function)

enum { OPTION_SECONDS_MAX = 1000000000 }; /* more than a run of any program */
#define OPTION_NS_MAX (OPTION_SECONDS_MAX * UINT64_C(1000000000))

struct option_reader {
	const struct option_row *row;
	size_t rows;
	int argc;
	char **argv;
	const char *form; /* ":"; or "+:": it ends at the first word that is no option */
	char wrong[OPTION_LINE_BYTES]; /* one line; empty as long as nothing is wrong */
};

/* The next option, its value in optarg. NULL: there is none, and optind is the first other word; or
 * wrong says why. */
static inline const struct option_row *option_next(struct option_reader *o)
{
	enum { FIRST = 256 };
	struct option table[OPTION_ROWS_MAX + 1] = {0};
	int found;

	for (size_t i = 0; i < o->rows; i++)
		table[i] = (struct option){o->row[i].name, o->row[i].argument != NULL, NULL,
					   FIRST + (int)i};
	opterr = 0;
	found = getopt_long(o->argc, o->argv, o->form, table, NULL);
	if (found >= FIRST)
		return &o->row[found - FIRST];
	if (found != -1)
		snprintf(o->wrong, sizeof(o->wrong), "%s %s",
			 found == ':' ? "a value is missing after" : "unknown option",
			 argument_refused(o->argc, o->argv));
	return NULL;
}

/* The values that a row takes, in words. */
static inline void option_takes(const struct option_row *row, char *out, size_t room)
{
	size_t n = 0;

	if (row->kind == OPTION_IS_NUMBER && row->high >= UINT32_MAX)
		snprintf(out, room, "a number from %llu", (unsigned long long)row->low);
	else if (row->kind == OPTION_IS_NUMBER)
		snprintf(out, room, "%llu to %llu", (unsigned long long)row->low,
			 (unsigned long long)row->high);
	else if (row->kind == OPTION_IS_SECONDS && row->high == OPTION_NS_MAX)
		snprintf(out, room, "seconds%s", row->low ? " above 0" : "");
	else if (row->kind == OPTION_IS_SECONDS)
		snprintf(out, room, "%g to %g seconds", (double)row->low / 1e9,
			 (double)row->high / 1e9);
	for (const char *c = row->choices; c && *c && n + 5 < room; c++) {
		char one[2] = {*c};
		const char *between = strchr(c + 1, ' ') ? ", " : " or ";

		n += (size_t)snprintf(out + n, room - n, "%s", *c == ' ' ? between : one);
	}
}

/* The place of a word among choices, or -1. */
static inline int option_place(const char *choices, const char *word)
{
	size_t length = strlen(word), n;

	for (int place = 0;; place++, choices += n + 1) {
		n = strcspn(choices, " ");
		if (n == length && strncmp(choices, word, n) == 0)
			return place;
		if (!choices[n])
			return -1;
	}
}

static inline bool option_value(const struct option_row *row, uint64_t *out)
{
	char *end;
	double seconds;
	int place;

	if (row->kind == OPTION_IS_NUMBER) {
		if (!argument_number(optarg, 10, row->low, row->high, out))
			return false;
		*out *= row->unit;
		return true;
	}
	if (row->kind == OPTION_IS_SECONDS) {
		seconds = strtod(optarg, &end);
		if (end == optarg || *end || !(seconds >= 0 && seconds <= OPTION_SECONDS_MAX))
			return false;
		*out = (uint64_t)(seconds * 1e9 + 0.5);
		return *out >= row->low && *out <= row->high;
	}
	place = option_place(row->choices, optarg);
	*out = row->low + (uint64_t)place;
	return place >= 0;
}

/* Sets the field of an option that option_next has found. False: wrong says why not. */
static inline bool option_set(struct option_reader *o, const struct option_row *row, void *into)
{
	char *field = (char *)into + row->offset, takes[OPTION_LINE_BYTES / 2] = "";
	uint64_t value = 0;
	const char *why;

	switch (row->kind) {
	case OPTION_IS_STOP:
		return true;
	case OPTION_IS_FLAG:
		memcpy(&value, field, row->bytes); /* the low bytes come first */
		value |= row->unit;
		break;
	case OPTION_IS_TEXT:
		memcpy(field, &optarg, sizeof(optarg));
		return true;
	case OPTION_IS_TAKEN:
		why = row->take(optarg, into);
		if (why)
			snprintf(o->wrong, sizeof(o->wrong), "--%s %.200s: %s", row->name, optarg,
				 why);
		return !why;
	default:
		if (option_value(row, &value))
			break;
		option_takes(row, takes, sizeof(takes));
		snprintf(o->wrong, sizeof(o->wrong), "--%s takes %s, not '%.200s'", row->name,
			 takes, optarg);
		return false;
	}
	memcpy(field, &value, row->bytes);
	return true;
}

/* All options into one structure. The row of kind OPTION_IS_STOP that has come; or NULL, and wrong
 * says whether all is well. */
static inline const struct option_row *option_read(struct option_reader *o, void *into)
{
	const struct option_row *row;

	while ((row = option_next(o)) && row->kind != OPTION_IS_STOP)
		if (!option_set(o, row, into))
			return NULL;
	return row;
}

/* Two columns, of which the second is wrapped between words. */
static inline void option_help(const struct option_row *row, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		const char *text = row[i].help;
		int column = printf("  --%s%s%s", row[i].name, row[i].argument ? " " : "",
				    row[i].argument ? row[i].argument : "");

		while (*text) {
			int length = (int)strcspn(text, " ");

			if (column < OPTION_INDENT)
				column += printf("%*s", OPTION_INDENT - column, "");
			else if (column + 1 + length > OPTION_COLUMNS)
				column = printf("\n%*s", OPTION_INDENT, "") - 1;
			else
				column += printf(" ");
			column += printf("%.*s", length, text);
			text += length + (text[length] == ' ');
		}
		putchar('\n');
	}
}

#endif
