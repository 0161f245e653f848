#include "infer/inference.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "engine/state/convert.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

struct infer_inference {
    const sifr_model *model;
    infer_options options;
    device *dev;
    comm_group *group;
    /* Owns parameters and caches. In generation it makes one token of each sequence. */
    plan_schedule *schedule;
    engine_executor *executor;
    engine_pieces *pieces; /* of a device that hides its memory; otherwise NULL */
    /* Generation has one more for chunks of a prompt, and, where there are several sequences, one
     * for a single token of one of them; else NULL. */
    plan_schedule *chunk_schedule, *single_schedule;
    engine_executor *chunk_executor, *single_executor;
    int32_t *history; /* of the one sequence: the tokens of which keys are cached */
};

static plan_settings settings_of(const infer_options *options) {
    return (plan_settings){.step = {.precision = options->precision,
                                    .micro_batch_size = options->sequences,
                                    .seq_length = options->length,
                                    .gradient_accumulation_steps = 1},
                           .mode = options->mode,
                           .logits = options->logits,
                           .cache_length = options->cache_length,
                           .mesh = plan_mesh_flat(1, 0)};
}

static sifr_status check_memory(const plan_schedule *schedule, sifr_error *error) {
    sifr_status status = engine_check_memory(schedule, 1, error);
    return engine_advise(schedule->settings.mode, ENGINE_LACK_MEMORY, status, error);
}

/* A second schedule over the first one's parameters and caches: `length` tokens of one sequence. */
static sifr_status add_schedule(infer_inference *i, int64_t length, plan_schedule **schedule,
                                engine_executor **executor, sifr_error *error) {
    plan_settings settings = settings_of(&i->options);
    settings.step.micro_batch_size = 1;
    settings.step.seq_length = length;
    settings.external_parameters = true;
    BASE_TRY(plan_lower(i->model, i->dev, &settings, schedule, error));
    engine_groups groups = engine_groups_flat(i->group);
    return engine_executor_create(*schedule, &groups, i->executor, executor, error);
}

static bool has_varying_angles(const sifr_model *model) {
    for (size_t t = 0; t < model->table_count; t++) {
        if (model->tables[t].rule && model_rope_varies(model->tables[t].rule)) return true;
    }
    return false;
}

bool infer_angles_vary(const infer_inference *i) {
    return has_varying_angles(i->model);
}

static sifr_status prepare_prompts(infer_inference *i, sifr_error *error) {
    bool several = i->options.sequences > 1;
    if (several && has_varying_angles(i->model))
        return base_fail(error, SIFR_USAGE,
                         "generation: this model's rotary angles depend on the length of the "
                         "sequence, so that %lld sequences cannot share a table; generate one at a "
                         "time",
                         (long long)i->options.sequences);
    if (several) BASE_TRY(add_schedule(i, 1, &i->single_schedule, &i->single_executor, error));
    if (i->options.length < 2) return SIFR_OK;
    return add_schedule(i, i->options.length, &i->chunk_schedule, &i->chunk_executor, error);
}

static sifr_status open_pieces(infer_inference *i, sifr_error *error) {
    int64_t bytes = plan_piece_bytes(i->schedule);
    return bytes ? engine_pieces_open(i->dev, bytes, &i->pieces, error) : SIFR_OK;
}

sifr_status infer_create(const sifr_model *model, const infer_options *options,
                         infer_inference **out, sifr_error *error) {
    device *dev;
    BASE_TRY(
        device_open(options->device, &options->place, options->threads, options->isa, &dev, error));
    return infer_create_on(dev, model, options, out, error);
}

