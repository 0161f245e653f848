/* offload_optimizer, offload_param, offload_gradients, offload_activations and aio: what state on
 * disk needs beside the device. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

#define TRAIN_OFFLOAD "zero_optimization.offload_optimizer"
#define TRAIN_OFFLOAD_PARAM "zero_optimization.offload_param"

enum { TRAIN_DISK_ALIGNMENT = 4096, TRAIN_MOST_BLOCK = 1 << 30 };

static sifr_status train_check_most(const train_config *config, const char *path, int64_t most,
                                    sifr_error *error) {
    char where[300];
    int64_t value = train_setting_int(config, path);
    if (value <= most) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s is %lld; give at most %lld",
                     train_path_where(config, path, where), (long long)value, (long long)most);
}

static const char *train_text_at(const train_config *config, const char *path) {
    const char *text = json_string_value(train_setting_at(config, path)->value);
    return text ? text : "";
}

static bool train_is_nvme(const train_config *config, const char *path) {
    return strcmp(train_text_at(config, path), "nvme") == 0;
}

/* How the disk is read and written. */
static sifr_status train_check_aio(const train_config *config, sifr_error *error) {
    char where[300];
    int64_t block = train_setting_int(config, "aio.block_size");
    if (block % TRAIN_DISK_ALIGNMENT)
        return base_fail(error, SIFR_USAGE, "%s is %lld; give a multiple of %d",
                         train_path_where(config, "aio.block_size", where), (long long)block,
                         TRAIN_DISK_ALIGNMENT);
    BASE_TRY(train_check_most(config, "aio.block_size", TRAIN_MOST_BLOCK, error));
    BASE_TRY(train_check_most(config, "aio.queue_depth", 4096, error));
    return train_check_most(config, "aio.intra_op_parallelism", 256, error);
}

/* Parameters are slices at stage 3 only. */
static sifr_status train_check_param(const train_config *config, sifr_error *error) {
    static const char path[] = TRAIN_OFFLOAD_PARAM ".device";
    char where[300];
    int64_t stage = train_setting_int(config, "zero_optimization.stage");
    const char *device = train_text_at(config, path);
    if (!device[0] || strcmp(device, "none") == 0 || stage == 3) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "%s is \"%s\", and zero_optimization.stage is %lld; parameters are offloaded at "
        "stage 3 only",
        train_path_where(config, path, where), device, (long long)stage);
}

/* One directory a rank holds all that is on disk. */
static sifr_status train_check_paths(const train_config *config, bool optimizer, bool param,
                                     sifr_error *error) {
    const char *state = train_text_at(config, TRAIN_OFFLOAD ".nvme_path");
    const char *parameters = train_text_at(config, TRAIN_OFFLOAD_PARAM ".nvme_path");
    if ((optimizer && !state[0]) || (param && !parameters[0]))
        return base_fail(error, SIFR_USAGE,
                         "%s.nvme_path is missing: device nvme needs a directory on the disk that "
                         "is to hold the %s",
                         optimizer && !state[0] ? TRAIN_OFFLOAD : TRAIN_OFFLOAD_PARAM,
                         optimizer && !state[0] ? "state" : "parameters");
    if (!optimizer || !param || strcmp(state, parameters) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     TRAIN_OFFLOAD ".nvme_path is %s and " TRAIN_OFFLOAD_PARAM
                                   ".nvme_path is %s; two are not built yet: give the same",
                     state, parameters);
}

/* Gradients and activations go to the directory of the state or the parameters, if one is named. */
static sifr_status train_check_own_path(const train_config *config, const char *what,
                                        const char *named, sifr_error *error) {
    const char *own = train_text_at(config, "sifr.nvme_path");
    char section[96];
    const char *there = own;
    if (named) {
        snprintf(section, sizeof section, "%s.nvme_path", named);
        there = train_text_at(config, section);
    }
    if (!there[0])
        return base_fail(error, SIFR_USAGE,
                         "sifr.nvme_path is missing: sifr.offload_%s nvme needs a directory on the "
                         "disk that is to hold the %s",
                         what, what);
    if (!own[0] || strcmp(there, own) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr.nvme_path is %s and %s is %s; two are not built yet: give the same", own,
                     section, there);
}

