#include "api/api_context.h"
#include "base/inside.h"
#include "engine/handle.h"

bool sifr_engine_weight_at(const sifr_engine *engine, size_t index, sifr_weight_facts *out) {
    BASE_ENTER_OR(false, engine, out);
    const sifr_model *model = engine_model(engine);
    if (index >= model->weight_count) return false;
    const model_weight *w = &model->weights[index];
    sifr_weight_facts known = {.name = w->name, .trained = !w->frozen};
    known.rank = model_weight_shape(w, known.shape);
    return api_give_result(&known, sizeof known, out);
}
