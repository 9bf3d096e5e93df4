/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the reduces that a control directs and the objects that it builds. */
#ifndef SARISSA_TESTS_SIM_MODEL_WORK_TRACE_H
#define SARISSA_TESTS_SIM_MODEL_WORK_TRACE_H

struct control;
void work_trace(const struct control *c);

#endif
