/* Which weights do not decay by the Hugging Face Trainer's rule (get_decay_parameter_names): those
 * of LayerNorm, and those whose names say that they are biases or of a norm. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "optim/optim.h"

/* Letters of any case. */
static bool contains(const char *name, const char *word) {
    size_t length = strlen(word);
    for (; strlen(name) >= length; name++)
        if (strncasecmp(name, word, length) == 0) return true;
    return false;
}

/* Whether a part of the name between points is "norm", or ends with "_norm". */
static bool has_norm_part(const char *name) {
    while (*name) {
        size_t length = strcspn(name, ".");
        const char *end = name + length;
        if (length == 4 && strncasecmp(name, "norm", 4) == 0) return true;
        if (length >= 5 && strncasecmp(end - 5, "_norm", 5) == 0) return true;
        name = *end ? end + 1 : end;
    }
    return false;
}

void optim_mark_undecayed(const sifr_model *model, bool *undecayed) {
    for (size_t w = 0; w < model->weight_count; w++) {
        const char *name = model->weights[w].name;
        undecayed[w] = contains(name, "bias") || contains(name, "layernorm") ||
                       contains(name, "rmsnorm") || has_norm_part(name);
    }
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        for (int i = 0; node->op->undecayed && i < DEVICE_WEIGHTS; i++)
            if (node->w[i] >= 0) undecayed[node->w[i]] = true;
    }
}
