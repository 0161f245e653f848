/* Shared by the files of plan_fit: fit.c, fit_*.c. Private to them. */
#ifndef PLAN_FIT_PRIVATE_H
#define PLAN_FIT_PRIVATE_H

#include "plan/search/search.h"

enum { FIT_MOST_ROWS = 16 };

/* One value of each searched row. */
typedef struct fit_combination {
    size_t rows, row[FIT_MOST_ROWS];
    int32_t value[FIT_MOST_ROWS];
} fit_combination;

/* The first one; and the next one, or false behind the last. */
fit_combination fit_begin_combinations(const plan_search *search, const plan_settings *from);
bool fit_next_combination(fit_combination *combination);

/* Sets its values. False if two of them exclude each other: then another combination is the same
 * step; and with keeps_codes if a key of ZeRO++ does not act. */
bool fit_combine(const plan_search *search, const fit_combination *combination,
                 const plan_settings *from, plan_settings *out);

/* All micro batch sizes that divide a rank's share of the global batch, ascending; none where pairs
 * of sequences are compared and the share is odd. Free `size`. */
typedef struct fit_sizes {
    int64_t share; /* sequences of a rank in a step */
    int64_t *size;
    size_t count;
} fit_sizes;

sifr_status fit_find_sizes(const plan_search *search, int64_t share, fit_sizes *out,
                           sifr_error *error) SIFR_MUST_CHECK;
/* The smallest micro batch that can be planned: one sequence or pair, or, with sequence_parallel,
 * as many as make whole runs of tokens for each tensor rank. */
int64_t fit_least_sequences(const plan_search *search, const plan_settings *settings);
void fit_set_size(const fit_sizes *sizes, plan_settings *settings, size_t index);

/* Bytes of the states in memory, without a plan: a lower bound of the fullest stage. */
int64_t fit_state_bytes(const plan_search *search, const plan_settings *settings);

/* Times within 1 % count as equal; then less memory wins. */
static const double fit_alike = 0.01;

/* Fits, and is faster; if neither fits, needs less. */
bool fit_is_better(const plan_outcome *a, const plan_outcome *b);

/* One combination, with a lower bound of its memory over all sizes. */
typedef struct fit_entry {
    int64_t least_bytes;
    bool may_fit;
    bool planned;           /* bound from a plan, not from the sum of states */
    bool open;              /* wanted: its micro batches are tried until one fits */
    bool tried;             /* all that were, were planned whole */
    const fit_sizes *sizes; /* borrowed */
} fit_entry;

/* Outcomes so far. `entries` belong to the first outcomes, one each. */
typedef struct fit_list {
    plan_outcome *all;
    fit_entry *entries;
    size_t count, capacity, entry_capacity;
} fit_list;

sifr_status fit_add(fit_list *list, const plan_outcome *outcome, sifr_error *error) SIFR_MUST_CHECK;

/* Settings of other meshes, each with all sequences of a rank in one micro batch. Free `all`. */
typedef struct fit_meshes {
    plan_settings *all;
    size_t count, capacity;
} fit_meshes;

/* `from` first; then, with any_tensors and any_contexts of the search, each other number of tensor
 * and context ranks that divides the ranks. */
sifr_status fit_find_meshes(const plan_search *search, const plan_settings *from, fit_meshes *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Adds steps with pipeline stages that fit: with the number of stages of `from`, if it has several,
 * else with each that divides the ranks. `overlaps`: tries overlap_comm both ways. Steps slower
 * than those in the list are left out. */
sifr_status fit_try_stages(plan_search *search, const plan_settings *from, bool overlaps,
                           fit_list *list, sifr_error *error) SIFR_MUST_CHECK;

/* Adds steps with copies of the state: the fastest of each ZeRO stage in the list that fits, with
 * each power of two of copies. */
sifr_status fit_try_copies(plan_search *search, fit_list *list, sifr_error *error) SIFR_MUST_CHECK;

/* Adds steps with second copies of the parameters: the fastest of stage 3 in the list that fits,
 * with each number of neighbours of a host. */
sifr_status fit_try_near(plan_search *search, fit_list *list, sifr_error *error) SIFR_MUST_CHECK;

#endif
