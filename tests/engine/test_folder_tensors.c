/* Tensors of a model folder that do not fit its config.json: what is said of their shapes, and of
 * those that are left out. */
#include "support/scratch.h"

#include "engine/handle.h"

static sifr_error error;
static char said[2048];

static void hear(void *user, sifr_log_level level, const char *line) {
    (void)user;
    snprintf(said, sizeof said, "%s%s\n", level == SIFR_LOG_WARNING ? "warning: " : "", line);
}

/* A golden folder with `now` in place of `before` in one of its files. */
static const char *change(const char *family, const char *file, const char *before,
                          const char *now) {
    static const char *const files[] = {"config.json", "model.safetensors"};
    char source[1024], name[64], *text;
    size_t size, length = strlen(before);
    assert_int_equal(strlen(now), length);
    assert_int_equal(base_make_directories(scratch_fresh(family), &error), SIFR_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(source, sizeof source, "%s/tests/golden/dense/models/%s/%s",
                 getenv("SOURCE") ? getenv("SOURCE") : ".", family, files[i]);
        assert_int_equal(base_read_file(source, 1 << 20, &text, &size, &error), SIFR_OK);
        if (!strcmp(files[i], file)) {
            char *at = memmem(text, size, before, length);
            assert_non_null(at);
            memcpy(at, now, length);
        }
        snprintf(name, sizeof name, "%s/%s", family, files[i]);
        scratch_write(name, text, size);
        free(text);
    }
    return scratch_path(family);
}

static void shapes(void **state) {
    (void)state;
    static const struct {
        const char *family, *file, *before, *now, *part;
    } cases[] = {
        {"apertus", "model.safetensors", "alpha_p\":{\"dtype\":\"F32\",\"shape\":[1],",
         "alpha_p\":{\"dtype\":\"F32\",\"shape\":[] ,",
         "mlp.act_fn.alpha_p: its shape is that of a single number, but config.json needs 1"},
        {"opt", "config.json", "\"ffn_dim\": 7,", "\"ffn_dim\": 9,",
         "fc1.weight: its shape is 7 x 12, but config.json needs 9 x 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        engine_folder folder;
        const char *path = change(cases[i].family, cases[i].file, cases[i].before, cases[i].now);
        assert_int_equal(engine_folder_open(path, &folder, &error), SIFR_FAILED);
        assert_message(&error, cases[i].part);
    }
}

/* OPT's layers have names that begin like a head's. */
static void left_out(void **state) {
    (void)state;
    engine_folder folder;
    const char *path = change("opt", "config.json", "\"layer_norm_elementwise_affine\": true",
                              "\"layer_norm_elementwise_affine\":false");
    if (engine_folder_open(path, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    engine_folder_warn(&folder, &(sifr_log){hear, NULL});
    assert_non_null(strstr(said, "warning: 6 tensors ignored, model.decoder.final_layer_norm.bias "
                                 "first: not part of the model that config.json describes"));
    engine_folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(left_out)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
