/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short calls of libsarissa, one after the other, each timed: does what it reads on standard input,
 * answers each line with one JSON object. Ends with its input. An argument is the number of the
 * user and group that it becomes first.
 *
 *   put PREFIX COUNT BYTES   objects PREFIX0, PREFIX1, ...           {"ns", "cpu_ns"}
 *   info NAME COUNT          asks the directory for one, COUNT times {"ns", "cpu_ns"}
 *   get PREFIX COUNT         gets each of them once, and releases it {"ns", "cpu_ns"}
 *   rm PREFIX COUNT          removes them                            {}
 *
 * {"error"} instead when a call fails.
 */
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "payload.h"
#include "samples.h"
#include "sarissa/sarissa.h"

enum { OBJECT_BYTES_MAX = 64 << 20, TIMEOUT_S = 10 };

struct line {
	char verb[16], name[64];
	unsigned count, bytes;
};

static sar *node;
static struct samples samples;

static sar_id lookup_id(const struct line *l, unsigned i, char name[SAR_NAME_MAX])
{
	int length = snprintf(name, SAR_NAME_MAX, "%s%u", l->name, i);

	return sar_id_of(name, (size_t)length);
}

static int lookup_put(const struct line *l)
{
	static uint8_t data[OBJECT_BYTES_MAX];
	char name[SAR_NAME_MAX];

	if (l->bytes > sizeof(data))
		return -EFBIG;
	for (unsigned i = 0; i < l->count; i++) {
		sar_id id = lookup_id(l, i, name);
		payload_fill(data, l->bytes, i);
		int64_t start_ns = payload_now_ns();
		int r = sar_put(node, id, name, data, l->bytes);
		samples.ns[samples.count++] = payload_now_ns() - start_ns;
		if (r != 0)
			return r;
	}
	return 0;
}

static int lookup_info(const struct line *l)
{
	sar_id id = sar_id_of(l->name, strlen(l->name));
	sar_info info;

	for (unsigned i = 0; i < l->count; i++) {
		int64_t start_ns = payload_now_ns();
		int r = sar_info_get(node, id, &info);
		samples.ns[samples.count++] = payload_now_ns() - start_ns;
		if (r != 0)
			return r;
	}
	return 0;
}

/* The bytes are checked outside of the time. */
static int lookup_get(const struct line *l)
{
	static uint8_t right[OBJECT_BYTES_MAX];
	char name[SAR_NAME_MAX];
	sar_buffer b;

	for (unsigned i = 0; i < l->count; i++) {
		sar_id id = lookup_id(l, i, name);
		int64_t start_ns = payload_now_ns();
		int r = sar_get(node, id, TIMEOUT_S * 1000000000ll, &b);
		samples.ns[samples.count++] = payload_now_ns() - start_ns;
		if (r != 0)
			return r;
		payload_fill(right, b.size < sizeof(right) ? b.size : 0, i);
		bool same = b.size < sizeof(right) && memcmp(right, b.data, b.size) == 0;
		sar_release(node, &b);
		if (!same)
			return -EBADMSG;
	}
	return 0;
}

static int lookup_rm(const struct line *l)
{
	char name[SAR_NAME_MAX];

	for (unsigned i = 0; i < l->count; i++) {
		int r = sar_delete(node, lookup_id(l, i, name));
		if (r != 0)
			return r;
	}
	return 0;
}

static const struct verb {
	const char *name;
	int (*run)(const struct line *l);
	bool timed;
} verbs[] = {{"put", lookup_put, true},
	     {"info", lookup_info, true},
	     {"get", lookup_get, true},
	     {"rm", lookup_rm, false}};

static void lookup_do(const char *text)
{
	struct line l = {0};
	int words = sscanf(text, "%15s %63s %u %u", l.verb, l.name, &l.count, &l.bytes);

	for (size_t i = 0; words >= 3 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(l.verb, verbs[i].name) != 0 || l.count > SAMPLES_MAX)
			continue;
		samples_begin(&samples);
		int r = verbs[i].run(&l);
		if (r != 0)
			printf("{\"error\": \"%s: %s (%s)\"}\n", l.verb, sar_strerror(r),
			       sar_error_detail());
		else if (verbs[i].timed)
			samples_print(&samples);
		else
			printf("{}\n");
		return;
	}
	printf("{\"error\": \"not understood\"}\n");
}

/* Here, not by setpriv: a user without access to the checkout would find no library there. */
static int become(const char *user)
{
	char *end;
	unsigned long id = strtoul(user, &end, 10);
	if (!*user || *end || setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 ||
	    setresuid(id, id, id) < 0) {
		printf("{\"error\": \"cannot become user %s: name its number, as root\"}\n", user);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char line[256];
	if (argc > 1 && become(argv[1]) < 0)
		return 1;
	int r = sar_open(NULL, &node);

	if (r != 0) {
		printf("{\"error\": \"open: %s (%s)\"}\n", sar_strerror(r), sar_error_detail());
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		lookup_do(line);
		fflush(stdout);
	}
	sar_close(node);
	return 0;
}
