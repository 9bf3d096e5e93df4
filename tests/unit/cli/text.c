/* SPDX-License-Identifier: BSD-3-Clause */
/* Values and names as the command prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cli/support/json.h"
#include "cli/support/text.h"

static void sizes(void **state)
{
	char out[TEXT_BYTES];
	assert_string_equal(text_size(out, 0), "0 B");
	assert_string_equal(text_size(out, 1023), "1023 B");
	assert_string_equal(text_size(out, 1024), "1.0 KiB");
	assert_string_equal(text_size(out, 1024 * 1024 - 1), "1.0 MiB");
	assert_string_equal(text_size(out, 64 << 20), "64.0 MiB");
	assert_string_equal(text_size(out, UINT64_MAX), "16.0 EiB");
	assert_string_equal(text_duration(out, 999), "999 ns");
	assert_string_equal(text_duration(out, 1500), "1.5 us");
	assert_string_equal(text_duration(out, 2500000), "2.50 ms");
	assert_string_equal(text_duration(out, 61000000000), "61.00 s");
	assert_string_equal(text_clock(out, 27), "0:27");
	assert_string_equal(text_clock(out, 3723), "1:02:03");
}

static void addresses(void **state)
{
	static const uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t v6[16] = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
	char out[TEXT_BYTES];
	assert_string_equal(text_endpoint(out, v4, 7400), "10.0.0.1:7400");
	assert_string_equal(text_endpoint(out, v6, 7400), "[fd00::1]:7400");
	assert_string_equal(text_id(out, v6), "fd000000000000000000000000000001");
}

/* RFC 3629: shortest forms only, no surrogates, nothing beyond U+10FFFF. */
static void well_formed(void **state)
{
	assert_int_equal(text_utf8("", 0), 0);
	assert_int_equal(text_utf8("a", 1), 1);
	assert_int_equal(text_utf8("\xc3\xa4", 2), 2);
	assert_int_equal(text_utf8("\xe2\x82\xac", 3), 3);
	assert_int_equal(text_utf8("\xed\x9f\xbf", 3), 3);
	assert_int_equal(text_utf8("\xf0\x9f\x98\x80", 4), 4);
	assert_int_equal(text_utf8("\xf4\x8f\xbf\xbf", 4), 4);
}

static void malformed(void **state)
{
	static const char *const bad[] = {
		"\x80",	     "\xc0\x80",	 "\xc1\xbf",	     "\xc3",
		"\xc3(",     "\xe0\x9f\xbf",	 "\xed\xa0\x80",     "\xe2\x82",
		"\xe2\x82(", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xff"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(text_utf8(bad[i], strlen(bad[i])), 0);
}

static char *printed(void (*print)(FILE *file, const char *text), const char *text)
{
	static char out[256];
	FILE *file = fmemopen(out, sizeof(out), "w");
	print(file, text);
	fclose(file);
	return out;
}

static void print_safe(FILE *file, const char *text)
{
	text_safe(file, text);
}

static void print_json(FILE *file, const char *text)
{
	struct json j;
	json_begin(&j, file);
	json_string(&j, "k", text);
	json_end(&j);
}

static void names(void **state)
{
	assert_string_equal(printed(print_safe, "a\x1b[31m\xc3\xa4\xff\xc2\x9b"),
			    "a\\x1b[31m\xc3\xa4\\xff\\xc2\\x9b");
	assert_string_equal(printed(print_json, "\"\\\n\x7f\xc3\xa4\xff\xc3"),
			    "{\"k\": \"\\\"\\\\\\u000a\\u007f\xc3\xa4\\udcff\\udcc3\"}\n");
}

static void nesting(void **state)
{
	char out[256];
	struct json j;
	FILE *file = fmemopen(out, sizeof(out), "w");
	json_begin(&j, file);
	json_array(&j, "a");
	json_object(&j, NULL);
	json_bool(&j, "b", true);
	json_close(&j, '}');
	json_object(&j, NULL);
	json_close(&j, '}');
	json_close(&j, ']');
	json_unsigned(&j, "u", UINT64_MAX);
	json_signed(&j, "s", INT64_MIN);
	json_null(&j, "n");
	json_end(&j);
	fclose(file);
	assert_string_equal(out, "{\"a\": [{\"b\": true}, {}], \"u\": 18446744073709551615, \"s\": "
				 "-9223372036854775808, \"n\": null}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),       cmocka_unit_test(addresses),
		cmocka_unit_test(well_formed), cmocka_unit_test(malformed),
		cmocka_unit_test(names),       cmocka_unit_test(nesting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
