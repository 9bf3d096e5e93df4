/* SPDX-License-Identifier: BSD-3-Clause */
/* How many descriptors this process may have. Both daemons, at their start. */
#ifndef SARISSA_INCLUDE_INTERNAL_PROGRAM_OPEN_FILES_H
#define SARISSA_INCLUDE_INTERNAL_PROGRAM_OPEN_FILES_H

#include <stdint.h>
#include <sys/resource.h>

/* The soft limit is 1,024 by custom, for select(2), which nobody uses here: as many as the hard one
 * allows. Returns how many that are. */
static inline uint64_t open_files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t before = limit.rlim_cur;

		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return before;
	}
	return limit.rlim_cur;
}

#endif
