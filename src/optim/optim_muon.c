/* Muon (Jordan et al. 2024) as DeepSpeed has it: momentum, orthogonalised by a Newton-Schulz
 * iteration, for matrices; Adam for what is none, and for embeddings and heads, which DeepSpeed
 * finds by their names. */
#include <string.h>

#include "optim/optim.h"

static bool takes(const sifr_optimizer *o, const model_weight *weight) {
    (void)o;
    return !weight->vector && !strcasestr(weight->name, "embed") &&
           !strcasestr(weight->name, "lm_head");
}

static double or_one(double scale) {
    return scale > 0 ? scale : 1;
}

static double muon_scale(const sifr_optimizer *o) {
    return or_one(o->muon_scale);
}

static double adam_scale(const sifr_optimizer *o) {
    return or_one(o->adam_scale);
}

static void set_muon(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.weight_decay = (float)o->weight_decay;
    attributes->update.momentum = (float)o->momentum;
    attributes->update.gram = o->ns_method == SIFR_NS_GRAM;
}

static void set_adam(const sifr_optimizer *o, device_attributes *attributes) {
    optim_adam.set_call(o, attributes);
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    optim_adam.set_step(o, step, out);
}

static const optim_row rest = {.name = "AdamW beside Muon",
                               .kernel = DEVICE_ADAM,
                               .states = {{.name = "exp_avg"}, {.name = "exp_avg_sq"}},
                               .rate_scale = adam_scale,
                               .set_call = set_adam,
                               .set_step = set_step};

const optim_row optim_muon = {.name = "Muon",
                              .kernel = DEVICE_MUON,
                              .states = {{.name = "momentum_buffer"}},
                              .takes = takes,
                              .rest = &rest,
                              .begin = DEVICE_MUON_BEGIN,
                              .reads_whole = true,
                              .whole = DEVICE_ORTHOGONALISE,
                              .rate_scale = muon_scale,
                              .set_call = set_muon,
                              .set_step = set_step};
