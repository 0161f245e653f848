/* A rank's share of weights, master weights and moments, in memory or on disk. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/state/convert.h"
#include "engine/state/state_private.h"
#include "model/shard.h"
#include "plan/queries.h"

const optim_row *engine_optimizer(const sifr_engine *engine) {
    return optim_row_of(&engine->settings.optimizer);
}

int engine_parts(const sifr_engine *engine) {
    return ENGINE_STATE1 + optim_most_states(engine_optimizer(engine));
}

const char *engine_part_name(const optim_row *optimizer, engine_part part) {
    base_assert(part == ENGINE_MASTER || optimizer->states[part - ENGINE_STATE1].name);
    return part == ENGINE_MASTER ? "master" : optimizer->states[part - ENGINE_STATE1].name;
}

base_dtype engine_master_type(const sifr_engine *engine) {
    const plan_settings *settings = &engine->training->settings;
    return plan_has_masters(settings) ? BASE_FP32 : plan_dtype(settings);
}

bool engine_named_part(const sifr_engine *engine, int n, const char **name, base_dtype *type) {
    base_assert(n >= 0);
    const plan_settings *settings = &engine->training->settings;
    const optim_row *row = engine_optimizer(engine);
    *name = engine_part_name(row, ENGINE_MASTER);
    *type = engine_master_type(engine);
    if (n == 0) return true;
    int state = optim_named_state(row, n - 1, &row);
    if (state < 0) return false;
    *name = row->states[state].name;
    *type = plan_state_type(settings, row, state);
    return true;
}

static const optim_row *weight_row(const sifr_engine *engine, size_t index) {
    return optim_row_for(engine_optimizer(engine), engine->model->weights[index].rest);
}

const char *engine_weight_part(const sifr_engine *engine, size_t index, engine_part part) {
    return engine_part_name(weight_row(engine, index), part);
}

base_dtype engine_weight_type(const sifr_engine *engine, size_t index, engine_part part) {
    const plan_settings *settings = &engine->training->settings;
    if (engine->model->weights[index].frozen) return plan_dtype(settings);
    if (part == ENGINE_MASTER) return engine_master_type(engine);
    base_assert((int)part < ENGINE_STATE1 + optim_states(weight_row(engine, index)));
    return plan_state_type(settings, weight_row(engine, index), part - ENGINE_STATE1);
}

int engine_weight_parts(const sifr_engine *engine, size_t index) {
    if (engine->model->weights[index].frozen) return ENGINE_STATE1;
    return ENGINE_STATE1 + optim_states(weight_row(engine, index));
}

static model_coding coding_of(const sifr_engine *engine, size_t index) {
    return engine->model->weights[index].coding;
}

int64_t engine_part_each(const sifr_engine *engine, size_t index, engine_part part) {
    if (part == ENGINE_MASTER) return coding_of(engine, index) ? BASE_NF4_RECORD : 1;
    return base_max_i64(weight_row(engine, index)->states[part - ENGINE_STATE1].each, 1);
}

int64_t engine_count_values(const sifr_engine *engine, size_t index, engine_part part,
                            int64_t elements) {
    base_assert(elements >= 0);
    if (part == ENGINE_MASTER && coding_of(engine, index))
        return (elements + BASE_NF4_RECORD - 1) / BASE_NF4_RECORD;
    if (part == ENGINE_MASTER) return elements;
    return optim_values(weight_row(engine, index), part - ENGINE_STATE1, elements);
}

static optim_axis axis_of(const sifr_engine *engine, size_t index, engine_part part) {
    if (part == ENGINE_MASTER) return OPTIM_ELEMENTS;
    return weight_row(engine, index)->states[part - ENGINE_STATE1].axis;
}

int64_t engine_part_elements(const sifr_engine *engine, size_t index, engine_part part) {
    const model_weight *w = &engine->model->weights[index];
    if (!axis_of(engine, index, part)) return w->rows * w->columns;
    return optim_weight_values(weight_row(engine, index), part - ENGINE_STATE1, w);
}

/* Of weights that are held as codes: of a record. */
static int64_t part_bytes(const sifr_engine *engine, size_t index, engine_part part) {
    model_coding coding = coding_of(engine, index);
    if (part == ENGINE_MASTER && coding) return model_record_bytes(coding);
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
    *place = (state_place){.buffer = engine_part_buffer(s, w->segment, part)};
    if (place->buffer < 0 || !plan_has_unit(&s->settings.pipeline, w->unit)) return false;
    if (axis_of(engine, index, part)) {
        place->at = optim_axis_place(weight_row(engine, index), part - ENGINE_STATE1, engine->model,
                                     w->segment, w->offset);
        place->count = engine_part_elements(engine, index, part);
        return true;
    }
    engine_range_in(s, w->segment, place->buffer, part_bytes(engine, index, part),
                    engine_part_each(engine, index, part), &from, &end);
    int64_t start = base_max_i64(from, w->offset);
    int64_t stop = base_min_i64(end, w->offset + elements);
    if (stop <= start) return false;
    place->at = start - from;
    place->first = start - w->offset;
    place->count = stop - start;
    return true;
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
                        int64_t count, void *scratch, const void **out, sifr_error *error) {
    const model_weight *w = &engine->model->weights[index];
    state_place place;
    *out = scratch;
    int64_t at;
    if (w->coding) return base_fail(error, SIFR_FAILED, "weight %s: it is held as codes", w->name);
    BASE_TRY(find_range(engine, index, part, first, count, &place, &at, error));
    const char *memory = engine_host_buffer(engine->trainer, place.buffer);
    if (!memory)
        return engine_read_buffer(engine, place.buffer, at, scratch,
                                  values_bytes(engine, index, part, count), error);
    *out = memory + at;
    return SIFR_OK;
}

