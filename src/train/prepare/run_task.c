#include "train/prepare/run_task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "checkpoint/adapter_base.h"
#include "data/labelled/label_names.h"
#include "data/records/records.h"
#include "data/stream/text_source.h"
#include "model/quantization.h"
#include "model/released.h"
#include "train/objective/objectives.h"
#include "train/prepare/data_keys.h"

/* Of a word that the key's row has, and the room that it is for does not. */
static sifr_status unknown(const char *key, const char *word, sifr_error *error) {
    return base_fail(error, SIFR_USAGE, "%s: \"%s\" is not supported yet; leave it out", key, word);
}

data_label_columns train_config_columns(const sifr_config *config) {
    return (data_label_columns){config->text_column, config->pair_column, config->label_column};
}

/* The task and the problem that the config names. */
static sifr_status choose_task(const sifr_config *config, model_choice *out, sifr_error *error) {
    out->has_task = config->task != NULL;
    out->has_problem = config->problem_type != NULL;
    if (out->has_task && !model_task_find(config->task, &out->task))
        return unknown("sifr.task", config->task, error);
    if (out->has_problem && !model_problem_find(config->problem_type, &out->problem))
        return unknown("sifr.problem_type", config->problem_type, error);
    return SIFR_OK;
}

static bool is_regression(const model_choice *choice) {
    return choice->has_problem && choice->problem == MODEL_REGRESSION;
}

/* Names of releases say by a part such as "-A4B" how many parameters a token takes, of more. */
static bool has_experts_by_name(const char *model) {
    for (const char *at = strstr(model, "-A"); at; at = strstr(at + 1, "-A")) {
        size_t digits = strspn(at + 2, "0123456789.");
        if (digits && at[2 + digits] == 'B') return true;
    }
    return false;
}

sifr_status train_check_name(const char *model, sifr_error *error) {
    const char *near = model_released_near(model), *name;
    if (access(model, F_OK) == 0 || model_released_config(model, &name)) return SIFR_OK;
    if (has_experts_by_name(model))
        return base_fail(error, SIFR_FAILED,
                         "%s: no such file or folder, and by its name it has experts, which are "
                         "not supported",
                         model);
    return base_fail(
        error, SIFR_FAILED,
        "%s: no such file or folder, and no released model that is known by name%s%s%s; "
        "give a model's folder, as `hf download` fetches one into its --local-dir, or "
        "a name that `sifr plan` lists",
        model, near ? " (the nearest is " : "", near ? near : "", near ? ")" : "");
}

/* A config.json, or one that is known by the name under which its model is released, of which
 * nothing else is needed. A folder goes first. */
static sifr_status load_config(const char *model, const model_choice *choice, model_config *out,
                               sifr_error *error) {
    const char *name, *text;
    if (access(model, F_OK) == 0) return model_config_load_as(model, choice, out, error);
    text = model_released_config(model, &name);
    if (!text) return model_config_load_as(model, choice, out, error);
    return model_config_parse_as(text, strlen(text), name, choice, out, error);
}

/* Finds the labels of the data where a head is made for them. Of a regression there are none. */
static sifr_status find_names(const sifr_config *config, const model_choice *choice,
                              model_labels *out, sifr_error *error) {
    data_label_columns columns = train_config_columns(config);
    model_config folder;
    BASE_TRY(load_config(config->model, NULL, &folder, error));
    model_task task = choice->has_task ? choice->task : folder.task;
    bool made = config->new_head || task != folder.task;
    if (!made || !model_task_labelled(task) || config->label_count || is_regression(choice))
        return SIFR_OK;
    bool several = choice->has_problem && choice->problem == MODEL_MULTI_LABEL;
    return data_label_names(config->data, config->data_count, task, several, &columns, out, error);
}

