/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A page of the manual where there is no man(1): headings, paragraphs and lists of mdoc(7) and
 * man(7), as far as our own pages use them. It does not know which page it is.
 */
#include "help.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_COLUMNS = 78, TEXT_STEP = 6, TEXT_WORDS = 40, TEXT_NAME = 64, TEXT_LISTS = 4 };

struct help_out {
	FILE *to;
	char name[TEXT_NAME]; /* what .Nm without words stands for */
	unsigned column;      /* 0: nothing in this line yet */
	unsigned indent;
	unsigned lists; /* open ones */
	bool synopsis;	/* in the section SYNOPSIS, where each command has a line */
	bool verbatim;	/* line by line, as in examples */
	bool tag;	/* the next line is the head of an entry (.TP) */
	bool joined;	/* the next word follows without a blank */
};

static void help_line_end(struct help_out *o)
{
	if (o->column > 0)
		fputc('\n', o->to);
	o->column = 0;
	o->joined = false;
}

static void help_paragraph(struct help_out *o)
{
	help_line_end(o);
	fputc('\n', o->to);
}

/* Resolves the escapes of roff, in place. */
static void help_unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		if (*from != '\\' || !from[1]) {
			*to++ = *from;
			continue;
		}
		from++;
		if (*from == 'f' && from[1])
			from++; /* a font */
		else if (strchr("\\- .", *from))
			*to++ = *from;
		else if (*from == 'e')
			*to++ = '\\';
	}
	*to = '\0';
}

static void help_word(struct help_out *o, const char *word)
{
	unsigned length = (unsigned)strlen(word);
	bool closes = length == 1 && strchr(".,;:)]", *word);
	bool blank = o->column > o->indent && !closes && !o->joined;
	if (length == 0)
		return;
	if (blank && o->column + 1 + length > TEXT_COLUMNS) {
		help_line_end(o);
		blank = false;
	}
	if (o->column < o->indent)
		o->column += (unsigned)fprintf(o->to, "%*s", (int)(o->indent - o->column), "");
	o->column += (unsigned)fprintf(o->to, "%s%s", blank ? " " : "", word);
	o->joined = length == 1 && strchr("([", *word);
}

static void help_join(struct help_out *o, const char *word)
{
	o->joined |= *word != '\0';
	help_word(o, word);
}

/* A line of text, filled into the paragraph. */
static void help_fill(struct help_out *o, char *text)
{
	help_unescape(text);
	if (o->verbatim) {
		fprintf(o->to, "%*s%s\n", (int)o->indent, "", text);
		return;
	}
	for (char *word = strtok(text, " \t"); word; word = strtok(NULL, " \t"))
		help_word(o, word);
}

/* Splits the rest of a macro line; "a b" is one word. */
static unsigned help_split(char *line, char *words[TEXT_WORDS])
{
	unsigned count = 0;
	while (*(line += strspn(line, " \t")) && count < TEXT_WORDS) {
		bool quoted = *line == '"';
		words[count++] = line += quoted;
		line += strcspn(line, quoted ? "\"" : " \t");
		if (*line)
			*line++ = '\0';
	}
	for (unsigned i = 0; i < count; i++)
		help_unescape(words[i]);
	return count;
}

/* --- mdoc: macros stand among the words --- */

/* What stands before the first word and behind the last one. */
static const struct help_macro {
	char name[3];
	const char *before, *after;
} help_macros[] = {
	{"Ar", "", ""},	  {"Bq", "[", "]"}, {"Cm", "", ""},   {"Dv", "", ""},	{"Er", "", ""},
	{"Ev", "", ""},	  {"Fa", "", ""},   {"Fl", "", ""},   {"Fn", "", ""},	{"Ft", "", ""},
	{"In", "<", ">"}, {"Nd", "-", ""},  {"Nm", "", ""},   {"Op", "[", "]"}, {"Pa", "", ""},
	{"Pc", ")", ""},  {"Po", "(", ""},  {"Pq", "(", ")"}, {"Ql", "'", "'"}, {"Sc", "'", ""},
	{"So", "'", ""},  {"Va", "", ""},   {"Xc", "", ""},   {"Xo", "", ""},	{"Xr", "", ""},
};

static const struct help_macro *help_macro(const char *word)
{
	for (unsigned i = 0; i < sizeof(help_macros) / sizeof(help_macros[0]); i++)
		if (strcmp(word, help_macros[i].name) == 0)
			return &help_macros[i];
	return NULL;
}

static bool help_is_mark(const char *word)
{
	return strlen(word) == 1 && strchr("|.,;:()[]?!", *word);
}

/* NAME(ARGUMENT, ...), PAGE(SECTION). Returns how many words it took. */
static unsigned help_call(struct help_out *o, char *const words[], unsigned count)
{
	unsigned taken = 1;
	help_word(o, words[0]);
	help_join(o, "(");
	for (; taken < count && !help_is_mark(words[taken]) && !help_macro(words[taken]); taken++) {
		if (taken > 1)
			help_word(o, ",");
		help_word(o, words[taken]);
	}
	help_join(o, ")");
	return taken;
}

