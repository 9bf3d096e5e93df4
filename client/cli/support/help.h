/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa help TOPIC`: finds a manual page, and lets man(1) or mandoc(1) show it. Called by
 * main.c. It does not know the commands. One thread.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_HELP_H
#define SARISSA_CLIENT_CLI_SUPPORT_HELP_H

/* Shows the page of that name, such as "sarissa", "sarissa.3", "sarissa(3)", "sar_put". Returns the
 * exit status; prints one line when there is no such page. */
int help_show(const char *topic);

#endif
