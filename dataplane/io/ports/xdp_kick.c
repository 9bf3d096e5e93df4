/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's af_xdp driver asks the kernel to send by an empty send(), again and again while that says
 * EAGAIN: with a card whose queue stands still (pause frames, a slower link) the worker would stay
 * there, deaf. This definition of send() stands in front of the C library's (the program exports it
 * to the driver): after some tries an empty one counts as done. What was not sent stays in the
 * socket's ring, which the next burst asks for again; when the ring is full the driver takes fewer
 * packets, as any other port does.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

/* In copy mode the kernel sends 32 frames a call, and says EAGAIN when there are more. */
enum { KICK_TRIES = 8 };

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	if (data || bytes || flags != MSG_DONTWAIT)
		return sendto(fd, data, bytes, flags, NULL, 0);
	for (int i = 0; i < KICK_TRIES; i++) {
		ssize_t sent = sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
		if (sent >= 0 || errno != EAGAIN)
			return sent;
	}
	return 0;
}
