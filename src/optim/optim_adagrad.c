/* Adagrad (Duchi et al. 2011) as torch.optim.Adagrad has it. */
#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.epsilon = (float)o->eps;
    attributes->update.weight_decay = (float)o->weight_decay;
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    out->learning_rate = (float)(step->learning_rate / (1 + (double)step->updates * o->lr_decay));
}

static const optim_row adagrad_ema = {.name = "Adagrad with ema",
                                      .kernel = DEVICE_ADAGRAD,
                                      .states = {{.name = "sum"}, OPTIM_EMA},
                                      .ema = true,
                                      .set_call = set_call,
                                      .set_step = set_step};

const optim_row optim_adagrad = {.name = "Adagrad",
                                 .kernel = DEVICE_ADAGRAD,
                                 .states = {{.name = "sum"}},
                                 .with_ema = &adagrad_ema,
                                 .set_call = set_call,
                                 .set_step = set_step};
