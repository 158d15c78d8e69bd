/* What the processor can do, asked at run time. */
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "lanes.h"

#if defined(__x86_64__)
/* Bits of CPUID's leaf 7, by Intel's manual, volume 2, CPUID. */
enum { AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 };
static const unsigned AVX512VL = 1u << 31;
enum { AVX512_VNNI = 1 << 11, AVX_VNNI = 1 << 4 };

/* CPUID itself, because __builtin_cpu_supports is always false if zig's compiler links it. */
static int x86_sets(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return 1;
    /* The system must save the wide registers too, when it changes from one thread to another. */
    unsigned saved = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    const unsigned ymm = 0x6, zmm = 0xe6;
    unsigned more = 0, unused = 0;
    if ((saved & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & AVX2)) return 1;
    const int has_avx_vnni =
        a >= 1 && __get_cpuid_count(7, 1, &more, &unused, &unused, &unused) && (more & AVX_VNNI);
    const int narrow = has_avx_vnni ? 7 : 3;
    const unsigned wide = AVX512F | AVX512DQ | (unsigned)AVX512BW | AVX512VL;
#if !defined(__APPLE__) /* It saves them from their first use on, and says so only then. */
    if ((saved & zmm) != zmm) return narrow;
#endif
    if ((b & wide) != wide) return narrow;
    return c & AVX512_VNNI ? narrow | 24 : narrow | 8;
}
#endif

/* The sets of instructions that this processor has: a bit for each, by its place in loading.py. */
EXPORT int instruction_sets(void) {
#if defined(__x86_64__)
    return x86_sets();
#elif defined(__aarch64__) && defined(__linux__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? 3 : 1;
#elif defined(__aarch64__) && defined(__APPLE__)
    int has_products = 0;
    size_t size = sizeof has_products;
    sysctlbyname("hw.optional.arm.FEAT_DotProd", &has_products, &size, NULL, 0);
    return has_products ? 3 : 1;
#else
    return 1;
#endif
}
