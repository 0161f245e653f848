/* Plans with activations on disk: what is written is final, what is read was written and is there
 * before it is used, kernels reach no file; memory does not grow with the model's depth; the disk
 * works beside computing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/registry.h"
#include "plan/kept.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "support/model_case.h"

static device *dev;

static int setup(void **state) {
    (void)state;
    sifr_error error = {0};
    return device_open_cpu(1, NULL, &dev, &error);
}

static int teardown(void **state) {
    (void)state;
    device_close(dev);
    return 0;
}

static sifr_model *model_of(int32_t layers) {
    sifr_error error = {0};
    sifr_model *model;
    model_config config = model_case_llama();
    config.num_hidden_layers = layers;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    return model;
}

static plan_settings settings_of(sifr_tier activations) {
    return (plan_settings){
        .mode = PLAN_TRAIN,
        .step.precision = SIFR_FP32,
        .step.micro_batch_size = 64,
        .step.seq_length = 16,
        .step.gradient_accumulation_steps = 1,
        .mesh = plan_mesh_flat(1, 0),
        .step.zero = {.overlap_comm = true,
                      .reduce_bucket_size = INT64_MAX,
                      .allgather_bucket_size = INT64_MAX,
                      .prefetch_bucket_size = 1,
                      .max_live_parameters = INT64_MAX},
        .step.offload = {.optimizer = {.ratio = 1, .pipeline_read = true, .pipeline_write = true},
                         .activations = activations,
                         .sub_group_size = 2048}};
}

static plan_schedule *lower(const sifr_model *model, const plan_settings *settings) {
    plan_schedule *s = NULL;
    sifr_error error = {0};
    if (plan_lower(model, dev, settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
    return s;
}

/* A result's way, by buffer. */
typedef enum { UNKNOWN, LEAVING, LEFT, COMING, HERE } content;

typedef struct run {
    const plan_schedule *s;
    content *has;
    int32_t *page;  /* by page of the file: the buffer that was written there; -1: none */
    int32_t *value; /* by buffer that is read to: the value that it shows; -1: none */
    int32_t written, read;
} run;

static bool is_activation(const plan_schedule *s, int32_t buffer) {
    return s->buffers[buffer].class == PLAN_ACTIVATIONS;
}

static void start_write(run *r, const plan_instruction *in, const plan_operand *x,
                        const plan_operand *y) {
    const plan_buffer *from = &r->s->buffers[x->buffer], *file = &r->s->buffers[y->buffer];
    assert_int_equal(r->has[x->buffer], UNKNOWN);
    assert_true(from->aligned);
    assert_true(file->tier == PLAN_NVME);
    assert_true(y->offset + in->bytes <= file->bytes);
    assert_true(in->bytes % PLAN_DISK_ALIGNMENT == 0);
    assert_true(y->offset % PLAN_DISK_ALIGNMENT == 0);
    assert_true(in->bytes + PLAN_DISK_ALIGNMENT <= from->bytes);
    for (int64_t p = 0; p < in->bytes / PLAN_DISK_ALIGNMENT; p++) {
        int32_t *page = &r->page[y->offset / PLAN_DISK_ALIGNMENT + p];
        assert_int_equal(*page, -1); /* what was there has been read */
        *page = x->buffer;
    }
    r->has[x->buffer] = LEAVING;
    r->written++;
}

static void start_read(run *r, const plan_instruction *in, const plan_operand *x,
                       const plan_operand *y) {
    const plan_buffer *to = &r->s->buffers[y->buffer];
    int32_t from = r->page[x->offset / PLAN_DISK_ALIGNMENT];
    assert_true(from >= 0);
    assert_true(r->has[from] == LEFT);
    assert_true(r->has[y->buffer] == UNKNOWN);
    assert_true(to->index == r->s->buffers[from].index);
    assert_true(to->unit == r->s->buffers[from].unit);
    assert_true(to->aligned);
    assert_true(in->bytes + PLAN_DISK_ALIGNMENT <= to->bytes);
    for (int64_t p = 0; p < in->bytes / PLAN_DISK_ALIGNMENT; p++) {
        int32_t *page = &r->page[x->offset / PLAN_DISK_ALIGNMENT + p];
        assert_int_equal(*page, from);
        *page = -1;
    }
    r->has[y->buffer] = COMING;
    r->value[y->buffer] = from;
    r->read++;
}

