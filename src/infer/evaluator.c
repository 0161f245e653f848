#include "infer/evaluator.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"

/* One rank's batch; all stages of a pipeline tell the same. */
typedef struct infer_round {
    double loss;
    int64_t labelled, signal;
} infer_round;

static sifr_status run_inference(void *model, const sifr_batch *batch, float *logits, double *loss,
                                 int64_t *labelled, sifr_error *error) {
    return infer_loss(model, batch, loss, labelled, logits, error);
}

infer_evaluator infer_evaluator_alone(infer_inference *inference) {
    return (infer_evaluator){.run = run_inference, .model = inference, .ranks = 1};
}

static void read_window(const void *data, int64_t index, const data_rows *rows, int64_t at) {
    data_set_window(data, index, rows, at);
}

void infer_evaluator_windows(infer_evaluator *e, const data_set *data, const data_rows *rows,
                             int64_t count) {
    e->read = read_window;
    e->data = data;
    e->rows = rows;
    e->count = count;
}

sifr_status infer_evaluator_open(infer_evaluator *e, sifr_error *error) {
    int64_t ranks = e->group ? comm_size(e->group) : 1, mine, numbers;
    if (!base_mul_i64(e->rows->count, e->numbers.width, &mine) ||
        !base_mul_i64(mine, ranks, &numbers))
        return base_fail_alloc(error, INT64_MAX);
    BASE_TRY(base_alloc((size_t)ranks, sizeof *e->all, &e->all, error));
    if (e->numbers.width == 0) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)mine, sizeof *e->mine_numbers, &e->mine_numbers, error));
    return base_alloc((size_t)numbers, sizeof *e->all_numbers, &e->all_numbers, error);
}

void infer_evaluator_close(infer_evaluator *e) {
    free(e->all);
    free(e->mine_numbers);
    free(e->all_numbers);
    e->all = NULL;
    e->mine_numbers = e->all_numbers = NULL;
}

static sifr_status gather(const infer_evaluator *e, const void *mine, size_t bytes, void *all,
                          sifr_error *error) {
    if (e->group) return comm_all_gather_control(e->group, mine, (int64_t)bytes, all, error);
    memcpy(all, mine, bytes);
    return SIFR_OK;
}

/* Of the batch whose first row is this one. */
static int64_t rows_left(const infer_evaluator *e, int64_t first) {
    return base_min_i64(e->rows->count, base_max_i64(0, e->count - first));
}

static sifr_status run_batch(const infer_evaluator *e, int64_t first, infer_round *mine,
                             sifr_error *error) {
    infer_batch batch = {.rows = e->rows, .first = first, .count = rows_left(e, first)};
    sifr_batch ids = data_rows_batch(e->rows);
    for (int64_t i = 0; i < batch.count; i++) e->read(e->data, first + i, e->rows, i);
    data_rows_clear(e->rows, batch.count);
    BASE_TRY(e->run(e->model, &ids, e->logits, &mine->loss, &mine->labelled, error));
    batch.loss = mine->loss;
    if (e->numbers.width)
        BASE_TRY(e->numbers.take(e->numbers.user, &batch, e->mine_numbers, error));
    return e->take ? e->take(e->user, &batch, error) : SIFR_OK;
}

/* The rank of the group that tells of batch `place` of a round. */
static int32_t teller(const infer_evaluator *e, int32_t place) {
    return place * (e->apart > 0 ? e->apart : 1);
}

static sifr_status gather_numbers(const infer_evaluator *e, int64_t first, sifr_error *error) {
    size_t each = (size_t)(e->rows->count * e->numbers.width);
    if (e->numbers.width == 0) return SIFR_OK;
    BASE_TRY(gather(e, e->mine_numbers, each * sizeof *e->mine_numbers, e->all_numbers, error));
    for (int32_t r = 0; r < e->ranks; r++) {
        int64_t at = first + r * e->rows->count, here = rows_left(e, at);
        if (here)
            e->numbers.put(e->numbers.user, at, here, e->all_numbers + (size_t)teller(e, r) * each);
    }
    return SIFR_OK;
}

/* A batch on each rank. The sums are added in the order of the rows, as on one rank, so the result
 * does not depend on the number of ranks. */
static sifr_status run_round(const infer_evaluator *e, int64_t first, infer_sums *out, int *signal,
                             sifr_error *error) {
    int32_t all = e->group ? comm_size(e->group) : 1;
    infer_round mine = {.signal = e->stopped ? e->stopped(e->user) : 0};
    BASE_TRY(run_batch(e, first + e->place * e->rows->count, &mine, error));
    BASE_TRY(gather_numbers(e, first, error));
    BASE_TRY(gather(e, &mine, sizeof mine, e->all, error));
    for (int32_t r = 0; r < e->ranks; r++) {
        int64_t here = rows_left(e, first + r * e->rows->count);
        const infer_round *told = &e->all[teller(e, r)];
        if (here) out->loss += told->loss;
        out->labelled += told->labelled;
        out->rows += here;
    }
    for (int32_t r = 0; r < all; r++)
        if (!*signal) *signal = (int)e->all[r].signal;
    return e->after ? e->after(e->user, out, error) : SIFR_OK;
}

sifr_status infer_evaluator_run(const infer_evaluator *e, infer_sums *out, int *signal,
                                sifr_error *error) {
    int none = 0, *asked = signal ? signal : &none;
    *out = (infer_sums){0};
    *asked = 0;
    for (int64_t first = 0; first < e->count && !*asked; first += e->ranks * e->rows->count)
        BASE_TRY(run_round(e, first, out, asked, error));
    return SIFR_OK;
}
