/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_spec.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* A row for each type, in the order of --help. No header declares them: none is named elsewhere. */
#define PORT_TYPES(X) X(af_xdp) X(udp) X(tap) X(memif) X(vhost) X(ring) X(pci) X(vdev)

#define X(name) extern const struct port_type port_##name;
PORT_TYPES(X)
#undef X

const struct port_type *const port_types[] = {
#define X(name) &port_##name,
	PORT_TYPES(X)
#undef X
		NULL};

bool port_spec_fail(const char **why, const char *text)
{
	*why = text;
	return false;
}

const char *port_spec_value(const char *option, const char *key)
{
	size_t n = strlen(key);
	return strncmp(option, key, n) == 0 && option[n] == '=' ? option + n + 1 : NULL;
}

bool port_spec_interface(struct port_spec *out, const char **why)
{
	return strlen(out->name) < IFNAMSIZ ||
	       port_spec_fail(why, "an interface name has at most 15 bytes");
}

static const struct port_type *port_spec_type(const char *text)
{
	size_t length = strcspn(text, ":");
	for (const struct port_type *const *type = port_types; text[length] && *type; type++)
		if (strlen((*type)->name) == length && memcmp(text, (*type)->name, length) == 0)
			return *type;
	return NULL;
}

static bool port_spec_no_type(const char **why)
{
	static char text[160];
	int n = snprintf(text, sizeof(text), "it must start with ");
	for (const struct port_type *const *type = port_types; *type; type++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s:",
			      type == port_types ? ""
			      : type[1]		 ? ", "
						 : " or ",
			      (*type)->name);
	return port_spec_fail(why, text);
}

static bool port_spec_options(char *next, struct port_spec *out, const char **why)
{
	while (next) {
		char *option = next + 1;
		*next = 0;
		next = strchr(option, ',');
		if (next)
			*next = 0;
		if (!out->type->option)
			return port_spec_fail(why, "this kind of port takes no options");
		if (!out->type->option(option, out, why))
			return false;
	}
	return true;
}

bool port_spec_parse(const char *text, struct port_spec *out, const char **why)
{
	memset(out, 0, sizeof(*out));
	out->type = port_spec_type(text);
	if (!out->type)
		return port_spec_no_type(why);
	if (strlen(text) >= sizeof(out->text))
		return port_spec_fail(why, "it is longer than 255 bytes");
	strcpy(out->text, text);
	strcpy(out->name, strchr(text, ':') + 1);
	if (!out->type->chosen && !port_spec_options(strchr(out->name, ','), out, why))
		return false;
	if (!*out->name)
		return port_spec_fail(why, "a name is missing after the colon");
	return !out->type->check_name || out->type->check_name(out, why);
}

/* Text up to its first comma. */
static bool port_spec_same_head(const char *a, const char *b)
{
	size_t n = strcspn(a, ",");
	return strcspn(b, ",") == n && strncmp(a, b, n) == 0;
}

static bool port_spec_of_interface(const struct port_spec *s)
{
	return s->type->kernel_address && !s->has_addr;
}

bool port_spec_same(const struct port_spec *a, const struct port_spec *b)
{
	if (port_spec_of_interface(a) && port_spec_of_interface(b))
		return strcmp(a->name, b->name) == 0;
	if (a->has_addr && b->has_addr)
		return memcmp(a->addr.ip, b->addr.ip, sizeof(a->addr.ip)) == 0;
	return a->type == b->type && port_spec_same_head(a->name, b->name);
}
