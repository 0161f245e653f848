#include "model/architectures/decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"

static sifr_status check_heads(const model_reader *r, const model_config *c) {
    if (c->num_key_value_heads > c->num_attention_heads ||
        c->num_attention_heads % c->num_key_value_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" %lld is no multiple of "
                         "\"num_key_value_heads\" %lld",
                         r->name, (long long)c->num_attention_heads,
                         (long long)c->num_key_value_heads);
    }
    if (c->head_dim % 2) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: a head of %lld elements cannot have rotary positions, which turn "
                         "pairs: an even \"head_dim\" is needed",
                         r->name, (long long)c->head_dim);
    }
    if (c->head_dim * c->num_attention_heads > MODEL_LIMIT_INNER) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: %lld heads of %lld elements are more than %lld together", r->name,
                         (long long)c->num_attention_heads, (long long)c->head_dim,
                         (long long)MODEL_LIMIT_INNER);
    }
    return SIFR_OK;
}

static sifr_status read_heads(const model_reader *r, model_config *out) {
    int64_t fallback =
        out->num_key_value_heads ? out->num_key_value_heads : out->num_attention_heads;
    BASE_TRY(model_read_int(r, "num_key_value_heads", NULL, fallback, 1, MODEL_LIMIT_HEADS,
                            &out->num_key_value_heads));
    bool natural = !out->head_dim && !model_member(r->json, "head_dim");
    if (natural && out->hidden_size % out->num_attention_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    }
    if (!out->head_dim)
        out->head_dim = base_max_i64(out->hidden_size / out->num_attention_heads, 1);
    BASE_TRY(
        model_read_int(r, "head_dim", NULL, out->head_dim, 1, MODEL_LIMIT_HEADS, &out->head_dim));
    return check_heads(r, out);
}

sifr_status decoder_read(const model_reader *r, model_config *out) {
    const struct {
        const char *key;
        int64_t most, *at;
    } sizes[] = {
        {"vocab_size", MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"intermediate_size", MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", MODEL_LIMIT_ID, &out->max_position_embeddings},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        BASE_TRY(
            model_read_int(r, sizes[i].key, NULL, *sizes[i].at, 1, sizes[i].most, sizes[i].at));
    }
    BASE_TRY(read_heads(r, out));
    BASE_TRY(model_read_double(r, "rms_norm_eps", out->norm_eps, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_double(r, "attention_dropout", out->attention_dropout, 0, 1, true,
                               &out->attention_dropout));
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", out->tie_word_embeddings,
                             &out->tie_word_embeddings));
    BASE_TRY(model_read_token_id(r, "bos_token_id", out->bos_token_id, &out->bos_token_id));
    BASE_TRY(model_read_eos(r, out->eos_count ? out->eos_token_ids[0] : -1, out));
    return model_read_rope(r, out);
}

static sifr_weight vector(const decoder *d, const char *name, const char *kind, int64_t columns,
                          sifr_init init) {
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "model.layers.%lld.%s.%s", (long long)d->layer, name, kind);
    return sifr_weight_vector(d->model, text, columns, init);
}

sifr_value decoder_norm(const decoder *d, sifr_value x, const char *name) {
    const model_config *c = d->config;
    sifr_weight scale = vector(d, name, "weight", c->hidden_size, SIFR_INIT_ONE);
    return sifr_rms_norm(d->model,
                         (sifr_norm_args){.x = x, .scale = scale, .epsilon = c->norm_eps});
}

sifr_value decoder_linear(const decoder *d, sifr_value x, const char *name, bool biased,
                          int64_t from, int64_t to) {
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "model.layers.%lld.%s.weight", (long long)d->layer, name);
    sifr_weight w = sifr_weight_matrix(d->model, text, to, from, SIFR_INIT_NORMAL,
                                       d->config->initializer_range);
    sifr_weight bias = biased ? vector(d, name, "bias", to, SIFR_INIT_ZERO) : SIFR_NO_WEIGHT;
    return sifr_linear(d->model, x, w, bias);
}

