/* Drawing the next token of each row by inverting the cumulative distribution.
 *
 * Python gives one number in [0, 1) for each token. pellucid.decode.search.sampling describes the
 * distribution; this follows it step by step, in double precision and in the order of the ids.
 */
#include <math.h>
#include <stdlib.h>

#include "search.h"

/* e^x for x <= 0, to about 1 unit in the last place; 0 below -708, and no number stays none.
 * 2^k e^r with |r| <= ln(2) / 2. Without multiply-adds: every processor rounds alike. */
INLINE double exponential(double x) {
    static const double FACTORS[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
        1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
        1.0 / 6,          1.0 / 2,         1.0,            1.0,
    };
    const double rounding = 6755399441055744.0; /* 3 * 2^51: its last bits become k */
    union { double value; uint64_t bits; } shifted, power;
    double bounded = x < -708.0 ? -708.0 : x, sum = 0.0;
    shifted.value = bounded * 1.4426950408889634 + rounding;
    const double k = shifted.value - rounding;
    const double r = (bounded - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    UNROLL for (int i = 0; i < 14; i++) sum = sum * r + FACTORS[i];
    power.bits = (shifted.bits + 1023) << 52;
    return x < -708.0 ? 0.0 : sum * power.value;
}

/* The logarithm of the softmax's denominator; no number if a logit is none or infinite. */
static float find_normalizer(const float *logits, long size, double *powers) {
    float most = -INFINITY;
    double sum = 0.0;
    for (long i = 0; i < size; i++) most = logits[i] > most ? logits[i] : most;
    for (long i = 0; i < size; i++) powers[i] = exponential((double)logits[i] - (double)most);
    for (long i = 0; i < size; i++) sum += powers[i];
    return sum > 0.0 && sum < INFINITY ? (float)((double)most + natural_log(sum)) : NAN;
}

/* Lower the logits of tokens that must not be drawn; return the only one allowed, or -1. */
static int32_t apply_rules(const job *j, const slot *own, float *logits) {
    const int64_t *prefix = j->prefix_starts + own->request;
    if (own->length < prefix[1] - prefix[0]) return j->prefix_ids[prefix[0] + own->length];
    for (long i = 0; i < j->num_never; i++) logits[j->never[i]] = -INFINITY;
    if (own->length + 1 < j->min_lengths[own->request]) logits[j->eos_id] = -INFINITY;
    return -1;
}

/* The softmax at the temperature of log-probabilities, which are bounded by 0; 0 if there is none. */
static int find_chances(const job *j, const float *logits, float normalizer, long size,
                        double *chances) {
    float most = -INFINITY;
    double sum = 0.0;
    for (long i = 0; i < size; i++) {
        const float log = logits[i] - normalizer;
        const float bounded = log > 0.0f ? 0.0f : log;
        chances[i] = (double)bounded;
        most = bounded > most ? bounded : most;
    }
    if (most == -INFINITY) return 0;
    const double temperature = j->temperature;
    for (long i = 0; i < size; i++)
        chances[i] = exponential((chances[i] - (double)most) / temperature);
    for (long i = 0; i < size; i++) sum += chances[i];
    for (long i = 0; i < size; i++) chances[i] /= sum;
    return 1;
}

/* Of equally likely tokens the lower id counts as likelier. */
INLINE int is_likelier(const double *chances, int32_t x, int32_t y) {
    return chances[x] > chances[y] || (chances[x] == chances[y] && x < y);
}

static void sift_down(const double *chances, int32_t *heap, long size, long at) {
    for (long child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && is_likelier(chances, heap[child + 1], heap[child])) child++;
        if (!is_likelier(chances, heap[child], heap[at])) return;
        const int32_t id = heap[at];
        heap[at] = heap[child], heap[child] = id;
    }
}

/* Chances are put into buckets first, each a fourth of an octave, and the last for all below. */
enum { BUCKETS = 256 };

INLINE long bucket_of(double chance) {
    union { double value; int64_t bits; } one = {1.0}, both = {chance};
    return min_long((one.bits >> 50) - (both.bits >> 50), BUCKETS - 1);
}

