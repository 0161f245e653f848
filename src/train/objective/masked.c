/* Masked words of text. */
#include "train/objective/objectives.h"

static void read_masked(const data_labelled *labelled, double mask_probability,
                        data_set_options *options) {
    (void)labelled;
    options->mask_probability = mask_probability;
}

const train_objective train_masked = {
    .tasks = 1u << MODEL_MASKED_TOKEN, .read = read_masked, .perplexity = true};
