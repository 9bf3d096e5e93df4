/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int counters_file_head(int fd, uint64_t magic, uint32_t counters, struct counters_file *out)
{
	return pread(fd, out, sizeof(*out), 0) == (ssize_t)sizeof(*out) && out->magic == magic &&
			       out->workers >= 1 && out->workers <= WORKERS_MAX &&
			       out->counters == counters
		       ? 0
		       : -EPROTO;
}

static int counters_file_load(int fd, struct counters_file_view *out)
{
	const struct counters_file *h = &out->header;
	if (counters_file_head(fd, COUNTERS_FILE_MAGIC, COUNTERS_COUNT, &out->header) < 0 ||
	    h->stride < sizeof(struct counters) || h->stride > 1 << 20)
		return -EPROTO;
	for (uint32_t w = 0; w < h->workers; w++) {
		off_t at = (off_t)(sizeof(*h) + w * h->stride);
		if (pread(fd, &out->worker[w], sizeof(out->worker[w]), at) !=
		    (ssize_t)sizeof(out->worker[w]))
			return -EPROTO;
	}
	return 0;
}

int counters_file_open(const char *socket, const char *name, char path[4096])
{
	const char *slash = strrchr(socket, '/');
	int directory = slash ? (int)(slash - socket + 1) : 0;
	snprintf(path, 4096, "%.*s%s", directory, socket, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool counters_file_port(const char *socket, unsigned rail, char spec[PORT_NOTE_BYTES],
			char why[PORT_NOTE_BYTES])
{
	char path[4096];
	int fd = counters_file_open(socket, "port", path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	bool read = file != NULL;
	for (unsigned i = 0; i <= rail && read; i++)
		read = fgets(spec, PORT_NOTE_BYTES, file) && fgets(why, PORT_NOTE_BYTES, file);
	if (file)
		fclose(file);
	if (!read)
		return false;
	spec[strcspn(spec, "\n")] = '\0';
	why[strcspn(why, "\n")] = '\0';
	return true;
}

int counters_file_read(const char *socket, struct counters_file_view *out)
{
	int fd = counters_file_open(socket, "counters", out->path);
	if (fd < 0)
		return fd;
	int r = counters_file_load(fd, out);
	close(fd);
	return r;
}

void counters_file_link(const struct counters_file_view *view, char *link, size_t room)
{
	static const char on[] = "(gso", off[] = " refused";
	char *at = strstr(link, on);
	const size_t i = offsetof(struct counters, io_gso_off) / sizeof(uint64_t);
	if (!at || counters_file_total(view, (unsigned)i) == 0 || strlen(link) + sizeof(off) > room)
		return;
	at += sizeof(on) - 1;
	memmove(at + sizeof(off) - 1, at, strlen(at) + 1);
	memcpy(at, off, sizeof(off) - 1);
}

int counters_file_control_read(const char *socket, struct control_file_view *out)
{
	const struct counters_file *h = &out->header;
	int fd = counters_file_open(socket, "control.counters", out->path);
	if (fd < 0)
		return fd;
	struct iovec parts[] = {{&out->header, sizeof(out->header)},
				{&out->block, sizeof(out->block)}};
	ssize_t n = readv(fd, parts, 2);
	close(fd);
	return n == (ssize_t)(sizeof(out->header) + sizeof(out->block)) &&
			       h->magic == CONTROL_FILE_MAGIC && h->counters == CONTROL_VALUES_COUNT
		       ? 0
		       : -EPROTO;
}

const struct counter_info *counters_file_control_info(void)
{
	static const struct counter_info info[] = {
#define X(name, unit, help) {#name, unit, help},
		CONTROL_COUNTERS(X) CONTROL_GAUGES(X)
#undef X
	};
	return info;
}

uint64_t counters_file_total(const struct counters_file_view *view, unsigned i)
{
	const bool largest = i == offsetof(struct counters, io_max_turn_cycles) / sizeof(uint64_t);
	uint64_t total = 0;
	for (uint32_t w = 0; w < view->header.workers; w++) {
		uint64_t value = counters_file_value(&view->worker[w], i);
		if (!largest)
			total += value;
		else if (value > total)
			total = value;
	}
	return total;
}
