/* The Hugging Face Trainer's arguments and those of the programs built on it: TRL and the alignment
 * handbook, LLaMA-Factory, open-instruct. */
#include <string.h>

#include "config/config_private.h"
#include "config/import_private.h"

#define QUANTIZED "4 bits (NF4) are what is supported of quantised weights"
#define SET_BY "the data are given by --data or sifr.data"
#define CHAT "the chat template is the model folder's; give the rows to --data"
#define REPORTS "reports go to the output folder"
#define LOADING "data are read from a token store"
#define HUB "nothing is sent to a hub"
#define TORCH "there is no torch here"
#define MODEL_TYPE "the model is read in its own type and trained in that of bf16 or fp16"
#define CUT "a row is cut at its end, at seq_length alone"
#define PREFERENCE                                                                                 \
    "this preference training is not supported yet (supported: DPO by sigmoid, hinge and ipo; "    \
    "ORPO)"
#define REFERENCE                                                                                  \
    "make the reference's scores with `sifr score`, and give them as sifr.preference.reference"
#define KTO "only pairs of answers are learned from yet, by DPO or ORPO"

/* clang-format off */
static const import_row trainer_rows[] = {
LATER("deepspeed"),
COPY("model_name_or_path", "sifr.model"),
COPY("output_dir", "sifr.output"),
COPY("train_file", "sifr.data"),
COPY("validation_file", "sifr.eval_data"),
COPY("learning_rate", "sifr.learning_rate"),
COPY("num_train_epochs", "sifr.num_train_epochs"),
COPY("max_steps", "sifr.max_steps"),
COPY("max_train_steps", "sifr.max_steps"),
COPY("per_device_train_batch_size", "sifr.per_device_train_batch_size"),
COPY("gradient_accumulation_steps", "sifr.gradient_accumulation_steps"),
COPY("lr_scheduler_type", "sifr.lr_scheduler_type"),
SPECIAL("lr_scheduler_kwargs", import_kwargs),
COPY("warmup_steps", "sifr.warmup_steps"),
COPY("warmup_ratio", "sifr.warmup_ratio"),
FILL("weight_decay", "optimizer.params.weight_decay"),
LATER("adam_epsilon"),
LATER("adam_beta1"),
LATER("adam_beta2"),
FILL("max_grad_norm", "gradient_clipping"),
FILL("clip_grad_norm", "gradient_clipping"),
FILL("bf16", "bf16.enabled"),
FILL("fp16", "fp16.enabled"),
NONE("pure_bf16", "weights are updated in fp32; bf16.bf16_master_weights_and_grads keeps them in bf16"),
COPY("seed", "sifr.seed"),
COPY("max_seq_length", "sifr.seq_length"),
COPY("max_length", "sifr.seq_length"),
COPY("cutoff_len", "sifr.seq_length"),
COPY("block_size", "sifr.seq_length"),
SWITCH("gradient_checkpointing", "sifr.recompute", "\"unit\""),
SWITCH("use_gradient_checkpointing", "sifr.recompute", "\"unit\""),
STEPS("logging_steps", "sifr.logging_steps"),
STEPS("save_steps", "sifr.save_steps"),
STEPS("checkpointing_steps", "sifr.save_steps"),
STEPS("eval_steps", "sifr.eval_steps"),
COPY("save_total_limit", "sifr.save_total_limit"),
COPY("keep_last_n_checkpoints", "sifr.save_total_limit"),
COPY("eval_on_start", "sifr.eval_on_start"),
SWITCH("resume_from_checkpoint", "sifr.resume", "true"),
STEPS("ddp_timeout", "sifr.collective_timeout"),
LATER("save_strategy"),
LATER("eval_strategy"),
LATER("evaluation_strategy"),
LATER("optim"),
NEED("finetuning_type", "sifr.lora says what is trained", "full|lora", "only full training and LoRA are supported yet"),
LATER("stage"),
EXPECT("logging_strategy", "logging_steps counts", "steps", "metrics are logged each logging_steps"),
REFUSE("label_smoothing_factor", "label smoothing is not supported yet"),
REFUSE("neftune_noise_alpha", "noise on embeddings is not supported yet"),
COPY("group_by_length", "sifr.group_by_length"),
IGNORE("dataloader_drop_last", "a last global batch that is not full is always dropped"),
COPY("packing", "sifr.packing"),
LATER("use_peft"),
LATER("use_lora"),
LATER("use_qlora"),
LATER("use_dora"),
LATER("use_rslora"),
REFUSE("lora_target_parameters", "adapters stand beside products of the model alone"),
EXPECT("lora_task_type", "the model's task is trained", "CAUSAL_LM|SEQ_CLS|TOKEN_CLS", "the model's task is trained"),
COPY("adapter_name_or_path", "sifr.adapter"),
REFUSE("pissa_init", "adapters begin by LoRA's rule alone"),
REFUSE("loraplus_lr_ratio", "all weights have one learning rate"),
LATER("load_in_4bit"),
LATER("bnb_4bit_quant_type"),
LATER("use_bnb_nested_quant"),
REFUSE("load_in_8bit", QUANTIZED),
LATER("quantization_bit"),
LATER("quantization_type"),
LATER("double_quantization"),
NEED("quantization_method", "codes are those of bitsandbytes", "bnb|bitsandbytes", QUANTIZED),
NONE("fsdp", "set zero_optimization.stage: 3 for full_shard, 2 for shard_grad_op"),
IGNORE("fsdp_config", "fsdp says whether it counts"),
IGNORE("per_device_eval_batch_size", "an evaluation uses the micro batch of training"),
NONE("metric_for_best_model", "checkpoints are kept by age"),
NONE("load_best_model_at_end", "checkpoints are kept by age"),
NONE("dataset_mixer", CHAT),
NONE("dataset_mixer_list", CHAT),
SPECIAL("dataset_name", import_rows_file),
NONE("dataset_config_name", SET_BY),
NONE("dataset_config", SET_BY),
SPECIAL("dataset", import_rows_file),
NONE("dataset_dir", SET_BY),
NONE("dataset_splits", SET_BY),
NONE("dataset_configs", SET_BY),
SPECIAL("dataset_text_field", import_text_field),
SPECIAL("text_column", import_text_field),
NONE("dataset_mixture", CHAT),
NONE("dataset_train_split", SET_BY),
NONE("dataset_test_split", SET_BY),
NONE("eval_dataset", SET_BY),
NONE("max_samples", SET_BY),
LATER("val_size"),
NONE("max_train_samples", SET_BY),
NONE("template", CHAT),
NONE("chat_template", CHAT),
SPECIAL("assistant_only_loss", import_assistant_only),
SPECIAL("completion_only_loss", import_assistant_only),
SPECIAL("train_on_prompt", import_inputs_too),
SPECIAL("mask_history", import_last_only),
NONE("auto_insert_empty_system_msg", CHAT),
EXPECT("eos_token", "special tokens are those of the model folder", "<EOS_TOKEN>", "special tokens are those of the model folder"),
EXPECT("pad_token", "special tokens are those of the model folder", "<PAD_TOKEN>", "special tokens are those of the model folder"),
EXPECT("packing_strategy", "rows are packed best fit", "bfd", "rows are packed best fit, and none is cut for that"),
EXPECT("truncation_mode", "rows are cut at their end", "keep_start", "rows are cut at their end"),
IGNORE("padding_free", "--packing is what leaves out padding"),
IGNORE("eval_packing", "held-out rows are packed where the others are"),
IGNORE("shuffle_dataset", "data are always shuffled"),
IGNORE("pad_to_multiple_of", "every sequence has seq_length tokens"),
NONE("chat_template_path", CHAT),
NONE("activation_offloading", "sifr.offload_activations moves activations to a disk"),
NONE("model_init_kwargs", MODEL_TYPE),
NONE("dataset_kwargs", SET_BY),
LATER("beta"),
LATER("loss_type"),
LATER("pref_loss"),
LATER("pref_beta"),
LATER("dpo_beta"),
LATER("dpo_loss_type"),
NONE("max_prompt_length", CUT),
NONE("max_completion_length", CUT),
NONE("max_target_length", CUT),
REFUSE("loss_weights", PREFERENCE),
REFUSE("label_smoothing", PREFERENCE),
REFUSE("dpo_label_smoothing", PREFERENCE),
REFUSE("rpo_alpha", PREFERENCE),
REFUSE("ld_alpha", PREFERENCE),
REFUSE("use_weighting", PREFERENCE),
REFUSE("reference_free", PREFERENCE),
REFUSE("pref_ftx", PREFERENCE),
REFUSE("pref_bco_weight", PREFERENCE),
REFUSE("simpo_gamma", PREFERENCE),
REFUSE("cpo_alpha", PREFERENCE),
REFUSE("desirable_weight", KTO),
REFUSE("undesirable_weight", KTO),
REFUSE("num_generations", KTO),
LATER("center_rewards_coefficient"),
NEED("f_divergence_type", "the divergence is that of DPO", "reverse_kl|FDivergenceType.REVERSE_KL", PREFERENCE),
IGNORE("f_alpha_divergence_coef", "f_divergence_type says whether it counts"),
IGNORE("discopop_tau", "loss_type says whether it counts"),
REFUSE("ref_model", REFERENCE),
REFUSE("ref_model_adapters", REFERENCE),
REFUSE("ref_model_quantization_bit", REFERENCE),
REFUSE("ref_adapter_name", REFERENCE),
REFUSE("force_use_ref_model", REFERENCE),
REFUSE("sync_ref_model", "the reference stays as it is"),
IGNORE("ref_model_mixup_alpha", "sync_ref_model says whether it counts"),
IGNORE("ref_model_sync_steps", "sync_ref_model says whether it counts"),
IGNORE("ref_model_init_kwargs", MODEL_TYPE),
NEED("dpo_use_reference_model", "there is a reference", "true", PREFERENCE),
IGNORE("precompute_ref_log_probs", "the reference is computed once, before the first step"),
IGNORE("precompute_ref_batch_size", "the reference is computed in micro batches"),
NONE("model_adapter_name", "there is one adapter"),
NONE("disable_dropout", "the model's config.json has its dropout: set it to 0 there"),
NONE("generate_during_eval", "an evaluation generates nothing"),
REFUSE("is_encoder_decoder", "models of one part alone are supported"),
IGNORE("label_pad_token_id", "padding has no labels"),
IGNORE("padding_value", "padding has no labels"),
IGNORE("use_logits_to_keep", TORCH),
IGNORE("use_liger_loss", TORCH),
LATER("optim_args"),
NONE("data_seed", "seed orders the data"),
IGNORE("torch_compile", TORCH),
EXPECT("reduce_loss", "the loss is a mean over tokens", "mean", "the loss is a mean over the tokens of the global batch"),
IGNORE("gradient_checkpointing_kwargs", "recomputation has one form"),
IGNORE("torch_dtype", MODEL_TYPE),
IGNORE("dtype", MODEL_TYPE),
IGNORE("tf32", "products of fp32 are of fp32"),
IGNORE("attn_implementation", "attention has one form"),
IGNORE("flash_attn", "attention has one form"),
IGNORE("use_flash_attn", "attention has one form"),
IGNORE("use_flash_attention_2", "attention has one form"),
IGNORE("use_liger_kernel", TORCH),
IGNORE("enable_liger_kernel", TORCH),
IGNORE("use_unsloth", TORCH),
IGNORE("use_cache", "training keeps no cache"),
IGNORE("low_cpu_mem_usage", "weights are read part by part"),
NONE("tokenizer_name", "the tokenizer is that of the model folder"),
NONE("tokenizer_name_or_path", "the tokenizer is that of the model folder"),
IGNORE("use_slow_tokenizer", "there is one tokenizer"),
IGNORE("model_revision", "the model is a folder"),
IGNORE("trust_remote_code", "no code of a model is run"),
IGNORE("cache_dir", "the model is a folder"),
NONE("resize_vocab", "the vocabulary is that of the model folder"),
REFUSE("freeze_layers", "give sifr.freeze patterns"),
IGNORE("report_to", REPORTS),
IGNORE("run_name", REPORTS),
IGNORE("logging_dir", REPORTS),
IGNORE("with_tracking", REPORTS),
IGNORE("plot_loss", REPORTS),
IGNORE("log_level", REPORTS),
IGNORE("disable_tqdm", REPORTS),
IGNORE("logging_first_step", "logging_steps counts from the first step"),
IGNORE("include_num_input_tokens_seen", "tokens are always counted"),
IGNORE("exp_name", REPORTS),
IGNORE("wandb_project_name", REPORTS),
IGNORE("wandb_entity", REPORTS),
IGNORE("push_to_hub", HUB),
IGNORE("hub_model_id", HUB),
IGNORE("hub_strategy", HUB),
IGNORE("hub_model_revision", HUB),
IGNORE("hub_private_repo", HUB),
IGNORE("hub_token", HUB),
IGNORE("push_to_hub_revision", HUB),
IGNORE("try_launch_beaker_eval_jobs", HUB),
IGNORE("hf_metadata_dataset", HUB),
IGNORE("preprocessing_num_workers", LOADING),
IGNORE("dataset_num_proc", LOADING),
IGNORE("dataloader_num_workers", LOADING),
IGNORE("dataloader_pin_memory", LOADING),
IGNORE("overwrite_cache", LOADING),
IGNORE("remove_unused_columns", LOADING),
IGNORE("streaming", LOADING),
IGNORE("dataloader_prefetch_factor", LOADING),
IGNORE("overwrite_output_dir", "a finished output folder is not written over"),
IGNORE("do_train", "sifr train trains"),
IGNORE("do_eval", "eval_steps and --eval-data say"),
NONE("do_predict", "sifr eval does that"),
IGNORE("save_only_model", "checkpoints are whole"),
IGNORE("save_safetensors", "weights are safetensors"),
IGNORE("ddp_find_unused_parameters", TORCH),
IGNORE("local_rank", "ranks know their numbers"),
IGNORE("use_cpu", "sifr.device says"),
IGNORE("average_tokens_across_devices", "the mean is that of the global batch's tokens"),
IGNORE("auto_find_batch_size", "sifr plan --fit does that"),
IGNORE("eval_accumulation_steps", "an evaluation keeps no logits"),
LATER("lora_r"),
LATER("lora_alpha"),
LATER("lora_dropout"),
LATER("lora_target_modules"),
LATER("lora_modules_to_save"),
LATER("lora_rank"),
LATER("lora_target"),
LATER("additional_target"),
REFUSE("optim_target_modules", "optimizers work on whole weights"),
IGNORE("bf16_full_eval", "evaluations have the type of training"),
IGNORE("fp16_full_eval", "evaluations have the type of training"),
IGNORE("half_precision_backend", "evaluations have the type of training"),
IGNORE("fp16_opt_level", "evaluations have the type of training"),
IGNORE("fp16_backend", "evaluations have the type of training"),
SWITCH("activation_checkpointing", "sifr.recompute", "\"unit\""),
IGNORE("activation_checkpointing_kwargs", "recomputation has one form"),
IGNORE("torch_compile_backend", TORCH),
IGNORE("torch_compile_mode", TORCH),
IGNORE("torch_empty_cache_steps", TORCH),
IGNORE("liger_kernel_config", TORCH),
IGNORE("torchdynamo", TORCH),
IGNORE("jit_mode_eval", TORCH),
IGNORE("use_ipex", TORCH),
IGNORE("ddp_bucket_cap_mb", TORCH),
IGNORE("ddp_broadcast_buffers", TORCH),
IGNORE("ddp_static_graph", TORCH),
IGNORE("ddp_backend", TORCH),
IGNORE("skip_memory_metrics", TORCH),
IGNORE("full_determinism", TORCH),
IGNORE("mp_parameters", TORCH),
IGNORE("use_mps_device", TORCH),
IGNORE("no_cuda", TORCH),
IGNORE("tpu_num_cores", TORCH),
IGNORE("tpu_metrics_debug", TORCH),
IGNORE("ray_scope", TORCH),
IGNORE("sharded_ddp", TORCH),
IGNORE("debug", TORCH),
IGNORE("enable_jit_checkpoint", TORCH),
IGNORE("log_on_each_node", REPORTS),
IGNORE("logging_nan_inf_filter", REPORTS),
IGNORE("log_level_replica", REPORTS),
IGNORE("project", REPORTS),
IGNORE("trackio_space_id", REPORTS),
IGNORE("trackio_bucket_id", REPORTS),
IGNORE("trackio_static_space_id", REPORTS),
IGNORE("include_tokens_per_second", REPORTS),
IGNORE("save_on_each_node", REPORTS),
NONE("eval_delay", "evaluations begin with eval_steps"),
IGNORE("prediction_loss_only", "an evaluation keeps no logits"),
IGNORE("eval_do_concat_batches", "an evaluation keeps no logits"),
IGNORE("eval_use_gather_object", "an evaluation keeps no logits"),
IGNORE("batch_eval_metrics", "an evaluation keeps no logits"),
IGNORE("include_for_metrics", "an evaluation keeps no logits"),
IGNORE("include_inputs_for_metrics", "an evaluation keeps no logits"),
IGNORE("past_index", "an evaluation keeps no logits"),
IGNORE("hub_always_push", HUB),
IGNORE("hub_revision", HUB),
IGNORE("push_to_hub_model_id", HUB),
IGNORE("push_to_hub_organization", HUB),
IGNORE("push_to_hub_token", HUB),
IGNORE("greater_is_better", "a resumed run goes on where it was"),
IGNORE("ignore_data_skip", "a resumed run goes on where it was"),
IGNORE("restore_callback_states_from_checkpoint", "a resumed run goes on where it was"),
IGNORE("use_legacy_prediction_loop", "a resumed run goes on where it was"),
IGNORE("accelerator_config", LOADING),
IGNORE("dispatch_batches", LOADING),
IGNORE("split_batches", LOADING),
IGNORE("dataloader_persistent_workers", LOADING),
IGNORE("dataloader_multiprocessing_context", LOADING),
IGNORE("dataloader_in_order", LOADING),
IGNORE("label_names", LOADING),
IGNORE("length_column_name", LOADING),
NONE("parallelism_config", "there is no tensor parallelism"),
IGNORE("fsdp_min_num_params", "the units are those of the model"),
IGNORE("fsdp_transformer_layer_cls_to_wrap", "the units are those of the model"),
EXPECT("train_sampling_strategy", "data are always shuffled", "random", "data are always shuffled"),
};
/* clang-format on */

