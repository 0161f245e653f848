/* DistilBERT (Sanh et al. 2019) as transformers' DistilBertForMaskedLM has it: BERT with half of
 * the layers, other names, and no token types. */
#include "model/architectures/encoder.h"

static sifr_status read_distilbert(const model_reader *r, model_config *out) {
    const struct {
        const char *key, *alias;
        int64_t fallback, most, *at;
    } sizes[] = {
        {"vocab_size", NULL, 30522, MODEL_LIMIT_ID, &out->vocab_size},
        {"dim", "hidden_size", 768, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"n_layers", "num_hidden_layers", 6, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"n_heads", "num_attention_heads", 12, MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"hidden_dim", NULL, 3072, MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", NULL, 512, MODEL_LIMIT_ID, &out->max_position_embeddings},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        BASE_TRY(model_read_int(r, sizes[i].key, sizes[i].alias, sizes[i].fallback, 1,
                                sizes[i].most, sizes[i].at));
    }
    out->pad_token_id = 0;
    out->norm = MODEL_LAYER_NORM, out->norm_eps = 1e-12;
    /* Attention's output has no dropout. */
    BASE_TRY(model_read_double(r, "dropout", 0.1, 0, 1, true, &out->residual_dropout));
    out->embedding_dropout = out->residual_dropout;
    BASE_TRY(model_read_double(r, "attention_dropout", 0.1, 0, 1, true, &out->attention_dropout));
    double *label = &out->classifier_dropout;
    BASE_TRY(model_read_double(r, "seq_classif_dropout", 0.2, 0, 1, true, label));
    if (out->task == MODEL_TOKEN_CLASSES) *label = out->residual_dropout;
    BASE_TRY(encoder_read_activation(r, "activation", &out->activation));
    out->head_activation = out->activation;
    out->attention_bias = out->output_bias = out->mlp_bias = true;
    out->head_bias = out->decoder_bias = true;
    out->rope.factor = 1;
    return encoder_check(r, out);
}

static sifr_value pool(const encoder *e, sifr_value x) {
    int64_t width = e->config->hidden_size;
    x = encoder_linear(e, x, "pre_classifier", true, width, width);
    return sifr_relu(e->model, x, false);
}

static void build(sifr_model *model, const model_config *config) {
    static const encoder_names names = {
        .words = "distilbert.embeddings.word_embeddings",
        .positions = "distilbert.embeddings.position_embeddings",
        .embedding_norm = "distilbert.embeddings.LayerNorm",
        .layers = "distilbert.transformer.layer",
        .query = "attention.q_lin",
        .key = "attention.k_lin",
        .value = "attention.v_lin",
        .output = "attention.out_lin",
        .attention_norm = "sa_layer_norm",
        .inner = "ffn.lin1",
        .outer = "ffn.lin2",
        .output_norm = "output_layer_norm",
        .transform = "vocab_transform",
        .transform_norm = "vocab_layer_norm",
        .decoder = "vocab_projector",
        .bias = "vocab_projector.bias",
        .pool = pool,
    };
    encoder_build(model, config, &names);
}

const model_architecture model_architecture_distilbert = {
    .model_type = "distilbert",
    .classes = ENCODER_CLASSES("DistilBert"),
    .encoder = true,
    .keys = (const char *const[]){"is_causal", NULL},
    .read = read_distilbert,
    .build = build,
    .prefix = "distilbert.",
    .ignored = {".position_ids"},
    .head = "vocab_projector.weight",
    .embedding = "distilbert.embeddings.word_embeddings.weight",
    .learned_positions = true,
};
