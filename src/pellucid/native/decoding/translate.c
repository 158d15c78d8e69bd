/* The whole search for many sentences: each thread takes the next ones as places become free. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "search.h"

#ifndef SOURCES
#define SOURCES "unknown"
#endif

/* The hash of the sources that a library was built from. */
EXPORT const char sources[] = SOURCES;

enum {
    ENCODED_ROWS = 128, /* about how many source tokens are encoded together */
    ENCODED_AHEAD = 8,  /* sentences that wait for a slot, so that they are encoded together */
    A_TURN = 10,        /* milliseconds between two calls of a job's `turn` */
};

/* What the threads of a call share. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a thread has nothing left to do */
    int64_t next;         /* the first request that no thread has taken */
    long num_others;      /* threads that compute, without the caller's */
    _Atomic int is_paused;
    int64_t asked; /* when `turn` was called last, in milliseconds */
} shared;

typedef struct {
    const job *job;
    long num_helpers; /* threads that share its products */
    shared *shared;
    int is_caller, status;
} worker;

/* Sentences that are encoded and wait for a slot. */
typedef struct {
    long request[ENCODED_ROWS], first, end;
    float *memory[ENCODED_ROWS];
} waiting;

static long length_of(const job *j, long request) {
    return j->source_starts[request + 1] - j->source_starts[request];
}

static int64_t milliseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Let the caller do something else now and then; the other threads wait for it. */
static void give_way(worker *w) {
    shared *s = w->shared;
    if (!w->job->turn) return;
    if (!w->is_caller) {
        while (s->is_paused) usleep(1000);
        return;
    }
    if (*w->job->stop) return; /* what still waits for the others' last steps gives way no more */
    if (milliseconds(CLOCK_MONOTONIC) - s->asked < A_TURN) return;
    s->is_paused = 1;
    w->job->turn();
    s->is_paused = 0;
    s->asked = milliseconds(CLOCK_MONOTONIC);
}

/* Threads that take sentences; the others can only help with products. */
static long num_workers(const job *j) { return min_long(j->threads, j->num_requests); }

/* Take the next requests: about as many tokens as are encoded together, and a fair share. */
static long take(worker *w, long wanted, long *first) {
    const job *j = w->job;
    long count = 0, rows = 0;
    pthread_mutex_lock(&w->shared->lock);
    *first = w->shared->next;
    const long left = j->num_requests - *first, share = ceil_div(left, num_workers(j));
    const long most = min_long(min_long(max_long(wanted, ENCODED_AHEAD), share), ENCODED_ROWS);
    while (count < most) {
        rows += length_of(j, *first + count);
        if (count && rows > ENCODED_ROWS) break;
        count++;
    }
    w->shared->next += count;
    pthread_mutex_unlock(&w->shared->lock);
    return count;
}

static int encode_next(worker *w, scratch *s, waiting *ready, long wanted) {
    const job *j = w->job;
    long first, lengths[ENCODED_ROWS];
    const long count = take(w, wanted, &first);
    ready->first = ready->end = 0;
    for (long i = 0; i < count; i++) {
        lengths[i] = length_of(j, first + i);
        ready->request[i] = first + i;
        ready->memory[i] = malloc((size_t)memory_size(j->model, lengths[i]) * sizeof(float));
        if (!ready->memory[i]) return NO_MEMORY;
        ready->end++;
    }
    if (!count) return DONE;
    const int64_t start = j->source_starts[first];
    const float *given = j->given ? j->given + start * j->model->d_model : NULL;
    return encode(s, j->source_ids + start, given, lengths, count, ready->memory);
}

static int fill(worker *w, scratch *s, slot *slots, waiting *ready) {
    const job *j = w->job;
    for (long i = 0; i < j->slots; i++) {
        if (slots[i].request >= 0) continue;
        if (ready->first == ready->end) {
            int status = encode_next(w, s, ready, j->slots - i);
            if (status) return status;
            if (ready->first == ready->end) return DONE; /* none is left */
        }
        begin_slot(&slots[i], j, ready->request[ready->first], ready->memory[ready->first]);
        ready->first++;
    }
    return DONE;
}

/* List the hypotheses that grow. */
static int list_rows(const job *j, slot *slots, row *rows, long *num_rows) {
    *num_rows = 0;
    for (long i = 0; i < j->slots; i++) {
        if (slots[i].request < 0) continue;
        if (make_room(&slots[i], j)) return NO_MEMORY;
        const slot *own = &slots[i];
        for (long place = 0; place < j->width; place++) {
            if (!(own->totals[place] > -__builtin_inf())) continue;
            const int32_t *ids = own->ids[0] + place * own->room;
            const int32_t newest = own->length ? ids[own->length - 1] : (int32_t)j->start_id;
            rows[(*num_rows)++] = (row){.slot = &slots[i], .place = place, .newest = newest};
        }
    }
    return DONE;
}

