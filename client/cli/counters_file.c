/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool counters_file_valid(const struct counters_file *h)
{
	return h->magic == COUNTERS_FILE_MAGIC && h->workers >= 1 && h->workers <= WORKERS_MAX &&
	       h->counters == COUNTERS_COUNT && h->stride >= sizeof(struct counters) &&
	       h->stride <= 1 << 20;
}

static int counters_file_load(int fd, struct counters_file_view *out)
{
	const struct counters_file *h = &out->header;
	if (pread(fd, &out->header, sizeof(out->header), 0) != (ssize_t)sizeof(out->header) ||
	    !counters_file_valid(h))
		return -EPROTO;
	for (uint32_t w = 0; w < h->workers; w++) {
		off_t at = (off_t)(sizeof(*h) + w * h->stride);
		if (pread(fd, &out->worker[w], sizeof(out->worker[w]), at) !=
		    (ssize_t)sizeof(out->worker[w]))
			return -EPROTO;
	}
	return 0;
}

int counters_file_read(const char *socket, struct counters_file_view *out)
{
	const char *slash = strrchr(socket, '/');
	int directory = slash ? (int)(slash - socket + 1) : 0;
	snprintf(out->path, sizeof(out->path), "%.*scounters", directory, socket);
	int fd = open(out->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = counters_file_load(fd, out);
	close(fd);
	return r;
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
