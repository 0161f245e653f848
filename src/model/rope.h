/* Rotary positions: from the keys of config.json to the angle by which one position rotates each
 * pair of a head's elements, as transformers' modeling_rope_utils.py has it. */
#ifndef MODEL_ROPE_H
#define MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sifr/model.h"

/* From MODEL_ROPE_YARN on, kinds have an original_max_position. */
typedef enum model_rope_kind {
    MODEL_ROPE_DEFAULT,
    MODEL_ROPE_LINEAR,
    MODEL_ROPE_DYNAMIC,      /* the base grows with sequences longer than max_position */
    MODEL_ROPE_PROPORTIONAL, /* the first pairs of a whole head turn, the others stay */
    MODEL_ROPE_YARN,
    MODEL_ROPE_LONGROPE, /* other factors for sequences longer than original_max_position */
    MODEL_ROPE_LLAMA3
} model_rope_kind;

#define MODEL_LIMIT_ROPE_FACTORS 256

/* The rule. It has no padding: equal rules have equal bytes. */
typedef struct model_rope {
    double theta, factor; /* factor: 1 where the kind has none; -1: they turn the other way */
    double max_position, original_max_position;
    double low_freq_factor, high_freq_factor; /* llama3 */
    double beta_fast, beta_slow;              /* yarn */
    double attention_factor;                  /* of cosines and sines; 0: 1 */
    double query_beta;                        /* Ministral 3's llama_4_scaling_beta */
    int64_t rotary_dim;                       /* elements of a head that rotate */
    int64_t turning;                          /* proportional: pairs of them that turn */
    int32_t kind;                             /* model_rope_kind */
    int32_t truncate;                         /* yarn: the ramp begins and ends at whole pairs */
    int32_t interleaved;                      /* pairs are two neighbours */
    /* Phi-3: "yarn" means longrope, and keys that are cached when a sequence becomes longer than
     * original_max_position are made anew. */
    int32_t phi3;
    float short_factor[MODEL_LIMIT_ROPE_FACTORS], long_factor[MODEL_LIMIT_ROPE_FACTORS];
} model_rope;

/* Whether angles depend on the sequence's length. */
bool model_rope_varies(const model_rope *rope);

/* The angle of pair i for positions of a sequence of `length` tokens. Of those kinds that vary,
 * transformers takes the length from the highest position of a forward call. */
double model_rope_frequency(const model_rope *rope, int64_t length, int64_t i);

/* What cosines and sines of a position are multiplied by. */
double model_rope_scale(const model_rope *rope, int64_t position);

const char *model_rope_kind_name(model_rope_kind kind);

/* The op rope by a rule, for the architectures. */
sifr_value model_rotate(sifr_model *model, sifr_value x, int64_t head_dim, const model_rope *rope);

#endif
