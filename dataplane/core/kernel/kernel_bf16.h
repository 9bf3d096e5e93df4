/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bf16_load, bf16_store and sum_wide for a level whose instructions offer nothing better. After
 * kernel_vec.h.
 */

/* bf16 is the upper half of a binary32: of each lane's two, one is in place, one a shift away. */
VEC_INLINE void bf16_load(const uint8_t *from, vec *lo, vec *hi)
{
	vec_u32 v = (vec_u32)vec_load(from);
	*lo = (vec)(v << 16);
	*hi = (vec)(v & 0xffff0000);
}

/*
 * To nearest even in the upper half; the carry makes infinity of what is too large. NaN needs no
 * care: its lower half is zero, as it came from a bf16 or from the processor.
 */
VEC_INLINE vec_u32 bf16_round(vec v)
{
	vec_u32 f = (vec_u32)v;
	return f + 0x7fff + (f >> 16 & 1);
}

VEC_INLINE void bf16_store(uint8_t *to, vec lo, vec hi)
{
	vec_store(to, (vec)(bf16_round(lo) >> 16 | (bf16_round(hi) & 0xffff0000)));
}

/* The sum of two f16 that were widened. */
VEC_INLINE vec sum_wide(vec a, vec b)
{
	return sum_f32(a, b);
}
