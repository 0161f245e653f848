/* Context ranks: this rank's part of a model, and the exchanges before and behind attention. Their
 * start is lowered alone: pass_overlap.c waits for it before what it brings is used.
 *
 * A rank has a run of each sequence's rows, with all columns, or two (plan_runs_of_tokens). Of
 * attention it has all rows, with a run of columns; where there are more ranks than kv heads,
 * neighbours have the same run of keys and values, and each a part of their gradients. A part that
 * one rank sends to another is a run of both, rows and columns, and travels with its rows end to
 * end. Where keys and values are gathered as well, neighbours alone exchange, and have all rows of
 * these. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/errors.h"
#include "base/heap.h"
#include "model/context.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

int64_t lower_first_token(const lower_state *state) {
    const plan_settings *settings = &state->s->settings;
    return plan_mesh_place(&settings->mesh, PLAN_CONTEXTS) * plan_run_length(settings);
}

/* --- the exchange --- */

typedef struct lower_parts {
    int32_t node, ranks; /* that exchange, beside each other */
    plan_action action;
    int64_t sequences, run;  /* rows of a sequence that a rank has */
    int32_t runs;            /* that these are: 1 or 2 */
    int64_t columns, length; /* of a part: columns, and values of a sequence */
    int64_t blocks;          /* runs of columns that all columns have */
    int64_t bytes;           /* of a part */
} lower_parts;

static lower_parts parts_of(const lower_state *state, int32_t node, plan_action action, int64_t all,
                            int64_t columns) {
    const plan_settings *settings = &state->s->settings;
    lower_parts p = {.node = node,
                     .ranks =
                         model_context_heads_of(plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS),
                                                &state->model->nodes[node].attributes.attention),
                     .action = action,
                     .sequences = settings->step.micro_batch_size,
                     .run = plan_run_length(settings),
                     .runs = plan_runs_of_tokens(settings).count};
    p.columns = columns;
    p.blocks = all / columns;
    base_assert(all % columns == 0 && p.blocks <= p.ranks);
    p.length = p.run * p.columns;
    p.bytes = p.sequences * p.length * state->element;
    return p;
}

/* The run of columns that a rank has. */
static int64_t block_of(const lower_parts *p, int32_t index) {
    return index * p->blocks / p->ranks;
}

/* Part `index` where parts lie end to end. */
static lower_operand packed_part(const lower_parts *p, const lower_operand *all, int32_t index) {
    lower_operand part = *all;
    part.offset += index * p->bytes;
    part.matrix = lower_matrix(p->sequences * p->run, p->columns, all->matrix.dtype);
    return part;
}

/* Of all columns of a rank's rows. */
static lower_operand columns_of(const lower_state *state, const lower_parts *p,
                                const lower_operand *all, int32_t index) {
    lower_operand part = *all;
    part.offset += block_of(p, index) * p->columns * state->element;
    part.matrix.columns = p->columns;
    return part;
}

/* `length` values of each sequence, from `first` on, of rows that lie end to end. */
static lower_operand values_of(const lower_state *state, const lower_parts *p,
                               const lower_operand *rows, int64_t first, int64_t length,
                               int64_t stride) {
    lower_operand part = {.buffer = rows->buffer,
                          .offset = rows->offset + first * state->element,
                          .matrix = lower_matrix(p->sequences, length, rows->matrix.dtype)};
    part.matrix.stride = stride;
    return part;
}

static sifr_status copy(lower_state *state, const lower_parts *p, device_kernel kernel,
                        const lower_operand *x, const lower_operand *y, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = kernel;
    BASE_TRY(lower_put(state, &call, PLAN_X0, *x, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *y, error));
    return lower_emit(state, p->action, state->model->nodes[p->node].unit, p->node, &call, NULL,
                      false, error);
}

