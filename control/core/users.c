/* SPDX-License-Identifier: BSD-3-Clause */
#include "users.h"

void users_carve(struct users *u, struct arena *a, uint32_t sessions_max)
{
	pool_carve(&u->pool, a, sizeof(struct user), sessions_max);
}

static struct user *users_find(struct users *u, uint32_t number)
{
	list_each(l, after, &u->all)
	{
		struct user *user = list_item(l, struct user, link);

		if (user->number == number)
			return user;
	}
	return NULL;
}

struct user *users_join(struct users *u, uint32_t number)
{
	struct user *user = users_find(u, number);

	if (user == NULL) {
		user = pool_take(&u->pool);
		assert(user); /* one for each session */
		user->number = number;
		list_append(&u->all, &user->link);
	}
	user->sessions++;
	return user;
}

void users_leave(struct users *u, struct user *user)
{
	if (user == NULL || --user->sessions > 0)
		return;
	list_remove(&user->link);
	pool_give(&u->pool, user);
}
