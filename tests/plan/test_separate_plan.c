/* Plans for a device whose memory is its own: what is in host memory is moved by the same
 * instructions as what is on disk, by the copy queue; two memories, two limits, two prices. */
#include <math.h>

#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/search/search.h"
#include "support/disk_plan.h"

static device *cpu, *separate;

static int setup(void **state) {
    sifr_error error = {0};
    int bad = disk_plan_setup(state);
    cpu = dev;
    return bad || device_open_separate(1, NULL, &separate, &error);
}

static int teardown(void **state) {
    device_close(separate);
    dev = cpu;
    return disk_plan_teardown(state);
}

static plan_schedule *lower_on(device *on, const plan_settings *settings) {
    dev = on;
    plan_schedule *s = disk_plan_lower(settings);
    dev = cpu;
    return s;
}

static void expect_same_operands(const plan_schedule *a, const plan_schedule *b,
                                 const plan_instruction *i, const plan_instruction *j) {
    assert_int_equal(i->operands, j->operands);
    for (int32_t o = 0; o < i->operands; o++) {
        const plan_operand *x = &a->operands[i->first_operand + o];
        const plan_operand *y = &b->operands[j->first_operand + o];
        assert_true(x->buffer == y->buffer);
        assert_true(x->offset == y->offset);
        assert_true(x->role == y->role);
        assert_int_equal(a->buffers[x->buffer].offset, b->buffers[y->buffer].offset);
        if (i->call >= 0) assert_false(plan_is_offloaded(b, y->buffer));
    }
}

/* The list of a CPU with everything on disk is that of a separate device with everything in host
 * memory, but for the queue. */
static void same_list(void **state) {
    (void)state;
    for (int n = 0; n < 12; n++) {
        plan_settings settings = disk_plan_settings(1 << n % 3, 3, n % 2 ? SIFR_BF16 : SIFR_FP32,
                                                    disk_plan_all_on(SIFR_TIER_NVME));
        settings.step.step_order = n / 3 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.seq_length = 256;
        plan_schedule *disk = lower_on(cpu, &settings);
        settings.step.offload = disk_plan_all_on(SIFR_TIER_CPU);
        plan_schedule *host = lower_on(separate, &settings);
        int moves = 0;
        assert_int_equal(disk->instruction_count, host->instruction_count);
        for (size_t k = 0; k < disk->instruction_count; k++) {
            const plan_instruction *i = &disk->instructions[k], *j = &host->instructions[k];
            bool move = disk_plan_moves(i);
            assert_true(i->action == j->action);
            assert_true(i->bytes == j->bytes);
            assert_true(i->wait == j->wait);
            assert_int_equal(j->queue, move ? PLAN_COPY : i->queue);
            expect_same_operands(disk, host, i, j);
            moves += move;
        }
        assert_true(moves > 0);
        assert_true(disk->nvme_bytes > 0);
        assert_true(host->host_bytes == disk->nvme_bytes);
        assert_true(host->nvme_bytes == 0);
        assert_int_equal(host->total_bytes, disk->total_bytes);
        int64_t of[2][PLAN_CLASSES], moved[2][2];
        plan_offloaded_classes(disk, PLAN_NVME, of[0]);
        plan_offloaded_classes(host, PLAN_HOST, of[1]);
        assert_memory_equal(of[0], of[1], sizeof of[0]);
        plan_disk(disk, &moved[0][0], &moved[0][1]);
        plan_copies(host, &moved[1][0], &moved[1][1]);
        assert_memory_equal(moved[0], moved[1], sizeof moved[0]);
        plan_free(disk);
        plan_free(host);
    }
}

