/* What must hold of every schedule: operands inside their buffers, nothing read before it is
 * written, no two live buffers in one place, a block hardly larger than the peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "plan/queries.h"
#include "plan/schedule.h"

static model_config config_of(const char *type) {
    model_config c = {.vocab_size = 211,
                      .hidden_size = 48,
                      .num_hidden_layers = 3,
                      .num_attention_heads = 4,
                      .num_key_value_heads = 2,
                      .head_dim = 12,
                      .intermediate_size = 100,
                      .max_position_embeddings = 64,
                      .norm_eps = 1e-5,
                      .rope.theta = 1e4,
                      .rope.factor = 1,
                      .tie_word_embeddings = true,
                      .initializer_range = 0.02,
                      .attention_dropout = 0.1};
    strcpy(c.model_type, type);
    bool gpt2 = !strcmp(type, "gpt2");
    c.activation = gpt2 ? MODEL_GELU_TANH : MODEL_SILU;
    if (gpt2) c.num_key_value_heads = 4;
    if (gpt2) c.embedding_dropout = c.residual_dropout = 0.1;
    return c;
}

static bool is_output(plan_role role) {
    return role == PLAN_Y || (role >= PLAN_SAVED0 && role <= PLAN_SAVED3) || role >= PLAN_DX0;
}

static int64_t extent(const device_matrix *m) {
    return ((m->rows - 1) * m->stride + m->columns) * base_dtype_bytes(m->dtype);
}

/* Slices are written one by one, so a buffer counts as written from its first output on. */
static void check_operands(const plan_schedule *s) {
    bool *written = calloc(s->buffer_count, sizeof *written);
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        if (i->action == PLAN_GATHER || i->action == PLAN_REDUCE) {
            const plan_operand *from = &s->operands[i->first_operand], *to = from + 1;
            assert_true(s->buffers[from->buffer].first < 0 || written[from->buffer]);
            written[to->buffer] = true;
        }
        if (i->call < 0) continue;
        device_call call = s->calls[i->call];
        for (int pass = 0; pass < 2; pass++) {
            for (int32_t o = i->first_operand; o < i->first_operand + i->operands; o++) {
                const plan_operand *operand = &s->operands[o];
                const plan_buffer *buffer = &s->buffers[operand->buffer];
                const device_matrix *m = plan_role_matrix(&call, (plan_role)operand->role);
                assert_true(operand->offset >= 0);
                assert_true(m->rows > 0);
                assert_true(operand->offset + extent(m) <= buffer->bytes);
                assert_true(buffer->first < 0 ||
                            (buffer->first <= (int32_t)n && (int32_t)n <= buffer->last));
                bool backward = i->action == PLAN_BACKWARD;
                bool output =
                    is_output((plan_role)operand->role) &&
                    !(backward && operand->role >= PLAN_SAVED0 && operand->role <= PLAN_SAVED3) &&
                    !(backward && operand->role == PLAN_Y &&
                      call.kernel == DEVICE_ATTENTION_BACKWARD) &&
                    i->action != PLAN_UPDATE;
                bool adds = operand->role >= PLAN_DX0 && operand->role <= PLAN_DX5 &&
                            call.accumulate[operand->role - PLAN_DX0];
                if (pass == 0 && buffer->first >= 0 && (!output || adds)) {
                    assert_true(written[operand->buffer]);
                }
                if (pass == 1 && output) written[operand->buffer] = true;
            }
        }
    }
    free(written);
}

/* What moves is left alone until the wait for it: nothing else reads or writes where it goes,
 * nothing writes where it comes from. */
