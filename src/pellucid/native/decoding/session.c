/* Steps for a search in Python, whose rules C does not know.
 *
 * Python encodes sentences and puts them into the slots of a session. Each step reads a token of
 * every row and leaves the logits of the next in a table that Python sees as an array. Row
 * slot * width + place is a hypothesis of that slot. Threads share the rows of a step; every row is
 * computed by itself, so it has the same bits with any number of threads.
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "search.h"

enum {
    ENCODED_ROWS = 128, /* about how many source tokens are encoded together */
    STEP_ROWS = 64,     /* rows that a thread computes at once */
};

/* Call a function for each of some parts, the first in this thread. */
static void run_parts(void *(*work)(void *), char *parts, size_t size, long count) {
    pthread_t threads[count];
    int is_started[count];
    for (long i = 1; i < count; i++)
        is_started[i] = !pthread_create(&threads[i], NULL, work, parts + (size_t)i * size);
    work(parts);
    for (long i = 1; i < count; i++) {
        if (is_started[i]) pthread_join(threads[i], NULL);
        else work(parts + (size_t)i * size);
    }
}

/* Floats that hold the keys and values of a sentence of so many tokens. */
EXPORT int64_t size_of_memory(const model *m, int64_t length) { return memory_size(m, length); }

/* Sentences to encode; filled in by Python. */
typedef struct {
    const model *model;
    int64_t count, threads;
    const int32_t *ids;     /* of all sentences, one after another */
    const int64_t *starts;  /* one more than there are sentences */
    const float *given;     /* their vectors, if the encoder need not run, or NULL */
    float *memories;        /* of all sentences */
    const int64_t *offsets; /* where the memory of each begins; one more than there are */
} encoding;

typedef struct {
    const encoding *encoding;
    pthread_mutex_t *lock;
    int64_t *next; /* the first sentence that no thread has taken */
    int status;
} encoder;

static long take_sentences(encoder *w, long *first) {
    const encoding *e = w->encoding;
    long count = 0;
    pthread_mutex_lock(w->lock);
    *first = *w->next;
    while (*first + count < e->count && count < ENCODED_ROWS) {
        if (count && e->starts[*first + count + 1] - e->starts[*first] > ENCODED_ROWS) break;
        count++;
    }
    *w->next += count;
    pthread_mutex_unlock(w->lock);
    return count;
}

static void *encode_some(void *argument) {
    encoder *w = argument;
    const encoding *e = w->encoding;
    long longest = 0, first, count, lengths[ENCODED_ROWS];
    float *memories[ENCODED_ROWS];
    for (long i = 0; i < e->count; i++) longest = max_long(longest, e->starts[i + 1] - e->starts[i]);
    const long rows = max_long(longest, min_long(e->starts[e->count], ENCODED_ROWS));
    scratch s;
    w->status = allocate_scratch(&s, e->model, rows, longest, longest);
    while (!w->status && (count = take_sentences(w, &first))) {
        for (long i = 0; i < count; i++) {
            lengths[i] = e->starts[first + i + 1] - e->starts[first + i];
            memories[i] = e->memories + e->offsets[first + i];
            CHECK(e->offsets[first + i + 1] - e->offsets[first + i] ==
                  memory_size(e->model, lengths[i]));
        }
        const float *given = e->given ? e->given + e->starts[first] * e->model->d_model : NULL;
        encode(&s, e->ids + e->starts[first], given, lengths, count, memories);
    }
    free_scratch(&s);
    return NULL;
}

EXPORT int encode_sentences(const encoding *e) {
    CHECK(e->count > 0 && e->threads > 0 && e->starts[0] == 0);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int64_t next = 0;
    encoder workers[e->threads];
    for (long i = 0; i < e->threads; i++) workers[i] = (encoder){e, &lock, &next, DONE};
    run_parts(encode_some, (char *)workers, sizeof *workers, e->threads);
    for (long i = 0; i < e->threads; i++)
        if (workers[i].status) return workers[i].status;
    return DONE;
}

