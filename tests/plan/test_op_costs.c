/* An op's row says what its calls take, and that is what the pricer and the count of a training
 * step's operations use: by construction, and against sums worked out here by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "support/model_case.h"

enum { SEQUENCES = 3, LENGTH = 16, TOKENS = SEQUENCES * LENGTH, LAYERS = 2, WORDS = 97 };
/* Of model_case_llama. */
enum { HIDDEN = 40, INNER = 56, HEADS = 4, KV_HEADS = 2, HEAD_DIM = 10 };

static sifr_model *model_of(const char *type) {
    model_config c = model_case_llama();
    sifr_model *model;
    sifr_error error = {0};
    snprintf(c.model_type, sizeof c.model_type, "%s", type);
    if (strcmp(type, "gpt2") == 0) {
        c.num_key_value_heads = c.num_attention_heads;
        c.activation = MODEL_GELU_TANH;
        c.tie_word_embeddings = true;
    }
    assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
    return model;
}

static plan_schedule *plan_of(const sifr_model *model, plan_mode mode) {
    plan_settings settings = {.mode = mode,
                              .step.precision = SIFR_FP32,
                              .step.micro_batch_size = mode == PLAN_GENERATE ? 1 : SEQUENCES,
                              .step.seq_length = LENGTH,
                              .cache_length = LENGTH,
                              .step.gradient_accumulation_steps = 1,
                              .mesh = plan_mesh_flat(1, 0)};
    device *dev;
    plan_schedule *s;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
    device_close(dev); /* prices need no device */
    return s;
}

/* 2 m n k of each product with a weight, for one row: of the blocks, and of the head. */
static double block_products(bool gpt2) {
    double q = 2.0 * HIDDEN * HEADS * HEAD_DIM, o = q;
    double kv = 2.0 * 2.0 * HIDDEN * (gpt2 ? HEADS : KV_HEADS) * HEAD_DIM;
    double mlp = (gpt2 ? 2 : 3) * 2.0 * HIDDEN * INNER;
    return LAYERS * (q + kv + o + mlp);
}

static const double head_products = 2.0 * HIDDEN * WORDS;

/* Scores and weighted sum of one pair of tokens in all layers: two products of all heads. */
static const double pair_products = LAYERS * 2 * 2.0 * HEADS * HEAD_DIM;

/* Forward, dx and dw of every product; attention's backward pass has five for its forward's two; a
 * token looks at itself and at those before it. */
static void a_step_by_hand(void **state) {
    (void)state;
    for (int gpt2 = 0; gpt2 < 2; gpt2++) {
        sifr_model *model = model_of(gpt2 ? "gpt2" : "llama");
        plan_schedule *s = plan_of(model, PLAN_TRAIN);
        double pairs = 0;
        for (int t = 0; t < LENGTH; t++) pairs += SEQUENCES * (t + 1);
        double want = TOKENS * 3 * (block_products(gpt2) + head_products) +
                      pairs * pair_products * (1 + 5 / 2.0);
        assert_true(plan_operations(s) == want);
        plan_free(s);
        sifr_model_free(model);
    }
}

/* The field's count: three times forward, with all pairs. */
static void flops_by_hand(void **state) {
    (void)state;
    for (int gpt2 = 0; gpt2 < 2; gpt2++) {
        sifr_model *model = model_of(gpt2 ? "gpt2" : "llama");
        double want = 3 * (block_products(gpt2) + head_products + LENGTH * pair_products);
        assert_true(model_training_flops(model, LENGTH) == want);
        /* As the papers write it. */
        double written =
            3 * (block_products(gpt2) + head_products) + 12.0 * LAYERS * LENGTH * HEADS * HEAD_DIM;
        assert_true(want == written);
        sifr_model_free(model);
    }
}

/* Forward and backward of each op, and what runs in place of forward: the row's numbers. */
static void rows_are_prices(void **state) {
    (void)state;
    static const plan_mode modes[] = {PLAN_TRAIN, PLAN_EVALUATE, PLAN_GENERATE};
    for (int i = 0; i < 6; i++) {
        sifr_model *model = model_of(i % 2 ? "gpt2" : "llama");
        plan_schedule *s = plan_of(model, modes[i / 2]);
        int with_products = 0;
        for (size_t n = 0; n < s->instruction_count; n++) {
            const plan_instruction *in = &s->instructions[n];
            if (in->call < 0 || in->node < 0) continue;
            const device_call *call = &s->calls[in->call];
            const model_op *op = model->nodes[in->node].op;
            double operations, bytes, want = 0;
            plan_cost(s, call, &operations, &bytes);
            bool beside = call->kernel == DEVICE_CLEAR || call->kernel == DEVICE_CONVERT ||
                          call->kernel == DEVICE_ACCUMULATE;
            if (op->operations && !beside) {
                want = op->operations(call, false);
                if (in->action == PLAN_BACKWARD) want *= op->backward_factor;
                assert_true(want > 0);
                with_products++;
            }
            if (operations != want)
                fail_msg("%s, %s: %g operations, its row says %g", op->name,
                         device_kernel_name(call->kernel), operations, want);
            assert_true(bytes > 0);
        }
        assert_true(with_products > 5 * LAYERS);
        plan_free(s);
        sifr_model_free(model);
    }
}

