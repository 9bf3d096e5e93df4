/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded before the C library, it makes a kernel whose devices take no bursts (UDP_SEGMENT), as
 * those of many kernels without checksum off-load: test_udp.py. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>

static int is_burst(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_SEGMENT)
			return 1;
	return 0;
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned count, int flags)
{
	int (*next)(int, struct mmsghdr *, unsigned, int) = dlsym(RTLD_NEXT, "sendmmsg");
	unsigned n = 0;
	while (n < count && !is_burst(&m[n].msg_hdr))
		n++;
	if (n > 0)
		return next(fd, m, n, flags);
	errno = EIO;
	return -1;
}
