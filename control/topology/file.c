/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a topology file: from the YAML document that libyaml makes of it to a struct topology.
 * Every key and value is checked where it stands, so that an error has its line; check.c looks at
 * what can only be seen of the whole.
 */
#include "file.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>
#include "units.h"

struct reader {
	const char *path;
	yaml_document_t *document;
	struct topology *t;
	char *error;
};

__attribute__((format(printf, 3, 4))) static bool file_fail(struct reader *r, const yaml_node_t *at,
							    const char *format, ...)
{
	char text[TOPOLOGY_WHY_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(r->error, TOPOLOGY_ERROR_BYTES, "%s:%zu: %s", r->path,
		 at ? at->start_mark.line + 1 : 1, text);
	return false;
}

/* The text of a scalar; NULL, with the error set: it is none. */
static const char *file_text(struct reader *r, const yaml_node_t *n, const char *what)
{
	if (n->type == YAML_SCALAR_NODE &&
	    strlen((const char *)n->data.scalar.value) == n->data.scalar.length)
		return (const char *)n->data.scalar.value;
	file_fail(r, n, "%s is a single word", what);
	return NULL;
}

static bool file_name(struct reader *r, const yaml_node_t *n, const char *what,
		      char out[TOPOLOGY_NAME_MAX + 1])
{
	const char *text = file_text(r, n, what);

	if (!text)
		return false;
	if (*text == '\0' || strlen(text) > TOPOLOGY_NAME_MAX)
		return file_fail(r, n, "%s has 1 to %d bytes", what, TOPOLOGY_NAME_MAX);
	strcpy(out, text);
	return true;
}

static bool file_number(struct reader *r, const yaml_node_t *n, const char *what, uint32_t most,
			uint32_t *out)
{
	const char *text = file_text(r, n, what);
	char *end;
	unsigned long v;

	if (!text)
		return false;
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || v > most)
		return file_fail(r, n, "%s '%.40s' is not a number from 0 to %u", what, text, most);
	*out = (uint32_t)v;
	return true;
}

static bool file_rate(struct reader *r, const yaml_node_t *n, uint64_t *out)
{
	const char *text = file_text(r, n, "rate");

	if (!text)
		return false;
	if (units_rate(text, out))
		return true;
	return file_fail(r, n,
			 "rate '%.40s' is no rate above 0: write bits per second, as 100M or 25G",
			 text);
}

static bool file_latency(struct reader *r, const yaml_node_t *n, uint64_t *out)
{
	const char *text = file_text(r, n, "latency");

	if (!text)
		return false;
	if (units_time(text, out))
		return true;
	return file_fail(r, n, "latency '%.40s' is no time: write it as 20us", text);
}

/* ---- mappings and sequences ------------------------------------------------------------------ */

/* Takes the value of one key of a mapping: false, with the error set, when it does not hold. */
typedef bool reader_take(struct reader *r, const yaml_node_t *value, void *arg);

struct reader_key {
	const char *name;
	reader_take *take;
	bool needed;
};

/* Each pair of a mapping goes to its key; unknown, repeated and missing keys are errors. */
static bool file_mapping(struct reader *r, const yaml_node_t *n, const char *what,
			 const struct reader_key *key, size_t keys, void *arg)
{
	uint32_t seen = 0;

	if (!n || n->type != YAML_MAPPING_NODE)
		return file_fail(r, n, "%s is a mapping of keys", what);
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
	     p++) {
		const yaml_node_t *name = yaml_document_get_node(r->document, p->key);
		const yaml_node_t *value = yaml_document_get_node(r->document, p->value);
		const char *text = file_text(r, name, "a key");
		size_t k = 0;

		if (!text)
			return false;
		while (k < keys && strcmp(text, key[k].name) != 0)
			k++;
		if (k == keys)
			return file_fail(r, name, "%s has no key '%.40s'", what, text);
		if (seen >> k & 1)
			return file_fail(r, name, "the key '%s' stands twice", text);
		seen |= 1u << k;
		if (!key[k].take(r, value, arg))
			return false;
	}
	for (size_t k = 0; k < keys; k++)
		if (key[k].needed && !(seen >> k & 1))
			return file_fail(r, n, "%s needs the key '%s'", what, key[k].name);
	return true;
}

