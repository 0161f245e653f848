/* The lists of a manifest: where the parts of each weight lie, and the tensors of the model folder
 * that the checkpoint becomes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "checkpoint/cover.h"

sifr_status checkpoint_tensor_name(const sifr_model *model, const checkpoint_range *range,
                                   char out[FORMATS_NAME_LIMIT], sifr_error *error) {
    const char *weight = model->weights[range->weight].name;
    const model_block *block = &range->span.block;
    char where[100] = "", from[24] = "";
    if (!checkpoint_is_whole(model, range))
        snprintf(where, sizeof where, "[%lld:%lld,%lld:%lld]", (long long)block->rows[0],
                 (long long)block->rows[1], (long long)block->columns[0],
                 (long long)block->columns[1]);
    if (range->span.first) snprintf(from, sizeof from, "@%lld", (long long)range->span.first);
    int used = snprintf(out, FORMATS_NAME_LIMIT, "%s/%s%s%s", range->name, weight, where, from);
    if (used > 0 && used < FORMATS_NAME_LIMIT) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "checkpoint: the weight's name %.60s… is too long", weight);
}

/* --- ranges --- */

static int compare_ranges(const void *a, const void *b) {
    const checkpoint_range *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    const model_block *p = &x->span.block, *q = &y->span.block;
    const int64_t left[] = {p->rows[0], p->columns[0], p->rows[1], p->columns[1], x->span.first};
    const int64_t right[] = {q->rows[0], q->columns[0], q->rows[1], q->columns[1], y->span.first};
    for (int i = 0; i < 5; i++)
        if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int compare_files(const void *a, const void *b) {
    const checkpoint_range *x = a, *y = b;
    return x->file != y->file ? (x->file < y->file ? -1 : 1) : compare_ranges(a, b);
}

/* Index of each weight by its name. */
static sifr_status index_weights(const sifr_model *model, json_t **out, sifr_error *error) {
    *out = json_object();
    for (size_t w = 0; *out && w < model->weight_count; w++) {
        if (json_object_set_new(*out, model->weights[w].name, json_integer((json_int_t)w)) == 0)
            continue;
        json_decref(*out);
        *out = NULL;
    }
    return *out ? SIFR_OK : base_fail_alloc(error, 64 * model->weight_count);
}

/* The part of this name among those that `optimizer` has of a weight, or of `any`; NULL: of any
 * optimizer, and all but master weights are ENGINE_STATE1. -1: there is none. */
static int part_of(const optim_row *optimizer, const model_weight *weight, bool any,
                   const char *name) {
    const optim_row *of;
    if (strcmp(name, engine_part_name(optimizer, ENGINE_MASTER)) == 0) return ENGINE_MASTER;
    if (!optimizer) return ENGINE_STATE1;
    const optim_row *row = any ? optimizer : optim_row_for(optimizer, weight->rest);
    int state = optim_find_state(row, name, &of);
    return state >= 0 && (any || of == row) ? ENGINE_STATE1 + state : -1;
}

/* `part` by its name in `types`, unless the entry says otherwise. */
static sifr_status read_range_type(const json_t *entry, const json_t *types, const char *part,
                                   const char *where, base_dtype *out, sifr_error *error) {
    static const base_dtype built[] = {BASE_FP32, BASE_BF16, BASE_FP16, BASE_UINT8};
    const char *name;
    BASE_TRY(base_json_string(types, part, "fp32", &name, where, error));
    BASE_TRY(base_json_string(entry, "dtype", name, &name, where, error));
    for (size_t i = 0; i < sizeof built / sizeof *built; i++) {
        if (strcmp(name, base_dtype_name(built[i])) != 0) continue;
        *out = built[i];
        return SIFR_OK;
    }
    return base_fail(error, SIFR_FAILED,
                     "%s: has %.40s in %.40s, which is not supported (supported: fp32, bf16, fp16, "
                     "uint8)",
                     where, part, name);
}

/* [a, b] with 0 <= a < b <= most. */
static bool read_bounds(const json_t *pair, int64_t most, int64_t out[2]) {
    const json_t *a = json_array_get(pair, 0), *b = json_array_get(pair, 1);
    out[0] = json_integer_value(a);
    out[1] = json_integer_value(b);
    return json_array_size(pair) == 2 && json_is_integer(a) && json_is_integer(b) && out[0] >= 0 &&
           out[0] < out[1] && out[1] <= most;
}

/* The block of a range; without "rows" and "columns" the whole weight. */
static bool read_block(const json_t *entry, int64_t version, const model_weight *w,
                       model_block *out) {
    const json_t *rows = json_object_get(entry, "rows");
    const json_t *columns = json_object_get(entry, "columns");
    model_block whole = model_whole(w);
    *out = whole;
    if (!rows && !columns) return true;
    return version > 1 && read_bounds(rows, whole.rows[1], out->rows) &&
           read_bounds(columns, whole.columns[1], out->columns);
}

/* `weights`: index by name. `any`: as in checkpoint_check_cover. */
static sifr_status read_range(const checkpoint_opened *opened, const json_t *entry,
                              const sifr_model *model, const json_t *weights,
                              const optim_row *optimizer, bool any, const char *where,
                              checkpoint_range *out, sifr_error *error) {
    const char *weight;
    int64_t file;
    BASE_TRY(base_json_string(entry, "weight", "", &weight, where, error));
    BASE_TRY(base_json_string(entry, "part", "", &out->name, where, error));
    BASE_TRY(base_json_string(entry, "tensor", "", &out->tensor, where, error));
    BASE_TRY(base_json_int(entry, "first", -1, &out->span.first, where, error));
    BASE_TRY(base_json_int(entry, "count", -1, &out->span.count, where, error));
    BASE_TRY(base_json_int(entry, "file", -1, &file, where, error));
    BASE_TRY(base_json_int(entry, "each", 1, &out->each, where, error));
    const json_t *index = json_object_get(weights, weight);
    if (!index)
        return base_fail(error, SIFR_FAILED, "%s: weight '%.80s' is not in the model", where,
                         weight);
    out->weight = (size_t)json_integer_value(index);
    int p = part_of(optimizer, &model->weights[out->weight], any, out->name);
    if (p < 0 || file < 0 || (size_t)file >= opened->file_count || out->span.first < 0 ||
        out->span.count < 0 || out->each < 1 || out->each > DEVICE_BLOCK ||
        out->span.first % out->each ||
        !read_block(entry, opened->version, &model->weights[out->weight], &out->span.block) ||
        (out->each > 1 && !checkpoint_is_whole(model, out)))
        return base_fail(error, SIFR_FAILED, "%s: invalid range of '%.80s'", where, weight);
    out->part = (engine_part)p;
    out->file = (size_t)file;
    const json_t *types = json_object_get(opened->json, "types");
    return read_range_type(entry, types, out->name, where, &out->dtype, error);
}

/* Leaves the averages of the weights as if they were master weights, and those of weights that have
 * none, which are frozen. */
static sifr_status take_averages(checkpoint_range *ranges, size_t *count, size_t weights,
                                 const char *where, sifr_error *error) {
    bool *has;
    size_t used = 0;
    BASE_TRY(base_alloc(weights + 1, sizeof *has, &has, error));
    for (size_t i = 0; i < *count; i++)
        has[ranges[i].weight] |= strcmp(ranges[i].name, CHECKPOINT_AVERAGE) == 0;
    bool any = memchr(has, true, weights + 1) != NULL;
    for (size_t i = 0; i < *count; i++) {
        bool average = strcmp(ranges[i].name, CHECKPOINT_AVERAGE) == 0;
        if (!average && (ranges[i].part != ENGINE_MASTER || has[ranges[i].weight])) continue;
        ranges[used] = ranges[i];
        ranges[used++].part = ENGINE_MASTER;
    }
    free(has);
    *count = used;
    if (any) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: the run kept no average of its weights (ema)", where);
}

/* The ranges of the parts of `optimizer`, by weight and place; NULL: of master weights alone, or
 * with `average` of the averages of the weights. */
static sifr_status find_ranges(const checkpoint_opened *opened, const sifr_model *model,
                               const optim_row *optimizer, bool any, bool average,
                               const char *directory, checkpoint_range **out, size_t *count,
                               sifr_error *error) {
    char where[BASE_PATH_LENGTH];
    const json_t *list = json_object_get(opened->json, "ranges");
    size_t all = json_array_size(list), used = 0;
    checkpoint_range *ranges = NULL;
    json_t *weights = NULL;
    sifr_status status;
    BASE_TRY_GOTO(status, base_path_join(where, directory, CHECKPOINT_MANIFEST, error), done);
    BASE_TRY_GOTO(status, index_weights(model, &weights, error), done);
    BASE_TRY_GOTO(status, base_alloc(all, sizeof *ranges, &ranges, error), done);
    for (size_t i = 0; i < all; i++) {
        checkpoint_range *range = &ranges[used];
        BASE_TRY_GOTO(status,
                      read_range(opened, json_array_get(list, i), model, weights, optimizer, any,
                                 where, range, error),
                      done);
        used += optimizer || average || range->part == ENGINE_MASTER;
    }
    if (average)
        BASE_TRY_GOTO(status, take_averages(ranges, &used, model->weight_count, where, error),
                      done);
    if (used) qsort(ranges, used, sizeof *ranges, compare_ranges);
    BASE_TRY_GOTO(status, checkpoint_check_cover(ranges, used, model, optimizer, any, where, error),
                  done);
    *out = ranges;
    *count = used;
    ranges = NULL;
done:
    free(ranges);
    json_decref(weights);
    return status == SIFR_OK || status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}

sifr_status checkpoint_ranges(const checkpoint_opened *opened, const sifr_engine *engine,
                              const char *directory, checkpoint_range **out, size_t *count,
                              sifr_error *error) {
    BASE_TRY(find_ranges(opened, engine_model(engine), engine_optimizer(engine), false, false,
                         directory, out, count, error));
    if (*count) qsort(*out, *count, sizeof **out, compare_files);
    return SIFR_OK;
}

sifr_status checkpoint_master_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                     bool average, const char *directory, checkpoint_range **out,
                                     size_t *count, sifr_error *error) {
    return find_ranges(opened, model, NULL, false, average, directory, out, count, error);
}

