/* One step of the decoder for the rows of several sentences, up to the best next tokens. */
#include <math.h>

#include "search.h"

static void attend_to_targets(scratch *s, const job *j, const layer *l, long index,
                              const row *rows, long num_rows) {
    const model *m = s->model;
    const long keys = m->num_heads * m->d_key, stride = keys + m->num_heads * m->d_value;
    project(s, &l->project_in, &l->norms[0], num_rows);
    for (long i = 0; i < num_rows; i++) {
        slot *own = rows[i].slot;
        const float *wide = s->wide + i * s->wide_stride;
        float *cache = own->caches[index];
        uint16_t *ancestors = own->ancestors[0] + rows[i].place * own->room;
        /* Written before attending, because a token also attends to itself. */
        memcpy(cache + (own->length * j->width + rows[i].place) * stride, wide + keys,
               (size_t)stride * sizeof *cache);
        /* The newest keys and values are at the row's own place; older ones may be at others. */
        ancestors[own->length] = (uint16_t)rows[i].place;
        attend_to_past(m, wide, cache, j->width, ancestors, own->length + 1, s->scores,
                       s->context + i * s->context_stride);
    }
    finish_attention(s, &l->self_out, &l->norms[0], num_rows);
}

static void advance_units(scratch *s, const job *j, const layer *l, long index, const row *rows,
                          long num_rows) {
    const model *m = s->model;
    const long size = kept_numbers(m);
    const float *x = before(s, &l->norms[0], num_rows);
    input in = make_input(s, &l->project_in, x, s->model_stride, num_rows);
    multiply_together(s->team, &l->project_in, &in, 0, num_panels(&l->project_in), s->wide,
                      s->wide_stride, 0);
    multiply_together(s->team, &l->self_out, &in, 0, num_panels(&l->self_out), s->wide + size,
                      s->wide_stride, 0);
    for (long i = 0; i < num_rows; i++) {
        slot *own = rows[i].slot;
        float *cache = own->caches[index];
        uint16_t *ancestors = own->ancestors[0] + rows[i].place * own->room;
        const long last = own->length - 1;
        const float *past = NULL;
        if (last >= 0) past = cache + (last * j->width + ancestors[last]) * size;
        float *now = cache + (own->length * j->width + rows[i].place) * size;
        ancestors[own->length] = (uint16_t)rows[i].place;
        advance_unit(m, past, now, s->wide + i * s->wide_stride);
    }
    add_and_normalize(m, &l->norms[0], s->x, s->wide, s->wide_stride, num_rows);
}

/* The weights of a row at its source, which attend_to_source left as exponentials and their sum. */
static void keep_weights(const model *m, const row *r, long index, const float *scores) {
    const long length = r->slot->source_length, stride = score_stride(length);
    for (long head = 0; head < m->num_heads; head++) {
        const float total = scores[(head + 1) * stride - LANES];
        float *weights = r->weights + (index * m->num_heads + head) * r->weights_step;
        for (long i = 0; i < length; i++) weights[i] = scores[head * stride + i] / total;
    }
}

static void attend_to_sources(scratch *s, const layer *l, long index, const row *rows,
                              long num_rows) {
    const model *m = s->model;
    const long keys = m->num_heads * m->d_key, values = m->num_heads * m->d_value;
    project(s, &l->cross_query, &l->norms[1], num_rows);
    for (long i = 0; i < num_rows; i++) {
        const slot *own = rows[i].slot;
        const long length = own->source_length;
        const float *memory = own->memory + index * (keys + values) * length;
        source_memory source = {memory, memory + keys * length, length, m->d_value,
                                m->d_value * length};
        attend_to_source(m, s->wide + i * s->wide_stride, &source, s->scores,
                         s->context + i * s->context_stride);
        if (rows[i].weights) keep_weights(m, &rows[i], index, s->scores);
    }
    finish_attention(s, &l->cross_out, &l->norms[1], num_rows);
}

/* Add a block's exponentials to a row's sum. */
static void add_exponentials(row *r, const float *logits, long width) {
    vf largest = vf_all(-INFINITY), sum = vf_zero();
    for (long i = 0; i < width; i += LANES) largest = vf_max(vf_load(logits + i), largest);
    float most = vf_largest(largest);
    /* With nothing finite yet 0 is subtracted: -INFINITY less itself would be no number. */
    if (most < r->largest || most == -INFINITY) most = r->largest == -INFINITY ? 0.0f : r->largest;
    const vf subtracted = vf_all(most);
    for (long i = 0; i < width; i += LANES)
        sum = vf_add(sum, vf_exp(vf_sub(vf_load(logits + i), subtracted)));
    if (r->largest > -INFINITY && most > r->largest) {
        float factor[LANES];
        vf_store(factor, vf_exp(vf_all(r->largest - most)));
        r->sum *= factor[0];
    }
    r->largest = most;
    r->sum += vf_sum(sum);
}

static void insert(candidates *found, row *r, long index, float value, int32_t id) {
    float *values = found->values + index * found->count;
    int32_t *ids = found->ids + index * found->count;
    long place = r->num_found < found->count ? r->num_found++ : found->count - 1;
    /* Of equal values the first stays before the others. */
    for (; place > 0 && values[place - 1] < value; place--) {
        values[place] = values[place - 1];
        ids[place] = ids[place - 1];
    }
    values[place] = value;
    ids[place] = id;
}

