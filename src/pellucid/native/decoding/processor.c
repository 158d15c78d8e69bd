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

/* The sets of instructions that this processor has: a bit for each, by its place in loading.py. */
EXPORT int instruction_sets(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
    /* Asked directly, since not every compiler knows the name. */
    unsigned a = 0, b = 0, c = 0, d = 0;
    const int has_avx_vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    const int narrow = has_avx_vnni ? 7 : 3;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return narrow;
    return __builtin_cpu_supports("avx512vnni") ? narrow | 24 : narrow | 8;
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
