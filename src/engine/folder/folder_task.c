/* Opening a model folder for the task that a caller wants: its labels, and a head that is made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"

static const model_node *head_of(const sifr_model *model) {
    return &model->nodes[model->node_count - 1];
}

/* --- labels --- */

static sifr_status copy_labels(const model_labels *from, const char *path, model_labels *out,
                               sifr_error *error) {
    return model_labels_make((const char *const *)from->names, from->count, path, out, error);
}

static bool are_numbered(const model_labels *labels) {
    char name[32];
    for (int64_t i = 0; i < labels->count; i++) {
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        if (strcmp(labels->names[i], name) != 0) return false;
    }
    return true;
}

/* Labels that are wanted for a head that has its own: they may give names to numbers. */
static sifr_status rename_labels(const model_labels *wanted, const char *path, model_labels *own,
                                 sifr_error *error) {
    if (wanted->count != own->count) {
        return base_fail(error, SIFR_USAGE,
                         "%s: its head has %lld labels, but %lld are given: leave them out, or let "
                         "\"new_head\" (--new-head) make another head",
                         path, (long long)own->count, (long long)wanted->count);
    }
    if (model_labels_equal(wanted, own)) return SIFR_OK;
    if (are_numbered(own)) return copy_labels(wanted, path, own, error);
    int64_t i = 0;
    while (!strcmp(wanted->names[i], own->names[i])) i++;
    return base_fail(error, SIFR_USAGE,
                     "%s: label %lld of its head is \"%.60s\", but \"%.60s\" is given: leave them "
                     "out, or let \"new_head\" (--new-head) make another head",
                     path, (long long)i, own->names[i], wanted->names[i]);
}

/* Those of an adapter's head: of the config.json that a run leaves beside it; PEFT leaves none, so
 * they are numbered. */
static sifr_status adapter_labels(const engine_folder_options *o, const engine_folder *folder,
                                  model_labels *out, sifr_error *error) {
    char path[BASE_PATH_LENGTH], name[MODEL_LORA_NAME];
    formats_weights *weights;
    BASE_TRY(base_path_join(path, o->adapter, "config.json", error));
    if (base_is_file(path)) return model_labels_load(o->adapter, out, error);
    BASE_TRY(base_path_join(path, o->adapter, ENGINE_ADAPTER_FILE, error));
    BASE_TRY(formats_weights_open(path, &weights, error));
    const model_weight *head = &folder->model->weights[head_of(folder->model)->w[0]];
    const formats_tensor *tensor = formats_weights_find(weights, model_lora_tensor(head, name));
    int64_t count = tensor && tensor->rank == 2 ? tensor->shape[0] : 0;
    formats_weights_close(weights);
    if (count > 0) return model_labels_number(count, path, out, error);
    return base_fail(error, SIFR_FAILED,
                     "%s: its task is %s, but it has no tensor %s: is it of another base?", path,
                     model_task_name(folder->config.task), name);
}

/* Those of a head that is made. */
static sifr_status choose_labels(const engine_folder_options *o, const char *path,
                                 engine_folder *out, sifr_error *error) {
    const model_labels *given = o->labels ? o->labels : o->found;
    if (given) return copy_labels(given, path, &out->labels, error);
    if (out->config.task == out->config.own_task)
        return model_labels_load(path, &out->labels, error);
    if (o->choice.has_problem && o->choice.problem == MODEL_REGRESSION)
        return model_labels_number(1, path, &out->labels, error);
    if (o->adapter) return adapter_labels(o, out, &out->labels, error);
    return base_fail(error, SIFR_USAGE,
                     "%s: a head for %s is made, which needs its labels: name them (\"labels\", "
                     "--labels)",
                     path, model_task_name(out->config.task));
}

/* --- the head --- */

static bool has_head(const engine_folder *folder) {
    const model_weight *head = &folder->model->weights[head_of(folder->model)->w[0]];
    return engine_find_tensor(folder->weights, folder->architecture, head->name) != NULL;
}

