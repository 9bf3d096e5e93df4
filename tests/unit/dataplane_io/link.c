/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about a link: each change once, and no word of a cable while a card negotiates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "io/net/link.h"

static struct link_watch watch;

static int begin(void **state)
{
	link_begin(&watch, 7 * LINK_LOOK_NS);
	return 0;
}

static enum link_news after(unsigned seconds, bool up)
{
	uint64_t now = (7 + seconds) * LINK_LOOK_NS;
	assert_true(link_is_due(&watch, now));
	enum link_news news = link_look(&watch, up, now);
	assert_false(link_is_due(&watch, now + LINK_LOOK_NS - 1));
	return news;
}

static void negotiation_is_no_pulled_cable(void **state)
{
	for (unsigned s = 0; s < 5; s++)
		assert_int_equal(after(s, false), LINK_NOTHING);
	assert_int_equal(after(5, true), LINK_UP);
	assert_int_equal(after(6, true), LINK_NOTHING);
}

static void a_link_that_never_comes_is_told(void **state)
{
	assert_int_equal(after(4, false), LINK_NOTHING);
	assert_int_equal(after(5, false), LINK_DOWN);
	assert_int_equal(after(6, false), LINK_NOTHING);
	assert_int_equal(after(7, true), LINK_UP);
}

static void a_pulled_cable_is_told_at_once(void **state)
{
	assert_int_equal(after(0, true), LINK_UP);
	assert_int_equal(after(1, false), LINK_DOWN);
	assert_int_equal(after(2, false), LINK_NOTHING);
	assert_int_equal(after(3, true), LINK_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(negotiation_is_no_pulled_cable, begin),
		cmocka_unit_test_setup(a_link_that_never_comes_is_told, begin),
		cmocka_unit_test_setup(a_pulled_cable_is_told_at_once, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
