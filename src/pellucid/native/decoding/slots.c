/* The hypotheses of one sentence: how they grow, end, and are ranked. */
#include <math.h>
#include <stdlib.h>

#include "search.h"

enum { FIRST_ROOM = 32 };

int make_slot(slot *s, const job *j) {
    memset(s, 0, sizeof *s);
    s->request = -1;
    s->caches = calloc((size_t)j->model->num_decoder_layers, sizeof *s->caches);
    s->totals = malloc((size_t)j->width * sizeof *s->totals);
    s->best = malloc((size_t)j->num_best * sizeof *s->best);
    /* At most all places end, and at most all of the last ones are cut off. */
    s->ended = malloc(2 * (size_t)j->width * sizeof *s->ended);
    return s->caches && s->totals && s->best && s->ended ? DONE : NO_MEMORY;
}

static void forget(slot *s) {
    for (long i = 0; i < s->num_ended; i++) free(s->ended[i].ids);
    s->num_ended = 0;
    free(s->memory);
    s->memory = NULL;
    s->request = -1;
}

void free_slot(slot *s, const job *j) {
    if (s->ended) forget(s);
    for (long i = 0; s->caches && i < j->model->num_decoder_layers; i++) free(s->caches[i]);
    for (int i = 0; i < 2; i++) free(s->ids[i]), free(s->logs[i]), free(s->ancestors[i]);
    free(s->caches), free(s->totals), free(s->best), free(s->ended);
}

int begin_slot(slot *s, const job *j, long request, float *memory) {
    s->request = request;
    s->memory = memory;
    s->source_length = j->source_starts[request + 1] - j->source_starts[request];
    s->length = 0;
    s->limit = j->limits[request];
    s->num_finished = s->num_ended = 0;
    /* One only: equal hypotheses would fill the beam with copies of one continuation. */
    for (long w = 0; w < j->width; w++) s->totals[w] = w ? -INFINITY : 0.0;
    for (long i = 0; i < j->num_best; i++) s->best[i] = -INFINITY;
    return DONE;
}

/* Change the length of the rows of a table. */
static void *resize(void *table, size_t size, long rows, long before, long after) {
    char *wider = malloc((size_t)(rows * after) * size);
    for (long i = 0; wider && table && i < rows; i++)
        memcpy(wider + (size_t)(i * after) * size, (char *)table + (size_t)(i * before) * size,
               (size_t)before * size);
    if (wider) free(table);
    return wider;
}

#define WIDEN(TABLE)                                                                               \
    do {                                                                                           \
        void *wider = resize(TABLE, sizeof *(TABLE), j->width, s->room, room);                     \
        if (!wider) return NO_MEMORY;                                                              \
        (TABLE) = wider;                                                                           \
    } while (0)

/* Have room for one more position. */
int make_room(slot *s, const job *j) {
    const model *m = j->model;
    const size_t position = (size_t)(j->width * kept_numbers(m));
    if (s->length < s->room) return DONE;
    const long room = s->room ? 2 * s->room : FIRST_ROOM;
    for (long i = 0; i < m->num_decoder_layers; i++) {
        float *longer = realloc(s->caches[i], (size_t)room * position * sizeof *longer);
        if (!longer) return NO_MEMORY;
        s->caches[i] = longer;
    }
    for (int i = 0; i < 2; i++) {
        /* A table that is lost here is freed with the slot; the room stays what it was. */
        WIDEN(s->ids[i]);
        WIDEN(s->logs[i]);
        WIDEN(s->ancestors[i]);
    }
    s->room = room;
    return DONE;
}

/* Write a hypothesis: its parent's tokens and one more. */
static void grow(slot *s, long parent, long place, int32_t id, float log) {
    const size_t length = (size_t)s->length;
    const long from = parent * s->room, at = place * s->room;
    memcpy(s->ids[1] + at, s->ids[0] + from, length * sizeof **s->ids);
    memcpy(s->logs[1] + at, s->logs[0] + from, length * sizeof **s->logs);
    memcpy(s->ancestors[1] + at, s->ancestors[0] + from, (length + 1) * sizeof **s->ancestors);
    s->ids[1][at + s->length] = id;
    s->logs[1][at + s->length] = log;
}

static void swap_tables(slot *s) {
    int32_t *ids = s->ids[0];
    float *logs = s->logs[0];
    uint16_t *ancestors = s->ancestors[0];
    s->ids[0] = s->ids[1], s->ids[1] = ids;
    s->logs[0] = s->logs[1], s->logs[1] = logs;
    s->ancestors[0] = s->ancestors[1], s->ancestors[1] = ancestors;
}

