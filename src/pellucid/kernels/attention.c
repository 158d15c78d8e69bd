/* Attention of every sentence and head by itself, without padding, in float32.
 *
 * Scores are worked out again on the way back instead of being kept.
 */
#include "products.h"

DEFINE_PRODUCT(multiply_narrow, floats_tile, 1, float) /* one vector's columns */

typedef struct {
    int64_t sentences, heads, key_width, value_width;
    const int64_t *start, *memory_start; /* the row that each sentence begins at, and the end */
    int64_t query_length, key_length, value_length; /* from row to row */
    const num *query, *key, *value;
    float factor;                        /* of scores */
    int64_t is_causal;                   /* a position sees none that follows it */
    int64_t context_length;
    num *context;
    /* On the way back: the gradient of the context, and those that are wanted; as long rows. */
    const num *grad_context;
    num *grad_query, *grad_key, *grad_value;
} attention_call;

/* One head of one sentence, in float32: matrices whose rows are filled up to whole vectors. */
typedef struct {
    long queries, keys, key_width, value_width; /* as they are */
    long padded_keys, padded_key_width, padded_value_width;
    float *query, *key, *key_turned, *value, *value_turned, *weights, *grad, *grad_scores, *out;
} head;

INLINE long to_vectors(long width) { return in_parts(width, LANES) * LANES; }

enum { LINE = 64 / sizeof(num) }; /* numbers that memory hands over together */

/* to[filled][width] = a head's columns of some rows, and zeros; the next head's columns are fetched
 * ahead. */
INLINE void take(const num *from, long length, long rows, long columns, float *to, long filled,
                 long width) {
    for (long r = 0; r < rows; r++, from += length, to += width) {
        long c = 0;
        for (long next = columns; next < 2 * columns; next += LINE) __builtin_prefetch(from + next);
        for (; c + LANES <= columns; c += LANES) store_floats(to + c, load(from + c));
        for (; c < columns; c++) to[c] = one(from[c]);
        for (; c < width; c++) to[c] = 0;
    }
    memset(to, 0, sizeof(float) * (filled - rows) * width);
}

INLINE void put(const float *from, long width, long rows, long columns, num *to, long length) {
    for (long r = 0; r < rows; r++, from += width, to += length) {
        long c = 0;
        for (; c + LANES <= columns; c += LANES) store(to + c, load_floats(from + c));
        for (; c < columns; c++) to[c] = narrowed(from[c]);
    }
}

/* to[columns][rows] = from[rows][columns]^T, both multiples of LANES. */
INLINE void turn(const float *from, long rows, long columns, float *to) {
    for (long c = 0; c < columns; c += LANES)
        for (long r = 0; r < rows; r += LANES)
            turn_square(from + r * columns + c, columns, to + c * rows + r, rows);
}

/* c[rows][columns] = a b with both in float32, the columns a multiple of LANES. */
INLINE void multiply(long rows, long sums, const float *a, long a_row, long a_sum, const float *b,
                     long columns, float *c) {
    long p = 0;
    for (; p + PANEL <= columns; p += PANEL)
        multiply_floats(rows, sums, a, a_row, a_sum, b + p, columns, c + p, columns, 0);
    if (p < columns)
        multiply_narrow(rows, sums, a, a_row, a_sum, b + p, columns, c + p, columns, 0);
}

/* Softmax of one row, times a factor, over the keys that may be seen; the others, and what fills
 * up, become 0. */
INLINE void softmax(float *row, float factor, long seen, long width) {
    vf none = spread(-INFINITY), most = none, sum = {0};
    for (long m = 0; m < width; m += LANES) {
        vf scaled = chosen(is_first(seen - m), load_floats(row + m) * factor, none);
        store_floats(row + m, scaled);
        most = larger(scaled, most);
    }
    float largest = most_of(most);
    for (long m = 0; m < width; m += LANES) {
        vf weight = exponential(load_floats(row + m) - largest);
        store_floats(row + m, weight);
        sum += weight;
    }
    float inverse = 1.0f / sum_of(sum);
    for (long m = 0; m < width; m += LANES) store_floats(row + m, load_floats(row + m) * inverse);
}

static void weigh(const attention_call *call, head *own, const num *query, const num *key) {
    take(query, call->query_length, own->queries, own->key_width, own->query, own->queries,
         own->padded_key_width);
    take(key, call->key_length, own->keys, own->key_width, own->key, own->padded_keys,
         own->padded_key_width);
    turn(own->key, own->padded_keys, own->padded_key_width, own->key_turned);
    multiply(own->queries, own->key_width, own->query, own->padded_key_width, 1, own->key_turned,
             own->padded_keys, own->weights);
    for (long l = 0; l < own->queries; l++)
        softmax(own->weights + l * own->padded_keys, call->factor,
                call->is_causal ? l + 1 : own->keys, own->padded_keys);
}