sifr_status engine_visit(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, void *scratch, engine_take_bytes take, void *user,
                         sifr_error *error) {
    state_place place;
    int64_t at;
    const void *view;
    BASE_TRY(find_range(engine, index, part, first, count, &place, &at, error));
    if (engine_in_pieces(engine, place.buffer))
        return engine_pieces_read(engine->pieces,
                                  (char *)engine_buffer(engine->trainer, place.buffer) + at,
                                  values_bytes(engine, index, part, count), take, user, error);
    for (int64_t done = 0; done < count; done += ENGINE_VISITED) {
        int64_t some = base_min_i64(ENGINE_VISITED, count - done);
        BASE_TRY(engine_view(engine, index, part, first + done, some, scratch, &view, error));
        BASE_TRY(take(user, view, values_bytes(engine, index, part, done),
                      values_bytes(engine, index, part, some), error));
    }
    return SIFR_OK;
}

static sifr_status view_codes(const sifr_engine *engine, size_t index, int64_t first, int64_t count,
                              float *scratch, const float **out, sifr_error *error) {
    state_place place;
    int64_t at;
    BASE_TRY(find_range(engine, index, ENGINE_MASTER, first, count, &place, &at, error));
    *out = scratch;
    return engine_open_codes(engine, place.buffer, &engine->model->weights[index],
                             place.at + first - place.first, count, scratch, error);
}

sifr_status engine_view_fp32(const sifr_engine *engine, size_t index, engine_part part,
                             int64_t first, int64_t count, float *scratch, const float **out,
                             sifr_error *error) {
    enum { PIECE = 4096 };
    float piece[PIECE]; /* of either type */
    base_dtype type = engine_weight_type(engine, index, part);
    const void *view;
    if (coding_of(engine, index))
        return view_codes(engine, index, first, count, scratch, out, error);
    if (type == BASE_FP32) {
        BASE_TRY(engine_view(engine, index, part, first, count, scratch, &view, error));
        *out = view;
        return SIFR_OK;
    }
    *out = scratch;
    if (engine_in_pieces(engine, engine_part_buffer(engine->training,
                                                    engine->model->weights[index].segment, part)))
        return engine_visit(engine, index, part, first, count, NULL, engine_take_widened,
                            &(engine_widened){scratch, type}, error);
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t some = base_min_i64(PIECE, count - done);
        BASE_TRY(engine_view(engine, index, part, first + done, some, piece, &view, error));
        engine_to_fp32(scratch + done, view, type, some);
    }
    return SIFR_OK;
}

sifr_status engine_write(sifr_engine *engine, size_t index, engine_part part, int64_t first,
                         int64_t count, const void *values, sifr_error *error) {
    state_place place;
    int64_t at;
    BASE_TRY(find_range(engine, index, part, first, count, &place, &at, error));
    return engine_write_buffer(engine, place.buffer, at, values,
                               values_bytes(engine, index, part, count), error);
}

/* The elements of a weight in part `index` of `parts` equal parts of its segment. */
static void find_part(const sifr_engine *engine, size_t weight, int32_t index, int32_t parts,
                      int64_t *first, int64_t *count) {
    base_assert(index >= 0 && index < parts);
    const model_weight *w = &engine->model->weights[weight];
    int64_t part = plan_padded_elements(engine->training, w->segment) / parts;
    base_assert(part * parts == plan_padded_elements(engine->training, w->segment));
    int64_t start = base_max_i64(index * part, w->offset);
    int64_t stop = base_min_i64((index + 1) * part, w->offset + w->rows * w->columns);
    *first = stop > start ? start - w->offset : 0;
    *count = base_max_i64(stop - start, 0);
}

