/* The converter computes in PyTorch, whose power is SLEEF's (Sleef_powf16_u10 of version 3, by
 * Naoki Shibata and contributors, Boost Software License 1.0). One element in a hundred is not the
 * nearest float, so the same bits need the same steps: pairs of floats, a value and what it lacks,
 * and fused products. */
#include "formats/gguf/gguf_rope.h"

#include <math.h>

/* --- pairs of floats --- */

typedef struct two_floats {
    float high, low;
} two_floats;

static two_floats add_exact(float a, float b) {
    float sum = a + b, v = sum - a;
    return (two_floats){sum, (a - (sum - v)) + (b - v)};
}

static two_floats add_float(two_floats a, float b) {
    two_floats sum = add_exact(a.high, b);
    return (two_floats){sum.high, sum.low + a.low};
}

/* |a| >= |b| in this one and the next. */
static two_floats add_to_float(float a, two_floats b) {
    float sum = a + b.high;
    return (two_floats){sum, ((a - sum) + b.high) + b.low};
}

static two_floats add_smaller(two_floats a, two_floats b) {
    float sum = a.high + b.high;
    return (two_floats){sum, (((a.high - sum) + b.high) + a.low) + b.low};
}

static two_floats add(two_floats a, two_floats b) {
    two_floats sum = add_exact(a.high, b.high);
    return (two_floats){sum.high, sum.low + (a.low + b.low)};
}

static two_floats multiply(two_floats a, two_floats b) {
    float p = a.high * b.high;
    float rest = fmaf(a.low, b.high, fmaf(a.high, b.high, -p));
    return (two_floats){p, fmaf(a.high, b.low, rest)};
}

static two_floats multiply_float(two_floats a, float b) {
    float p = a.high * b;
    return (two_floats){p, fmaf(a.low, b, fmaf(a.high, b, -p))};
}

static two_floats square(two_floats a) {
    float p = a.high * a.high;
    return (two_floats){p, fmaf(a.high + a.high, a.low, fmaf(a.high, a.high, -p))};
}

static two_floats divide(two_floats a, two_floats b) {
    float t = 1 / b.high, q = a.high * t;
    float u = fmaf(t, a.high, -q), v = fmaf(-b.low, t, fmaf(-b.high, t, 1));
    return (two_floats){q, fmaf(q, v, fmaf(a.low, t, u))};
}

/* --- the power --- */

static two_floats logarithm(float d) {
    static const two_floats ln2 = {0.69314718246459960938F, -1.904654323148236017e-09F},
                            third = {0.66666662693023681640625F, 3.69183861259614332084311e-09F};
    int exponent = ilogbf(d * (1.0F / 0.75F));
    float m = ldexpf(d, -exponent);
    two_floats x = divide(add_exact(-1, m), add_exact(1, m)), x2 = square(x);
    float t = 0.240320354700088500976562F;
    t = fmaf(t, x2.high, 0.285112679004669189453125F);
    t = fmaf(t, x2.high, 0.400007992982864379882812F);
    two_floats sum = multiply_float(ln2, (float)exponent);
    sum = add_smaller(sum, (two_floats){2 * x.high, 2 * x.low});
    return add_smaller(sum, multiply(multiply(x2, x), add(multiply_float(x2, t), third)));
}

static float exponential(two_floats d) {
    float q = rintf((d.high + d.low) * 1.44269504088896340736F);
    two_floats s = add_float(d, q * -0.693145751953125F);
    s = add_float(s, q * -1.428606765330187045e-06F);
    float sum = s.high + s.low, u = 0.00136324646882712841033936F;
    s = (two_floats){sum, (s.high - sum) + s.low};
    u = fmaf(u, s.high, 0.00836596917361021041870117F);
    u = fmaf(u, s.high, 0.0416710823774337768554688F);
    u = fmaf(u, s.high, 0.166665524244308471679688F);
    u = fmaf(u, s.high, 0.499999850988388061523438F);
    two_floats t = add_to_float(1, add_smaller(s, multiply_float(square(s), u)));
    return ldexpf(t.high + t.low, (int)q);
}

/* torch.pow(base, …) of element `i` of `count`: what fills no block is the C library's. */
static float power(float base, float exponent, int64_t i, int64_t count) {
    enum { BLOCK = 32 };
    if (i >= count / BLOCK * BLOCK) return powf(base, exponent);
    return exponential(multiply_float(logarithm(base), exponent));
}

static double number(const json_t *rope, const char *key, double fallback) {
    const json_t *value = json_object_get(rope, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

/* Divisions of a number by a tensor are products with the inverse, as PyTorch has them. */
void formats_gguf_llama3_factors(const json_t *rope, int64_t dimensions, float *out) {
    float base = (float)number(rope, "rope_theta", 10000);
    double factor = number(rope, "factor", 8), low = number(rope, "low_freq_factor", 1),
           high = number(rope, "high_freq_factor", 4),
           length = number(rope, "original_max_position_embeddings", 8192);
    for (int64_t i = 0; i < dimensions / 2; i++) {
        float exponent = (float)(2 * i) / (float)dimensions;
        float frequency = 1.0F / power(base, exponent, i, dimensions / 2);
        float wave = 1.0F / frequency * (float)(2 * 3.14159265358979323846);
        if (wave < (float)(length / high)) {
            out[i] = 1;
        } else if (wave > (float)(length / low)) {
            out[i] = (float)factor;
        } else {
            float smooth = (1.0F / wave * (float)length - (float)low) / (float)(high - low);
            out[i] = 1.0F / ((1.0F - smooth) / (float)factor + smooth);
        }
    }
}
