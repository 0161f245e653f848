#include "convert/import_checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "convert/new_folder.h"
#include "engine/handle.h"
#include "formats/deepspeed/deepspeed_checkpoint.h"
#include "formats/folder.h"
#include "formats/weights.h"

enum { PIECE = 1 << 18 }; /* elements */

typedef struct import_run {
    formats_deepspeed *from;
    convert_new_folder folder;
    formats_tensor_spec *specs; /* by weight */
    float *piece;
} import_run;

static sifr_status make_specs(import_run *run, convert_imported *out, sifr_error *error) {
    size_t count = formats_deepspeed_count(run->from);
    BASE_TRY(base_alloc(count, sizeof *run->specs, &run->specs, error));
    for (size_t i = 0; i < count; i++) {
        const formats_deepspeed_weight *w = formats_deepspeed_at(run->from, i);
        run->specs[i] = (formats_tensor_spec){.name = w->name, .dtype = BASE_FP32, .rank = w->rank};
        memcpy(run->specs[i].shape, w->shape, sizeof w->shape);
        if (!base_add_i64(out->parameters, w->elements, &out->parameters))
            return base_fail(error, SIFR_FAILED, "%s: its sizes do not fit", out->from);
    }
    out->weights = count;
    return out->parameters <= INT64_MAX / 8
               ? SIFR_OK
               : base_fail(error, SIFR_FAILED, "%s: its sizes do not fit", out->from);
}

static sifr_status fill(void *user, size_t position, formats_safetensors_writer *writer,
                        sifr_error *error) {
    const import_run *run = user;
    int64_t elements = formats_deepspeed_at(run->from, position)->elements;
    for (int64_t at = 0; at < elements; at += PIECE) {
        int64_t count = base_min_i64(PIECE, elements - at);
        formats_deepspeed_read(run->from, position, at, count, run->piece);
        BASE_TRY(
            formats_safetensors_append(writer, run->piece, (size_t)count * sizeof(float), error));
    }
    return SIFR_OK;
}

/* The folder with config.json: the one given, else the checkpoint's own. */
static sifr_status find_files(const char *checkpoint, const char **files, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    const char *folder = *files ? *files : checkpoint;
    BASE_TRY(base_path_join(path, folder, "config.json", error));
    if (base_is_file(path)) {
        *files = folder;
        return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: no config.json there; give the folder of the model that was trained: "
                     "--model FOLDER",
                     folder);
}

/* What was written is a model whose weights have its config's names and shapes. */
static sifr_status check_model(const import_run *run, const char *files, sifr_error *error) {
    engine_folder folder = {0};
    sifr_error said = {0};
    sifr_status status = engine_folder_open(run->folder.temporary, &folder, &said);
    engine_folder_close(&folder);
    if (status == SIFR_OK) return SIFR_OK;
    const char *at = strstr(said.message, run->folder.temporary);
    const char *rest = at == said.message ? said.message + strlen(run->folder.temporary) : NULL;
    return base_fail(error, status, "the weights of the checkpoint with config.json of %.300s: %s",
                     files, rest ? rest + strspn(rest, ":/ ") : said.message);
}

static sifr_status write_model(import_run *run, const char *files, convert_imported *out,
                               sifr_error *error) {
    BASE_TRY(make_specs(run, out, error));
    BASE_TRY(
        convert_new_folder_space(&run->folder, (uint64_t)out->parameters * sizeof(float), error));
    BASE_TRY(base_alloc(PIECE, sizeof *run->piece, &run->piece, error));
    BASE_TRY(convert_new_folder_make(&run->folder, error));
    BASE_TRY(formats_folder_carry(files, run->folder.temporary, "float32", NULL, error));
    BASE_TRY(formats_weights_write(run->folder.temporary, run->specs, out->weights, 0, fill, run,
                                   error));
    BASE_TRY(check_model(run, files, error));
    return convert_new_folder_place(&run->folder, error);
}

sifr_status convert_import_checkpoint(const char *checkpoint, const char *files,
                                      const char *destination, const sifr_log *log,
                                      convert_imported *out, sifr_error *error) {
    import_run run = {0};
    *out = (convert_imported){.step = -1};
    BASE_TRY(convert_new_folder_check(&run.folder, destination, error));
    sifr_status status = formats_deepspeed_open(checkpoint, &run.from, error);
    if (status == SIFR_OK) {
        strncpy(out->from, formats_deepspeed_folder(run.from), sizeof out->from - 1);
        out->stage = formats_deepspeed_stage(run.from);
        out->ranks = formats_deepspeed_ranks(run.from);
        out->step = formats_deepspeed_step(run.from);
        status = find_files(checkpoint, &files, error);
    }
    if (status == SIFR_OK) status = write_model(&run, files, out, error);
    convert_new_folder_drop(&run.folder, log);
    formats_deepspeed_close(run.from);
    free(run.specs);
    free(run.piece);
    return status;
}
