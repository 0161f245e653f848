/* The kernels of updates. */
#include "base/checked.h"
#include "plan/queries.h"
#include "plan/verify/content_state.h"

/* An update, and the elements of its segment that it moves. */
typedef struct content_update {
    size_t index;
    int32_t segment;
    const optim_row *row;
    const device_call *call;
    unsigned uses;
    int64_t first, elements;
} content_update;

static bool is_last_kernel(const content_update *u) {
    return u->call->kernel == u->row->kernel;
}

/* The weight of a segment that has this element; NULL: padding. */
static const model_weight *weight_with(const content_state *c, int32_t segment, int64_t element) {
    const sifr_model *model = c->s->model;
    const model_unit *unit = &model->units[model->segments[segment].unit];
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
        const model_weight *weight = &model->weights[w];
        int64_t end = weight->offset + weight->rows * weight->columns;
        if (weight->segment == segment && weight->offset <= element && element < end) return weight;
    }
    return NULL;
}

/* Values of each weight must have been made of the whole of it. */
static sifr_status expect_values(const content_state *c, const content_update *u,
                                 const plan_access *a, sifr_error *error) {
    const sifr_model *model = c->s->model;
    const model_unit *unit = &model->units[model->segments[u->segment].unit];
    plan_content is =
        content_at(c, PLAN_VECTOR_VALUES, u->segment, c->version, a->offset, u->first * 4);
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
        const model_weight *weight = &model->weights[w];
        int64_t from = base_max_i64(weight->offset, u->first);
        int64_t to =
            base_min_i64(weight->offset + weight->rows * weight->columns, u->first + u->elements);
        if (weight->segment != u->segment) continue;
        plan_range range = {is.origin + from * 4, is.origin + to * 4};
        BASE_TRY(content_expect_range(c, u->index, a, range, &is, error));
    }
    return SIFR_OK;
}

static plan_content values_of(const content_state *c, size_t index, plan_reach reach) {
    plan_content is =
        content_at(c, PLAN_VECTOR_VALUES, c->s->instructions[index].segment, c->version, 0, 0);
    is.reach = (uint8_t)reach;
    return is;
}

sifr_status content_take_values(const content_state *c, size_t index, const plan_access *y,
                                sifr_error *error) {
    plan_content before = values_of(c, index, PLAN_REACH_RANK);
    plan_content is = values_of(c, index, PLAN_REACH_ALL);
    for (int64_t r = 0; r < y->rows; r++) { /* blocks may lie side by side */
        plan_access row = *y;
        row.offset += r * y->pitch;
        row.rows = 1;
        BASE_TRY(content_expect(c, index, &row, &before, error));
        BASE_TRY(content_leave(c, &row, &is, error));
    }
    return SIFR_OK;
}

sifr_status content_gather_parts(const content_state *c, size_t index, const plan_access *x,
                                 sifr_error *error) {
    plan_content is = values_of(c, index, PLAN_REACH_RANK),
                 all = values_of(c, index, PLAN_REACH_ALL);
    int64_t size = (int64_t)sizeof(float);
    const model_weight *w = weight_with(c, c->s->instructions[index].segment, x->offset / size);
    BASE_TRY(content_expect(c, index, x, &is, error));
    int64_t end = w ? w->rows * w->columns : 0;
    for (int64_t at = 0; at < end;) { /* what stands for none of the logical weight stays zero */
        model_stretch s = model_logical_at(w, at, end);
        plan_access none = *x;
        at += s.count;
        none.offset += s.place * size;
        none.bytes = s.count * size;
        if (s.at < 0) BASE_TRY(content_leave(c, &none, &all, error));
    }
    return SIFR_OK;
}

/* The kernel between the two: the values of a whole weight, in place. Where tensor ranks have parts
 * of it, only those of the logical weight are, from which this rank takes its own. */
static sifr_status change_values(const content_state *c, size_t index, const plan_access *y,
                                 sifr_error *error) {
    bool parts = plan_sum_tensors(c->s, c->s->instructions[index].segment) > 1;
    return parts ? SIFR_OK : content_take_values(c, index, y, error);
}

static sifr_status expect_gradient(const content_state *c, const content_update *u,
                                   const plan_access *a, int64_t first, sifr_error *error) {
    plan_content wanted =
        content_gradient(c, u->segment, PLAN_REACH_ALL, content_sum_bytes(c), a->offset, first);
    return content_expect(c, u->index, a, &wanted, error);
}

/* The parts of all ranks, which lie one behind the other in the vector as in the buffer. */
static sifr_status expect_sums(const content_state *c, const content_update *u,
                               const plan_access *a, sifr_error *error) {
    plan_content wanted = content_at(c, PLAN_VECTOR_SUMS, u->segment, c->version, 0, 0);
    for (int64_t r = 0; r < a->rows; r++) {
        int64_t from = a->offset + r * a->pitch;
        plan_range range = {from, from + a->bytes};
        BASE_TRY(content_expect_range(c, u->index, a, range, &wanted, error));
    }
    return SIFR_OK;
}