/* Keep a hypothesis that stops growing. */
static int keep_ended(slot *s, const job *j, long place, double total, int is_finished) {
    CHECK(s->num_ended < 2 * j->width && s->length <= j->longest_limit);
    ended *one = &s->ended[s->num_ended];
    const size_t length = (size_t)s->length;
    one->ids = malloc(length * (sizeof *one->ids + sizeof(float)));
    if (!one->ids) return NO_MEMORY;
    memcpy(one->ids, s->ids[0] + place * s->room, length * sizeof *one->ids);
    memcpy(one->ids + length, s->logs[0] + place * s->room, length * sizeof(float));
    one->length = s->length;
    one->is_finished = is_finished;
    one->score = total / j->penalties[s->length];
    s->num_ended++;
    if (!is_finished) return DONE;
    s->num_finished++;
    long at = j->num_best - 1;
    if (!(one->score > s->best[at])) return DONE;
    for (; at > 0 && s->best[at - 1] < one->score; at--) s->best[at] = s->best[at - 1];
    s->best[at] = one->score;
    return DONE;
}

/* Tell whether nothing that still grows can change the answer. */
static int is_done(const slot *s, const job *j) {
    double leader = -INFINITY;
    for (long w = 0; w < j->width; w++) leader = s->totals[w] > leader ? s->totals[w] : leader;
    if (leader == -INFINITY) return 1;
    if (j->stopping == NEVER) return 0;
    const long length = j->stopping == SAFE ? s->limit : s->length;
    return s->best[j->num_best - 1] >= leader / j->penalties[length];
}

typedef struct {
    long parent, index, rank; /* the parent's place, its row in the step, the next candidate */
    double base;              /* what the candidates' logits are added to */
} source_of_candidates;

/* Choose the best continuations of all hypotheses, as many as there are places, and grow them. */
static void choose(slot *s, const job *j, const candidates *found, long first, long num_rows,
                   double *totals) {
    source_of_candidates sources[num_rows];
    for (long i = 0; i < num_rows; i++) {
        const row *r = &found->rows[first + i];
        const double base = s->totals[r->place] - (double)r->normalizer;
        sources[i] = (source_of_candidates){r->place, first + i, 0, base};
    }
    /* A finished hypothesis keeps its place: docs/decisions/0009. */
    const long places = j->width - s->num_finished;
    for (long place = 0; place < j->width; place++) {
        totals[place] = -INFINITY;
        if (place >= places) continue;
        source_of_candidates *best = NULL;
        double most = -INFINITY;
        for (long i = 0; i < num_rows; i++) {
            source_of_candidates *one = &sources[i];
            if (one->rank >= found->rows[one->index].num_found) continue;
            double value = one->base + (double)found->values[one->index * found->count + one->rank];
            if (value > most) most = value, best = one;
        }
        if (!best) continue;
        const long at = best->index * found->count + best->rank++;
        const float log = found->values[at] - found->rows[best->index].normalizer;
        /* Rounding may leave a log-probability a little above 0. */
        const float bounded = log > 0.0f ? 0.0f : log;
        totals[place] = s->totals[best->parent] + (double)bounded;
        grow(s, best->parent, place, found->ids[at], bounded);
    }
    swap_tables(s);
}

int extend_slot(slot *s, const job *j, const candidates *found, long first, long num_rows) {
    for (long i = first; i < first + num_rows; i++)
        if (!isfinite(found->rows[i].normalizer)) {
            end_slot(s, j, 1);
            return DONE;
        }
    double totals[j->width];
    choose(s, j, found, first, num_rows, totals);
    s->length++;
    for (long place = 0; place < j->width; place++) {
        s->totals[place] = totals[place];
        if (totals[place] == -INFINITY) continue;
        const int is_end = s->ids[0][place * s->room + s->length - 1] == j->eos_id;
        if (!is_end && s->length < s->limit) continue;
        s->totals[place] = -INFINITY;
        if (keep_ended(s, j, place, totals[place], is_end)) return NO_MEMORY;
    }
    if (is_done(s, j)) end_slot(s, j, 0);
    return DONE;
}

/* Finished ones come first, then higher scores; of equals the one that ended first. */
static int is_better(const ended *x, const ended *y) {
    if (x->is_finished != y->is_finished) return x->is_finished;
    return x->score > y->score;
}

void end_slot(slot *s, const job *j, int has_overflowed) {
    const long request = s->request, count = min_long(s->num_ended, j->num_best);
    /* By insertion, which keeps the order of equals, as qsort need not. */
    for (long i = 1; i < s->num_ended; i++) {
        ended one = s->ended[i];
        long at = i;
        for (; at > 0 && is_better(&one, &s->ended[at - 1]); at--) s->ended[at] = s->ended[at - 1];
        s->ended[at] = one;
    }
    j->counts[request] = has_overflowed ? -1 : (int32_t)count;
    for (long i = 0; i < count && !has_overflowed; i++) {
        const ended *one = &s->ended[i];
        const int64_t at = j->result_starts[request] + i * s->limit;
        j->lengths[request * j->num_best + i] = (int32_t)one->length;
        j->finished[request * j->num_best + i] = one->is_finished;
        j->scores[request * j->num_best + i] = one->score;
        memcpy(j->ids + at, one->ids, (size_t)one->length * sizeof *j->ids);
        memcpy(j->logs + at, one->ids + one->length, (size_t)one->length * sizeof *j->logs);
    }
    forget(s);
}
