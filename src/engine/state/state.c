/* A rank's share of weights, master weights and moments, in memory or on disk. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/state/convert.h"
#include "plan/queries.h"

/* Elements first … end - 1 of a segment that a buffer holds; it has `element` bytes for `each` of
 * them. */
static void range_in(const plan_schedule *s, int32_t segment, int32_t buffer, int64_t element,
                     int64_t each, int64_t *first, int64_t *end) {
    int64_t count = s->buffers[buffer].bytes / element * each;
    bool slice = count < s->segment_elements[segment];
    *first = slice ? plan_mesh_place(&s->settings.mesh, PLAN_STATE) * count : 0;
    *end = *first + count;
}

static void held_range(const plan_schedule *s, int32_t segment, int32_t buffer, int64_t element,
                       int64_t *first, int64_t *end) {
    range_in(s, segment, buffer, element, 1, first, end);
}

static int32_t buffer_of(const plan_schedule *s, int32_t segment, engine_part part) {
    if (part != ENGINE_MASTER) return s->states[part - ENGINE_STATE1][segment];
    return s->masters[segment] >= 0 ? s->masters[segment] : s->parameters[segment];
}

const optim_row *engine_optimizer(const sifr_engine *engine) {
    return optim_row_of(&engine->settings.optimizer);
}

int engine_parts(const sifr_engine *engine) {
    return ENGINE_STATE1 + optim_states(engine_optimizer(engine));
}

const char *engine_part_name(const optim_row *optimizer, engine_part part) {
    return part == ENGINE_MASTER ? "master" : optimizer->states[part - ENGINE_STATE1].name;
}

base_dtype engine_part_type(const sifr_engine *engine, engine_part part) {
    const plan_settings *settings = &engine->training->settings;
    const optim_row *row = engine_optimizer(engine);
    if (part != ENGINE_MASTER) return plan_state_type(settings, row, part - ENGINE_STATE1);
    return plan_has_masters(settings) ? BASE_FP32 : plan_dtype(settings);
}

static const optim_row *weight_row(const sifr_engine *engine, size_t index) {
    return optim_row_for(engine_optimizer(engine), engine->model->weights[index].rest);
}

base_dtype engine_weight_type(const sifr_engine *engine, size_t index, engine_part part) {
    const plan_settings *settings = &engine->training->settings;
    if (engine->model->weights[index].frozen) return plan_dtype(settings);
    if (part == ENGINE_MASTER) return engine_part_type(engine, part);
    return plan_state_type(settings, weight_row(engine, index), part - ENGINE_STATE1);
}

int engine_weight_parts(const sifr_engine *engine, size_t index) {
    if (engine->model->weights[index].frozen) return ENGINE_STATE1;
    return ENGINE_STATE1 + optim_states(weight_row(engine, index));
}

int64_t engine_part_each(const sifr_engine *engine, size_t index, engine_part part) {
    if (part == ENGINE_MASTER) return 1;
    return base_max_i64(weight_row(engine, index)->states[part - ENGINE_STATE1].each, 1);
}

int64_t engine_count_values(const sifr_engine *engine, size_t index, engine_part part,
                            int64_t elements) {
    if (part == ENGINE_MASTER) return elements;
    return optim_values(weight_row(engine, index), part - ENGINE_STATE1, elements);
}

static int64_t part_bytes(const sifr_engine *engine, size_t index, engine_part part) {
    return base_dtype_bytes(engine_weight_type(engine, index, part));
}

static int64_t values_bytes(const sifr_engine *engine, size_t index, engine_part part,
                            int64_t elements) {
    return engine_count_values(engine, index, part, elements) * part_bytes(engine, index, part);
}

/* Where this rank holds a part of a weight. */
typedef struct state_place {
    int32_t buffer;
    int64_t at;           /* element of the segment's that the buffer holds */
    int64_t first, count; /* of the weight's elements */
} state_place;

