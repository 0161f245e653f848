/* Gemma 4 (Gemma Team 2026) as transformers' Gemma4ForCausalLM and Gemma4UnifiedForCausalLM have
 * it, the dense text models: Gemma 3's block with norms that multiply by their weight, a norm of
 * values, and a number that each layer's output is multiplied by. Layers without a window have
 * heads of their own size, of which a part has rotary positions, and keys that may be the values
 * too. In E2B and E4B the last layers attend to keys and values of earlier ones, and every layer
 * has an input of its own (gemma4_inputs.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "model/architectures/gemma.h"
#include "model/architectures/gemma4_inputs.h"

/* --- its config --- */

/* What a layer has in place of the text model's own. */
typedef struct layer_heads {
    int64_t head_dim, kv_heads;
} layer_heads;

static sifr_status refuse_layer(const model_reader *r, const char *layer, const char *key,
                                const char *why) {
    return base_fail(r->error, SIFR_USAGE, "%s: \"per_layer_config\": \"%.20s\"%s%.40s%s: %s",
                     r->name, layer, key ? ": \"" : "", key ? key : "", key ? "\"" : "", why);
}

static sifr_status read_layer_heads(const model_reader *r, const char *layer, const json_t *object,
                                    layer_heads *out) {
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return refuse_layer(r, layer, NULL, "must be an object");
    json_object_foreach((json_t *)object, key, value) {
        int64_t *at = !strcmp(key, "head_dim")              ? &out->head_dim
                      : !strcmp(key, "num_key_value_heads") ? &out->kv_heads
                                                            : NULL;
        if (!at)
            return refuse_layer(r, layer, key,
                                "not supported yet (supported: head_dim, num_key_value_heads)");
        json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
        if (number < 1 || number > MODEL_LIMIT_HEADS)
            return refuse_layer(r, layer, key, "must be a whole number in 1 … 65536");
        *at = (int64_t)number;
    }
    return SIFR_OK;
}

/* "per_layer_config": for numbers of layers what differs there. It decides where it is, whatever
 * global_head_dim says. Fills in heads[] of all layers. */
static sifr_status read_each_layer(const model_reader *r, const json_t *all, const model_config *c,
                                   layer_heads *heads) {
    const char *layer;
    json_t *value;
    if (!json_is_object(all) && !json_is_null(all))
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"per_layer_config\" must be an object by numbers of layers",
                         r->name);
    json_object_foreach((json_t *)all, layer, value) {
        char *end;
        long number = strtol(layer, &end, 10);
        bool digits = layer[0] >= '0' && layer[0] <= '9' && !*end;
        if (!digits || number >= c->num_hidden_layers)
            return refuse_layer(r, layer, NULL, "there is no such layer");
        BASE_TRY(read_layer_heads(r, layer, value, &heads[number]));
    }
    return SIFR_OK;
}

/* All layers of one type have the same heads, as transformers asks for too. */
static sifr_status take_layers(const model_reader *r, const layer_heads *heads, model_config *out) {
    const layer_heads *of[2] = {NULL, NULL}; /* without a window, with one */
    for (int64_t i = 0; i < out->num_hidden_layers; i++) {
        const layer_heads **its = &of[(out->layers[i] & MODEL_LAYER_WINDOW) != 0];
        if (!*its) *its = &heads[i];
        if ((*its)->head_dim == heads[i].head_dim && (*its)->kv_heads == heads[i].kv_heads)
            continue;
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"per_layer_config\": layers %lld and %lld are of one type and have "
                         "other heads, which is not supported",
                         r->name, (long long)(*its - heads), (long long)i);
    }
    if (of[1]) out->head_dim = of[1]->head_dim, out->num_key_value_heads = of[1]->kv_heads;
    if (of[0]) out->full_head_dim = of[0]->head_dim, out->full_kv_heads = of[0]->kv_heads;
    return SIFR_OK;
}