/* Between the rows that a rank has and their places among those of all. */
static sifr_status copy_runs(lower_state *state, const lower_parts *p, int32_t index,
                             const lower_operand *all, const lower_operand *part, bool pack,
                             sifr_error *error) {
    int64_t length = p->length / p->runs;
    base_assert(all->matrix.stride == p->columns);
    for (int32_t run = 0; run < p->runs; run++) { /* of two, the second ones lie the other way */
        int64_t place = run ? 2 * p->ranks - 1 - index : index;
        lower_operand there =
            values_of(state, p, all, place * length, length, p->length * p->ranks);
        lower_operand packed = values_of(state, p, part, run * length, length, p->length);
        BASE_TRY(copy(state, p, DEVICE_CONVERT, pack ? &there : &packed, pack ? &packed : &there,
                      error));
    }
    return SIFR_OK;
}

/* Between a value and its parts end to end. Parts of the same columns are added up. */
static sifr_status copy_parts(lower_state *state, const lower_parts *p, const lower_operand *value,
                              bool of_columns, const lower_operand *packed, bool pack,
                              sifr_error *error) {
    for (int32_t i = 0; i < p->ranks; i++) {
        lower_operand part = packed_part(p, packed, i), columns = columns_of(state, p, value, i);
        bool more = !pack && i > 0 && block_of(p, i) == block_of(p, i - 1);
        if (of_columns)
            BASE_TRY(copy(state, p, more ? DEVICE_ACCUMULATE : DEVICE_CONVERT,
                          pack ? &columns : &part, pack ? &part : &columns, error));
        else
            BASE_TRY(copy_runs(state, p, i, value, &part, pack, error));
    }
    return SIFR_OK;
}

/* Room for all parts of `like`. */
static sifr_status add_room(lower_state *state, const lower_parts *p, const lower_operand *like,
                            lower_operand *out, sifr_error *error) {
    *out = (lower_operand){.matrix = {.dtype = like->matrix.dtype}};
    return plan_add_buffer(state->s, PLAN_ACTIVATIONS, p->ranks * p->bytes,
                           state->model->nodes[p->node].unit, state->model->nodes[p->node].y, false,
                           &out->buffer, error);
}

static sifr_status start(lower_state *state, const lower_parts *p, const lower_operand *x,
                         const lower_operand *y, sifr_error *error) {
    comm_run *runs;
    const plan_mesh *mesh = &state->s->settings.mesh;
    int32_t all = plan_mesh_ranks(mesh, PLAN_CONTEXTS);
    int32_t first = plan_mesh_place(mesh, PLAN_CONTEXTS) / p->ranks * p->ranks;
    BASE_TRY(base_alloc((size_t)all, sizeof *runs, &runs, error)); /* nothing, but of neighbours */
    for (int32_t i = 0; i < p->ranks; i++) runs[first + i] = (comm_run){i * p->bytes, p->bytes};
    sifr_status status = plan_add_operand(state->s, PLAN_X0, x->buffer, x->offset, error);
    if (status == SIFR_OK) status = plan_add_operand(state->s, PLAN_Y, y->buffer, y->offset, error);
    if (status == SIFR_OK)
        status = plan_add_collective(state->s,
                                     &(plan_collective){.action = PLAN_EXCHANGE,
                                                        .span = PLAN_CONTEXTS,
                                                        .encoding = plan_code_of(x->matrix.dtype),
                                                        .segment = -1,
                                                        .unit = state->model->nodes[p->node].unit,
                                                        .micro_batch = state->micro_batch,
                                                        .sent = runs,
                                                        .received = runs},
                                     error);
    free(runs);
    return status;
}

/* All rows of a rank's columns are their parts end to end where there is one run of one sequence.
 */
sifr_status lower_exchange(lower_state *state, int32_t node, plan_action action, bool heads,
                           const lower_operand *x, const lower_operand *y, sifr_error *error) {
    const device_matrix *rows = heads ? &x->matrix : &y->matrix;
    const device_matrix *columns = heads ? &y->matrix : &x->matrix;
    lower_parts p = parts_of(state, node, action, rows->columns, columns->columns);
    bool one = p.sequences == 1 && p.runs == 1;
    lower_operand from = *x, to = *y;
    if (heads || !one) {
        BASE_TRY(add_room(state, &p, x, &from, error));
        BASE_TRY(copy_parts(state, &p, x, heads, &from, true, error));
    }
    if (heads && one) return start(state, &p, &from, &to, error);
    BASE_TRY(add_room(state, &p, y, &to, error));
    BASE_TRY(start(state, &p, &from, &to, error));
    return copy_parts(state, &p, y, !heads, &to, false, error);
}

