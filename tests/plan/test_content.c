/* Stale data: what each byte of weights, gradients and states is, is followed through the list.
 * Whatever is left out, comes from another's place or goes to one, is found; on every stage, on
 * tiers, with copies of the state, between stages of a pipeline, with Muon and LAMB. That nothing
 * is found in the plans that are made, test_verify.c and every other test of a plan show. */
#include <stdio.h>

#include "plan/pass/passes.h"
#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/verify/content_check.h"
#include "plan/verify/verify.h"
#include "sifr/engine.h"
#include "support/disk_plan.h"

/* --- what is planned --- */

static plan_schedule *lower(const plan_settings *settings) {
    sifr_error error = {0};
    plan_schedule *s = disk_plan_lower(settings);
    if (plan_verify(s, &error) != SIFR_OK) fail_msg("%s", error.message);
    return s;
}

static plan_schedule *two_ranks(int stage) {
    plan_settings settings = disk_plan_settings(2, stage, SIFR_BF16, (sifr_offload){0});
    return lower(&settings);
}

/* The last of 2 copies of 2 slices. */
static plan_schedule *two_copies(int stage) {
    sifr_error error = {0};
    plan_settings settings = disk_plan_settings(1, stage, SIFR_BF16, (sifr_offload){0});
    assert_int_equal(plan_mesh_make(4, 3, 2, &settings.mesh, &error), SIFR_OK);
    return lower(&settings);
}

static plan_schedule *with_optimizer(sifr_optimizer_type type, int stage) {
    sifr_error error = {0};
    plan_settings settings = disk_plan_settings(2, stage, SIFR_BF16, (sifr_offload){0});
    settings.step.optimizer = sifr_settings_defaults().optimizer;
    settings.step.optimizer.type = type;
    if (sifr_model_group(model, &settings.step.optimizer, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return lower(&settings);
}

static plan_schedule *on_tier(int stage, int32_t ranks) {
    sifr_offload offload = disk_plan_all_on(SIFR_TIER_NVME);
    if (stage < 3) offload.param.device = SIFR_TIER_NONE;
    plan_settings settings = disk_plan_settings(ranks, stage, SIFR_BF16, offload);
    return lower(&settings);
}

/* --- what is broken --- */

static void expect_found(const plan_schedule *s, const char *what, const char *text) {
    sifr_error error = {0};
    sifr_status status = plan_check_content(s, &error);
    if (status == SIFR_OK) fail_msg("%s: not found", what);
    assert_int_equal(status, SIFR_FAILED);
    if (!strstr(error.message, text))
        fail_msg("%s: \"%s\" has no \"%s\"", what, error.message, text);
    assert_int_equal(plan_verify(s, &error), SIFR_FAILED);
}

static bool is_kernel(const plan_schedule *s, const plan_instruction *in, device_kernel kernel) {
    return in->call >= 0 && s->calls[in->call].kernel == kernel;
}

/* The n-th of an action, counted from the end where n is negative; into a buffer of a class. */
static plan_instruction *find(plan_schedule *s, plan_action action, plan_class to, int n) {
    int count = 0, wanted = n;
    for (int time = 0; time < 2; time++) {
        if (time == 1) wanted = n < 0 ? count + n : n;
        count = 0;
        for (size_t i = 0; i < s->instruction_count; i++) {
            plan_instruction *in = &s->instructions[i];
            if (in->action != action) continue;
            int32_t last = s->operands[in->first_operand + in->operands - 1].buffer;
            if (to != PLAN_CLASSES && s->buffers[last].class != to) continue;
            if (time == 1 && count == wanted) return in;
            count++;
        }
    }
    fail_msg("the plan has no such instruction");
    return NULL;
}

/* An instruction without effect in place of this one and of the wait for it. */
static void leave_out(plan_schedule *s, plan_instruction *in) {
    int32_t index = (int32_t)(in - s->instructions);
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_instruction *other = &s->instructions[i];
        if (other != in && (other->action != PLAN_WAIT || other->wait != index)) continue;
        *other = (plan_instruction){.action = PLAN_COUNT,
                                    .unit = -1,
                                    .micro_batch = -1,
                                    .node = -1,
                                    .call = -1,
                                    .wait = -1,
                                    .first_operand = other->first_operand,
                                    .deferred = other->deferred};
    }
}

static plan_operand *operand(plan_schedule *s, const plan_instruction *in, int32_t which) {
    return &s->operands[in->first_operand + which];
}

/* --- the four --- */

static void no_gather_after_an_update(void **state) {
    (void)state;
    for (int stage = 1; stage < 3; stage++) {
        plan_schedule *s = two_ranks(stage);
        leave_out(s, find(s, PLAN_GATHER, PLAN_PARAMETERS, 3));
        expect_found(s, "gather left out", "after 0 updates, not elements 0 to");
        plan_free(s);
    }
    plan_schedule *s = two_ranks(0); /* there the gradient is gathered */
    leave_out(s, find(s, PLAN_GATHER, PLAN_GRADIENTS, 2));
    expect_found(s, "gather left out", "of one rank, not");
    plan_free(s);
    s = two_ranks(3);
    sifr_error error = {0};
    leave_out(s, find(s, PLAN_GATHER, PLAN_GATHERED, 2));
    assert_int_equal(plan_check_content(s, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "unknown, not"));
    plan_free(s);
}

static void a_reduction_of_the_wrong_slice(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        plan_schedule *s = two_ranks(stage);
        plan_instruction *in = find(s, PLAN_REDUCE, PLAN_GRADIENTS, 1);
        if (stage < 2) { /* in place: to the place of the other rank's */
            operand(s, in, 1)->offset -= in->bytes;
            expect_found(s, "place of another", "of one rank, not");
        } else { /* the gradient of another unit of the same size */
            const plan_instruction *next = find(s, PLAN_REDUCE, PLAN_GRADIENTS, 2);
            operand(s, in, 1)->buffer = operand(s, next, 1)->buffer;
            sifr_error error = {0};
            assert_int_equal(plan_check_content(s, &error), SIFR_FAILED);
        }
        plan_free(s);
    }
}