sifr_status infer_create_on(device *dev, const sifr_model *model, const infer_options *options,
                            infer_inference **out, sifr_error *error) {
    infer_inference *i;
    engine_groups groups;
    sifr_status status = base_alloc(1, sizeof *i, &i, error);
    if (status != SIFR_OK) {
        device_close(dev);
        return status;
    }
    i->dev = dev;
    i->model = model;
    i->options = *options;
    plan_settings settings = settings_of(options);
    if (options->mode == PLAN_GENERATE) settings.step.seq_length = 1;
    size_t capacity = options->mode == PLAN_GENERATE ? (size_t)options->cache_length : 0;
    BASE_TRY_GOTO(status, base_alloc(capacity, sizeof *i->history, &i->history, error), fail);
    BASE_TRY_GOTO(status, comm_open_self(&i->group, error), fail);
    groups = engine_groups_flat(i->group);
    BASE_TRY_GOTO(status, plan_lower(model, i->dev, &settings, &i->schedule, error), fail);
    BASE_TRY_GOTO(status, check_memory(i->schedule, error), fail);
    BASE_TRY_GOTO(status, engine_executor_create(i->schedule, &groups, NULL, &i->executor, error),
                  fail);
    BASE_TRY_GOTO(status, open_pieces(i, error), fail);
    if (options->mode == PLAN_GENERATE) BASE_TRY_GOTO(status, prepare_prompts(i, error), fail);
    *out = i;
    return SIFR_OK;
fail:
    infer_free(i);
    return status;
}

void infer_free(infer_inference *i) {
    if (!i) return;
    engine_pieces_close(i->pieces); /* before the memory that it may still be filling */
    engine_executor_free(i->chunk_executor);
    engine_executor_free(i->single_executor);
    engine_executor_free(i->executor);
    plan_free(i->chunk_schedule);
    plan_free(i->single_schedule);
    plan_free(i->schedule);
    comm_close(i->group);
    device_close(i->dev);
    free(i->history);
    free(i);
}

device *infer_device(const infer_inference *i) {
    return i->dev;
}

enum { LOAD_PIECE = 4096, LOAD_TILE = 64 * LOAD_PIECE }; /* elements */

typedef struct parameter_load {
    engine_values make;
    const void *user;
    size_t index;
    int64_t first, count; /* elements of the weight */
    char *to;
    base_dtype dtype; /* there */
} parameter_load;

static void load_tile(void *argument, int64_t tile, int thread) {
    (void)thread;
    const parameter_load *load = argument;
    float piece[LOAD_PIECE];
    int64_t there = base_dtype_bytes(load->dtype), at = tile * LOAD_TILE;
    for (int64_t end = base_min_i64(load->count, at + LOAD_TILE); at < end; at += LOAD_PIECE) {
        int64_t count = base_min_i64(LOAD_PIECE, end - at);
        load->make(load->user, load->index, load->first + at, count, piece);
        engine_from_fp32(load->to + at * there, piece, load->dtype, count);
    }
}

/* In place; or a piece at a time, where the host does not reach the place. */
static sifr_status fill_parameter(const infer_inference *i, size_t index, engine_values make,
                                  const void *user, sifr_error *error) {
    const model_weight *w = &i->model->weights[index];
    base_dtype dtype = device_dtype_of(i->options.precision);
    int64_t elements = w->rows * w->columns, size = base_dtype_bytes(dtype), most = elements;
    parameter_load load = {.make = make, .user = user, .index = index, .dtype = dtype};
    char *place =
        (char *)engine_buffer(i->executor, i->schedule->parameters[w->segment]) + w->offset * size;
    if (i->pieces) most = engine_pieces_bytes(i->pieces) / size;
    for (; load.first < elements; load.first += load.count) {
        void *to = place + load.first * size;
        load.count = base_min_i64(most, elements - load.first);
        if (i->pieces) BASE_TRY(engine_pieces_next(i->pieces, &to, error));
        load.to = to;
        device_parallel(i->dev, (load.count + LOAD_TILE - 1) / LOAD_TILE, load_tile, &load);
        if (i->pieces)
            BASE_TRY(engine_pieces_write(i->pieces, place + load.first * size, to,
                                         load.count * size, error));
    }
    return SIFR_OK;
}

sifr_status infer_fill(infer_inference *i, engine_values make, const void *user,
                       sifr_error *error) {
    for (size_t w = 0; w < i->model->weight_count; w++)
        BASE_TRY(fill_parameter(i, w, make, user, error));
    return SIFR_OK;
}

