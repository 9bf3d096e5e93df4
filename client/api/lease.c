/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases and the time of objects: open, end, hold, drop, expire. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "queue/deadline.h"
#include "error.h"
#include "queue/run.h"

struct leases_one {
	struct leases_one *next;
	uint64_t number;
	int64_t ttl_ns;
};

static void leases_forget(struct leases *l, uint64_t number)
{
	pthread_mutex_lock(&l->lock);
	for (struct leases_one **at = &l->first; *at;) {
		struct leases_one *one = *at;
		if (one->number != number) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		free(one);
	}
	pthread_mutex_unlock(&l->lock);
}

static void leases_remember(struct leases *l, struct leases_one *one)
{
	leases_forget(l, one->number);
	pthread_mutex_lock(&l->lock);
	one->next = l->first;
	l->first = one;
	pthread_mutex_unlock(&l->lock);
}

int leases_resume(struct leases *l, struct mux *m, int64_t deadline_ns)
{
	int error = 0;
	pthread_mutex_lock(&l->lock);
	for (struct leases_one *one = l->first; one && error == 0; one = one->next) {
		struct session_request request = handle_request(SESSION_LEASE, NULL);
		struct mux_result result;
		request.generation = one->number;
		request.timeout_ns = one->ttl_ns;
		/* one that has ended is found so by the next call about it */
		error = mux_call(m, &request, NULL, 0, deadline_ns, &result);
		mux_result_free(&result);
	}
	pthread_mutex_unlock(&l->lock);
	return error;
}

void leases_fini(struct leases *l)
{
	while (l->first) {
		struct leases_one *one = l->first;
		l->first = one->next;
		free(one);
	}
}

/* ---- the interface -------------------------------------------------------------------------- */

int sar_lease(sar *s, const char *name, int64_t ttl_ns, uint64_t *lease)
{
	struct session_request request = handle_request(SESSION_LEASE, NULL);
	struct mux_result result;
	int r = handle_check(s);
	if (r < 0)
		return r;
	if (name && (!*name || strlen(name) > SAR_LEASE_NAME_MAX))
		return error_set(*name ? -ENAMETOOLONG : -EINVAL,
				 "the name of a lease has 1 to %d bytes, this one %zu: choose "
				 "another one, or none",
				 SAR_LEASE_NAME_MAX, strlen(name));
	struct leases_one *one = malloc(sizeof(*one));
	if (!one)
		return error_set(-ENOMEM, "out of memory");
	strcpy(request.name, name ? name : "");
	request.timeout_ns = ttl_ns;
	r = run_request(s, &request, NULL, 0, HANDLE_CALL_NS, &result);
	if (r < 0) {
		free(one);
		return r;
	}
	*lease = one->number = result.reply.generation;
	one->ttl_ns = ttl_ns;
	mux_result_free(&result);
	leases_remember(&s->leases, one);
	return 0;
}

int sar_lease_end(sar *s, uint64_t lease)
{
	struct session_request request = handle_request(SESSION_LEASE_END, NULL);
	uint64_t current = lease;
	bool retried;
	int r = handle_check(s);
	if (r < 0)
		return r;
	request.generation = lease;
	r = run_command(s, &request, HANDLE_CALL_NS, &retried);
	leases_forget(&s->leases, lease);
	atomic_compare_exchange_strong(&s->leases.current, &current, 0);
	return r == -ESTALE && retried ? 0 : r;
}

int sar_set_lease(sar *s, uint64_t lease)
{
	int r = handle_check(s);
	if (r == 0)
		atomic_store(&s->leases.current, lease);
	return r;
}

static int lease_about(sar *s, uint16_t op, uint64_t lease, sar_id id, bool *retried)
{
	struct session_request request = handle_request(op, &id);
	int r = handle_check(s);
	if (r < 0)
		return r;
	request.generation = lease;
	return run_command(s, &request, HANDLE_CALL_NS, retried);
}

int sar_hold(sar *s, uint64_t lease, sar_id id)
{
	bool retried;
	return lease_about(s, SESSION_HOLD, lease, id, &retried);
}

int sar_drop(sar *s, uint64_t lease, sar_id id)
{
	bool retried;
	int r = lease_about(s, SESSION_RELEASE, lease, id, &retried);
	return r == -ENOENT && retried ? 0 : r;
}

int sar_expire(sar *s, sar_id id, int64_t ttl_ns)
{
	struct session_request request = handle_request(SESSION_EXPIRE, &id);
	int r = handle_check(s);
	if (r < 0)
		return r;
	request.timeout_ns = ttl_ns;
	return run_command(s, &request, HANDLE_CALL_NS, NULL);
}