static bool find_place(const sifr_engine *engine, size_t index, engine_part part,
                       state_place *place) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    int64_t from, end, elements = w->rows * w->columns;
    *place = (state_place){.buffer = buffer_of(s, w->segment, part)};
    if (place->buffer < 0 || !plan_has_unit(&s->settings.pipeline, w->unit)) return false;
    range_in(s, w->segment, place->buffer, part_bytes(engine, index, part),
             engine_part_each(engine, index, part), &from, &end);
    int64_t start = base_max_i64(from, w->offset);
    int64_t stop = base_min_i64(end, w->offset + elements);
    if (stop <= start) return false;
    place->at = start - from;
    place->first = start - w->offset;
    place->count = stop - start;
    return true;
}

static bool is_on_disk(const sifr_engine *engine, int32_t buffer) {
    return engine->training->buffers[buffer].tier == PLAN_NVME;
}

/* Whether a buffer is copied through the engine's pieces. */
static bool is_in_pieces(const sifr_engine *engine, int32_t buffer) {
    return engine->pieces && engine->training->buffers[buffer].tier == PLAN_DEVICE;
}

static sifr_status take_copy(void *user, const void *bytes, int64_t first, int64_t count,
                             sifr_error *error) {
    (void)error;
    memcpy((char *)user + first, bytes, (size_t)count);
    return SIFR_OK;
}

/* Bytes at `at` of a buffer on any tier. */
static sifr_status read_buffer(const sifr_engine *engine, int32_t buffer, int64_t at, void *out,
                               int64_t bytes, sifr_error *error) {
    int64_t offset = engine->training->buffers[buffer].offset + at;
    if (is_on_disk(engine, buffer))
        return engine_swap_read(engine->swap, offset, out, bytes, error);
    if (is_in_pieces(engine, buffer))
        return engine_pieces_read(engine->pieces,
                                  (char *)engine_buffer(engine->trainer, buffer) + at, bytes,
                                  take_copy, out, error);
    return engine_get(engine->trainer, buffer, at, out, bytes, error);
}

static sifr_status write_buffer(const sifr_engine *engine, int32_t buffer, int64_t at,
                                const void *from, int64_t bytes, sifr_error *error) {
    int64_t offset = engine->training->buffers[buffer].offset + at;
    if (is_on_disk(engine, buffer))
        return engine_swap_write(engine->swap, offset, from, bytes, error);
    if (is_in_pieces(engine, buffer))
        return engine_pieces_write(engine->pieces,
                                   (char *)engine_buffer(engine->trainer, buffer) + at, from, bytes,
                                   error);
    return engine_set(engine->trainer, buffer, at, from, bytes, error);
}

bool engine_in_place(const sifr_engine *engine) {
    return !engine->swap && !device_is_separate(engine->dev);
}

bool engine_range(const sifr_engine *engine, size_t index, engine_part part, int64_t *first,
                  int64_t *count) {
    state_place place;
    bool some = find_place(engine, index, part, &place);
    *first = place.first;
    *count = place.count;
    return some;
}

float *engine_slice(const sifr_engine *engine, size_t index, engine_part part, int64_t *first,
                    int64_t *count) {
    state_place place;
    bool some = find_place(engine, index, part, &place);
    *first = place.first;
    *count = place.count;
    bool wide = engine_weight_type(engine, index, part) == BASE_FP32;
    float *values = some && wide ? engine_host_buffer(engine->trainer, place.buffer) : NULL;
    return values ? values + place.at : NULL;
}

/* *at: where elements first ... first + count - 1 of a weight begin in their buffer, in bytes. */
static sifr_status find_range(const sifr_engine *engine, size_t index, engine_part part,
                              int64_t first, int64_t count, state_place *place, int64_t *at,
                              sifr_error *error) {
    if (engine_is_pending(engine->trainer))
        return base_fail(error, SIFR_FAILED, "weight %s: its update is delayed; complete it first",
                         engine->model->weights[index].name);
    if (!find_place(engine, index, part, place) || first < place->first ||
        first + count > place->first + place->count)
        return base_fail(error, SIFR_FAILED, "weight %s: this rank does not hold it",
                         engine->model->weights[index].name);
    *at = engine_count_values(engine, index, part, place->at + first - place->first) *
          part_bytes(engine, index, part);
    return SIFR_OK;
}