static sifr_value rotate(const decoder *d, sifr_value x) {
    return sifr_rope(
        d->model,
        (sifr_rope_args){.x = x, .head_dim = d->config->head_dim, .frequencies = d->frequencies});
}

sifr_value decoder_attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, heads = c->num_attention_heads, kv = c->num_key_value_heads;
    bool biased = c->attention_bias;
    sifr_attention_args a = {.heads = heads, .kv_heads = kv, .dropout = c->attention_dropout};
    a.q = decoder_linear(d, x, "self_attn.q_proj", biased, width, heads * c->head_dim);
    a.k = decoder_linear(d, x, "self_attn.k_proj", biased, width, kv * c->head_dim);
    a.v = decoder_linear(d, x, "self_attn.v_proj", biased, width, kv * c->head_dim);
    a.q = rotate(d, a.q);
    a.k = rotate(d, a.k);
    return decoder_linear(d, sifr_attention(d->model, a), "self_attn.o_proj", biased,
                          heads * c->head_dim, width);
}

sifr_value decoder_mlp(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    sifr_value gate = decoder_linear(d, x, "mlp.gate_proj", c->mlp_bias, width, inner);
    sifr_value up = decoder_linear(d, x, "mlp.up_proj", c->mlp_bias, width, inner);
    return decoder_linear(d, sifr_silu_gate(d->model, gate, up), "mlp.down_proj", c->mlp_bias,
                          inner, width);
}

/* inv_freq of transformers' modeling_rope_utils: default, linear (positions divided by the factor)
 * and llama3 (long wavelengths divided, short ones kept, a ramp between). */
static void angles(const model_config *c, double *frequencies) {
    const model_rope *rope = &c->rope;
    for (int64_t i = 0; i < c->head_dim / 2; i++) {
        double f = pow(rope->theta, -2.0 * (double)i / (double)c->head_dim);
        if (rope->kind == MODEL_ROPE_LINEAR) f /= rope->factor;
        if (rope->kind == MODEL_ROPE_LLAMA3) {
            double wavelength = 6.283185307179586 / f;
            double turns = rope->original_max_position / wavelength;
            double low = rope->low_freq_factor, high = rope->high_freq_factor;
            if (turns < low) {
                f /= rope->factor;
            } else if (turns <= high) {
                double s = (turns - low) / (high - low);
                f = (1 - s) * f / rope->factor + s * f;
            }
        }
        frequencies[i] = f;
    }
}

void decoder_build(sifr_model *model, const model_config *c,
                   sifr_value (*block)(const decoder *d, sifr_value x)) {
    double *frequencies;
    if (base_alloc((size_t)c->head_dim / 2, sizeof *frequencies, &frequencies, &model->error))
        return;
    angles(c, frequencies);
    decoder d = {model, c, frequencies, 0};

    sifr_unit(model, "embedding");
    sifr_weight table = sifr_weight_matrix(model, "model.embed_tokens.weight", c->vocab_size,
                                           c->hidden_size, SIFR_INIT_NORMAL, c->initializer_range);
    /* transformers gives these embeddings a padding_idx, and GPT-2's none. */
    sifr_value x = sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model),
                                                               .table = table,
                                                               .padded = c->pad_token_id >= 0,
                                                               .padding = c->pad_token_id});

    for (d.layer = 0; d.layer < c->num_hidden_layers; d.layer++) {
        char name[MODEL_NAME_LENGTH];
        sifr_unit(model, model_name(name, "layers.%d", d.layer));
        x = block(&d, x);
    }

    sifr_unit(model, "head");
    sifr_weight scale =
        sifr_weight_vector(model, "model.norm.weight", c->hidden_size, SIFR_INIT_ONE);
    x = sifr_rms_norm(model, (sifr_norm_args){.x = x, .scale = scale, .epsilon = c->norm_eps});
    sifr_weight head = table;
    if (!c->tie_word_embeddings) {
        head = sifr_weight_matrix(model, "lm_head.weight", c->vocab_size, c->hidden_size,
                                  SIFR_INIT_NORMAL, c->initializer_range);
    }
    sifr_head_loss(model, (sifr_head_args){.x = x, .weight = head});
    free(frequencies);
}