static int extend_all(const job *j, candidates *found, long num_rows) {
    for (long first = 0, end; first < num_rows; first = end) {
        slot *own = found->rows[first].slot;
        for (end = first; end < num_rows && found->rows[end].slot == own;) end++;
        if (extend_slot(own, j, found, first, end - first)) return NO_MEMORY;
    }
    return DONE;
}

static int search(worker *w, scratch *s, slot *slots, waiting *ready, candidates *found) {
    const job *j = w->job;
    for (;;) {
        long num_rows;
        give_way(w);
        if (*j->stop) return STOPPED;
        if (fill(w, s, slots, ready)) return NO_MEMORY;
        if (list_rows(j, slots, found->rows, &num_rows)) return NO_MEMORY;
        if (!num_rows) return DONE;
        decode_step(s, j, found, num_rows);
        if (extend_all(j, found, num_rows)) return NO_MEMORY;
    }
}

static void *work(void *argument) {
    worker *w = argument;
    const job *j = w->job;
    const long rows = j->slots * j->width;
    scratch s;
    waiting *ready = calloc(1, sizeof *ready);
    slot *slots = calloc((size_t)j->slots, sizeof *slots);
    candidates found = {.count = min_long(j->width, j->model->output.out)};
    const size_t num_found = (size_t)(rows * found.count);
    found.rows = malloc((size_t)rows * sizeof *found.rows);
    found.values = malloc(num_found * sizeof *found.values);
    found.ids = malloc(num_found * sizeof *found.ids);
    if (j->uniforms) {
        const size_t size = (size_t)j->model->output.out;
        found.logits = malloc((size_t)rows * size * sizeof *found.logits);
        found.chances = malloc(size * sizeof *found.chances);
        found.heap = malloc(size * sizeof *found.heap);
    }
    /* No more than is needed: one short sentence must not pay for a batch. */
    const long tokens = min_long(j->source_starts[j->num_requests], ENCODED_ROWS);
    const long encoded = max_long(tokens, j->longest_source);
    int status = allocate_scratch(&s, j->model, max_long(rows, encoded), j->longest_source,
                                  max_long(j->longest_source, j->longest_limit));
    if (!status) s.team = start_team(w->num_helpers);
    if (!ready || !slots || !found.rows || !found.values || !found.ids) status = NO_MEMORY;
    if (j->uniforms && (!found.logits || !found.chances || !found.heap)) status = NO_MEMORY;
    for (long i = 0; !status && i < j->slots; i++) status = make_slot(&slots[i], j);
    if (!status) status = search(w, &s, slots, ready, &found);
    for (long i = 0; slots && i < j->slots; i++) free_slot(&slots[i], j);
    while (ready && ready->first < ready->end) free(ready->memory[ready->first++]);
    free(ready), free(slots), free(found.rows), free(found.values), free(found.ids);
    free(found.logits), free(found.chances), free(found.heap);
    end_team(s.team);
    free_scratch(&s);
    w->status = status;
    if (w->is_caller) return NULL;
    pthread_mutex_lock(&w->shared->lock);
    w->shared->num_others--;
    pthread_cond_signal(&w->shared->ended);
    pthread_mutex_unlock(&w->shared->lock);
    return NULL;
}

/* Wait for the other threads, giving way meanwhile. */
static void wait_for_others(worker *caller) {
    shared *s = caller->shared;
    pthread_mutex_lock(&s->lock);
    while (s->num_others) {
        const int64_t until = milliseconds(CLOCK_REALTIME) + A_TURN;
        const struct timespec time = {until / 1000, until % 1000 * 1000000};
        pthread_cond_timedwait(&s->ended, &s->lock, &time);
        pthread_mutex_unlock(&s->lock);
        give_way(caller);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

EXPORT int translate(const job *j) {
    shared all = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
    all.asked = milliseconds(CLOCK_MONOTONIC);
    const long threads = num_workers(j);
    worker workers[threads];
    pthread_t started[threads];
    long num_started = 0;
    /* Threads that get no sentences help with the products of the others. */
    for (long i = 0; i < threads; i++) {
        const long helpers = (j->threads - i - 1) / threads;
        workers[i] = (worker){j, j->shares_products ? helpers : 0, &all, !i, DONE};
    }
    all.num_others = threads - 1;
    for (long i = 1; i < threads; i++, num_started++)
        if (pthread_create(&started[i], NULL, work, &workers[i])) break; /* fewer threads do it */
    pthread_mutex_lock(&all.lock);
    all.num_others -= threads - 1 - num_started;
    pthread_mutex_unlock(&all.lock);
    work(&workers[0]);
    if (j->turn) wait_for_others(&workers[0]);
    int status = workers[0].status;
    for (long i = 1; i <= num_started; i++) {
        pthread_join(started[i], NULL);
        if (workers[i].status) status = workers[i].status;
    }
    return status;
}
