/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor's checks of the machine: huge pages, kernel, locked memory, CPU frequency. doctor.c calls
 * doctor_check_host. Reads /proc and /sys only; needs no node.
 */
#include "doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "cli/support/text.h"

/* A "Name:  value kB" of /proc/meminfo; 0 when it is missing. */
static uint64_t doctor_meminfo(const char *name)
{
	char line[128];
	uint64_t value = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, 10);
	fclose(file);
	return value;
}

/* Of 1 GiB, which not every machine has. */
static void doctor_giant_pages(struct doctor *d)
{
	static const char folder[] = "/sys/kernel/mm/hugepages/hugepages-1048576kB";
	char path[96], all[32], some[32];
	snprintf(path, sizeof(path), "%s/nr_hugepages", folder);
	if (!doctor_read_line(path, all, sizeof(all)) || atoi(all) == 0)
		return;
	snprintf(path, sizeof(path), "%s/free_hugepages", folder);
	if (doctor_read_line(path, some, sizeof(some)))
		doctor_report(d, DOCTOR_OK, "1 GiB pages", NULL,
			      "%s of %s are free; a store of whole GiB takes them", some, all);
}

static void doctor_hugepages(struct doctor *d)
{
	uint64_t total = doctor_meminfo("HugePages_Total"), free = doctor_meminfo("HugePages_Free");
	uint64_t page_bytes = doctor_meminfo("Hugepagesize") * 1024;
	char page[TEXT_BYTES], store[TEXT_BYTES];
	text_size(page, page_bytes);
	text_size(store, d->node.store_bytes);
	if (d->has_node && d->node.hugepages)
		doctor_report(d, DOCTOR_OK, "huge pages", NULL,
			      "the store of %s lies in them; %llu of %llu of %s are free", store,
			      (unsigned long long)free, (unsigned long long)total, page);
	else if (doctor_on_sockets(d))
		doctor_report(d, DOCTOR_OK, "huge pages", NULL,
			      "none needed: kernel sockets work as well from ordinary pages");
	else if (total == 0)
		doctor_report(d, DOCTOR_WARN, "huge pages",
			      "sysctl vm.nr_hugepages=N with N at least the store's size in pages, "
			      "then restart the dataplane",
			      "none are reserved: the store lies in ordinary pages, which costs "
			      "address translation");
	else if (d->has_node)
		doctor_report(d, DOCTOR_WARN, "huge pages",
			      "reserve at least the store's size (sysctl vm.nr_hugepages), then "
			      "restart the dataplane",
			      "%llu of %llu of %s are free, but the store of %s lies in ordinary "
			      "pages",
			      (unsigned long long)free, (unsigned long long)total, page, store);
	else
		doctor_report(d, DOCTOR_OK, "huge pages", NULL, "%llu of %llu of %s are free",
			      (unsigned long long)free, (unsigned long long)total, page);
}

static void doctor_kernel(struct doctor *d)
{
	struct utsname name;
	unsigned major = 0, minor = 0;
	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	bool sockets = doctor_on_sockets(d);
	if (!sockets && (major < 5 || (major == 5 && minor < 11)))
		doctor_report(d, DOCTOR_WARN, "kernel", "run Linux 5.11 or later",
			      "%s: AF_XDP has no busy polling before 5.11", name.release);
	else
		doctor_report(d, DOCTOR_OK, "kernel", NULL, "%s", name.release);
	if (sockets)
		return;
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || error == EPERM || error == EACCES)
		doctor_report(d, DOCTOR_OK, "af_xdp", NULL, "%s",
			      fd >= 0 ? "the kernel has it"
				      : "the kernel has it (this user may not use it, the "
					"dataplane needs CAP_NET_RAW)");
	else
		doctor_report(d, DOCTOR_WARN, "af_xdp",
			      "use a kernel with CONFIG_XDP_SOCKETS, or another port (tap, pci)",
			      "not available: %s", strerror(error));
}

/* The soft limit of a process, UINT64_MAX for none. */
static bool doctor_memlock_of(int32_t pid, uint64_t *out)
{
	struct rlimit limit;
	if (prlimit(pid, RLIMIT_MEMLOCK, NULL, &limit) < 0)
		return false;
	*out = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	return true;
}

static void doctor_memlock(struct doctor *d)
{
	const uint64_t enough = 64 << 20; /* the packet memory of a worker, and room */
	uint64_t limit;
	char text[TEXT_BYTES];
	bool runs = d->node.dataplane_pid > 0; /* then it had enough, whatever it is */
	bool of_dataplane = runs && doctor_memlock_of(d->node.dataplane_pid, &limit);
	if (doctor_on_sockets(d) || (!of_dataplane && (runs || !doctor_memlock_of(0, &limit))))
		return;
	const char *whose = of_dataplane ? "the dataplane" : "this shell";
	if (limit == UINT64_MAX)
		doctor_report(d, DOCTOR_OK, "memlock", NULL, "%s may lock any amount", whose);
	else if (limit >= enough || geteuid() == 0)
		doctor_report(d, DOCTOR_OK, "memlock", NULL, "%s may lock %s%s", whose,
			      text_size(text, limit),
			      limit < enough ? ", and root is not bound by it" : "");
	else
		doctor_report(d, DOCTOR_WARN, "memlock",
			      "start the dataplane with ulimit -l unlimited (LimitMEMLOCK=infinity "
			      "in a unit), or with CAP_IPC_LOCK",
			      "%s may lock only %s, less than AF_XDP's packet memory", whose,
			      text_size(text, limit));
}

static void doctor_cpu(struct doctor *d)
{
	char line[256];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (doctor_read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", line,
			     sizeof(line)))
		doctor_report(d, strcmp(line, "performance") == 0 ? DOCTOR_OK : DOCTOR_WARN, "cpu",
			      strcmp(line, "performance") == 0
				      ? NULL
				      : "cpupower frequency-set -g performance, for steady latency",
			      "%ld on line, governor %s", cpus, line);
	else
		doctor_report(d, DOCTOR_OK, "cpu", NULL,
			      "%ld on line, frequency not under this system's control", cpus);
	if (!doctor_read_line("/sys/devices/system/cpu/isolated", line, sizeof(line)))
		*line = '\0';
	if (*line)
		doctor_report(d, DOCTOR_OK, "isolation", NULL, "cores %s are isolated", line);
	else if (d->has_node && d->node.busy_poll)
		doctor_report(d, DOCTOR_WARN, "isolation",
			      "keep the scheduler off the workers' cores: isolcpus= or a cpuset",
			      "workers poll without pause, but no core is isolated for them");
	else
		doctor_report(d, DOCTOR_OK, "isolation", NULL,
			      "no isolated cores; workers sleep when idle");
}

static void doctor_clock(struct doctor *d)
{
	char line[128];
	if (!doctor_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			      line, sizeof(line)))
		return;
	bool fast = strcmp(line, "tsc") == 0 || strcmp(line, "kvm-clock") == 0 ||
		    strcmp(line, "arch_sys_counter") == 0 ||
		    strncmp(line, "hyperv_clocksource_tsc", 22) == 0;
	doctor_report(d, fast ? DOCTOR_OK : DOCTOR_WARN, "clock",
		      fast ? NULL
			   : "boot with tsc=reliable when the hardware's counter is stable, else "
			     "expect slower timing",
		      fast ? "%s" : "%s: reading it takes a system call", line);
}

void doctor_check_host(struct doctor *d)
{
	doctor_kernel(d);
	doctor_hugepages(d);
	doctor_giant_pages(d);
	doctor_memlock(d);
	doctor_cpu(d);
	doctor_clock(d);
}