static sifr_status load_parameter(void *user, size_t index, const formats_tensor *tensor,
                                  sifr_error *error) {
    return fill_parameter(user, index, engine_tensor_values, tensor, error);
}

sifr_status infer_load(infer_inference *i, const model_architecture *architecture,
                       const formats_weights *weights, sifr_error *error) {
    return engine_visit_folder(i->model, architecture, weights, load_parameter, i, error);
}

static sifr_status run(engine_executor *executor, const plan_schedule *s, const sifr_batch *batch,
                       engine_result *result, sifr_error *error) {
    int64_t count = s->settings.step.micro_batch_size * s->settings.step.seq_length;
    BASE_TRY(engine_check_batch(s->model, batch, count, s->settings.step.seq_length, error));
    BASE_TRY(engine_put_batch(executor, s, batch, error));
    engine_step_input input = {
        .labelled = engine_count_losses(s->model, batch, count, s->settings.step.seq_length)};
    return engine_run(executor, &input, result, error);
}

static int64_t rows_of(const infer_inference *i) {
    return i->options.sequences * i->options.length;
}

sifr_status infer_loss(infer_inference *i, const sifr_batch *batch, double *loss_sum,
                       int64_t *labelled, float *logits, sifr_error *error) {
    engine_result result;
    BASE_TRY(run(i->executor, i->schedule, batch, &result, error));
    *loss_sum = result.loss_sum;
    *labelled = result.labelled;
    return logits
               ? engine_get_logits(i->executor, i->schedule, i->pieces, rows_of(i), logits, error)
               : SIFR_OK;
}

sifr_status infer_losses(const infer_inference *i, float *out, sifr_error *error) {
    return engine_get(i->executor, i->schedule->losses[0], 0, out,
                      rows_of(i) * (int64_t)sizeof *out, error);
}

int64_t infer_words(const infer_inference *i) {
    return engine_words(i->model);
}

sifr_status infer_logits(infer_inference *i, const sifr_batch *batch, float *out,
                         sifr_error *error) {
    engine_result result;
    BASE_TRY(run(i->executor, i->schedule, batch, &result, error));
    return engine_get_logits(i->executor, i->schedule, i->pieces, rows_of(i), out, error);
}

/* Runs the schedule for tokens of one sequence, the first of them at `position`. */
static sifr_status run_piece(engine_executor *executor, const plan_schedule *s,
                             const int32_t *tokens, int64_t position, int64_t length,
                             sifr_error *error) {
    int64_t count = s->settings.step.seq_length;
    int32_t *positions = engine_buffer(executor, s->inputs[SIFR_POSITIONS][0]);
    engine_result result;
    for (int64_t p = 0; p < count; p++) positions[p] = (int32_t)(position + p);
    BASE_TRY(engine_note_length(executor, position, count, length, error));
    return run(executor, s, &(sifr_batch){.tokens = tokens}, &result, error);
}

sifr_status infer_append(infer_inference *i, int64_t sequence, const int32_t *tokens, int64_t count,
                         int64_t position, float *out, sifr_error *error) {
    engine_executor *single = i->single_executor ? i->single_executor : i->executor;
    const plan_schedule *single_schedule = i->single_executor ? i->single_schedule : i->schedule;
    if (position + count > i->options.cache_length) {
        return base_fail(error, SIFR_USAGE,
                         "generation: %lld tokens, but the cache has room for %lld",
                         (long long)(position + count), (long long)i->options.cache_length);
    }
    if (i->single_executor) engine_use_cache(i->single_executor, i->executor, sequence);
    if (i->chunk_executor) engine_use_cache(i->chunk_executor, i->executor, sequence);
    memcpy(i->history + position, tokens, (size_t)count * sizeof *tokens);
    if (position > 0 && model_outgrows_cache(i->model, position, position + count))
        tokens = i->history, count += position, position = 0;
    int64_t length = position + count;
    for (int64_t done = 0; done < count;) {
        bool chunk = i->chunk_executor && count - done >= i->options.length;
        engine_executor *executor = chunk ? i->chunk_executor : single;
        const plan_schedule *s = chunk ? i->chunk_schedule : single_schedule;
        BASE_TRY(run_piece(executor, s, tokens + done, position + done, length, error));
        done += s->settings.step.seq_length;
        if (done == count) BASE_TRY(engine_get_logits(executor, s, i->pieces, 1, out, error));
    }
    return SIFR_OK;
}