/* From weights and what reaches them to the gradient of scores, in its place. */
INLINE void scores_backward(const attention_call *call, head *own) {
    for (long l = 0; l < own->queries; l++) {
        const float *weights = own->weights + l * own->padded_keys;
        float *grad = own->grad_scores + l * own->padded_keys;
        vf sum = {0};
        for (long m = 0; m < own->padded_keys; m += LANES)
            sum += load_floats(weights + m) * load_floats(grad + m);
        float total = sum_of(sum);
        for (long m = 0; m < own->padded_keys; m += LANES)
            store_floats(grad + m, load_floats(weights + m) * (load_floats(grad + m) - total) *
                                       call->factor);
    }
}

static void attend_head(const attention_call *call, head *own, long sentence, long h) {
    long first = call->start[sentence], memory_first = call->memory_start[sentence];
    own->queries = call->start[sentence + 1] - first;
    own->keys = call->memory_start[sentence + 1] - memory_first;
    own->padded_keys = to_vectors(own->keys);
    const num *query = call->query + first * call->query_length + h * own->key_width;
    const num *key = call->key + memory_first * call->key_length + h * own->key_width;
    const num *value = call->value + memory_first * call->value_length + h * own->value_width;
    long value_at = memory_first * call->value_length + h * own->value_width;
    long context_at = first * call->context_length + h * own->value_width;
    long width = own->padded_value_width, key_width = own->padded_key_width;
    weigh(call, own, query, key);
    take(value, call->value_length, own->keys, own->value_width, own->value, own->padded_keys,
         width);
    if (!call->grad_context) {
        multiply(own->queries, own->keys, own->weights, own->padded_keys, 1, own->value, width,
                 own->out);
        put(own->out, width, own->queries, own->value_width, call->context + context_at,
            call->context_length);
        return;
    }
    take(call->grad_context + context_at, call->context_length, own->queries, own->value_width,
         own->grad, own->queries, width);
    multiply(own->keys, own->queries, own->weights, 1, own->padded_keys, own->grad, width, own->out);
    put(own->out, width, own->keys, own->value_width, call->grad_value + value_at,
        call->value_length);
    turn(own->value, own->padded_keys, width, own->value_turned);
    multiply(own->queries, own->value_width, own->grad, width, 1, own->value_turned,
             own->padded_keys, own->grad_scores);
    scores_backward(call, own);
    multiply(own->queries, own->keys, own->grad_scores, own->padded_keys, 1, own->key, key_width,
             own->out);
    put(own->out, key_width, own->queries, own->key_width,
        call->grad_query + first * call->query_length + h * own->key_width, call->query_length);
    multiply(own->keys, own->queries, own->grad_scores, 1, own->padded_keys, own->query, key_width,
             own->out);
    put(own->out, key_width, own->keys, own->key_width,
        call->grad_key + memory_first * call->key_length + h * own->key_width, call->key_length);
}

EXPORT int64_t attend(const attention_call *call) {
    long queries = 0, keys = 0;
    for (long s = 0; s < call->sentences; s++) {
        long own = call->start[s + 1] - call->start[s];
        long own_keys = call->memory_start[s + 1] - call->memory_start[s];
        queries = own > queries ? own : queries;
        keys = own_keys > keys ? own_keys : keys;
    }
    long key_width = to_vectors(call->key_width), value_width = to_vectors(call->value_width);
    long wide = key_width > value_width ? key_width : value_width;
    long padded_keys = to_vectors(keys), longest = queries > keys ? queries : keys;
    size_t sizes[] = {queries * key_width,       padded_keys * key_width,
                      padded_keys * key_width,   padded_keys * value_width,
                      padded_keys * value_width, queries * padded_keys,
                      queries * value_width,     queries * padded_keys,
                      longest * wide};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    size_t total = 0;
    for (int i = 0; i < PARTS; i++) total += sizes[i];
    /* Heads of a sentence lie beside each other; few sentences are shared out head by head. */
    long together = call->sentences < 4 * omp_get_max_threads() ? 1 : call->heads;
    shares memory;
    if (!allocate(&memory, sizeof(float) * total, omp_get_max_threads())) return NO_MEMORY;
#pragma omp parallel
    {
        head own = {.key_width = call->key_width, .value_width = call->value_width};
        own.padded_key_width = key_width;
        own.padded_value_width = value_width;
        float **parts[] = {&own.query, &own.key, &own.key_turned, &own.value, &own.value_turned,
                           &own.weights, &own.grad, &own.grad_scores, &own.out};
        float *next = share_of(&memory, omp_get_thread_num());
        for (int i = 0; i < PARTS; next += sizes[i++]) *parts[i] = next;
#pragma omp for collapse(2) schedule(dynamic, together)
        for (long s = 0; s < call->sentences; s++)
            for (long h = 0; h < call->heads; h++) attend_head(call, &own, s, h);
    }
    free(memory.all);
    return DONE;
}
