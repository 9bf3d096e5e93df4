/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dataplane counted, from the counters file beside the node's socket: also when the
 * dataplane, or the whole node, does not run any more.
 */
#ifndef SARISSA_CLIENT_CLI_DOCTOR_COUNTERS_FILE_H
#define SARISSA_CLIENT_CLI_DOCTOR_COUNTERS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "internal/control_counters.h"
#include "internal/counters.h"
#include "internal/ids.h"

struct counters_file_view {
	char path[4096];
	struct counters_file header;
	struct counters worker[WORKERS_MAX];
};

/* A file beside the socket; its name goes to path. Returns a descriptor or -errno. */
int counters_file_open(const char *socket, const char *name, char path[4096]);

enum { PORT_NOTE_BYTES = 280 };
/* The dataplane's note on its port: the specification as for --port, and why it was chosen.
 * Made harmless for a terminal by the caller. False: there is no such file, or it is cut short. */
bool counters_file_port(const char *socket, unsigned rail, char spec[PORT_NOTE_BYTES],
			char why[PORT_NOTE_BYTES]);

/* Copies the header of such a file, as its writer can change it at any time. 0, or -EPROTO: it is
 * of another kind or version. The caller must check stride. */
int counters_file_head(int fd, uint64_t magic, uint32_t counters, struct counters_file *out);

/* Reads the file that belongs to the node with this socket. 0; -ENOENT and other -errno; -EPROTO
 * when it is of another version. path is set in any case. */
int counters_file_read(const char *socket, struct counters_file_view *out);

/* Those of control. */
struct control_file_view {
	char path[4096];
	struct counters_file header;
	struct control_block block;
};

/* Like counters_file_read(), for RUNDIR/control.counters. */
int counters_file_control_read(const char *socket, struct control_file_view *out);

/* Of each value of control, in the order of its block. */
const struct counter_info *counters_file_control_info(void);

/* Counter number i, summed over the workers (the largest for io_max_turn_cycles). */
uint64_t counters_file_total(const struct counters_file_view *view, unsigned i);

/* Makes what the port said of itself at its start ("udp 10.0.0.1 (gso, gro)") true for now. */
void counters_file_link(const struct counters_file_view *view, char *link, size_t room);

/* Counter number i of one block. */
static inline uint64_t counters_file_value(const struct counters *c, unsigned i)
{
	uint64_t value;
	memcpy(&value, (const uint8_t *)c + i * sizeof(value), sizeof(value));
	return value;
}

#endif