static sifr_status read_per_layer(const model_reader *r, const json_t *all, model_config *out) {
    layer_heads *heads;
    BASE_TRY(base_alloc((size_t)out->num_hidden_layers, sizeof *heads, &heads, r->error));
    for (int64_t i = 0; i < out->num_hidden_layers; i++)
        heads[i] = (layer_heads){out->head_dim, out->num_key_value_heads};
    sifr_status status = read_each_layer(r, all, out, heads);
    if (status == SIFR_OK) status = take_layers(r, heads, out);
    free(heads);
    return status;
}

static sifr_status check_full_heads(const model_reader *r, const model_config *c) {
    static const char which[] = "layers without a window";
    if (c->num_attention_heads % c->full_kv_heads)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" %lld is no multiple of the %lld key heads of "
                         "%s (\"num_global_key_value_heads\" or \"per_layer_config\")",
                         r->name, (long long)c->num_attention_heads, (long long)c->full_kv_heads,
                         which);
    if (c->full_head_dim % 2 == 0 && c->full_head_dim * c->num_attention_heads <= MODEL_LIMIT_INNER)
        return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: heads of %s have %lld elements (\"global_head_dim\" or "
                     "\"per_layer_config\"): an even number is needed, at most %lld in all heads",
                     r->name, which, (long long)c->full_head_dim, (long long)MODEL_LIMIT_INNER);
}

static sifr_status read_full_heads(const model_reader *r, model_config *out) {
    const json_t *each = json_object_get(r->json, "per_layer_config");
    if (each) BASE_TRY(read_per_layer(r, each, out));
    if (!each) {
        int64_t kv = out->num_key_value_heads;
        BASE_TRY(model_read_int(r, "global_head_dim", NULL, 512, 1, MODEL_LIMIT_HEADS,
                                &out->full_head_dim));
        BASE_TRY(model_read_int(r, "num_global_key_value_heads", NULL, kv, 1, MODEL_LIMIT_HEADS,
                                &out->full_kv_heads));
        if (!out->full_keys_are_values) out->full_kv_heads = kv;
    }
    BASE_TRY(decoder_check_heads(r, out));
    return out->full_head_dim ? check_full_heads(r, out) : SIFR_OK;
}

/* Five layers with a window to one without; the last one never has a window. */
static sifr_status read_layers(const model_reader *r, int64_t window, model_config *out) {
    BASE_TRY(
        model_read_int(r, "sliding_window", NULL, window, 1, MODEL_LIMIT_ID, &out->sliding_window));
    for (int64_t i = 0; i < out->num_hidden_layers; i++)
        out->layers[i] = (i + 1) % 6 ? MODEL_LAYER_WINDOW : 0;
    BASE_TRY(model_read_layer_types(r, out));
    out->layers[out->num_hidden_layers - 1] &= (uint8_t)~MODEL_LAYER_WINDOW;
    return SIFR_OK;
}

static const char full[] = "full_attention", sliding[] = "sliding_attention";

/* Each type of layer that there is needs its rule, with a base. */
static sifr_status check_rope(const model_reader *r, const json_t *all, const char *type) {
    const json_t *rule = model_member(all, type);
    if (json_is_object(rule) && model_member(rule, "rope_theta")) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"rope_parameters\" has no object \"%s\" with a \"rope_theta\", which "
                     "layers of this type need",
                     r->name, type);
}

static sifr_status check_kind(const model_reader *r, const model_rope *rope) {
    if (rope->kind == MODEL_ROPE_DEFAULT || rope->kind == MODEL_ROPE_LINEAR ||
        rope->kind == MODEL_ROPE_PROPORTIONAL)
        return SIFR_OK;
    return model_refuse(r, "rope_parameters",
                        "supported rope types of Gemma 4: default, linear, proportional");
}

static sifr_status read_rope(const model_reader *r, model_config *out) {
    const json_t *all = model_member(r->json, "rope_parameters");
    static const char *const older[] = {"rope_scaling", "rope_theta"};
    for (int i = 0; i < 2; i++) {
        if (model_member(r->json, older[i]))
            return model_refuse(r, older[i],
                                "give \"rope_parameters\" with an object for each type of layer");
    }
    out->rope.theta = 1e6, out->local_rope.theta = 1e4;
    for (int64_t i = 0; all && json_is_object(all) && i < out->num_hidden_layers; i++)
        BASE_TRY(check_rope(r, all, out->layers[i] & MODEL_LAYER_WINDOW ? sliding : full));
    BASE_TRY(model_read_layer_ropes(r, NULL, out));
    if (!all) {
        out->rope.kind = MODEL_ROPE_PROPORTIONAL;
        out->rope.turning = out->rope.rotary_dim / 8; /* a quarter of the pairs */
    }
    BASE_TRY(check_kind(r, &out->rope));
    return check_kind(r, &out->local_rope);
}

