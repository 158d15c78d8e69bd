/* What is done to each position alone: linear layers with what follows them, layer norm, and their
 * gradients. Matrices are rows of positions; widths are multiples of 16.
 */
#include "products.h"

/* A float32 matrix[rows][columns] to be laid as a right factor.
 *
 * turned: the product is X matrix^T, summed over its columns; otherwise X matrix, over its rows.
 */
typedef struct {
    const float *matrix;
    long rows, columns, turned;
} factor;

/* LANES rows of some columns become as many columns of words. */
static void pack_square(const float *from, long row_length, word *to) {
    num square[LANES][LANES * PER_WORD];
    for (long r = 0; r < LANES; r++)
        for (long c = 0; c < LANES * PER_WORD; c += LANES)
            store(square[r] + c, load_floats(from + r * row_length + c));
    turn_square((const float *)square, LANES, (float *)to, PANEL);
}

/* LANES columns of a word's rows. */
static void pack_word(const float *from, long row_length, word *to) {
    num rows[PER_WORD][LANES];
    for (long r = 0; r < PER_WORD; r++) store(rows[r], load_floats(from + r * row_length));
    pack_lanes(rows[0], PER_WORD == 2 ? rows[1] : NULL, to);
}

/* Words from the first one on of LANES columns, one number after the other. */
static void pack_rest(const factor *own, long column, long first, long words, num *to) {
    long sums = own->turned ? own->columns : own->rows;
    long across = own->turned ? own->rows : own->columns;
    for (long k = first * PER_WORD; k < words * PER_WORD; k++)
        for (long c = column; c < column + LANES; c++) {
            long at = own->turned ? c * own->columns + k : k * own->columns + c;
            float value = k < sums && c < across ? own->matrix[at] : 0;
            to[(k / PER_WORD * PANEL + c - column) * PER_WORD + k % PER_WORD] = narrowed(value);
        }
}

/* LANES columns of a panel. */
static void pack_columns(const factor *own, long column, long words, word *to) {
    long sums = own->turned ? own->columns : own->rows;
    long across = own->turned ? own->rows : own->columns;
    long step = own->turned ? LANES : 1, done = 0;
    for (; column + LANES <= across && (done + step) * PER_WORD <= sums; done += step) {
        long k = done * PER_WORD;
        if (own->turned)
            pack_square(own->matrix + column * own->columns + k, own->columns, to + done * PANEL);
        else
            pack_word(own->matrix + k * own->columns + column, own->columns, to + done * PANEL);
    }
    pack_rest(own, column, done, words, (num *)to);
}

/* Lay a matrix as a right factor.
 *
 * filled: how many numbers the sum has, those after the matrix's own 0.
 */
EXPORT void pack(const float *matrix, int64_t rows, int64_t columns, int64_t turned, int64_t filled,
                 word *to) {
    factor own = {.matrix = matrix, .rows = rows, .columns = columns, .turned = turned};
    long words = words_of(filled), vectors = PANEL / LANES;
#pragma omp parallel for schedule(static)
    for (long v = 0; v < in_parts(turned ? rows : columns, PANEL) * vectors; v++)
        pack_columns(&own, v * LANES, words,
                     to + v / vectors * words * PANEL + v % vectors * LANES);
}

/* sum[columns] = the sum of a float32 matrix's rows, in their order; columns a multiple of LANES. */
EXPORT void sum_rows(const float *matrix, int64_t rows, int64_t columns, float *sum) {
#pragma omp parallel for schedule(static)
    for (long c = 0; c < columns; c += LANES) {
        vf total = {0};
        for (long r = 0; r < rows; r++) total += load_floats(matrix + r * columns + c);
        store_floats(sum + c, total);
    }
}

EXPORT int64_t packed_size(int64_t sums, int64_t across) { return packed_words(sums, across); }

/* A linear layer: its factors, and what follows at once. */
typedef struct {
    int64_t rows, inner, outer;  /* out[rows][outer] = x[rows][inner] packed */
    int64_t x_length;            /* from row to row of x */
    const num *x;
    const word *packed;
    const float *bias;           /* or NULL, as all that follows */
    int64_t has_relu;
    dropping dropout;
    const num *gate;             /* where it is 0 the result is, elsewhere it grows by the factor */
    float gate_factor;
    const num *add;              /* is added */
    /* Layer norm: what it makes of each row goes to `out`, the row without gain and bias to
     * `normal`, and the inverse of its deviation to `inverse`. */
    const float *gain, *shift;
    float epsilon;
    num *normal;
    float *inverse;
    num *out;
} linear_call;

