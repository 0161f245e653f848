/* Where a rank's state lies in buffers, and their bytes on any tier. */
#include <string.h>

#include "base/assert.h"
#include "engine/state/state_private.h"

/* Elements first … end - 1 of a segment that a buffer holds; it has `element` bytes for `each` of
 * them. */
void engine_range_in(const plan_schedule *s, int32_t segment, int32_t buffer, int64_t element,
                     int64_t each, int64_t *first, int64_t *end) {
    int64_t count = s->buffers[buffer].bytes / element * each;
    bool slice = count < s->segment_elements[segment];
    *first = slice ? plan_mesh_place(&s->settings.mesh, PLAN_STATE) * count : 0;
    *end = *first + count;
}

void engine_held_range(const plan_schedule *s, int32_t segment, int32_t buffer, int64_t element,
                       int64_t *first, int64_t *end) {
    engine_range_in(s, segment, buffer, element, 1, first, end);
}

void engine_held_records(const plan_schedule *s, int32_t segment, int64_t *first, int64_t *end) {
    engine_range_in(s, segment, s->parameters[segment],
                    model_record_bytes(s->model->segments[segment].coding), BASE_NF4_RECORD, first,
                    end);
}

int32_t engine_part_buffer(const plan_schedule *s, int32_t segment, engine_part part) {
    base_assert(segment >= 0 && part >= ENGINE_MASTER && part < ENGINE_STATE1 + OPTIM_STATES);
    if (part != ENGINE_MASTER) return s->states[part - ENGINE_STATE1][segment];
    return s->masters[segment] >= 0 ? s->masters[segment] : s->parameters[segment];
}

static bool is_on_disk(const sifr_engine *engine, int32_t buffer) {
    return engine->training->buffers[buffer].tier == PLAN_NVME;
}

bool engine_in_pieces(const sifr_engine *engine, int32_t buffer) {
    return engine->pieces && engine->training->buffers[buffer].tier == PLAN_DEVICE;
}

static sifr_status take_copy(void *user, const void *bytes, int64_t first, int64_t count,
                             sifr_error *error) {
    (void)error;
    memcpy((char *)user + first, bytes, (size_t)count);
    return SIFR_OK;
}

sifr_status engine_read_buffer(const sifr_engine *engine, int32_t buffer, int64_t at, void *out,
                               int64_t bytes, sifr_error *error) {
    base_assert(buffer >= 0 && at >= 0 && at + bytes <= engine->training->buffers[buffer].bytes);
    int64_t offset = engine->training->buffers[buffer].offset + at;
    if (is_on_disk(engine, buffer))
        return engine_swap_read(engine->swap, offset, out, bytes, error);
    if (engine_in_pieces(engine, buffer))
        return engine_pieces_read(engine->pieces,
                                  (char *)engine_buffer(engine->trainer, buffer) + at, bytes,
                                  take_copy, out, error);
    return engine_get(engine->trainer, buffer, at, out, bytes, error);
}

sifr_status engine_write_buffer(const sifr_engine *engine, int32_t buffer, int64_t at,
                                const void *from, int64_t bytes, sifr_error *error) {
    int64_t offset = engine->training->buffers[buffer].offset + at;
    if (is_on_disk(engine, buffer))
        return engine_swap_write(engine->swap, offset, from, bytes, error);
    if (engine_in_pieces(engine, buffer))
        return engine_pieces_write(engine->pieces,
                                   (char *)engine_buffer(engine->trainer, buffer) + at, from, bytes,
                                   error);
    return engine_set(engine->trainer, buffer, at, from, bytes, error);
}

float *engine_compressed(const sifr_engine *engine, int which, int64_t *elements) {
    const plan_schedule *s = engine->training;
    int32_t buffer = which ? s->bases : s->errors;
    *elements = buffer < 0 ? 0 : s->buffers[buffer].bytes / 4;
    return buffer < 0 ? NULL : engine_host_buffer(engine->trainer, buffer);
}

void engine_clear_compressed(const sifr_engine *engine) {
    int64_t elements;
    for (int i = 0; i < ENGINE_COMPRESSED; i++) {
        float *values = engine_compressed(engine, i, &elements);
        if (values) memset(values, 0, (size_t)elements * sizeof *values);
    }
}

sifr_status engine_settle(const sifr_engine *engine, sifr_error *error) {
    BASE_TRY(engine_check_idle(engine, error));
    return engine_run_deferred(engine->trainer, error);
}
