/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines on stderr for the operator: "TIME sarissa-control: what is wrong: what to do"; the journal
 * gets no TIME. One thread; cold paths only. The levels are those of control/core.
 */
#ifndef SARISSA_CONTROL_SHELL_LOG_H
#define SARISSA_CONTROL_SHELL_LOG_H

#include "core/control.h"

void log_set_level(enum control_log_level level);

__attribute__((format(printf, 2, 3))) void log_line(enum control_log_level level,
						    const char *format, ...);

#define log_error(...)	 log_line(CONTROL_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(CONTROL_LOG_WARNING, __VA_ARGS__)
#define log_info(...)	 log_line(CONTROL_LOG_INFO, __VA_ARGS__)
#define log_debug(...)	 log_line(CONTROL_LOG_DEBUG, __VA_ARGS__)

#endif
