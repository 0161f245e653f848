/* Labels of sequences or of tokens, and numbers (a regression). */
#include <string.h>

#include "base/hash.h"
#include "train/evaluate/predictions.h"
#include "train/objective/objectives.h"

static void read_labelled(const data_labelled *labelled, double mask_probability,
                          data_set_options *options) {
    (void)mask_probability;
    options->labelled = labelled;
}

/* The task, the labels and what they are. */
static bool put_labels(const engine_folder *folder, json_t *must_match) {
    const model_config *config = &folder->config;
    char hex[17];
    uint64_t hash = 0;
    for (int64_t i = 0; i < folder->labels.count; i++) {
        const char *name = folder->labels.names[i];
        hash = base_hash_seeded(name, strlen(name) + 1, hash);
    }
    base_hash_hex(hash, hex);
    bool whole =
        json_object_set_new(must_match, "task", json_string(model_task_name(config->task))) == 0 &&
        json_object_set_new(must_match, "labels (hash)", json_string(hex)) == 0;
    if (!whole || config->task != MODEL_SEQUENCE_CLASSES) return whole;
    return json_object_set_new(must_match, "problem_type",
                               json_string(model_problem_name(config->problem))) == 0;
}

const train_objective train_classes = {
    .tasks = 1u << MODEL_SEQUENCE_CLASSES | 1u << MODEL_TOKEN_CLASSES,
    .sample = "example",
    .read = read_labelled,
    .put_labels = put_labels,
    .measures = {"accuracy", "f1", "f1_macro", "f1_micro", "matthews_correlation", "precision",
                 "recall", "mse", "pearson", "spearman"},
    .evaluated = &train_measure_predictions};
