#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "checkpoint/compressed.h"
#include "checkpoint/directory.h"
#include "checkpoint/frozen_base.h"
#include "checkpoint/layout.h"
#include "engine/state/convert.h"

/* A save under way. */
typedef struct save_run {
    const sifr_engine *engine;
    const char *output;
    const checkpoint_record *record; /* of rank 0 */
    comm_group *group;
    checkpoint_names names;
    checkpoint_layout layout;
    checkpoint_sum *sums;       /* files of all ranks: most_files entries for each rank */
    checkpoint_sum *compressed; /* a file of each rank; NULL: none */
    bool first;                 /* this is rank 0 */
} save_run;

/* Calls `take` for the values of a range that this rank writes, piece by piece, in order: all at
 * once if the weight is whole, row by row if it is cut. */
static sifr_status each_piece(const sifr_engine *engine, const checkpoint_range *range,
                              float *buffer, engine_take_bytes take, void *user,
                              sifr_error *error) {
    const model_weight *w = &engine_model(engine)->weights[range->weight];
    int64_t columns = model_whole(w).columns[1], end = model_logical_elements(w);
    model_stretch logical, local;
    for (int64_t at = 0; model_span_next(&range->span, columns, at, end, &logical);
         at = local.at + local.count) {
        if (!model_local_next(w, logical.at, logical.at + logical.count, &local)) break;
        BASE_TRY(engine_visit(engine, range->weight, range->part, local.place, local.count, buffer,
                              take, user, error));
    }
    return SIFR_OK;
}

static sifr_status append_piece(void *user, const void *values, int64_t first, int64_t count,
                                sifr_error *error) {
    (void)first; /* of what the engine visits */
    return formats_safetensors_append(user, values, (size_t)count, error);
}

/* A whole weight keeps its shape, for users who inspect the file, and so does a whole block. */
static formats_tensor_spec describe(const sifr_engine *engine, const checkpoint_range *range,
                                    const char *name) {
    const model_weight *w = &engine_model(engine)->weights[range->weight];
    formats_tensor_spec spec = {.name = name,
                                .dtype = range->dtype,
                                .rank = 1,
                                .shape = {checkpoint_values(range, range->span.count)}};
    const model_block *block = &range->span.block;
    base_assert(block->rows[0] < block->rows[1] && block->columns[0] < block->columns[1]);
    if (!w->vector && range->each == 1 && range->span.count == model_block_elements(block)) {
        spec.rank = 2;
        spec.shape[0] = block->rows[1] - block->rows[0];
        spec.shape[1] = block->columns[1] - block->columns[0];
    }
    return spec;
}

static sifr_status write_file(const sifr_engine *engine, const checkpoint_range *ranges,
                              size_t count, const char *path, float *buffer, sifr_error *error) {
    formats_tensor_spec *specs = NULL;
    char(*names)[FORMATS_NAME_LIMIT] = NULL;
    formats_safetensors_writer writer;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *specs, &specs, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *names, &names, error), done);
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status,
                      checkpoint_tensor_name(engine_model(engine), &ranges[i], names[i], error),
                      done);
        specs[i] = describe(engine, &ranges[i], names[i]);
    }
    BASE_TRY_GOTO(status, formats_safetensors_writer_open(&writer, path, specs, count, error),
                  done);
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        status = each_piece(engine, &ranges[i], buffer, append_piece, &writer, error);
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

/* A tensor that is being read back. */
typedef struct comparison {
    const formats_tensor *tensor;
    int64_t done; /* bytes */
} comparison;

static sifr_status compare_piece(void *user, const void *values, int64_t first, int64_t count,
                                 sifr_error *error) {
    comparison *c = user;
    const char *data = (const char *)c->tensor->data + c->done;
    base_assert(c->done + count <= (int64_t)c->tensor->bytes);
    (void)first;
    base_read_ahead(data, (size_t)count);
    c->done += count;
    if (memcmp(data, values, (size_t)count) == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "'%s' does not read back as it was written",
                     c->tensor->name);
}

/* Compares the file's contents with the state that was written. */
static sifr_status compare_file(const sifr_engine *engine, const checkpoint_range *ranges,
                                size_t count, const char *path, float *buffer, sifr_error *error) {
    formats_safetensors file;
    char name[FORMATS_NAME_LIMIT];
    BASE_TRY(formats_safetensors_open(path, &file, error));
    base_read_by_pieces(&file.map);
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        status = checkpoint_tensor_name(engine_model(engine), &ranges[i], name, error);
        if (status != SIFR_OK) break;
        const formats_tensor *tensor = formats_safetensors_find(&file, name);
        if (!tensor || tensor->dtype != ranges[i].dtype ||
            tensor->elements != checkpoint_values(&ranges[i], ranges[i].span.count))
            status = base_fail(error, SIFR_FAILED, "'%s' reads back with another size", name);
        else
            status = each_piece(engine, &ranges[i], buffer, compare_piece, &(comparison){tensor, 0},
                                error);
        if (status != SIFR_OK) base_set_error_in(error, status, "%s", path);
    }
    formats_safetensors_close(&file);
    return status;
}

