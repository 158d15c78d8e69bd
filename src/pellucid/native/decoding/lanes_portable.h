/* Sixteen lanes in four vectors of four, for any processor, and for ARM with lanes_neon.h. Included
 * by lanes.h; see lanes_avx512.h. Without an instruction for multiply-add the product is rounded by
 * itself. */
#include <math.h>

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef float v4_any __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t v4i_any __attribute__((vector_size(16), aligned(4), may_alias));
typedef struct {
    v4 a, b, c, d;
} vf;
typedef struct {
    v4i a, b, c, d;
} vi;

#define OF_ONE(FUNCTION) (vf){FUNCTION(x.a), FUNCTION(x.b), FUNCTION(x.c), FUNCTION(x.d)}
#define OF_TWO(FUNCTION) \
    (vf){FUNCTION(x.a, y.a), FUNCTION(x.b, y.b), FUNCTION(x.c, y.c), FUNCTION(x.d, y.d)}

INLINE v4 fma4(v4 x, v4 y, v4 z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    /* GCC makes one instruction of these; of NEON's own form it makes one for each broadcast more. */
    return (v4){__builtin_fmaf(x[0], y[0], z[0]), __builtin_fmaf(x[1], y[1], z[1]),
                __builtin_fmaf(x[2], y[2], z[2]), __builtin_fmaf(x[3], y[3], z[3])};
#else
    return x * y + z;
#endif
}
INLINE v4 absolute4(v4 x) { return (v4)((v4i)x & 0x7fffffff); }
#if defined(__aarch64__)
#include "lanes_neon.h"
#else
INLINE v4 choose4(v4i mask, v4 yes, v4 no) { return (v4)((mask & (v4i)yes) | (~mask & (v4i)no)); }
/* Adding 1.5 * 2^23 rounds to a whole number, to even in the middle; larger numbers are whole. */
INLINE v4 round4(v4 x) {
    v4 magic = (v4){12582912.0f, 12582912.0f, 12582912.0f, 12582912.0f};
    return choose4((v4i)(absolute4(x) < 4194304.0f), (x + magic) - magic, x);
}
INLINE unsigned bits4(v4i mask) {
    return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
}
#endif
INLINE v4 max4(v4 x, v4 y) { return choose4((v4i)(x > y), x, y); }
INLINE v4 min4(v4 x, v4 y) { return choose4((v4i)(x < y), x, y); }
INLINE vf vf_all(float x) {
    v4 all = {x, x, x, x};
    return (vf){all, all, all, all};
}
INLINE vf vf_load(const float *from) {
    const v4_any *four = (const v4_any *)from;
    return (vf){four[0], four[1], four[2], four[3]};
}
INLINE void vf_store(float *to, vf x) {
    v4_any *four = (v4_any *)to;
    four[0] = x.a, four[1] = x.b, four[2] = x.c, four[3] = x.d;
}
INLINE vf vf_load_first(const float *from, long count) {
    float lane[LANES] = {0};
    memcpy(lane, from, (size_t)count * sizeof *lane);
    return vf_load(lane);
}
INLINE void vf_store_first(float *to, vf x, long count) {
    float lane[LANES];
    vf_store(lane, x);
    memcpy(to, lane, (size_t)count * sizeof *lane);
}
INLINE vf vf_keep_first(vf x, long count, float rest) {
    float lane[LANES];
    vf_store(lane, x);
    for (long i = count; i < LANES; i++) lane[i] = rest;
    return vf_load(lane);
}
INLINE vf vf_add(vf x, vf y) { return (vf){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }
INLINE vf vf_sub(vf x, vf y) { return (vf){x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d}; }
INLINE vf vf_mul(vf x, vf y) { return (vf){x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d}; }
INLINE vf vf_div(vf x, vf y) { return (vf){x.a / y.a, x.b / y.b, x.c / y.c, x.d / y.d}; }
INLINE vf vf_fma(vf x, vf y, vf z) {
    return (vf){fma4(x.a, y.a, z.a), fma4(x.b, y.b, z.b), fma4(x.c, y.c, z.c), fma4(x.d, y.d, z.d)};
}
INLINE vf vf_max(vf x, vf y) { return OF_TWO(max4); }
INLINE vf vf_min(vf x, vf y) { return OF_TWO(min4); }
INLINE vf vf_absolute(vf x) { return OF_ONE(absolute4); }
INLINE vf vf_round(vf x) { return OF_ONE(round4); }
INLINE vf vf_select_less(vf x, vf y, vf yes, vf no) {
    return (vf){choose4((v4i)(x.a < y.a), yes.a, no.a), choose4((v4i)(x.b < y.b), yes.b, no.b),
                choose4((v4i)(x.c < y.c), yes.c, no.c), choose4((v4i)(x.d < y.d), yes.d, no.d)};
}
INLINE unsigned vf_greater(vf x, vf y) {
    return bits4((v4i)(x.a > y.a)) | bits4((v4i)(x.b > y.b)) << 4 | bits4((v4i)(x.c > y.c)) << 8 |
           bits4((v4i)(x.d > y.d)) << 12;
}
INLINE v4 times_power4(v4 x, v4 n) {
    return (v4)((v4i)x + (__builtin_convertvector(n, v4i) << 23));
}
INLINE vf vf_times_power(vf x, vf n) { return (vf){times_power4(x.a, n.a), times_power4(x.b, n.b),
                                                   times_power4(x.c, n.c), times_power4(x.d, n.d)}; }

/* Sums and maxima of lanes: halves first, so that the order is the same everywhere. */
INLINE float vf_sum(vf x) {
    v4 four = (x.a + x.c) + (x.b + x.d);
    return (four[0] + four[2]) + (four[1] + four[3]);
}
INLINE float vf_largest(vf x) {
    v4 four = max4(max4(x.a, x.c), max4(x.b, x.d));
    float low = four[0] > four[2] ? four[0] : four[2], high = four[1] > four[3] ? four[1] : four[3];
    return low > high ? low : high;
}

INLINE v4 larger_size4(v4 x, v4 largest) {
    v4i size = (v4i)absolute4(x);
    return choose4(size > (v4i)largest, (v4)size, largest);
}
INLINE vf vf_larger_size(vf x, vf y) { return OF_TWO(larger_size4); }
INLINE float vf_largest_size(vf x) {
    v4 four = larger_size4(larger_size4(x.a, x.b), larger_size4(x.c, x.d));
    v4i bits = (v4i)four;
    int32_t most = bits[0];
    for (int i = 1; i < 4; i++) most = bits[i] > most ? bits[i] : most;
    float size;
    memcpy(&size, &most, sizeof size);
    return size;
}

INLINE vi vi_load(const int32_t *from) {
    const v4i_any *four = (const v4i_any *)from;
    return (vi){four[0], four[1], four[2], four[3]};
}
INLINE vf vi_to_vf(vi x) {
    return (vf){__builtin_convertvector(x.a, v4), __builtin_convertvector(x.b, v4),
                __builtin_convertvector(x.c, v4), __builtin_convertvector(x.d, v4)};
}

#if !defined(__aarch64__)
INLINE vf vf_sums(const vf *x) {
    float lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = vf_sum(x[i]);
    return vf_load(lane);
}
INLINE void vf_to_bytes(uint8_t *to, vf x, int offset) {
    float lane[LANES];
    vf_store(lane, vf_round(x));
    for (int i = 0; i < LANES; i++) {
        /* Not a number becomes 0: the scale of such a row makes its products no numbers anyway. */
        int is_within = lane[i] >= -127.0f && lane[i] <= 127.0f;
        to[i] = (uint8_t)((is_within ? (int)lane[i] : 0) + offset);
    }
}
INLINE vf vf_from_bytes(const int8_t *from) {
    float lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = from[i];
    return vf_load(lane);
}
INLINE vf vf_from_halves(const uint16_t *from) {
    uint32_t bits[LANES];
    float lane[LANES];
    for (int i = 0; i < LANES; i++) bits[i] = (uint32_t)from[i] << 16;
    memcpy(lane, bits, sizeof lane);
    return vf_load(lane);
}

typedef struct {
    int32_t a, b, c, d;
} row_bytes;
INLINE row_bytes broadcast_bytes(const uint8_t *from) {
    return (row_bytes){from[0], from[1], from[2], from[3]};
}
INLINE v4i add_quarter_of_products(v4i sum, row_bytes row, const int8_t *w) {
    v4i a = {w[0], w[4], w[8], w[12]}, b = {w[1], w[5], w[9], w[13]};
    v4i c = {w[2], w[6], w[10], w[14]}, d = {w[3], w[7], w[11], w[15]};
    return sum + (a * row.a + b * row.b) + (c * row.c + d * row.d);
}
typedef const int8_t *weight_bytes;
INLINE weight_bytes load_bytes(const int8_t *from) { return from; }
INLINE vi add_products(vi sum, row_bytes row, weight_bytes weights) {
    return (vi){add_quarter_of_products(sum.a, row, weights),
                add_quarter_of_products(sum.b, row, weights + 16),
                add_quarter_of_products(sum.c, row, weights + 32),
                add_quarter_of_products(sum.d, row, weights + 48)};
}

enum { MAX_ROWS = 4, MAX_BYTE_ROWS = 4 };
#endif
