/* Copies beside computing on a device that has only begun what it was given, shown by the order in
 * which work begins and ends, never by time. Each copy that is started before a kernel and waited
 * for behind it is made to begin when that kernel has ended; in another run the kernel is made to
 * begin when the copy has ended. Both runs end, with the bits of a run that is left alone; if
 * either had to wait for the other, one of them would stand still. timeout: 120, in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/executor/executor_private.h"
#include "support/zero_run.h"

enum { STEPS = 3, MOST = 64, STUCK_S = 60 };

typedef enum order {
    ALONE,
    COPIES_LATE, /* behind the kernel that they are beside */
    COPIES_EARLY /* before it */
} order;

typedef struct run {
    order order;
    engine_executor *executor;
    size_t kernel;  /* the one that comes next, if copies were started before it; 0: none were */
    int64_t number; /* of DEVICE_COMPUTE when it has ended */
    size_t starts[MOST];
    int started;
    int64_t beside, copies; /* started before a kernel and waited for behind it; all */
} run;

static bool is_copy(const plan_instruction *i) {
    return executor_is_move(i) && i->queue == PLAN_COPY;
}

/* What lies between instruction `n` and the next kernel: if that is copies that are started and
 * waits for copies that were started before, the copies. *pieces: of DEVICE_COMPUTE, for waits. */
static bool look_ahead(run *r, size_t n, int64_t *pieces) {
    const engine_executor *e = r->executor;
    const plan_schedule *s = e->schedule;
    r->started = 0;
    *pieces = 0;
    for (size_t k = n + 1; k < s->instruction_count; k++) {
        const plan_instruction *i = &s->instructions[k];
        if (i->call >= 0) {
            r->kernel = k;
            return r->started > 0;
        }
        bool waits = i->action == PLAN_WAIT && is_copy(&s->instructions[i->wait]);
        if (waits && (size_t)i->wait < n)
            *pieces += e->copies[i->wait].number != 0;
        else if (is_copy(i) && r->started < MOST)
            r->starts[r->started++] = k;
        else
            return false;
    }
    return false;
}

static device *device_of(const run *r) {
    return r->executor->schedule->dev;
}

/* Before the copies are given: their queues go on when the kernel behind them has ended. */
static sifr_status hold_copies(run *r, sifr_error *error) {
    bool held[DEVICE_QUEUES] = {false};
    device_mark end = {.queue = DEVICE_COMPUTE, .number = r->number};
    for (int c = 0; c < r->started; c++) {
        bool read = r->executor->schedule->instructions[r->starts[c]].action == PLAN_READ;
        device_queue queue = read ? DEVICE_IN : DEVICE_OUT;
        if (!held[queue]) BASE_TRY(device_queue_wait(device_of(r), queue, end, error));
        held[queue] = true;
    }
    return SIFR_OK;
}

/* When the copies and the kernel between their starts and waits have ended. */
static sifr_status check_order(const run *r, device_mark kernel, sifr_error *error) {
    device *dev = device_of(r);
    double begun, ended, copy_begun, copy_ended;
    BASE_TRY(device_finish(dev, kernel, error));
    device_times(dev, kernel, &begun, &ended);
    for (int c = 0; c < r->started; c++) {
        device_mark copy = r->executor->copies[r->starts[c]];
        BASE_TRY(device_finish(dev, copy, error));
        device_times(dev, copy, &copy_begun, &copy_ended);
        if (begun <= 0 || copy_begun <= 0 ||
            (r->order == COPIES_LATE ? copy_begun < ended : copy_ended > begun))
            return base_fail(error, SIFR_FAILED,
                             "instruction %zu: a copy from %.9f to %.9f, the "
                             "kernel from %.9f to %.9f",
                             r->starts[c], copy_begun, copy_ended, begun, ended);
    }
    return SIFR_OK;
}

