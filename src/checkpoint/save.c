#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "checkpoint/manifest.h"

typedef struct save_plan {
    checkpoint_range *ranges;
    size_t count, room;
    size_t files;
    uint64_t bytes;
} save_plan;

/* All parts of all weights, cut where a file is full. */
static sifr_status make_plan(const sifr_model *model, uint64_t file_bytes, save_plan *plan,
                             sifr_error *error) {
    int64_t limit = (int64_t)(file_bytes / sizeof(float)), filled = 0;
    if (limit < 1) limit = 1;
    plan->files = 1;
    for (int p = 0; p < ENGINE_PARTS; p++) {
        for (size_t w = 0; w < model->weight_count; w++) {
            int64_t elements = model->weights[w].rows * model->weights[w].columns, first = 0;
            while (first < elements) {
                if (filled == limit) plan->files++, filled = 0;
                int64_t count = base_min_i64(elements - first, limit - filled);
                BASE_TRY(base_grow(&plan->ranges, &plan->room, plan->count + 1,
                                   sizeof *plan->ranges, error));
                plan->ranges[plan->count++] =
                    (checkpoint_range){w, (engine_part)p, first, count, plan->files - 1, NULL};
                filled += count, first += count;
                plan->bytes += (uint64_t)count * sizeof(float);
            }
        }
    }
    return SIFR_OK;
}

static sifr_status check_space(const char *output, uint64_t bytes, sifr_error *error) {
    uint64_t room;
    char need[32], have[32];
    BASE_TRY(base_free_space(output, &room, error));
    uint64_t wanted = bytes + bytes / 64 + (1 << 20); /* with manifest, logs and the like */
    if (room >= wanted) return SIFR_OK;
    return base_fail(
        error, SIFR_FAILED,
        "%s: a checkpoint needs %s of free disk and %s are left; free some space, or keep "
        "fewer with save_total_limit",
        output, base_format_bytes(wanted, need), base_format_bytes(room, have));
}

static void file_name(char out[64], size_t file, size_t files) {
    snprintf(out, 64, "state-%05zu-of-%05zu.safetensors", file + 1, files);
}

static const float *range_values(const sifr_engine *engine, const checkpoint_range *range) {
    return engine_state(engine, range->weight, range->part) + range->first;
}

/* A whole weight keeps its shape, for people who look into the file. */
static formats_tensor_spec describe(const sifr_model *model, const checkpoint_range *range,
                                    const char *name) {
    const model_weight *w = &model->weights[range->weight];
    formats_tensor_spec spec = {
        .name = name, .dtype = FORMATS_F32, .rank = 1, .shape = {range->count}};
    if (!w->vector && range->count == w->rows * w->columns) {
        spec.rank = 2;
        spec.shape[0] = w->rows;
        spec.shape[1] = w->columns;
    }
    return spec;
}

static sifr_status write_file(const sifr_engine *engine, const checkpoint_range *ranges,
                              size_t count, const char *path, sifr_error *error) {
    formats_tensor_spec *specs = NULL;
    char(*names)[FORMATS_NAME_LIMIT] = NULL;
    formats_safetensors_writer writer;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *specs, &specs, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *names, &names, error), done);
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status, checkpoint_tensor_name(engine->model, &ranges[i], names[i], error),
                      done);
        specs[i] = describe(engine->model, &ranges[i], names[i]);
    }
    BASE_TRY_GOTO(status, formats_safetensors_writer_open(&writer, path, specs, count, error),
                  done);
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        status = formats_safetensors_append(&writer, range_values(engine, &ranges[i]),
                                            (size_t)ranges[i].count * sizeof(float), error);
    }
    if (status == SIFR_OK)
        status = formats_safetensors_commit(&writer, error);
    else
        formats_safetensors_abort(&writer);
done:
    free(names);
    free(specs);
    return status;
}

