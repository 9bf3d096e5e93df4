/* SPDX-License-Identifier: BSD-3-Clause */
/* Each field of control.proto has a row, and each row is of a field that it can carry. */
#include "fixtures/control_test.h"
#include "rpc/rows.h"

enum { TABLES = 2 * ROWS_CASES };

static const struct rows *tables[TABLES];
static unsigned count;

static void add(const struct rows *t)
{
	assert_true(count < TABLES);
	tables[count++] = t;
	for (unsigned i = 0; i < t->count; i++)
		if (t->row[i].of)
			add(t->row[i].of);
}

static int collect(void **state)
{
	count = 0;
	add(&rows_plan);
	for (unsigned i = 0; i < ROWS_CASES; i++)
		if (rows_kinds[i].rows)
			add(rows_kinds[i].rows);
	return 0;
}

static bool has_row(const ProtobufCMessageDescriptor *of, const ProtobufCFieldDescriptor *f)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; tables[i]->wire == of && k < tables[i]->count; k++)
			if (tables[i]->row[k].wire == f->offset)
				return true;
	return false;
}

static void every_field_has_a_row(void **state)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < tables[i]->wire->n_fields; k++) {
			const ProtobufCFieldDescriptor *f = &tables[i]->wire->fields[k];

			if (has_row(tables[i]->wire, f) == (strcmp(f->name, "plan_flags") == 0))
				fail_msg("%s.%s", tables[i]->wire->name, f->name);
		}
}

static const ProtobufCFieldDescriptor *field_of(const struct rows *t, const struct row *r)
{
	for (unsigned k = 0; k < t->wire->n_fields; k++)
		if (t->wire->fields[k].offset == r->wire)
			return &t->wire->fields[k];
	fail_msg("%s: no field at %u", t->wire->name, r->wire);
	return NULL;
}

static bool fits(const struct row *r, const ProtobufCFieldDescriptor *f)
{
	bool many = r->op == ROW_ARRAY || r->op == ROW_WHOLE || r->op >= ROW_LIST;

	if (many != (f->label == PROTOBUF_C_LABEL_REPEATED) ||
	    (many && r->n != f->quantifier_offset))
		return false;
	if (r->op >= ROW_PART)
		return f->type == PROTOBUF_C_TYPE_MESSAGE && f->descriptor == r->of->wire;
	if (r->op >= ROW_SIXTEEN && r->op <= ROW_BYTES)
		return f->type == PROTOBUF_C_TYPE_BYTES;
	switch (f->type) {
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return r->op == ROW_64 || (many && r->size == 8);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return r->op <= ROW_32 || (many && r->size == 4);
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_INT32:
		return r->op <= ROW_32;
	case PROTOBUF_C_TYPE_SINT32:
		return r->op == ROW_32 || r->op == ROW_DELTA_32;
	case PROTOBUF_C_TYPE_SINT64:
		return r->op == ROW_DELTA_64;
	default:
		return false;
	}
}

static void every_row_fits_its_field(void **state)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < tables[i]->count; k++) {
			const struct row *r = &tables[i]->row[k];
			const ProtobufCFieldDescriptor *f = field_of(tables[i], r);

			if (!fits(r, f))
				fail_msg("%s.%s", tables[i]->wire->name, f->name);
		}
}

static void every_kind_has_a_body_and_a_name(void **state)
{
	for (uint32_t kind = 1; kind < MESSAGE_KINDS; kind++) {
		assert_int_equal(rows_kinds[rows_cases[kind]].kind, kind);
		assert_string_not_equal(codec_name(kind), "none");
	}
	assert_string_equal(codec_name(MESSAGE_PULL_REPLY), "PULL_REPLY");
	assert_string_equal(codec_name(MESSAGE_KINDS), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_has_a_row),
		cmocka_unit_test(every_row_fits_its_field),
		cmocka_unit_test(every_kind_has_a_body_and_a_name),
	};

	return cmocka_run_group_tests(tests, collect, NULL);
}
