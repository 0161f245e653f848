/* A version is the number of updates before it. Init gives all weights and states version 0, an
 * update of version v makes v + 1, a gradient has that of its weights. Gathers, reductions,
 * transfers and conversions carry a version on. So a gather that is missing after an update, one
 * from another's place, a reduction of another slice or an update that is left out leave an old
 * version, or another part of the vector, where the list reads the new one.
 *
 * Where an update is deferred, the list runs twice, like in order_check.c. Of states that a whole
 * weight has in common (optim_state.axis) a rank moves those of the weights of which it owns
 * elements, and leaves the others. Padding behind a segment's weights goes with them, but where
 * updates go weight by weight: there it stays as it began. */
#include "plan/verify/content_check.h"

#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/verify/access.h"
#include "plan/verify/content_state.h"
#include "plan/verify/verify_private.h"

/* --- kernels of the passes --- */

static const model_weight *weight_of(const content_state *c, const plan_instruction *in,
                                     int which) {
    int32_t weight = in->node < 0 ? -1 : c->s->model->nodes[in->node].w[which];
    return weight < 0 ? NULL : &c->s->model->weights[weight];
}

static sifr_status use_weight(const content_state *c, size_t index, const plan_access *a,
                              const model_weight *weight, sifr_error *error) {
    plan_content wanted = content_at(c, PLAN_VECTOR_PARAMETERS, weight->segment,
                                     content_version(c, weight->segment, c->step), a->offset,
                                     weight->offset * content_element_bytes(c));
    return content_expect(c, index, a, &wanted, error);
}

static sifr_status make_gradient(const content_state *c, size_t index, const plan_access *a,
                                 const model_weight *weight, sifr_error *error) {
    plan_content is =
        content_gradient(c, weight->segment, PLAN_REACH_RANK, 4, a->offset, weight->offset);
    if (a->reads) BASE_TRY(content_expect(c, index, a, &is, error));
    return content_leave(c, a, &is, error);
}

static sifr_status run_kernel(const content_state *c, size_t index, const plan_access *accesses,
                              int count, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    for (int i = 0; i < count; i++) {
        const plan_access *a = &accesses[i];
        bool uses = a->role == PLAN_W0 || a->role == PLAN_W1;
        bool makes = a->role == PLAN_DW0 || a->role == PLAN_DW1;
        if (!uses && !makes) continue;
        if (c->s->buffers[a->buffer].class == PLAN_CACHE) continue;
        const model_weight *weight =
            weight_of(c, in, (int)a->role - (int)(uses ? PLAN_W0 : PLAN_DW0));
        if (!weight) continue;
        if (uses)
            BASE_TRY(use_weight(c, index, a, weight, error));
        else
            BASE_TRY(make_gradient(c, index, a, weight, error));
    }
    return SIFR_OK;
}

/* Codes that a gather carries, of this rank's slice. */
static sifr_status run_encode(const content_state *c, size_t index, const plan_access *x,
                              const plan_access *y, sifr_error *error) {
    if (c->s->calls[c->s->instructions[index].call].kernel == DEVICE_ENCODE_BLOCKS4)
        return content_run_encode_sums(c, index, x, y, error);
    int32_t g = c->s->buffers[y->buffer].segment, version = content_version(c, g, c->step);
    int64_t slice = c->s->segment_elements[g] / c->ranks * content_element_bytes(c);
    plan_content wanted =
        content_at(c, PLAN_VECTOR_PARAMETERS, g, version, x->offset, c->rank * slice);
    BASE_TRY(content_expect_weights(c, index, x, &wanted, error));
    plan_content is =
        content_at(c, PLAN_VECTOR_QUANTISED, g, version, y->offset, c->rank * y->bytes);
    return content_leave(c, y, &is, error);
}

