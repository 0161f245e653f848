/* Schedule-free AdamW (Defazio et al. 2024) as schedulefree.AdamWScheduleFree computes it: weights
 * are trained at y, between z, where steps are made, and their average x, which is the result. */
#include <math.h>

#include "optim/optim.h"

static void set_call(const sifr_optimizer *o, device_attributes *attributes) {
    attributes->update.epsilon = (float)o->eps;
    attributes->update.weight_decay = (float)o->weight_decay;
}

static void set_step(const sifr_optimizer *o, const optim_step *step, device_step *out) {
    double t = (double)step->updates + 1, rate = step->learning_rate;
    if (step->updates < o->warmup_steps) rate *= t / (double)o->warmup_steps;
    optim_memory *memory = step->memory;
    memory->largest_rate = fmax(memory->largest_rate, rate);
    double weight = pow(t, o->r) * pow(memory->largest_rate, o->weight_lr_power);
    memory->weights += weight;
    out->learning_rate = (float)rate;
    out->beta1 = (float)o->beta1;
    out->beta2 = (float)o->beta2;
    out->correction2 = (float)(1 - pow((double)out->beta2, t));
    out->share = memory->weights > 0 ? (float)(weight / memory->weights) : 0.0f;
}

/* The kernel's operations: the same bits. */
static void train_weights(const sifr_optimizer *o, const float *average,
                          const float *const states[OPTIM_STATES], int64_t count, float *out) {
    float rest = (float)(1.0 - (double)(float)o->beta1);
    for (int64_t i = 0; i < count; i++) out[i] = average[i] + rest * states[0][i];
}

const optim_row optim_schedule_free = {.name = "AdamWScheduleFree",
                                       .kernel = DEVICE_SCHEDULE_FREE,
                                       .states = {{.name = "z_minus_x"}, {.name = "exp_avg_sq"}},
                                       .remembers = true,
                                       .averages = true,
                                       .set_call = set_call,
                                       .set_step = set_step,
                                       .train_weights = train_weights};
