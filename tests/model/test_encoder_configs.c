/* config.json of the encoder families: defaults of transformers' classes, published files, refusals
 * by name, and where each dropout stands. */
#include "support/model_config_text.h"

#include "model/description.h"

static void defaults(void **state) {
    (void)state;
    expect_defaults("encoders/defaults.json", 6);
}

/* The config.json of published folders; `members` are those that their classes have by default in
 * another value, or that transformers no longer knows. Parameters as the model's page counts them.
 */
static const struct {
    const char *name, *text;
    int64_t positions, parameters;
} published[] = {
    {"bert-base-uncased",
     "{\"architectures\": [\"BertForMaskedLM\"], \"attention_probs_dropout_prob\": 0.1, "
     "\"gradient_checkpointing\": false, \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, "
     "\"hidden_size\": 768, \"initializer_range\": 0.02, \"intermediate_size\": 3072, "
     "\"layer_norm_eps\": 1e-12, \"max_position_embeddings\": 512, \"model_type\": \"bert\", "
     "\"num_attention_heads\": 12, \"num_hidden_layers\": 12, \"pad_token_id\": 0, "
     "\"position_embedding_type\": \"absolute\", \"transformers_version\": \"4.6.0.dev0\", "
     "\"type_vocab_size\": 2, \"use_cache\": true, \"vocab_size\": 30522}",
     512, 109514298},
    {"distilbert-base-uncased",
     "{\"activation\": \"gelu\", \"architectures\": [\"DistilBertForMaskedLM\"], "
     "\"attention_dropout\": 0.1, \"dim\": 768, \"dropout\": 0.1, \"hidden_dim\": 3072, "
     "\"initializer_range\": 0.02, \"max_position_embeddings\": 512, \"model_type\": "
     "\"distilbert\", \"n_heads\": 12, \"n_layers\": 6, \"pad_token_id\": 0, \"qa_dropout\": 0.1, "
     "\"seq_classif_dropout\": 0.2, \"sinusoidal_pos_embds\": false, \"tie_weights_\": true, "
     "\"transformers_version\": \"4.10.0.dev0\", \"vocab_size\": 30522}",
     512, 66985530},
    {"roberta-base",
     "{\"architectures\": [\"RobertaForMaskedLM\"], \"attention_probs_dropout_prob\": 0.1, "
     "\"bos_token_id\": 0, \"eos_token_id\": 2, \"hidden_act\": \"gelu\", "
     "\"hidden_dropout_prob\": 0.1, \"hidden_size\": 768, \"initializer_range\": 0.02, "
     "\"intermediate_size\": 3072, \"layer_norm_eps\": 1e-05, \"max_position_embeddings\": 514, "
     "\"model_type\": \"roberta\", \"num_attention_heads\": 12, \"num_hidden_layers\": 12, "
     "\"pad_token_id\": 1, \"type_vocab_size\": 1, \"vocab_size\": 50265}",
     512, 124697433},
    {"xlm-roberta-base",
     "{\"architectures\": [\"XLMRobertaForMaskedLM\"], \"attention_probs_dropout_prob\": 0.1, "
     "\"bos_token_id\": 0, \"eos_token_id\": 2, \"hidden_act\": \"gelu\", "
     "\"hidden_dropout_prob\": 0.1, \"hidden_size\": 768, \"initializer_range\": 0.02, "
     "\"intermediate_size\": 3072, \"layer_norm_eps\": 1e-05, \"max_position_embeddings\": 514, "
     "\"model_type\": \"xlm-roberta\", \"num_attention_heads\": 12, \"num_hidden_layers\": 12, "
     "\"output_past\": true, \"pad_token_id\": 1, \"position_embedding_type\": \"absolute\", "
     "\"transformers_version\": \"4.17.0.dev0\", \"type_vocab_size\": 1, \"use_cache\": true, "
     "\"vocab_size\": 250002}",
     512, 278295186},
    {"ModernBERT-base",
     "{\"architectures\": [\"ModernBertForMaskedLM\"], \"attention_bias\": false, "
     "\"attention_dropout\": 0.0, \"bos_token_id\": 50281, \"classifier_activation\": \"gelu\", "
     "\"classifier_bias\": false, \"classifier_dropout\": 0.0, \"classifier_pooling\": \"mean\", "
     "\"cls_token_id\": 50281, \"decoder_bias\": true, \"deterministic_flash_attn\": false, "
     "\"embedding_dropout\": 0.0, \"eos_token_id\": 50282, \"global_attn_every_n_layers\": 3, "
     "\"global_rope_theta\": 160000.0, \"gradient_checkpointing\": false, \"hidden_activation\": "
     "\"gelu\", \"hidden_size\": 768, \"initializer_cutoff_factor\": 2.0, \"initializer_range\": "
     "0.02, \"intermediate_size\": 1152, \"layer_norm_eps\": 1e-05, \"local_attention\": 128, "
     "\"local_rope_theta\": 10000.0, \"max_position_embeddings\": 8192, \"mlp_bias\": false, "
     "\"mlp_dropout\": 0.0, \"model_type\": \"modernbert\", \"norm_bias\": false, \"norm_eps\": "
     "1e-05, \"num_attention_heads\": 12, \"num_hidden_layers\": 22, \"pad_token_id\": 50283, "
     "\"position_embedding_type\": \"absolute\", \"sep_token_id\": 50282, "
     "\"tie_word_embeddings\": true, \"torch_dtype\": \"float32\", \"transformers_version\": "
     "\"4.47.0.dev0\", \"vocab_size\": 50368}",
     8192, 149655232},
};

