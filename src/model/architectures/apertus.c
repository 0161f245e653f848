/* Apertus (Swiss AI 2025) as transformers' ApertusForCausalLM has it: norms of each query and key,
 * and an MLP without a gate, whose activation, xIELU, has two trained numbers in each layer. */
#include <math.h>
#include <stdio.h>

#include "model/architectures/decoder.h"
#include "model/builder.h"

static const double beta = 0.5, epsilon = -1e-6;

/* The class's own rope_parameters; a rope_theta beside them is not read. */
static void set_default_rope(model_config *out) {
    model_rope *rope = &out->rope;
    rope->kind = MODEL_ROPE_LLAMA3;
    rope->theta = 12e6, rope->factor = 8;
    rope->low_freq_factor = 1, rope->high_freq_factor = 4;
    rope->original_max_position = 8192;
}

static sifr_status read_activation(const model_reader *r, model_config *out) {
    unsigned known = MODEL_ONE_OF(MODEL_XIELU) | MODEL_ONE_OF(MODEL_SILU) |
                     MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF) |
                     MODEL_ONE_OF(MODEL_RELU) | MODEL_ONE_OF(MODEL_RELU_SQUARED);
    return model_read_activation(r, "hidden_act", known, MODEL_XIELU, &out->activation);
}

static sifr_status read_apertus(const model_reader *r, model_config *out) {
    out->vocab_size = 131072, out->hidden_size = 4096, out->intermediate_size = 14336;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 65536;
    out->norm_eps = 1e-5, out->rope.theta = 12e6;
    out->pad_token_id = 3, out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    bool given = model_member(r->json, "rope_parameters") || model_member(r->json, "rope_scaling");
    if (!given) set_default_rope(out);
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    bool normed = true; /* as published; the class does not read it */
    BASE_TRY(model_read_bool(r, "qk_norm", true, &normed));
    if (!normed) return model_refuse(r, "qk_norm", "queries and keys are normalised");
    return read_activation(r, out);
}

/* mlp.act_fn.NAME of the layer. */
static const char *name_of(const decoder *d, const char *name, char text[MODEL_NAME_LENGTH]) {
    snprintf(text, MODEL_NAME_LENGTH, "%s.%lld.mlp.act_fn.%s", d->names->layers,
             (long long)d->layer, name);
    return text;
}

/* The two numbers begin where softplus gives 0.8, and 0.8 - beta. Files have beta and epsilon as
 * well. */
static sifr_value xielu(const decoder *d, sifr_value x) {
    char text[MODEL_NAME_LENGTH];
    sifr_xielu_args args = {.x = x, .beta = beta, .epsilon = epsilon};
    args.positive = sifr_weight_vector(d->model, name_of(d, "alpha_p", text), 1, SIFR_INIT_ZERO);
    args.negative = sifr_weight_vector(d->model, name_of(d, "alpha_n", text), 1, SIFR_INIT_ZERO);
    model_begin_at(d->model, args.positive, log(expm1(0.8)));
    model_begin_at(d->model, args.negative, log(expm1(0.8 - beta)));
    model_known_number(d->model, name_of(d, "beta", text), beta);
    model_known_number(d->model, name_of(d, "eps", text), epsilon);
    return sifr_xielu(d->model, args);
}

static sifr_value mlp(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    if (c->activation != MODEL_XIELU)
        return decoder_plain_mlp(d, x, "mlp.up_proj", "mlp.down_proj");
    sifr_value y = decoder_linear(d, x, "mlp.up_proj", false, c->hidden_size, c->intermediate_size);
    return decoder_linear(d, xielu(d, y), "mlp.down_proj", false, c->intermediate_size,
                          c->hidden_size);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "attention_layernorm");
    sifr_value h = decoder_add(d, x, decoder_normed_attention(d, n));
    n = decoder_norm(d, h, "feedforward_layernorm");
    return decoder_add(d, h, mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_apertus = {
    .model_type = "apertus",
    .classes = (const model_class[]){{"ApertusForCausalLM", MODEL_NEXT_TOKEN},
                                     {"ApertusModel", MODEL_NEXT_TOKEN},
                                     {"ApertusForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .keys = (const char *const[]){"qk_norm", NULL},
    .read = read_apertus,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};
