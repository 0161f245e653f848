/* One pass over rows of data without a step: they go through a model a batch at a time, alone or on
 * the ranks of a run, and the caller takes what it wants of each batch. */
#ifndef INFER_EVALUATOR_H
#define INFER_EVALUATOR_H

#include "comm/comm.h"
#include "data/data.h"
#include "infer/inference.h"

/* A batch of this rank that was computed. */
typedef struct infer_batch {
    const data_rows *rows; /* those beyond `count` have no labels */
    int64_t first, count;  /* of the data; count: 0 on a rank for which none is left */
    double loss;           /* sum over the tokens with a label */
} infer_batch;

/* Numbers of each row, which every rank gets of all rows. */
typedef struct infer_row_numbers {
    int64_t width; /* of a row; 0: none */
    void *user;
    /* Writes [rows of the batch x width]. */
    sifr_status (*take)(void *user, const infer_batch *batch, float *out, sifr_error *error);
    /* Those of rows first … first + count - 1. */
    void (*put)(void *user, int64_t first, int64_t count, const float *numbers);
} infer_row_numbers;

/* Of all ranks, added in the order of the data. */
typedef struct infer_sums {
    int64_t rows, labelled; /* labelled: tokens with a label */
    double loss;
} infer_sums;

/* A pass. The caller sets all but the last part; NULL where a function is not wanted. */
typedef struct infer_evaluator {
    /* The data: puts row `index` at place `at` of the batch's memory. */
    void (*read)(const void *data, int64_t index, const data_rows *rows, int64_t at);
    const void *data;
    const data_rows *rows;
    int64_t count;
    /* What computes a batch, and logits where that is not NULL. */
    sifr_status (*run)(void *model, const sifr_batch *batch, float *logits, double *loss,
                       int64_t *labelled, sifr_error *error);
    void *model;
    float *logits;
    comm_group *group;    /* NULL: this process alone */
    int32_t ranks, place; /* those with batches of their own, the first of the group; which it is */
    int32_t
        apart; /* of the group, from one of them to the next: tensor ranks share a batch; 0: 1 */
    /* What is done with it. An error ends the pass. */
    infer_row_numbers numbers;
    void *user;
    sifr_status (*take)(void *user, const infer_batch *batch, sifr_error *error);
    sifr_status (*after)(void *user, const infer_sums *sums, sifr_error *error); /* each round */
    int (*stopped)(void *user); /* before a round: a signal, or 0 to go on */
    /* Memory of infer_evaluator_open. */
    struct infer_round *all;
    float *mine_numbers, *all_numbers;
} infer_evaluator;

/* Without data: a model in this process alone, which is borrowed. */
infer_evaluator infer_evaluator_alone(infer_inference *inference);

/* Sets the data: the first `count` windows of a set, read into `rows`. */
void infer_evaluator_windows(infer_evaluator *evaluator, const data_set *data,
                             const data_rows *rows, int64_t count);

/* Takes the memory of a pass. Close also after an error; ranks agree on it before they run. */
sifr_status infer_evaluator_open(infer_evaluator *evaluator, sifr_error *error) SIFR_MUST_CHECK;
void infer_evaluator_close(infer_evaluator *evaluator); /* harmless on a zeroed one */

/* Runs it. All ranks of the group call it; each takes every ranks-th batch, and all get the sums
 * that one rank would. Once `stopped` returns a signal on any rank, *signal is that on all, and the
 * sums are of the rounds up to then; else *signal is 0. `signal` may be NULL where nobody stops. */
sifr_status infer_evaluator_run(const infer_evaluator *evaluator, infer_sums *out, int *signal,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
