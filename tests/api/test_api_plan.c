/* sifr/plan.h: figures, classes, texts and JSON of a step; whether it fits; --fit; what is refused.
 */
#include <jansson.h>

#include "sifr/plan.h"
#include "support/scratch.h"

static sifr_error error;
static sifr_context *context;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_config *make_config(void) {
    static const char text[] = "{\"train_batch_size\": 16, \"zero_optimization\": {\"stage\": 2},"
                               " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}}";
    char model[512];
    sifr_config *config;
    snprintf(model, sizeof model, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, sizeof text - 1, "ds.json", &error));
    OK(sifr_config_set(config, "model", model, &error));
    return config;
}

/* On a machine that is not measured, so that prices are the same each time. */
static sifr_plan_options options(void) {
    return (sifr_plan_options){.size = sizeof(sifr_plan_options),
                               .ranks = 4,
                               .machine = scratch_path("machine.json"),
                               .device_memory = 1 << 30};
}

static void says_the_same_everywhere(void **state) {
    (void)state;
    sifr_config *config = make_config();
    sifr_plan_options given = options();
    sifr_plan *plan;
    sifr_plan_figures figures = {.size = sizeof figures};
    sifr_plan_class class = {.size = sizeof class};
    char *text;
    int64_t bytes = 0, live = 0;
    size_t classes = 0;
    OK(sifr_plan_create(context, config, &given, &plan, &error));
    sifr_config_free(config); /* it was read */
    sifr_plan_get(plan, &figures);
    assert_true(figures.fits && figures.step_seconds > 0 && figures.tokens_per_second > 0);
    assert_true(figures.ranks_per_host == 2 && figures.nvme_bytes == 0 && figures.host_bytes == 0);
    assert_int_equal(figures.micro_batch_size * figures.gradient_accumulation_steps, 4);
    OK(sifr_plan_fits(plan, &error));
    OK(sifr_plan_json(plan, true, &text, &error));
    json_t *json = json_loads(text, 0, NULL), *of = json_object_get(json, "classes");
    sifr_text_free(text);
    for (; sifr_plan_class_at(plan, classes, &class); classes++) {
        bool gaps = classes == json_object_size(of); /* the last one */
        if (gaps)
            assert_string_equal(class.name, "gaps");
        else
            assert_int_equal(class.bytes, json_integer_value(json_object_get(of, class.name)));
        assert_true(class.most_bytes >= class.bytes);
        bytes += class.bytes;
        live += gaps ? 0 : class.bytes;
    }
    assert_int_equal(classes, json_object_size(of) + 1);
    assert_int_equal(live, json_integer_value(json_object_get(json, "live_bytes")));
    assert_int_equal(bytes, figures.bytes);
    assert_int_equal(figures.bytes, json_integer_value(json_object_get(json, "peak_bytes")));
    assert_true(json_array_size(json_object_get(json, "schedule")) > 20);
    assert_int_equal(json_array_size(json_object_get(json, "stages")), 4);
    json_decref(json);
    static const char *const words[] = {"predicted ", "with one setting changed", "backward",
                                        "DeepSpeed's estimators"};
    for (int part = SIFR_PLAN_OWN; part <= SIFR_PLAN_DEEPSPEED; part++) {
        OK(sifr_plan_text(plan, (sifr_plan_part)part, &text, &error));
        assert_non_null(strstr(text, words[part]));
        assert_int_equal(text[strlen(text) - 1], '\n');
        sifr_text_free(text);
    }
    sifr_plan_free(plan);
    sifr_plan_free(NULL);
}

static void says_what_does_not_fit(void **state) {
    (void)state;
    sifr_config *config = make_config();
    sifr_plan_options given = options();
    sifr_plan_figures figures = {.size = sizeof figures};
    sifr_plan *plan;
    given.device_memory = 1 << 20;
    OK(sifr_plan_create(context, config, &given, &plan, &error));
    sifr_plan_get(plan, &figures);
    assert_false(figures.fits);
    assert_int_equal(sifr_plan_fits(plan, &error), SIFR_NO_MEMORY);
    assert_message(&error, "memory");
    sifr_plan_free(plan);
    sifr_config_free(config);
}

