#include <stdio.h>
#include <sys/stat.h>

#include "api/api_context.h"
#include "base/file.h"
#include "base/inside.h"
#include "data/labelled/label_columns.h"
#include "data/records/row_forms.h"
#include "data/stream/text_source.h"
#include "data/stream/token_store.h"
#include "sifr/data.h"
#include "train/prepare/run_task.h"

static sifr_status resolve(sifr_config *config, sifr_error *error) {
    BASE_TRY(config_resolve(config, 1, error));
    BASE_TRY(train_take_base(config, 1, error));
    if (!config->model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: a model folder");
    return SIFR_OK;
}

static sifr_status look_at_model(const sifr_config *config, sifr_data_guess *out,
                                 sifr_error *error) {
    model_config model;
    model_lora lora;
    BASE_TRY(train_read_lora(config, &lora, error));
    BASE_TRY(train_read_model_config(config, &lora, &model, error));
    out->model_length = model.max_position_embeddings;
    out->decoder = model.own_task == MODEL_NEXT_TOKEN;
    out->classifier =
        model.own_task == MODEL_SEQUENCE_CLASSES || model.own_task == MODEL_TOKEN_CLASSES;
    return SIFR_OK;
}

/* Of a token store both files count; what is not there has none. */
static int64_t store_bytes(const char *prefix) {
    static const char *const ends[] = {"", ".bin", ".idx"};
    char path[BASE_PATH_LENGTH + 8];
    int64_t bytes = 0;
    struct stat file;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", prefix, ends[i]);
        if (stat(path, &file) == 0 && S_ISREG(file.st_mode)) bytes += (int64_t)file.st_size;
    }
    return bytes;
}

static sifr_status look_at_stream(const sifr_config *config, sifr_data_guess *out,
                                  sifr_error *error) {
    char prefix[BASE_PATH_LENGTH];
    out->kind = SIFR_DATA_STREAM;
    out->stores = true;
    for (size_t i = 0; i < config->data_count; i++) {
        data_text_source text;
        if (data_token_store_prefix(config->data[i], prefix)) {
            out->bytes += store_bytes(prefix);
            continue;
        }
        BASE_TRY(data_text_source_open(&config->data[i], 1, &text, error));
        out->bytes += (int64_t)text.bytes;
        out->stores = false;
        data_text_source_close(&text);
    }
    return SIFR_OK;
}

static bool has_labels(const data_records *records, model_task task,
                       const data_label_columns *asked) {
    data_label_columns found;
    return data_label_columns_find(records, task, true, asked, &found, NULL) == SIFR_OK;
}

/* A row that is a text alone may be a label's text; any other form says more than its label does.
 */
static void name_rows(const data_records *records, const json_t *row, const sifr_config *config,
                      sifr_data_guess *out) {
    data_label_columns asked = train_config_columns(config);
    const data_form *form = data_form_match(row, DATA_ROW_TYPES);
    bool text = !form || form->type == DATA_ROW_TEXT || !out->decoder;
    out->kind = SIFR_DATA_ROWS;
    bool words = !asked.text || json_is_array(json_object_get(row, asked.text));
    if (text && words && has_labels(records, MODEL_TOKEN_CLASSES, &asked))
        out->kind = SIFR_DATA_TAGS;
    else if (text && has_labels(records, MODEL_SEQUENCE_CLASSES, &asked))
        out->kind = SIFR_DATA_LABELS;
    else if (form && form->type == DATA_ROW_PREFERENCE)
        out->kind = SIFR_DATA_PAIRS;
    if (form && (out->kind == SIFR_DATA_ROWS || out->kind == SIFR_DATA_PAIRS))
        out->form = form->name;
}

static sifr_status look_at_rows(const sifr_config *config, sifr_data_guess *out,
                                sifr_error *error) {
    data_text_source files = {0};
    data_records *records = NULL;
    json_t *row = NULL;
    sifr_status status;
    BASE_TRY_GOTO(
        status, data_text_source_open_rows(config->data, config->data_count, &files, error), done);
    out->bytes = (int64_t)files.bytes;
    BASE_TRY_GOTO(status, data_records_open(files.documents[0].path, &records, error), done);
    BASE_TRY_GOTO(status, data_records_next(records, &row, error), done);
    name_rows(records, row, config, out);
done:
    json_decref(row);
    data_records_close(records);
    data_text_source_close(&files);
    return status;
}

static sifr_status look(sifr_config *config, sifr_data_guess *out, sifr_error *error) {
    bool rows;
    BASE_TRY(resolve(config, error));
    BASE_TRY(look_at_model(config, out, error));
    if (!config->data_count) return SIFR_OK;
    BASE_TRY(train_paths_are_rows(config->data, config->data_count, &rows, error));
    return rows ? look_at_rows(config, out, error) : look_at_stream(config, out, error);
}

sifr_status sifr_data_look(sifr_context *context, const sifr_config *config, sifr_data_guess *out,
                           sifr_error *error) {
    BASE_ENTER(error, context, config, out);
    sifr_config copy;
    sifr_data_guess guess = {0};
    BASE_TRY(api_check_result("sifr_data_guess", out, error));
    BASE_TRY(config_copy(config, &copy, error));
    sifr_status status = look(&copy, &guess, error);
    config_free(&copy);
    if (status == SIFR_OK) api_give_result(&guess, sizeof guess, out);
    return status;
}