static sifr_status run_kernel(void *user, size_t n, const device_call *call, sifr_error *error) {
    run *r = user;
    device *dev = device_of(r);
    device_mark here;
    int64_t waits;
    if (r->order == ALONE) return device_run(dev, call, error);
    bool beside = r->kernel == n && r->started > 0;
    if (beside && r->order == COPIES_EARLY) {
        for (int c = 0; c < r->started; c++)
            BASE_TRY(
                device_queue_wait(dev, DEVICE_COMPUTE, r->executor->copies[r->starts[c]], error));
    }
    BASE_TRY(device_run(dev, call, error));
    BASE_TRY(device_mark_here(dev, DEVICE_COMPUTE, &here, error));
    if (beside) {
        if (r->order == COPIES_LATE && here.number != r->number)
            return base_fail(error, SIFR_FAILED, "kernel %zu is number %lld, not %lld", n,
                             (long long)here.number, (long long)r->number);
        BASE_TRY(check_order(r, here, error));
        r->beside += r->started;
    }
    r->kernel = 0;
    if (!look_ahead(r, n, &waits)) {
        r->started = 0;
        return SIFR_OK;
    }
    r->number = here.number + waits + 1;
    return r->order == COPIES_LATE ? hold_copies(r, error) : SIFR_OK;
}

static float *weights_of(const sifr_engine *engine, size_t *bytes) {
    const sifr_model *model = engine->model;
    float *all = calloc((size_t)sifr_model_parameters(model), sizeof *all), *at = all;
    sifr_error error = {0};
    for (size_t w = 0; w < model->weight_count; w++) {
        size_t count = (size_t)(model->weights[w].rows * model->weights[w].columns);
        if (sifr_engine_read_weight(engine, model->weights[w].name, at, count, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        at += count;
    }
    *bytes = (size_t)(at - all) * sizeof *all;
    return all;
}

static float *train(const sifr_offload *offload, order how, run *r, size_t *bytes) {
    int32_t tokens[2 * ZERO_LENGTH], labels[2 * ZERO_LENGTH];
    sifr_settings settings = sifr_settings_defaults();
    model_config config = zero_config("llama");
    sifr_model *model;
    sifr_engine *engine;
    comm_group *group;
    device *dev;
    sifr_step_result result;
    sifr_error error = {0};
    settings.threads = 1, settings.seq_length = ZERO_LENGTH;
    settings.gradient_accumulation_steps = 2;
    settings.precision = SIFR_BF16;
    settings.zero.stage = 3;
    settings.offload = *offload;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    assert_int_equal(device_open_queued(1, NULL, 60, 11, &dev, &error), SIFR_OK);
    if (engine_create_on(dev, model, &settings, group, &engine, &error) != SIFR_OK ||
        sifr_engine_initialise(engine, 5, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    const plan_schedule *s = engine->training;
    *r = (run){.order = how, .executor = engine->trainer};
    for (size_t i = 0; i < s->instruction_count; i++) r->copies += is_copy(&s->instructions[i]);
    for (int i = 0; i < 2 * ZERO_LENGTH; i++) tokens[i] = i * 5 % 97, labels[i] = i * 7 % 97;
    for (int step = 0; step < STEPS; step++) {
        if (step == 1) engine_replace_kernels(engine->trainer, run_kernel, r);
        alarm(STUCK_S); /* the test ends if a step stands still */
        if (sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-2,
                             &result, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        alarm(0);
    }
    float *weights = weights_of(engine, bytes);
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    return weights;
}

/* `least`: of a hundred copies. */
static void check(const sifr_offload *offload, const char *what, int least) {
    static const order orders[] = {COPIES_LATE, COPIES_EARLY};
    size_t bytes;
    run r;
    float *want = train(offload, ALONE, &r, &bytes);
    for (int o = 0; o < 2; o++) {
        float *have = train(offload, orders[o], &r, &bytes);
        int64_t all = r.copies * (STEPS - 1);
        print_message("%s: %lld of %lld copies %s a kernel that they are beside\n", what,
                      (long long)r.beside, (long long)all, o ? "before" : "behind");
        assert_true(100 * r.beside >= least * all);
        assert_true(all > 0);
        assert_memory_equal(want, have, bytes);
        free(have);
    }
    free(want);
}

static void optimizer_state(void **state) {
    (void)state;
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.optimizer.device = SIFR_TIER_CPU;
    offload.sub_group_size = 3000;
    check(&offload, "optimizer state", 80);
}

static void everything(void **state) {
    (void)state;
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.optimizer.device = offload.param.device = SIFR_TIER_CPU;
    offload.gradients = offload.activations = SIFR_TIER_CPU;
    offload.sub_group_size = 3000;
    check(&offload, "all state", 80);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(optimizer_state),
                                       cmocka_unit_test(everything)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
