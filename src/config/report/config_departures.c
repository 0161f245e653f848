/* Where a key does something else than in DeepSpeed: its default, or what it means. */
#include <string.h>

#include "config/config_private.h"

typedef enum departs_when {
    DEPARTS_BY_DEFAULT,   /* the key is not given: sifr has a default of its own */
    DEPARTS_IN_16_BITS,   /* likewise, where the model's type is bf16 or fp16 */
    DEPARTS_NO_OPTIMIZER, /* likewise, where the config has no optimizer */
    DEPARTS_IF_SET,       /* the key is given, as something else than the default */
    DEPARTS_ALWAYS
} departs_when;

static const struct {
    const char *path, *deepspeed;
    departs_when when;
} departures[] = {
    {"gradient_clipping", "default 0, no clipping", DEPARTS_BY_DEFAULT},
    {"communication_data_type", "default the model's type", DEPARTS_IN_16_BITS},
    {"gradient_allreduce_op",
     "the mean over micro batches of each one's mean, which differs where they have different "
     "numbers of labels",
     DEPARTS_ALWAYS},
    {"optimizer.params.lr", "no default without an optimizer section", DEPARTS_NO_OPTIMIZER},
    {"bf16.bf16_master_weights_and_grads",
     "stages 1 to 3 alone, with CPU offload or bf16_optimizer_states", DEPARTS_IF_SET},
    {"bf16.bf16_optimizer_states", "with bf16_master_weights_and_grads alone", DEPARTS_IF_SET},
    {"data_types.grad_accum_dtype", "default the model's type", DEPARTS_IN_16_BITS},
    {"zero_optimization.sub_group_size", "default 1e9", DEPARTS_BY_DEFAULT},
    {"zero_optimization.stage3_prefetch_bucket_size", "default 5e7", DEPARTS_BY_DEFAULT},
    {"zero_optimization.stage3_param_persistence_threshold", "default 1e5, counted by tensor",
     DEPARTS_BY_DEFAULT},
    {"zero_optimization.stage3_param_persistence_threshold", "counted by tensor", DEPARTS_IF_SET},
    {"zero_optimization.stage3_max_live_parameters", "default 1e9, for units of any size",
     DEPARTS_BY_DEFAULT},
    {"zero_optimization.stage3_max_reuse_distance", "default 1e9", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_param.buffer_count", "default 5", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_param.buffer_size", "default 1e8", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_param.max_in_cpu", "default 1e9", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_param.pin_memory", "default false", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_optimizer.device", "nvme at stage 3 alone", DEPARTS_IF_SET},
    {"zero_optimization.offload_optimizer.buffer_count", "default 4", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_optimizer.pin_memory", "default false", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_optimizer.pipeline_read", "default false", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_optimizer.pipeline_write", "default false", DEPARTS_BY_DEFAULT},
    {"zero_optimization.offload_optimizer.ratio", "stage 3 and cpu alone", DEPARTS_IF_SET},
    {"activation_checkpointing.number_checkpoints",
     "the model's code asks for recomputation, not the config", DEPARTS_IF_SET},
    {"aio.queue_depth", "default 8", DEPARTS_BY_DEFAULT},
    {"comms_logger.enabled", "waits after each collective", DEPARTS_IF_SET},
};

static bool has_16_bits(const sifr_config *config) {
    return config_is_true(config, "bf16.enabled") || config_is_true(config, "fp16.enabled");
}

static bool has_optimizer(const sifr_config *config) {
    for (size_t i = 0; i < config_key_count(); i++) {
        bool inside = strncmp(config_key_at(i)->path, "optimizer.", 10) == 0;
        if (inside && config->settings[i].given) return true;
    }
    return config_setting_given(config, "sifr.learning_rate");
}

static bool departs(const sifr_config *config, size_t index, departs_when when) {
    const json_t *given = config->settings[index].given;
    switch (when) {
    case DEPARTS_BY_DEFAULT:
        return !given;
    case DEPARTS_IN_16_BITS:
        return !given && has_16_bits(config);
    case DEPARTS_NO_OPTIMIZER:
        return !given && !has_optimizer(config);
    case DEPARTS_IF_SET:
        return config_differs(config, index);
    case DEPARTS_ALWAYS:
        break;
    }
    return true;
}

const char *config_departure(const sifr_config *config, size_t index) {
    const char *path = config_key_at(index)->path;
    bool acts = config_setting_verdict(config, index, NULL) == CONFIG_ACTS &&
                config_setting_applies(config, index);
    for (size_t i = 0; acts && i < sizeof departures / sizeof *departures; i++) {
        if (strcmp(departures[i].path, path) == 0 && departs(config, index, departures[i].when))
            return departures[i].deepspeed;
    }
    return NULL;
}