sifr_status engine_view(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                        int64_t count, void *room, const void **out, sifr_error *error) {
    state_place place;
    *out = room;
    int64_t at;
    BASE_TRY(find_range(engine, index, part, first, count, &place, &at, error));
    const char *memory = engine_host_buffer(engine->trainer, place.buffer);
    if (!memory)
        return read_buffer(engine, place.buffer, at, room, values_bytes(engine, index, part, count),
                           error);
    *out = memory + at;
    return SIFR_OK;
}

sifr_status engine_visit(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, void *room, engine_take_bytes take, void *user,
                         sifr_error *error) {
    state_place place;
    int64_t at;
    const void *view;
    BASE_TRY(find_range(engine, index, part, first, count, &place, &at, error));
    if (is_in_pieces(engine, place.buffer))
        return engine_pieces_read(engine->pieces,
                                  (char *)engine_buffer(engine->trainer, place.buffer) + at,
                                  values_bytes(engine, index, part, count), take, user, error);
    for (int64_t done = 0; done < count; done += ENGINE_VISITED) {
        int64_t some = base_min_i64(ENGINE_VISITED, count - done);
        BASE_TRY(engine_view(engine, index, part, first + done, some, room, &view, error));
        BASE_TRY(take(user, view, values_bytes(engine, index, part, done),
                      values_bytes(engine, index, part, some), error));
    }
    return SIFR_OK;
}

typedef struct widened {
    float *to;
    base_dtype type;
} widened;

static sifr_status take_wide(void *user, const void *bytes, int64_t first, int64_t count,
                             sifr_error *error) {
    const widened *w = user;
    int64_t element = base_dtype_bytes(w->type);
    (void)error;
    engine_to_fp32(w->to + first / element, bytes, w->type, count / element);
    return SIFR_OK;
}

sifr_status engine_view_fp32(const sifr_engine *engine, size_t index, engine_part part,
                             int64_t first, int64_t count, float *room, const float **out,
                             sifr_error *error) {
    enum { PIECE = 4096 };
    float piece[PIECE]; /* of either type */
    base_dtype type = engine_weight_type(engine, index, part);
    const void *view;
    if (type == BASE_FP32) {
        BASE_TRY(engine_view(engine, index, part, first, count, room, &view, error));
        *out = view;
        return SIFR_OK;
    }
    *out = room;
    if (is_in_pieces(engine,
                     buffer_of(engine->training, engine->model->weights[index].segment, part)))
        return engine_visit(engine, index, part, first, count, NULL, take_wide,
                            &(widened){room, type}, error);
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t some = base_min_i64(PIECE, count - done);
        BASE_TRY(engine_view(engine, index, part, first + done, some, piece, &view, error));
        engine_to_fp32(room + done, view, type, some);
    }
    return SIFR_OK;
}

sifr_status engine_write(sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, const void *values, sifr_error *error) {
    state_place place;
    int64_t at;
    BASE_TRY(find_range(engine, index, part, first, count, &place, &at, error));
    return write_buffer(engine, place.buffer, at, values, values_bytes(engine, index, part, count),
                        error);
}

/* The elements of a weight in part `index` of `parts` equal parts of its segment. */
static void find_part(const sifr_engine *engine, size_t weight, int32_t index, int32_t parts,
                      int64_t *first, int64_t *count) {
    const model_weight *w = &engine->model->weights[weight];
    int64_t part = plan_padded_elements(engine->training, w->segment) / parts;
    int64_t start = base_max_i64(index * part, w->offset);
    int64_t stop = base_min_i64((index + 1) * part, w->offset + w->rows * w->columns);
    *first = stop > start ? start - w->offset : 0;
    *count = base_max_i64(stop - start, 0);
}

