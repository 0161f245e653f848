/* Adafactor (Shazeer & Stern 2018) as transformers has it. A matrix keeps averages of the squares
 * of its rows and of its columns in place of a second moment. A vector is a matrix of one row: the
 * averages of its columns are its second moment. */
#include <math.h>

#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.epsilon = (float)o->eps;
    attributes->update.weight_decay = (float)o->weight_decay;
    attributes->update.clip = (float)o->clip_threshold;
    attributes->update.least_scale = (float)o->least_scale;
    attributes->update.scaled = o->scale_parameter;
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    double share = pow((double)step->updates + 1, o->decay_rate);
    out->learning_rate = (float)step->learning_rate;
    out->beta1 = (float)o->beta1;
    out->beta2 = (float)(1 - share);
    out->share = (float)share;
}

/* In checkpoints by the names of transformers. */
#define AVERAGES                                                                                   \
    {.name = "exp_avg_sq_row", .type = BASE_FP32, .axis = OPTIM_ROWS}, {                           \
        .name = "exp_avg_sq_col", .type = BASE_FP32, .axis = OPTIM_COLUMNS                         \
    }
#define MOMENT                                                                                     \
    { .name = "exp_avg", .type = BASE_FP32 }
#define ADAFACTOR(kernel_)                                                                         \
    .kernel = kernel_, .by_weight = true, .whole_gradient = true, .begin = DEVICE_ADAFACTOR_BEGIN, \
    .set_call = set_call, .set_step = set_step

static const optim_row plain_ema = {.name = "Adafactor with ema",
                                    .states = {AVERAGES, OPTIM_EMA},
                                    .ema = true,
                                    ADAFACTOR(DEVICE_ADAFACTOR)};

static const optim_row moment_ema = {.name = "Adafactor with beta1 and ema",
                                     .states = {MOMENT, AVERAGES, OPTIM_EMA},
                                     .ema = true,
                                     ADAFACTOR(DEVICE_ADAFACTOR_MOMENT)};

const optim_row optim_adafactor = {
    .name = "Adafactor", .states = {AVERAGES}, .with_ema = &plain_ema, ADAFACTOR(DEVICE_ADAFACTOR)};

const optim_row optim_adafactor_moment = {.name = "Adafactor with beta1",
                                          .states = {MOMENT, AVERAGES},
                                          .with_ema = &moment_ema,
                                          ADAFACTOR(DEVICE_ADAFACTOR_MOMENT)};
