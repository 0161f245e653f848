/* Names of weights, without ".weight" and ".bias": tensor_mapping.py of the `gguf` package. */
#include "formats/gguf/gguf_family_parts.h"

#define SAME(from, to)                                                                             \
    { from, to, FORMATS_GGUF_AS_IT_IS }
#define LEFT_OUT(from)                                                                             \
    { from, NULL, FORMATS_GGUF_LEFT_OUT }
#define END                                                                                        \
    { NULL, NULL, FORMATS_GGUF_AS_IT_IS }

/* Llama's names, which many families share, with or without its order of rows. */
#define MODEL SAME("embed_tokens", "token_embd"), SAME("norm", "output_norm")
#define ATTENTION                                                                                  \
    SAME("self_attn.q_proj", "attn_q"), SAME("self_attn.k_proj", "attn_k"),                        \
        SAME("self_attn.v_proj", "attn_v"), SAME("self_attn.o_proj", "attn_output")
#define ATTENTION_NORMS                                                                            \
    SAME("self_attn.q_norm", "attn_q_norm"), SAME("self_attn.k_norm", "attn_k_norm")
#define GATED_MLP                                                                                  \
    SAME("mlp.gate_proj", "ffn_gate"), SAME("mlp.up_proj", "ffn_up"),                              \
        SAME("mlp.down_proj", "ffn_down")
#define NORMS SAME("input_layernorm", "attn_norm"), SAME("post_attention_layernorm", "ffn_norm")
#define ROTATION LEFT_OUT("self_attn.rotary_emb.inv_freq")

const formats_gguf_name formats_gguf_gpt2_names[] = {
    SAME("wte", "token_embd"),
    {"wpe", "position_embd", FORMATS_GGUF_POSITIONS},
    SAME("ln_f", "output_norm"),
    SAME("lm_head", "output"),
    END,
};

const formats_gguf_name formats_gguf_gpt2_layer[] = {
    SAME("ln_1", "attn_norm"),
    {"attn.c_attn", "attn_qkv", FORMATS_GGUF_TRANSPOSED},
    {"attn.c_proj", "attn_output", FORMATS_GGUF_TRANSPOSED},
    SAME("ln_2", "ffn_norm"),
    {"mlp.c_fc", "ffn_up", FORMATS_GGUF_TRANSPOSED},
    {"mlp.c_proj", "ffn_down", FORMATS_GGUF_TRANSPOSED},
    LEFT_OUT("attn"), /* attn.bias: a mask in old folders */
    LEFT_OUT("attn.masked_bias"),
    END,
};

const formats_gguf_name formats_gguf_llama_names[] = {
    MODEL,
    SAME("lm_head", "output"),
    END,
};

const formats_gguf_name formats_gguf_llama_layer[] = {
    {"self_attn.q_proj", "attn_q", FORMATS_GGUF_QUERY_ROWS},
    {"self_attn.k_proj", "attn_k", FORMATS_GGUF_KEY_ROWS},
    SAME("self_attn.v_proj", "attn_v"),
    SAME("self_attn.o_proj", "attn_output"),
    NORMS,
    GATED_MLP,
    ROTATION,
    END,
};

const formats_gguf_name formats_gguf_qwen_layer[] = {
    ATTENTION, ATTENTION_NORMS, NORMS, GATED_MLP, ROTATION, END,
};

const formats_gguf_name formats_gguf_phi3_layer[] = {
    SAME("self_attn.qkv_proj", "attn_qkv"),
    SAME("self_attn.o_proj", "attn_output"),
    NORMS,
    SAME("mlp.gate_up_proj", "ffn_up"),
    SAME("mlp.down_proj", "ffn_down"),
    ROTATION,
    END,
};

const formats_gguf_name formats_gguf_glm4_layer[] = {
    ATTENTION,
    NORMS,
    SAME("post_self_attn_layernorm", "post_attention_norm"),
    SAME("post_mlp_layernorm", "post_ffw_norm"),
    SAME("mlp.gate_up_proj", "ffn_up"),
    SAME("mlp.down_proj", "ffn_down"),
    ROTATION,
    END,
};

const formats_gguf_name formats_gguf_olmo2_layer[] = {
    ATTENTION,
    ATTENTION_NORMS,
    SAME("post_attention_layernorm", "post_attention_norm"),
    SAME("post_feedforward_layernorm", "post_ffw_norm"),
    GATED_MLP,
    ROTATION,
    END,
};

const formats_gguf_name formats_gguf_starcoder2_layer[] = {
    ATTENTION, NORMS, SAME("mlp.c_fc", "ffn_up"), SAME("mlp.c_proj", "ffn_down"), ROTATION, END,
};

const formats_gguf_name formats_gguf_neox_names[] = {
    SAME("embed_in", "token_embd"),
    SAME("final_layer_norm", "output_norm"),
    SAME("embed_out", "output"),
    END,
};

const formats_gguf_name formats_gguf_neox_layer[] = {
    NORMS,
    {"attention.query_key_value", "attn_qkv", FORMATS_GGUF_HEAD_ROWS},
    SAME("attention.dense", "attn_output"),
    SAME("mlp.dense_h_to_4h", "ffn_up"),
    SAME("mlp.dense_4h_to_h", "ffn_down"),
    LEFT_OUT("attention"), /* attention.bias: a mask in old folders */
    LEFT_OUT("attention.masked_bias"),
    LEFT_OUT("attention.rotary_emb.inv_freq"),
    END,
};