/* Gradients are slices, or whole on one rank. */
static sifr_status train_check_gradients(const train_config *config, int64_t world_size,
                                         sifr_error *error) {
    static const char path[] = "sifr.offload_gradients";
    char where[300];
    int64_t stage = train_setting_int(config, "zero_optimization.stage");
    if (world_size == 1 || stage >= 2) return SIFR_OK;
    train_path_where(config, path, where);
    return base_fail(error, SIFR_USAGE,
                     "%s is \"nvme\", and zero_optimization.stage is %lld; with several ranks that "
                     "is built for stages 2 and 3",
                     where, (long long)stage);
}

/* Master weights are there in 16 bits only, and not always. */
static sifr_status train_check_state(const train_config *config, bool optimizer,
                                     sifr_error *error) {
    static const char path[] = "sifr.offload_state";
    char where[300];
    bool bf16 = train_is_true(config, "bf16.enabled");
    bool none = bf16 && train_is_true(config, "bf16.bf16_master_weights_and_grads");
    bool masters = (bf16 && !none) || train_is_true(config, "fp16.enabled");
    if (!optimizer || masters || strcmp(train_text_at(config, path), "master_weights") != 0)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is \"master_weights\", and %s has none; give \"moments\" or \"all\"",
                     train_path_where(config, path, where),
                     none ? "bf16.bf16_master_weights_and_grads" : "training in fp32");
}

sifr_status train_config_offload(const train_config *config, int64_t world_size,
                                 sifr_error *error) {
    bool optimizer = train_is_nvme(config, TRAIN_OFFLOAD ".device");
    bool param = train_is_nvme(config, TRAIN_OFFLOAD_PARAM ".device");
    BASE_TRY(train_check_param(config, error));
    BASE_TRY(train_check_state(config, optimizer, error));
    bool activations = train_is_nvme(config, "sifr.offload_activations");
    bool gradients = train_is_nvme(config, "sifr.offload_gradients");
    const char *named = optimizer ? TRAIN_OFFLOAD : param ? TRAIN_OFFLOAD_PARAM : NULL;
    if (gradients) BASE_TRY(train_check_gradients(config, world_size, error));
    if (!optimizer && !param && !activations && !gradients) return SIFR_OK;
    BASE_TRY(train_check_paths(config, optimizer, param, error));
    if (gradients) BASE_TRY(train_check_own_path(config, "gradients", named, error));
    if (activations) BASE_TRY(train_check_own_path(config, "activations", named, error));
    BASE_TRY(train_check_aio(config, error));
    if (optimizer)
        BASE_TRY(train_check_most(config, TRAIN_OFFLOAD ".buffer_count", 1 << 20, error));
    if (param)
        BASE_TRY(train_check_most(config, TRAIN_OFFLOAD_PARAM ".buffer_count", 1 << 20, error));
    return SIFR_OK;
}

static void train_note_memory(train_config *config, const char *path, const char *what) {
    snprintf(train_setting_at(config, path)->note, 160,
             "no effect on CPU ranks: the %s in the host's memory", what);
}

void train_note_offload(train_config *config) {
    if (config->offload.device == TRAIN_TIER_CPU)
        train_note_memory(config, TRAIN_OFFLOAD ".device", "state is");
    if (config->offload_param.device == TRAIN_TIER_CPU)
        train_note_memory(config, TRAIN_OFFLOAD_PARAM ".device", "parameters are");
    if (config->offload_gradients == TRAIN_TIER_CPU)
        train_note_memory(config, "sifr.offload_gradients", "gradients are");
    if (config->offload_activations == TRAIN_TIER_CPU)
        train_note_memory(config, "sifr.offload_activations", "activations are");
}
