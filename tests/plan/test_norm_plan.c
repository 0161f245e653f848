/* The norm in plans: over the ranks each gradient's square is added once, by the rank that owns it,
 * for any number of ranks; what a rank keeps for it does not grow with the model. */
#include "support/disk_plan.h"

#include "plan/numbers.h"

enum { SEGMENTS = 64 };

/* Adds to `squared` the elements of each segment that this plan squares, all of them its rank's. */
static void note_squares(const plan_schedule *s, int64_t squared[SEGMENTS]) {
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_STATE),
            rank = plan_mesh_place(&s->settings.mesh, PLAN_STATE);
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_SQUARES) continue;
        const device_call *call = &s->calls[in->call];
        const plan_operand *x = &s->operands[in->first_operand], *y = x + 1;
        int64_t slice = s->segment_elements[in->segment] / ranks;
        int64_t whole = s->buffers[x->buffer].bytes >= 4 * s->segment_elements[in->segment];
        assert_int_equal(call->kernel, DEVICE_EXACT_SQUARES);
        assert_int_equal(call->x[0].columns, slice);
        assert_int_equal(x->offset, whole ? 4 * rank * slice : 0);
        assert_int_equal(y->buffer, s->numbers);
        assert_int_equal(y->offset, offsetof(plan_numbers, squares));
        squared[in->segment] += call->x[0].columns;
    }
}

static void every_gradient_once(void **state) {
    (void)state;
    assert_in_range(model->segment_count, 1, SEGMENTS);
    for (int32_t ranks = 1; ranks <= 8; ranks++) {
        for (int stage = 0; stage <= 3; stage++) {
            int64_t squared[SEGMENTS] = {0}, elements[SEGMENTS] = {0};
            for (int32_t rank = 0; rank < ranks; rank++) {
                plan_settings settings =
                    disk_plan_settings(ranks, stage, SIFR_FP32, (sifr_offload){0});
                settings.mesh = plan_mesh_at(&settings.mesh, rank);
                settings.step.step_order = rank % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
                plan_schedule *s = disk_plan_lower(&settings);
                note_squares(s, squared);
                for (size_t g = 0; g < model->segment_count; g++)
                    elements[g] = s->segment_elements[g];
                plan_free(s);
            }
            assert_memory_equal(squared, elements, sizeof squared);
        }
    }
}

/* 168 bytes and the losses: this rank's, and with several ranks those of all. */
static void bytes_of_numbers(void **state) {
    (void)state;
    for (int32_t ranks = 1; ranks <= 5; ranks++) {
        for (int64_t k = 1; k <= 9; k += 4) {
            plan_settings settings = disk_plan_settings(ranks, 2, SIFR_BF16, (sifr_offload){0});
            settings.step.gradient_accumulation_steps = (int32_t)k;
            plan_schedule *s = disk_plan_lower(&settings);
            int64_t part = 168 + 8 * k, head = (int64_t)offsetof(plan_numbers, squares);
            assert_int_equal(plan_part_bytes(s), part);
            assert_int_equal(s->buffers[s->numbers].bytes,
                             head + part + (ranks > 1 ? ranks * part : 0));
            plan_free(s);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_gradient_once),
                                       cmocka_unit_test(bytes_of_numbers)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
