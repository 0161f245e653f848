/* Whose config a file is, by the keys that each program's classes know. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/config_private.h"
#include "config/import/import_private.h"

/* clang-format off */
#define KNOWN(key_, value_) {key_, value_},
static const import_known axolotl_known[] = {
#include "config/import/import_known_axolotl.inc"
};
static const import_known accelerate_known[] = {
#include "config/import/import_known_accelerate.inc"
};
static const import_known trainer_known[] = {
#include "config/import/import_known_trainer.inc"
};
static const import_known trl_known[] = {
#include "config/import/import_known_trl.inc"
};
static const import_known factory_known[] = {
#include "config/import/import_known_factory.inc"
};
static const import_known factory_v1_known[] = {
#include "config/import/import_known_factory_v1.inc"
};
#undef KNOWN
/* clang-format on */

#define SIZE(list) (sizeof(list) / sizeof *(list))

/* Keys of earlier versions of the Trainer, which the programs built on it had too. */
#define EARLIER                                                                                    \
    "warmup_ratio|evaluation_strategy|group_by_length|logging_dir|save_safetensors|"               \
    "overwrite_output_dir|half_precision_backend|fp16_opt_level|fp16_backend|torchdynamo|"         \
    "jit_mode_eval|use_ipex|mp_parameters|use_mps_device|no_cuda|tpu_num_cores|"                   \
    "tpu_metrics_debug|ray_scope|sharded_ddp|include_tokens_per_second|"                           \
    "include_inputs_for_metrics|past_index|push_to_hub_model_id|push_to_hub_organization|"         \
    "push_to_hub_token|use_legacy_prediction_loop|dispatch_batches|split_batches|"                 \
    "fsdp_min_num_params|fsdp_transformer_layer_cls_to_wrap|torch_dtype|predict_with_generate|"    \
    "debug|local_rank|deepspeed"

/* In the order that counts where nothing tells programs apart. The keys of a program that its
 * tables of defaults lack: of earlier versions, of its scripts. */
