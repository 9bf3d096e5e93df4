/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a local cluster: DIR/NAME/cluster says how it was started, DIR/NAME/I/ is the run
 * directory of node I. DIR is the user's alone (mode 0700). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/cli.h"
#include "local.h"

#define STATE_FORMAT \
	"sarissa-local 1 nodes %u udp-port %u workers %u store-mib %lu rails %u objects %u\n"

/* Others that are starting or ending a cluster are waited for: ten seconds. */
enum { LOCK_TRIES = 200, LOCK_PAUSE_NS = 50 * 1000 * 1000 };
enum { PORT_FIRST = 7400, PORT_STEP = LOCAL_WORKERS_MAX, PORT_LAST = 32000 };

/* Files that others could write to, or have made, are not trusted. */
static int local_state_own_directory(const char *path)
{
	struct stat s;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cli_fail(-errno,
				"cannot make %s: %s: set XDG_RUNTIME_DIR to a directory of yours",
				path, strerror(errno));
	if (lstat(path, &s) < 0)
		return cli_fail(-errno, "cannot look at %s: %s", path, strerror(errno));
	if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077))
		return cli_fail(-EPERM,
				"%s is not a directory of yours alone: remove it, or set "
				"XDG_RUNTIME_DIR to one that is",
				path);
	return CLI_DONE;
}

static bool local_state_name_good(const char *name)
{
	size_t length = strlen(name);
	return length >= 1 && length <= LOCAL_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
		       length;
}

int local_locate(struct local_cluster *cluster, const char *name)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char above[LOCAL_PATH_BYTES];
	int length;
	if (!local_state_name_good(name)) {
		cli_fail(-EINVAL, "--name takes 1 to %d letters, digits, '-' and '_', not '%s'",
			 LOCAL_NAME_MAX, name);
		return CLI_USAGE;
	}
	if (runtime && *runtime == '/')
		length = snprintf(above, sizeof(above), "%s/sarissa", runtime);
	else
		length = snprintf(above, sizeof(above), "/tmp/sarissa-%u", (unsigned)geteuid());
	strcpy(cluster->name, name);
	if (length + 1 + strlen(name) >= sizeof(cluster->dir))
		return cli_fail(-ENAMETOOLONG,
				"%s/%s is too long for a socket's path: set "
				"XDG_RUNTIME_DIR to a shorter one",
				above, name);
	snprintf(cluster->dir, sizeof(cluster->dir), "%.*s/%s",
		 (int)sizeof(cluster->dir) - LOCAL_NAME_MAX - 2, above, name);
	return local_state_own_directory(above);
}

int local_lock(const struct local_cluster *cluster)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	char above[LOCAL_PATH_BYTES];
	snprintf(above, sizeof(above), "%s", cluster->dir);
	*strrchr(above, '/') = '\0';
	int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* until this process ends */
	for (unsigned tries = 0; fd >= 0 && tries < LOCK_TRIES; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return CLI_DONE;
		if (errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
		errno = EWOULDBLOCK;
	}
	return cli_fail(-errno,
			errno == EWOULDBLOCK
				? "another sarissa local changes a cluster below %s: try again"
				: "cannot lock %s",
			above);
}

static void local_state_file(const struct local_cluster *cluster, char out[LOCAL_FILE_BYTES])
{
	snprintf(out, LOCAL_FILE_BYTES, "%s/cluster", cluster->dir);
}

int local_load(struct local_cluster *cluster)
{
	char path[LOCAL_FILE_BYTES];
	unsigned long store = 0;
	local_state_file(cluster, path);
	FILE *file = fopen(path, "re");
	if (!file && errno == ENOENT)
		return cli_fail(-ECONNREFUSED, "no local cluster '%s' is up: sarissa local up N",
				cluster->name);
	if (!file)
		return cli_fail(-errno, "cannot read %s: %s", path, strerror(errno));
	int fields = fscanf(file, STATE_FORMAT, &cluster->nodes, &cluster->udp_port,
			    &cluster->workers, &store, &cluster->rails, &cluster->objects);
	fclose(file);
	cluster->store_mib = store;
	if (fields != 6 || cluster->rails < 1 || cluster->rails > LOCAL_RAILS_MAX ||
	    cluster->nodes < 1 || cluster->nodes > LOCAL_NODES_MAX || cluster->workers < 1 ||
	    cluster->workers > LOCAL_WORKERS_MAX || cluster->udp_port < 1 ||
	    cluster->udp_port > UINT16_MAX)
		return cli_fail(-EINVAL,
				"%s is damaged: end the processes below %s by hand and remove it",
				path, cluster->dir);
	return CLI_DONE;
}

