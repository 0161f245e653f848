/* axolotl's YAML. */
#include <string.h>
#include <strings.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

#define KERNELS "products have one form"
#define QUANTIZED "4 bits (NF4) are what is supported of quantised weights"
#define TORCH "there is no torch here"
#define REPORTS "reports go to the output folder"
#define ATTENTION "attention has one form"
#define PER_EPOCH "give a number of steps"
#define GROUPS "set sifr.groups"
#define FOLDER "special tokens and the tokenizer are those of the model folder"
#define PREFERENCE "this preference training is not supported yet (supported: dpo, ipo, orpo)"

static sifr_status axolotl_scheduler(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.lr_scheduler_type";
    const char *word = json_string_value(value);
    const config_key *row = config_key_find(to, NULL);
    if (!word) return SIFR_OK;
    if (!config_key_has_word(row->choices, word, NULL, NULL))
        return import_refuse(s, key, value, "sifr does not have this schedule");
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_incref(value));
}

/* "auto" and "full" are bf16 too. */
static sifr_status axolotl_bf16(import_state *s, const char *key, json_t *value) {
    static const char *const to = "bf16.enabled";
    const char *word = json_string_value(value);
    bool full = word && strcasecmp(word, "full") == 0;
    bool on = json_is_true(value) || full || config_value_is_auto(value) ||
              (word && strcasecmp(word, "true") == 0);
    if (full)
        BASE_TRY(import_refuse(s, key, value,
                               "\"full\" trains weights in bf16, which are updated in fp32 here; "
                               "give true, or bf16.bf16_master_weights_and_grads"));
    else if (on)
        import_say_kept(s, key, value, to);
    const json_t *there = import_get(s, to);
    if (!on || (there && !config_value_is_auto(there))) return SIFR_OK;
    return import_put(s, to, json_true());
}

static sifr_status axolotl_recompute(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.recompute";
    if (!import_asks(value)) return SIFR_OK;
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_string("unit"));
}

/* Its plugin acts at its default too. */
static sifr_status axolotl_spectrum(import_state *s, const char *key, json_t *value) {
    if (!import_is_given(value)) return SIFR_OK;
    return import_refuse(s, key, value, "Spectrum is not supported yet; give sifr.freeze patterns");
}

/* axolotl makes two steps of a warm-up of one. */
static sifr_status axolotl_warmup(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.warmup_steps";
    static const import_row row = COPY("warmup_steps", "sifr.warmup_steps");
    if (json_number_value(value) != 1) return import_apply(s, &row, key, value);
    import_say_kept(s, key, value, "sifr.warmup_steps, 2 as axolotl has it");
    return import_put(s, to, json_integer(2));
}

