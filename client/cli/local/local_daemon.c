/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two processes of a local node. Each is started in a session of its own, with its output in
 * KIND.log, and says READY=1 to a socket of ours (sd_notify) when it serves. KIND.pid holds its pid
 * and its start time, which no later process of the same pid has.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/cli.h"
#include "local.h"

enum {
	READY_MS = 30000, /* a process says that it serves within */
	END_MS = 5000,	  /* a process has ended after SIGTERM within */
	KILL_MS = 2000,
	ARGUMENTS_MAX = 48,
};

static volatile sig_atomic_t daemon_signal;

static void local_daemon_on_signal(int signal)
{
	daemon_signal = signal;
}

void local_catch_signals(void)
{
	const struct sigaction action = {.sa_handler = local_daemon_on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool local_interrupted(void)
{
	return daemon_signal != 0;
}

const char *local_kind_name(enum local_kind kind)
{
	return kind == LOCAL_DATAPLANE ? "dataplane" : "control";
}

const char *local_own_folder(void)
{
	static char folder[4096];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	folder[length > 0 ? length : 0] = '\0';
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return folder;
}

/* --- pid files --- */

/* The 22nd field of /proc/PID/stat, in ticks since boot; 0: there is no such process. The second
 * one may hold blanks and brackets. */
static unsigned long long local_daemon_birth(pid_t pid)
{
	char path[64], text[1024];
	unsigned long long birth = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	size_t length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	const char *after = strrchr(text, ')');
	if (!after || sscanf(after + 1,
			     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			     "%*d %*d %llu",
			     &birth) != 1)
		return 0;
	return birth;
}

static void local_daemon_pid_path(const struct local_cluster *cluster, uint32_t node,
				  enum local_kind kind, char out[LOCAL_FILE_BYTES])
{
	char name[24];
	snprintf(name, sizeof(name), "%s.pid", local_kind_name(kind));
	local_path(cluster, node, name, out);
}

static int local_daemon_note(const struct local_cluster *cluster, uint32_t node,
			     enum local_kind kind, pid_t pid)
{
	char path[LOCAL_FILE_BYTES];
	local_daemon_pid_path(cluster, node, kind, path);
	FILE *file = fopen(path, "we");
	if (!file)
		return -errno;
	int written = fprintf(file, "%d %llu\n", (int)pid, local_daemon_birth(pid));
	return fclose(file) == 0 && written > 0 ? 0 : -EIO;
}

int local_running(const struct local_cluster *cluster, uint32_t node, enum local_kind kind,
		  pid_t *pid)
{
	char path[LOCAL_FILE_BYTES];
	unsigned long long birth;
	int number;
	local_daemon_pid_path(cluster, node, kind, path);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	int fields = fscanf(file, "%d %llu", &number, &birth);
	fclose(file);
	if (fields != 2 || number <= 1)
		return -1;
	struct pollfd process = {.fd = pidfd_open(number, 0), .events = POLLIN};
	/* after the open: the birth is that of the process that the descriptor stands for */
	if (process.fd >= 0 && (local_daemon_birth(number) != birth || poll(&process, 1, 0) != 0)) {
		close(process.fd);
		return -1;
	}
	if (pid)
		*pid = number;
	return process.fd;
}

/* --- starting --- */

/* Installed, the daemons are in PREFIX/sbin or beside this command; in a build directory each is in
 * a folder of its kind. */
static bool local_daemon_find(enum local_kind kind, char out[4096])
{
	const char *name = local_kind_name(kind), *own = local_own_folder();
	const char *const places[][2] = {{"/", ""}, {"/../sbin/", ""}, {"/../../", name}};
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (snprintf(out, 4096, "%s%s%s%ssarissa-%s", own, places[i][0], places[i][1],
			     *places[i][1] ? "/" : "", name) < 4096 &&
		    access(out, X_OK) == 0)
			return true;
	return false;
}

struct local_daemon_arguments {
	char *word[ARGUMENTS_MAX];
	unsigned count;
};

__attribute__((format(printf, 2, 3))) static void
local_daemon_argument(struct local_daemon_arguments *a, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (a->count < ARGUMENTS_MAX - 1 && vasprintf(&a->word[a->count], format, args) >= 0)
		a->word[++a->count] = NULL;
	va_end(args);
}

static void local_daemon_address_list(const struct local_cluster *cluster,
				      struct local_daemon_arguments *a)
{
	char list[LOCAL_NODES_MAX * 24];
	size_t length = 0;
	for (uint32_t i = 0; i < cluster->nodes; i++)
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s127.0.0.%u:%u",
					   i ? "," : "", i + 1, cluster->udp_port);
	local_daemon_argument(a, "%s", list);
}

static void local_daemon_arguments(const struct local_cluster *cluster, uint32_t node,
				   enum local_kind kind, struct local_daemon_arguments *a)
{
	char dir[LOCAL_FILE_BYTES];
	local_path(cluster, node, "", dir);
	local_daemon_argument(a, "sarissa-%s", local_kind_name(kind));
	local_daemon_argument(a, "--rundir");
	local_daemon_argument(a, "%s", dir);
	if (kind == LOCAL_CONTROL) {
		local_daemon_argument(a, "--node");
		local_daemon_argument(a, "%u", node);
		local_daemon_argument(a, "--nodes");
		local_daemon_address_list(cluster, a);
		return;
	}
	local_daemon_argument(a, "--port");
	local_daemon_argument(a, "udp:127.0.0.%u", node + 1);
	local_daemon_argument(a, "--udp-port");
	local_daemon_argument(a, "%u", cluster->udp_port);
	local_daemon_argument(a, "--workers");
	local_daemon_argument(a, "%u", cluster->workers);
	local_daemon_argument(a, "--store");
	local_daemon_argument(a, "%lu", (unsigned long)cluster->store_mib);
	local_daemon_argument(a, "--objects");
	local_daemon_argument(a, "%u", cluster->objects);
	for (uint32_t rail = 1; rail < cluster->rails; rail++) {
		local_daemon_argument(a, "--port");
		local_daemon_argument(a, "udp:127.0.%u.%u", rail, node + 1);
	}
}

/* In the child: becomes the daemon, or ends with 127 and a line in the log. */
static void local_daemon_become(const char *binary, char **words, const char *log,
				const char *notify)
{
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(127);
	close_range(STDERR_FILENO + 1, UINT_MAX, 0); /* the caller waits for the end of its pipes */
	setsid();
	if (chdir("/") < 0)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setenv("NOTIFY_SOCKET", notify, 1);
	unsetenv("WATCHDOG_USEC");
	execv(binary, words);
	fprintf(stderr, "cannot run %s: %s\n", binary, strerror(errno));
	_exit(127);
}

static int local_daemon_listen(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unlink(path);
	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Behind the time of a line, which is now: internal/program/log_prefix.h. */
static const char *local_daemon_untimed(const char *line)
{
	const char *blank = strchr(line, ' ');
	return blank && blank > line && blank[-1] == 'Z' && *line >= '0' && *line <= '9' ? blank + 1
											 : line;
}

/* The last line of the log says why; it is the daemon's own. */
static void local_daemon_last_line(const char *log, char *out, size_t bytes)
{
	char line[512];
	FILE *file = fopen(log, "re");
	snprintf(out, bytes, "its log %s is empty", log);
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			snprintf(out, bytes, "%s", local_daemon_untimed(line));
	}
	if (file)
		fclose(file);
}

enum daemon_news { DAEMON_READY, DAEMON_ENDED, DAEMON_LATE, DAEMON_INTERRUPTED };

/* Waits for READY=1, the end of the process, a signal to us, or the end of the time. */
static enum daemon_news local_daemon_wait(int process, int notify)
{
	uint64_t until = cli_now_ns() + READY_MS * 1000000ull;
	char text[512];
	while (!local_interrupted()) {
		struct pollfd wait[2] = {{.fd = process, .events = POLLIN},
					 {.fd = notify, .events = POLLIN}};
		uint64_t now = cli_now_ns();
		if (now >= until)
			return DAEMON_LATE;
		if (poll(wait, 2, (int)((until - now) / 1000000 + 1)) < 0 && errno != EINTR)
			return DAEMON_LATE;
		if (wait[1].revents) {
			ssize_t length = recv(notify, text, sizeof(text) - 1, MSG_DONTWAIT);
			text[length > 0 ? length : 0] = '\0';
			if (strncmp(text, "READY=1", 7) == 0)
				return DAEMON_READY;
		} else if (wait[0].revents) {
			return DAEMON_ENDED;
		}
	}
	return DAEMON_INTERRUPTED;
}

static int local_daemon_report(enum daemon_news news, uint32_t node, enum local_kind kind,
			       const char *log)
{
	char line[600];
	switch (news) {
	case DAEMON_READY:
		return CLI_DONE;
	case DAEMON_INTERRUPTED:
		return cli_fail(-EINTR, "interrupted while the %s of node %u was starting",
				local_kind_name(kind), node);
	case DAEMON_LATE:
		local_daemon_last_line(log, line, sizeof(line));
		return cli_fail(-EIO, "node %u: its %s is not ready after %d s: %s", node,
				local_kind_name(kind), READY_MS / 1000, line);
	default:
		local_daemon_last_line(log, line, sizeof(line));
		return cli_fail(-EIO, "node %u: its %s has ended: %s", node, local_kind_name(kind),
				line);
	}
}

static int local_daemon_run(const struct local_cluster *cluster, uint32_t node,
			    enum local_kind kind, const char *binary, char **words)
{
	char log[LOCAL_FILE_BYTES], socket_path[LOCAL_FILE_BYTES], name[24];
	snprintf(name, sizeof(name), "%s.log", local_kind_name(kind));
	local_path(cluster, node, name, log);
	local_path(cluster, node, "notify.sock", socket_path);
	int notify = local_daemon_listen(socket_path);
	if (notify < 0)
		return cli_fail(-errno, "cannot make %s: %s", socket_path, strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		local_daemon_become(binary, words, log, socket_path);
	int process = pid > 0 ? pidfd_open(pid, 0) : -1;
	int status;
	if (process < 0)
		status = cli_fail(-errno, "node %u: cannot start a process: %s", node,
				  strerror(errno));
	else if (local_daemon_note(cluster, node, kind, pid) < 0)
		status = cli_fail(-EIO, "node %u: cannot note the pid of its %s: is the disk full?",
				  node, local_kind_name(kind));
	else
		status = local_daemon_report(local_daemon_wait(process, notify), node, kind, log);
	if (process >= 0)
		close(process);
	close(notify);
	unlink(socket_path);
	if (status != CLI_DONE && pid > 0)
		kill(pid, SIGKILL); /* our child, not waited for yet: the pid is its own */
	waitpid(pid, NULL, WNOHANG);
	return status;
}

int local_start(const struct local_cluster *cluster, uint32_t node, enum local_kind kind)
{
	static char binary[4096];
	struct local_daemon_arguments a = {.count = 0};
	if (!local_daemon_find(kind, binary))
		return cli_fail(
			-EIO, "sarissa-%s is not beside this command (%s): install it, or build it",
			local_kind_name(kind), local_own_folder());
	local_daemon_arguments(cluster, node, kind, &a);
	int status = local_daemon_run(cluster, node, kind, binary, a.word);
	for (unsigned i = 0; i < a.count; i++)
		free(a.word[i]);
	return status;
}

/* --- ending --- */

/* Until each of the descriptors has ended, at most so long. */
static void local_daemon_wait_ends(const int *process, unsigned count, int ms)
{
	uint64_t until = cli_now_ns() + (uint64_t)ms * 1000000;
	for (unsigned i = 0; i < count; i++) {
		struct pollfd wait = {.fd = process[i], .events = POLLIN};
		uint64_t now = cli_now_ns();
		int left = now < until ? (int)((until - now) / 1000000) : 0;
		while (process[i] >= 0 && poll(&wait, 1, left) < 0 && errno == EINTR)
			continue;
	}
}

static void local_daemon_signal_all(const int *process, unsigned count, int signal, int ms)
{
	for (unsigned i = 0; i < count; i++)
		if (process[i] >= 0)
			pidfd_send_signal(process[i], signal, NULL, 0);
	local_daemon_wait_ends(process, count, ms);
}

static void local_daemon_end_kind(const struct local_cluster *cluster, uint32_t node,
				  enum local_kind kind, int signal)
{
	int process[LOCAL_NODES_MAX];
	unsigned count = 0;
	for (uint32_t i = 0; i < cluster->nodes; i++)
		if (node == LOCAL_ALL || node == i)
			process[count++] = local_running(cluster, i, kind, NULL);
	local_daemon_signal_all(process, count, signal, END_MS);
	local_daemon_signal_all(process, count, SIGKILL, KILL_MS);
	for (unsigned i = 0; i < count; i++)
		if (process[i] >= 0)
			close(process[i]);
}

void local_end(const struct local_cluster *cluster, uint32_t node, int signal)
{
	local_daemon_end_kind(cluster, node, LOCAL_CONTROL, signal);
	local_daemon_end_kind(cluster, node, LOCAL_DATAPLANE, signal);
}
