/* SPDX-License-Identifier: BSD-3-Clause */
#include "card.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256 };

static bool card_address(const char *text, char out[CARD_ADDRESS_BYTES])
{
	unsigned domain = 0, bus, device, function;
	char copy[32];
	int used = 0;
	size_t n = strcspn(text, ",");
	if (n >= sizeof(copy))
		return false;
	memcpy(copy, text, n);
	copy[n] = 0;
	if (sscanf(copy, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 ||
	    (size_t)used != n) {
		domain = 0;
		if (sscanf(copy, "%2x:%2x.%1x%n", &bus, &device, &function, &used) != 3 ||
		    (size_t)used != n)
			return false;
	}
	snprintf(out, CARD_ADDRESS_BYTES, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff,
		 device & 0xff, function & 0xf);
	return device < 32 && function < 8;
}

/* The last part of where a link of the card's folder leads; "" when there is none. */
static void card_link(const char *folder, const char *name, char *out, size_t room)
{
	char path[PATH_BYTES + 32], target[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	*out = 0;
	if (n <= 0)
		return;
	target[n] = 0;
	const char *slash = strrchr(target, '/');
	const char *last = slash ? slash + 1 : target;
	size_t bytes = strnlen(last, room - 1);
	memcpy(out, last, bytes);
	out[bytes] = 0;
}

static bool card_value(const char *folder, const char *name, const char *format, int *out)
{
	char path[PATH_BYTES + 32];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "re");
	bool got = file && fscanf(file, format, out) == 1;
	if (file)
		fclose(file);
	return got;
}

bool card_is_uio(const struct card *c)
{
	return strstr(c->driver, "uio") != NULL;
}

/* Drivers of the kernel that let a program beside them have the card. */
static bool card_is_shared(const struct card *c)
{
	return strncmp(c->driver, "mlx", 3) == 0 || strcmp(c->driver, "mana") == 0;
}

static enum card_verdict card_judge(const struct card *c)
{
	bool vfio = strncmp(c->driver, "vfio", 4) == 0;
	if (!c->network)
		return CARD_NOT_NETWORK;
	if (!*c->driver)
		return CARD_UNBOUND;
	if (!vfio && !card_is_uio(c) && !card_is_shared(c))
		return CARD_OF_KERNEL;
	return vfio && !c->iommu ? CARD_NO_IOMMU : CARD_GOOD;
}

enum card_verdict card_read(const char *sys, const char *text, struct card *out)
{
	char folder[PATH_BYTES], group[32];
	int class = 0;
	*out = (struct card){.memory_node = -1};
	if (!card_address(text, out->address))
		return CARD_NO_ADDRESS;
	snprintf(folder, sizeof(folder), "%s/bus/pci/devices/%s", sys, out->address);
	if (access(folder, F_OK) != 0)
		return CARD_MISSING;
	out->network = card_value(folder, "class", "%x", &class) && class >> 16 == 0x02;
	card_link(folder, "driver", out->driver, sizeof(out->driver));
	card_link(folder, "iommu_group", group, sizeof(group));
	out->iommu = *group != 0;
	card_value(folder, "numa_node", "%d", &out->memory_node);
	return card_judge(out);
}

int card_core_node(const char *sys, int core)
{
	char path[PATH_BYTES];
	int node = -1;
	snprintf(path, sizeof(path), "%s/devices/system/node/node1", sys);
	bool several = access(path, F_OK) == 0;
	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d", sys, core);
	DIR *folder = several ? opendir(path) : NULL;
	for (struct dirent *e; folder && (e = readdir(folder));)
		if (sscanf(e->d_name, "node%d", &node) == 1)
			break;
	if (folder)
		closedir(folder);
	return node;
}
