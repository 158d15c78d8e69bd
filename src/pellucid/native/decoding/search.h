/* A search: sentences that come and go, and their hypotheses. */
#ifndef PELLUCID_SEARCH_H
#define PELLUCID_SEARCH_H

#include "model.h"

enum { SAFE = 0, HEURISTIC = 1, NEVER = 2 };

/* What to translate, and how; filled in by Python. */
typedef struct {
    const model *model;
    int64_t num_requests;
    const int32_t *source_ids;    /* of all requests, one after another */
    const int64_t *source_starts; /* one more than there are requests */
    const float *given;           /* their vectors, if the encoder need not run, or NULL */
    const int64_t *limits;        /* maximum length of each */
    const int64_t *min_lengths;
    const int32_t *prefix_ids;    /* ~id for a token that is given, and costs nothing */
    const int64_t *prefix_starts;
    const int32_t *never; /* ids that no translation holds, in rising order */
    int64_t num_never;
    int64_t start_id, eos_id;
    int64_t width, num_best, stopping;
    const double *penalties; /* divisor of the score for each length up to the longest limit */
    const double *uniforms;  /* where result_starts says, one for each token; NULL without samples */
    double temperature, top_p, epsilon;
    int64_t top_k;           /* 0: all tokens */
    int64_t slots, threads;  /* sentences at once in each thread */
    int64_t shares_products; /* threads without a sentence help with the products of others */
    int64_t longest_source, longest_limit;
    const volatile int32_t *stop; /* not 0 as soon as the search is to end early */
    void (*turn)(void); /* called by the calling thread now and then, or NULL; it may set `stop` */
    /* Results: for each request up to num_best hypotheses, and -1 of them if it overflowed. */
    int32_t *counts;
    int32_t *lengths;
    int32_t *finished;
    double *scores;
    const int64_t *result_starts; /* where the tokens of each request's first hypothesis are */
    int32_t *ids;
    float *logs;
} job;

/* A hypothesis that ended, or reached the limit. */
typedef struct {
    int32_t *ids; /* the log-probabilities follow */
    long length;
    int is_finished;
    double score;
} ended;

/* A sentence that is being translated. Hypothesis w has place w in every array. */
typedef struct {
    long request; /* -1 if the slot is empty */
    long source_length;
    long length, limit, num_finished, num_ended;
    float *memory;   /* keys and values of the source, layer by layer */
    float **caches;  /* for each layer [position][place][keys and values] */
    long room;       /* positions in caches and histories */
    double *totals;  /* sum of log-probabilities; -INFINITY if there is no such hypothesis */
    double *best;    /* the best finished scores */
    int32_t *ids[2]; /* [place][position]; the second is written while the first is read */
    float *logs[2];
    uint16_t *ancestors[2]; /* the place at which each position's keys and values are */
    ended *ended;
} slot;

/* A row of a step, and what was found out about its next token. */
typedef struct {
    slot *slot;
    long place;
    int32_t newest;     /* the token to read */
    float *weights;     /* NULL, or where its cross-attention goes: [layer][head][weights_step] */
    long weights_step;
    float largest, sum; /* of the logits; of their exponentials less the largest */
    float normalizer;
    long num_found;
} row;

/* Logits are looked at block by block, so that they need not be in memory at once. */
typedef struct {
    row *rows;
    long count;   /* candidates to find in each row */
    float *values; /* [row][count], highest first */
    int32_t *ids;
    /* For samples only: */
    float *logits;   /* [row][token] */
    double *chances; /* of the tokens of one row */
    int32_t *heap;
} candidates;

const float *decode_rows(scratch *s, const job *j, const row *rows, long num_rows);
void compute_logits(scratch *s, const float *states, long num_rows, float *const *to);
void draw_tokens(scratch *s, const job *j, candidates *found, const float *states, long num_rows);
void decode_step(scratch *s, const job *j, candidates *found, long num_rows);
int begin_slot(slot *s, const job *j, long request, float *memory);
int make_room(slot *s, const job *j);
int extend_slot(slot *s, const job *j, const candidates *found, long first, long num_rows);
void end_slot(slot *s, const job *j, int has_overflowed);
int make_slot(slot *s, const job *j);
void free_slot(slot *s, const job *j);

#endif
