/* Sixteen float32 lanes on every processor, so that every processor adds in the same order.
 *
 * AVX-512 holds the lanes in one register, AVX2 in two, other processors in four. A multiply-add
 * rounds once wherever the processor has one; compilers may not make others (-ffp-contract=off). So
 * AVX2, AVX-512 and NEON give the same bits.
 */
#ifndef PELLUCID_LANES_H
#define PELLUCID_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { LANES = 16 };

/* What Python has made sure of, checked again in debug builds. */
#ifdef CHECKED
#include <stdio.h>
#include <stdlib.h>
#define CHECK(CONDITION)                                                                           \
    do {                                                                                           \
        if (CONDITION) break;                                                                      \
        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION);                    \
        abort();                                                                                   \
    } while (0)
#else
#define CHECK(CONDITION) ((void)0)
#endif

#if defined(__AVX512F__)
#include "lanes_avx512.h"
#elif defined(__AVX2__)
#include "lanes_avx2.h"
#else
#include "lanes_portable.h"
#endif

INLINE long min_long(long x, long y) { return x < y ? x : y; }
INLINE long max_long(long x, long y) { return x > y ? x : y; }
INLINE long ceil_div(long size, long divisor) { return (size + divisor - 1) / divisor; }
INLINE long round_up(long size) { return ceil_div(size, LANES) * LANES; }

INLINE vf vf_zero(void) { return vf_all(0.0f); }

/* exp, accurate to about 2 units in the last place; 0 below -87, where normal numbers end.
 * 2^whole e^r with |r| <= ln(2) / 2, and e^r by its minimax polynomial of degree 6. */
INLINE vf vf_exp(vf x) {
    vf bounded = vf_min(vf_max(x, vf_all(-87.0f)), vf_all(88.0f));
    vf whole = vf_round(vf_mul(bounded, vf_all(1.44269504088896341f)));
    vf r = vf_fma(whole, vf_all(-0.693359375f), bounded);
    r = vf_fma(whole, vf_all(2.12194440e-4f), r);
    vf p = vf_fma(vf_all(1.4061240820e-3f), r, vf_all(8.3790111776e-3f));
    p = vf_fma(p, r, vf_all(4.1664777293e-2f));
    p = vf_fma(p, r, vf_all(1.6666365441e-1f));
    p = vf_fma(p, r, vf_all(0.5f));
    p = vf_fma(p, r, vf_all(1.0f));
    p = vf_fma(p, r, vf_all(1.0f));
    /* Not a number stays so; below the bound the result is 0. */
    return vf_select_less(x, vf_all(-87.0f), vf_zero(), vf_add(vf_times_power(p, whole), vf_mul(x, vf_zero())));
}

/* The error function by two minimax polynomials, to about 1 unit in the last place; used by gelu. */
INLINE vf vf_erf(vf x) {
    vf size = vf_absolute(x), square = vf_mul(x, x);
    vf far = vf_fma(vf_all(-1.72853470e-5f), size, vf_all(3.83197126e-4f));
    vf odd = vf_fma(vf_all(-3.88396438e-3f), size, vf_all(2.42546219e-2f));
    far = vf_fma(far, square, odd);
    far = vf_fma(far, size, vf_all(-1.06777877e-1f));
    far = vf_fma(far, size, vf_all(-6.34846687e-1f));
    far = vf_fma(far, size, vf_all(-1.28717512e-1f));
    far = vf_fma(far, size, vf_sub(vf_zero(), size));
    far = vf_sub(vf_all(1.0f), vf_exp(far));
    far = vf_select_less(x, vf_zero(), vf_sub(vf_zero(), far), far);
    vf near = vf_fma(vf_all(-5.96761703e-4f), square, vf_all(4.99119423e-3f));
    near = vf_fma(near, square, vf_all(-2.67681349e-2f));
    near = vf_fma(near, square, vf_all(1.12819925e-1f));
    near = vf_fma(near, square, vf_all(-3.76125336e-1f));
    near = vf_fma(near, square, vf_all(1.28379166e-1f));
    near = vf_fma(near, x, x);
    return vf_select_less(vf_all(0.927734375f), size, far, near);
}

/* The natural logarithm of a positive number in double precision, the same on every machine. */
INLINE double natural_log(double x) {
    union { double value; uint64_t bits; } both = {x};
    long power = (long)(both.bits >> 52) - 1023;
    both.bits = (both.bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;
    if (both.value > 1.4142135623730951) both.value *= 0.5, power++;
    double s = (both.value - 1.0) / (both.value + 1.0), square = s * s, sum = 0.0;
    for (int n = 21; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
    return (double)power * 0.69314718055994530942 + 2.0 * s * sum;
}

#endif