static void an_update_left_out(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        plan_schedule *s = two_ranks(stage);
        leave_out(s, find(s, PLAN_UPDATE, PLAN_CLASSES, 4));
        bool whole = stage == 1 || stage == 2; /* the gather is the first to see it */
        expect_found(s, "update left out", whole ? "gather of" : "at the end of the step buffer");
        plan_free(s);
    }
}

static void a_gather_from_anothers_place(void **state) {
    (void)state;
    for (int stage = 0; stage < 3; stage++) {
        plan_schedule *s = two_ranks(stage);
        plan_instruction *in = find(s, PLAN_GATHER, stage ? PLAN_PARAMETERS : PLAN_GRADIENTS, -2);
        operand(s, in, 0)->offset -= in->bytes;
        expect_found(s, "gather from another's place", "gather of");
        plan_free(s);
    }
    plan_schedule *s = two_ranks(3); /* two units of one size */
    plan_instruction *one = find(s, PLAN_GATHER, PLAN_GATHERED, 2), *two = one + 1;
    while (two->action != PLAN_GATHER || two->bytes != one->bytes || two->segment == one->segment)
        two++;
    operand(s, one, 0)->buffer = operand(s, two, 0)->buffer;
    expect_found(s, "gather of another unit", "gather of");
    plan_free(s);
}

/* --- the same elsewhere --- */

static void copies_of_the_state(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        for (int n = 0; n < 2; n++) {
            plan_schedule *s = two_copies(stage);
            plan_instruction *in = s->instructions;
            plan_action action = n ? PLAN_GATHER : PLAN_REDUCE;
            while (in->action != action || in->span != PLAN_REPLICAS) in++;
            leave_out(s, in);
            expect_found(s, "transfer between copies left out", "of one copy, not");
            plan_free(s);
        }
    }
}

/* On tiers: a sub-group's update or write left out, its state read from another's place, a slice of
 * weights read from another unit's. */
static void tiers(void **state) {
    (void)state;
    for (int stage = 2; stage < 4; stage++) {
        plan_schedule *s = on_tier(stage, 2);
        leave_out(s, find(s, PLAN_UPDATE, PLAN_CLASSES, 3));
        expect_found(s, "update left out", "updates");
        plan_free(s);
        s = on_tier(stage, 2);
        leave_out(s, find(s, PLAN_WRITE, PLAN_MASTERS, 1));
        expect_found(s, "write left out", "of the master weights of");
        plan_free(s);
    }
    plan_schedule *s = on_tier(3, 2);
    plan_instruction *in = s->instructions;
    while (in->action != PLAN_READ || s->buffers[operand(s, in, 0)->buffer].class != PLAN_MOMENTS ||
           operand(s, in, 0)->offset == 0)
        in++;
    operand(s, in, 0)->offset = 0;
    expect_found(s, "another's place", "of the state");
    plan_free(s);
}

