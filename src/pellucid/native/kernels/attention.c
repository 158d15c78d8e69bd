/* Attention of each sentence and head separately, without padding.
 *
 * The backward pass computes the weights again instead of saving them. Products are of numbers in
 * their stored type, except for the gradients of queries and keys, which are computed in float32:
 * what all keys have in common cancels there, so rounding the gradient of the scores would leave
 * mostly the rounding.
 */
#include "products.h"

DEFINE_PRODUCT(multiply_narrow_floats, floats_tile, 1, float) /* LANES columns */
#ifdef BF16
DEFINE_PRODUCT(multiply_narrow_groups, groups_tile, 1, group)
#else
#define multiply_narrow_groups multiply_narrow_floats
#endif

typedef struct {
    int64_t sentences, heads, key_width, value_width;
    const int64_t *start, *key_start; /* first query and key row of each sentence, and the end */
    int64_t query_stride, key_stride, value_stride; /* from row to row */
    const num *query, *key, *value;
    float scale;                         /* of scores */
    int64_t is_causal;                   /* a position attends to itself and those before it */
    int64_t context_stride;
    num *context;
    /* For the backward pass; strides are those of query, key, value and context. */
    const num *grad_context;
    num *grad_query, *grad_key, *grad_value;
} attention_call;

/* One head of one sentence: matrices whose rows are padded to whole vectors of groups. */
typedef struct {
    long queries, keys, key_width, value_width; /* without padding */
    long padded_keys, key_row, value_row;       /* padded */
    num *query, *key, *value, *grad_context, *rounded_weights;
    group *transposed, *value_groups, *grad_groups, *weight_groups;
    float *weights, *grad_scores, *query_floats, *key_floats, *product;
} workspace;

enum {
    LINE = 64 / sizeof(num), /* numbers of a cache line */
    ROW_STEP = LANES * GROUP_SIZE,
};

/* to[padded_rows][width] = the columns of one head, and zeros; prefetches those of the next head. */
INLINE void copy_head(const num *from, long stride, long rows, long columns, num *to,
                      long padded_rows, long width) {
    for (long r = 0; r < rows; r++, from += stride, to += width) {
        long c = 0;
        for (long next = columns; next < 2 * columns; next += LINE) __builtin_prefetch(from + next);
        for (; c + LANES <= columns; c += LANES) memcpy(to + c, from + c, sizeof(num) * LANES);
        for (; c < columns; c++) to[c] = from[c];
        for (; c < width; c++) to[c] = 0;
    }
    memset(to, 0, sizeof(num) * (padded_rows - rows) * width);
}

/* The columns of one head = from[rows][width], rounded to the stored type. */
INLINE void store_head(const float *from, long width, long rows, long columns, num *to,
                       long stride) {
    for (long r = 0; r < rows; r++, from += width, to += stride) {
        long c = 0;
        for (; c + LANES <= columns; c += LANES) store(to + c, load_floats(from + c));
        for (; c < columns; c++) to[c] = to_num(from[c]);
    }
}

/* Conversions of rows to float32, to the stored type, and to groups of a product whose depth is
 * rows. In float32 all three are the rows themselves, and nothing is copied. */
INLINE const float *as_floats(const num *rows, long numbers, float *to) {
    if (GROUP_SIZE == 1) return (const float *)rows;
    for (long i = 0; i < numbers; i += LANES) store_floats(to + i, load(rows + i));
    return to;
}

INLINE const num *as_nums(const float *rows, long numbers, num *to) {
    if (GROUP_SIZE == 1) return (const num *)rows;
    for (long i = 0; i < numbers; i += LANES) store(to + i, load_floats(rows + i));
    return to;
}

INLINE const group *as_groups(const num *rows, long count, long width, group *to) {
    if (GROUP_SIZE == 1) return (const group *)rows;
    pack_over_rows(rows, width, count, width, width, to);
    return to;
}

/* Transpose rows, a multiple of LANES, into a right factor of groups. */
INLINE const group *transpose_groups(const num *from, long rows, long width, group *to) {
    long groups = width / GROUP_SIZE;
    for (long c = 0; c < groups; c += LANES)
        for (long r = 0; r < rows; r += LANES)
            transpose_square((const float *)from + r * groups + c, groups,
                             (float *)to + c * rows + r, rows);
    return to;
}

