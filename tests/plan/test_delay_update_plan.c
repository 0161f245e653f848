/* Plans whose update the next step carries out, beside its forward pass: in what order things come,
 * that no two live buffers are in one place, what it takes and gains, and when it is left alone. */
#include "base/checked.h"
#include "plan/queries.h"
#include "support/disk_plan.h"

static size_t deferred_count(const plan_schedule *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->instruction_count; i++) count += s->instructions[i].deferred;
    return count;
}

static bool touches(const plan_schedule *s, const plan_instruction *in, int32_t buffer) {
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        if (s->operands[o].buffer == buffer) return true;
    }
    return false;
}

/* Nothing else touches what is deferred before that is through, waits for its transfers included;
 * and nothing of it is left when gradients are made. */
static void check_order(const plan_schedule *s) {
    bool *begun = calloc(s->buffer_count, sizeof *begun);
    bool *moving = calloc(s->instruction_count, sizeof *moving);
    bool backward = false, decided = false;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *in = &s->instructions[n];
        backward |= in->action == PLAN_BACKWARD;
        decided |= in->action == PLAN_NORM;
        assert_false(in->deferred && backward);
        assert_false(decided && (in->action == PLAN_UPDATE || disk_plan_moves(in)));
        if (in->wait >= 0) assert_int_equal(in->deferred, s->instructions[in->wait].deferred);
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t buffer = s->operands[o].buffer;
            begun[buffer] |= !in->deferred;
            assert_false(in->deferred && begun[buffer]);
            for (size_t m = 0; m < n && !in->deferred; m++)
                assert_false(moving[m] && touches(s, &s->instructions[m], buffer));
        }
        if (!in->deferred) continue;
        moving[n] = disk_plan_moves(in) || in->action == PLAN_GATHER;
        if (in->wait >= 0) moving[in->wait] = false;
    }
    free(begun);
    free(moving);
}

/* From a birth before the step's end to a death in the next step there are two stretches. */
static bool meet(const plan_buffer *x, const plan_buffer *y) {
    if (x->first < 0 || y->first < 0) return true;
    bool x_on = x->last < x->first, y_on = y->last < y->first;
    if (x_on && y_on) return true;
    if (x_on) return y->first <= x->last || y->last >= x->first;
    if (y_on) return x->first <= y->last || x->last >= y->first;
    return x->first <= y->last && y->first <= x->last;
}

static size_t check_memory(const plan_schedule *s) {
    size_t on = 0;
    for (size_t a = 0; a < s->buffer_count; a++) {
        const plan_buffer *x = &s->buffers[a];
        if (plan_is_offloaded(s, (int32_t)a) || x->bytes == 0 || x->last < 0) continue;
        on += x->first >= 0 && x->last < x->first;
        assert_true(x->offset >= 0);
        assert_true(x->offset + x->bytes <= s->total_bytes);
        for (size_t b = 0; b < a; b++) {
            const plan_buffer *y = &s->buffers[b];
            if (plan_is_offloaded(s, (int32_t)b) || y->bytes == 0 || y->last < 0) continue;
            bool apart = x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset;
            assert_true(apart || !meet(x, y));
        }
    }
    return on;
}

/* Collectives in the order of the list, for all ranks to compare. */
static size_t collectives(const plan_schedule *s, int32_t *out) {
    size_t count = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool is_one = in->action == PLAN_GATHER || in->action == PLAN_REDUCE ||
                      in->action == PLAN_COUNT || in->action == PLAN_NORM;
        if (is_one) out[count++] = in->action * 10000 + in->unit * 2 + in->deferred;
    }
    return count;
}

static void sound(void **state) {
    (void)state;
    int32_t first[4096], other[4096];
    size_t lives_on = 0;
    for (int n = 0; n < 32; n++) {
        plan_settings settings =
            disk_plan_state_settings(1 << n % 4, n / 4 % 4, n % 3 ? SIFR_BF16 : SIFR_FP32);
        static const int64_t groups[] = {1, 3000, 4096, 100000, 0};
        settings.step.offload.sub_group_size = groups[n % 5];
        settings.step.step_order = n / 2 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.recompute = n / 16 % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.gradient_accumulation_steps = 1 + n % 3;
        settings.step.seq_length = n % 7 ? 128 : 16;
        int32_t ranks = plan_mesh_ranks(&settings.mesh, PLAN_WORLD);
        bool spills = ranks == 1 || settings.step.zero.stage >= 2;
        if (n % 8 == 7 && spills) settings.step.offload.gradients = SIFR_TIER_NVME;
        settings.mesh = plan_mesh_at(&settings.mesh, 0);
        plan_schedule *s = disk_plan_lower(&settings);
        size_t count = collectives(s, first);
        for (int32_t r = 0; r < ranks; r++) {
            plan_free(s);
            settings.mesh = plan_mesh_at(&settings.mesh, r);
            s = disk_plan_lower(&settings);
            assert_int_equal(collectives(s, other), count);
            assert_memory_equal(first, other, count * sizeof *first);
            if (deferred_count(s)) check_order(s);
            lives_on += check_memory(s);
        }
        plan_free(s);
    }
    assert_true(lives_on > 400);
}