static void whole_matrices(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *kept = model; /* Muon groups the weights of a model for good */
    model_config config = model_case_llama();
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    plan_schedule *s = with_optimizer(SIFR_LAMB, 2);
    plan_instruction *in = s->instructions;
    while (in->action != PLAN_GATHER || operand(s, in, 1)->buffer != s->weight_sums[in->segment])
        in++;
    leave_out(s, in);
    expect_found(s, "a gather of sums left out", "of the optimizer's sums of");
    plan_free(s);
    for (int stage = 1; stage < 4; stage++) {
        s = with_optimizer(SIFR_MUON, stage);
        in = s->instructions;
        while (!is_kernel(s, in, DEVICE_ORTHOGONALISE)) in++;
        leave_out(s, in);
        expect_found(s, "a matrix left out", "of the optimizer's values of");
        plan_free(s);
        s = with_optimizer(SIFR_MUON, stage);
        in = s->instructions;
        while (in->action != PLAN_GATHER ||
               operand(s, in, 1)->buffer != s->whole_values[in->segment])
            in++;
        leave_out(s, in);
        expect_found(s, "a gather of values left out", "unknown, not");
        plan_free(s);
    }
    sifr_model_free(model);
    model = kept;
}

/* A tied head on the second of two stages: its weights come after the update, and its gradient goes
 * to the stage that owns them. */
static plan_schedule *second_stage(int stage) {
    double weights[64];
    sifr_error error = {0};
    plan_settings settings = disk_plan_settings(1, stage, SIFR_BF16, (sifr_offload){0});
    int32_t units = (int32_t)model->unit_count;
    settings.pipeline = (plan_pipeline){.stages = 2, .chunks = 1, .order = PLAN_WALK_1F1B};
    for (int32_t u = 0; u < units; u++) weights[u] = 1;
    assert_int_equal(plan_cut_units(weights, units, &settings.pipeline, &error), SIFR_OK);
    settings.mesh = plan_mesh_flat(2, 1);
    settings.mesh.ranks[PLAN_AXIS_STAGE] = 2;
    settings.mesh.place[PLAN_AXIS_STAGE] = 1;
    settings.pipeline.stage = 1;
    return lower(&settings);
}

static void stages_of_a_pipeline(void **state) {
    (void)state;
    for (int stage = 0; stage < 2; stage++) {
        plan_schedule *s = second_stage(stage);
        plan_instruction *in = find(s, PLAN_RECEIVE, PLAN_PARAMETERS, 0);
        leave_out(s, in);
        expect_found(s, "tied weights left out", "after 0 updates");
        plan_free(s);
        s = second_stage(stage);
        in = s->instructions;
        while (in->action != PLAN_SEND || in->stream % PLAN_STREAMS != PLAN_STREAM_SUMS) in++;
        operand(s, in, 0)->offset = 0; /* of the other rank */
        expect_found(s, "sums of another", "send of");
        plan_free(s);
    }
}

/* What is trained goes on, what is frozen stays, as with adapters. */
static void frozen_weights(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *kept = model;
    model_config config = model_case_llama();
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(sifr_model_freeze(model, "*.mlp.*", &error), SIFR_OK);
    for (int stage = 1; stage < 4; stage++) {
        plan_schedule *s = two_ranks(stage);
        leave_out(s, find(s, PLAN_UPDATE, PLAN_CLASSES, 2));
        expect_found(s, "update left out", "updates");
        plan_free(s);
    }
    sifr_model_free(model);
    model = kept;
}

/* --- averages of rows and columns, and padding --- */

static plan_operand *of_role(plan_schedule *s, const plan_instruction *in, plan_role role) {
    for (int32_t o = 0; o < in->operands; o++)
        if (operand(s, in, o)->role == role) return operand(s, in, o);
    return NULL;
}

/* The n-th instruction with this kernel. */
static plan_instruction *kernel(plan_schedule *s, device_kernel which, int n) {
    plan_instruction *in = s->instructions, *end = in + s->instruction_count;
    while (in < end && (!is_kernel(s, in, which) || n-- > 0)) in++;
    if (in == end) fail_msg("the plan has no such kernel");
    return in;
}

/* One whose averages are not the first of their segment. */
static plan_instruction *not_first(plan_schedule *s) {
    int n = 0;
    while (of_role(s, kernel(s, DEVICE_ADAFACTOR, n), PLAN_SAVED0)->offset == 0) n++;
    return kernel(s, DEVICE_ADAFACTOR, n);
}