/* Under the Trainer a DeepSpeed config that has a scheduler decides, but for what is "auto". */
sifr_status import_finish_schedule(import_state *s, const char *usual) {
    static const char *const keys[] = {"sifr.lr_scheduler_type", "sifr.lr_scheduler_kwargs",
                                       "sifr.warmup_steps", "sifr.warmup_ratio"};
    if (!import_get(s, "scheduler.type")) {
        if (import_get(s, keys[0])) return SIFR_OK;
        json_t *kind = json_string(usual);
        import_say_kept(s, "its default of lr_scheduler_type", kind, keys[0]);
        return import_put(s, keys[0], kind);
    }
    bool open = config_value_is_auto(import_get(s, "scheduler.params.warmup_num_steps"));
    for (size_t i = 0; i < (open ? 2 : 4); i++) {
        const json_t *value = import_get(s, keys[i]);
        if (!value) continue;
        import_say_left(s, keys[i] + 5, value, "the DeepSpeed config has a scheduler");
        import_drop(s, keys[i]);
    }
    return SIFR_OK;
}

/* "steps" is what sifr has; "no" switches off. */
static sifr_status trainer_strategy(import_state *s, const char *key, const char *steps,
                                    const char *usual) {
    const json_t *value = json_object_get(s->source, key);
    const char *word = value && !json_is_null(value) ? json_string_value(value) : usual;
    if (json_is_false(value)) word = "no";
    if (!word || strcmp(word, "steps") == 0) return SIFR_OK;
    if (strcmp(word, "no") != 0) {
        import_say_left(s, key, value, "only a number of steps is supported, and the end");
    }
    import_drop(s, steps);
    return SIFR_OK;
}