static bool local_state_any_runs(const struct local_cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->nodes; i++)
		for (int kind = 0; kind < LOCAL_KINDS; kind++) {
			int fd = local_running(cluster, i, kind, NULL);
			if (fd >= 0) {
				close(fd);
				return true;
			}
		}
	return false;
}

static int local_state_write(const struct local_cluster *cluster)
{
	char path[LOCAL_FILE_BYTES];
	local_state_file(cluster, path);
	FILE *file = fopen(path, "wxe");
	bool good = file && fprintf(file, STATE_FORMAT, cluster->nodes, cluster->udp_port,
				    cluster->workers, (unsigned long)cluster->store_mib,
				    cluster->rails, cluster->objects) > 0;
	if (file && fclose(file) != 0)
		good = false;
	return good ? CLI_DONE : cli_fail(-errno, "cannot write %s: %s", path, strerror(errno));
}

/* Nodes first: what cannot be read is refused before anything is removed. */
static int local_state_clear_old(const struct local_cluster *cluster)
{
	struct local_cluster old = *cluster;
	char path[LOCAL_FILE_BYTES];
	local_state_file(cluster, path);
	if (access(path, F_OK) == 0) {
		int status = local_load(&old);
		if (status != CLI_DONE)
			return status;
		if (local_state_any_runs(&old))
			return cli_fail(-EEXIST,
					"local cluster '%s' of %u nodes is up already: sarissa "
					"local down, or take another --name",
					old.name, old.nodes);
	}
	local_remove(cluster);
	return CLI_DONE;
}

int local_create(struct local_cluster *cluster)
{
	char path[LOCAL_FILE_BYTES];
	if (mkdir(cluster->dir, 0700) < 0) {
		int status = errno == EEXIST ? local_state_clear_old(cluster) : CLI_DONE;
		if (status != CLI_DONE)
			return status;
		if (mkdir(cluster->dir, 0700) < 0)
			return cli_fail(-errno, "cannot make %s: %s", cluster->dir,
					strerror(errno));
	}
	int status = local_state_write(cluster);
	for (uint32_t i = 0; i < cluster->nodes && status == CLI_DONE; i++) {
		local_path(cluster, i, "", path);
		if (mkdir(path, 0700) < 0)
			status = cli_fail(-errno, "cannot make %s: %s", path, strerror(errno));
	}
	if (status != CLI_DONE)
		local_remove(cluster);
	return status;
}

static int local_state_remove_one(const char *path, const struct stat *s, int flag,
				  struct FTW *walk)
{
	(void)s, (void)flag, (void)walk;
	remove(path);
	return 0;
}

void local_remove(const struct local_cluster *cluster)
{
	nftw(cluster->dir, local_state_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void local_path(const struct local_cluster *cluster, uint32_t node, const char *name,
		char out[LOCAL_FILE_BYTES])
{
	snprintf(out, LOCAL_FILE_BYTES, "%s/%u%s%s", cluster->dir, node, *name ? "/" : "", name);
}

static bool local_state_port_free(const struct local_cluster *cluster, uint32_t base)
{
	for (uint32_t i = 0; i < cluster->nodes * cluster->rails; i++)
		for (uint32_t w = 0; w < cluster->workers; w++) {
			uint32_t rail = i / cluster->nodes, node = i % cluster->nodes;
			struct sockaddr_in at = {
				.sin_family = AF_INET,
				.sin_port = htons((uint16_t)(base + w)),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (rail << 8) + node),
			};
			int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
			int r = bind(fd, (struct sockaddr *)&at, sizeof(at));
			if (fd >= 0)
				close(fd);
			if (r < 0)
				return false;
		}
	return true;
}

uint32_t local_free_port(const struct local_cluster *cluster)
{
	enum { PLACES = (PORT_LAST - PORT_FIRST) / PORT_STEP + 1 };
	uint32_t begin = (uint32_t)getpid(); /* two that start at a time look at other places */
	for (uint32_t i = 0; i < PLACES; i++) {
		uint32_t base = PORT_FIRST + (begin + i) % PLACES * PORT_STEP;
		if (local_state_port_free(cluster, base))
			return base;
	}
	return 0;
}
