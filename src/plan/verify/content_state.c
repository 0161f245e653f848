/* What a vector is and where it lies, what is expected of it, and what is there before and after a
 * step. */
#include "plan/verify/content_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/queries.h"
#include "plan/verify/verify_private.h"

/* --- what a vector is --- */

int64_t content_element_bytes(const content_state *c) {
    return base_dtype_bytes(plan_dtype(&c->s->settings));
}

int64_t content_sum_bytes(const content_state *c) {
    return plan_narrow_gradients(&c->s->settings) ? 2 : 4;
}

/* What is added up over one rank is added up over all of them. */
static uint8_t reach_of(const content_state *c, int32_t segment, plan_reach reach) {
    if (reach == PLAN_REACH_RANK && c->ranks == 1) reach = PLAN_REACH_COPY;
    if (reach == PLAN_REACH_COPY && c->replicas == 1) reach = PLAN_REACH_PART;
    if (reach == PLAN_REACH_PART && !c->s->model->segments[segment].partial) reach = PLAN_REACH_ALL;
    return (uint8_t)reach;
}

/* The vector of a segment, where its byte `position` lies at byte `at`. */
plan_content content_at(const content_state *c, plan_vector vector, int32_t segment,
                        int32_t version, int64_t at, int64_t position) {
    plan_content is = {.vector = (uint8_t)vector,
                       .reach = PLAN_REACH_ALL,
                       .size = 1,
                       .segment = segment,
                       .version = version,
                       .origin = at - position};
    if (vector == PLAN_VECTOR_PARAMETERS) is.size = (uint8_t)content_element_bytes(c);
    if (vector == PLAN_VECTOR_MASTERS || vector == PLAN_VECTOR_VALUES) is.size = 4;
    if (vector == PLAN_VECTOR_GRADIENT) is.size = (uint8_t)content_sum_bytes(c);
    return is;
}

plan_content content_gradient(const content_state *c, int32_t segment, plan_reach reach,
                              int64_t bytes, int64_t at, int64_t element) {
    plan_content is = content_at(c, PLAN_VECTOR_GRADIENT, segment, c->version, at, element * bytes);
    is.size = (uint8_t)bytes;
    is.reach = reach_of(c, segment, reach);
    return is;
}

plan_vector content_held_as(const content_state *c, int32_t segment) {
    return c->s->model->segments[segment].coding ? PLAN_VECTOR_CODES : PLAN_VECTOR_PARAMETERS;
}

/* Frozen weights stay as they are. */
int32_t content_version(const content_state *c, int32_t segment, int32_t version) {
    return c->s->model->segments[segment].frozen ? 0 : version;
}

plan_range content_range(const plan_access *a) {
    return (plan_range){a->offset, plan_access_end(a)};
}

enum { CONTENT_TEXT = 200 };

/* --- messages --- */

static const char *vector_name(uint8_t vector, char out[32]) {
    static const char *const names[] = {
        [PLAN_VECTOR_PARAMETERS] = "weights",        [PLAN_VECTOR_CODES] = "codes",
        [PLAN_VECTOR_MASTERS] = "master weights",    [PLAN_VECTOR_GRADIENT] = "gradient",
        [PLAN_VECTOR_VALUES] = "optimizer's values", [PLAN_VECTOR_SUMS] = "optimizer's sums",
        [PLAN_VECTOR_QUANTISED] = "8 bit codes",     [PLAN_VECTOR_SENT] = "gradient's codes",
        [PLAN_VECTOR_CAME] = "others' codes",        [PLAN_VECTOR_VALUE] = "value"};
    if (vector < PLAN_VECTOR_STATE0 || vector >= PLAN_VECTOR_GRADIENT) return names[vector];
    snprintf(out, 32, "state %d", vector - PLAN_VECTOR_STATE0);
    return out;
}

static const char *describe_value(const plan_content *is, char out[CONTENT_TEXT]) {
    if (is->reach != PLAN_REACH_RANK)
        snprintf(out, CONTENT_TEXT, "a value of all ranks of a span");
    else
        snprintf(out, CONTENT_TEXT, "a value of this rank alone, which %s read",
                 is->version == CONTENT_READ ? "a kernel has" : "nothing has");
    return out;
}

/* "elements 0 to 512 of the gradient of h.0 after 0 updates, of one rank"; `from` and `to` are
 * bytes of the buffer. */
