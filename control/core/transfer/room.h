/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the transfer room, for its own files. Rooms above include fetch.h and serve.h. */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_ROOM_H
#define SARISSA_CONTROL_CORE_TRANSFER_ROOM_H

#include "core/store/room.h"
#include "fetch.h"
#include "serve.h"

struct transfer_ops;

struct room_transfer {
	const struct transfer_ops *ops;
	struct fetches fetches;
	struct serves serves;
};

#endif