INLINE void normalize(const linear_call *call, const float *x, long row) {
    long width = call->outer;
    vf sum = {0}, square = {0};
    for (long c = 0; c < width; c += LANES) sum += load_floats(x + c);
    float mean = sum_of(sum) / (float)width;
    for (long c = 0; c < width; c += LANES) {
        vf off = load_floats(x + c) - mean;
        square += off * off;
    }
    float inverse = 1.0f / sqrtf(sum_of(square) / (float)width + call->epsilon);
    call->inverse[row] = inverse;
    for (long c = 0; c < width; c += LANES) {
        vf normal = (load_floats(x + c) - mean) * inverse;
        store(call->normal + row * width + c, normal);
        vf result = normal * load_floats(call->gain + c) + load_floats(call->shift + c);
        store(call->out + row * width + c, result);
    }
}

INLINE void finish_row(const linear_call *call, float *x, long row) {
    long width = call->outer, at = row * width;
    for (long c = 0; c < width; c += LANES) {
        vf value = load_floats(x + c);
        if (call->bias) value += load_floats(call->bias + c);
        if (call->has_relu) value = (vf)((vi)value & ~(vi)(value < spread(0))); /* NaN stays */
        value = drop(value, &call->dropout, at + c);
        if (call->gate) {
            vi is_open = (vi)(load(call->gate + at + c) != spread(0));
            value = (vf)((vi)(value * call->gate_factor) & is_open);
        }
        if (call->add) value += load(call->add + at + c);
        if (call->gain)
            store_floats(x + c, value);
        else
            store(call->out + at + c, value);
    }
    if (call->gain) normalize(call, x, row);
}

EXPORT int64_t linear(const linear_call *call) {
    long panels = in_parts(call->outer, PANEL), length = panels * PANEL;
    long row_words = call->x_length / PER_WORD;
    shares memory;
    if (!allocate(&memory, sizeof(float) * BLOCK_ROWS * length, omp_get_max_threads()))
        return NO_MEMORY;
#pragma omp parallel
    {
        float *block = share_of(&memory, omp_get_thread_num());
#pragma omp for schedule(dynamic)
        for (long first = 0; first < call->rows; first += BLOCK_ROWS) {
            long rows = least(BLOCK_ROWS, call->rows - first);
            const word *x = (const word *)call->x + first * row_words;
            multiply_rows(rows, words_of(call->inner), x, row_words, call->packed, panels, block,
                          length);
            for (long r = 0; r < rows; r++) finish_row(call, block + r * length, first + r);
        }
    }
    free(memory.all);
    return DONE;
}

/* Layer norm by itself, of rows that are there. */
EXPORT int64_t norm(const linear_call *call) {
    long width = call->outer;
    shares memory;
    if (!allocate(&memory, sizeof(float) * width, omp_get_max_threads())) return NO_MEMORY;
#pragma omp parallel
    {
        float *row = share_of(&memory, omp_get_thread_num());
#pragma omp for schedule(static)
        for (long r = 0; r < call->rows; r++) {
            for (long c = 0; c < width; c += LANES) store_floats(row + c, load(call->x + r * width + c));
            normalize(call, row, r);
        }
    }
    free(memory.all);
    return DONE;
}

/* Gradients on the way back through a sub-layer's end: norm, residual connection, dropout. */
typedef struct {
    int64_t rows, width;
    const num *grad;             /* of what left */
    const num *normal;           /* as `linear` left them; NULL: there was no norm */
    const float *inverse, *gain;
    const num *add;              /* is added to `entering`, or NULL */
    dropping dropout;
    num *entering;               /* the gradient before the norm; NULL: not wanted */
    num *dropped;                /* that through dropout; NULL: not wanted */
    float *grad_gain, *grad_shift;  /* grow */
} norm_call;

enum { SUM_ROWS = 128 };

/* One row; `kept` is memory for a row, `sums` grow. */
INLINE void norm_row_backward(const norm_call *call, float *kept, float *sums, long row) {
    long width = call->width, at = row * width;
    vf mean = {0}, along = {0};
    for (long c = 0; c < width && call->normal; c += LANES) {
        vf grad = load(call->grad + at + c), normal = load(call->normal + at + c);
        store_floats(sums + c, load_floats(sums + c) + grad * normal);
        store_floats(sums + width + c, load_floats(sums + width + c) + grad);
        grad *= load_floats(call->gain + c);
        store_floats(kept + c, grad);
        mean += grad;
        along += grad * normal;
    }
    float mean_grad = sum_of(mean) / (float)width, mean_along = sum_of(along) / (float)width;
    for (long c = 0; c < width; c += LANES) {
        vf grad;
        if (call->normal) {
            vf normal = load(call->normal + at + c);
            grad = (load_floats(kept + c) - mean_grad - normal * mean_along) * call->inverse[row];
        } else {
            grad = load(call->grad + at + c);
        }
        if (call->dropped) store(call->dropped + at + c, drop(grad, &call->dropout, at + c));
        if (call->add) grad += load(call->add + at + c);
        if (call->entering) store(call->entering + at + c, grad);
    }
}