/* Logits of rows, each to its own place. They pass through the cache in blocks. */
void compute_logits(scratch *s, const float *states, long num_rows, float *const *to) {
    const linear *l = &s->model->output;
    const long columns = tile_columns(num_rows), step = columns / LANES, panels = num_panels(l);
    input in = make_input(s, l, states, s->model_stride, num_rows);
    for (long panel = 0; panel < panels; panel += step) {
        const long end = min_long(panel + step, panels), first = panel * LANES;
        const size_t width = (size_t)(min_long(end * LANES, l->out) - first);
        multiply_together(s->team, l, &in, panel, end, s->tile, columns, 0);
        for (long i = 0; i < num_rows; i++)
            memcpy(to[i] + first, s->tile + i * columns, width * sizeof *s->tile);
    }
}

typedef struct {
    job job;      /* of it only the model, the width and the number of hypotheses to keep count */
    slot *slots;
    long num_slots, num_made;
    row *rows;
    scratch *scratches; /* of each thread */
    long num_scratches, longest;
} session;

EXPORT void close_session(session *s) {
    if (!s) return;
    for (long i = 0; s->slots && i < s->num_made; i++) free_slot(&s->slots[i], &s->job);
    for (long i = 0; i < s->num_scratches; i++) free_scratch(&s->scratches[i]);
    free(s->slots), free(s->rows), free(s->scratches), free(s);
}

/* Make empty slots; the result is NULL if there is too little memory. */
EXPORT session *open_session(const model *m, int64_t num_slots, int64_t width) {
    CHECK(num_slots > 0 && 0 < width && width <= UINT16_MAX);
    session *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->job = (job){.model = m, .width = width, .num_best = 1};
    s->num_slots = num_slots;
    s->slots = calloc((size_t)num_slots, sizeof *s->slots);
    s->rows = malloc((size_t)(num_slots * width) * sizeof *s->rows);
    int status = s->slots && s->rows ? DONE : NO_MEMORY;
    for (; !status && s->num_made < num_slots; s->num_made++)
        status = make_slot(&s->slots[s->num_made], &s->job);
    if (!status) return s;
    close_session(s);
    return NULL;
}

EXPORT void empty_slot(session *s, int64_t index) {
    CHECK(0 <= index && index < s->num_slots);
    free(s->slots[index].memory);
    s->slots[index].memory = NULL;
    s->slots[index].request = -1;
}

/* Start a sentence in a slot; its keys and values are copied. */
EXPORT int fill_slot(session *s, int64_t index, const float *memory, int64_t length) {
    CHECK(length > 0);
    empty_slot(s, index);
    slot *own = &s->slots[index];
    const size_t bytes = (size_t)memory_size(s->job.model, length) * sizeof *memory;
    own->memory = malloc(bytes);
    if (!own->memory) return NO_MEMORY;
    memcpy(own->memory, memory, bytes);
    own->request = 0;
    own->source_length = length;
    own->length = 0;
    /* Python knows the limits of a search in Python. */
    own->limit = LONG_MAX;
    return DONE;
}

/* Keep only some slots, which are given in rising order. */
EXPORT void keep_slots(session *s, const int64_t *kept, int64_t count) {
    for (long i = 0; i < count; i++) {
        CHECK(i <= kept[i] && kept[i] < s->num_slots && (!i || kept[i - 1] < kept[i]));
        slot one = s->slots[i];
        s->slots[i] = s->slots[kept[i]];
        s->slots[kept[i]] = one;
    }
    for (long i = count; i < s->num_slots; i++) free_slot(&s->slots[i], &s->job);
    s->num_slots = s->num_made = count;
}

/* Let every hypothesis continue another one of its slot: parents[slot][place] is its place. */
EXPORT int reorder_slots(session *s, const int64_t *parents) {
    const long width = s->job.width;
    for (long i = 0; i < s->num_slots; i++) {
        slot *own = &s->slots[i];
        if (own->request < 0 || !own->length) continue;
        for (long place = 0; place < width; place++) {
            const int64_t parent = parents[i * width + place];
            if (parent < 0 || parent >= width) return WRONG;
            memcpy(own->ancestors[1] + place * own->room, own->ancestors[0] + parent * own->room,
                   (size_t)own->length * sizeof **own->ancestors);
        }
        uint16_t *ancestors = own->ancestors[0];
        own->ancestors[0] = own->ancestors[1], own->ancestors[1] = ancestors;
    }
    return DONE;
}

/* The rows that one thread computes. */
typedef struct {
    const session *session;
    scratch *scratch;
    long first, end;
    float *logits;
} part;

