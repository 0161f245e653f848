#include "config/schedule/lr_schedule.h"

#include <math.h>

/* The operations follow deepspeed/runtime/lr_schedules.py one by one, so that the results agree
 * to the last bit wherever the C library's log and cos do. */

static double config_larger(double a, double b) {
    return a > b ? a : b;
}

static int64_t config_warmup_steps(const config_lr_schedule *s) {
    return s->warmup_num_steps > 2 ? s->warmup_num_steps : 2;
}

/* From 0 to 1 over the warm-up, for 0 <= t < warmup_num_steps. */
static double config_warmup_share(const config_lr_schedule *s, int64_t t) {
    double steps = (double)config_warmup_steps(s);
    if (s->warmup_type == CONFIG_LR_LINEAR) return (double)t / steps;
    return 1.0 / log(steps) * log((double)t + 1);
}

static double config_warmup_lr(const config_lr_schedule *s, int64_t t) {
    if (t < 0) return s->warmup_min_lr;
    double share = 1.0;
    int64_t warm = config_warmup_steps(s);
    if (t < warm) {
        share = config_warmup_share(s, t);
    } else if (s->kind == CONFIG_LR_WARMUP_DECAY) {
        double total = (double)s->total_num_steps;
        share = config_larger(0.0, (total - (double)t) / config_larger(1.0, total - (double)warm));
    }
    return s->warmup_min_lr + (s->warmup_max_lr - s->warmup_min_lr) * share;
}

static double config_cosine_lr(const config_lr_schedule *s, int64_t t) {
    if (t < 0) return 0.0;
    int64_t warm = config_warmup_steps(s);
    if (t < warm) {
        double rest = 1.0 - s->warmup_min_ratio;
        return s->base_lr * (s->warmup_min_ratio + config_warmup_share(s, t) * rest);
    }
    double done = (double)t - (double)warm + 1;
    double length = config_larger(1.0, (double)s->total_num_steps - (double)warm);
    double progress = done / length < 1.0 ? done / length : 1.0;
    double share = (1.0 + cos(3.141592653589793 * progress)) / 2.0;
    return s->base_lr * config_larger(0.0, s->cos_min_ratio + (1.0 - s->cos_min_ratio) * share);
}

static double config_second_steps(const config_lr_schedule *s) {
    return (double)(s->second_step_size > 0 ? s->second_step_size : s->first_step_size);
}

/* How far up the cycle is, 0 to 1. */
static double config_cycle_share(const config_lr_schedule *s, int64_t t) {
    double first = (double)s->first_step_size, second = config_second_steps(s);
    double total = first + second, ratio = first / total, k = (double)t + 1;
    double x = 1.0 + k / total - floor(1.0 + k / total);
    bool rising = x <= ratio;
    int64_t stairs = rising ? s->first_stair_count : s->second_stair_count;
    if (stairs > 0) {
        double at = fmod(k, total);
        double position =
            at <= first ? at * (double)stairs / first : (total - at) * (double)stairs / second;
        return floor(position) / (double)stairs;
    }
    return rising ? x / ratio : (x - 1.0) / (ratio - 1.0);
}

/* Steps since the end of the cycle, 0 or less inside of it. */
static double config_after_cycle(const config_lr_schedule *s, int64_t t) {
    double total = (double)s->first_step_size + config_second_steps(s);
    return (double)t < total ? 0.0 : (double)t - total + 1.0;
}

static double config_cycle_lr(const config_lr_schedule *s, int64_t t) {
    double after = config_after_cycle(s, t);
    if (after <= 0) {
        return s->cycle_min_lr + (s->cycle_max_lr - s->cycle_min_lr) * config_cycle_share(s, t);
    }
    if (s->decay_step_size == 0 || s->decay_lr_rate == 0) return s->cycle_min_lr;
    return s->cycle_min_lr / (1.0 + s->decay_lr_rate * (after / (double)s->decay_step_size));
}

static double config_range_lr(const config_lr_schedule *s, int64_t t) {
    double interval = ((double)t + 1) / (double)s->range_step_size;
    if (s->range_staircase) interval = floor(interval);
    return s->range_min_lr * (1.0 + s->range_step_rate * interval);
}

/* Adafactor counts steps from 1, and `t` is -1 before the first. */
static double config_relative_lr(const config_lr_schedule *s, int64_t t) {
    double step = (double)t + 2, most = s->warmup_init ? 1e-6 * step : 1e-2;
    double rate = 1.0 / sqrt(step);
    return rate < most ? rate : most;
}

double config_lr_at(const config_lr_schedule *schedule, int64_t t) {
    switch (schedule->kind) {
    case CONFIG_LR_WARMUP:
    case CONFIG_LR_WARMUP_DECAY:
        return config_warmup_lr(schedule, t);
    case CONFIG_LR_WARMUP_COSINE:
        return config_cosine_lr(schedule, t);
    case CONFIG_LR_ONE_CYCLE:
        return config_cycle_lr(schedule, t);
    case CONFIG_LR_RANGE_TEST:
        return config_range_lr(schedule, t);
    case CONFIG_LR_CONSTANT:
        return schedule->relative_step ? config_relative_lr(schedule, t) : schedule->base_lr;
    default:
        break;
    }
    return config_lr_trainer_at(schedule, t);
}

double config_lr_beta1_at(const config_lr_schedule *s, int64_t t, double beta1) {
    if (s->kind != CONFIG_LR_ONE_CYCLE || !s->cycle_momentum) return beta1;
    if (t < 0) return s->cycle_min_mom; /* what DeepSpeed starts the optimizer with */
    double after = config_after_cycle(s, t);
    if (after <= 0) {
        return s->cycle_max_mom - (s->cycle_max_mom - s->cycle_min_mom) * config_cycle_share(s, t);
    }
    if (s->decay_step_size == 0 || s->decay_mom_rate == 0) return s->cycle_max_mom;
    return s->cycle_max_mom * (1.0 + s->decay_mom_rate * (after / (double)s->decay_step_size));
}

double config_lr_beta2_at(const config_lr_schedule *s, double beta2) {
    return s->kind == CONFIG_LR_ONE_CYCLE && s->cycle_momentum ? 0.99 : beta2;
}
