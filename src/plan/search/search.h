/* Evaluates candidate settings without running them: memory, predicted time, the largest size that
 * fits, the fastest settings that fit, the smallest change that fits.
 */
#ifndef PLAN_SEARCH_H
#define PLAN_SEARCH_H

#include "plan/checkpoint_size.h"
#include "plan/price/price.h"

/* Results of searches with the same limits, model and machine; each setting is planned once. */
typedef struct plan_memo plan_memo;
sifr_status plan_memo_create(plan_memo **out, sifr_error *error) SIFR_MUST_CHECK;
void plan_memo_free(plan_memo *memo); /* NULL is harmless */

/* The inputs of a search; the pointers are borrowed. */
typedef struct plan_search {
    const sifr_model *model;
    device *dev;
    const plan_machine *machine; /* prices */
    int64_t room_bytes;          /* what a rank's block may take */
    int64_t host_room_bytes;     /* and its block of host memory, of a separate device; 0: any */
    int64_t disk_bytes;          /* what a rank may put on disk; 0: nothing is to be put there */
    plan_output output;          /* where checkpoints go; zeroed: all fit */
    bool any_order;              /* step_order is "auto": the better order of each setting */
    bool overlap_by_stage;       /* overlap_comm is not given: true at stage 3, else false */
    int threads;                 /* that plan side by side; 0: one */
    plan_memo *memo;             /* what was tried before; NULL: all is planned anew */
    int32_t tried;               /* plans looked at so far */
    int64_t lowered;             /* micro batches in the lists made for them: what it cost */
} plan_search;

/* A step of some settings. Bytes and counts are those of settings.rank. */
typedef struct plan_outcome {
    plan_settings settings;
    bool possible; /* false: such a step cannot be planned at all (too long, too many instructions);
                      then total_bytes is INT64_MAX and nothing fits */
    bool fits;
    int64_t total_bytes;   /* of the one block */
    int64_t growing_bytes; /* of its peak: those in proportion to the micro batch's tokens */
    int64_t host_bytes;    /* in host memory that is not the device's */
    int64_t nvme_bytes;    /* on disk */
    int64_t largest_bytes[PLAN_CLASSES]; /* each class where it alone is largest */
    int64_t gathered, reduced;           /* bytes delivered in a step */
    int64_t gathers, reductions;
    plan_prediction predicted;
} plan_outcome;

/* The order that sifr_step_order chooses. "batch" keeps fewer activations, so "unit" must be faster
 * by one per cent, or the only one that fits. */
sifr_step_order plan_better_order(const bool fits[2], const double seconds[2]);

/* Of SIFR_RECOMPUTE_AUTO: sets the search's room, where the settings have no limit of activations.
 * plan_try does it by itself. */
void plan_limit(const plan_search *search, plan_settings *settings);