static const char *describe(const content_state *c, const plan_content *is, int64_t from,
                            int64_t to, char out[CONTENT_TEXT]) {
    static const char *const reaches[] = {", of one rank", ", of one host", ", of one copy",
                                          ", of one tensor rank", ""};
    char vector[32];
    const sifr_model *model = c->s->model;
    if (is->vector == PLAN_VECTOR_VALUE) return describe_value(is, out);
    bool flat = is->size > 1 || is->vector == PLAN_VECTOR_MASTERS;
    snprintf(out, CONTENT_TEXT, "%s %lld to %lld of the %s of %s after %d updates%s",
             flat ? "elements" : "bytes", (long long)((from - is->origin) / is->size),
             (long long)((to - is->origin) / is->size), vector_name(is->vector, vector),
             model->units[model->segments[is->segment].unit].name, is->version, reaches[is->reach]);
    return out;
}

static sifr_status fail_content(const content_state *c, size_t index, const plan_access *a,
                                const plan_run *found, plan_range at, const plan_content *wanted,
                                sifr_error *error) {
    char name[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH], has[CONTENT_TEXT] = "unknown",
                                                               wants[CONTENT_TEXT];
    if (found) describe(c, &found->is, at.from, at.to, has);
    describe(c, wanted, at.from, at.to, wants);
    if (index == c->s->instruction_count)
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("at the end of the step %s has %s, not %s"),
                         verify_name_buffer(c->s, a->buffer, buffer), has, wants);
    return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s: %s of %s has %s, not %s"),
                     verify_name_instruction(c->s, index, name), plan_access_name(a),
                     verify_name_buffer(c->s, a->buffer, buffer), has, wants);
}

/* --- expecting and leaving --- */

/* All bytes of the range are `wanted`. */
sifr_status content_expect_range(const content_state *c, size_t index, const plan_access *a,
                                 plan_range range, const plan_content *wanted, sifr_error *error) {
    while (range.from < range.to) {
        const plan_run *run = plan_contents_find(&c->of[a->buffer], range.from);
        if (run && run->from > range.from) {
            range.to = base_min_i64(range.to, run->from);
            run = NULL;
        }
        plan_range piece = {range.from, run ? base_min_i64(range.to, run->to) : range.to};
        if (!run || !plan_content_equal(&run->is, wanted))
            return fail_content(c, index, a, run, piece, wanted, error);
        range.from = piece.to;
    }
    return SIFR_OK;
}

sifr_status content_expect(const content_state *c, size_t index, const plan_access *a,
                           const plan_content *wanted, sifr_error *error) {
    return content_expect_range(c, index, a, content_range(a), wanted, error);
}

/* Padding behind a segment's weights: updates by weight leave it as it began. */
static plan_content padding_of(const content_state *c, const plan_content *is) {
    plan_content padding = *is;
    if (plan_row(c->s, is->segment)->by_weight) padding.version = 0;
    return padding;
}

/* A range of a vector up to byte `end` of the buffer, and what is behind it. */
static sifr_status expect_both(const content_state *c, size_t index, const plan_access *a,
                               plan_range range, int64_t end, const plan_content *wanted,
                               sifr_error *error) {
    plan_content padding = padding_of(c, wanted);
    end = base_min_i64(base_max_i64(end, range.from), range.to);
    plan_range weights = {range.from, end}, behind = {end, range.to};
    BASE_TRY(content_expect_range(c, index, a, weights, wanted, error));
    return content_expect_range(c, index, a, behind, &padding, error);
}

static int64_t weights_end(const content_state *c, const plan_content *is) {
    const model_segment *segment = &c->s->model->segments[is->segment];
    return segment->coding ? INT64_MAX : is->origin + segment->elements * is->size;
}

sifr_status content_expect_weights(const content_state *c, size_t index, const plan_access *a,
                                   const plan_content *wanted, sifr_error *error) {
    return expect_both(c, index, a, content_range(a), weights_end(c, wanted), wanted, error);
}

sifr_status content_leave(const content_state *c, const plan_access *a, const plan_content *is,
                          sifr_error *error) {
    return plan_contents_put(&c->of[a->buffer], content_range(a), is, error);
}