static sifr_status load(const char *path, const model_choice *choice, engine_folder *out,
                        sifr_error *error) {
    sifr_model_free(out->model);
    out->model = NULL;
    BASE_TRY(model_config_load_as(path, choice, &out->config, error));
    out->architecture = model_architecture_find(out->config.model_type);
    return model_from_config(&out->config, &out->model, error);
}

/* A head beside a tower that is stored with values of its own is not tied, whatever the config
 * says: transformers ties only what is equal. */
static sifr_status untie(const char *path, const model_choice *given, engine_folder *out,
                         sifr_error *error) {
    const model_architecture *a = out->architecture;
    model_choice choice = given ? *given : (model_choice){0};
    if (!a->multimodal || !out->config.tie_word_embeddings) return SIFR_OK;
    const formats_tensor *head = engine_find_tensor(out->weights, a, a->head);
    const formats_tensor *table = engine_find_tensor(out->weights, a, a->embedding);
    if (!head || !table) return SIFR_OK;
    if (head->bytes == table->bytes && !memcmp(head->data, table->data, head->bytes))
        return SIFR_OK;
    choice.untied = true;
    return load(path, &choice, out, error);
}

/* Marks the weights that are made: those of heads that the folder lacks, and the last product's
 * where the folder's is not wanted (`anew`). */
static sifr_status mark_made(const engine_folder_options *o, bool anew, engine_folder *out,
                             sifr_error *error) {
    const sifr_model *model = out->model;
    const model_node *head = head_of(model);
    if (out->config.task == MODEL_NEXT_TOKEN) return SIFR_OK;
    free(out->made);
    out->made = NULL, out->made_count = 0;
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->made, &out->made, error));
    for (size_t i = 0; i < model->weight_count; i++) {
        const char *name = model->weights[i].name;
        model_place place = model_place_of(name, out->architecture->prefix);
        bool last = (int32_t)i == head->w[0] || (int32_t)i == head->w[1];
        if (model->weights[i].factor) continue;
        bool absent = !engine_find_tensor(out->weights, out->architecture, name);
        bool made = place != MODEL_BODY && absent;
        made |= place == MODEL_HEAD && ((anew && last) || o->new_head);
        out->made[i] = made;
        out->made_count += made;
    }
    return SIFR_OK;
}

static sifr_status open_labelled(const char *path, const engine_folder_options *o,
                                 model_choice *choice, bool *anew, engine_folder *out,
                                 sifr_error *error) {
    *anew = o->new_head || out->config.own_task != out->config.task || !has_head(out);
    if (*anew) {
        BASE_TRY(choose_labels(o, path, out, error));
    } else {
        BASE_TRY(model_labels_load(path, &out->labels, error));
        if (o->labels) BASE_TRY(rename_labels(o->labels, path, &out->labels, error));
    }
    choice->num_labels = out->labels.count;
    choice->has_problem = o->choice.has_problem;
    return load(path, choice, out, error);
}

/* The task of an adapter for labels, whose base may have another, and its problem. */
static sifr_status choose_adapter_task(const engine_folder_options *o, model_choice *out,
                                       sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    model_config config;
    if (!o->adapter || out->has_task || !model_lora_task(out->lora, &out->task)) return SIFR_OK;
    out->has_task = true;
    BASE_TRY(base_path_join(path, o->adapter, "config.json", error));
    if (out->has_problem || !base_is_file(path)) return SIFR_OK;
    BASE_TRY(model_config_load_as(o->adapter, NULL, &config, error));
    out->has_problem = config.own_task == out->task && out->task == MODEL_SEQUENCE_CLASSES;
    out->problem = config.problem;
    return SIFR_OK;
}

/* Frozen weights of a head for labels that were made are in no folder, so an adapter saves them. */
static sifr_status save_made(const model_lora *lora, const engine_folder *out, bool *some,
                             sifr_error *error) {
    const sifr_model *model = out->model;
    char module[MODEL_NAME_LENGTH];
    *some = false;
    if (!lora || !model_task_labelled(out->config.task)) return SIFR_OK;
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        const char *dot = strrchr(w->name, '.');
        if (!out->made[i] || !w->frozen || !dot) continue;
        snprintf(module, sizeof module, "%.*s", (int)(dot - w->name), w->name);
        BASE_TRY(model_lora_save(lora, module, error));
        *some = true;
    }
    return SIFR_OK;
}

