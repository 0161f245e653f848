/* Names of heads' weights in transformers' classes. */
#include <string.h>

#include "model/registry.h"

static const struct {
    const char *prefix;
    model_place place;
} places[] = {
    {"lm_head.", MODEL_HEAD},
    {"embed_out.", MODEL_HEAD},
    {"score.", MODEL_HEAD},
    {"classifier.", MODEL_HEAD},
    {"cls.", MODEL_HEAD},
    {"lm_predictions.", MODEL_HEAD},
    {"mask_predictions.", MODEL_HEAD},
    {"vocab_transform.", MODEL_HEAD},
    {"vocab_layer_norm.", MODEL_HEAD},
    {"vocab_projector.", MODEL_HEAD},
    {"decoder.weight", MODEL_HEAD}, /* ModernBERT's; OPT's layers are in `decoder.` too */
    {"decoder.bias", MODEL_HEAD},
    {"qa_outputs.", MODEL_HEAD},
    {"pooler.", MODEL_BEFORE_HEAD},
    {"pre_classifier.", MODEL_BEFORE_HEAD},
    {"head.", MODEL_BEFORE_HEAD},
};

model_place model_place_of(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    if (length && !strncmp(name, prefix, length)) name += length;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!strncmp(name, places[i].prefix, strlen(places[i].prefix))) return places[i].place;
    }
    return MODEL_BODY;
}
