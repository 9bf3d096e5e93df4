/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One client of control's socket, as clients.c (connections), requests.c (input) and answers.c
 * (output) share it. One thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_CLIENT_H
#define SARISSA_CONTROL_CLIENTS_CLIENT_H

#include "clients.h"

struct packet;

struct client {
	uv_poll_t poll;
	struct clients *all;
	struct packet *first, **last; /* what the socket did not take yet */
	uint32_t queued;
	uint32_t session;
	int fd;
	int pins_fd;
	_Atomic uint64_t *pins;
	uint64_t birth; /* of its process (struct control_client) */
	bool staged;	/* it must not have the store to write to */
	bool waits;	/* to be read, for what others have sent is still being closed */
	bool no_rights; /* it cannot send descriptors */
	bool failed;	/* to be closed as soon as the core does not run */
	bool closed;
};

/* It is closed as soon as the core does not run. */
void clients_fail(struct client *k);
/* Its socket is watched for what can be done now. */
void clients_watch(struct client *k);

#endif
