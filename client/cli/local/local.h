/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cluster of real nodes on this machine's loopback addresses, for an ordinary user: what the
 * verbs of `sarissa local` share. local_state.c keeps the files of a cluster, local_daemon.c starts
 * and ends the two processes of a node, local.c has the verbs. One thread.
 */
#ifndef SARISSA_CLIENT_CLI_LOCAL_LOCAL_H
#define SARISSA_CLIENT_CLI_LOCAL_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	LOCAL_NODES_MAX = 64, /* 127.0.0.1 to 127.0.0.64 */
	LOCAL_WORKERS_MAX = 16,
	LOCAL_RAILS_MAX = 8,   /* rail R of node I has 127.0.R.(I + 1) */
	LOCAL_NAME_MAX = 24,   /* the path of a node's socket has to fit into sockaddr_un */
	LOCAL_PATH_BYTES = 80, /* of a node's directory */
	LOCAL_FILE_BYTES = LOCAL_PATH_BYTES + 24,
};

enum local_kind { LOCAL_DATAPLANE, LOCAL_CONTROL, LOCAL_KINDS };

struct local_cluster {
	char name[LOCAL_NAME_MAX + 1];
	char dir[LOCAL_PATH_BYTES - 12]; /* node directories lie in it */
	uint32_t nodes;
	uint32_t udp_port; /* of worker 0, the same on every node's own address */
	uint32_t workers;
	uint32_t rails;
	uint64_t store_mib; /* per node */
	uint32_t objects;   /* per node */
};

/* Names of the kinds in messages and file names. */
const char *local_kind_name(enum local_kind kind);

/* --- local_state.c: each returns CLI_DONE, or prints one line and returns the exit status --- */

/* Finds the directory of the cluster of that name; makes the ones above it. It belongs to the user
 * alone: under $XDG_RUNTIME_DIR, or under /tmp where that is not set. */
int local_locate(struct local_cluster *cluster, const char *name);

/* Keeps other processes from changing a cluster of this user until this one ends. Waits for one
 * that does, for some seconds. Taken by every verb but exec and status. */
int local_lock(const struct local_cluster *cluster);

/* Reads what local_create has written. CLI_NO_NODE: there is no such cluster. */
int local_load(struct local_cluster *cluster);

/* Makes the directory and writes nodes, udp_port, workers, store_mib, rails and objects into it. A
 * cluster of that name whose processes have all ended is removed first; one that runs is an error.
 */
int local_create(struct local_cluster *cluster);

/* Removes every file of the cluster. */
void local_remove(const struct local_cluster *cluster);

/* Path of a file in the node's directory; name "": of the directory. */
void local_path(const struct local_cluster *cluster, uint32_t node, const char *name,
		char out[LOCAL_FILE_BYTES]);

/* A base of UDP ports that is free on every address of the cluster, or 0. */
uint32_t local_free_port(const struct local_cluster *cluster);

/* --- local_daemon.c --- */

/* A descriptor of the running process (pidfd) of a node, or -1: it does not run. pid may be NULL.
 * A process that was given the same pid later is not taken for it. */
int local_running(const struct local_cluster *cluster, uint32_t node, enum local_kind kind,
		  pid_t *pid);

/* Starts one process and waits until it is ready to serve. CLI_DONE, or prints why not. */
int local_start(const struct local_cluster *cluster, uint32_t node, enum local_kind kind);

/* Sends signal to the processes of one node, or of all (node LOCAL_ALL), control first, and waits
 * until they have ended; those that take longer than a few seconds are killed. */
enum { LOCAL_ALL = UINT32_MAX };
void local_end(const struct local_cluster *cluster, uint32_t node, int signal);

/* Whether the user has pressed Ctrl-C or asked us to end, since local_catch_signals. */
void local_catch_signals(void);
bool local_interrupted(void);

/* The folder of this command, where its siblings are found; "" when it is not known. */
const char *local_own_folder(void);

#endif
