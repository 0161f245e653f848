/* Learning-rate schedules with DeepSpeed's names and formulas (deepspeed/runtime/lr_schedules.py,
 * 0.19), and those of transformers' get_scheduler (optimization.py, 5.24; lr_trainer.c). Pure
 * functions: the only state is last_batch_iteration, t, which is -1 before the first step and is
 * counted up after each optimizer step that was not skipped. The optimizer step that follows uses
 * config_lr_at(schedule, t), so the first step of a run uses t = -1. */
#ifndef CONFIG_LR_SCHEDULE_H
#define CONFIG_LR_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum config_lr_kind {
    CONFIG_LR_CONSTANT, /* no scheduler: the optimizer's rate throughout */
    CONFIG_LR_WARMUP,
    CONFIG_LR_WARMUP_DECAY,
    CONFIG_LR_WARMUP_COSINE,
    CONFIG_LR_ONE_CYCLE,
    CONFIG_LR_RANGE_TEST,
    /* the Trainer's: linear, cosine, cosine_with_restarts, polynomial, constant,
     * constant_with_warmup, inverse_sqrt, cosine_with_min_lr, cosine_warmup_with_min_lr,
     * warmup_stable_decay */
    CONFIG_LR_TRAINER_LINEAR,
    CONFIG_LR_TRAINER_COSINE,
    CONFIG_LR_TRAINER_RESTARTS,
    CONFIG_LR_TRAINER_POLYNOMIAL,
    CONFIG_LR_TRAINER_CONSTANT,
    CONFIG_LR_TRAINER_WARMUP,
    CONFIG_LR_TRAINER_INVERSE_SQRT,
    CONFIG_LR_TRAINER_MIN_LR,
    CONFIG_LR_TRAINER_WARMUP_MIN_LR,
    CONFIG_LR_TRAINER_STABLE_DECAY,
    CONFIG_LR_KINDS
} config_lr_kind;

/* DeepSpeed's kinds have the first two, warmup_stable_decay all but the first. */
typedef enum config_lr_slope {
    CONFIG_LR_LOG,
    CONFIG_LR_LINEAR,
    CONFIG_LR_COSINE,
    CONFIG_LR_1_SQRT
} config_lr_slope;

/* Only the fields that a kind's formula names are read. Steps are optimizer steps. */
typedef struct config_lr_schedule {
    config_lr_kind kind;
    double base_lr; /* the optimizer's rate: constant, cosine, the Trainer's */
    /* Without a scheduler, Adafactor's rates take the place of base_lr: min(0.01, 1 / sqrt(step)),
     * with warmup_init min(1e-6 step, 1 / sqrt(step)), as in transformers. */
    bool relative_step, warmup_init;
    /* WarmupLR, WarmupDecayLR, WarmupCosineLR */
    double warmup_min_lr, warmup_max_lr;
    double warmup_min_ratio, cos_min_ratio; /* of base_lr, cosine only */
    int64_t warmup_num_steps;               /* counts as at least 2 */
    int64_t total_num_steps;
    config_lr_slope warmup_type; /* warmup_stable_decay too */
    /* OneCycle; second_step_size 0 stands for first_step_size */
    double cycle_min_lr, cycle_max_lr, decay_lr_rate;
    int64_t first_step_size, second_step_size;
    int64_t first_stair_count, second_stair_count; /* 0: none */
    int64_t decay_step_size;                       /* 0: no decay */
    bool cycle_momentum;
    double cycle_min_mom, cycle_max_mom, decay_mom_rate;
    /* LRRangeTest */
    double range_min_lr, range_step_rate;
    int64_t range_step_size;
    bool range_staircase;
    /* the Trainer's kinds; total_num_steps is the length of the run */
    int64_t trainer_warmup; /* steps */
    double num_cycles, lr_end, power;
    int64_t timescale;     /* 0: the warm-up's length, or else 10,000 */
    double min_lr_rate;    /* of base_lr */
    double warmup_lr_rate; /* of base_lr; below 0: 1 / trainer_warmup */
    int64_t num_decay_steps;
    double num_stable_steps; /* may be negative where the decay is longer than the run */
    config_lr_slope decay_type;
    double min_lr_ratio; /* of base_lr */
} config_lr_schedule;

/* The rate for the optimizer step that follows iteration `t` >= -1. Never negative where the
 * parameters are not; finite for every finite schedule. */
double config_lr_at(const config_lr_schedule *schedule, int64_t t);

/* The same of one of the Trainer's kinds. */
double config_lr_trainer_at(const config_lr_schedule *schedule, int64_t t);

/* The first beta for that step: OneCycle with cycle_momentum moves it, the rest give `beta1`. */
double config_lr_beta1_at(const config_lr_schedule *schedule, int64_t t, double beta1);

/* OneCycle with cycle_momentum also sets the second beta to 0.99; the rest give `beta2`. */
double config_lr_beta2_at(const config_lr_schedule *schedule, double beta2);

#endif
