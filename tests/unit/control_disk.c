/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_disk.h"

#include <errno.h>
#include <stdlib.h>
#include "../check.h"

static struct disk_file *disk_of(const struct disk *d, const struct control_spill *file)
{
	for (uint32_t i = 0; i < DISK_FILES; i++) {
		const struct disk_file *f = &d->file[i];

		if (f->used && f->is.generation == file->generation && f->is.size == file->size &&
		    f->is.incarnation == file->incarnation && object_id_equal(&f->is.id, &file->id))
			return (struct disk_file *)f;
	}
	return NULL;
}

static int disk_begin(struct disk *d, const struct control_spill *file, uint64_t offset, bool read)
{
	for (uint32_t i = 0; i < DISK_JOBS; i++) {
		if (d->job[i].used)
			continue;
		d->job[i] = (struct disk_job){true, read, *file, offset};
		return 0;
	}
	return -EAGAIN;
}

int disk_write(struct disk *d, const struct control_spill *file, uint64_t offset)
{
	CHECK(disk_of(d, file) == NULL);
	return disk_begin(d, file, offset, false);
}

int disk_read(struct disk *d, const struct control_spill *file, uint64_t offset)
{
	return disk_begin(d, file, offset, true);
}

void disk_remove(struct disk *d, const struct control_spill *file)
{
	struct disk_file *f = disk_of(d, file);

	if (f == NULL)
		return;
	free(f->bytes);
	f->used = false;
}

int disk_find(const struct disk *d, const struct control_spill *file)
{
	if (d->find_error)
		return d->find_error;
	return disk_of(d, file) ? 0 : -ENOENT;
}

static int disk_store(struct disk *d, const struct disk_job *job)
{
	struct disk_file *f = d->file;

	if (d->write_error)
		return d->write_error;
	while (f < d->file + DISK_FILES && f->used)
		f++;
	CHECK(f < d->file + DISK_FILES);
	f->used = true;
	f->is = job->of;
	f->bytes = malloc(job->of.size);
	CHECK(f->bytes);
	memcpy(f->bytes, d->store + job->offset, job->of.size);
	return 0;
}

static int disk_load(struct disk *d, const struct disk_job *job)
{
	const struct disk_file *f = disk_of(d, &job->of);

	if (d->read_error)
		return d->read_error;
	if (f == NULL)
		return -ENOENT;
	memcpy(d->store + job->offset, f->bytes, job->of.size);
	return 0;
}

bool disk_step(struct disk *d, struct control *core, uint64_t now_ns)
{
	bool some = false;

	for (uint32_t i = 0; i < DISK_JOBS && !d->held; i++) {
		struct disk_job job = d->job[i];

		if (!job.used)
			continue;
		some = true;
		d->job[i].used = false;
		if (job.read)
			control_restored(core, job.of.slot, disk_load(d, &job), now_ns);
		else
			control_spilled(core, job.of.slot, disk_store(d, &job), now_ns);
	}
	return some;
}

void disk_killed(struct disk *d)
{
	memset(d->job, 0, sizeof(d->job));
}

uint32_t disk_files(const struct disk *d)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < DISK_FILES; i++)
		count += d->file[i].used;
	return count;
}

void disk_end(struct disk *d)
{
	for (uint32_t i = 0; i < DISK_FILES; i++)
		if (d->file[i].used)
			free(d->file[i].bytes);
}
