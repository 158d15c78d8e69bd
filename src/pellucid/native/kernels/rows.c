/* The operations on each position separately: linear layers with what follows them, layer norm, and
 * their gradients. Matrices are rows of positions; widths are multiples of 16.
 */
#include "products.h"

/* A float32 matrix[rows][columns] to pack as right factor.
 *
 * transposed: for X matrix^T, whose depth is the matrix's columns; otherwise for X matrix.
 */
typedef struct {
    const float *matrix;
    long rows, columns, transposed;
} pack_source;

/* Transpose LANES rows of LANES groups. */
static void pack_square(const float *from, long row_stride, group *to) {
    num square[LANES][LANES * GROUP_SIZE];
    for (long r = 0; r < LANES; r++)
        for (long c = 0; c < LANES * GROUP_SIZE; c += LANES)
            store(square[r] + c, load_floats(from + r * row_stride + c));
    transpose_square((const float *)square, LANES, (float *)to, PANEL);
}

/* The rows of one group, LANES columns of each. */
static void pack_group(const float *from, long row_stride, group *to) {
    num rows[GROUP_SIZE][LANES];
    for (long r = 0; r < GROUP_SIZE; r++) store(rows[r], load_floats(from + r * row_stride));
    interleave_rows(rows[0], GROUP_SIZE == 2 ? rows[1] : NULL, to);
}

/* The groups of LANES columns from `first` on, number by number: the edges and the padding. */
static void pack_rest(const pack_source *source, long column, long first, long groups, num *to) {
    long depth = source->transposed ? source->columns : source->rows;
    long width = source->transposed ? source->rows : source->columns;
    for (long k = first * GROUP_SIZE; k < groups * GROUP_SIZE; k++)
        for (long c = column; c < column + LANES; c++) {
            long at = source->transposed ? c * source->columns + k : k * source->columns + c;
            float value = k < depth && c < width ? source->matrix[at] : 0;
            to[(k / GROUP_SIZE * PANEL + c - column) * GROUP_SIZE + k % GROUP_SIZE] = to_num(value);
        }
}

/* LANES columns of a panel: in whole vectors as far as they go. */
static void pack_columns(const pack_source *source, long column, long groups, group *to) {
    long depth = source->transposed ? source->columns : source->rows;
    long width = source->transposed ? source->rows : source->columns;
    long step = source->transposed ? LANES : 1, done = 0;
    for (; column + LANES <= width && (done + step) * GROUP_SIZE <= depth; done += step) {
        long k = done * GROUP_SIZE;
        if (source->transposed)
            pack_square(source->matrix + column * source->columns + k, source->columns,
                        to + done * PANEL);
        else
            pack_group(source->matrix + k * source->columns + column, source->columns,
                       to + done * PANEL);
    }
    pack_rest(source, column, done, groups, (num *)to);
}

