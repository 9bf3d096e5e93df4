/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor's checks of control: its counters, and how full it is. Called by doctor.c. */
#include "doctor.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "cli/support/text.h"

enum { DOCTOR_NEARLY = 80 }; /* per cent */

static void doctor_members(struct doctor *d)
{
	const struct control_gauges *g = &d->control.block.gauges;
	if (g->members_suspect > 0)
		doctor_report(d, DOCTOR_WARN, "members",
			      "wait some seconds: it refutes that, or is found dead; doctor there, "
			      "and on a node near it, says more",
			      "%llu of %llu nodes are suspected: somebody cannot reach them",
			      (unsigned long long)g->members_suspect,
			      (unsigned long long)(g->members_alive + g->members_suspect));
	else
		doctor_report(
			d, g->members_dead > 0 ? DOCTOR_WARN : DOCTOR_OK, "members",
			g->members_dead > 0
				? "start them again, or stop waiting for them: what only they "
				  "held is not there; others keep their part of the directory"
				: NULL,
			"%llu alive, %llu dead, %llu left", (unsigned long long)g->members_alive,
			(unsigned long long)g->members_dead, (unsigned long long)g->members_left);
}

static void doctor_directory(struct doctor *d)
{
	const struct control_gauges *g = &d->control.block.gauges;
	if (g->unacked == 0) {
		doctor_report(d, DOCTOR_OK, "directory", NULL, "knows every object of this node");
		return;
	}
	doctor_report(d, g->members_changed_ms < 10000 ? DOCTOR_OK : DOCTOR_WARN, "directory",
		      g->members_changed_ms < 10000
			      ? NULL
			      : "see which nodes are not up: a shard owner does not answer",
		      "has not confirmed %llu of %llu objects; the members changed %llu s ago",
		      (unsigned long long)g->unacked, (unsigned long long)g->objects,
		      (unsigned long long)g->members_changed_ms / 1000);
}

static void doctor_store(struct doctor *d)
{
	const struct control_gauges *g = &d->control.block.gauges;
	char used[TEXT_BYTES], all[TEXT_BYTES], may_go[TEXT_BYTES];
	uint64_t kept = g->store_used - g->store_evictable;
	bool full = kept > g->store_bytes / 100 * 90;
	doctor_report(d, full ? DOCTOR_WARN : DOCTOR_OK, "store",
		      full ? "remove objects (sarissa ls, sarissa rm), release what tasks hold, or "
			     "start the dataplane with a larger store"
			   : NULL,
		      "%s of %s used by %llu object%s, %s of that may be evicted",
		      text_size(used, g->store_used), text_size(all, g->store_bytes),
		      (unsigned long long)g->objects, g->objects == 1 ? "" : "s",
		      text_size(may_go, g->store_evictable));
}

static void doctor_tables(struct doctor *d)
{
	const struct control_gauges *g = &d->control.block.gauges;
	const struct {
		const char *what, *fix;
		uint64_t used, bound;
	} tables[] = {
		{"sessions", "raise --sessions of sarissa-control", g->sessions, g->sessions_max},
		{"waiting requests", "wait for fewer objects at a time", g->waits, g->waits_max},
		{"private staging buffers", "seal or abort some objects", g->creating,
		 g->creating_max},
		{"threads that close for clients and come to no end",
		 "end the client whose file system (FUSE) does not answer", g->closes_held,
		 g->closes_held_max},
		{"requests to other nodes", "fewer gets at a time; see which node does not answer",
		 g->calls, g->calls_max},
		{"objects that arrive", "fewer gets at a time", g->fetches, g->fetches_max},
		{"copies that this node feeds", "put the object on more nodes first", g->serves,
		 g->serves_max},
		{"objects in this part of the directory", "remove objects, or add nodes",
		 g->entries, g->entries_max},
		{"copies in this part of the directory", "remove objects, or add nodes", g->copies,
		 g->copies_max},
		{"bytes of small objects with a second copy",
		 "remove small objects, or add nodes: more of them end with their node", g->values,
		 g->values_max},
		{"links", "fewer nodes or workers", g->links, g->links_max},
	};
	unsigned found = 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		if (tables[i].used * 100 < tables[i].bound * DOCTOR_NEARLY)
			continue;
		found++;
		doctor_report(d, DOCTOR_WARN, "tables", tables[i].fix, "%s: %llu of at most %llu",
			      tables[i].what, (unsigned long long)tables[i].used,
			      (unsigned long long)tables[i].bound);
	}
	if (found == 0)
		doctor_report(d, DOCTOR_OK, "tables", NULL, "none is nearly full");
}

