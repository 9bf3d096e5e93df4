/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a put or create, beside the bytes, for calls and queues. Pure; any thread. */
#ifndef SARISSA_CLIENT_API_PUT_OPTIONS_H
#define SARISSA_CLIENT_API_PUT_OPTIONS_H

#include "internal/object_meta.h"
#include "sarissa/sarissa.h"

/* The metadata that the options give; NULL: none. 0, or -EINVAL. */
int put_options_read(const sar_put_options *options, struct object_meta *out);

#endif
