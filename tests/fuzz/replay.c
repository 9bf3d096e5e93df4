/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over files and folders of files: the corpus as a plain test, any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	if (!f || fstat(fileno(f), &st) != 0) {
		fprintf(stderr, "replay: cannot read %s\n", path);
		return 1;
	}
	uint8_t *data = malloc((size_t)st.st_size + 1);
	size_t size = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		const struct dirent *e;
		if (!dir) {
			if (replay_file(argv[i]))
				return 1;
			count++;
			continue;
		}
		while ((e = readdir(dir))) {
			char path[4096];
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (e->d_name[0] == '.')
				continue;
			if (replay_file(path))
				return 1;
			count++;
		}
		closedir(dir);
	}
	printf("replay: %u inputs\n", count);
	return count ? 0 : 1;
}
