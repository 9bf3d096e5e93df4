/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that the library begins in a program. */
#ifndef SARISSA_CLIENT_LINK_THREAD_H
#define SARISSA_CLIENT_LINK_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* It takes no signals: these are the program's. 0 or -EAGAIN. */
static inline int thread_begin(pthread_t *out, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(out, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r == 0 ? 0 : -EAGAIN;
}

#endif
