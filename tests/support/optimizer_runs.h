/* Runs of optimizers, for their tests: the bits of one rank on other ranks, stages, tiers and
 * devices. A run that has other bits fails the test. */
#ifndef OPTIMIZER_RUNS_H
#define OPTIMIZER_RUNS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/zero_run.h"

/* Of a group of tests: a folder for what runs have on disk. */
int optimizer_setup(void **state);
int optimizer_teardown(void **state);

/* Four micro batches on one rank, with an evaluation at the end. */
zero_variant optimizer_variant(const sifr_optimizer *optimizer, sifr_precision precision);

/* On as many ranks as `v` has, and on twice as many up to 4, at each stage. `varied`: in the unit
 * order at half of them, and with evaluations between steps at some. */
void optimizer_expect_each_stage(const zero_outcome *want, zero_variant v, bool varied);

/* Its states on disk, in host memory of a device with its own, and on a device that hides its
 * memory; at stages that depend on `turn`. `stateless`: in fp32 it has nothing to put on disk. */
void optimizer_expect_tiers(const sifr_optimizer *optimizer, int turn, bool stateless);

/* The state of the cases below, by cmocka_unit_test_prestate. */
typedef struct optimizer_pair {
    sifr_optimizer plain, rich; /* rich: with groups of settings, and what else it can have */
    bool wide_states;           /* they have 32 bits, whatever is asked for */
} optimizer_pair;

void optimizer_stages_and_ranks(void **pair);
void optimizer_narrow_states(void **pair);
void optimizer_copies_of_the_state(void **pair);
void optimizer_on_queues(void **pair);
void optimizer_tiers(void **pair);

#endif