/* TRL's use_peft, and LLaMA-Factory's finetuning_type, with their defaults. */
static sifr_status trainer_lora(import_state *s) {
    const char *type = json_string_value(json_object_get(s->source, "finetuning_type"));
    bool factory = type && strcmp(type, "lora") == 0, goes_on = import_get(s, "sifr.adapter");
    bool peft = json_is_true(json_object_get(s->source, "use_peft")) ||
                json_is_true(json_object_get(s->source, "use_lora")) ||
                json_is_true(json_object_get(s->source, "use_qlora"));
    import_lora lora = {.on = (factory || peft) && !goes_on,
                        .off = goes_on ? "the adapter has its own" : "no adapter is trained"};
    if (factory) lora.r = 8, lora.alpha_by_rank = 2, lora.all = true;
    if (!factory) lora.r = 16, lora.alpha = 32, lora.dropout = 0.05;
    BASE_TRY(import_finish_lora(s, &lora));
    return import_finish_codes(s, json_object_get(s->source, "quantization_bit") != NULL);
}

/* DPO by TRL, LLaMA-Factory and open-instruct, and TRL's ORPO. LLaMA-Factory's ORPO leaves the
 * prompt out of the cross entropy, which TRL's and sifr's have. */
static sifr_status trainer_preference(import_state *s) {
    static const char *const trl[][2] = {
        {"nll", ""},        {"chunked_nll", ""}, {"sigmoid", "sigmoid"},
        {"hinge", "hinge"}, {"ipo", "ipo"},      {"orpo", "orpo"}};
    static const import_preference factory = {"pref_loss", "pref_beta", "sigmoid", trl + 2, 3, 8};
    static const import_preference plain = {"loss_type", "beta", NULL, trl, 6, 8};
    static const char *const dpo[][2] = {{"dpo", "sigmoid"}};
    static const import_preference instruct = {"dpo_loss_type", "dpo_beta", "dpo", dpo, 1, 8};
    static const char *const idle[] = {"pref_loss", "pref_beta"};
    json_t *stage = json_object_get(s->source, "stage");
    json_t *reward = json_object_get(s->source, "center_rewards_coefficient");
    if (reward) /* only TRL's RewardConfig has it, if only as null */
        return import_refuse(s, "center_rewards_coefficient", reward,
                             "it is of reward models, which are not supported yet");
    const char *word = json_string_value(stage);
    if (word && strcmp(word, "dpo") == 0) {
        json_t *loss = json_object_get(s->source, factory.loss);
        const char *named = json_string_value(loss);
        import_say_kept(s, "stage", stage, "sifr.preference");
        if (named && strcmp(named, "orpo") == 0)
            return import_refuse(s, factory.loss, loss,
                                 "LLaMA-Factory's ORPO leaves the prompt out of the cross entropy, "
                                 "which TRL's and sifr's have; set sifr.preference.loss_type");
        return import_finish_preference(s, &factory);
    }
    if (import_asks(stage) && !(word && config_key_has_word("pt|sft", word, NULL, NULL)))
        return import_refuse(
            s, "stage", stage,
            "this kind of training is not supported yet (supported: pt, sft, dpo)");
    if (import_asks(stage)) import_say_idle(s, "stage", stage, "the data say what is learned");
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(s->source, idle[i]);
        if (import_asks(value)) import_say_idle(s, idle[i], value, "stage is not dpo");
    }
    if (import_asks(json_object_get(s->source, instruct.loss)) ||
        import_asks(json_object_get(s->source, instruct.beta)))
        return import_finish_preference(s, &instruct);
    json_t *beta = json_object_get(s->source, plain.beta);
    if (import_asks(beta) && !import_asks(json_object_get(s->source, plain.loss)))
        return import_refuse(s, plain.beta, beta,
                             "DPO and ORPO have it, and nothing says which of them this is: add "
                             "loss_type: sigmoid, which is DPO, or loss_type: orpo");
    return import_finish_preference(s, &plain);
}

static sifr_status trainer_finish(import_state *s) {
    bool old = json_object_get(s->source, "evaluation_strategy");
    BASE_TRY(trainer_strategy(s, "save_strategy", "sifr.save_steps", "steps"));
    BASE_TRY(trainer_strategy(s, old ? "evaluation_strategy" : "eval_strategy", "sifr.eval_steps",
                              "no"));
    BASE_TRY(import_finish_optimizer(s, "optim"));
    BASE_TRY(import_finish_rows(s, "val_size"));
    BASE_TRY(trainer_lora(s));
    BASE_TRY(trainer_preference(s));
    return import_finish_schedule(s, "linear");
}

const import_source import_trainer = {
    .name = "arguments of the Hugging Face Trainer",
    .marks = "output_dir|per_device_train_batch_size|model_name_or_path|num_train_epochs|"
             "lr_scheduler_type|learning_rate",
    .section = "",
    .rows = trainer_rows,
    .count = sizeof trainer_rows / sizeof *trainer_rows,
    .finish = trainer_finish,
};
