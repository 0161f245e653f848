/* Reading config.json, for model_config.c and the readers of the architectures. Each function reads
 * a key, checks its range, and names file, key and value in the message of an error, SIFR_USAGE.
 * Private to model/. */
#ifndef MODEL_MODEL_READER_H
#define MODEL_MODEL_READER_H

#include <jansson.h>

#include "device/kernels/row_attributes.h"
#include "model/model_config.h"

/* Bounds that keep every count of parameters or bytes made from a config far from 2^63. */
#define MODEL_LIMIT_WIDTH (INT64_C(1) << 18)
#define MODEL_LIMIT_INNER (INT64_C(1) << 20)
#define MODEL_LIMIT_HEADS 65536
#define MODEL_LIMIT_TAPS DEVICE_MOST_TAPS
#define MODEL_LIMIT_ID INT32_MAX

struct model_architecture;

typedef struct model_reader {
    const json_t *json;
    const char *name; /* of the file */
    sifr_error *error;
    const struct model_architecture *architecture;
    const model_choice *choice; /* NULL: none */
} model_reader;

/* NULL where the key is absent or null. */
const json_t *model_member(const json_t *object, const char *key);

/* Integers in least … most. `alias` (may be NULL) is another spelling of the same key. */
sifr_status model_read_int(const model_reader *r, const char *key, const char *alias,
                           int64_t fallback, int64_t least, int64_t most,
                           int64_t *out) SIFR_MUST_CHECK;
/* Numbers in least … most, the upper end left out where `open` is set; NaN never is. */
sifr_status model_read_double(const model_reader *r, const char *key, double fallback, double least,
                              double most, bool open, double *out) SIFR_MUST_CHECK;
sifr_status model_read_double_of(const model_reader *r, const json_t *object, const char *key,
                                 double fallback, double least, double most, bool open,
                                 double *out) SIFR_MUST_CHECK;
sifr_status model_read_bool(const model_reader *r, const char *key, bool fallback,
                            bool *out) SIFR_MUST_CHECK;
/* `known`: a bit for each activation that the architecture has a builder for. */
#define MODEL_ONE_OF(activation) (1u << (activation))
sifr_status model_read_activation(const model_reader *r, const char *key, unsigned known,
                                  model_activation_kind fallback,
                                  model_activation_kind *out) SIFR_MUST_CHECK;
/* Absent: the fallback; null: none. Ids at or past the vocabulary's end are common in small models
 * that keep the defaults, and never match a token. */
sifr_status model_read_token_id(const model_reader *r, const char *key, int64_t fallback,
                                int64_t *out) SIFR_MUST_CHECK;
/* A number or a list of numbers. */
sifr_status model_read_eos(const model_reader *r, int64_t fallback,
                           model_config *out) SIFR_MUST_CHECK;
/* head_dim and max_position_embeddings are read. "rope_parameters" (transformers 5) or
 * "rope_scaling" (4), "rope_theta" there or at the top; out->rope.theta is the default. */
sifr_status model_read_rope(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
/* All but rope_theta, from an object that stands under `key`; NULL: the default kind. */
sifr_status model_read_rope_of(const model_reader *r, const json_t *object, const char *key,
                               const model_config *config, model_rope *out) SIFR_MUST_CHECK;
/* The same where layers with a window have angles of their own: out->local_rope. Both stand in
 * "rope_parameters" as "full_attention" and "sliding_attention"; older folders have rope_scaling
 * and rope_theta for the first, and the base `local_theta` (NULL: none) for the other. Windows are
 * read.
 */
sifr_status model_read_layer_ropes(const model_reader *r, const char *local_theta,
                                   model_config *out) SIFR_MUST_CHECK;

/* "sliding_window", least 1: null or absent without a fallback is none, 0. */
sifr_status model_read_window(const model_reader *r, int64_t fallback,
                              model_config *out) SIFR_MUST_CHECK;
/* "layer_types", one of "full_attention" and "sliding_attention" for each layer: sets or clears
 * MODEL_LAYER_WINDOW, which stays as it is where the key is absent. num_hidden_layers and
 * sliding_window are read. */
sifr_status model_read_layer_types(const model_reader *r, model_config *out) SIFR_MUST_CHECK;

/* Whether the architecture reads a key that others are refused for (model_architecture.keys). */
bool model_reads(const model_reader *r, const char *key);

/* The message for a value that is not supported. */
sifr_status model_refuse(const model_reader *r, const char *key, const char *why);

/* The message for a model_type (NULL: none) that is not in the registry, with the reason where it
 * is known. */
sifr_status model_refuse_type(const model_reader *r, const char *type);

/* The task, before the architecture's own reader, which may look at it; and num_labels and problem
 * of one that has labels. What the caller chose comes before what the file says. */
sifr_status model_read_task(const model_reader *r, model_config *out) SIFR_MUST_CHECK;
sifr_status model_read_labels(const model_reader *r, model_config *out) SIFR_MUST_CHECK;

/* Refuses keys that would change the mathematics, but for those that the architecture reads itself
 * (model_architecture.keys). Before and after the architecture's own reader. */
sifr_status model_check_keys(const model_reader *r) SIFR_MUST_CHECK;
sifr_status model_check_scales(const model_reader *r, const model_config *c) SIFR_MUST_CHECK;

/* Refuses values of types that transformers' class of a model_type refuses, whether they are used
 * here or not; nothing of a type that is not known. After all else, whose messages say more. */
sifr_status model_check_types(const model_reader *r, const char *model_type) SIFR_MUST_CHECK;

#endif
