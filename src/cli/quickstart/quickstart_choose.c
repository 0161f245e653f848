#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/quickstart/quickstart.h"

/* Data up to this size are read once to be counted, which takes a second or two. */
enum { MOST_COUNTED = 64 << 20 };

/* What a sequence is cut at where nobody says, and the sequences of a step. */
enum { LONG_SEQUENCE = 2048, STREAM_SEQUENCE = 1024, LABEL_SEQUENCE = 256, STEP_SEQUENCES = 8 };

/* What usual trainers begin with: all weights, adapters alone. */
typedef struct kind_defaults {
    const char *name, *epochs, *rate, *adapter_rate;
    int64_t length;
} kind_defaults;

static const kind_defaults kinds[] = {
    [SIFR_DATA_STREAM] = {"text", "1", "5e-5", "2e-4", STREAM_SEQUENCE},
    [SIFR_DATA_ROWS] = {"rows", "3", "2e-5", "2e-4", LONG_SEQUENCE},
    [SIFR_DATA_PAIRS] = {"preferences", "1", "1e-6", "1e-5", LONG_SEQUENCE},
    [SIFR_DATA_LABELS] = {"labels", "3", "2e-5", "2e-4", LABEL_SEQUENCE},
    [SIFR_DATA_TAGS] = {"tags", "3", "2e-5", "2e-4", LABEL_SEQUENCE},
};

const char *quickstart_kind_name(sifr_data_kind kind) {
    return kinds[kind].name;
}

sifr_status quickstart_put(quickstart_choice *choice, const char *path, const char *value,
                           sifr_error *error, const char *why, ...) {
    va_list arguments;
    BASE_TRY(sifr_config_set(choice->config, path, value, error));
    if (!why || choice->note_count == QUICKSTART_NOTES) return SIFR_OK;
    quickstart_note *note = &choice->notes[choice->note_count++];
    note->path = path;
    va_start(arguments, why);
    vsnprintf(note->text, sizeof note->text, why, arguments);
    va_end(arguments);
    return SIFR_OK;
}

sifr_status quickstart_pass(const quickstart_answers *answers, sifr_config *config,
                            sifr_error *error) {
    static const char *const paths[QUICKSTART_PASSED] = {"sifr.chat_template", "sifr.text_column",
                                                         "sifr.label_column"};
    for (int i = 0; i < QUICKSTART_PASSED; i++)
        if (answers->passed[i])
            BASE_TRY(sifr_config_set(config, paths[i], answers->passed[i], error));
    for (size_t i = 0; i < answers->fields.count; i++)
        BASE_TRY(sifr_config_set(config, "data-fields", answers->fields.items[i], error));
    for (size_t i = 0; i < answers->ignored.count; i++)
        BASE_TRY(sifr_config_set(config, "ignore-fields", answers->ignored.items[i], error));
    return SIFR_OK;
}

static sifr_status put_number(quickstart_choice *choice, const char *path, int64_t value,
                              const char *why, sifr_error *error) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return quickstart_put(choice, path, text, error, "%s", why);
}

/* --- what is learned --- */

static sifr_status choose_kind(const quickstart_answers *answers, quickstart_choice *choice,
                               sifr_error *error) {
    const char *learn = answers->learn;
    choice->kind = choice->guess.kind;
    if (!learn || strcmp(learn, "auto") == 0) return SIFR_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(learn, kinds[i].name) != 0) continue;
        choice->kind = (sifr_data_kind)i;
        return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE,
                     "--learn %.40s: give auto, text, rows, preferences, labels or tags", learn);
}

static sifr_status put_kind(quickstart_choice *choice, sifr_error *error) {
    switch (choice->kind) {
    case SIFR_DATA_PAIRS:
        return quickstart_put(choice, "sifr.preference.loss_type", "sigmoid", error,
                              "DPO; the others are hinge, ipo and orpo (docs/preferences.md)");
    case SIFR_DATA_LABELS:
        return quickstart_put(choice, "sifr.task", "sequence_classification", error,
                              "a label of each row (docs/classification.md)");
    case SIFR_DATA_TAGS:
        return quickstart_put(choice, "sifr.task", "token_classification", error,
                              "a tag of each word (docs/classification.md)");
    case SIFR_DATA_STREAM:
    case SIFR_DATA_ROWS:
        break;
    }
    return SIFR_OK;
}

/* --- sequences --- */

/* So few tokens that one sequence of this length would be most of them. */
static int64_t stream_length(const sifr_data_guess *guess, int64_t length) {
    enum { BYTES_OF_TOKEN = 4, LEAST = 16 };
    while (length > LEAST && guess->bytes / BYTES_OF_TOKEN < length * STEP_SEQUENCES) length /= 2;
    return length;
}

