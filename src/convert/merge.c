#include "convert/merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "checkpoint/adapter_base.h"
#include "checkpoint/model_source.h"
#include "convert/new_folder.h"
#include "text/chat_template.h"

typedef struct merge_run {
    checkpoint_model model;
    engine_stored stored;
    convert_new_folder folder;
    bool out;
    double *sums;       /* of a row */
    float *piece, *row; /* of a weight */
    /* Of the weight `at`, -1: none: the factors and what multiplies them. */
    int64_t at;
    float *a, *b, *magnitudes;
    double *norms; /* with magnitudes: of what they multiply, by output */
    double scale;
    bool transposed;
} merge_run;

static sifr_status read_factor(const merge_run *run, int32_t weight, float **out,
                               sifr_error *error) {
    const model_weight *w = &run->model.folder.model->weights[weight];
    free(*out);
    *out = NULL;
    BASE_TRY(base_alloc((size_t)(w->rows * w->columns), sizeof **out, out, error));
    checkpoint_model_values(&run->model, (size_t)weight, 0, w->rows * w->columns, *out);
    return SIFR_OK;
}

/* B A, or its transpose, in columns first … first + count - 1 of a row. */
static void sum_row(merge_run *run, int64_t row, int64_t first, int64_t count) {
    const sifr_model *model = run->model.folder.model;
    const model_weight *w = &model->weights[run->at];
    int64_t rank = model->weights[w->adapter].rows, in = model->weights[w->adapter].columns;
    memset(run->sums, 0, (size_t)count * sizeof *run->sums);
    for (int64_t k = 0; k < rank; k++) {
        double factor = run->transposed ? run->a[k * in + row] : run->b[row * rank + k];
        for (int64_t i = 0; i < count; i++) {
            float other =
                run->transposed ? run->b[(first + i) * rank + k] : run->a[k * in + first + i];
            run->sums[i] += factor * (double)other;
        }
    }
}

/* Of base and adapter together, over all rows of the weight. */
static sifr_status find_norms(merge_run *run, sifr_error *error) {
    const model_weight *w = &run->model.folder.model->weights[run->at];
    int64_t outputs = run->transposed ? w->columns : w->rows, most = engine_piece_elements();
    BASE_TRY(read_factor(run, w->adapter + 2, &run->magnitudes, error));
    free(run->norms);
    run->norms = NULL;
    BASE_TRY(base_alloc((size_t)outputs, sizeof *run->norms, &run->norms, error));
    for (int64_t row = 0; row < w->rows; row++) {
        for (int64_t first = 0; first < w->columns; first += most) {
            int64_t count = base_min_i64(most, w->columns - first);
            checkpoint_model_values(&run->model, (size_t)run->at, row * w->columns + first, count,
                                    run->row);
            sum_row(run, row, first, count);
            for (int64_t i = 0; i < count; i++) {
                double value = (double)run->row[i] + run->scale * run->sums[i];
                run->norms[run->transposed ? first + i : row] += value * value;
            }
        }
    }
    for (int64_t o = 0; o < outputs; o++) run->norms[o] = sqrt(run->norms[o]);
    return SIFR_OK;
}

static sifr_status take_factors(merge_run *run, size_t weight, sifr_error *error) {
    const sifr_model *model = run->model.folder.model;
    const model_weight *w = &model->weights[weight];
    char module[MODEL_NAME_LENGTH];
    if (run->at == (int64_t)weight) return SIFR_OK;
    run->at = -1;
    BASE_TRY(read_factor(run, w->adapter, &run->a, error));
    BASE_TRY(read_factor(run, w->adapter + 1, &run->b, error));
    snprintf(module, sizeof module, "%.*s", (int)(strlen(w->name) - strlen(".weight")), w->name);
    run->scale = model_lora_scale(&run->model.lora, module) * (run->out ? -1 : 1);
    size_t n = 0;
    while (model->nodes[n].w[0] != (int32_t)weight) n++; /* the product comes first */
    run->transposed = model->nodes[n].attributes.linear.transposed;
    run->at = (int64_t)weight;
    return run->model.lora.dora ? find_norms(run, error) : SIFR_OK;
}

static void add_row(merge_run *run, int64_t row, int64_t first, int64_t count, float *values) {
    sum_row(run, row, first, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t output = run->transposed ? first + i : row;
        double value = (double)values[i] + run->scale * run->sums[i];
        if (run->norms) value *= (double)run->magnitudes[output] / run->norms[output];
        values[i] = (float)value;
    }
}

