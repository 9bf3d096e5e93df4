/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values as people read them, and names that may hold any byte made harmless for a terminal.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_TEXT_H
#define SARISSA_CLIENT_CLI_SUPPORT_TEXT_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_BYTES = 64 };

/* All of these write a zero-terminated text into out and return it. */
char *text_size(char out[TEXT_BYTES], uint64_t bytes);			 /* "64.0 MiB" */
char *text_used(char out[TEXT_BYTES], uint64_t used, uint64_t all);	 /* "1.0 MiB of 2.0 MiB used
									    (50%)" */
char *text_rate(char out[TEXT_BYTES], uint64_t bytes, uint64_t over_ns); /* "64.0 MiB/s" */
char *text_duration(char out[TEXT_BYTES], uint64_t ns);			 /* "1.25 ms" */
char *text_clock(char out[TEXT_BYTES], uint64_t seconds);		 /* "1:02:03", "0:27" */
char *text_id(char out[TEXT_BYTES], const uint8_t bytes[16]);		 /* 32 hexadecimal digits */
char *text_ip(char out[TEXT_BYTES], const uint8_t ip[16]);		 /* "10.0.0.1", "fd00::1" */
char *text_endpoint(char out[TEXT_BYTES], const uint8_t ip[16], unsigned port);

/* Length in bytes of the well-formed UTF-8 character at text (not beyond length), or 0. */
size_t text_utf8(const char *text, size_t length);

/* Prints text with control characters and broken UTF-8 as \xHH. Returns the columns it took,
 * counting a character as one. */
int text_safe(FILE *file, const char *text);

#endif
