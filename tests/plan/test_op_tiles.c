/* Only ops whose row says that they work row by row go through a micro batch in tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "support/model_case.h"

enum { LENGTH = 2048, TILE = DEVICE_TOKEN_CHUNK };

static sifr_model *model_of(const char *type) {
    model_config c = model_case_llama();
    sifr_model *model;
    sifr_error error = {0};
    snprintf(c.model_type, sizeof c.model_type, "%s", type);
    c.max_position_embeddings = LENGTH;
    if (strcmp(type, "gpt2") == 0) {
        c.num_key_value_heads = c.num_attention_heads;
        c.activation = MODEL_GELU_TANH;
    }
    assert_int_equal(model_from_config(&c, &model, &error), SIFR_OK);
    return model;
}

/* By node: the fewest rows that a call of its forward pass makes. */
static void fewest_rows(const sifr_model *model, int64_t *rows) {
    plan_settings settings = {.mode = PLAN_TRAIN,
                              .step.precision = SIFR_FP32,
                              .step.micro_batch_size = 1,
                              .step.seq_length = LENGTH,
                              .step.gradient_accumulation_steps = 1,
                              .world_size = 1,
                              .step.tile_tokens = TILE};
    device *dev;
    plan_schedule *s;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
    for (size_t n = 0; n < model->node_count; n++) rows[n] = LENGTH;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_FORWARD) continue;
        int64_t made = s->calls[in->call].y.rows;
        if (made < rows[in->node]) rows[in->node] = made;
    }
    plan_free(s);
    device_close(dev);
}

/* The first node of the second unit that is `op`. */
static size_t find(const sifr_model *model, const model_op *op) {
    size_t n = (size_t)model->units[1].first_node;
    while (model->nodes[n].op != op) n++;
    assert_true(n < model->node_count);
    return n;
}

/* A row as a new op has it that says nothing of rows, on kernels that are there. */
static void silence_is_no(void **state) {
    (void)state;
    static const model_op mixing = {
        .name = "mixing",
        .forward = DEVICE_GELU,
        .backward = DEVICE_GELU_BACKWARD,
        .keep = MODEL_KEEP_X0,
        .gradients = 1,
    };
    sifr_model *model = model_of("gpt2");
    int64_t rows[64];
    assert_true(model->node_count <= 64);
    size_t n = find(model, &model_op_gelu);
    fewest_rows(model, rows);
    assert_int_equal(rows[n], TILE);
    model->nodes[n].op = &mixing;
    fewest_rows(model, rows);
    assert_int_equal(rows[n], LENGTH);
    assert_int_equal(rows[n - 1], TILE); /* the product before it is in tiles still */
    sifr_model_free(model);
}

/* What every op of both architectures says is what the plan does. */
static void rows_say_so(void **state) {
    (void)state;
    static const char *const types[] = {"gpt2", "llama"};
    for (int t = 0; t < 2; t++) {
        sifr_model *model = model_of(types[t]);
        int64_t rows[64];
        bool tiled = false;
        assert_true(model->node_count <= 64);
        fewest_rows(model, rows);
        for (size_t n = 0; n < model->node_count; n++) {
            bool in_tiles = rows[n] < LENGTH;
            if (in_tiles && !model->nodes[n].op->by_row)
                fail_msg("%s is tiled", model->nodes[n].op->name);
            tiled |= in_tiles;
        }
        assert_true(tiled);
        assert_false(model->nodes[find(model, &model_op_attention)].op->by_row);
        sifr_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(silence_is_no),
                                       cmocka_unit_test(rows_say_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
