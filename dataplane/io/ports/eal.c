/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include "io/observe/log.h"
#include "io/node/shm.h"

enum { EAL_ARGS = 20 + 2 * RAILS_MAX, EAL_TEXT = 1024 + RAILS_MAX * PORT_SPEC_TEXT };

/* In the environment: huge pages have turned out to be too few. */
#define ORDINARY_PAGES "SARISSA_ORDINARY_PAGES"

struct eal_args {
	char text[EAL_TEXT];
	unsigned used;
	int count;
	char *arg[EAL_ARGS];
};

__attribute__((format(printf, 2, 3))) static void eal_args_add(struct eal_args *a,
							       const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vsnprintf(a->text + a->used, EAL_TEXT - a->used, format, list);
	va_end(list);
	if (n < 0 || a->used + (unsigned)n >= EAL_TEXT || a->count == EAL_ARGS - 1)
		return; /* cannot happen: the options bound every part */
	a->arg[a->count++] = a->text + a->used;
	a->used += (unsigned)n + 1;
}

static bool eal_has_rights_for(const struct options *o, uint64_t have)
{
	bool enough = (o->port.type->capabilities & ~have) == 0;
	if (!enough)
		log_error("port %s needs %s", o->port.text, o->port.type->lacks);
	return enough;
}

bool eal_has_rights(const struct options *o)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	if (syscall(SYS_capget, &header, data) < 0)
		return true; /* then the kernel will say */
	uint64_t have = data[0].effective | (uint64_t)data[1].effective << 32;
	if (have & 1ull << CAP_SYS_ADMIN)
		have |= 1ull << CAP_BPF;
	for (unsigned k = 0; k < o->rails; k++)
		if (!eal_has_rights_for(&o[k], have))
			return false;
	return true;
}

/* "0-3,5": the cores this process may use, as far as DPDK counts them. */
static void eal_allowed_cores(char *out, unsigned size)
{
	enum { LONGEST = sizeof(",1234-1234") };
	cpu_set_t set;
	unsigned used = 0;
	snprintf(out, size, "0");
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (int c = 0, last; c < RTE_MAX_LCORE && used + LONGEST < size; c = last + 1) {
		last = c;
		if (!CPU_ISSET(c, &set))
			continue;
		while (last + 1 < RTE_MAX_LCORE && CPU_ISSET(last + 1, &set))
			last++;
		used += (unsigned)snprintf(out + used, size - used, "%s%d-%d", used ? "," : "", c,
					   last);
	}
}

/* EAL prints its own usage when a core is not there. */
static bool eal_has_cores(const struct options *o)
{
	char path[64];
	for (unsigned w = 0; o->cores && w < o->workers; w++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology", o->core[w]);
		if (o->core[w] < RTE_MAX_LCORE && access(path, F_OK) == 0)
			continue;
		log_error("--cores %s: no core %d is in use here: see lscpu", o->cores, o->core[w]);
		return false;
	}
	return true;
}

static void eal_args_lcores(struct eal_args *a, const struct options *o)
{
	char allowed[256], map[640];
	eal_allowed_cores(allowed, sizeof(allowed));
	if (!o->cores) {
		eal_args_add(a, "--lcores=(0-%u)@(%s)", o->workers, allowed);
		return;
	}
	unsigned used = (unsigned)snprintf(map, sizeof(map), "0@(%s)", allowed);
	for (unsigned w = 0; w < o->workers; w++)
		used += (unsigned)snprintf(map + used, sizeof(map) - used, ",%u@%d", w + 1,
					   o->core[w]);
	eal_args_add(a, "--lcores=%s", map);
}

static bool eal_has_cards(const struct options *o)
{
	for (unsigned k = 0; k < o->rails; k++)
		if (o[k].port.type->card)
			return true;
	return false;
}

