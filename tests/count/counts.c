/* SPDX-License-Identifier: BSD-3-Clause */
#include "counts.h"

int main(void)
{
	count_transport();
	count_kernels();
	count_directory();
	count_codec();
	count_shapes();
	count_plans();
	count_clocks();
	return 0;
}
