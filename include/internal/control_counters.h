/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What control counts, and how full it is, from one table: name, unit, help. Control is the only
 * writer of the file RUNDIR/control.counters; anybody may read it, also after the process has died:
 * a struct counters_file (counters.h) with its own magic, one worker, and behind it these values.
 *
 * CONTROL_COUNTERS only rise. CONTROL_GAUGES are of now, as of about a second ago; those that end
 * in _max are the bound of the one before.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_CONTROL_COUNTERS_H
#define SARISSA_INCLUDE_INTERNAL_CONTROL_COUNTERS_H

#include <stdint.h>

/* Which clients create objects in private staging buffers: the gauge creators. */
enum control_creators {
	CONTROL_CREATORS_SHARED,  /* none */
	CONTROL_CREATORS_AUTO,	  /* those of other users than ours and root, who could write there
				   * anyway */
	CONTROL_CREATORS_PRIVATE, /* all */
};

#define CONTROL_COUNTERS(X)                                                                     \
	X(messages_in, "messages", "messages of other nodes")                                   \
	X(messages_out, "messages", "messages to other nodes, and to itself")                   \
	X(messages_lost, "messages", "messages that no slot was free for; repeated")            \
	X(messages_unknown_conn, "messages", "from a connection that has ended")                \
	X(messages_before_hello, "messages", "from a node that has not said hello")             \
	X(messages_unexpected, "messages", "answers that nobody waits for any more")            \
	X(hello_refused, "connections", "nodes of another version, list or number")             \
	X(requests, "requests", "requests of clients")                                          \
	X(requests_bad, "requests", "requests of clients that do not hold")                     \
	X(events_unknown, "records", "events that fit no stage or edge")                        \
	X(records_refused, "records", "orders that the dataplane refused")                      \
	X(leases_ended, "leases", "leases whose time was over without their session")           \
	X(leases_lost, "leases", "of other nodes, that were lost with these; by object")        \
	X(group_rounds_switch, "rounds", "of groups of this node, that a switch has made")      \
	X(group_rounds_hosts, "rounds", "the same, that the nodes have made")                   \
	X(group_rounds_fallen, "rounds", "of these, that a switch had begun")                   \
	X(evictions, "objects", "copies that left for others")                                  \
	X(spilled, "objects", "objects that went to files, for want of room")                   \
	X(spilled_bytes, "bytes", "of these")                                                   \
	X(restored, "objects", "objects that came back from files")                             \
	X(restored_bytes, "bytes", "of these")                                                  \
	X(spill_errors, "files", "that could not be written, or not be read")                   \
	X(quota_refused, "requests", "of users that have as many bytes as they may")            \
	X(appointed, "objects", "copies that became the last one to keep")                      \
	X(store_full, "requests", "requests that found no room in the store")                   \
	X(failovers, "transfers", "changes to another holder")                                  \
	X(restarts, "objects", "fetches that restarted")                                        \
	X(hedges, "requests", "second questions because the first was not answered in time")    \
	X(silences, "transfers", "holders that were found silent")                              \
	X(backups, "objects", "small objects of which another node holds a copy for us")        \
	X(hedges_vain, "transfers", "silent holders that spoke before their stand-in did")      \
	X(reparents, "transfers", "moves from a holder that fed too many, back into the tree")  \
	X(members_stale, "messages", "hellos of an incarnation that has ended")                 \
	X(members_strange, "messages", "reports about nodes that cannot be")                    \
	X(members_refuted, "messages", "reports of our own end, which we refuted")              \
	X(members_missed, "nodes", "nodes that were silent: others were asked for them")        \
	X(members_died, "nodes", "nodes that were taken for dead")                              \
	X(settles_cut, "changes", "changes of the members that not all told of within 30 s")    \
	X(generations_refused, "messages", "of a clock that is more than an hour ahead")        \
	X(copies_beyond, "messages", "of copies that may have been deleted: refused")           \
	X(values_refused, "messages", "small objects that get no second copy: no room")         \
	X(redirects, "requests", "requests for ids that another node keeps")                    \
	X(commands_waited, "turns", "turns in which the ring to a worker was full")             \
	X(creations, "objects", "objects that clients wrote in private staging buffers")        \
	X(creations_bytes, "bytes", "copied from there into the store")                         \
	X(creations_refused, "requests", "of them that no memory was free for")                 \
	X(creations_greedy, "requests", "of those, of users that had their share")              \
	X(clients_refused, "clients", "clients that no session or descriptor was free for")     \
	X(clients_greedy, "clients", "of those, of users that had their share")                 \
	X(clients_slow, "clients", "clients that were disconnected for not reading")            \
	X(clients_strange, "clients", "clients that were disconnected for sending descriptors") \
	X(closes_slow, "descriptors", "of clients, that took more than a second to close")      \
	X(closes_lost, "descriptors", "of clients, that stay open: no memory to close them")    \
	X(ticks_late, "events", "times that it came to its timers more than 100 ms late")       \
	X(turns_long, "turns", "turns of its loop that took more than 100 ms")

