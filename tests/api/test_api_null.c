/* NULL in place of a handle, of the place for a result or of a path: SIFR_USAGE by name, of calls
 * of each header; a call without a status does nothing, and gives nothing.
 * tests/scripts/test_given.sh sees that no call was forgotten. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sifr/sifr.h"

#define REFUSES(call, message_)                                                                    \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        assert_int_equal((call), SIFR_USAGE);                                                      \
        assert_string_equal(error.message, message_ ": NULL; give one");                           \
    } while (0)

static sifr_context *context;
static sifr_config *config;

static int setup(void **state) {
    (void)state;
    return sifr_context_create(NULL, &context, NULL) != SIFR_OK ||
           sifr_config_create(&config, NULL) != SIFR_OK;
}

static int teardown(void **state) {
    (void)state;
    sifr_config_free(config);
    sifr_context_free(context);
    return 0;
}

static void configs(void **state) {
    (void)state;
    char *text = NULL;
    REFUSES(sifr_context_create(NULL, NULL, &error), "sifr_context_create: out");
    REFUSES(sifr_config_create(NULL, &error), "sifr_config_create: out");
    REFUSES(sifr_config_copy(config, NULL, &error), "sifr_config_copy: out");
    REFUSES(sifr_config_load(config, NULL, &error), "sifr_config_load: path");
    REFUSES(sifr_config_parse(config, "{}", 2, NULL, &error), "sifr_config_parse: name");
    REFUSES(sifr_config_set(NULL, "lr", "1", &error), "sifr_config_set: config");
    REFUSES(sifr_config_set(config, NULL, "1", &error), "sifr_config_set: name");
    REFUSES(sifr_config_clear(NULL, "lr", &error), "sifr_config_clear: config");
    REFUSES(sifr_config_resolve(NULL, 1, &error), "sifr_config_resolve: config");
    REFUSES(sifr_config_value(config, "lr", NULL, &error), "sifr_config_value: out");
    REFUSES(sifr_config_json(NULL, &text, &error), "sifr_config_json: config");
    REFUSES(sifr_config_explain(NULL, 1, false, NULL, NULL, &error), "sifr_config_explain: config");
    assert_null(text);
}

static void runs(void **state) {
    (void)state;
    sifr_train_outcome outcome = {.size = sizeof outcome};
    sifr_evaluated evaluated = {.size = sizeof evaluated};
    sifr_plan *plan = NULL;
    sifr_loop *loop = NULL;
    sifr_data *data = NULL;
    sifr_watch *watch = NULL;
    REFUSES(sifr_train(context, NULL, NULL, NULL, &outcome, &error), "sifr_train: config");
    REFUSES(sifr_train(context, config, NULL, NULL, NULL, &error), "sifr_train: outcome");
    REFUSES(sifr_evaluate(NULL, NULL, &evaluated, &error), "sifr_evaluate: context");
    REFUSES(sifr_plan_create(context, config, NULL, NULL, &error), "sifr_plan_create: out");
    REFUSES(sifr_plan_create(NULL, config, NULL, &plan, &error), "sifr_plan_create: context");
    REFUSES(sifr_plan_fits(NULL, &error), "sifr_plan_fits: plan");
    REFUSES(sifr_loop_open(context, NULL, NULL, &loop, &error), "sifr_loop_open: config");
    REFUSES(sifr_loop_step(NULL, NULL, NULL, &error), "sifr_loop_step: loop");
    REFUSES(sifr_data_open(context, config, NULL, NULL, &error), "sifr_data_open: out");
    REFUSES(sifr_data_look(context, config, NULL, &error), "sifr_data_look: out");
    REFUSES(sifr_data_open(context, NULL, NULL, &data, &error), "sifr_data_open: config");
    REFUSES(sifr_data_step(NULL, NULL, 0, NULL, &error), "sifr_data_step: data");
    REFUSES(sifr_ranks_open(context, NULL, NULL, &error), "sifr_ranks_open: out");
    REFUSES(sifr_ranks_agree(NULL, SIFR_OK, &error), "sifr_ranks_agree: ranks");
    REFUSES(sifr_watch_open(context, NULL, &watch, &error), "sifr_watch_open: run");
    REFUSES(sifr_watch_look(NULL, NULL, &error), "sifr_watch_look: watch");
    REFUSES(sifr_watch_screen(NULL, NULL, NULL, &error), "sifr_watch_screen: watch");
    REFUSES(sifr_watch_news(NULL, NULL, &error), "sifr_watch_news: watch");
    sifr_watch_close(NULL);
    assert_true(!plan && !loop && !data && !watch);
}

static void texts(void **state) {
    (void)state;
    sifr_tokenizer *tokenizer = NULL;
    sifr_generator *generator = NULL;
    sifr_classifier *classifier = NULL;
    REFUSES(sifr_tokenizer_open(NULL, "x", &tokenizer, &error), "sifr_tokenizer_open: context");
    REFUSES(sifr_tokenizer_open(context, NULL, &tokenizer, &error), "sifr_tokenizer_open: path");
    REFUSES(sifr_tokenizer_encode(NULL, "", 0, false, NULL, NULL, &error),
            "sifr_tokenizer_encode: tokenizer");
    REFUSES(sifr_decoder_push(NULL, 0, NULL, NULL, &error), "sifr_decoder_push: decoder");
    REFUSES(sifr_generator_open(NULL, NULL, &generator, &error), "sifr_generator_open: context");
    REFUSES(sifr_generator_run(NULL, NULL, &error), "sifr_generator_run: generator");
    REFUSES(sifr_chat_open(NULL, NULL, NULL, NULL, &error), "sifr_chat_open: generator");
    REFUSES(sifr_classifier_open(context, NULL, NULL, &error), "sifr_classifier_open: out");
    REFUSES(sifr_classifier_run(NULL, NULL, NULL, &error), "sifr_classifier_run: classifier");
    REFUSES(sifr_score(NULL, NULL, NULL, &error), "sifr_score: context");
    REFUSES(sifr_tokenize(NULL, NULL, NULL, &error), "sifr_tokenize: context");
    assert_true(!tokenizer && !generator && !classifier);
}

static void folders(void **state) {
    (void)state;
    size_t count;
    REFUSES(sifr_export(NULL, NULL, NULL, &error), "sifr_export: context");
    REFUSES(sifr_merge(NULL, NULL, NULL, &error), "sifr_merge: context");
    REFUSES(sifr_import_config(context, NULL, NULL, NULL, &error), "sifr_import_config: text");
    REFUSES(sifr_checkpoint_list(NULL, NULL, 0, &count, &error), "sifr_checkpoint_list: output");
    REFUSES(sifr_checkpoint_inspect("x", false, NULL, &error), "sifr_checkpoint_inspect: out");
    REFUSES(sifr_checkpoint_save(context, NULL, "x", NULL, &error), "sifr_checkpoint_save: engine");
    REFUSES(sifr_engine_fail(NULL, SIFR_CALL_STEP, "x", &error), "sifr_engine_fail: engine");
}

/* Arrays of which something is to be read or written, and lists of options. */
static void arrays(void **state) {
    (void)state;
    static const char *const hole[] = {"a", NULL};
    size_t count;
    char *text = NULL;
    sifr_generator *generator = NULL;
    sifr_generator_options stop = {.size = sizeof stop, .model = "x", .stop_count = 1};
    sifr_evaluate_options of = {.size = sizeof of, .model = "x", .path_count = 1};
    sifr_evaluated evaluated = {.size = sizeof evaluated};
    sifr_tokenize_options into = {.size = sizeof into, .path_count = 1};
    sifr_import_config_options from = {.size = sizeof from, .path = "x", .allow_count = 1};
    REFUSES(sifr_config_parse(config, NULL, 2, "x", &error), "sifr_config_parse: text");
    REFUSES(sifr_import_check(NULL, 2, "x", &error), "sifr_import_check: text");
    REFUSES(sifr_checkpoint_list("x", NULL, 5, &count, &error), "sifr_checkpoint_list: steps");
    REFUSES(sifr_generator_open(context, &stop, &generator, &error), "sifr_generator_options.stop");
    REFUSES(sifr_evaluate(context, &of, &evaluated, &error), "sifr_evaluate_options.paths");
    REFUSES(sifr_tokenize(context, &into, NULL, &error), "sifr_tokenize_options.paths");
    REFUSES(sifr_import_config(context, &from, &text, NULL, &error),
            "sifr_import_config_options.allow");
    stop.stop = of.paths = into.paths = from.allow = hole;
    stop.stop_count = of.path_count = into.path_count = from.allow_count = 2;
    REFUSES(sifr_generator_open(context, &stop, &generator, &error),
            "sifr_generator_options.stop[1]");
    REFUSES(sifr_evaluate(context, &of, &evaluated, &error), "sifr_evaluate_options.paths[1]");
    REFUSES(sifr_tokenize(context, &into, NULL, &error), "sifr_tokenize_options.paths[1]");
    REFUSES(sifr_import_config(context, &from, &text, NULL, &error),
            "sifr_import_config_options.allow[1]");
    assert_true(!generator && !text);
}

