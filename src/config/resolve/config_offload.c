/* offload_optimizer, offload_param, offload_gradients, offload_activations and aio: what state on
 * disk needs beside the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"

#define CONFIG_OFFLOAD "zero_optimization.offload_optimizer"
#define CONFIG_OFFLOAD_PARAM "zero_optimization.offload_param"

/* Its row's `most`. */
static sifr_status config_check_most(const sifr_config *config, const char *path,
                                     sifr_error *error) {
    char where[300];
    int64_t value = config_setting_int(config, path);
    int64_t most = strtoll(config_key_find(path, NULL)->most, NULL, 10);
    if (value <= most) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s is %lld; give at most %lld",
                     config_path_where(config, path, where), (long long)value, (long long)most);
}

static const char *config_text_at(const sifr_config *config, const char *path) {
    const char *text = json_string_value(config_setting_at(config, path)->value);
    return text ? text : "";
}

static bool config_is_nvme(const sifr_config *config, const char *path) {
    return strcmp(config_text_at(config, path), "nvme") == 0;
}

/* How the disk is read and written. */
static sifr_status config_check_aio(const sifr_config *config, sifr_error *error) {
    char where[300];
    int64_t block = config_setting_int(config, "aio.block_size");
    int64_t multiple = config_key_find("aio.block_size", NULL)->multiple;
    if (block % multiple)
        return base_fail(error, SIFR_USAGE, "%s is %lld; give a multiple of %lld",
                         config_path_where(config, "aio.block_size", where), (long long)block,
                         (long long)multiple);
    BASE_TRY(config_check_most(config, "aio.block_size", error));
    BASE_TRY(config_check_most(config, "aio.queue_depth", error));
    return config_check_most(config, "aio.intra_op_parallelism", error);
}

/* Parameters are slices at stage 3 only. */
static sifr_status config_check_param(const sifr_config *config, sifr_error *error) {
    static const char path[] = CONFIG_OFFLOAD_PARAM ".device";
    char where[300];
    int64_t stage = config_setting_int(config, "zero_optimization.stage");
    const char *device = config_text_at(config, path);
    if (!device[0] || strcmp(device, "none") == 0 || stage == 3) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "%s is \"%s\", and zero_optimization.stage is %lld; parameters are offloaded at "
        "stage 3 only",
        config_path_where(config, path, where), device, (long long)stage);
}

/* One directory a rank holds all that is on disk. */
static sifr_status config_check_paths(const sifr_config *config, bool optimizer, bool param,
                                      sifr_error *error) {
    const char *state = config_text_at(config, CONFIG_OFFLOAD ".nvme_path");
    const char *parameters = config_text_at(config, CONFIG_OFFLOAD_PARAM ".nvme_path");
    if ((optimizer && !state[0]) || (param && !parameters[0]))
        return base_fail(error, SIFR_USAGE,
                         "%s.nvme_path is missing: device nvme needs a directory on the disk that "
                         "is to hold the %s",
                         optimizer && !state[0] ? CONFIG_OFFLOAD : CONFIG_OFFLOAD_PARAM,
                         optimizer && !state[0] ? "state" : "parameters");
    if (!optimizer || !param || strcmp(state, parameters) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     CONFIG_OFFLOAD ".nvme_path is %s and " CONFIG_OFFLOAD_PARAM
                                    ".nvme_path is %s; two are not supported yet: give the same",
                     state, parameters);
}

/* Gradients and activations go to the directory of the state or the parameters, if one is named. */
static sifr_status config_check_own_path(const sifr_config *config, const char *what,
                                         const char *named, sifr_error *error) {
    const char *own = config_text_at(config, "sifr.nvme_path");
    char section[96];
    const char *there = own;
    if (named) {
        snprintf(section, sizeof section, "%s.nvme_path", named);
        there = config_text_at(config, section);
    }
    if (!there[0])
        return base_fail(error, SIFR_USAGE,
                         "sifr.nvme_path is missing: sifr.offload_%s nvme needs a directory on the "
                         "disk that is to hold the %s",
                         what, what);
    if (!own[0] || strcmp(there, own) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr.nvme_path is %s and %s is %s; two are not supported yet: give the same",
                     own, section, there);
}

