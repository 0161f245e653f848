/* Frozen weights as codes: made from their values record by record, each rank those that
 * it holds, and opened again. */
#include <stdatomic.h>

#include "base/assert.h"
#include "base/checked.h"
#include "engine/state/coder.h"
#include "engine/state/state_private.h"

typedef struct encode_run {
    sifr_engine *engine;
    engine_coder coder;
    const model_weight *weight;
    int64_t bytes;  /* of a record as it is held */
    int64_t from;   /* the first element of the segment that this rank holds */
    int64_t first;  /* the first record of the weight that is still to be written */
    uint8_t *piece; /* of host memory, in which records are made */
    _Atomic bool failed;
    sifr_status status; /* of the first record that failed, and its message */
    sifr_error *error;
} encode_run;

static sifr_status write_records(const encode_run *run, int64_t first, int64_t records,
                                 const uint8_t *codes, sifr_error *error) {
    const model_weight *w = run->weight;
    int64_t at = w->offset + first * BASE_NF4_RECORD - run->from, bytes = run->bytes;
    base_assert(at >= 0 && at % BASE_NF4_RECORD == 0);
    return engine_write_buffer(run->engine, run->engine->training->parameters[w->segment],
                               at / BASE_NF4_RECORD * bytes, codes, records * bytes, error);
}

static void encode_record(void *argument, int64_t number, int thread) {
    encode_run *run = argument;
    uint8_t codes[MODEL_RECORD_MOST];
    sifr_error error = {0};
    (void)thread;
    engine_coder_encode_held(&run->coder, run->weight, run->first + number, codes);
    sifr_status status = write_records(run, run->first + number, 1, codes, &error);
    if (status == SIFR_OK || atomic_exchange(&run->failed, true)) return;
    run->status = status;
    if (run->error) *run->error = error;
}

static void encode_in_piece(void *argument, int64_t number, int thread) {
    const encode_run *run = argument;
    (void)thread;
    engine_coder_encode_held(&run->coder, run->weight, run->first + number,
                             run->piece + number * run->bytes);
}

/* Records up to `end`, a piece at a time, by all threads. */
static sifr_status encode_pieces(encode_run *run, int64_t end, sifr_error *error) {
    engine_pieces *pieces = run->engine->pieces;
    int64_t most = engine_pieces_bytes(pieces) / run->bytes;
    base_assert(most >= 1);
    while (run->first < end) {
        void *piece;
        int64_t count = base_min_i64(most, end - run->first);
        BASE_TRY(engine_pieces_next(pieces, &piece, error));
        run->piece = piece;
        device_parallel(run->engine->dev, count, encode_in_piece, run);
        BASE_TRY(write_records(run, run->first, count, run->piece, error));
        run->first += count;
    }
    return SIFR_OK;
}

sifr_status engine_encode(sifr_engine *engine, size_t index, engine_values make, const void *user,
                          sifr_error *error) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    encode_run run = {
        .engine = engine, .weight = w, .bytes = model_record_bytes(w->coding), .error = error};
    int64_t end, held = base_ceil_to(w->rows * w->columns, BASE_NF4_RECORD) / BASE_NF4_RECORD;
    if (!s->segment_elements[w->segment]) return SIFR_OK; /* of another stage */
    BASE_TRY(engine_coder_open(engine, index, make, user, &run.coder, error));
    engine_held_records(s, w->segment, &run.from, &end);
    run.first = base_max_i64(0, (run.from - w->offset) / BASE_NF4_RECORD);
    int64_t records = base_min_i64(held, (end - w->offset) / BASE_NF4_RECORD);
    if (engine_in_pieces(engine, s->parameters[w->segment]))
        return encode_pieces(&run, records, error);
    records = base_max_i64(0, records - run.first);
    if (engine_host_buffer(engine->trainer, s->parameters[w->segment])) {
        device_parallel(engine->dev, records, encode_record, &run);
    } else { /* a file, and memory that the host does not reach, is written by one thread */
        for (int64_t r = 0; r < records && !run.failed; r++) encode_record(&run, r, 0);
    }
    return run.status;
}

sifr_status engine_open_codes(const sifr_engine *engine, int32_t buffer, const model_weight *w,
                              int64_t at, int64_t count, float *out, sifr_error *error) {
    base_assert(buffer >= 0 && at >= 0);
    int64_t bytes = model_record_bytes(w->coding);
    uint8_t codes[MODEL_RECORD_MOST];
    for (int64_t done = 0; done < count;) {
        int64_t record = (at + done) / BASE_NF4_RECORD, first = (at + done) % BASE_NF4_RECORD;
        int64_t some = base_min_i64(BASE_NF4_RECORD - first, count - done);
        BASE_TRY(engine_read_buffer(engine, buffer, record * bytes, codes, bytes, error));
        engine_decode(w->coding, codes, first, some, out + done);
        done += some;
    }
    return SIFR_OK;
}