/* Sizes that no struct has: not set, in the middle of a pointer, far beyond all. Options are
 * refused by name; a call without a status fills nothing. */
static void sizes(void **state) {
    (void)state;
    static const size_t wrong[] = {0, 1, 4, 7, 9, 12, 65537, (size_t)1 << 40, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sifr_generator *generator = NULL;
        sifr_generator_options options = {.size = wrong[i], .model = "x"};
        sifr_config_flag flag = {.size = wrong[i], .path = "kept"};
        sifr_error error = {0};
        assert_int_equal(sifr_generator_open(context, &options, &generator, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "is no size; give sizeof(sifr_generator_options)"));
        assert_false(sifr_config_flag_at(0, &flag));
        assert_string_equal(flag.path, "kept");
    }
    struct {
        sifr_config_flag flag;
        void *newer; /* of a header that is newer than the library */
    } more = {.flag.size = sizeof more, .newer = context};
    assert_true(sifr_config_flag_at(0, &more.flag));
    assert_non_null(more.flag.path);
    assert_null(more.newer);
}

static void angles(void **state) {
    (void)state;
    sifr_model *model;
    sifr_error error = {0};
    assert_int_equal(sifr_model_create(&model, &error), SIFR_OK);
    sifr_unit(model, "a");
    sifr_weight w = sifr_weight_matrix(model, "w", 8, 8, SIFR_INIT_NORMAL, 0.02);
    sifr_value x =
        sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model), .table = w});
    sifr_head_loss(model,
                   (sifr_head_args){.x = sifr_rope(model, (sifr_rope_args){.x = x, .head_dim = 8}),
                                    .weight = w});
    assert_int_equal(sifr_model_finish(model, &error), SIFR_USAGE);
    assert_string_equal(error.message, "unit a: rope: frequencies: NULL; give one for each pair");
    sifr_model_free(model);
}