/* Gradients are slices, or whole on one rank. */
static sifr_status config_check_gradients(const sifr_config *config, int64_t world_size,
                                          sifr_error *error) {
    static const char path[] = "sifr.offload_gradients";
    char where[300];
    int64_t stage = config_setting_int(config, "zero_optimization.stage");
    if (world_size == 1 || stage >= 2) return SIFR_OK;
    config_path_where(config, path, where);
    return base_fail(error, SIFR_USAGE,
                     "%s is \"nvme\", and zero_optimization.stage is %lld; with several ranks that "
                     "is supported at stages 2 and 3 only",
                     where, (long long)stage);
}

/* Master weights are there in 16 bits only, and not always. */
static sifr_status config_check_state(const sifr_config *config, bool optimizer,
                                      sifr_error *error) {
    static const char path[] = "sifr.offload_state";
    char where[300];
    bool bf16 = config_is_true(config, "bf16.enabled");
    bool none = bf16 && config_is_true(config, "bf16.bf16_master_weights_and_grads");
    bool masters =
        (bf16 && !none) || config_trains_average(config) || config_is_true(config, "fp16.enabled");
    if (!optimizer || masters || strcmp(config_text_at(config, path), "master_weights") != 0)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is \"master_weights\", and %s has none; give \"moments\" or \"all\"",
                     config_path_where(config, path, where),
                     none ? "bf16.bf16_master_weights_and_grads" : "training in fp32");
}

sifr_status config_resolve_offload(const sifr_config *config, int64_t world_size,
                                   sifr_error *error) {
    bool optimizer = config_is_nvme(config, CONFIG_OFFLOAD ".device");
    bool param = config_is_nvme(config, CONFIG_OFFLOAD_PARAM ".device");
    BASE_TRY(config_check_param(config, error));
    BASE_TRY(config_check_state(config, optimizer, error));
    bool activations = config_is_nvme(config, "sifr.offload_activations");
    bool gradients = config_is_nvme(config, "sifr.offload_gradients");
    const char *named = optimizer ? CONFIG_OFFLOAD : param ? CONFIG_OFFLOAD_PARAM : NULL;
    if (gradients) BASE_TRY(config_check_gradients(config, world_size, error));
    if (!optimizer && !param && !activations && !gradients) return SIFR_OK;
    BASE_TRY(config_check_paths(config, optimizer, param, error));
    if (gradients) BASE_TRY(config_check_own_path(config, "gradients", named, error));
    if (activations) BASE_TRY(config_check_own_path(config, "activations", named, error));
    BASE_TRY(config_check_aio(config, error));
    if (optimizer) BASE_TRY(config_check_most(config, CONFIG_OFFLOAD ".buffer_count", error));
    if (param) BASE_TRY(config_check_most(config, CONFIG_OFFLOAD_PARAM ".buffer_count", error));
    return SIFR_OK;
}

static void config_note_memory(sifr_config *config, const char *path, const char *what) {
    snprintf(config_setting_at(config, path)->note, CONFIG_NOTE,
             "no effect on CPU ranks: the %s in the host's memory", what);
}

void config_note_offload(sifr_config *config) {
    if (config->step.offload.optimizer.device == SIFR_TIER_CPU)
        config_note_memory(config, CONFIG_OFFLOAD ".device", "state is");
    if (config->step.offload.param.device == SIFR_TIER_CPU)
        config_note_memory(config, CONFIG_OFFLOAD_PARAM ".device", "parameters are");
    if (config->step.offload.gradients == SIFR_TIER_CPU)
        config_note_memory(config, "sifr.offload_gradients", "gradients are");
    if (config->step.offload.activations == SIFR_TIER_CPU)
        config_note_memory(config, "sifr.offload_activations", "activations are");
    if (config->activations.cpu_checkpointing)
        config_note_memory(config, "activation_checkpointing.cpu_checkpointing", "activations are");
}

bool config_moves_parameters(const sifr_config *config) {
    sifr_tier tier = config->step.offload.param.device;
    bool host = tier == SIFR_TIER_CPU && config->step.device != SIFR_DEVICE_CPU;
    return config->step.zero.stage == 3 && (tier == SIFR_TIER_NVME || host);
}

const char *config_nvme_path(const sifr_config *config) {
    const sifr_offload *offload = &config->step.offload;
    if (offload->optimizer.device == SIFR_TIER_NVME) return config->nvme_path.optimizer;
    if (offload->param.device == SIFR_TIER_NVME) return config->nvme_path.param;
    bool rest = offload->activations == SIFR_TIER_NVME || offload->gradients == SIFR_TIER_NVME;
    return rest ? config->nvme_path.rest : NULL;
}