/* clang-format off */
static const import_row axolotl_rows[] = {
LATER("deepspeed"),
COPY("base_model", "sifr.model"),
COPY("output_dir", "sifr.output"),
SPECIAL("datasets", import_axolotl_datasets),
REFUSE("pretraining_dataset", "axolotl cuts texts into pieces that overlap, in the order of a stream; pass the key with --allow, and give the text to --data, which is one stream without an overlap"),
SPECIAL("test_datasets", import_axolotl_tests),
COPY("sequence_len", "sifr.seq_length"),
COPY("micro_batch_size", "sifr.per_device_train_batch_size"),
COPY("gradient_accumulation_steps", "sifr.gradient_accumulation_steps"),
COPY("num_epochs", "sifr.num_train_epochs"),
COPY("max_steps", "sifr.max_steps"),
LATER("batch_size"),
COPY("learning_rate", "sifr.learning_rate"),
SPECIAL("lr_scheduler", axolotl_scheduler),
SPECIAL("lr_scheduler_kwargs", import_kwargs),
LATER("cosine_min_lr_ratio"),
REFUSE_BUT_0("cosine_constant_lr_ratio", "sifr does not have this schedule"),
SPECIAL("warmup_steps", axolotl_warmup),
COPY("warmup_ratio", "sifr.warmup_ratio"),
FILL("weight_decay", "optimizer.params.weight_decay"),
LATER("adam_epsilon"),
LATER("adam_beta1"),
LATER("adam_beta2"),
SPECIAL("max_grad_norm", import_clipping),
SPECIAL("bf16", axolotl_bf16),
SPECIAL("bfloat16", axolotl_bf16),
FILL("fp16", "fp16.enabled"),
FILL("float16", "fp16.enabled"),
COPY("seed", "sifr.seed"),
SPECIAL("gradient_checkpointing", axolotl_recompute),
IGNORE("gradient_checkpointing_kwargs", "recomputation has one form"),
STEPS("logging_steps", "sifr.logging_steps"),
STEPS("save_steps", "sifr.save_steps"),
STEPS("eval_steps", "sifr.eval_steps"),
COPY("save_total_limit", "sifr.save_total_limit"),
SWITCH("resume_from_checkpoint", "sifr.resume", "true"),
SWITCH("auto_resume_from_checkpoints", "sifr.resume", "true"),
STEPS("ddp_timeout", "sifr.collective_timeout"),
NONE_BUT_0("saves_per_epoch", PER_EPOCH),
NONE_BUT_0("evals_per_epoch", PER_EPOCH),
EXPECT("save_strategy", "save_steps counts", "steps|no", PER_EPOCH),
EXPECT("eval_strategy", "eval_steps counts", "steps|no", PER_EPOCH),
LATER("optimizer"),
LATER("optim_args"),
NEED("adapter", "sifr.lora is made of the keys of adapters", "lora|qlora|none|null|false", "lora and qlora are the only adapters supported yet"),
COPY("lora_model_dir", "sifr.adapter"),
LATER("peft_use_dora"),
LATER("peft_init_lora_weights"),
LATER("lora_r"),
LATER("lora_alpha"),
LATER("lora_dropout"),
LATER("lora_target_modules"),
LATER("lora_target_linear"),
LATER("lora_modules_to_save"),
LATER("lora_layers_to_transform"),
LATER("peft_layers_to_transform"),
LATER("peft_use_rslora"),
LATER("peft_layers_pattern"),
REFUSE("peft_layer_replication", "layers are those of the model"),
REFUSE("peft_trainable_token_indices", "a weight is trained whole or not at all"),
REFUSE("lora_target_parameters", "adapters stand beside products of the model alone"),
REFUSE("loraplus_lr_ratio", "all weights have one learning rate"),
IGNORE("loraplus_lr_embedding", "loraplus_lr_ratio says whether it counts"),
IGNORE("peft_autocast_adapter_dtype", "adapters are updated in fp32"),
REFUSE("peft_ensure_weight_tying", "adapters of tied weights are not tied"),
IGNORE("lora_on_cpu", "weights are read part by part"),
NONE("merge_lora", "`sifr merge` does that"),
IGNORE("lora_fan_in_fan_out", "the model says how its weights lie"),
IGNORE("lora_mlp_kernel", KERNELS),
IGNORE("liger_rope", KERNELS),
IGNORE("liger_rms_norm", KERNELS),
IGNORE("liger_layer_norm", KERNELS),
IGNORE("liger_glu_activation", KERNELS),
IGNORE("liger_swiglu", KERNELS),
IGNORE("liger_cross_entropy", KERNELS),
IGNORE("liger_fused_linear_cross_entropy", KERNELS),
IGNORE("cut_cross_entropy", KERNELS),
IGNORE("lora_qkv_kernel", KERNELS),
IGNORE("lora_o_kernel", KERNELS),
REFUSE("peft", "adapters begin by their own rule, beside codes of bitsandbytes: give load_in_4bit"),
LATER("load_in_4bit"),
LATER("bnb_config_kwargs"),
REFUSE("load_in_8bit", QUANTIZED),
REFUSE("gptq", QUANTIZED),
LATER("rl"),
LATER("rl_beta"),
LATER("orpo_alpha"),
REFUSE_BUT_0("rpo_alpha", PREFERENCE),
REFUSE_BUT_0("simpo_gamma", PREFERENCE),
REFUSE_BUT_0("cpo_alpha", PREFERENCE),
REFUSE_BUT_0("kto_desirable_weight", PREFERENCE),
REFUSE_BUT_0("kto_undesirable_weight", PREFERENCE),
REFUSE("dpo_use_weighting", PREFERENCE),
REFUSE("dpo_norm_loss", PREFERENCE),
REFUSE_BUT_0("dpo_label_smoothing", PREFERENCE),
REFUSE("dpo_loss_type", "give rl: ipo, or set sifr.preference.loss_type"),
REFUSE("trl", "give beta as rl_beta; online training is not supported yet"),
IGNORE("precompute_ref_log_probs", "the reference is computed once, before the first step"),
IGNORE("dpo_use_logits_to_keep", TORCH),
REFUSE_BUT_0("max_prompt_len", "a row is cut at its end, at seq_length alone"),
REFUSE("reward_model", "reward models are not supported yet"),
LATER("chat_template"),
SPECIAL("train_on_inputs", import_inputs_too),
LATER("val_set_size"),
NONE("fsdp", "set zero_optimization.stage: 3 for full_shard, 2 for shard_grad_op"),
NONE("fsdp_config", "set zero_optimization.stage: 3 for full_shard, 2 for shard_grad_op"),
REFUSE("unfrozen_parameters", "give sifr.freeze patterns of the others"),
COPY("sequence_parallel_degree", "sifr.context_parallel.size"),
COPY("context_parallel_size", "sifr.context_parallel.size"),
COPY("tensor_parallel_size", "tensor_parallel.size"),
REFUSE_BUT_0("relora_steps", "ReLoRA is not supported yet"),
REFUSE("relora", "ReLoRA is not supported yet"),
IGNORE("relora_prune_ratio", "relora says whether it counts"),
IGNORE("relora_cpu_offload", "relora says whether it counts"),
REFUSE_BUT_0("jagged_restart_steps", "ReLoRA is not supported yet"),
REFUSE_BUT_0("lisa_n_layers", "LISA is not supported yet"),
REFUSE("reinit_weights", "training begins with the model's weights; `sifr init` makes a folder of random ones"),
REFUSE("embedding_lr", GROUPS),
REFUSE("embedding_lr_scale", GROUPS),
REFUSE("lr_groups", GROUPS),
REFUSE("lr_quadratic_warmup", "sifr does not have this schedule"),
REFUSE("optim_target_modules", "optimizers work on whole weights"),
REFUSE("qat", QUANTIZED),
NONE("quantization", "weights are written in the type of training"),
REFUSE("fp8", "the types are bf16, fp16 and fp32"),
REFUSE("model_quantization_config", QUANTIZED),
REFUSE("use_pose", "positions are those of the rows"),
REFUSE("kd_trainer", "give the teacher's scores of `sifr score` as sifr.distill.scores"),
REFUSE("kd_alpha", "give the teacher's scores of `sifr score` as sifr.distill.scores"),
REFUSE("llmcompressor", "weights that stay zero are not supported yet"),
REFUSE("diffusion", "diffusion models are not supported yet"),
REFUSE("process_reward_model", "reward models are not supported yet"),
REFUSE("curriculum_sampling", "data are always shuffled"),
REFUSE("sample_packing_sequentially", "rows are packed best fit"),
REFUSE_BUT_0("min_sample_len", "rows of any length are learned"),
LATER("excess_length_strategy"),
LATER("chat_template_jinja"),
SPECIAL("chat_template_kwargs", import_template_variables),
REFUSE("default_system_message", "the chat template has it: put it there, and pass the key with --allow"),
LATER("eot_tokens"),
SPECIAL("train_on_eos", import_turn_key),
REFUSE("resize_token_embeddings_to_32x", "the vocabulary is that of the model folder"),
REFUSE("shrink_embeddings", "the vocabulary is that of the model folder"),
REFUSE("fix_untrained_tokens", "training begins with the model's weights"),
NONE("metric_for_best_model", "checkpoints are kept by age"),
REFUSE("load_best_model_at_end", "the model after the last step is written"),
NONE("do_causal_lm_eval", "an evaluation is of the loss"),
NONE("do_bench_eval", "an evaluation is of the loss"),
COPY("dataloader_drop_last", "dataloader_drop_last"),
REFUSE_BUT_0("neftune_noise_alpha", "noise on embeddings is not supported yet"),
REFUSE_BUT_0("noisy_embedding_alpha", "noise on embeddings is not supported yet"),
COPY("group_by_length", "sifr.group_by_length"),
REFUSE_BUT_0("early_stopping_patience", "a run goes on to its last step"),
NONE("loss_watchdog_threshold", "a run goes on to its last step"),
IGNORE("loss_watchdog_patience", "a run goes on to its last step"),
SPECIAL("plugins", import_plugins),
SPECIAL("special_tokens", import_special_tokens),
REFUSE("tokens", FOLDER ": put them there, and pass them with --allow"),
REFUSE("added_tokens_overrides", FOLDER ": put them there, and pass them with --allow"),
SPECIAL("tokenizer_config", import_same_model),
REFUSE("rope_scaling", "the model's config.json has it: put it there"),
REFUSE("overrides_of_model_config", "the model's config.json has it: put it there"),
SPECIAL("roles_to_train", import_turn_key),
REFUSE("dataset_exact_deduplication", "prepare the data before"),
NEED("shuffle_merged_datasets", "data are always shuffled", "true", "data are always shuffled"),
IGNORE("model_type", "the model's config.json says"),
IGNORE("tokenizer_type", "the model folder says"),
IGNORE("base_model_config", "the model folder has it"),
IGNORE("base_model_ignore_patterns", "the model is a folder"),
IGNORE("is_llama_derived_model", "the model's config.json says"),
IGNORE("is_mistral_derived_model", "the model's config.json says"),
IGNORE("is_falcon_derived_model", "the model's config.json says"),
IGNORE("trust_remote_code", "no code of a model is run"),
IGNORE("revision_of_model", "the model is a folder"),
IGNORE("tokenizer_use_fast", "there is one tokenizer"),
IGNORE("tokenizer_legacy", "the model folder says"),
IGNORE("tokenizer_use_mistral_common", "there is one tokenizer"),
IGNORE("is_qwen_derived_model", "the model's config.json says"),
IGNORE("strict", "keys are always checked"),
IGNORE("hf_use_auth_token", "nothing is fetched"),
IGNORE("hub_model_id", "nothing is sent to a hub"),
IGNORE("hub_strategy", "nothing is sent to a hub"),
IGNORE("hub_revision", "nothing is sent to a hub"),
IGNORE("push_dataset_to_hub", "nothing is sent to a hub"),
COPY("sample_packing", "sifr.packing"),
IGNORE("eval_sample_packing", "held-out rows are packed where the others are"),
IGNORE("pad_to_sequence_len", "every sequence has seq_length tokens"),
IGNORE("multipack_real_batches", "a packed row is a sequence of the batch"),
IGNORE("dataset_prepared_path", "token stores are kept beside the data"),
IGNORE("dataset_processes", "data are read from a token store"),
IGNORE("dataloader_num_workers", "data are read from a token store"),
IGNORE("dataloader_pin_memory", "data are read from a token store"),
IGNORE("dataloader_prefetch_factor", "data are read from a token store"),
REFUSE_BUT_0("dataset_shard_num", "prepare the data before"),
IGNORE("eval_batch_size", "an evaluation uses the micro batch of training"),
IGNORE("eval_table_size", REPORTS),
IGNORE("eval_max_new_tokens", REPORTS),
IGNORE("max_packed_sequence_len", "documents are packed"),
IGNORE("tf32", "products of fp32 are of fp32"),
IGNORE("flash_attention", ATTENTION),
IGNORE("attn_implementation", ATTENTION),
IGNORE("xformers_attention", ATTENTION),
IGNORE("sdp_attention", ATTENTION),
REFUSE("s2_attention", "shifted sparse attention is not supported"),
IGNORE("eager_attention", ATTENTION),
IGNORE("flex_attention", ATTENTION),
IGNORE("flash_optimum", ATTENTION),
IGNORE("attention", ATTENTION),
IGNORE("flash_attn_cross_entropy", TORCH),
IGNORE("flash_attn_rms_norm", TORCH),
IGNORE("flash_attn_fuse_qkv", TORCH),
IGNORE("flash_attn_fuse_mlp", TORCH),
IGNORE("torch_compile", TORCH),
IGNORE("torch_compile_backend", TORCH),
IGNORE("torch_compile_mode", TORCH),
IGNORE("torchdistx_path", TORCH),
IGNORE("device_map", TORCH),
IGNORE("gc_steps", TORCH),
IGNORE("max_memory", TORCH),
IGNORE("gpu_memory_limit", TORCH),
SPECIAL("accelerator_config", import_accelerator),
IGNORE("ddp_bucket_cap_mb", TORCH),
IGNORE("ddp_broadcast_buffers", TORCH),
IGNORE("ddp_find_unused_parameters", TORCH),
IGNORE("fsdp_version", TORCH),
IGNORE("fsdp_final_state_dict_type", TORCH),
IGNORE("qlora_sharded_model_loading", TORCH),
IGNORE("use_kernels", KERNELS),
IGNORE("unsloth_cross_entropy_loss", KERNELS),
IGNORE("unsloth_lora_mlp", KERNELS),
IGNORE("unsloth_lora_qkv", KERNELS),
IGNORE("unsloth_lora_o", KERNELS),
IGNORE("unsloth_rms_norm", KERNELS),
IGNORE("unsloth_rope", KERNELS),
IGNORE("float32", "without bf16 and fp16 the type is fp32"),
IGNORE("embeddings_skip_upcast", "weights are updated in fp32"),
IGNORE("adam_beta3", "optimizer says whether it counts"),
IGNORE("adam_epsilon2", "optimizer says whether it counts"),
IGNORE("lr_div_factor", "lr_scheduler says whether it counts"),
IGNORE("total_num_tokens", "tokens are counted"),
IGNORE("sample_packing_eff_est", "rows are packed best fit"),
IGNORE("sample_packing_seq_len_multiplier", "rows are packed best fit"),
IGNORE("sample_packing_group_size", "rows are packed best fit"),
IGNORE("sample_packing_bin_size", "rows are packed best fit"),
IGNORE("batch_flattening", "sample_packing is what leaves out padding"),
IGNORE("skip_prepare_dataset", "token stores are kept beside the data"),
IGNORE("dataset_keep_in_memory", "data are read from a token store"),
IGNORE("remove_unused_columns", "fields that a form does not have are not read"),
IGNORE("greater_is_better", "checkpoints are kept by age"),
IGNORE("merge_method", "weights are read part by part"),
IGNORE("ddp", TORCH),
IGNORE("local_rank", "ranks know their numbers"),
IGNORE("debug", REPORTS),
IGNORE("low_cpu_mem_usage", "weights are read part by part"),
IGNORE("save_safetensors", "weights are safetensors"),
IGNORE("save_only_model", "checkpoints are whole"),
IGNORE("save_first_step", "the output folder is checked before the run"),
IGNORE("use_wandb", "its package reads metrics.jsonl (docs/monitoring.md)"),
SWITCH("use_mlflow", "sifr.mlflow", "true"),
IGNORE("use_comet", "its package reads metrics.jsonl (docs/monitoring.md)"),
SPECIAL("use_tensorboard", import_use_tensorboard),
IGNORE("profiler_steps", REPORTS),
IGNORE("include_tokens_per_second", REPORTS),
IGNORE("eval_causal_lm_metrics", REPORTS),
IGNORE("wandb_project", REPORTS),
IGNORE("wandb_entity", REPORTS),
IGNORE("wandb_watch", REPORTS),
IGNORE("wandb_name", REPORTS),
IGNORE("wandb_run_id", REPORTS),
IGNORE("wandb_log_model", REPORTS),
IGNORE("wandb_mode", REPORTS),
SPECIAL("mlflow_experiment_name", import_mlflow_experiment),
SPECIAL("mlflow_tracking_uri", import_mlflow_uri),
IGNORE("mlflow_run_name", "reports have the name of the output folder"),
SPECIAL("hf_mlflow_log_artifacts", import_mlflow_artifacts),
IGNORE("use_trackio", "trackio.import_tf_events reads the files of tensorboard (docs/monitoring.md)"),
REFUSE("overrides_of_model_kwargs", "the model's config.json has it: put it there"),
LATER("lora_exclude_modules"),
REFUSE("use_eaft", "this loss is not supported yet"),
SPECIAL("spectrum_top_fraction", axolotl_spectrum),
REFUSE("dpo_loss_weights", PREFERENCE),
REFUSE("dpo_beta", "give it as rl_beta"),
REFUSE("ebft", "this training is not supported yet"),
REFUSE("mora", "lora and qlora are the only adapters supported yet"),
REFUSE("lora_alpha_pattern", "all adapters have one rank and alpha"),
REFUSE("lora_rank_pattern", "all adapters have one rank and alpha"),
REFUSE("scaling_softmax", "this attention is not supported"),
REFUSE("grokfast_alpha", "Grokfast is not supported"),
};
/* clang-format on */

