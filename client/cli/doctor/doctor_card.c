/* SPDX-License-Identifier: BSD-3-Clause */
/* A node on a network card with a DPDK driver (--port pci:): what the kernel shows of the card, and
 * what the dataplane's counters say of its use. */
#include "doctor.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CARD_PATH = 128, CARD_MANY = 1000 /* chunks */ };

struct doctor_card {
	char address[32], folder[CARD_PATH], driver[64], group[64];
	int node; /* of memory; -1: the machine does not say */
};

static void doctor_card_link(const char *folder, const char *name, char out[64])
{
	char path[2 * CARD_PATH], target[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	*out = 0;
	if (n <= 0)
		return;
	target[n] = 0;
	const char *slash = strrchr(target, '/');
	snprintf(out, 64, "%.63s", slash ? slash + 1 : target);
}

static bool doctor_card_value(const char *folder, const char *name, char out[64])
{
	char path[2 * CARD_PATH];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return doctor_read_line(path, out, 64);
}

/* The card of a port; false: it is none. */
static bool doctor_card_find(char *spec, struct doctor_card *out)
{
	char node[64];
	if (strncmp(spec, "pci:", 4) != 0)
		return false;
	spec[strcspn(spec, ",")] = 0;
	bool whole = strlen(spec + 4) > strlen("00:00.0");
	snprintf(out->address, sizeof(out->address), "%s%.20s", whole ? "" : "0000:", spec + 4);
	snprintf(out->folder, sizeof(out->folder), "/sys/bus/pci/devices/%s", out->address);
	doctor_card_link(out->folder, "driver", out->driver);
	doctor_card_link(out->folder, "iommu_group", out->group);
	out->node = doctor_card_value(out->folder, "numa_node", node) ? atoi(node) : -1;
	return true;
}

static void doctor_card_driver(struct doctor *d, const struct doctor_card *c)
{
	char name[64], path[CARD_PATH];
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%s", c->group);
	bool none =
		!*c->group || (doctor_card_value(path, "name", name) && strstr(name, "noiommu"));
	if (access(c->folder, F_OK) != 0)
		doctor_report(d, DOCTOR_FAIL, "card",
			      "see dpdk-devbind.py --status, then restart "
			      "the dataplane",
			      "%s is not there any more", c->address);
	else if (strstr(c->driver, "uio"))
		doctor_report(d, DOCTOR_WARN, "card", "bind it to vfio-pci, with an IOMMU",
			      "%s has the driver %s: payload is copied, and idle workers nap",
			      c->address, c->driver);
	else if (none && strncmp(c->driver, "mlx", 3) != 0)
		doctor_report(d, DOCTOR_WARN, "card",
			      "switch the IOMMU on in the firmware, and boot with intel_iommu=on "
			      "iommu=pt",
			      "%s has the driver %s, and no IOMMU: payload is copied", c->address,
			      *c->driver ? c->driver : "none");
	else
		doctor_report(d, DOCTOR_OK, "card", NULL, "%s has the driver %s%s%s", c->address,
			      c->driver, none ? "" : ", in IOMMU group ", none ? "" : c->group);
}

/* A slot may have fewer lanes than the card. */
static void doctor_card_slot(struct doctor *d, const struct doctor_card *c)
{
	char width[64], widest[64], speed[64], fastest[64];
	if (!doctor_card_value(c->folder, "current_link_width", width) ||
	    !doctor_card_value(c->folder, "max_link_width", widest) ||
	    !doctor_card_value(c->folder, "current_link_speed", speed) ||
	    !doctor_card_value(c->folder, "max_link_speed", fastest) || atoi(widest) == 0)
		return;
	bool slow = atoi(width) < atoi(widest) || atof(speed) < atof(fastest);
	doctor_report(d, slow ? DOCTOR_WARN : DOCTOR_OK, "slot",
		      slow ? "put the card into a slot of its own width and generation" : NULL,
		      "%s lanes at %s, of %s at %s", width, speed, widest, fastest);
}

/* The memory node of a core; -1: there is only one. */
static int doctor_card_core_node(int core)
{
	char path[CARD_PATH];
	int node = -1;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", core);
	DIR *folder = access("/sys/devices/system/node/node1", F_OK) == 0 ? opendir(path) : NULL;
	for (struct dirent *e; folder && (e = readdir(folder));)
		if (sscanf(e->d_name, "node%d", &node) == 1)
			break;
	if (folder)
		closedir(folder);
	return node;
}

/* The cores that a thread may use, when it is a worker. */
static bool doctor_card_worker_cores(int32_t pid, const char *thread, char out[64])
{
	char path[CARD_PATH], line[256];
	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", pid, thread);
	if (!doctor_read_line(path, line, sizeof(line)) || !strstr(line, "worker"))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", pid, thread);
	FILE *file = fopen(path, "re");
	bool found = false;
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Cpus_allowed_list: %63s", out) == 1;
	if (file)
		fclose(file);
	return found;
}

static void doctor_card_memory(struct doctor *d, const struct doctor_card *c)
{
	char path[CARD_PATH], cores[64];
	int32_t pid = d->node.dataplane_pid;
	unsigned far = 0;
	if (c->node < 0 || doctor_card_core_node(0) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *folder = opendir(path);
	for (struct dirent *e; folder && (e = readdir(folder));)
		if (*e->d_name != '.' && doctor_card_worker_cores(pid, e->d_name, cores))
			far += strpbrk(cores, "-,") ||
			       doctor_card_core_node(atoi(cores)) != c->node;
	if (folder)
		closedir(folder);
	doctor_report(d, far ? DOCTOR_WARN : DOCTOR_OK, "memory node",
		      far ? "name cores of the card's node with --cores; numactl -H lists them"
			  : NULL,
		      far ? "the card is at node %d, and %u workers are, or may be, elsewhere"
			  : "card and workers are at node %d",
		      c->node, far);
}

static void doctor_card_use(struct doctor *d)
{
	uint64_t sent = d->now.dataplane[offsetof(struct counters, tx_chunks) / sizeof(uint64_t)];
	uint64_t read =
		d->now.dataplane[offsetof(struct counters, io_tx_in_place) / sizeof(uint64_t)];
	if (strstr(d->node.link, "by hash"))
		doctor_report(d, DOCTOR_WARN, "rules",
			      "see the dataplane's log for the card's reason; or use one worker",
			      "%s: packets find their worker by hash, and are handed over",
			      d->node.link);
	if (d->dataplane_error || sent < CARD_MANY)
		return;
	doctor_report(d, read ? DOCTOR_OK : DOCTOR_WARN, "payload",
		      read ? NULL : "see the dataplane's log: no IOMMU, or a driver without chains",
		      read ? "the card has read %llu packets' payload from the store"
			   : "the card reads none from the store, %llu chunks were copied",
		      (unsigned long long)(read ? read : sent));
}

void doctor_check_card(struct doctor *d)
{
	char spec[PORT_NOTE_BYTES], why[PORT_NOTE_BYTES];
	struct doctor_card c;
	bool any = false;
	for (unsigned k = 0; d->has_node && counters_file_port(d->args->socket, k, spec, why);
	     k++) {
		if (!doctor_card_find(spec, &c))
			continue;
		any = true;
		doctor_card_driver(d, &c);
		doctor_card_slot(d, &c);
		doctor_card_memory(d, &c);
	}
	if (any)
		doctor_card_use(d);
}
