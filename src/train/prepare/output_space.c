#include "train/prepare/output_space.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/disk.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "formats/weights.h"
#include "model/lora.h"

static int64_t space_of(const base_disk *disk) {
    return disk->free_bytes < INT64_MAX ? (int64_t)disk->free_bytes : INT64_MAX;
}

static sifr_status find_checkpoints(const sifr_config *config, train_disk *out, sifr_error *error) {
    int64_t *steps;
    size_t count;
    if (!config->resume || !out->output) return SIFR_OK;
    BASE_TRY(checkpoint_list(out->output, &steps, &count, error));
    if (count) out->steps = steps[0];
    out->there = (int64_t)count;
    free(steps);
    return SIFR_OK;
}

const char *train_named_path(const sifr_config *config) {
    const config_nvme_paths *paths = &config->nvme_path;
    return paths->optimizer ? paths->optimizer : paths->param ? paths->param : paths->rest;
}

/* The trained model has the same tensors and types as the model that the run starts from. */
static int64_t folder_bytes(const sifr_config *config, const sifr_model *model) {
    formats_weights *weights;
    if (model_is_adapter(model)) return sifr_model_trained(model) * (int64_t)sizeof(float);
    if (config->model && formats_weights_open(config->model, &weights, NULL) == SIFR_OK) {
        uint64_t bytes = formats_weights_bytes(weights);
        formats_weights_close(weights);
        return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
    }
    return sifr_model_parameters(model) * (int64_t)sizeof(float);
}

/* And the average of the weights, a folder of its own. */
static int64_t model_bytes(const sifr_config *config, const sifr_model *model) {
    int64_t bytes = folder_bytes(config, model);
    bool average = config->step.optimizer.ema_decay > 0;
    return average && bytes <= INT64_MAX / 2 ? 2 * bytes : bytes;
}

sifr_status train_disk_find(const sifr_config *config, const sifr_model *model, train_disk *out,
                            sifr_error *error) {
    base_disk swap, output;
    *out = (train_disk){.swap_bytes = -1,
                        .output_bytes = -1,
                        .output = config->output,
                        .total_steps = config->max_steps,
                        .limited = config->save_total_limit > 0,
                        .model_bytes = model_bytes(config, model)};
    out->swap = config->step.offload.nvme_path;
    /* Nothing is there yet, but a plan may put something there. */
    if (!out->swap) out->swap = train_named_path(config);
    /* sifr never makes the swap directory, so a missing one has no file system to look at. */
    uint64_t there;
    bool swaps = out->swap && base_free_space(out->swap, &there, NULL) == SIFR_OK &&
                 base_disk_find(out->swap, &swap, NULL) == SIFR_OK;
    bool saves = out->output && base_disk_find(out->output, &output, NULL) == SIFR_OK;
    if (swaps) out->swap_bytes = space_of(&swap);
    if (saves) out->output_bytes = space_of(&output);
    out->same = swaps && saves && swap.id == output.id;
    return find_checkpoints(config, out, error);
}

int32_t train_checkpoints(const sifr_config *config, const train_disk *disk) {
    int64_t keep = config->save_total_limit, every = config->save_steps;
    int64_t total = disk->total_steps;
    if (every == 0 || total <= disk->steps) return 1;
    int64_t saves = (total - 1) / every - disk->steps / every + 1; /* the last step's */
    int64_t most = keep ? base_min_i64(keep, INT32_MAX - 1) + 1 - disk->there : INT32_MAX;
    int64_t more = base_min_i64(most, saves);
    return (int32_t)base_max_i64(more, 1);
}

plan_output train_output_space(const sifr_config *config, const train_disk *disk, int32_t ranks) {
    return (plan_output){.known = disk->output_bytes >= 0,
                         .room_bytes = disk->output_bytes,
                         .checkpoints = train_checkpoints(config, disk),
                         .model_bytes = disk->model_bytes,
                         .swaps = disk->same ? ranks : 0};
}

/* ", 3 of them at a time (save_total_limit)"; empty for one checkpoint. */
static void describe_count(const plan_output *output, bool limited, char out[96]) {
    out[0] = '\0';
    if (output->checkpoints > 1)
        snprintf(out, 96,
                 limited ? ", %d of them at a time (save_total_limit)"
                         : ", all %d of them (no save_total_limit)",
                 (int)output->checkpoints);
}

sifr_status train_disk_check(const train_disk *disk, const plan_output *output,
                             const sifr_model *model, const plan_settings *settings,
                             int64_t nvme_bytes, sifr_error *error) {
    char each[32], trained[32], need[32], have[32], swap[32], several[96], beside[96] = "";
    if (plan_fits_output(output, model, settings, nvme_bytes)) return SIFR_OK;
    int64_t bytes = plan_checkpoint_bytes(model, settings);
    int64_t wanted = plan_output_bytes(output, model, settings, nvme_bytes);
    base_format_bytes((uint64_t)bytes, each);
    base_format_bytes((uint64_t)wanted, need);
    base_format_bytes((uint64_t)output->room_bytes, have);
    base_format_bytes((uint64_t)(nvme_bytes * output->swaps), swap);
    base_format_bytes((uint64_t)output->model_bytes, trained);
    describe_count(output, disk->limited, several);
    if (output->swaps && nvme_bytes)
        snprintf(beside, sizeof beside, ", beside %s of swap files on the same file system", swap);
    return base_fail(error, SIFR_NO_MEMORY,
                     "disk: %s: a checkpoint takes %s%s, the trained model %s%s; together they "
                     "need %s, and %s are free; free some, %sgive an output on a larger disk",
                     disk->output, each, several, trained, beside, need, have,
                     output->checkpoints > 1 && !disk->limited
                         ? "keep fewer checkpoints with save_total_limit, or "
                         : "or ");
}
