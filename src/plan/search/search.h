/* Evaluates candidate settings without running them: memory, predicted time, the largest size that
 * fits, the fastest settings that fit, the smallest change that fits. */
#ifndef PLAN_SEARCH_H
#define PLAN_SEARCH_H

#include "plan/checkpoint_size.h"
#include "plan/price/price.h"

/* Cached results of searches with the same limits, model and machine. Each setting is planned
 * once. */
typedef struct plan_memo plan_memo;
sifr_status plan_memo_create(plan_memo **out, sifr_error *error) SIFR_MUST_CHECK;
void plan_memo_free(plan_memo *memo); /* NULL is allowed */

/* The inputs of a search; the pointers are borrowed. */
typedef struct plan_search {
    const sifr_model *model;
    device *dev;
    const plan_machine *machine;       /* prices */
    const plan_machine *order_machine; /* by which any_order chooses: no measured ones, since the
                                          order may decide bits; NULL: `machine` */
    int64_t room_bytes;                /* limit of a rank's block */
    int64_t spare_bytes;               /* of it, what recompute "auto" leaves free (plan_spare) */
    int64_t host_room_bytes; /* limit of its host memory, with a separate device; 0: none */
    int64_t disk_bytes;      /* limit of a rank's bytes on disk; 0: no disk */
    plan_output output;      /* where checkpoints go; zeroed: any size fits */
    bool any_order;          /* step_order is "auto": the better order of each setting */
    bool any_stages;         /* pipeline.stages is "auto": plan_fit chooses them */
    bool any_copies;         /* sifr.shard_size is "auto": plan_fit chooses it */
    bool any_tensors;        /* tensor_parallel.size is "auto": plan_fit chooses it */
    bool any_contexts;       /* sifr.context_parallel.size is "auto": plan_fit chooses it */
    bool any_near;           /* zero_hpz_partition_size is "auto": plan_fit chooses it */
    bool keeps_codes; /* zero_quantized_weights and zero_hpz_partition_size, where given, act in
                         what plan_fit chooses */
    bool overlap_by_stage; /* overlap_comm is not given: true at stage 3, else false */
    int threads;           /* number that plan in parallel; 0: one */
    plan_memo *memo;       /* cached outcomes; NULL: plans everything anew */
    int32_t tried;         /* plans tried so far */
    int64_t lowered;       /* micro batches lowered for them: the work done */
    int64_t most_work; /* bound of plan_fit and plan_smallest_change, in micro batches times units
                          of the model, so that the same inputs end alike on any machine; 0: none */
    bool ended;        /* the bound was reached: what came behind it counts as not possible */
} plan_search;

/* The outcome of a step. Bytes and counts are those of the rank of settings.mesh. */
typedef struct plan_outcome {
    plan_settings settings;
    bool possible; /* false: the step cannot be planned (too long, too many instructions); then
                      total_bytes is INT64_MAX and `fits` is false */
    bool fits;     /* with several stages and time: all of them */
    int64_t total_bytes;   /* of the one block */
    int64_t growing_bytes; /* part of the peak that grows with the micro batch's tokens */
    int64_t host_bytes;    /* in host memory separate from the device's */
    int64_t nvme_bytes;    /* on disk */
    int64_t largest_bytes[PLAN_CLASSES]; /* the peak of each class by itself */
    int64_t gathered, reduced;           /* bytes delivered in a step */
    int64_t gathers, reductions;
    plan_prediction predicted;
    double order_seconds; /* a step's, by the prices that choose the order */
    /* With several stages: bytes of the block of the first, the fullest and the last stage; which
     * one is the fullest; the longest time that a stage waits for others. */
    int64_t stage_bytes[3];
    int32_t fullest;
    double bubble;
} plan_outcome;

/* Bytes of the block of the rank that takes most. */
int64_t plan_needed_bytes(const plan_outcome *outcome);

/* The better step_order. "batch" keeps fewer activations, so "unit" must be 1 % faster, or the only
 * one that fits. */
sifr_step_order plan_better_order(const bool fits[2], const double seconds[2]);

/* What recompute "auto" leaves free of memory that other programs use too, since their use changes;
 * 0 of INT64_MAX, which is not known. */