static void eal_args_build(struct eal_args *a, const struct options *o, bool huge, unsigned mib)
{
	eal_args_add(a, "sarissa-dataplane");
	eal_args_lcores(a, o);
	eal_args_add(a, "-m"); /* taken at once, whole or not at all */
	eal_args_add(a, "%u", mib);
	if (huge) {
		eal_args_add(a, "--in-memory");
	} else { /* DPDK 22.11 refuses --in-memory without huge pages; this is the rest of it */
		eal_args_add(a, "--no-huge");
		eal_args_add(a, "--no-shconf");
	}
	for (unsigned k = 0; k < o->rails; k++)
		if (o[k].port.type->card) {
			eal_args_add(a, "-a");
			eal_args_add(a, "%s", o[k].port.name);
		}
	if (!eal_has_cards(o)) {
		eal_args_add(a, "--no-pci");
		eal_args_add(a,
			     "--iova-mode=va"); /* pools in one piece; nobody reads them by DMA */
	}
	if (o->log_level >= LOG_DEBUG)
		eal_args_add(a, "--log-level=lib.*|pmd.*:info");
	a->arg[a->count] = NULL;
}

/* EAL starts only once per process. If another process has taken the huge pages between our check
 * and EAL's, the program is executed again, without them. Returns only if that fails. */
static void eal_start_over(void)
{
	static char text[32768];
	char *argv[128];
	unsigned count = 0;
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t bytes = file ? fread(text, 1, sizeof(text), file) : 0;
	if (file)
		fclose(file);
	if (bytes == 0 || bytes == sizeof(text))
		return;
	for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
		if (count == sizeof(argv) / sizeof(*argv) - 1)
			return;
		argv[count++] = text + at;
	}
	argv[count] = NULL;
	log_info("others took the huge pages first: starting over in ordinary ones");
	setenv(ORDINARY_PAGES, "1", 1);
	close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC); /* EAL's pipes and timers */
	execv("/proc/self/exe", argv);
}

/* MiB for the buffers in rings that are longer than usual. */
static unsigned eal_more_mib(const struct options *o, const struct port *p, unsigned queues)
{
	enum { USUAL = 1024, AROUND = 2048 /* bytes beside the MTU, with all rounding */ };
	unsigned more = o->descriptors > USUAL ? 2u * (o->descriptors - USUAL) : 0;
	return queues * (more * (p->mtu + AROUND) >> 20);
}

/* Of all ports, and what the rest needs. */
static unsigned eal_mib(const struct options *o, const struct port *p, bool huge)
{
	unsigned mib = EAL_MIB;
	for (unsigned k = 0; k < o->rails; k++)
		if (!p[k].type->sockets)
			mib += pool_mib(p[k].type->paged, p[k].mtu, p[k].queues, huge) +
			       eal_more_mib(&o[k], &p[k], p[k].queues);
	return mib;
}

int eal_start(const struct options *o, const struct port *p, bool *huge_pages)
{
	static struct eal_args a;
	if (!eal_has_cores(o))
		return -EINVAL;
	unsigned mib = eal_mib(o, p, true);
	bool huge = mib > EAL_MIB && !getenv(ORDINARY_PAGES) &&
		    shm_huge_free_bytes() >= (uint64_t)mib << 20;
	if (!huge)
		mib = eal_mib(o, p, false);
	eal_args_build(&a, o, huge, mib);
	/* its telemetry socket goes to RUNDIR/dpdk/rte: every node has its own */
	setenv("RUNTIME_DIRECTORY", o->rundir, 1);
	log_take_dpdk();
	if (rte_eal_init(a.count, a.arg) < 0) {
		int error = rte_errno;
		if (huge && (error == ENOMEM || error == EACCES)) /* too few left, or none */
			eal_start_over();
		log_error("DPDK does not start (%s%s%s): %s", rte_strerror(error),
			  *log_dpdk_error() ? ", " : "", log_dpdk_error(),
			  eal_has_cards(o) ? "check the address of the card, then see "
					     "--log-level debug"
					   : "see --log-level debug");
		return -EIO;
	}
	*huge_pages = huge;
	return 0;
}
