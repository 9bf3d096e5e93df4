/* SPDX-License-Identifier: BSD-3-Clause */
#include "tally.h"

#include <stdio.h>

uint64_t tally_counts[TALLY_CHECKS];

static const struct {
	const char *name, *what;
	bool objects, reduces; /* the scenarios in which it must fire */
	bool inside;	       /* with --inside-writes only */
} checks[TALLY_CHECKS] = {
	[TALLY_BYTES] = {"bytes", "the bytes of a generation were read", true, false},
	[TALLY_REMEMBERED] = {"remembered",
			      "a delete in a joined cluster, which two nodes remember", true,
			      false},
	[TALLY_TOMBSTONES] = {"tombstones", "at rest: a delete is remembered, by two nodes", true,
			      false},
	[TALLY_STALE_DELETED] = {"stale-deleted", "read after the delete of an older generation",
				 true, false},
	[TALLY_STALE_REPLACED] = {"stale-replaced", "read after the put of a newer generation",
				  true, false},
	[TALLY_REPLACED] = {"replaced", "put where an older generation had no delete", true, false},
	[TALLY_REFUSED] = {"refused",
			   "put that was refused in trouble while a holder had its store", true,
			   false},
	[TALLY_STATUS_CALM] = {"status-calm", "an error in a healthy cluster", true, false},
	[TALLY_MISSING_CALM] = {"missing-calm", "no such object, in a healthy cluster", true,
				false},
	[TALLY_EXISTS_CALM] = {"exists-calm", "exists already, in a healthy cluster", true, false},
	[TALLY_HELD] = {"held", "at rest: a complete copy is in some store", true, false},
	[TALLY_KEPT] = {"kept", "at rest: an object was put and not deleted", true, false},
	[TALLY_KEPT_ELSEWHERE] = {"kept-elsewhere", "the same, and its creator's store was lost",
				  true, false},
	[TALLY_REDUCES_CALM] = {"reduces-calm", "answers of a reduce's calls, in a healthy cluster",
				false, true},
	[TALLY_CRASH_CONTROL] = {"crash-control", "control died between two of its writes", true,
				 true, true},
	[TALLY_CRASH_ADOPTION] = {"crash-adoption", "the same, while it took a table over", true,
				  true, true},
	[TALLY_CRASH_DATAPLANE] = {"crash-dataplane", "a dataplane died between two of its writes",
				   true, true, true},
};

void tally_print(void)
{
	for (int i = 0; i < TALLY_CHECKS; i++)
		printf("%-18s %10llu  %s\n", checks[i].name, (unsigned long long)tally_counts[i],
		       checks[i].what);
}

uint32_t tally_missing(bool objects, bool reduces, bool inside)
{
	uint32_t missing = 0;
	for (int i = 0; i < TALLY_CHECKS; i++) {
		if (tally_counts[i] || (checks[i].inside && !inside) ||
		    !((checks[i].objects && objects) || (checks[i].reduces && reduces)))
			continue;
		fprintf(stderr, "swarm: the check %s (%s) never fired\n", checks[i].name,
			checks[i].what);
		missing++;
	}
	return missing;
}