static void doctor_creators(struct doctor *d)
{
	static const char *const who[] = {
		[CONTROL_CREATORS_SHARED] =
			"every client that creates may write to the whole store",
		[CONTROL_CREATORS_AUTO] = "clients of other users write in private staging buffers",
		[CONTROL_CREATORS_PRIVATE] = "all clients write in private staging buffers",
	};
	const struct control_gauges *g = &d->control.block.gauges;
	if (g->creators < sizeof(who) / sizeof(*who))
		doctor_report(d, DOCTOR_OK, "creators", NULL, "%s; %llu objects there now",
			      who[g->creators], (unsigned long long)g->creating);
}

/* Counters of control that should not rise. */
static void doctor_troubles(struct doctor *d)
{
	static const struct {
		size_t at;
		const char *what, *fix;
	} troubles[] = {
#define TROUBLE(name, what, fix) {offsetof(struct control_counters, name), what, fix}
		TROUBLE(store_full, "requests found no room in the store",
			"remove or release objects, or a larger --store"),
		TROUBLE(messages_lost, "messages found no free slot",
			"the dataplane lacks CPU time: see its cores"),
		TROUBLE(commands_waited, "turns in which the ring to a worker was full",
			"the dataplane lacks CPU time: see its cores"),
		TROUBLE(ticks_late, "times it came to its timers more than 100 ms late",
			"control lacks CPU time, or its memory is swapped out"),
		TROUBLE(turns_long, "turns of its loop took more than 100 ms",
			"control lacks CPU time, or its memory is swapped out"),
		TROUBLE(creations_refused, "objects found no memory to be written in",
			"fewer of them at a time, or a higher limit of open files"),
		TROUBLE(clients_refused, "clients were refused",
			"raise --sessions, or the limit of open files"),
		TROUBLE(clients_slow, "clients were disconnected because they did not read",
			"look for a client that is stopped"),
		TROUBLE(closes_slow, "descriptors of clients took more than a second to close",
			"look for a client with a file system of its own (FUSE), or restrict "
			"--socket-mode"),
		TROUBLE(closes_lost, "descriptors of clients stay open for want of memory",
			"free some, and start control again"),
		TROUBLE(hello_refused, "nodes were refused",
			"one version and one list on all nodes; the log names them"),
		TROUBLE(members_strange, "reports about nodes that cannot be",
			"one list on all nodes"),
		TROUBLE(members_stale, "messages of an earlier life of a node",
			"two nodes with one address or number, or a clock that was set back"),
		TROUBLE(members_refuted, "times others took this node for dead",
			"the path to it, or CPU time for its processes"),
#undef TROUBLE
	};
	unsigned found = 0;
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		char since[DOCTOR_SINCE_BYTES];
		uint64_t total = d->now.control[troubles[i].at / sizeof(uint64_t)];
		if (total == 0)
			continue;
		bool rose = doctor_since(d, DOCTOR_CONTROL, troubles[i].at / sizeof(uint64_t),
					 total, since);
		found++;
		doctor_report(d, rose ? DOCTOR_WARN : DOCTOR_OK, "control",
			      rose ? troubles[i].fix : NULL, "%llu %s%s", (unsigned long long)total,
			      troubles[i].what, since);
	}
	if (found == 0)
		doctor_report(d, DOCTOR_OK, "control", NULL, "refused nothing and nobody");
}

void doctor_check_control(struct doctor *d)
{
	if (d->control_error)
		return; /* doctor_check_processes has said so */
	if (doctor_alive((int32_t)d->control.header.pid)) {
		if (d->control.block.gauges.store_bytes > 0)
			doctor_store(d);
		doctor_members(d);
		doctor_directory(d);
		doctor_tables(d);
		doctor_creators(d);
	}
	doctor_troubles(d);
}
