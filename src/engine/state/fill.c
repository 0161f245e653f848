/* Values that are made for each weight where it lies, by all threads: first weights, or those of a
 * file. */
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/inside.h"
#include "engine/engine_private.h"
#include "engine/state/state_private.h"

enum { FILL_PIECE = 4096, FILL_TILE = 64 * FILL_PIECE }; /* elements */

typedef struct fill_run {
    sifr_engine *engine;
    size_t index;
    int64_t first, end; /* of the local weight */
    engine_values make;
    const void *user;
    float *values; /* of a piece */
    _Atomic bool failed;
    sifr_status status; /* number of the first tile that failed, and its message */
    sifr_error *error;
} fill_run;

/* Values of local elements: `make` knows those of the logical weight. */
static void make_values(const fill_run *run, int64_t first, int64_t count, float *values) {
    const model_weight *w = &run->engine->model->weights[run->index];
    for (int64_t done = 0; done < count;) {
        model_stretch s = model_logical_at(w, first + done, first + count);
        base_assert(s.count >= 1);
        if (s.at < 0)
            memset(values + done, 0, (size_t)s.count * sizeof *values);
        else
            run->make(run->user, run->index, s.at, s.count, values + done);
        done += s.count;
    }
}

static void fill_tile(void *argument, int64_t tile, int thread) {
    (void)thread;
    fill_run *run = argument;
    float values[FILL_PIECE];
    sifr_error error = {0};
    int64_t first = run->first + tile * FILL_TILE, end = base_min_i64(run->end, first + FILL_TILE);
    for (; first < end; first += FILL_PIECE) {
        int64_t count = base_min_i64(FILL_PIECE, end - first);
        make_values(run, first, count, values);
        sifr_status status =
            engine_put_local(run->engine, run->index, first, count, values, &error);
        if (status == SIFR_OK) continue;
        if (atomic_exchange(&run->failed, true)) return;
        run->status = status;
        if (run->error) *run->error = error;
        return;
    }
}

static void make_tile(void *argument, int64_t tile, int thread) {
    const fill_run *run = argument;
    int64_t at = tile * FILL_PIECE, count = base_min_i64(FILL_PIECE, run->end - run->first - at);
    (void)thread;
    make_values(run, run->first + at, count, run->values + at);
}

/* A piece at a time, by all threads. */
static sifr_status fill_pieces(fill_run *run, sifr_error *error) {
    int64_t most = engine_pieces_bytes(run->engine->pieces) / 4, end = run->end;
    base_assert(most >= 1);
    for (; run->first < end; run->first = run->end) {
        void *piece;
        int64_t count = base_min_i64(most, end - run->first);
        BASE_TRY(engine_pieces_next(run->engine->pieces, &piece, error));
        run->values = piece;
        run->end = run->first + count;
        device_parallel(run->engine->dev, (count + FILL_PIECE - 1) / FILL_PIECE, make_tile, run);
        BASE_TRY(engine_put_local(run->engine, run->index, run->first, count, piece, error));
    }
    return SIFR_OK;
}

sifr_status engine_fill(sifr_engine *engine, size_t index, engine_values make, const void *user,
                        sifr_error *error) {
    if (engine->model->weights[index].coding)
        return engine_encode(engine, index, make, user, error);
    engine_note_written(engine, index);
    fill_run run = {.engine = engine, .index = index, .make = make, .user = user, .error = error};
    int64_t held;
    engine_held(engine, index, &run.first, &held);
    run.end = run.first + held;
    if (engine->pieces) return fill_pieces(&run, error);
    int64_t tiles = (held + FILL_TILE - 1) / FILL_TILE;
    if (!engine->swap) {
        device_parallel(engine->dev, tiles, fill_tile, &run);
    } else { /* its file can be written by one thread at a time */
        for (int64_t t = 0; t < tiles && !run.failed; t++) fill_tile(&run, t, 0);
    }
    return run.status;
}

typedef struct initial_values {
    const sifr_model *model;
    uint64_t seed;
} initial_values;

static void make_initial(const void *user, size_t index, int64_t first, int64_t count,
                         float *values) {
    const initial_values *from = user;
    model_initial_values(from->model, index, from->seed, first, count, values);
}

sifr_status sifr_engine_initialise(sifr_engine *engine, uint64_t seed, sifr_error *error) {
    BASE_ENTER(error, engine);
    initial_values from = {engine->model, seed};
    BASE_TRY(engine_settle(engine, error));
    for (size_t i = 0; i < engine->model->weight_count; i++)
        BASE_TRY(engine_fill(engine, i, make_initial, &from, error));
    engine_note_seed(engine, seed);
    return SIFR_OK;
}
