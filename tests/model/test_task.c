/* What a config.json and a caller say about a model's task, and the heads that follow from it. */
#include "support/scratch.h"

#include "model/description.h"
#include "model/model_config.h"
#include "model/registry.h"

static model_config config;
static sifr_error error;

static sifr_status parse_as(const char *type, const char *members, const model_choice *choice) {
    char text[4096];
    error = (sifr_error){0};
    snprintf(
        text, sizeof text,
        "{\"model_type\": \"%s\", \"vocab_size\": 32, \"hidden_size\": 16, "
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 2%s%s}",
        type, *members ? ", " : "", members);
    return model_config_parse_as(text, strlen(text), "config.json", choice, &config, &error);
}

static void parse(const char *type, const char *members) {
    if (parse_as(type, members, NULL) != SIFR_OK) fail_msg("%s", error.message);
}

static void by_class(void **state) {
    (void)state;
    parse("llama", "\"id2label\": \"of no interest\", \"problem_type\": 7");
    assert_int_equal(config.task, MODEL_NEXT_TOKEN);
    assert_int_equal(config.num_labels, 0);
    parse("llama", "\"architectures\": [\"LlamaForSequenceClassification\"]");
    assert_int_equal(config.task, MODEL_SEQUENCE_CLASSES);
    assert_int_equal(config.num_labels, 2);
    assert_int_equal(config.problem, MODEL_SINGLE_LABEL);
    parse("llama", "\"architectures\": [\"LlamaForSequenceClassification\"], \"num_labels\": 1");
    assert_int_equal(config.problem, MODEL_REGRESSION);
    parse("gpt2", "\"architectures\": [\"GPT2ForSequenceClassification\"], "
                  "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}, "
                  "\"problem_type\": \"multi_label_classification\"");
    assert_int_equal(config.num_labels, 3);
    assert_int_equal(config.problem, MODEL_MULTI_LABEL);
    parse("qwen3", "\"architectures\": [\"Qwen3ForTokenClassification\"]");
    assert_int_equal(config.task, MODEL_TOKEN_CLASSES);
}

static void by_choice(void **state) {
    (void)state;
    model_choice choice = {.has_task = true, .task = MODEL_SEQUENCE_CLASSES, .num_labels = 5};
    assert_int_equal(parse_as("llama", "\"id2label\": 3", &choice), SIFR_OK);
    assert_int_equal(config.task, MODEL_SEQUENCE_CLASSES);
    assert_int_equal(config.own_task, MODEL_NEXT_TOKEN);
    assert_int_equal(config.num_labels, 5);
    assert_int_equal(config.own_labels, 0);
    choice.num_labels = 0;
    assert_int_equal(parse_as("llama", "", &choice), SIFR_OK);
    assert_int_equal(config.num_labels, 2);
    choice.num_labels = 1;
    const char *own = "\"architectures\": [\"LlamaForSequenceClassification\"], \"num_labels\": 3, "
                      "\"problem_type\": \"single_label_classification\"";
    assert_int_equal(parse_as("llama", own, &choice), SIFR_OK);
    assert_int_equal(config.problem, MODEL_REGRESSION);
    assert_int_equal(config.own_labels, 3);
    choice.num_labels = 3, choice.has_problem = true, choice.problem = MODEL_MULTI_LABEL;
    assert_int_equal(parse_as("llama", own, &choice), SIFR_OK);
    assert_int_equal(config.problem, MODEL_MULTI_LABEL);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *type, *members;
        model_choice choice;
        const char *part;
    } cases[] = {
        {"llama",
         "\"architectures\": [\"LlamaForQuestionAnswering\"]",
         {0},
         "supported: LlamaForCausalLM"},
        {"granite",
         "",
         {.has_task = true, .task = MODEL_SEQUENCE_CLASSES},
         "\"granite\" has no class for sequence_classification"},
        {"olmo2",
         "",
         {.has_task = true, .task = MODEL_TOKEN_CLASSES},
         "\"olmo2\" has no class for token_classification"},
        {"llama", "", {.has_task = true, .task = MODEL_MASKED_TOKEN}, "no class for masked_lm"},
        {"llama", "", {.num_labels = 3}, "causal_lm has neither labels"},
        {"llama", "", {.has_problem = true}, "causal_lm has neither labels"},
        {"llama",
         "",
         {.has_task = true, .task = MODEL_TOKEN_CLASSES, .num_labels = 1 << 30},
         "labels, there must be 1"},
        {"llama",
         "",
         {.has_task = true, .task = MODEL_SEQUENCE_CLASSES, .num_labels = 1, .has_problem = true},
         "needs at least two labels"},
        {"llama",
         "\"architectures\": [\"LlamaForSequenceClassification\"], \"num_labels\": 1, "
         "\"problem_type\": \"single_label_classification\"",
         {0},
         "needs at least two labels"},
        {"llama",
         "\"architectures\": [\"LlamaForSequenceClassification\"], \"problem_type\": \"ranking\"",
         {0},
         "\"problem_type\" is \"ranking\", must be single_label_classification"},
        {"llama",
         "\"architectures\": [\"LlamaForSequenceClassification\"], \"problem_type\": 3",
         {0},
         "\"problem_type\" must be"},
        {"llama",
         "\"architectures\": [\"LlamaForTokenClassification\"], \"id2label\": {\"1\": \"a\"}",
         {0},
         "\"id2label\" has the key \"1\""},
        {"gpt2",
         "\"architectures\": [\"GPT2ForTokenClassification\"], \"classifier_dropout\": 2",
         {0},
         "\"classifier_dropout\" is 2"},
        {"qwen2",
         "\"architectures\": [\"Qwen2ForTokenClassification\"], "
         "\"token_classification_bias\": false",
         {0},
         "\"token_classification_bias\": false is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse_as(cases[i].type, cases[i].members, &cases[i].choice) != SIFR_USAGE)
            fail_msg("%s: %s is accepted", cases[i].type, cases[i].members);
        assert_message(&error, cases[i].part);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
    }
}

