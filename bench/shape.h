/* The models that benches train: 124 million parameters (GPT-2) and 134 million (a Llama of the
 * same depth and width, 32,000 words, its own head). */
#ifndef BENCH_SHAPE_H
#define BENCH_SHAPE_H

#include <stdbool.h>
#include <string.h>

#include "model/model_config.h"

static inline model_config shape_of(bool llama, int64_t length) {
    model_config c = {.vocab_size = llama ? 32000 : 50257,
                      .hidden_size = 768,
                      .num_hidden_layers = 12,
                      .num_attention_heads = 12,
                      .num_key_value_heads = 12,
                      .head_dim = 64,
                      .intermediate_size = llama ? 2048 : 3072,
                      .max_position_embeddings = length,
                      .activation = llama ? MODEL_SILU : MODEL_GELU_TANH,
                      .norm_eps = 1e-5,
                      .rope.theta = 1e4,
                      .rope.factor = 1,
                      .tie_word_embeddings = !llama,
                      .initializer_range = 0.02};
    strcpy(c.model_type, llama ? "llama" : "gpt2");
    return c;
}

#endif