/* axolotl's own checks: adapters have a rank, and qlora stands beside codes. */
static sifr_status axolotl_lora(import_state *s) {
    static const char *const codes = "load_in_4bit";
    const char *adapter = json_string_value(json_object_get(s->source, "adapter"));
    bool qlora = adapter && strcmp(adapter, "qlora") == 0;
    bool on = qlora || (adapter && strcmp(adapter, "lora") == 0);
    bool goes_on = import_get(s, "sifr.adapter");
    import_lora lora = {.on = on && !goes_on,
                        .off = goes_on ? "the adapter in lora_model_dir has its own"
                                       : "no adapter is trained"};
    json_t *value = json_object_get(s->source, codes);
    if (lora.on) BASE_TRY(import_check_lora(s));
    if (qlora && !json_is_true(value))
        BASE_TRY(import_refuse(s, codes, value ? value : json_null(),
                               "axolotl's qlora is beside weights in 4 bits alone; give true, or "
                               "adapter: lora"));
    BASE_TRY(import_finish_lora(s, &lora));
    return import_finish_codes(s, true);
}

/* cosine_min_lr_ratio makes another schedule of cosine, which is also the usual one. */
static sifr_status axolotl_finish(import_state *s) {
    static const char *const ratio = "cosine_min_lr_ratio", *const type = "sifr.lr_scheduler_type";
    json_t *least = json_object_get(s->source, ratio);
    const char *kind = json_string_value(import_get(s, type));
    bool cosine = !kind || strcmp(kind, "cosine") == 0;
    BASE_TRY(import_axolotl_defaults(s));
    BASE_TRY(import_axolotl_objective(s));
    BASE_TRY(import_finish_optimizer(s, "optimizer"));
    BASE_TRY(import_axolotl_template(s));
    BASE_TRY(import_axolotl_turns(s));
    BASE_TRY(import_finish_rows(s, "val_set_size"));
    BASE_TRY(import_axolotl_packed(s));
    BASE_TRY(import_axolotl_long(s));
    BASE_TRY(axolotl_lora(s));
    if (import_asks(least) && !cosine)
        import_say_idle(s, ratio, least, "the schedule is no cosine");
    if (!import_asks(least) || !cosine) return import_finish_schedule(s, "cosine");
    import_say_kept(s, ratio, least, "sifr.lr_scheduler_kwargs.min_lr_rate");
    BASE_TRY(import_put(s, type, json_string("cosine_with_min_lr")));
    BASE_TRY(import_put(s, "sifr.lr_scheduler_kwargs.min_lr_rate", json_incref(least)));
    return import_finish_schedule(s, "cosine");
}

const import_source import_axolotl = {
    .word = "axolotl",
    .name = "an axolotl config",
    .section = "",
    .rows = axolotl_rows,
    .count = sizeof axolotl_rows / sizeof *axolotl_rows,
    .finish = axolotl_finish,
};
