/* Small models of each kind, and data for them. Included by one test file each. */
#ifndef ENGINE_SMALL_MODEL_H
#define ENGINE_SMALL_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/registry.h"
#include "sifr/engine.h"

enum { SMALL_WORDS = 331 };

typedef enum small_kind {
    SMALL_LLAMA, /* grouped-query attention, own head */
    SMALL_TIED,  /* a Llama with a tied head and biases */
    SMALL_GPT2,  /* tied head, dropout everywhere */
    SMALL_KINDS
} small_kind;

static const char *const small_names[] = {"llama", "llama, tied", "gpt2"};

static const char *const small_configs[] = {
    "{\"model_type\": \"llama\", \"vocab_size\": 331, \"hidden_size\": 64,"
    " \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    " \"intermediate_size\": 152, \"max_position_embeddings\": 128}",
    "{\"model_type\": \"llama\", \"vocab_size\": 331, \"hidden_size\": 48,"
    " \"num_hidden_layers\": 3, \"num_attention_heads\": 3, \"num_key_value_heads\": 1,"
    " \"intermediate_size\": 104, \"max_position_embeddings\": 128, \"attention_bias\": true,"
    " \"tie_word_embeddings\": true}",
    "{\"model_type\": \"gpt2\", \"vocab_size\": 331, \"n_embd\": 64, \"n_layer\": 2,"
    " \"n_head\": 4, \"n_positions\": 128, \"embd_pdrop\": 0.1, \"resid_pdrop\": 0.1,"
    " \"attn_pdrop\": 0.1}"};

static inline sifr_model *small_model(small_kind kind) {
    model_config config;
    sifr_error error = {0};
    sifr_model *model = NULL;
    const char *text = small_configs[kind];
    if (model_config_parse(text, strlen(text), "test", &config, &error) != SIFR_OK ||
        model_from_config(&config, &model, &error) != SIFR_OK) {
        fail_msg("%s", error.message);
    }
    return model;
}

static inline sifr_engine *small_engine(const sifr_model *model, const sifr_settings *options) {
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    if (sifr_engine_create(model, options, &engine, &error) != SIFR_OK ||
        sifr_engine_initialise(engine, 7, &error) != SIFR_OK) {
        fail_msg("%s", error.message);
    }
    return engine;
}

/* Ids and labels of step `step`: functions of their place alone; one label in seven is left out. */
static inline void small_batch(int64_t step, int64_t count, int32_t *tokens, int32_t *labels) {
    for (int64_t i = 0; i < count; i++) {
        base_random4 r = base_philox(99, (uint64_t)i, (uint64_t)step);
        tokens[i] = (int32_t)(r.v[0] % SMALL_WORDS);
        labels[i] = r.v[2] % 7 == 0 ? -100 : (int32_t)(r.v[1] % SMALL_WORDS);
    }
}

#endif
