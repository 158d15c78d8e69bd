/* The embedding of tokens, their positions and dropout; and the gradient. */
#include "vectors.h"

typedef struct {
    int64_t rows, width;
    const int64_t *id, *position; /* of each row */
    const float *table;           /* [vocabulary][width] */
    float scale;                  /* of embeddings */
    const float *token_factor;    /* multiplies each row's embedding, or NULL */
    const float *positions;       /* [length][width], or NULL */
    dropout_mask dropout;
    num *out;
    /* For the backward pass. Gradients are added to what is there. */
    const num *grad;              /* of `out` */
    float *grad_table;            /* or NULL: not wanted */
    float *grad_positions;        /* or NULL: not wanted */
} embedding_call;

EXPORT void embed(const embedding_call *call) {
#pragma omp parallel for schedule(static)
    for (long r = 0; r < call->rows; r++) {
        const float *embedding = call->table + call->id[r] * call->width;
        float factor = call->token_factor ? call->scale * call->token_factor[r] : call->scale;
        for (long c = 0; c < call->width; c += LANES) {
            vf x = load_floats(embedding + c) * factor;
            if (call->positions)
                x += load_floats(call->positions + call->position[r] * call->width + c);
            long at = r * call->width + c;
            store(call->out + at, apply_dropout(x, &call->dropout, at));
        }
    }
}

/* Each thread adds up all rows of some columns, so that sums have the same order for any number of
 * threads. */
EXPORT void embed_backward(const embedding_call *call) {
#pragma omp parallel for schedule(static)
    for (long c = 0; c < call->width; c += LANES)
        for (long r = 0; r < call->rows; r++) {
            long at = r * call->width + c;
            float factor = call->token_factor ? call->scale * call->token_factor[r] : call->scale;
            vf grad = apply_dropout(load(call->grad + at), &call->dropout, at);
            if (call->grad_table) {
                float *to = call->grad_table + call->id[r] * call->width + c;
                store_floats(to, load_floats(to) + grad * factor);
            }
            if (call->grad_positions) {
                float *to = call->grad_positions + call->position[r] * call->width + c;
                store_floats(to, load_floats(to) + grad);
            }
        }
}
