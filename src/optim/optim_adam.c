/* AdamW and Adam (Kingma & Ba 2015; Loshchilov & Hutter 2019), and AMSGrad (Reddi et al. 2018). */
#include <math.h>

#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.epsilon = (float)o->eps;
    attributes->update.weight_decay = (float)o->weight_decay;
    attributes->update.decoupled = o->decoupled;
}

/* PyTorch's rule for betas that change: this step's beta to the power of t. */
static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    float beta1 = (float)o->beta1, beta2 = (float)o->beta2;
    double t = (double)step->updates + 1;
    double c1 = 1 - pow((double)beta1, t), c2 = 1 - pow((double)beta2, t);
    out->learning_rate = (float)step->learning_rate;
    out->beta1 = beta1;
    out->beta2 = beta2;
    out->correction1 = o->bias_correction ? (float)c1 : 1.0f;
    out->correction2 = o->bias_correction ? (float)c2 : 1.0f;
}

#define MOMENTS                                                                                    \
    {.name = "exp_avg"}, {                                                                         \
        .name = "exp_avg_sq"                                                                       \
    }
#define LARGEST                                                                                    \
    { .name = "max_exp_avg_sq" }

static const optim_row adam_ema = {.name = "AdamW with ema",
                                   .kernel = DEVICE_ADAM,
                                   .states = {MOMENTS, OPTIM_EMA},
                                   .ema = true,
                                   .set_call = set_call,
                                   .set_step = set_step};

static const optim_row amsgrad_ema = {.name = "AdamW with amsgrad and ema",
                                      .kernel = DEVICE_AMSGRAD,
                                      .states = {MOMENTS, LARGEST, OPTIM_EMA},
                                      .ema = true,
                                      .set_call = set_call,
                                      .set_step = set_step};

const optim_row optim_adam = {.name = "AdamW",
                              .kernel = DEVICE_ADAM,
                              .states = {MOMENTS},
                              .with_ema = &adam_ema,
                              .set_call = set_call,
                              .set_step = set_step};

const optim_row optim_amsgrad = {.name = "AdamW with amsgrad",
                                 .kernel = DEVICE_AMSGRAD,
                                 .states = {MOMENTS, LARGEST},
                                 .with_ema = &amsgrad_ema,
                                 .set_call = set_call,
                                 .set_step = set_step};
