/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "io/observe/log.h"
#include "xdp_redirect.h"

/* Bytes that the kernel counts for a frame of up to a page, with its own headers. */
enum { XDP_FRAME_TRUESIZE = 8192 };

#ifndef SOL_XDP
#define SOL_XDP 283
#endif

const char *xdp_object(const char *name)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	for (int up = 0; n > 0 && up < 2; up++) {
		path[n] = 0;
		char *slash = strrchr(path, '/');
		n = slash ? slash - path : 0;
	}
	if (n > 0) {
		snprintf(path + n, sizeof(path) - (size_t)n, "/ebpf/%s", name);
		if (access(path, R_OK) == 0)
			return path;
	}
	snprintf(path, sizeof(path), "%s/%s", SARISSA_OBJECTS, name);
	return path;
}

/* The attached program: its id and mode; 0 when there is none. */
static uint32_t xdp_attached(const struct xdp *x, bool *generic)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	if (bpf_xdp_query(x->ifindex, 0, &q) != 0)
		return 0;
	if (generic)
		*generic = q.skb_prog_id != 0;
	return q.drv_prog_id ? q.drv_prog_id : q.skb_prog_id ? q.skb_prog_id : q.hw_prog_id;
}

static int xdp_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];
	int n = vsnprintf(line, sizeof(line), format, args);
	if (n > 0 && n < (int)sizeof(line) && line[n - 1] == '\n')
		line[n - 1] = 0;
	if (level != LIBBPF_DEBUG)
		log_debug("%s", line);
	return 0;
}

int xdp_prepare(struct xdp *x, const char *name, int ifindex)
{
	*x = (struct xdp){.ifindex = ifindex, .name = name, .prepared = true};
	libbpf_set_print(xdp_quiet);
	uint32_t id = xdp_attached(x, NULL);
	if (id == 0)
		return 0;
	log_error("interface %s has another XDP program (id %u): stop the sarissa-dataplane that "
		  "uses it, or take it off with 'ip link set dev %s xdp off'",
		  name, id, name);
	return -EEXIST;
}

/* The maps of a program, as descriptors that the driver has open: to open them by their ids the
 * kernel asks for far more rights than to load them. */
struct xdp_maps {
	uint32_t id[8], count, btf;
	int ours, sockets;
	bool close;
};

static void xdp_find_map(struct xdp_maps *m, int fd)
{
	struct bpf_map_info info = {0};
	uint32_t length = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &length) != 0)
		return;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->id[i] != info.id)
			continue;
		if (m->close)
			close(fd);
		if (strcmp(info.name, XDP_REDIRECT_OURS_MAP) == 0)
			m->ours = fd;
		else if (strcmp(info.name, XDP_REDIRECT_SOCKETS_MAP) == 0)
			m->sockets = fd;
	}
}

static void xdp_find_types(struct xdp_maps *m, int fd)
{
	struct bpf_btf_info info = {0};
	uint32_t length = sizeof(info);
	if (m->close && bpf_obj_get_info_by_fd(fd, &info, &length) == 0 && info.id == m->btf)
		close(fd);
}

static int xdp_find_maps(int program, struct xdp_maps *out)
{
	struct bpf_prog_info info = {0};
	uint32_t length = sizeof(info);
	out->ours = out->sockets = -1;
	info.nr_map_ids = sizeof(out->id) / sizeof(*out->id);
	info.map_ids = (uint64_t)(uintptr_t)out->id;
	if (bpf_obj_get_info_by_fd(program, &info, &length) != 0)
		return -errno;
	out->count = info.nr_map_ids < 8 ? info.nr_map_ids : 8;
	out->btf = info.btf_id;
	DIR *d = opendir("/proc/self/fd");
	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));) {
		char target[32];
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (strcmp(target, "anon_inode:bpf-map") == 0)
			xdp_find_map(out, atoi(e->d_name));
		else if (strcmp(target, "anon_inode:btf") == 0)
			xdp_find_types(out, atoi(e->d_name));
	}
	closedir(d);
	return out->ours >= 0 && out->sockets >= 0 ? 0 : -ENOENT;
}

void xdp_unload(int program)
{
	struct xdp_maps maps = {.close = true};
	xdp_find_maps(program, &maps);
	close(program);
}

static int xdp_set_ours(int map, const struct net_addr *first, uint32_t ports)
{
	uint32_t key = 0;
	struct xdp_redirect_ours ours = {.port = first->port, .ports = ports};
	memcpy(ours.ip, first->ip, sizeof(ours.ip));
	return bpf_map_update_elem(map, &key, &ours, BPF_ANY) != 0 ? -errno : 0;
}

static int xdp_set_sockets(int map, const int *sockets, uint32_t count)
{
	for (uint32_t q = 0; q < count; q++)
		if (bpf_map_update_elem(map, &q, &sockets[q], BPF_ANY) != 0)
			return -errno;
	return 0;
}

/* Fills the maps of the attached program. */
static int xdp_fill(const struct xdp *x, const struct net_addr *first, unsigned ports,
		    const int *sockets, unsigned count)
{
	struct xdp_maps maps = {.close = false};
	int error = xdp_find_maps(xdp_attach_program(x->ifindex), &maps);
	if (!error)
		error = xdp_set_sockets(maps.sockets, sockets, count);
	if (!error)
		error = xdp_set_ours(maps.ours, first, ports);
	return error;
}

int xdp_configure(struct xdp *x, const struct net_addr *first, unsigned ports, const int *sockets,
		  unsigned count)
{
	struct xdp_options options = {0};
	socklen_t length = sizeof(options);
	int error = xdp_fill(x, first, ports, sockets, count);
	xdp_attached(x, &x->generic);
	if (error)
		log_error("interface %s: cannot tell the XDP program our ports (%s): "
			  "is %s of this version?",
			  x->name, strerror(-error), xdp_object(XDP_OBJECT));
	if (getsockopt(sockets[0], SOL_XDP, XDP_OPTIONS, &options, &length) == 0)
		x->zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY;
	return error;
}

static bool xdp_is_known(int fd, const int *known, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (known[i] == fd)
			return true;
	return false;
}

static bool xdp_is_socket(int fd)
{
	int domain = 0;
	socklen_t length = sizeof(domain);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_XDP;
}

void xdp_send_all(int fd, unsigned frames)
{
	int bytes = (int)frames * XDP_FRAME_TRUESIZE;
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void xdp_close_socket(int fd)
{
	if (fd >= 0 && xdp_is_socket(fd))
		close(fd);
}

unsigned xdp_list_sockets(int *out, unsigned max)
{
	unsigned count = 0;
	DIR *d = opendir("/proc/self/fd");
	if (!d)
		return 0;
	for (struct dirent *e; count < max && (e = readdir(d));) {
		int fd = atoi(e->d_name);
		if (xdp_is_socket(fd))
			out[count++] = fd;
	}
	closedir(d);
	return count;
}

int xdp_find_socket(const int *known, unsigned count)
{
	int open[XDP_SOCKETS_MAX];
	unsigned opened = xdp_list_sockets(open, XDP_SOCKETS_MAX);
	for (unsigned i = 0; i < opened; i++)
		if (!xdp_is_known(open[i], known, count))
			return open[i];
	return -1;
}

void xdp_release(struct xdp *x)
{
	xdp_attach_end(x->ifindex);
	x->prepared = false;
}