sifr_status content_leave_weights(const content_state *c, const plan_access *a,
                                  const plan_content *is, sifr_error *error) {
    plan_content padding = padding_of(c, is);
    plan_range range = content_range(a), behind = range;
    behind.from = base_max_i64(weights_end(c, is), range.from);
    BASE_TRY(plan_contents_put(&c->of[a->buffer], range, is, error));
    return plan_contents_put(&c->of[a->buffer], behind, &padding, error);
}

plan_range content_axis_range(const content_state *c, int i, const model_weight *weight) {
    const optim_row *row = plan_row(c->s, weight->segment);
    int64_t from = optim_axis_place(row, i, c->s->model, weight->segment, weight->offset) *
                   (int64_t)sizeof(float);
    return (plan_range){from, from + optim_weight_values(row, i, weight) * (int64_t)sizeof(float)};
}

/* --- before and after a step --- */

/* A vector of a segment, of which a buffer holds `elements` from `first` on. */
typedef struct content_part {
    plan_vector vector;
    int32_t segment, buffer;
    int64_t from, bytes; /* of the vector */
    bool axis;           /* a state of rows or columns */
} content_part;

typedef sifr_status (*content_visit)(const content_state *c, const content_part *part,
                                     sifr_error *error);

static content_part part_of(plan_vector vector, int32_t segment, int32_t buffer, int64_t first,
                            int64_t elements, int64_t size) {
    return (content_part){.vector = vector,
                          .segment = segment,
                          .buffer = buffer,
                          .from = first * size,
                          .bytes = elements * size};
}

/* Parameters; cut at stage 3, unless they are small (pass_zero.c). */
static content_part parameters_of(const content_state *c, int32_t g, bool whole) {
    const plan_schedule *s = c->s;
    model_coding coding = s->model->segments[g].coding;
    int64_t elements = s->segment_elements[g] / (whole ? 1 : c->ranks);
    int64_t bytes = model_held_bytes(coding, elements, content_element_bytes(c));
    return part_of(content_held_as(c, g), g, s->parameters[g], whole ? 0 : c->rank * bytes, bytes,
                   1);
}

static sifr_status visit_states(const content_state *c, int32_t g, content_visit visit,
                                sifr_error *error) {
    const plan_schedule *s = c->s;
    bool cut = plan_cuts(&s->settings, PLAN_CUT_OPTIMIZER);
    int64_t elements = s->segment_elements[g] / plan_slices(&s->settings, PLAN_CUT_OPTIMIZER);
    int64_t first = cut ? c->rank * elements : 0;
    content_part masters =
        part_of(PLAN_VECTOR_MASTERS, g, s->masters[g], first, elements, (int64_t)sizeof(float));
    if (s->masters[g] >= 0) BASE_TRY(visit(c, &masters, error));
    for (int i = 0; i < OPTIM_STATES; i++) {
        if (s->states[i][g] < 0) continue;
        const optim_row *row = plan_row(s, g);
        int64_t size = base_dtype_bytes(plan_state_type(&s->settings, row, i));
        content_part axis = part_of(
            (plan_vector)(PLAN_VECTOR_STATE0 + i), g, s->states[i][g], 0,
            row->states[i].axis ? optim_axis_place(row, i, s->model, g, INT64_MAX) : 0, size);
        axis.axis = row->states[i].axis != OPTIM_ELEMENTS;
        if (axis.axis) BASE_TRY(visit(c, &axis, error));
        if (axis.axis) continue;
        content_part state =
            part_of((plan_vector)(PLAN_VECTOR_STATE0 + i), g, s->states[i][g],
                    optim_values(row, i, first), optim_values(row, i, elements), size);
        BASE_TRY(visit(c, &state, error));
    }
    return SIFR_OK;
}

static sifr_status visit_all(const content_state *c, content_visit visit, sifr_error *error) {
    const plan_schedule *s = c->s;
    int64_t capacity = s->settings.step.zero.model_persistence_threshold;
    for (int32_t g = 0; g < (int32_t)s->model->segment_count; g++) {
        bool whole =
            plan_slices(&s->settings, PLAN_CUT_WEIGHTS) == 1 || plan_persists(s, g, &capacity);
        if (s->segment_elements[g] == 0) continue;
        content_part parameters = parameters_of(c, g, whole);
        BASE_TRY(visit(c, &parameters, error));
        if (s->settings.mode == PLAN_TRAIN) BASE_TRY(visit_states(c, g, visit, error));
    }
    return SIFR_OK;
}