/* Look for candidates among a block's logits, of which some are forbidden. */
static void look_at_block(const job *j, candidates *found, long index, float *logits, long first,
                          long width) {
    row *r = &found->rows[index];
    const slot *own = r->slot;
    const int64_t *prefix = j->prefix_starts + own->request;
    /* Within a prefix its token keeps its value, whatever other rules say. */
    if (own->length < prefix[1] - prefix[0]) {
        const int32_t written = j->prefix_ids[prefix[0] + own->length];
        const int32_t forced = written < 0 ? ~written : written;
        if (forced >= first && forced < first + width)
            insert(found, r, index, logits[forced - first], forced);
        return;
    }
    for (long i = 0; i < j->num_never; i++)
        if (j->never[i] >= first && j->never[i] < first + width)
            logits[j->never[i] - first] = -INFINITY;
    if (own->length + 1 < j->min_lengths[own->request] && j->eos_id >= first &&
        j->eos_id < first + width)
        logits[j->eos_id - first] = -INFINITY;
    const float *values = found->values + index * found->count;
    /* Most blocks have nothing above the least that is kept, and are left at one look. */
    float least = r->num_found < found->count ? -INFINITY : values[found->count - 1];
    for (long i = 0; i < width; i += LANES) {
        unsigned above = vf_greater(vf_load(logits + i), vf_all(least));
        for (; above; above &= above - 1) {
            const long at = i + __builtin_ctz(above);
            if (!(logits[at] > least)) continue;
            insert(found, r, index, logits[at], (int32_t)(first + at));
            if (r->num_found == found->count) least = values[found->count - 1];
        }
    }
}

/* Some of a row's logits, in blocks that are the same whatever else is computed with them: so a row's
 * sum is, too. Outputs beyond the vocabulary fill up the last panel. */
static void look_at_logits(const job *j, candidates *found, long index, float *logits, long first,
                           long count) {
    for (long at = 0; at < count; at += TILE_COLUMNS) {
        const long end = min_long(at + TILE_COLUMNS, count);
        const long width = min_long(first + end, j->model->output.out) - (first + at);
        for (long k = at + width; k < end; k++) logits[k] = -INFINITY;
        add_exponentials(&found->rows[index], logits + at, width);
        look_at_block(j, found, index, logits + at, first + at, width);
    }
}

static void find_candidates(scratch *s, const job *j, candidates *found, const float *states,
                            long num_rows) {
    const linear *l = &s->model->output;
    const long columns = tile_columns(num_rows), step = columns / LANES, panels = num_panels(l);
    input in = make_input(s, l, states, s->model_stride, num_rows);
    for (long i = 0; i < num_rows; i++) {
        found->rows[i].largest = -INFINITY;
        found->rows[i].sum = 0.0f;
        found->rows[i].num_found = 0;
    }
    for (long panel = 0; panel < panels; panel += step) {
        const long end = min_long(panel + step, panels), first = panel * LANES;
        multiply_together(s->team, l, &in, panel, end, s->tile, columns, 0);
        for (long i = 0; i < num_rows; i++)
            look_at_logits(j, found, i, s->tile + i * columns, first, (end - panel) * LANES);
    }
    for (long i = 0; i < num_rows; i++) {
        row *r = &found->rows[i];
        /* A sum that is no number, or nothing, ends the search of the sentence (extend_slot). */
        r->normalizer = r->sum > 0.0f && r->sum < INFINITY
                            ? (float)((double)r->largest + natural_log((double)r->sum))
                            : NAN;
        const int64_t *prefix = j->prefix_starts + r->slot->request;
        const long length = r->slot->length;
        /* What is given is certain: its logit less itself is 0. */
        if (length < prefix[1] - prefix[0] && j->prefix_ids[prefix[0] + length] < 0 &&
            isfinite(r->normalizer) && r->num_found)
            r->normalizer = found->values[i * found->count];
    }
}

/* Read the newest token of each row; return the states that the output is multiplied with. */
const float *decode_rows(scratch *s, const job *j, const row *rows, long num_rows) {
    const model *m = s->model;
    CHECK(0 < num_rows && num_rows <= s->rows);
    for (long i = 0; i < num_rows; i++) {
        const slot *own = rows[i].slot;
        CHECK(own->length < own->room && own->length < own->limit);
        CHECK(0 <= rows[i].place && rows[i].place < j->width);
        embed(m, &m->target, rows[i].newest, own->length, s->x + i * s->model_stride);
    }
    for (long index = 0; index < m->num_decoder_layers; index++) {
        const layer *l = &m->decoder[index];
        if (m->has_units)
            advance_units(s, j, l, index, rows, num_rows);
        else
            attend_to_targets(s, j, l, index, rows, num_rows);
        attend_to_sources(s, l, index, rows, num_rows);
        apply_feed_forward(s, l, num_rows);
    }
    if (!m->decoder_norm.gain) return s->x;
    normalize(m, &m->decoder_norm, s->x, s->normed, num_rows);
    return s->normed;
}

void decode_step(scratch *s, const job *j, candidates *found, long num_rows) {
    const float *states = decode_rows(s, j, found->rows, num_rows);
    (j->uniforms ? draw_tokens : find_candidates)(s, j, found, states, num_rows);
}
