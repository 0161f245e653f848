/* Initial values of weights: each a function of (seed, weight, element) alone. */
#include <math.h>

#include "base/assert.h"
#include "base/random.h"
#include "model/description.h"

enum { DRAWS = 64 }; /* with a cutoff of 0.1 one in 200 is left beyond it after so many */

static float truncated(const model_weight *w, size_t weight, uint64_t seed, uint64_t element) {
    double value = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        value = base_normal(base_random_key(seed, weight, draw), element);
        if (value >= -w->cutoff && value <= w->cutoff) return (float)(w->deviation * value);
    }
    return (float)(w->deviation * (value < 0 ? -w->cutoff : w->cutoff));
}

void model_initial_values(const sifr_model *model, size_t weight, uint64_t seed, int64_t first,
                          int64_t count, float *out) {
    base_assert(weight < model->weight_count && first >= 0 && count >= 0);
    const model_weight *w = &model->weights[weight];
    uint64_t key = base_random_key(seed, weight, 0);
    for (int64_t i = 0; i < count && w->start != 0; i++) out[i] = (float)w->start;
    if (w->start != 0) return;
    for (int64_t i = 0; i < count && w->init == SIFR_INIT_UNIFORM; i++) {
        uint64_t element = (uint64_t)(first + i);
        double value = base_uniform(base_philox(key, element / 4, 0).v[element % 4]);
        out[i] = (float)(w->deviation * (2 * value - 1));
    }
    if (w->init == SIFR_INIT_UNIFORM) return;
    for (int64_t i = 0; i < count && w->init == SIFR_INIT_LOG; i++) {
        uint64_t element = (uint64_t)(first + i);
        double value = base_uniform(base_philox(key, element / 4, 0).v[element % 4]);
        out[i] = (float)log(0.01 + value * (16 - 0.01));
    }
    if (w->init == SIFR_INIT_LOG) return;
    if (w->init != SIFR_INIT_NORMAL) {
        for (int64_t i = 0; i < count; i++) out[i] = w->init == SIFR_INIT_ONE ? 1.0f : 0.0f;
        return;
    }
    for (int64_t i = 0; i < count && w->cutoff > 0; i++)
        out[i] = truncated(w, weight, seed, (uint64_t)(first + i));
    if (w->cutoff > 0) return;
    int64_t zero = w->has_zero_row ? w->zero_row : -1, columns = model_whole(w).columns[1];
    double pair[2];
    for (int64_t i = 0; i < count; i++) {
        uint64_t element = (uint64_t)(first + i);
        if (i == 0 || element % 2 == 0) base_normal_pair(key, element / 2, pair);
        bool in_zero_row = zero >= 0 && (first + i) / columns == zero;
        out[i] = in_zero_row ? 0.0f : (float)(w->deviation * pair[element % 2]);
    }
}