sifr_status train_take_base(sifr_config *config, int64_t world_size, sifr_error *error) {
    char base[BASE_PATH_LENGTH], *adapter;
    if (!config->model || config->adapter) return SIFR_OK;
    BASE_TRY(checkpoint_find_adapter_base(config->model, base, error));
    if (!base[0]) return SIFR_OK;
    if (config->lora)
        return base_fail(error, SIFR_USAGE,
                         "%s: an adapter folder, which has its own config, so leave sifr.lora out; "
                         "for a new adapter on the same base give --model %s",
                         config->model, base);
    BASE_TRY(base_copy_text(config->model, strlen(config->model), &adapter, error));
    sifr_status status = config_set(config, "adapter", adapter, error);
    if (status == SIFR_OK) status = config_set(config, "model", base, error);
    free(adapter);
    return status == SIFR_OK ? config_resolve(config, world_size, error) : status;
}

sifr_status train_read_lora(const sifr_config *config, model_lora *out, sifr_error *error) {
    *out = (model_lora){0};
    if (!config->lora && !config->adapter) return SIFR_OK;
    if (config->lora && config->adapter)
        return base_fail(error, SIFR_USAGE,
                         "sifr.lora and sifr.adapter are both given; the adapter in %s has its own "
                         "config, so leave sifr.lora out",
                         config->adapter);
    if (config->freeze_count)
        return base_fail(
            error, SIFR_USAGE,
            "sifr.freeze: with adapters all of the model's weights are frozen already; "
            "leave it out");
    BASE_TRY(config->adapter
                 ? model_lora_load(config->adapter, out, error)
                 : model_lora_read((json_t *)(uintptr_t)config->lora, "sifr.lora", out, error));
    out->undropped = train_objective_undropped(config) && out->dropout > 0;
    if (out->undropped) out->dropout = 0;
    return SIFR_OK;
}

static sifr_status check_quantized_base(const sifr_config *config, const model_lora *lora,
                                        sifr_error *error) {
    const char *where = model_coding_key(MODEL_INT8);
    if (config->quantization)
        return base_fail(error, SIFR_USAGE,
                         "%s holds frozen weights in 8 bits, and sifr.quantization in 4; leave one "
                         "of both out",
                         where);
    if (lora->json) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: weights in 8 bits are not trained, and those of sifr.freeze are not held "
                     "so yet; give sifr.lora or sifr.adapter beside it, or leave it out",
                     where);
}

/* How the base of the adapters is held. */
static sifr_status read_coding(const sifr_config *config, const model_lora *lora, model_coding *out,
                               sifr_error *error) {
    static const char *const where = "sifr.quantization";
    model_quantization quantization;
    base_dtype type = device_dtype_of(config->step.precision);
    *out = config->quantized_base ? MODEL_INT8 : MODEL_UNCODED;
    if (config->quantized_base) return check_quantized_base(config, lora, error);
    if (!config->quantization) return SIFR_OK;
    BASE_TRY(model_quantization_read(config->quantization, where, &quantization, error));
    *out = quantization.coding;
    if (!lora->json)
        return base_fail(error, SIFR_USAGE,
                         "%s: weights in 4 bits are not trained; give sifr.lora or sifr.adapter "
                         "beside it",
                         where);
    if (quantization.compute == BASE_NONE || quantization.compute == type) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: bnb_4bit_compute_dtype is %s, but the run computes in %s (bf16, fp16); "
                     "give the same",
                     where, base_dtype_name(quantization.compute), base_dtype_name(type));
}

sifr_status train_check_adapters(const sifr_config *config, sifr_error *error) {
    model_lora lora;
    model_coding coding;
    if (config->adapter && !base_is_directory(config->adapter)) return SIFR_OK;
    BASE_TRY(train_read_lora(config, &lora, error));
    sifr_status status = read_coding(config, &lora, &coding, error);
    model_lora_free(&lora);
    return status;
}

static sifr_status choose(const sifr_config *config, const model_lora *lora, model_choice *out,
                          sifr_error *error) {
    *out = (model_choice){.packed = config->packing,
                          .lora = lora->json ? lora : NULL,
                          .undropped = train_objective_undropped(config)};
    BASE_TRY(choose_task(config, out, error));
    BASE_TRY(read_coding(config, lora, &out->coding, error));
    return train_objective_choose(config, &out->objective, error);
}

