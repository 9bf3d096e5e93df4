/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

static void text_char(struct text *t, char c)
{
	if (t->length + 1 < sizeof(t->bytes))
		t->bytes[t->length++] = c;
	t->bytes[t->length] = '\0';
}

void text_add(struct text *t, const char *s)
{
	while (*s)
		text_char(t, *s++);
}

static void text_base(struct text *t, uint64_t n, unsigned base)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	while (count > 0)
		text_char(t, digits[--count]);
}

void text_add_number(struct text *t, uint64_t n)
{
	text_base(t, n, 10);
}

void text_add_object(struct text *t, const struct object_id *id, const char *name)
{
	if (name && *name) {
		text_char(t, '\'');
		for (; *name; name++)
			text_char(t, (uint8_t)*name < ' ' || *name == 0x7f ? '?' : *name);
		text_char(t, '\'');
		return;
	}
	for (int i = 0; i < OBJECT_ID_BYTES; i++) {
		text_base(t, id->bytes[i] >> 4, 16);
		text_base(t, id->bytes[i] & 15, 16);
	}
}

void text_add_addr(struct text *t, const struct net_addr *a)
{
	bool v4 = net_addr_is_v4(a);

	if (!v4)
		text_char(t, '[');
	for (int i = v4 ? 12 : 0; i < 16; i += v4 ? 1 : 2) {
		if (i != (v4 ? 12 : 0))
			text_char(t, v4 ? '.' : ':');
		if (v4)
			text_base(t, a->ip[i], 10);
		else
			text_base(t, (uint64_t)a->ip[i] << 8 | a->ip[i + 1], 16);
	}
	text_add(t, v4 ? ":" : "]:");
	text_base(t, a->port, 10);
}
