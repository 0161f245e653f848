#include "train/prepare/run_settings.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/handle.h"
#include "model/registry.h"
#include "text/tokenizer/tokenizer.h"

sifr_status train_sequence_length(const sifr_config *config, const model_config *model,
                                  const sifr_log *log, int64_t *length, sifr_error *error) {
    int64_t limit = model_positions(model);
    *length = config->step.seq_length ? config->step.seq_length : limit;
    if (*length <= limit) return SIFR_OK;
    const model_architecture *architecture = model_architecture_find(model->model_type);
    if (architecture && architecture->learned_positions)
        return base_fail(error, SIFR_USAGE,
                         "seq_length %lld: %s has learned positions for %lld tokens; give at most "
                         "that",
                         (long long)*length, config->model, (long long)limit);
    base_log(log, SIFR_LOG_WARNING,
             "seq_length %lld is more than the %lld tokens that %s was trained with",
             (long long)*length, (long long)limit, config->model);
    return SIFR_OK;
}

/* Numbers that nothing trains come out as they came in, which only the folder has to the last bit.
 */
static bool some_constant(const sifr_model *model) {
    for (size_t w = 0; w < model->weight_count; w++)
        if (model->weights[w].constant) return true;
    return false;
}

sifr_status train_freeze(const sifr_config *config, sifr_model *model, const sifr_log *log,
                         sifr_error *error) {
    char trained[32], all[32];
    for (size_t i = 0; i < config->freeze_count; i++) {
        BASE_TRY(sifr_model_freeze(model, config->freeze[i], error));
    }
    BASE_TRY(train_group(config, model, log, error));
    if (!config->freeze_count && !some_constant(model)) return SIFR_OK;
    for (size_t w = 0; w < model->weight_count; w++)
        model->weights[w].based = model->weights[w].frozen;
    int64_t left = sifr_model_trained(model);
    if (left == 0)
        return base_fail(error, SIFR_USAGE,
                         "freeze: every weight is frozen, nothing is left to train");
    if (!config->freeze_count) return SIFR_OK;
    base_log(log, SIFR_LOG_INFO, "trains %s of %s parameters, the others are frozen",
             base_format_count(left, trained),
             base_format_count(sifr_model_parameters(model), all));
    return SIFR_OK;
}

sifr_settings train_step_settings(const sifr_config *config, int64_t length) {
    sifr_settings step = config->step;
    step.seq_length = length;
    return step;
}

plan_settings train_plan_settings(const sifr_settings *step, const comm_group *group) {
    plan_settings settings = engine_plan_settings(step, group);
    settings.step.recompute = step->recompute;
    return settings;
}

plan_search train_search(const sifr_config *config, const sifr_model *model, device *dev,
                         const plan_machine *machine, int64_t capacity, const train_disk *disk,
                         int32_t ranks) {
    int64_t swap = disk->swap_bytes < 0 ? 0 : base_max_i64(disk->swap_bytes / ranks, 1);
    return (plan_search){.model = model,
                         .dev = dev,
                         .machine = machine,
                         .room_bytes = capacity,
                         .disk_bytes = swap,
                         .output = train_output_space(config, disk, ranks),
                         .any_order = config->step.step_order == SIFR_STEP_AUTO,
                         .any_stages = config_opens_stages(config),
                         .any_copies = config_opens_copies(config),
                         .any_tensors = config_opens_tensors(config),
                         .any_contexts = config_opens_contexts(config),
                         .any_near = config_opens_near(config),
                         .overlap_by_stage =
                             !config_gives(config, "zero_optimization.overlap_comm")};
}

sifr_status train_separator(const char *folder, const model_config *model, const sifr_log *log,
                            int64_t *out, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    text_tokenizer *tokenizer;
    for (int i = 0; i < model->eos_count; i++) {
        *out = model->eos_token_ids[i];
        if (*out < model->vocab_size) return SIFR_OK;
    }
    *out = -1;
    BASE_TRY(base_path_join(path, folder, "tokenizer.json", error));
    /* Files of another form may be of a class that is not read: then there is none. */
    bool there = base_is_file(path);
    if (there) BASE_TRY(text_tokenizer_load(folder, &tokenizer, error));
    if (there || text_tokenizer_load(folder, &tokenizer, NULL) == SIFR_OK) {
        *out = text_tokenizer_eos(tokenizer);
        text_tokenizer_free(tokenizer);
    }
    if (*out < 0 || *out >= model->vocab_size) {
        *out = -1;
        base_log(log, SIFR_LOG_WARNING,
                 "%s: neither config.json nor the tokenizer has an end-of-text token in the "
                 "vocabulary: nothing separates documents",
                 folder);
    }
    return SIFR_OK;
}
