/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of puts and creations, whichever version of the header the program was built with.
 * For calls and queues. Pure; any thread. It must not know what an operation is.
 */
#ifndef SARISSA_CLIENT_API_PUT_OPTIONS_H
#define SARISSA_CLIENT_API_PUT_OPTIONS_H

#include "sarissa/sarissa.h"

/* Sets what the options say, in this library's struct; NULL: nothing. 0, or -errno with words. */
int put_options_read(const sar_put_options *options, sar_put_options *out);

#endif
