/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing objects piece by piece: create, publish, seal, abort. */
#include <errno.h>
#include <stdlib.h>
#include "buffer.h"
#include "create.h"
#include "error.h"
#include "queue/run.h"

/* A descriptor that may write to the whole store does not outlive this function; one of memory for
 * this object alone is kept for another control. */
int create_map(struct sar *s, uint64_t size, uint32_t pin, struct mux_result *result,
	       sar_buffer *out)
{
	const struct session_reply *reply = &result->reply;
	bool staged = reply->flags & SESSION_FLAG_STAGED;
	struct buffer own = {.kind = BUFFER_WRITE,
			     .pin = (uint16_t)pin,
			     .store = atomic_load(&s->stores),
			     .slot = reply->slot,
			     .generation = reply->generation};
	struct map_range range;
	struct map_bytes meta;
	int r = -EPROTO;
	if (reply->size == size && map_meta(&s->map, reply->slot, reply->offset, size, &meta) &&
	    result->fds == 1)
		r = map_range_open(result->fd[0], staged ? 0 : reply->offset, size, &range);
	if (r == 0 && staged) {
		kept_add(&s->kept, pin, result->fd[0]);
		result->fds = 0;
	}
	mux_result_free(result);
	if (r == -EPROTO)
		return error_set(r, "the node gave room outside of its store: use libraries and "
				    "node of one version");
	if (r < 0)
		return error_set(r, "cannot map the new object: %s", strerrordesc_np(-r));
	own.page = range.page;
	*out = (sar_buffer){
		.data = range.data, .size = size, .meta = meta.data, .meta_bytes = meta.bytes};
	buffer_set(out, &own);
	return 0;
}

void create_mark(struct sar *s, uint32_t pin)
{
	atomic_fetch_or(&s->writing[pin / 64], 1ull << pin % 64);
}

void create_unmark(struct sar *s, uint32_t pin)
{
	atomic_fetch_and(&s->writing[pin / 64], ~(1ull << pin % 64));
	kept_close(&s->kept, pin);
}

int64_t create_patience(uint64_t bytes)
{
	return HANDLE_CALL_NS + (int64_t)bytes;
}

static int create_give_up(struct sar *s, uint32_t slot, uint64_t generation, uint32_t pin)
{
	struct session_request request = handle_request(SESSION_ABORT, NULL);
	request.slot = slot;
	request.generation = generation;
	bool retried;
	bool interrupted = interrupt_seen(); /* then control may do it in its own time */
	struct interrupt before;
	if (interrupted)
		before = interrupt_set(NULL);
	create_unmark(s, pin);
	int r = run_command(s, &request, interrupted ? INTERRUPT_TIDY_NS : HANDLE_CALL_NS,
			    &retried);
	handle_give_pin(s, pin);
	if (interrupted)
		interrupt_set(&before);
	return r == -ESTALE && retried ? 0 : r;
}

int sar_create_with(sar *s, sar_id id, const char *name, uint64_t size,
		    const sar_put_options *options, sar_buffer *out)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = run_end(&run, sar_submit_create_with(&run.q, id, name, size, options, 0), &end);
	if (r == 0)
		*out = end.buffer;
	return r;
}

int sar_create(sar *s, sar_id id, const char *name, uint64_t size, sar_buffer *out)
{
	return sar_create_with(s, id, name, size, NULL, out);
}

/* The buffer's own state, when it is one under creation. */
static int create_own(const sar_buffer *b, const char *verb, struct buffer *own)
{
	*own = buffer_get(b);
	if (own->kind == BUFFER_WRITE)
		return 0;
	return error_set(-EINVAL,
			 "%s: the buffer is not under creation: use it once, on a buffer "
			 "from sar_create",
			 verb);
}

static struct session_request create_ready(const struct buffer *own, uint64_t ready)
{
	struct session_request request = handle_request(SESSION_PUBLISH, NULL);
	request.slot = own->slot;
	request.generation = own->generation;
	request.watermark = ready;
	return request;
}

bool create_is_staged(sar *s, const sar_buffer *b)
{
	return kept_has(&s->kept, buffer_get(b).pin);
}

int sar_publish(sar *s, sar_buffer *b, uint64_t ready)
{
	struct buffer own;
	int r = create_own(b, "sar_publish", &own);
	if (r < 0)
		return r;
	if (ready < b->ready || ready > b->size)
		return error_set(-EINVAL,
				 "sar_publish: %llu is not between %llu (published) and %llu "
				 "(size): only publish more",
				 (unsigned long long)ready, (unsigned long long)b->ready,
				 (unsigned long long)b->size);
	if (ready == b->ready)
		return 0;
	struct session_request request = create_ready(&own, ready);
	r = run_command(s, &request, create_patience(ready - b->ready), NULL);
	if (r == 0)
		b->ready = ready;
	return r;
}

void create_leave(sar_buffer *b, const struct buffer *own)
{
	buffer_unmap(b, own, 0);
	*b = (sar_buffer){0};
}

int sar_seal(sar *s, sar_buffer *b)
{
	struct run run;
	sar_completion end = {.buffer = *b};
	struct buffer own;
	int r = create_own(b, "sar_seal", &own);
	if (r == 0)
		r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = run_end(&run, sar_submit_seal(&run.q, b, 0), &end);
	if (r < 0)
		*b = end.buffer;
	return r;
}

int sar_abort(sar *s, sar_buffer *b)
{
	struct buffer own;
	int r = create_own(b, "sar_abort", &own);
	if (r < 0)
		return r;
	create_leave(b, &own);
	r = handle_check(s); /* in a child it is the parent's to give up */
	return r < 0 ? r : create_give_up(s, own.slot, own.generation, own.pin);
}
