/* The projection to the vocabulary, softmax and label-smoothed cross-entropy, with gradients.
 *
 * Of the logits there are those of some rows and COLUMNS columns at a time. What stays of a chunk
 * of rows is e^(logit - reference), for the gradient of the table: the reference is the true
 * token's logit, and rises only where another is so much larger that e^ of it would leave float32.
 */
#include "products.h"

enum { COLUMNS = 480, SOME_ROWS = 24 * PER_WORD, SUM_WORDS = 240 };
static const float FARTHEST = 30.0f; /* how far above the reference a logit may be */

typedef struct {
    int64_t rows, width, vocabulary;
    const num *states;          /* [rows][width] */
    const float *table;         /* [vocabulary][width] */
    const word *packed_turned;  /* the table as right factor of logits */
    const word *packed;         /* the table as right factor of probabilities */
    const float *table_sum;     /* over the vocabulary: [width] */
    const int64_t *target;
    float smoothing, factor;    /* all gradients are multiplied by the factor */
    float agreement;            /* half of R-Drop's alpha; not 0: rows come in pairs */
    int64_t chunk_rows;
    num *chunk;                 /* chunk_rows * filled vocabulary: see `chunk_size` */
    num *scaled;                /* [chunk_rows][width] */
    float *plain;               /* of each row: -log p(y) */
    num *grad_states;
    float *grad_table;          /* grows; NULL: not wanted */
} loss_call;

EXPORT int64_t filled(int64_t vocabulary) { return in_parts(vocabulary, COLUMNS) * COLUMNS; }

/* The state of a row within its softmax. */
typedef struct {
    float reference, total, truth;
    float pull; /* what agreement adds for the true token */
} row_state;

/* Two vectors' product. */
INLINE float dot(const num *x, const float *y, long width) {
    vf sum = {0};
    for (long c = 0; c < width; c += LANES) sum += load(x + c) * load_floats(y + c);
    return sum_of(sum);
}

/* e^(logit - reference) of one row's columns; the largest logit. */
INLINE float exponentials(const float *logits, long columns, float reference, num *to, float *sum) {
    vf total = {0}, most = spread(-INFINITY);
    long c = 0;
    for (; c + LANES <= columns; c += LANES) {
        vf logit = load_floats(logits + c), e = exponential(logit - reference);
        most = larger(logit, most);
        total += e;
        store(to + c, e);
    }
    float largest = most_of(most);
    *sum = sum_of(total);
    for (; c < columns; c++) {
        vf e = exponential(spread(logits[c] - reference));
        largest = logits[c] > largest ? logits[c] : largest;
        *sum += e[0];
        to[c] = narrowed(e[0]);
    }
    return largest;
}

/* Some rows' columns of a block: from logits to what stays of them. */
static void take_block(const loss_call *call, row_state *states, const float *logits, long first,
                       long rows, long block, long in_chunk) {
    num *chunk = call->chunk;
    long chunk_rows = call->chunk_rows;
    long column = block * COLUMNS, columns = least(COLUMNS, call->vocabulary - column);
    for (long r = 0; r < rows; r++) {
        row_state *state = states + r;
        const float *own = logits + r * COLUMNS;
        num *to = chunk + (block * chunk_rows + in_chunk + r) * COLUMNS;
        float sum, largest = exponentials(own, columns, state->reference, to, &sum);
        if (largest - state->reference > FARTHEST) {
            float shrinks = expf(state->reference - largest);
            state->reference = largest;
            state->total *= shrinks;
            for (long b = 0; b < block; b++) {
                num *before = chunk + (b * chunk_rows + in_chunk + r) * COLUMNS;
                for (long c = 0; c < COLUMNS; c += LANES) store(before + c, load(before + c) * shrinks);
            }
            exponentials(own, columns, state->reference, to, &sum);
        }
        for (long c = columns; c < COLUMNS; c++) to[c] = 0;
        state->total += sum;
        long y = call->target[first + r] - column;
        if (y >= 0 && y < columns) state->truth = own[y];
    }
}

/* One reading of a token beside the other: probabilities are what stays of the row / total. */
typedef struct {
    row_state *state;
    num *chunk;
    long true_at;
    float truth, apart; /* e^ of the true token's logit, unrounded; KL divergence from the other */
} reading;

/* The numbers of a row that lie together in the chunk, block after block. */
INLINE num *block_of(const loss_call *call, const reading *own, long block) {
    return own->chunk + block * call->chunk_rows * COLUMNS;
}

