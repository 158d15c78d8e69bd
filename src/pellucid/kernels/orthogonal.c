/* The iteration of Newton and Schulz that brings the singular values of matrices near 1. */
#include "products.h"

enum { TIMES = 5 };

typedef struct {
    int64_t count, rows, columns; /* matrices[count][rows][columns], rows no more than columns */
    float *matrices;              /* become what the iteration makes of them */
    float a, b, c;                /* X <- aX + (bA + cAA)X with A = XX^T */
} orthogonal_call;

/* One thread's part: a matrix in the type of products, and what it is multiplied with. */
typedef struct {
    num *x, *square, *polynomial;
    word *packed;
    float *block;
} workspace;

/* Rows of x as columns of a right factor: x^T, summed over the columns of x. */
static void pack_turned(const num *x, long rows, long columns, word *to) {
    const word *from = (const word *)x;
    long words = columns / PER_WORD;
    for (long p = 0; p * PANEL < rows; p++)
        for (long k = 0; k < words; k++, to += PANEL)
            for (long c = 0; c < PANEL; c++)
                to[c] = p * PANEL + c < rows ? from[(p * PANEL + c) * words + k] : 0;
}

static void pack_panels(const num *x, long rows, long columns, word *to) {
    for (long p = 0; p < columns; p += PANEL, to += words_of(rows) * PANEL)
        pack_over_rows(x + p, columns, rows, least(PANEL, columns - p), PANEL, to);
}

/* to[rows][columns] = left packed, plus a factor times `add`; rows of `left` as long as its sum. */
static void multiply_and_add(const workspace *own, const num *left, long rows, long sums,
                             long columns, float times, const num *add, float factor, num *to) {
    long panels = in_parts(columns, PANEL), length = panels * PANEL, words = words_of(sums);
    for (long first = 0; first < rows; first += BLOCK_ROWS) {
        long taken = least(BLOCK_ROWS, rows - first);
        multiply_rows(taken, words, (const word *)left + first * words, words, own->packed, panels,
                      own->block, length);
        for (long r = 0; r < taken; r++)
            for (long c = 0; c < columns; c += LANES) {
                long at = (first + r) * columns + c;
                vf value = load_floats(own->block + r * length + c) * times;
                if (add) value += load(add + at) * factor;
                store(to + at, value);
            }
    }
}

static void orthogonalize_one(const orthogonal_call *call, const workspace *own, float *matrix) {
    long rows = call->rows, columns = call->columns, size = rows * columns;
    vf sum = {0};
    for (long i = 0; i < size; i += LANES) sum += load_floats(matrix + i) * load_floats(matrix + i);
    float inverse = 1.0f / (sqrtf(sum_of(sum)) + 1e-7f);
    for (long i = 0; i < size; i += LANES) store(own->x + i, load_floats(matrix + i) * inverse);
    for (int time = 0; time < TIMES; time++) {
        pack_turned(own->x, rows, columns, own->packed);
        multiply_and_add(own, own->x, rows, columns, rows, 1, NULL, 0, own->square);
        pack_panels(own->square, rows, rows, own->packed);
        multiply_and_add(own, own->square, rows, rows, rows, call->c, own->square, call->b,
                         own->polynomial);
        pack_panels(own->x, rows, columns, own->packed);
        multiply_and_add(own, own->polynomial, rows, rows, columns, 1, own->x, call->a, own->x);
    }
    for (long i = 0; i < size; i += LANES) store_floats(matrix + i, load(own->x + i));
}

EXPORT int64_t orthogonalize(const orthogonal_call *call) {
    long rows = call->rows, columns = call->columns, square = rows * rows;
    long filled = in_parts(rows, PANEL) * PANEL, length = in_parts(columns, PANEL) * PANEL;
    size_t numbers = sizeof(num) * (rows * columns + 2 * square);
    size_t words = sizeof(word) * filled * length;
    shares memory;
    if (!allocate(&memory, numbers + words + sizeof(float) * BLOCK_ROWS * length,
                  omp_get_max_threads()))
        return NO_MEMORY;
#pragma omp parallel
    {
        workspace own = {.x = share_of(&memory, omp_get_thread_num())};
        own.square = own.x + rows * columns;
        own.polynomial = own.square + square;
        own.packed = (word *)(own.polynomial + square);
        own.block = (float *)(own.packed + filled * length);
#pragma omp for schedule(dynamic)
        for (long i = 0; i < call->count; i++)
            orthogonalize_one(call, &own, call->matrices + i * rows * columns);
    }
    free(memory.all);
    return DONE;
}
