/* Falcon 7B, 40B, 180B (TII 2023) and Falcon 2 11B as transformers' FalconForCausalLM has them:
 * queries, keys and values of each group of heads in one product, layer norms, and attention and
 * MLP beside each other. The first form has one key head (multi_query); that of 40B several, and a
 * norm each for attention and MLP (new_decoder_architecture). */
#include "model/architectures/decoder.h"

static sifr_status read_sizes(const model_reader *r, model_config *out) {
    const struct {
        const char *key, *alias;
        int64_t fallback, most, *at;
    } sizes[] = {
        {"vocab_size", NULL, 65024, MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", "n_embed", 4544, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", NULL, 32, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", NULL, 71, MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"max_position_embeddings", NULL, 2048, MODEL_LIMIT_ID, &out->max_position_embeddings},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        BASE_TRY(model_read_int(r, sizes[i].key, sizes[i].alias, sizes[i].fallback, 1,
                                sizes[i].most, sizes[i].at));
    if (out->hidden_size % out->num_attention_heads)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    out->head_dim = out->hidden_size / out->num_attention_heads;
    return model_read_int(r, "ffn_hidden_size", NULL, 4 * out->hidden_size, 1, MODEL_LIMIT_INNER,
                          &out->intermediate_size);
}

/* On unless it is false or null, which the class takes for false. */
static sifr_status read_switch(const model_reader *r, const char *key, bool *out) {
    return model_read_bool(r, key, !json_object_get(r->json, key), out);
}

/* new_decoder_architecture counts before multi_query, and goes with parallel_attn alone. */
static sifr_status read_form(const model_reader *r, model_config *out) {
    bool grouped, single;
    int64_t norms, heads = out->num_attention_heads;
    BASE_TRY(model_read_bool(r, "new_decoder_architecture", false, &grouped));
    BASE_TRY(read_switch(r, "multi_query", &single));
    BASE_TRY(read_switch(r, "parallel_attn", &out->parallel_residual));
    BASE_TRY(model_read_int(r, "num_kv_heads", NULL, heads, 1, MODEL_LIMIT_HEADS,
                            &out->num_key_value_heads));
    BASE_TRY(model_read_int(r, "num_ln_in_parallel_attn", NULL, grouped ? 2 : 1, 1, 2, &norms));
    if (grouped && !out->parallel_residual)
        return model_refuse(r, "parallel_attn",
                            "with new_decoder_architecture attention and MLP have the same input");
    if (!grouped && norms == 2 && out->parallel_residual)
        return model_refuse(r, "num_ln_in_parallel_attn", "2 norms need new_decoder_architecture");
    if (!grouped) out->num_key_value_heads = single ? 1 : heads;
    if (heads % out->num_key_value_heads)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" %lld is no multiple of \"num_kv_heads\" %lld",
                         r->name, (long long)heads, (long long)out->num_key_value_heads);
    out->own_norms = norms == 2 && grouped;
    return decoder_check_heads(r, out);
}

/* attention_dropout is of what attention adds, and only where the MLP comes behind it: the class
 * has none of probabilities. */
static sifr_status read_dropout(const model_reader *r, model_config *out) {
    double *added = &out->attention_output_dropout;
    BASE_TRY(model_read_double(r, "hidden_dropout", 0, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_double(r, "attention_dropout", 0, 0, 1, true, added));
    if (out->parallel_residual) *added = 0;
    out->classifier_dropout = out->residual_dropout;
    if (out->task != MODEL_TOKEN_CLASSES) return out->classifier_dropout = 0, SIFR_OK;
    return model_read_double(r, "classifier_dropout", out->residual_dropout, 0, 1, true,
                             &out->classifier_dropout);
}

static sifr_status read_falcon(const model_reader *r, model_config *out) {
    bool biased, alibi;
    unsigned known = MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF) |
                     MODEL_ONE_OF(MODEL_RELU) | MODEL_ONE_OF(MODEL_SILU);
    out->rope.theta = 10000;
    BASE_TRY(model_read_bool(r, "alibi", false, &alibi));
    if (alibi)
        return model_refuse(r, "alibi",
                            "transformers rounds this bias by distance to bf16, position by "
                            "position, which is not built");
    BASE_TRY(read_sizes(r, out));
    BASE_TRY(read_form(r, out));
    BASE_TRY(read_dropout(r, out));
    out->norm = MODEL_LAYER_NORM;
    BASE_TRY(model_read_double(r, "layer_norm_epsilon", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_bool(r, "bias", false, &biased));
    out->attention_bias = out->output_bias = out->mlp_bias = biased;
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", true, &out->tie_word_embeddings));
    BASE_TRY(model_read_token_id(r, "bos_token_id", 11, &out->bos_token_id));
    BASE_TRY(model_read_eos(r, 11, out));
    BASE_TRY(model_read_rope(r, out));
    return model_read_activation(r, "activation", known, MODEL_GELU_ERF, &out->activation);
}

/* A group of query heads, its key and its value stand together. */
static decoder_heads project(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t kv = c->num_key_value_heads, group = c->num_attention_heads / kv;
    int64_t width = c->num_attention_heads * c->head_dim;
    sifr_value qkv = decoder_linear(d, x, "self_attention.query_key_value", c->attention_bias,
                                    c->hidden_size, width + 2 * kv * c->head_dim);
    if (kv == 1) return decoder_split(d, qkv);
    decoder_heads h = decoder_split(d, sifr_split_qkv(d->model, qkv, kv, group + 2));
    /* The first query of all groups is first, then the second of all: back to group by group. */
    if (group > 1) h.q = sifr_split_qkv(d->model, h.q, group, kv);
    return h;
}

static sifr_value attention(const decoder *d, sifr_value x) {
    return decoder_attend(d, project(d, x), "self_attention.dense");
}

static sifr_value mlp(const decoder *d, sifr_value x) {
    return decoder_plain_mlp(d, x, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
}

static sifr_value block(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    sifr_value n = decoder_norm(d, x, c->own_norms ? "ln_attn" : "input_layernorm");
    sifr_value a = attention(d, n);
    if (c->parallel_residual) {
        if (c->own_norms) n = decoder_norm(d, x, "ln_mlp");
        return decoder_add(d, x, sifr_add(d->model, mlp(d, n), a));
    }
    sifr_value h = sifr_add(d->model, x, sifr_dropout(d->model, a, c->attention_output_dropout));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    static const decoder_names names = {.embedding = "transformer.word_embeddings.weight",
                                        .layers = "transformer.h",
                                        .norm = "transformer.ln_f",
                                        .head = "lm_head.weight",
                                        .unpadded = true,
                                        .tokens = "classifier"};
    decoder_build_named(model, config, &names, block);
}

const model_architecture model_architecture_falcon = {
    .model_type = "falcon",
    .classes = (const model_class[]){{"FalconForCausalLM", MODEL_NEXT_TOKEN},
                                     {"FalconModel", MODEL_NEXT_TOKEN},
                                     {"FalconForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"FalconForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .keys = (const char *const[]){"parallel_attn", "alibi", NULL},
    .read = read_falcon,
    .build = build,
    .prefix = "transformer.",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "transformer.word_embeddings.weight",
};
