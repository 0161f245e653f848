/* What llama.cpp calls the parts of each family of models: a row for each model_type. */
#ifndef FORMATS_GGUF_FAMILY_H
#define FORMATS_GGUF_FAMILY_H

#include <jansson.h>

#include "formats/gguf/gguf_vocab.h"
#include "formats/gguf/gguf_write.h"

/* What is done with a weight on its way. */
typedef enum formats_gguf_change {
    FORMATS_GGUF_AS_IT_IS,
    FORMATS_GGUF_TRANSPOSED,     /* a Conv1D weight, [in, out] */
    FORMATS_GGUF_QUERY_ROWS,     /* rows of each query head: halves of a rotation interleaved */
    FORMATS_GGUF_KEY_ROWS,       /* the same for key heads */
    FORMATS_GGUF_HEAD_ROWS,      /* q, k, v of each head, to all q, all k, all v */
    FORMATS_GGUF_PLUS_ONE,       /* a norm that multiplies by 1 + w */
    FORMATS_GGUF_POSITIONS,      /* a table of positions, which stays fp32 */
    FORMATS_GGUF_WITHOUT_SUFFIX, /* a tensor whose name has no ".weight" */
    FORMATS_GGUF_KERNEL,         /* [columns, 1, taps] to [columns, taps], which stays fp32 */
    /* Linear attention: transformers has the value heads of a key head beside each other, llama.cpp
     * the first of each key head, then the second of each. */
    FORMATS_GGUF_VALUE_ROWS,
    FORMATS_GGUF_VALUE_VECTOR, /* the same; the name has no ".weight" */
    FORMATS_GGUF_DECAY,        /* A_log, likewise: -exp of it */
    FORMATS_GGUF_VALUE_COLUMNS,
    FORMATS_GGUF_QKV_ROWS,   /* rows of values behind those of queries and keys */
    FORMATS_GGUF_QKV_KERNEL, /* a kernel of such columns */
    FORMATS_GGUF_LEFT_OUT
} formats_gguf_change;

typedef struct formats_gguf_name {
    const char *from, *to; /* without ".weight" and ".bias" */
    formats_gguf_change change;
} formats_gguf_name;

typedef struct formats_gguf_family formats_gguf_family;

/* Metadata from config.json, which has the defaults in it; `where`: its path. */
typedef sifr_status formats_gguf_keys(const formats_gguf_family *family, json_t *config,
                                      formats_gguf_meta *meta, const char *where,
                                      sifr_error *error);

struct formats_gguf_family {
    const char *model_type, *architecture; /* config.json's */
    const char *name;                      /* llama.cpp's */
    const char *prefix; /* of names in the folder, absent in some old ones: "transformer." */
    const char *layers; /* behind it, of a layer: "h." */
    const formats_gguf_name *names, *layer_names; /* each ends with a NULL */
    const char *defaults;                         /* of config.json: a JSON object */
    formats_gguf_vocab_kind vocab;
    bool attends_in_some; /* of its layers, by "layer_types", which is complete */
    bool fills_head_dim;  /* transformers writes a "head_dim" where there is none */
    bool no_file_type;    /* the converter writes none */
    formats_gguf_keys *keys;
};

/* The row for a config.json; SIFR_USAGE for a family that has none. */
sifr_status formats_gguf_family_find(const json_t *config, const char *where,
                                     const formats_gguf_family **out,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* The name and change of a weight. SIFR_USAGE for one that the family does not have. */
sifr_status formats_gguf_family_name(const formats_gguf_family *family, const char *weight,
                                     char out[FORMATS_GGUF_NAME_LIMIT], formats_gguf_change *change,
                                     sifr_error *error) SIFR_MUST_CHECK;

#endif
