/* Context ranks beside an op whose rows take some rows before them: before each run of a rank's
 * tokens it gets the last rows of the run that comes before, from whoever has it, and gives back
 * their gradients.
 *
 * A rank has one run of each sequence, or two, one behind the other (plan_runs_of_tokens). Those of
 * all ranks are numbered in the order of the sequence. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/errors.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

typedef struct halo_work {
    lower_state *state;
    int32_t node, ranks, place;
    plan_action action;
    int64_t sequences, runs, run, halo; /* runs: of a sequence; run, halo: rows */
    int64_t columns, piece;             /* piece: bytes of the halos of one run, of all sequences */
    comm_run *sent, *received;          /* by rank */
} halo_work;

int64_t lower_context_runs(const lower_state *state) {
    const plan_settings *settings = &state->s->settings;
    return settings->step.micro_batch_size * plan_runs_of_tokens(settings).count;
}

/* Whether a run comes before one of a rank's, and whose: of its runs, *before. */
static bool find_before(const halo_work *w, int32_t rank, int64_t run, int32_t *owner,
                        int64_t *before) {
    int64_t number = (run ? 2 * w->ranks - 1 - rank : rank) - 1;
    if (number < 0) return false;
    *before = number >= w->ranks;
    *owner = (int32_t)(*before ? 2 * w->ranks - 1 - number : number);
    return true;
}

static sifr_status open_work(lower_state *state, int32_t n, plan_action action, halo_work *w,
                             sifr_error *error) {
    const plan_settings *settings = &state->s->settings;
    const model_node *node = &state->model->nodes[n];
    plan_token_runs runs = plan_runs_of_tokens(settings);
    const model_value *wide = &state->model->values[node->y];
    if (!wide->halo) wide = &state->model->values[node->x[0]];
    *w = (halo_work){.state = state,
                     .node = n,
                     .ranks = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS),
                     .place = plan_mesh_place(&settings->mesh, PLAN_CONTEXTS),
                     .action = action,
                     .sequences = settings->step.micro_batch_size,
                     .runs = runs.count,
                     .run = runs.length,
                     .halo = wide->halo,
                     .columns = wide->columns};
    w->piece = w->sequences * w->halo * w->columns * state->element;
    if (w->run < w->halo)
        return base_fail(error, SIFR_USAGE,
                         "context_parallel: unit %s: a token reads %lld before it, and a rank has "
                         "runs of %lld; give a longer seq_length, or fewer context ranks",
                         state->model->units[node->unit].name, (long long)w->halo,
                         (long long)w->run);
    BASE_TRY(base_alloc(2 * (size_t)w->ranks, sizeof *w->sent, &w->sent, error));
    w->received = w->sent + w->ranks;
    return SIFR_OK;
}

/* --- copies --- */

static sifr_status copy(const halo_work *w, device_kernel kernel, const lower_operand *x,
                        const lower_operand *y, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = kernel;
    if (x) BASE_TRY(lower_put(w->state, &call, PLAN_X0, *x, error));
    BASE_TRY(lower_put(w->state, &call, PLAN_Y, *y, error));
    return lower_emit(w->state, w->action, w->state->model->nodes[w->node].unit, w->node, &call,
                      NULL, false, error);
}

static lower_operand rows_of(const lower_operand *all, int64_t first, int64_t rows) {
    lower_operand part = *all;
    part.offset += first * all->matrix.stride * base_dtype_bytes(all->matrix.dtype);
    part.matrix.rows = rows;
    return part;
}

/* Some rows of each sequence: those of the first one begin at `first`, of each other one `apart`
 * rows behind. */
typedef struct halo_rows {
    lower_operand all;
    int64_t first, apart;
} halo_rows;

/* Of rows with halos: those of a run, and those before it. */
static halo_rows inner_of(const halo_work *w, const lower_operand *wide, int64_t run) {
    int64_t length = w->halo + w->run;
    return (halo_rows){*wide, run * length + w->halo, w->runs * length};
}

static halo_rows halo_of(const halo_work *w, const lower_operand *wide, int64_t run) {
    int64_t length = w->halo + w->run;
    return (halo_rows){*wide, run * length, w->runs * length};
}

/* Of a rank's rows: a run, and the last ones of it. */
static halo_rows own_of(const halo_work *w, const lower_operand *own, int64_t run) {
    return (halo_rows){*own, run * w->run, w->runs * w->run};
}

static halo_rows last_of(const halo_work *w, const lower_operand *own, int64_t run) {
    return (halo_rows){*own, (run + 1) * w->run - w->halo, w->runs * w->run};
}

/* Of a piece at byte `at` of `pieces`. */
static halo_rows packed_of(const halo_work *w, const lower_operand *pieces, int64_t at) {
    lower_operand part = *pieces;
    part.offset += at;
    part.matrix = lower_matrix(w->halo * w->sequences, w->columns, pieces->matrix.dtype);
    return (halo_rows){part, 0, w->halo};
}

