/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa top: what this node and the groups do, again and again, until somebody interrupts it. */
#include "top.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Nothing is to be undone: what is printed comes as a whole (top_print). */
static void top_interrupted(int signal_number)
{
	_exit(CLI_DONE);
}

static void top_catch(void)
{
	struct sigaction old, own = {.sa_handler = top_interrupted};
	sigaction(SIGINT, NULL, &old);
	if (old.sa_handler != SIG_IGN) /* as under nohup */
		sigaction(SIGINT, &own, NULL);
}

/* Lines of the terminal; 0: standard output is none. */
static unsigned top_terminal(void)
{
	struct winsize size;
	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
		return size.ws_row;
	return 24;
}

/* Over what stands there. Longer lines than the terminal's are cut, and lines below its end. */
static void top_draw(const char *text, unsigned lines)
{
	fputs("\033[H\033[?7l", stdout); /* home; no wrapping */
	for (; *text && lines > 1; lines--) {
		size_t length = strcspn(text, "\n");
		fwrite(text, 1, length, stdout);
		fputs("\033[K\n", stdout); /* clears the rest of the line */
		text += length + (text[length] == '\n');
	}
	fputs("\033[J\033[?7h", stdout); /* clears what is below; wrapping again */
}

static int top_print(const char *text, const struct cli_args *args, bool first)
{
	unsigned lines = args->json || args->once ? 0 : top_terminal();
	sigset_t interrupt, before;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &before);
	if (lines > 0) {
		if (first)
			fputs("\033[2J", stdout); /* clears all */
		top_draw(text, lines);
	} else {
		if (!first && !args->json)
			putchar('\n');
		fputs(text, stdout);
	}
	int status = cli_flush();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

static int top_show(const struct cli_args *args, const struct top_look *l, bool first)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);
	if (!file)
		return cli_fail(-ENOMEM, "out of memory");
	(args->json ? top_show_json : top_show_text)(file, l);
	int status = fclose(file) == 0 ? top_print(text, args, first)
				       : cli_fail(-ENOMEM, "out of memory");
	free(text);
	return status;
}

static void top_sleep(uint64_t until_ns)
{
	struct timespec t = {.tv_sec = (time_t)(until_ns / 1000000000),
			     .tv_nsec = (long)(until_ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		continue;
}

static int top_follow(const struct cli_args *args, sar *s)
{
	static struct top_sample sample[2];
	static struct top_look look;
	bool first = true;
	int status = top_sample_read(args, s, &sample[0]);
	for (unsigned i = 1; status == CLI_DONE; i ^= 1) {
		top_sleep(sample[!i].at_ns + (uint64_t)args->interval_ns);
		status = top_sample_read(args, s, &sample[i]);
		if (status != CLI_DONE)
			break;
		top_look_since(&sample[!i], &sample[i], &look);
		status = top_show(args, &look, first);
		first = false;
		if (args->once)
			break;
	}
	top_sample_free(&sample[0]);
	top_sample_free(&sample[1]);
	return status;
}

int top_run(const struct cli_args *args)
{
	sar *s;
	top_catch();
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	status = top_follow(args, s);
	sar_close(s);
	return status;
}
