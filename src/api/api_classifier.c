#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_callback.h"
#include "api/api_context.h"
#include "api/api_read_model.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/inside.h"
#include "data/labelled/examples.h"
#include "data/stream/text_source.h"
#include "infer/evaluator.h"
#include "sifr/classify.h"

/* Sequences at a time; tokens where no length is given. */
enum { SEQUENCES = 16, LENGTH = 512 };

struct sifr_classifier {
    const sifr_log *log;
    char *texts[7]; /* copies of the options' */
    checkpoint_model model;
    infer_options options;
    data_labelled labelled;
    const char *name;
    infer_inference *inference;
    int64_t classes;
    /* The next run. */
    json_t *rows; /* NULL: none was added */
    data_text_source files;
    bool from_files;
    /* The run that goes on. */
    sifr_take_classified *take;
    void *user;
    float *logits;  /* of a batch */
    double *scores; /* of a row */
    int64_t *best;
    const char **words;
    size_t word_capacity;
};

/* ---- opening ---- */

static sifr_status keep(sifr_classifier *c, int index, const char **text, sifr_error *error) {
    if (!*text) return SIFR_OK;
    BASE_TRY(base_copy_text(*text, strlen(*text), &c->texts[index], error));
    *text = c->texts[index];
    return SIFR_OK;
}

/* They are needed as long as the classifier is. */
static sifr_status keep_texts(sifr_classifier *c, sifr_classifier_options *o, sifr_error *error) {
    const char **const texts[] = {&o->model,       &o->adapter,     &o->precision, &o->device,
                                  &o->text_column, &o->pair_column, &o->name};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        BASE_TRY(keep(c, i, texts[i], error));
    return SIFR_OK;
}

static sifr_status open_model(sifr_classifier *c, const sifr_classifier_options *o,
                              sifr_error *error) {
    api_read_model read = {o->model, o->adapter, o->precision, o->device, o->threads};
    infer_source source;
    BASE_TRY(api_read_model_source(&read, SIFR_DEVICE_AUTO, &source, error));
    BASE_TRY(infer_open_model(&source, &c->model, &c->options, c->log, error));
    if (model_task_labelled(c->model.folder.config.task)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: no classifier; train one: sifr train --task sequence_classification",
                     o->model);
}

static sifr_status open_classifier(sifr_classifier *c, sifr_classifier_options *o,
                                   sifr_error *error) {
    const engine_folder *folder = &c->model.folder;
    c->options = (infer_options){.mode = PLAN_EVALUATE, .logits = true};
    if (o->seq_length < 0)
        return base_fail(error, SIFR_USAGE, "--seq-length %lld: must be 0 or more",
                         (long long)o->seq_length);
    BASE_TRY(keep_texts(c, o, error));
    BASE_TRY(open_model(c, o, error));
    c->name = o->name ? o->name : "the rows added";
    c->classes = (int64_t)folder->labels.count;
    int64_t positions = model_positions(&folder->config);
    c->labelled =
        (data_labelled){.task = folder->config.task,
                        .problem = folder->config.problem,
                        .labels = &folder->labels,
                        .columns = {.text = o->text_column, .pair = o->pair_column},
                        .length = o->seq_length ? o->seq_length : base_min_i64(positions, LENGTH),
                        .padding = base_max_i64(folder->config.pad_token_id, 0),
                        .last = !folder->architecture->encoder,
                        .passed_over = folder->config.pad_token_id,
                        .unknown = true};
    return SIFR_OK;
}

sifr_status sifr_classifier_open(sifr_context *context, const sifr_classifier_options *options,
                                 sifr_classifier **out, sifr_error *error) {
    BASE_ENTER(error, context, out);
    sifr_classifier_options known;
    sifr_classifier *c;
    BASE_TRY(api_take_options("sifr_classifier_options", options, sizeof known, &known, error));
    BASE_TRY(base_alloc(1, sizeof *c, &c, error));
    c->log = &context->log;
    sifr_status status = open_classifier(c, &known, error);
    if (status == SIFR_OK) *out = c;
    if (status != SIFR_OK) sifr_classifier_free(c);
    return status;
}