static void *compute_part(void *argument) {
    const part *p = argument;
    const session *s = p->session;
    const int64_t size = s->job.model->output.out;
    for (long first = p->first, count; first < p->end; first += count) {
        count = min_long(p->end - first, STEP_ROWS);
        const float *states = decode_rows(p->scratch, &s->job, s->rows + first, count);
        if (!p->logits) continue;
        float *to[STEP_ROWS];
        for (long i = 0; i < count; i++) {
            const row *r = &s->rows[first + i];
            to[i] = p->logits + ((r->slot - s->slots) * s->job.width + r->place) * size;
        }
        compute_logits(p->scratch, states, count, to);
    }
    return NULL;
}

/* Have working memory for each thread, and for positions up to `longest`. */
static int need_scratches(session *s, long threads, long longest) {
    if (threads > s->num_scratches || longest > s->longest) {
        const long positions = max_long(longest, 2 * s->longest);
        const long count = max_long(threads, s->num_scratches);
        for (long i = 0; i < s->num_scratches; i++) free_scratch(&s->scratches[i]);
        free(s->scratches);
        s->num_scratches = 0;
        s->scratches = calloc((size_t)count, sizeof *s->scratches);
        if (!s->scratches) return NO_MEMORY;
        const long rows = min_long(STEP_ROWS, s->num_slots * s->job.width);
        for (; s->num_scratches < count; s->num_scratches++)
            if (allocate_scratch(&s->scratches[s->num_scratches], s->job.model, rows, 1, positions))
                return NO_MEMORY;
        s->longest = positions;
    }
    return DONE;
}

/* List the rows to compute, have room for their keys and values, and find the longest row. */
static int list_rows(session *s, const int64_t *newest, const uint8_t *is_needed, float *logits,
                     float *weights, int64_t weights_step, long *num_rows, long *longest) {
    const model *m = s->job.model;
    const long width = s->job.width;
    const int64_t size = m->output.out, heads = m->num_decoder_layers * m->num_heads;
    *num_rows = *longest = 0;
    for (long at = 0; at < s->num_slots * width; at++) {
        slot *own = &s->slots[at / width];
        if (own->request >= 0 && make_room(own, &s->job)) return NO_MEMORY;
        if (own->request < 0 || (is_needed && !is_needed[at])) {
            if (logits) memset(logits + at * size, 0, (size_t)size * sizeof *logits);
            continue;
        }
        if (newest[at] < 0 || newest[at] >= m->target.size) return WRONG;
        CHECK(!weights || own->source_length <= weights_step);
        *longest = max_long(*longest, max_long(own->source_length, own->length + 1));
        s->rows[(*num_rows)++] =
            (row){.slot = own,
                  .place = at % width,
                  .newest = (int32_t)newest[at],
                  .weights = weights ? weights + at * heads * weights_step : NULL,
                  .weights_step = weights_step};
    }
    return DONE;
}

/* Read a token of every row.
 *
 * newest: [slot][place]; is_needed: likewise, or NULL if all rows are needed; logits:
 * [slot][place][vocabulary], zeros for rows that are not needed or in empty slots, or NULL if only
 * the weights are wanted; weights: of cross-attention, [slot][place][layer][head][weights_step], or
 * NULL. Those of other rows, and behind a source's end, are not written.
 */
EXPORT int step_session(session *s, const int64_t *newest, const uint8_t *is_needed, float *logits,
                        float *weights, int64_t weights_step, int64_t threads) {
    long num_rows, longest;
    int status =
        list_rows(s, newest, is_needed, logits, weights, weights_step, &num_rows, &longest);
    threads = max_long(1, min_long(threads, num_rows));
    if (!status && num_rows) status = need_scratches(s, threads, longest);
    if (status || !num_rows) return status;
    part parts[threads];
    for (long i = 0, first = 0; i < threads; i++) {
        const long end = first + (num_rows - first) / (threads - i);
        parts[i] = (part){s, &s->scratches[i], first, end, logits};
        first = end;
    }
    run_parts(compute_part, (char *)parts, sizeof *parts, threads);
    for (long i = 0; i < s->num_slots; i++)
        if (s->slots[i].request >= 0) s->slots[i].length++;
    return DONE;
}
