/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of ls and stat about an object. */
#ifndef SARISSA_CLIENT_CLI_COMMANDS_INFO_H
#define SARISSA_CLIENT_CLI_COMMANDS_INFO_H

#include "internal/array_meta.h"
#include "cli/support/json.h"
#include "sarissa/sarissa.h"
#include "cli/support/text.h"

enum { INFO_META_BYTES = ARRAY_META_SHOWN };

/* The fields of the object; the caller begins and ends the JSON object around them. */
void info_json(struct json *j, const sar_info *info, const sar_lease_info *lease);

/* "name@node", and how many others hold it; "-": no lease does. */
const char *info_owner(char *out, size_t room, const sar_info *info, const sar_lease_info *lease);

/* When it is deleted: "12 s"; "-": not by itself. */
const char *info_expiry(char out[TEXT_BYTES], const sar_info *info);

/* The metadata in words: "f32[1000,1000]", or how many bytes; "-": none. */
const char *info_meta(char out[INFO_META_BYTES], const sar_info *info);

/* "yes" for all of it, "no" for nothing, or how much: "43%". */
const char *info_share(char out[TEXT_BYTES], uint64_t bytes, uint64_t size);

#endif
