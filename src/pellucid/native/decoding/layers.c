/* The encoder, and what both kinds of layer share. */
#include <stdlib.h>

#include "model.h"

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

int allocate_scratch(scratch *s, const model *m, long rows, long longest_source, long longest) {
    const long keys = m->num_heads * m->d_key, values = m->num_heads * m->d_value;
    memset(s, 0, sizeof *s);
    s->model = m;
    s->rows = rows;
    s->model_stride = round_up(m->d_model);
    /* It also takes outputs of sub-layers, which may be wider than the projections. */
    s->wide_stride = max_long(round_up(2 * keys + values), 2 * s->model_stride);
    s->context_stride = round_up(values);
    s->inner_stride = round_up(m->d_ff);
    s->bytes_stride = max_long(max_long(s->model_stride, s->inner_stride), s->context_stride);
    const size_t floats[] = {
        (size_t)(rows * s->model_stride),   (size_t)(rows * s->model_stride),
        (size_t)(rows * s->wide_stride),    (size_t)(rows * s->context_stride),
        (size_t)(rows * s->inner_stride),   (size_t)(m->num_heads * score_stride(longest)),
        (size_t)(keys * longest_source + LANES),
        (size_t)max_long(rows * TILE_COLUMNS, MOST_TILE_COLUMNS),
        (size_t)rows,
    };
    float **places[] = {&s->x,    &s->normed, &s->wide, &s->context, &s->inner, &s->scores,
                        &s->keys, &s->tile,   &s->scales};
    const int count = sizeof places / sizeof *places;
    size_t bytes = aligned((size_t)(rows * s->bytes_stride));
    for (int i = 0; i < count; i++) bytes += aligned(floats[i] * sizeof(float));
    /* One block, in which each array begins a cache line. */
    s->memory = aligned_alloc(64, bytes);
    if (!s->memory) return NO_MEMORY;
    char *next = s->memory;
    for (int i = 0; i < count; i++) {
        *places[i] = (float *)next;
        next += aligned(floats[i] * sizeof(float));
    }
    s->bytes = (uint8_t *)next;
    return DONE;
}

void free_scratch(scratch *s) { free(s->memory); }

/* x after a sub-layer that starts with a norm, or x itself. */
const float *before(scratch *s, const norm *n, long rows) {
    if (s->model->norm_place != PRE_NORM) return s->x;
    normalize(s->model, n, s->x, s->normed, rows);
    return s->normed;
}

void apply_product(scratch *s, const linear *l, const float *x, long stride, long rows, float *y,
                   long y_stride) {
    input in = make_input(s, l, x, stride, rows);
    multiply_together(s->team, l, &in, 0, num_panels(l), y, y_stride, 0);
}

void apply_feed_forward(scratch *s, const layer *l, long rows) {
    const float *x = before(s, &l->norms[2], rows);
    input in = make_input(s, &l->inner, x, s->model_stride, rows);
    multiply_together(s->team, &l->inner, &in, 0, num_panels(&l->inner), s->inner,
                      s->inner_stride, s->model->activation == RELU);
    activate(s->model, s->inner, s->inner_stride, rows);
    apply_product(s, &l->outer, s->inner, s->inner_stride, rows, s->wide, s->wide_stride);
    add_and_normalize(s->model, &l->norms[2], s->x, s->wide, s->wide_stride, rows);
}

void project(scratch *s, const linear *l, const norm *n, long rows) {
    const model *m = s->model;
    const float *x = before(s, n, rows);
    if (m->has_projections) {
        apply_product(s, l, x, s->model_stride, rows, s->wide, s->wide_stride);
        /* In bfloat16 only: other weights hold the factor (weights.py). */
        for (long row = 0; m->query_factor != 1.0 && row < rows; row++)
            for (long i = 0; i < m->num_heads * m->d_key; i++)
                s->wide[row * s->wide_stride + i] *= (float)m->query_factor;
        return;
    }
    /* The vectors themselves are query, key and value. */
    for (long row = 0; row < rows; row++) {
        float *wide = s->wide + row * s->wide_stride;
        const float *from = x + row * s->model_stride;
        for (long i = 0; i < m->d_model; i++) wide[i] = from[i] * (float)m->query_factor;
        memcpy(wide + m->d_model, from, (size_t)m->d_model * sizeof *wide);
        memcpy(wide + 2 * m->d_model, from, (size_t)m->d_model * sizeof *wide);
    }
}