/* Copies run beside computing: as long as the slower of both. */
static void price(void **state) {
    (void)state;
    plan_machine machine = {.fp32_operations = 1e12, .memory_bytes = 1e11, .copy_bytes = 1e6};
    plan_prediction p;
    sifr_error error = {0};
    plan_settings settings = disk_plan_settings(1, 0, SIFR_FP32, disk_plan_all_on(SIFR_TIER_CPU));
    settings.step.offload.param.device = SIFR_TIER_NONE;
    plan_schedule *s = lower_on(separate, &settings);
    int64_t read, written;
    plan_copies(s, &read, &written);
    double moving = (double)(read + written) / 1e6;
    assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
    assert_true(p.copy > 0.999 * moving);
    assert_true(p.copy < 1.001 * moving);
    assert_true(p.disk == 0);
    assert_true(p.step_seconds >= p.copy);
    assert_true(p.step_seconds < 1.1 * moving + p.computing);
    machine.copy_bytes = 1e13;
    assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
    assert_true(p.step_seconds < 1.01 * p.computing);
    plan_free(s);
}

/* A GPU copies in both directions at a time: the step is at least as long as the longer one, and
 * shorter than with one queue for both. On a CPU with separate memory there is one. */
static void both_directions(void **state) {
    (void)state;
    plan_machine machine = {.fp32_operations = 1e12, .memory_bytes = 1e11, .copy_bytes = 1e6};
    plan_prediction one, two;
    sifr_error error = {0};
    plan_settings settings = disk_plan_settings(1, 3, SIFR_FP32, disk_plan_all_on(SIFR_TIER_CPU));
    plan_schedule *s = lower_on(separate, &settings);
    int64_t read, written;
    plan_copies(s, &read, &written);
    assert_int_equal(plan_predict(s, &machine, &one, NULL, &error), SIFR_OK);
    machine.device = PLAN_MACHINE_CUDA;
    assert_int_equal(plan_predict(s, &machine, &two, NULL, &error), SIFR_OK);
    assert_true(two.copy == one.copy);
    assert_true(two.copy_out == one.copy_out);
    assert_true(fabs(1e6 * two.copy_out / (double)written - 1) < 1e-9);
    assert_true(fabs(1e6 * (two.copy - two.copy_out) / (double)read - 1) < 1e-9);
    assert_true(two.step_seconds > two.copy_out);
    assert_true(two.step_seconds > two.copy - two.copy_out);
    assert_true(two.step_seconds < one.step_seconds);
    plan_free(s);
}

/* What fits is a matter of either memory. */
static void limits(void **state) {
    (void)state;
    plan_machine machine = {.fp32_operations = 1e12, .memory_bytes = 1e11};
    plan_settings settings = disk_plan_settings(1, 0, SIFR_FP32, (sifr_offload){0});
    sifr_error error = {0};
    settings.step.offload.optimizer.device = SIFR_TIER_CPU;
    plan_schedule *s = lower_on(separate, &settings);
    for (int n = 0; n < 4; n++) {
        plan_outcome out;
        plan_search search = {.model = model,
                              .dev = separate,
                              .machine = &machine,
                              .room_bytes = s->total_bytes - (n & 1),
                              .host_room_bytes = s->host_bytes - (n >> 1)};
        assert_int_equal(plan_try(&search, &settings, &out, &error), SIFR_OK);
        assert_true(out.host_bytes == s->host_bytes);
        assert_true(out.total_bytes == s->total_bytes);
        assert_int_equal(out.fits, n == 0);
    }
    plan_free(s);
}

static void refusals(void **state) {
    (void)state;
    plan_schedule *s = NULL;
    sifr_error error = {0};
    plan_settings settings = disk_plan_settings(2, 1, SIFR_FP32, (sifr_offload){0});
    settings.step.offload.gradients = SIFR_TIER_CPU;
    assert_int_equal(plan_lower(model, separate, &settings, &s, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "gradients of several ranks are in host memory at ZeRO"));
    settings.step.offload.param.device = SIFR_TIER_CPU;
    assert_int_equal(plan_lower(model, separate, &settings, &s, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "parameters are in host memory at ZeRO stage 3 only"));
    s = lower_on(cpu, &settings); /* one memory */
    assert_int_equal(s->host_bytes, 0);
    plan_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_list), cmocka_unit_test(price),
                                       cmocka_unit_test(both_directions), cmocka_unit_test(limits),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
