/* Initial values of weights: each a function of (seed, weight, element) alone. */
#include "base/random.h"
#include "model/model.h"

void model_initial_values(const sifr_model *model, size_t weight, uint64_t seed, int64_t first,
                          int64_t count, float *out) {
    const model_weight *w = &model->weights[weight];
    uint64_t key = base_random_key(seed, weight, 0);
    for (int64_t i = 0; i < count; i++) {
        switch (w->init) {
        case SIFR_INIT_ZERO:
            out[i] = 0;
            break;
        case SIFR_INIT_ONE:
            out[i] = 1;
            break;
        case SIFR_INIT_NORMAL:
            out[i] = (float)(w->deviation * base_normal(key, (uint64_t)(first + i)));
            break;
        }
    }
}
