/* Vectors of float32, and how numbers are stored in memory.
 *
 * A library is built for one vector width, LANES, and one type of numbers in memory, `num`: float32,
 * or bfloat16 with -DBF16. All arithmetic is in float32. A `group` is what a multiply-add takes at
 * once along the dimension that a product sums over: one float32, or two adjacent bfloat16 (the
 * layout that AVX-512's dpbf16 instruction wants).
 */
#ifndef PELLUCID_VECTORS_H
#define PELLUCID_VECTORS_H

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
typedef uint8_t vb __attribute__((vector_size(LANES)));

/* The same at any address. */
typedef float vf_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t vu_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t vh_any __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint8_t vb_any __attribute__((vector_size(LANES), aligned(1), may_alias));

#ifdef BF16
typedef uint16_t num;
typedef uint32_t group;
enum { GROUP_SIZE = 2 };
#else
typedef float num;
typedef float group;
enum { GROUP_SIZE = 1 };
#endif

/* Widen integers. With intrinsics, since compilers turn a conversion into many instructions. */
#if LANES == 16 && defined(__AVX512F__)
INLINE vu widen(const uint16_t *from) {
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
}
INLINE vi widen_bytes(const uint8_t *from) {
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
}
#elif LANES == 8 && defined(__AVX2__)
INLINE vu widen(const uint16_t *from) {
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
}
INLINE vi widen_bytes(const uint8_t *from) {
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
}
#else
INLINE vu widen(const uint16_t *from) { return __builtin_convertvector(*(const vh_any *)from, vu); }
INLINE vi widen_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const vb_any *)from, vi);
}
#endif

INLINE vf load_floats(const float *from) { return *(const vf_any *)from; }
INLINE void store_floats(float *to, vf x) { *(vf_any *)to = x; }
INLINE vf broadcast(float x) { return x - (vf){0}; }

#ifdef BF16
INLINE vf load(const num *from) { return (vf)(widen(from) << 16); }

/* Round to nearest, ties to even; NaN stays NaN. */
INLINE void store(num *to, vf x) {
#if defined(__AVX512BF16__)
    *(vh_any *)to = (vh)_mm512_cvtneps_pbh((__m512)x);
#else
    vu bits = (vu)x, rounded = bits + 0x7fff + ((bits >> 16) & 1);
    vu is_nan = (vu)(x != x);
    rounded = (is_nan & (bits | 0x400000)) | (~is_nan & rounded);
    *(vh_any *)to = __builtin_convertvector(rounded >> 16, vh);
#endif
}

INLINE num to_num(float x) {
    union { float value; uint32_t bits; } both = {x};
    if (x != x) return (num)((both.bits | 0x400000) >> 16);
    return (num)((both.bits + 0x7fff + ((both.bits >> 16) & 1)) >> 16);
}
#else
INLINE vf load(const num *from) { return load_floats(from); }
INLINE void store(num *to, vf x) { store_floats(to, x); }
INLINE num to_num(float x) { return x; }
#endif

/* Reductions first combine four lanes at a time: adding LANES numbers one after the other takes as
 * long as many vector operations. */
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef union {
    vf whole;
    v4 part[LANES / 4];
} quads;

INLINE float sum_of(vf x) {
    quads lanes = {x};
    UNROLL for (int half = LANES / 8; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++) lanes.part[i] += lanes.part[i + half];
    return (lanes.part[0][0] + lanes.part[0][2]) + (lanes.part[0][1] + lanes.part[0][3]);
}

INLINE float max_of(vf x) {
    quads lanes = {x};
    UNROLL for (int half = LANES / 8; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++) {
            v4i is_larger = (v4i)(lanes.part[i + half] > lanes.part[i]);
            lanes.part[i] =
                (v4)(((v4i)lanes.part[i + half] & is_larger) | ((v4i)lanes.part[i] & ~is_larger));
        }
    float largest = lanes.part[0][0];
    for (int i = 1; i < 4; i++) largest = lanes.part[0][i] > largest ? lanes.part[0][i] : largest;
    return largest;
}

/* x where the mask is set, y elsewhere. */
INLINE vf blend(vi mask, vf x, vf y) { return (vf)(((vi)x & mask) | ((vi)y & ~mask)); }

/* maximum: the larger of two, y where one is NaN. zero_below: y, but 0 where x is below a limit. */
#if LANES == 16 && defined(__AVX512F__)
INLINE vf maximum(vf x, vf y) { return (vf)_mm512_max_ps((__m512)x, (__m512)y); }
INLINE vf zero_below(vf x, float limit, vf y) {
    __mmask16 is_not = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(limit), _CMP_NLT_UQ);
    return (vf)_mm512_maskz_mov_ps(is_not, (__m512)y);
}
#else
INLINE vf maximum(vf x, vf y) { return blend((vi)(x > y), x, y); }
INLINE vf zero_below(vf x, float limit, vf y) { return (vf)((vi)y & ~(vi)(x < limit)); }
#endif

