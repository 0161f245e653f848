/* SGD as torch.optim.SGD has it. */
#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.weight_decay = (float)o->weight_decay;
    attributes->update.nesterov = o->nesterov;
}

/* The first gradient is the momentum as it is, whatever the dampening. */
static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    out->learning_rate = (float)step->learning_rate;
    out->beta1 = (float)o->momentum;
    out->share = step->updates ? (float)(1 - o->dampening) : 1.0f;
}

static const optim_row sgd_ema = {.name = "SGD without momentum, with ema",
                                  .kernel = DEVICE_SGD,
                                  .states = {OPTIM_EMA},
                                  .ema = true,
                                  .set_call = set_call,
                                  .set_step = set_step};

static const optim_row momentum_ema = {.name = "SGD with momentum and ema",
                                       .kernel = DEVICE_MOMENTUM,
                                       .states = {{.name = "momentum_buffer"}, OPTIM_EMA},
                                       .ema = true,
                                       .set_call = set_call,
                                       .set_step = set_step};

const optim_row optim_sgd = {.name = "SGD without momentum",
                             .kernel = DEVICE_SGD,
                             .with_ema = &sgd_ema,
                             .set_call = set_call,
                             .set_step = set_step};

const optim_row optim_momentum = {.name = "SGD with momentum",
                                  .kernel = DEVICE_MOMENTUM,
                                  .states = {{.name = "momentum_buffer"}},
                                  .with_ema = &momentum_ema,
                                  .set_call = set_call,
                                  .set_step = set_step};