/* Only ranks of its stage own a weight. Replicas hold the same slice, so each owns a part of it. */
void engine_share(const sifr_engine *engine, size_t index, int32_t rank, int64_t *first,
                  int64_t *count) {
    const plan_settings *settings = &engine->training->settings;
    plan_mesh mesh = plan_mesh_at(&settings->mesh, rank);
    int32_t unit = engine->model->weights[index].unit;
    *first = *count = 0;
    if (mesh.place[PLAN_AXIS_STAGE] != plan_stage_of(&settings->pipeline, unit)) return;
    int32_t replicas = plan_mesh_ranks(&mesh, PLAN_REPLICAS);
    int32_t part =
        plan_mesh_place(&mesh, PLAN_STATE) * replicas + plan_mesh_place(&mesh, PLAN_REPLICAS);
    find_part(engine, index, part, plan_mesh_ranks(&mesh, PLAN_STATE) * replicas, first, count);
}

void engine_held(const sifr_engine *engine, size_t index, int64_t *first, int64_t *count) {
    const plan_schedule *s = engine->training;
    const plan_mesh *mesh = &s->settings.mesh;
    const model_weight *w = &engine->model->weights[index];
    int32_t buffer =
        s->parameters[w->segment]; /* whole parameters, wherever there are master weights */
    int64_t size = s->buffers[buffer].bytes / base_dtype_bytes(plan_dtype(&s->settings));
    if (size < s->segment_elements[w->segment]) {
        find_part(engine, index, plan_mesh_place(mesh, PLAN_STATE),
                  plan_mesh_ranks(mesh, PLAN_STATE), first, count);
        return;
    }
    *first = 0;
    *count = s->segment_elements[w->segment] ? w->rows * w->columns : 0; /* of another stage */
}

float *engine_state(const sifr_engine *engine, size_t index, engine_part part) {
    int64_t first, count;
    return engine_slice(engine, index, part, &first, &count);
}

/* The part of [first, first + count) of a weight that lies in a buffer which holds [from, end) of
 * its segment: offset in the buffer and in the values. */
static int64_t overlap(const model_weight *w, int64_t first, int64_t count, int64_t from,
                       int64_t end, int64_t *in_buffer, int64_t *in_values) {
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
    if (dtype == BASE_FP32)
        return write_buffer(engine, buffer, at * element, values, count * element, error);
    for (int64_t done = 0; done < count; done += most) {
        void *to;
        narrow_run run = {.from = values + done, dtype, base_min_i64(most, count - done)};
        BASE_TRY(engine_pieces_next(engine->pieces, &to, error));
        run.to = to;
        device_parallel(engine->dev, (run.count + NARROW_TILE - 1) / NARROW_TILE, narrow_tile,
                        &run);
        BASE_TRY(
            write_buffer(engine, buffer, (at + done) * element, to, run.count * element, error));
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
    if (is_in_pieces(engine, buffer))
        return send_parameters(engine, buffer, at, values, count, error);
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t here = base_min_i64(PIECE, count - done);
        engine_from_fp32(piece, values + done, dtype, here);
        BASE_TRY(write_buffer(engine, buffer, (at + done) * element, piece, here * element, error));
    }
    return SIFR_OK;
}

sifr_status engine_put(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                       const float *values, sifr_error *error) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    int64_t element = base_dtype_bytes(plan_dtype(&s->settings)), from, end, at, skip;
    int32_t parameters = s->parameters[w->segment];
    held_range(s, w->segment, parameters, element, &from, &end);
    int64_t some = overlap(w, first, count, from, end, &at, &skip);
    if (some > 0) BASE_TRY(put_parameters(engine, parameters, at, values + skip, some, error));
    if (s->masters[w->segment] < 0) return SIFR_OK;
    held_range(s, w->segment, s->masters[w->segment], 4, &from, &end);
    some = overlap(w, first, count, from, end, &at, &skip);
    if (some <= 0) return SIFR_OK;
    return engine_write(engine, index, ENGINE_MASTER, first + skip, some, values + skip, error);
}

enum { STATE_PIECE = 4096 };

