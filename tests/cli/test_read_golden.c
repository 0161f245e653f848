/* `sifr eval` and `sifr generate` as a user runs them, against the golden results. */
#include "support/scratch.h"

#include <jansson.h>
#include <math.h>

#include "data/stream/token_store.h"
#include "support/golden.h"

/* Standard output of the program, as JSON. */
static json_t *run(const char *arguments) {
    char line[12000];
    json_error_t why;
    snprintf(line, sizeof line, "\"%s\" %s --json", getenv("SIFR"), arguments);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    json_t *json = json_loadf(pipe, 0, &why);
    int code = pclose(pipe);
    if (code || !json) fail_msg("%s: exit %d, %s", line, code, json ? "" : why.text);
    return json;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

static void write_store(const golden *g, const char *prefix) {
    data_token_writer writer;
    sifr_error error = {0};
    if (data_token_writer_open(&writer, prefix, g->vocab_size, &error) != SIFR_OK ||
        data_token_writer_append(&writer, g->eval_tokens, g->eval_token_count, &error) != SIFR_OK ||
        data_token_writer_end_document(&writer, &error) != SIFR_OK ||
        data_token_writer_commit(&writer, &error) != SIFR_OK) {
        fail_msg("%s", error.message);
    }
}

static double eval(const golden *g, const char *prefix, const char *more) {
    char arguments[10000];
    snprintf(arguments, sizeof arguments, "eval --model \"%s\" --data %s --seq-length %lld %s",
             g->folder, prefix, (long long)g->eval_window, more);
    json_t *json = run(arguments);
    assert_int_equal(number(json, "windows"), g->eval_windows);
    assert_int_equal(number(json, "tokens"), g->eval_windows * g->eval_window);
    double loss = number(json, "loss");
    assert_true(golden_relative(number(json, "perplexity"), exp(loss)) < 1e-12);
    json_decref(json);
    return loss;
}

static void test_eval(void **state) {
    (void)state;
    golden_list list;
    golden_list_open(&list);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        const char *prefix = scratch_path(g.name);
        write_store(&g, prefix);
        golden_check_eval(&g, GOLDEN_FP32, eval(&g, prefix, "--precision fp32"));
        golden_check_eval(&g, GOLDEN_FP32, eval(&g, prefix, "--precision fp32 --batch-size 4"));
        double bf16 = eval(&g, prefix, "--precision bf16");
        golden_check_eval(&g, GOLDEN_BF16, bf16);
        double fp16 = eval(&g, prefix, "--precision fp16");
        golden_check_eval(&g, GOLDEN_FP16, fp16);
        /* What is not asked for is that of the stored weights. */
        double stored = eval(&g, prefix, "");
        if (strcmp(g.stored_dtype, "bfloat16") == 0)
            assert_true(stored == bf16);
        else if (strcmp(g.stored_dtype, "float16") == 0)
            assert_true(stored == fp16);
        else
            golden_check_eval(&g, GOLDEN_FP32, stored);
        golden_close(&g);
    }
    golden_list_close(&list);
}

static void check_text(const golden *g) {
    char arguments[10000];
    snprintf(arguments, sizeof arguments,
             "generate --model \"%s\" --prompt '%s' --max-new-tokens %zu --precision fp32",
             g->folder, g->generation_text.text, g->generation_text.expected_count);
    json_t *json = run(arguments), *id;
    size_t i;
    const json_t *prompt = json_object_get(json, "prompt_ids");
    assert_int_equal(json_array_size(prompt), g->generation_text.prompt_count);
    json_array_foreach((json_t *)(uintptr_t)prompt, i, id)
        assert_int_equal(json_integer_value(id), g->generation_text.prompt[i]);
    const json_t *ids = json_object_get(json, "ids");
    /* The golden ids go on behind an end-of-text token, the program does not. */
    if (strcmp(json_string_value(json_object_get(json, "stopped_by")), "length") == 0)
        assert_int_equal(json_array_size(ids), g->generation_text.expected_count);
    assert_true(json_array_size(ids) > 0);
    json_array_foreach((json_t *)(uintptr_t)ids, i, id)
        assert_int_equal(json_integer_value(id), g->generation_text.expected[i]);
    json_decref(json);
}

static void test_generate(void **state) {
    (void)state;
    golden_list list;
    int checked = 0;
    golden_list_open(&list);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        char tokenizer[BASE_PATH_LENGTH + 32];
        snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", g.folder);
        if (g.generation_text.text && base_is_file(tokenizer)) {
            check_text(&g);
            checked++;
        }
        golden_close(&g);
    }
    assert_true(checked >= 2);
    golden_list_close(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_eval),
                                       cmocka_unit_test(test_generate)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
