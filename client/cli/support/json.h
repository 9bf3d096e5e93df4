/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing JSON, one object per line. Keys are ours and plain. Strings may hold any byte: what is
 * not UTF-8 becomes a lone surrogate U+DC00 + byte, which Python's "surrogateescape" turns back.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_JSON_H
#define SARISSA_CLIENT_CLI_SUPPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *file;
	bool comma; /* something stands before at this level */
};

void json_begin(struct json *j, FILE *file); /* { */
void json_end(struct json *j);		     /* } and the end of the line */

void json_string(struct json *j, const char *key, const char *value);
void json_unsigned(struct json *j, const char *key, uint64_t value);
void json_signed(struct json *j, const char *key, int64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

void json_object(struct json *j, const char *key); /* "key": {   ; key NULL inside an array */
void json_array(struct json *j, const char *key);  /* "key": [ */
void json_close(struct json *j, char bracket);	   /* } or ] */

#endif
