/* SPDX-License-Identifier: BSD-3-Clause */
/* What ls and stat tell of an object alike. */
#ifndef SARISSA_CLI_INFO_H
#define SARISSA_CLI_INFO_H

#include "json.h"
#include "sarissa/sarissa.h"
#include "text.h"

/* The fields of the object; the caller begins and ends the JSON object around them. */
void info_json(struct json *j, const sar_info *info);

/* "yes" for all of it, "no" for nothing, or how much: "43%". */
const char *info_share(char out[TEXT_BYTES], uint64_t bytes, uint64_t size);

#endif