/* What the file says now against the memory that it was made from. */
static sifr_status compare_file(const sifr_engine *engine, const checkpoint_range *ranges,
                                size_t count, const char *path, sifr_error *error) {
    formats_safetensors file;
    char name[FORMATS_NAME_LIMIT];
    BASE_TRY(formats_safetensors_open(path, &file, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        status = checkpoint_tensor_name(engine->model, &ranges[i], name, error);
        if (status != SIFR_OK) break;
        const formats_tensor *tensor = formats_safetensors_find(&file, name);
        if (tensor && tensor->elements == ranges[i].count &&
            memcmp(tensor->data, range_values(engine, &ranges[i]), tensor->bytes) == 0)
            continue;
        status = base_fail(error, SIFR_FAILED, "%s: '%s' reads back other than it was written",
                           path, name);
    }
    formats_safetensors_close(&file);
    return status;
}

static sifr_status write_states(const sifr_engine *engine, const save_plan *plan,
                                const char *directory, json_t *files, sifr_error *error) {
    char path[BASE_PATH_LENGTH], name[64];
    for (size_t file = 0, first = 0, end = 0; file < plan->files; file++, first = end) {
        while (end < plan->count && plan->ranges[end].file == file) end++;
        file_name(name, file, plan->files);
        BASE_TRY(base_path_join(path, directory, name, error));
        BASE_TRY(write_file(engine, plan->ranges + first, end - first, path, error));
        BASE_TRY(compare_file(engine, plan->ranges + first, end - first, path, error));
        BASE_TRY(checkpoint_add_file(files, directory, name, error));
    }
    return SIFR_OK;
}

static sifr_status list_ranges(const sifr_model *model, const save_plan *plan, json_t *list,
                               sifr_error *error) {
    char name[FORMATS_NAME_LIMIT];
    for (size_t i = 0; i < plan->count; i++) {
        const checkpoint_range *r = &plan->ranges[i];
        BASE_TRY(checkpoint_tensor_name(model, r, name, error));
        json_t *entry =
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "weight", model->weights[r->weight].name,
                      "part", checkpoint_part_name(r->part), "first", (json_int_t)r->first, "count",
                      (json_int_t)r->count, "file", (json_int_t)r->file, "tensor", name);
        if (!entry || json_array_append_new(list, entry) != 0)
            return base_fail_alloc(error, sizeof name);
    }
    return SIFR_OK;
}

static sifr_status write_all(const sifr_engine *engine, const save_plan *plan,
                             const checkpoint_record *record, const char *directory,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *files = json_array(), *ranges = json_array(), *manifest = NULL;
    sifr_status status;
    if (!files || !ranges) {
        status = base_fail_alloc(error, 64);
        goto done;
    }
    BASE_TRY_GOTO(status, write_states(engine, plan, directory, files, error), done);
    BASE_TRY_GOTO(status, base_path_join(path, directory, "trainer_state.json", error), done);
    BASE_TRY_GOTO(status, base_json_save(record->trainer, path, error), done);
    BASE_TRY_GOTO(status, checkpoint_add_file(files, directory, "trainer_state.json", error), done);
    BASE_TRY_GOTO(status, list_ranges(engine->model, plan, ranges, error), done);
    manifest =
        json_pack("{s:s, s:i, s:I, s:I, s:O, s:O, s:O, s:O, s:O}", "format", "sifr checkpoint",
                  "version", CHECKPOINT_VERSION, "step", (json_int_t)engine->steps, "updates",
                  (json_int_t)engine->updates, "agree", record->agree, "notes", record->notes,
                  "state", record->state, "files", files, "ranges", ranges);
    if (!manifest) {
        status = base_fail_alloc(error, 64);
        goto done;
    }
    BASE_TRY_GOTO(status, checkpoint_write_manifest(manifest, directory, error), done);
    status = base_sync_directory(directory, error);
done:
    json_decref(manifest);
    json_decref(ranges);
    json_decref(files);
    return status;
}

/* Gives the finished folder its name. One of that name (damaged, or of a run that went on from an
 * older one) changes places with it in one instant, and is removed after. */
