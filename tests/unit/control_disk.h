/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of --spill of a node in the world: files in memory, that can be made to fail. */
#ifndef SARISSA_TESTS_UNIT_CONTROL_DISK_H
#define SARISSA_TESTS_UNIT_CONTROL_DISK_H

#include "core/control.h"

enum { DISK_FILES = 64, DISK_JOBS = 8 };

struct disk {
	uint8_t *store;
	bool held;	 /* nothing ends */
	int write_error; /* of every write from now on; 0: none */
	int read_error;
	int find_error; /* of every look for a file at a start */
	struct disk_file {
		bool used;
		struct control_spill is;
		uint8_t *bytes;
	} file[DISK_FILES];
	struct disk_job {
		bool used, read;
		struct control_spill of;
		uint64_t offset;
	} job[DISK_JOBS];
};

/* For struct control_ops; arg: the disk. */
int disk_write(struct disk *d, const struct control_spill *file, uint64_t offset);
int disk_read(struct disk *d, const struct control_spill *file, uint64_t offset);
void disk_remove(struct disk *d, const struct control_spill *file);
int disk_find(const struct disk *d, const struct control_spill *file);
/* Ends what is under way. Returns whether something was. */
bool disk_step(struct disk *d, struct control *core, uint64_t now_ns);
/* Control has gone: what is under way is given up. */
void disk_killed(struct disk *d);
uint32_t disk_files(const struct disk *d);
void disk_end(struct disk *d);

#endif
