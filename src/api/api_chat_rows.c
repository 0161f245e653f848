#include <stdlib.h>

#include "api/api_context.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/inside.h"
#include "config/config.h"
#include "sifr/data.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

struct sifr_chat_rows {
    sifr_config config;
    data_chat *chat;
    int64_t length;
};

static sifr_status resolve(sifr_config *config, sifr_error *error) {
    BASE_TRY(config_resolve(config, 1, error));
    BASE_TRY(train_take_base(config, 1, error));
    if (!config->model) return base_fail(error, SIFR_USAGE, "--model DIR is needed: the folder");
    if (config->data_count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--data PATH is needed: files of rows");
}

static sifr_status read_rows(sifr_chat_rows *rows, const model_config *model, int64_t separator,
                             const sifr_log *log, sifr_error *error) {
    const sifr_config *config = &rows->config;
    data_chat_source *sources;
    char template[BASE_PATH_LENGTH];
    BASE_TRY(train_chat_sources_make(config, config->data, config->data_count, &sources, error));
    data_chat_options options = {.sources = sources,
                                 .count = config->data_count,
                                 .tokenizer = config->model,
                                 .vocab_size = model->vocab_size,
                                 .length = rows->length,
                                 .separator = separator,
                                 .eot_tokens = config->eot_tokens,
                                 .template = train_chat_template(config, template),
                                 .asked = train_chat_template_key(config),
                                 .variables = config->chat_template_kwargs,
                                 .date = config->chat_template_date,
                                 .special = !config->no_special_tokens,
                                 .whole = true,
                                 .skip_bad_rows = config->skip_bad_rows,
                                 .max_rows = config->max_samples,
                                 .drop_long = config->drop_long,
                                 .log = log};
    sifr_status status = train_chat_choices(config, &options, error);
    if (status == SIFR_OK) status = data_chat_open(&options, &rows->chat, error);
    free(sources);
    return status;
}

static sifr_status open_rows(sifr_context *context, const sifr_config *config, sifr_chat_rows *rows,
                             sifr_error *error) {
    const sifr_log *log = &context->log;
    model_config model;
    int64_t separator;
    BASE_TRY(config_copy(config, &rows->config, error));
    BASE_TRY(resolve(&rows->config, error));
    BASE_TRY(model_config_load(rows->config.model, &model, error));
    BASE_TRY(train_sequence_length(&rows->config, &model, log, &rows->length, error));
    BASE_TRY(train_separator(rows->config.model, &model, log, &separator, error));
    BASE_TRY(read_rows(rows, &model, separator, log, error));
    if (rows->config.joint) BASE_TRY(data_chat_join(rows->chat, error));
    if (data_chat_is_paired(rows->chat)) return SIFR_OK;
    return data_chat_pack(rows->chat, error); /* sequences are counted alone */
}

sifr_status sifr_chat_rows_open(sifr_context *context, const sifr_config *config,
                                sifr_chat_rows **out, sifr_error *error) {
    BASE_ENTER(error, context, config, out);
    sifr_chat_rows *rows;
    BASE_TRY(base_alloc(1, sizeof *rows, &rows, error));
    sifr_status status = open_rows(context, config, rows, error);
    if (status == SIFR_OK)
        *out = rows;
    else
        sifr_chat_rows_close(rows);
    return status;
}

void sifr_chat_rows_close(sifr_chat_rows *rows) {
    BASE_ENTER_VOID(rows);
    data_chat_close(rows->chat);
    config_free(&rows->config);
    free(rows);
}

static int64_t count_learned(const bool *learned, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 1; i < count; i++) sum += learned[i];
    return sum;
}

/* What the length would do to rows that were read whole. */
static void find_cut(const sifr_chat_rows *rows, sifr_chat_rows_figures *out) {
    for (int64_t i = 0; i < data_chat_count(rows->chat)->rows; i++) {
        const int32_t *ids;
        const bool *learned;
        int64_t whole, count = data_chat_row_at(rows->chat, i, &ids, &learned, &whole);
        if (count <= rows->length) continue;
        out->lost_rows += count_learned(learned, rows->length) == 0;
        out->cut_rows++;
        out->cut_tokens += count - rows->length;
    }
}

void sifr_chat_rows_get(const sifr_chat_rows *rows, sifr_chat_rows_figures *out) {
    BASE_ENTER_VOID(rows, out);
    const data_chat_counts *c = data_chat_count(rows->chat);
    sifr_chat_rows_figures known = {.model = rows->config.model,
                                    .paired = data_chat_is_paired(rows->chat),
                                    .rows = c->rows,
                                    .tokens = c->tokens,
                                    .learned = c->learned,
                                    .longest = c->longest,
                                    .without_learned = c->dropped,
                                    .bad = c->bad,
                                    .seq_length = rows->length,
                                    .packed_sequences = data_chat_sequences(rows->chat)};
    find_cut(rows, &known);
    api_give_result(&known, sizeof known, out);
}

bool sifr_chat_rows_at(const sifr_chat_rows *rows, int64_t index, sifr_chat_row *out) {
    BASE_ENTER_OR(false, rows, out);
    sifr_chat_row known = {0};
    int64_t whole;
    if (index < 0 || index >= data_chat_count(rows->chat)->rows) return false;
    known.count = data_chat_row_at(rows->chat, index, &known.ids, &known.learned, &whole);
    known.number = data_chat_place(rows->chat, index, &known.file);
    return api_give_result(&known, sizeof known, out);
}