model_weight engine_weight_at(const sifr_engine *engine, size_t index, int32_t rank) {
    plan_mesh mesh = plan_mesh_at(&engine->training->settings.mesh, rank);
    return model_weight_at(engine->model, index, mesh.place[PLAN_AXIS_TENSOR]);
}

/* Only ranks of its stage own a weight, and of what tensor ranks have alike the first of them.
 * Replicas hold the same slice, so each owns a part of it. */
void engine_share(const sifr_engine *engine, size_t index, engine_part part, int32_t rank,
                  int64_t *first, int64_t *count) {
    const plan_settings *settings = &engine->training->settings;
    base_assert(rank >= 0 && rank < plan_mesh_ranks(&settings->mesh, PLAN_WORLD));
    plan_mesh mesh = plan_mesh_at(&settings->mesh, rank);
    int32_t unit = engine->model->weights[index].unit;
    *first = *count = 0;
    if (mesh.place[PLAN_AXIS_STAGE] != plan_stage_of(&settings->pipeline, unit)) return;
    const model_weight *w = &engine->model->weights[index];
    if (w->replicated && mesh.place[PLAN_AXIS_TENSOR] > 0) return;
    if (w->copies > 1 && mesh.place[PLAN_AXIS_TENSOR] % w->copies != 0) return;
    int32_t replicas = plan_mesh_ranks(&mesh, PLAN_REPLICAS);
    int32_t place =
        plan_mesh_place(&mesh, PLAN_STATE) * replicas + plan_mesh_place(&mesh, PLAN_REPLICAS);
    find_part(engine, index, place, plan_mesh_ranks(&mesh, PLAN_STATE) * replicas, first, count);
    if (!axis_of(engine, index, part)) return;
    bool owns = *first == 0 && *count > 0;
    *first = 0;
    *count = owns ? engine_part_elements(engine, index, part) : 0;
}