EXPORT int64_t norm_backward(const norm_call *call) {
    long width = call->width, blocks = in_parts(call->rows, SUM_ROWS);
    shares memory; /* of each block: sums for gain and shift, and a row */
    if (!allocate(&memory, sizeof(float) * 3 * width, (int)blocks)) return NO_MEMORY;
#pragma omp parallel for schedule(static)
    for (long b = 0; b < blocks; b++) {
        float *sums = share_of(&memory, b);
        memset(sums, 0, sizeof(float) * 2 * width);
        for (long r = b * SUM_ROWS; r < least((b + 1) * SUM_ROWS, call->rows); r++)
            norm_row_backward(call, sums + 2 * width, sums, r);
    }
    for (long b = 0; b < blocks && call->normal; b++)
        for (long c = 0; c < width; c++) {
            const float *sums = share_of(&memory, b);
            call->grad_gain[c] += sums[c];
            call->grad_shift[c] += sums[width + c];
        }
    free(memory.all);
    return DONE;
}

/* Gradients of weights that lie beside each other: grad_i += (their columns of `grad`)^T x. */
enum { MOST_PARTS = 3 };
typedef struct {
    int64_t rows, inner, outer, parts; /* each of the parts has `outer` columns of `grad` */
    int64_t x_length, grad_length;     /* from row to row */
    const num *x, *grad;
    float *weight[MOST_PARTS];         /* [outer][inner] each, or NULL: not wanted */
    float *bias[MOST_PARTS];           /* or NULL */
} outer_call;

/* Sums over rows of a few columns. */
INLINE void add_column_sums(const num *from, long row_length, long rows, long columns, float *to) {
    for (long c = 0; c < columns; c += LANES) {
        vf sum = {0};
        for (long r = 0; r < rows; r++) sum += load(from + r * row_length + c);
        store_floats(to + c, load_floats(to + c) + sum);
    }
}

/* Some rows of x that are laid out together: in blocks of BLOCK_WORDS words, panel after panel. */
typedef struct {
    long first, rows, panels;
    word *words;
} laid_out;

enum { BLOCK = BLOCK_WORDS * PER_WORD, MOST_WORDS = 1 << 20, STEP = 16 };

/* One panel of one block. */
static void lay_out(const outer_call *call, const laid_out *right, long index) {
    long block = index / right->panels, p = index % right->panels;
    long first = block * BLOCK, rows = least(BLOCK, right->rows - first);
    const num *from = call->x + (right->first + first) * call->x_length + p * PANEL;
    word *to = right->words + block * BLOCK_WORDS * right->panels * PANEL + p * words_of(rows) * PANEL;
    pack_over_rows(from, call->x_length, rows, least(PANEL, call->inner - p * PANEL), PANEL, to);
}

/* Gradients of some rows of one part's weights. */
static void add_rows(const outer_call *call, const laid_out *right, long part, long column,
                     long count, word *left) {
    for (long first = 0; first < right->rows; first += BLOCK) {
        long rows = least(BLOCK, right->rows - first);
        const num *grad = call->grad + (right->first + first) * call->grad_length +
                          part * call->outer + column;
        if (call->weight[part])
            pack_over_rows(grad, call->grad_length, rows, count, PACK_ROWS, left);
        if (call->weight[part])
            add_outer(words_of(rows), count, left,
                      right->words + first / BLOCK * BLOCK_WORDS * right->panels * PANEL,
                      call->inner, call->weight[part] + column * call->inner);
        if (call->bias[part])
            add_column_sums(grad, call->grad_length, rows, count, call->bias[part] + column);
    }
}

EXPORT int64_t weight_gradient(const outer_call *call) {
    long panels = in_parts(call->inner, PANEL), length = panels * PANEL;
    long blocks = least(in_parts(call->rows, BLOCK), 1 + MOST_WORDS / (BLOCK_WORDS * length));
    shares memory, left;
    if (!allocate(&memory, sizeof(word) * blocks * BLOCK_WORDS * length, 1)) return NO_MEMORY;
    if (!allocate(&left, sizeof(word) * BLOCK_WORDS * PACK_ROWS, omp_get_max_threads())) {
        free(memory.all);
        return NO_MEMORY;
    }
#pragma omp parallel
    {
        /* Each thread has as many of the weights' rows as the others. */
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        long steps = call->parts * call->outer / STEP;
        long begin = steps * thread / threads * STEP, end = steps * (thread + 1) / threads * STEP;
        laid_out right = {.panels = panels, .words = (word *)memory.all};
        for (; right.first < call->rows; right.first += blocks * BLOCK) {
            right.rows = least(blocks * BLOCK, call->rows - right.first);
#pragma omp for schedule(static)
            for (long i = 0; i < in_parts(right.rows, BLOCK) * panels; i++) lay_out(call, &right, i);
            for (long row = begin, count; row < end; row += count) {
                long part = row / call->outer, column = row % call->outer;
                count = least(PACK_ROWS, least(call->outer - column, end - row));
                if (call->weight[part] || call->bias[part])
                    add_rows(call, &right, part, column, count, share_of(&left, (int)thread));
            }
#pragma omp barrier
        }
    }
    free(memory.all);
    free(left.all);
    return DONE;
}
