/* A loss of the caller's: the section "own_loss", which is there once a program gives a function
 * (docs/c-interface.md). */
#include <stdio.h>

#include "train/objective/objectives.h"

static const char memory_key[] = "sifr.own_loss.memory";

static bool asked(const sifr_config *config) {
    return config_get_number(config, memory_key) > 0;
}

/* Before any work: an engine without the function refuses as well. */
static sifr_status check(const sifr_config *config, sifr_error *error) {
    if (config->loss) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: the loss is a function of a program's, and none was given: call "
                     "sifr_config_set_loss, or give loss= in Python; leave the key out "
                     "to learn the labels",
                     memory_key);
}

static sifr_status choose(const sifr_config *config, model_objective *out, sifr_error *error) {
    (void)error;
    *out = (model_objective){.row = &model_objective_own,
                             .own = {.loss = config->loss,
                                     .user = config->loss_user,
                                     .memory = (int64_t)config_get_number(config, memory_key)}};
    return SIFR_OK;
}

/* How rows are cut into chunks decides the sums of the head's gradients. */
static void describe(const model_objective *objective, bool undropped, char *out, size_t size) {
    (void)undropped;
    snprintf(out, size, "%lld bytes", (long long)objective->own.memory);
}

const train_objective train_own_loss = {.tasks = 1u << MODEL_NEXT_TOKEN,
                                        .key = "own_loss",
                                        .keys = {memory_key},
                                        .asked = asked,
                                        .check = check,
                                        .choose = choose,
                                        .says =
                                            "own_loss: the loss is the program's; a run has the "
                                            "same bits again while it is a function of what it "
                                            "is given",
                                        .chats = true,
                                        .describe = describe};
