/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shell of a control core: the event loop, the rings to the workers, the dataplane that comes
 * and goes. Called by main.c. One thread.
 */
#ifndef SARISSA_CONTROL_SHELL_HOST_H
#define SARISSA_CONTROL_SHELL_HOST_H

#include <uv.h>
#include "clients/staging_memory.h"
#include "attach.h"
#include "clients/clients.h"
#include "core/control.h"
#include "internal/program/notify.h"
#include "options.h"
#include "report.h"
#include "files/spill.h"
#include "rpc/mailbox.h"

struct host {
	const struct options *options;
	uv_loop_t loop;
	uv_signal_t interrupt, terminate, hangup;
	uv_timer_t retry;    /* to the next attempt to attach */
	uv_timer_t timeout;  /* of the core */
	uv_timer_t watchdog; /* of the service manager */
	uv_timer_t patience; /* of its boot */
	uv_prepare_t prepare;
	uv_idle_t busy;	      /* active while there is work left that no descriptor tells of */
	uv_poll_t *attaching; /* the dataplane's socket; NULL: none */
	uv_poll_t *wake;      /* the eventfd of our rings */
	struct notify notify;
	struct report report;
	struct attach attach;
	struct clients clients;
	struct staging_memory staging;
	struct spill spill;
	struct control *core;
	struct topology *topology; /* read since the start; NULL: that of the options holds */
	struct mailbox mailbox;
	uint8_t *mailbox_memory, *arena;
	int lock_fd;
	int status;	  /* exit status */
	uint64_t busy_ns; /* the clock, less the time that the loop has slept */
	bool attached;	  /* the core is */
	bool stopping;
	bool leaving;	     /* the others know that we go */
	bool member;	     /* clients are let in */
	bool waiting_logged; /* the operator knows that we wait for the dataplane */
};

/* Takes the run directory, makes the core. Returns 0, or 1 and one line said why. */
int host_init(struct host *h, const struct options *options);
/* Until a signal; returns the exit status. */
int host_run(struct host *h);

uint64_t host_now_ns(void);

/* pump.c: one turn of the core: events in, commands out, until nothing is left or the turn has
 * become long. Returns true when work is left. */
bool host_pump(struct host *h);

#endif