/* It takes hardly more than the update of the same step does, which two sets of buffers less tell
 * apart: that is what is compared. */
static void memory(void **state) {
    (void)state;
    int deferred = 0;
    for (int n = 0; n < 24; n++) {
        plan_settings settings = disk_plan_state_settings(1 << n % 3, n / 3 % 4, SIFR_BF16);
        settings.step.seq_length = 64 << n % 4;
        settings.step.offload.optimizer.buffer_count = 9;
        plan_schedule *s = disk_plan_lower(&settings);
        settings.step.offload.optimizer.pipeline_write = false;
        plan_schedule *other = disk_plan_lower(&settings);
        assert_int_equal(deferred_count(other), 0);
        deferred += deferred_count(s) > 0;
        assert_true(s->total_bytes <= other->total_bytes + other->total_bytes / 256);
        plan_free(s);
        plan_free(other);
    }
    assert_true(deferred > 16);
}

/* A disk that takes an eighth of the computing's time, and so less than the forward pass, is hidden
 * by it but for the first unit, which computing waits for. */
static void hides_the_disk(void **state) {
    (void)state;
    plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
    settings.step.seq_length = 256;
    settings.step.gradient_accumulation_steps = 1;
    settings.step.offload.sub_group_size = 0; /* a unit each */
    plan_prediction both[2];
    for (int n = 0; n < 2; n++) {
        sifr_error error = {0};
        settings.step.offload.optimizer.pipeline_write = n == 0;
        settings.step.offload.optimizer.buffer_count = 9;
        plan_schedule *s = disk_plan_lower(&settings);
        plan_machine machine = {
            .fp32_operations = 1e9, .bf16_operations = 1e9, .memory_bytes = 1e11};
        int64_t read, written;
        plan_disk(s, &read, &written);
        assert_int_equal(plan_predict(s, &machine, &both[n], NULL, &error), SIFR_OK);
        machine.disk_bytes = (double)(read + written) / (both[n].computing / 8);
        assert_int_equal(plan_predict(s, &machine, &both[n], NULL, &error), SIFR_OK);
        assert_int_equal(deferred_count(s) > 0, n == 0);
        plan_free(s);
    }
    assert_true(both[0].step_seconds < both[0].computing + 0.2 * both[0].disk);
    assert_true(both[1].step_seconds > both[1].computing + 0.7 * both[1].disk);
}

/* A step of four micro batches: in unit order every forward pass lies beside the update, so that a
 * disk that takes longer than one of them is hidden as well. In batch order each unit's update has
 * to stand before the first micro batch reads the unit. */
static void several_micro_batches(void **state) {
    (void)state;
    plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
    settings.step.seq_length = 256;
    settings.step.gradient_accumulation_steps = 4;
    settings.step.offload.sub_group_size = 0;
    settings.step.offload.optimizer.buffer_count = 9;
    double shown[2]; /* share of the disk's time that the step takes longer for it */
    for (int n = 0; n < 2; n++) {
        sifr_error error = {0};
        plan_prediction p;
        settings.step.step_order = n == 0 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        plan_schedule *s = disk_plan_lower(&settings);
        plan_machine machine = {
            .fp32_operations = 1e9, .bf16_operations = 1e9, .memory_bytes = 1e11};
        int64_t read, written;
        check_order(s);
        assert_true(deferred_count(s) > 0);
        plan_disk(s, &read, &written);
        assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
        machine.disk_bytes = (double)(read + written) / (p.computing / 5);
        assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
        shown[n] = (p.step_seconds - p.computing) / p.disk;
        plan_free(s);
    }
    assert_true(shown[0] < 0.2);
    assert_true(shown[1] > 0.4);
}

/* Where it does not help or is not asked for. */
static void left_alone(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        plan_settings settings = disk_plan_state_settings(2, 3, SIFR_BF16);
        settings.step.seq_length = 256;
        if (n == 0) settings.step.offload.optimizer.pipeline_read = false;
        if (n == 1) settings.step.offload.optimizer.pipeline_write = false;
        if (n == 2) settings.step.offload.param.device = SIFR_TIER_NVME;
        plan_schedule *s = disk_plan_lower(&settings);
        assert_int_equal(deferred_count(s) > 0, n == 3);
        plan_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound), cmocka_unit_test(memory), cmocka_unit_test(hides_the_disk),
        cmocka_unit_test(several_micro_batches), cmocka_unit_test(left_alone)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