sifr_status train_read_model_config(const sifr_config *config, const model_lora *lora,
                                    model_config *out, sifr_error *error) {
    model_labels found = {0};
    model_choice choice;
    BASE_TRY(choose(config, lora, &choice, error));
    choice.num_labels = (int64_t)config->label_count;
    if (config->data_count) BASE_TRY(find_names(config, &choice, &found, error));
    if (found.count) choice.num_labels = found.count;
    model_labels_free(&found);
    BASE_TRY(load_config(config->model, &choice, out, error));
    if (choice.num_labels || !is_regression(&choice) || out->task == out->own_task) return SIFR_OK;
    choice.num_labels = 1; /* a number a row */
    return load_config(config->model, &choice, out, error);
}

sifr_status train_open_folder(const sifr_config *config, const model_lora *lora, engine_folder *out,
                              sifr_error *error) {
    model_labels labels = {0}, found = {0};
    engine_folder_options options = {.new_head = config->new_head, .adapter = config->adapter};
    BASE_TRY(choose(config, lora, &options.choice, error));
    sifr_status status = find_names(config, &options.choice, &found, error);
    if (status == SIFR_OK && config->label_count)
        status =
            data_label_names_listed(config->labels, config->label_count, "labels", &labels, error);
    if (labels.count) options.labels = &labels;
    if (found.count) options.found = &found;
    if (status == SIFR_OK) status = engine_folder_open_as(config->model, &options, out, error);
    model_labels_free(&labels);
    model_labels_free(&found);
    return status;
}

void train_data_form(const engine_folder *folder, int64_t length, const data_label_columns *columns,
                     double mask_probability, data_labelled *labelled, data_set_options *options) {
    const model_config *config = &folder->config;
    *labelled = (data_labelled){.task = config->task,
                                .problem = config->problem,
                                .labels = &folder->labels,
                                .columns = *columns,
                                .length = length,
                                .padding = base_max_i64(config->pad_token_id, 0),
                                .last = !folder->architecture->encoder,
                                .passed_over = config->pad_token_id};
    const train_objective *objective = train_objective_for(config->task);
    if (objective->read) objective->read(labelled, mask_probability, options);
}

/* How many of a path's files are rows, and one that is not. A directory, and a pattern whose own
 * name does not tell, is what its files are; any other path is none of a row, for example a token
 * store's. */
static sifr_status count_rows(const char *path, size_t *rows, char other[BASE_PATH_LENGTH],
                              sifr_error *error) {
    data_text_source files;
    data_records_kind kind;
    bool is = data_records_kind_of(path, &kind);
    bool listed = base_is_directory(path) || (access(path, F_OK) != 0 && strpbrk(path, "*?["));
    if (is && !base_is_directory(path)) {
        ++*rows;
        return SIFR_OK;
    }
    if (!listed) {
        snprintf(other, BASE_PATH_LENGTH, "%s", path);
        return SIFR_OK;
    }
    BASE_TRY(data_text_source_list(&path, 1, &files, error));
    for (size_t i = 0; i < files.count; i++) {
        is = data_records_kind_of(files.documents[i].path, &kind);
        *rows += is;
        if (!is) snprintf(other, BASE_PATH_LENGTH, "%s", files.documents[i].path);
    }
    data_text_source_close(&files);
    return SIFR_OK;
}

sifr_status train_paths_are_rows(const char *const *paths, size_t count, bool *out,
                                 sifr_error *error) {
    char other[BASE_PATH_LENGTH] = "";
    size_t rows = 0;
    for (size_t i = 0; i < count; i++) BASE_TRY(count_rows(paths[i], &rows, other, error));
    *out = rows > 0;
    if (!rows || !*other) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is text or a token store, but other data are rows; give one kind alone, "
                     "of a directory by a pattern such as '*.jsonl'",
                     other);
}

