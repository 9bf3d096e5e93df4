/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's af_xdp driver attaches a program over netlink, without naming a mode: so the kernel tries
 * native mode only, and the program stays on the interface when the process is killed. This
 * definition of libbpf's function stands in front of the library's own (the program exports it to
 * the driver): it attaches by a link, which dies with the process, and when the interface refuses
 * native mode, in generic mode, and says why. Each further queue of an interface is a device of its
 * own, whose driver would attach its copy of the program again: the first one serves them all
 * (xdp_configure).
 */
#include "xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "io/observe/log.h"

enum { ATTACHED_MAX = XDP_SOCKETS_MAX };

static char attach_error[256];
static struct {
	int ifindex;
	int link;   /* -1: a further copy of the program, not attached */
	int loaded; /* the driver's own descriptor of the program */
} attached[ATTACHED_MAX];
static unsigned attached_count;

const char *xdp_attach_error(void)
{
	return attach_error;
}

int xdp_attach_program(int ifindex)
{
	for (unsigned i = 0; i < attached_count; i++)
		if (attached[i].ifindex == ifindex && attached[i].link >= 0)
			return attached[i].loaded;
	return -1;
}

void xdp_attach_end(int ifindex)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < attached_count; i++) {
		if (ifindex && attached[i].ifindex != ifindex) {
			attached[kept++] = attached[i];
			continue;
		}
		if (attached[i].link >= 0)
			close(attached[i].link);
		xdp_unload(attached[i].loaded);
	}
	attached_count = kept;
}

static int xdp_attach_link(int ifindex, int prog_fd, __u32 flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags & XDP_FLAGS_MODES);
	int fd = bpf_link_create(prog_fd, ifindex, BPF_XDP, &options);
	if (fd < 0)
		return fd;
	attached[attached_count].ifindex = ifindex;
	attached[attached_count].link = fd;
	attached[attached_count++].loaded = prog_fd;
	return 0;
}

/* Taking it off (prog_fd < 0), which the driver does for each queue, is xdp_attach_end's. */
int bpf_xdp_attach(int ifindex, int prog_fd, __u32 flags, const struct bpf_xdp_attach_opts *opts)
{
	if (prog_fd < 0)
		return 0;
	if (attached_count == ATTACHED_MAX)
		return -ENOSPC;
	if (xdp_attach_program(ifindex) >= 0) {
		attached[attached_count].ifindex = ifindex;
		attached[attached_count].link = -1;
		attached[attached_count++].loaded = prog_fd;
		return 0;
	}
	int error = xdp_attach_link(ifindex, prog_fd, flags);
	if (error == -EBUSY)
		snprintf(attach_error, sizeof(attach_error),
			 "another program came to the interface just now");
	if (error == 0 || (flags & XDP_FLAGS_MODES) || error == -EPERM || error == -EBUSY)
		return error;
	int generic = xdp_attach_link(ifindex, prog_fd, XDP_FLAGS_SKB_MODE);
	if (generic == 0)
		log_warning("native XDP refused (%s): generic mode, slower, is used",
			    strerror(-error));
	else
		snprintf(attach_error, sizeof(attach_error), "native XDP: %s, generic XDP: %s",
			 strerror(-error), strerror(-generic));
	return generic;
}