static plan_access access_of(const content_part *part) {
    return (plan_access){.buffer = part->buffer, .bytes = part->bytes, .rows = 1};
}

static sifr_status fill(const content_state *c, const content_part *part, sifr_error *error) {
    plan_access a = access_of(part);
    plan_content is = content_at(c, part->vector, part->segment, 0, 0, part->from);
    return content_leave(c, &a, &is, error);
}

/* Whether this rank owns an element of the weight, and so moves what the whole of it has. */
static bool is_part_owned(const content_state *c, const model_weight *weight) {
    if (!plan_cuts(&c->s->settings, PLAN_CUT_OPTIMIZER)) return true;
    int64_t slice = c->s->segment_elements[weight->segment] / c->ranks, first = c->rank * slice;
    return weight->offset < first + slice &&
           weight->offset + weight->rows * weight->columns > first;
}

/* The averages of rows or columns of each weight. */
static sifr_status check_axis(const content_state *c, const content_part *part, sifr_error *error) {
    const sifr_model *model = c->s->model;
    const model_unit *unit = &model->units[model->segments[part->segment].unit];
    plan_access a = access_of(part);
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->segment != part->segment) continue;
        plan_content is =
            content_at(c, part->vector, part->segment, is_part_owned(c, weight), 0, 0);
        plan_range range = content_axis_range(c, (int)(part->vector - PLAN_VECTOR_STATE0), weight);
        BASE_TRY(content_expect_range(c, c->s->instruction_count, &a, range, &is, error));
    }
    return SIFR_OK;
}

static sifr_status check_part(const content_state *c, const content_part *part, sifr_error *error) {
    const model_segment *segment = &c->s->model->segments[part->segment];
    plan_access a = access_of(part);
    plan_content is = content_at(c, part->vector, part->segment, 1, 0, part->from);
    if (segment->frozen) return SIFR_OK; /* nothing writes them */
    if (part->axis) return check_axis(c, part, error);
    int64_t end = segment->elements * is.size;
    bool state = part->vector >= PLAN_VECTOR_STATE0 && part->vector < PLAN_VECTOR_GRADIENT;
    if (state) {
        const optim_row *row = plan_row(c->s, part->segment);
        int i = (int)part->vector - PLAN_VECTOR_STATE0;
        end = optim_values(row, i, segment->elements) *
              base_dtype_bytes(plan_state_type(&c->s->settings, row, i));
    }
    return expect_both(c, c->s->instruction_count, &a, (plan_range){0, part->bytes},
                       end - part->from, &is, error);
}

sifr_status content_begin(content_state *c, sifr_error *error) {
    const plan_schedule *s = c->s;
    size_t segments = s->model->segment_count;
    const plan_mesh *mesh = &s->settings.mesh;
    c->ranks = plan_mesh_ranks(mesh, PLAN_STATE);
    c->rank = plan_mesh_place(mesh, PLAN_STATE);
    c->replicas = plan_mesh_ranks(mesh, PLAN_REPLICAS);
    BASE_TRY(base_alloc(s->buffer_count, sizeof *c->of, &c->of, error));
    BASE_TRY(base_alloc(s->buffer_count, sizeof *c->moved, &c->moved, error));
    BASE_TRY(base_alloc(segments, sizeof *c->before, &c->before, error));
    BASE_TRY(base_alloc(segments, sizeof *c->squares, &c->squares, error));
    for (size_t g = 1; g < segments; g++)
        c->before[g] = c->before[g - 1] + s->model->segments[g - 1].elements;
    return visit_all(c, fill, error);
}

sifr_status content_check_end(const content_state *c, sifr_error *error) {
    return c->s->settings.mode == PLAN_TRAIN ? visit_all(c, check_part, error) : SIFR_OK;
}

void content_end_step(content_state *c) {
    for (size_t b = 0; b < c->s->buffer_count; b++) {
        const plan_buffer *buffer = &c->s->buffers[b];
        if (buffer->first >= 0 && !verify_lives_on(buffer)) plan_contents_empty(&c->of[b]);
    }
}

void content_free(content_state *c) {
    for (size_t b = 0; c->of && b < c->s->buffer_count; b++) plan_contents_free(&c->of[b]);
    free(c->of);
    free(c->moved);
    free(c->before);
    free(c->squares);
}