/* Elements at, at + 1 ... of a state's buffer, as FP32, in `out`. */
static sifr_status read_state(const sifr_engine *engine, int32_t buffer, int64_t at, int64_t count,
                              float *out, sifr_error *error) {
    base_dtype type = plan_moment_type(&engine->training->settings);
    int64_t size = base_dtype_bytes(type);
    if (type == BASE_FP32) return read_buffer(engine, buffer, at * size, out, count * size, error);
    uint16_t narrow[STATE_PIECE];
    BASE_TRY(read_buffer(engine, buffer, at * size, narrow, count * size, error));
    engine_to_fp32(out, narrow, type, count);
    return SIFR_OK;
}

/* Elements at, at + 1 ... of this rank's slice of the weights to train, from `masters`. */
static sifr_status train_piece(const sifr_engine *engine, int32_t segment, int64_t at,
                               int64_t count, const float *masters, float *out, sifr_error *error) {
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

/* Elements of a master buffer that the host does not reach: in a piece, or else in `room`. */
static sifr_status read_masters(const sifr_engine *engine, int32_t master, int64_t first,
                                int64_t count, float room[STATE_PIECE], const float **out,
                                sifr_error *error) {
    void *piece = room;
    if (is_in_pieces(engine, master)) {
        const char *from = engine_buffer(engine->trainer, master);
        BASE_TRY(engine_pieces_fetch(engine->pieces, from + first * 4, count * 4, &piece, error));
        *out = piece;
        return SIFR_OK;
    }
    if (engine->pieces) BASE_TRY(engine_pieces_next(engine->pieces, &piece, error));
    *out = piece;
    return read_buffer(engine, master, first * 4, piece, count * 4, error);
}

/* Computes a segment's parameters for kernels from this rank's master weights: `elements` of them,
 * from element `at` of the parameters' buffer on. */
static sifr_status narrow_masters(const sifr_engine *engine, int32_t segment, bool average,
                                  int64_t at, int64_t elements, sifr_error *error) {
    const plan_schedule *s = engine->training;
    float room[STATE_PIECE], trained[STATE_PIECE];
    int32_t master = s->masters[segment], parameters = s->parameters[segment];
    bool plain = average || !engine_optimizer(engine)->averages || s->states[0][segment] < 0;
    const float *masters = engine_host_buffer(engine->trainer, master);
    int64_t most = plain && engine->pieces ? engine_pieces_bytes(engine->pieces) / 4 : STATE_PIECE;
    if (masters && plain) return put_parameters(engine, parameters, at, masters, elements, error);
    for (int64_t done = 0; done < elements; done += most) {
        int64_t count = base_min_i64(most, elements - done);
        if (plain) {
            BASE_TRY(read_masters(engine, master, done, count, room, &masters, error));
        } else { /* the states need the pieces */
            BASE_TRY(read_buffer(engine, master, done * 4, room, count * 4, error));
            BASE_TRY(train_piece(engine, segment, done, count, room, trained, error));
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
        held_range(s, g, s->parameters[g], element, &whole_from, &whole_end);
        held_range(s, g, s->masters[g], 4, &from, &end);
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
    comm_group *state = engine_groups_at(&engine->groups, PLAN_STATE);
    const plan_mesh *mesh = &s->settings.mesh;
    int32_t ranks = plan_mesh_ranks(mesh, PLAN_STATE), rank = plan_mesh_place(mesh, PLAN_STATE);
    int64_t bytes =
        s->segment_elements[segment] * base_dtype_bytes(plan_dtype(&s->settings)) / ranks;
    char *parameters = engine_buffer(engine->trainer, s->parameters[segment]);
    bool whole = s->buffers[s->parameters[segment]].bytes > bytes;
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
    int64_t master = base_dtype_bytes(engine_part_type(engine, ENGINE_MASTER));
    comm_group *state = engine_groups_at(&engine->groups, PLAN_STATE);
    engine->shows_average = average;
    BASE_TRY(comm_agree_status(engine->group, narrow_segments(engine, average, error), error));
    BASE_TRY(engine_open_window(engine->trainer, error));
    for (int32_t g = 0; g < (int32_t)engine->model->segment_count; g++) {
        int64_t from, end, whole_from, whole_end;
        const model_segment *segment = &engine->model->segments[g];
        if (segment->frozen) continue; /* no rank computes them */
        if (!plan_has_unit(&s->settings.pipeline, segment->unit)) continue; /* its owner sends it */
        held_range(s, g, s->parameters[g], element, &whole_from, &whole_end);
        held_range(s, g, buffer_of(s, g, ENGINE_MASTER), master, &from, &end);
        if (end - from == whole_end - whole_from) continue;
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

enum { FILL_PIECE = 4096, FILL_TILE = 64 * FILL_PIECE }; /* elements */

typedef struct fill_run {
    sifr_engine *engine;
    size_t index;
    int64_t first, end;
    engine_values make;
    const void *user;
    float *values; /* of a piece */
    _Atomic bool failed;
    sifr_status status; /* number of the first tile that failed, and its message */
    sifr_error *error;
} fill_run;

static void fill_tile(void *argument, int64_t tile, int thread) {
    (void)thread;
    fill_run *run = argument;
    float values[FILL_PIECE];
    sifr_error error = {0};
    int64_t first = run->first + tile * FILL_TILE, end = base_min_i64(run->end, first + FILL_TILE);
    for (; first < end; first += FILL_PIECE) {
        int64_t count = base_min_i64(FILL_PIECE, end - first);
        run->make(run->user, run->index, first, count, values);
        sifr_status status = engine_put(run->engine, run->index, first, count, values, &error);
        if (status == SIFR_OK) continue;
        if (atomic_exchange(&run->failed, true)) return;
        run->status = status;
        if (run->error) *run->error = error;
        return;
    }
}

/* Trained weights that are written during a run are the average: the next step refreshes. */
static void note_written(sifr_engine *engine, size_t index) {
    if (engine->model->weights[index].frozen) return;
    engine->shows_average |= engine_optimizer(engine)->averages && engine->updates > 0;
}

static void make_tile(void *argument, int64_t tile, int thread) {
    const fill_run *run = argument;
    int64_t at = tile * FILL_PIECE, count = base_min_i64(FILL_PIECE, run->end - run->first - at);
    (void)thread;
    run->make(run->user, run->index, run->first + at, count, run->values + at);
}

/* A piece at a time, by all threads. */
static sifr_status fill_pieces(fill_run *run, sifr_error *error) {
    int64_t most = engine_pieces_bytes(run->engine->pieces) / 4, end = run->end;
    for (; run->first < end; run->first = run->end) {
        void *piece;
        int64_t count = base_min_i64(most, end - run->first);
        BASE_TRY(engine_pieces_next(run->engine->pieces, &piece, error));
        run->values = piece;
        run->end = run->first + count;
        device_parallel(run->engine->dev, (count + FILL_PIECE - 1) / FILL_PIECE, make_tile, run);
        BASE_TRY(engine_put(run->engine, run->index, run->first, count, piece, error));
    }
    return SIFR_OK;
}

sifr_status engine_fill(sifr_engine *engine, size_t index, engine_values make, const void *user,
                        sifr_error *error) {
    note_written(engine, index);
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
    initial_values from = {engine->model, seed};
    BASE_TRY(engine_settle(engine, error));
    for (size_t i = 0; i < engine->model->weight_count; i++)
        BASE_TRY(engine_fill(engine, i, make_initial, &from, error));
    return SIFR_OK;
}

static sifr_status find_weight(const sifr_engine *engine, const char *name, size_t count,
                               size_t *index, sifr_error *error) {
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        const model_weight *w = &engine->model->weights[i];
        if (strcmp(w->name, name) != 0) continue;
        *index = i;
        if (count == (size_t)(w->rows * w->columns)) return SIFR_OK;
        return base_fail(error, SIFR_USAGE, "weight %s: has %lld x %lld elements, not %zu", name,
                         (long long)w->rows, (long long)w->columns, count);
    }
    return base_fail(error, SIFR_USAGE, "weight %s: the model has no weight of that name", name);
}

sifr_status sifr_engine_write_weight(sifr_engine *engine, const char *name, const float *values,
                                     size_t count, sifr_error *error) {
    size_t index = 0;
    BASE_TRY(find_weight(engine, name, count, &index, error));
    BASE_TRY(engine_settle(engine, error));
    note_written(engine, index);
    return engine_put(engine, index, 0, (int64_t)count, values, error);
}

bool engine_is_cut(const sifr_engine *engine, size_t index, engine_part part) {
    const plan_schedule *s = engine->training;
    int32_t segment = engine->model->weights[index].segment;
    if (plan_parts(&s->settings.pipeline) > 1) return true;
    return s->buffers[buffer_of(s, segment, part)].bytes <
           values_bytes(engine, index, part, s->segment_elements[segment]);
}

static sifr_status copy_part(const sifr_engine *engine, size_t index, engine_part part,
                             int64_t first, int64_t count, float *out, sifr_error *error) {
    const float *values;
    BASE_TRY(engine_view_fp32(engine, index, part, first, count, out, &values, error));
    if (values != out) memcpy(out, values, (size_t)count * sizeof *out);
    return SIFR_OK;
}

/* The elements of [first, first + count) of a weight that rank `rank` owns; none: false. */
static bool owned(const sifr_engine *engine, size_t index, int32_t rank, int64_t first,
                  int64_t count, int64_t *start, int64_t *stop) {
    int64_t own, length;
    engine_share(engine, index, rank, &own, &length);
    *start = base_max_i64(own, first);
    *stop = base_min_i64(own + length, first + count);
    return *stop > *start;
}

/* The owner of each piece broadcasts it, so no rank needs more room than the range. A rank that
 * cannot read its own piece still takes part, so that no rank waits for it. */
sifr_status engine_collect(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                           int64_t count, float *out, sifr_error *error) {
    if (!engine_is_cut(engine, index, part))
        return copy_part(engine, index, part, first, count, out, error);
    sifr_status status = SIFR_OK;
    for (int32_t r = 0; r < comm_size(engine->group); r++) {
        int64_t start, stop;
        if (!owned(engine, index, r, first, count, &start, &stop)) continue;
        float *to = out + (start - first);
        bool own = r == comm_rank(engine->group) && status == SIFR_OK;
        if (own) status = copy_part(engine, index, part, start, stop - start, to, error);
        BASE_TRY(comm_broadcast(engine->group, r, to, (stop - start) * (int64_t)sizeof *to,
                                status == SIFR_OK ? error : NULL));
    }
    return status;
}

/* Likewise, a rank that cannot read its piece sends what is in its place. */
sifr_status engine_hand_in(const sifr_engine *engine, comm_group *peers, size_t index,
                           engine_part part, int64_t first, int64_t count, float *out,
                           sifr_error *error) {
    int32_t me = comm_rank(peers);
    sifr_status status = SIFR_OK;
    for (int32_t r = 0; r < comm_size(peers); r++) {
        int64_t start, stop;
        if ((me != 0 && me != r) || !owned(engine, index, r, first, count, &start, &stop)) continue;
        float *piece = out + (start - first);
        int64_t bytes = (stop - start) * (int64_t)sizeof *piece;
        comm_handle handle;
        if (r == me) status = copy_part(engine, index, part, start, stop - start, piece, error);
        if (r == 0) continue; /* it is there */
        sifr_error *told = status == SIFR_OK ? error : NULL;
        BASE_TRY(me ? comm_send(peers, 0, piece, bytes, &handle, told)
                    : comm_receive(peers, r, piece, bytes, &handle, told));
        BASE_TRY(comm_wait(handle, told));
    }
    return status;
}

sifr_status sifr_engine_read_weight(const sifr_engine *engine, const char *name, float *values,
                                    size_t count, sifr_error *error) {
    size_t index = 0;
    BASE_TRY(find_weight(engine, name, count, &index, error));
    BASE_TRY(engine_settle(engine, error));
    return engine_collect(engine, index, ENGINE_MASTER, 0, (int64_t)count, values, error);
}
