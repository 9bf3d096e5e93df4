/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of options: each kind of value, each refusal in one line, and the words that are left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include "internal/program/option.h"
#include "internal/reduce.h"

struct fields {
	bool flag;
	uint8_t small;
	uint16_t half;
	uint32_t bits, choice;
	uint64_t large;
	int64_t ns;
	const char *text;
	unsigned taken;
};

static const char *take_even(const char *value, void *into)
{
	struct fields *f = into;

	f->taken += (unsigned)strlen(value);
	return strlen(value) % 2 ? "it is odd" : NULL;
}

static const struct option_row rows[] = {
	{"flag", NULL, "a flag", OPTION_FLAG(struct fields, flag)},
	{"bit", NULL, "a bit", OPTION_BITS(struct fields, bits, 4)},
	{"other-bit", NULL, "a bit", OPTION_BITS(struct fields, bits, 1)},
	{"small", "N", "a number", OPTION_NUMBER(struct fields, small, 1, 200, 1)},
	{"half", "N", "a number", OPTION_NUMBER(struct fields, half, 0, 60, 1000)},
	{"large", "N", "a number", OPTION_NUMBER(struct fields, large, 1, INT64_MAX, 1)},
	{"ns", "S", "a time", OPTION_SECONDS(struct fields, ns, 10000000, 86400000000000)},
	{"any", "S", "a time", OPTION_SECONDS(struct fields, ns, 1, OPTION_NS_MAX)},
	{"choice", "C", "a choice", OPTION_CHOICE(struct fields, choice, 3, "red green blue")},
	{"text", "T", "a text", OPTION_TEXT(struct fields, text)},
	{"even", "T", "a text of even length", OPTION_TAKE(take_even)},
	{"help", NULL, "this text", OPTION_STOP},
};

static struct option_reader reader;
static struct fields fields;
static const struct option_row *stop;

/* Reads words behind the program's name. */
static void read_words(const char *form, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	fields = (struct fields){.choice = 99};
	reader = (struct option_reader){.row = rows,
					.rows = sizeof(rows) / sizeof(*rows),
					.argc = argc,
					.argv = argv,
					.form = form};
	optind = 0;
	stop = option_read(&reader, &fields);
}

#define READ(...) read_words(":", (char *[]){(char[]){"program"}, __VA_ARGS__, NULL})
#define W(word)	  ((char[]){word})

static void each_kind_sets_its_field(void **state)
{
	READ(W("--flag"), W("--other-bit"), W("--bit"), W("--small"), W("200"), W("--half=60"),
	     W("word"), W("--large"), W("9223372036854775807"), W("--ns"), W("0.25"), W("--choice"),
	     W("blue"), W("--text"), W("--flag"), W("--even"), W("ab"));
	assert_string_equal(reader.wrong, "");
	assert_null(stop);
	assert_true(fields.flag);
	assert_int_equal(fields.bits, 5);
	assert_int_equal(fields.small, 200);
	assert_int_equal(fields.half, 60000);
	assert_int_equal(fields.large, INT64_MAX);
	assert_int_equal(fields.ns, 250000000);
	assert_int_equal(fields.choice, 5);
	assert_string_equal(fields.text, "--flag");
	assert_int_equal(fields.taken, 2);
	assert_string_equal(reader.argv[optind], "word");
}

static void what_is_wrong_is_one_line(void **state)
{
	static const struct {
		const char *words[2], *said;
	} wrong[] = {
		{{"--nope"}, "unknown option --nope"},
		{{"-xy"}, "unknown option -xy"},
		{{"--flag=1"}, "unknown option --flag=1"},
		{{"--small"}, "a value is missing after --small"},
		{{"--small", "0"}, "--small takes 1 to 200, not '0'"},
		{{"--small", "201"}, "--small takes 1 to 200, not '201'"},
		{{"--small", "1x"}, "--small takes 1 to 200, not '1x'"},
		{{"--small", "-1"}, "--small takes 1 to 200, not '-1'"},
		{{"--small", ""}, "--small takes 1 to 200, not ''"},
		{{"--large", "0"}, "--large takes a number from 1, not '0'"},
		{{"--ns", "0.001"}, "--ns takes 0.01 to 86400 seconds, not '0.001'"},
		{{"--ns", "nan"}, "--ns takes 0.01 to 86400 seconds, not 'nan'"},
		{{"--any", "0"}, "--any takes seconds above 0, not '0'"},
		{{"--any", "1e30"}, "--any takes seconds above 0, not '1e30'"},
		{{"--choice", "gree"}, "--choice takes red, green or blue, not 'gree'"},
		{{"--choice", ""}, "--choice takes red, green or blue, not ''"},
		{{"--even", "abc"}, "--even abc: it is odd"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char one[32] = "", two[32] = "";

		snprintf(one, sizeof(one), "%s", wrong[i].words[0]);
		snprintf(two, sizeof(two), "%s", wrong[i].words[1] ? wrong[i].words[1] : "");
		READ(one, wrong[i].words[1] ? two : NULL);
		assert_string_equal(reader.wrong, wrong[i].said);
		assert_int_equal(fields.choice, 99);
	}
}

/* The options of reduces count on the order. */
static void words_are_in_the_order_of_their_numbers(void **state)
{
	for (int op = 1; op < REDUCE_OP_END; op++)
		assert_int_equal(option_place(REDUCE_OP_WORDS, reduce_op_name((uint32_t)op)),
				 op - 1);
	for (int type = 1; type < REDUCE_DTYPE_END; type++)
		assert_int_equal(
			option_place(REDUCE_DTYPE_WORDS, reduce_dtype_name((uint32_t)type)),
			type - 1);
	assert_int_equal(option_place(REDUCE_OP_WORDS, "su"), -1);
	assert_int_equal(option_place(REDUCE_OP_WORDS, "sum prod"), -1);
}

static void a_long_value_is_cut(void **state)
{
	char value[4096];

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	READ(W("--small"), value);
	assert_true(strlen(reader.wrong) < 300);
}

static void some_options_stop(void **state)
{
	READ(W("--flag"), W("--help"), W("--nope"));
	assert_string_equal(stop->name, "help");
	assert_true(fields.flag);
	assert_string_equal(reader.wrong, "");
}

static void a_plus_ends_at_the_first_word(void **state)
{
	read_words("+:", (char *[]){W("program"), W("--flag"), W("word"), W("--nope"), NULL});
	assert_string_equal(reader.wrong, "");
	assert_string_equal(reader.argv[optind], "word");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_sets_its_field),
		cmocka_unit_test(what_is_wrong_is_one_line),
		cmocka_unit_test(words_are_in_the_order_of_their_numbers),
		cmocka_unit_test(a_long_value_is_cut),
		cmocka_unit_test(some_options_stop),
		cmocka_unit_test(a_plus_ends_at_the_first_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
