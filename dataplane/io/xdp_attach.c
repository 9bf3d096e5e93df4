/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's af_xdp driver attaches a program without naming a mode, so that the kernel tries native
 * mode only, and has no argument to change that. This definition of libbpf's function stands in
 * front of the library's own (the program exports it to the driver): it tries what was asked, and
 * when the interface refuses native mode, attaches in generic mode and says why. Each further queue
 * of an interface is a device of its own, whose driver would attach its copy of the program again:
 * the first one serves them all (xdp_configure).
 */
#include "xdp.h"

#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include "log.h"

static char attach_error[256];
static int attached_ifindex;

const char *xdp_attach_error(void)
{
	return attach_error;
}

int bpf_xdp_attach(int ifindex, int prog_fd, __u32 flags, const struct bpf_xdp_attach_opts *opts)
{
	int (*next)(int, int, __u32, const struct bpf_xdp_attach_opts *);
	*(void **)&next = dlsym(RTLD_NEXT, "bpf_xdp_attach");
	if (!next)
		return -ENOSYS;
	if (prog_fd >= 0 && attached_ifindex == ifindex)
		return 0;
	int error = next(ifindex, prog_fd, flags, opts);
	if (prog_fd >= 0 && error == 0)
		attached_ifindex = ifindex;
	if (error == 0 || prog_fd < 0 || (flags & XDP_FLAGS_MODES) || error == -EPERM)
		return error;
	int generic = next(ifindex, prog_fd, flags | XDP_FLAGS_SKB_MODE, opts);
	if (generic == 0)
		attached_ifindex = ifindex;
	if (generic == 0)
		log_warning("native XDP refused (%s): generic mode, slower, is used",
			    strerror(-error));
	else
		snprintf(attach_error, sizeof(attach_error), "native XDP: %s, generic XDP: %s",
			 strerror(-error), strerror(-generic));
	return generic;
}