/* Pack a matrix as right factor, padded with zeros to a depth. */
EXPORT void pack(const float *matrix, int64_t rows, int64_t columns, int64_t transposed,
                 int64_t padded_depth, group *to) {
    pack_source source = {matrix, rows, columns, transposed};
    long groups = num_groups(padded_depth), vectors = PANEL / LANES;
#pragma omp parallel for schedule(static)
    for (long v = 0; v < ceil_div(transposed ? rows : columns, PANEL) * vectors; v++)
        pack_columns(&source, v * LANES, groups,
                     to + v / vectors * groups * PANEL + v % vectors * LANES);
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

EXPORT int64_t packed_size(int64_t depth, int64_t columns) {
    return num_packed_groups(depth, columns);
}

/* A linear layer, and what follows it in the same pass over memory. */
typedef struct {
    int64_t rows, in_features, out_features; /* [rows][out_features] = x[rows][in_features] packed */
    int64_t x_stride;            /* from row to row */
    const num *x;
    const group *packed;
    /* What follows, in this order; NULL leaves a step out. */
    const float *bias;
    int64_t has_relu;
    dropout_mask dropout;
    const num *gate;             /* the result is 0 where the gate is, elsewhere times gate_factor */
    float gate_factor;
    const num *add;
    /* Layer norm. `normal` gets each row before gain and shift, and `inverse` 1 / its deviation: the
     * backward pass needs them. */
    const float *gain, *shift;
    float epsilon;
    num *normal;
    float *inverse;
    num *out;
} linear_call;

INLINE void normalize(const linear_call *call, const float *x, long row) {
    long width = call->out_features;
    vf sum = {0}, square = {0};
    for (long c = 0; c < width; c += LANES) sum += load_floats(x + c);
    float mean = sum_of(sum) / (float)width;
    for (long c = 0; c < width; c += LANES) {
        vf centered = load_floats(x + c) - mean;
        square += centered * centered;
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
    long width = call->out_features, at = row * width;
    for (long c = 0; c < width; c += LANES) {
        vf value = load_floats(x + c);
        if (call->bias) value += load_floats(call->bias + c);
        if (call->has_relu) value = (vf)((vi)value & ~(vi)(value < broadcast(0))); /* NaN stays */
        value = apply_dropout(value, &call->dropout, at + c);
        if (call->gate) {
            vi is_open = (vi)(load(call->gate + at + c) != broadcast(0));
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
    long panels = ceil_div(call->out_features, PANEL), length = panels * PANEL;
    long row_groups = call->x_stride / GROUP_SIZE;
    thread_buffers buffers;
    if (!allocate(&buffers, sizeof(float) * BLOCK_ROWS * length, omp_get_max_threads()))
        return NO_MEMORY;
#pragma omp parallel
    {
        float *block = buffer_of(&buffers, omp_get_thread_num());
#pragma omp for schedule(dynamic)
        for (long first = 0; first < call->rows; first += BLOCK_ROWS) {
            long rows = min_long(BLOCK_ROWS, call->rows - first);
            const group *x = (const group *)call->x + first * row_groups;
            multiply_rows(rows, num_groups(call->in_features), x, row_groups, call->packed, panels,
                          block, length);
            for (long r = 0; r < rows; r++) finish_row(call, block + r * length, first + r);
        }
    }
    free(buffers.all);
    return DONE;
}

/* Layer norm without a linear layer before it. */
EXPORT int64_t norm(const linear_call *call) {
    long width = call->out_features;
    thread_buffers buffers;
    if (!allocate(&buffers, sizeof(float) * width, omp_get_max_threads())) return NO_MEMORY;
#pragma omp parallel
    {
        float *row = buffer_of(&buffers, omp_get_thread_num());
#pragma omp for schedule(static)
        for (long r = 0; r < call->rows; r++) {
            for (long c = 0; c < width; c += LANES)
                store_floats(row + c, load(call->x + r * width + c));
            normalize(call, row, r);
        }
    }
    free(buffers.all);
    return DONE;
}

/* The backward pass of what ends a sub-layer: norm, residual connection, dropout. */
typedef struct {
    int64_t rows, width;
    const num *grad;             /* of the output */
    const num *normal;           /* as `linear` saved it; NULL: there was no norm */
    const float *inverse, *gain;
    const num *add;              /* is added to `grad_input`; or NULL */
    dropout_mask dropout;
    num *grad_input;             /* of the norm's input; NULL: not wanted */
    num *grad_dropped;           /* the same through dropout; NULL: not wanted */
    float *grad_gain, *grad_shift; /* are added to */
} norm_call;

enum { ROWS_PER_SUM = 128 };

/* One row; `scaled_grad` is a buffer of a row, `sums` are added to. */
INLINE void norm_row_backward(const norm_call *call, float *scaled_grad, float *sums, long row) {
    long width = call->width, at = row * width;
    vf mean = {0}, along = {0};
    for (long c = 0; c < width && call->normal; c += LANES) {
        vf grad = load(call->grad + at + c), normal = load(call->normal + at + c);
        store_floats(sums + c, load_floats(sums + c) + grad * normal);
        store_floats(sums + width + c, load_floats(sums + width + c) + grad);
        grad *= load_floats(call->gain + c);
        store_floats(scaled_grad + c, grad);
        mean += grad;
        along += grad * normal;
    }
    float mean_grad = sum_of(mean) / (float)width, mean_along = sum_of(along) / (float)width;
    for (long c = 0; c < width; c += LANES) {
        vf grad;
        if (call->normal) {
            vf normal = load(call->normal + at + c);
            grad = (load_floats(scaled_grad + c) - mean_grad - normal * mean_along) *
                   call->inverse[row];
        } else {
            grad = load(call->grad + at + c);
        }
        if (call->grad_dropped)
            store(call->grad_dropped + at + c, apply_dropout(grad, &call->dropout, at + c));
        if (call->add) grad += load(call->add + at + c);
        if (call->grad_input) store(call->grad_input + at + c, grad);
    }
}

EXPORT int64_t norm_backward(const norm_call *call) {
    long width = call->width, blocks = ceil_div(call->rows, ROWS_PER_SUM);
    /* Each block of rows has its sums for gain and shift, so that the order of additions does not
     * depend on the number of threads; and the buffer of a row. */
    thread_buffers buffers;
    if (!allocate(&buffers, sizeof(float) * 3 * width, (int)blocks)) return NO_MEMORY;
#pragma omp parallel for schedule(static)
    for (long b = 0; b < blocks; b++) {
        float *sums = buffer_of(&buffers, b);
        memset(sums, 0, sizeof(float) * 2 * width);
        for (long r = b * ROWS_PER_SUM; r < min_long((b + 1) * ROWS_PER_SUM, call->rows); r++)
            norm_row_backward(call, sums + 2 * width, sums, r);
    }
    for (long b = 0; b < blocks && call->normal; b++)
        for (long c = 0; c < width; c++) {
            const float *sums = buffer_of(&buffers, b);
            call->grad_gain[c] += sums[c];
            call->grad_shift[c] += sums[width + c];
        }
    free(buffers.all);
    return DONE;
}

/* Gradients of the weights of layers with the same input, whose outputs are adjacent columns:
 * weight_i += (columns of `grad`)^T x. */
enum { MAX_PARTS = 3 };
typedef struct {
    int64_t rows, in_features, out_features, parts; /* each part has `out_features` columns */
    int64_t x_stride, grad_stride;                  /* from row to row */
    const num *x, *grad;
    float *weight[MAX_PARTS]; /* [out_features][in_features] each, or NULL: not wanted */
    float *bias[MAX_PARTS];   /* or NULL */
} weight_gradient_call;

/* to += the sum over rows of some columns. */
INLINE void add_column_sums(const num *from, long row_stride, long rows, long columns, float *to) {
    for (long c = 0; c < columns; c += LANES) {
        vf sum = {0};
        for (long r = 0; r < rows; r++) sum += load(from + r * row_stride + c);
        store_floats(to + c, load_floats(to + c) + sum);
    }
}

/* Rows of x, packed together as right factor: in blocks of BLOCK_GROUPS groups, panel by panel. */
typedef struct {
    long first, rows, panels;
    group *groups;
} packed_rows;

enum { BLOCK = BLOCK_GROUPS * GROUP_SIZE, MAX_PACKED = 1 << 20, STEP = 16 };

/* Pack one panel of one block. */
static void pack_panel(const weight_gradient_call *call, const packed_rows *right, long index) {
    long block = index / right->panels, p = index % right->panels;
    long first = block * BLOCK, rows = min_long(BLOCK, right->rows - first);
    const num *from = call->x + (right->first + first) * call->x_stride + p * PANEL;
    group *to = right->groups + block * BLOCK_GROUPS * right->panels * PANEL +
                p * num_groups(rows) * PANEL;
    pack_over_rows(from, call->x_stride, rows, min_long(PANEL, call->in_features - p * PANEL), PANEL,
                   to);
}

/* Add the gradients of `count` rows of one part's weights, from `column` of its gradient on. */
static void add_rows(const weight_gradient_call *call, const packed_rows *right, long part,
                     long column, long count, group *left) {
    for (long first = 0; first < right->rows; first += BLOCK) {
        long rows = min_long(BLOCK, right->rows - first);
        const num *grad = call->grad + (right->first + first) * call->grad_stride +
                          part * call->out_features + column;
        if (call->weight[part])
            pack_over_rows(grad, call->grad_stride, rows, count, PACK_ROWS, left);
        if (call->weight[part])
            add_outer(num_groups(rows), count, left,
                      right->groups + first / BLOCK * BLOCK_GROUPS * right->panels * PANEL,
                      call->in_features, call->weight[part] + column * call->in_features);
        if (call->bias[part])
            add_column_sums(grad, call->grad_stride, rows, count, call->bias[part] + column);
    }
}

EXPORT int64_t weight_gradient(const weight_gradient_call *call) {
    long panels = ceil_div(call->in_features, PANEL), length = panels * PANEL;
    long blocks = min_long(ceil_div(call->rows, BLOCK), 1 + MAX_PACKED / (BLOCK_GROUPS * length));
    thread_buffers right_buffer, left;
    if (!allocate(&right_buffer, sizeof(group) * blocks * BLOCK_GROUPS * length, 1))
        return NO_MEMORY;
    if (!allocate(&left, sizeof(group) * BLOCK_GROUPS * PACK_ROWS, omp_get_max_threads())) {
        free(right_buffer.all);
        return NO_MEMORY;
    }
#pragma omp parallel
    {
        /* Each thread has the same share of the rows of all weights, and adds them up over all
         * positions: sums have the same order for any number of threads. */
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        long steps = call->parts * call->out_features / STEP;
        long begin = steps * thread / threads * STEP, end = steps * (thread + 1) / threads * STEP;
        packed_rows right = {.panels = panels, .groups = (group *)right_buffer.all};
        for (; right.first < call->rows; right.first += blocks * BLOCK) {
            right.rows = min_long(blocks * BLOCK, call->rows - right.first);
#pragma omp for schedule(static)
            for (long i = 0; i < ceil_div(right.rows, BLOCK) * panels; i++)
                pack_panel(call, &right, i);
            for (long row = begin, count; row < end; row += count) {
                long part = row / call->out_features, column = row % call->out_features;
                count = min_long(PACK_ROWS, min_long(call->out_features - column, end - row));
                if (call->weight[part] || call->bias[part])
                    add_rows(call, &right, part, column, count, buffer_of(&left, (int)thread));
            }
#pragma omp barrier
        }
    }
    free(right_buffer.all);
    free(left.all);
    return DONE;
}
