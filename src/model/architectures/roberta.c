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
        .query = "attention.self.query",
        .key = "attention.self.key",
        .value = "attention.self.value",
        .output = "attention.output.dense",
        .attention_norm = "attention.output.LayerNorm",
        .inner = "intermediate.dense",
        .outer = "output.dense",
        .output_norm = "output.LayerNorm",
        .transform = "lm_head.dense",
        .transform_norm = "lm_head.layer_norm",
        .decoder = "lm_head.decoder",
        .bias = "lm_head.bias",
        .pool = pool,
        .classifier = "classifier.out_proj",
    };
    encoder_build(model, config, &names);
}

const model_architecture model_architecture_roberta = {
    .model_type = "roberta",
    .classes = (const model_class[]){{"RobertaForMaskedLM", MODEL_MASKED_TOKEN},
                                     {"RobertaModel", MODEL_MASKED_TOKEN},
                                     {"RobertaForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"RobertaForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .encoder = true,
    .keys = (const char *const[]){"is_causal", NULL},
    .read = read_roberta,
    .build = build,
    .prefix = "roberta.",
    .older = {{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}},
    .ignored = {".position_ids", ".token_type_ids", ".decoder.bias"},
    .head = "lm_head.decoder.weight",
    .embedding = "roberta.embeddings.word_embeddings.weight",
    .learned_positions = true,
};

const model_architecture model_architecture_xlm_roberta = {
    .model_type = "xlm-roberta",
    .classes =
        (const model_class[]){{"XLMRobertaForMaskedLM", MODEL_MASKED_TOKEN},
                              {"XLMRobertaModel", MODEL_MASKED_TOKEN},
                              {"XLMRobertaForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                              {"XLMRobertaForTokenClassification", MODEL_TOKEN_CLASSES},
                              {0}},
    .encoder = true,
    .keys = (const char *const[]){"is_causal", NULL},
    .read = read_sizes,
    .build = build,
    .prefix = "roberta.",
    .older = {{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}},
    .ignored = {".position_ids", ".token_type_ids", ".decoder.bias"},
    .head = "lm_head.decoder.weight",
    .embedding = "roberta.embeddings.word_embeddings.weight",
    .learned_positions = true,
};
