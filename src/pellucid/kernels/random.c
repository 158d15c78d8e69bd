/* Random numbers: what follows from states, as NumPy's SFC64 gives them.
 *
 * The generator is Chris Doty-Humphrey's sfc64, of PractRand.
 */
#include "vectors.h"

static void follow(const uint64_t *state, long count, uint64_t *to) {
    uint64_t a = state[0], b = state[1], c = state[2], counter = state[3];
    for (long i = 0; i < count; i++) {
        uint64_t sum = a + b + counter++;
        a = b ^ (b >> 11);
        b = c + (c << 3);
        c = ((c << 24) | (c >> 40)) + sum;
        to[i] = sum;
    }
}

/* to[i][words[i]] of states[i][4]. */
EXPORT void random_words(int64_t number, const uint64_t *states, const int64_t *words,
                         uint64_t *const *to) {
#pragma omp parallel for schedule(dynamic)
    for (long i = 0; i < number; i++) follow(states + 4 * i, words[i], to[i]);
}
