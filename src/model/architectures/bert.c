/* BERT (Devlin et al. 2019) as transformers' BertForMaskedLM has it. */
#include "model/architectures/encoder.h"

static sifr_status read_bert(const model_reader *r, model_config *out) {
    out->pad_token_id = 0;
    return encoder_read(r, out);
}

static sifr_value pool(const encoder *e, sifr_value x) {
    int64_t width = e->config->hidden_size;
    return sifr_tanh(e->model, encoder_linear(e, x, "bert.pooler.dense", true, width, width));
}

static void build(sifr_model *model, const model_config *config) {
    static const encoder_names names = {
        .words = "bert.embeddings.word_embeddings",
        .positions = "bert.embeddings.position_embeddings",
        .types = "bert.embeddings.token_type_embeddings",
        .embedding_norm = "bert.embeddings.LayerNorm",
        .layers = "bert.encoder.layer",
        ENCODER_BERT_LAYERS,
        .transform = "cls.predictions.transform.dense",
        .transform_norm = "cls.predictions.transform.LayerNorm",
        .decoder = "cls.predictions.decoder",
        .bias = "cls.predictions.bias",
        .pool = pool,
    };
    encoder_build(model, config, &names);
}

const model_architecture model_architecture_bert = {
    .model_type = "bert",
    .classes = (const model_class[]){{"BertForMaskedLM", MODEL_MASKED_TOKEN},
                                     {"BertForPreTraining", MODEL_MASKED_TOKEN},
                                     {"BertModel", MODEL_MASKED_TOKEN},
                                     {"BertForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"BertForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .encoder = true,
    .keys = (const char *const[]){"is_causal", NULL},
    .read = read_bert,
    .build = build,
    .prefix = "bert.",
    ENCODER_BERT_FILES,
    .head = "cls.predictions.decoder.weight",
    .embedding = "bert.embeddings.word_embeddings.weight",
    .learned_positions = true,
};