/* Returns the results that go there and back. */
static int32_t check(const plan_schedule *s) {
    run r = {.s = s};
    r.has = calloc(s->buffer_count, sizeof *r.has);
    r.value = calloc(s->buffer_count, sizeof *r.value);
    r.page = calloc((size_t)s->nvme_bytes / PLAN_DISK_ALIGNMENT + 1, sizeof *r.page);
    for (int64_t p = 0; p <= s->nvme_bytes / PLAN_DISK_ALIGNMENT; p++) r.page[p] = -1;
    for (size_t b = 0; b < s->buffer_count; b++) r.value[b] = -1;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *in = &s->instructions[n];
        const plan_operand *x = &s->operands[in->first_operand], *y = x + 1;
        if (in->action == PLAN_WRITE && is_activation(s, x->buffer)) {
            start_write(&r, in, x, y);
        } else if (in->action == PLAN_READ && is_activation(s, y->buffer)) {
            start_read(&r, in, x, y);
        } else if (in->action == PLAN_WAIT) {
            if (r.has[x->buffer] == LEAVING) r.has[x->buffer] = LEFT;
            if (in->operands > 1 && r.has[y->buffer] == COMING) r.has[y->buffer] = HERE;
        }
        for (int32_t o = 0; o < in->operands && in->call >= 0; o++) {
            content has = r.has[x[o].buffer];
            assert_int_not_equal(s->buffers[x[o].buffer].tier, PLAN_NVME);
            assert_true(has == UNKNOWN || has == HERE); /* what leaves is not used any more */
        }
    }
    for (size_t b = 0; b < s->buffer_count; b++) {
        assert_true(r.has[b] != LEAVING);
        assert_true(r.has[b] != COMING);
    }
    assert_int_equal(r.written, r.read);
    free(r.has);
    free(r.page);
    free(r.value);
    return r.written;
}

static void written_then_read(void **state) {
    (void)state;
    sifr_model *model = model_of(6);
    for (int n = 0; n < 48; n++) {
        plan_settings settings = settings_of(SIFR_TIER_NVME);
        settings.step.precision = n % 3 ? SIFR_BF16 : SIFR_FP32;
        settings.mesh = plan_mesh_flat(1 << n % 3, 0);
        settings.step.zero.stage = n / 3 % 4;
        settings.step.gradient_accumulation_steps = 1 + n / 2 % 3;
        settings.step.step_order = n % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.recompute = n / 4 % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.number_checkpoints = n % 5 == 0 ? 3 : 0;
        settings.step.offload.param.device =
            settings.step.zero.stage == 3 && n % 7 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        plan_schedule *s = lower(model, &settings);
        assert_true(check(s) > 0);
        plan_free(s);
    }
    sifr_model_free(model);
}

/* What is in memory does not grow with the depth; all that it leaves out does. */
static void depth(void **state) {
    (void)state;
    sifr_model *models[2] = {model_of(12), model_of(24)};
    for (int n = 0; n < 4; n++) {
        int64_t memory[2], disk[2], file[2];
        for (int m = 0; m < 2; m++) {
            plan_settings settings = settings_of(SIFR_TIER_CPU);
            settings.step.gradient_accumulation_steps = 2;
            settings.step.step_order = n / 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            settings.step.recompute = n % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            plan_schedule *s = lower(models[m], &settings);
            memory[m] = s->largest_bytes[PLAN_ACTIVATIONS];
            assert_int_equal(s->nvme_bytes, 0);
            plan_free(s);
            settings.step.offload.activations = SIFR_TIER_NVME;
            s = lower(models[m], &settings);
            disk[m] = s->largest_bytes[PLAN_ACTIVATIONS];
            file[m] = s->nvme_bytes;
            plan_free(s);
        }
        int64_t grown = memory[1] - memory[0], less = disk[1] - disk[0];
        assert_true(grown > 0);
        assert_true(less <= grown / 50); /* what is too small to be moved */
        assert_in_range(file[1] - file[0], grown * 9 / 10, grown * 11 / 10);
    }
    for (int m = 0; m < 2; m++) sifr_model_free(models[m]);
}

