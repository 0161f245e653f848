/* What is kept within a limit of memory: as much as fits to the byte, the dearest first, nothing
 * beyond the limit, and a refusal that names what would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "plan/kept.h"
#include "plan/pass/passes.h"
#include "plan/search/search.h"
#include "support/model_case.h"

static const plan_machine machine = {
    .fp32_operations = 1e11, .bf16_operations = 4e11, .memory_bytes = 5e9, .host = {2e-6, 1e9}};

typedef struct keep_case {
    sifr_model *model;
    device *dev;
    plan_settings settings;
} keep_case;

static void begin(keep_case *c, const char *type, int64_t width, int32_t ranks,
                  sifr_step_order order) {
    model_config config = model_case_llama();
    sifr_error error;
    strcpy(config.model_type, type);
    config.hidden_size = width;
    config.head_dim = width / config.num_attention_heads;
    config.intermediate_size = 8 * width / 3;
    config.num_hidden_layers = 6;
    config.max_position_embeddings = 512;
    if (strcmp(type, "gpt2") == 0) {
        config.num_key_value_heads = config.num_attention_heads;
        config.activation = MODEL_GELU_TANH;
        config.residual_dropout = 0.1;
    }
    *c = (keep_case){0};
    assert_int_equal(device_open_cpu(1, NULL, &c->dev, &error), SIFR_OK);
    assert_int_equal(model_from_config(&config, &c->model, &error), SIFR_OK);
    c->settings = (plan_settings){.mode = PLAN_TRAIN,
                                  .step.precision = SIFR_FP32,
                                  .step.micro_batch_size = 3,
                                  .step.seq_length = 80,
                                  .step.gradient_accumulation_steps = 2,
                                  .mesh = plan_mesh_flat(ranks, 0),
                                  .step.step_order = order,
                                  .step.zero = {.stage = ranks > 1 ? 3 : 0,
                                                .overlap_comm = true,
                                                .reduce_bucket_size = 1 << 20,
                                                .allgather_bucket_size = 1 << 20,
                                                .prefetch_bucket_size = 1,
                                                .max_live_parameters = 1 << 30}};
}

static void end(keep_case *c) {
    sifr_model_free(c->model);
    device_close(c->dev);
}

typedef struct keep_outcome {
    int64_t activations, total;
    int32_t kept, again;
    double seconds; /* of what is computed again */
} keep_outcome;

static keep_outcome outcome_of(const plan_schedule *s) {
    plan_kept kept = {0};
    sifr_error error;
    keep_outcome out = {.activations = s->largest_bytes[PLAN_ACTIVATIONS], .total = s->total_bytes};
    assert_int_equal(plan_kept_find(s, &machine, &kept, &error), SIFR_OK);
    out.kept = kept.all.kept;
    out.again = kept.all.again;
    out.seconds = kept.all.seconds;
    plan_kept_free(&kept);
    return out;
}