/* log p - log q, given their e^; both may be 0. */
INLINE vf log_ratio(vf p, vf q, float log_totals) {
    const float tiny = 1e-24f;
    return logarithm((p + tiny) / (q + tiny)) + log_totals;
}

/* What agreement adds to a row's e^, given those of both rows and the log of their ratio. */
INLINE vf pulled(const reading *own, vf e, vf others, vf ratio, float totals, float agreement) {
    return (e * (ratio - (own->apart - 1.0f)) - others * totals) * agreement;
}

/* Two readings of one token: what stays of them gets the gradient of
 * agreement / 2 * (KL(p||q) + KL(q||p)) with regard to either's logits, times the total. */
static void agree(const loss_call *call, reading *p, reading *q) {
    float p_total = p->state->total, q_total = q->state->total, log_totals = logf(q_total / p_total);
    long blocks = in_parts(call->vocabulary, COLUMNS);
    vf p_apart = {0}, q_apart = {0};
    p->chunk[p->true_at] = q->chunk[q->true_at] = 0;
    for (long b = 0; b < blocks; b++)
        for (long c = 0; c < COLUMNS; c += LANES) {
            vf p_e = load(block_of(call, p, b) + c), q_e = load(block_of(call, q, b) + c);
            vf ratio = log_ratio(p_e, q_e, log_totals);
            p_apart += p_e * ratio;
            q_apart -= q_e * ratio;
        }
    float ratio = (p->state->truth - p->state->reference) - (q->state->truth - q->state->reference) +
                  log_totals;
    p->apart = (sum_of(p_apart) + p->truth * ratio) / p_total;
    q->apart = (sum_of(q_apart) - q->truth * ratio) / q_total;
    float agreement = call->agreement, p_share = p_total / q_total, q_share = q_total / p_total;
    for (long b = 0; b < blocks; b++)
        for (long c = 0; c < COLUMNS; c += LANES) {
            num *p_at = block_of(call, p, b) + c, *q_at = block_of(call, q, b) + c;
            vf p_e = load(p_at), q_e = load(q_at), ratio_c = log_ratio(p_e, q_e, log_totals);
            store(p_at, p_e + pulled(p, p_e, q_e, ratio_c, p_share, agreement));
            store(q_at, q_e + pulled(q, q_e, p_e, -ratio_c, q_share, agreement));
        }
    vf p_truth = spread(p->truth), q_truth = spread(q->truth), true_ratio = spread(ratio);
    p->state->pull = pulled(p, p_truth, q_truth, true_ratio, p_share, agreement)[0];
    q->state->pull = pulled(q, q_truth, p_truth, -true_ratio, q_share, agreement)[0];
}

/* The place of a row's true token in the chunk. */
INLINE long true_place(const loss_call *call, long row) {
    long y = call->target[row];
    return y / COLUMNS * call->chunk_rows * COLUMNS + y % COLUMNS;
}

static void agree_in_pairs(const loss_call *call, row_state *states, long first, long rows,
                           long in_chunk) {
    for (long r = 0; r < rows; r += 2) {
        reading two[2];
        for (long i = 0; i < 2; i++) {
            row_state *state = states + r + i;
            two[i] = (reading){.state = state,
                               .chunk = call->chunk + (in_chunk + r + i) * COLUMNS,
                               .true_at = true_place(call, first + r + i),
                               .truth = expf(state->truth - state->reference)};
        }
        agree(call, two, two + 1);
    }
}

