/* Folders of models with a vision or an audio tower: where their text model stands, in config.json
 * and in the names of tensors. What is not of the text model is carried along, never read.
 *
 * transformers has written the names in two ways, and reads both. A weight of the text model has
 * here the name that it has in the class that config.json names, so that adapters have the names
 * that PEFT expects:
 *
 *     model.language_model.layers.0.…   lm_head.weight                  the class; newer files
 *     language_model.model.layers.0.…   language_model.lm_head.weight   older files, LLaVA's kind
 *     model.layers.0.…                  lm_head.weight                  Qwen2.5-VL's files
 */
#ifndef FORMATS_MULTIMODAL_H
#define FORMATS_MULTIMODAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

enum { FORMATS_MEDIA_LIMIT = 4, FORMATS_TEXT_KINDS = 4 };

typedef struct formats_multimodal {
    const char *model_type;
    const char *body; /* what names of the class have in place of "model." */
    /* The types that text_config may have, that of an absent one first, and those of the plain
     * decoders with the same mathematics, with their classes. */
    struct {
        const char *type, *plain, *plain_class;
    } texts[FORMATS_TEXT_KINDS];
    /* JSON objects for the plain decoder's config: keys that differ when they are absent, and keys
     * that the class has fixed. NULL: none. */
    const char *defaults, *fixed;
    bool tied;       /* "tie_word_embeddings" where it is absent */
    const char *tie; /* another name of that key, which goes first; NULL: none */
    bool text_ties;  /* text_config's also ties, as files of older versions have it */
    bool flat;       /* without text_config its keys stand at the top */
    bool even_heads; /* a head has hidden_size / num_attention_heads elements, whatever is said */
    bool sections;   /* rotary positions come in sections (mrope), which are the same for text */
    /* Keys of ids that stand for an image, a video or a sound, with the ids where they are absent:
     * -1 for none. */
    struct {
        const char *key;
        int id;
    } media[FORMATS_MEDIA_LIMIT];
} formats_multimodal;

enum {
    FORMATS_GEMMA3,
    FORMATS_MISTRAL3,
    FORMATS_QWEN2_5_VL,
    FORMATS_QWEN3_VL,
    FORMATS_QWEN3_5,
    FORMATS_SMOLVLM,
    FORMATS_INTERNVL,
    FORMATS_GLM4V,
    FORMATS_LFM2_VL,
    FORMATS_GEMMA4,
    FORMATS_GEMMA4_UNIFIED,
    FORMATS_MULTIMODALS
};
extern const formats_multimodal formats_multimodals[FORMATS_MULTIMODALS];

/* NULL for a type that is not among them. */
const formats_multimodal *formats_multimodal_find(const char *model_type);

/* The config.json of the text model alone, as its plain decoder has it: a new object. `where` is
 * the file's path. SIFR_USAGE for a config without its text part, or with one of another type. */
sifr_status formats_multimodal_text(const formats_multimodal *kind, const json_t *config,
                                    const char *where, json_t **out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* The ids in text that stand for something else, with their keys; *count of them. SIFR_USAGE for a
 * value that is no id. */
typedef struct formats_media {
    const char *key;
    int id;
} formats_media;
sifr_status formats_multimodal_media(const formats_multimodal *kind, const json_t *config,
                                     const char *where, formats_media out[FORMATS_MEDIA_LIMIT],
                                     int *count, sifr_error *error) SIFR_MUST_CHECK;

#define FORMATS_SPELLING_LENGTH 256
/* The spellings of a name of the class: 0 is the name itself. False: there are fewer, or it is no
 * name of a text model. Modules are spelt like weights. */
bool formats_multimodal_spelling(const char *name, int spelling, char out[FORMATS_SPELLING_LENGTH]);
/* The plain decoder's name of a weight or module, in any of its spellings; NULL: it is none of the
 * text model. Returns out. */
const char *formats_multimodal_plain(const char *name, char out[FORMATS_SPELLING_LENGTH]);

#endif
