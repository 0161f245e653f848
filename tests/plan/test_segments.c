/* Segments: where a model's weights lie, and that frozen ones have parameters and nothing else, at
 * every stage and tier.
 * in test_asan */
#include "support/disk_plan.h"

static sifr_model *frozen_model(const char *first, const char *second) {
    sifr_error error = {0};
    sifr_model *out;
    model_config config = model_case_llama();
    assert_int_equal(model_from_config(&config, &out, &error), SIFR_OK);
    if (first) assert_int_equal(sifr_model_freeze(out, first, &error), SIFR_OK);
    if (second) assert_int_equal(sifr_model_freeze(out, second, &error), SIFR_OK);
    return out;
}

/* Every weight is in a segment of its unit and kind, on a block border, and no two overlap. */
static void check_arrangement(const sifr_model *m) {
    int64_t elements = 0, weights = 0;
    for (size_t g = 0; g < m->segment_count; g++) {
        const model_segment *segment = &m->segments[g];
        int64_t end = 0;
        for (size_t w = 0; w < m->weight_count; w++) {
            const model_weight *weight = &m->weights[w];
            if (weight->segment != (int32_t)g) continue;
            assert_int_equal(weight->unit, segment->unit);
            assert_int_equal(weight->frozen, segment->frozen);
            assert_int_equal(weight->group, segment->group);
            assert_int_equal(weight->offset, end);
            end +=
                (weight->rows * weight->columns + DEVICE_BLOCK - 1) / DEVICE_BLOCK * DEVICE_BLOCK;
            weights++;
        }
        assert_int_equal(segment->elements, end);
        elements += end;
    }
    assert_int_equal(weights, m->weight_count);
    for (size_t u = 0; u < m->unit_count; u++) {
        const model_unit *unit = &m->units[u];
        for (int32_t g = 0; g < unit->segments; g++)
            assert_int_equal(m->segments[unit->first_segment + g].unit, u);
        elements -= unit->elements;
    }
    assert_int_equal(elements, 0);
}

static void arrangement(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *m = frozen_model(NULL, NULL);
    check_arrangement(m);
    assert_int_equal(m->segment_count, m->unit_count);
    sifr_model_free(m);
    m = frozen_model("*proj*", "model.embed_tokens.*");
    check_arrangement(m);
    assert_int_equal(m->segment_count, m->unit_count + 2); /* both blocks are divided */
    for (size_t w = 0; w < m->weight_count; w++) m->weights[w].group = (int32_t)w % 3;
    assert_int_equal(model_arrange(m, &error), SIFR_OK);
    check_arrangement(m);
    sifr_model_free(m);
}

/* Elements of trained segments, and of all, as the plan pads them. */
static void count(const plan_schedule *s, int64_t *trained, int64_t *all) {
    *trained = *all = 0;
    for (size_t g = 0; g < s->model->segment_count; g++) {
        *all += s->segment_elements[g];
        if (!s->model->segments[g].frozen) *trained += s->segment_elements[g];
    }
}

/* Bytes of a class, wherever its buffers are, and that none but parameters is of a frozen one. */
static int64_t held(const plan_schedule *s, plan_class class) {
    int64_t bytes = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        bool frozen = buffer->segment >= 0 && s->model->segments[buffer->segment].frozen;
        if (frozen && buffer->class != PLAN_PARAMETERS && buffer->class != PLAN_GATHERED)
            fail_msg("%s of a frozen segment", plan_class_name(buffer->class));
        if (buffer->class == class && buffer->first < 0) bytes += buffer->bytes;
    }
    return bytes;
}

/* A product with a frozen weight reads its input for nothing but that weight's gradient, so it is
 * not kept for the backward pass. */
static void check_inputs(const plan_schedule *s) {
    int without = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->call < 0 || s->calls[in->call].kernel != DEVICE_LINEAR_BACKWARD) continue;
        const device_call *call = &s->calls[in->call];
        bool weights = call->dw[0].dtype != BASE_NONE || call->dx[0].dtype == BASE_NONE;
        assert_int_equal(call->x[0].dtype != BASE_NONE, weights);
        without += !weights;
    }
    assert_true(without > 0);
}

/* Frozen segments are gathered for use at stage 3, and nothing else is done about them. */
static void check_list(const plan_schedule *s) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool of_segment = in->action == PLAN_SQUARES || in->action == PLAN_UPDATE ||
                          in->action == PLAN_REDUCE || in->action == PLAN_GATHER;
        if (!of_segment || !s->model->segments[in->segment].frozen) continue;
        assert_int_equal(in->action, PLAN_GATHER);
        int32_t whole = s->operands[in->first_operand + 1].buffer;
        assert_int_equal(s->buffers[whole].class, PLAN_GATHERED);
    }
    for (size_t i = 0; i < s->operand_count; i++) {
        const plan_operand *o = &s->operands[i];
        const plan_buffer *buffer = &s->buffers[o->buffer];
        bool frozen = buffer->segment >= 0 && s->model->segments[buffer->segment].frozen;
        if (frozen) {
            assert_true(o->role != PLAN_DW0);
            assert_true(o->role != PLAN_DW1);
        }
    }
}

static void nothing_but_parameters(void **state) {
    (void)state;
    sifr_model *m = frozen_model("*proj*", "model.embed_tokens.*");
    for (int n = 0; n < 96; n++) {
        int32_t ranks = 1 << n % 3;
        int stage = n / 3 % 4;
        sifr_precision precision = n / 12 % 2 ? SIFR_BF16 : SIFR_FP32;
        static const sifr_tier tiers[] = {SIFR_TIER_NONE, SIFR_TIER_NVME};
        sifr_offload offload = disk_plan_all_on(tiers[n / 24 % 2]);
        if (stage < 3) offload.param.device = SIFR_TIER_NONE;
        if (stage < 2) offload.gradients = SIFR_TIER_NONE;
        plan_settings settings = disk_plan_settings(ranks, stage, precision, offload);
        settings.verify = true;
        settings.step.step_order = n / 48 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        plan_schedule *s;
        sifr_error error = {0};
        if (plan_lower(m, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
        int64_t trained, all, element = precision == SIFR_BF16 ? 2 : 4;
        int64_t cut = stage >= 1 ? ranks : 1, slices = stage == 3 ? ranks : 1;
        count(s, &trained, &all);
        assert_true(4 * trained < 3 * all);
        assert_int_equal(held(s, PLAN_PARAMETERS), all * element / slices);
        assert_int_equal(held(s, PLAN_MASTERS), precision == SIFR_BF16 ? trained * 4 / cut : 0);
        assert_int_equal(held(s, PLAN_MOMENTS), trained * 8 / cut);
        check_list(s);
        check_inputs(s);
        plan_free(s);
    }
    sifr_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(arrangement),
                                       cmocka_unit_test(nothing_but_parameters)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
