/* Adam and AdamW with moments in 8 bits (Dettmers et al. 2022), as bitsandbytes has them: weight
 * decay is decoupled in both, small weights keep 32 bits. */
#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    optim_adam.set_call(o, attributes);
    attributes->update.decoupled = true;
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    optim_adam.set_step(o, step, out);
}

static bool takes(const sifr_optimizer *o, const model_weight *weight) {
    return weight->rows * weight->columns >= o->min_8bit_size;
}

static const optim_row small = {
    .name = "AdamW",
    .kernel = DEVICE_ADAM,
    .states = {{.name = "exp_avg", .type = BASE_FP32}, {.name = "exp_avg_sq", .type = BASE_FP32}},
    .set_call = set_call,
    .set_step = set_step};

const optim_row optim_adam_8bit = {
    .name = "AdamW in 8 bits",
    .kernel = DEVICE_ADAM_8BIT,
    .states = {{.name = "exp_avg", .type = BASE_UINT8},
               {.name = "exp_avg_sq", .type = BASE_UINT8},
               {.name = "exp_avg_absmax", .type = BASE_FP32, .each = DEVICE_CODED},
               {.name = "exp_avg_sq_absmax", .type = BASE_FP32, .each = DEVICE_CODED}},
    .takes = takes,
    .rest = &small,
    .set_call = set_call,
    .set_step = set_step};
