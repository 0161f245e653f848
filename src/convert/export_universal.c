/* A universal checkpoint, as DeepSpeed 0.19 loads it (checkpoint/universal_checkpoint.py,
 * runtime/base_optimizer.py, runtime/zero/stage3.py):
 *
 *     latest_universal                           names the folder TAG, global_stepN_universal
 *     TAG/zero/NAME/{fp32,exp_avg,exp_avg_sq}.pt {"param": tensor, "cat_dim": 0}
 *     TAG/zero/NAME/step.pt                      Adam's step, as torch's AdamW has it
 *     TAG/zero/optimizer_state.pt                parameter groups; the step once more, for stage 3
 *     TAG/mp_rank_00_model_states.pt             counts; for stage 3 under a longer name, too
 *
 * and config.json and the tokenizer beside `latest_universal`, where `sifr import` looks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "checkpoint/state_source.h"
#include "config/config.h"
#include "convert/export.h"
#include "convert/new_folder.h"
#include "formats/folder.h"
#include "formats/torch/torch_write.h"

/* DeepSpeed loads as many groups as are here and in the run, and their parameters. */
enum { GROUPS = 64 };

#define DEEPSPEED_VERSION "0.19.8" /* whose layout this is */

typedef struct universal_run {
    checkpoint_model model;
    checkpoint_state state;
    convert_new_folder folder;
    char tag[BASE_PATH_LENGTH]; /* the folder of that name */
} universal_run;

/* What formats_torch_write asks for. */
typedef struct universal_part {
    const checkpoint_state *state;
    size_t weight;
    engine_part part;
} universal_part;

static sifr_status give_part(void *user, int64_t first, int64_t count, float *out,
                             sifr_error *error) {
    const universal_part *p = user;
    (void)error;
    checkpoint_state_values(p->state, p->weight, p->part, first, count, out);
    return SIFR_OK;
}

static sifr_status give_step(void *user, int64_t first, int64_t count, float *out,
                             sifr_error *error) {
    (void)first;
    (void)count;
    (void)error;
    *out = (float)*(const int64_t *)user;
    return SIFR_OK;
}

static sifr_status write_part(universal_run *run, const char *folder, size_t weight,
                              engine_part part, const char *name, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    universal_part what = {&run->state, weight, part};
    formats_tensor_spec spec = {.name = "param", .dtype = BASE_FP32};
    spec.rank = model_weight_shape(&run->model.folder.model->weights[weight], spec.shape);
    BASE_TRY(base_path_join(path, folder, name, error));
    json_t *value = json_pack("{s:i}", "cat_dim", 0);
    if (!value) return base_fail_alloc(error, 64);
    sifr_status status = formats_torch_write(path, value, &spec, give_part, &what, error);
    json_decref(value);
    return status;
}

static sifr_status write_weight(universal_run *run, const char *zero, size_t weight,
                                sifr_error *error) {
    char folder[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH];
    const formats_tensor_spec step = {.name = "step", .dtype = BASE_FP32};
    const char *name = run->model.folder.model->weights[weight].name;
    if (name[0] == '.' || strchr(name, '/'))
        return base_fail(error, SIFR_USAGE, "weight %.200s: its name cannot be a folder's", name);
    BASE_TRY(base_path_join(folder, zero, name, error));
    BASE_TRY(base_make_directories(folder, error));
    BASE_TRY(write_part(run, folder, weight, ENGINE_MASTER, "fp32.pt", error));
    if (!checkpoint_state_trained(&run->state, weight)) return SIFR_OK;
    BASE_TRY(write_part(run, folder, weight, ENGINE_STATE1, "exp_avg.pt", error));
    BASE_TRY(write_part(run, folder, weight, ENGINE_STATE2, "exp_avg_sq.pt", error));
    BASE_TRY(base_path_join(path, folder, "step.pt", error));
    return formats_torch_write(path, NULL, &step, give_step, &run->model.opened.updates, error);
}

/* --- what is no weight --- */

static sifr_status write_value(const char *folder, const char *name, json_t *value,
                               sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    if (!value) return base_fail_alloc(error, 4096);
    BASE_TRY(base_path_join(path, folder, name, error));
    return formats_torch_write(path, value, NULL, NULL, NULL, error);
}

/* The rate of the next step, by what the checkpoint notes of its run: DeepSpeed's schedulers set
 * the rate at the end of a step, and load none. False where it is not known. */
static bool next_rate(const checkpoint_opened *opened, double *rate) {
    static const char *const sections[] = {"optimizer", "scheduler"};
    json_t *json = json_pack("{s:i}", "train_micro_batch_size_per_gpu", 1);
    bool known = json != NULL;
    for (size_t i = 0; known && i < 2; i++) {
        json_t *section = json_object_get(opened->may_differ, sections[i]);
        known =
            (section || i == 1) && (!section || json_object_set(json, sections[i], section) == 0);
    }
    char *text = known ? json_dumps(json, JSON_COMPACT) : NULL;
    sifr_config config;
    known = text && config_create(&config, NULL) == SIFR_OK;
    if (known) {
        known = config_parse(&config, text, strlen(text), "notes", NULL) == SIFR_OK &&
                config_resolve(&config, 1, NULL) == SIFR_OK;
        if (known) *rate = config_lr_at(&config.schedule, opened->updates - 1);
        config_free(&config);
    }
    free(text);
    json_decref(json);
    return known;
}

/* {"params": []}, and what a group of Adam takes over: its rate and step. */
static json_t *make_group(const checkpoint_opened *opened) {
    double rate;
    json_t *group = json_pack("{s:[], s:I}", "params", "step", (json_int_t)opened->updates);
    if (!group || !next_rate(opened, &rate) ||
        json_object_set_new(group, "lr", json_real(rate)) == 0)
        return group;
    json_decref(group);
    return NULL;
}

