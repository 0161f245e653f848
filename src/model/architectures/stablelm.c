/* StableLM (Stability AI 2023) and StableLM 2 (2024) as transformers' StableLmForCausalLM has them:
 * layer norms, rotary positions in a part of each head, and attention and MLP behind each other or
 * beside each other. With qk_layernorm each head of queries and keys has a norm of its own. */
#include <stdio.h>

#include "base/checked.h"
#include "model/architectures/decoder.h"

static sifr_status read_stablelm(const model_reader *r, model_config *out) {
    out->vocab_size = 50304, out->hidden_size = 2560, out->intermediate_size = 6912;
    out->num_hidden_layers = out->num_attention_heads = out->num_key_value_heads = 32;
    out->max_position_embeddings = 4096;
    out->norm = MODEL_LAYER_NORM, out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->bos_token_id = out->eos_token_ids[0] = 0, out->eos_count = 1;
    BASE_TRY(decoder_read_rotary_part(r, 0.25, out));
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(decoder_check_width(r, out));
    BASE_TRY(decoder_read_layer_eps(r, out));
    BASE_TRY(model_read_bool(r, "use_qkv_bias", false, &out->attention_bias));
    BASE_TRY(model_read_bool(r, "use_parallel_residual", false, &out->parallel_residual));
    BASE_TRY(model_read_bool(r, "qk_layernorm", false, &out->head_norms));
    BASE_TRY(model_read_double(r, "hidden_dropout", 0, 0, 1, true, &out->residual_dropout));
    return decoder_read_gate(r, out);
}

/* The norm of one head, whose weight is a tensor by itself. */
static sifr_value norm_head(const decoder *d, sifr_value x, const char *name, int64_t head) {
    const model_config *c = d->config;
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "%s.%lld.self_attn.%s.norms.%lld.weight", d->names->layers,
             (long long)d->layer, name, (long long)head);
    sifr_weight scale = sifr_weight_vector(d->model, text, c->head_dim, SIFR_INIT_ONE);
    x = sifr_slice(d->model, x, head * c->head_dim, c->head_dim);
    return sifr_layer_norm(d->model,
                           (sifr_norm_args){.x = x, .scale = scale, .epsilon = c->norm_eps});
}

/* Of heads first … first + count - 1, beside each other. */
static sifr_value norm_heads(const decoder *d, sifr_value x, const char *name, int64_t first,
                             int64_t count) {
    enum { MOST = 6 };
    sifr_value parts[MOST];
    int64_t pieces = base_min_i64(count, MOST);
    if (count == 1) return norm_head(d, x, name, first);
    for (int64_t i = 0; i < pieces; i++) {
        int64_t from = count * i / pieces, end = count * (i + 1) / pieces;
        parts[i] = norm_heads(d, x, name, first + from, end - from);
    }
    return sifr_join(d->model, parts, pieces);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    decoder_heads h = decoder_project(d, x);
    if (c->head_norms) {
        h.q = norm_heads(d, h.q, "q_layernorm", 0, c->num_attention_heads);
        h.k = norm_heads(d, h.k, "k_layernorm", 0, c->num_key_value_heads);
    }
    return decoder_attend(d, h, "self_attn.o_proj");
}

/* hidden_dropout is of what the MLP adds alone. */
static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = sifr_add(d->model, x, attention(d, n));
    if (!d->config->parallel_residual) n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_stablelm = {
    .model_type = "stablelm",
    .classes = DECODER_CLASSES("StableLm"),
    .keys = (const char *const[]){"partial_rotary_factor", "use_parallel_residual", "qk_layernorm",
                                  NULL},
    .read = read_stablelm,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};