static sifr_status give(void *user, size_t weight, int64_t first, int64_t count, const float **out,
                        sifr_error *error) {
    merge_run *run = user;
    const model_weight *w = &run->model.folder.model->weights[weight];
    checkpoint_model_values(&run->model, weight, first, count, run->piece);
    *out = run->piece;
    if (!w->adapter) return SIFR_OK;
    BASE_TRY(take_factors(run, weight, error));
    for (int64_t done = 0; done < count;) {
        int64_t row = (first + done) / w->columns, column = (first + done) % w->columns;
        int64_t here = base_min_i64(w->columns - column, count - done);
        add_row(run, row, column, here, run->piece + done);
        done += here;
    }
    return SIFR_OK;
}

/* Taken out of a merged model, only products come back: what was replaced is lost. */
static sifr_status check_replaced(const merge_run *run, const char *adapter, sifr_error *error) {
    const sifr_model *model = run->model.folder.model;
    if (run->out && run->model.lora.dora)
        return base_fail(error, SIFR_USAGE,
                         "%s: with magnitudes (use_dora) the norms of the base are not in a merged "
                         "model: use the base's own folder",
                         adapter);
    for (size_t i = 0; run->out && i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        if (w->frozen || w->factor) continue;
        return base_fail(error, SIFR_USAGE,
                         "%s: it replaces %s, whose values before that are not known: use the "
                         "base's own folder",
                         adapter, w->name);
    }
    return SIFR_OK;
}

static sifr_status prepare(merge_run *run, convert_merged *merged, sifr_error *error) {
    const engine_folder *folder = &run->model.folder;
    int64_t widest = 1;
    BASE_TRY(engine_stored_whole(folder->model, folder->architecture, folder->weights, BASE_FP32,
                                 &run->stored, error));
    for (size_t i = 0; i < run->stored.count; i++) {
        engine_stored_tensor *tensor = &run->stored.tensors[i];
        const model_weight *w = &folder->model->weights[tensor->weight];
        if (w->adapter) tensor->copied = NULL;
        merged->modules += w->adapter > 0;
        merged->parameters += w->rows * w->columns;
        merged->bytes += (uint64_t)(w->rows * w->columns * base_dtype_bytes(tensor->dtype));
        widest = base_max_i64(widest, w->columns);
    }
    for (size_t i = 0; i < run->stored.carried_count; i++)
        merged->bytes += run->stored.carried[i]->bytes;
    BASE_TRY(base_alloc((size_t)widest, sizeof *run->sums, &run->sums, error));
    BASE_TRY(base_alloc((size_t)engine_piece_elements(), sizeof *run->row, &run->row, error));
    return base_alloc((size_t)engine_piece_elements(), sizeof *run->piece, &run->piece, error);
}

static sifr_status write_model(merge_run *run, const convert_merged *merged, const sifr_log *log,
                               sifr_error *error) {
    const engine_folder *folder = &run->model.folder;
    BASE_TRY(convert_new_folder_space(&run->folder, merged->bytes, error));
    BASE_TRY(convert_new_folder_make(&run->folder, error));
    BASE_TRY(formats_folder_carry(run->model.path, run->folder.temporary, NULL, log, error));
    BASE_TRY(engine_folder_put_config(folder, run->model.path, run->folder.temporary, error));
    BASE_TRY(text_chat_template_put(run->model.template[0] ? run->model.template : NULL,
                                    run->model.path, run->folder.temporary, error));
    BASE_TRY(
        engine_write_folder(folder->model, &run->stored, give, run, run->folder.temporary, error));
    return convert_new_folder_place(&run->folder, error);
}

sifr_status convert_merge(const char *base, const char *adapter, const char *destination, bool out,
                          const sifr_log *log, convert_merged *merged, sifr_error *error) {
    merge_run *run;
    *merged = (convert_merged){0};
    BASE_TRY(base_alloc(1, sizeof *run, &run, error));
    run->at = -1;
    run->out = out;
    sifr_status status = convert_new_folder_check(&run->folder, destination, error);
    if (status == SIFR_OK)
        status = checkpoint_model_open(base, adapter, &run->model, out ? NULL : log, error);
    if (status == SIFR_OK && out)
        checkpoint_warn_adapter_base(&run->model.lora, adapter, base, true, log);
    if (status == SIFR_OK) status = check_replaced(run, adapter, error);
    if (status == SIFR_OK) status = prepare(run, merged, error);
    if (status == SIFR_OK) status = write_model(run, merged, log, error);
    convert_new_folder_drop(&run->folder, log);
    engine_stored_free(&run->stored);
    checkpoint_model_close(&run->model);
    free(run->sums);
    free(run->piece);
    free(run->row);
    free(run->magnitudes);
    free(run->norms);
    free(run->a);
    free(run->b);
    free(run);
    return status;
}
