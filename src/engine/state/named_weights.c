/* Weights by their names, for the C interface. */
#include <string.h>

#include "base/inside.h"
#include "engine/engine_private.h"
#include "engine/state/state_private.h"
#include "plan/queries.h"

static sifr_status find_name(const sifr_engine *engine, const char *name, size_t *index,
                             sifr_error *error) {
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        *index = i;
        if (strcmp(engine->model->weights[i].name, name) == 0) return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE, "weight %s: the model has no weight of that name", name);
}

static sifr_status find_weight(const sifr_engine *engine, const char *name, size_t count,
                               size_t *index, sifr_error *error) {
    BASE_TRY(find_name(engine, name, index, error));
    model_block whole = model_whole(&engine->model->weights[*index]);
    if (count == (size_t)model_block_elements(&whole)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "weight %s: has %lld x %lld elements, not %zu", name,
                     (long long)whole.rows[1], (long long)whole.columns[1], count);
}

static sifr_status find_piece(const sifr_engine *engine, const char *name, int64_t first,
                              size_t count, size_t *index, sifr_error *error) {
    BASE_TRY(find_name(engine, name, index, error));
    int64_t elements = model_logical_elements(&engine->model->weights[*index]);
    if (first >= 0 && first <= elements && count <= (size_t)(elements - first)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "weight %s: has %lld elements; %zu from element %lld on are not among them",
                     name, (long long)elements, count, (long long)first);
}

sifr_status sifr_engine_write_weight(sifr_engine *engine, const char *name, const float *values,
                                     size_t count, sifr_error *error) {
    BASE_ENTER(error, engine, name, values);
    size_t index = 0;
    BASE_TRY(find_weight(engine, name, count, &index, error));
    BASE_TRY(engine_settle(engine, error));
    engine_note_written(engine, index);
    engine_note_values(engine, index, 0, count, values);
    return engine_put(engine, index, 0, (int64_t)count, values, error);
}

static bool cuts_any(const sifr_engine *engine) {
    for (size_t i = 0; i < engine->model->weight_count; i++)
        if (engine_is_cut(engine, i, ENGINE_MASTER)) return true;
    return false;
}

/* A range of a weight that is to be read; `index` once it is found. */
typedef struct reading {
    const char *name;
    engine_part part;
    int64_t first;
    size_t count, index;
} reading;

/* Where ranks send each other parts of weights, what one cannot read ends the call on all, and so
 * does what they do not read alike. A weight that this rank has whole is read by it alone. */
static sifr_status read_range(const sifr_engine *engine, const reading *r, sifr_status found,
                              float *values, sifr_error *error) {
    bool cut = found == SIFR_OK ? engine_is_cut(engine, r->index, r->part) : cuts_any(engine);
    sifr_error own = {.message = ""}, *said = error ? error : &own;
    if (cut && comm_size(engine->group) > 1) {
        const engine_given given =
            engine_given_reading(r->name, r->part, r->first, (int64_t)r->count);
        found = engine_agree(engine, &given, found, said);
    }
    if (found != SIFR_OK || r->count == 0) return found;
    return engine_collect(engine, r->index, r->part, r->first, (int64_t)r->count, values, said);
}

sifr_status sifr_engine_read_weight(const sifr_engine *engine, const char *name, float *values,
                                    size_t count, sifr_error *error) {
    BASE_ENTER(error, engine, name, values);
    reading r = {.name = name, .part = ENGINE_MASTER, .count = count};
    BASE_TRY(engine_settle(engine, error));
    sifr_status found = find_weight(engine, name, count, &r.index, error);
    return read_range(engine, &r, found, values, error);
}

static sifr_status find_average(const sifr_engine *engine, const char *name, size_t count,
                                size_t *index, sifr_error *error) {
    BASE_TRY(find_weight(engine, name, count, index, error));
    if (engine_optimizer(engine)->ema && !engine->model->weights[*index].frozen) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "weight %s: no average of it is kept (ema_decay, of trained weights)", name);
}

sifr_status sifr_engine_read_average(const sifr_engine *engine, const char *name, float *values,
                                     size_t count, sifr_error *error) {
    BASE_ENTER(error, engine, name, values);
    engine_part part = (engine_part)(engine_parts(engine) - 1);
    reading r = {.name = name, .part = part, .count = count};
    BASE_TRY(engine_settle(engine, error));
    sifr_status found = find_average(engine, name, count, &r.index, error);
    return read_range(engine, &r, found, values, error);
}

sifr_status sifr_engine_write_piece(sifr_engine *engine, const char *name, int64_t first,
                                    const float *values, size_t count, sifr_error *error) {
    BASE_ENTER(error, engine, name);
    BASE_TRY(BASE_GIVEN_FOR(error, count, values));
    size_t index = 0;
    BASE_TRY(find_piece(engine, name, first, count, &index, error));
    BASE_TRY(engine_settle(engine, error));
    engine_note_written(engine, index);
    if (count) engine_note_values(engine, index, first, count, values);
    return count ? engine_put(engine, index, first, (int64_t)count, values, error) : SIFR_OK;
}

sifr_status sifr_engine_read_piece(const sifr_engine *engine, const char *name, int64_t first,
                                   float *values, size_t count, sifr_error *error) {
    BASE_ENTER(error, engine, name);
    BASE_TRY(BASE_GIVEN_FOR(error, count, values));
    reading r = {.name = name, .part = ENGINE_MASTER, .first = first, .count = count};
    BASE_TRY(engine_settle(engine, error));
    sifr_status found = find_piece(engine, name, first, count, &r.index, error);
    return read_range(engine, &r, found, values, error);
}

/* NULL: nothing keeps the values from being seen where they are. */
static const char *why_no_view(const sifr_engine *engine, size_t index) {
    if (comm_size(engine->group) > 1) return "several ranks have parts of it";
    if (engine->settings.offload.optimizer.device == SIFR_TIER_NVME || engine->swap)
        return "state is on disk";
    if (!engine_in_place(engine)) return "the device has memory of its own";
    if (plan_may_delay_update(engine->training)) return "its update may be delayed";
    if (engine->model->weights[index].coding != MODEL_UNCODED) return "it is kept coded";
    if (engine_weight_type(engine, index, ENGINE_MASTER) != BASE_FP32)
        return "it is not kept in fp32";
    return NULL;
}

sifr_status sifr_engine_view_weight(const sifr_engine *engine, const char *name, const float **out,
                                    sifr_error *error) {
    BASE_ENTER(error, engine, name, out);
    size_t index = 0;
    BASE_TRY(find_name(engine, name, &index, error));
    const char *reason = why_no_view(engine, index);
    if (!reason) *out = engine_state(engine, index, ENGINE_MASTER);
    if (!reason && !*out) reason = "its values do not lie together";
    if (!reason) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "weight %s: no view of it without a copy: %s; read it in pieces", name,
                     reason);
}