static void getters(void **state) {
    (void)state;
    size_t size = 7;
    sifr_plan_class plan_class = {.size = sizeof plan_class};
    sifr_plan_get(NULL, NULL);
    sifr_loop_get(NULL, NULL);
    sifr_data_get(NULL, NULL);
    sifr_chat_rows_get(NULL, NULL);
    sifr_generator_clear(NULL);
    assert_false(sifr_plan_class_at(NULL, 0, &plan_class));
    assert_false(sifr_chat_rows_at(NULL, 0, NULL));
    assert_false(sifr_config_flag_at(0, NULL));
    assert_null(sifr_loop_engine(NULL));
    assert_true(sifr_ranks_rank(NULL) == 0 && sifr_ranks_size(NULL) == 1);
    assert_true(sifr_ranks_host_rank(NULL) == 0 && sifr_ranks_host_size(NULL) == 1);
    assert_true(sifr_tokenizer_vocab_size(NULL) == 0 && sifr_tokenizer_id(NULL, "a") == -1);
    assert_true(sifr_tokenizer_bos(NULL) == -1 && sifr_tokenizer_eos(NULL) == -1);
    assert_false(sifr_tokenizer_is_special(NULL, 0));
    assert_null(sifr_tokenizer_bytes(NULL, 0, &size, NULL));
    assert_null(sifr_chat_last(NULL, &size));
    assert_true(!sifr_classifier_tags(NULL) && sifr_classifier_count(NULL) == 0);
    assert_null(sifr_classifier_label(NULL, 0));
    assert_true(sifr_engine_steps(NULL) == 0 && sifr_engine_updates(NULL) == 0);
    assert_true(sifr_engine_planned_bytes(NULL) == 0 && sifr_engine_loss_scale(NULL) == 0);
    assert_true(sifr_model_parameters(NULL) == 0 && sifr_model_trained(NULL) == 0);
}

