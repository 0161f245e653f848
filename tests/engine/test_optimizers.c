/* Each optimizer has the same bits at every stage and rank count, in every type and with its states
 * on other tiers and devices, and takes the memory that its number of states says. AdamW's own
 * tests are test_zero, test_offload and others. label: full, timeout: 300 */
#include <math.h>

#include "base/checked.h"
#include "model/registry.h"
#include "optim/optim.h"
#include "plan/queries.h"
#include "support/optimizer_runs.h"

typedef struct optimizer_case {
    sifr_optimizer optimizer;
    int states;
    bool averages;
} optimizer_case;

static const optimizer_case given[] = {
    {{.type = SIFR_SGD}, 0, false},
    {{.type = SIFR_SGD, .momentum = 0.9, .dampening = 0.3}, 1, false},
    {{.type = SIFR_SGD, .momentum = 0.9, .nesterov = true}, 1, false},
    {{.type = SIFR_ADAGRAD, .eps = 1e-10, .lr_decay = 0.1}, 1, false},
    {{.type = SIFR_ADAMW,
      .beta1 = 0.9,
      .beta2 = 0.5,
      .eps = 1e-8,
      .bias_correction = true,
      .decoupled = true,
      .amsgrad = true},
     3,
     false},
    {{.type = SIFR_LION, .beta1 = 0.9, .beta2 = 0.99}, 1, false},
    {{.type = SIFR_SCHEDULE_FREE_ADAMW,
      .beta1 = 0.9,
      .beta2 = 0.99,
      .eps = 1e-8,
      .warmup_steps = 2,
      .r = 1,
      .weight_lr_power = 2},
     2,
     true},
    {{.type = SIFR_ADAMW_8BIT,
      .beta1 = 0.9,
      .beta2 = 0.99,
      .eps = 1e-8,
      .weight_decay = 0.1,
      .bias_correction = true,
      .min_8bit_size = 1000},
     2,
     false},
};

static bool is_coded(const optimizer_case *c) {
    return c->optimizer.type == SIFR_ADAMW_8BIT;
}

enum { GIVEN = sizeof given / sizeof *given, MOST_CASES = 32 };
static optimizer_case cases[MOST_CASES];
static int case_count;

/* Those given, and each other type with usual numbers. Optimizers that read more of a weight than
 * an element have tests of their own. */
static void make_cases(void) {
    static const sifr_optimizer_type types[] = {
#define OPTIM_TYPE(type, name) type,
        OPTIM_TYPES
#undef OPTIM_TYPE
    };
    for (case_count = 0; case_count < GIVEN; case_count++) cases[case_count] = given[case_count];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        sifr_optimizer usual = {
            .type = types[t], .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .momentum = 0.9};
        const optim_row *row = optim_row_of(&usual);
        bool known = row->by_weight || row->reads_whole;
        for (int i = 0; i < case_count; i++) known |= optim_row_of(&cases[i].optimizer) == row;
        if (known) continue;
        assert_in_range(case_count, 0, MOST_CASES - 1);
        cases[case_count++] = (optimizer_case){usual, optim_states(row), row->averages};
    }
}

static int setup(void **state) {
    make_cases();
    return optimizer_setup(state);
}

static void stages_and_ranks(void **state) {
    (void)state;
    for (int i = 0; i < case_count; i++) {
        for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
            zero_variant v = optimizer_variant(&cases[i].optimizer, (sifr_precision)p);
            zero_outcome want = zero_run(v);
            assert_true(isfinite(want.loss[ZERO_STEPS - 1]));
            assert_true(want.norm[0] > 0);
            assert_true(want.loss[ZERO_STEPS - 1] != want.loss[0]);
            for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
                for (v.stage = 0; v.stage < 4; v.stage++) {
                    if (p == SIFR_FP16 && v.ranks == 2) continue;
                    v.unit_order = v.stage % 2;
                    v.evaluate_each = v.stage == v.ranks % 4;
                    zero_expect_same(&want, v);
                }
            }
            free(want.weights);
        }
    }
}

/* With states, and masters, in bf16. */
static void narrow_states(void **state) {
    (void)state;
    for (int i = 0; i < case_count; i++) {
        if (is_coded(&cases[i])) continue; /* refused */
        zero_variant v = optimizer_variant(&cases[i].optimizer, SIFR_BF16);
        v.moments = SIFR_BF16;
        if (!cases[i].averages) v.masters = SIFR_BF16;
        zero_outcome want = zero_run(v);
        v.ranks = 2;
        optimizer_expect_each_stage(&want, v, false);
        free(want.weights);
    }
}

static void tiers(void **state) {
    (void)state;
    for (int i = 0; i < case_count; i++)
        optimizer_expect_tiers(&cases[i].optimizer, i, cases[i].states == 0);
}

/* Of a rank: a byte and a share of a scale for each moment, four bytes in small weights. */
static int64_t coded_bytes(const optimizer_case *c, int32_t ranks) {
    model_config config = zero_config("llama");
    sifr_model *model;
    int64_t bytes = 0, large = 0;
    assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
    assert_int_equal(sifr_model_group(model, &c->optimizer, NULL), SIFR_OK);
    for (size_t g = 0; g < model->segment_count; g++) {
        const model_segment *s = &model->segments[g];
        int64_t slice = base_ceil_to(s->elements, (int64_t)ranks * DEVICE_BLOCK) / ranks;
        int64_t scales = base_ceil_to(4 * slice / DEVICE_CODED, PLAN_ALIGNMENT);
        bytes += s->rest ? 8 * slice : 2 * slice + 2 * scales;
        large += !s->rest;
    }
    assert_in_range(large, 1, (int64_t)model->segment_count - 1);
    sifr_model_free(model);
    return bytes;
}

static void memory(void **state) {
    (void)state;
    for (int i = 0; i < case_count; i++) {
        for (int32_t ranks = 1; ranks <= 4; ranks *= 4) {
            zero_variant v = optimizer_variant(&cases[i].optimizer, SIFR_FP32);
            v.ranks = ranks;
            v.stage = 1;
            zero_outcome have = zero_run(v);
            int64_t slice = have.peak[PLAN_PARAMETERS] / ranks;
            int64_t states =
                is_coded(&cases[i]) ? coded_bytes(&cases[i], ranks) : cases[i].states * slice;
            assert_int_equal(have.peak[PLAN_MOMENTS], states);
            assert_int_equal(have.peak[PLAN_MASTERS], cases[i].averages ? slice : 0);
            free(have.weights);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stages_and_ranks),
                                       cmocka_unit_test(narrow_states), cmocka_unit_test(tiers),
                                       cmocka_unit_test(memory)};
    return cmocka_run_group_tests(tests, setup, optimizer_teardown);
}
