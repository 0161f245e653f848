/* AFM (Arcee AI 2025) as transformers' ArceeForCausalLM has it: Llama with an MLP that has no gate,
 * and squares what its relu lets through. */
#include "model/architectures/decoder.h"

static sifr_status read_arcee(const model_reader *r, model_config *out) {
    out->vocab_size = 32000, out->hidden_size = 2560, out->intermediate_size = 18432;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 4096;
    out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->bos_token_id = 128000, out->eos_token_ids[0] = 128001, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    return decoder_read_activation(r, MODEL_RELU_SQUARED, out);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.up_proj", "mlp.down_proj"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_arcee = {
    .model_type = "arcee",
    .classes = DECODER_CLASSES("Arcee"),
    .read = read_arcee,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};
