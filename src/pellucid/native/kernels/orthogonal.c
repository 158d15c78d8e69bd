/* The Newton-Schulz iteration, which brings the singular values of matrices near 1. */
#include "products.h"

enum { ITERATIONS = 5 };

typedef struct {
    int64_t count, rows, columns; /* matrices[count][rows][columns], rows at most columns */
    float *matrices;              /* are replaced by the result */
    float a, b, c;                /* X <- aX + (bA + cAA)X with A = XX^T */
} orthogonal_call;

/* The buffers of one thread. */
typedef struct {
    num *x, *square, *polynomial;
    group *packed;
    float *block;
} workspace;

/* Pack x^T as right factor. */
static void pack_transposed(const num *x, long rows, long columns, group *to) {
    const group *from = (const group *)x;
    long groups = columns / GROUP_SIZE;
    for (long p = 0; p * PANEL < rows; p++)
        for (long k = 0; k < groups; k++, to += PANEL)
            for (long c = 0; c < PANEL; c++)
                to[c] = p * PANEL + c < rows ? from[(p * PANEL + c) * groups + k] : 0;
}

/* Pack x as right factor. */
static void pack_panels(const num *x, long rows, long columns, group *to) {
    for (long p = 0; p < columns; p += PANEL, to += num_groups(rows) * PANEL)
        pack_over_rows(x + p, columns, rows, min_long(PANEL, columns - p), PANEL, to);
}

/* to[rows][columns] = scale * left[rows][depth] packed + add_scale * add. */
static void multiply_and_add(const workspace *work, const num *left, long rows, long depth,
                             long columns, float scale, const num *add, float add_scale, num *to) {
    long panels = ceil_div(columns, PANEL), length = panels * PANEL, groups = num_groups(depth);
    for (long first = 0; first < rows; first += BLOCK_ROWS) {
        long taken = min_long(BLOCK_ROWS, rows - first);
        multiply_rows(taken, groups, (const group *)left + first * groups, groups, work->packed,
                      panels, work->block, length);
        for (long r = 0; r < taken; r++)
            for (long c = 0; c < columns; c += LANES) {
                long at = (first + r) * columns + c;
                vf value = load_floats(work->block + r * length + c) * scale;
                if (add) value += load(add + at) * add_scale;
                store(to + at, value);
            }
    }
}

static void orthogonalize_one(const orthogonal_call *call, const workspace *work, float *matrix) {
    long rows = call->rows, columns = call->columns, size = rows * columns;
    vf sum = {0};
    for (long i = 0; i < size; i += LANES) sum += load_floats(matrix + i) * load_floats(matrix + i);
    float inverse = 1.0f / (sqrtf(sum_of(sum)) + 1e-7f);
    for (long i = 0; i < size; i += LANES) store(work->x + i, load_floats(matrix + i) * inverse);
    for (int i = 0; i < ITERATIONS; i++) {
        pack_transposed(work->x, rows, columns, work->packed);
        multiply_and_add(work, work->x, rows, columns, rows, 1, NULL, 0, work->square);
        pack_panels(work->square, rows, rows, work->packed);
        multiply_and_add(work, work->square, rows, rows, rows, call->c, work->square, call->b,
                         work->polynomial);
        pack_panels(work->x, rows, columns, work->packed);
        multiply_and_add(work, work->polynomial, rows, rows, columns, 1, work->x, call->a, work->x);
    }
    for (long i = 0; i < size; i += LANES) store_floats(matrix + i, load(work->x + i));
}

EXPORT int64_t orthogonalize(const orthogonal_call *call) {
    long rows = call->rows, columns = call->columns, square = rows * rows;
    long padded_rows = round_up(rows, PANEL), length = round_up(columns, PANEL);
    size_t num_bytes = sizeof(num) * (rows * columns + 2 * square);
    size_t group_bytes = sizeof(group) * padded_rows * length;
    thread_buffers buffers;
    if (!allocate(&buffers, num_bytes + group_bytes + sizeof(float) * BLOCK_ROWS * length,
                  omp_get_max_threads()))
        return NO_MEMORY;
#pragma omp parallel
    {
        workspace work = {.x = buffer_of(&buffers, omp_get_thread_num())};
        work.square = work.x + rows * columns;
        work.polynomial = work.square + square;
        work.packed = (group *)(work.polynomial + square);
        work.block = (float *)(work.packed + padded_rows * length);
#pragma omp for schedule(dynamic)
        for (long m = 0; m < call->count; m++)
            orthogonalize_one(call, &work, call->matrices + m * rows * columns);
    }
    free(buffers.all);
    return DONE;
}