/* c[rows][columns] = a b, the columns a multiple of LANES. */
#define DEFINE_MULTIPLY(NAME, WIDE, NARROW, GROUP)                                                 \
    INLINE void NAME(long rows, long groups, const GROUP *a, long a_row, long a_group,             \
                     const GROUP *b, long columns, float *c) {                                     \
        long p = 0;                                                                                \
        for (; p + PANEL <= columns; p += PANEL)                                                   \
            WIDE(rows, groups, a, a_row, a_group, b + p, columns, c + p, columns, 0);              \
        if (p < columns)                                                                           \
            NARROW(rows, groups, a, a_row, a_group, b + p, columns, c + p, columns, 0);            \
    }
DEFINE_MULTIPLY(multiply, multiply_groups, multiply_narrow_groups, group)
DEFINE_MULTIPLY(multiply_in_float32, multiply_floats, multiply_narrow_floats, float)

/* Softmax of one row of scores, times a scale, over the visible keys; other keys and the padding get
 * weight 0. */
INLINE void softmax(float *row, float scale, long visible, long width) {
    vf hidden = broadcast(-INFINITY), largest_lanes = hidden, sum = {0};
    for (long m = 0; m < width; m += LANES) {
        vf scaled = blend(first_lanes(visible - m), load_floats(row + m) * scale, hidden);
        store_floats(row + m, scaled);
        largest_lanes = maximum(scaled, largest_lanes);
    }
    float largest = max_of(largest_lanes);
    for (long m = 0; m < width; m += LANES) {
        vf weight = exponential(load_floats(row + m) - largest);
        store_floats(row + m, weight);
        sum += weight;
    }
    float inverse = 1.0f / sum_of(sum);
    for (long m = 0; m < width; m += LANES) store_floats(row + m, load_floats(row + m) * inverse);
}

static void compute_weights(const attention_call *call, workspace *work, const num *query,
                            const num *key) {
    copy_head(query, call->query_stride, work->queries, work->key_width, work->query, work->queries,
              work->key_row);
    copy_head(key, call->key_stride, work->keys, work->key_width, work->key, work->padded_keys,
              work->key_row);
    multiply(work->queries, num_groups(work->key_width), (const group *)work->query,
             work->key_row / GROUP_SIZE, 1,
             transpose_groups(work->key, work->padded_keys, work->key_row, work->transposed),
             work->padded_keys, work->weights);
    for (long l = 0; l < work->queries; l++)
        softmax(work->weights + l * work->padded_keys, call->scale,
                call->is_causal ? l + 1 : work->keys, work->padded_keys);
}

/* Replace the gradient of the weights by that of the scores. */
INLINE void softmax_backward(const attention_call *call, workspace *work) {
    for (long l = 0; l < work->queries; l++) {
        const float *weights = work->weights + l * work->padded_keys;
        float *grad = work->grad_scores + l * work->padded_keys;
        vf sum = {0};
        for (long m = 0; m < work->padded_keys; m += LANES)
            sum += load_floats(weights + m) * load_floats(grad + m);
        float total = sum_of(sum);
        for (long m = 0; m < work->padded_keys; m += LANES)
            store_floats(grad + m, load_floats(weights + m) * (load_floats(grad + m) - total) *
                                       call->scale);
    }
}

/* The gradients of queries and keys, from that of the scores. */
INLINE void scores_backward(const attention_call *call, workspace *work, num *grad_query,
                            num *grad_key) {
    long keys = work->padded_keys, row = work->key_row;
    multiply_in_float32(work->queries, work->keys, work->grad_scores, keys, 1,
                        as_floats(work->key, work->keys * row, work->key_floats), row,
                        work->product);
    store_head(work->product, row, work->queries, work->key_width, grad_query, call->query_stride);
    multiply_in_float32(work->keys, work->queries, work->grad_scores, 1, keys,
                        as_floats(work->query, work->queries * row, work->query_floats), row,
                        work->product);
    store_head(work->product, row, work->keys, work->key_width, grad_key, call->key_stride);
}

