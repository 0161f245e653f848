/* GPT-2 (Radford et al. 2019) as transformers' GPT2LMHeadModel has it. */
#include <math.h>

#include "model/architectures/label_head.h"

static sifr_status read_gpt2(const model_reader *r, model_config *out) {
    BASE_TRY(model_read_int(r, "vocab_size", NULL, 50257, 1, MODEL_LIMIT_ID, &out->vocab_size));
    BASE_TRY(
        model_read_int(r, "n_embd", "hidden_size", 768, 1, MODEL_LIMIT_WIDTH, &out->hidden_size));
    BASE_TRY(model_read_int(r, "n_layer", "num_hidden_layers", 12, 1, MODEL_LIMIT_LAYERS,
                            &out->num_hidden_layers));
    BASE_TRY(model_read_int(r, "n_head", "num_attention_heads", 12, 1, MODEL_LIMIT_HEADS,
                            &out->num_attention_heads));
    BASE_TRY(model_read_int(r, "n_positions", "max_position_embeddings", 1024, 1, MODEL_LIMIT_ID,
                            &out->max_position_embeddings));
    BASE_TRY(model_read_int(r, "n_inner", NULL, 4 * out->hidden_size, 1, MODEL_LIMIT_INNER,
                            &out->intermediate_size));
    BASE_TRY(model_read_double(r, "layer_norm_epsilon", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_double(r, "embd_pdrop", 0.1, 0, 1, true, &out->embedding_dropout));
    BASE_TRY(model_read_double(r, "resid_pdrop", 0.1, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_double(r, "attn_pdrop", 0.1, 0, 1, true, &out->attention_dropout));
    BASE_TRY(model_read_activation(r, "activation_function",
                                   MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF),
                                   MODEL_GELU_TANH, &out->activation));
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", true, &out->tie_word_embeddings));
    BASE_TRY(label_head_read(r, out));
    BASE_TRY(model_read_token_id(r, "bos_token_id", 50256, &out->bos_token_id));
    BASE_TRY(model_read_eos(r, 50256, out));
    out->num_key_value_heads = out->num_attention_heads;
    out->attention_bias = out->output_bias = out->mlp_bias = true;
    out->rope.factor = 1;
    if (out->hidden_size % out->num_attention_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    }
    out->head_dim = out->hidden_size / out->num_attention_heads;
    return SIFR_OK;
}

typedef struct gpt2_layer {
    sifr_model *b;
    const model_config *c;
    int64_t index;
} gpt2_layer;

static sifr_weight vector(const gpt2_layer *l, const char *name, int64_t columns, sifr_init init) {
    char text[MODEL_NAME_LENGTH];
    return sifr_weight_vector(l->b, model_name(text, name, l->index), columns, init);
}

static sifr_weight matrix(const gpt2_layer *l, const char *name, int64_t rows, int64_t columns,
                          double deviation) {
    char text[MODEL_NAME_LENGTH];
    return sifr_weight_matrix(l->b, model_name(text, name, l->index), rows, columns,
                              SIFR_INIT_NORMAL, deviation);
}

static sifr_value norm(const gpt2_layer *l, sifr_value x, const char *scale, const char *bias) {
    sifr_weight w = vector(l, scale, l->c->hidden_size, SIFR_INIT_ONE);
    sifr_weight b = vector(l, bias, l->c->hidden_size, SIFR_INIT_ZERO);
    return sifr_layer_norm(
        l->b, (sifr_norm_args){.x = x, .scale = w, .bias = b, .epsilon = l->c->norm_eps});
}

static sifr_value conv1d(const gpt2_layer *l, sifr_value x, const char *weight, const char *bias,
                         int64_t from, int64_t to, double deviation) {
    sifr_weight w = matrix(l, weight, from, to, deviation);
    return sifr_conv1d(l->b, x, w, vector(l, bias, to, SIFR_INIT_ZERO));
}

static sifr_value block(const gpt2_layer *l, sifr_value x) {
    const model_config *c = l->c;
    int64_t d = c->hidden_size;
    double std = c->initializer_range;
    /* The projections back to the residual stream start smaller: 1/sqrt(2 x layers). */
    double residual_std = std / sqrt(2.0 * (double)c->num_hidden_layers);

    sifr_value n = norm(l, x, "transformer.h.%d.ln_1.weight", "transformer.h.%d.ln_1.bias");
    sifr_value qkv = conv1d(l, n, "transformer.h.%d.attn.c_attn.weight",
                            "transformer.h.%d.attn.c_attn.bias", d, 3 * d, std);
    sifr_value a = sifr_attention(l->b, (sifr_attention_args){.q = sifr_slice(l->b, qkv, 0, d),
                                                              .k = sifr_slice(l->b, qkv, d, d),
                                                              .v = sifr_slice(l->b, qkv, 2 * d, d),
                                                              .heads = c->num_attention_heads,
                                                              .kv_heads = c->num_attention_heads,
                                                              .dropout = c->attention_dropout});
    a = conv1d(l, a, "transformer.h.%d.attn.c_proj.weight", "transformer.h.%d.attn.c_proj.bias", d,
               d, residual_std);
    sifr_value h = sifr_add(l->b, x, sifr_dropout(l->b, a, c->residual_dropout));

    n = norm(l, h, "transformer.h.%d.ln_2.weight", "transformer.h.%d.ln_2.bias");
    sifr_value m = conv1d(l, n, "transformer.h.%d.mlp.c_fc.weight",
                          "transformer.h.%d.mlp.c_fc.bias", d, c->intermediate_size, std);
    m = sifr_gelu(l->b, m, c->activation == MODEL_GELU_ERF);
    m = conv1d(l, m, "transformer.h.%d.mlp.c_proj.weight", "transformer.h.%d.mlp.c_proj.bias",
               c->intermediate_size, d, residual_std);
    return sifr_add(l->b, h, sifr_dropout(l->b, m, c->residual_dropout));
}

static void build(sifr_model *model, const model_config *c) {
    gpt2_layer l = {model, c, 0};
    double std = c->initializer_range;

    sifr_unit(model, "embedding");
    sifr_weight wte = matrix(&l, "transformer.wte.weight", c->vocab_size, c->hidden_size, std);
    sifr_weight wpe =
        matrix(&l, "transformer.wpe.weight", c->max_position_embeddings, c->hidden_size, std);
    sifr_value words =
        sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model), .table = wte});
    sifr_value places =
        sifr_embedding(model, (sifr_embedding_args){.ids = sifr_positions(model), .table = wpe});
    sifr_value x = sifr_add(model, words, places);
    x = sifr_dropout(model, x, c->embedding_dropout);

    for (l.index = 0; l.index < c->num_hidden_layers; l.index++) {
        char name[MODEL_NAME_LENGTH];
        sifr_unit(model, model_name(name, "h.%d", l.index));
        x = block(&l, x);
    }

    sifr_unit(model, "head");
    x = norm(&l, x, "transformer.ln_f.weight", "transformer.ln_f.bias");
    if (model_task_labelled(c->task)) {
        label_head_of_decoder(model, c, x, "classifier");
        return;
    }
    sifr_weight head = wte;
    if (!c->tie_word_embeddings) {
        head = matrix(&l, "lm_head.weight", c->vocab_size, c->hidden_size, std);
    }
    sifr_head_loss(model, (sifr_head_args){.x = x, .weight = head});
}

const model_architecture model_architecture_gpt2 = {
    .model_type = "gpt2",
    .classes = (const model_class[]){{"GPT2LMHeadModel", MODEL_NEXT_TOKEN},
                                     {"GPT2Model", MODEL_NEXT_TOKEN},
                                     {"GPT2ForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"GPT2ForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .read = read_gpt2,
    .build = build,
    .prefix = "transformer.",
    .ignored = {".attn.bias", ".attn.masked_bias"},
    .head = "lm_head.weight",
    .embedding = "transformer.wte.weight",
    .learned_positions = true,
};
