/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the call that this thread is in is to end before its time: a program that must look at
 * its signals (the Python extension), or the end of a thread (joiner.c), says so. Whatever waits in
 * a call asks several times a second, without a lock, and then returns -EINTR; what is under way is
 * left behind as when its time is over. Threads that set nothing wait as they are told.
 */
#ifndef SARISSA_CLIENT_LINK_INTERRUPT_H
#define SARISSA_CLIENT_LINK_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#define INTERRUPT_SLICE_NS 100000000
/* The time that the tidying up after one may take, which itself is not interrupted. */
#define INTERRUPT_TIDY_NS 300000000
#define INTERRUPT_TEXT	  "interrupted by the program"

struct interrupt {
	bool (*asked)(void *arg); /* NULL: nobody interrupts this thread */
	void *arg;
	int64_t next_ns; /* when it is asked again; 0: a slice after the first wait begins */
	bool wanted;	 /* it has said so: it is not asked again */
};

/* This thread's from now on; NULL: none. Returns what it was. */
struct interrupt interrupt_set(const struct interrupt *interrupt);

/* Asks, unless it was asked just now. */
bool interrupt_wanted(void);

/* Whether interrupt_wanted() would ask now, and what it has said already. */
bool interrupt_due(void);
bool interrupt_seen(void);

/* How long one sleep may last of a wait until deadline_ns. */
int64_t interrupt_until(int64_t deadline_ns);

#endif