static sifr_status read_input(const content_state *c, const content_update *u, const plan_access *a,
                              sifr_error *error) {
    if (a->role == PLAN_X1) return expect_sums(c, u, a, error);
    if (a->role == PLAN_X2) { /* the gradient of the whole weight */
        const model_weight *weight = weight_with(c, u->segment, u->first);
        return expect_gradient(c, u, a, weight ? weight->offset : 0, error);
    }
    if (!(u->uses & DEVICE_READS_GRADIENT)) return SIFR_OK;
    if (u->row->reads_whole && is_last_kernel(u)) return expect_values(c, u, a, error);
    return expect_gradient(c, u, a, u->first, error);
}

static sifr_status move_weights(const content_state *c, const content_update *u,
                                const plan_access *a, sifr_error *error) {
    bool masters = a->role == PLAN_W0 && c->s->masters[u->segment] >= 0;
    int64_t size = masters ? 4 : content_element_bytes(c);
    plan_content is = content_at(c, masters ? PLAN_VECTOR_MASTERS : PLAN_VECTOR_PARAMETERS,
                                 u->segment, c->version, a->offset, u->first * size);
    if (a->role == PLAN_W0 && u->uses & DEVICE_READS_WEIGHTS)
        BASE_TRY(content_expect(c, u->index, a, &is, error));
    if (!(u->uses & DEVICE_CHANGES_WEIGHTS)) return SIFR_OK;
    is.version++;
    return content_leave(c, a, &is, error);
}

/* The averages of rows or columns of the whole weight of which the update has a part. */
static sifr_status move_axis(const content_state *c, const content_update *u, const plan_access *a,
                             int i, bool changes, sifr_error *error) {
    const model_weight *weight = weight_with(c, u->segment, u->first);
    plan_content is = content_at(c, (plan_vector)(PLAN_VECTOR_STATE0 + i), u->segment,
                                 c->version + !changes, 0, 0);
    if (!weight) return SIFR_OK; /* padding: it moves none */
    plan_range own = content_axis_range(c, i, weight);
    is.origin = a->offset - own.from;
    BASE_TRY(content_expect(c, u->index, a, &is, error));
    if (!changes) return SIFR_OK;
    is.version++;
    return content_leave(c, a, &is, error);
}

/* A state that this kernel only reads was moved by the one before. */
static sifr_status move_state(const content_state *c, const content_update *u, const plan_access *a,
                              sifr_error *error) {
    int i = (int)a->role - (int)PLAN_SAVED0, own = device_update_states(u->call->kernel);
    bool changes = i >= own || u->uses & DEVICE_CHANGES_STATES;
    if (u->row->reads_whole && is_last_kernel(u)) i += device_update_states(u->row->begin);
    if (u->row->states[i].axis) return move_axis(c, u, a, i, changes, error);
    int64_t size = base_dtype_bytes(plan_state_type(&c->s->settings, u->row, i));
    plan_content is =
        content_at(c, (plan_vector)(PLAN_VECTOR_STATE0 + i), u->segment, c->version + !changes,
                   a->offset, optim_values(u->row, i, u->first) * size);
    BASE_TRY(content_expect(c, u->index, a, &is, error));
    if (!changes) return SIFR_OK;
    is.version++;
    return content_leave(c, a, &is, error);
}

/* What the first of two kernels leaves to the second. */
static sifr_status begin_update(const content_state *c, const content_update *u,
                                const plan_access *y, sifr_error *error) {
    plan_content is = content_at(c, PLAN_VECTOR_SUMS, u->segment, c->version, 0, 0);
    if (!u->row->reads_whole) return content_expect(c, u->index, y, &is, error);
    is = content_at(c, PLAN_VECTOR_VALUES, u->segment, c->version, y->offset, u->first * 4);
    is.reach = PLAN_REACH_RANK;
    return content_leave(c, y, &is, error);
}

sifr_status content_run_update(const content_state *c, size_t index, const plan_access *accesses,
                               int count, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    const device_call *call = &c->s->calls[in->call];
    content_update u = {.index = index,
                        .segment = in->segment,
                        .row = plan_row(c->s, in->segment),
                        .call = call,
                        .first = in->element - c->before[in->segment],
                        .elements = call->x[0].columns};
    if (u.row->reads_whole && call->kernel == u.row->whole)
        return change_values(c, index, &accesses[0], error);
    u.uses = device_update_uses(call->kernel);
    for (int i = 0; i < count; i++) {
        const plan_access *a = &accesses[i];
        if (a->role <= PLAN_X2)
            BASE_TRY(read_input(c, &u, a, error));
        else if (a->role == PLAN_W0 || a->role == PLAN_W1)
            BASE_TRY(move_weights(c, &u, a, error));
        else if (a->role == PLAN_Y)
            BASE_TRY(begin_update(c, &u, a, error));
        else if (a->role >= PLAN_SAVED0 && a->role <= PLAN_SAVED3)
            BASE_TRY(move_state(c, &u, a, error));
    }
    return SIFR_OK;
}