static sifr_status open_wanted(const char *path, const engine_folder_options *given,
                               engine_folder *out, sifr_error *error) {
    engine_folder_options options = *given, *o = &options;
    BASE_TRY(choose_adapter_task(o, &o->choice, error));
    model_choice choice = o->choice;
    choice.has_problem = false; /* that is of a head with labels */
    bool anew = false, again = false;
    BASE_TRY(load(path, &choice, out, error));
    BASE_TRY(formats_weights_open(path, &out->weights, error));
    BASE_TRY(untie(path, &choice, out, error));
    if (model_task_labelled(out->config.task)) {
        BASE_TRY(open_labelled(path, o, &choice, &anew, out, error));
    } else if (o->labels || o->choice.has_problem) {
        return base_fail(error, SIFR_USAGE,
                         "%s: a model for %s has neither labels nor a problem_type: choose another "
                         "task, or leave them out",
                         path, model_task_name(out->config.task));
    }
    if (o->new_head && out->config.task == MODEL_NEXT_TOKEN) {
        return base_fail(error, SIFR_USAGE,
                         "%s: \"new_head\" is for labels and masked tokens, not for %s", path,
                         model_task_name(out->config.task));
    }
    BASE_TRY(mark_made(o, anew, out, error));
    if (!o->adapter) BASE_TRY(save_made(choice.lora, out, &again, error));
    if (again) BASE_TRY(load(path, &choice, out, error));
    if (again) BASE_TRY(mark_made(o, anew, out, error));
    BASE_TRY(engine_visit_present(out->model, out->architecture, out->weights, out->made, NULL,
                                  NULL, error));
    return o->adapter ? engine_adapter_open(o->adapter, out, error) : SIFR_OK;
}

static sifr_status open_plain(const char *path, engine_folder *out, sifr_error *error) {
    BASE_TRY(load(path, NULL, out, error));
    if (model_task_labelled(out->config.task))
        BASE_TRY(model_labels_load(path, &out->labels, error));
    BASE_TRY(formats_weights_open(path, &out->weights, error));
    BASE_TRY(untie(path, NULL, out, error));
    return engine_visit_folder(out->model, out->architecture, out->weights, NULL, NULL, error);
}

sifr_status engine_folder_open_as(const char *path, const engine_folder_options *options,
                                  engine_folder *out, sifr_error *error) {
    *out = (engine_folder){0};
    sifr_status status =
        options ? open_wanted(path, options, out, error) : open_plain(path, out, error);
    if (status == SIFR_OK) return SIFR_OK;
    engine_folder_close(out);
    /* Messages about a file of the folder already name it. */
    if (error && strncmp(error->message, path, strlen(path)) == 0) return status;
    if (error && options && options->adapter &&
        strncmp(error->message, options->adapter, strlen(options->adapter)) == 0)
        return status;
    return base_fail_in(error, status, "%s", path);
}

sifr_status engine_folder_open(const char *path, engine_folder *out, sifr_error *error) {
    return engine_folder_open_as(path, NULL, out, error);
}

void engine_folder_close(engine_folder *folder) {
    formats_weights_close(folder->weights);
    formats_weights_close(folder->adapter);
    sifr_model_free(folder->model);
    model_labels_free(&folder->labels);
    free(folder->made);
    *folder = (engine_folder){0};
}

void engine_folder_say_made(const engine_folder *folder, const sifr_log *log) {
    size_t i = 0;
    char labels[64] = "";
    if (!folder->made_count || folder->adapter) return; /* an adapter has all of them */
    while (!folder->made[i]) i++;
    if (folder->labels.count)
        snprintf(labels, sizeof labels, " for %lld label%s", (long long)folder->labels.count,
                 folder->labels.count == 1 ? "" : "s");
    base_log(log, SIFR_LOG_INFO, "%zu weight%s of the head%s made from the seed, %.200s%s",
             folder->made_count, folder->made_count == 1 ? "" : "s", labels,
             folder->model->weights[i].name, folder->made_count == 1 ? "" : " first");
}
