/* SPDX-License-Identifier: BSD-3-Clause */
#include "quota.h"

void quota_carve(struct users *u, struct arena *a, uint32_t sessions_max)
{
	pool_carve(&u->pool, a, sizeof(struct user), sessions_max);
	idmap_carve(&u->by_number, a, sessions_max);
}

struct object_id quota_id(uint32_t number)
{
	struct object_id id = {{0}};

	memcpy(id.bytes, &number, sizeof(number));
	return id;
}

/* [G8.7] */
struct user *quota_join(struct users *u, uint32_t number, uint32_t sessions_max)
{
	struct object_id id = quota_id(number);
	struct idmap_node *found = idmap_find(&u->by_number, &id);
	struct user *user = found ? idmap_item(found, struct user, by_number) : NULL;

	if (user && user->sessions >= sessions_max)
		return NULL;
	if (!user) {
		user = pool_take(&u->pool);
		assert(user); /* one for each session */
		idmap_insert(&u->by_number, &user->by_number, &id);
	}
	user->sessions++;
	return user;
}

void quota_leave(struct users *u, struct user *user)
{
	if (!user || --user->sessions > 0)
		return;
	idmap_remove(&u->by_number, &user->by_number);
	pool_give(&u->pool, user);
}
