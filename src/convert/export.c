#include "convert/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "checkpoint/output.h"
#include "convert/export_text.h"
#include "convert/new_folder.h"

typedef struct export_run {
    checkpoint_model model;
    convert_new_folder folder;
    bool text;    /* the text model alone */
    float *piece; /* of a weight */
} export_run;

static sifr_status count_bytes(const export_run *run, uint64_t *out, sifr_error *error) {
    const checkpoint_model *m = &run->model;
    *out = 0;
    for (size_t i = 0; i < m->stored.count; i++) {
        const engine_stored_tensor *tensor = &m->stored.tensors[i];
        const model_weight *w = &m->folder.model->weights[tensor->weight];
        int64_t bytes;
        if (!base_mul_i64(w->rows * w->columns, base_dtype_bytes(tensor->dtype), &bytes))
            return base_fail(error, SIFR_FAILED, "tensor %s: too large", tensor->name);
        *out += (uint64_t)bytes;
    }
    for (size_t i = 0; i < m->stored.carried_count; i++) *out += m->stored.carried[i]->bytes;
    return SIFR_OK;
}

static sifr_status give(void *user, size_t weight, int64_t first, int64_t count, const float **out,
                        sifr_error *error) {
    const export_run *run = user;
    (void)error;
    checkpoint_model_values(&run->model, weight, first, count, run->piece);
    *out = run->piece;
    return SIFR_OK;
}

/* The files beside the weights. Of an adapter beside its base the adapter's own count. */
static sifr_status carry_files(const export_run *run, sifr_error *error) {
    const checkpoint_model *m = &run->model;
    BASE_TRY(formats_folder_carry(m->files, run->folder.temporary, NULL, NULL, error));
    if (!m->adapter[0]) return SIFR_OK;
    return formats_folder_carry(m->adapter, run->folder.temporary, NULL, NULL, error);
}

static sifr_status write_model(export_run *run, convert_exported *out, sifr_error *error) {
    const checkpoint_model *m = &run->model;
    BASE_TRY(count_bytes(run, &out->bytes, error));
    BASE_TRY(convert_new_folder_space(&run->folder, out->bytes, error));
    BASE_TRY(base_alloc((size_t)engine_piece_elements(), sizeof *run->piece, &run->piece, error));
    BASE_TRY(convert_new_folder_make(&run->folder, error));
    BASE_TRY(carry_files(run, error));
    if (run->text) BASE_TRY(convert_text_files(m, run->folder.temporary, error));
    BASE_TRY(
        engine_write_folder(m->folder.model, &m->stored, give, run, run->folder.temporary, error));
    return convert_new_folder_place(&run->folder, error);
}

sifr_status convert_export(const char *source, const char *destination, bool average, bool text,
                           const sifr_log *log, convert_exported *out, sifr_error *error) {
    export_run *run;
    *out = (convert_exported){.step = -1};
    BASE_TRY(base_alloc(1, sizeof *run, &run, error));
    run->text = text;
    sifr_status status = convert_new_folder_check(&run->folder, destination, error);
    if (status == SIFR_OK)
        status = average ? checkpoint_model_open_average(source, &run->model, error)
                         : checkpoint_model_open(source, NULL, &run->model, log, error);
    if (status == SIFR_OK && text) status = convert_text_tensors(&run->model, error);
    if (status == SIFR_OK) {
        const checkpoint_model *m = &run->model;
        memcpy(out->from, m->adapter[0] ? m->adapter : m->path, sizeof out->from);
        out->step = m->step;
        out->parameters = sifr_model_parameters(m->folder.model);
        if (!text) engine_folder_warn(&m->folder, log);
        if (!m->typed)
            base_log(log, SIFR_LOG_WARNING,
                     "%s: made by an older sifr, which did not record the types of the model's "
                     "tensors; they are written in fp32",
                     m->path);
        status = write_model(run, out, error);
    }
    convert_new_folder_drop(&run->folder, log);
    checkpoint_model_close(&run->model);
    free(run->piece);
    free(run);
    return status;
}