/* Of 26B-A4B. */
static sifr_status check_experts(const model_reader *r) {
    bool experts;
    BASE_TRY(model_read_bool(r, "enable_moe_block", false, &experts));
    if (!experts) return SIFR_OK;
    return model_refuse(r, "enable_moe_block",
                        "there are no mixtures of experts, as 26B-A4B has them; 31B, 12B, E4B and "
                        "E2B are dense");
}

static const char shared_key[] = "num_kv_shared_layers";

/* As transformers asks for: each type of layer that there is needs one with keys and values. */
static sifr_status check_shared(const model_reader *r, const model_config *c) {
    bool there[2] = {false, false}, own[2] = {false, false}; /* without a window, with one */
    int64_t first = c->num_hidden_layers - c->shared_kv_layers;
    for (int64_t i = 0; i < c->num_hidden_layers; i++) {
        bool window = c->layers[i] & MODEL_LAYER_WINDOW;
        there[window] = true;
        own[window] |= i < first;
    }
    for (int i = 0; i < 2; i++) {
        if (!there[i] || own[i]) continue;
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"%s\" %lld: the last layers share keys and values, and none of the "
                         "%lld layers before them is of type %s, to share its own",
                         r->name, shared_key, (long long)c->shared_kv_layers, (long long)first,
                         i ? sliding : full);
    }
    return SIFR_OK;
}

static sifr_status read_shared(const model_reader *r, model_config *out) {
    int64_t most = out->num_hidden_layers - 1;
    BASE_TRY(model_read_int(r, shared_key, NULL, 0, 0, most, &out->shared_kv_layers));
    BASE_TRY(model_read_bool(r, "use_double_wide_mlp", false, &out->wide_shared_mlp));
    if (!out->shared_kv_layers) out->wide_shared_mlp = false;
    if (out->wide_shared_mlp && out->intermediate_size > MODEL_LIMIT_INNER / 2)
        return model_refuse(r, "use_double_wide_mlp", "an MLP twice as wide would be too wide");
    return out->shared_kv_layers ? check_shared(r, out) : SIFR_OK;
}

/* "vision" sees ahead only inside of images. */
static sifr_status check_direction(const model_reader *r) {
    const json_t *value = model_member(r->json, "use_bidirectional_attention");
    const char *name = json_string_value(value);
    if (!value || json_is_false(value) || (name && !strcmp(name, "vision"))) return SIFR_OK;
    return model_refuse(r, "use_bidirectional_attention",
                        "attention over text is always causal (null and \"vision\" are)");
}

static sifr_status read(const model_reader *r, int64_t window, int64_t positions, int64_t inputs,
                        model_config *out) {
    gemma_defaults(out);
    out->norm = MODEL_RMS_NORM;
    out->vocab_size = 262144, out->hidden_size = 2304, out->intermediate_size = 9216;
    out->num_hidden_layers = 30, out->num_attention_heads = 8, out->num_key_value_heads = 4;
    out->max_position_embeddings = positions;
    out->attention_scale = 1;
    BASE_TRY(check_experts(r));
    BASE_TRY(check_direction(r));
    BASE_TRY(decoder_read_keys(r, out));
    BASE_TRY(gemma_read(r, "hidden_activation", out));
    BASE_TRY(gemma_read_cap(r, "final_logit_softcapping", 0, &out->logit_softcap));
    BASE_TRY(read_layers(r, window, out));
    BASE_TRY(model_read_bool(r, "attention_k_eq_v", false, &out->full_keys_are_values));
    BASE_TRY(read_full_heads(r, out));
    BASE_TRY(read_shared(r, out));
    BASE_TRY(gemma4_read_inputs(r, inputs, out));
    return read_rope(r, out);
}

