/* BLOOM (BigScience 2022) as transformers' BloomForCausalLM has it: a norm of the embedding, a bias
 * of scores by distance (ALiBi) in place of positions, queries, keys and values of each head in one
 * product, layer norms and biases. */
#include "model/architectures/decoder.h"

/* Of training: no key of the class says, and the bias has no end. */
enum { POSITIONS = 2048 };

static sifr_status read_sizes(const model_reader *r, model_config *out) {
    const struct {
        const char *key, *alias;
        int64_t fallback, most, *at;
    } sizes[] = {
        {"vocab_size", NULL, 250880, MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", "n_embed", 64, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"n_layer", "num_hidden_layers", 2, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"n_head", "num_attention_heads", 8, MODEL_LIMIT_HEADS, &out->num_attention_heads},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        BASE_TRY(model_read_int(r, sizes[i].key, sizes[i].alias, sizes[i].fallback, 1,
                                sizes[i].most, sizes[i].at));
    if (out->hidden_size % out->num_attention_heads)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    out->head_dim = out->hidden_size / out->num_attention_heads;
    out->num_key_value_heads = out->num_attention_heads;
    out->intermediate_size = 4 * out->hidden_size;
    out->max_position_embeddings = POSITIONS;
    return SIFR_OK;
}

/* pretraining_tp and slow_but_exact cut two products, which gives the same results. */
static sifr_status read_bloom(const model_reader *r, model_config *out) {
    bool normed, exact;
    BASE_TRY(read_sizes(r, out));
    out->norm = MODEL_LAYER_NORM;
    BASE_TRY(model_read_double(r, "layer_norm_epsilon", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_double(r, "hidden_dropout", 0, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_double(r, "attention_dropout", 0, 0, 1, true, &out->attention_dropout));
    BASE_TRY(model_read_bool(r, "apply_residual_connection_post_layernorm", false, &normed));
    if (normed)
        return model_refuse(r, "apply_residual_connection_post_layernorm",
                            "what is added to is not normed");
    BASE_TRY(model_read_bool(r, "slow_but_exact", false, &exact));
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", true, &out->tie_word_embeddings));
    BASE_TRY(label_head_read(r, out));
    BASE_TRY(model_read_token_id(r, "bos_token_id", 1, &out->bos_token_id));
    BASE_TRY(model_read_eos(r, 2, out));
    out->attention_bias = out->output_bias = out->mlp_bias = true;
    out->attention_alibi = 1;
    out->activation = MODEL_GELU_TANH;
    out->rope.factor = 1;
    return SIFR_OK;
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    sifr_value qkv = decoder_linear(d, x, "self_attention.query_key_value", true, c->hidden_size,
                                    3 * c->hidden_size);
    qkv = sifr_split_qkv(d->model, qkv, c->num_attention_heads, 3);
    return decoder_attend_rotated(d, decoder_split(d, qkv), "self_attention.dense");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"));
}

static void build(sifr_model *model, const model_config *config) {
    static const decoder_names names = {.embedding = "transformer.word_embeddings.weight",
                                        .embedded = "transformer.word_embeddings_layernorm",
                                        .layers = "transformer.h",
                                        .norm = "transformer.ln_f",
                                        .head = "lm_head.weight",
                                        .unpadded = true,
                                        .tokens = "classifier"};
    decoder_build_named(model, config, &names, block);
}

const model_architecture model_architecture_bloom = {
    .model_type = "bloom",
    .classes = (const model_class[]){{"BloomForCausalLM", MODEL_NEXT_TOKEN},
                                     {"BloomModel", MODEL_NEXT_TOKEN},
                                     {"BloomForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"BloomForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .keys = (const char *const[]){"pretraining_tp", NULL},
    .read = read_bloom,
    .build = build,
    .prefix = "transformer.",
    .head = "lm_head.weight",
    .embedding = "transformer.word_embeddings.weight",
};
