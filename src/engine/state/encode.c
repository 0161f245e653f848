/* Frozen weights as codes of 4 bits: made from their values record by record, each rank those that
 * it holds, and opened again. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/state/state_private.h"

typedef struct encode_run {
    sifr_engine *engine;
    size_t index;
    engine_values make;
    const void *user;
    bool doubled;
    int64_t elements;
    float *scales; /* of the whole weight, for the mean of doubled ones */
    float mean;
    int64_t from, end; /* elements of the segment that this rank holds */
    _Atomic bool failed;
    sifr_status status; /* of the first record that failed, and its message */
    sifr_error *error;
} encode_run;

static int64_t make_values(const encode_run *run, int64_t record, float *values) {
    int64_t first = record * BASE_NF4_RECORD;
    int64_t count = base_min_i64(BASE_NF4_RECORD, run->elements - first);
    run->make(run->user, run->index, first, count, values);
    return count;
}

static void scale_record(void *argument, int64_t record, int thread) {
    const encode_run *run = argument;
    float values[BASE_NF4_RECORD];
    int64_t count = make_values(run, record, values);
    (void)thread;
    base_nf4_scales(values, count, run->scales + record * BASE_NF4_SCALES);
}

static void encode_record(void *argument, int64_t record, int thread) {
    encode_run *run = argument;
    const model_weight *w = &run->engine->model->weights[run->index];
    int64_t at = w->offset + record * BASE_NF4_RECORD;
    int64_t bytes = model_record_bytes(w->coding);
    float values[BASE_NF4_RECORD];
    uint8_t codes[BASE_NF4_PLAIN];
    sifr_error error = {0};
    (void)thread;
    if (at < run->from || at >= run->end) return;
    int64_t count = make_values(run, record, values);
    base_nf4_encode(values, count, run->doubled, run->mean, codes);
    sifr_status status =
        engine_write_buffer(run->engine, run->engine->training->parameters[w->segment],
                            (at - run->from) / BASE_NF4_RECORD * bytes, codes, bytes, &error);
    if (status == SIFR_OK || atomic_exchange(&run->failed, true)) return;
    run->status = status;
    if (run->error) *run->error = error;
}

/* The mean of the whole weight's scales, so each rank goes through all of its values. */
static sifr_status find_mean(encode_run *run, int64_t records, sifr_error *error) {
    BASE_TRY(
        base_alloc((size_t)(records * BASE_NF4_SCALES), sizeof *run->scales, &run->scales, error));
    device_parallel(run->engine->dev, records, scale_record, run);
    int64_t blocks = (run->elements + BASE_NF4_BLOCK - 1) / BASE_NF4_BLOCK;
    run->mean = base_nf4_mean(run->scales, blocks);
    free(run->scales);
    return SIFR_OK;
}

sifr_status engine_encode(sifr_engine *engine, size_t index, engine_values make, const void *user,
                          sifr_error *error) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    encode_run run = {.engine = engine,
                      .index = index,
                      .make = make,
                      .user = user,
                      .doubled = w->coding == MODEL_NF4_DOUBLED,
                      .elements = w->rows * w->columns,
                      .error = error};
    int64_t records = (run.elements + BASE_NF4_RECORD - 1) / BASE_NF4_RECORD;
    if (!s->segment_elements[w->segment]) return SIFR_OK; /* of another stage */
    engine_held_records(s, w->segment, &run.from, &run.end);
    if (run.doubled) BASE_TRY(find_mean(&run, records, error));
    if (engine_in_place(engine)) {
        device_parallel(engine->dev, records, encode_record, &run);
    } else { /* memory that the host does not reach is written by one thread at a time */
        for (int64_t r = 0; r < records && !run.failed; r++) encode_record(&run, r, 0);
    }
    return run.status;
}

sifr_status engine_open_codes(const sifr_engine *engine, int32_t buffer, const model_weight *w,
                              int64_t at, int64_t count, float *out, sifr_error *error) {
    int64_t bytes = model_record_bytes(w->coding);
    uint8_t codes[BASE_NF4_PLAIN];
    for (int64_t done = 0; done < count;) {
        int64_t record = (at + done) / BASE_NF4_RECORD, first = (at + done) % BASE_NF4_RECORD;
        int64_t some = base_min_i64(BASE_NF4_RECORD - first, count - done);
        BASE_TRY(engine_read_buffer(engine, buffer, record * bytes, codes, bytes, error));
        base_nf4_decode(codes, w->coding == MODEL_NF4_DOUBLED, first, some, out + done);
        done += some;
    }
    return SIFR_OK;
}
