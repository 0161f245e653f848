/* Which weights are trained. */
#include <fnmatch.h>

#include "base/errors.h"
#include "base/inside.h"
#include "model/description.h"

sifr_status sifr_model_freeze(sifr_model *model, const char *pattern, sifr_error *error) {
    BASE_ENTER(error, model, pattern);
    bool any = false;
    for (size_t w = 0; w < model->weight_count; w++) {
        if (fnmatch(pattern, model->weights[w].name, 0) != 0) continue;
        model->weights[w].frozen = any = true;
    }
    if (any) return model->finished ? model_arrange(model, error) : SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "freeze: no weight's name matches \"%s\"; names look like %s", pattern,
                     model->weight_count ? model->weights[model->weight_count - 1].name : "(none)");
}

int64_t sifr_model_trained(const sifr_model *model) {
    BASE_ENTER_OR(0, model);
    int64_t sum = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        if (!model->weights[w].frozen) sum += model->weights[w].rows * model->weights[w].columns;
    }
    return sum;
}