sifr_status train_check_packing(const sifr_config *config, const model_config *model,
                                sifr_error *error) {
    bool rows, packing = config->packing;
    if (config->joint && (packing || config->group_by_length || config->drop_long))
        return base_fail(error, SIFR_USAGE,
                         "%s: sequences of joined texts are full; leave it out, or join_texts",
                         packing                   ? "packing"
                         : config->group_by_length ? "group_by_length"
                                                   : "drop_long_rows");
    if (!packing && !config->group_by_length) return SIFR_OK;
    if (packing && config->group_by_length)
        return base_fail(error, SIFR_USAGE,
                         "group_by_length: packed sequences have one length; leave it out, or "
                         "packing");
    if (!train_objective_for(model->task)->chats)
        return base_fail(error, SIFR_USAGE,
                         "group_by_length is for rows to fine-tune on, not for %s; leave it out",
                         model_task_name(model->task));
    if (config->data_count == 0) return SIFR_OK; /* of a loop, whose caller gives the rows */
    BASE_TRY(train_paths_are_rows(config->data, config->data_count, &rows, error));
    if (rows) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: %s is text or a token store, which is cut into full windows, so there is "
                     "nothing to %s; leave %s out, or give rows to fine-tune on",
                     packing ? "packing" : "group_by_length", config->data[0],
                     packing ? "pack" : "group", packing ? "packing" : "it");
}

static sifr_status read_turns(const sifr_config *config, const config_turns *turns,
                              data_chat_turns *out, sifr_error *error) {
    data_chat_mask mask;
    *out = (data_chat_turns){.asked = turns->given, .roles = turns->roles};
    if (!data_chat_mask_find(config->train_on, &mask))
        return unknown("sifr.train_on", config->train_on, error);
    if (!data_chat_ends_find(turns->eos, &out->eos))
        return unknown("train_on_eos", turns->eos, error);
    if (!data_chat_ends_find(turns->eot, &out->eot))
        return unknown("train_on_eot", turns->eot, error);
    out->every = mask == DATA_ON_ALL;
    return SIFR_OK;
}

static sifr_status read_source(const sifr_config *config, const config_source *source,
                               const char *path, data_chat_source *out, sifr_error *error) {
    *out = (data_chat_source){
        .path = path,
        .typed = source->type != NULL,
        .weight = source->weight,
        .fields = source->fields,
        .ignored = {source->ignore_fields, config->ignore_fields},
        .format = {source->format, source->no_input_format, source->system_format}};
    if (!data_row_type_find(source->type, &out->type))
        return unknown("sifr.data_type", source->type, error);
    return read_turns(config, &source->turns, &out->turns, error);
}