static void averages(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        plan_schedule *s = with_optimizer(SIFR_ADAFACTOR, stage);
        of_role(s, not_first(s), PLAN_SAVED0)->offset = 0;
        expect_found(s, "averages of another weight", "of the state 0 of");
        plan_free(s);
        s = with_optimizer(SIFR_ADAFACTOR, stage);
        plan_instruction *in = not_first(s), *other = kernel(s, DEVICE_ADAFACTOR, 0);
        for (int n = 0; other->segment == in->segment; n++) other = kernel(s, DEVICE_ADAFACTOR, n);
        of_role(s, in, PLAN_SAVED1)->buffer = of_role(s, other, PLAN_SAVED1)->buffer;
        sifr_error error = {0};
        assert_int_equal(plan_check_content(s, &error), SIFR_FAILED);
        plan_free(s);
        s = with_optimizer(SIFR_ADAFACTOR, stage);
        in = not_first(s); /* averages of columns where those of rows belong */
        of_role(s, in, PLAN_SAVED0)->buffer = of_role(s, in, PLAN_SAVED1)->buffer;
        assert_int_equal(plan_check_content(s, &error), SIFR_FAILED);
        plan_free(s);
        s = with_optimizer(SIFR_ADAFACTOR, stage); /* the gradient that they are made of */
        in = not_first(s);
        of_role(s, in, PLAN_X2)->offset -= 64;
        expect_found(s, "the gradient of another weight", "of the gradient of");
        plan_free(s);
        s = with_optimizer(SIFR_ADAFACTOR, stage);
        leave_out(s, not_first(s));
        expect_found(s, "an update left out", "after 0 updates");
        plan_free(s);
    }
}

/* The update alone moves weights, states and averages; here it moves all but one of them, which
 * lies where nothing else sees it. */
static void averages_alone(void **state) {
    (void)state;
    for (int which = 0; which < 2; which++) {
        plan_schedule *s = with_optimizer(SIFR_ADAFACTOR, 2);
        plan_operand *of = of_role(s, not_first(s), (plan_role)(PLAN_SAVED0 + which));
        of->buffer = s->numbers;
        of->offset = 0;
        sifr_error error = {0};
        assert_int_equal(plan_check_content(s, &error), SIFR_FAILED);
        plan_free(s);
    }
}

/* All operands of an update, with so many elements more or less. */
static void stretch(plan_schedule *s, const plan_instruction *in, int64_t elements) {
    static const plan_role roles[] = {PLAN_X0, PLAN_W0, PLAN_W1, PLAN_SAVED0, PLAN_SAVED1};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const plan_operand *of = of_role(s, in, roles[i]);
        if (!of || (in->call >= 0 && s->calls[in->call].kernel == DEVICE_ADAFACTOR && i >= 3))
            continue;
        plan_role_matrix(&s->calls[in->call], roles[i])->columns += elements;
        plan_role_matrix(&s->calls[in->call], roles[i])->stride += elements;
    }
}

/* The last update of a segment with padding behind its weights, on the rank that has that. */
static plan_instruction *before_padding(plan_schedule *s) {
    plan_instruction *last = NULL;
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_UPDATE || !of_role(s, in, PLAN_W0)) continue;
        int32_t g = in->segment;
        if (s->segment_elements[g] == s->model->segments[g].elements) continue;
        if (!last || last->segment == g) last = in;
    }
    if (!last) fail_msg("no segment has padding");
    return last;
}

static void padding(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        plan_schedule *s = two_ranks(stage);
        stretch(s, before_padding(s), -DEVICE_BLOCK);
        expect_found(s, "padding that is not updated", "after 0 updates");
        plan_free(s);
        s = with_optimizer(SIFR_ADAFACTOR, stage);
        stretch(s, before_padding(s), DEVICE_BLOCK);
        expect_found(s, "padding that is updated", "");
        plan_free(s);
    }
    plan_schedule *s = two_ranks(0); /* its gradient */
    plan_instruction *in = s->instructions;
    int32_t g = before_padding(s)->segment;
    while (!is_kernel(s, in, DEVICE_CLEAR) || s->buffers[operand(s, in, 0)->buffer].segment != g ||
           s->buffers[operand(s, in, 0)->buffer].class != PLAN_GRADIENTS)
        in++;
    leave_out(s, in);
    sifr_error error = {0};
    assert_int_equal(plan_check_content(s, &error), SIFR_FAILED);
    plan_free(s);
}

static void squares(void **state) {
    (void)state;
    plan_schedule *s = two_ranks(2);
    leave_out(s, find(s, PLAN_SQUARES, PLAN_CLASSES, 2));
    expect_found(s, "squares left out", "has the squares of 0 of");
    plan_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gather_after_an_update),
        cmocka_unit_test(a_reduction_of_the_wrong_slice),
        cmocka_unit_test(an_update_left_out),
        cmocka_unit_test(a_gather_from_anothers_place),
        cmocka_unit_test(copies_of_the_state),
        cmocka_unit_test(tiers),
        cmocka_unit_test(whole_matrices),
        cmocka_unit_test(stages_of_a_pipeline),
        cmocka_unit_test(frozen_weights),
        cmocka_unit_test(averages),
        cmocka_unit_test(averages_alone),
        cmocka_unit_test(padding),
        cmocka_unit_test(squares),
    };
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
