/* The parameters that kernels read: made from this rank's master weights, and gathered or sent
 * where other ranks hold them too. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/float_mode.h"
#include "engine/engine_private.h"
#include "engine/state/convert.h"
#include "engine/state/state_private.h"
#include "plan/queries.h"

/* The part of [first, first + count) of a weight that lies in a buffer which holds [from, end) of
 * its segment: offset in the buffer and in the values. */
static int64_t overlap(const model_weight *w, int64_t first, int64_t count, int64_t from,
                       int64_t end, int64_t *in_buffer, int64_t *in_values) {
    base_assert(from <= end && count >= 0);
    int64_t start = base_max_i64(from, w->offset + first);
    int64_t stop = base_min_i64(end, w->offset + first + count);
    *in_buffer = start - from;
    *in_values = start - w->offset - first;
    return stop - start;
}

enum { NARROW_TILE = 1 << 16 }; /* elements */

typedef struct narrow_run {
    char *to;
    const float *from;
    base_dtype type;
    int64_t count;
} narrow_run;

static void narrow_tile(void *argument, int64_t tile, int thread) {
    const narrow_run *run = argument;
    int64_t first = tile * NARROW_TILE, count = base_min_i64(NARROW_TILE, run->count - first);
    (void)thread;
    engine_from_fp32(run->to + first * base_dtype_bytes(run->type), run->from + first, run->type,
                     count);
}

/* The same in device memory that the host does not reach; the values may lie in a piece. */
static sifr_status send_parameters(const sifr_engine *engine, int32_t buffer, int64_t at,
                                   const float *values, int64_t count, sifr_error *error) {
    base_dtype dtype = plan_dtype(&engine->training->settings);
    int64_t element = base_dtype_bytes(dtype), most = engine_pieces_bytes(engine->pieces) / 4;
    base_assert(most >= 1);
    if (dtype == BASE_FP32)
        return engine_write_buffer(engine, buffer, at * element, values, count * element, error);
    for (int64_t done = 0; done < count; done += most) {
        void *to;
        narrow_run run = {.from = values + done, dtype, base_min_i64(most, count - done)};
        BASE_TRY(engine_pieces_next(engine->pieces, &to, error));
        run.to = to;
        device_parallel(engine->dev, (run.count + NARROW_TILE - 1) / NARROW_TILE, narrow_tile,
                        &run);
        BASE_TRY(engine_write_buffer(engine, buffer, (at + done) * element, to, run.count * element,
                                     error));
    }
    return SIFR_OK;
}

/* Writes values in the parameters that kernels read, from element `at` of their buffer on. */
static sifr_status put_parameters(const sifr_engine *engine, int32_t buffer, int64_t at,
                                  const float *values, int64_t count, sifr_error *error) {
    enum { PIECE = 4096 };
    float piece[PIECE]; /* or what is narrower */
    base_dtype dtype = plan_dtype(&engine->training->settings);
    int64_t element = base_dtype_bytes(dtype);
    char *memory = engine_host_buffer(engine->trainer, buffer);
    if (memory) {
        engine_from_fp32(memory + at * element, values, dtype, count);
        return SIFR_OK;
    }
    if (engine_in_pieces(engine, buffer))
        return send_parameters(engine, buffer, at, values, count, error);
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t here = base_min_i64(PIECE, count - done);
        engine_from_fp32(piece, values + done, dtype, here);
        BASE_TRY(engine_write_buffer(engine, buffer, (at + done) * element, piece, here * element,
                                     error));
    }
    return SIFR_OK;
}

static void given_values(const void *user, size_t index, int64_t first, int64_t count,
                         float *values) {
    (void)index;
    memcpy(values, (const float *)user + first, (size_t)count * sizeof *values);
}

/* Scales depend on the whole weight. */
static sifr_status put_codes(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                             const float *values, sifr_error *error) {
    const model_weight *w = &engine->model->weights[index];
    if (first == 0 && count == model_logical_elements(w))
        return engine_encode(engine, index, given_values, values, error);
    return base_fail(error, SIFR_FAILED,
                     "weight %s: it is held as codes, so it is written as a whole", w->name);
}

sifr_status engine_put(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                       const float *values, sifr_error *error) {
    const model_weight *w = &engine->model->weights[index];
    model_stretch s;
    if (w->coding) return put_codes(engine, index, first, count, values, error);
    for (int64_t at = first; model_local_next(w, at, first + count, &s); at = s.at + s.count)
        BASE_TRY(engine_put_local(engine, index, s.place, s.count, values + (s.at - first), error));
    return SIFR_OK;
}