static void check_transfers(const plan_schedule *s) {
    size_t under_way = 0, count = s->instruction_count;
    int32_t *moving = calloc(count, sizeof *moving);
    for (size_t n = 0; n < count; n++) {
        const plan_instruction *i = &s->instructions[n];
        size_t left = 0;
        for (size_t m = 0; m < under_way; m++) {
            if (i->action == PLAN_WAIT && i->wait == moving[m]) continue;
            moving[left++] = moving[m];
            const plan_instruction *t = &s->instructions[moving[m]];
            const plan_operand *from = &s->operands[t->first_operand], *to = from + 1;
            bool gathers = i->action == PLAN_GATHER && t->action == PLAN_GATHER;
            for (int32_t o = 0; o < i->operands; o++) {
                int32_t buffer = s->operands[i->first_operand + o].buffer;
                assert_true(buffer != to->buffer);
                assert_true(buffer != from->buffer || (gathers && o == 0));
            }
        }
        assert_true(i->action != PLAN_WAIT || left + 1 == under_way);
        under_way = left;
        if (i->action != PLAN_GATHER && i->action != PLAN_REDUCE) continue;
        moving[under_way++] = (int32_t)n;
        assert_true(under_way < 60); /* a group's line has room for 64 */
        if (!s->settings.step.zero.overlap_comm) assert_int_equal(i[1].wait, n);
    }
    assert_int_equal(under_way, 0);
    free(moving);
}

static void check_memory(const plan_schedule *s) {
    for (size_t a = 0; a < s->buffer_count; a++) {
        const plan_buffer *x = &s->buffers[a];
        if (x->bytes == 0 || (x->first >= 0 && x->last < 0)) continue;
        assert_true(x->offset >= 0);
        assert_true(x->offset + x->bytes <= s->total_bytes);
        for (size_t b = 0; b < a; b++) {
            const plan_buffer *y = &s->buffers[b];
            if (y->bytes == 0 || (y->first >= 0 && y->last < 0)) continue;
            bool meet =
                (x->first < 0 || y->first < 0) || (x->first <= y->last && y->first <= x->last);
            bool apart = x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset;
            assert_true(!meet || apart);
        }
    }
    int64_t peak = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) peak += s->peak_bytes[c];
    assert_true(peak <= s->total_bytes);
    /* Gathered parameters that stay for long leave more gaps. */
    double gaps = s->settings.step.zero.max_reuse_distance > 1000000000 ? 0.3 : 0.18;
    assert_true((double)s->total_bytes <= (1 + gaps) * (double)peak);
}

static void count_line(void *user, const char *text) {
    assert_true(strlen(text) > 10);
    ++*(size_t *)user;
}

/* DeepSpeed's, sifr's, all that can be gathered ahead and kept, and the least of everything. */
static const sifr_zero transfers[] = {
    {0, true, false, false, 500000000, 500000000, 50000000, 1000000000, 1000000000, 100000,
     INT64_MAX, 0},
    {0, true, false, false, 500000000, 500000000, 1, 1000000000, 0, 0, INT64_MAX, 0},
    {0, true, false, false, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0, 0, 0},
    {0, true, false, false, 1, 1, 1, 1, 1, 8192, 8192, 0},
    {0, false, false, false, 1, 1, 1, 1, 20000, 8192, INT64_MAX, 0},
};
enum { TRANSFERS = sizeof transfers / sizeof *transfers };

static void every_schedule(void **state) {
    (void)state;
    static const char *const types[] = {"gpt2", "llama"};
    device *dev;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(2, NULL, &dev, &error), SIFR_OK);
    for (int variant = 0; variant < 2 * 2 * 2 * 4 * 5 * (1 + 4 * TRANSFERS); variant++) {
        int v = variant;
        model_config c = config_of(types[v % 2]);
        v /= 2;
        plan_settings settings = {.mode = PLAN_TRAIN,
                                  .step.precision = v % 2 ? SIFR_BF16 : SIFR_FP32,
                                  .step.micro_batch_size = 2,
                                  .step.seq_length = 24,
                                  .mesh = plan_mesh_flat(1, 0)};
        v /= 2;
        settings.step.step_order = v % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        v /= 2;
        int keeping = v % 4; /* all, units' inputs, two of them, all that a limit allows */
        settings.step.recompute = keeping > 0 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        if (keeping == 2) settings.step.number_checkpoints = 2;
        v /= 4;
        if (keeping > 1 && v % 5 > 1) continue;
        settings.step.gradient_accumulation_steps = v % 5 + 1;
        c.tie_word_embeddings = v % 2;
        v /= 5;
        if (v > 0) { /* the stages, as one of four ranks */
            settings.step.zero = transfers[(v - 1) / 4];
            settings.step.zero.stage = (v - 1) % 4;
            settings.step.communication_data_type = (v - 1) / 4 % 2 ? SIFR_BF16 : SIFR_FP32;
            settings.mesh = plan_mesh_flat(4, 1);
        }
        sifr_model *model;
        plan_schedule *s;
        assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
        assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
        if (keeping == 3) {
            settings.step.recompute = SIFR_RECOMPUTE_AUTO;
            settings.step.activation_memory = s->largest_bytes[PLAN_ACTIVATIONS] * 5 / 4;
            plan_free(s);
            assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
            assert_true(s->largest_bytes[PLAN_ACTIVATIONS] <= settings.step.activation_memory);
        }
        check_operands(s);
        check_memory(s);
        check_transfers(s);
        size_t lines = 0;
        plan_dump(s, count_line, &lines);
        assert_int_equal(lines, s->instruction_count);
        plan_free(s);
        sifr_model_free(model);
    }
    device_close(dev);
}