/* Writes this rank's files, reads each back, and records their checksums. */
static sifr_status write_states(save_run *run, float *buffer, sifr_error *error) {
    char directory[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH], name[64];
    const checkpoint_layout *layout = &run->layout;
    size_t rank = (size_t)comm_rank(run->group), begin = layout->first_file[rank];
    BASE_TRY(base_path_join(directory, run->output, run->names.temporary, error));
    for (size_t file = begin; file < layout->first_file[rank + 1]; file++) {
        size_t first, count = checkpoint_layout_file(layout, file, &first);
        base_assert(count > 0);
        const checkpoint_range *ranges = layout->ranges + first;
        checkpoint_file_name(name, file, layout->files);
        BASE_TRY(base_path_join(path, directory, name, error));
        BASE_TRY(write_file(run->engine, ranges, count, path, buffer, error));
        BASE_TRY(compare_file(run->engine, ranges, count, path, buffer, error));
        BASE_TRY(checkpoint_sum_file(directory, name,
                                     &run->sums[rank * layout->most_files + file - begin], error));
    }
    return SIFR_OK;
}

/* --- rank 0 only --- */

/* Rank 0 must see the other ranks' files before the manifest lists them. */
static sifr_status check_seen(const char *directory, const char *name, const checkpoint_sum *sum,
                              int32_t rank, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    int descriptor;
    uint64_t size;
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(base_open_read(path, &descriptor, &size, error));
    close(descriptor);
    if (size == sum->bytes) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: %llu bytes here, but %llu on rank %d, which wrote it",
                     path, (unsigned long long)size, (unsigned long long)sum->bytes, (int)rank);
}

static sifr_status list_files(const save_run *run, const char *directory, json_t *files,
                              sifr_error *error) {
    const checkpoint_layout *layout = &run->layout;
    char name[64];
    for (int32_t r = 0; r < comm_size(run->group); r++) {
        const checkpoint_sum *sum = run->sums + (size_t)r * layout->most_files;
        for (size_t file = layout->first_file[r]; file < layout->first_file[r + 1]; file++, sum++) {
            checkpoint_file_name(name, file, layout->files);
            BASE_TRY(check_seen(directory, name, sum, r, error));
            BASE_TRY(checkpoint_add_file(files, name, sum, error));
        }
    }
    return SIFR_OK;
}

static sifr_status write_trainer(const save_run *run, const char *directory, json_t *files,
                                 sifr_error *error) {
    static const char name[] = "trainer_state.json";
    char path[BASE_PATH_LENGTH];
    checkpoint_sum sum;
    if (!run->record->trainer) return SIFR_OK;
    BASE_TRY(base_path_join(path, directory, name, error));
    BASE_TRY(base_json_save_with(run->record->trainer, run->record->history, path, error));
    BASE_TRY(checkpoint_sum_file(directory, name, &sum, error));
    return checkpoint_add_file(files, name, &sum, error);
}

/* Writes the rest of the folder, the manifest last. */
static sifr_status complete(const save_run *run, sifr_error *error) {
    char directory[BASE_PATH_LENGTH];
    const checkpoint_record *record = run->record;
    const sifr_engine *engine = run->engine;
    json_t *files = json_array(), *ranges = json_array(), *manifest = NULL;
    sifr_status status;
    if (!files || !ranges) {
        status = base_fail_alloc(error, 64);
        goto done;
    }
    BASE_TRY_GOTO(status, base_path_join(directory, run->output, run->names.temporary, error),
                  done);
    BASE_TRY_GOTO(status, list_files(run, directory, files, error), done);
    BASE_TRY_GOTO(status, write_trainer(run, directory, files, error), done);
    for (size_t i = 0; i < run->layout.count; i++)
        BASE_TRY_GOTO(status, checkpoint_add_range(ranges, engine, &run->layout.ranges[i], error),
                      done);
    manifest = json_pack(
        "{s:s, s:i, s:I, s:I, s:O, s:O, s:O, s:O, s:O}", "format", "sifr checkpoint", "version",
        run->layout.cut ? CHECKPOINT_VERSION : 1, "step", (json_int_t)sifr_engine_steps(engine),
        "updates", (json_int_t)sifr_engine_updates(engine), "agree", record->must_match, "notes",
        record->may_differ, "state", record->state, "files", files, "ranges", ranges);
    if (!manifest) {
        status = base_fail_alloc(error, 64);
        goto done;
    }
    if (record->tensors &&
        json_object_set(manifest, "tensors", (json_t *)(uintptr_t)record->tensors) != 0) {
        status = base_fail_alloc(error, 64);
        goto done;
    }
    if (run->compressed)
        BASE_TRY_GOTO(status,
                      checkpoint_add_compressed(manifest, files, engine, run->compressed, error),
                      done);
    BASE_TRY_GOTO(status, checkpoint_add_types(manifest, engine, error), done);
    BASE_TRY_GOTO(status, checkpoint_base_add(manifest, record->base, engine_model(engine), error),
                  done);
    BASE_TRY_GOTO(status, checkpoint_add_scaler(manifest, engine, error), done);
    BASE_TRY_GOTO(status, checkpoint_add_memory(manifest, engine, error), done);
    BASE_TRY_GOTO(status, checkpoint_write_manifest(manifest, directory, error), done);
    status = base_sync_directory(directory, error);
done:
    json_decref(manifest);
    json_decref(ranges);
    json_decref(files);
    return status;
}

