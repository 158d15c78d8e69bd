/* Vectors of float32, and how numbers are kept in memory.
 *
 * A library is built for one width of vectors, LANES, and one type of numbers in memory, `num`:
 * float32, or bfloat16 with -DBF16. All arithmetic is in float32. A `word` is what products take
 * at once along their sum: one float32, or two bfloat16 that lie beside each other.
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

/* The same, wherever they lie. */
typedef float vf_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t vu_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t vh_any __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint8_t vb_any __attribute__((vector_size(LANES), aligned(1), may_alias));

#ifdef BF16
typedef uint16_t num;
typedef uint32_t word;
enum { PER_WORD = 2 };
#else
typedef float num;
typedef float word;
enum { PER_WORD = 1 };
#endif

/* Whole numbers of fewer bits; compilers make many instructions of a conversion. */
#if LANES == 16 && defined(__AVX512F__)
INLINE vu widened(const uint16_t *from) {
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
}
INLINE vi widened_bytes(const uint8_t *from) {
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
}
#elif LANES == 8 && defined(__AVX2__)
INLINE vu widened(const uint16_t *from) {
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
}
INLINE vi widened_bytes(const uint8_t *from) {
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
}
#else
INLINE vu widened(const uint16_t *from) { return __builtin_convertvector(*(const vh_any *)from, vu); }
INLINE vi widened_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const vb_any *)from, vi);
}
#endif

INLINE vf load_floats(const float *from) { return *(const vf_any *)from; }
INLINE void store_floats(float *to, vf x) { *(vf_any *)to = x; }
INLINE vf spread(float x) { return x - (vf){0}; }

#ifdef BF16
INLINE vf load(const num *from) { return (vf)(widened(from) << 16); }

/* Round to the nearest, ties to even; what is no number stays none. */
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

INLINE num narrowed(float x) {
    union { float value; uint32_t bits; } both = {x};
    if (x != x) return (num)((both.bits | 0x400000) >> 16);
    return (num)((both.bits + 0x7fff + ((both.bits >> 16) & 1)) >> 16);
}
#else
INLINE vf load(const num *from) { return load_floats(from); }
INLINE void store(num *to, vf x) { store_floats(to, x); }
INLINE num narrowed(float x) { return x; }
#endif

/* Four numbers at a time are brought together first: one after the other, a sum of LANES takes as
 * long as many vectors. */
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef union {
    vf whole;
    v4 part[LANES / 4];
} in_fours;

INLINE float sum_of(vf x) {
    in_fours own = {x};
    UNROLL for (int half = LANES / 8; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++) own.part[i] += own.part[i + half];
    return (own.part[0][0] + own.part[0][2]) + (own.part[0][1] + own.part[0][3]);
}

INLINE float most_of(vf x) {
    in_fours own = {x};
    UNROLL for (int half = LANES / 8; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++) {
            v4i is_more = (v4i)(own.part[i + half] > own.part[i]);
            own.part[i] = (v4)(((v4i)own.part[i + half] & is_more) | ((v4i)own.part[i] & ~is_more));
        }
    float most = own.part[0][0];
    for (int i = 1; i < 4; i++) most = own.part[0][i] > most ? own.part[0][i] : most;
    return most;
}

INLINE vf chosen(vi where, vf x, vf y) { return (vf)(((vi)x & where) | ((vi)y & ~where)); }

/* The larger of two, y where one is no number; y, but 0 where x is below a limit. */
#if LANES == 16 && defined(__AVX512F__)
INLINE vf larger(vf x, vf y) { return (vf)_mm512_max_ps((__m512)x, (__m512)y); }
INLINE vf unless_below(vf x, float limit, vf y) {
    __mmask16 is_not = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(limit), _CMP_NLT_UQ);
    return (vf)_mm512_maskz_mov_ps(is_not, (__m512)y);
}
#else
INLINE vf larger(vf x, vf y) { return chosen((vi)(x > y), x, y); }
INLINE vf unless_below(vf x, float limit, vf y) { return (vf)((vi)y & ~(vi)(x < limit)); }
#endif

/* True for the first numbers of a vector. */
INLINE vi is_first(long count) {
    vi lane;
    UNROLL for (int i = 0; i < LANES; i++) lane[i] = i;
    return (vi)(lane < (int32_t)count);
}