static void clear_rows(sifr_classifier *c) {
    json_decref(c->rows);
    c->rows = NULL;
    data_text_source_close(&c->files);
    c->files = (data_text_source){0};
    c->from_files = false;
}

void sifr_classifier_free(sifr_classifier *classifier) {
    BASE_ENTER_VOID(classifier);
    clear_rows(classifier);
    infer_free(classifier->inference);
    checkpoint_model_close(&classifier->model);
    free(classifier->words);
    for (size_t i = 0; i < sizeof classifier->texts / sizeof *classifier->texts; i++)
        free(classifier->texts[i]);
    free(classifier);
}

/* ---- what it is ---- */

bool sifr_classifier_tags(const sifr_classifier *classifier) {
    BASE_ENTER_OR(false, classifier);
    return classifier->labelled.task == MODEL_TOKEN_CLASSES;
}

sifr_class_scores sifr_classifier_scores(const sifr_classifier *classifier) {
    BASE_ENTER_OR(SIFR_ONE_CLASS, classifier);
    model_problem problem = classifier->labelled.problem;
    if (sifr_classifier_tags(classifier) || problem == MODEL_SINGLE_LABEL) return SIFR_ONE_CLASS;
    return problem == MODEL_MULTI_LABEL ? SIFR_MANY_CLASSES : SIFR_NUMBERS;
}

int64_t sifr_classifier_count(const sifr_classifier *classifier) {
    BASE_ENTER_OR(0, classifier);
    return classifier->classes;
}

const char *sifr_classifier_label(const sifr_classifier *classifier, int64_t index) {
    BASE_ENTER_OR(NULL, classifier);
    bool is = index >= 0 && index < classifier->classes;
    return is ? classifier->labelled.labels->names[index] : NULL;
}

/* ---- rows ---- */

static sifr_status check_kind(const sifr_classifier *c, bool words, sifr_error *error) {
    if (sifr_classifier_tags(c) == words) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     words ? "the model classifies texts; give them, and not their words"
                           : "the model tags words; give the words of a text, and not the text");
}

/* Takes the row. */
static sifr_status add_row(sifr_classifier *c, json_t *row, sifr_error *error) {
    if (!row) return base_fail(error, SIFR_FAILED, "a text that was added is not valid UTF-8");
    if (!c->rows) c->rows = json_array();
    return json_array_append_new(c->rows, row) == 0 ? SIFR_OK : base_fail_alloc(error, 64);
}

sifr_status sifr_classifier_add(sifr_classifier *classifier, const char *text, size_t size,
                                const char *pair, size_t pair_size, sifr_error *error) {
    BASE_ENTER(error, classifier);
    BASE_TRY(check_kind(classifier, false, error));
    json_t *row = pair ? json_pack("{s:o, s:o}", "text", json_stringn(text, size), "text_pair",
                                   json_stringn(pair, pair_size))
                       : json_pack("{s:o}", "text", json_stringn(text, size));
    return add_row(classifier, row, error);
}

sifr_status sifr_classifier_add_words(sifr_classifier *classifier, const char *const *words,
                                      size_t count, sifr_error *error) {
    BASE_ENTER(error, classifier);
    json_t *all = json_array();
    sifr_status status = check_kind(classifier, true, error);
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (json_array_append_new(all, json_string(words[i])) == 0) continue;
        json_decref(all);
        all = NULL;
        break;
    }
    if (status == SIFR_OK) return add_row(classifier, json_pack("{s:o}", "tokens", all), error);
    json_decref(all);
    return status;
}

