/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The leases of a node as they outlive its control: memory that the shell maps from a file
 * (control_config.leases), one writer. * A record is valid while its word `used` is not 0: a writer
 * clears it first and sets it last. All that is read here is checked like input from outside.
 */
#ifndef SARISSA_CONTROL_CORE_LEASE_KEPT_H
#define SARISSA_CONTROL_CORE_LEASE_KEPT_H

#include "internal/ids.h"
#include "internal/session.h"

enum { LEASES_KEPT = 4096, HOLDS_KEPT = 65536 };

#define LEASES_KEPT_MAGIC 0x314553414c524153ull /* "SARLASE1" */

struct lease_kept_lease {
	_Atomic uint32_t used;
	uint32_t named;
	uint64_t number, ttl_ns;
	uint32_t user, process;
	uint64_t birth;
	char name[SESSION_LEASE_NAME_BYTES];
};

struct lease_kept_hold {
	_Atomic uint32_t used;
	uint32_t pad;
	struct object_id id;
	uint64_t generation;
	uint64_t lease;	   /* number; 0: the object's time */
	uint64_t due_real; /* end of the time to live, ns since 1970; UINT64_MAX: none */
};

struct lease_kept {
	_Atomic uint64_t magic;
	struct lease_kept_lease lease[LEASES_KEPT];
	struct lease_kept_hold hold[HOLDS_KEPT];
};

struct control;
struct lease;
struct hold;

/* Writes a record through, as it is now; deletes it. */
void kept_lease(struct control *c, const struct lease *l);
void kept_hold(struct control *c, const struct hold *h);
/* Fills the tables, which are empty. */
void kept_load(struct control *c);

#endif