sifr_status train_chat_sources_make(const sifr_config *config, const char *const *paths,
                                    size_t count, data_chat_source **out, sifr_error *error) {
    /* Held-out data are not those of the dataset. */
    bool listed = config->dataset && paths == config->data;
    config_source plain = {.type = config->data_type,
                           .weight = 1,
                           .fields = config->data_fields,
                           .turns = config->turns};
    BASE_TRY(base_alloc(count, sizeof **out, out, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++)
        status =
            read_source(config, listed ? &config->dataset[i] : &plain, paths[i], &(*out)[i], error);
    if (status == SIFR_OK) return SIFR_OK;
    free(*out);
    *out = NULL;
    return status;
}

sifr_status train_chat_choices(const sifr_config *config, data_chat_options *out,
                               sifr_error *error) {
    if (!data_chat_mask_find(config->train_on, &out->mask))
        return unknown("sifr.train_on", config->train_on, error);
    if (!data_chat_joint_find(config->joint, &out->joint))
        return unknown("sifr.join_texts", config->joint, error);
    train_objective_form(config, out);
    return SIFR_OK;
}

const char *train_chat_template(const sifr_config *config, char path[BASE_PATH_LENGTH]) {
    static const char name[] = "chat_template.jinja";
    if (config->chat_template) return config->chat_template;
    if (!config->adapter || !base_has_file(config->adapter, name)) return NULL;
    return base_path_join(path, config->adapter, name, NULL) == SIFR_OK ? path : NULL;
}

const char *train_chat_template_key(const sifr_config *config) {
    if (config->chat_template) return "chat_template";
    if (config->chat_template_kwargs) return "chat_template_kwargs";
    if (config->chat_template_date) return "chat_template_date";
    if (config->turns.given) return config->turns.roles ? "roles_to_train" : "train_on_eos";
    return NULL;
}

sifr_status train_chat_form_make(const engine_folder *folder, int64_t length,
                                 const sifr_config *config, data_set_options *options,
                                 train_chat_form *form, sifr_error *error) {
    bool rows;
    *form = (train_chat_form){0};
    options->chat = NULL;
    bool chats = train_objective_for(folder->config.task)->chats;
    bool fields = config->data_fields != NULL || config->ignore_fields != NULL;
    const char *key = config->data_fields ? "data_fields" : "ignore_fields";
    const char *templated = train_chat_template_key(config);
    const char *chosen = config->max_samples ? "max_samples"
                         : config->drop_long ? "drop_long_rows"
                         : config->joint     ? "join_texts"
                                             : NULL;
    if (!chats && fields)
        return base_fail(error, SIFR_USAGE,
                         "%s: they are of rows to fine-tune on, not for %s; name columns "
                         "by text_column, pair_column and label_column",
                         key, model_task_name(folder->config.task));
    if (!chats && templated)
        return base_fail(error, SIFR_USAGE,
                         "%s: it is for rows to fine-tune on, not for %s; leave it out", templated,
                         model_task_name(folder->config.task));
    if (!chats && chosen)
        return base_fail(error, SIFR_USAGE,
                         "%s is of rows to fine-tune on, not for %s; leave it out", chosen,
                         model_task_name(folder->config.task));
    if (!chats) return train_check_data_keys(config, folder->config.task, false, NULL, error);
    BASE_TRY(train_paths_are_rows(options->paths, options->count, &rows, error));
    if (!rows && chosen)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is text or a token store, which has no rows; leave it out", chosen,
                         options->paths[0]);
    if (!rows && templated)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is text or a token store, which no chat template writes; leave it "
                         "out",
                         templated, options->paths[0]);
    if (!rows && fields)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is text or a token store, which has no fields; leave "
                         "them out",
                         key, options->paths[0]);
    if (!rows && config->dataset)
        return base_fail(error, SIFR_USAGE,
                         "sifr.dataset: %s is no file of rows (.jsonl, .json, .csv, each also .gz "
                         "or .zst); give text and token stores as sifr.data",
                         options->paths[0]);
    BASE_TRY(train_check_data_keys(config, folder->config.task, rows, options->paths[0], error));
    if (!rows) return SIFR_OK;
    BASE_TRY(
        train_chat_sources_make(config, options->paths, options->count, &form->sources, error));
    form->options = (data_chat_options){.sources = form->sources,
                                        .count = options->count,
                                        .tokenizer = options->tokenizer,
                                        .vocab_size = options->vocab_size,
                                        .length = length,
                                        .separator = options->separator,
                                        .padding = base_max_i64(folder->config.pad_token_id, 0),
                                        .eot_tokens = config->eot_tokens,
                                        .template = train_chat_template(config, form->template),
                                        .asked = templated,
                                        .variables = config->chat_template_kwargs,
                                        .date = config->chat_template_date,
                                        .special = options->special,
                                        .skip_bad_rows = config->skip_bad_rows,
                                        .max_rows = config->max_samples,
                                        .drop_long = config->drop_long,
                                        .threads = options->threads,
                                        .log = options->log};
    BASE_TRY(train_chat_choices(config, &form->options, error));
    options->chat = &form->options;
    return SIFR_OK;
}

void train_chat_form_free(train_chat_form *form) {
    free(form->sources);
    *form = (train_chat_form){0};
}