#define CONTROL_GAUGES(X)                                                                \
	X(attached, "", "1: the dataplane is there")                                     \
	X(store_bytes, "bytes", "the store, with the space of bitmaps at its end")       \
	X(store_used, "bytes", "of it in use, by bitmaps as well")                       \
	X(store_evictable, "bytes", "of that in copies that may leave")                  \
	X(spill_objects, "objects", "objects in files")                                  \
	X(spill_used, "bytes", "of these")                                               \
	X(spill_max, "bytes", "bound")                                                   \
	X(objects, "objects", "objects on this node")                                    \
	X(sessions, "clients", "clients")                                                \
	X(sessions_max, "clients", "bound")                                              \
	X(waits, "requests", "requests of clients that wait")                            \
	X(waits_max, "requests", "bound")                                                \
	X(creators, "", "private staging buffers: 0 no client; 1 other users; 2 all")    \
	X(creating, "objects", "private staging buffers of objects being written")       \
	X(creating_max, "objects", "bound")                                              \
	X(closes_held, "threads", "threads that are closing one for more than a second") \
	X(closes_held_max, "threads", "bound")                                           \
	X(calls, "requests", "requests to other nodes that are not answered")            \
	X(calls_max, "requests", "bound")                                                \
	X(fetches, "objects", "objects that arrive")                                     \
	X(fetches_max, "objects", "bound")                                               \
	X(serves, "transfers", "copies that we feed")                                    \
	X(serves_max, "transfers", "bound")                                              \
	X(entries, "objects", "objects in our part of the directory")                    \
	X(entries_max, "objects", "bound")                                               \
	X(copies, "copies", "their copies")                                              \
	X(copies_max, "copies", "bound")                                                 \
	X(values, "bytes", "small objects with a second copy in our part")               \
	X(values_max, "bytes", "bound")                                                  \
	X(leases, "leases", "leases that clients of this node have opened")              \
	X(leases_max, "leases", "bound")                                                 \
	X(holds, "objects", "objects that these hold")                                   \
	X(holds_max, "objects", "bound")                                                 \
	X(references, "leases", "leases that hold objects in our part of the directory") \
	X(references_max, "leases", "bound")                                             \
	X(links, "links", "links to other nodes' workers")                               \
	X(links_max, "links", "bound")                                                   \
	X(members_alive, "nodes", "nodes that live, this one included")                  \
	X(members_suspect, "nodes", "nodes that somebody cannot reach")                  \
	X(members_dead, "nodes", "nodes that have died")                                 \
	X(members_left, "nodes", "nodes that said goodbye")                              \
	X(unacked, "objects", "objects here that the directory has not confirmed")       \
	X(members_changed_ms, "ms", "since the members changed last")                    \
	X(turn_us, "us", "longest turn of the loop since it was written last")

struct control_counters {
#define X(name, unit, help) uint64_t name;
	CONTROL_COUNTERS(X)
#undef X
};

struct control_gauges {
#define X(name, unit, help) uint64_t name;
	CONTROL_GAUGES(X)
#undef X
};

struct control_block {
	struct control_counters counters;
	struct control_gauges gauges;
};

enum {
	CONTROL_COUNTERS_COUNT = sizeof(struct control_counters) / sizeof(uint64_t),
	CONTROL_VALUES_COUNT = sizeof(struct control_block) / sizeof(uint64_t),
};

#define CONTROL_FILE_MAGIC 0x314c544353524153ull /* "SARSCTL1" */

#endif
