/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with a unit: units.h. */
#include "units.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct units_suffix {
	const char *text;
	double factor;
};

static bool units_read(const char *text, const struct units_suffix *suffix, size_t count,
		       double *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || !(v >= 0) || v > 1e18 || text[0] < '0' || text[0] > '9' ||
	    strpbrk(text, "xX"))
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(end, suffix[i].text) == 0 && v * suffix[i].factor < 1e18) {
			*out = v * suffix[i].factor;
			return true;
		}
	return false;
}

bool units_rate(const char *text, uint64_t *bytes_per_s)
{
	static const struct units_suffix suffix[] = {{"", 1},	 {"K", 1e3}, {"k", 1e3},
						     {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
	double bits;

	if (!units_read(text, suffix, sizeof(suffix) / sizeof(*suffix), &bits) || bits < 8)
		return false;
	*bytes_per_s = (uint64_t)(bits / 8);
	return true;
}

bool units_time(const char *text, uint64_t *ns)
{
	static const struct units_suffix suffix[] = {
		{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double v;

	if (!units_read(text, suffix, sizeof(suffix) / sizeof(*suffix), &v))
		return false;
	*ns = (uint64_t)v;
	return true;
}

bool units_size(const char *text, uint64_t *bytes)
{
	static const struct units_suffix suffix[] = {{"", 1},
						     {"K", 1024.0},
						     {"M", 1024.0 * 1024},
						     {"G", 1024.0 * 1024 * 1024},
						     {"T", 1024.0 * 1024 * 1024 * 1024}};
	double v;

	if (!units_read(text, suffix, sizeof(suffix) / sizeof(*suffix), &v))
		return false;
	*bytes = (uint64_t)v;
	return true;
}
