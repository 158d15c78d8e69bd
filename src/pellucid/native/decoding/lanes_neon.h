/* What NEON does in fewer instructions than four generic vectors. Included by lanes_portable.h.
 * Sums keep the order of the other processors, so that all give the same bits. */
#include <arm_neon.h>

INLINE v4 choose4(v4i mask, v4 yes, v4 no) { return vbslq_f32((uint32x4_t)mask, yes, no); }
INLINE v4 round4(v4 x) { return vrndnq_f32(x); }
INLINE unsigned bits4(v4i mask) {
    const uint32x4_t place = {1, 2, 4, 8};
    return vaddvq_u32((uint32x4_t)mask & place);
}

/* vf_sum of each of 2, before its last sum. */
INLINE v4 two_sums(vf x, vf y) {
    v4 first = (x.a + x.c) + (x.b + x.d), second = (y.a + y.c) + (y.b + y.d);
    v4 low = vcombine_f32(vget_low_f32(first), vget_low_f32(second));
    v4 high = vcombine_f32(vget_high_f32(first), vget_high_f32(second));
    return low + high;
}
INLINE v4 four_sums(const vf *x) {
    return vpaddq_f32(two_sums(x[0], x[1]), two_sums(x[2], x[3]));
}
INLINE vf vf_sums(const vf *x) {
    return (vf){four_sums(x), four_sums(x + 4), four_sums(x + 8), four_sums(x + 12)};
}

/* Not a number becomes 0. */
INLINE void vf_to_bytes(uint8_t *to, vf x, int offset) {
    int16x8_t low = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(x.a)), vqmovn_s32(vcvtnq_s32_f32(x.b)));
    int16x8_t high = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(x.c)), vqmovn_s32(vcvtnq_s32_f32(x.d)));
    int8x16_t bytes = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
    vst1q_u8(to, vreinterpretq_u8_s8(vaddq_s8(bytes, vdupq_n_s8((int8_t)offset))));
}
INLINE v4 wide_low(int16x8_t x) { return vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))); }
INLINE v4 wide_high(int16x8_t x) { return vcvtq_f32_s32(vmovl_high_s16(x)); }
INLINE vf vf_from_bytes(const int8_t *from) {
    int8x16_t bytes = vld1q_s8(from);
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    return (vf){wide_low(low), wide_high(low), wide_low(high), wide_high(high)};
}
INLINE v4 from_halves(uint16x4_t x) { return vreinterpretq_f32_u32(vshll_n_u16(x, 16)); }
INLINE vf vf_from_halves(const uint16_t *from) {
    return (vf){from_halves(vld1_u16(from)), from_halves(vld1_u16(from + 4)),
                from_halves(vld1_u16(from + 8)), from_halves(vld1_u16(from + 12))};
}

/* A row's bytes are at most 127, so they are the same with a sign. */
typedef int8x16_t row_bytes;
INLINE row_bytes broadcast_bytes(const uint8_t *from) {
    uint32_t four;
    memcpy(&four, from, 4);
    return vreinterpretq_s8_u32(vdupq_n_u32(four));
}
typedef int8x16x4_t weight_bytes;
INLINE weight_bytes load_bytes(const int8_t *from) {
    return (weight_bytes){{vld1q_s8(from), vld1q_s8(from + 16), vld1q_s8(from + 32),
                           vld1q_s8(from + 48)}};
}
INLINE v4i add_quarter_of_products(v4i sum, row_bytes row, int8x16_t weights) {
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, weights, row);
#else
    /* Both are at most 127, so the sum of two products fits 16 bits. */
    int16x8_t low = vmull_s8(vget_low_s8(row), vget_low_s8(weights));
    return vpadalq_s16(sum, vpaddq_s16(low, vmull_high_s8(row, weights)));
#endif
}
INLINE vi add_products(vi sum, row_bytes row, weight_bytes weights) {
    return (vi){add_quarter_of_products(sum.a, row, weights.val[0]),
                add_quarter_of_products(sum.b, row, weights.val[1]),
                add_quarter_of_products(sum.c, row, weights.val[2]),
                add_quarter_of_products(sum.d, row, weights.val[3])};
}

/* With more rows GCC keeps sums in memory: 32 registers hold a quarter of a panel each. */
#if defined(__ARM_FEATURE_DOTPROD)
enum { MAX_ROWS = 5, MAX_BYTE_ROWS = 5 };
#else
enum { MAX_ROWS = 5, MAX_BYTE_ROWS = 4 };
#endif