/* Predicted: the longer of computing and the disk, not their sum; and all transfers have kernels
 * between their start and their wait. */
static void beside_computing(void **state) {
    (void)state;
    sifr_model *model = model_of(24);
    for (int n = 0; n < 4; n++) {
        plan_settings settings = settings_of(SIFR_TIER_NVME);
        plan_machine machine = {
            .fp32_operations = 1e10, .bf16_operations = 1e10, .memory_bytes = 1e10};
        plan_prediction p;
        settings.step.recompute = n % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        plan_schedule *s = lower(model, &settings);
        machine.disk_bytes = n < 2 ? 2e9 : 1e7;
        assert_int_equal(plan_predict(s, &machine, &p, NULL, NULL), SIFR_OK);
        assert_true(n < 2 ? p.disk < p.computing : p.disk > 2 * p.computing);
        double longer = p.disk > p.computing ? p.disk : p.computing;
        assert_true(p.step_seconds < 1.02 * longer);
        int32_t beside = 0, transfers = 0, kernels = 0;
        int32_t *before = calloc(s->instruction_count, sizeof *before);
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *in = &s->instructions[i];
            before[i] = kernels += in->call >= 0;
            if (in->action != PLAN_WAIT) continue;
            transfers++;
            beside += before[i] > before[in->wait];
        }
        assert_true(transfers > 0);
        assert_true(beside == transfers);
        free(before);
        plan_free(s);
    }
    sifr_model_free(model);
}

/* What the table of kept results says is the same wherever they are. */
static void kept_as_before(void **state) {
    (void)state;
    sifr_model *model = model_of(6);
    plan_machine machine = {.fp32_operations = 1e10, .bf16_operations = 1e10, .memory_bytes = 1e10};
    for (int n = 0; n < 2; n++) {
        plan_kept kept[2] = {0};
        for (int d = 0; d < 2; d++) {
            plan_settings settings = settings_of(d ? SIFR_TIER_NVME : SIFR_TIER_CPU);
            settings.step.recompute = n ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            plan_schedule *s = lower(model, &settings);
            assert_int_equal(plan_kept_find(s, &machine, &kept[d], NULL), SIFR_OK);
            plan_free(s);
        }
        assert_int_equal(kept[0].count, kept[1].count);
        assert_int_equal(kept[0].all.kept, kept[1].all.kept);
        assert_int_equal(kept[0].inputs.kept, kept[1].inputs.kept);
        for (size_t i = 0; i < kept[0].count; i++) {
            assert_string_equal(kept[0].rows[i].name, kept[1].rows[i].name);
            assert_int_equal(kept[0].rows[i].kept, kept[1].rows[i].kept);
        }
        for (int d = 0; d < 2; d++) plan_kept_free(&kept[d]);
    }
    sifr_model_free(model);
}

/* Nothing is written of a model whose backward pass begins with all that it needs. */
static void too_small(void **state) {
    (void)state;
    sifr_model *model = model_of(1);
    plan_settings settings = settings_of(SIFR_TIER_NVME);
    settings.step.recompute = SIFR_RECOMPUTE_UNIT;
    plan_schedule *s = lower(model, &settings);
    assert_int_equal(check(s), 0);
    assert_int_equal(s->nvme_bytes, 0);
    plan_free(s);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(written_then_read), cmocka_unit_test(depth),
                                       cmocka_unit_test(beside_computing),
                                       cmocka_unit_test(kept_as_before),
                                       cmocka_unit_test(too_small)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
