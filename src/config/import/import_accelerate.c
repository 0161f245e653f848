/* What `accelerate config` writes. */
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

#define HOSTS "give --hosts to sifr train"
#define LAUNCH "sifr train starts its ranks"
#define TPU "there are no TPUs here"
#define TORCH "there is no torch here"
#define ZERO "zero_optimization."

static sifr_status accelerate_precision(import_state *s, const char *key, json_t *value) {
    const char *word = json_string_value(value);
    bool bf16 = word && strcmp(word, "bf16") == 0, fp16 = word && strcmp(word, "fp16") == 0;
    if (!import_asks(value)) return SIFR_OK;
    if (!bf16 && !fp16) return import_refuse(s, key, value, "the types are bf16, fp16 and fp32");
    const char *to = bf16 ? "bf16.enabled" : "fp16.enabled";
    import_say_kept(s, key, value, to);
    const json_t *there = import_get(s, to);
    return there && !config_value_is_auto(there) ? SIFR_OK : import_put(s, to, json_true());
}

static sifr_status accelerate_ranks(import_state *s, const char *key, json_t *value) {
    if (json_integer_value(value) > 1)
        import_say_left(s, key, value, "give --ranks to sifr train");
    else
        import_say_idle(s, key, value, "a run has one rank unless --ranks is given");
    return SIFR_OK;
}

/* A flag of FSDP 1, in numbers or words, or of FSDP 2. */
static sifr_status accelerate_sharding(import_state *s, const char *key, json_t *value) {
    static const char *const to = ZERO "stage";
    const char *word = json_string_value(value);
    int64_t stage = json_integer_value(value), kind = -1;
    int found;
    if (word && config_key_has_word("FULL_SHARD|SHARD_GRAD_OP|NO_SHARD", word, &found, NULL))
        kind = found + 1;
    if (json_is_integer(value)) kind = stage;
    if (json_is_boolean(value)) kind = json_is_true(value) ? 1 : 2;
    if (kind < 1 || kind > 3) {
        import_say_left(s, key, value, "stages are those of ZeRO; see zero_hpz_partition_size");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_integer(kind == 1 ? 3 : kind == 2 ? 2 : 0));
}

static sifr_status accelerate_offload(import_state *s, const char *key, json_t *value) {
    if (!json_is_true(value)) return SIFR_OK;
    import_say_kept(s, key, value, ZERO "offload_param and offload_optimizer");
    BASE_TRY(import_put(s, ZERO "offload_param.device", json_string("cpu")));
    return import_put(s, ZERO "offload_optimizer.device", json_string("cpu"));
}

/* "none" as text or null, and paths only where a device needs them. */
static sifr_status accelerate_tier(import_state *s, const char *key, json_t *value) {
    static const char *const keys[][2] = {
        {"offload_optimizer_device", ZERO "offload_optimizer.device"},
        {"offload_param_device", ZERO "offload_param.device"},
        {"offload_optimizer_nvme_path", ZERO "offload_optimizer.nvme_path"},
        {"offload_param_nvme_path", ZERO "offload_param.nvme_path"},
    };
    if (!import_asks(value)) return SIFR_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(strrchr(key, '.') + 1, keys[i][0]) != 0) continue;
        import_say_kept(s, key, value, keys[i][1]);
        return import_put(s, keys[i][1], json_incref(value));
    }
    return SIFR_OK;
}

#define DS "deepspeed_config."
#define FSDP "fsdp_config."