static void published_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        sifr_model *model = NULL;
        if (parse(published[i].text) != SIFR_OK || model_from_config(&config, &model, &error))
            fail_msg("%s: %s", published[i].name, error.message);
        int64_t count = sifr_model_parameters(model);
        if (count != published[i].parameters)
            fail_msg("%s: %lld parameters", published[i].name, (long long)count);
        assert_int_equal(model_positions(&config), published[i].positions);
        sifr_model_free(model);
    }
}

static const struct {
    const char *type, *members, *part;
} refusals[] = {
    {"bert", "\"is_decoder\": true", "\"is_decoder\": true"},
    {"bert", "\"is_causal\": true", "\"is_causal\": true"},
    {"bert", "\"add_cross_attention\": true", "\"add_cross_attention\": true"},
    {"bert", "\"position_embedding_type\": \"relative_key_query\"", "positions are \"absolute\""},
    {"bert", "\"position_embedding_type\": 3", "position_embedding_type"},
    {"bert", "\"hidden_size\": 770", "no multiple of the 12 attention heads"},
    {"bert", "\"hidden_act\": \"mish\"", "\"mish\" is not supported yet (supported: gelu_new"},
    {"bert", "\"hidden_act\": \"gelu_10\"", "gelu_10"},
    {"bert", "\"type_vocab_size\": 0", "\"type_vocab_size\" is 0"},
    {"bert", "\"hidden_dropout_prob\": 1.0", "hidden_dropout_prob"},
    {"bert", "\"pruned_heads\": {\"0\": [1]}", "pruned_heads"},
    {"bert", "\"architectures\": [\"BertLMHeadModel\"]", "BertLMHeadModel"},
    {"bert", "\"num_hidden_layers\": \"12\"", "num_hidden_layers"},
    {"bert", "\"classifier_dropout\": -0.1", "classifier_dropout"},
    {"roberta", "\"pad_token_id\": null", "\"pad_token_id\" is -1, but positions begin behind it"},
    {"roberta", "\"pad_token_id\": 511", "\"pad_token_id\" is 511"},
    {"xlm-roberta", "\"max_position_embeddings\": 2", "of \"max_position_embeddings\" 2 rows"},
    {"xlm-roberta", "\"architectures\": [\"XLMRobertaForCausalLM\"]", "XLMRobertaForCausalLM"},
    {"modernbert",
     "\"architectures\": [\"ModernBertForSequenceClassification\"], \"classifier_pooling\": "
     "\"max\"",
     "\"classifier_pooling\": \"max\""},
    {"distilbert", "\"dim\": 768, \"hidden_size\": 512", "the same thing"},
    {"distilbert", "\"activation\": 3", "activation"},
    {"distilbert", "\"n_heads\": 7", "no multiple of the 7 attention heads"},
    {"modernbert", "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0}",
     "give \"rope_parameters\""},
    {"modernbert", "\"layer_types\": [\"full_attention\"]", "a list of 22 names"},
    {"modernbert", "\"global_attn_every_n_layers\": 0", "global_attn_every_n_layers"},
    {"modernbert", "\"local_attention\": -2", "local_attention"},
    {"modernbert", "\"norm_bias\": 1", "norm_bias"},
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (parse_with(refusals[i].type, refusals[i].members) != SIFR_USAGE)
            fail_msg("%s: %s is accepted", refusals[i].type, refusals[i].members);
        assert_message(&error, refusals[i].part);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
    }
}

/* A window of local_attention 128 is 64 tokens to each side and the query itself. */
static void windows(void **state) {
    (void)state;
    assert_int_equal(parse_with("modernbert", "\"num_hidden_layers\": 4"), SIFR_OK);
    assert_int_equal(config.sliding_window, 65);
    for (int i = 0; i < 4; i++) {
        bool local = i % 3 != 0;
        assert_int_equal(config.layers[i], local ? MODEL_LAYER_WINDOW | MODEL_LAYER_LOCAL_ROPE : 0);
    }
    assert_true(config.rope.theta == 160000);
    assert_true(config.local_rope.theta == 10000);
    static const char *const same[] = {"\"local_attention\": 9", "\"local_attention\": 8",
                                       "\"sliding_window\": 4"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(parse_with("modernbert", same[i]), SIFR_OK);
        assert_int_equal(config.sliding_window, 5);
    }
}

