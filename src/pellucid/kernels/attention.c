/* Attention of every sentence and head by itself, without padding.
 *
 * Scores are worked out again on the way back instead of being kept. Products are of numbers as
 * they lie in memory, but for the gradients of queries and keys: what all keys have in common
 * cancels out there, and that of scores must not be rounded for it.
 */
#include "products.h"

DEFINE_PRODUCT(multiply_narrow_floats, floats_tile, 1, float) /* one vector's columns */
#ifdef BF16
DEFINE_PRODUCT(multiply_narrow_words, words_tile, 1, word)
#else
#define multiply_narrow_words multiply_narrow_floats
#endif

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

/* One head of one sentence: matrices whose rows are filled up to whole vectors of words. */
typedef struct {
    long queries, keys, key_width, value_width; /* as they are */
    long padded_keys, key_row, value_row;
    num *query, *key, *value, *grad, *weight;
    word *turned, *value_pairs, *grad_pairs, *weight_pairs;
    float *weights, *grad_scores, *query_floats, *key_floats, *out;
} head;

INLINE long to_vectors(long width, long numbers) { return in_parts(width, numbers) * numbers; }

enum {
    LINE = 64 / sizeof(num), /* numbers that memory hands over together */
    ROW_STEP = LANES * PER_WORD,
};

/* to[filled][width] = a head's columns of some rows, and zeros; the next head's columns are fetched
 * ahead. */
INLINE void take(const num *from, long length, long rows, long columns, num *to, long filled,
                 long width) {
    for (long r = 0; r < rows; r++, from += length, to += width) {
        long c = 0;
        for (long next = columns; next < 2 * columns; next += LINE) __builtin_prefetch(from + next);
        for (; c + LANES <= columns; c += LANES) memcpy(to + c, from + c, sizeof(num) * LANES);
        for (; c < columns; c++) to[c] = from[c];
        for (; c < width; c++) to[c] = 0;
    }
    memset(to, 0, sizeof(num) * (filled - rows) * width);
}

/* Rows as float32, as numbers in memory, and as words of a sum over rows; where that is what they
 * are, they themselves. */
INLINE const float *as_floats(const num *rows, long numbers, float *to) {
    if (PER_WORD == 1) return (const float *)rows;
    for (long i = 0; i < numbers; i += LANES) store_floats(to + i, load(rows + i));
    return to;
}

INLINE const num *as_numbers(const float *rows, long numbers, num *to) {
    if (PER_WORD == 1) return (const num *)rows;
    for (long i = 0; i < numbers; i += LANES) store(to + i, load_floats(rows + i));
    return to;
}

INLINE const word *as_pairs(const num *rows, long count, long width, word *to) {
    if (PER_WORD == 1) return (const word *)rows;
    pack_over_rows(rows, width, count, width, width, to);
    return to;
}

INLINE void put(const float *from, long width, long rows, long columns, num *to, long length) {
    for (long r = 0; r < rows; r++, from += width, to += length) {
        long c = 0;
        for (; c + LANES <= columns; c += LANES) store(to + c, load_floats(from + c));
        for (; c < columns; c++) to[c] = narrowed(from[c]);
    }
}

/* Rows, so many of them a multiple of LANES, as words that rows are multiplied by. */
INLINE const word *as_columns(const num *from, long rows, long width, word *to) {
    long words = width / PER_WORD;
    for (long c = 0; c < words; c += LANES)
        for (long r = 0; r < rows; r += LANES)
            turn_square((const float *)from + r * words + c, words, (float *)to + c * rows + r, rows);
    return to;
}

/* c[rows][columns] = a b, the columns a multiple of LANES. */
#define DEFINE_MULTIPLY(NAME, WIDE, NARROW, WORD)                                                  \
    INLINE void NAME(long rows, long words, const WORD *a, long a_row, long a_word, const WORD *b, \
                     long columns, float *c) {                                                     \
        long p = 0;                                                                                \
        for (; p + PANEL <= columns; p += PANEL)                                                   \
            WIDE(rows, words, a, a_row, a_word, b + p, columns, c + p, columns, 0);                \
        if (p < columns) NARROW(rows, words, a, a_row, a_word, b + p, columns, c + p, columns, 0); \
    }
DEFINE_MULTIPLY(multiply, multiply_words, multiply_narrow_words, word)
DEFINE_MULTIPLY(multiply_exactly, multiply_floats, multiply_narrow_floats, float)

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
         own->key_row);
    take(key, call->key_length, own->keys, own->key_width, own->key, own->padded_keys, own->key_row);
    multiply(own->queries, words_of(own->key_width), (const word *)own->query,
             own->key_row / PER_WORD, 1,
             as_columns(own->key, own->padded_keys, own->key_row, own->turned), own->padded_keys,
             own->weights);
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