/* A mask of the first lanes. */
INLINE vi first_lanes(long count) {
    vi lane;
    UNROLL for (int i = 0; i < LANES; i++) lane[i] = i;
    return (vi)(lane < (int32_t)count);
}

/* The low, or high, halves of two vectors, interleaved. */
#if !defined(__clang__) && __GNUC__ < 12
#define __builtin_shufflevector(X, Y, ...) __builtin_shuffle(X, Y, (vi){__VA_ARGS__})
#endif
#if LANES == 8
#define INTERLEAVE_LOW(X, Y) __builtin_shufflevector(X, Y, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(X, Y) __builtin_shufflevector(X, Y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define INTERLEAVE_LOW(X, Y)                                                                       \
    __builtin_shufflevector(X, Y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(X, Y)                                                                      \
    __builtin_shufflevector(X, Y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* Transpose LANES x LANES floats by interleaving rows log2(LANES) times, like shuffled cards. */
INLINE void transpose_square(const float *from, long from_stride, float *to, long to_stride) {
    vf x[LANES], y[LANES];
    UNROLL for (int i = 0; i < LANES; i++) x[i] = load_floats(from + i * from_stride);
    UNROLL for (int halves = 1; halves < LANES; halves *= 2) {
        UNROLL for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = INTERLEAVE_LOW(x[i], x[i + LANES / 2]);
            y[2 * i + 1] = INTERLEAVE_HIGH(x[i], x[i + LANES / 2]);
        }
        UNROLL for (int i = 0; i < LANES; i++) x[i] = y[i];
    }
    UNROLL for (int i = 0; i < LANES; i++) store_floats(to + i * to_stride, x[i]);
}

/* exp, accurate to about 2 units in the last place; 0 below -87, where float32 ends. Computed as
 * 2^whole e^r with |r| <= ln(2) / 2, and e^r by its minimax polynomial of degree 6. */
INLINE vf exponential(vf x) {
    const float log2_e = 1.44269504088896341f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    vf shifted = x * log2_e + magic;
    vf whole = shifted - magic;
    vf r = x - whole * ln2_high - whole * ln2_low;
    vf p = broadcast(1.4061240820e-3f);
    p = p * r + 8.3790111776e-3f;
    p = p * r + 4.1664777293e-2f;
    p = p * r + 1.6666365441e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    vu bits = ((vu)shifted << 23) + (vu)p; /* the low bits of `shifted` are the whole number */
    return zero_below(x, -87.0f, (vf)bits);
}

/* The natural logarithm of positive normal numbers, accurate to about 2 units in the last place.
 * x = 2^n m with m between sqrt(1/2) and sqrt(2). */
INLINE vf logarithm(vf x) {
    const int32_t root_half = 0x3f3504f3; /* the bits of sqrt(1/2) */
    vi bits = (vi)x - root_half, power = bits >> 23;
    vf m = (vf)((bits & 0x7fffff) + root_half) - 1.0f, n = __builtin_convertvector(power, vf);
    vf p = broadcast(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    vf square = m * m;
    return n * 0.693359375f + (m + (square * (p * m - 0.5f) - n * 2.12194440e-4f));
}

/* Dropout: numbers whose random byte is below the threshold become 0, the others are multiplied by
 * the factor. */
typedef struct {
    const uint8_t *bytes; /* one per number, or NULL: nothing is dropped */
    int64_t threshold;
    float factor;
} dropout_mask;

INLINE vf apply_dropout(vf x, const dropout_mask *dropout, long at) {
    if (!dropout->bytes) return x;
    vi keep = widen_bytes(dropout->bytes + at) >= (int32_t)dropout->threshold;
    return (vf)((vi)(x * dropout->factor) & keep);
}

INLINE long min_long(long x, long y) { return x < y ? x : y; }
INLINE long ceil_div(long size, long divisor) { return (size + divisor - 1) / divisor; }
INLINE long round_up(long size, long multiple) { return ceil_div(size, multiple) * multiple; }

/* One buffer for each thread, aligned to cache lines, in one allocation. */
typedef struct {
    char *all; /* NULL if there was not enough memory */
    size_t each;
} thread_buffers;

INLINE int allocate(thread_buffers *buffers, size_t bytes_each, int number) {
    buffers->each = (bytes_each + 63) / 64 * 64;
    buffers->all = aligned_alloc(64, buffers->each * (size_t)number);
    return buffers->all != NULL;
}

INLINE void *buffer_of(const thread_buffers *buffers, int thread) {
    return buffers->all + buffers->each * thread;
}

enum { DONE = 0, NO_MEMORY = 1 };

#endif