static sifr_status run_quantised(const content_state *c, size_t index, const plan_access *codes,
                                 const plan_access *values, sifr_error *error) {
    int32_t g = c->s->buffers[values->buffer].segment, version = content_version(c, g, c->step);
    plan_content wanted = content_at(c, PLAN_VECTOR_QUANTISED, g, version, codes->offset, 0);
    BASE_TRY(content_expect(c, index, codes, &wanted, error));
    plan_content is = content_at(c, PLAN_VECTOR_PARAMETERS, g, version, values->offset, 0);
    return content_leave(c, values, &is, error);
}

/* The segment of what is decoded is that of its codes. */
static sifr_status run_decode(const content_state *c, size_t index, const plan_access *accesses,
                              sifr_error *error) {
    const plan_access *codes = &accesses[0], *values = &accesses[1];
    device_kernel kernel = c->s->calls[c->s->instructions[index].call].kernel;
    if (kernel == DEVICE_SUM_BLOCKS4) return content_run_sum_codes(c, index, codes, values, error);
    bool came = c->s->buffers[values->buffer].segment >= 0; /* else they are held */
    if (came) return run_quantised(c, index, codes, values, error);
    const plan_run *run = plan_contents_find(&c->of[codes->buffer], codes->offset);
    int32_t segment = run ? run->is.segment : 0;
    plan_content wanted = content_at(c, PLAN_VECTOR_CODES, segment, 0, codes->offset, 0);
    BASE_TRY(content_expect(c, index, codes, &wanted, error));
    plan_content is = content_at(c, PLAN_VECTOR_PARAMETERS, segment, 0, values->offset, 0);
    return content_leave(c, values, &is, error);
}

/* A second copy has what was gathered, from where this rank's part begins. */
static sifr_status run_keep(const content_state *c, size_t index, const plan_access *x,
                            const plan_access *y, sifr_error *error) {
    int32_t g = c->s->buffers[x->buffer].segment;
    plan_vector vector = plan_quantises(c->s, g) ? PLAN_VECTOR_QUANTISED : content_held_as(c, g);
    plan_content wanted = content_at(c, vector, g, content_version(c, g, c->step), 0, 0);
    bool codes = vector != PLAN_VECTOR_PARAMETERS;
    BASE_TRY(codes ? content_expect(c, index, x, &wanted, error)
                   : content_expect_weights(c, index, x, &wanted, error));
    wanted.origin = y->offset - x->offset;
    return codes ? content_leave(c, y, &wanted, error)
                 : content_leave_weights(c, y, &wanted, error);
}

/* --- sums of gradients --- */

static sifr_status run_clear(const content_state *c, const plan_access *y, sifr_error *error) {
    int32_t segment = c->s->buffers[y->buffer].segment;
    plan_content is = content_gradient(c, segment, PLAN_REACH_RANK, 4, y->offset, y->offset / 4);
    if (y->buffer == c->s->weight_sums[segment])
        is = content_at(c, PLAN_VECTOR_SUMS, segment, c->version, 0, 0);
    return content_leave(c, y, &is, error);
}

/* y += x0, of the same elements. */
static sifr_status run_sum(const content_state *c, size_t index, const plan_access *x,
                           const plan_access *y, sifr_error *error) {
    const plan_run *run = plan_contents_find(&c->of[y->buffer], y->offset);
    plan_content wanted =
        run ? run->is
            : content_gradient(c, c->s->buffers[y->buffer].segment, PLAN_REACH_RANK,
                               content_sum_bytes(c), y->offset, 0);
    BASE_TRY(content_expect(c, index, y, &wanted, error));
    wanted.origin += x->offset - y->offset;
    return content_expect(c, index, x, &wanted, error);
}

static sifr_status run_convert(const content_state *c, size_t index, const plan_access *x,
                               const plan_access *y, sifr_error *error) {
    const plan_run *run = plan_contents_find(&c->of[x->buffer], x->offset);
    int64_t size = base_dtype_bytes(c->s->calls[c->s->instructions[index].call].y.dtype);
    plan_content wanted = run ? run->is
                              : content_gradient(c, c->s->buffers[y->buffer].segment,
                                                 PLAN_REACH_RANK, 4, x->offset, 0);
    BASE_TRY(content_expect(c, index, x, &wanted, error));
    int64_t element = (x->offset - wanted.origin) / wanted.size;
    wanted.size = (uint8_t)size;
    wanted.origin = y->offset - element * size;
    return content_leave(c, y, &wanted, error);
}