sifr_status engine_put_local(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                             const float *values, sifr_error *error) {
    base_assert(!engine->model->weights[index].coding);
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    int64_t element = base_dtype_bytes(plan_dtype(&s->settings)), from, end, at, skip;
    int32_t parameters = s->parameters[w->segment];
    engine_held_range(s, w->segment, parameters, element, &from, &end);
    int64_t some = overlap(w, first, count, from, end, &at, &skip);
    if (some > 0) BASE_TRY(put_parameters(engine, parameters, at, values + skip, some, error));
    if (s->masters[w->segment] < 0) return SIFR_OK;
    engine_held_range(s, w->segment, s->masters[w->segment], 4, &from, &end);
    some = overlap(w, first, count, from, end, &at, &skip);
    if (some <= 0) return SIFR_OK;
    return engine_write(engine, index, ENGINE_MASTER, first + skip, some, values + skip, error);
}

enum { STATE_PIECE = 4096 };

/* Elements at, at + 1 ... of a state's buffer, as FP32, in `out`. */
static sifr_status read_state(const sifr_engine *engine, int32_t buffer, int64_t at, int64_t count,
                              float *out, sifr_error *error) {
    base_assert(buffer >= 0 && count <= STATE_PIECE);
    base_dtype type = plan_moment_type(&engine->training->settings);
    int64_t size = base_dtype_bytes(type);
    if (type == BASE_FP32)
        return engine_read_buffer(engine, buffer, at * size, out, count * size, error);
    uint16_t narrow[STATE_PIECE];
    BASE_TRY(engine_read_buffer(engine, buffer, at * size, narrow, count * size, error));
    engine_to_fp32(out, narrow, type, count);
    return SIFR_OK;
}

/* Elements at, at + 1 ... of this rank's slice of the weights to train, from `masters`. */
static sifr_status train_piece(const sifr_engine *engine, int32_t segment, int64_t at,
                               int64_t count, const float *masters, float *out, sifr_error *error) {
    base_assert(count <= STATE_PIECE);
    const plan_schedule *s = engine->training;
    const optim_row *row = engine_optimizer(engine);
    float states[OPTIM_STATES][STATE_PIECE];
    const float *values[OPTIM_STATES] = {NULL};
    for (int i = 0; i < optim_states(row); i++) {
        BASE_TRY(read_state(engine, s->states[i][segment], at, count, states[i], error));
        values[i] = states[i];
    }
    unsigned mode = base_flush_floats(); /* as the kernel's threads do */
    row->train_weights(&engine->settings.optimizer, masters, values, count, out);
    base_restore_floats(mode);
    return SIFR_OK;
}

/* Elements of a master buffer that the host does not reach: in a piece, or else in `scratch`. */
static sifr_status read_masters(const sifr_engine *engine, int32_t master, int64_t first,
                                int64_t count, float scratch[STATE_PIECE], const float **out,
                                sifr_error *error) {
    base_assert(master >= 0 && (count <= STATE_PIECE || engine->pieces));
    void *piece = scratch;
    if (engine_in_pieces(engine, master)) {
        const char *from = engine_buffer(engine->trainer, master);
        BASE_TRY(engine_pieces_fetch(engine->pieces, from + first * 4, count * 4, &piece, error));
        *out = piece;
        return SIFR_OK;
    }
    if (engine->pieces) BASE_TRY(engine_pieces_next(engine->pieces, &piece, error));
    *out = piece;
    return engine_read_buffer(engine, master, first * 4, piece, count * 4, error);
}

/* Computes a segment's parameters for kernels from this rank's master weights: `elements` of them,
 * from element `at` of the parameters' buffer on. */
static sifr_status narrow_masters(const sifr_engine *engine, int32_t segment, bool average,
                                  int64_t at, int64_t elements, sifr_error *error) {
    base_assert(at >= 0 && elements >= 0);
    const plan_schedule *s = engine->training;
    float scratch[STATE_PIECE], trained[STATE_PIECE];
    int32_t master = s->masters[segment], parameters = s->parameters[segment];
    bool plain = average || !engine_optimizer(engine)->averages || s->states[0][segment] < 0;
    const float *masters = engine_host_buffer(engine->trainer, master);
    int64_t most = plain && engine->pieces ? engine_pieces_bytes(engine->pieces) / 4 : STATE_PIECE;
    if (masters && plain) return put_parameters(engine, parameters, at, masters, elements, error);
    for (int64_t done = 0; done < elements; done += most) {
        int64_t count = base_min_i64(most, elements - done);
        if (plain) {
            BASE_TRY(read_masters(engine, master, done, count, scratch, &masters, error));
        } else { /* the states need the pieces */
            BASE_TRY(engine_read_buffer(engine, master, done * 4, scratch, count * 4, error));
            BASE_TRY(train_piece(engine, segment, done, count, scratch, trained, error));
            masters = trained;
        }
        BASE_TRY(put_parameters(engine, parameters, at + done, masters, count, error));
    }
    return SIFR_OK;
}

