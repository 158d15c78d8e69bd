/* A model as the engine reads it, and the working memory of a thread.
 *
 * The structures that Python fills in have fields of eight bytes only; layout.py repeats them.
 * Axes: rows of a batch are A, and B sentences; widths are those of the configuration.
 */
#ifndef PELLUCID_MODEL_H
#define PELLUCID_MODEL_H

#include "lanes.h"

enum { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2 };
enum { NO_NORM = 0, PRE_NORM = 1, POST_NORM = 2 };
enum { RELU = 0, GELU = 1, SWISH = 2 };
enum { DONE = 0, NO_MEMORY = 1, STOPPED = 2, WRONG = 3 };

/* y = x W^T + b. The weights are packed: panels of 16 outputs, in each of them one input after the
 * other (with int8 four adjacent inputs), so that a product reads them in order. */
typedef struct {
    int64_t in, out; /* out is 0 if there is no such product */
    int64_t precision, offset;
    const void *weights;
    const float *bias;   /* whole panels; 0 without a bias */
    const float *scale;  /* int8: the size of a unit of each output's weights */
    const int32_t *sums; /* int8: what the sum of each output starts with */
} linear;

/* Rows of int8 products have 7 bits, so that two products fit 16 bits on every processor: numbers
 * from -63 to 63 with an offset of 64, or from 0 to 127 without one if no number is negative. The
 * sums start with -offset times the sum of the weights. */

typedef struct {
    const float *gain, *bias; /* NULL if there is no norm */
} norm;

typedef struct {
    norm norms[3];       /* of self-attention, cross-attention and feed-forward */
    linear project_in;   /* query, key and value; of a unit the candidate */
    linear self_out;     /* of a unit the forget gate */
    linear cross_query;
    linear cross_key_value; /* keys and values of the source, for this layer */
    linear cross_out;
    linear inner, outer;
} layer;

typedef struct {
    const float *rows;     /* NULL if they are bytes */
    const int8_t *bytes;
    const float *scale;    /* of each row of bytes */
    const float *positions; /* NULL without positions */
    norm norm;              /* of the sum of both */
    int64_t size, num_positions;
} embedding;

typedef struct {
    int64_t d_model, d_ff, num_heads, d_key, d_value, num_encoder_layers, num_decoder_layers;
    int64_t norm_place, activation, has_residual, has_projections;
    int64_t has_units; /* in the decoder, in the place of self-attention */
    double epsilon, embedding_factor, query_factor; /* 1 if weights hold the last */
    const layer *encoder, *decoder;
    norm encoder_norm, decoder_norm;
    linear output;
    embedding source, target;
} model;

/* The numbers that a decoder layer keeps of a hypothesis for each position: keys and values, or the
 * state of a unit, a whole panel. */
INLINE long kept_numbers(const model *m) {
    return m->has_units ? round_up(m->d_model) : m->num_heads * (m->d_key + m->d_value);
}

typedef struct team team;

/* What a thread computes with; `rows` is how many rows it has room for. */
typedef struct {
    const model *model;
    team *team; /* NULL: it computes alone */
    long rows, wide_stride, context_stride, inner_stride, model_stride;
    float *x, *normed, *wide, *context, *inner, *scores, *keys, *tile;
    uint8_t *bytes;
    long bytes_stride;
    float *scales;
    char *memory;
} scratch;

/* Logits are computed in blocks, and looked at while they are in the cache: for few rows some blocks
 * at once. */
enum { MOST_TILE_COLUMNS = 4096, TILE_COLUMNS = 512 };
INLINE long tile_columns(long rows) {
    return max_long(1, MOST_TILE_COLUMNS / TILE_COLUMNS / rows) * TILE_COLUMNS;
}

int allocate_scratch(scratch *s, const model *m, long rows, long longest_source, long longest);
void free_scratch(scratch *s);

/* Products with the panels from `first` to `end`; y has `y_stride` floats a row, whole panels. */
typedef struct {
    const float *x;
    long stride, rows;
    const uint8_t *bytes; /* of rows that were quantized */
    long bytes_stride;
    const float *scales;
} input;

input make_input(scratch *s, const linear *l, const float *x, long stride, long rows);
void multiply(const linear *l, const input *in, long first, long end, float *y, long y_stride,
              int is_relu);
/* team.c: helpers compute pieces of a product; t may be NULL. */
team *start_team(long num_helpers);
void end_team(team *t);
void multiply_together(team *t, const linear *l, const input *in, long first, long end, float *y,
                       long y_stride, int is_relu);
INLINE long num_panels(const linear *l) { return ceil_div(l->out, LANES); }

/* rows.c */
void normalize(const model *m, const norm *n, const float *x, float *y, long rows);
void add_and_normalize(const model *m, const norm *n, float *x, const float *y, long y_stride,
                       long rows);
void activate(const model *m, float *x, long stride, long rows);
void advance_unit(const model *m, const float *past, float *now, float *y);
void embed(const model *m, const embedding *e, int32_t token, long position, float *x);

/* attention.c: a softmax over `count` scores, in place and not divided by their sum, which is
 * returned; and sums of rows weighted by them. */
float exponentiate(float *scores, long count);

/* Each head's scores: whole vectors, and one more for their sum. */
INLINE long score_stride(long length) { return round_up(length) + LANES; }

/* A sentence's keys and values of one layer: keys transposed, [head][width][position], and values
 * with steps from a position and from a head to the next. Behind them LANES numbers can be read. */
typedef struct {
    const float *keys, *values;
    long length, value_step, head_step;
} source_memory;

void transpose_keys(const model *m, const float *rows, long stride, long length, float *keys);
void attend_to_source(const model *m, const float *query, const source_memory *memory,
                      float *scores, float *context);

void attend_to_past(const model *m, const float *query, const float *cache, long width,
                    const uint16_t *ancestors, long length, float *scores, float *context);

/* layers.c */
void apply_product(scratch *s, const linear *l, const float *x, long stride, long rows, float *y,
                   long y_stride);
void project(scratch *s, const linear *l, const norm *n, long rows);
const float *before(scratch *s, const norm *n, long rows);
void finish_attention(scratch *s, const linear *out, const norm *n, long rows);
void apply_feed_forward(scratch *s, const layer *l, long rows);
int encode(scratch *s, const int32_t *ids, const float *given, const long *lengths, long sentences,
           float *const *memories);
long memory_size(const model *m, long length);

#endif
