/* The projection to the vocabulary, softmax and label-smoothed cross-entropy, with gradients.
 *
 * Logits exist for a few rows and BLOCK_COLUMNS columns at a time. For a chunk of rows e^(logit -
 * reference) is kept, which the gradient of the table needs. The reference of a row is the logit of
 * its true token; it is raised only if another logit is so much larger that its e^ would overflow
 * float32.
 */
#include "products.h"

enum { BLOCK_COLUMNS = 480, ROWS_AT_ONCE = 24 * GROUP_SIZE, DEPTH_GROUPS = 240 };
static const float MAX_ABOVE_REFERENCE = 30.0f; /* how far above the reference a logit may be */

typedef struct {
    int64_t rows, width, vocabulary;
    const num *states;              /* [rows][width] */
    const float *table;             /* [vocabulary][width] */
    const group *packed_transposed; /* the table as right factor of states: gives logits */
    const group *packed;            /* the table as right factor of probabilities: gives gradients */
    const float *table_sum;         /* sum of the table's rows: [width] */
    const int64_t *target;
    float smoothing, factor;        /* all gradients are multiplied by the factor */
    float half_alpha;               /* half of R-Drop's alpha; if not 0, rows come in pairs */
    int64_t chunk_rows;
    num *chunk;                     /* blocks of [chunk_rows][BLOCK_COLUMNS] */
    num *scaled_states;             /* [chunk_rows][width] */
    float *nll;                     /* of each row: -log p(y) */
    num *grad_states;
    float *grad_table;              /* is added to; NULL: not wanted */
} loss_call;

EXPORT int64_t padded_vocabulary(int64_t vocabulary) { return round_up(vocabulary, BLOCK_COLUMNS); }

/* The softmax of one row: p = e^(logit - reference) / total. */
typedef struct {
    float reference, total, true_logit;
    float r_drop_grad; /* what R-Drop adds to the true token's gradient, times the total */
} softmax_row;

INLINE float dot(const num *x, const float *y, long width) {
    vf sum = {0};
    for (long c = 0; c < width; c += LANES) sum += load(x + c) * load_floats(y + c);
    return sum_of(sum);
}

/* to = e^(logit - reference) of one row's columns; returns the largest logit. */
INLINE float exponentiate_row(const float *logits, long columns, float reference, num *to,
                              float *sum) {
    vf total = {0}, largest_lanes = broadcast(-INFINITY);
    long c = 0;
    for (; c + LANES <= columns; c += LANES) {
        vf logit = load_floats(logits + c), e = exponential(logit - reference);
        largest_lanes = maximum(logit, largest_lanes);
        total += e;
        store(to + c, e);
    }
    float largest = max_of(largest_lanes);
    *sum = sum_of(total);
    for (; c < columns; c++) {
        vf e = exponential(broadcast(logits[c] - reference));
        largest = logits[c] > largest ? logits[c] : largest;
        *sum += e[0];
        to[c] = to_num(e[0]);
    }
    return largest;
}

/* Exponentiate one block of columns of some rows into the chunk. */
static void exponentiate_block(const loss_call *call, softmax_row *softmax_rows, const float *logits,
                               long first, long rows, long block, long chunk_row) {
    num *chunk = call->chunk;
    long chunk_rows = call->chunk_rows;
    long column = block * BLOCK_COLUMNS;
    long columns = min_long(BLOCK_COLUMNS, call->vocabulary - column);
    for (long r = 0; r < rows; r++) {
        softmax_row *softmax = softmax_rows + r;
        const float *row_logits = logits + r * BLOCK_COLUMNS;
        num *to = chunk + (block * chunk_rows + chunk_row + r) * BLOCK_COLUMNS;
        float sum, largest = exponentiate_row(row_logits, columns, softmax->reference, to, &sum);
        if (largest - softmax->reference > MAX_ABOVE_REFERENCE) {
            /* Raise the reference: scale what was computed before, and compute this block again. */
            float shrinks = expf(softmax->reference - largest);
            softmax->reference = largest;
            softmax->total *= shrinks;
            for (long b = 0; b < block; b++) {
                num *before = chunk + (b * chunk_rows + chunk_row + r) * BLOCK_COLUMNS;
                for (long c = 0; c < BLOCK_COLUMNS; c += LANES)
                    store(before + c, load(before + c) * shrinks);
            }
            exponentiate_row(row_logits, columns, softmax->reference, to, &sum);
        }
        for (long c = columns; c < BLOCK_COLUMNS; c++) to[c] = 0;
        softmax->total += sum;
        long y = call->target[first + r] - column;
        if (y >= 0 && y < columns) softmax->true_logit = row_logits[y];
    }
}