static sifr_status read_gemma4(const model_reader *r, model_config *out) {
    return read(r, 512, 131072, 256, out);
}

static sifr_status read_unified(const model_reader *r, model_config *out) {
    return read(r, 1024, 262144, 0, out);
}

/* --- the model --- */

static bool shares_keys(const decoder *d) {
    return d->layer >= d->config->num_hidden_layers - d->config->shared_kv_layers;
}

/* Of x. */
static decoder_heads own_keys(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, kv = c->num_key_value_heads * c->head_dim;
    bool window = c->layers[d->layer] & MODEL_LAYER_WINDOW, biased = c->attention_bias;
    decoder_heads h = {0};
    h.k = h.v = decoder_linear(d, x, "self_attn.k_proj", biased, width, kv);
    if (window || !c->full_keys_are_values)
        h.v = decoder_linear(d, x, "self_attn.v_proj", biased, width, kv);
    return h;
}

/* v has no weight there. */
static decoder_heads norm_heads(const decoder *d, decoder_heads h) {
    const model_config *c = d->config;
    h.q = decoder_group_norm(d, h.q, "self_attn.q_norm", c->num_attention_heads, c->head_dim);
    if (!h.k.id) return h;
    h.k = decoder_group_norm(d, h.k, "self_attn.k_norm", c->num_key_value_heads, c->head_dim);
    h.v = sifr_rms_norm(
        d->model,
        (sifr_norm_args){.x = h.v, .epsilon = c->norm_eps, .heads = c->num_key_value_heads});
    return h;
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    gemma4_handed *handed = d->handed;
    decoder_heads h = {0}, *kept = &handed->kept[(c->layers[d->layer] & MODEL_LAYER_WINDOW) != 0];
    sifr_value q = decoder_linear(d, x, "self_attn.q_proj", c->attention_bias, c->hidden_size,
                                  c->num_attention_heads * c->head_dim);
    if (!shares_keys(d)) h = own_keys(d, x);
    h.q = q;
    h = decoder_rotate(d, norm_heads(d, h));
    if (shares_keys(d))
        h.k = kept->k, h.v = kept->v;
    else
        *kept = h;
    return decoder_attend_rotated(d, h, "self_attn.o_proj");
}

static sifr_value block(const decoder *d, sifr_value x) {
    model_config own = *d->config; /* with this layer's heads and width */
    decoder at = {d->model, &own, d->names, d->layer, d->handed};
    char name[MODEL_NAME_LENGTH];
    bool window = own.layers[d->layer] & MODEL_LAYER_WINDOW;
    if (!window && own.full_head_dim)
        own.head_dim = own.full_head_dim, own.num_key_value_heads = own.full_kv_heads;
    if (shares_keys(d) && own.wide_shared_mlp) own.intermediate_size *= 2;
    sifr_value y = gemma4_add_input(&at, gemma_block(&at, x, attention));
    snprintf(name, sizeof name, "%s.%lld.layer_scalar", d->names->layers, (long long)d->layer);
    return sifr_scale_by(d->model, y, sifr_weight_vector(d->model, name, 1, SIFR_INIT_ONE));
}

static void build(sifr_model *model, const model_config *config) {
    gemma4_handed handed = {0};
    decoder_build_family(model, config, &(decoder_family){gemma4_make_inputs, block, &handed});
}

static const char *const read_keys[] = {"final_logit_softcapping", "sliding_window", "layer_types",
                                        "use_bidirectional_attention", NULL};

const model_architecture model_architecture_gemma4_text = {
    .model_type = "gemma4_text",
    .classes = (const model_class[]){{"Gemma4ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Gemma4TextModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = read_keys,
    .read = read_gemma4,
    .build = build,
    .prefix = "",
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

const model_architecture model_architecture_gemma4u_txt = {
    .model_type = "gemma4_unified_text",
    .classes = (const model_class[]){{"Gemma4UnifiedForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Gemma4UnifiedTextModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = read_keys,
    .read = read_unified,
    .build = build,
    .prefix = "",
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};
