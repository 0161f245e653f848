/* LAMB (You et al. 2020) as DeepSpeed has it: the trust ratio of each weight lies between min_coeff
 * and max_coeff. */
#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.epsilon = (float)o->eps;
    attributes->update.weight_decay = (float)o->weight_decay;
    attributes->update.min_coeff = (float)o->min_coeff;
    attributes->update.max_coeff = (float)o->max_coeff;
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    optim_adam.set_step(o, step, out);
}

#define MOMENTS                                                                                    \
    {.name = "exp_avg"}, {                                                                         \
        .name = "exp_avg_sq"                                                                       \
    }

static const optim_row lamb_ema = {.name = "LAMB with ema",
                                   .kernel = DEVICE_LAMB,
                                   .states = {MOMENTS, OPTIM_EMA},
                                   .ema = true,
                                   .by_weight = true,
                                   .begin = DEVICE_LAMB_BEGIN,
                                   .set_call = set_call,
                                   .set_step = set_step};

const optim_row optim_lamb = {.name = "LAMB",
                              .kernel = DEVICE_LAMB,
                              .states = {MOMENTS},
                              .with_ema = &lamb_ema,
                              .by_weight = true,
                              .begin = DEVICE_LAMB_BEGIN,
                              .set_call = set_call,
                              .set_step = set_step};
