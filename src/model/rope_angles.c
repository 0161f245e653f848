/* inv_freq and attention factors of transformers' modeling_rope_utils.py. */
#include <math.h>

#include "base/checked.h"
#include "model/rope.h"

_Static_assert(sizeof(model_rope) == 12 * 8 + 4 * 4 + 2 * MODEL_LIMIT_ROPE_FACTORS * sizeof(float),
               "rules are compared by their bytes");

#define TURN 6.283185307179586

bool model_rope_varies(const model_rope *rope) {
    return rope->kind == MODEL_ROPE_DYNAMIC || rope->kind == MODEL_ROPE_LONGROPE;
}

/* Long wavelengths divided, short ones kept, a ramp between (Llama Team 2024). */
static double llama3(const model_rope *rope, double f) {
    double wavelength = TURN / f;
    double rotations = rope->original_max_position / wavelength;
    double low = rope->low_freq_factor, high = rope->high_freq_factor;
    if (rotations < low) return f / rope->factor;
    if (rotations > high) return f;
    double s = (rotations - low) / (high - low);
    return (1 - s) * f / rope->factor + s * f;
}

/* The pair that rotates so many times in the original length. */
static double pair_of(const model_rope *rope, double rotations) {
    return (double)rope->rotary_dim * log(rope->original_max_position / (rotations * TURN)) /
           (2 * log(rope->theta));
}

/* Peng et al. 2023: fast pairs are kept, slow ones divided, a ramp between. */
static double yarn(const model_rope *rope, double f, int64_t i) {
    double low = pair_of(rope, rope->beta_fast), high = pair_of(rope, rope->beta_slow);
    if (rope->truncate) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, (double)rope->rotary_dim - 1);
    if (low == high) high += 0.001;
    double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
    return f / rope->factor * ramp + f * (1 - ramp);
}

/* The base for a sequence longer than those that the model was made for (NTK-aware scaling). */
static double dynamic_theta(const model_rope *rope, int64_t length) {
    double dim = (double)rope->rotary_dim, most = rope->max_position;
    double growth = rope->factor * fmax((double)length, most) / most - (rope->factor - 1);
    return rope->theta * pow(growth, dim / (dim - 2));
}

double model_rope_frequency(const model_rope *rope, int64_t length, int64_t i) {
    double theta = rope->theta;
    if (rope->kind == MODEL_ROPE_DYNAMIC) theta = dynamic_theta(rope, length);
    double f = pow(theta, -2.0 * (double)i / (double)rope->rotary_dim);
    bool is_long = (double)length > rope->original_max_position;
    switch ((model_rope_kind)rope->kind) {
    case MODEL_ROPE_PROPORTIONAL:
        return i < rope->turning ? f / rope->factor : 0;
    case MODEL_ROPE_LINEAR:
        return f / rope->factor;
    case MODEL_ROPE_YARN:
        return yarn(rope, f, i);
    case MODEL_ROPE_LONGROPE:
        return f / (double)(is_long ? rope->long_factor : rope->short_factor)[i];
    case MODEL_ROPE_LLAMA3:
        return llama3(rope, f);
    case MODEL_ROPE_DEFAULT:
    case MODEL_ROPE_DYNAMIC:
        break;
    }
    return rope->factor < 0 ? -f : f;
}

double model_rope_scale(const model_rope *rope, int64_t position) {
    double scale = rope->attention_factor == 0 ? 1 : rope->attention_factor;
    if (rope->query_beta == 0) return scale;
    double rotations = floor((double)position / rope->original_max_position);
    return scale * (1 + rope->query_beta * log(1 + rotations));
}

const char *model_rope_kind_name(model_rope_kind kind) {
    static const char *const names[] = {"default", "linear",   "dynamic", "proportional",
                                        "yarn",    "longrope", "llama3"};
    return names[kind];
}
