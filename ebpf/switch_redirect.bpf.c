/* SPDX-License-Identifier: BSD-3-Clause */
/* On each port of sarissa-switch: all frames go to its socket, and to the kernel when it has gone.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

SEC("xdp")
int sar_switch(struct xdp_md *ctx)
{
	return bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
