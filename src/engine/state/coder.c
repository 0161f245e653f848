#include "engine/state/coder.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "engine/state/convert.h"

typedef struct scales_run {
    const engine_coder *coder;
    float *scales; /* of the whole weight */
} scales_run;

static int64_t count_of(const engine_coder *c, int64_t record) {
    base_assert(record >= 0 && record < c->records);
    return base_min_i64(BASE_NF4_RECORD, c->elements - record * BASE_NF4_RECORD);
}

static void scale_record(void *argument, int64_t record, int thread) {
    const scales_run *run = argument;
    const engine_coder *c = run->coder;
    float values[BASE_NF4_RECORD];
    int64_t count = count_of(c, record);
    (void)thread;
    c->make(c->user, c->index, record * BASE_NF4_RECORD, count, values);
    base_nf4_scales(values, count, run->scales + record * BASE_NF4_SCALES);
}

static sifr_status find_mean(device *dev, engine_coder *c, sifr_error *error) {
    scales_run run = {.coder = c};
    BASE_TRY(
        base_alloc((size_t)(c->records * BASE_NF4_SCALES), sizeof *run.scales, &run.scales, error));
    device_parallel(dev, c->records, scale_record, &run);
    c->mean = base_nf4_mean(run.scales, (c->elements + BASE_NF4_BLOCK - 1) / BASE_NF4_BLOCK);
    free(run.scales);
    return SIFR_OK;
}

sifr_status engine_coder_open(const sifr_engine *engine, size_t index, engine_values make,
                              const void *user, engine_coder *out, sifr_error *error) {
    const model_weight *w = &engine->model->weights[index];
    base_assert(w->coding && w->logical_coding);
    int64_t elements = model_logical_elements(w);
    *out = (engine_coder){.make = make,
                          .user = user,
                          .index = index,
                          .elements = elements,
                          .records = (elements + BASE_NF4_RECORD - 1) / BASE_NF4_RECORD,
                          .coding = w->logical_coding};
    return out->coding == MODEL_NF4_DOUBLED ? find_mean(engine->dev, out, error) : SIFR_OK;
}

void engine_coder_encode(const engine_coder *c, int64_t record, uint8_t *codes) {
    float values[BASE_NF4_RECORD];
    int64_t count = count_of(c, record);
    c->make(c->user, c->index, record * BASE_NF4_RECORD, count, values);
    if (c->coding == MODEL_INT8)
        base_block8_encode(values, count, codes);
    else
        base_nf4_encode(values, count, c->coding == MODEL_NF4_DOUBLED, c->mean, codes);
}

void engine_decode(model_coding coding, const uint8_t *codes, int64_t first, int64_t count,
                   float *out) {
    if (coding == MODEL_INT8)
        base_block8_decode(codes, first, count, out);
    else
        base_nf4_decode(codes, coding == MODEL_NF4_DOUBLED, first, count, out);
}

void engine_coder_values(const engine_coder *c, int64_t record, base_dtype type, float *values) {
    uint8_t codes[MODEL_RECORD_MOST];
    int64_t count = count_of(c, record);
    engine_coder_encode(c, record, codes);
    engine_decode(c->coding, codes, 0, count, values);
    engine_round(type, values, count);
}
