/* Attention of one query to keys and values as they lie in memory.
 *
 * Scores of all heads come first, then all exponentials, then all contexts: each of these is a long
 * chain of sums, and a processor computes several chains at once if they are next to each other.
 */
#include <math.h>

#include "model.h"

float exponentiate(float *scores, long count) {
    vf largest = vf_all(-INFINITY), sum = vf_zero();
    for (long i = 0; i < count; i += LANES) {
        vf some = vf_keep_first(vf_load(scores + i), min_long(LANES, count - i), -INFINITY);
        largest = vf_max(some, largest);
    }
    const vf most = vf_all(vf_largest(largest));
    for (long i = 0; i < count; i += LANES) {
        vf some = vf_keep_first(vf_load(scores + i), min_long(LANES, count - i), -INFINITY);
        vf power = vf_exp(vf_sub(some, most));
        vf_store(scores + i, power);
        sum = vf_add(sum, power);
    }
    return vf_sum(sum);
}

/* The scores of all heads become powers of e; the sum of each head's goes behind its scores. */
static void exponentiate_heads(long num_heads, float *scores, long count) {
    const long stride = score_stride(count);
    for (long head = 0; head < num_heads; head++) {
        float total = exponentiate(scores + head * stride, count);
        scores[(head + 1) * stride - LANES] = total;
    }
}

void transpose_keys(const model *m, const float *rows, long stride, long length, float *keys) {
    const long wide = m->num_heads * m->d_key;
    for (long k = 0; k < wide; k++)
        for (long i = 0; i < length; i++) keys[k * length + i] = rows[i * stride + k];
}

/* One head's scores. Reading beyond the last key is allowed: what it gives is not looked at. */
static void score_columns(const float *query, const float *keys, long length, long d_key,
                          float *scores) {
    long i = 0;
    for (; i + LANES < length; i += 2 * LANES) {
        vf first = vf_zero(), second = vf_zero();
        for (long k = 0; k < d_key; k++) {
            const float *some = keys + k * length + i;
            vf value = vf_all(query[k]);
            first = vf_fma(value, vf_load(some), first);
            second = vf_fma(value, vf_load(some + LANES), second);
        }
        vf_store(scores + i, first);
        vf_store(scores + i + LANES, second);
    }
    if (i < length) {
        vf sum = vf_zero();
        for (long k = 0; k < d_key; k++)
            sum = vf_fma(vf_all(query[k]), vf_load(keys + k * length + i), sum);
        vf_store(scores + i, sum);
    }
}

/* Where the values of a head are: one after another, or as ancestors say. */
typedef struct {
    const float *first;
    long step, width;
    const uint16_t *ancestors; /* NULL: one after another */
} value_rows;

INLINE const float *value_at(const value_rows *rows, long i) {
    return rows->first + (rows->ancestors ? i * rows->width + rows->ancestors[i] : i) * rows->step;
}

/* A head's context vector: the sum of its values, weighted. */
INLINE void sum_values(const value_rows *rows, const float *weights, long count, float total,
                       long width, float *context) {
    const vf divisor = vf_all(total);
    long e = 0;
    for (; e + 2 * LANES <= width; e += 2 * LANES) {
        vf first = vf_zero(), second = vf_zero();
        for (long i = 0; i < count; i++) {
            const float *value = value_at(rows, i) + e;
            vf weight = vf_all(weights[i]);
            first = vf_fma(weight, vf_load(value), first);
            second = vf_fma(weight, vf_load(value + LANES), second);
        }
        vf_store(context + e, vf_div(first, divisor));
        vf_store(context + e + LANES, vf_div(second, divisor));
    }
    for (; e < width; e += LANES) {
        const long some = min_long(LANES, width - e);
        vf sum = vf_zero();
        for (long i = 0; i < count; i++) {
            const float *value = value_at(rows, i) + e;
            vf part = some == LANES ? vf_load(value) : vf_load_first(value, some);
            sum = vf_fma(vf_all(weights[i]), part, sum);
        }
        vf_store_first(context + e, vf_div(sum, divisor), some);
    }
}

void attend_to_source(const model *m, const float *query, const source_memory *memory,
                      float *scores, float *context) {
    const long length = memory->length, stride = score_stride(length);
    for (long head = 0; head < m->num_heads; head++)
        score_columns(query + head * m->d_key, memory->keys + head * m->d_key * length, length,
                      m->d_key, scores + head * stride);
    exponentiate_heads(m->num_heads, scores, length);
    for (long head = 0; head < m->num_heads; head++) {
        const float *values = memory->values + head * memory->head_step;
        const value_rows rows = {values, memory->value_step, 0, NULL};
        sum_values(&rows, scores + head * stride, length, scores[(head + 1) * stride - LANES],
                   m->d_value, context + head * m->d_value);
    }
}

/* The scores of a head's query and `length` keys that lie in rows of a cache. */
static void score_rows(const float *query, const float *keys, long stride, long width,
                       const uint16_t *ancestors, long length, long d_key, float *scores) {
    const long whole = d_key / LANES * LANES, rest = d_key - whole;
    for (long first = 0; first < length; first += LANES) {
        const long count = min_long(LANES, length - first);
        vf products[LANES];
        for (long i = 0; i < count; i++) {
            const long t = first + i;
            const float *key = keys + (t * width + ancestors[t]) * stride;
            vf sum = vf_zero();
            for (long k = 0; k < whole; k += LANES)
                sum = vf_fma(vf_load(query + k), vf_load(key + k), sum);
            if (rest)
                sum = vf_fma(vf_load_first(query + whole, rest), vf_load_first(key + whole, rest),
                             sum);
            products[i] = sum;
        }
        for (long i = count; i < LANES; i++) products[i] = vf_zero();
        vf_store(scores + first, vf_sums(products));
    }
}

/* A hypothesis attends to what it wrote before: at each position to the row of its ancestor. */
void attend_to_past(const model *m, const float *query, const float *cache, long width,
                    const uint16_t *ancestors, long length, float *scores, float *context) {
    const long keys = m->num_heads * m->d_key, row = keys + m->num_heads * m->d_value;
    const long stride = score_stride(length);
    for (long head = 0; head < m->num_heads; head++)
        score_rows(query + head * m->d_key, cache + head * m->d_key, row, width, ancestors, length,
                   m->d_key, scores + head * stride);
    exponentiate_heads(m->num_heads, scores, length);
    for (long head = 0; head < m->num_heads; head++) {
        const value_rows rows = {cache + keys + head * m->d_value, row, width, ancestors};
        sum_values(&rows, scores + head * stride, length, scores[(head + 1) * stride - LANES],
                   m->d_value, context + head * m->d_value);
    }
}