/* The names, the shapes and the dropout of the head behind the final norm. */
static void heads(void **state) {
    (void)state;
    static const struct {
        const char *type, *members, *weight, *bias;
        double dropout;
    } cases[] = {
        {"llama", "\"architectures\": [\"LlamaForSequenceClassification\"]", "score.weight", NULL,
         0},
        {"llama", "\"architectures\": [\"LlamaForTokenClassification\"]", "score.weight",
         "score.bias", 0.1},
        {"gpt2", "\"architectures\": [\"GPT2ForSequenceClassification\"]", "score.weight", NULL, 0},
        {"gpt2",
         "\"architectures\": [\"GPT2ForTokenClassification\"], \"classifier_dropout\": null, "
         "\"hidden_dropout\": 0.25",
         "classifier.weight", "classifier.bias", 0.25},
        {"gpt_neox",
         "\"architectures\": [\"GPTNeoXForTokenClassification\"], \"hidden_dropout\": 0.5",
         "classifier.weight", "classifier.bias", 0.1},
        {"qwen2",
         "\"architectures\": [\"Qwen2ForTokenClassification\"], \"classifier_dropout\": 0.5",
         "score.weight", "score.bias", 0.5},
        {"gemma2", "\"architectures\": [\"Gemma2ForSequenceClassification\"]", "score.weight", NULL,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sifr_model *model;
        parse(cases[i].type, cases[i].members);
        assert_true(config.classifier_dropout == cases[i].dropout);
        if (model_from_config(&config, &model, &error) != SIFR_OK) fail_msg("%s", error.message);
        const model_node *head = &model->nodes[model->node_count - 1];
        const model_weight *weight = &model->weights[head->w[0]];
        assert_string_equal(weight->name, cases[i].weight);
        assert_int_equal(weight->rows, 2);
        assert_int_equal(weight->columns, 16);
        assert_true(weight->deviation == config.initializer_range);
        assert_int_equal(head->w[1] >= 0, cases[i].bias != NULL);
        if (cases[i].bias) assert_string_equal(model->weights[head->w[1]].name, cases[i].bias);
        assert_true(head->attributes.head.softcap == 0);
        const model_node *before = &model->nodes[model->node_count - 2];
        assert_int_equal(!strcmp(before->op->name, "dropout"), cases[i].dropout > 0);
        for (size_t w = 0; w < model->weight_count; w++)
            assert_null(strstr(model->weights[w].name, "lm_head"));
        sifr_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_class), cmocka_unit_test(by_choice),
                                       cmocka_unit_test(refused), cmocka_unit_test(heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