void finish_attention(scratch *s, const linear *out, const norm *n, long rows) {
    apply_product(s, out, s->context, s->context_stride, rows, s->wide, s->wide_stride);
    add_and_normalize(s->model, n, s->x, s->wide, s->wide_stride, rows);
}

static void attend_within_sentence(scratch *s, long row, long length) {
    const model *m = s->model;
    const long keys = m->num_heads * m->d_key;
    const float *wide = s->wide + row * s->wide_stride;
    source_memory memory = {s->keys, wide + 2 * keys, length, s->wide_stride, m->d_value};
    transpose_keys(m, wide + keys, s->wide_stride, length, s->keys);
    for (long i = 0; i < length; i++)
        attend_to_source(m, wide + i * s->wide_stride, &memory, s->scores,
                         s->context + (row + i) * s->context_stride);
}

long memory_size(const model *m, long length) {
    long keys = m->num_heads * m->d_key, values = m->num_heads * m->d_value;
    return m->num_decoder_layers * (keys + values) * length + LANES;
}

/* Store each sentence's keys and values for one layer of the decoder. */
static void remember(scratch *s, const float *states, const long *lengths, long sentences,
                     long index, float *const *memories) {
    const model *m = s->model;
    const long keys = m->num_heads * m->d_key, values = m->num_heads * m->d_value;
    const linear *l = &m->decoder[index].cross_key_value;
    long rows = 0, stride = s->model_stride, row = 0;
    for (long i = 0; i < sentences; i++) rows += lengths[i];
    const float *from = states;
    if (m->has_projections) {
        apply_product(s, l, states, s->model_stride, rows, s->wide, s->wide_stride);
        from = s->wide, stride = s->wide_stride;
    }
    /* Without projections the states are keys and values alike. */
    const long to_values = m->has_projections ? keys : 0;
    for (long i = 0; i < sentences; row += lengths[i++]) {
        float *to = memories[i] + index * (keys + values) * lengths[i];
        transpose_keys(m, from + row * stride, stride, lengths[i], to);
        to += keys * lengths[i];
        for (long head = 0; head < m->num_heads; head++)
            for (long j = 0; j < lengths[i]; j++, to += m->d_value)
                memcpy(to, from + (row + j) * stride + to_values + head * m->d_value,
                       (size_t)m->d_value * sizeof *to);
    }
}

/* Compute what the decoder reads of some sentences; `given` has the encoder's vectors, one after
 * another, if something else computed them, and is NULL otherwise. */
int encode(scratch *s, const int32_t *ids, const float *given, const long *lengths, long sentences,
           float *const *memories) {
    const model *m = s->model;
    long rows = 0;
    for (long i = 0; i < sentences; i++)
        for (long j = 0; j < lengths[i]; j++, rows++) {
            CHECK(rows < s->rows);
            float *x = s->x + rows * s->model_stride;
            if (!given) {
                embed(m, &m->source, ids[rows], j, x);
                continue;
            }
            /* Products read whole vectors of lanes, so nothing may lie behind the end. */
            memset(x, 0, (size_t)s->model_stride * sizeof *x);
            memcpy(x, given + rows * m->d_model, (size_t)m->d_model * sizeof *x);
        }
    for (long index = 0; !given && index < m->num_encoder_layers; index++) {
        const layer *l = &m->encoder[index];
        project(s, &l->project_in, &l->norms[0], rows);
        for (long i = 0, row = 0; i < sentences; row += lengths[i++])
            attend_within_sentence(s, row, lengths[i]);
        finish_attention(s, &l->self_out, &l->norms[0], rows);
        apply_feed_forward(s, l, rows);
    }
    const float *states = s->x;
    if (!given && m->encoder_norm.gain) {
        normalize(m, &m->encoder_norm, s->x, s->normed, rows);
        states = s->normed;
    }
    for (long index = 0; index < m->num_decoder_layers; index++)
        remember(s, states, lengths, sentences, index, memories);
    return DONE;
}