static const struct {
    const import_source *source;
    const import_known *known;
    size_t count;
    const char *also;
} programs[] = {
    {&import_trainer, trainer_known, SIZE(trainer_known),
     EARLIER "|model_name_or_path|config_name|tokenizer_name|cache_dir|use_fast_tokenizer|"
             "model_revision|trust_remote_code|dtype|low_cpu_mem_usage|dataset_name|"
             "dataset_config_name|train_file|validation_file|max_train_samples|max_eval_samples|"
             "model_type|keep_linebreaks|"
             "streaming|block_size|overwrite_cache|validation_split_percentage|"
             "preprocessing_num_workers|generation_max_length|generation_num_beams"},
    {&import_trl, trl_known, SIZE(trl_known),
     EARLIER "|max_seq_length|max_prompt_length|max_completion_length|max_target_length|rpo_alpha|"
             "reference_free|cpo_alpha|simpo_gamma|desirable_weight|undesirable_weight|"
             "num_generations|center_rewards_coefficient|ref_model|model_adapter_name|"
             "ref_adapter_name|force_use_ref_model|ref_model_init_kwargs|label_pad_token_id|"
             "label_smoothing|use_logits_to_keep|use_liger_loss|use_weighting|padding_value|"
             "generate_during_eval|is_encoder_decoder|precompute_ref_batch_size|dataset_kwargs|"
             "eos_token|pad_token|chat_template|dataset_mixer|dataset_mixture|dataset_splits|"
             "dataset_configs|text_column|auto_insert_empty_system_msg|preprocessing_num_workers|"
             "use_flash_attention_2|tokenizer_name_or_path|hub_model_revision|"
             "push_to_hub_revision|wandb_entity|wandb_project_name|train_file|cache_dir|"
             "adapter_name_or_path|lora_exclude_modules"},
    {&import_factory, factory_known, SIZE(factory_known), EARLIER "|val_size|use_8bit_optimizer"},
    {&import_accelerate, accelerate_known, SIZE(accelerate_known), NULL},
    {&import_axolotl, axolotl_known, SIZE(axolotl_known), NULL},
    {&import_instruct, NULL, 0,
     "model_name_or_path|config_name|tokenizer_name|use_slow_tokenizer|warmup_steps|model_revision|"
     "tokenizer_revision|trust_remote_code|use_flash_attn|dataset_name|dataset_config_name|"
     "dataset_mixer|dataset_mixer_list|dataset_mixer_list_splits|dataset_mix_dir|train_file|"
     "max_train_samples|preprocessing_num_workers|max_seq_length|overwrite_cache|output_dir|"
     "per_device_train_batch_size|gradient_accumulation_steps|learning_rate|lr_scheduler_type|"
     "warmup_ratio|weight_decay|num_train_epochs|max_train_steps|seed|clip_grad_norm|fused_"
     "optimizer|"
     "use_8bit_optimizer|gradient_checkpointing|activation_checkpointing|checkpointing_steps|"
     "keep_last_n_checkpoints|save_state|resume_from_checkpoint|logging_steps|report_to|with_"
     "tracking|"
     "exp_name|wandb_entity|wandb_project_name|use_lora|use_qlora|lora_rank|lora_alpha|lora_"
     "dropout|"
     "reduce_loss|load_balancing_loss|load_balancing_weight|timeout|add_bos|chat_template_name|"
     "tokenizer_name_or_path|use_liger_kernel|packing|dpo_loss_type|dpo_beta|dpo_use_paged_"
     "optimizer|"
     "dpo_label_smoothing|dpo_gamma_beta_ratio|use_reference_model|dpo_use_reference_model|"
     "freeze_layers|do_not_randomize_output_dir|add_seed_and_date_to_exp_name|push_to_hub|hf_"
     "entity|"
     "hf_repo_id|hf_repo_revision|hf_metadata_dataset|hf_hub_token|save_to_hub|cache_dataset_only|"
     "try_launch_beaker_eval_jobs|try_auto_save_to_beaker|gs_bucket_path|oe_eval_tasks|env|attn|"
     "hub_model_revision|push_to_hub_revision|low_cpu_mem_usage|ref_model|model_adapter_name|"
     "use_gradient_checkpointing|eval_steps|deepspeed|bf16|max_grad_norm"},
    {&import_factory_v1, factory_v1_known, SIZE(factory_v1_known), NULL},
};

static size_t index_of(const import_source *source) {
    size_t i = 0;
    while (programs[i].source != source) i++;
    return i;
}

const char *import_version(const import_source *source) {
    const import_known *first = programs[index_of(source)].known;
    return first ? first->value : "open-instruct";
}

static bool in_table(size_t program, const char *key) {
    for (size_t i = 1; i < programs[program].count; i++)
        if (strcmp(programs[program].known[i].key, key) == 0) return true;
    return false;
}

static bool in_rows(const import_source *source, const char *key) {
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->rows[i].from, key) == 0) return true;
    return false;
}

bool import_knows(const import_source *source, const char *key) {
    size_t program = index_of(source);
    if (in_table(program, key)) return true;
    if (programs[program].also && config_key_has_word(programs[program].also, key, NULL, NULL))
        return true;
    /* A row that several programs share is of those that name it. */
    bool shared = source->rows == import_trainer.rows;
    return !shared && in_rows(source, key);
}

bool import_any_knows(const char *key) {
    for (size_t i = 0; i < SIZE(programs); i++)
        if (import_knows(programs[i].source, key)) return true;
    return false;
}

bool import_is_default(const import_source *source, const char *key, const json_t *value) {
    size_t program = index_of(source);
    for (size_t i = 1; i < programs[program].count; i++) {
        const import_known *known = &programs[program].known[i];
        if (strcmp(known->key, key) != 0) continue;
        json_t *usual = json_loads(known->value, JSON_DECODE_ANY, NULL);
        bool same = usual && config_value_equal(usual, value);
        json_decref(usual);
        if (same) return true;
    }
    return false;
}