static sifr_status put_length(const quickstart_answers *answers, quickstart_choice *choice,
                              sifr_error *error) {
    int64_t most = choice->guess.model_length, length = kinds[choice->kind].length;
    if (most > 0) length = base_min_i64(length, most);
    if (choice->kind == SIFR_DATA_STREAM) length = stream_length(&choice->guess, length);
    choice->length = answers->length ? answers->length : length;
    return put_number(choice, "sifr.seq_length", choice->length,
                      answers->length ? "tokens of a sequence, as asked for"
                                      : "tokens of a sequence; longer ones take more memory",
                      error);
}

/* Rows are padded to this length, so it is no longer than the longest one needs. */
static sifr_status shorten(const quickstart_answers *answers, quickstart_choice *choice,
                           sifr_error *error) {
    enum { STEP = 64 };
    int64_t need = (choice->longest + STEP - 1) / STEP * STEP;
    if (answers->length || !choice->longest || need >= choice->length) return SIFR_OK;
    choice->length = need;
    choice->note_count--; /* the note of before */
    char length[32];
    snprintf(length, sizeof length, "%lld", (long long)need);
    return quickstart_put(choice, "sifr.seq_length", length, error,
                          "tokens of a sequence; the longest row has %lld",
                          (long long)choice->longest);
}

static sifr_status count_rows(sifr_context *context, quickstart_choice *choice, sifr_error *error) {
    sifr_chat_rows *rows;
    sifr_chat_rows_figures figures = {.size = sizeof figures};
    BASE_TRY(sifr_chat_rows_open(context, choice->config, &rows, error));
    sifr_chat_rows_get(rows, &figures);
    choice->sequences = figures.paired ? figures.rows / 2 : figures.rows;
    choice->longest = figures.longest;
    bool pairs = figures.paired;
    sifr_chat_rows_close(rows);
    if (pairs == (choice->kind == SIFR_DATA_PAIRS)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     pairs ? "--learn rows: the rows have a chosen and a rejected answer; give "
                             "--learn preferences, or write the chosen answers as messages"
                           : "--learn preferences: the rows have no rejected answer; give "
                             "--learn rows");
}

static sifr_status count_sequences(sifr_context *context, quickstart_choice *choice,
                                   sifr_error *error) {
    sifr_data *data;
    sifr_data_figures figures = {.size = sizeof figures};
    BASE_TRY(sifr_data_open(context, choice->config, NULL, &data, error));
    sifr_data_get(data, &figures);
    choice->sequences = figures.windows;
    choice->longest = figures.longest;
    sifr_data_close(data);
    return SIFR_OK;
}

static sifr_status count_data(sifr_context *context, const quickstart_answers *answers,
                              quickstart_choice *choice, sifr_error *error) {
    bool rows = choice->kind == SIFR_DATA_ROWS || choice->kind == SIFR_DATA_PAIRS;
    choice->counted = choice->guess.stores || choice->guess.bytes <= MOST_COUNTED;
    if (!choice->counted) return SIFR_OK;
    if (!rows) {
        sifr_error reason = {0};
        sifr_status status = count_sequences(context, choice, &reason);
        if (status == SIFR_OK) return shorten(answers, choice, error);
        bool of_ranks = status == SIFR_FAILED && choice->batch > STEP_SEQUENCES;
        return base_fail(
            error, status, "%s%s", reason.message,
            of_ranks ? "; a step has a sequence of each rank, so fewer --ranks help too" : "");
    }
    BASE_TRY(count_rows(context, choice, error));
    return shorten(answers, choice, error);
}

/* --- how it is trained --- */

static sifr_status put_batch(const quickstart_answers *answers, quickstart_choice *choice,
                             sifr_error *error) {
    int64_t ranks = answers->ranks;
    choice->batch = (STEP_SEQUENCES + ranks - 1) / ranks * ranks;
    return put_number(choice, "train_batch_size", choice->batch,
                      "sequences of a step, of all ranks together", error);
}

static sifr_status put_rate(const quickstart_answers *answers, quickstart_choice *choice,
                            bool adapters, sifr_error *error) {
    const kind_defaults *usual = &kinds[choice->kind];
    const char *rate = adapters ? usual->adapter_rate : usual->rate;
    const char *epochs = answers->epochs ? answers->epochs : usual->epochs;
    choice->epochs = strtod(epochs, NULL);
    BASE_TRY(quickstart_put(choice, "sifr.num_train_epochs", epochs, error,
                            "times that the data are gone through; --max-steps N ends earlier"));
    BASE_TRY(quickstart_put(choice, "optimizer.type", "AdamW", error,
                            "the usual one; docs/optimizers.md has those that take less memory"));
    BASE_TRY(quickstart_put(choice, "optimizer.params.lr", answers->rate ? answers->rate : rate,
                            error, "the rate at its highest: too high, and the loss rises"));
    BASE_TRY(quickstart_put(choice, "lr-scheduler-type", "cosine", error, NULL));
    BASE_TRY(quickstart_put(choice, "warmup-ratio", "0.03", error, NULL));
    return quickstart_put(choice, "gradient_clipping", "1.0", error,
                          "a larger gradient is scaled down to this norm");
}