void engine_held(const sifr_engine *engine, size_t index, int64_t *first, int64_t *count) {
    const plan_schedule *s = engine->training;
    const plan_mesh *mesh = &s->settings.mesh;
    const model_weight *w = &engine->model->weights[index];
    int32_t buffer =
        s->parameters[w->segment]; /* whole parameters, wherever there are master weights */
    int64_t from, end;
    base_dtype type = plan_dtype(&s->settings);
    engine_held_range(s, w->segment, buffer, base_dtype_bytes(type), &from, &end);
    if (w->coding) engine_held_records(s, w->segment, &from, &end);
    int64_t size = end - from;
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

void engine_note_written(sifr_engine *engine, size_t index) {
    if (engine->model->weights[index].frozen) return;
    engine->shows_average |= engine_optimizer(engine)->averages && engine->updates > 0;
}

bool engine_is_cut(const sifr_engine *engine, size_t index, engine_part part) {
    const plan_schedule *s = engine->training;
    int32_t segment = engine->model->weights[index].segment;
    if (plan_parts(&s->settings.pipeline) > 1 || engine->model->weights[index].cut.count)
        return true;
    if (axis_of(engine, index, part)) return plan_sum_parts(&s->settings) > 1;
    return s->buffers[engine_part_buffer(s, segment, part)].bytes <
           values_bytes(engine, index, part, s->segment_elements[segment]);
}

static sifr_status copy_part(const sifr_engine *engine, size_t index, engine_part part,
                             int64_t first, int64_t count, float *out, sifr_error *error) {
    const float *values;
    BASE_TRY(engine_view_fp32(engine, index, part, first, count, out, &values, error));
    if (values != out) memcpy(out, values, (size_t)count * sizeof *out);
    return SIFR_OK;
}

/* The first elements of `at` … end - 1 of a logical weight that rank `rank` owns, and their place
 * in the local weight; none: false. */
static bool next_owned(const sifr_engine *engine, size_t index, engine_part part, int32_t rank,
                       int64_t at, int64_t end, model_stretch *out) {
    int64_t own, length;
    model_weight there = engine_weight_at(engine, index, rank);
    engine_share(engine, index, part, rank, &own, &length);
    for (; model_local_next(&there, at, end, out); at = out->at + out->count) {
        int64_t start = base_max_i64(out->place, own);
        int64_t stop = base_min_i64(out->place + out->count, own + length);
        if (stop <= start) continue;
        *out = (model_stretch){out->at + start - out->place, start, stop - start};
        return true;
    }
    return false;
}

/* What travels of a rank's elements at a time: one stretch, or several small ones packed. Of a
 * weight that tensor ranks cut by columns each row is a stretch. */
enum { PARCEL = 1 << 14 };

typedef struct state_parcel {
    int64_t from, to; /* of the logical weight: all that the rank owns in between */
    int64_t count;
    bool packed;
} state_parcel;

static bool next_parcel(const sifr_engine *engine, size_t index, engine_part part, int32_t rank,
                        int64_t at, int64_t end, state_parcel *out) {
    model_stretch s;
    int stretches = 0;
    *out = (state_parcel){0};
    for (; next_owned(engine, index, part, rank, at, end, &s); at = s.at + s.count) {
        if (stretches && out->count + s.count > PARCEL) break;
        if (!stretches++) out->from = s.at;
        out->to = s.at + s.count;
        out->count += s.count;
    }
    out->packed = stretches > 1;
    return stretches > 0;
}

/* Reads this rank's elements of a parcel, and puts them one behind the other. */
static sifr_status pack(const sifr_engine *engine, size_t index, engine_part part, int32_t rank,
                        const state_parcel *parcel, float *out, sifr_error *error) {
    model_stretch s;
    for (int64_t at = parcel->from; next_owned(engine, index, part, rank, at, parcel->to, &s);
         at = s.at + s.count) {
        BASE_TRY(copy_part(engine, index, part, s.place, s.count, out, error));
        out += s.count;
    }
    return SIFR_OK;
}

/* `out`: of the logical weight's elements from parcel->from on. */
static void unpack(const sifr_engine *engine, size_t index, engine_part part, int32_t rank,
                   const state_parcel *parcel, const float *values, float *out) {
    model_stretch s;
    for (int64_t at = parcel->from; next_owned(engine, index, part, rank, at, parcel->to, &s);
         at = s.at + s.count) {
        memcpy(out + (s.at - parcel->from), values, (size_t)s.count * sizeof *out);
        values += s.count;
    }
}

/* The owner of each parcel broadcasts it, so no rank needs more room than the range and a parcel. A
 * rank that cannot read its own still takes part, so that no rank waits for it. */
sifr_status engine_collect(const sifr_engine *engine, size_t index, engine_part part, int64_t first,
                           int64_t count, float *out, sifr_error *error) {
    base_assert(first >= 0 && count >= 0);
    if (!engine_is_cut(engine, index, part))
        return copy_part(engine, index, part, first, count, out, error);
    sifr_status status = SIFR_OK;
    float packed[PARCEL];
    state_parcel p;
    for (int32_t r = 0; r < comm_size(engine->group); r++) {
        for (int64_t at = first; next_parcel(engine, index, part, r, at, first + count, &p);
             at = p.to) {
            float *there = out + (p.from - first), *to = p.packed ? packed : there;
            bool own = r == comm_rank(engine->group) && status == SIFR_OK;
            if (own) status = pack(engine, index, part, r, &p, to, error);
            BASE_TRY(comm_broadcast(engine->group, r, to, p.count * (int64_t)sizeof *to,
                                    status == SIFR_OK ? error : NULL));
            if (p.packed) unpack(engine, index, part, r, &p, packed, there);
        }
    }
    return status;
}

/* Likewise, a rank that cannot read its parcel sends what is in its place. */
sifr_status engine_hand_in(const sifr_engine *engine, comm_group *peers, size_t index,
                           engine_part part, int64_t first, int64_t count, float *out,
                           sifr_error *error) {
    base_assert(engine_is_cut(engine, index, part));
    int32_t me = comm_rank(peers);
    sifr_status status = SIFR_OK;
    float packed[PARCEL];
    state_parcel p;
    for (int32_t r = 0; r < comm_size(peers); r++) {
        if (me != 0 && me != r) continue;
        for (int64_t at = first; next_parcel(engine, index, part, r, at, first + count, &p);
             at = p.to) {
            float *there = out + (p.from - first), *piece = p.packed ? packed : there;
            int64_t bytes = p.count * (int64_t)sizeof *piece;
            comm_handle handle;
            if (r == me && status == SIFR_OK)
                status = pack(engine, index, part, r, &p, piece, error);
            if (r > 0) { /* else it is there */
                sifr_error *told = status == SIFR_OK ? error : NULL;
                BASE_TRY(me ? comm_send(peers, 0, piece, bytes, &handle, told)
                            : comm_receive(peers, r, piece, bytes, &handle, told));
                BASE_TRY(comm_wait(handle, told));
            }
            if (p.packed && me == 0) unpack(engine, index, part, r, &p, packed, there);
        }
    }
    return status;
}