/* The probabilities of all dropouts in the order of the ops; attention's as a negative number. */
static void expect_dropouts(const char *type, const char *members, const char *expected) {
    char text[256] = "";
    size_t used = 0;
    sifr_model *model = NULL;
    if (parse_with(type, members) || model_from_config(&config, &model, &error))
        fail_msg("%s: %s", type, error.message);
    for (size_t i = 0; i < model->node_count; i++) {
        const model_node *node = &model->nodes[i];
        float p = 0;
        if (node->op == &model_op_dropout) p = node->attributes.dropout.probability;
        if (node->op == &model_op_attention) p = -node->attributes.attention.dropout;
        if (p != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.3g", used ? " " : "",
                                     (double)p);
    }
    assert_string_equal(text, expected);
    sifr_model_free(model);
}

#define SEQUENCE "ForSequenceClassification\"]"
#define TOKENS "ForTokenClassification\"]"
#define BERT                                                                                       \
    "\"num_hidden_layers\": 1, \"hidden_dropout_prob\": 0.25, \"attention_probs_dropout_prob\": "  \
    "0.5"
#define DISTILBERT "\"n_layers\": 1, \"dropout\": 0.25, \"attention_dropout\": 0.5"
#define MODERNBERT                                                                                 \
    "\"num_hidden_layers\": 1, \"embedding_dropout\": 0.125, \"attention_dropout\": 0.5, "         \
    "\"mlp_dropout\": 0.25, \"classifier_dropout\": 0.75"

static void dropouts(void **state) {
    (void)state;
    expect_dropouts("bert", BERT, "0.25 -0.5 0.25 0.25");
    expect_dropouts("bert", BERT ", \"architectures\": [\"Bert" SEQUENCE,
                    "0.25 -0.5 0.25 0.25 0.25");
    expect_dropouts("bert",
                    BERT ", \"classifier_dropout\": 0.75, \"architectures\": [\"Bert" TOKENS,
                    "0.25 -0.5 0.25 0.25 0.75");
    expect_dropouts("roberta",
                    BERT ", \"classifier_dropout\": 0.75, \"architectures\": [\"Roberta" SEQUENCE,
                    "0.25 -0.5 0.25 0.25 0.75 0.75");
    expect_dropouts("roberta",
                    BERT ", \"classifier_dropout\": null, \"architectures\": [\"Roberta" TOKENS,
                    "0.25 -0.5 0.25 0.25 0.25");
    expect_dropouts("distilbert", DISTILBERT, "0.25 -0.5 0.25");
    expect_dropouts("distilbert", DISTILBERT ", \"architectures\": [\"DistilBert" SEQUENCE,
                    "0.25 -0.5 0.25 0.2");
    expect_dropouts("distilbert", DISTILBERT ", \"architectures\": [\"DistilBert" TOKENS,
                    "0.25 -0.5 0.25 0.25");
    expect_dropouts("modernbert", MODERNBERT, "0.125 -0.5 0.5 0.25");
    expect_dropouts("modernbert", MODERNBERT ", \"architectures\": [\"ModernBert" SEQUENCE,
                    "0.125 -0.5 0.5 0.25 0.75");
    expect_dropouts("modernbert", MODERNBERT ", \"architectures\": [\"ModernBert" TOKENS,
                    "0.125 -0.5 0.5 0.25 0.75");
}

/* The ops of the MLP and the head, by the name of the activation. */
static void activations(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const model_op *op;
        float value; /* an attribute that tells variants apart */
    } cases[] = {
        {"gelu", &model_op_gelu, 1},   {"gelu_new", &model_op_gelu, 0},
        {"silu", &model_op_swish, 1},  {"quick_gelu", &model_op_swish, 1.702f},
        {"relu", &model_op_relu, 0},   {"relu2", &model_op_relu, 1},
        {"tanh", &model_op_tanh, 0},   {"gelu_pytorch_tanh", &model_op_gelu, 0},
        {"swish", &model_op_swish, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char members[128];
        int found = 0;
        sifr_model *model = NULL;
        snprintf(members, sizeof members, "\"num_hidden_layers\": 1, \"hidden_act\": \"%s\"",
                 cases[i].name);
        if (parse_with("bert", members) || model_from_config(&config, &model, &error))
            fail_msg("%s", error.message);
        for (size_t n = 0; n < model->node_count; n++) {
            const model_node *node = &model->nodes[n];
            if (node->op != cases[i].op) continue;
            float value = 0;
            if (node->op == &model_op_gelu) value = node->attributes.gelu.exact;
            if (node->op == &model_op_swish) value = node->attributes.swish.slope;
            if (node->op == &model_op_relu) value = node->attributes.relu.squared;
            found += value == cases[i].value;
        }
        if (found != 2) fail_msg("%s: %d ops of its kind", cases[i].name, found);
        sifr_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(published_files),
        cmocka_unit_test(refused),  cmocka_unit_test(windows),
        cmocka_unit_test(dropouts), cmocka_unit_test(activations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
