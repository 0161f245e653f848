/* The schedules of transformers' get_scheduler. The operations follow its optimization.py (5.24)
 * one by one. LambdaLR counts steps from 0: step t + 1 here. */
#include <math.h>

#include "config/schedule/lr_schedule.h"

static const double trainer_pi = 3.141592653589793;

static double trainer_larger(double a, double b) {
    return a > b ? a : b;
}

static double trainer_rise(const config_lr_schedule *s, double step) {
    return step / trainer_larger(1.0, (double)s->trainer_warmup);
}

/* From 0 behind the warm-up to 1 at the end of the run, and on. */
static double trainer_progress(const config_lr_schedule *s, double step) {
    double warm = (double)s->trainer_warmup;
    return (step - warm) / trainer_larger(1.0, (double)s->total_num_steps - warm);
}

static double trainer_wave(const config_lr_schedule *s, double progress) {
    return 0.5 * (1.0 + cos(trainer_pi * s->num_cycles * 2.0 * progress));
}

static double trainer_restarts(const config_lr_schedule *s, double step) {
    double progress = trainer_progress(s, step);
    if (progress >= 1.0) return 0.0;
    double wave = 0.5 * (1.0 + cos(trainer_pi * fmod(s->num_cycles * progress, 1.0)));
    return trainer_larger(0.0, wave);
}

static double trainer_polynomial(const config_lr_schedule *s, double step) {
    double total = (double)s->total_num_steps, warm = (double)s->trainer_warmup;
    if (step > total || total <= warm) return s->lr_end / s->base_lr;
    double rest = 1 - (step - warm) / (total - warm);
    double decay = (s->base_lr - s->lr_end) * pow(rest, s->power) + s->lr_end;
    return decay / s->base_lr;
}

static double trainer_inverse_sqrt(const config_lr_schedule *s, double step) {
    double warm = (double)s->trainer_warmup, scale = (double)s->timescale;
    if (s->timescale == 0) scale = warm > 0 ? warm : 10000;
    return 1.0 / sqrt((step + (scale - warm)) / scale);
}

static double trainer_above(double factor, double least) {
    return trainer_larger(0.0, factor * (1.0 - least) + least);
}

/* cosine_warmup_with_min_lr begins its warm-up above 0, and its decay a step earlier. */
static double trainer_warmup_min_lr(const config_lr_schedule *s, double step) {
    double warm = (double)s->trainer_warmup;
    if (step < warm) {
        if (s->warmup_lr_rate < 0) return (step + 1.0) / trainer_larger(1.0, warm);
        double rest = 1.0 - s->warmup_lr_rate;
        return s->warmup_lr_rate + rest * step / trainer_larger(1.0, warm - 1);
    }
    double length = trainer_larger(1.0, (double)s->total_num_steps - warm);
    return trainer_above(trainer_wave(s, (step - warm + 1.0) / length), s->min_lr_rate);
}

static double trainer_warm_slope(const config_lr_schedule *s, double progress) {
    if (s->warmup_type == CONFIG_LR_COSINE) return 0.5 * (1.0 - cos(trainer_pi * progress));
    if (s->warmup_type == CONFIG_LR_1_SQRT) return 1.0 - sqrt(1.0 - progress);
    return progress;
}

static double trainer_decay_slope(const config_lr_schedule *s, double progress) {
    if (s->decay_type == CONFIG_LR_COSINE) return trainer_wave(s, progress);
    if (s->decay_type == CONFIG_LR_1_SQRT) return 1.0 - sqrt(progress);
    return 1.0 - progress;
}

static double trainer_stable_decay(const config_lr_schedule *s, double step) {
    double warm = (double)s->trainer_warmup, decay = (double)s->num_decay_steps;
    if (step < warm) {
        double progress = step / trainer_larger(1.0, warm);
        return trainer_above(trainer_warm_slope(s, progress), s->min_lr_ratio);
    }
    if (step < warm + s->num_stable_steps) return 1.0;
    if (step >= warm + s->num_stable_steps + decay) return s->min_lr_ratio;
    double progress = (step - warm - s->num_stable_steps) / trainer_larger(1.0, decay);
    return trainer_above(trainer_decay_slope(s, progress), s->min_lr_ratio);
}

/* Of base_lr, behind the warm-up where the kind has the usual one. */
static double trainer_share(const config_lr_schedule *s, double step) {
    double total = (double)s->total_num_steps, warm = (double)s->trainer_warmup;
    switch (s->kind) {
    case CONFIG_LR_TRAINER_LINEAR:
        return trainer_larger(0.0, (total - step) / trainer_larger(1.0, total - warm));
    case CONFIG_LR_TRAINER_COSINE:
        return trainer_larger(0.0, trainer_wave(s, trainer_progress(s, step)));
    case CONFIG_LR_TRAINER_RESTARTS:
        return trainer_restarts(s, step);
    case CONFIG_LR_TRAINER_POLYNOMIAL:
        return trainer_polynomial(s, step);
    case CONFIG_LR_TRAINER_INVERSE_SQRT:
        return trainer_inverse_sqrt(s, step);
    case CONFIG_LR_TRAINER_MIN_LR:
        return trainer_above(trainer_wave(s, trainer_progress(s, step)), s->min_lr_rate);
    default:
        break;
    }
    return 1.0; /* constant, constant_with_warmup */
}

double config_lr_trainer_at(const config_lr_schedule *s, int64_t t) {
    double step = (double)t + 1;
    if (s->kind == CONFIG_LR_TRAINER_WARMUP_MIN_LR)
        return s->base_lr * trainer_warmup_min_lr(s, step);
    if (s->kind == CONFIG_LR_TRAINER_STABLE_DECAY)
        return s->base_lr * trainer_stable_decay(s, step);
    bool warms = s->kind != CONFIG_LR_TRAINER_CONSTANT && step < (double)s->trainer_warmup;
    return s->base_lr * (warms ? trainer_rise(s, step) : trainer_share(s, step));
}