sifr_status lower_context_forward(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int64_t columns = state->model->values[node->y].columns;
    base_assert(state->part.region < 0); /* it is not by_row */
    state->local[lower_value(state, node->y)] = false;
    BASE_TRY(plan_add_buffer(
        state->s, PLAN_ACTIVATIONS, lower_rows(state, node->y, false) * columns * state->element,
        node->unit, node->y, false, &state->buffer_of[lower_value(state, node->y)], error));
    lower_operand x = lower_locate(state, node->x[0]), y = lower_locate(state, node->y);
    plan_action action = state->recomputing ? PLAN_RECOMPUTE : PLAN_FORWARD;
    if (node->op->exchanges == MODEL_EXCHANGE_GATHER)
        return lower_gather(state, n, action, &x, &y, error);
    if (node->op->exchanges == MODEL_EXCHANGE_TO_HALO)
        return lower_to_halo(state, n, action, &x, &y, error);
    if (node->op->exchanges == MODEL_EXCHANGE_OFF_HALO)
        return lower_off_halo(state, n, action, false, &x, &y, error);
    return lower_exchange(state, n, action, node->op->exchanges == MODEL_EXCHANGE_TO_HEADS, &x, &y,
                          error);
}

/* --- what they go with --- */

static const char *unsupported(const sifr_model *model, const plan_settings *settings) {
    bool generates = settings->mode != PLAN_TRAIN && settings->mode != PLAN_EVALUATE;
    const model_objective_row *loss = model->objective.row;
    return generates          ? "generation is"
           : settings->logits ? "an evaluation that reads logits is"
           : !loss            ? NULL
           : loss->pairs      ? "preferences (sifr.preference) are"
           : loss->calls      ? "a loss of the program's own is"
                              : "distillation (sifr.distill) is";
}

static sifr_status cut_contexts(const sifr_model *model, const device *dev,
                                const plan_settings *settings, sifr_model **out,
                                sifr_error *error) {
    int32_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS);
    int32_t runs = plan_runs_of_tokens(settings).count;
    int64_t parts = (int64_t)runs * ranks;
    int64_t length = settings->step.seq_length, below = length / parts * parts;
    const char *what = unsupported(model, settings);
    *out = NULL;
    if (ranks == 1) return SIFR_OK;
    if (device_is_hidden(dev))
        return base_fail(error, SIFR_USAGE,
                         "context_parallel: context ranks on GPUs are not supported yet; set "
                         "device to \"cpu\", or leave them out");
    if (what)
        return base_fail(error, SIFR_USAGE,
                         "context_parallel: %s not supported with %d context ranks yet; leave one "
                         "of them out",
                         what, (int)ranks);
    model_context_args args = {ranks, settings->step.mesh.context_kind,
                               settings->step.micro_batch_size};
    if (!model->contexts) BASE_TRY(model_cut_contexts(model, &args, out, error));
    if (length % parts) {
        sifr_model_free(*out);
        *out = NULL;
        return base_fail(error, SIFR_USAGE,
                         "context_parallel: sequences of %lld tokens are not divided among %d "
                         "ranks%s; give a seq_length of %lld",
                         (long long)length, (int)ranks, runs > 1 ? " in two runs each" : "",
                         (long long)(below && length - below <= parts / 2 ? below : below + parts));
    }
    return SIFR_OK;
}

sifr_status lower_cut_ranks(const sifr_model *model, const device *dev,
                            const plan_settings *settings, sifr_model **out, sifr_error *error) {
    sifr_model *tensors, *contexts;
    BASE_TRY(lower_cut_tensors(model, dev, settings, &tensors, error));
    sifr_status status = cut_contexts(tensors ? tensors : model, dev, settings, &contexts, error);
    *out = contexts ? contexts : tensors;
    if (tensors && (contexts || status != SIFR_OK)) sifr_model_free(tensors);
    return status;
}
