/* What goes along from one model folder to the next, byte for byte. */
#include <sys/stat.h>

#include "support/scratch.h"

#include "formats/config_edit.h"
#include "formats/folder.h"

static sifr_error error;
static char said[4096];

static void hear(void *user, sifr_log_level level, const char *line) {
    (void)user;
    (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log ear = {hear, NULL};

static void assert_content(const char *name, const char *wanted) {
    char *text;
    size_t size;
    if (base_read_file(scratch_path(name), 1 << 20, &text, &size, &error) != SIFR_OK) {
        fail_msg("%s", error.message);
    }
    assert_string_equal(text, wanted);
    assert_int_equal(size, strlen(wanted));
    free(text);
}

static void dtype_case(const char *text, const char *wanted) {
    char *out;
    size_t size;
    sifr_status status = formats_config_set_dtype(text, strlen(text), "config.json", "bfloat16",
                                                  &out, &size, &error);
    if (!wanted) {
        assert_int_equal(status, SIFR_USAGE);
        return;
    }
    if (status != SIFR_OK) fail_msg("%s", error.message);
    assert_string_equal(out, wanted);
    assert_int_equal(size, strlen(wanted));
    free(out);
}

static void dtype(void **state) {
    (void)state;
    dtype_case("{\n  \"torch_dtype\": \"float32\",\n  \"a\": 1.50\n}\n",
               "{\n  \"torch_dtype\": \"bfloat16\",\n  \"a\": 1.50\n}\n");
    dtype_case("{\"dtype\":\"float16\"}", "{\"dtype\":\"bfloat16\"}");
    dtype_case("{\"dtype\" : null , \"torch_dtype\":\"a\\\"b\"}",
               "{\"dtype\" : \"bfloat16\" , \"torch_dtype\":\"bfloat16\"}");
    /* Inside of other values, or as a value, it is left alone. */
    dtype_case("{\"q\": {\"dtype\": \"x\"}, \"v\": \"dtype\", \"l\": [\"torch_dtype\"], "
               "\"e\\\"dtype\": 1, \"dtype\": \"y\"}",
               "{\"q\": {\"dtype\": \"x\"}, \"v\": \"dtype\", \"l\": [\"torch_dtype\"], "
               "\"e\\\"dtype\": 1, \"dtype\": \"bfloat16\"}");
    dtype_case(" {\"a\": 1}", " {\n  \"torch_dtype\": \"bfloat16\",\"a\": 1}");
    dtype_case("{}", "{\n  \"torch_dtype\": \"bfloat16\"\n}");
    dtype_case("{\"dtype\": {\"a\": 1}}", NULL);
    dtype_case("{\"dt\\u0079pe\": \"float32\"}", NULL);
    dtype_case("[\"dtype\"]", NULL);
    dtype_case("{\"dtype\": \"x\"", NULL);
}

static void changes(void **state) {
    (void)state;
    const formats_config_change list[] = {{"b", "[\n    1\n  ]"}, {"new", "{}"}, {"c", "7"}};
    char *out;
    size_t size;
    const char *text = "{ \"a\":[{\"b\":\"]\"}], \"b\" : {\"c\": [\"}\\\"\", {}]} ,\"c\":[1,2]}\n";
    assert_int_equal(
        formats_config_edit(text, strlen(text), "config.json", list, 3, &out, &size, &error),
        SIFR_OK);
    assert_string_equal(out, "{\n  \"new\": {}, \"a\":[{\"b\":\"]\"}], \"b\" : [\n    1\n  ] ,"
                             "\"c\":7}\n");
    assert_int_equal(size, strlen(out));
    free(out);
    assert_int_equal(formats_config_edit("{}", 2, "config.json", list, 2, &out, &size, &error),
                     SIFR_OK);
    assert_string_equal(out, "{\n  \"new\": {},\n  \"b\": [\n    1\n  ]\n}");
    free(out);
    text = "{\"\\u0062\": 1}";
    assert_int_equal(
        formats_config_edit(text, strlen(text), "config.json", list, 1, &out, &size, &error),
        SIFR_USAGE);
    assert_message(&error, "\"b\" is written with escapes");
}

static void carry(void **state) {
    (void)state;
    static const char config[] = "{ \"model_type\":\"gpt2\",\"torch_dtype\":\"float32\" }";
    assert_int_equal(mkdir(scratch_path("from"), 0777), 0);
    assert_int_equal(mkdir(scratch_path("from/onnx"), 0777), 0);
    assert_int_equal(mkdir(scratch_path("to"), 0777), 0);
    scratch_text("from/config.json", config);
    scratch_text("from/tokenizer.json", "{ \"t\" : 1 }");
    scratch_text("from/.gitattributes", "x");
    scratch_text("from/empty.txt", "");
    assert_int_equal(mkdir(scratch_path("from/additional_chat_templates"), 0777), 0);
    scratch_text("from/additional_chat_templates/rag.jinja", "{{ messages }}");
    scratch_text("from/additional_chat_templates/notes.txt", "x");
    static const char *const records[] = {"latest", "trainer_state.json", "zero_to_fp32.py",
                                          "sifr_config.json", "metrics.csv"};
    static const char *const left[] = {"model.safetensors", "model.safetensors.index.json",
                                       "pytorch_model.bin", "optimizer.pt",
                                       "rng.pth",           "m.gguf"};
    char name[64];
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(name, sizeof name, "from/%s", left[i]);
        scratch_text(name, "weights");
    }
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        snprintf(name, sizeof name, "from/%s", records[i]);
        scratch_text(name, "of a run");
    }
    assert_int_equal(
        formats_folder_carry(scratch_path("from"), scratch_path("to"), NULL, &ear, &error),
        SIFR_OK);
    assert_content("to/config.json", config);
    assert_content("to/tokenizer.json", "{ \"t\" : 1 }");
    assert_content("to/.gitattributes", "x");
    assert_content("to/empty.txt", "");
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(name, sizeof name, "to/%s", left[i]);
        assert_false(base_is_file(scratch_path(name)));
    }
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        snprintf(name, sizeof name, "to/%s", records[i]);
        assert_false(base_is_file(scratch_path(name)));
    }
    assert_content("to/additional_chat_templates/rag.jinja", "{{ messages }}");
    assert_false(base_is_file(scratch_path("to/additional_chat_templates/notes.txt")));
    assert_false(base_is_directory(scratch_path("to/onnx")));
    static const char *const words[] = {"pytorch_model.bin", "optimizer.pt", "rng.pth", "m.gguf",
                                        "onnx: the directory is not copied"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_non_null(strstr(said, words[i]));

    assert_int_equal(
        formats_folder_carry(scratch_path("from"), scratch_path("to"), "bfloat16", NULL, &error),
        SIFR_OK);
    assert_content("to/config.json", "{ \"model_type\":\"gpt2\",\"torch_dtype\":\"bfloat16\" }");

    assert_int_equal(formats_folder_carry(scratch_path("from"), scratch_path("from/../from"), NULL,
                                          NULL, &error),
                     SIFR_USAGE);
    assert_int_equal(symlink("/etc/passwd", scratch_path("from/notes.txt")), 0);
    assert_int_equal(
        formats_folder_carry(scratch_path("from"), scratch_path("to"), NULL, NULL, &error),
        SIFR_FAILED);
    assert_message(&error, "leads out of its folder");
    assert_false(base_is_file(scratch_path("to/notes.txt")));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dtype), cmocka_unit_test(changes),
                                       cmocka_unit_test(carry)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
