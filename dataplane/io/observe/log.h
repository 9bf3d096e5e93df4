/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines on stderr for the operator: "TIME sarissa-dataplane: what is wrong: what to do"; the
 * journal gets no TIME. Main thread and cold paths only; never about a packet. What DPDK's own
 * libraries say is shown from level "debug" on, what they call critical always; the first of their
 * error lines is kept, to give the reason when a port fails.
 */
#ifndef SARISSA_DATAPLANE_IO_OBSERVE_LOG_H
#define SARISSA_DATAPLANE_IO_OBSERVE_LOG_H

enum { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Of the program, instead of sarissa-dataplane; a literal. Before any thread is started. */
void log_set_name(const char *name);
void log_set_level(int level);

__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

/* Takes over DPDK's log stream. Call before rte_eal_init. */
void log_take_dpdk(void);
/* The first error line a DPDK library wrote since log_dpdk_forget; "" when there was none. */
const char *log_dpdk_error(void);
void log_dpdk_forget(void);

#endif
