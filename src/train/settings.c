#include "train/settings.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/handle.h"
#include "formats/tokenizer/tokenizer.h"

_Static_assert(CONFIG_TOKEN_CHUNK == DEVICE_TOKEN_CHUNK, "what the config checks tiles by");

sifr_status train_sequence_length(const sifr_config *config, const formats_model_config *model,
                                  const sifr_log *log, int64_t *length, sifr_error *error) {
    int64_t limit = model->max_position_embeddings;
    *length = config->seq_length ? config->seq_length : limit;
    if (*length <= limit) return SIFR_OK;
    if (strcmp(model->model_type, "gpt2") == 0)
        return base_fail(error, SIFR_USAGE,
                         "seq_length %lld: %s has learned positions for %lld tokens; give at most "
                         "that",
                         (long long)*length, config->model, (long long)limit);
    base_log(log, SIFR_LOG_WARNING, "seq_length %lld is more than the %lld that %s was made for",
             (long long)*length, (long long)limit, config->model);
    return SIFR_OK;
}

sifr_status train_freeze(const sifr_config *config, sifr_model *model, const sifr_log *log,
                         sifr_error *error) {
    char trained[32], all[32];
    for (size_t i = 0; i < config->freeze_count; i++) {
        BASE_TRY(sifr_model_freeze(model, config->freeze[i], error));
    }
    if (!config->freeze_count) return SIFR_OK;
    int64_t left = sifr_model_trained(model);
    if (left == 0)
        return base_fail(error, SIFR_USAGE,
                         "freeze: every weight is frozen, nothing is left to train");
    base_log(log, SIFR_LOG_INFO, "trains %s of %s parameters, the others are frozen",
             base_format_count(left, trained),
             base_format_count(sifr_model_parameters(model), all));
    return SIFR_OK;
}

/* What is on nvme is not here, as the engine has it. */
static sifr_host_options host_options(const sifr_config *c) {
    return (sifr_host_options){.optimizer = c->offload_optimizer.device == CONFIG_TIER_CPU,
                               .parameters = c->offload_param.device == CONFIG_TIER_CPU,
                               .gradients = c->offload_gradients == CONFIG_TIER_CPU,
                               .activations = c->offload_activations == CONFIG_TIER_CPU ||
                                              c->activations.cpu_checkpointing};
}

static sifr_offload_options offload_options(const sifr_config *c) {
    return (sifr_offload_options){
        .nvme_path = train_nvme_path(c),
        .optimizer = c->offload_optimizer.device == CONFIG_TIER_NVME,
        .parameters = c->offload_param.device == CONFIG_TIER_NVME,
        .gradients = c->offload_gradients == CONFIG_TIER_NVME,
        .activations = c->offload_activations == CONFIG_TIER_NVME,
        .masters_stay = c->offload_optimizer.state == CONFIG_STATE_MOMENTS,
        .moments_stay = c->offload_optimizer.state == CONFIG_STATE_MASTERS,
        .host = host_options(c),
        .slice_count = (int32_t)c->offload_param.buffer_count,
        .slice_size = c->offload_param.buffer_size,
        .kept_elements = c->offload_param.max_in_cpu,
        .kept_state = 1 - c->offload_optimizer.ratio,
        .sub_group_size = c->offload_optimizer.sub_group_size,
        .buffer_count = (int32_t)c->offload_optimizer.buffer_count,
        .pipeline_read = c->offload_optimizer.pipeline_read,
        .pipeline_write = c->offload_optimizer.pipeline_write,
        .pin_memory = c->offload_optimizer.pin_memory,
        .pin_parameters = c->offload_param.pin_memory,
        .block_size = c->aio.block_size,
        .queue_depth = (int32_t)c->aio.queue_depth,
        .threads = (int32_t)c->aio.intra_op_parallelism,
        .single_submit = c->aio.single_submit,
        .overlap_events = c->aio.overlap_events};
}

