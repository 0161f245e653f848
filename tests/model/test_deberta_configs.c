/* config.json of DeBERTa: published files, what relative positions are read as, and refusals by
 * name. */
#include "support/scratch.h"

#include <math.h>

#include "model/description.h"
#include "model/model_config.h"
#include "model/registry.h"

static model_config config;
static sifr_error error;

/* `members` beside the model_type, as a model for a task. */
static sifr_status parse(const char *members, model_task task) {
    char text[2048];
    model_choice choice = {.has_task = true, .task = task};
    if (model_task_labelled(task)) choice.num_labels = 3;
    error = (sifr_error){0};
    snprintf(text, sizeof text, "{\"model_type\": \"deberta-v2\"%s%s}", *members ? ", " : "",
             members);
    return model_config_parse_as(text, strlen(text), "config.json", &choice, &config, &error);
}

#define PUBLISHED                                                                                  \
    "\"attention_probs_dropout_prob\": 0.1, \"hidden_act\": \"gelu\", "                            \
    "\"hidden_dropout_prob\": 0.1, \"initializer_range\": 0.02, \"max_position_embeddings\": "     \
    "512, \"relative_attention\": true, \"position_buckets\": 256, \"norm_rel_ebd\": "             \
    "\"layer_norm\", \"share_att_key\": true, \"pos_att_type\": \"p2c|c2p\", \"layer_norm_eps\": " \
    "1e-7, \"max_relative_positions\": -1, \"position_biased_input\": false, "                     \
    "\"type_vocab_size\": 0, \"vocab_size\": 128100, "

/* Parameters as transformers 5.23 counts them, by task: masked words, a sequence's labels, those of
 * tokens. */
static const struct {
    const char *name, *text;
    int64_t parameters[3];
} published[] = {
    {"deberta-v3-large",
     PUBLISHED "\"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_attention_heads\": 16, "
               "\"num_hidden_layers\": 24",
     {435191908, 435064835, 434015235}},
    {"deberta-v3-small",
     PUBLISHED "\"hidden_size\": 768, \"intermediate_size\": 3072, \"num_attention_heads\": 12, "
               "\"num_hidden_layers\": 6",
     {142024548, 141897219, 141306627}},
    {"deberta-v2-xlarge",
     PUBLISHED "\"hidden_size\": 1536, \"intermediate_size\": 6144, \"num_attention_heads\": 24, "
               "\"num_hidden_layers\": 24, \"attention_head_size\": 64, \"conv_kernel_size\": 3, "
               "\"conv_act\": \"gelu\"",
     {887085156, 886958595, 884597763}},
};

static void published_files(void **state) {
    (void)state;
    static const model_task tasks[] = {MODEL_MASKED_TOKEN, MODEL_SEQUENCE_CLASSES,
                                       MODEL_TOKEN_CLASSES};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        for (int t = 0; t < 3; t++) {
            sifr_model *model = NULL;
            if (parse(published[i].text, tasks[t]) != SIFR_OK ||
                model_from_config(&config, &model, &error) != SIFR_OK)
                fail_msg("%s: %s", published[i].name, error.message);
            int64_t count = sifr_model_parameters(model);
            if (count != published[i].parameters[t])
                fail_msg("%s, task %d: %lld parameters", published[i].name, t, (long long)count);
            assert_int_equal(config.deberta.rows, 512);
            assert_int_equal(config.deberta.most_distance, 512);
            sifr_model_free(model);
        }
}

static void positions(void **state) {
    (void)state;
    const model_deberta *d = &config.deberta;
    assert_int_equal(parse("", MODEL_MASKED_TOKEN), SIFR_OK);
    assert_true(d->rows == 0);
    assert_true(!d->by_query);
    assert_true(!d->by_key);
    assert_true(d->position_table);
    assert_true(fabs(config.attention_scale - 1 / sqrt(64)) < 1e-12);
    /* the scale counts kinds that nothing reads */
    assert_int_equal(parse("\"pos_att_type\": [\"c2p\"]", MODEL_MASKED_TOKEN), SIFR_OK);
    assert_true(fabs(config.attention_scale - 1 / sqrt(2 * 64)) < 1e-12);
    assert_true(d->rows == 0);
    assert_true(!d->by_query);
    assert_int_equal(parse("\"relative_attention\": true, \"pos_att_type\": \" P2C |none\", "
                           "\"max_relative_positions\": 40",
                           MODEL_MASKED_TOKEN),
                     SIFR_OK);
    assert_true(d->rows == 80);
    assert_true(!d->by_query);
    assert_true(d->by_key);
    assert_true(!d->shared);
    assert_true(!d->normalised);
    assert_true(fabs(config.attention_scale - 1 / sqrt(2 * 64)) < 1e-12);
}

static const struct {
    const char *members, *part;
} refusals[] = {
    {"\"relative_attention\": true", "relative_attention"},
    {"\"pos_att_type\": \"p2p|c2p\"", "\"p2p\" is not supported yet (supported: c2p, p2c)"},
    {"\"pos_att_type\": 3", "pos_att_type"},
    {"\"pos_att_type\": [3]", "pos_att_type"},
    {"\"relative_attention\": true, \"pos_att_type\": \"c2p\", \"position_buckets\": 1",
     "position_buckets"},
    {"\"relative_attention\": true, \"pos_att_type\": \"c2p\", \"position_buckets\": 64, "
     "\"max_relative_positions\": 33",
     "the largest distance 32"},
    {"\"relative_attention\": true, \"pos_att_type\": \"c2p\", \"max_relative_positions\": 1e300",
     "max_relative_positions"},
    {"\"conv_kernel_size\": 4", "conv_kernel_size"},
    {"\"conv_kernel_size\": 33", "conv_kernel_size"},
    {"\"conv_kernel_size\": 3, \"conv_groups\": 2", "conv_groups"},
    {"\"attention_head_size\": 32", "attention_head_size"},
    {"\"pooler_hidden_size\": 32", "pooler_hidden_size"},
    {"\"legacy\": false, \"embedding_size\": 128", "embedding_size"},
    {"\"type_vocab_size\": -1", "type_vocab_size"},
    {"\"relative_attention\": true, \"pos_att_type\": \"c2p\", \"norm_rel_ebd\": 1",
     "norm_rel_ebd"},
    {"\"is_decoder\": true", "is_decoder"},
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (parse(refusals[i].members, MODEL_MASKED_TOKEN) != SIFR_USAGE)
            fail_msg("%s is accepted", refusals[i].members);
        assert_message(&error, refusals[i].part);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_files),
                                       cmocka_unit_test(positions), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
