/* SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"

#include <inttypes.h>
#include <string.h>
#include "text.h"

static void json_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (size_t left = strlen(text); left > 0;) {
		size_t n = text_utf8(text, left);
		uint8_t first = (uint8_t)text[0];
		if (n == 0)
			fprintf(file, "\\udc%02x", first);
		else if (first == '"' || first == '\\')
			fprintf(file, "\\%c", first);
		else if (first < 0x20 || first == 0x7f)
			fprintf(file, "\\u%04x", first);
		else
			fwrite(text, 1, n, file);
		n = n ? n : 1;
		text += n;
		left -= n;
	}
	fputc('"', file);
}

static void json_key(struct json *j, const char *key)
{
	if (j->comma)
		fputs(", ", j->file);
	j->comma = true;
	if (key)
		fprintf(j->file, "\"%s\": ", key);
}

void json_begin(struct json *j, FILE *file)
{
	*j = (struct json){.file = file};
	fputc('{', file);
}

void json_end(struct json *j)
{
	fputs("}\n", j->file);
}

void json_string(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_text(j->file, value);
}

void json_unsigned(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	fprintf(j->file, "%" PRIu64, value);
}

void json_signed(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	fprintf(j->file, "%" PRId64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	fputs(value ? "true" : "false", j->file);
}

void json_null(struct json *j, const char *key)
{
	json_key(j, key);
	fputs("null", j->file);
}

void json_object(struct json *j, const char *key)
{
	json_key(j, key);
	fputc('{', j->file);
	j->comma = false;
}

void json_array(struct json *j, const char *key)
{
	json_key(j, key);
	fputc('[', j->file);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->file);
	j->comma = true;
}
