/* Random numbers from given states, the same as NumPy's SFC64.
 *
 * Source: Chris Doty-Humphrey's sfc64, in PractRand.
 */
#include "vectors.h"

static void generate(const uint64_t *state, long count, uint64_t *to) {
    uint64_t a = state[0], b = state[1], c = state[2], counter = state[3];
    for (long i = 0; i < count; i++) {
        uint64_t sum = a + b + counter++;
        a = b ^ (b >> 11);
        b = c + (c << 3);
        c = ((c << 24) | (c >> 40)) + sum;
        to[i] = sum;
    }
}

/* to[i][counts[i]]: the first numbers of the generator whose state is states[i][4]. */
EXPORT void random_uint64(int64_t generators, const uint64_t *states, const int64_t *counts,
                          uint64_t *const *to) {
#pragma omp parallel for schedule(dynamic)
    for (long i = 0; i < generators; i++) generate(states + 4 * i, counts[i], to[i]);
}