/* Both orders and recomputation run the same products; recomputation runs forward ones twice. */
static void operations(void **state) {
    (void)state;
    model_config c = config_of("llama");
    sifr_model *model;
    device *dev;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(2, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
    double sums[3];
    for (int i = 0; i < 3; i++) {
        plan_settings settings = {.mode = PLAN_TRAIN,
                                  .step.precision = SIFR_FP32,
                                  .step.micro_batch_size = 2,
                                  .step.seq_length = 24,
                                  .step.gradient_accumulation_steps = 4,
                                  .mesh = plan_mesh_flat(1, 0),
                                  .step.step_order = i == 1 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH,
                                  .step.recompute =
                                      i == 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE};
        plan_schedule *s;
        assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
        sums[i] = plan_operations(s);
        plan_free(s);
    }
    assert_true(sums[0] == sums[1]);
    assert_true(sums[2] > 1.1 * sums[0]);
    assert_true(sums[2] < 4.0 / 3 * sums[0]);
    sifr_model_free(model);
    device_close(dev);
}

static void refusals(void **state) {
    (void)state;
    model_config c = config_of("gpt2");
    sifr_model *model;
    device *dev;
    sifr_error error = {0};
    plan_schedule *s;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
    plan_settings settings = {.step.precision = SIFR_FP32,
                              .step.micro_batch_size = 1,
                              .step.seq_length = 65,
                              .step.gradient_accumulation_steps = 1,
                              .mesh = plan_mesh_flat(1, 0)};
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "learned positions for 64 only"));
    settings.step.seq_length = 0;
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_USAGE);
    settings.step.seq_length = INT64_MAX / 2;
    settings.step.micro_batch_size = 4;
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_USAGE);
    sifr_model_free(model);
    device_close(dev);
}

/* Streams of a kernel, which walks large buffers of one size side by side, meet on no bank. */
static void large_buffers_are_apart(void **state) {
    enum { COUNT = 6 };
    const int64_t bank = 128 << 20, bytes = 512 << 20;
    plan_schedule s = {0};
    sifr_error error = {0};
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        int32_t buffer;
        assert_int_equal(
            plan_add_buffer(&s, PLAN_MOMENTS, bytes, 0, i, i < COUNT / 2, &buffer, &error),
            SIFR_OK);
        if (i >= COUNT / 2) s.buffers[i].first = s.buffers[i].last = 0;
    }
    plan_instruction only = {.action = PLAN_UPDATE, .call = -1, .wait = -1};
    assert_int_equal(plan_add_instruction(&s, only, &error), SIFR_OK);
    assert_int_equal(plan_place(&s, &error), SIFR_OK);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++) {
            int64_t distance = llabs(s.buffers[i].offset - s.buffers[j].offset) % bank;
            assert_in_range(distance, 16 << 10, bank - (16 << 10));
        }
    assert_in_range(s.total_bytes, COUNT * bytes, COUNT * bytes + COUNT * (20 << 10));
    free(s.buffers);
    free(s.instructions);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_schedule),
                                       cmocka_unit_test(operations), cmocka_unit_test(refusals),
                                       cmocka_unit_test(large_buffers_are_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