/* The memory and the time of a schedule. */
sifr_status plan_assess(const plan_search *search, const plan_schedule *schedule, plan_outcome *out,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Plans and prices a step. With any_order the order of `settings` says nothing, out->settings has
 * the one that is taken. */
sifr_status plan_try(plan_search *search, const plan_settings *settings, plan_outcome *out,
                     sifr_error *error) SIFR_MUST_CHECK;

/* The same, without time and traffic if the step does not fit. */
sifr_status plan_try_fitting(plan_search *search, const plan_settings *settings, plan_outcome *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* The memory of a step, without time and traffic; not counted as a plan. */
sifr_status plan_try_size(plan_search *search, const plan_settings *settings, plan_outcome *out,
                          sifr_error *error) SIFR_MUST_CHECK;

/* Changes a setting that may be any number. */
typedef void plan_setter(plan_settings *settings, int64_t value);
void plan_set_sequences(plan_settings *settings, int64_t value);
void plan_set_length(plan_settings *settings, int64_t value);

/* The largest value from `first` to `last` with which a step of `settings` fits, where the next one
 * does not; first - 1 where none does. What a step takes should not fall as the value grows. `near`
 * is looked at first: a value that was planned before. */
sifr_status plan_largest(plan_search *search, const plan_settings *settings, plan_setter *set,
                         int64_t near, int64_t first, int64_t last, int64_t *out,
                         sifr_error *error) SIFR_MUST_CHECK;

/* Recompute "auto" for memory limits between the needs of "none" and "unit". */
sifr_status plan_between(plan_search *search, const plan_settings *from, plan_outcome *out,
                         bool *is_between, sifr_error *error) SIFR_MUST_CHECK;

typedef enum plan_question {
    PLAN_ASK_STEP,    /* plan_try */
    PLAN_ASK_LARGEST, /* plan_largest, from 1 on */
    PLAN_ASK_BETWEEN  /* plan_between */
} plan_question;

/* One of several questions, and what came of it. */
typedef struct plan_trial {
    plan_question question;
    plan_settings settings;
    bool fixed_order; /* whatever the search says of orders */
    plan_setter *set; /* of PLAN_ASK_LARGEST, as are the next three */
    int64_t near, last;
    int64_t largest;      /* the answer */
    plan_outcome outcome; /* that of the others */
    bool is_between;      /* of PLAN_ASK_BETWEEN: there is an outcome */
    sifr_status status;
    sifr_error error;
    plan_search search; /* a copy that counts for itself */
} plan_trial;

/* Answers each, on the search's threads; the longest should come first. */
sifr_status plan_try_all(plan_search *search, plan_trial *trials, size_t count,
                         sifr_error *error) SIFR_MUST_CHECK;

/* A few micro batches: with a first, a last and one between, there are sums of them. */
enum { PLAN_FEW = 3 };

/* Properties of a setting. */
typedef enum plan_trait {
    PLAN_IS_ORDER = 1, /* of steps: chosen by itself where that is "auto" */
    PLAN_ON_DISK = 2,  /* its second value takes a disk */
    PLAN_FOR_ROOM = 4, /* its second value makes nothing quicker, or possible without a disk: not
                          looked at where all fits with the first one */
    PLAN_OF_RANKS = 8  /* of several ranks only */
} plan_trait;

/* One setting. What a planner may choose is a row of a table; another one (a tier of some state) is
 * another row. Fit and the smallest change turn those with a few values whose key says so
 * (config_fit_of); the other ones with values cost a promise. Those without follow: batch sizes of
 * one global batch, what is kept within the memory, how transfers overlap. */
typedef struct plan_choice {
    const char *key;           /* in the config */
    const char *const *values; /* their spelling there; NULL: a number, or true and false */
    int32_t count;             /* of values; 0: it follows from the others */
    bool number;               /* a config has the field's value, also where there are values */
    size_t field, size;        /* in sifr_settings */
    int32_t on;                /* of two values: the field's where the second one is chosen, and the
                                  least that counts as it; 0: the field is the value's index */
    void (*set)(plan_settings *settings, int32_t value); /* where more than the field changes */
    bool (*matters)(const plan_settings *settings);      /* else all values are the same step */
    unsigned traits;                                     /* plan_trait */
} plan_choice;

enum { PLAN_CHOICE_STAGE }; /* the first row */
size_t plan_choice_count(void);
const plan_choice *plan_choice_at(size_t index);
bool plan_is_searched(const plan_choice *row);

/* The index of the row's value in these settings. */
int32_t plan_choice_get(const plan_choice *row, const plan_settings *settings);
int64_t plan_choice_number(const plan_choice *row, const plan_settings *settings); /* its field */

/* Whether the row's value makes a difference there. The stage of one rank does where parameters are
 * on disk. */
bool plan_is_worth_saying(const plan_choice *row, const plan_settings *settings);

/* What a row's key is in these settings, as a config spells it; returns `out`. */
enum { PLAN_VALUE_LENGTH = 32 };
const char *plan_choice_text(const plan_choice *row, const plan_settings *settings,
                             char out[PLAN_VALUE_LENGTH]);

/* Sets row `index` of the table and what follows from it. */
void plan_choose(const plan_search *search, plan_settings *settings, size_t index, int32_t value);

/* What `to` has otherwise than `from`, as the config's keys: "zero_optimization.stage 2,
 * train_micro_batch_size_per_gpu 2 with gradient_accumulation_steps 4"; returns `out`. */
const char *plan_describe_change(const plan_search *search, const plan_settings *from,
                                 const plan_settings *to, char *out, size_t size);

/* The steps next to `from`, for plan_try_all: each row that matters at each other value, then the
 * next smaller and the next larger micro batch of the same global batch. Returns how many of them
 * there are in `trials`, which has room for PLAN_NEIGHBOURS. */
enum { PLAN_NEIGHBOURS = 20 };
size_t plan_neighbours(const plan_search *search, const plan_settings *from, plan_trial *trials);

/* The quickest step that fits among all values of the searched rows, and of overlap_comm where it
 * is not given, and all micro batches that make up the global batch of `from` by accumulation; of
 * those within a hundredth of it the one that takes least. The quickest few that recompute are
 * tried with as much kept as there is room for, too (SIFR_RECOMPUTE_AUTO). best->fits is false
 * where none fits: then it is the one that takes least. */
sifr_status plan_fit(plan_search *search, const plan_settings *from, plan_outcome *best,
                     sifr_error *error) SIFR_MUST_CHECK;

/* The step that fits with the fewest settings changed (the micro batch of the same global batch is
 * one of them, and only becomes smaller; as much kept as there is room for is no more than all
 * computed again); of several the quickest. out->fits is false where there is none: then it is the
 * one that takes least. */
sifr_status plan_smallest_change(plan_search *search, const plan_settings *from, plan_outcome *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