/* The gradients of queries and keys, from that of scores. */
INLINE void scores_to_inputs(const attention_call *call, head *own, num *grad_query, num *grad_key) {
    long keys = own->padded_keys, row = own->key_row;
    multiply_exactly(own->queries, own->keys, own->grad_scores, keys, 1,
                     as_floats(own->key, own->keys * row, own->key_floats), row, own->out);
    put(own->out, row, own->queries, own->key_width, grad_query, call->query_length);
    multiply_exactly(own->keys, own->queries, own->grad_scores, 1, keys,
                     as_floats(own->query, own->queries * row, own->query_floats), row, own->out);
    put(own->out, row, own->keys, own->key_width, grad_key, call->key_length);
}

static void attend_head(const attention_call *call, head *own, long sentence, long h) {
    long first = call->start[sentence], memory_first = call->memory_start[sentence];
    own->queries = call->start[sentence + 1] - first;
    own->keys = call->memory_start[sentence + 1] - memory_first;
    own->padded_keys = to_vectors(own->keys, LANES);
    long query_at = first * call->query_length + h * own->key_width;
    long key_at = memory_first * call->key_length + h * own->key_width;
    long value_at = memory_first * call->value_length + h * own->value_width;
    long context_at = first * call->context_length + h * own->value_width;
    long keys = own->padded_keys, row = own->value_row;
    weigh(call, own, call->query + query_at, call->key + key_at);
    take(call->value + value_at, call->value_length, own->keys, own->value_width, own->value, keys,
         row);
    const num *weight = as_numbers(own->weights, own->queries * keys, own->weight);
    if (!call->grad_context) {
        multiply(own->queries, words_of(own->keys), (const word *)weight, keys / PER_WORD, 1,
                 as_pairs(own->value, own->keys, row, own->value_pairs), row, own->out);
        put(own->out, row, own->queries, own->value_width, call->context + context_at,
            call->context_length);
        return;
    }
    take(call->grad_context + context_at, call->context_length, own->queries, own->value_width,
         own->grad, own->queries, row);
    multiply(own->keys, words_of(own->queries),
             as_pairs(weight, own->queries, keys, own->weight_pairs), 1, keys,
             as_pairs(own->grad, own->queries, row, own->grad_pairs), row, own->out);
    put(own->out, row, own->keys, own->value_width, call->grad_value + value_at, call->value_length);
    multiply(own->queries, words_of(own->value_width), (const word *)own->grad, row / PER_WORD, 1,
             as_columns(own->value, keys, row, own->turned), keys, own->grad_scores);
    scores_backward(call, own);
    scores_to_inputs(call, own, call->grad_query + query_at, call->grad_key + key_at);
}

EXPORT int64_t attend(const attention_call *call) {
    long queries = 0, keys = 0;
    for (long s = 0; s < call->sentences; s++) {
        long own = call->start[s + 1] - call->start[s];
        long own_keys = call->memory_start[s + 1] - call->memory_start[s];
        queries = own > queries ? own : queries;
        keys = own_keys > keys ? own_keys : keys;
    }
    long key_row = to_vectors(call->key_width, ROW_STEP);
    long value_row = to_vectors(call->value_width, ROW_STEP);
    long row = key_row > value_row ? key_row : value_row;
    long padded_keys = to_vectors(keys, LANES), longest = queries > keys ? queries : keys;
    long pairs = words_of(queries);
    size_t sizes[] = {
        sizeof(num) * queries * key_row,       sizeof(num) * padded_keys * key_row,
        sizeof(num) * padded_keys * value_row, sizeof(num) * queries * value_row,
        sizeof(num) * queries * padded_keys,   sizeof(num) * padded_keys * row,
        sizeof(word) * words_of(keys) * value_row, sizeof(word) * pairs * value_row,
        sizeof(word) * pairs * padded_keys,    sizeof(float) * queries * padded_keys,
        sizeof(float) * queries * padded_keys, sizeof(float) * queries * key_row,
        sizeof(float) * keys * key_row,        sizeof(float) * longest * row,
    };
    enum { PARTS = sizeof sizes / sizeof *sizes };
    size_t total = 0;
    for (int i = 0; i < PARTS; i++) total += sizes[i] = to_vectors(sizes[i], 64);
    /* Heads of a sentence lie beside each other; few sentences are shared out head by head. */
    long together = call->sentences < 4 * omp_get_max_threads() ? 1 : call->heads;
    shares memory;
    if (!allocate(&memory, total, omp_get_max_threads())) return NO_MEMORY;
#pragma omp parallel
    {
        head own = {.key_width = call->key_width, .value_width = call->value_width};
        own.key_row = key_row;
        own.value_row = value_row;
        void *parts[] = {&own.query, &own.key, &own.value, &own.grad, &own.weight,
                         &own.turned, &own.value_pairs, &own.grad_pairs, &own.weight_pairs,
                         &own.weights, &own.grad_scores, &own.query_floats, &own.key_floats,
                         &own.out};
        char *next = share_of(&memory, omp_get_thread_num());
        for (int i = 0; i < PARTS; next += sizes[i++]) *(char **)parts[i] = next;
#pragma omp for collapse(2) schedule(dynamic, together)
        for (long s = 0; s < call->sentences; s++)
            for (long h = 0; h < call->heads; h++) attend_head(call, &own, s, h);
    }
    free(memory.all);
    return DONE;
}
