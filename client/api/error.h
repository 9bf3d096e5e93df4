/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words that go with an error code: one text per thread, kept until that thread's next failure.
 * Any thread, no lock, no allocation. The form is "what is wrong: what to do".
 */
#ifndef SARISSA_CLIENT_API_ERROR_H
#define SARISSA_CLIENT_API_ERROR_H

#include <stdint.h>

/* Keeps the text for sar_error_detail() and returns error, so that it can be returned in turn. */
int error_set(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like error_set(), with a text that came from the node (not terminated beyond bytes); when it is
 * empty the general text for error takes its place. */
int error_set_text(int error, const char *text, unsigned bytes);

/* Puts the name of the object, or without a name "id:HEX", before the text of the last failure, in
 * which it may be already. The nodes of the failure stay. Returns error. */
int error_name(int error, const uint8_t id[], const char *name);

/* The words of the calling thread as they are, for error_restore(): what fails in between is not
 * its own failure. */
struct error_kept {
	char words[512];
	unsigned nodes;
};
void error_keep(struct error_kept *out);
void error_restore(const struct error_kept *kept);

/* The nodes that the failure before is about, for sar_error_nodes(). The next failure forgets them.
 */
void error_set_node(unsigned node);

#endif