sifr_status checkpoint_state_ranges(const checkpoint_opened *opened, const sifr_model *model,
                                    const optim_row *optimizer, const char *directory,
                                    checkpoint_range **out, size_t *count, sifr_error *error) {
    return find_ranges(opened, model, optimizer, true, false, directory, out, count, error);
}

/* --- tensors of the model folder --- */

json_t *checkpoint_tensors(const sifr_model *model, const engine_stored *stored) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < stored->count; i++) {
        const engine_stored_tensor *t = &stored->tensors[i];
        json_t *entry =
            json_pack("{s:s, s:s, s:s}", "name", t->name, "dtype", formats_dtype_name(t->dtype),
                      "weight", model->weights[t->weight].name);
        if (entry && json_array_append_new(list, entry) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static sifr_status read_tensor(const json_t *entry, const json_t *weights, const char *where,
                               engine_stored_tensor *out, sifr_error *error) {
    static const base_dtype built[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    const char *dtype, *weight;
    BASE_TRY(base_json_string(entry, "name", "", &out->name, where, error));
    BASE_TRY(base_json_string(entry, "dtype", "", &dtype, where, error));
    BASE_TRY(base_json_string(entry, "weight", "", &weight, where, error));
    const json_t *index = json_object_get(weights, weight);
    size_t i = 0, count = sizeof built / sizeof *built;
    while (i < count && strcmp(dtype, formats_dtype_name(built[i])) != 0) i++;
    if (!index || i == count || !*out->name)
        return base_fail(error, SIFR_FAILED, "%s: invalid tensor '%.80s' of '%.80s'", where,
                         out->name, weight);
    out->dtype = built[i];
    out->weight = (size_t)json_integer_value(index);
    return SIFR_OK;
}

/* Each weight of the model in order, then at most one of them again; of adapters, as many as are
 * trained. */
static sifr_status check_tensors(const engine_stored *stored, const sifr_model *model,
                                 const char *where, sifr_error *error) {
    size_t trained = 0;
    for (size_t i = 0; i < model->weight_count; i++) trained += !model->weights[i].frozen;
    bool adapter = model_is_adapter(model);
    bool its = adapter && stored->count == trained;
    for (size_t i = 0; its && i < trained; i++)
        its = !model->weights[stored->tensors[i].weight].frozen &&
              (i == 0 || strcmp(stored->tensors[i - 1].name, stored->tensors[i].name) < 0);
    if (its) return SIFR_OK;
    bool all = !adapter &&
               (stored->count == model->weight_count || stored->count == model->weight_count + 1);
    for (size_t i = 0; all && i < model->weight_count; i++) all = stored->tensors[i].weight == i;
    if (all) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: \"tensors\" are not those of the model", where);
}

sifr_status checkpoint_read_tensors(const checkpoint_opened *opened, const sifr_model *model,
                                    const char *directory, engine_stored *out, sifr_error *error) {
    char where[BASE_PATH_LENGTH];
    const json_t *list = json_object_get(opened->json, "tensors");
    json_t *weights = NULL;
    sifr_status status;
    *out = (engine_stored){0};
    if (!list) return SIFR_OK;
    BASE_TRY_GOTO(status, base_path_join(where, directory, CHECKPOINT_MANIFEST, error), done);
    BASE_TRY_GOTO(status, index_weights(model, &weights, error), done);
    BASE_TRY_GOTO(status,
                  base_alloc(json_array_size(list), sizeof *out->tensors, &out->tensors, error),
                  done);
    for (; out->count < json_array_size(list); out->count++)
        BASE_TRY_GOTO(status,
                      read_tensor(json_array_get(list, out->count), weights, where,
                                  &out->tensors[out->count], error),
                      done);
    status = check_tensors(out, model, where, error);
    if (model_is_adapter(model)) out->file = ENGINE_ADAPTER_FILE;
done:
    json_decref(weights);
    if (status != SIFR_OK) engine_stored_free(out);
    return status == SIFR_OK || status == SIFR_NO_MEMORY ? status : SIFR_FAILED;
}
