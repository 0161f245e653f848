/* OPT (Zhang et al. 2022) as transformers' OPTForCausalLM has it: learned positions, the first of
 * which is row 2 of their table, biases, relu, and layer norms before attention and MLP, or (350M)
 * behind their sums. An embedding may be narrower than the blocks, between two products. */
#include "model/architectures/decoder.h"

enum { OFFSET = 2 };

static sifr_status read_sizes(const model_reader *r, model_config *out) {
    const struct {
        const char *key;
        int64_t fallback, most, *at;
    } sizes[] = {
        {"vocab_size", 50272, MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", 768, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", 12, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", 12, MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"ffn_dim", 3072, MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", 2048, MODEL_LIMIT_ID - OFFSET, &out->max_position_embeddings},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        BASE_TRY(model_read_int(r, sizes[i].key, NULL, sizes[i].fallback, 1, sizes[i].most,
                                sizes[i].at));
    out->max_position_embeddings += OFFSET;
    out->first_position = OFFSET;
    BASE_TRY(model_read_int(r, "word_embed_proj_dim", NULL, out->hidden_size, 1, MODEL_LIMIT_WIDTH,
                            &out->word_size));
    if (out->word_size == out->hidden_size) out->word_size = 0;
    if (out->hidden_size % out->num_attention_heads)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    out->num_key_value_heads = out->num_attention_heads;
    out->head_dim = out->hidden_size / out->num_attention_heads;
    return SIFR_OK;
}

static sifr_status read_parts(const model_reader *r, model_config *out) {
    bool before, removed, affine, biased;
    double skipped;
    BASE_TRY(model_read_bool(r, "do_layer_norm_before", true, &before));
    BASE_TRY(model_read_bool(r, "_remove_final_layer_norm", false, &removed));
    BASE_TRY(model_read_bool(r, "layer_norm_elementwise_affine", true, &affine));
    BASE_TRY(model_read_bool(r, "enable_bias", true, &biased));
    BASE_TRY(model_read_double(r, "layerdrop", 0, 0, 1, false, &skipped));
    if (removed && before)
        return model_refuse(r, "_remove_final_layer_norm", "a norm stands behind the last block");
    if (skipped > 0) return model_refuse(r, "layerdrop", "no layer is left out in training");
    out->norms_behind = !before;
    out->norm = affine ? MODEL_LAYER_NORM : MODEL_LAYER_NORM_BARE;
    out->norm_eps = 1e-5; /* no key of the class */
    out->attention_bias = out->output_bias = out->mlp_bias = biased;
    return SIFR_OK;
}

static sifr_status read_opt(const model_reader *r, model_config *out) {
    unsigned known = MODEL_ONE_OF(MODEL_RELU) | MODEL_ONE_OF(MODEL_GELU_TANH) |
                     MODEL_ONE_OF(MODEL_GELU_ERF) | MODEL_ONE_OF(MODEL_SILU);
    BASE_TRY(read_sizes(r, out));
    BASE_TRY(read_parts(r, out));
    BASE_TRY(model_read_double(r, "dropout", 0.1, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_double(r, "attention_dropout", 0, 0, 1, true, &out->attention_dropout));
    BASE_TRY(model_read_double(r, "init_std", 0.02, 0, 1e3, false, &out->initializer_range));
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", true, &out->tie_word_embeddings));
    out->pad_token_id = 1;
    BASE_TRY(model_read_token_id(r, "bos_token_id", 2, &out->bos_token_id));
    BASE_TRY(model_read_eos(r, 2, out));
    out->rope.factor = 1;
    return model_read_activation(r, "activation_function", known, MODEL_RELU, &out->activation);
}

static sifr_value block(const decoder *d, sifr_value x) {
    static const char first[] = "self_attn_layer_norm", second[] = "final_layer_norm";
    bool behind = d->config->norms_behind;
    sifr_value n = behind ? x : decoder_norm(d, x, first);
    sifr_value a = decoder_attend_rotated(d, decoder_project(d, n), "self_attn.out_proj");
    sifr_value h = decoder_add(d, x, a);
    if (behind) h = decoder_norm(d, h, first);
    n = behind ? h : decoder_norm(d, h, second);
    h = decoder_add(d, h, decoder_plain_mlp(d, n, "fc1", "fc2"));
    return behind ? decoder_norm(d, h, second) : h;
}

static void build(sifr_model *model, const model_config *config) {
    decoder_names names = {.embedding = "model.decoder.embed_tokens.weight",
                           .positions = "model.decoder.embed_positions.weight",
                           .before = "model.decoder.project_in.weight",
                           .after = "model.decoder.project_out.weight",
                           .layers = "model.decoder.layers",
                           .norm = "model.decoder.final_layer_norm",
                           .head = "lm_head.weight"};
    if (config->norms_behind) names.norm = NULL;
    decoder_build_named(model, config, &names, block);
}

const model_architecture model_architecture_opt = {
    .model_type = "opt",
    .classes = (const model_class[]){{"OPTForCausalLM", MODEL_NEXT_TOKEN},
                                     {"OPTModel", MODEL_NEXT_TOKEN},
                                     {"OPTForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {0}},
    .read = read_opt,
    .build = build,
    .prefix = "model.",
    .head = "lm_head.weight",
    .embedding = "model.decoder.embed_tokens.weight",
    .learned_positions = true,
};
