/* Keys of other programs that change no training, by what they are about. */
#include <string.h>

#include "config/import/import_private.h"

/* Names end with * where all that begin so are meant. */
static const struct {
    const char *names, *why;
} idle[] = {
    {"comet_*|mlflow_*|hf_mlflow_*|trackio_*|otel_*|use_otel_metrics|swanlab_*|"
     "wandb_*|use_wandb|gradio_*|profiler_*|profile_modules|enable_torch_profiler|include_tkps|"
     "report_*|generate_samples|generation_*|num_generation_samples|print_param_status|"
     "eval_on_each_dataset|dpo_generate_during_eval",
     "reports go to the output folder"},
    {"lm_eval_*|bench_*|sortish_sampler|eval_num_beams|eval_sequence_len",
     "an evaluation is of the loss alone"},
    {"hub_*|push_to_hub_*|ms_hub_token|om_hub_token|token|hatchery", "nothing is sent to a hub"},
    {"ray_*|use_ray|resources_per_worker|world_size|device|device_map|master_addr|master_port|"
     "dp_shard_size|dp_replicate_size|ring_attn_func|heads_k_stride|expert_parallel_*|"
     "expert_backend",
     "sifr train starts its ranks"},
    {"vllm*|sglang_*|infer_*|do_sample|temperature|top_k|top_p|num_beams|max_new_tokens|"
     "repetition_penalty|length_penalty|skip_special_tokens|use_kv_cache|offload_folder|"
     "generation_config",
     "sifr train generates nothing"},
    {"export_*|adapter_folder|save_compressed|tokenizer_save_jinja_files|save_state|"
     "output_router_logits",
     "`sifr merge` and `sifr export` write models"},
    {"axolotl_config_path|is_preprocess|preprocess_iterable|num_dataset_shards_to_save|"
     "dataset_num_proc|preprocessing_batch_size|buffer_size|streaming_multipack_buffer_size|"
     "data_shared_file_system|sample_packing_mp_start_method|shuffle_before_merging_datasets|"
     "group_by_modality",
     "data are read from a token store"},
    {"image_*|video_*|audio_*|crop_to_patches|use_audio_in_video|processor_*|freeze_mm_modules|"
     "freeze_language_model",
     "models of text alone are trained"},
    {"activation_offloading|layer_offloading|selective_checkpointing|ple_cpu_offload|"
     "gc_collect_steps|torch_empty_cache_steps|auto_find_batch_size|max_memory|deepcompile|"
     "torch_compile_*|tiled_mlp*|large_head_attention|low_cpu_mem_usage|mean_resizing_embeddings|"
     "disable_gradient_checkpointing|fp8_enable_*",
     "it changes memory and time alone"},
    {"liger_*|use_scattermoe|use_sonicmoe|moe_*|sdpa_varlen|sage_attention|fused_attn_kernel|"
     "flash_attn_*|flex_attn_*|experts_implementation|use_glm_dsa_kernels|use_dsv4_kernels|"
     "lora_embedding_kernel|chunked_cross_entropy*|dpo_use_liger_kernel|dpo_padding_free|"
     "use_v1_kernels|use_fast_tokenizer|type_of_model|dpo_loss_kernel|ignore_bias_buffers|"
     "experimental_skip_move_to_device",
     "products have one form"},
    {"apollo_*", "use_apollo says whether it counts"},
    {"galore_*", "use_galore says whether it counts"},
    {"badam_*", "use_badam says whether it counts"},
    {"qgalore_*|dion_*", "optimizer says whether it counts"},
    {"ppo_*|reward_model_*", "stage says whether it counts"},
    {"eaft_*|asft_alpha", "the loss's own key says whether it counts"},
    {"kto_*", "stage says whether it counts"},
    {"oft_*|module_dropout", "finetuning_type says whether it counts"},
    {"freeze_trainable_*|freeze_extra_modules", "finetuning_type says whether it counts"},
    {"kt_*", "use_kt says whether it counts"},
    {"spectrum_model_name", "spectrum_top_fraction says whether it counts"},
    {"lisa_*", "lisa_n_layers says whether it counts"},
    {"pose_*", "use_pose says whether it counts"},
    {"kd_*", "kd_trainer says whether it counts"},
    {"nemo_gym_*", "nemo_gym_enabled says whether it counts"},
};

static bool is_one_of(const char *names, const char *key) {
    while (*names) {
        size_t length = strcspn(names, "|");
        bool open = length && names[length - 1] == '*';
        size_t fixed = length - open;
        bool same = strncmp(names, key, fixed) == 0 && (open || key[fixed] == '\0');
        if (same && (open || strlen(key) == fixed)) return true;
        names += length + (names[length] == '|');
    }
    return false;
}

const char *import_idle_reason(const char *key) {
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (is_one_of(idle[i].names, key)) return idle[i].why;
    return NULL;
}
