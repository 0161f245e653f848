/* The registry of architectures: each builds the description for a config.json and defines the
 * names of weights in files.
 */
#ifndef MODEL_REGISTRY_H
#define MODEL_REGISTRY_H

#include "formats/model_config.h"
#include "model/description.h"

typedef struct model_architecture {
    const char *model_type; /* of config.json */
    /* Calls the builder; mistakes stay in the model until sifr_model_finish. */
    void (*build)(sifr_model *model, const formats_model_config *config);
    /* The prefix that names of weights may lack in older files (without it they are the same). */
    const char *prefix;
    /* Suffixes of tensors in files that are not weights: buffers of old versions. */
    const char *ignored[4];
    const char *head; /* name of the head's weight: absent from files, or a copy, where tied */
    const char *embedding;
    /* Positions are rows of a table, so there is no position beyond max_position_embeddings;
     * otherwise they are rotary angles, which have no end. */
    bool learned_positions;
} model_architecture;

/* NULL for a type that is not supported. */
const model_architecture *model_architecture_find(const char *model_type);

/* The finished description for a config; free with sifr_model_free. */
sifr_status model_from_config(const formats_model_config *config, sifr_model **out,
                              sifr_error *error) SIFR_MUST_CHECK;

void model_build_gpt2(sifr_model *model, const formats_model_config *config);
void model_build_llama(sifr_model *model, const formats_model_config *config);

/* "layers.3.mlp" from "layers.%d.mlp" and 3; out has MODEL_NAME_LENGTH bytes. Returns out. */
#define MODEL_NAME_LENGTH 128
const char *model_name(char *out, const char *format, int64_t layer);

#endif
