/* Checkpoints of a device whose memory is its own, with state there or in the host's memory: a run
 * goes on from one on CPU ranks and the other way round, with the same bits. */
#include "checkpoint/checkpoint.h"
#include "support/scratch.h"
#include "support/zero_run.h"

static sifr_model *model;

static int make_model(void **state) {
    sifr_error error = {0};
    model_config config = zero_config("llama");
    if (model_from_config(&config, &model, &error) != SIFR_OK) return -1;
    return scratch_setup(state);
}

static int free_model(void **state) {
    sifr_model_free(model);
    return scratch_teardown(state);
}

static void expect_ok(sifr_status status, const sifr_error *error) {
    if (status != SIFR_OK) fail_msg("%s", error->message);
}

/* On one rank, which closes its group with the engine. */
static sifr_engine *open_engine(sifr_precision precision, bool separate, bool host) {
    sifr_settings options = sifr_settings_defaults();
    sifr_error error = {0};
    comm_group *group;
    device *dev;
    sifr_engine *engine = NULL;
    options.precision = precision;
    options.threads = 1;
    options.seq_length = ZERO_LENGTH;
    options.zero.stage = 3;
    sifr_tier tier = host ? SIFR_TIER_CPU : SIFR_TIER_NONE;
    options.offload.optimizer.device = options.offload.param.device = tier;
    expect_ok((separate ? device_open_separate : device_open_cpu)(1, NULL, &dev, &error), &error);
    expect_ok(comm_open_self(&group, &error), &error);
    expect_ok(engine_create_on(dev, model, &options, group, &engine, &error), &error);
    engine->own_group = group;
    expect_ok(sifr_engine_initialise(engine, ZERO_SEED, &error), &error);
    return engine;
}

static void train(sifr_engine *engine, int steps) {
    int32_t tokens[ZERO_LENGTH], labels[ZERO_LENGTH];
    sifr_step_result result;
    sifr_error error = {0};
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < ZERO_LENGTH; i++) {
            tokens[i] = (int32_t)((sifr_engine_steps(engine) * 11 + i * 5) % 97);
            labels[i] = (tokens[i] + 1) % 97;
        }
        expect_ok(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-2,
                                   &result, &error),
                  &error);
        assert_true(result.updated);
    }
}

/* Of both engines, as the host sees it. */
static void expect_same(const sifr_engine *a, const sifr_engine *b) {
    sifr_error error = {0};
    for (size_t w = 0; w < model->weight_count; w++) {
        int64_t count = model->weights[w].rows * model->weights[w].columns;
        float *x = calloc((size_t)count, sizeof *x), *y = calloc((size_t)count, sizeof *y);
        for (int p = 0; p < engine_parts(a); p++) {
            expect_ok(engine_collect(a, w, (engine_part)p, 0, count, x, &error), &error);
            expect_ok(engine_collect(b, w, (engine_part)p, 0, count, y, &error), &error);
            assert_memory_equal(x, y, (size_t)count * sizeof *x);
        }
        free(x);
        free(y);
    }
}

static void move(const sifr_engine *from, sifr_engine *to, const char *output) {
    json_t *nothing = json_object(), *state = NULL;
    checkpoint_record record = {
        .must_match = nothing, .may_differ = nothing, .state = nothing, .trainer = nothing};
    checkpoint_settings settings = {.file_bytes = 1 << 16};
    sifr_error error = {0};
    expect_ok(checkpoint_save(from, output, &record, &settings, NULL, &error), &error);
    expect_ok(checkpoint_load(to, output, &record, &state, NULL, &error), &error);
    json_decref(state);
    json_decref(nothing);
}

/* The model folder that an engine writes. */
static void read_folder(const sifr_engine *engine, char **data, size_t *size) {
    const char *folder = scratch_path("folder");
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    const model_architecture *llama = model_architecture_find("llama");
    expect_ok(base_make_directories(folder, &error), &error);
    expect_ok(engine_save_folder(engine, llama, NULL, BASE_FP32, folder, &error), &error);
    expect_ok(base_path_join(path, folder, "model.safetensors", &error), &error);
    expect_ok(base_read_file(path, 1 << 24, data, size, &error), &error);
    expect_ok(base_remove_tree(folder, &error), &error);
}

static void expect_same_folder(const sifr_engine *a, const sifr_engine *b) {
    char *x, *y;
    size_t m, n;
    read_folder(a, &x, &m);
    read_folder(b, &y, &n);
    assert_int_equal(m, n);
    assert_memory_equal(x, y, m);
    free(x);
    free(y);
}

static void there_and_back(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        sifr_precision precision = n % 2 ? SIFR_BF16 : SIFR_FP32;
        bool host = n / 2;
        sifr_engine *all = open_engine(precision, false, false);
        sifr_engine *first = open_engine(precision, true, host);
        sifr_engine *second = open_engine(precision, false, host);
        sifr_engine *third = open_engine(precision, true, host);
        train(all, 4);
        train(first, 2);
        move(first, second, scratch_path("there"));
        expect_same(first, second);
        train(second, 1);
        move(second, third, scratch_path("back"));
        train(third, 1);
        expect_same(all, third);
        expect_same_folder(all, third);
        assert_int_equal(third->training->host_bytes > 0, host);
        sifr_engine_free(all);
        sifr_engine_free(first);
        sifr_engine_free(second);
        sifr_engine_free(third);
        assert_int_equal(base_remove_tree(scratch_path("there"), NULL), SIFR_OK);
        assert_int_equal(base_remove_tree(scratch_path("back"), NULL), SIFR_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back)};
    return cmocka_run_group_tests(tests, make_model, free_model);
}
