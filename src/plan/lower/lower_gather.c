/* Context ranks that gather keys and values: each gets, of the other ranks' tokens, those that its
 * own queries read, and gives back its part of their gradients.
 *
 * A rank has two runs of each sequence, one behind the other (device_attention_run). What another
 * rank reads of them is taken as one piece, from the first row to the last: a window's neighbours
 * lie at the end of the first run and at the beginning of the second one. A piece travels row by
 * row, each with the rows of all sequences side by side, so that it is contiguous.
 *
 * Where u neighbours divide the heads, a rank's queries are those of all of them, and a piece has
 * the columns of its reader's heads.
 *
 * A copy moves the rows of one sequence, or one row of all sequences, whichever takes fewer copies:
 * so a list does not grow with short sequences. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "model/context.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

typedef struct gather_work {
    lower_state *state;
    int32_t node, ranks, place;
    plan_action action;
    int32_t sharing;                  /* ranks that divide the heads: u */
    device_attention_attributes sees; /* of attention behind it */
    int64_t sequences, half;          /* half: rows of a run */
    int64_t columns, all;             /* of a rank's heads, of all */
    comm_run *sent, *received;        /* by rank */
} gather_work;

/* Rows from `from` on and before `to`, of the two runs of a rank. */
typedef struct gather_rows {
    int64_t from, to;
} gather_rows;

/* Where a run of a rank's rows begins. */
static int64_t run_of(const gather_work *w, int32_t rank, int run) {
    device_attention_attributes rows = {
        .length = w->sees.length, .contexts = w->ranks, .context = rank};
    return device_attention_run(&rows, run);
}

/* Of `owner`'s rows, those that queries of `reader` read. */
static gather_rows rows_read(const gather_work *w, int32_t reader, int32_t owner) {
    device_attention_attributes queries = w->sees;
    gather_rows all = {INT64_MAX, 0};
    queries.context = reader / w->sharing;
    for (int q = 0; q < 2; q++) {
        int64_t from, to;
        device_attention_reach(&queries, device_attention_run(&queries, q), w->sharing * w->half,
                               &from, &to);
        for (int k = 0; k < 2; k++) {
            int64_t first = run_of(w, owner, k), row = k * w->half - first;
            int64_t low = base_max_i64(from, first), high = base_min_i64(to, first + w->half);
            if (low >= high) continue;
            all.from = base_min_i64(all.from, row + low);
            all.to = base_max_i64(all.to, row + high);
        }
    }
    return all.to ? all : (gather_rows){0};
}

static gather_rows own_rows(const gather_work *w) {
    return (gather_rows){0, 2 * w->half};
}

/* Ranks of one group have the same queries, of other heads. */
static bool is_beside(const gather_work *w, int32_t rank) {
    return rank != w->place && rank / w->sharing == w->place / w->sharing;
}

static sifr_status open_work(lower_state *state, int32_t n, plan_action action, gather_work *w,
                             sifr_error *error) {
    const plan_settings *settings = &state->s->settings;
    *w = (gather_work){.state = state,
                       .node = n,
                       .ranks = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS),
                       .place = plan_mesh_place(&settings->mesh, PLAN_CONTEXTS),
                       .action = action,
                       .sees = state->model->nodes[n].attributes.attention,
                       .sequences = settings->step.micro_batch_size,
                       .half = plan_run_length(settings) / 2,
                       .columns = state->model->values[state->model->nodes[n].y].columns,
                       .all = state->model->values[state->model->nodes[n].x[0]].columns};
    w->sees.length = settings->step.seq_length;
    w->sharing = model_context_heads_of(w->ranks, &w->sees);
    base_assert(w->sees.contexts > 1 && w->all == w->sharing * w->columns);
    BASE_TRY(base_alloc(2 * (size_t)w->ranks, sizeof *w->sent, &w->sent, error));
    w->received = w->sent + w->ranks;
    return SIFR_OK;
}

/* --- copies --- */