/* R-Drop: one of the two passes of a token, p or q. Its exponentials are in the chunk. */
typedef struct {
    softmax_row *softmax;
    num *chunk;
    long true_offset;
    float true_e, divergence; /* e^ of the true token's logit, unrounded; KL(this || other) */
} dropout_pass;

/* Where a block of the row is in the chunk. */
INLINE num *block_start(const loss_call *call, const dropout_pass *pass, long block) {
    return pass->chunk + block * call->chunk_rows * BLOCK_COLUMNS;
}

/* log p - log q from their exponentials, both of which may be 0. */
INLINE vf log_ratio(vf p, vf q, float log_totals) {
    const float tiny = 1e-24f;
    return logarithm((p + tiny) / (q + tiny)) + log_totals;
}

/* What R-Drop adds to the gradient of one pass's logits, times its total. */
INLINE vf r_drop_gradient(const dropout_pass *pass, vf e, vf others, vf ratio, float totals,
                          float half_alpha) {
    return (e * (ratio - (pass->divergence - 1.0f)) - others * totals) * half_alpha;
}

/* Add to the exponentials of both passes of a token the gradient, by their own logits, of
 * half_alpha * (KL(p||q) + KL(q||p)), times their total. */
static void add_r_drop(const loss_call *call, dropout_pass *p, dropout_pass *q) {
    float p_total = p->softmax->total, q_total = q->softmax->total;
    float log_totals = logf(q_total / p_total);
    long blocks = ceil_div(call->vocabulary, BLOCK_COLUMNS);
    vf p_divergence = {0}, q_divergence = {0};
    /* The true token is added at the end, from its unrounded exponential. */
    p->chunk[p->true_offset] = q->chunk[q->true_offset] = 0;
    for (long b = 0; b < blocks; b++)
        for (long c = 0; c < BLOCK_COLUMNS; c += LANES) {
            vf p_e = load(block_start(call, p, b) + c), q_e = load(block_start(call, q, b) + c);
            vf ratio = log_ratio(p_e, q_e, log_totals);
            p_divergence += p_e * ratio;
            q_divergence -= q_e * ratio;
        }
    float ratio = (p->softmax->true_logit - p->softmax->reference) -
                  (q->softmax->true_logit - q->softmax->reference) + log_totals;
    p->divergence = (sum_of(p_divergence) + p->true_e * ratio) / p_total;
    q->divergence = (sum_of(q_divergence) - q->true_e * ratio) / q_total;
    float half_alpha = call->half_alpha, p_share = p_total / q_total, q_share = q_total / p_total;
    for (long b = 0; b < blocks; b++)
        for (long c = 0; c < BLOCK_COLUMNS; c += LANES) {
            num *p_at = block_start(call, p, b) + c, *q_at = block_start(call, q, b) + c;
            vf p_e = load(p_at), q_e = load(q_at), ratio_c = log_ratio(p_e, q_e, log_totals);
            store(p_at, p_e + r_drop_gradient(p, p_e, q_e, ratio_c, p_share, half_alpha));
            store(q_at, q_e + r_drop_gradient(q, q_e, p_e, -ratio_c, q_share, half_alpha));
        }
    vf p_true = broadcast(p->true_e), q_true = broadcast(q->true_e), true_ratio = broadcast(ratio);
    p->softmax->r_drop_grad =
        r_drop_gradient(p, p_true, q_true, true_ratio, p_share, half_alpha)[0];
    q->softmax->r_drop_grad =
        r_drop_gradient(q, q_true, p_true, -true_ratio, q_share, half_alpha)[0];
}