sifr_status sifr_classifier_read(sifr_classifier *classifier, const char *const *paths,
                                 size_t count, sifr_error *error) {
    BASE_ENTER(error, classifier);
    BASE_TRY(api_check_list("sifr_classifier_read: paths", paths, count, error));
    if (sifr_classifier_tags(classifier))
        return base_fail(error, SIFR_USAGE,
                         "--data: a tagger reads sentences from standard input, one a line; sifr "
                         "eval scores files with tags");
    data_text_source_close(&classifier->files);
    classifier->files = (data_text_source){0};
    sifr_status status = data_text_source_open_rows(paths, count, &classifier->files, error);
    classifier->from_files = status == SIFR_OK;
    return status;
}

/* ---- a run ---- */

/* Probabilities of logits, or the numbers of a regression as they are. */
static void make_scores(const sifr_classifier *c, const float *logits, double *scores) {
    double sum = 0, most = -INFINITY;
    sifr_class_scores kind = sifr_classifier_scores(c);
    for (int64_t k = 0; k < c->classes; k++) most = fmax(most, (double)logits[k]);
    for (int64_t k = 0; k < c->classes; k++) {
        double x = (double)logits[k];
        if (kind == SIFR_ONE_CLASS)
            sum += scores[k] = exp(x - most);
        else
            scores[k] = kind == SIFR_MANY_CLASSES ? 1 / (1 + exp(-x)) : x;
    }
    for (int64_t k = 0; kind == SIFR_ONE_CLASS && k < c->classes; k++) scores[k] /= sum;
}

static int64_t find_best(const sifr_classifier *c, const double *scores) {
    int64_t best = 0;
    for (int64_t k = 1; k < c->classes; k++)
        if (scores[k] > scores[best]) best = k;
    return best;
}

static sifr_status find_words(sifr_classifier *c, sifr_classified *told, sifr_error *error) {
    const json_t *row = json_array_get(c->rows, (size_t)told->row);
    const json_t *words = json_object_get(row, "tokens");
    size_t count = json_array_size(words);
    if (!sifr_classifier_tags(c)) return SIFR_OK;
    BASE_TRY(base_grow(&c->words, &c->word_capacity, count, sizeof *c->words, error));
    for (size_t i = 0; i < count; i++) c->words[i] = json_string_value(json_array_get(words, i));
    told->words = c->words;
    told->word_count = (int64_t)count;
    return SIFR_OK;
}

/* What stands at the tokens that answer. */
static sifr_status tell_row(sifr_classifier *c, const infer_batch *batch, int64_t at,
                            sifr_error *error) {
    const data_rows *rows = batch->rows;
    sifr_classified told = {
        .size = sizeof told, .row = batch->first + at, .scores = c->scores, .best = c->best};
    for (int64_t t = at * rows->length; t < (at + 1) * rows->length; t++) {
        if (rows->labels[t] < 0) continue;
        double *scores = c->scores + told.count * c->classes;
        make_scores(c, c->logits + t * c->classes, scores);
        c->best[told.count++] = find_best(c, scores);
    }
    BASE_TRY(find_words(c, &told, error));
    return api_called(BASE_OUT(c->take(c->user, &told, error)), error);
}

static sifr_status take_batch(void *user, const infer_batch *batch, sifr_error *error) {
    for (int64_t i = 0; i < batch->count; i++) BASE_TRY(tell_row(user, batch, i, error));
    return SIFR_OK;
}

static void read_example(const void *examples, int64_t index, const data_rows *rows, int64_t at) {
    data_examples_read(examples, index, rows, at);
}

static sifr_status run_pass(sifr_classifier *c, const data_examples *examples,
                            const data_rows *rows, sifr_error *error) {
    infer_evaluator pass = infer_evaluator_alone(c->inference);
    infer_sums sums;
    pass.read = read_example;
    pass.data = examples;
    pass.rows = rows;
    pass.count = data_examples_count(examples);
    pass.logits = c->logits;
    pass.user = c;
    pass.take = take_batch;
    sifr_status status = infer_evaluator_open(&pass, error);
    if (status == SIFR_OK) status = infer_evaluator_run(&pass, &sums, NULL, error);
    infer_evaluator_close(&pass);
    return status;
}

