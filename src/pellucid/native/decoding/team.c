/* Threads that share the products of one sentence.
 *
 * A product's panels are cut into pieces; whoever is running takes the next one. A helper that the
 * system has put aside takes none, so nobody waits for it, except for a piece that it has begun.
 * Which thread computes a piece changes no bit of it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "model.h"

enum {
    SPINS = 2000,           /* looks at the pieces before others get the processor */
    LEAST_WORK = 32 * 1024, /* multiply-adds of a piece: about as long as handing it over takes */
    MOST_PIECES = 16,
};

struct team {
    /* The number of pieces, and in the lower half how many were taken. */
    _Atomic uint64_t pieces;
    _Atomic long working; /* helpers that look for a piece or compute one */
    _Atomic int is_over;
    /* The product. Nobody reads it without a piece of it, so it can change when all are done. */
    const linear *l;
    const input *in;
    long first, end, step;
    float *y;
    long y_stride;
    int is_relu;
    long num_helpers;
    pthread_t helpers[];
};

INLINE void relax(long *spins) {
    if (++*spins > SPINS) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static int is_left(uint64_t pieces) { return (uint32_t)pieces < pieces >> 32; }

static void compute_pieces(team *t) {
    for (;;) {
        const uint64_t taken = atomic_fetch_add(&t->pieces, 1);
        if (!is_left(taken)) return;
        const long first = t->first + (long)(uint32_t)taken * t->step;
        multiply(t->l, t->in, first, min_long(first + t->step, t->end),
                 t->y + (first - t->first) * LANES, t->y_stride, t->is_relu);
    }
}

static void *help(void *argument) {
    team *t = argument;
    long spins = 0;
    while (!atomic_load(&t->is_over)) {
        if (!is_left(atomic_load(&t->pieces))) {
            relax(&spins);
            continue;
        }
        atomic_fetch_add(&t->working, 1);
        compute_pieces(t);
        atomic_fetch_sub(&t->working, 1);
        spins = 0;
    }
    return NULL;
}

/* Helpers for a thread, or NULL if there are none. */
team *start_team(long num_helpers) {
    if (num_helpers < 1) return NULL;
    team *t = calloc(1, sizeof *t + (size_t)num_helpers * sizeof *t->helpers);
    for (; t && t->num_helpers < num_helpers; t->num_helpers++)
        if (pthread_create(&t->helpers[t->num_helpers], NULL, help, t)) break;
    return t;
}

void end_team(team *t) {
    if (!t) return;
    atomic_store(&t->is_over, 1);
    for (long i = 0; i < t->num_helpers; i++) pthread_join(t->helpers[i], NULL);
    free(t);
}

void multiply_together(team *t, const linear *l, const input *in, long first, long end, float *y,
                       long y_stride, int is_relu) {
    const long panel_work = in->rows * l->in * LANES, panels = end - first;
    const long pieces = min_long(MOST_PIECES, panels * panel_work / LEAST_WORK);
    if (!t || pieces < 2) {
        multiply(l, in, first, end, y, y_stride, is_relu);
        return;
    }
    /* Whole groups of panels that a product computes at once. */
    t->step = ceil_div(ceil_div(panels, pieces), 8) * 8;
    t->l = l, t->in = in, t->first = first, t->end = end;
    t->y = y, t->y_stride = y_stride, t->is_relu = is_relu;
    atomic_store(&t->pieces, (uint64_t)ceil_div(panels, t->step) << 32);
    compute_pieces(t);
    for (long spins = 0; atomic_load(&t->working);) relax(&spins);
}
