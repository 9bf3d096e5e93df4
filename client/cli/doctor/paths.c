/* SPDX-License-Identifier: BSD-3-Clause */
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "counters_file.h"
#include "cli/support/text.h"

static bool paths_fit(const struct counters_file *h, uint64_t bytes)
{
	return h->stride % sizeof(struct peer_block) == 0 && bytes >= sizeof(*h) &&
	       h->stride <= (bytes - sizeof(*h)) / h->workers;
}

/* The file, whole. NULL: it is not such a file. */
static void *paths_map(int fd, struct counters_file *head, size_t *bytes)
{
	struct stat s;
	if (counters_file_head(fd, PEERS_FILE_MAGIC, PEER_VALUES_COUNT, head) < 0 ||
	    fstat(fd, &s) < 0 || !paths_fit(head, (uint64_t)s.st_size))
		return NULL;
	*bytes = (size_t)s.st_size;
	void *file = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, fd, 0);
	return file == MAP_FAILED ? NULL : file;
}

static int paths_copy(const struct counters_file *h, const struct peer_block *block,
		      struct paths *out)
{
	size_t places = h->stride / sizeof(*block);
	out->row = calloc(h->workers * places + 1, sizeof(*out->row));
	if (!out->row)
		return -ENOMEM;
	for (size_t i = 0; i < h->workers * places; i++) {
		struct peer_block one;
		if (!peer_block_read(&block[i], &one))
			continue;
		out->row[out->count++] = (struct path){.node = PATHS_NO_NODE,
						       .worker = (uint32_t)(i / places),
						       .conn = one.conn,
						       .addr = one.addr,
						       .values = one.values,
						       .over_ns = one.values.gauges.age_ns};
	}
	return 0;
}

int paths_read(const char *socket, struct paths *out)
{
	struct counters_file head;
	size_t bytes;
	out->row = NULL;
	out->count = 0;
	out->mtu = 0;
	int fd = counters_file_open(socket, "peers", out->file);
	if (fd < 0)
		return fd;
	const struct counters_file *file = paths_map(fd, &head, &bytes);
	close(fd);
	if (!file)
		return -EPROTO;
	int r = paths_copy(&head, (const struct peer_block *)(file + 1), out);
	munmap((void *)(uintptr_t)file, bytes);
	return r;
}

void paths_free(struct paths *p)
{
	free(p->row);
	p->row = NULL;
	p->count = 0;
}

const struct path *paths_to(const struct paths *p, const sar_node *node)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct path *one = &p->row[i];
		if (one->worker == 0 && one->addr.port == node->port && one->values.gauges.up &&
		    memcmp(one->addr.ip, node->ip, sizeof(one->addr.ip)) == 0)
			return one;
	}
	return NULL;
}

static int paths_name_one(const sar_node *node, void *arg)
{
	struct paths *p = arg;
	if (node->self)
		p->mtu = node->mtu;
	for (size_t i = 0; i < p->count; i++) {
		struct path *one = &p->row[i];
		if (memcmp(one->addr.ip, node->ip, sizeof(one->addr.ip)) == 0 &&
		    one->addr.port >= node->port && one->addr.port < node->port + node->workers)
			one->node = node->node;
	}
	return 0;
}

static const struct path *paths_conn(const struct paths *p, uint32_t worker, uint64_t conn)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->row[i].worker == worker && p->row[i].conn == conn)
			return &p->row[i];
	return NULL;
}

void paths_name(struct paths *p, const char *socket)
{
	sar *s;
	if (sar_open(socket, &s) < 0)
		return;
	sar_nodes(s, paths_name_one, p);
	sar_close(s);
	for (size_t i = 0; i < p->count; i++) {
		struct path *one = &p->row[i];
		const struct path *main = paths_conn(p, one->worker, one->values.gauges.path_of);
		if (main && main->node != PATHS_NO_NODE)
			one->node = main->node;
	}
}

static const struct path *paths_find(const struct paths *p, const struct path *as)
{
	return paths_conn(p, as->worker, as->conn);
}

void paths_since(struct paths *now, const struct paths *before)
{
	for (size_t i = 0; i < now->count; i++) {
		struct path *one = &now->row[i];
		const struct path *was = paths_find(before, one);
		uint64_t value[PEER_COUNTERS_COUNT], old[PEER_COUNTERS_COUNT];
		struct peer_gauges *g = &one->values.gauges;
		if (!was || was->values.gauges.age_ns > g->age_ns)
			continue;
		memcpy(value, &one->values.counters, sizeof(value));
		memcpy(old, &was->values.counters, sizeof(old));
		for (unsigned k = 0; k < PEER_COUNTERS_COUNT; k++)
			value[k] -= old[k] < value[k] ? old[k] : value[k];
		memcpy(&one->values.counters, value, sizeof(value));
		g->tx_pkts -= was->values.gauges.tx_pkts;
		g->missing_pkts -= g->missing_pkts < was->values.gauges.missing_pkts
					   ? g->missing_pkts
					   : was->values.gauges.missing_pkts;
		one->over_ns = g->written_ns - was->values.gauges.written_ns;
	}
}

static int paths_compare(const void *a, const void *b)
{
	const struct path *l = a, *r = b;
	int ip = memcmp(l->addr.ip, r->addr.ip, sizeof(l->addr.ip));
	if (l->node != r->node)
		return (l->node > r->node) - (l->node < r->node);
	if (ip != 0)
		return ip;
	if (l->addr.port != r->addr.port)
		return l->addr.port - r->addr.port;
	return (l->worker > r->worker) - (l->worker < r->worker);
}

void paths_sort(struct paths *p)
{
	qsort(p->row, p->count, sizeof(*p->row), paths_compare);
}