const char *import_nearest(const import_source *source, const char *key) {
    const char *names[1024];
    size_t program = index_of(source), count = 0;
    for (size_t i = 0; i < source->count && count < SIZE(names); i++)
        if (import_knows(source, source->rows[i].from)) names[count++] = source->rows[i].from;
    for (size_t i = 1; i < programs[program].count && count < SIZE(names); i++)
        names[count++] = programs[program].known[i].key;
    return strlen(key) < 64 ? base_nearest(key, names, count) : NULL;
}

/* --- evidence --- */

typedef struct evidence {
    const import_source *source;
    size_t knows, foreign, own; /* keys; own: those that no other program knows */
} evidence;

static bool knows_alone(size_t program, const char *key) {
    for (size_t i = 0; i < SIZE(programs); i++)
        if (i != program && import_knows(programs[i].source, key)) return false;
    return true;
}

static evidence weigh(size_t program, const json_t *root) {
    evidence e = {.source = programs[program].source};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)root, key, value) {
        bool known = import_knows(e.source, key);
        e.knows += known;
        e.foreign += !known;
        e.own += known && knows_alone(program, key);
    }
    return e;
}

/* The fewest keys that it does not know; among those, the most of its own. */
static bool is_better(const evidence *a, const evidence *b) {
    if (a->foreign != b->foreign) return a->foreign < b->foreign;
    return a->own > b->own;
}

/* ": a, b, c and 4 more" of the keys that `source` knows alone, or does not know. */
static void list_keys(const json_t *root, const import_source *source, bool own, char *text,
                      size_t size) {
    enum { SHOWN = 5 };
    size_t used = 0, count = 0;
    const char *key;
    json_t *value;
    text[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)root, key, value) {
        bool listed = own ? import_knows(source, key) && knows_alone(index_of(source), key)
                          : !import_knows(source, key);
        bool plain = strlen(key) < 48 && !key[strcspn(key, "\n\r\t\"\\")];
        if (!listed) continue;
        if (++count > SHOWN) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", count > 1 ? ", " : "",
                                 plain ? key : "…");
    }
    if (count > SHOWN) snprintf(text + used, size - used, " and %zu more", count - SHOWN);
}

static void say_evidence(import_state *s, const evidence *best, const evidence *next) {
    char keys[400], line[640];
    list_keys(s->source, best->source, true, keys, sizeof keys);
    snprintf(line, sizeof line, "read as %s (%s): it knows %zu of %zu keys%s%s", best->source->name,
             import_version(best->source), best->knows, best->knows + best->foreign,
             best->own ? ", and alone " : "", keys);
    s->say(s->user, line);
    if (!next->source || 2 * next->knows < next->knows + next->foreign) return;
    list_keys(s->source, next->source, false, keys, sizeof keys);
    if (next->foreign)
        snprintf(line, sizeof line, "not as %s, which does not know %s; --from %s reads it so",
                 next->source->name, keys, next->source->word);
    else
        snprintf(line, sizeof line, "nothing tells it from %s; --from %s reads it so",
                 next->source->name, next->source->word);
    s->say(s->user, line);
}

const import_source *import_by_word(const char *word) {
    for (size_t i = 0; i < SIZE(programs); i++)
        if (strcmp(programs[i].source->word, word) == 0) return programs[i].source;
    return NULL;
}

const import_source *import_find(import_state *s) {
    evidence best = {0}, next = {0};
    for (size_t i = 0; i < SIZE(programs); i++) {
        evidence e = weigh(i, s->source);
        if (e.knows == 0) continue;
        if (!best.source || is_better(&e, &best)) {
            next = best;
            best = e;
        } else if (!next.source || is_better(&e, &next)) {
            next = e;
        }
    }
    if (best.source) say_evidence(s, &best, &next);
    return best.source;
}