/* Cleans up after a failure, when no rank writes any more. */
static void clear_away(const save_run *run, const sifr_log *log) {
    char path[BASE_PATH_LENGTH];
    if (!run->first || base_path_join(path, run->output, run->names.temporary, NULL) != SIFR_OK)
        return;
    if (base_remove_tree(path, NULL) != SIFR_OK)
        base_log(log, SIFR_LOG_WARNING, "%s: could not be removed", path);
}

/* --- together --- */

/* Makes the layout on all ranks, and the folder, which rank 0 makes and all ranks see. */
static sifr_status begin(save_run *run, const checkpoint_settings *settings, sifr_error *error) {
    uint64_t file_bytes = settings->file_bytes ? settings->file_bytes : UINT64_C(4) << 30;
    size_t ranks = (size_t)comm_size(run->group);
    sifr_status status = checkpoint_layout_make(run->engine, file_bytes, &run->layout, error);
    if (status == SIFR_OK)
        status = base_alloc(ranks * run->layout.most_files, sizeof *run->sums, &run->sums, error);
    if (status == SIFR_OK && checkpoint_has_compressed(run->engine)) {
        run->layout.bytes += ranks * (uint64_t)checkpoint_compressed_bytes(run->engine);
        status = base_alloc(ranks, sizeof *run->compressed, &run->compressed, error);
    }
    if (status == SIFR_OK && run->first)
        status = checkpoint_directory_make(run->output, &run->names, run->layout.bytes,
                                           settings->beside, error);
    BASE_TRY(comm_agree_status(run->group, status, error));
    BASE_TRY(comm_broadcast(run->group, 0, &run->names, sizeof run->names, error));
    if (!run->first) status = checkpoint_directory_wait(run->output, run->names.temporary, error);
    return comm_agree_status(run->group, status, error);
}

static sifr_status write_compressed(const save_run *run, sifr_error *error) {
    char directory[BASE_PATH_LENGTH];
    checkpoint_sum own;
    sifr_status status = base_path_join(directory, run->output, run->names.temporary, error);
    if (!run->compressed) return SIFR_OK;
    if (status == SIFR_OK) status = checkpoint_save_compressed(run->engine, directory, &own, error);
    BASE_TRY(comm_agree_status(run->group, status, error));
    return comm_all_gather_control(run->group, &own, sizeof own, run->compressed, error);
}

static sifr_status write_all(save_run *run, sifr_error *error) {
    int64_t bytes = (int64_t)(run->layout.most_files * sizeof *run->sums);
    checkpoint_sum *mine = run->sums + (size_t)comm_rank(run->group) * run->layout.most_files;
    float *buffer; /* for state that the host cannot reach in place */
    sifr_status status = base_alloc(engine_in_place(run->engine) ? 0 : ENGINE_VISITED,
                                    sizeof *buffer, &buffer, error);
    if (status == SIFR_OK) status = write_states(run, buffer, error);
    free(buffer);
    BASE_TRY(comm_agree_status(run->group, status, error));
    return comm_all_gather_control(run->group, mine, bytes, run->sums, error);
}

/* The new checkpoint is good even if an old one cannot be removed. */
static sifr_status finish(const save_run *run, const checkpoint_settings *settings,
                          const sifr_log *log, sifr_error *error) {
    sifr_error left = {0};
    if (!run->first) return SIFR_OK;
    BASE_TRY(complete(run, error));
    BASE_TRY(checkpoint_directory_place(run->output, &run->names, error));
    base_log(log, SIFR_LOG_DEBUG, "%s/%s: saved and verified", run->output, run->names.final);
    if (checkpoint_prune(run->output, sifr_engine_steps(run->engine), settings->keep, &left) !=
        SIFR_OK)
        base_log(log, SIFR_LOG_WARNING, "%s", left.message);
    return SIFR_OK;
}

sifr_status checkpoint_save(const sifr_engine *engine, const char *output,
                            const checkpoint_record *record, const checkpoint_settings *settings,
                            const sifr_log *log, sifr_error *error) {
    save_run run = {.engine = engine,
                    .output = output,
                    .record = record,
                    .group = engine_group(engine),
                    .first = comm_rank(engine_group(engine)) == 0};
    checkpoint_name(sifr_engine_steps(engine), &run.names);
    BASE_TRY(comm_agree_status(run.group, engine_settle(engine, error), error));
    sifr_status status = begin(&run, settings, error);
    if (status == SIFR_OK) status = write_all(&run, error);
    if (status == SIFR_OK) status = write_compressed(&run, error);
    if (status == SIFR_OK)
        status = comm_agree_status(run.group, finish(&run, settings, log, error), error);
    if (status != SIFR_OK) clear_away(&run, log);
    free(run.sums);
    free(run.compressed);
    checkpoint_layout_free(&run.layout);
    return status;
}
