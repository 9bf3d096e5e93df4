/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "cli/cli.h"
#include "text.h"

static const uint64_t progress_after_ns = 1000000000, progress_every_ns = 100000000;

void progress_begin(struct progress *p, const char *verb, const char *name, uint64_t base_bytes)
{
	*p = (struct progress){.on = isatty(STDERR_FILENO),
			       .verb = verb,
			       .name = name,
			       .base_bytes = base_bytes,
			       .started_ns = cli_now_ns()};
	p->since_ns = p->started_ns;
}

static int progress_columns(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

static void progress_bar(int columns, double share)
{
	int width = columns < 60 ? columns - 2 : 58;
	int full = (int)(share * width);
	if (width < 4)
		return;
	fputs("  [", stderr);
	for (int i = 0; i < width; i++)
		fputc(i < full ? '=' : i == full ? '>' : ' ', stderr);
	fputc(']', stderr);
}

static void progress_draw(const struct progress *p, uint64_t now_ns, uint64_t done, uint64_t total)
{
	char done_text[TEXT_BYTES], total_text[TEXT_BYTES], rate_text[TEXT_BYTES];
	char eta_text[TEXT_BYTES] = "", line[256];
	double seconds = (double)(now_ns - p->since_ns) / 1e9;
	uint64_t moved = done > p->base_bytes ? done - p->base_bytes : 0;
	double rate = seconds > 0 ? (double)moved / seconds : 0;
	text_size(done_text, done);
	text_size(rate_text, (uint64_t)rate);
	fputs("\r\033[K", stderr);
	int used = fprintf(stderr, "%s ", p->verb) + text_safe(stderr, p->name);
	if (total == 0) {
		fprintf(stderr, "  %s  %s/s", done_text, rate_text);
		return;
	}
	if (rate > 0)
		text_clock(eta_text, (uint64_t)((double)(total - done) / rate + 0.999));
	used += snprintf(line, sizeof(line), "  %s / %s %3.0f%%  %s/s  ETA %s", done_text,
			 text_size(total_text, total), 100.0 * (double)done / (double)total,
			 rate_text, *eta_text ? eta_text : "-");
	fputs(line, stderr);
	progress_bar(progress_columns() - used - 4, (double)done / (double)total);
}

void progress_show(struct progress *p, uint64_t done_bytes, uint64_t total_bytes)
{
	if (!p->on)
		return;
	uint64_t now_ns = cli_now_ns();
	if (now_ns - p->started_ns < progress_after_ns || now_ns - p->drawn_ns < progress_every_ns)
		return;
	p->drawn = true;
	p->drawn_ns = now_ns;
	progress_draw(p, now_ns, done_bytes, total_bytes);
	fflush(stderr);
}

void progress_restart(struct progress *p, uint64_t base_bytes)
{
	p->base_bytes = base_bytes;
	p->since_ns = cli_now_ns();
}

void progress_end(struct progress *p, uint64_t bytes)
{
	if (!p->drawn)
		return;
	fputs("\r\033[K", stderr);
	p->drawn = false;
	if (bytes == 0)
		return;
	char size[TEXT_BYTES], rate[TEXT_BYTES];
	double seconds = (double)(cli_now_ns() - p->started_ns) / 1e9;
	fprintf(stderr, "%s ", p->verb);
	text_safe(stderr, p->name);
	fprintf(stderr, "  %s in %.2f s (%s/s)\n", text_size(size, bytes), seconds,
		text_size(rate, (uint64_t)((double)bytes / seconds)));
}
