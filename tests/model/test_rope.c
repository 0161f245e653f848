/* Angles and attention factors of rotary positions, against transformers' (tests/golden/rope.json).
 */
#include <math.h>

#include <jansson.h>

#include "support/scratch.h"

#include "model/model_config.h"
#include "support/golden_run.h"

static sifr_error error;
static model_config config;

static void parse(const json_t *json) {
    char *text = json_dumps(json, 0);
    assert_non_null(text);
    if (model_config_parse(text, strlen(text), "config.json", &config, &error) != SIFR_OK)
        fail_msg("%s: %s", text, error.message);
    free(text);
}

static bool is_near(double got, double expected) {
    return fabs(got - expected) <= 3e-6 * fabs(expected);
}

static void angles_agree(const char *name, const json_t *result) {
    int64_t length = (int64_t)json_integer_value(json_object_get(result, "length"));
    const json_t *list = json_object_get(result, "inv_freq");
    assert_int_equal(config.rope.rotary_dim, 2 * json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        double expected = json_number_value(json_array_get(list, i));
        double got = model_rope_frequency(&config.rope, length, (int64_t)i);
        if (!is_near(got, expected)) {
            fail_msg("%s: length %lld, pair %zu: %.9g, transformers has %.9g", name,
                     (long long)length, i, got, expected);
        }
    }
    double expected = json_number_value(json_object_get(result, "attention_factor"));
    double got = model_rope_scale(&config.rope, length - 1);
    if (!is_near(got, expected))
        fail_msg("%s: scale %.9g, transformers has %.9g", name, got, expected);
}

static json_t *load_results(void) {
    char path[1024];
    json_error_t why;
    snprintf(path, sizeof path, "%s/tests/golden/rope.json",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    json_t *all = json_load_file(path, 0, &why);
    if (!all) fail_msg("%s: %s", path, why.text);
    return all;
}

static void golden_angles(void **state) {
    (void)state;
    json_t *all = load_results();
    const json_t *cases = json_object_get(all, "cases");
    assert_true(json_array_size(cases) >= 20);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i), *results = json_object_get(one, "results");
        parse(json_object_get(one, "config"));
        for (size_t k = 0; k < json_array_size(results); k++)
            angles_agree(json_string_value(json_object_get(one, "name")),
                         json_array_get(results, k));
    }
    json_decref(all);
}

static size_t read_ids(const json_t *list, int32_t *out) {
    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

/* Sequences that outgrow the length from which on angles are others, token by token and with
 * prompts in chunks. */
static void golden_growth(void **state) {
    (void)state;
    json_t *all = load_results();
    const json_t *cases = json_object_get(all, "generations");
    golden_list list;
    golden_list_open_at(&list, "families/");
    assert_int_equal(json_array_size(cases), 2);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        golden_generation generation = {0};
        golden g;
        generation.prompt_count = read_ids(json_object_get(one, "prompt"), generation.prompt);
        generation.expected_count = read_ids(json_object_get(one, "new"), generation.expected);
        golden_open(&list, golden_list_find(&list, name), &g);
        golden_run_generation(&g, &generation, 1);
        golden_run_generation(&g, &generation, 7);
        golden_close(&g);
    }
    golden_list_close(&list);
    json_decref(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_angles),
        cmocka_unit_test(golden_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