/* The first, or last, halves of two vectors, one number of each after the other. */
#if !defined(__clang__) && __GNUC__ < 12
#define __builtin_shufflevector(X, Y, ...) __builtin_shuffle(X, Y, (vi){__VA_ARGS__})
#endif
#if LANES == 8
#define FIRST_HALVES(X, Y) __builtin_shufflevector(X, Y, 0, 8, 1, 9, 2, 10, 3, 11)
#define LAST_HALVES(X, Y) __builtin_shufflevector(X, Y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define FIRST_HALVES(X, Y)                                                                         \
    __builtin_shufflevector(X, Y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LAST_HALVES(X, Y)                                                                          \
    __builtin_shufflevector(X, Y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* Turn LANES rows of LANES floats: rows are shuffled like cards, as often as LANES is halved. */
INLINE void turn_square(const float *from, long from_row, float *to, long to_row) {
    vf x[LANES], y[LANES];
    UNROLL for (int i = 0; i < LANES; i++) x[i] = load_floats(from + i * from_row);
    UNROLL for (int halves = 1; halves < LANES; halves *= 2) {
        UNROLL for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = FIRST_HALVES(x[i], x[i + LANES / 2]);
            y[2 * i + 1] = LAST_HALVES(x[i], x[i + LANES / 2]);
        }
        UNROLL for (int i = 0; i < LANES; i++) x[i] = y[i];
    }
    UNROLL for (int i = 0; i < LANES; i++) store_floats(to + i * to_row, x[i]);
}

/* exp, to some 2 units of the last place; 0 below -87, where float32 ends. It is 2^whole e^r with
 * |r| <= ln(2) / 2, and e^r by the polynomial of degree 6 that is nearest to it there. */
INLINE vf exponential(vf x) {
    const float log2_e = 1.44269504088896341f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    vf shifted = x * log2_e + magic;
    vf whole = shifted - magic;
    vf r = x - whole * ln2_high - whole * ln2_low;
    vf p = spread(1.4061240820e-3f);
    p = p * r + 8.3790111776e-3f;
    p = p * r + 4.1664777293e-2f;
    p = p * r + 1.6666365441e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    vu bits = ((vu)shifted << 23) + (vu)p; /* the low bits of `shifted` are the whole number */
    return unless_below(x, -87.0f, (vf)bits);
}

/* The natural logarithm of what is above 0 and no subnormal, to some 2 units of the last place.
 * x = 2^n m with m from sqrt(1/2) to sqrt(2). */
INLINE vf logarithm(vf x) {
    const int32_t root_half = 0x3f3504f3; /* the bits of sqrt(1/2) */
    vi bits = (vi)x - root_half, power = bits >> 23;
    vf m = (vf)((bits & 0x7fffff) + root_half) - 1.0f, n = __builtin_convertvector(power, vf);
    vf p = spread(7.0376836292e-2f);
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

/* Dropout: what a byte drew below the threshold becomes 0, the rest grows by the factor. */
typedef struct {
    const uint8_t *drawn; /* one a number, or NULL: nothing is dropped */
    int64_t threshold;
    float factor;
} dropping;

INLINE vf drop(vf x, const dropping *dropout, long at) {
    if (!dropout->drawn) return x;
    vi kept = widened_bytes(dropout->drawn + at) >= (int32_t)dropout->threshold;
    return (vf)((vi)(x * dropout->factor) & kept);
}

INLINE long least(long x, long y) { return x < y ? x : y; }
INLINE long in_parts(long size, long part) { return (size + part - 1) / part; }

/* Memory that each thread has a part of, aligned to cache lines; NULL where there is none. */
typedef struct {
    char *all;
    size_t each;
} shares;

INLINE int allocate(shares *found, size_t bytes_each, int num_shares) {
    found->each = (bytes_each + 63) / 64 * 64;
    found->all = aligned_alloc(64, found->each * (size_t)num_shares);
    return found->all != NULL;
}

INLINE void *share_of(const shares *memory, int thread) { return memory->all + memory->each * thread; }

enum { DONE = 0, NO_MEMORY = 1 };

#endif
