/* Training runs of a small model over ranks that are threads, which load and save checkpoints. */
#ifndef SHARDED_RUN_H
#define SHARDED_RUN_H

#include "sifr/sifr.h"

enum { SHARDED_MOST_RANKS = 8, SHARDED_MOST_STEPS = 64 };

typedef struct sharded_shape {
    int32_t ranks;
    int stage;
    sifr_precision precision;
    int32_t shard_size; /* 0: one copy */
} sharded_shape;

/* As if an axis cut weights, with all blocks on each rank. */
typedef enum sharded_cut {
    SHARDED_WHOLE,
    SHARDED_HALVES,  /* the columns in two blocks, which lie as in the whole */
    SHARDED_TURNED,  /* in three blocks, the last first, as q, k and v in one matrix */
    SHARDED_ROTATED, /* the rows in three blocks, the last first */
    SHARDED_CUTS
} sharded_cut;

/* What all ranks do: load, train, save. */
typedef struct sharded_task {
    sharded_shape shape;
    int32_t stages;                  /* of a pipeline: as many groups of ranks; 0: 1 */
    const sifr_optimizer *optimizer; /* NULL: AdamW */
    const char *from, *to;           /* output folders; NULL: nothing is loaded, saved */
    const char *elsewhere;           /* the last rank's folders, in place of both */
    int64_t steps, save_each;        /* save_each: after every step, the newest two are kept */
    int go_on;          /* steps after whatever happened, to show that ranks are in step */
    bool whole;         /* a file a rank */
    int ready;          /* a descriptor that hears of the beginning and of saves; 0: none */
    const char *freeze; /* a pattern; NULL: none */
    bool based;         /* what is frozen is in no checkpoint */
    sharded_cut cut;    /* how weights lie in memory and in checkpoints */
} sharded_task;

typedef struct sharded_outcome {
    sifr_status status;
    sifr_error error;
    int64_t step;
    uint64_t hash;                      /* of all state of all ranks */
    uint64_t steps[SHARDED_MOST_STEPS]; /* the same after each step */
    char said[4096];                    /* what the log has of loads and saves */
} sharded_outcome;

/* Fails the test if ranks differ in status, message or state, or are not in step behind it. */
sifr_status sharded_run(sharded_task t);
/* Rank 0's, of the last run. */
const sharded_outcome *sharded_last(void);
/* A run that must succeed. */
void sharded_succeeds(sharded_task t);

/* Hashes of an uninterrupted run of one rank. */
void sharded_reference(sifr_precision precision, int64_t steps, uint64_t out[SHARDED_MOST_STEPS]);

#endif