/* Each item of a sequence, at most so many. */
static bool file_sequence(struct reader *r, const yaml_node_t *n, const char *what, size_t most,
			  reader_take *take, void *arg)
{
	if (n->type != YAML_SEQUENCE_NODE)
		return file_fail(r, n, "%s is a list", what);
	if ((size_t)(n->data.sequence.items.top - n->data.sequence.items.start) > most)
		return file_fail(r, n, "%s has more than %zu entries", what, most);
	for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top;
	     i++)
		if (!take(r, yaml_document_get_node(r->document, *i), arg))
			return false;
	return true;
}

/* ---- switches and links ---------------------------------------------------------------------- */

/* Its index, or the number of switches. */
static uint32_t file_find_switch(const struct topology *t, const char *name)
{
	uint32_t i = 0;

	while (i < t->switches && strcmp(t->switch_[i].name, name) != 0)
		i++;
	return i;
}

static bool file_take_switch(struct reader *r, const yaml_node_t *n, void *arg)
{
	struct topology *t = r->t;
	struct topology_switch *s = &t->switch_[t->switches];

	if (!file_name(r, n, "a switch", s->name))
		return false;
	if (strspn(s->name, "0123456789") == strlen(s->name))
		return file_fail(r, n, "switch '%s': a name of digits alone is a node's", s->name);
	if (file_find_switch(t, s->name) < t->switches)
		return file_fail(r, n, "switch '%s' is named twice", s->name);
	t->switches++;
	return true;
}

static bool file_take_switches(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_sequence(r, n, "switches", TOPOLOGY_SWITCHES_MAX, file_take_switch, NULL);
}

static bool file_known_switch(struct reader *r, const yaml_node_t *n, uint32_t *out)
{
	const char *text = file_text(r, n, "a switch");

	if (!text)
		return false;
	*out = file_find_switch(r->t, text);
	if (*out < r->t->switches)
		return true;
	return file_fail(r, n, "unknown switch '%.40s': list it under 'switches'", text);
}

struct trunk_ends {
	struct topology_trunk *trunk;
	uint32_t count;
};

static bool file_take_end(struct reader *r, const yaml_node_t *n, void *arg)
{
	struct trunk_ends *e = arg;

	return file_known_switch(r, n, e->count++ ? &e->trunk->b : &e->trunk->a);
}

static bool file_take_between(struct reader *r, const yaml_node_t *n, void *arg)
{
	struct trunk_ends ends = {.trunk = arg};
	struct topology_trunk *l = arg;

	if (!file_sequence(r, n, "between", 2, file_take_end, &ends))
		return false;
	if (ends.count != 2 || l->a == l->b)
		return file_fail(r, n, "a link is between two switches");
	for (const struct topology_trunk *o = r->t->trunk; o < l; o++)
		if ((o->a == l->a && o->b == l->b) || (o->a == l->b && o->b == l->a))
			return file_fail(r, n, "the link between '%s' and '%s' is named twice",
					 r->t->switch_[l->a].name, r->t->switch_[l->b].name);
	return true;
}

static bool file_take_trunk_rate(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_rate(r, n, &((struct topology_trunk *)arg)->bytes_per_s);
}

static bool file_take_trunk_latency(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_latency(r, n, &((struct topology_trunk *)arg)->latency_ns);
}

static bool file_take_trunk(struct reader *r, const yaml_node_t *n, void *arg)
{
	static const struct reader_key key[] = {{"between", file_take_between, true},
						{"rate", file_take_trunk_rate, true},
						{"latency", file_take_trunk_latency, false}};

	if (!file_mapping(r, n, "a link", key, 3, &r->t->trunk[r->t->trunks]))
		return false;
	r->t->trunks++;
	return true;
}

