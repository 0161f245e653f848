/* What magnitudes of DoRA begin as: the norms of the base's outputs with the adapter. */
#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"
#include "engine/state/coder.h"
#include "engine/state/convert.h"
#include "plan/queries.h"

enum { OUTPUTS = 64, CHUNK = 512 };

typedef struct norms_run {
    const formats_tensor *tensor;
    const engine_coder *coder; /* NULL: the base is not held as codes */
    base_dtype type;           /* what their values are rounded to */
    const float *a, *b;        /* rank x in, out x rank */
    int64_t rank, in, out;
    double scale;
    bool transposed;
    float *norms;
} norms_run;

/* The record that was opened last. */
typedef struct norms_record {
    int64_t number; /* from 1; 0: none */
    float values[BASE_NF4_RECORD];
} norms_record;

/* Elements first ... first + count - 1 of what codes stand for, one record after the other. */
static void read_codes(const norms_run *run, norms_record *open, int64_t first, int64_t count,
                       float *out) {
    for (int64_t i = 0; i < count; i++) {
        int64_t record = (first + i) / BASE_NF4_RECORD;
        if (open->number != record + 1)
            engine_coder_values(run->coder, record, run->type, open->values);
        open->number = record + 1;
        out[i] = open->values[(first + i) % BASE_NF4_RECORD];
    }
}

/* The base's values of output `o` and inputs first ... first + count - 1. */
static void read_base(const norms_run *run, norms_record *open, int64_t o, int64_t first,
                      int64_t count, float *out) {
    if (run->coder) {
        read_codes(run, open, o * run->in + first, count, out);
        return;
    }
    if (!run->transposed) {
        engine_tensor_values(run->tensor, 0, o * run->in + first, count, out);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        engine_tensor_values(run->tensor, 0, (first + i) * run->out + o, 1, out + i);
}

static void norms_tile(void *argument, int64_t tile, int thread) {
    const norms_run *run = argument;
    int64_t end = base_min_i64(run->out, (tile + 1) * OUTPUTS);
    float base[CHUNK];
    norms_record open;
    (void)thread;
    open.number = 0;
    for (int64_t o = tile * OUTPUTS; o < end; o++) {
        double sum = 0;
        for (int64_t first = 0; first < run->in; first += CHUNK) {
            int64_t count = base_min_i64(CHUNK, run->in - first);
            read_base(run, &open, o, first, count, base);
            for (int64_t i = 0; i < count; i++) {
                double value = base[i], added = 0;
                for (int64_t k = 0; k < run->rank; k++)
                    added +=
                        (double)run->b[o * run->rank + k] * (double)run->a[k * run->in + first + i];
                value += run->scale * added;
                sum += value * value;
            }
        }
        run->norms[o] = (float)sqrt(sum);
    }
}

static void given_norms(const void *user, size_t index, int64_t first, int64_t count,
                        float *values) {
    const float *norms = user;
    (void)index;
    for (int64_t i = 0; i < count; i++) values[i] = norms[first + i];
}

static sifr_status initial(const sifr_engine *engine, int32_t weight, float **out,
                           sifr_error *error) {
    const model_weight *w = &engine->model->weights[weight];
    int64_t count = model_logical_elements(w);
    BASE_TRY(base_alloc((size_t)count, sizeof **out, out, error));
    model_initial_values(engine->model, (size_t)weight, engine->settings.seed, 0, count, *out);
    return SIFR_OK;
}

/* The norms are those of the values that products compute with. */
static sifr_status open_coder(const sifr_engine *engine, size_t index, norms_run *run,
                              engine_coder *coder, sifr_error *error) {
    if (!engine->model->weights[index].coding) return SIFR_OK;
    run->coder = coder;
    run->type = plan_dtype(&engine->training->settings);
    return engine_coder_open(engine, index, engine_tensor_values, run->tensor, coder, error);
}

/* B of zeros adds nothing. */
static bool is_zero(const float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (values[i] != 0) return false;
    return true;
}

sifr_status engine_fill_magnitudes(sifr_engine *engine, const engine_folder *folder, size_t index,
                                   sifr_error *error) {
    const sifr_model *model = engine->model;
    const model_weight *m = &model->weights[index], *base = &model->weights[m->norms_of - 1];
    float *a = NULL, *b = NULL;
    engine_coder coder;
    model_block a_whole = model_whole(&model->weights[base->adapter]);
    norms_run run = {
        .rank = a_whole.rows[1], .in = a_whole.columns[1], .out = model_whole(m).columns[1]};
    size_t n = 0;
    while (model->nodes[n].w[0] != m->norms_of - 1) n++; /* the product */
    run.transposed = model->nodes[n].attributes.linear.transposed;
    while (model->nodes[n].w[1] != (int32_t)index) n++; /* the op that reads the magnitudes */
    run.scale = (double)model->nodes[n].attributes.magnitude.scale;
    run.tensor = engine_find_tensor(folder->weights, folder->architecture, base->name);
    sifr_status status = open_coder(engine, (size_t)(m->norms_of - 1), &run, &coder, error);
    if (status == SIFR_OK)
        status = base_alloc((size_t)run.out, sizeof *run.norms, &run.norms, error);
    if (status == SIFR_OK) status = initial(engine, base->adapter, &a, error);
    if (status == SIFR_OK) status = initial(engine, base->adapter + 1, &b, error);
    if (status == SIFR_OK) {
        run.a = a, run.b = b;
        if (is_zero(b, run.out * run.rank)) run.rank = 0;
        device_parallel(engine->dev, (run.out + OUTPUTS - 1) / OUTPUTS, norms_tile, &run);
        status = engine_fill(engine, index, given_norms, run.norms, error);
    }
    free(run.norms);
    free(a);
    free(b);
    return status;
}
