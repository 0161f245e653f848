/* timeout: 120
 * Checkpoints of fused q, k and v in three blocks, whose order is another. */
#include "support/block_case.h"

#include "checkpoint/state_source.h"
#include "convert/export.h"

static const char config_text[] =
    "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 40, "
    "\"n_embd\": 12, \"n_layer\": 2, \"n_head\": 2, \"n_positions\": 8}";

static sifr_model *make_gpt2(bool turned) {
    model_config config;
    sifr_model *m;
    assert_int_equal(
        model_config_parse(config_text, sizeof config_text - 1, "model", &config, NULL), SIFR_OK);
    assert_int_equal(model_from_config(&config, &m, NULL), SIFR_OK);
    for (size_t i = 0; i < m->weight_count && turned; i++) {
        model_weight *w = &m->weights[i];
        if (!strstr(w->name, "c_attn")) continue;
        w->cut = (model_cut){.rows = w->rows, .columns = w->columns, .count = 3};
        for (int b = 0; b < 3; b++) { /* v, k, q */
            int64_t first = (2 - b) * w->columns / 3;
            w->cut.blocks[b] = (model_block){{0, w->rows}, {first, first + w->columns / 3}};
        }
    }
    return m;
}

static void same_file(const char *a, const char *b) {
    char *left, *right;
    size_t size, other;
    assert_int_equal(base_read_file(scratch_path(a), 1 << 20, &left, &size, NULL), SIFR_OK);
    assert_int_equal(base_read_file(scratch_path(b), 1 << 20, &right, &other, NULL), SIFR_OK);
    assert_int_equal(size, other);
    assert_memory_equal(left, right, size);
    free(left);
    free(right);
}

/* Fused q, k and v in three blocks: folders, exports and what reads a checkpoint give the bytes
 * that they give of the whole model. */
static void fused_in_three(void **state) {
    (void)state;
    sifr_model *plain = make_gpt2(false), *turned = make_gpt2(true);
    sifr_engine *a = make_engine(plain), *b = make_engine(turned), *c = make_engine(plain);
    const model_architecture *gpt2 = model_architecture_find("gpt2");
    static float x[4096], y[4096];
    sifr_error error = {0};
    convert_exported out;
    assert_int_equal(sifr_engine_initialise(a, 3, NULL), SIFR_OK);
    train(a, 3, 40);
    save(a, scratch_fresh("plain"));
    loads(b, scratch_path("plain"));
    save(b, scratch_fresh("turned"));
    loads(c, scratch_path("turned"));
    for (size_t w = 0; w < plain->weight_count; w++) {
        const model_weight *weight = &plain->weights[w];
        size_t count = (size_t)(weight->rows * weight->columns);
        for (int p = 0; p < engine_parts(a); p++)
            assert_memory_equal(engine_state(a, w, (engine_part)p),
                                engine_state(c, w, (engine_part)p), count * 4);
        assert_int_equal(sifr_engine_read_weight(a, weight->name, x, count, NULL), SIFR_OK);
        assert_int_equal(sifr_engine_read_weight(b, weight->name, y, count, NULL), SIFR_OK);
        assert_memory_equal(x, y, count * 4);
        assert_int_equal(sifr_engine_write_weight(b, weight->name, x, count, NULL), SIFR_OK);
        assert_int_equal(sifr_engine_read_weight(b, weight->name, y, count, NULL), SIFR_OK);
        assert_memory_equal(x, y, count * 4);
    }
    train(a, 2, 40);
    train(c, 2, 40);
    assert_memory_equal(engine_state(a, 0, ENGINE_MASTER), engine_state(c, 0, ENGINE_MASTER), 160);
    loads(a, scratch_path("turned"));
    assert_int_equal(base_make_directories(scratch_path("folder-a"), NULL), SIFR_OK);
    assert_int_equal(base_make_directories(scratch_path("folder-b"), NULL), SIFR_OK);
    assert_int_equal(engine_save_folder(a, gpt2, NULL, BASE_FP32, scratch_path("folder-a"), &error),
                     SIFR_OK);
    assert_int_equal(engine_save_folder(b, gpt2, NULL, BASE_FP32, scratch_path("folder-b"), &error),
                     SIFR_OK);
    same_file("folder-a/model.safetensors", "folder-b/model.safetensors");
    scratch_text("plain/config.json", config_text);
    scratch_text("turned/config.json", config_text);
    if (convert_export(scratch_path("plain/checkpoint-3"), scratch_path("out-a"), false, false,
                       NULL, &out, &error) != SIFR_OK ||
        convert_export(scratch_path("turned/checkpoint-3"), scratch_path("out-b"), false, false,
                       NULL, &out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    same_file("out-a/model.safetensors", "out-b/model.safetensors");
    same_file("out-a/model.safetensors", "folder-a/model.safetensors");
    checkpoint_model model;
    checkpoint_state states;
    assert_int_equal(
        checkpoint_model_open(scratch_path("turned/checkpoint-3"), NULL, &model, NULL, &error),
        SIFR_OK);
    assert_int_equal(checkpoint_state_open(&model, &optim_adam, &states, &error), SIFR_OK);
    for (size_t w = 0; w < plain->weight_count; w++) {
        int64_t count = plain->weights[w].rows * plain->weights[w].columns, first = count / 3;
        for (int p = 0; p < engine_parts(a); p++) {
            checkpoint_state_values(&states, w, (engine_part)p, first, count - first, y);
            assert_memory_equal(engine_state(a, w, (engine_part)p) + first, y,
                                (size_t)(count - first) * 4);
        }
    }
    checkpoint_state_close(&states);
    checkpoint_model_close(&model);
    sifr_engine_free(a), sifr_engine_free(b), sifr_engine_free(c);
    sifr_model_free(plain), sifr_model_free(turned);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fused_in_three)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