static bool file_take_links(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_sequence(r, n, "links", TOPOLOGY_LINKS_MAX, file_take_trunk, NULL);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool file_take_to(struct reader *r, const yaml_node_t *n, void *arg)
{
	struct topology_rail *rail = arg;
	const char *text = file_text(r, n, "to");

	if (!text)
		return false;
	rail->to_node = *text && strspn(text, "0123456789") == strlen(text);
	/* a node may stand further below: check.c turns its number into an index */
	return rail->to_node ? file_number(r, n, "node", NETWORK_NODES_MAX - 1, &rail->to)
			     : file_known_switch(r, n, &rail->to);
}

static bool file_take_rail_rate(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_rate(r, n, &((struct topology_rail *)arg)->bytes_per_s);
}

static bool file_take_rail_latency(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_latency(r, n, &((struct topology_rail *)arg)->latency_ns);
}

static bool file_take_rail_numa(struct reader *r, const yaml_node_t *n, void *arg)
{
	uint32_t numa = 0;

	if (!file_number(r, n, "numa", 255, &numa))
		return false;
	((struct topology_rail *)arg)->numa = (int)numa;
	return true;
}

static bool file_take_rail(struct reader *r, const yaml_node_t *n, void *arg)
{
	static const struct reader_key key[] = {{"to", file_take_to, true},
						{"rate", file_take_rail_rate, true},
						{"latency", file_take_rail_latency, false},
						{"numa", file_take_rail_numa, false}};
	struct topology_node *node = arg;
	struct topology_rail *rail = &node->rail[node->rails];

	rail->numa = -1;
	if (!file_mapping(r, n, "a rail", key, 4, rail))
		return false;
	node->rails++;
	return true;
}

static bool file_take_rails(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_sequence(r, n, "rails", TOPOLOGY_RAILS_MAX, file_take_rail, arg);
}

static bool file_take_number(struct reader *r, const yaml_node_t *n, void *arg)
{
	struct topology_node *node = arg;

	if (!file_number(r, n, "node", NETWORK_NODES_MAX - 1, &node->number))
		return false;
	for (const struct topology_node *o = r->t->node; o < node; o++)
		if (o->number == node->number)
			return file_fail(r, n, "node %u is named twice", node->number);
	return true;
}

struct coordinates {
	uint32_t level, place, weight;
};

static bool file_take_coordinate(struct reader *r, const yaml_node_t *n, void *arg)
{
	const struct shape *s = &r->t->shape;
	struct coordinates *c = arg;
	uint32_t v;

	if (c->level == s->levels)
		return file_fail(r, n, "'at' has one coordinate for each of %u levels", s->levels);
	if (!file_number(r, n, "coordinate", s->members[c->level] - 1, &v))
		return false;
	c->place += v * c->weight;
	c->weight *= s->members[c->level++];
	return true;
}

static bool file_take_at(struct reader *r, const yaml_node_t *n, void *arg)
{
	struct topology_node *node = arg;
	struct coordinates c = {.weight = 1};

	if (r->t->shape.kind == SHAPE_NONE)
		return file_fail(r, n, "coordinates need a 'shape' before the nodes");
	if (!file_sequence(r, n, "at", NETWORK_LEVELS_MAX, file_take_coordinate, &c))
		return false;
	if (c.level != r->t->shape.levels)
		return file_fail(r, n, "'at' has %u coordinates, the shape has %u levels", c.level,
				 r->t->shape.levels);
	for (const struct topology_node *o = r->t->node; o < node; o++)
		if (o->place == c.place)
			return file_fail(r, n, "node %u stands there already", o->number);
	node->place = c.place;
	return true;
}

static bool file_take_domain(struct reader *r, const yaml_node_t *n, void *arg)
{
	return file_name(r, n, "domain", ((struct topology_node *)arg)->domain);
}

static bool file_take_node(struct reader *r, const yaml_node_t *n, void *arg)
{
	static const struct reader_key key[] = {{"node", file_take_number, true},
						{"at", file_take_at, false},
						{"domain", file_take_domain, false},
						{"rails", file_take_rails, true}};
	struct topology_node *node = &r->t->node[r->t->nodes];

	node->place = NETWORK_NONE;
	node->line = (uint32_t)n->start_mark.line + 1;
	if (!file_mapping(r, n, "a node", key, 4, node))
		return false;
	if (node->rails == 0)
		return file_fail(r, n, "node %u has no rails", node->number);
	if (r->t->shape.kind != SHAPE_NONE && node->place == NETWORK_NONE)
		return file_fail(r, n, "node %u needs coordinates: 'at'", node->number);
	r->t->nodes++;
	return true;
}

static bool file_take_nodes(struct reader *r, const yaml_node_t *n, void *arg)
{
	r->t->line = (uint32_t)n->start_mark.line + 1;
	return file_sequence(r, n, "nodes", NETWORK_NODES_MAX, file_take_node, NULL);
}

static bool file_take_shape(struct reader *r, const yaml_node_t *n, void *arg)
{
	const char *text = file_text(r, n, "shape"), *wrong;

	if (!text)
		return false;
	if (r->t->nodes > 0)
		return file_fail(r, n, "'shape' stands before the nodes");
	wrong = shape_parse(text, &r->t->shape);
	return wrong ? file_fail(r, n, "shape '%.40s': %s", text, wrong) : true;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool file_document(struct reader *r, FILE *file)
{
	static const struct reader_key key[] = {{"shape", file_take_shape, false},
						{"switches", file_take_switches, false},
						{"nodes", file_take_nodes, true},
						{"links", file_take_links, false}};
	yaml_document_t document;
	yaml_parser_t parser;
	bool good;

	if (!yaml_parser_initialize(&parser)) {
		snprintf(r->error, TOPOLOGY_ERROR_BYTES, "%s: out of memory", r->path);
		return false;
	}
	yaml_parser_set_input_file(&parser, file);
	good = yaml_parser_load(&parser, &document);
	if (!good) {
		snprintf(r->error, TOPOLOGY_ERROR_BYTES, "%s:%zu: no YAML: %s", r->path,
			 parser.problem_mark.line + 1,
			 parser.problem ? parser.problem : "no memory");
	} else {
		const yaml_node_t *root = yaml_document_get_root_node(&document);

		r->document = &document;
		good = root ? file_mapping(r, root, "a topology", key, 4, NULL)
			    : file_fail(r, NULL,
					"the file is empty: see 'sarissa topology flat:4'");
		yaml_document_delete(&document);
	}
	yaml_parser_delete(&parser);
	return good;
}

static struct topology *topology_new(void)
{
	struct topology *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->node = calloc(NETWORK_NODES_MAX, sizeof(*t->node));
	t->switch_ = calloc(TOPOLOGY_SWITCHES_MAX, sizeof(*t->switch_));
	t->trunk = calloc(TOPOLOGY_LINKS_MAX, sizeof(*t->trunk));
	if (t->node && t->switch_ && t->trunk)
		return t;
	topology_free(t);
	return NULL;
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	free(t->node);
	free(t->switch_);
	free(t->trunk);
	free(t);
}

struct topology *topology_read(const char *path, char error[TOPOLOGY_ERROR_BYTES])
{
	struct reader r = {.path = path, .t = topology_new(), .error = error};
	FILE *file = fopen(path, "re");
	char text[TOPOLOGY_WHY_BYTES];
	struct stat st;
	bool good = false;

	if (!r.t)
		snprintf(error, TOPOLOGY_ERROR_BYTES, "%s: out of memory", path);
	else if (!file || fstat(fileno(file), &st) < 0)
		snprintf(error, TOPOLOGY_ERROR_BYTES, "%s: %s%s", path, strerror(errno),
			 errno == ENOENT ? ": name a topology file, which 'sarissa topology SHAPE' "
					   "writes"
					 : "");
	else if (!S_ISREG(st.st_mode) || st.st_size > TOPOLOGY_FILE_BYTES_MAX)
		snprintf(error, TOPOLOGY_ERROR_BYTES,
			 "%s: a topology is a regular file of at most %d MiB", path,
			 TOPOLOGY_FILE_BYTES_MAX >> 20);
	else if (file_document(&r, file)) {
		good = topology_complete(r.t, text);
		if (!good)
			snprintf(error, TOPOLOGY_ERROR_BYTES, "%s:%s", path, text);
	}
	if (file)
		fclose(file);
	if (good)
		return r.t;
	topology_free(r.t);
	return NULL;
}