/* All ranks fail if one could not read its own state. */
static sifr_status narrow_segments(const sifr_engine *engine, bool average, sifr_error *error) {
    const plan_schedule *s = engine->training;
    int64_t element = base_dtype_bytes(plan_dtype(&s->settings));
    for (int32_t g = 0; g < (int32_t)engine->model->segment_count; g++) {
        int64_t from, end, whole_from, whole_end;
        if (s->masters[g] < 0) continue;
        engine_held_range(s, g, s->parameters[g], element, &whole_from, &whole_end);
        engine_held_range(s, g, s->masters[g], 4, &from, &end);
        BASE_TRY(narrow_masters(engine, g, average, from - whole_from, end - from, error));
    }
    return SIFR_OK;
}

/* This rank's slice of a segment's parameters to the rank of the same place in another stage, or
 * from there; who holds them whole gathers them then. */
static sifr_status move_tied(const sifr_engine *engine, int32_t segment, int32_t peer, bool sends,
                             sifr_error *error) {
    const plan_schedule *s = engine->training;
    comm_group *peers = engine_groups_at(&engine->groups, PLAN_STAGES);
    base_assert(peer >= 0 && peer < comm_size(peers) && peer != comm_rank(peers));
    comm_group *state = engine_groups_at(&engine->groups, PLAN_STATE);
    const plan_mesh *mesh = &s->settings.mesh;
    int32_t ranks = plan_mesh_ranks(mesh, PLAN_STATE), rank = plan_mesh_place(mesh, PLAN_STATE);
    int64_t bytes =
        s->segment_elements[segment] * base_dtype_bytes(plan_dtype(&s->settings)) / ranks;
    char *parameters = engine_buffer(engine->trainer, s->parameters[segment]);
    bool whole = s->buffers[s->parameters[segment]].bytes > bytes;
    base_assert(!whole || state); /* else this rank's slice is all of it */
    char *slice = parameters + (whole ? rank * bytes : 0);
    comm_handle handle;
    if (sends) {
        BASE_TRY(comm_send(peers, peer, slice, bytes, &handle, error));
        return comm_wait(handle, error);
    }
    BASE_TRY(comm_receive(peers, peer, slice, bytes, &handle, error));
    BASE_TRY(comm_wait(handle, error));
    if (!whole) return SIFR_OK;
    BASE_TRY(comm_start_all_gather(state, slice, bytes, parameters, &handle, error));
    return comm_wait(handle, error);
}

/* Parameters of tied weights, to the other stages that read them. */
static sifr_status share_tied(const sifr_engine *engine, sifr_error *error) {
    const plan_pipeline *p = &engine->training->settings.pipeline;
    const sifr_model *model = engine->model;
    for (int32_t g = 0; g < (int32_t)model->segment_count && plan_parts(p) > 1; g++) {
        int32_t owner = plan_stage_of(p, model->segments[g].unit);
        for (int32_t stage = 0; stage < p->stages; stage++) {
            bool reads = stage != owner && plan_reads_segment(model, p, stage, g);
            if (!reads || (p->stage != owner && p->stage != stage)) continue;
            bool sends = p->stage == owner;
            BASE_TRY(move_tied(engine, g, sends ? stage : owner, sends, error));
        }
    }
    return SIFR_OK;
}

static sifr_status refresh(sifr_engine *engine, bool average, sifr_error *error) {
    const plan_schedule *s = engine->training;
    int64_t element = base_dtype_bytes(plan_dtype(&s->settings));
    int64_t master = base_dtype_bytes(engine_master_type(engine));
    comm_group *state = engine_groups_at(&engine->groups, PLAN_STATE);
    engine->shows_average = average;
    BASE_TRY(comm_agree_status(engine->group, narrow_segments(engine, average, error), error));
    BASE_TRY(engine_open_window(engine->trainer, error));
    for (int32_t g = 0; g < (int32_t)engine->model->segment_count; g++) {
        int64_t from, end, whole_from, whole_end;
        const model_segment *segment = &engine->model->segments[g];
        if (segment->frozen) continue; /* no rank computes them */
        if (!plan_has_unit(&s->settings.pipeline, segment->unit)) continue; /* its owner sends it */
        engine_held_range(s, g, s->parameters[g], element, &whole_from, &whole_end);
        engine_held_range(s, g, engine_part_buffer(s, g, ENGINE_MASTER), master, &from, &end);
        if (end - from == whole_end - whole_from) continue;
        base_assert(state && (end - from) * comm_size(state) == whole_end - whole_from);
        char *parameters = engine_buffer(engine->trainer, s->parameters[g]);
        comm_handle handle; /* other ranks' parts of a buffer that each rank holds whole */
        BASE_TRY(comm_start_all_gather(state, parameters + from * element, (end - from) * element,
                                       parameters, &handle, error));
        BASE_TRY(comm_wait(handle, error));
    }
    return share_tied(engine, error);
}

sifr_status engine_refresh(sifr_engine *engine, sifr_error *error) {
    return refresh(engine, false, error);
}

sifr_status engine_show_average(sifr_engine *engine, sifr_error *error) {
    if (!engine_optimizer(engine)->averages || engine->shows_average) return SIFR_OK;
    return refresh(engine, true, error);
}
