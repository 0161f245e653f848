/* A pass over rows: each row once, in order; rows beyond the last without labels; sums and numbers
 * as callers get them; an end by a signal and by an error. The model adds up what it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "infer/evaluator.h"

enum { LENGTH = 3, BATCH = 4, ROWS = 10 };

typedef struct seen {
    int64_t batches, taken, rounds;
    float numbers[ROWS][2];
    int64_t put;
    int64_t stop_before, fail_at; /* batch; -1: none */
} seen;

/* Row i: the token i + 1, of which the first two are learned. */
static void read_row(const void *data, int64_t index, const data_rows *rows, int64_t at) {
    assert_ptr_equal(data, &read_row);
    for (int64_t t = 0; t < LENGTH; t++) {
        rows->tokens[at * LENGTH + t] = (int32_t)index + 1;
        rows->labels[at * LENGTH + t] = t < 2 ? (int32_t)index + 1 : -100;
    }
}

static sifr_status run_sum(void *model, const sifr_batch *batch, float *logits, double *loss,
                           int64_t *labelled, sifr_error *error) {
    (void)error;
    ++*(int *)model;
    *loss = 0;
    *labelled = 0;
    for (int64_t i = 0; i < BATCH * LENGTH; i++) {
        logits[i] = (float)batch->tokens[i];
        if (batch->labels[i] < 0) continue;
        *loss += batch->labels[i];
        ++*labelled;
    }
    return SIFR_OK;
}

static sifr_status take_numbers(void *user, const infer_batch *batch, float *out,
                                sifr_error *error) {
    (void)user, (void)error;
    for (int64_t i = 0; i < BATCH; i++) {
        out[2 * i] = (float)batch->rows->tokens[i * LENGTH];
        out[2 * i + 1] = (float)(batch->first + i);
    }
    return SIFR_OK;
}

static void put_numbers(void *user, int64_t first, int64_t count, const float *numbers) {
    seen *s = user;
    assert_int_equal(first, s->put);
    memcpy(s->numbers[first], numbers, (size_t)count * sizeof s->numbers[0]);
    s->put += count;
}

static sifr_status take_batch(void *user, const infer_batch *batch, sifr_error *error) {
    seen *s = user;
    double loss = 0;
    assert_int_equal(batch->first, s->taken);
    for (int64_t i = 0; i < batch->count; i++) loss += 2 * (double)(batch->first + i + 1);
    assert_true(loss == batch->loss);
    s->taken += batch->count;
    if (s->batches++ == s->fail_at) return base_fail(error, SIFR_FAILED, "no more");
    return SIFR_OK;
}

static sifr_status after_round(void *user, const infer_sums *sums, sifr_error *error) {
    seen *s = user;
    (void)error;
    s->rounds++;
    assert_int_equal(sums->rows, s->taken);
    assert_int_equal(sums->labelled, 2 * s->taken);
    assert_true(sums->loss == (double)(s->taken * (s->taken + 1)));
    return SIFR_OK;
}

static int stopped(void *user) {
    const seen *s = user;
    return s->batches == s->stop_before ? 15 : 0;
}

static sifr_status pass_over(seen *s, int64_t count, infer_sums *sums, int *signal,
                             sifr_error *error) {
    data_rows rows;
    float logits[BATCH * LENGTH];
    int calls = 0;
    assert_int_equal(data_rows_make(BATCH, LENGTH, DATA_ROWS_PLAIN, 0, &rows, error), SIFR_OK);
    infer_evaluator pass = {.read = read_row,
                            .data = &read_row,
                            .rows = &rows,
                            .count = count,
                            .run = run_sum,
                            .model = &calls,
                            .logits = logits,
                            .ranks = 1,
                            .numbers = {2, s, take_numbers, put_numbers},
                            .user = s,
                            .take = take_batch,
                            .after = after_round,
                            .stopped = stopped};
    assert_int_equal(infer_evaluator_open(&pass, error), SIFR_OK);
    sifr_status status = infer_evaluator_run(&pass, sums, signal, error);
    assert_int_equal(calls, s->batches);
    infer_evaluator_close(&pass);
    data_rows_free(&rows);
    return status;
}

static void test_whole(void **state) {
    (void)state;
    for (int64_t count = 0; count <= ROWS; count++) {
        seen s = {.stop_before = -1, .fail_at = -1};
        infer_sums sums;
        sifr_error error = {0};
        int signal = -1;
        assert_int_equal(pass_over(&s, count, &sums, &signal, &error), SIFR_OK);
        assert_int_equal(signal, 0);
        assert_int_equal(sums.rows, count);
        assert_int_equal(sums.labelled, 2 * count);
        assert_int_equal(s.rounds, (count + BATCH - 1) / BATCH);
        assert_int_equal(s.put, count);
        for (int64_t i = 0; i < count; i++) {
            assert_true(s.numbers[i][0] == (float)(i + 1));
            assert_true(s.numbers[i][1] == (float)i);
        }
    }
}

/* The round that hears the signal is the last one. */
static void test_signal(void **state) {
    (void)state;
    seen s = {.stop_before = 1, .fail_at = -1};
    infer_sums sums;
    sifr_error error = {0};
    int signal = 0;
    assert_int_equal(pass_over(&s, ROWS, &sums, &signal, &error), SIFR_OK);
    assert_int_equal(signal, 15);
    assert_int_equal(sums.rows, 2 * BATCH);
}

static void test_error(void **state) {
    (void)state;
    seen s = {.stop_before = -1, .fail_at = 1};
    infer_sums sums;
    sifr_error error = {0};
    assert_int_equal(pass_over(&s, ROWS, &sums, NULL, &error), SIFR_FAILED);
    assert_string_equal(error.message, "no more");
    assert_int_equal(s.batches, 2);
    assert_int_equal(s.put, BATCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
