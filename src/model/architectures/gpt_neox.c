/* GPT-NeoX and Pythia (Black et al. 2022; Biderman et al. 2023) as transformers' GPTNeoXForCausalLM
 * has them: attention and MLP beside each other, layer norms, rotary positions in a part of each
 * head. */
#include "model/architectures/decoder.h"

/* The part of a head that rotates: "rotary_pct", beside which later folders have the same number as
 * "partial_rotary_factor". */
static sifr_status read_rotary_part(const model_reader *r, model_config *out) {
    double part;
    BASE_TRY(model_read_double(r, "rotary_pct", 0.25, 1e-6, 1, false, &out->rotary_part));
    BASE_TRY(model_read_double(r, "partial_rotary_factor", out->rotary_part, 0, 1, false, &part));
    if (part == out->rotary_part) return SIFR_OK;
    return base_fail(
        r->error, SIFR_USAGE,
        "%s: \"rotary_pct\" is %g (0.25 where absent) but \"partial_rotary_factor\", the "
        "same thing, is %g",
        r->name, out->rotary_part, part);
}

static sifr_status check_heads(const model_reader *r, const model_config *c) {
    bool plain = c->num_key_value_heads == c->num_attention_heads &&
                 c->head_dim * c->num_attention_heads == c->hidden_size;
    if (plain) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: gpt_neox has as many key as query heads, and hidden_size is their width: "
                     "remove \"num_key_value_heads\" and \"head_dim\"",
                     r->name);
}

static sifr_status read_gpt_neox(const model_reader *r, model_config *out) {
    out->vocab_size = 50432, out->hidden_size = 6144, out->intermediate_size = 24576;
    out->num_hidden_layers = 44, out->num_attention_heads = 64;
    out->max_position_embeddings = 2048;
    out->norm = MODEL_LAYER_NORM, out->norm_eps = 1e-5;
    out->bos_token_id = 0, out->eos_token_ids[0] = 2, out->eos_count = 1;
    out->mlp_bias = true;
    BASE_TRY(read_rotary_part(r, out));
    BASE_TRY(model_read_double(r, "rotary_emb_base", 10000, 1, 1e15, false, &out->rope.theta));
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(check_heads(r, out));
    BASE_TRY(model_read_double(r, "layer_norm_eps", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_bool(r, "attention_bias", true, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "use_parallel_residual", true, &out->parallel_residual));
    BASE_TRY(model_read_double(r, "hidden_dropout", 0, 0, 1, true, &out->residual_dropout));
    out->embedding_dropout = out->residual_dropout;
    if (out->task == MODEL_TOKEN_CLASSES) {
        BASE_TRY(
            model_read_double(r, "classifier_dropout", 0.1, 0, 1, true, &out->classifier_dropout));
    }
    return model_read_activation(r, "hidden_act",
                                 MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF),
                                 MODEL_GELU_ERF, &out->activation);
}

/* q, k and v of each head stand together. */
static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    sifr_value qkv = decoder_linear(d, x, "attention.query_key_value", c->attention_bias,
                                    c->hidden_size, 3 * c->hidden_size);
    qkv = sifr_split_qkv(d->model, qkv, c->num_attention_heads, 3);
    return decoder_attend(d, decoder_split(d, qkv), "attention.dense");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    n = decoder_norm(d, d->config->parallel_residual ? x : h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"));
}

static void build(sifr_model *model, const model_config *config) {
    static const decoder_names names = {.embedding = "gpt_neox.embed_in.weight",
                                        .layers = "gpt_neox.layers",
                                        .norm = "gpt_neox.final_layer_norm",
                                        .head = "embed_out.weight",
                                        .unpadded = true,
                                        .tokens = "classifier"};
    decoder_build_named(model, config, &names, block);
}

const model_architecture model_architecture_gpt_neox = {
    .model_type = "gpt_neox",
    .classes = (const model_class[]){{"GPTNeoXForCausalLM", MODEL_NEXT_TOKEN},
                                     {"GPTNeoXModel", MODEL_NEXT_TOKEN},
                                     {"GPTNeoXForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"GPTNeoXForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .keys =
        (const char *const[]){"rotary_pct", "partial_rotary_factor", "use_parallel_residual", NULL},
    .read = read_gpt_neox,
    .build = build,
    .prefix = "gpt_neox.",
    .ignored = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
    .head = "embed_out.weight",
    .embedding = "gpt_neox.embed_in.weight",
};
