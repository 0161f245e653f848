/* The "tensor_parallel" section: how many ranks divide matrices, and so share a batch. */
#include <stdio.h>

#include "config/config_private.h"

static const char *const sizes[] = {"tensor_parallel.size", "tensor_parallel.autotp_size",
                                    "tensor_parallel.tp.tp_size"};
static const char split[] = "tensor_parallel.vocab_parallel_lm_head";
static const char overlaps[] = "tensor_parallel.tp_overlap_comm";
static const char partitions[] = "activation_checkpointing.partition_activations";
enum { SIZES = sizeof sizes / sizeof *sizes };

static bool is_off(const sifr_config *config) {
    return config_setting_given(config, "tensor_parallel.enabled") &&
           !config_is_true(config, "tensor_parallel.enabled");
}

/* The key that gives it; NULL: none gives more than one rank. */
static const char *size_key(const sifr_config *config) {
    for (int i = 0; i < SIZES; i++)
        if (config_setting_int(config, sizes[i]) > 1) return sizes[i];
    return NULL;
}

int64_t config_tensor_ranks(const sifr_config *config, const char **key) {
    *key = is_off(config) ? NULL : size_key(config);
    return *key ? config_setting_int(config, *key) : 1;
}

bool config_opens_tensors(const sifr_config *config) {
    bool open = false;
    for (int i = 0; i < SIZES; i++)
        open |= config_value_is_auto(config_setting_at(config, sizes[i])->given);
    return open && !size_key(config) && !is_off(config);
}

sifr_status config_resolve_tensors(sifr_config *config, int64_t *ranks, sifr_error *error) {
    const char *key = size_key(config);
    char where[300];
    if (!key || is_off(config)) return SIFR_OK;
    int64_t size = config_setting_int(config, key);
    for (int i = 0; i < SIZES; i++) {
        int64_t other = config_setting_int(config, sizes[i]);
        if (other > 1 && other != size)
            return base_fail(error, SIFR_USAGE, "%s is %lld and %s is %lld; give one",
                             config_path_where(config, key, where), (long long)size, sizes[i],
                             (long long)other);
    }
    *ranks /= size;
    /* A config that is written with all values must say it, too. */
    return config_setting_put(config, "tensor_parallel.enabled", json_true(), error, "%s is %lld",
                              key, (long long)size);
}

static void settle_words(sifr_config *config) {
    sifr_mesh *mesh = &config->step.mesh;
    bool given = config_setting_at(config, split)->value != NULL;
    mesh->vocab_parallel_lm_head = !given                          ? SIFR_VOCAB_BY_BLOCKS
                                   : config_is_true(config, split) ? SIFR_VOCAB_SPLIT
                                                                   : SIFR_VOCAB_WHOLE;
    if (given && mesh->tensor_size < 2 && mesh->tp_exact == 0)
        snprintf(config_setting_at(config, split)->note, CONFIG_NOTE,
                 "no effect, there is one tensor rank");
}

static void note_overlap(sifr_config *config) {
    if (config->step.mesh.tp_overlap_comm && config->step.mesh.tensor_size < 2)
        snprintf(config_setting_at(config, overlaps)->note, CONFIG_NOTE,
                 "no effect, there is one tensor rank");
}

/* What it would cut is cut already, or there are no ranks to cut it among. */
static void note_partitions(sifr_config *config) {
    config_setting *setting = config_setting_at(config, partitions);
    if (!config->step.partition_activations) return;
    if (config->step.mesh.tensor_size <= 1)
        snprintf(
            setting->note, CONFIG_NOTE,
            "no effect, no two ranks hold the same activations: that takes tensor parallelism");
    else if (config->step.mesh.sequence_parallel)
        snprintf(setting->note, CONFIG_NOTE,
                 "no effect, sifr.sequence_parallel has cut them already");
    else
        return;
    config->step.partition_activations = false;
}

void config_settle_tensors(sifr_config *config) {
    const char *key = size_key(config);
    bool off = is_off(config);
    config->step.mesh.tensor_size = key && !off ? (int32_t)config_setting_int(config, key) : 1;
    if (key && off)
        snprintf(config_setting_at(config, key)->note, CONFIG_NOTE,
                 "no effect, since tensor_parallel.enabled is false");
    if (!key && config_is_true(config, "tensor_parallel.enabled") && !config_opens_tensors(config))
        snprintf(config_setting_at(config, "tensor_parallel.enabled")->note, CONFIG_NOTE,
                 "no effect, tensor_parallel.size is not above 1");
    settle_words(config);
    note_overlap(config);
    note_partitions(config);
}