static double a_million(const device_call *call, bool full) {
    (void)call;
    return full ? 2e6 : 1e6;
}

/* An op with numbers of its own changes the prices by them, and by nothing else. */
static void other_rows_are_other_prices(void **state) {
    (void)state;
    sifr_model *model = model_of("gpt2");
    model_op dear = model_op_gelu;
    dear.operations = a_million;
    dear.backward_factor = 7;
    double flops = model_training_flops(model, LENGTH);
    plan_schedule *s = plan_of(model, PLAN_TRAIN);
    double operations = plan_operations(s);
    for (size_t n = 0; n < model->node_count; n++)
        if (model->nodes[n].op == &model_op_gelu) model->nodes[n].op = &dear;
    assert_true(plan_operations(s) == operations + LAYERS * (1e6 + 7e6));
    assert_true(model_training_flops(model, LENGTH) == flops + 3 * LAYERS * 2e6 / LENGTH);
    plan_free(s);
    sifr_model_free(model);
}

/* An embedding reads the rows of its table that are chosen, not the table, where they are fewer. */
static void an_embedding_reads_its_rows(void **state) {
    (void)state;
    enum { COLUMNS = 8, FP32 = 4 };
    static model_node node = {.op = &model_op_embedding};
    static const sifr_model model = {.nodes = &node, .node_count = 1};
    static const int64_t tokens[] = {3, 2000}, read[] = {3, 1000};
    plan_schedule s = {.model = &model};
    for (int i = 0; i < 2; i++) {
        device_call call = {.kernel = DEVICE_EMBEDDING,
                            .x[0] = {.rows = tokens[i], .columns = 1, .dtype = BASE_INT32},
                            .w[0] = {.rows = 1000, .columns = COLUMNS, .dtype = BASE_FP32},
                            .y = {.rows = tokens[i], .columns = COLUMNS, .dtype = BASE_FP32}};
        double operations, bytes;
        plan_cost(&s, &call, &operations, &bytes);
        assert_true(operations == 0);
        assert_true(bytes == (double)(tokens[i] * FP32 + (read[i] + tokens[i]) * COLUMNS * FP32));
        device_call back = {.kernel = DEVICE_EMBEDDING_BACKWARD,
                            .x[0] = call.x[0],
                            .dy = call.y,
                            .dw[0] = call.w[0]};
        plan_cost(&s, &back, &operations, &bytes);
        assert_true(bytes == (double)(tokens[i] * FP32 + (1000 + tokens[i]) * COLUMNS * FP32));
    }
}

/* A windowed token looks at itself and at the window - 1 before it; the field's count is of all. */
static void a_window_looks_at_fewer_pairs(void **state) {
    (void)state;
    for (int variant = 0; variant <= 2 * LENGTH + 3; variant++) {
        int window = variant / 2;
        bool both = variant % 2;
        device_call call = {.kernel = DEVICE_ATTENTION};
        call.attributes.attention.heads = HEADS, call.attributes.attention.head_dim = HEAD_DIM;
        call.attributes.attention.sequences = SEQUENCES;
        call.attributes.attention.length = LENGTH;
        call.attributes.attention.window = window;
        call.attributes.attention.bidirectional = both;
        double pairs = 0;
        for (int i = 0; i < LENGTH; i++)
            for (int j = 0; j < (both ? LENGTH : i + 1); j++)
                pairs += window == 0 || abs(i - j) < window;
        double a_pair = pair_products / LAYERS;
        assert_true(model_op_attention.operations(&call, false) == SEQUENCES * pairs * a_pair);
        assert_true(model_op_attention.operations(&call, true) == TOKENS * LENGTH * a_pair);
        call.kernel = DEVICE_ATTENTION_CACHED;
        call.x[0].rows = 2;
        double seen = window == 0 || window > LENGTH ? LENGTH : window;
        assert_true(model_op_attention.operations(&call, false) == 2 * seen * a_pair);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_by_hand),
                                       cmocka_unit_test(flops_by_hand),
                                       cmocka_unit_test(rows_are_prices),
                                       cmocka_unit_test(other_rows_are_other_prices),
                                       cmocka_unit_test(an_embedding_reads_its_rows),
                                       cmocka_unit_test(a_window_looks_at_fewer_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