static sifr_status run_batches(sifr_classifier *c, const data_examples *examples,
                               sifr_error *error) {
    data_rows rows;
    int64_t sequences = c->options.sequences, length = c->options.length;
    size_t classes = (size_t)c->classes;
    sifr_status status;
    BASE_TRY(data_rows_make(sequences, length, DATA_ROWS_PADDED, data_examples_columns(examples),
                            &rows, error));
    BASE_TRY_GOTO(
        status,
        base_alloc((size_t)(sequences * length) * classes, sizeof *c->logits, &c->logits, error),
        done);
    BASE_TRY_GOTO(status,
                  base_alloc((size_t)length * classes, sizeof *c->scores, &c->scores, error), done);
    BASE_TRY_GOTO(status, base_alloc((size_t)length, sizeof *c->best, &c->best, error), done);
    status = run_pass(c, examples, &rows, error);
done:
    free(c->logits);
    free(c->scores);
    free(c->best);
    c->logits = NULL;
    c->scores = NULL;
    c->best = NULL;
    data_rows_free(&rows);
    return status;
}

/* Memory for the examples: what there is, if it is as large, else anew. */
static sifr_status take_memory(sifr_classifier *c, const data_examples *examples,
                               sifr_error *error) {
    int64_t length = data_examples_longest(examples);
    int64_t sequences = base_min_i64(SEQUENCES, data_examples_count(examples));
    infer_options *o = &c->options;
    if (c->inference && o->length == length && o->sequences == sequences) return SIFR_OK;
    infer_free(c->inference);
    c->inference = NULL;
    o->length = length;
    o->sequences = sequences;
    BASE_TRY(infer_create(c->model.folder.model, o, &c->inference, error));
    sifr_status status = infer_fill(c->inference, checkpoint_model_values, &c->model, error);
    if (status == SIFR_OK) return SIFR_OK;
    infer_free(c->inference);
    c->inference = NULL;
    return status;
}

static sifr_status open_examples(const sifr_classifier *c, data_examples **out, sifr_error *error) {
    const char **paths;
    BASE_TRY(base_alloc(c->files.count + 1, sizeof *paths, &paths, error));
    for (size_t i = 0; i < c->files.count; i++) paths[i] = c->files.documents[i].path;
    data_examples_source source = {.paths = paths,
                                   .count = c->files.count,
                                   .rows = c->rows,
                                   .name = c->name,
                                   .tokenizer = c->model.files,
                                   .vocab_size = c->model.folder.config.vocab_size,
                                   .threads = c->options.threads,
                                   .log = c->log};
    sifr_status status = data_examples_open(&source, &c->labelled, out, error);
    free(paths);
    return status;
}

static sifr_status run(sifr_classifier *c, sifr_error *error) {
    data_examples *examples = NULL;
    if (c->from_files && c->rows)
        return base_fail(error, SIFR_USAGE, "rows were added, and files are to be read; give one");
    if (!c->rows && !c->from_files) c->rows = json_array();
    sifr_status status = open_examples(c, &examples, error);
    if (status == SIFR_OK) status = take_memory(c, examples, error);
    if (status == SIFR_OK) status = run_batches(c, examples, error);
    if (status == SIFR_OK) infer_say_slow(c->inference, c->log);
    data_examples_close(examples);
    return status;
}

sifr_status sifr_classifier_run(sifr_classifier *classifier, sifr_take_classified *take, void *user,
                                sifr_error *error) {
    BASE_ENTER(error, classifier);
    sifr_error own = {0};
    if (!error) error = &own; /* a callback has one */
    classifier->take = take;
    classifier->user = user;
    sifr_status status = run(classifier, error);
    clear_rows(classifier);
    return status;
}
