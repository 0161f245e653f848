/* ModernBERT (Warner et al. 2024) as transformers' ModernBertForMaskedLM has it: norms before
 * attention and MLP, rotary positions, windows to both sides in most layers, a gated MLP, biases
 * only where the config says. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/architectures/activate.h"
#include "model/architectures/encoder.h"

/* A query sees so many tokens to each side: half of "local_attention", which transformers also
 * takes as "sliding_window". */
static sifr_status read_window(const model_reader *r, model_config *out) {
    int64_t whole, half;
    BASE_TRY(model_read_int(r, "local_attention", NULL, 128, 0, MODEL_LIMIT_ID, &whole));
    BASE_TRY(model_read_int(r, "sliding_window", NULL, whole / 2, 0, MODEL_LIMIT_ID / 2, &half));
    out->sliding_window = half + 1; /* and itself */
    return SIFR_OK;
}

static sifr_status read_layers(const model_reader *r, model_config *out) {
    int64_t period;
    BASE_TRY(
        model_read_int(r, "global_attn_every_n_layers", NULL, 3, 1, MODEL_LIMIT_LAYERS, &period));
    for (int64_t i = 0; i < out->num_hidden_layers; i++)
        out->layers[i] = i % period ? MODEL_LAYER_WINDOW : 0;
    return model_read_layer_types(r, out);
}

static sifr_status read_rope(const model_reader *r, model_config *out) {
    if (model_member(r->json, "rope_scaling"))
        return model_refuse(r, "rope_scaling",
                            "give \"rope_parameters\" with an object for each type of layer");
    BASE_TRY(model_read_double(r, "global_rope_theta", 160000, 1, 1e15, false, &out->rope.theta));
    out->local_rope.theta = 10000;
    return model_read_layer_ropes(r, "local_rope_theta", out);
}

static sifr_status read_biases(const model_reader *r, model_config *out) {
    bool norms;
    BASE_TRY(model_read_bool(r, "norm_bias", false, &norms));
    out->norm = norms ? MODEL_LAYER_NORM : MODEL_LAYER_NORM_PLAIN;
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    BASE_TRY(model_read_bool(r, "classifier_bias", false, &out->head_bias));
    return model_read_bool(r, "decoder_bias", true, &out->decoder_bias);
}

static sifr_status read_head(const model_reader *r, model_config *out) {
    const char *pooling;
    BASE_TRY(encoder_read_activation(r, "classifier_activation", &out->head_activation));
    BASE_TRY(model_read_double(r, "classifier_dropout", 0, 0, 1, true, &out->classifier_dropout));
    out->label_range = 1 / sqrt((double)out->hidden_size);
    BASE_TRY(base_json_string(r->json, "classifier_pooling", "cls", &pooling, r->name, r->error));
    out->mean_pooling = !strcmp(pooling, "mean");
    if (out->mean_pooling || !strcmp(pooling, "cls")) return SIFR_OK;
    return model_refuse(r, "classifier_pooling",
                        "the head reads the first token, \"cls\", or the \"mean\" of all");
}

static sifr_status read_modernbert(const model_reader *r, model_config *out) {
    const struct {
        const char *key;
        int64_t fallback, most, *at;
    } sizes[] = {
        {"vocab_size", 50368, MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", 768, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", 22, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", 12, MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"intermediate_size", 1152, MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", 8192, MODEL_LIMIT_ID, &out->max_position_embeddings},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        BASE_TRY(model_read_int(r, sizes[i].key, NULL, sizes[i].fallback, 1, sizes[i].most,
                                sizes[i].at));
    }
    out->pad_token_id = 50283, out->bos_token_id = 50281;
    out->eos_token_ids[0] = 50282, out->eos_count = 1;
    double cutoff = json_is_null(json_object_get(r->json, "initializer_cutoff_factor")) ? 3 : 2;
    BASE_TRY(model_read_double(r, "initializer_cutoff_factor", cutoff, 0.1, 100, false,
                               &out->initializer_cutoff));
    BASE_TRY(encoder_check(r, out));
    BASE_TRY(model_read_double(r, "norm_eps", 1e-5, 1e-30, 1, false, &out->norm_eps));
    double *attention = &out->attention_dropout;
    BASE_TRY(model_read_double(r, "attention_dropout", 0, 0, 1, true, attention));
    out->attention_output_dropout = *attention;
    BASE_TRY(model_read_double(r, "embedding_dropout", 0, 0, 1, true, &out->embedding_dropout));
    BASE_TRY(model_read_double(r, "mlp_dropout", 0, 0, 1, true, &out->inner_dropout));
    BASE_TRY(encoder_read_activation(r, "hidden_activation", &out->activation));
    BASE_TRY(read_head(r, out));
    BASE_TRY(read_biases(r, out));
    BASE_TRY(read_window(r, out));
    BASE_TRY(read_layers(r, out));
    return read_rope(r, out);
}

