/* SPDX-License-Identifier: BSD-3-Clause */
#include "interrupt.h"

#include "queue/deadline.h"

static _Thread_local struct interrupt interrupt_own;

struct interrupt interrupt_set(const struct interrupt *interrupt)
{
	struct interrupt before = interrupt_own;
	interrupt_own = interrupt ? *interrupt : (struct interrupt){0};
	return before;
}

bool interrupt_due(void)
{
	if (!interrupt_own.asked || interrupt_own.wanted)
		return false;
	int64_t now = deadline_now();
	if (interrupt_own.next_ns == 0)
		interrupt_own.next_ns = now + INTERRUPT_SLICE_NS;
	return now >= interrupt_own.next_ns;
}

bool interrupt_seen(void)
{
	return interrupt_own.wanted;
}

bool interrupt_wanted(void)
{
	if (!interrupt_due())
		return interrupt_own.wanted;
	/* it may call back: then nobody interrupts */
	struct interrupt asked = interrupt_set(NULL);
	asked.wanted = asked.asked(asked.arg);
	asked.next_ns = deadline_now() + INTERRUPT_SLICE_NS;
	interrupt_set(&asked);
	return asked.wanted;
}

int64_t interrupt_until(int64_t deadline_ns)
{
	if (interrupt_own.wanted)
		return 0;
	if (!interrupt_own.asked)
		return deadline_ns;
	if (interrupt_own.next_ns == 0)
		interrupt_own.next_ns = deadline_now() + INTERRUPT_SLICE_NS;
	return interrupt_own.next_ns < deadline_ns ? interrupt_own.next_ns : deadline_ns;
}
