/* What a run says of itself before the first step. */
#include "train/report/notices.h"

#include <stdio.h>

#include "support/scratch.h"
#include "train/prepare/pinned.h"

static void assert_class(plan_settings s, const char *wanted) {
    char text[256];
    s.step.micro_batch_size = 2;
    if (s.step.gradient_accumulation_steps == 0) s.step.gradient_accumulation_steps = 6;
    train_bits_class(&s, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void classes_of_bits(void **state) {
    static const char any[] =
        "the same on 1, 2, 4, 8 ... ranks with this micro batch size (2) and kind of machine";
    (void)state;
    assert_class((plan_settings){.mesh = plan_mesh_flat(1, 0)}, any);
    assert_class((plan_settings){.mesh = plan_mesh_flat(4, 0), .step.zero.stage = 1}, any);
    assert_class((plan_settings){.mesh = plan_mesh_flat(4, 0),
                                 .step.zero.stage = 3,
                                 .step.step_order = SIFR_STEP_UNIT},
                 any);
    assert_class((plan_settings){.mesh = plan_mesh_flat(3, 0),
                                 .step.zero.stage = 2,
                                 .step.gradient_accumulation_steps = 4},
                 any);
    assert_class((plan_settings){.mesh = plan_mesh_flat(3, 0)},
                 "reproducible with 3 ranks only: 3 is not a power "
                 "of two");
    assert_class((plan_settings){.mesh = plan_mesh_flat(4, 0), .step.zero.stage = 2},
                 "reproducible with 4 ranks only: at stage 2 in step_order batch, 6 accumulation "
                 "steps are not a power of two");
    assert_class((plan_settings){.mesh = plan_mesh_flat(1, 0), .step.zero.stage = 2}, any);
    plan_settings copies = {
        .mesh.ranks = {1, 2, 3, 1, 1}, .step.zero.stage = 2, .step.gradient_accumulation_steps = 4};
    assert_class(copies, any); /* of six micro batches each, added over three ranks first */
    copies.mesh.ranks[PLAN_AXIS_REPLICA] = 3;
    copies.mesh.ranks[PLAN_AXIS_SHARD] = 2;
    assert_class(copies, "reproducible with 6 ranks of this shard_size only: 3 replicas are not a "
                         "power of two");
    copies.step.zero.stage = 1;
    assert_class(copies, "reproducible with 6 ranks of this shard_size only: 6 is not a power of "
                         "two");
    assert_class((plan_settings){.mesh = plan_mesh_flat(1, 0),
                                 .step.gradient_order = SIFR_GRADIENT_SEQUENTIAL},
                 "reproducible with 1 rank only: gradient_order is sequential");
    plan_settings mesh = {.mesh.ranks = {1, 1, 1, 2, 2}, .step.zero.stage = 1};
    assert_class(mesh, "reproducible with 2 context x 2 tensor ranks only: sums over "
                       "context ranks follow those over a rank's micro batches, unless at stage 2 "
                       "or 3 in step_order batch");
    mesh.mesh.ranks[PLAN_AXIS_CONTEXT] = 1;
    mesh.mesh.ranks[PLAN_AXIS_SHARD] = 3;
    assert_class(mesh, "reproducible with 3 times 2 tensor ranks only: 3 is not a power of two");
    assert_class(
        (plan_settings){.mesh = plan_mesh_flat(2, 0), .step.communication_data_type = SIFR_BF16},
        "reproducible with 2 ranks only: gradients are reduced in bf16 "
        "(communication_data_type)");
    assert_class((plan_settings){.mesh = plan_mesh_flat(2, 0),
                                 .step.communication_data_type = SIFR_BF16,
                                 .step.grad_accum_dtype = SIFR_BF16},
                 any);
}

static void rates_of_zero(void **state) {
    config_lr_schedule s = {.kind = CONFIG_LR_WARMUP,
                            .warmup_max_lr = 1,
                            .warmup_num_steps = 10,
                            .warmup_type = CONFIG_LR_LINEAR};
    (void)state;
    assert_int_equal(train_steps_without_rate(&s, 100), 2);
    assert_int_equal(train_steps_without_rate(&s, 1), 1);
    s.warmup_min_lr = 0.1;
    assert_int_equal(train_steps_without_rate(&s, 100), 0);
    s = (config_lr_schedule){.kind = CONFIG_LR_WARMUP_COSINE,
                             .base_lr = 1,
                             .warmup_min_ratio = 0.5,
                             .warmup_num_steps = 10,
                             .total_num_steps = 100};
    assert_int_equal(train_steps_without_rate(&s, 100), 1);
    s = (config_lr_schedule){.kind = CONFIG_LR_CONSTANT};
    assert_int_equal(train_steps_without_rate(&s, 100), 0);
}

static void keep_line(void *user, sifr_log_level level, const char *line) {
    snprintf(user, 256, "%d %s", level == SIFR_LOG_WARNING, line);
}

static void keep_said(void *user, const char *text) {
    keep_line(user, SIFR_LOG_INFO, text);
}

/* What a run says that goes on from a checkpoint without a step order. */
static void unknown_order(void **state) {
    char line[256] = "";
    train_host host = {
        .log = &(sifr_log){.write = keep_line, .user = line}, .line = keep_said, .user = line};
    train_pinned old = {.step = 4}, none = {.step = -1}, written = {.step = 4, .is_written = true};
    plan_settings s = {.mesh = plan_mesh_flat(2, 0), .step.gradient_accumulation_steps = 3};
    (void)state;
    train_pinned_say_unknown(&host, &none, &s);
    train_pinned_say_unknown(&host, &written, &s);
    assert_string_equal(line, "");
    train_pinned_say_unknown(&host, &old, &s);
    assert_string_equal(line, "0 step_order batch: checkpoint-4 does not say which it had; both "
                              "have the same bits here");
    s.step.zero.stage = 2;
    s.step.step_order = SIFR_STEP_UNIT;
    train_pinned_say_unknown(&host, &old, &s);
    assert_string_equal(line, "1 step_order unit: checkpoint-4 does not say which it had; if that "
                              "was batch, results will differ from an unchanged run");
    line[0] = '\0';
    s.step.gradient_accumulation_steps = 1;
    train_pinned_say_unknown(&host, &old, &s);
    assert_string_equal(line, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_of_bits),
                                       cmocka_unit_test(rates_of_zero),
                                       cmocka_unit_test(unknown_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
