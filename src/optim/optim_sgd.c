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

const optim_row optim_sgd = {.name = "SGD without momentum",
                             .kernel = DEVICE_SGD,
                             .set_call = set_call,
                             .set_step = set_step};

const optim_row optim_momentum = {.name = "SGD with momentum",
                                  .kernel = DEVICE_MOMENTUM,
                                  .states = {{.name = "momentum_buffer"}},
                                  .set_call = set_call,
                                  .set_step = set_step};