static sifr_status put_in_place(const char *temporary, const char *final, const char *output,
                                sifr_error *error) {
    bool there = base_is_directory(final);
    int failed = there ? renameat2(AT_FDCWD, temporary, AT_FDCWD, final, RENAME_EXCHANGE)
                       : rename(temporary, final);
    if (failed && there && errno == EINVAL) { /* a file system that cannot exchange */
        BASE_TRY(base_remove_tree(final, error));
        there = false;
        failed = rename(temporary, final);
    }
    if (failed) return base_fail_errno(error, errno, "%s: cannot rename to this name", final);
    BASE_TRY(base_sync_directory(output, error));
    return there ? base_remove_tree(temporary, error) : SIFR_OK;
}

/* A folder that is being removed loses its name first, so that no half of it is ever seen. */
static sifr_status remove_checkpoint(const char *output, int64_t step, sifr_error *error) {
    char path[BASE_PATH_LENGTH], temporary[BASE_PATH_LENGTH], name[64];
    snprintf(name, sizeof name, "checkpoint-%lld", (long long)step);
    BASE_TRY(base_path_join(path, output, name, error));
    snprintf(name, sizeof name, "checkpoint-%lld.tmp-%ld", (long long)step, (long)getpid());
    BASE_TRY(base_path_join(temporary, output, name, error));
    if (rename(path, temporary) != 0)
        return base_fail_errno(error, errno, "%s: cannot remove the old checkpoint", path);
    return base_remove_tree(temporary, error);
}

static sifr_status prune(const char *output, int64_t newest, int64_t keep, sifr_error *error) {
    int64_t *steps, kept = 0;
    size_t count;
    if (keep <= 0) return SIFR_OK;
    BASE_TRY(checkpoint_list(output, &steps, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (steps[i] > newest || ++kept <= keep) continue;
        status = remove_checkpoint(output, steps[i], error);
    }
    free(steps);
    return status;
}

sifr_status checkpoint_save(const sifr_engine *engine, const char *output,
                            const checkpoint_record *record, const checkpoint_settings *settings,
                            const sifr_log *log, sifr_error *error) {
    char final[BASE_PATH_LENGTH], temporary[BASE_PATH_LENGTH], latest[BASE_PATH_LENGTH], name[64];
    save_plan plan = {0};
    sifr_status status;
    long long step = (long long)engine->steps;
    BASE_TRY(base_make_directories(output, error));
    snprintf(name, sizeof name, "checkpoint-%lld.tmp-%ld", step, (long)getpid());
    BASE_TRY(base_path_join(temporary, output, name, error));
    snprintf(name, sizeof name, "checkpoint-%lld", step);
    BASE_TRY(base_path_join(final, output, name, error));
    BASE_TRY(base_path_join(latest, output, "latest", error));

    uint64_t file_bytes = settings->file_bytes ? settings->file_bytes : UINT64_C(4) << 30;
    BASE_TRY_GOTO(status, make_plan(engine->model, file_bytes, &plan, error), done);
    BASE_TRY_GOTO(status, check_space(output, plan.bytes, error), done);
    BASE_TRY_GOTO(status, base_remove_tree(temporary, error), done);
    BASE_TRY_GOTO(status, base_make_directories(temporary, error), done);
    status = write_all(engine, &plan, record, temporary, error);
    if (status == SIFR_OK) status = put_in_place(temporary, final, output, error);
    if (status != SIFR_OK) {
        if (base_remove_tree(temporary, NULL) != SIFR_OK)
            base_log(log, SIFR_LOG_WARNING, "%s: could not be removed", temporary);
        goto done;
    }
    strcat(name, "\n");
    BASE_TRY_GOTO(status, base_write_file(latest, name, strlen(name), error), done);
    base_log(log, SIFR_LOG_DEBUG, "%s: saved and verified", final);
    status = prune(output, engine->steps, settings->keep, error);
done:
    free(plan.ranges);
    return status;
}