sifr_status infer_advance(infer_inference *i, const int32_t *tokens, const int32_t *positions,
                          float *out, sifr_error *error) {
    int64_t sequences = i->options.sequences;
    engine_result result;
    for (int64_t q = 0; q < sequences; q++) {
        if (positions[q] >= 0 && positions[q] < i->options.cache_length) continue;
        return base_fail(error, SIFR_USAGE,
                         "generation: position %d, but the cache has room for %lld", positions[q],
                         (long long)i->options.cache_length);
    }
    BASE_TRY(engine_set(i->executor, i->schedule->inputs[SIFR_POSITIONS][0], 0, positions,
                        sequences * (int64_t)sizeof *positions, error));
    BASE_TRY(run(i->executor, i->schedule, &(sifr_batch){.tokens = tokens}, &result, error));
    return engine_get_logits(i->executor, i->schedule, i->pieces, sequences, out, error);
}

/* --- what is cached of a sequence --- */

/* Bytes of a sequence in cache `c`; 0: there is none, or it is not of the kind. */
static int64_t cache_bytes(const infer_inference *i, size_t c, bool state) {
    const plan_schedule *s = i->schedule;
    bool is_state = i->model->nodes[c / 2].op->state != NULL;
    if (s->caches[c] < 0 || is_state != state) return 0;
    return s->buffers[s->caches[c]].bytes / i->options.sequences;
}

sifr_status infer_copy_rows(const infer_inference *i, int64_t from, int64_t to, int64_t count,
                            sifr_error *error) {
    char piece[LOAD_PIECE];
    base_assert(from != to && count <= i->options.cache_length);
    for (size_t c = 0; c < 2 * i->model->node_count; c++) {
        int64_t each = cache_bytes(i, c, false), bytes = each / i->options.cache_length * count;
        int32_t buffer = i->schedule->caches[c];
        for (int64_t at = 0; at < bytes; at += LOAD_PIECE) {
            int64_t size = base_min_i64(LOAD_PIECE, bytes - at);
            BASE_TRY(engine_get(i->executor, buffer, from * each + at, piece, size, error));
            BASE_TRY(engine_set(i->executor, buffer, to * each + at, piece, size, error));
        }
    }
    return SIFR_OK;
}

int64_t infer_state_bytes(const infer_inference *i) {
    int64_t bytes = 0;
    for (size_t c = 0; c < 2 * i->model->node_count; c++) bytes += cache_bytes(i, c, true);
    return bytes;
}

sifr_status infer_get_state(const infer_inference *i, int64_t sequence, void *out,
                            sifr_error *error) {
    char *to = out;
    for (size_t c = 0; c < 2 * i->model->node_count; c++) {
        int64_t bytes = cache_bytes(i, c, true);
        if (!bytes) continue;
        BASE_TRY(
            engine_get(i->executor, i->schedule->caches[c], sequence * bytes, to, bytes, error));
        to += bytes;
    }
    return SIFR_OK;
}

sifr_status infer_set_state(const infer_inference *i, int64_t sequence, const void *from,
                            sifr_error *error) {
    const char *at = from;
    for (size_t c = 0; c < 2 * i->model->node_count; c++) {
        int64_t bytes = cache_bytes(i, c, true);
        if (!bytes) continue;
        BASE_TRY(
            engine_set(i->executor, i->schedule->caches[c], sequence * bytes, at, bytes, error));
        at += bytes;
    }
    return SIFR_OK;
}