static void help_mdoc(struct help_out *o, char *const words[], unsigned count)
{
	const char *after[TEXT_WORDS];
	unsigned afters = 0;
	bool flag = false;
	for (unsigned i = 0; i < count; i++) {
		const struct help_macro *macro = help_macro(words[i]);
		bool last =
			i + 1 == count || help_is_mark(words[i + 1]) || help_macro(words[i + 1]);
		if (!macro) {
			while (i + 1 == count && help_is_mark(words[i]) && afters > 0)
				help_join(o, after[--afters]);
			if (flag && !help_is_mark(words[i])) {
				help_word(o, "-");
				o->joined = true;
			}
			help_word(o, words[i]);
			continue;
		}
		flag = strcmp(macro->name, "Fl") == 0;
		help_word(o, macro->before);
		o->joined |= *macro->before && *macro->after;
		after[afters++] = macro->after;
		if (flag && last)
			help_word(o, "-");
		else if (strcmp(macro->name, "Nm") == 0 && last)
			help_word(o, o->name);
		else if (!last &&
			 (strcmp(macro->name, "Fn") == 0 || strcmp(macro->name, "Xr") == 0))
			i += help_call(o, words + i + 1, count - i - 1);
	}
	while (afters > 0)
		help_join(o, after[--afters]);
}

/* --- lines --- */

static void help_head(struct help_out *o, const char *macro, char *const words[], unsigned count)
{
	help_paragraph(o);
	o->indent = macro[1] == 's' || macro[1] == 'S' ? TEXT_STEP / 2 : 0;
	o->lists = 0;
	if (o->indent == 0)
		o->synopsis = count > 0 && strcmp(words[0], "SYNOPSIS") == 0;
	for (unsigned i = 0; i < count; i++)
		help_word(o, words[i]);
	help_line_end(o);
	o->indent = TEXT_STEP;
}

/* The head of an entry stands before its text. */
static void help_entry(struct help_out *o, char *const words[], unsigned count)
{
	help_line_end(o);
	o->indent = TEXT_STEP * o->lists;
	help_mdoc(o, words, count);
	if (count == 0)
		help_word(o, "-"); /* of a list with bullets: the text follows */
	else
		help_line_end(o);
	o->indent = TEXT_STEP * (o->lists + 1);
}

static void help_list(struct help_out *o, bool opens)
{
	if (opens && o->lists < TEXT_LISTS)
		o->lists++;
	else if (!opens && o->lists > 0)
		o->lists--;
	help_paragraph(o);
	o->indent = TEXT_STEP * (o->lists + 1);
}

/* Fonts of man(7): .BI alternates between two without a blank. */
static void help_fonts(struct help_out *o, const char *macro, char *const words[], unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		o->joined |= i > 0 && macro[1];
		help_word(o, words[i]);
	}
	o->joined = false;
}

static bool help_one_of(const char *macro, const char *list)
{
	char padded[8];
	return snprintf(padded, sizeof(padded), " %s ", macro) < (int)sizeof(padded) &&
	       strstr(list, padded);
}

static void help_macro_line(struct help_out *o, const char *macro, char *words[], unsigned count)
{
	if (help_one_of(macro, " Sh SH Ss SS "))
		help_head(o, macro, words, count);
	else if (help_one_of(macro, " Pp PP "))
		help_paragraph(o);
	else if (help_one_of(macro, " Bl El "))
		help_list(o, *macro == 'B');
	else if (help_one_of(macro, " It "))
		help_entry(o, words, count);
	else if (help_one_of(macro, " Bd Ed nf fi ")) {
		help_paragraph(o);
		o->verbatim = help_one_of(macro, " Bd nf ");
	} else if (help_one_of(macro, " TP ")) {
		help_line_end(o);
		o->indent = TEXT_STEP;
		o->tag = true;
	} else if (help_one_of(macro, " B I BI BR IR RI ")) {
		help_fonts(o, macro, words, count);
	}
}

static void help_line(struct help_out *o, char *line)
{
	char *words[TEXT_WORDS];
	bool tag = o->tag;
	unsigned count;
	if (*line != '.') {
		help_fill(o, line);
	} else if (line[1] != '\\' && (count = help_split(line + 1, words)) > 0) {
		bool named = strcmp(words[0], "Nm") == 0 && count > 1;
		if (named && !*o->name)
			snprintf(o->name, sizeof(o->name), "%s", words[1]);
		if (o->synopsis && help_one_of(words[0], " Nm Ft "))
			help_line_end(o);
		if (help_macro(words[0]))
			help_mdoc(o, words, count);
		else
			help_macro_line(o, words[0], words + 1, count - 1);
	}
	if (tag) {
		o->tag = false;
		help_line_end(o);
		o->indent = 2 * TEXT_STEP;
	}
}

void help_text(FILE *page, FILE *out)
{
	struct help_out o = {.to = out};
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, page) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		help_line(&o, line);
	}
	free(line);
	help_line_end(&o);
}