/* clang-format off */
static const import_row accelerate_rows[] = {
LATER(DS "deepspeed_config_file"),
FILL(DS "zero_stage", ZERO "stage"),
FILL(DS "gradient_accumulation_steps", "gradient_accumulation_steps"),
FILL(DS "gradient_clipping", "gradient_clipping"),
SPECIAL(DS "offload_optimizer_device", accelerate_tier),
SPECIAL(DS "offload_param_device", accelerate_tier),
SPECIAL(DS "offload_optimizer_nvme_path", accelerate_tier),
SPECIAL(DS "offload_param_nvme_path", accelerate_tier),
FILL(DS "zero3_save_16bit_model", ZERO "stage3_gather_16bit_weights_on_model_save"),
IGNORE(DS "zero3_init_flag", "weights are read part by part"),
IGNORE(DS "deepspeed_multinode_launcher", LAUNCH),
NONE(DS "deepspeed_hostfile", HOSTS),
NONE(DS "deepspeed_exclusion_filter", HOSTS),
NONE(DS "deepspeed_inclusion_filter", HOSTS),
IGNORE(DS "deepspeed_moe_layer_cls_names", "each step is a fixed schedule"),
SPECIAL(FSDP "fsdp_sharding_strategy", accelerate_sharding),
SPECIAL(FSDP "fsdp_reshard_after_forward", accelerate_sharding),
SPECIAL(FSDP "fsdp_offload_params", accelerate_offload),
SPECIAL(FSDP "fsdp_cpu_offload", accelerate_offload),
SWITCH(FSDP "fsdp_activation_checkpointing", "sifr.recompute", "\"unit\""),
IGNORE(FSDP "fsdp_auto_wrap_policy", "the units are those of the model"),
IGNORE(FSDP "fsdp_transformer_layer_cls_to_wrap", "the units are those of the model"),
IGNORE(FSDP "fsdp_min_num_params", "the units are those of the model"),
IGNORE(FSDP "fsdp_backward_prefetch", "the plan prefetches"),
IGNORE(FSDP "fsdp_backward_prefetch_policy", "the plan prefetches"),
IGNORE(FSDP "fsdp_forward_prefetch", "the plan prefetches"),
IGNORE(FSDP "fsdp_state_dict_type", "checkpoints have one form"),
IGNORE(FSDP "fsdp_sync_module_states", TORCH),
IGNORE(FSDP "fsdp_use_orig_params", TORCH),
IGNORE(FSDP "fsdp_cpu_ram_efficient_loading", "weights are read part by part"),
IGNORE(FSDP "fsdp_version", TORCH),
SPECIAL("mixed_precision", accelerate_precision),
FILL("gradient_accumulation_steps", "gradient_accumulation_steps"),
FILL("gradient_clipping", "gradient_clipping"),
SPECIAL("num_processes", accelerate_ranks),
EXPECT("num_machines", "ranks are on one machine", "0|1", HOSTS),
EXPECT("distributed_type", "ranks are started by --ranks", "NO|MULTI_GPU|MULTI_CPU|DEEPSPEED|FSDP|XPU|MULTI_XPU", "ZeRO over MPI is what is there"),
IGNORE("machine_rank", HOSTS),
NONE("main_process_ip", HOSTS),
IGNORE("main_process_port", LAUNCH),
IGNORE("rdzv_backend", LAUNCH),
IGNORE("same_network", LAUNCH),
IGNORE("main_training_function", LAUNCH),
EXPECT("compute_environment", "ranks run where sifr runs", "LOCAL_MACHINE", "sifr runs on its own machines"),
EXPECT("gpu_ids", "ranks take the devices that are there", "all", "set CUDA_VISIBLE_DEVICES"),
IGNORE("enable_cpu_affinity", "each rank keeps to cores of its own"),
IGNORE("debug", "collectives are always checked"),
SWITCH("use_cpu", "sifr.device", "\"cpu\""),
IGNORE("downcast_bf16", TPU),
IGNORE("tpu_env", TPU),
IGNORE("tpu_use_cluster", TPU),
IGNORE("tpu_use_sudo", TPU),
IGNORE("tpu_name", TPU),
IGNORE("tpu_zone", TPU),
IGNORE("commands", TPU),
IGNORE("command_file", TPU),
IGNORE("dynamo_backend", TORCH),
IGNORE("dynamo_config", TORCH),
IGNORE("ipex_config", TORCH),
IGNORE("mpirun_config", LAUNCH),
NONE("megatron_lm_config", "there is no tensor parallelism"),
NONE("parallelism_config", "there is no tensor parallelism"),
IGNORE("fp8_config", "mixed_precision says whether it counts"),
NONE("sagemaker_config", "sifr runs on its own machines"),
};
/* clang-format on */

const import_source import_accelerate = {
    .word = "accelerate",
    .name = "an accelerate config",
    .section = "deepspeed_config|fsdp_config",
    .rows = accelerate_rows,
    .count = sizeof accelerate_rows / sizeof *accelerate_rows,
};
