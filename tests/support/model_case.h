/* Descriptions of small models that tests begin with, and change where they need something else. */
#ifndef SUPPORT_MODEL_CASE_H
#define SUPPORT_MODEL_CASE_H

#include "model/model_config.h"

/* A Llama of 2 blocks, hidden 40, grouped-query attention (4 heads on 2), its own head; 97 words,
 * 16 positions. Sizes that no rank count divides. */
static inline model_config model_case_llama(void) {
    return (model_config){.model_type = "llama",
                          .vocab_size = 97,
                          .hidden_size = 40,
                          .num_hidden_layers = 2,
                          .num_attention_heads = 4,
                          .num_key_value_heads = 2,
                          .head_dim = 10,
                          .intermediate_size = 56,
                          .max_position_embeddings = 16,
                          .activation = MODEL_SILU,
                          .norm_eps = 1e-5,
                          .rope.theta = 1e4,
                          .rope.factor = 1,
                          .initializer_range = 0.1};
}

/* A Llama like that, but with `blocks` blocks of hidden 64, 4 heads of queries, keys and values,
 * and `words` words. */
static inline model_config model_case_blocks(int64_t blocks, int64_t words, int64_t intermediate) {
    model_config c = model_case_llama();
    c.vocab_size = words;
    c.hidden_size = 64;
    c.num_hidden_layers = blocks;
    c.num_key_value_heads = 4;
    c.head_dim = 16;
    c.intermediate_size = intermediate;
    return c;
}

#endif
