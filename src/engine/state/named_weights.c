/* Weights by their names, for the C interface. */
#include <string.h>

#include "engine/engine_private.h"
#include "engine/state/state_private.h"

static sifr_status find_weight(const sifr_engine *engine, const char *name, size_t count,
                               size_t *index, sifr_error *error) {
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        const model_weight *w = &engine->model->weights[i];
        if (strcmp(w->name, name) != 0) continue;
        model_block whole = model_whole(w);
        *index = i;
        if (count == (size_t)model_block_elements(&whole)) return SIFR_OK;
        return base_fail(error, SIFR_USAGE, "weight %s: has %lld x %lld elements, not %zu", name,
                         (long long)whole.rows[1], (long long)whole.columns[1], count);
    }
    return base_fail(error, SIFR_USAGE, "weight %s: the model has no weight of that name", name);
}

sifr_status sifr_engine_write_weight(sifr_engine *engine, const char *name, const float *values,
                                     size_t count, sifr_error *error) {
    BASE_TRY(BASE_GIVEN(error, engine, name, values));
    size_t index = 0;
    BASE_TRY(find_weight(engine, name, count, &index, error));
    BASE_TRY(engine_settle(engine, error));
    engine_note_written(engine, index);
    return engine_put(engine, index, 0, (int64_t)count, values, error);
}

sifr_status sifr_engine_read_weight(const sifr_engine *engine, const char *name, float *values,
                                    size_t count, sifr_error *error) {
    BASE_TRY(BASE_GIVEN(error, engine, name, values));
    size_t index = 0;
    BASE_TRY(find_weight(engine, name, count, &index, error));
    BASE_TRY(engine_settle(engine, error));
    return engine_collect(engine, index, ENGINE_MASTER, 0, (int64_t)count, values, error);
}

sifr_status sifr_engine_read_average(const sifr_engine *engine, const char *name, float *values,
                                     size_t count, sifr_error *error) {
    BASE_TRY(BASE_GIVEN(error, engine, name, values));
    size_t index = 0;
    BASE_TRY(find_weight(engine, name, count, &index, error));
    if (!engine_optimizer(engine)->ema || engine->model->weights[index].frozen)
        return base_fail(error, SIFR_USAGE,
                         "weight %s: no average of it is kept (ema_decay, of trained weights)",
                         name);
    BASE_TRY(engine_settle(engine, error));
    engine_part part = (engine_part)(engine_parts(engine) - 1);
    return engine_collect(engine, index, part, 0, (int64_t)count, values, error);
}