static void chooses(void **state) {
    (void)state;
    sifr_config *config = make_config(), *chosen;
    sifr_plan_options given = options();
    sifr_plan_figures figures = {.size = sizeof figures};
    sifr_plan_class class = {.size = sizeof class};
    sifr_plan *plan;
    char *text;
    given.fit = true;
    OK(sifr_plan_create(context, config, &given, &plan, &error));
    assert_false(sifr_plan_class_at(plan, 0, &class));
    assert_int_equal(sifr_plan_json(plan, false, &text, &error), SIFR_USAGE);
    assert_message(&error, "sifr_plan_fit");
    assert_int_equal(sifr_plan_text(plan, SIFR_PLAN_OWN, &text, &error), SIFR_USAGE);
    OK(sifr_plan_fit(plan, &chosen, &error));
    sifr_plan_get(plan, &figures);
    assert_true(figures.fits);
    OK(sifr_config_value(chosen, "train_micro_batch_size_per_gpu", &text, &error));
    assert_int_equal(atoi(text), figures.micro_batch_size);
    sifr_text_free(text);
    OK(sifr_plan_text(plan, SIFR_PLAN_CHOSEN, &text, &error));
    assert_non_null(strstr(text, "as given"));
    sifr_text_free(text);
    assert_int_equal(sifr_plan_fit(plan, &chosen, &error), SIFR_USAGE);
    sifr_plan_free(plan);
    given.fit = false; /* the chosen config takes what was said */
    OK(sifr_plan_create(context, chosen, &given, &plan, &error));
    sifr_plan_figures again = {.size = sizeof again};
    sifr_plan_get(plan, &again);
    assert_int_equal(again.bytes, figures.bytes);
    assert_int_equal(sifr_plan_fit(plan, &chosen, &error), SIFR_USAGE);
    assert_message(&error, "sifr_plan_options.fit");
    sifr_plan_free(plan);
    sifr_config_free(chosen);
    sifr_config_free(config);
}

static void refuses(void **state) {
    (void)state;
    sifr_config *config = make_config();
    sifr_plan *plan;
    const struct {
        sifr_plan_options options;
        const char *said;
    } cases[] = {{{.ranks = -1}, "sifr_plan_options.ranks: -1; 1 to"},
                 {{.rank = 1}, "sifr_plan_options.rank: 1; of 1 ranks it is 0 to 0"},
                 {{.ranks_per_host = -2}, "sifr_plan_options.ranks_per_host: -2"},
                 {{.ranks = 8, .ranks_per_host = 3},
                  "sifr_plan_options.ranks_per_host: 3; hosts have as many ranks each, so give a "
                  "number that divides 8"},
                 {{.host_memory = -3}, "sifr_plan_options.host_memory: -3"},
                 {{.nvme = "nowhere"}, "nowhere: no directory here, and no size"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sifr_plan_options given = cases[i].options;
        given.size = sizeof given;
        assert_int_equal(sifr_plan_create(context, config, &given, &plan, &error), SIFR_USAGE);
        assert_message(&error, cases[i].said);
    }
    OK(sifr_config_set(config, "model", "nowhere", &error));
    assert_int_equal(sifr_plan_create(context, config, NULL, &plan, &error), SIFR_FAILED);
    assert_message(&error, "nowhere");
    sifr_config_free(config);
}

static int setup(void **state) {
    if (scratch_setup(state) != 0) return -1;
    scratch_text("machine.json",
                 "{\"fp32_operations_per_s\": 1e11, \"bf16_operations_per_s\": 2e11,"
                 " \"memory_bytes_per_s\": 1e10, \"ranks_per_host\": 2}");
    return sifr_context_create(NULL, &context, &error) == SIFR_OK ? 0 : -1;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_the_same_everywhere),
                                       cmocka_unit_test(says_what_does_not_fit),
                                       cmocka_unit_test(chooses), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
