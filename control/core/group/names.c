/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of a group's objects: written, and read again by the next owner. Pure. Called by the
 * other files of this folder, and by sessions for the id of a group. */
#include <xxhash.h>
#include "groups.h"

struct object_id group_id(const char *name)
{
	XXH128_canonical_t canonical;
	struct object_id id;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(name, strlen(name)));
	memcpy(id.bytes, canonical.digest, sizeof(id.bytes));
	return id;
}

void group_name(struct text *t, const char *group, const char *kind, uint64_t number,
		uint32_t attempt)
{
	t->length = 0;
	text_add(t, GROUP_PREFIX);
	text_add(t, group);
	if (!kind)
		return;
	text_add(t, "/");
	text_add(t, kind);
	text_add(t, "/");
	text_add_number(t, number);
	if (attempt == 0)
		return;
	text_add(t, ".");
	text_add_number(t, attempt);
}

void group_contribution_name(struct text *t, const char *group, uint64_t clock, uint64_t member)
{
	char hex[17];

	for (int i = 0; i < 16; i++)
		hex[i] = "0123456789abcdef"[member >> (60 - 4 * i) & 15];
	hex[16] = '\0';
	t->length = 0;
	text_add(t, GROUP_PREFIX);
	text_add(t, group);
	text_add(t, "/");
	text_add_number(t, clock);
	text_add(t, "/");
	text_add(t, hex);
}

const char *group_name_wrong(const char *name)
{
	size_t bytes = strnlen(name, GROUP_NAME_MAX + 1);

	if (bytes == 0 || bytes > GROUP_NAME_MAX)
		return "the name of a group has 1 to 100 bytes: choose another one";
	for (size_t i = 0; i < bytes; i++)
		if (name[i] == '/' || (unsigned char)name[i] <= ' ')
			return "the name of a group has no '/' and no blanks: choose another one";
	return NULL;
}

static bool name_number(const char **at, uint64_t *out)
{
	const char *s = *at;

	for (*out = 0; *s >= '0' && *s <= '9' && *out <= GROUP_NUMBER_MAX / 10; s++)
		*out = *out * 10 + (uint64_t)(*s - '0');
	if (s == *at || *out > GROUP_NUMBER_MAX)
		return false;
	*at = s;
	return true;
}

/* The rest behind ".group/NAME/"; NULL: it is no object of the group. */
static const char *name_behind(const char *group, const char *name)
{
	size_t prefix = strlen(GROUP_PREFIX), bytes = strlen(group);

	if (strncmp(name, GROUP_PREFIX, prefix) != 0 || strncmp(name + prefix, group, bytes) != 0 ||
	    name[prefix + bytes] != '/')
		return NULL;
	return name + prefix + bytes + 1;
}

bool group_contribution_parse(const char *group, const char *name, uint64_t *clock,
			      uint64_t *member)
{
	const char *at = name_behind(group, name);

	if (!at || !name_number(&at, clock) || *at != '/')
		return false;
	*member = 0;
	for (int i = 0; i < 16; i++) {
		const char *hex = "0123456789abcdef", *digit = *++at ? strchr(hex, *at) : NULL;

		if (!digit)
			return false;
		*member = *member << 4 | (uint64_t)(digit - hex);
	}
	return at[1] == '\0';
}

bool group_name_parse(const char *group, const char *name, char *kind, uint64_t *number,
		      uint32_t *attempt)
{
	const char *at = name_behind(group, name);
	uint64_t n = 0;

	if (!at || at[0] == '\0' || at[1] != '/')
		return false;
	*kind = at[0];
	at += 2;
	if (!name_number(&at, number))
		return false;
	if (*at == '.') {
		at++;
		if (!name_number(&at, &n))
			return false;
	}
	*attempt = (uint32_t)n;
	return *at == '\0' && n < (*kind == 'r' ? 2 * GROUP_BY_SWITCH : GROUP_ATTEMPT_MAX);
}