sifr_engine_options train_engine_options(const sifr_config *c, int64_t length) {
    sifr_engine_options options = sifr_engine_defaults();
    options.precision = c->fp16.enabled ? SIFR_FP16 : c->bf16 ? SIFR_BF16 : SIFR_FP32;
    options.loss_scaling =
        (sifr_loss_scaling){.fixed = c->fp16.loss_scale,
                            .initial = ldexp(1, (int)c->fp16.initial_scale_power),
                            .least = c->fp16.min_loss_scale,
                            .window = c->fp16.loss_scale_window,
                            .hysteresis = c->fp16.hysteresis,
                            .consecutive_hysteresis = c->fp16.consecutive_hysteresis};
    options.threads = (int)c->threads;
    options.isa = c->isa;
    options.micro_batch_size = c->micro_batch_size;
    options.seq_length = length;
    options.gradient_accumulation_steps = (int32_t)c->gradient_accumulation_steps;
    options.unit_order = c->step_order == CONFIG_STEP_UNIT;
    options.sequential = c->gradient_order == CONFIG_GRADIENT_SEQUENTIAL;
    options.recompute = c->recompute != CONFIG_RECOMPUTE_NONE;
    options.activation_memory = c->activations.activation_memory;
    if (c->recompute == CONFIG_RECOMPUTE_UNIT)
        options.number_checkpoints =
            (int32_t)base_min_i64(c->activations.number_checkpoints, INT32_MAX);
    options.tile_tokens = c->activations.tile_tokens;
    options.beta1 = c->optimizer.beta1;
    options.beta2 = c->optimizer.beta2;
    options.eps = c->optimizer.eps;
    options.weight_decay = c->optimizer.weight_decay;
    options.bias_correction = c->optimizer.bias_correction;
    options.decoupled = c->optimizer.decoupled;
    options.gradient_clipping = c->gradient_clipping;
    options.zero_stage = (int)c->zero_stage;
    options.communication_data_type =
        (sifr_precision)c->communication_data_type; /* the same order */
    options.grad_accum_dtype = (sifr_precision)c->grad_accum_dtype;
    options.masters = c->bf16 && c->bf16_masters ? SIFR_BF16 : SIFR_FP32;
    options.moments = c->bf16 && c->bf16_moments ? SIFR_BF16 : SIFR_FP32;
    options.zero = c->zero;
    options.offload = offload_options(c);
    options.seed = c->seed;
    return options;
}

plan_settings train_plan_settings(const sifr_config *config, const sifr_engine_options *options,
                                  const comm_group *group) {
    plan_settings settings = engine_settings(options, group);
    if (config->recompute == CONFIG_RECOMPUTE_AUTO) settings.recompute = PLAN_RECOMPUTE_AUTO;
    return settings;
}

plan_search train_search(const sifr_config *config, const sifr_model *model, device *dev,
                         const plan_machine *machine, int64_t room, const train_disk *disk,
                         int32_t ranks) {
    int64_t swap = disk->swap_bytes < 0 ? 0 : base_max_i64(disk->swap_bytes / ranks, 1);
    return (plan_search){.model = model,
                         .dev = dev,
                         .machine = machine,
                         .room_bytes = room,
                         .disk_bytes = swap,
                         .output = train_output_room(config, disk, ranks),
                         .any_order = config->step_order == CONFIG_STEP_AUTO,
                         .overlap_by_stage =
                             !config_gives(config, "zero_optimization.overlap_comm")};
}

sifr_status train_separator(const char *folder, const formats_model_config *model,
                            const sifr_log *log, int64_t *out, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    formats_tokenizer *tokenizer;
    for (int i = 0; i < model->eos_count; i++) {
        *out = model->eos_token_ids[i];
        if (*out < model->vocab_size) return SIFR_OK;
    }
    *out = -1;
    BASE_TRY(base_path_join(path, folder, "tokenizer.json", error));
    if (base_is_file(path)) {
        BASE_TRY(formats_tokenizer_load(folder, &tokenizer, error));
        *out = formats_tokenizer_eos(tokenizer);
        formats_tokenizer_free(tokenizer);
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
