/* Llama 2 and 3 (Touvron et al. 2023; Llama Team 2024) as transformers' LlamaForCausalLM has them:
 * grouped-query attention, rotary embedding with its scalings, SwiGLU, tied or untied head. */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "model/builder.h"
#include "model/registry.h"

typedef struct llama_layer {
    sifr_model *b;
    const formats_model_config *c;
    const double *frequencies; /* head_dim / 2 */
    int64_t index;
} llama_layer;

static sifr_weight vector(const llama_layer *l, const char *name, int64_t columns, sifr_init init) {
    char text[MODEL_NAME_LENGTH];
    return sifr_weight_vector(l->b, model_name(text, name, l->index), columns, init);
}

static sifr_value linear(const llama_layer *l, sifr_value x, const char *weight, const char *bias,
                         int64_t from, int64_t to) {
    char text[MODEL_NAME_LENGTH];
    sifr_weight w = sifr_weight_matrix(l->b, model_name(text, weight, l->index), to, from,
                                       SIFR_INIT_NORMAL, l->c->initializer_range);
    return sifr_linear(l->b, x, w, bias ? vector(l, bias, to, SIFR_INIT_ZERO) : SIFR_NO_WEIGHT);
}

static sifr_value block(const llama_layer *l, sifr_value x) {
    const formats_model_config *c = l->c;
    int64_t d = c->hidden_size, f = c->intermediate_size;
    int64_t q_columns = c->num_attention_heads * c->head_dim;
    int64_t kv_columns = c->num_key_value_heads * c->head_dim;
    bool biased = c->attention_bias, mlp_biased = c->mlp_bias;

    sifr_weight w = vector(l, "model.layers.%d.input_layernorm.weight", d, SIFR_INIT_ONE);
    sifr_value n =
        sifr_rms_norm(l->b, (sifr_norm_args){.x = x, .scale = w, .epsilon = c->norm_eps});
    sifr_value q = linear(l, n, "model.layers.%d.self_attn.q_proj.weight",
                          biased ? "model.layers.%d.self_attn.q_proj.bias" : NULL, d, q_columns);
    sifr_value k = linear(l, n, "model.layers.%d.self_attn.k_proj.weight",
                          biased ? "model.layers.%d.self_attn.k_proj.bias" : NULL, d, kv_columns);
    sifr_value v = linear(l, n, "model.layers.%d.self_attn.v_proj.weight",
                          biased ? "model.layers.%d.self_attn.v_proj.bias" : NULL, d, kv_columns);
    sifr_rope_args rope = {.head_dim = c->head_dim, .frequencies = l->frequencies};
    rope.x = q;
    q = sifr_rope(l->b, rope);
    rope.x = k;
    k = sifr_rope(l->b, rope);
    sifr_value a = sifr_attention(l->b, (sifr_attention_args){.q = q,
                                                              .k = k,
                                                              .v = v,
                                                              .heads = c->num_attention_heads,
                                                              .kv_heads = c->num_key_value_heads,
                                                              .dropout = c->attention_dropout});
    a = linear(l, a, "model.layers.%d.self_attn.o_proj.weight",
               biased ? "model.layers.%d.self_attn.o_proj.bias" : NULL, q_columns, d);
    sifr_value h = sifr_add(l->b, x, a);

    w = vector(l, "model.layers.%d.post_attention_layernorm.weight", d, SIFR_INIT_ONE);
    n = sifr_rms_norm(l->b, (sifr_norm_args){.x = h, .scale = w, .epsilon = c->norm_eps});
    sifr_value gate = linear(l, n, "model.layers.%d.mlp.gate_proj.weight",
                             mlp_biased ? "model.layers.%d.mlp.gate_proj.bias" : NULL, d, f);
    sifr_value up = linear(l, n, "model.layers.%d.mlp.up_proj.weight",
                           mlp_biased ? "model.layers.%d.mlp.up_proj.bias" : NULL, d, f);
    sifr_value m = linear(l, sifr_silu_gate(l->b, gate, up), "model.layers.%d.mlp.down_proj.weight",
                          mlp_biased ? "model.layers.%d.mlp.down_proj.bias" : NULL, f, d);
    return sifr_add(l->b, h, m);
}

/* inv_freq of transformers' modeling_rope_utils: default, linear (positions divided by the factor)
 * and llama3 (long wavelengths divided, short ones kept, a ramp between). */
static void angles(const formats_model_config *c, double *frequencies) {
    for (int64_t i = 0; i < c->head_dim / 2; i++) {
        double f = pow(c->rope_theta, -2.0 * (double)i / (double)c->head_dim);
        if (c->rope_kind == FORMATS_ROPE_LINEAR) f /= c->rope_factor;
        if (c->rope_kind == FORMATS_ROPE_LLAMA3) {
            double wavelength = 6.283185307179586 / f;
            double turns = c->rope_original_max_position / wavelength;
            double low = c->rope_low_freq_factor, high = c->rope_high_freq_factor;
            if (turns < low) {
                f /= c->rope_factor;
            } else if (turns <= high) {
                double s = (turns - low) / (high - low);
                f = (1 - s) * f / c->rope_factor + s * f;
            }
        }
        frequencies[i] = f;
    }
}

void model_build_llama(sifr_model *model, const formats_model_config *c) {
    double *frequencies;
    if (base_alloc((size_t)c->head_dim / 2, sizeof *frequencies, &frequencies, &model->error))
        return;
    angles(c, frequencies);
    llama_layer l = {model, c, frequencies, 0};

    sifr_unit(model, "embedding");
    sifr_weight table = sifr_weight_matrix(model, "model.embed_tokens.weight", c->vocab_size,
                                           c->hidden_size, SIFR_INIT_NORMAL, c->initializer_range);
    /* transformers gives LlamaModel's embedding a padding_idx, and GPT2Model's none. */
    sifr_value x = sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model),
                                                               .table = table,
                                                               .padded = c->pad_token_id >= 0,
                                                               .padding = c->pad_token_id});

    for (l.index = 0; l.index < c->num_hidden_layers; l.index++) {
        char name[MODEL_NAME_LENGTH];
        sifr_unit(model, model_name(name, "layers.%d", l.index));
        x = block(&l, x);
    }

    sifr_unit(model, "head");
    sifr_weight w = vector(&l, "model.norm.weight", c->hidden_size, SIFR_INIT_ONE);
    x = sifr_rms_norm(model, (sifr_norm_args){.x = x, .scale = w, .epsilon = c->norm_eps});
    sifr_weight head = table;
    if (!c->tie_word_embeddings) {
        head = sifr_weight_matrix(model, "lm_head.weight", c->vocab_size, c->hidden_size,
                                  SIFR_INIT_NORMAL, c->initializer_range);
    }
    sifr_head_loss(model, (sifr_head_args){.x = x, .weight = head});
    free(frequencies);
}