static sifr_status check_train(const char *train, bool *adapters, sifr_error *error) {
    *adapters = train && strcmp(train, "lora") == 0;
    if (train && !*adapters && strcmp(train, "all") != 0)
        return base_fail(error, SIFR_USAGE, "--train %.40s: give all or lora", train);
    return SIFR_OK;
}

static sifr_status put_weights(const quickstart_answers *answers, quickstart_choice *choice,
                               bool *adapters, sifr_error *error) {
    BASE_TRY(check_train(answers->train, adapters, error));
    if (!*adapters) return SIFR_OK;
    return quickstart_put(choice, "sifr.lora",
                          "{\"r\": 16, \"lora_alpha\": 32, \"target_modules\": \"all-linear\"}",
                          error, "adapters beside weights that stay as they are (docs/lora.md)");
}

/* Weights that are stored in 16 bits are trained in bf16. */
static sifr_status put_precision(const quickstart_answers *answers, quickstart_choice *choice,
                                 sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    const char *type;
    json_t *config;
    BASE_TRY(base_path_join(path, answers->model, "config.json", error));
    if (!base_is_file(path)) return SIFR_OK; /* an adapter folder */
    BASE_TRY(base_json_load(path, 1 << 24, &config, error));
    sifr_status status = base_json_string(config, "dtype", NULL, &type, path, error);
    if (status == SIFR_OK && !type)
        status = base_json_string(config, "torch_dtype", NULL, &type, path, error);
    bool half = type && (strcmp(type, "bfloat16") == 0 || strcmp(type, "float16") == 0);
    json_decref(config);
    BASE_TRY(status);
    return quickstart_put(choice, "bf16.enabled", half ? "true" : "false", error,
                          half ? "as the model's weights are stored: half the memory of fp32"
                               : "the model's weights are stored in fp32; true takes less memory");
}

static sifr_status put_run(const quickstart_answers *answers, quickstart_choice *choice,
                           sifr_error *error) {
    BASE_TRY(quickstart_put(choice, "sifr.output", answers->run, error,
                            "the trained model, metrics and checkpoints go here"));
    BASE_TRY(quickstart_put(choice, "sifr.save_steps", "500", error,
                            "a checkpoint every so many steps; --resume goes on from the newest"));
    BASE_TRY(quickstart_put(choice, "sifr.save_total_limit", "2", error,
                            "so many of the newest checkpoints stay"));
    if (!answers->device) return SIFR_OK;
    return quickstart_put(choice, "sifr.device", answers->device, error, "as asked for");
}

/* What a config may have, but teaches nothing, or never ends. */
static sifr_status check_numbers(const quickstart_answers *answers, sifr_error *error) {
    enum { MOST_EPOCHS = 100000 };
    double rate = answers->rate ? strtod(answers->rate, NULL) : 1;
    double epochs = answers->epochs ? strtod(answers->epochs, NULL) : 1;
    if (!(rate > 0) && strcmp(answers->rate, "auto") != 0)
        return base_fail(error, SIFR_USAGE,
                         "--learning-rate %s: nothing would be learned; give more than 0",
                         answers->rate);
    if (epochs <= MOST_EPOCHS) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--num-train-epochs %s: give at most %d", answers->epochs,
                     (int)MOST_EPOCHS);
}

sifr_status quickstart_check_words(const quickstart_answers *answers, sifr_error *error) {
    const char *const keys[][2] = {{"sifr.num_train_epochs", answers->epochs},
                                   {"optimizer.params.lr", answers->rate},
                                   {"sifr.device", answers->device}};
    quickstart_choice tried = {0};
    bool adapters;
    BASE_TRY(choose_kind(answers, &tried, error));
    BASE_TRY(check_train(answers->train, &adapters, error));
    BASE_TRY(sifr_config_create(&tried.config, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < sizeof keys / sizeof *keys; i++)
        if (keys[i][1]) status = sifr_config_set(tried.config, keys[i][0], keys[i][1], error);
    if (status == SIFR_OK) status = check_numbers(answers, error);
    sifr_config_free(tried.config);
    char *own = error && status != SIFR_OK ? strstr(error->message, "; its default is ") : NULL;
    if (own) *own = '\0'; /* of the config, and not of quickstart */
    return status;
}

sifr_status quickstart_choose(sifr_context *context, const quickstart_answers *answers,
                              quickstart_choice *choice, sifr_error *error) {
    bool adapters;
    BASE_TRY(choose_kind(answers, choice, error));
    BASE_TRY(put_kind(choice, error));
    BASE_TRY(put_weights(answers, choice, &adapters, error));
    BASE_TRY(put_batch(answers, choice, error));
    BASE_TRY(put_rate(answers, choice, adapters, error));
    BASE_TRY(put_precision(answers, choice, error));
    BASE_TRY(put_run(answers, choice, error));
    BASE_TRY(put_length(answers, choice, error)); /* last, as `shorten` takes it back */
    return count_data(context, answers, choice, error);
}
