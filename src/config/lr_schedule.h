/* Learning-rate schedules with DeepSpeed's names and formulas (deepspeed/runtime/lr_schedules.py,
 * 0.19). Pure functions: the only state is last_batch_iteration, t, which is -1 before the first
 * step and is counted up after each optimizer step that was not skipped. The optimizer step that
 * follows uses config_lr_at(schedule, t), so the first step of a run uses t = -1. */
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
    CONFIG_LR_RANGE_TEST
} config_lr_kind;

typedef enum config_lr_warmup { CONFIG_LR_LOG, CONFIG_LR_LINEAR } config_lr_warmup;

/* Only the fields that a kind's formula names are read. Steps are optimizer steps. */
typedef struct config_lr_schedule {
    config_lr_kind kind;
    double base_lr; /* the optimizer's rate: constant and cosine */
    /* WarmupLR, WarmupDecayLR, WarmupCosineLR */
    double warmup_min_lr, warmup_max_lr;
    double warmup_min_ratio, cos_min_ratio; /* of base_lr, cosine only */
    int64_t warmup_num_steps;               /* counts as at least 2 */
    int64_t total_num_steps;
    config_lr_warmup warmup_type;
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
} config_lr_schedule;

/* The rate for the optimizer step that follows iteration `t` >= -1. Never negative where the
 * parameters are not; finite for every finite schedule. */
double config_lr_at(const config_lr_schedule *schedule, int64_t t);

/* The first beta for that step: OneCycle with cycle_momentum moves it, the rest give `beta1`. */
double config_lr_beta1_at(const config_lr_schedule *schedule, int64_t t, double beta1);

/* OneCycle with cycle_momentum also sets the second beta to 0.99; the rest give `beta2`. */
double config_lr_beta2_at(const config_lr_schedule *schedule, double beta2);

#endif