/* Where the true token of a row is in the chunk, counted from the row's start. */
INLINE long true_offset(const loss_call *call, long row) {
    long y = call->target[row];
    return y / BLOCK_COLUMNS * call->chunk_rows * BLOCK_COLUMNS + y % BLOCK_COLUMNS;
}

static void add_r_drop_to_pairs(const loss_call *call, softmax_row *softmax_rows, long first,
                                long rows, long chunk_row) {
    for (long r = 0; r < rows; r += 2) {
        dropout_pass pair[2];
        for (long i = 0; i < 2; i++) {
            softmax_row *softmax = softmax_rows + r + i;
            pair[i] = (dropout_pass){.softmax = softmax,
                                     .chunk = call->chunk + (chunk_row + r + i) * BLOCK_COLUMNS,
                                     .true_offset = true_offset(call, first + r + i),
                                     .true_e = expf(softmax->true_logit - softmax->reference)};
        }
        add_r_drop(call, pair, pair + 1);
    }
}

/* The losses of some rows, their exponentials, and the gradient of their states. */
static void process_rows(const loss_call *call, long first, long rows, long chunk_row, float *logits,
                         float *grad) {
    long chunk_rows = call->chunk_rows, width = call->width, groups = num_groups(width);
    long blocks = ceil_div(call->vocabulary, BLOCK_COLUMNS);
    const group *x = (const group *)(call->states + first * width);
    softmax_row softmax_rows[ROWS_AT_ONCE];
    for (long r = 0; r < rows; r++) {
        const float *true_row = call->table + call->target[first + r] * width;
        softmax_rows[r] =
            (softmax_row){.reference = dot(call->states + (first + r) * width, true_row, width)};
    }
    for (long b = 0; b < blocks; b++) {
        long panel = b * BLOCK_COLUMNS / PANEL, end = ceil_div(call->vocabulary, PANEL);
        long panels = min_long(BLOCK_COLUMNS / PANEL, end - panel);
        for (long p = 0; p < panels; p++)
            for (long k = 0; k < groups; k += BLOCK_GROUPS)
                multiply_groups(rows, min_long(BLOCK_GROUPS, groups - k), x + k, groups, 1,
                                call->packed_transposed + ((panel + p) * groups + k) * PANEL, PANEL,
                                logits + p * PANEL, BLOCK_COLUMNS, k > 0);
        exponentiate_block(call, softmax_rows, logits, first, rows, b, chunk_row);
    }
    if (call->half_alpha != 0) add_r_drop_to_pairs(call, softmax_rows, first, rows, chunk_row);
    /* The gradient of the logits is p - q, and q of the true token is 1 - smoothing above the rest.
     * Subtracting that here, from an unrounded e^, keeps the digits of tokens with p near 1. */
    for (long r = 0; r < rows; r++) {
        num *to = call->chunk + (chunk_row + r) * BLOCK_COLUMNS + true_offset(call, first + r);
        float e = expf(softmax_rows[r].true_logit - softmax_rows[r].reference);
        *to = to_num(e + softmax_rows[r].r_drop_grad -
                     (1 - call->smoothing) * softmax_rows[r].total);
    }
    long block_groups = BLOCK_COLUMNS / GROUP_SIZE, table_groups = blocks * block_groups;
    long panels = ceil_div(width, PANEL), length = panels * PANEL;
    for (long b = 0; b < blocks; b++) {
        const group *left =
            (const group *)(call->chunk + (b * chunk_rows + chunk_row) * BLOCK_COLUMNS);
        for (long k = 0; k < block_groups; k += DEPTH_GROUPS)
            for (long p = 0; p < panels; p++)
                multiply_groups(rows, DEPTH_GROUPS, left + k, block_groups, 1,
                                call->packed + (p * table_groups + b * block_groups + k) * PANEL,
                                PANEL, grad + p * PANEL, length, b + k > 0);
    }
    float share = call->smoothing / (float)call->vocabulary;
    for (long r = 0; r < rows; r++) {
        const num *state = call->states + (first + r) * width;
        float inverse = 1.0f / softmax_rows[r].total;
        float log_total = softmax_rows[r].reference + logf(softmax_rows[r].total);
        call->nll[first + r] = log_total - softmax_rows[r].true_logit;
        for (long c = 0; c < width; c += LANES) {
            vf row_grad = load_floats(grad + r * length + c) * inverse -
                          load_floats(call->table_sum + c) * share;
            store(call->grad_states + (first + r) * width + c, row_grad * call->factor);
            store(call->scaled_states + (chunk_row + r) * width + c,
                  load(state + c) * (inverse * call->factor));
        }
    }
}

