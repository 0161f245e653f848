/* RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2020) as transformers'
 * RobertaForMaskedLM and XLMRobertaForMaskedLM have them: BERT with other heads, whose positions
 * begin behind pad_token_id. */
#include "model/architectures/encoder.h"

static sifr_status read_sizes(const model_reader *r, model_config *out) {
    out->pad_token_id = 1, out->bos_token_id = 0, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(encoder_read(r, out));
    /* The head has gelu, whatever hidden_act says. */
    out->head_activation = MODEL_GELU_ERF;
    int64_t rows = out->max_position_embeddings, first = out->pad_token_id + 1;
    if (first < 1 || first >= rows) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"pad_token_id\" is %lld, but positions begin behind it in a table "
                         "of \"max_position_embeddings\" %lld rows",
                         r->name, (long long)out->pad_token_id, (long long)rows);
    }
    out->first_position = first;
    return SIFR_OK;
}

static sifr_status read_roberta(const model_reader *r, model_config *out) {
    out->vocab_size = 50265;
    return read_sizes(r, out);
}

/* Dropout comes before both products, and tanh between them. */
static sifr_value pool(const encoder *e, sifr_value x) {
    int64_t width = e->config->hidden_size;
    x = sifr_dropout(e->model, x, e->config->classifier_dropout);
    x = encoder_linear(e, x, "classifier.dense", true, width, width);
    return sifr_tanh(e->model, x);
}

static void build(sifr_model *model, const model_config *config) {
    static const encoder_names names = {
        .words = "roberta.embeddings.word_embeddings",
        .positions = "roberta.embeddings.position_embeddings",
        .types = "roberta.embeddings.token_type_embeddings",
        .embedding_norm = "roberta.embeddings.LayerNorm",
        .layers = "roberta.encoder.layer",
        ENCODER_BERT_LAYERS,
        .transform = "lm_head.dense",
        .transform_norm = "lm_head.layer_norm",
        .decoder = "lm_head.decoder",
        .bias = "lm_head.bias",
        .pool = pool,
        .classifier = "classifier.out_proj",
    };
    encoder_build(model, config, &names);
}

/* The rows of both differ in names and defaults. */
#define ROBERTA_ROW(type, family, reader)                                                          \
    {                                                                                              \
        .model_type = type, .classes = ENCODER_CLASSES(family), .encoder = true,                   \
        .keys = (const char *const[]){"is_causal", NULL}, .read = reader, .build = build,          \
        .prefix = "roberta.", ENCODER_BERT_FILES, .head = "lm_head.decoder.weight",                \
        .embedding = "roberta.embeddings.word_embeddings.weight", .learned_positions = true        \
    }

const model_architecture model_architecture_roberta =
    ROBERTA_ROW("roberta", "Roberta", read_roberta);
const model_architecture model_architecture_xlm_roberta =
    ROBERTA_ROW("xlm-roberta", "XLMRoberta", read_sizes);