static keep_outcome with(keep_case *c, sifr_recompute recompute, int64_t limit, int64_t capacity) {
    plan_schedule *s;
    sifr_error error;
    plan_settings settings = c->settings;
    settings.step.recompute = recompute;
    settings.step.activation_memory = limit;
    settings.room_bytes = capacity;
    if (plan_lower(c->model, c->dev, &settings, &s, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    keep_outcome out = outcome_of(s);
    plan_free(s);
    return out;
}

static keep_outcome within(keep_case *c, int64_t limit) {
    return with(c, SIFR_RECOMPUTE_AUTO, limit, 0);
}

/* From all that is kept down to nothing, each time with a byte less than the last plan took: every
 * plan is within its limit, keeps less than the last one, and is found again by the very number
 * that it takes. */
static void every_limit_is_used(keep_case *c) {
    keep_outcome all = with(c, SIFR_RECOMPUTE_NONE, 0, 0);
    keep_outcome none = with(c, SIFR_RECOMPUTE_UNIT, 0, 0);
    keep_outcome last = within(c, all.activations);
    assert_int_equal(last.activations, all.activations);
    assert_int_equal(last.again, 0);
    assert_true(none.activations < all.activations);
    assert_true(none.again > 0);
    assert_true(all.again == 0);
    int plans = 0;
    while (last.activations > none.activations) {
        keep_outcome next = within(c, last.activations - 1);
        assert_true(next.activations < last.activations);
        assert_true(next.again > last.again);
        assert_true(next.seconds > last.seconds);
        keep_outcome same = within(c, next.activations);
        assert_int_equal(same.activations, next.activations);
        assert_int_equal(same.again, next.again);
        last = next;
        plans++;
    }
    assert_true(plans > 15);
    assert_true(last.seconds <= none.seconds);
}

static void limits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    for (int i = 0; i < 8; i++) {
        keep_case c;
        begin(&c, types[i % 2], 64, i / 2 % 2 ? 4 : 1, i / 4 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH);
        every_limit_is_used(&c);
        end(&c);
    }
}

/* One byte less than the least is refused, and the number that is named works. */
static void the_least_is_named(void **state) {
    (void)state;
    keep_case c;
    plan_schedule *s = NULL;
    sifr_error error;
    begin(&c, "llama", 64, 1, SIFR_STEP_BATCH);
    int64_t least = with(&c, SIFR_RECOMPUTE_UNIT, 0, 0).activations;
    plan_settings settings = c.settings;
    settings.step.recompute = SIFR_RECOMPUTE_AUTO;
    settings.step.activation_memory = least - 1;
    assert_int_equal(plan_lower(c.model, c.dev, &settings, &s, &error), SIFR_USAGE);
    assert_null(s);
    const char *number = strchr(error.message, '(');
    assert_non_null(number);
    assert_int_equal(strtoll(number + 1, NULL, 10), least);
    assert_int_equal(within(&c, least).activations, least);
    end(&c);
}

/* A limit of the whole block; where nothing fits what takes least comes out. */
static void capacity(void **state) {
    (void)state;
    keep_case c;
    begin(&c, "llama", 64, 4, SIFR_STEP_BATCH);
    int64_t all = with(&c, SIFR_RECOMPUTE_NONE, 0, 0).total;
    int64_t none = with(&c, SIFR_RECOMPUTE_UNIT, 0, 0).total;
    assert_true(none < all);
    double last = 0;
    for (int part = 8; part >= 0; part--) {
        int64_t limit = none + (all - none) * part / 8;
        keep_outcome got = with(&c, SIFR_RECOMPUTE_AUTO, 0, limit);
        assert_true(got.total <= limit);
        assert_true(got.seconds >= last);
        last = got.seconds;
    }
    assert_int_equal(with(&c, SIFR_RECOMPUTE_AUTO, 0, none - 1).total, none);
    assert_int_equal(with(&c, SIFR_RECOMPUTE_AUTO, 0, 0).total, all); /* no limit */
    end(&c);
}

static const plan_kept_row *row_of(const plan_kept *kept, const char *name) {
    for (size_t i = 0; i < kept->count; i++) {
        if (strcmp(kept->rows[i].name, name) == 0) return &kept->rows[i];
    }
    fail_msg("no row %s", name);
    return NULL;
}

/* Half of what could be kept: products with long inner dimensions are kept before norms and gates,
 * and most of the time is saved. */
static void dear_things_come_first(void **state) {
    (void)state;
    keep_case c;
    plan_schedule *s;
    plan_kept kept = {0};
    sifr_error error;
    begin(&c, "llama", 768, 1, SIFR_STEP_BATCH);
    keep_outcome all = with(&c, SIFR_RECOMPUTE_NONE, 0, 0);
    keep_outcome none = with(&c, SIFR_RECOMPUTE_UNIT, 0, 0);
    plan_settings settings = c.settings;
    settings.step.recompute = SIFR_RECOMPUTE_AUTO;
    settings.step.activation_memory = (all.activations + none.activations) / 2;
    assert_int_equal(plan_lower(c.model, c.dev, &settings, &s, &error), SIFR_OK);
    assert_int_equal(plan_kept_find(s, &machine, &kept, &error), SIFR_OK);
    assert_true(kept.all.seconds < 0.4 * none.seconds);
    assert_true(row_of(&kept, "linear mlp.gate_proj")->kept >= 4);
    assert_int_equal(row_of(&kept, "silu_gate")->again, 6);
    assert_int_equal(row_of(&kept, "rms_norm input_layernorm")->again, 6);
    plan_kept_free(&kept);
    plan_free(s);
    end(&c);
}

/* Fewer inputs of units kept take less, and the blocks between are run once more. */
static void checkpoints(void **state) {
    (void)state;
    keep_case c;
    begin(&c, "llama", 64, 1, SIFR_STEP_UNIT);
    keep_outcome every = with(&c, SIFR_RECOMPUTE_UNIT, 0, 0);
    for (int32_t n = 1; n <= 8; n++) {
        c.settings.step.number_checkpoints = n;
        keep_outcome got = with(&c, SIFR_RECOMPUTE_UNIT, 0, 0);
        if (n >= 6) assert_memory_equal(&got, &every, sizeof got);
        if (n < 6) {
            assert_true(got.again > every.again);
            assert_true(got.seconds > every.seconds);
        }
        if (n == 2 || n == 3) assert_true(got.activations < every.activations);
    }
    end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits), cmocka_unit_test(the_least_is_named), cmocka_unit_test(capacity),
        cmocka_unit_test(dear_things_come_first), cmocka_unit_test(checkpoints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