/* Losses of some rows, what stays of them, and the gradient of their states. */
static void take_rows(const loss_call *call, long first, long rows, long in_chunk, float *logits,
                      float *grad) {
    long chunk_rows = call->chunk_rows;
    long width = call->width, words = words_of(width), blocks = in_parts(call->vocabulary, COLUMNS);
    const word *x = (const word *)(call->states + first * width);
    row_state states[SOME_ROWS];
    for (long r = 0; r < rows; r++) {
        const float *true_row = call->table + call->target[first + r] * width;
        states[r] = (row_state){.reference = dot(call->states + (first + r) * width, true_row, width)};
    }
    for (long b = 0; b < blocks; b++) {
        long panel = b * COLUMNS / PANEL, end = in_parts(call->vocabulary, PANEL);
        long panels = least(COLUMNS / PANEL, end - panel);
        for (long p = 0; p < panels; p++)
            for (long k = 0; k < words; k += BLOCK_WORDS)
                multiply_words(rows, least(BLOCK_WORDS, words - k), x + k, words, 1,
                               call->packed_turned + ((panel + p) * words + k) * PANEL, PANEL,
                               logits + p * PANEL, COLUMNS, k > 0);
        take_block(call, states, logits, first, rows, b, in_chunk);
    }
    if (call->agreement != 0) agree_in_pairs(call, states, first, rows, in_chunk);
    for (long r = 0; r < rows; r++) {
        num *truth = call->chunk + (in_chunk + r) * COLUMNS + true_place(call, first + r);
        float e = expf(states[r].truth - states[r].reference); /* not rounded yet */
        *truth = narrowed(e + states[r].pull - (1 - call->smoothing) * states[r].total);
    }
    long block_words = COLUMNS / PER_WORD, table_words = blocks * block_words;
    long panels = in_parts(width, PANEL), length = panels * PANEL;
    for (long b = 0; b < blocks; b++) {
        const word *left = (const word *)(call->chunk + (b * chunk_rows + in_chunk) * COLUMNS);
        for (long k = 0; k < block_words; k += SUM_WORDS)
            for (long p = 0; p < panels; p++)
                multiply_words(rows, SUM_WORDS, left + k, block_words, 1,
                               call->packed + (p * table_words + b * block_words + k) * PANEL, PANEL,
                               grad + p * PANEL, length, b + k > 0);
    }
    float share = call->smoothing / (float)call->vocabulary;
    for (long r = 0; r < rows; r++) {
        const num *state = call->states + (first + r) * width;
        float inverse = 1.0f / states[r].total, log_total = states[r].reference + logf(states[r].total);
        call->plain[first + r] = log_total - states[r].truth;
        for (long c = 0; c < width; c += LANES) {
            vf own = load_floats(grad + r * length + c) * inverse - load_floats(call->table_sum + c) * share;
            store(call->grad_states + (first + r) * width + c, own * call->factor);
            store(call->scaled + (in_chunk + r) * width + c, load(state + c) * (inverse * call->factor));
        }
    }
}

/* grad_table += what stays of a chunk^T, times its scaled states; called by every thread. */
static void add_chunk(const loss_call *call, long rows, word *right, word *left) {
    long width = call->width, panels = in_parts(width, PANEL);
    enum { ROWS = BLOCK_WORDS * PER_WORD };
    for (long first = 0; first < rows; first += ROWS) {
        long taken = least(ROWS, rows - first), words = words_of(taken);
#pragma omp for schedule(static)
        for (long p = 0; p < panels; p++)
            pack_over_rows(call->scaled + first * width + p * PANEL, width, taken,
                           least(PANEL, width - p * PANEL), PANEL, right + p * words * PANEL);
#pragma omp for schedule(dynamic, 4)
        for (long v = 0; v < call->vocabulary; v += PACK_ROWS) {
            const num *from = call->chunk + (v / COLUMNS * call->chunk_rows + first) * COLUMNS;
            pack_over_rows(from + v % COLUMNS, COLUMNS, taken, PACK_ROWS, PACK_ROWS, left);
            add_outer(words, least(PACK_ROWS, call->vocabulary - v), left, right, width,
                      call->grad_table + v * width);
        }
    }
}

/* What label smoothing takes from every token's row alike: a share of the states' sum. */
static void take_smoothing(const loss_call *call, float *sums) {
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
    long length = in_parts(call->width, PANEL) * PANEL;
    size_t left_bytes = sizeof(word) * BLOCK_WORDS * PACK_ROWS;
    size_t logits_bytes = sizeof(float) * SOME_ROWS * COLUMNS;
    shares common, own;
    if (!allocate(&common, sizeof(word) * BLOCK_WORDS * length, 1)) return NO_MEMORY;
    if (!allocate(&own, left_bytes + logits_bytes + sizeof(float) * SOME_ROWS * length,
                  omp_get_max_threads())) {
        free(common.all);
        return NO_MEMORY;
    }
#pragma omp parallel
    {
        char *mine = share_of(&own, omp_get_thread_num());
        word *left = (word *)mine;
        float *logits = (float *)(mine + left_bytes), *grad = logits + SOME_ROWS * COLUMNS;
        for (long first = 0; first < call->rows; first += call->chunk_rows) {
            long rows = least(call->chunk_rows, call->rows - first);
#pragma omp for schedule(dynamic)
            for (long r = 0; r < rows; r += SOME_ROWS)
                take_rows(call, first + r, least(SOME_ROWS, rows - r), r, logits, grad);
            if (call->grad_table) add_chunk(call, rows, (word *)common.all, left);
        }
    }
    if (call->grad_table && call->smoothing != 0) take_smoothing(call, (float *)common.all);
    free(common.all);
    free(own.all);
    return DONE;
}
