/* Lion (Chen et al. 2023). */
#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.weight_decay = (float)o->weight_decay;
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    out->learning_rate = (float)step->learning_rate;
    out->beta1 = (float)o->beta1;
    out->beta2 = (float)o->beta2;
}

static const optim_row lion_ema = {.name = "Lion with ema",
                                   .kernel = DEVICE_LION,
                                   .states = {{.name = "exp_avg"}, OPTIM_EMA},
                                   .ema = true,
                                   .set_call = set_call,
                                   .set_step = set_step};

const optim_row optim_lion = {.name = "Lion",
                              .kernel = DEVICE_LION,
                              .states = {{.name = "exp_avg"}},
                              .with_ema = &lion_ema,
                              .set_call = set_call,
                              .set_step = set_step};