static sifr_status write_optimizer(const universal_run *run, const char *zero, sifr_error *error) {
    const checkpoint_opened *opened = &run->model.opened;
    json_t *group = make_group(opened), *groups = json_array();
    for (int i = 0; group && groups && i < GROUPS; i++)
        if (json_array_append(groups, group) != 0) {
            json_decref(groups);
            groups = NULL;
        }
    json_t *value = group && groups ? json_pack("{s:s, s:O, s:{s:[{s:I}], s:[O]}}", "ds_version",
                                                DEEPSPEED_VERSION, "param_groups", groups,
                                                "optimizer_state_dict", "state", "step",
                                                (json_int_t)opened->updates, "param_groups", group)
                                    : NULL;
    sifr_status status = write_value(zero, "optimizer_state.pt", value, error);
    json_decref(value);
    json_decref(groups);
    json_decref(group);
    return status;
}

static sifr_status write_counts(const universal_run *run, sifr_error *error) {
    const checkpoint_opened *opened = &run->model.opened;
    json_t *value = json_pack(
        "{s:{}, s:{}, s:I, s:I, s:i, s:i, s:{s:I}, s:s, s:{s:f}}", "module", "shared_params",
        "global_steps", (json_int_t)opened->step, "skipped_steps",
        (json_int_t)(opened->step - opened->updates), "dp_world_size", 1, "mp_world_size", 1,
        "lr_scheduler", "last_batch_iteration", (json_int_t)(opened->updates - 1), "ds_version",
        DEEPSPEED_VERSION, "universal_checkpoint_info", "universal_checkpoint_version", 0.4);
    int64_t samples;
    if (value && base_json_int(opened->state, "samples", -1, &samples, "", NULL) == SIFR_OK &&
        samples >= 0 && json_object_set_new(value, "global_samples", json_integer(samples)) != 0) {
        json_decref(value);
        value = NULL;
    }
    sifr_status status = write_value(run->tag, "mp_rank_00_model_states.pt", value, error);
    if (status == SIFR_OK)
        status = write_value(run->tag, "zero_pp_rank_0_mp_rank_00_model_states.pt", value, error);
    json_decref(value);
    return status;
}

static sifr_status write_all(universal_run *run, convert_exported *out, sifr_error *error) {
    char name[64], path[BASE_PATH_LENGTH], zero[BASE_PATH_LENGTH];
    const sifr_model *model = run->model.folder.model;
    int64_t bytes;
    out->parameters = sifr_model_parameters(model);
    if (!base_mul_i64(out->parameters, 3 * (int64_t)sizeof(float), &bytes))
        return base_fail(error, SIFR_FAILED, "%s: too large", run->model.path);
    out->bytes = (uint64_t)bytes;
    BASE_TRY(convert_new_folder_space(&run->folder, out->bytes, error));
    BASE_TRY(convert_new_folder_make(&run->folder, error));
    BASE_TRY(formats_folder_carry(run->model.files, run->folder.temporary, NULL, NULL, error));
    snprintf(name, sizeof name, "global_step%lld_universal", (long long)run->model.step);
    BASE_TRY(base_path_join(run->tag, run->folder.temporary, name, error));
    BASE_TRY(base_path_join(zero, run->tag, "zero", error));
    for (size_t w = 0; w < model->weight_count; w++) BASE_TRY(write_weight(run, zero, w, error));
    BASE_TRY(write_optimizer(run, zero, error));
    BASE_TRY(write_counts(run, error));
    BASE_TRY(base_path_join(path, run->folder.temporary, "latest_universal", error));
    BASE_TRY(base_write_file(path, name, strlen(name), error));
    return convert_new_folder_place(&run->folder, error);
}

static sifr_status open_source(universal_run *run, const char *source, const sifr_log *log,
                               sifr_error *error) {
    BASE_TRY(checkpoint_model_open(source, NULL, &run->model, log, error));
    if (run->model.lora.json)
        return base_fail(error, SIFR_USAGE,
                         "%s: adapters in a universal checkpoint of DeepSpeed are not supported; "
                         "export the adapter (--format hf)",
                         run->model.path);
    if (run->model.folder.config.multimodal)
        return base_fail(error, SIFR_USAGE,
                         "%s: its model_type %s has a tower, and a universal checkpoint of "
                         "DeepSpeed with its text model alone is not supported; export the model "
                         "(--format hf)",
                         run->model.path, run->model.folder.config.model_type);
    if (run->model.step >= 0)
        BASE_TRY(checkpoint_check_states(&run->model.opened, &optim_adam, run->model.path,
                                         "alone a universal checkpoint of DeepSpeed holds",
                                         "export the weights (--format hf)", error));
    return checkpoint_state_open(&run->model, &optim_adam, &run->state, error);
}

sifr_status convert_export_universal(const char *source, const char *destination,
                                     const sifr_log *log, convert_exported *out,
                                     sifr_error *error) {
    universal_run *run;
    *out = (convert_exported){.step = -1};
    BASE_TRY(base_alloc(1, sizeof *run, &run, error));
    sifr_status status = convert_new_folder_check(&run->folder, destination, error);
    if (status == SIFR_OK) status = open_source(run, source, log, error);
    if (status == SIFR_OK) {
        memcpy(out->from, run->model.path, sizeof out->from);
        out->step = run->model.step;
        status = write_all(run, out, error);
    }
    convert_new_folder_drop(&run->folder, log);
    checkpoint_state_close(&run->state);
    checkpoint_model_close(&run->model);
    free(run);
    return status;
}