const formats_gguf_name formats_gguf_gemma_names[] = {
    SAME("embed_tokens", "token_embd"),
    {"norm", "output_norm", FORMATS_GGUF_PLUS_ONE},
    LEFT_OUT("lm_head"), /* tied */
    END,
};

const formats_gguf_name formats_gguf_gemma_layer[] = {
    ATTENTION,
    {"input_layernorm", "attn_norm", FORMATS_GGUF_PLUS_ONE},
    {"post_attention_layernorm", "ffn_norm", FORMATS_GGUF_PLUS_ONE},
    GATED_MLP,
    END,
};

const formats_gguf_name formats_gguf_gemma2_layer[] = {
    ATTENTION,
    {"self_attn.q_norm", "attn_q_norm", FORMATS_GGUF_PLUS_ONE},
    {"self_attn.k_norm", "attn_k_norm", FORMATS_GGUF_PLUS_ONE},
    {"input_layernorm", "attn_norm", FORMATS_GGUF_PLUS_ONE},
    {"post_attention_layernorm", "post_attention_norm", FORMATS_GGUF_PLUS_ONE},
    {"pre_feedforward_layernorm", "ffn_norm", FORMATS_GGUF_PLUS_ONE},
    {"post_feedforward_layernorm", "post_ffw_norm", FORMATS_GGUF_PLUS_ONE},
    GATED_MLP,
    END,
};

const formats_gguf_name formats_gguf_gemma4_layer[] = {
    ATTENTION,
    ATTENTION_NORMS,
    SAME("input_layernorm", "attn_norm"),
    SAME("post_attention_layernorm", "post_attention_norm"),
    SAME("pre_feedforward_layernorm", "ffn_norm"),
    SAME("post_feedforward_layernorm", "post_ffw_norm"),
    GATED_MLP,
    {"layer_scalar", "layer_output_scale.weight", FORMATS_GGUF_WITHOUT_SUFFIX},
    END,
};

const formats_gguf_name formats_gguf_lfm2_names[] = {
    SAME("embed_tokens", "token_embd"),
    SAME("embedding_norm", "token_embd_norm"), /* the norm before the head, by this name */
    SAME("lm_head", "output"),
    END,
};

const formats_gguf_name formats_gguf_lfm2_layer[] = {
    SAME("self_attn.q_proj", "attn_q"),
    SAME("self_attn.k_proj", "attn_k"),
    SAME("self_attn.v_proj", "attn_v"),
    SAME("self_attn.out_proj", "attn_output"),
    SAME("self_attn.q_layernorm", "attn_q_norm"),
    SAME("self_attn.k_layernorm", "attn_k_norm"),
    {"conv.conv", "shortconv.conv", FORMATS_GGUF_KERNEL},
    SAME("conv.in_proj", "shortconv.in_proj"),
    SAME("conv.out_proj", "shortconv.out_proj"),
    SAME("operator_norm", "attn_norm"),
    SAME("ffn_norm", "ffn_norm"),
    SAME("feed_forward.w1", "ffn_gate"),
    SAME("feed_forward.w3", "ffn_up"),
    SAME("feed_forward.w2", "ffn_down"),
    ROTATION,
    END,
};

const formats_gguf_name formats_gguf_qwen35_names[] = {
    SAME("embed_tokens", "token_embd"),
    {"norm", "output_norm", FORMATS_GGUF_PLUS_ONE},
    SAME("lm_head", "output"),
    END,
};

const formats_gguf_name formats_gguf_qwen35_layer[] = {
    ATTENTION,
    {"self_attn.q_norm", "attn_q_norm", FORMATS_GGUF_PLUS_ONE},
    {"self_attn.k_norm", "attn_k_norm", FORMATS_GGUF_PLUS_ONE},
    {"input_layernorm", "attn_norm", FORMATS_GGUF_PLUS_ONE},
    {"post_attention_layernorm", "post_attention_norm", FORMATS_GGUF_PLUS_ONE},
    {"linear_attn.in_proj_qkv", "attn_qkv", FORMATS_GGUF_QKV_ROWS},
    {"linear_attn.in_proj_z", "attn_gate", FORMATS_GGUF_VALUE_ROWS},
    {"linear_attn.in_proj_a", "ssm_alpha", FORMATS_GGUF_VALUE_ROWS},
    {"linear_attn.in_proj_b", "ssm_beta", FORMATS_GGUF_VALUE_ROWS},
    {"linear_attn.conv1d", "ssm_conv1d", FORMATS_GGUF_QKV_KERNEL},
    {"linear_attn.dt_bias", "ssm_dt.bias", FORMATS_GGUF_VALUE_VECTOR},
    {"linear_attn.A_log", "ssm_a", FORMATS_GGUF_DECAY},
    SAME("linear_attn.norm", "ssm_norm"), /* multiplies by its weight */
    {"linear_attn.out_proj", "ssm_out", FORMATS_GGUF_VALUE_COLUMNS},
    GATED_MLP,
    ROTATION,
    END,
};