static sifr_status run_add(const content_state *c, size_t index, const plan_access *accesses,
                           int count, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    const plan_access *y = &accesses[count - 1];
    const plan_buffer *sum = &c->s->buffers[y->buffer];
    bool flat = sum->class == PLAN_GRADIENTS || sum->class == PLAN_MOMENTS;
    if (sum->segment >= 0 && y->buffer == c->s->whole_values[sum->segment])
        return content_take_values(c, index, y, error);
    if (in->call < 0 || !flat || sum->segment < 0) return SIFR_OK;
    device_kernel kernel = c->s->calls[in->call].kernel;
    if (kernel == DEVICE_CLEAR) return run_clear(c, y, error);
    if (kernel == DEVICE_CONVERT) return run_convert(c, index, &accesses[0], y, error);
    return run_sum(c, index, &accesses[0], y, error);
}

static sifr_status run_squares(content_state *c, size_t index, const plan_access *x,
                               sifr_error *error) {
    int32_t segment = c->s->instructions[index].segment;
    int64_t slice = c->s->segment_elements[segment] / c->ranks;
    plan_content wanted = content_gradient(c, segment, PLAN_REACH_ALL, content_sum_bytes(c),
                                           x->offset, c->rank * slice + c->squares[segment]);
    c->squares[segment] += x->bytes / content_sum_bytes(c);
    return content_expect(c, index, x, &wanted, error);
}

static bool is_owned(const content_state *c, size_t segment) {
    const model_segment *of = &c->s->model->segments[segment];
    return !of->frozen && plan_has_unit(&c->s->settings.pipeline, of->unit) &&
           plan_counts_segment(c->s, (int32_t)segment);
}

/* All squares of this rank's slices are in the norm, once. */
static sifr_status run_norm(content_state *c, size_t index, sifr_error *error) {
    char name[VERIFY_NAME_LENGTH];
    const sifr_model *model = c->s->model;
    for (size_t g = 0; g < model->segment_count; g++) {
        int64_t squares = c->squares[g], wanted = c->s->segment_elements[g] / c->ranks;
        c->squares[g] = 0;
        if (!is_owned(c, g) || squares == wanted) continue;
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("%s has the squares of %lld of %lld elements of %s"),
                         verify_name_instruction(c->s, index, name), (long long)squares,
                         (long long)wanted, model->units[model->segments[g].unit].name);
    }
    return SIFR_OK;
}

/* --- exchange --- */

/* Where the part of the first rank of a span begins in its vector; counted in elements. */
static int64_t span_begin(const content_state *c, const plan_instruction *in) {
    if (in->span == PLAN_STATE) return 0;
    return c->rank * (c->s->segment_elements[in->segment] / c->ranks);
}

/* How far a gradient is added up that a gather carries: where an update reads all of it, tensor
 * ranks' parts are in it; else they are added up behind it. */
static plan_reach gathered_reach(const content_state *c, const plan_instruction *in) {
    bool whole = in->span == PLAN_STATE && plan_cuts(&c->s->settings, PLAN_CUT_OPTIMIZER);
    return whole ? PLAN_REACH_ALL : PLAN_REACH_PART;
}

