/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs and reads GROUP and GROUPED; for encode.c and decode.c. */
#ifndef SARISSA_CONTROL_RPC_CODEC_GROUP_H
#define SARISSA_CONTROL_RPC_CODEC_GROUP_H

#include "codec.h"
#include "control.pb-c.h"

struct decode_arena;

struct encode_grouped { /* scratch of a GROUPED */
	Rpc__GroupAnswer answer;
	Rpc__GroupJob job;
	Rpc__GroupMember member[GROUP_PAGE];
	Rpc__GroupMember *members[GROUP_PAGE];
};

void encode_group(const struct message_group *m, Rpc__Group *out);
void encode_grouped(const struct message_grouped *m, struct encode_grouped *scratch,
		    Rpc__Grouped *out);
bool decode_group(const Rpc__Group *in, struct message_group *out);
bool decode_grouped(const Rpc__Grouped *in, struct decode_arena *a, struct message_grouped *out);

#endif