static sifr_status copy(const gather_work *w, device_kernel kernel, const lower_operand *x,
                        const lower_operand *y, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = kernel;
    BASE_TRY(lower_put(w->state, &call, PLAN_X0, *x, error));
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

/* Of the columns of all heads, those of a rank's. */
static lower_operand heads_of(const gather_work *w, lower_operand all, int32_t rank) {
    all.offset += rank % w->sharing * w->columns * base_dtype_bytes(all.matrix.dtype);
    all.matrix.columns = w->columns;
    return all;
}

/* Rows of a sequence in a piece that begins at byte `at` of `all`. */
static lower_operand rows_of_piece(const gather_work *w, const lower_operand *all, int64_t at,
                                   int64_t sequence, int64_t first, int64_t rows) {
    lower_operand part = {.buffer = all->buffer,
                          .matrix = lower_matrix(rows, w->columns, all->matrix.dtype)};
    part.matrix.stride = w->sequences * w->columns;
    part.offset =
        all->offset + at +
        (first * part.matrix.stride + sequence * w->columns) * base_dtype_bytes(all->matrix.dtype);
    return part;
}

/* One row of all sequences, which have `length` rows each in `all`; or one of a piece. */
static lower_operand row_of_all(const gather_work *w, const lower_operand *all, int64_t length,
                                int64_t row) {
    lower_operand part = rows_of(all, row, w->sequences);
    part.matrix.stride *= length;
    return part;
}

static lower_operand row_of_piece(const gather_work *w, const lower_operand *all, int64_t at,
                                  int64_t row) {
    lower_operand part = rows_of_piece(w, all, at, 0, row, w->sequences);
    part.matrix.stride = w->columns;
    return part;
}

/* Some rows of each sequence: of a piece, and of sequences that have `length` rows. */
typedef struct gather_copy {
    const lower_operand *piece, *whole;
    int64_t at; /* byte where the piece begins */
    int64_t length, rows;
    int64_t of_piece, of_whole; /* the first row in either */
} gather_copy;

static bool by_row(const gather_work *w, int64_t rows) {
    return w->sequences > rows;
}

static sifr_status copy_rows(const gather_work *w, device_kernel kernel, const gather_copy *c,
                             bool pack, sifr_error *error) {
    bool one = by_row(w, c->rows);
    for (int64_t i = 0; i < (one ? c->rows : w->sequences); i++) {
        lower_operand part, rows;
        if (one) {
            part = row_of_piece(w, c->piece, c->at, c->of_piece + i);
            rows = row_of_all(w, c->whole, c->length, c->of_whole + i);
        } else {
            part = rows_of_piece(w, c->piece, c->at, i, c->of_piece, c->rows);
            rows = rows_of(c->whole, i * c->length + c->of_whole, c->rows);
        }
        BASE_TRY(copy(w, kernel, pack ? &rows : &part, pack ? &part : &rows, error));
    }
    return SIFR_OK;
}

/* Between a piece of the rows that `owner` has, at byte `at` of `pieces`, and their places in whole
 * sequences. */
static sifr_status copy_piece(const gather_work *w, int32_t owner, gather_rows piece,
                              const lower_operand *pieces, int64_t at, const lower_operand *whole,
                              bool pack, sifr_error *error) {
    for (int run = 0; run < 2; run++) {
        int64_t low = base_max_i64(piece.from, run * w->half);
        int64_t high = base_min_i64(piece.to, (run + 1) * w->half);
        gather_copy c = {.piece = pieces,
                         .whole = whole,
                         .at = at,
                         .length = w->sees.length,
                         .rows = high - low,
                         .of_piece = low - piece.from,
                         .of_whole = run_of(w, owner, run) + low - run * w->half};
        if (low < high) BASE_TRY(copy_rows(w, DEVICE_CONVERT, &c, pack, error));
    }
    return SIFR_OK;
}

/* Between this rank's rows of its heads and their places in whole sequences. */
static sifr_status copy_own(const gather_work *w, const lower_operand *own,
                            const lower_operand *whole, bool back, sifr_error *error) {
    lower_operand heads = heads_of(w, *own, w->place);
    bool one = by_row(w, w->half);
    for (int64_t i = 0; i < 2 * (one ? w->half : w->sequences); i++) {
        int64_t place = run_of(w, w->place, (int)(i % 2));
        lower_operand mine = rows_of(&heads, i * w->half, w->half);
        lower_operand rows = rows_of(whole, i / 2 * w->sees.length + place, w->half);
        if (one) {
            mine = row_of_all(w, &heads, 2 * w->half, i % 2 * w->half + i / 2);
            rows = row_of_all(w, whole, w->sees.length, place + i / 2);
        }
        BASE_TRY(copy(w, DEVICE_CONVERT, back ? &rows : &mine, back ? &mine : &rows, error));
    }
    return SIFR_OK;
}

static sifr_status add_room(const gather_work *w, int64_t bytes, base_dtype dtype,
                            lower_operand *out, sifr_error *error) {
    const model_node *node = &w->state->model->nodes[w->node];
    *out = (lower_operand){.matrix = {.dtype = dtype}};
    return plan_add_buffer(w->state->s, PLAN_ACTIVATIONS, base_max_i64(bytes, 1), node->unit,
                           node->y, false, &out->buffer, error);
}

/* --- the exchange --- */

static sifr_status start(const gather_work *w, const lower_operand *x, const lower_operand *y,
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

/* One behind the other: a piece for each other rank, of the rows that `mine` read of its rows, or
 * that it reads of this rank's. Returns their bytes. */
static int64_t place_pieces(const gather_work *w, bool mine, int64_t element, comm_run *runs) {
    int64_t at = 0;
    for (int32_t r = 0; r < w->ranks; r++) {
        gather_rows rows = mine ? rows_read(w, w->place, r) : rows_read(w, r, w->place);
        int64_t bytes = (rows.to - rows.from) * w->sequences * w->columns * element;
        runs[r] = (comm_run){at, r == w->place ? 0 : bytes};
        at += runs[r].bytes;
    }
    return at;
}

/* Pieces of this rank's rows, which may overlap; those of each rank's heads lie together. */
static void place_sent(const gather_work *w, int64_t element) {
    int64_t row = w->sequences * w->columns * element;
    for (int32_t r = 0; r < w->ranks; r++) {
        gather_rows rows = rows_read(w, r, w->place);
        int64_t first = r % w->sharing * own_rows(w).to + rows.from;
        w->sent[r] = (comm_run){first * row, r == w->place ? 0 : (rows.to - rows.from) * row};
    }
}

/* This rank's rows as they travel: of one sequence and all heads they may lie so. */
static sifr_status pack_own(const gather_work *w, const lower_operand *x, lower_operand *out,
                            sifr_error *error) {
    *out = *x;
    if (w->sequences == 1 && x->matrix.stride == w->columns) return SIFR_OK;
    int64_t rows = own_rows(w).to, bytes = base_dtype_bytes(x->matrix.dtype);
    int64_t piece = w->sequences * rows * w->columns * bytes;
    BASE_TRY(add_room(w, w->sharing * piece, x->matrix.dtype, out, error));
    for (int32_t h = 0; h < w->sharing; h++) {
        lower_operand heads = heads_of(w, *x, h);
        gather_copy c = {
            .piece = out, .whole = &heads, .at = h * piece, .length = rows, .rows = rows};
        BASE_TRY(copy_rows(w, DEVICE_CONVERT, &c, true, error));
    }
    return SIFR_OK;
}

static sifr_status clear(const gather_work *w, const lower_operand *rows, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CLEAR;
    BASE_TRY(lower_put(w->state, &call, PLAN_Y, *rows, error));
    return lower_emit(w->state, w->action, w->state->model->nodes[w->node].unit, w->node, &call,
                      NULL, false, error);
}

static sifr_status clear_rows(const gather_work *w, const lower_operand *y, int64_t from,
                              int64_t to, sifr_error *error) {
    for (int64_t s = 0; s < w->sequences && from < to; s++) {
        lower_operand rows = rows_of(y, s * w->sees.length + from, to - from);
        BASE_TRY(clear(w, &rows, error));
    }
    return SIFR_OK;
}

/* What no piece brings is not seen, but it is part of what attention is given. Of many sequences
 * all rows are cleared before they are written, in one call. */
static sifr_status clear_rest(const gather_work *w, const lower_operand *y, sifr_error *error) {
    int64_t written = 0, brought = 0;
    bool all = by_row(w, w->half);
    for (int32_t part = 0; part < 2 * w->ranks; part++) {
        int32_t owner = part < w->ranks ? part : 2 * w->ranks - 1 - part;
        int64_t row = part < w->ranks ? 0 : w->half;
        gather_rows piece = owner == w->place ? own_rows(w) : rows_read(w, w->place, owner);
        int64_t low = base_max_i64(piece.from, row), high = base_min_i64(piece.to, row + w->half);
        if (low >= high) continue;
        brought += high - low;
        if (!all) BASE_TRY(clear_rows(w, y, written, part * w->half + low - row, error));
        written = part * w->half + high - row;
    }
    if (!all) return clear_rows(w, y, written, w->sees.length, error);
    return brought < w->sees.length ? clear(w, y, error) : SIFR_OK;
}

static sifr_status gather(const gather_work *w, const lower_operand *x, const lower_operand *y,
                          sifr_error *error) {
    base_dtype dtype = x->matrix.dtype;
    int64_t element = base_dtype_bytes(dtype);
    lower_operand own, pieces;
    place_sent(w, element);
    BASE_TRY(add_room(w, place_pieces(w, true, element, w->received), dtype, &pieces, error));
    BASE_TRY(pack_own(w, x, &own, error));
    BASE_TRY(start(w, &own, &pieces, error));
    BASE_TRY(clear_rest(w, y, error)); /* meanwhile */
    BASE_TRY(copy_own(w, x, y, false, error));
    for (int32_t r = 0; r < w->ranks; r++)
        if (w->received[r].bytes)
            BASE_TRY(copy_piece(w, r, rows_read(w, w->place, r), &pieces, w->received[r].at, y,
                                false, error));
    return SIFR_OK;
}

sifr_status lower_gather(lower_state *state, int32_t node, plan_action action,
                         const lower_operand *x, const lower_operand *y, sifr_error *error) {
    gather_work w;
    BASE_TRY(open_work(state, node, action, &w, error));
    sifr_status status = gather(&w, x, y, error);
    free(w.sent);
    return status;
}

/* --- the way back --- */

/* A part that another rank has made, of its heads, is added to the sum, or begins it. */
static sifr_status add_part(const gather_work *w, int32_t rank, device_kernel kernel,
                            const lower_operand *pieces, const lower_operand *sum,
                            sifr_error *error) {
    gather_rows rows = rows_read(w, rank, w->place), all = own_rows(w);
    lower_operand heads = heads_of(w, *sum, rank);
    gather_copy c = {.piece = pieces,
                     .whole = &heads,
                     .at = w->received[rank].at,
                     .length = all.to,
                     .rows = rows.to - rows.from,
                     .of_whole = rows.from};
    return w->received[rank].bytes ? copy_rows(w, kernel, &c, false, error) : SIFR_OK;
}

/* In the order of ranks, behind this one and those beside it, whose queries read all its rows. */
static sifr_status add_parts(const gather_work *w, const lower_operand *pieces,
                             const lower_operand *sum, sifr_error *error) {
    for (int32_t r = 0; r < w->ranks; r++)
        if (is_beside(w, r)) BASE_TRY(add_part(w, r, DEVICE_CONVERT, pieces, sum, error));
    for (int32_t r = 0; r < w->ranks; r++)
        if (!is_beside(w, r)) BASE_TRY(add_part(w, r, DEVICE_ACCUMULATE, pieces, sum, error));
    return SIFR_OK;
}

static sifr_status sum_gathered(const gather_work *w, const lower_operand *y,
                                const lower_operand *x, sifr_error *error) {
    lower_operand given, came, sum = *x;
    int64_t bytes = place_pieces(w, true, 4, w->sent);
    BASE_TRY(add_room(w, bytes, BASE_FP32, &given, error));
    BASE_TRY(add_room(w, place_pieces(w, false, 4, w->received), BASE_FP32, &came, error));
    for (int32_t r = 0; r < w->ranks; r++)
        if (w->sent[r].bytes)
            BASE_TRY(
                copy_piece(w, r, rows_read(w, w->place, r), &given, w->sent[r].at, y, true, error));
    BASE_TRY(start(w, &given, &came, error));
    bool narrow = x->matrix.dtype != BASE_FP32;
    if (narrow) {
        sum.matrix = lower_matrix(x->matrix.rows, w->all, BASE_FP32);
        sum.offset = 0;
        BASE_TRY(plan_add_buffer(w->state->s, PLAN_ACTIVATIONS, x->matrix.rows * w->all * 4,
                                 w->state->model->nodes[w->node].unit,
                                 w->state->model->nodes[w->node].y, false, &sum.buffer, error));
    }
    BASE_TRY(copy_own(w, &sum, y, true, error)); /* meanwhile */
    BASE_TRY(add_parts(w, &came, &sum, error));
    return narrow ? copy(w, DEVICE_CONVERT, &sum, x, error) : SIFR_OK;
}

sifr_status lower_sum_gathered(lower_state *state, int32_t node, const lower_operand *y,
                               const lower_operand *x, sifr_error *error) {
    gather_work w;
    BASE_TRY(open_work(state, node, PLAN_BACKWARD, &w, error));
    sifr_status status = sum_gathered(&w, y, x, error);
    free(w.sent);
    return status;
}