/* What a gather carries, seen from where it goes. */
static plan_content gathered(const content_state *c, const plan_instruction *in,
                             const plan_access *y) {
    const plan_schedule *s = c->s;
    int32_t g = in->segment;
    const plan_buffer *to = &s->buffers[y->buffer];
    if (y->buffer == s->weight_sums[g]) /* each rank's at its place in the buffer */
        return content_at(c, PLAN_VECTOR_SUMS, g, c->version, 0, 0);
    if (y->buffer == s->whole_values[g]) {
        plan_content is = content_at(c, PLAN_VECTOR_VALUES, g, c->version, y->offset, 0);
        is.reach = PLAN_REACH_RANK;
        return is;
    }
    if (to->class == PLAN_GRADIENTS)
        return content_gradient(c, g, gathered_reach(c, in), content_sum_bytes(c), y->offset,
                                span_begin(c, in));
    int32_t version = to->class == PLAN_GATHERED ? c->step : c->version + 1;
    plan_vector vector =
        in->encoding == PLAN_CODE_BLOCKS8 ? PLAN_VECTOR_QUANTISED : content_held_as(c, g);
    return content_at(c, vector, g, content_version(c, g, version), y->offset, 0);
}

static sifr_status run_gather(const content_state *c, size_t index, const plan_access *x,
                              const plan_access *y, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    int64_t place = plan_mesh_place(&c->s->settings.mesh, (plan_span)in->span);
    if (x->buffer == c->s->whole_values[in->segment] && y->buffer != x->buffer)
        return content_gather_parts(c, index, x, error);
    plan_content is = gathered(c, in, y), part = is;
    part.origin = x->offset - place * in->bytes - (y->offset - is.origin);
    if (is.vector != PLAN_VECTOR_PARAMETERS) {
        BASE_TRY(content_expect(c, index, x, &part, error));
        return content_leave(c, y, &is, error);
    }
    BASE_TRY(content_expect_weights(c, index, x, &part, error));
    return content_leave_weights(c, y, &is, error);
}

static sifr_status run_reduce(const content_state *c, size_t index, const plan_access *x,
                              const plan_access *y, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    int64_t place = plan_mesh_place(&c->s->settings.mesh, (plan_span)in->span);
    bool within = in->span == PLAN_STATE;
    plan_code code = (plan_code)in->encoding;
    int64_t size = plan_encoding_of(code)->bytes;
    int64_t first = span_begin(c, in), elements = plan_encoded_values(code, in->bytes);
    plan_content whole = content_gradient(
        c, in->segment, within ? PLAN_REACH_RANK : PLAN_REACH_COPY, size, x->offset, first);
    plan_content sum = content_gradient(c, in->segment, within ? PLAN_REACH_COPY : PLAN_REACH_PART,
                                        base_dtype_bytes((base_dtype)in->sum), y->offset,
                                        first + place * elements);
    BASE_TRY(content_expect(c, index, x, &whole, error));
    return content_leave(c, y, &sum, error);
}

/* Parts of tensor ranks, of the slice that this rank updates, or at stage 0 of all of it. */
static sifr_status run_parts(const content_state *c, size_t index, const plan_access *x,
                             const plan_access *y, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    int64_t slices = plan_slices(&c->s->settings, PLAN_CUT_OPTIMIZER);
    int64_t elements = c->s->segment_elements[in->segment] / slices;
    int64_t first = slices > 1 ? c->rank * elements : 0;
    plan_content part =
        content_gradient(c, in->segment, PLAN_REACH_PART, content_sum_bytes(c), x->offset, first);
    plan_content whole =
        content_gradient(c, in->segment, PLAN_REACH_ALL, content_sum_bytes(c), y->offset, first);
    BASE_TRY(content_expect(c, index, x, &part, error));
    return content_leave(c, y, &whole, error);
}

/* Of a tied weight: all of it, or this rank's slice. */
static plan_content peer_content(const content_state *c, const plan_instruction *in,
                                 const plan_access *a) {
    int32_t g = in->segment;
    bool sums = in->stream % PLAN_STREAMS == PLAN_STREAM_SUMS;
    int64_t size = sums ? content_sum_bytes(c) : content_element_bytes(c),
            elements = in->bytes / size;
    bool cut = elements * c->ranks == c->s->segment_elements[g];
    int64_t first = cut ? c->rank * elements : 0;
    if (sums) return content_gradient(c, g, PLAN_REACH_PART, size, a->offset, first);
    return content_at(c, PLAN_VECTOR_PARAMETERS, g, c->version + 1, a->offset, first * size);
}