/* One row of all sequences. */
static lower_operand row_of_all(const halo_work *w, const halo_rows *rows, int64_t row) {
    lower_operand part = rows_of(&rows->all, rows->first + row, w->sequences);
    part.matrix.stride *= rows->apart;
    return part;
}

static lower_operand of_sequence(const halo_rows *rows, int64_t sequence, int64_t count) {
    return rows_of(&rows->all, rows->first + sequence * rows->apart, count);
}

/* A call moves the rows of one sequence, or one row of all sequences, whichever takes fewer calls:
 * so a list does not grow with short sequences. x: NULL to clear y. */
static sifr_status copy_rows(const halo_work *w, device_kernel kernel, const halo_rows *x,
                             const halo_rows *y, int64_t rows, sifr_error *error) {
    bool one = w->sequences > rows;
    for (int64_t i = 0; i < (one ? rows : w->sequences); i++) {
        lower_operand from, to = one ? row_of_all(w, y, i) : of_sequence(y, i, rows);
        if (x) from = one ? row_of_all(w, x, i) : of_sequence(x, i, rows);
        BASE_TRY(copy(w, kernel, x ? &from : NULL, &to, error));
    }
    return SIFR_OK;
}

/* Between the runs of rows with and without halos. */
static sifr_status copy_inner(const halo_work *w, const lower_operand *wide,
                              const lower_operand *own, bool off, sifr_error *error) {
    for (int64_t i = 0; i < w->runs; i++) {
        halo_rows inner = inner_of(w, wide, i), run = own_of(w, own, i);
        BASE_TRY(
            copy_rows(w, DEVICE_CONVERT, off ? &inner : &run, off ? &run : &inner, w->run, error));
    }
    return SIFR_OK;
}

/* --- the exchange --- */

/* The bytes of halos that `reader` has of this rank's runs, or this rank of another's. */
static void place_pieces(const halo_work *w, bool mine, comm_run *runs) {
    int64_t at = 0, before;
    int32_t owner;
    for (int32_t r = 0; r < w->ranks; r++) {
        runs[r] = (comm_run){.at = at};
        for (int64_t run = 0; run < w->runs; run++) {
            int32_t reader = mine ? w->place : r, from = mine ? r : w->place;
            if (r == w->place || !find_before(w, reader, run, &owner, &before) || owner != from)
                continue;
            runs[r].bytes += w->piece;
        }
        at += runs[r].bytes;
    }
}

static int64_t bytes_of(const halo_work *w, const comm_run *runs) {
    return runs[w->ranks - 1].at + runs[w->ranks - 1].bytes;
}

static sifr_status add_room(const halo_work *w, const comm_run *runs, base_dtype dtype,
                            lower_operand *out, sifr_error *error) {
    const model_node *node = &w->state->model->nodes[w->node];
    int64_t bytes = bytes_of(w, runs);
    *out = (lower_operand){.matrix = {.dtype = dtype}};
    return plan_add_buffer(w->state->s, PLAN_ACTIVATIONS, bytes ? bytes : 1, node->unit, node->y,
                           false, &out->buffer, error);
}

static sifr_status start(const halo_work *w, const lower_operand *x, const lower_operand *y,
                         sifr_error *error) {
    lower_state *state = w->state;
    BASE_TRY(plan_add_operand(state->s, PLAN_X0, x->buffer, x->offset, error));
    BASE_TRY(plan_add_operand(state->s, PLAN_Y, y->buffer, y->offset, error));
    return plan_add_collective(state->s,
                               &(plan_collective){.action = PLAN_EXCHANGE,
                                                  .span = PLAN_CONTEXTS,
                                                  .encoding = plan_code_of(x->matrix.dtype),
                                                  .segment = -1,
                                                  .unit = state->model->nodes[w->node].unit,
                                                  .micro_batch = state->micro_batch,
                                                  .sent = w->sent,
                                                  .received = w->received},
                               error);
}

/* --- the ways there and back --- */

/* Between pieces of other ranks and this one's: `mine`: its halos, that the others have; else the
 * last rows of its runs, that others have as halos. */
static sifr_status copy_pieces(const halo_work *w, bool mine, device_kernel kernel, bool pack,
                               const lower_operand *rows, const lower_operand *pieces,
                               const comm_run *runs, sifr_error *error) {
    int64_t before;
    int32_t owner;
    for (int32_t r = 0; r < w->ranks; r++) {
        int64_t at = runs[r].at;
        for (int64_t run = 0; run < w->runs && r != w->place; run++) {
            int32_t reader = mine ? w->place : r, from = mine ? r : w->place;
            if (!find_before(w, reader, run, &owner, &before) || owner != from) continue;
            halo_rows here = mine ? halo_of(w, rows, run) : last_of(w, rows, before);
            halo_rows part = packed_of(w, pieces, at);
            BASE_TRY(
                copy_rows(w, kernel, pack ? &here : &part, pack ? &part : &here, w->halo, error));
            at += w->piece;
        }
    }
    return SIFR_OK;
}