/* Make all chances 0 but those of the likeliest: top_k at most, and the fewest that hold top_p.
 * Only one bucket needs to be put in order: that in which the last of them lies. */
static void keep_likeliest(const job *j, double *chances, int32_t *heap, long size) {
    long counts[BUCKETS] = {0}, kept = 0, last = 0, left = 0;
    double sums[BUCKETS] = {0.0}, held = 0.0;
    const long most = j->top_k ? min_long(j->top_k, size) : size;
    const double share = j->top_p < 1.0 ? j->top_p : INFINITY;
    for (long i = 0; i < size; i++) {
        const long bucket = bucket_of(chances[i]);
        counts[bucket]++, sums[bucket] += chances[i];
    }
    for (; last < BUCKETS && kept + counts[last] <= most && held + sums[last] < share; last++)
        kept += counts[last], held += sums[last];
    for (long i = 0; i < size; i++) {
        const long bucket = bucket_of(chances[i]);
        if (bucket == last) heap[left++] = (int32_t)i;
        else if (bucket > last) chances[i] = 0.0;
    }
    for (long i = left / 2; i-- > 0;) sift_down(chances, heap, left, i);
    for (; left && kept < most && held < share; kept++) {
        held += chances[heap[0]];
        heap[0] = heap[--left];
        sift_down(chances, heap, left, 0);
    }
    for (long i = 0; i < left; i++) chances[heap[i]] = 0.0;
}

/* Find the first token at which the sum from the left exceeds its share of the whole. */
static int32_t invert(const double *chances, double uniform, long size) {
    double total = 0.0, sum = 0.0;
    for (long i = 0; i < size; i++) total += chances[i];
    /* A little less than the total: no sum exceeds the total, and rounding could reach it. */
    const double target = uniform * total * (1.0 - 0x1p-50);
    for (long i = 0; i < size; i++)
        if (chances[i] > 0.0 && (sum += chances[i]) > target) return (int32_t)i;
    return 0;
}

static int32_t draw(const job *j, const candidates *found, const float *logits, float normalizer,
                    double uniform) {
    const long size = j->model->output.out;
    double *chances = found->chances;
    if (!find_chances(j, logits, normalizer, size, chances)) return -1;
    double least = 0.0;
    if (j->epsilon > 0.0) {
        double most = 0.0;
        for (long i = 0; i < size; i++) most = chances[i] > most ? chances[i] : most;
        least = most < j->epsilon ? most : j->epsilon;
    }
    if (j->top_k || j->top_p < 1.0) keep_likeliest(j, chances, found->heap, size);
    for (long i = 0; least > 0.0 && i < size; i++)
        if (chances[i] < least) chances[i] = 0.0;
    return invert(chances, uniform, size);
}

void draw_tokens(scratch *s, const job *j, candidates *found, const float *states, long num_rows) {
    const long size = j->model->output.out;
    float *to[num_rows];
    CHECK(found->count == 1 && j->width == 1);
    for (long i = 0; i < num_rows; i++) to[i] = found->logits + i * size;
    compute_logits(s, states, num_rows, to);
    for (long i = 0; i < num_rows; i++) {
        row *r = &found->rows[i];
        const slot *own = r->slot;
        r->num_found = 0;
        r->normalizer = find_normalizer(to[i], size, found->chances);
        if (!isfinite(r->normalizer)) continue;
        int32_t id = apply_rules(j, own, to[i]);
        const int64_t *prefix = j->prefix_starts + own->request;
        /* What is given is certain: its logit less itself is 0. */
        if (own->length < prefix[1] - prefix[0] && id < 0) {
            id = ~id;
            r->normalizer = to[i][id];
        }
        const double uniform = j->uniforms[j->result_starts[own->request] + own->length];
        if (id < 0) id = draw(j, found, to[i], r->normalizer, uniform);
        if (id < 0) continue;
        found->values[i] = to[i][id];
        found->ids[i] = id;
        r->num_found = 1;
    }
}
