/* Collectives of values that belong to no segment, run by an executor on ranks that are threads: a
 * sum is that of all ranks in tree order, an exchange brings each rank's parts, in place or not,
 * and each group counts the bytes of the plan.
 * in test_tsan */
#include "engine/executor/executor.h"

#include <pthread.h>

#include "base/half.h"
#include "base/random.h"
#include "device/tree_sum.h"
#include "support/comm_threads.h"
#include "support/value_case.h"

typedef struct value_rank {
    comm_threads *world;
    int32_t rank;
    float whole[VALUES], taken[VALUES], gathered[VALUE_CONTEXTS * VALUES];
    uint16_t narrow[VALUES];
    int64_t counted[2], planned[2]; /* by span: what was delivered */
    char failure[SIFR_ERROR_LENGTH];
} value_rank;

/* Nearly every order of adding has other bits. */
static float given(int32_t rank, int64_t i) {
    base_random4 r = base_philox(11, (uint64_t)i, (uint64_t)rank);
    return ldexpf(base_uniform(r.v[0]) - 0.5f, (int)(r.v[1] % 25) - 12);
}

static sifr_status get(const engine_executor *e, const value_case *c, value_rank *r,
                       sifr_error *error) {
    BASE_TRY(engine_get(e, c->whole, 0, r->whole, sizeof r->whole, error));
    BASE_TRY(engine_get(e, c->taken, 0, r->taken, sizeof r->taken, error));
    BASE_TRY(engine_get(e, c->gathered, 0, r->gathered, sizeof r->gathered, error));
    return engine_get(e, c->narrow, 0, r->narrow, sizeof r->narrow, error);
}

static int64_t counted(const engine_groups *groups, plan_span span) {
    const comm_ledger *ledger = comm_get_ledger(engine_groups_at(groups, span));
    return (int64_t)(ledger->operation[COMM_ALL_GATHER].bytes +
                     ledger->operation[COMM_REDUCE_SCATTER].bytes +
                     ledger->operation[COMM_ALL_TO_ALL].bytes);
}

static void count(const plan_schedule *s, const engine_groups *groups, value_rank *r) {
    static const plan_span spans[] = {PLAN_TENSORS, PLAN_CONTEXTS};
    for (int i = 0; i < 2; i++) {
        int64_t gathered, reduced;
        plan_wire_of(s, spans[i], &gathered, &reduced);
        r->planned[i] = gathered + reduced + plan_exchanged(s, spans[i]);
        r->counted[i] = counted(groups, spans[i]);
    }
}

static sifr_status run(value_rank *r, comm_group *world, device *on, sifr_error *error) {
    value_case c = value_case_whole(model, on, r->rank);
    engine_groups groups = {0};
    engine_executor *e = NULL;
    engine_result result;
    float values[VALUES];
    for (int i = 0; i < VALUES; i++) values[i] = given(r->rank, i);
    sifr_status status = engine_groups_open(world, &c.s->settings.mesh, false, &groups, error);
    if (status == SIFR_OK) status = engine_executor_create(c.s, &groups, NULL, &e, error);
    if (status == SIFR_OK) status = engine_set(e, c.given, 0, values, sizeof values, error);
    engine_step_input input = {.loss_scale = 1, .labelled = 1};
    if (status == SIFR_OK) status = engine_run(e, &input, &result, error);
    if (status == SIFR_OK) count(c.s, &groups, r);
    if (status == SIFR_OK) status = get(e, &c, r, error);
    engine_executor_free(e);
    engine_groups_close(&groups);
    plan_free(c.s);
    return status;
}

static void *run_rank(void *argument) {
    value_rank *r = argument;
    sifr_error error = {0};
    device *own = NULL;
    comm_group *world = comm_threads_group(r->world, r->rank);
    sifr_status status = device_open_cpu(1, NULL, &own, &error);
    if (status == SIFR_OK) status = run(r, world, own, &error);
    if (status != SIFR_OK) snprintf(r->failure, sizeof r->failure, "%s", error.message);
    comm_close(world);
    device_close(own);
    return NULL;
}

/* Value i of a tensor group's sum, in tree order. */
static float summed(int32_t context, int64_t i) {
    float parts[VALUE_TENSORS], sum;
    const void *rows[VALUE_TENSORS];
    for (int32_t t = 0; t < VALUE_TENSORS; t++) {
        parts[t] = given(context * VALUE_TENSORS + t, i);
        rows[t] = &parts[t];
    }
    device_tree_sum_typed(BASE_FP32, BASE_FP32, rows, VALUE_TENSORS, 1, &sum);
    return sum;
}

static void check_rank(const value_rank *r) {
    int32_t context = r->rank / VALUE_TENSORS, tensor = r->rank % VALUE_TENSORS;
    float expected[VALUES];
    for (int i = 0; i < VALUES; i++) expected[i] = summed(context, i);
    assert_memory_equal(r->whole, expected, sizeof expected);
    for (int i = 0; i < VALUES; i++) {
        float one = base_bf16_to_float(base_bf16_from_float(given(tensor, i)));
        float two = base_bf16_to_float(base_bf16_from_float(given(VALUE_TENSORS + tensor, i)));
        assert_int_equal(r->narrow[i], base_bf16_from_float(one + two));
    }
    const float *part = r->taken;
    for (int32_t from = 0; from < VALUE_CONTEXTS; from++) {
        int64_t first = context ? value_case_part(from, 0) / 4 : 0;
        for (int64_t i = 0; i < value_case_part(from, context) / 4; i++)
            assert_float_equal(*part++, summed(from, first + i), 0);
        for (int i = 0; i < VALUES; i++)
            assert_float_equal(r->gathered[from * VALUES + i], summed(from, i), 0);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(r->counted[i], r->planned[i]);
}

static void values_move(void **state) {
    (void)state;
    pthread_t threads[VALUE_RANKS];
    static value_rank ranks[VALUE_RANKS];
    comm_threads *world = comm_threads_create(VALUE_RANKS);
    for (int32_t r = 0; r < VALUE_RANKS; r++) {
        ranks[r] = (value_rank){.world = world, .rank = r};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (int32_t r = 0; r < VALUE_RANKS; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < VALUE_RANKS; r++) {
        assert_string_equal(ranks[r].failure, "");
        check_rank(&ranks[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_move)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
