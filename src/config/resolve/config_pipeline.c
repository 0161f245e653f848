/* The "pipeline" section: how many stages there are, and so how many ranks share a batch. */
#include <stdio.h>

#include "config/config_private.h"

static bool config_pipeline_is_off(const sifr_config *config) {
    return config_setting_given(config, "pipeline.enabled") &&
           !config_is_true(config, "pipeline.enabled");
}

int64_t config_stages(const sifr_config *config) {
    int64_t stages = config_setting_int(config, "pipeline.stages");
    return stages > 1 && !config_pipeline_is_off(config) ? stages : 1;
}

bool config_opens_stages(const sifr_config *config) {
    const json_t *given = config_setting_at(config, "pipeline.stages")->given;
    return config_value_is_auto(given) && !config_pipeline_is_off(config);
}

sifr_status config_resolve_pipeline(sifr_config *config, int64_t world_size, int64_t *data_ranks,
                                    sifr_error *error) {
    int64_t stages = config_stages(config);
    *data_ranks = world_size;
    if (stages == 1) return SIFR_OK;
    *data_ranks = world_size / stages;
    /* A config that is written with all values must say it, too. */
    return config_setting_put(config, "pipeline.enabled", json_true(), error, "stages is %lld",
                              (long long)stages);
}

void config_settle_pipeline(sifr_config *config) {
    sifr_settings *step = &config->step;
    if (config_pipeline_is_off(config)) {
        if (step->pipeline.stages > 1)
            snprintf(config_setting_at(config, "pipeline.stages")->note, CONFIG_NOTE,
                     "no effect, since pipeline.enabled is false");
        step->pipeline.stages = 1;
    }
    if (step->pipeline.stages == 1 && config_is_true(config, "pipeline.enabled") &&
        !config_opens_stages(config))
        snprintf(config_setting_at(config, "pipeline.enabled")->note, CONFIG_NOTE,
                 "no effect, pipeline.stages is 1");
    if (step->pipeline.schedule != SIFR_SCHEDULE_INTERLEAVED || step->pipeline.stages <= 1)
        step->pipeline.chunks = 1;
    if (step->pipeline.stages > 1 && step->step_order == SIFR_STEP_AUTO)
        step->step_order = SIFR_STEP_BATCH;
    if (step->pipeline.activation_checkpoint_interval > 0 && step->recompute == SIFR_RECOMPUTE_NONE)
        step->recompute = SIFR_RECOMPUTE_UNIT;
}