static sifr_status run_peer(const content_state *c, size_t index, const plan_access *a,
                            sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    int kind = in->stream % PLAN_STREAMS;
    if (kind != PLAN_STREAM_SUMS && kind != PLAN_STREAM_WEIGHTS) return SIFR_OK;
    plan_content is = peer_content(c, in, a);
    bool weights = kind == PLAN_STREAM_WEIGHTS;
    if (in->action == PLAN_RECEIVE)
        return weights ? content_leave_weights(c, a, &is, error) : content_leave(c, a, &is, error);
    if (weights) return content_expect_weights(c, index, a, &is, error);
    return content_expect(c, index, a, &is, error);
}

static sifr_status run_move(const content_state *c, const plan_access *x, const plan_access *y,
                            sifr_error *error) {
    return plan_contents_copy(&c->of[x->buffer], content_range(x), &c->of[y->buffer], y->offset,
                              error);
}

/* --- a step --- */

static sifr_status run_instruction(content_state *c, size_t index, sifr_error *error) {
    const plan_instruction *in = &c->s->instructions[index];
    plan_access a[PLAN_ACCESSES];
    int count = plan_accesses(c->s, in, a);
    c->version = c->step - in->deferred;
    if (in->action == PLAN_COMPRESS) return content_run_compress(c, index, a, count, error);
    if (in->call >= 0) BASE_TRY(content_use_values(c, a, count, error));
    if (plan_is_collective(in) && in->segment < 0)
        return content_move_values(c, index, a, count, error);
    switch ((plan_action)in->action) {
    case PLAN_FORWARD:
    case PLAN_RECOMPUTE:
    case PLAN_BACKWARD:
        return run_kernel(c, index, a, count, error);
    case PLAN_DECODE:
        return run_decode(c, index, a, error);
    case PLAN_ENCODE:
        return run_encode(c, index, &a[0], &a[1], error);
    case PLAN_KEEP:
        return run_keep(c, index, &a[0], &a[1], error);
    case PLAN_ADD:
        return run_add(c, index, a, count, error);
    case PLAN_SQUARES:
        return run_squares(c, index, &a[0], error);
    case PLAN_NORM:
        return run_norm(c, index, error);
    case PLAN_UPDATE:
        return content_run_update(c, index, a, count, error);
    case PLAN_GATHER:
        return run_gather(c, index, &a[0], &a[1], error);
    case PLAN_SUM:
        return run_parts(c, index, &a[0], &a[1], error);
    case PLAN_REDUCE:
        return run_reduce(c, index, &a[0], &a[1], error);
    case PLAN_EXCHANGE:
        return content_run_exchange_sums(c, index, error);
    case PLAN_READ:
    case PLAN_WRITE:
        return run_move(c, &a[0], &a[1], error);
    case PLAN_SEND:
    case PLAN_RECEIVE:
        return run_peer(c, index, &a[0], error);
    default:
        return SIFR_OK;
    }
}

static sifr_status run_step(content_state *c, bool deferred, sifr_error *error) {
    for (size_t i = 0; i < c->s->instruction_count; i++) {
        if (c->s->instructions[i].deferred && !deferred) continue;
        if (!plan_runs(c->s, &c->s->instructions[i])) continue;
        BASE_TRY(run_instruction(c, i, error));
    }
    return SIFR_OK;
}

static sifr_status run(content_state *c, sifr_error *error) {
    BASE_TRY(content_begin(c, error));
    content_find_values(c);
    BASE_TRY(run_step(c, false, error));
    if (c->s->spread > 0) {
        content_end_step(c);
        c->step = 1;
        BASE_TRY(run_step(c, true, error));
    }
    return content_check_end(c, error);
}

sifr_status plan_check_content(const plan_schedule *s, sifr_error *error) {
    content_state c = {.s = s};
    sifr_status status = run(&c, error);
    content_free(&c);
    return status;
}
