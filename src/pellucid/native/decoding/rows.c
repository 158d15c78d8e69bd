/* Operations on the rows between products: norms, residual sums, activations, embeddings. */
#include <math.h>

#include "model.h"

static void normalize_row(const norm *n, long width, float epsilon, const float *x, float *y) {
    vf sum = vf_zero(), square = vf_zero();
    for (long i = 0; i < width; i += LANES)
        sum = vf_add(sum, vf_load_first(x + i, min_long(LANES, width - i)));
    const vf mean = vf_all(vf_sum(sum) / (float)width);
    for (long i = 0; i < width; i += LANES) {
        long count = min_long(LANES, width - i);
        float left[LANES];
        vf_store(left, vf_sub(vf_load_first(x + i, count), mean));
        vf rest = vf_load_first(left, count); /* 0 beyond the row, not less the mean */
        square = vf_fma(rest, rest, square);
    }
    const vf factor = vf_all(1.0f / sqrtf(vf_sum(square) / (float)width + epsilon));
    for (long i = 0; i < width; i += LANES) {
        long count = min_long(LANES, width - i);
        vf value = vf_mul(vf_sub(vf_load_first(x + i, count), mean), factor);
        value = vf_fma(value, vf_load_first(n->gain + i, count), vf_load_first(n->bias + i, count));
        vf_store_first(y + i, value, count);
    }
}

void normalize(const model *m, const norm *n, const float *x, float *y, long rows) {
    const long stride = round_up(m->d_model);
    for (long row = 0; row < rows; row++)
        normalize_row(n, m->d_model, (float)m->epsilon, x + row * stride, y + row * stride);
}

void add_and_normalize(const model *m, const norm *n, float *x, const float *y, long y_stride,
                       long rows) {
    const long stride = round_up(m->d_model);
    for (long row = 0; row < rows; row++) {
        float *to = x + row * stride;
        const float *from = y + row * y_stride;
        /* Rows of x and of a product's y are whole panels. */
        for (long i = 0; i < m->d_model; i += LANES) {
            vf value = vf_load(from + i);
            vf_store(to + i, m->has_residual ? vf_add(value, vf_load(to + i)) : value);
        }
        if (m->norm_place == POST_NORM) normalize_row(n, m->d_model, (float)m->epsilon, to, to);
    }
}

void activate(const model *m, float *x, long stride, long rows) {
    if (m->activation == RELU) return; /* the product did it */
    for (long row = 0; row < rows; row++)
        for (long i = 0; i < m->d_ff; i += LANES) {
            vf value = vf_load(x + row * stride + i), result;
            if (m->activation == GELU) {
                vf half = vf_mul(value, vf_all(0.5f));
                vf erf = vf_erf(vf_mul(value, vf_all(0.70710678118654752f)));
                result = vf_fma(half, erf, half);
            } else {
                vf below = vf_exp(vf_sub(vf_zero(), value));
                result = vf_div(value, vf_add(vf_all(1.0f), below));
            }
            vf_store(x + row * stride + i, result);
        }
}

/* One step of a recurrent unit. y has the candidate and the sum of the forget gate, and gets the
 * output; `now` gets the state that follows from `past`, which is NULL at the start. */
void advance_unit(const model *m, const float *past, float *now, float *y) {
    const long width = round_up(m->d_model);
    const vf one = vf_all(1.0f);
    for (long i = 0; i < width; i += LANES) {
        const vf below = vf_exp(vf_sub(vf_zero(), vf_load(y + width + i)));
        const vf forget = vf_div(one, vf_add(one, below));
        vf state = vf_mul(vf_sub(one, forget), vf_load(y + i));
        if (past) state = vf_fma(forget, vf_load(past + i), state);
        vf_store(now + i, state);
        vf_store(y + i, vf_max(vf_zero(), state));
    }
}

void embed(const model *m, const embedding *e, int32_t token, long position, float *x) {
    const long width = m->d_model;
    CHECK(0 <= token && token < e->size);
    CHECK(!e->positions || (0 <= position && position < e->num_positions));
    const vf factor = vf_all((float)m->embedding_factor);
    for (long i = 0; i < width; i += LANES) {
        long count = min_long(LANES, width - i);
        vf value;
        if (e->rows) {
            value = vf_load_first(e->rows + token * width + i, count);
        } else {
            int8_t bytes[LANES] = {0};
            memcpy(bytes, e->bytes + token * width + i, (size_t)count);
            value = vf_mul(vf_from_bytes(bytes), vf_all(e->scale[token]));
        }
        value = vf_mul(value, factor);
        if (e->positions)
            value = vf_add(value, vf_load_first(e->positions + position * width + i, count));
        vf_store(x + i, value);
    }
    if (e->norm.gain) normalize(m, &e->norm, x, x, 1);
}
