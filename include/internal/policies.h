/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies of synchronisation groups: what people write, and what it says. The core's table
 * (control/core/group/policies.c), its errors and the help of sarissa(1) are made of these rows. It
 * must not know what a policy does.
 *
 *   X(identifier, word, argument, what it says)
 */
#ifndef SARISSA_INCLUDE_INTERNAL_POLICIES_H
#define SARISSA_INCLUDE_INTERNAL_POLICIES_H

/* clang-format off */
#define POLICIES(X) \
	X(bsp, "bsp", "", "all wait for all, clock by clock; with options") \
	X(ssp, "ssp", " S", "nobody is more than S clocks ahead of the slowest") \
	X(asp, "asp", "", "nobody waits for others") \
	X(k_of_n, "k-of-n", " K", "the K fastest make a round; with options") \
	X(share, "share", " P", "the fastest P percent of the members make a round; with options") \
	X(auto, "auto", " [P]", "fast: ssp 2, slow: asp; above 1.5 times the P-th percentile is slow")
/* clang-format on */

#endif