static sifr_value rotate(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    bool local = c->layers[e->layer] & MODEL_LAYER_LOCAL_ROPE;
    return model_rotate(e->model, x, c->head_dim, local ? &c->local_rope : &c->rope);
}

static sifr_value attention(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    int64_t width = c->hidden_size;
    sifr_value qkv = encoder_linear(e, x, "attn.Wqkv", c->attention_bias, width, 3 * width);
    sifr_value q = rotate(e, sifr_slice(e->model, qkv, 0, width));
    sifr_value k = rotate(e, sifr_slice(e->model, qkv, width, width));
    sifr_value y = encoder_attend(e, q, k, sifr_slice(e->model, qkv, 2 * width, width));
    y = encoder_linear_out(e, y, "attn.Wo", c->output_bias, width, width);
    return sifr_dropout(e->model, y, c->attention_output_dropout);
}

static sifr_value gate(const encoder *e, sifr_value x, sifr_value up) {
    model_activation_kind kind = e->config->activation;
    if (kind == MODEL_SILU) return sifr_silu_gate(e->model, x, up);
    if (kind == MODEL_GELU_ERF || kind == MODEL_GELU_TANH)
        return sifr_gelu_gate(e->model, x, up, kind == MODEL_GELU_ERF);
    return sifr_multiply(e->model, model_activate(e->model, x, kind), up);
}

static sifr_value mlp(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    sifr_value both = encoder_linear(e, x, "mlp.Wi", c->mlp_bias, width, 2 * inner);
    sifr_value y =
        gate(e, sifr_slice(e->model, both, 0, inner), sifr_slice(e->model, both, inner, inner));
    y = sifr_dropout(e->model, y, c->inner_dropout);
    return encoder_linear_out(e, y, "mlp.Wo", c->mlp_bias, inner, width);
}

/* The embedding's norm is the first layer's norm before attention. */
static sifr_value block(const encoder *e, sifr_value x) {
    sifr_value n = e->layer == 0 ? x : encoder_norm(e, x, "attn_norm");
    sifr_value h = sifr_add(e->model, x, attention(e, n));
    return sifr_add(e->model, h, mlp(e, encoder_norm(e, h, "mlp_norm")));
}

/* The mean over the tokens of a segment, in each of its rows: attention whose scores are all 0. */
static sifr_value mean_of_tokens(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    sifr_value zeros = sifr_scale(e->model, (sifr_scale_args){.x = x, .factor = 0});
    return sifr_attention(
        e->model, (sifr_attention_args){.q = zeros,
                                        .k = x,
                                        .v = x,
                                        .heads = c->num_attention_heads,
                                        .kv_heads = c->num_attention_heads,
                                        .bidirectional = true,
                                        .segments = sifr_input_value(e->model, SIFR_SEGMENTS)});
}

static sifr_value pool(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    if (c->mean_pooling && c->task == MODEL_SEQUENCE_CLASSES) x = mean_of_tokens(e, x);
    return encoder_transform(e, x);
}

static void build(sifr_model *model, const model_config *config) {
    static const encoder_names names = {.words = "model.embeddings.tok_embeddings",
                                        .layers = "model.layers",
                                        .final_norm = "model.final_norm",
                                        .transform = "head.dense",
                                        .transform_norm = "head.norm",
                                        .decoder = "decoder",
                                        .bias = "decoder.bias",
                                        .pool = pool,
                                        .both_pool = true};
    encoder e = {.model = model, .config = config, .names = &names, .layer = -1};
    e.out_deviation = config->initializer_range / sqrt(2.0 * (double)config->num_hidden_layers);
    sifr_unit(model, "embedding");
    sifr_value x = encoder_norm(&e, encoder_words(&e), "model.embeddings.norm");
    x = sifr_dropout(model, x, config->embedding_dropout);
    encoder_head(&e, encoder_layers(&e, x, block));
}

const model_architecture model_architecture_modernbert = {
    .model_type = "modernbert",
    .classes = ENCODER_CLASSES("ModernBert"),
    .encoder = true,
    .keys = (const char *const[]){"is_causal", "sliding_window", "layer_types", NULL},
    .read = read_modernbert,
    .build = build,
    .prefix = "model.",
    .head = "decoder.weight",
    .embedding = "model.embeddings.tok_embeddings.weight",
};
