/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells the service manager how this process is: the protocol of sd_notify(3), one datagram
 * "NAME=VALUE" to the socket in $NOTIFY_SOCKET. Our own thirty lines, because libsystemd brings
 * three compression libraries and a cipher for it. Without a manager nothing is sent.
 *
 * Who may call: the shells of control and dataplane, one thread. Never blocks: a manager that does
 * not read its socket is left without news.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PROGRAM_NOTIFY_H
#define SARISSA_INCLUDE_INTERNAL_PROGRAM_NOTIFY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NOTIFY_READY	"READY=1"
#define NOTIFY_WATCHDOG "WATCHDOG=1"
#define NOTIFY_STOPPING "STOPPING=1"

struct notify {
	int fd; /* -1: nobody wants to know */
	struct sockaddr_un address;
	socklen_t length;
	uint64_t watchdog_ns; /* WATCHDOG=1 must come at least so often; 0: not expected */
};

/* A name in the file system, or with @ an abstract one. */
static inline int notify_address(struct notify *n, const char *path)
{
	size_t bytes = path ? strlen(path) : 0;

	n->address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (bytes < 2 || bytes >= sizeof(n->address.sun_path) || (*path != '/' && *path != '@'))
		return -1;
	memcpy(n->address.sun_path, path, bytes);
	if (*path == '@')
		n->address.sun_path[0] = '\0';
	n->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
	return 0;
}

/* 0 where it is not asked of this process. */
static inline uint64_t notify_watchdog_ns(const char *usec, const char *pid)
{
	const uint64_t day_us = 86400ull * 1000000;
	uint64_t us = usec ? strtoull(usec, NULL, 10) : 0;

	if (pid && strtoull(pid, NULL, 10) != (unsigned long long)getpid())
		return 0;
	return (us < day_us ? us : day_us) * 1000;
}

static inline void notify_open(struct notify *n)
{
	*n = (struct notify){.fd = -1};
	if (notify_address(n, getenv("NOTIFY_SOCKET")) == 0)
		n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (n->fd >= 0)
		n->watchdog_ns =
			notify_watchdog_ns(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
}

static inline void notify_say(const struct notify *n, const char *text)
{
	if (n->fd >= 0)
		(void)!sendto(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
			      (const struct sockaddr *)&n->address, n->length);
}

/* One line for `systemctl status`. */
__attribute__((format(printf, 2, 3))) static inline void notify_status(const struct notify *n,
								       const char *format, ...)
{
	char text[256] = "STATUS=";
	va_list args;

	va_start(args, format);
	vsnprintf(text + 7, sizeof(text) - 7, format, args);
	va_end(args);
	notify_say(n, text);
}

#endif