/* An empty path is shown in the message. */
static void empty_paths(void **state) {
    (void)state;
    sifr_tokenizer *tokenizer;
    sifr_error error = {0};
    assert_int_not_equal(sifr_tokenizer_open(context, "", &tokenizer, &error), SIFR_OK);
    assert_memory_equal(error.message, "\"\": ", 4);
    assert_int_not_equal(sifr_config_load(config, "", &error), SIFR_OK);
    assert_memory_equal(error.message, "\"\": ", 4);
}

static void late(void *user, bool last, const char *line) {
    (void)user, (void)last, (void)line;
}

static void start_limits(void **state) {
    (void)state;
    static const double wrong[] = {-1, NAN, INFINITY};
    sifr_ranks *ranks;
    sifr_error error = {0};
    sifr_ranks_options options = {.size = sizeof options, .alone = true, .late = late};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.start_limit = wrong[i];
        assert_int_equal(sifr_ranks_open(context, &options, &ranks, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "sifr_ranks_options.start_limit: "));
    }
    options.start_limit = 5;
    assert_int_equal(sifr_ranks_open(context, &options, &ranks, &error), SIFR_OK);
    sifr_ranks_close(ranks);
    options.late = NULL;
    assert_int_equal(sifr_ranks_open(context, &options, &ranks, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "5, without `late`"));
}

/* As after a mistake: all further calls do nothing. */
static void builder(void **state) {
    (void)state;
    sifr_model *none = NULL;
    sifr_unit(none, "a");
    sifr_pack(none);
    sifr_weight w = sifr_weight_matrix(none, "w", 8, 8, SIFR_INIT_NORMAL, 0.02);
    sifr_value x = sifr_embedding(none, (sifr_embedding_args){.table = w});
    x = sifr_linear(none, x, w, SIFR_NO_WEIGHT);
    x = sifr_rms_norm(none, (sifr_norm_args){.x = x, .scale = w});
    x = sifr_layer_norm(none, (sifr_norm_args){.x = x});
    x = sifr_rope(none, (sifr_rope_args){.x = x});
    x = sifr_attention(none, (sifr_attention_args){.q = x});
    x = sifr_add(none, sifr_gelu(none, x, false), sifr_slice(none, x, 0, 1));
    x = sifr_scale(none, (sifr_scale_args){.x = sifr_dropout(none, x, 0.5)});
    x = sifr_scale_by(none, x, w);
    x = sifr_xielu(none, (sifr_xielu_args){.x = x, .positive = w, .negative = w});
    x = sifr_join(none, &x, 1);
    sifr_head_loss(none, (sifr_head_args){.x = x});
    sifr_prefer(none, SIFR_PREFERENCE_SIGMOID, 0.1);
    assert_true(w.id == 0 && x.id == 0 && sifr_labels(none).id == 0);
    REFUSES(sifr_model_finish(none, &error), "sifr_model_finish: model");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs),     cmocka_unit_test(runs),         cmocka_unit_test(texts),
        cmocka_unit_test(folders),     cmocka_unit_test(arrays),       cmocka_unit_test(sizes),
        cmocka_unit_test(angles),      cmocka_unit_test(getters),      cmocka_unit_test(builder),
        cmocka_unit_test(empty_paths), cmocka_unit_test(start_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
