/* Low-rank adapters (LoRA, Hu et al. 2021), by the keys of PEFT's LoraConfig. An adapted product
 * x W^T + b becomes x W^T + b + scale ((x A^T) B^T), where W and b are frozen. The description gets
 * A and B as weights of the same unit, "<module>.lora_A.weight" and "<module>.lora_B.weight", and
 * the ops that multiply by them. So only the builder has code for adapters.
 */
#ifndef MODEL_LORA_H
#define MODEL_LORA_H

#include <jansson.h>

#include "model/description.h"
#include "model/model_config.h"

/* "init_lora_weights": true, "gaussian", false. */
typedef enum model_lora_init {
    MODEL_LORA_KAIMING,  /* A uniform, B zero */
    MODEL_LORA_GAUSSIAN, /* A normal, B zero */
    MODEL_LORA_RANDOM    /* both uniform */
} model_lora_init;

typedef enum model_lora_bias {
    MODEL_LORA_NO_BIAS,
    MODEL_LORA_ALL_BIASES,
    MODEL_LORA_ITS_BIASES /* of adapted products */
} model_lora_bias;

typedef struct model_lora {
    json_t *json; /* as it was read; the patterns below lie in it */
    char where[320];
    int64_t r;
    bool undropped; /* a run switched its dropout off */
    double alpha, dropout;
    bool rslora, dora;
    bool stored; /* read from a folder, whose modules to save may be missing, as in PEFT */
    model_lora_init init;
    model_lora_bias bias;
    /* Modules: a regular expression, or a list of endings of their names; NULL: none is given. */
    const json_t *targets, *excluded;
    const json_t *ranks, *alphas;  /* objects by pattern */
    const json_t *layers;          /* numbers; NULL: all layers */
    const json_t *layers_patterns; /* names; NULL: any */
} model_lora;

/* Reads the keys of `json`, which is kept. Messages, SIFR_USAGE, begin with `where`: they name keys
 * that are not built, and those that LoraConfig lacks. */
sifr_status model_lora_read(json_t *json, const char *where, model_lora *out,
                            sifr_error *error) SIFR_MUST_CHECK;
/* The same of DIR/adapter_config.json. */
sifr_status model_lora_load(const char *directory, model_lora *out,
                            sifr_error *error) SIFR_MUST_CHECK;
void model_lora_free(model_lora *lora); /* harmless on a zeroed one */

/* adapter_config.json as PEFT writes it for this model, which was made with `lora`: a new object;
 * NULL where memory ran out. `base` is the base model's folder. */
json_t *model_lora_describe(const model_lora *lora, const sifr_model *model,
                            const model_config *config, const char *base);

/* Sets the target modules that PEFT has for a model type, where none are given. */
sifr_status model_lora_complete(const model_lora *lora, const char *model_type, const json_t **out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Adds a module to those that are trained as a whole and saved ("modules_to_save"). */
#define MODEL_LORA_SAVED "modules_to_save"
sifr_status model_lora_save(const model_lora *lora, const char *module,
                            sifr_error *error) SIFR_MUST_CHECK;
/* The same of heads for labels, by the names that PEFT has for them. */
sifr_status model_lora_save_heads(const model_lora *lora, sifr_error *error) SIFR_MUST_CHECK;
/* Whether adapter_config.json says that the adapter is for labels, and for which. */
bool model_lora_task(const model_lora *lora, model_task *out);

/* Which modules are adapted, and how: for the builder. `module` is the name of a weight without
 * its last part. */
bool model_lora_targets(const model_lora *lora, const json_t *targets, const char *module);
int64_t model_lora_rank(const model_lora *lora, const char *module);
double model_lora_alpha(const model_lora *lora, const char *module);
double model_lora_scale(const model_lora *lora, const char *module);

/* y = x w^T + bias of a product in a model that is being built with adapters: y, or what it
 * becomes.
 */
sifr_value model_adapt(sifr_model *model, sifr_value x, sifr_weight weight, sifr_weight bias,
                       sifr_value y, bool transposed);
/* Whether y is to come without the bias, which model_adapt adds. */
bool model_adapt_adds_bias(const sifr_model *model, sifr_weight weight);

/* x w^T without bias and without an adapter. */
sifr_value model_product(sifr_model *model, sifr_value x, sifr_weight weight, bool transposed);

/* DoRA: z, a product with its adapter and without bias, gets other magnitudes of its columns. */
typedef struct model_magnitude_args {
    sifr_weight weight, a, b, magnitude, bias; /* bias: may be left out */
    double scale;
    bool transposed;
} model_magnitude_args;
sifr_value model_magnitude(sifr_model *model, sifr_value z, const model_magnitude_args *args);
/* Freezes what is not trained, before the model is finished; records what fits no module. */
void model_freeze_base(sifr_model *model, const model_config *config);

/* Whether the model has adapters. All its trained weights are then in the adapter's files. */
bool model_is_adapter(const sifr_model *model);
/* The name of such a weight in the files; out has MODEL_LORA_NAME bytes. Returns out. */
#define MODEL_LORA_NAME 192
#define MODEL_LORA_PREFIX "base_model.model."
const char *model_lora_tensor(const model_weight *weight, char *out);
/* The same by each name that the weight of a text model beside a tower may have; false: there are
 * fewer (formats_multimodal_spelling). */
bool model_lora_spelling(const model_weight *weight, int spelling, char *out);

/* --- lora_text.c --- */

/* Of a text model beside a tower: names in adapter_config.json `out` the modules of this model
 * alone, by the class's names, which PEFT finds nowhere in the tower. False: memory ran out. */
bool model_lora_name_text(const model_lora *lora, const sifr_model *model,
                          const model_config *config, json_t *out);

/* --- lora_pattern.c --- */

/* Whether a regular expression of Python can be used: SIFR_USAGE if not. */
sifr_status model_pattern_check(const char *pattern, const char *where, const char *key,
                                sifr_error *error) SIFR_MUST_CHECK;
/* re.fullmatch(pattern, text); with `anywhere` in a name, as PEFT's patterns by module have it:
 * re.match("(.*\.)?(pattern)$", text). */
bool model_pattern_matches(const char *pattern, bool behind_dot, const char *text);

#endif