int64_t plan_spare(int64_t room_bytes);

/* With SIFR_RECOMPUTE_AUTO and no activation_memory, limits activations by the search's room.
 * plan_try calls this itself. */
void plan_limit(const plan_search *search, plan_settings *settings);

/* Computes memory and time of a schedule. */
sifr_status plan_assess(const plan_search *search, const plan_schedule *schedule, plan_outcome *out,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Whether the bound is reached; notes it in `ended`. */
bool plan_search_ends(plan_search *search);

/* Plans and prices a step. With any_order the order in `settings` is ignored; out->settings has the
 * chosen one, which is the one that a run chooses of these settings (engine_choose_order). */
sifr_status plan_try(plan_search *search, const plan_settings *settings, plan_outcome *out,
                     sifr_error *error) SIFR_MUST_CHECK;

/* Like plan_try, but without time and traffic if the step does not fit. */
sifr_status plan_try_fitting(plan_search *search, const plan_settings *settings, plan_outcome *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Like plan_try, but memory alone, without time and traffic. Not counted in `tried`. */
sifr_status plan_try_size(plan_search *search, const plan_settings *settings, plan_outcome *out,
                          sifr_error *error) SIFR_MUST_CHECK;

/* Like plan_try_size, but of the fullest stage; `fits` says whether all stages do. */
sifr_status plan_try_all_sizes(plan_search *search, const plan_settings *settings,
                               plan_outcome *out, sifr_error *error) SIFR_MUST_CHECK;

/* Changes a numeric setting. */
typedef void plan_setter(plan_settings *settings, int64_t value);
void plan_set_sequences(plan_settings *settings, int64_t value);
void plan_set_length(plan_settings *settings, int64_t value);

/* The largest value from `first` to `last` with which a step of `settings` fits while the next
 * value does not; first - 1 if none fits. A step fits if each of its stages does; the stage of
 * settings.mesh does not matter. Where memory falls as the value grows there may be several such
 * values. The search starts at `near`, for example the result of an earlier plan. */
sifr_status plan_largest(plan_search *search, const plan_settings *settings, plan_setter *set,
                         int64_t near, int64_t first, int64_t last, int64_t *out,
                         sifr_error *error) SIFR_MUST_CHECK;

/* Plans recompute "auto" if the memory limit lies between the needs of "none" and "unit". */
sifr_status plan_between(plan_search *search, const plan_settings *from, plan_outcome *out,
                         bool *is_between, sifr_error *error) SIFR_MUST_CHECK;

typedef enum plan_question {
    PLAN_ASK_STEP,    /* plan_try */
    PLAN_ASK_LARGEST, /* plan_largest, from 1 on */
    PLAN_ASK_BETWEEN  /* plan_between */
} plan_question;

/* A question to the search, and its answer. */
typedef struct plan_trial {
    plan_question question;
    plan_settings settings;
    bool fixed_order; /* ignores any_order of the search */
    plan_setter *set; /* this and the next three: for PLAN_ASK_LARGEST */
    int64_t near, last;
    int64_t largest;      /* the answer */
    plan_outcome outcome; /* the answer to the other questions */
    bool is_between;      /* for PLAN_ASK_BETWEEN: `outcome` is valid */
    sifr_status status;
    sifr_error error;
    plan_search search; /* a copy with counts of its own */
} plan_trial;

/* Answers all questions on the search's threads. The longest should come first. */
sifr_status plan_try_all(plan_search *search, plan_trial *trials, size_t count,
                         sifr_error *error) SIFR_MUST_CHECK;

/* Few micro batches that still need sums: a first, a middle and a last one. */
enum { PLAN_FEW = 3 };

/* Properties of a setting. */
typedef enum plan_trait {
    PLAN_IS_ORDER = 1,     /* step_order: chosen separately if "auto" */
    PLAN_ON_DISK = 2,      /* its second value needs a disk */
    PLAN_FOR_CAPACITY = 4, /* its second value never makes a step faster, or possible without a
                          disk: not tried if all fits with the first value */
    PLAN_OF_RANKS = 8      /* for several ranks only */
} plan_trait;

/* One setting. The table has a row for each setting that a planner may change. plan_fit and
 * plan_smallest_change vary the rows whose key says so (config_fit_of). Other rows with values
 * would break a promise. Rows without values follow from the others: batch sizes of one global
 * batch, activations kept within memory, overlap of transfers. */
typedef struct plan_choice {
    const char *key;           /* in the config */
    const char *const *values; /* their spelling in the config; NULL: a number, or true and false */
    int32_t count;             /* number of values; 0: follows from other settings */
    bool number;               /* the config shows the field's number, even if there are values */
    size_t field, size;        /* in sifr_settings */
    int32_t on; /* with two values, the field of the second one, which larger values count as too;
                   0: the field is the value's index */
    void (*set)(plan_settings *settings, int32_t value); /* if more than the field changes */
    bool (*matters)(const plan_settings *settings);      /* false: all values give the same step */
    unsigned traits;                                     /* plan_trait */
} plan_choice;

enum { PLAN_CHOICE_STAGE }; /* the first row */
size_t plan_choice_count(void);
const plan_choice *plan_choice_at(size_t index);
bool plan_is_searched(const plan_choice *row);

/* The index of the row's value in `settings`. */
int32_t plan_choice_get(const plan_choice *row, const plan_settings *settings);
int64_t plan_choice_number(const plan_choice *row, const plan_settings *settings); /* its field */

/* Whether the row's value makes a difference in `settings`. The stage of a single rank does if
 * parameters are on disk. */
bool plan_is_worth_saying(const plan_choice *row, const plan_settings *settings);

/* Writes the row's value as a config spells it; returns `out`. */
enum { PLAN_VALUE_LENGTH = 32 };
const char *plan_choice_text(const plan_choice *row, const plan_settings *settings,
                             char out[PLAN_VALUE_LENGTH]);

/* Sets row `index` to `value`, and the settings that follow from it. */
void plan_choose(const plan_search *search, plan_settings *settings, size_t index, int32_t value);

/* Lists the keys in which `to` differs from `from`: "zero_optimization.stage 2,
 * train_micro_batch_size_per_gpu 2 with gradient_accumulation_steps 4". Returns `out`. */
const char *plan_describe_change(const plan_search *search, const plan_settings *from,
                                 const plan_settings *to, char *out, size_t size);

/* Fills `trials`, with room for PLAN_NEIGHBOURS, with the steps next to `from` for plan_try_all:
 * each row that matters at each other value, then the next smaller and the next larger micro batch
 * of the same global batch. Returns their number. */
enum { PLAN_NEIGHBOURS = 20 };
size_t plan_neighbours(const plan_search *search, const plan_settings *from, plan_trial *trials);

/* Finds the fastest step that fits, over all values of the searched rows, overlap_comm if it is not
 * given, and all micro batches that make up the global batch of `from` by accumulation; with
 * any_stages, any_tensors and any_contexts also over all numbers of pipeline stages, tensor ranks
 * (of a host) and context ranks that divide the ranks, and all products of these; with any_copies
 * the fastest of each ZeRO stage also with 2, 4, 8 … copies of the state; with any_near the fastest
 * of stage 3 also with second copies of the parameters among neighbours of a host. Of the steps
 * within 1 % of the fastest, the one with the least memory is taken. The few fastest that recompute
 * are also tried with as many activations kept as fit (SIFR_RECOMPUTE_AUTO). If none fits,
 * best->fits is false and *best is the step with the least memory. Larger micro batches, whose
 * plans are short, come first; with search->ended not all were tried. */
enum { PLAN_FIT_WORK = 1200000 }; /* for most_work */
sifr_status plan_fit(plan_search *search, const plan_settings *from, plan_outcome *best,
                     sifr_error *error) SIFR_MUST_CHECK;

/* Finds the step that fits with the fewest changed settings; of several, the fastest. The micro
 * batch of the same global batch counts as one setting, and only becomes smaller. Keeping as many
 * activations as fit counts like full recomputation. If none fits, out->fits is false and *out is
 * the step with the least memory. */
sifr_status plan_smallest_change(plan_search *search, const plan_settings *from, plan_outcome *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

#endif
