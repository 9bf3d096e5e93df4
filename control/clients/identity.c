/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define PIDFS_MAGIC 0x50494446

/* Of a pidfd, which is closed. */
static uint64_t identity_number(int fd)
{
	struct statfs system;
	struct stat s;
	uint64_t number = 0;

	if (fstatfs(fd, &system) == 0 && system.f_type == PIDFS_MAGIC && fstat(fd, &s) == 0)
		number = s.st_ino;
	close(fd);
	return number;
}

/* The inode of its pidfd, which no other process has had since the boot (Linux 6.9); before, all
 * share one, and 0 stands for it. */
static uint64_t identity_birth(int fd)
{
	int process;
	socklen_t length = sizeof(process);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &length) < 0)
		return 0;
	return identity_number(process);
}

bool identity_lives(uint32_t process, uint64_t birth)
{
	int fd = birth ? (int)syscall(SYS_pidfd_open, (pid_t)process, 0) : -1;
	struct pollfd ended = {.fd = fd, .events = POLLIN};

	/* readable: it has ended, and its parent has not looked yet */
	if (fd >= 0 && poll(&ended, 1, 0) != 0) {
		close(fd);
		return false;
	}
	return fd >= 0 && identity_number(fd) == birth;
}

static bool identity_is_staged(enum control_creators creators, bool daemons)
{
	return creators == CONTROL_CREATORS_PRIVATE ||
	       (creators == CONTROL_CREATORS_AUTO && !daemons);
}

struct control_client identity_of(int fd, enum control_creators creators)
{
	struct ucred who;
	socklen_t length = sizeof(who);
	uint64_t birth;
	bool daemons;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		who = (struct ucred){.uid = (uid_t)-1};
	daemons = who.uid == 0 || who.uid == geteuid();
	birth = identity_birth(fd);
	return (struct control_client){.process = who.pid > 0 ? (uint32_t)who.pid
						  : birth     ? CONTROL_PROCESS_ELSEWHERE
							      : 0,
				       .user = who.uid,
				       .birth = birth,
				       .staged = identity_is_staged(creators, daemons),
				       .daemons = daemons};
}
