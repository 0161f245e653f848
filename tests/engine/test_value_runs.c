/* Collectives of values that belong to no segment, run by an executor on ranks that are threads, on
 * the CPU and on a device that has only begun its work and hides its memory: a sum is that of all
 * ranks in tree order, an exchange brings each rank's parts, in place or not, and each group counts
 * the bytes of the plan. Under mpirun (test_value_runs_mpi.sh) each process is a rank.
 * in test_tsan */
#include "engine/executor/executor.h"

#include <pthread.h>
#include <stdio.h>

#include "base/half.h"
#include "base/random.h"
#include "comm/launcher.h"
#include "device/tree_sum.h"
#include "support/comm_threads.h"
#include "support/on_queues.h"
#include "support/value_case.h"

typedef struct value_rank {
    comm_group *group;
    int32_t rank;
    bool hidden;
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
        r->planned[i] = gathered + reduced + plan_exchanged_of(s, spans[i]);
        r->counted[i] = counted(groups, spans[i]);
    }
}

/* The second time other ranks' windows are open, and on a device the host does not wait. */
static sifr_status run_twice(engine_executor *e, const value_case *c, value_rank *r,
                             const engine_groups *groups, sifr_error *error) {
    engine_step_input input = {.loss_scale = 1, .labelled = 1};
    engine_result result;
    float values[VALUES];
    for (int i = 0; i < VALUES; i++) values[i] = given(r->rank, i);
    for (int time = 0; time < 2; time++) {
        BASE_TRY(engine_set(e, c->given, 0, values, sizeof values, error));
        BASE_TRY(engine_run(e, &input, &result, error));
        if (time == 0) count(c->s, groups, r);
    }
    return get(e, c, r, error);
}

static sifr_status use_device(const plan_schedule *s, comm_group *world, sifr_error *error) {
    comm_operands operands = engine_operands(s);
    if (!device_is_hidden(s->dev)) return SIFR_OK;
    return comm_use_device(world, s->dev, &operands, error);
}

static sifr_status run(value_rank *r, comm_group *world, device *on, sifr_error *error) {
    value_case c = value_case_whole(model, on, r->rank);
    engine_groups groups = {0};
    engine_executor *e = NULL;
    sifr_status status = engine_groups_open(world, &c.s->settings.mesh, false, &groups, error);
    if (status == SIFR_OK) status = use_device(c.s, world, error);
    if (status == SIFR_OK) status = engine_executor_create(c.s, &groups, NULL, &e, error);
    if (status == SIFR_OK) status = run_twice(e, &c, r, &groups, error);
    engine_executor_free(e);
    if (device_is_hidden(on)) {
        (void)!engine_groups_follow(&groups, NULL, NULL, NULL);
        (void)!comm_use_device(world, NULL, NULL, NULL);
    }
    engine_groups_close(&groups);
    plan_free(c.s);
    return status;
}

static void *run_rank(void *argument) {
    value_rank *r = argument;
    sifr_error error = {0};
    device *own = NULL;
    sifr_status status =
        r->hidden ? on_queues_open(&own, &error) : device_open_cpu(1, NULL, &own, &error);
    if (status == SIFR_OK) status = run(r, r->group, own, &error);
    if (status != SIFR_OK) snprintf(r->failure, sizeof r->failure, "%s", error.message);
    comm_close(r->group);
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

static void move_values(bool hidden) {
    pthread_t threads[VALUE_RANKS];
    static value_rank ranks[VALUE_RANKS];
    comm_threads *world = comm_threads_create(VALUE_RANKS);
    if (hidden) comm_threads_share(world);
    for (int32_t r = 0; r < VALUE_RANKS; r++) {
        ranks[r] = (value_rank){.group = comm_threads_group(world, r), .rank = r, .hidden = hidden};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (int32_t r = 0; r < VALUE_RANKS; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < VALUE_RANKS; r++) {
        assert_string_equal(ranks[r].failure, "");
        check_rank(&ranks[r]);
    }
}

static void on_the_host(void **state) {
    (void)state;
    move_values(false);
}

static void on_a_device(void **state) {
    (void)state;
    move_values(true);
}

/* As one of mpirun's ranks. What is asserted ends the process. */
static int run_under_launcher(bool hidden) {
    sifr_error error = {0};
    value_rank r = {.hidden = hidden};
    void *unused = NULL;
    if (comm_open_mpi(&r.group, &error) != SIFR_OK || comm_size(r.group) != VALUE_RANKS ||
        disk_plan_setup(&unused)) {
        fprintf(stderr, "%s\n", error.message);
        return SIFR_FAILED;
    }
    r.rank = comm_rank(r.group);
    run_rank(&r);
    if (r.failure[0]) fprintf(stderr, "rank %d: %s\n", (int)r.rank, r.failure);
    if (!r.failure[0]) check_rank(&r);
    disk_plan_teardown(&unused);
    return r.failure[0] ? SIFR_FAILED : SIFR_OK;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_the_host),
                                       cmocka_unit_test(on_a_device)};
    if (argc == 2 && comm_under_launcher(NULL))
        return run_under_launcher(strcmp(argv[1], "device") == 0);
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