static void attend_head(const attention_call *call, workspace *work, long sentence, long h) {
    long first = call->start[sentence], key_first = call->key_start[sentence];
    work->queries = call->start[sentence + 1] - first;
    work->keys = call->key_start[sentence + 1] - key_first;
    work->padded_keys = round_up(work->keys, LANES);
    long query_at = first * call->query_stride + h * work->key_width;
    long key_at = key_first * call->key_stride + h * work->key_width;
    long value_at = key_first * call->value_stride + h * work->value_width;
    long context_at = first * call->context_stride + h * work->value_width;
    long keys = work->padded_keys, row = work->value_row;
    compute_weights(call, work, call->query + query_at, call->key + key_at);
    copy_head(call->value + value_at, call->value_stride, work->keys, work->value_width, work->value,
              keys, row);
    const num *weights = as_nums(work->weights, work->queries * keys, work->rounded_weights);
    if (!call->grad_context) {
        multiply(work->queries, num_groups(work->keys), (const group *)weights, keys / GROUP_SIZE, 1,
                 as_groups(work->value, work->keys, row, work->value_groups), row, work->product);
        store_head(work->product, row, work->queries, work->value_width, call->context + context_at,
                   call->context_stride);
        return;
    }
    copy_head(call->grad_context + context_at, call->context_stride, work->queries,
              work->value_width, work->grad_context, work->queries, row);
    /* grad_value = weights^T grad_context */
    multiply(work->keys, num_groups(work->queries),
             as_groups(weights, work->queries, keys, work->weight_groups), 1, keys,
             as_groups(work->grad_context, work->queries, row, work->grad_groups), row,
             work->product);
    store_head(work->product, row, work->keys, work->value_width, call->grad_value + value_at,
               call->value_stride);
    /* grad_weights = grad_context value^T, stored where the gradient of the scores will be */
    multiply(work->queries, num_groups(work->value_width), (const group *)work->grad_context,
             row / GROUP_SIZE, 1, transpose_groups(work->value, keys, row, work->transposed), keys,
             work->grad_scores);
    softmax_backward(call, work);
    scores_backward(call, work, call->grad_query + query_at, call->grad_key + key_at);
}

/* Attend; with a gradient of the context, compute the other gradients instead. */
EXPORT int64_t attend(const attention_call *call) {
    /* Buffers have room for the longest sentence. */
    long queries = 0, keys = 0;
    for (long s = 0; s < call->sentences; s++) {
        long own_queries = call->start[s + 1] - call->start[s];
        long own_keys = call->key_start[s + 1] - call->key_start[s];
        queries = own_queries > queries ? own_queries : queries;
        keys = own_keys > keys ? own_keys : keys;
    }
    long key_row = round_up(call->key_width, ROW_STEP);
    long value_row = round_up(call->value_width, ROW_STEP);
    long row = key_row > value_row ? key_row : value_row;
    long padded_keys = round_up(keys, LANES), longest = queries > keys ? queries : keys;
    long query_groups = num_groups(queries);
    size_t sizes[] = {
        sizeof(num) * queries * key_row,
        sizeof(num) * padded_keys * key_row,
        sizeof(num) * padded_keys * value_row,
        sizeof(num) * queries * value_row,
        sizeof(num) * queries * padded_keys,
        sizeof(num) * padded_keys * row,
        sizeof(group) * num_groups(keys) * value_row,
        sizeof(group) * query_groups * value_row,
        sizeof(group) * query_groups * padded_keys,
        sizeof(float) * queries * padded_keys,
        sizeof(float) * queries * padded_keys,
        sizeof(float) * queries * key_row,
        sizeof(float) * keys * key_row,
        sizeof(float) * longest * row,
    };
    enum { PARTS = sizeof sizes / sizeof *sizes };
    size_t total = 0;
    for (int i = 0; i < PARTS; i++) total += sizes[i] = round_up(sizes[i], 64);
    /* Heads of a sentence are adjacent in memory, so one thread takes them all, unless there are too
     * few sentences to keep every thread busy. */
    long chunk = call->sentences < 4 * omp_get_max_threads() ? 1 : call->heads;
    thread_buffers buffers;
    if (!allocate(&buffers, total, omp_get_max_threads())) return NO_MEMORY;
#pragma omp parallel
    {
        workspace work = {.key_width = call->key_width, .value_width = call->value_width};
        work.key_row = key_row;
        work.value_row = value_row;
        /* In the order of `sizes`. */
        void *parts[] = {&work.query, &work.key, &work.value, &work.grad_context,
                         &work.rounded_weights, &work.transposed, &work.value_groups,
                         &work.grad_groups, &work.weight_groups, &work.weights, &work.grad_scores,
                         &work.query_floats, &work.key_floats, &work.product};
        char *next = buffer_of(&buffers, omp_get_thread_num());
        for (int i = 0; i < PARTS; next += sizes[i++]) *(char **)parts[i] = next;
#pragma omp for collapse(2) schedule(dynamic, chunk)
        for (long s = 0; s < call->sentences; s++)
            for (long h = 0; h < call->heads; h++) attend_head(call, &work, s, h);
    }
    free(buffers.all);
    return DONE;
}