/* Halos before the start of a sequence, and those that are this rank's own. */
static sifr_status fill_halos(const halo_work *w, const lower_operand *own,
                              const lower_operand *wide, sifr_error *error) {
    int64_t before;
    int32_t owner;
    for (int64_t run = 0; run < w->runs; run++) {
        halo_rows halo = halo_of(w, wide, run);
        if (!find_before(w, w->place, run, &owner, &before)) {
            BASE_TRY(copy_rows(w, DEVICE_CLEAR, NULL, &halo, w->halo, error));
        } else if (owner == w->place) {
            halo_rows last = last_of(w, own, before);
            BASE_TRY(copy_rows(w, DEVICE_CONVERT, &last, &halo, w->halo, error));
        }
    }
    return SIFR_OK;
}

static sifr_status add_own(const halo_work *w, const lower_operand *wide, const lower_operand *own,
                           sifr_error *error) {
    int64_t before;
    int32_t owner;
    for (int64_t run = 0; run < w->runs; run++) {
        if (!find_before(w, w->place, run, &owner, &before) || owner != w->place) continue;
        halo_rows halo = halo_of(w, wide, run), last = last_of(w, own, before);
        BASE_TRY(copy_rows(w, DEVICE_ACCUMULATE, &halo, &last, w->halo, error));
    }
    return SIFR_OK;
}

static sifr_status to_halo(const halo_work *w, const lower_operand *x, const lower_operand *y,
                           sifr_error *error) {
    lower_operand given, came;
    place_pieces(w, false, w->sent);
    place_pieces(w, true, w->received);
    BASE_TRY(add_room(w, w->sent, x->matrix.dtype, &given, error));
    BASE_TRY(add_room(w, w->received, x->matrix.dtype, &came, error));
    BASE_TRY(copy_pieces(w, false, DEVICE_CONVERT, true, x, &given, w->sent, error));
    BASE_TRY(start(w, &given, &came, error));
    BASE_TRY(copy_inner(w, y, x, false, error)); /* meanwhile */
    BASE_TRY(fill_halos(w, x, y, error));
    return copy_pieces(w, true, DEVICE_CONVERT, false, y, &came, w->received, error);
}

sifr_status lower_to_halo(lower_state *state, int32_t node, plan_action action,
                          const lower_operand *x, const lower_operand *y, sifr_error *error) {
    halo_work w;
    BASE_TRY(open_work(state, node, action, &w, error));
    sifr_status status = to_halo(&w, x, y, error);
    free(w.sent);
    return status;
}

static sifr_status sum_halo(const halo_work *w, const lower_operand *y, const lower_operand *x,
                            sifr_error *error) {
    lower_operand given, came;
    place_pieces(w, true, w->sent);
    place_pieces(w, false, w->received);
    BASE_TRY(add_room(w, w->sent, y->matrix.dtype, &given, error));
    BASE_TRY(add_room(w, w->received, y->matrix.dtype, &came, error));
    BASE_TRY(copy_pieces(w, true, DEVICE_CONVERT, true, y, &given, w->sent, error));
    BASE_TRY(start(w, &given, &came, error));
    BASE_TRY(copy_inner(w, y, x, true, error)); /* meanwhile */
    BASE_TRY(add_own(w, y, x, error));
    return copy_pieces(w, false, DEVICE_ACCUMULATE, false, x, &came, w->received, error);
}

sifr_status lower_sum_halo(lower_state *state, int32_t node, const lower_operand *y,
                           const lower_operand *x, sifr_error *error) {
    halo_work w;
    BASE_TRY(open_work(state, node, PLAN_BACKWARD, &w, error));
    sifr_status status = sum_halo(&w, y, x, error);
    free(w.sent);
    return status;
}

static sifr_status off_halo(const halo_work *w, bool back, const lower_operand *x,
                            const lower_operand *y, sifr_error *error) {
    BASE_TRY(copy_inner(w, back ? y : x, back ? x : y, !back, error));
    for (int64_t run = 0; run < w->runs && back; run++) {
        halo_rows halo = halo_of(w, y, run);
        BASE_TRY(copy_rows(w, DEVICE_CLEAR, NULL, &halo, w->halo, error));
    }
    return SIFR_OK;
}

sifr_status lower_off_halo(lower_state *state, int32_t node, plan_action action, bool back,
                           const lower_operand *x, const lower_operand *y, sifr_error *error) {
    halo_work w;
    BASE_TRY(open_work(state, node, action, &w, error));
    sifr_status status = off_halo(&w, back, x, y, error);
    free(w.sent);
    return status;
}
