/* Only ops whose row says that they work row by row go through a micro batch in tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "device/kinds.h"
#include "model/registry.h"
#include "plan/pass/passes.h"
#include "support/model_case.h"

enum { LENGTH = 2048, TILE = 1024 };

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
static void fewest_rows(const sifr_model *model, int64_t length, int64_t *rows) {
    plan_settings settings = {.mode = PLAN_TRAIN,
                              .step.precision = SIFR_FP32,
                              .step.micro_batch_size = 1,
                              .step.seq_length = length,
                              .step.gradient_accumulation_steps = 1,
                              .mesh = plan_mesh_flat(1, 0),
                              .step.tile_tokens = TILE};
    device *dev;
    plan_schedule *s;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
    for (size_t n = 0; n < model->node_count; n++) rows[n] = length;
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
    fewest_rows(model, LENGTH, rows);
    assert_int_equal(rows[n], TILE);
    model->nodes[n].op = &mixing;
    fewest_rows(model, LENGTH, rows);
    assert_int_equal(rows[n], LENGTH);
    assert_int_equal(rows[n - 1], TILE); /* the product before it is in tiles still */
    sifr_model_free(model);
}

enum { WIDTH = 8 };

static sifr_weight square(sifr_model *m, const char *name) {
    return sifr_weight_matrix(m, name, WIDTH, WIDTH, SIFR_INIT_NORMAL, 0.1);
}

/* A block whose two last branches read one sum of the attention's tiles and others'. */
static sifr_model *two_branches(void) {
    sifr_model *m;
    sifr_error error = {0};
    assert_int_equal(sifr_model_create(&m, &error), SIFR_OK);
    sifr_unit(m, "embed");
    sifr_weight table = square(m, "table");
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_unit(m, "block");
    sifr_value q = sifr_linear(m, x, square(m, "q"), SIFR_NO_WEIGHT);
    sifr_value a =
        sifr_attention(m, (sifr_attention_args){.q = q, .k = q, .v = q, .heads = 1, .kv_heads = 1});
    sifr_value h = sifr_add(m, x, sifr_linear(m, a, square(m, "o"), SIFR_NO_WEIGHT));
    sifr_value one = sifr_gelu(m, sifr_linear(m, h, square(m, "one"), SIFR_NO_WEIGHT), true);
    sifr_value two = sifr_gelu(m, sifr_linear(m, h, square(m, "two"), SIFR_NO_WEIGHT), true);
    x = sifr_add(m, sifr_add(m, h, one), two);
    sifr_unit(m, "head");
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = table});
    assert_int_equal(sifr_model_finish(m, &error), SIFR_OK);
    return m;
}

/* A gradient that other tiles read must not lie in a place for one tile (verifying finds that). */
static void gradients_outlive_tiles(void **state) {
    (void)state;
    sifr_model *model = two_branches();
    int64_t rows[64];
    assert_true(model->node_count <= 64);
    fewest_rows(model, LENGTH + 100, rows);
    assert_int_equal(rows[find(model, &model_op_gelu)], 100);
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
        fewest_rows(model, LENGTH, rows);
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

static sifr_status lower(device *dev, int64_t tile, sifr_error *error) {
    sifr_model *model = model_of("gpt2");
    plan_settings settings = {.mode = PLAN_TRAIN,
                              .step.precision = SIFR_BF16,
                              .step.micro_batch_size = 9,
                              .step.seq_length = LENGTH,
                              .step.gradient_accumulation_steps = 1,
                              .mesh = plan_mesh_flat(1, 0),
                              .step.tile_tokens = tile};
    plan_schedule *s = NULL;
    sifr_status status = plan_lower(model, dev, &settings, &s, error);
    plan_free(s);
    sifr_model_free(model);
    return status;
}

/* Tiles are whole chunks of the device; what the config asks for is the least of any. */
static void chunks_of_devices(void **state) {
    (void)state;
    static const int64_t chunks[] = {1024, 8192};
    const device_description gpu = {0};
    char want[80];
    for (int d = 0; d < 2; d++) {
        device *dev;
        sifr_error error = {0};
        int64_t chunk = chunks[d];
        assert_int_equal(d ? device_open_described(SIFR_DEVICE_CUDA, 1, &gpu, &dev, &error)
                           : device_open_cpu(1, NULL, &dev, &error),
                         SIFR_OK);
        assert_int_equal(device_token_chunk(dev), chunk);
        assert_int_equal(chunk % CONFIG_TOKEN_CHUNK, 0);
        assert_int_equal(lower(dev, chunk, &error), SIFR_OK);
        assert_int_equal(lower(dev, chunk + 512, &error), SIFR_USAGE);
        snprintf(want, sizeof want, "tile_tokens %d: tiles are whole chunks of %d tokens",
                 (int)chunk + 512, (int)chunk);
        assert_non_null(strstr(error.message, want));
        assert_int_equal(lower(dev, -chunk, &error), SIFR_USAGE);
        device_close(dev);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_no), cmocka_unit_test(gradients_outlive_tiles),
        cmocka_unit_test(rows_say_so), cmocka_unit_test(chunks_of_devices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
