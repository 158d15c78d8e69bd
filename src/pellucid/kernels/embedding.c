/* The way in: embedding, position, dropout; and back. */
#include "vectors.h"

typedef struct {
    int64_t rows, width;
    const int64_t *id, *position; /* of each row */
    const float *table;           /* [vocabulary][width] */
    float scale;                  /* of embeddings */
    const float *token_factor;    /* of each row's embedding, or NULL */
    const float *positions;       /* [length][width], or NULL */
    dropping dropout;
    num *out;
    const num *grad;              /* on the way back: of `out` */
    float *grad_table;            /* grows, unless NULL */
    float *grad_positions;        /* likewise */
} embedding_call;

EXPORT void embed(const embedding_call *call) {
#pragma omp parallel for schedule(static)
    for (long r = 0; r < call->rows; r++) {
        const float *found = call->table + call->id[r] * call->width;
        float factor = call->token_factor ? call->scale * call->token_factor[r] : call->scale;
        for (long c = 0; c < call->width; c += LANES) {
            vf x = load_floats(found + c) * factor;
            if (call->positions)
                x += load_floats(call->positions + call->position[r] * call->width + c);
            store(call->out + r * call->width + c, drop(x, &call->dropout, r * call->width + c));
        }
    }
}

/* Each thread adds some columns of all rows, so that sums have one order. */
EXPORT void embed_backward(const embedding_call *call) {
#pragma omp parallel for schedule(static)
    for (long c = 0; c < call->width; c += LANES)
        for (long r = 0; r < call->rows; r++) {
            long at = r * call->width + c;
            float factor = call->token_factor ? call->scale * call->token_factor[r] : call->scale;
            vf grad = drop(load(call->grad + at), &call->dropout, at);
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
