/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of the extension, one row each: how its arguments are read, how it is done, and
 * how its result becomes an object of Python. handle.c makes of each row a method that waits, and
 * completions.c makes one that submits. Neither of them knows what an operation does.
 */
#ifndef SARISSA_CLIENT_PYTHON_EXTENSION_OPERATIONS_H
#define SARISSA_CLIENT_PYTHON_EXTENSION_OPERATIONS_H

#include "python.h"
#include "queue/submit.h"
#include "sarissa/group.h"

/* Those that a queue has as well. */
#define OPERATIONS_QUEUED(ROW)  \
	ROW(get)                \
	ROW(begin)              \
	ROW(wait_for)           \
	ROW(get_into)           \
	ROW(get_ranges)         \
	ROW(put)                \
	ROW(create)             \
	ROW(info)               \
	ROW(reduce)             \
	ROW(reduce_sources)     \
	ROW(reduce_progress)    \
	ROW(allreduce)          \
	ROW(gather)             \
	ROW(broadcast)          \
	ROW(group_create)       \
	ROW(group_remove)       \
	ROW(group_policy)       \
	ROW(group_info)         \
	ROW(group_join)         \
	ROW(group_leave)        \
	ROW(group_push)         \
	ROW(group_pull)         \
	ROW(group_contributors) \
	ROW(delete)
/* Those of a queue alone. */
#define OPERATIONS_SUBMITTED(ROW) ROW(watch)
/* Short ones, which only wait. */
#define OPERATIONS_CALLED(ROW) \
	ROW(list)              \
	ROW(nodes)             \
	ROW(holders)           \
	ROW(waits_for)         \
	ROW(lease)             \
	ROW(lease_end)         \
	ROW(use_lease)         \
	ROW(hold)              \
	ROW(drop)              \
	ROW(expire)            \
	ROW(device_get)        \
	ROW(device_put)        \
	ROW(policy_explain)

/* Copies of what a callback is told. */
struct pile {
	void *item;
	size_t count, room;
};

/* One operation, from its arguments to its result. C uses what is here until it ends. */
struct call {
	struct handle *handle;
	struct python_name name, label; /* label: in place of the name in lists and errors */
	struct python_buffer data;
	PyObject *used; /* the view or member that it is about */
	sar_member *member;
	const char *text, *more; /* in the arguments */
	const char *said;	 /* of a completion, its words */
	long long timeout_ns;
	unsigned long long number;
	unsigned long long device, device_bytes, device_stream; /* memory of a GPU */
	unsigned parts; /* operations of a queue that it takes, less one */
	unsigned count; /* of what follows */
	sar_id *ids;
	uint32_t *nodes;
	sar_buffer *got;
	sar_range *ranges;
	sar_contributor *contributors;
	sar_member_info *members;
	struct pile pile;
	struct reduce_listed listed;
	union {
		sar_put_options options;
		sar_reduction how;
		sar_group_spec spec;
		sar_group_result pulled;
		sar_group_info group;
		sar_info info;
		uint64_t lease;
		sar_member *joined;
		char words[SAR_DETAIL_MAX];
	};
};

struct operation {
	/* -1 with an exception */
	int (*read)(struct call *c, PyObject *args);
	/* NULL: it has no form for queues */
	int (*submit)(sar_queue *q, struct call *c, uint64_t ticket);
	/* Waits; NULL: as submit in a queue of its own. */
	int (*wait)(struct call *c);
	/* NULL: None */
	PyObject *(*result)(struct call *c, const sar_completion *end);
	bool partial; /* a failure has a result as well, which the exception keeps as `found` */
};

#define OPERATIONS_DECLARE(name) extern const struct operation operation_##name;
OPERATIONS_QUEUED(OPERATIONS_DECLARE)
OPERATIONS_SUBMITTED(OPERATIONS_DECLARE)
OPERATIONS_CALLED(OPERATIONS_DECLARE)

/* Done in a method of a Handle: the result. look: keyword, called several times a second. */
PyObject *operations_wait(const struct operation *row, PyObject *handle, PyObject *args,
			  PyObject *keywords);
/* Reads the arguments. NULL with an exception; else to be freed. */
struct call *operations_read(const struct operation *row, struct handle *handle, PyObject *args);
void operations_free(struct call *c);
/* The result, a new reference; NULL with an exception. */
PyObject *operations_result(const struct operation *row, struct call *c, const sar_completion *end);
/* How the object is called where words have its id only. id: of a gather, the one that has failed.
 */
struct python_name operations_name(const struct call *c, sar_id id);

/* Metadata of a put: bytes, which are in the arguments, or None. */
int operations_meta_read(struct call *c, PyObject *given);

/* Readers of rows: (name); (name, timeout_ns), of a lifetime 0: without end; (prefix). */
int operations_name_read(struct call *c, PyObject *args);
int operations_time_read(struct call *c, PyObject *args);
int operations_prefix_read(struct call *c, PyObject *args);

/* Zeroed memory for count items and one more. NULL with an exception. */
void *operations_room(size_t count, size_t item_bytes);
/* A list of what one(item) makes of each of count items. */
PyObject *operations_list(const void *items, size_t count, size_t item_bytes,
			  PyObject *(*one)(const void *item));

#endif
