/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa help TOPIC`: finds a manual page and shows it. help.c looks for the page and runs
 * man(1), help_text.c prints a page where there is no man. Neither knows the commands. One thread.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_HELP_H
#define SARISSA_CLIENT_CLI_SUPPORT_HELP_H

#include <stdbool.h>
#include <stdio.h>

/* Shows the page of that name, such as "sarissa", "sarissa.3", "sarissa(3)", "sar_put". Returns the
 * exit status; prints one line when there is no such page. */
int help_show(const char *topic);

/* Writes a page in the macros of mdoc(7) or man(7) as plain text, at most 80 columns wide. Macros
 * that it does not know are left out, their words stay. */
void help_text(FILE *page, FILE *out);

#endif
