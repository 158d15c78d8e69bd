/* Attention of one query to keys and values as they lie in memory. */
#include <math.h>

#include "model.h"

float exponentiate(float *scores, long count) {
    vf largest = vf_all(-INFINITY), sum = vf_zero();
    for (long i = 0; i < count; i += LANES) {
        long some = min_long(LANES, count - i);
        if (some < LANES)
            for (long j = some; j < LANES; j++) scores[i + j] = -INFINITY;
        largest = vf_max(vf_load(scores + i), largest);
    }
    const vf most = vf_all(vf_largest(largest));
    for (long i = 0; i < count; i += LANES) {
        vf power = vf_exp(vf_sub(vf_load(scores + i), most));
        vf_store(scores + i, power);
        sum = vf_add(sum, power);
    }
    return vf_sum(sum);
}

void transpose_keys(const model *m, const float *rows, long stride, long length, float *keys) {
    const long padded = round_up(length), wide = m->num_heads * m->d_key;
    for (long k = 0; k < wide; k++) {
        float *to = keys + k * padded;
        for (long i = 0; i < length; i++) to[i] = rows[i * stride + k];
        for (long i = length; i < padded; i++) to[i] = 0.0f;
    }
}

/* Sums of rows of values, weighted: the context vector of a head. */
static void sum_values(const float *values, long stride, const float *weights, long count,
                       float total, long width, float *context) {
    for (long e = 0; e < width; e += LANES) {
        long some = min_long(LANES, width - e);
        vf sum = vf_zero();
        if (some == LANES)
            for (long i = 0; i < count; i++)
                sum = vf_fma(vf_all(weights[i]), vf_load(values + i * stride + e), sum);
        else
            for (long i = 0; i < count; i++)
                sum = vf_fma(vf_all(weights[i]), vf_load_first(values + i * stride + e, some), sum);
        vf_store_first(context + e, vf_div(sum, vf_all(total)), some);
    }
}

void attend_to_source(const model *m, const float *query, const source_memory *memory,
                      long value_stride, float *scores, float *context) {
    const long padded = memory->padded;
    for (long head = 0; head < m->num_heads; head++) {
        const float *q = query + head * m->d_key;
        const float *keys = memory->keys + head * m->d_key * padded;
        for (long i = 0; i < padded; i += LANES) {
            vf sum = vf_zero();
            for (long k = 0; k < m->d_key; k++)
                sum = vf_fma(vf_all(q[k]), vf_load(keys + k * padded + i), sum);
            vf_store(scores + i, sum);
        }
        float total = exponentiate(scores, memory->length);
        sum_values(memory->values + head * m->d_value, value_stride, scores, memory->length, total,
                   m->d_value, context + head * m->d_value);
    }
}

/* The scores of a head's query and `length` keys that lie in rows of a cache. */
static void score_rows(const float *query, const float *keys, long stride, long width,
                       const uint16_t *ancestors, long length, long d_key, float *scores) {
    const long whole = d_key / LANES * LANES, rest = d_key - whole;
    for (long t = 0; t < length; t++) {
        const float *key = keys + (t * width + ancestors[t]) * stride;
        vf sum = vf_zero();
        for (long k = 0; k < whole; k += LANES)
            sum = vf_fma(vf_load(query + k), vf_load(key + k), sum);
        if (rest)
            sum = vf_fma(vf_load_first(query + whole, rest), vf_load_first(key + whole, rest), sum);
        scores[t] = vf_sum(sum);
    }
}

/* A hypothesis attends to what it wrote before: at each position to the row of its ancestor. */
void attend_to_past(const model *m, const float *query, const float *cache, long width,
                    const uint16_t *ancestors, long length, float *scores, float *context) {
    const long keys = m->num_heads * m->d_key, stride = keys + m->num_heads * m->d_value;
    for (long head = 0; head < m->num_heads; head++) {
        score_rows(query + head * m->d_key, cache + head * m->d_key, stride, width, ancestors,
                   length, m->d_key, scores);
        const float total = exponentiate(scores, length);
        const float *values = cache + keys + head * m->d_value;
        for (long e = 0; e < m->d_value; e += LANES) {
            const long some = min_long(LANES, m->d_value - e);
            vf sum = vf_zero();
            for (long t = 0; t < length; t++) {
                const float *value = values + (t * width + ancestors[t]) * stride + e;
                sum = vf_fma(vf_all(scores[t]),
                             some == LANES ? vf_load(value) : vf_load_first(value, some), sum);
            }
            vf_store_first(context + head * m->d_value + e, vf_div(sum, vf_all(total)), some);
        }
    }
}
