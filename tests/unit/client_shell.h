/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the command share: lines of shell in the folder of a fake node. */
#ifndef SARISSA_TESTS_CLIENT_SHELL_H
#define SARISSA_TESTS_CLIENT_SHELL_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client_test.h"

static char output[8192]; /* what the last shell() printed, both streams */

/* Runs a line of shell in the fake's directory; returns its exit status. */
static inline int shell(const char *format, ...)
{
	char line[2048];
	va_list args;
	int n = snprintf(line, sizeof(line), "{ ");
	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	snprintf(line + n, sizeof(line) - (size_t)n, "\n} > output 2>&1");
	int status = system(line);
	int fd = open("output", O_RDONLY);
	ssize_t got = read(fd, output, sizeof(output) - 1);
	close(fd);
	output[got > 0 ? got : 0] = '\0';
	unlink("output");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The tests of Python that the environment names; what they print goes to ours, in full. */
static inline int shell_python_test(void)
{
	fflush(stdout);
	return system("$PYTHON \"$PYTHON_TEST\"");
}

static inline int shell_setup(void **state)
{
	struct client *c = calloc(1, sizeof(*c));
	fake_start(&c->fake);
	*state = c;
	setenv("SARISSA_SOCKET", c->fake.path, 1);
	return chdir(c->fake.dir);
}

static inline int shell_teardown(void **state)
{
	struct client *c = *state;
	shell("rm -rf -- * .[!.]*");
	if (chdir("/") < 0)
		return -1;
	fake_stop(&c->fake);
	free(c);
	return 0;
}

/* The only file in the directory, beside the socket, that nobody asked for. */
static inline bool left_over(void)
{
	return shell("ls -A | grep -q '^[.]sarissa'") == 0;
}

#define test_cli(name) cmocka_unit_test_setup_teardown(name, shell_setup, shell_teardown)

/* The only argument of the test is the command's path: $CLI from then on. */
static inline bool shell_takes_command(int argc, char **argv)
{
	char *command = argc == 2 ? realpath(argv[1], NULL) : NULL;
	if (!command)
		fprintf(stderr, "usage: %s PATH-OF-sarissa\n", argv[0]);
	else
		setenv("CLI", command, 1);
	free(command);
	return command != NULL;
}

#endif
