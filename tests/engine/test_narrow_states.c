/* Optimizer state in bf16: the same bits at every stage, rank count, step order and sub-group, in
 * memory and on disk, with or without the parameters and gradients, also where weights are frozen;
 * the bytes of each kind of state; what is refused. timeout: 120 */
#include "plan/pass/passes.h"
#include "support/scratch.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, FORMS = 3 };

/* Masters, moments, gradients. */
static const sifr_precision forms[FORMS][3] = {{SIFR_FP32, SIFR_BF16, SIFR_FP32},
                                               {SIFR_BF16, SIFR_FP32, SIFR_BF16},
                                               {SIFR_BF16, SIFR_BF16, SIFR_BF16}};

static zero_variant variant_of(int form, const char *type) {
    return (zero_variant){.ranks = 1,
                          .type = type,
                          .precision = SIFR_BF16,
                          .global = GLOBAL,
                          .masters = forms[form][0],
                          .moments = forms[form][1],
                          .gradients = forms[form][2]};
}

static void same_bits(void **state) {
    (void)state;
    zero_variant wide = {.ranks = 1, .type = "llama", .precision = SIFR_BF16, .global = GLOBAL};
    zero_outcome other = zero_run(wide);
    sifr_zero whole = sifr_settings_defaults().zero; /* parameters that stay gathered */
    whole.param_persistence_threshold = INT64_MAX;
    for (int form = 0; form < FORMS; form++) {
        zero_variant v = variant_of(form, form == 1 ? "gpt2" : "llama");
        zero_outcome want = zero_run(v);
        int n = 0;
        assert_false(zero_is_same(&want, &other));
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
            for (v.stage = v.ranks == 1 ? 3 : 0; v.stage < 4; v.stage++, n++) {
                v.unit_order = n % 2;
                v.recompute = n % 3 == 0;
                v.keys = v.ranks == 4 ? &whole : NULL;
                zero_expect_same(&want, v);
            }
        }
        free(want.weights);
    }
    free(other.weights);
}

/* Sub-groups of 1,024 elements are half a page of bf16, and so are the edges of what is frozen. */
static void on_disk(void **state) {
    (void)state;
    static const int64_t groups[] = {1, 5000, 0, 3072, 1000000};
    int n = 0;
    for (int form = 0; form < FORMS; form++) {
        for (int frozen = 0; frozen < 2; frozen++) {
            zero_variant v = variant_of(form, "llama");
            if (frozen) v.freeze[0] = "*layers.0*", v.freeze[1] = "*norm*";
            zero_outcome want = zero_run(v);
            for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
                for (v.stage = v.ranks == 1 ? 3 : 0; v.stage < 4; v.stage++, n++) {
                    sifr_offload offload = sifr_settings_defaults().offload;
                    offload.nvme_path = scratch;
                    offload.sub_group_size = groups[n % 5];
                    offload.aio.block_size = n % 3 ? 4096 : 1 << 20;
                    offload.optimizer.pipeline_write = n % 7;
                    offload.optimizer.device = SIFR_TIER_NVME;
                    if (v.stage == 3 && v.ranks != 2) /* master weights, too, or not */
                        offload.param.device = SIFR_TIER_NVME;
                    offload.gradients =
                        n % 3 && (v.ranks == 1 || v.stage >= 2) ? SIFR_TIER_NVME : SIFR_TIER_NONE;
                    v.offload = &offload;
                    v.unit_order = n % 2;
                    zero_expect_same(&want, v);
                }
            }
            free(want.weights);
        }
    }
}

/* Bytes a parameter of each kind: 18, 14, 12 and 8 in all, and what of them is cut. */
static void bytes(void **state) {
    (void)state;
    model_config config = zero_config("llama");
    sifr_model *model;
    device *dev;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    for (int number = 0; number < 4 * FORMS; number++) {
        int form = number / 4, stage = number % 4;
        int64_t masters = forms[form][0] == SIFR_BF16 ? 0 : 4;
        int64_t moments = forms[form][1] == SIFR_BF16 ? 4 : 8;
        plan_settings settings = {.mode = PLAN_TRAIN,
                                  .step.precision = SIFR_BF16,
                                  .step.micro_batch_size = 1,
                                  .step.seq_length = ZERO_LENGTH,
                                  .step.gradient_accumulation_steps = 1,
                                  .mesh = plan_mesh_flat(4, 1),
                                  .step.zero.stage = stage,
                                  .step.bf16_master_weights = masters == 0,
                                  .step.bf16_optimizer_states = moments == 4};
        plan_schedule *s;
        assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
        int64_t elements = 0, cut = stage >= 1 ? 4 : 1;
        for (size_t u = 0; u < model->unit_count; u++) elements += s->segment_elements[u];
        assert_int_equal(s->largest_bytes[PLAN_PARAMETERS], elements * 2 / (stage == 3 ? 4 : 1));
        assert_int_equal(s->largest_bytes[PLAN_MASTERS], elements * masters / cut);
        assert_int_equal(s->largest_bytes[PLAN_MOMENTS], elements * moments / cut);
        plan_free(s);
    }
    sifr_model_free(model);
    device_close(dev);
}

/* What leaves memory for the disk: moments of half the size, and masters only where there are. */
static void bytes_on_disk(void **state) {
    (void)state;
    int64_t wide = 0;
    for (int form = -1; form < FORMS; form++) {
        zero_variant v = variant_of(form < 0 ? 0 : form, "llama");
        sifr_offload offload = sifr_settings_defaults().offload;
        offload.nvme_path = scratch;
        offload.optimizer.device = SIFR_TIER_NVME;
        v.offload = &offload;
        v.ranks = 2;
        v.stage = 2;
        if (form < 0) v.masters = v.moments = v.gradients = SIFR_FP32;
        zero_outcome out = zero_run(v);
        if (form < 0) wide = out.nvme_bytes;
        static const int64_t twelfths[] = {8, 8, 4};
        int64_t want = form < 0 ? wide : wide * twelfths[form] / 12;
        /* buffers are padded to pages */
        assert_in_range(out.nvme_bytes, want, want + 8 * PLAN_DISK_ALIGNMENT);
        assert_int_equal(out.peak[PLAN_MOMENTS] + out.peak[PLAN_MASTERS], 0);
        free(out.weights);
    }
}

static void refused(void **state) {
    (void)state;
    static const sifr_precision wrong[] = {SIFR_FP32, SIFR_FP16, SIFR_FP32, SIFR_FP16};
    model_config config = zero_config("llama");
    sifr_model *model;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sifr_settings options = sifr_settings_defaults();
        sifr_engine *engine = NULL;
        options.precision = wrong[i];
        options.bf16_master_weights = i < 2;
        options.bf16_optimizer_states = i >= 2;
        assert_int_equal(sifr_engine_create(model, &options, &engine, &error), SIFR_USAGE);
        assert_message(&error, "kept in fp32, or in bf16");
    }
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(on_disk),
                                       cmocka_unit_test(bytes), cmocka_unit_test(bytes_on_disk),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