/* grad_table += chunk^T scaled_states; called by every thread. */
static void add_table_gradient(const loss_call *call, long rows, group *right, group *left) {
    long width = call->width, panels = ceil_div(width, PANEL);
    enum { ROWS = BLOCK_GROUPS * GROUP_SIZE };
    for (long first = 0; first < rows; first += ROWS) {
        long taken = min_long(ROWS, rows - first), groups = num_groups(taken);
#pragma omp for schedule(static)
        for (long p = 0; p < panels; p++)
            pack_over_rows(call->scaled_states + first * width + p * PANEL, width, taken,
                           min_long(PANEL, width - p * PANEL), PANEL, right + p * groups * PANEL);
#pragma omp for schedule(dynamic, 4)
        for (long v = 0; v < call->vocabulary; v += PACK_ROWS) {
            const num *from =
                call->chunk + (v / BLOCK_COLUMNS * call->chunk_rows + first) * BLOCK_COLUMNS;
            pack_over_rows(from + v % BLOCK_COLUMNS, BLOCK_COLUMNS, taken, PACK_ROWS, PACK_ROWS,
                           left);
            add_outer(groups, min_long(PACK_ROWS, call->vocabulary - v), left, right, width,
                      call->grad_table + v * width);
        }
    }
}

/* Label smoothing subtracts the same from every row of the table's gradient: a share of the sum of
 * all states. */
static void subtract_smoothing(const loss_call *call, float *sums) {
    float share = -call->smoothing * call->factor / (float)call->vocabulary;
    memset(sums, 0, sizeof(float) * call->width);
    for (long r = 0; r < call->rows; r++)
        for (long c = 0; c < call->width; c += LANES)
            store_floats(sums + c, load_floats(sums + c) + load(call->states + r * call->width + c));
#pragma omp parallel for schedule(static)
    for (long v = 0; v < call->vocabulary; v++)
        for (long c = 0; c < call->width; c += LANES) {
            float *to = call->grad_table + v * call->width + c;
            store_floats(to, load_floats(to) + load_floats(sums + c) * share);
        }
}

EXPORT int64_t cross_entropy(const loss_call *call) {
    long length = round_up(call->width, PANEL);
    size_t left_bytes = sizeof(group) * BLOCK_GROUPS * PACK_ROWS;
    size_t logits_bytes = sizeof(float) * ROWS_AT_ONCE * BLOCK_COLUMNS;
    thread_buffers common, own;
    if (!allocate(&common, sizeof(group) * BLOCK_GROUPS * length, 1)) return NO_MEMORY;
    if (!allocate(&own, left_bytes + logits_bytes + sizeof(float) * ROWS_AT_ONCE * length,
                  omp_get_max_threads())) {
        free(common.all);
        return NO_MEMORY;
    }
#pragma omp parallel
    {
        char *buffer = buffer_of(&own, omp_get_thread_num());
        group *left = (group *)buffer;
        float *logits = (float *)(buffer + left_bytes);
        float *grad = logits + ROWS_AT_ONCE * BLOCK_COLUMNS;
        for (long first = 0; first < call->rows; first += call->chunk_rows) {
            long rows = min_long(call->chunk_rows, call->rows - first);
#pragma omp for schedule(dynamic)
            for (long r = 0; r < rows; r += ROWS_AT_ONCE)
                process_rows(call, first + r, min_long(ROWS_AT_ONCE, rows - r), r, logits, grad);
            if (call->grad_table) add_table_gradient(call, rows, (group *)common.all, left);
        }
    }
    if (call->grad_table && call->smoothing != 0) subtract_smoothing(call, (float *)common.all);
    free(common.all);
    free(own.all);
    return DONE;
}
