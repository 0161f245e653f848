/* sifr classify: what a classifier says of texts, or of the words of texts. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/read_model.h"
#include "data/labelled/examples.h"
#include "data/rows.h"
#include "data/stream/text_source.h"
#include "infer/evaluator.h"

static const char name[] = "classify";

/* Sequences at a time; tokens where no length is given; bytes of standard input. */
enum { SEQUENCES = 16, LENGTH = 512, INPUT_LIMIT = 1 << 30 };

typedef struct classify_command {
    cli_read_flags read;
    const char *text, *pair;
    cli_list data;
    data_label_columns columns;
    int64_t length;
    bool json;
    json_t *rows; /* from --text or standard input */
} classify_command;

/* What answers are printed with. */
typedef struct classify_printer {
    const data_labelled *labelled;
    const json_t *given; /* rows that are no file's */
    int64_t classes;
    float *logits; /* of a batch */
    double *scores;
    bool json;
} classify_printer;

/* --- input --- */

static json_t *make_words(char *line) {
    json_t *words = json_array();
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        if (json_array_append_new(words, json_string(word)) != 0) {
            json_decref(words);
            return NULL;
        }
    return json_pack("{s:o}", "tokens", words);
}

/* A text, or two with a tab between them; of a tagger its words. NULL where it is not UTF-8. */
static json_t *make_row(char *line, model_task task) {
    if (task == MODEL_TOKEN_CLASSES) return make_words(line);
    char *tab = strchr(line, '\t');
    if (tab) *tab = '\0';
    return tab ? json_pack("{s:s, s:s}", "text", line, "text_pair", tab + 1)
               : json_pack("{s:s}", "text", line);
}

static sifr_status add_line(classify_command *command, char *line, model_task task, size_t number,
                            sifr_error *error) {
    json_t *row = make_row(line, task);
    if (!row)
        return base_fail(error, SIFR_FAILED, "standard input: line %zu is not valid UTF-8", number);
    return json_array_append_new(command->rows, row) == 0 ? SIFR_OK : base_fail_alloc(error, 64);
}

static sifr_status read_lines(classify_command *command, model_task task, sifr_error *error) {
    char *line = NULL;
    size_t room = 0, number = 0, bytes = 0;
    ssize_t size;
    sifr_status status = SIFR_OK;
    while (status == SIFR_OK && (size = getline(&line, &room, stdin)) >= 0) {
        number++;
        bytes += (size_t)size;
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r')) line[--size] = '\0';
        if (bytes > INPUT_LIMIT)
            status = base_fail(error, SIFR_FAILED,
                               "standard input: more than 1 GiB; give a file to --data");
        else if (strlen(line) != (size_t)size)
            status =
                base_fail(error, SIFR_FAILED, "standard input: line %zu has a NUL byte", number);
        else if (line[strspn(line, " \t")])
            status = add_line(command, line, task, number, error);
    }
    free(line);
    return status;
}

static sifr_status read_input(classify_command *command, model_task task, sifr_error *error) {
    bool by_word = task == MODEL_TOKEN_CLASSES;
    if (command->data.count) return SIFR_OK;
    if (command->pair && (by_word || !command->text))
        return base_fail(error, SIFR_USAGE,
                         by_word ? "--pair: a tagger reads one text"
                                 : "--pair: the first text is given by --text");
    command->rows = json_array();
    if (!command->rows) return base_fail_alloc(error, 64);
    if (!command->text) return read_lines(command, task, error);
    char *copy;
    BASE_TRY(base_copy_text(command->text, strlen(command->text), &copy, error));
    json_t *row = by_word ? make_words(copy)
                  : command->pair
                      ? json_pack("{s:s, s:s}", "text", copy, "text_pair", command->pair)
                      : json_pack("{s:s}", "text", copy);
    free(copy);
    if (row && json_array_append_new(command->rows, row) == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--text: not valid UTF-8");
}

/* --- output --- */

/* Probabilities of logits, or the numbers of a regression as they are. */
static void make_scores(const classify_printer *p, const float *logits) {
    double sum = 0, most = -INFINITY;
    model_problem problem =
        p->labelled->task == MODEL_TOKEN_CLASSES ? MODEL_SINGLE_LABEL : p->labelled->problem;
    for (int64_t k = 0; k < p->classes; k++) most = fmax(most, (double)logits[k]);
    for (int64_t k = 0; k < p->classes; k++) {
        double x = (double)logits[k];
        if (problem == MODEL_SINGLE_LABEL)
            sum += p->scores[k] = exp(x - most);
        else
            p->scores[k] = problem == MODEL_MULTI_LABEL ? 1 / (1 + exp(-x)) : x;
    }
    for (int64_t k = 0; problem == MODEL_SINGLE_LABEL && k < p->classes; k++) p->scores[k] /= sum;
}

static int64_t likeliest(const classify_printer *p) {
    int64_t best = 0;
    for (int64_t k = 1; k < p->classes; k++)
        if (p->scores[k] > p->scores[best]) best = k;
    return best;
}

static const char *label_name(const classify_printer *p, int64_t k) {
    return p->labelled->labels->names[k];
}

static json_t *scores_json(const classify_printer *p) {
    json_t *all = json_object();
    for (int64_t k = 0; k < p->classes; k++)
        json_object_set_new(all, label_name(p, k), json_real(p->scores[k]));
    return all;
}

static void print_json(json_t *line) {
    json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(line);
}

static void print_sequence(const classify_printer *p, const float *logits) {
    const char *between = "";
    model_problem problem = p->labelled->problem;
    make_scores(p, logits);
    int64_t best = likeliest(p);
    if (p->json) {
        json_t *line = json_pack("{s:o}", "scores", scores_json(p));
        if (problem == MODEL_SINGLE_LABEL)
            json_object_set_new(line, "label", json_string(label_name(p, best)));
        print_json(line);
    } else if (problem == MODEL_SINGLE_LABEL) {
        printf("%s %.4f\n", label_name(p, best), p->scores[best]);
    } else {
        bool numbers = problem != MODEL_MULTI_LABEL;
        for (int64_t k = 0; k < p->classes; k++) {
            if (!numbers && p->scores[k] <= 0.5) continue;
            if (!numbers || p->classes > 1) printf("%s%s ", between, label_name(p, k));
            printf("%.4f", p->scores[k]);
            between = "  ";
        }
        putchar('\n');
    }
}

/* A line for each word that was read; a blank one behind them. */
static void print_words(const classify_printer *p, const json_t *words, const data_rows *rows,
                        int64_t at, const float *logits) {
    json_t *tags = json_array();
    size_t word = 0;
    for (int64_t t = at * rows->length; t < (at + 1) * rows->length; t++) {
        if (rows->labels[t] < 0) continue;
        make_scores(p, logits + t * p->classes);
        const char *tag = label_name(p, likeliest(p));
        const char *text = json_string_value(json_array_get(words, word++));
        json_array_append_new(tags, json_string(tag));
        if (!p->json) printf("%s\t%s\n", text ? text : "", tag);
    }
    if (p->json)
        print_json(json_pack("{s:O, s:o}", "tokens", words, "tags", tags));
    else
        json_decref(tags), putchar('\n');
}

static sifr_status print_batch(void *user, const infer_batch *batch, sifr_error *error) {
    const classify_printer *p = user;
    const data_rows *rows = batch->rows;
    (void)error;
    for (int64_t i = 0; i < batch->count; i++) {
        if (p->labelled->task == MODEL_TOKEN_CLASSES) {
            const json_t *row = json_array_get(p->given, (size_t)(batch->first + i));
            print_words(p, json_object_get(row, "tokens"), rows, i, p->logits);
            continue;
        }
        for (int64_t t = i * rows->length; t < (i + 1) * rows->length; t++)
            if (rows->labels[t] >= 0) print_sequence(p, p->logits + t * p->classes);
    }
    return SIFR_OK;
}

/* --- the model --- */

static void read_example(const void *examples, int64_t index, const data_rows *rows, int64_t at) {
    data_examples_read(examples, index, rows, at);
}

static sifr_status run_batches(const data_examples *examples, infer_inference *inference,
                               classify_printer *p, int64_t sequences, sifr_error *error) {
    data_rows rows;
    infer_evaluator pass = infer_evaluator_alone(inference);
    infer_sums sums;
    int64_t length = data_examples_longest(examples);
    size_t logits = (size_t)(sequences * length * p->classes);
    sifr_status status;
    BASE_TRY(data_rows_make(sequences, length, DATA_ROWS_PADDED, data_examples_columns(examples),
                            &rows, error));
    BASE_TRY_GOTO(status, base_alloc(logits, sizeof *p->logits, &p->logits, error), done);
    BASE_TRY_GOTO(status, base_alloc((size_t)p->classes, sizeof *p->scores, &p->scores, error),
                  done);
    pass.read = read_example;
    pass.data = examples;
    pass.rows = &rows;
    pass.count = data_examples_count(examples);
    pass.logits = p->logits;
    pass.user = p;
    pass.take = print_batch;
    BASE_TRY_GOTO(status, infer_evaluator_open(&pass, error), done);
    status = infer_evaluator_run(&pass, &sums, NULL, error);
done:
    infer_evaluator_close(&pass);
    free(p->scores);
    free(p->logits);
    data_rows_free(&rows);
    return status;
}

static sifr_status open_examples(const classify_command *command, const checkpoint_model *model,
                                 const data_labelled *labelled, const sifr_log *log,
                                 data_examples **out, sifr_error *error) {
    data_text_source files = {0};
    const char **paths = NULL;
    sifr_status status = SIFR_OK;
    if (command->data.count)
        status =
            data_text_source_open_rows(command->data.items, command->data.count, &files, error);
    if (status == SIFR_OK) status = base_alloc(files.count + 1, sizeof *paths, &paths, error);
    if (status == SIFR_OK) {
        for (size_t i = 0; i < files.count; i++) paths[i] = files.documents[i].path;
        data_examples_source source = {.paths = paths,
                                       .count = files.count,
                                       .rows = command->rows,
                                       .name = command->text ? "--text" : "standard input",
                                       .tokenizer = model->files,
                                       .vocab_size = model->folder.config.vocab_size,
                                       .threads = (int)command->read.threads,
                                       .log = log};
        status = data_examples_open(&source, labelled, out, error);
    }
    free(paths);
    data_text_source_close(&files);
    return status;
}

static sifr_status check_model(const classify_command *command, const engine_folder *folder,
                               sifr_error *error) {
    if (!model_task_labelled(folder->config.task))
        return base_fail(error, SIFR_USAGE,
                         "%s: no classifier; train one: sifr train --task "
                         "sequence_classification",
                         command->read.model);
    if (folder->config.task != MODEL_TOKEN_CLASSES || !command->data.count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--data: a tagger reads sentences from standard input, one a line; sifr eval "
                     "scores files with tags");
}

static sifr_status classify(classify_command *command, sifr_error *error) {
    checkpoint_model model = {0};
    infer_inference *inference = NULL;
    infer_options options = {.mode = PLAN_EVALUATE, .logits = true};
    data_examples *examples = NULL;
    sifr_log log = cli_log(name);
    const engine_folder *folder = &model.folder;
    sifr_status status;
    BASE_TRY_GOTO(status, cli_read_model_open(&command->read, &model, &options, &log, error), done);
    BASE_TRY_GOTO(status, check_model(command, folder, error), done);
    BASE_TRY_GOTO(status, read_input(command, folder->config.task, error), done);
    int64_t positions = model_positions(&folder->config);
    data_labelled labelled = {.task = folder->config.task,
                              .problem = folder->config.problem,
                              .labels = &folder->labels,
                              .columns = command->columns,
                              .length = command->length ? command->length
                                                        : base_min_i64(positions, LENGTH),
                              .padding = base_max_i64(folder->config.pad_token_id, 0),
                              .last = !folder->architecture->encoder,
                              .passed_over = folder->config.pad_token_id,
                              .unknown = true};
    BASE_TRY_GOTO(status, open_examples(command, &model, &labelled, &log, &examples, error), done);
    options.length = data_examples_longest(examples);
    options.sequences = base_min_i64(SEQUENCES, data_examples_count(examples));
    BASE_TRY_GOTO(status, infer_create(folder->model, &options, &inference, error), done);
    BASE_TRY_GOTO(status, infer_fill(inference, checkpoint_model_values, &model, error), done);
    classify_printer printer = {.labelled = &labelled,
                                .given = command->rows,
                                .classes = infer_words(inference),
                                .json = command->json};
    status = run_batches(examples, inference, &printer, options.sequences, error);
    if (status == SIFR_OK) infer_say_slow(inference, &log);
done:
    infer_free(inference);
    data_examples_close(examples);
    checkpoint_model_close(&model);
    return status;
}

int cli_classify(int argc, char **argv) {
    static const cli_usage usage = {
        .name = name,
        .summary =
            "Says what a classifier makes of texts: one line each, the label and its probability. "
            "The\ntexts are those of --text or --data, else the lines of standard input (of pairs, "
            "with a\ntab between both). Of a tagger the lines are sentences, and each word gets "
            "its tag.",
        .example = "sifr classify --model mail --text 'the parcel never came'\n"
                   "sifr classify --model mail --data new.csv --json"};
    classify_command command = {0};
    cli_option options[CLI_EVALUATE_OPTIONS + 7] = {
        {"text", CLI_TEXT, "TEXT", "the text", &command.text, NULL, false},
        {"pair", CLI_TEXT, "TEXT", "the second text of a pair", &command.pair, NULL, false},
        {"data", CLI_LIST, "PATH", "files of rows (CSV, JSON lines …), which need no label",
         &command.data, NULL, false},
        {"text-column", CLI_TEXT, "NAME", "column of the texts", &command.columns.text, NULL,
         false},
        {"pair-column", CLI_TEXT, "NAME", "column of the second text of each pair",
         &command.columns.pair, NULL, false},
        {"seq-length", CLI_COUNT, "N",
         "cut what has more tokens (default: the model's positions, at most 512)", &command.length,
         NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object for each text, with all probabilities",
         &command.json, NULL, false},
    };
    int code;
    cli_evaluate_options(&command.read, options + 7);
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code))
        return code;
    sifr_error error = {0};
    code = SIFR_OK;
    if (command.text && command.data.count)
        code = cli_fail_with(name, SIFR_USAGE, "--text and --data are both given; give one");
    else if (classify(&command, &error) != SIFR_OK)
        code = cli_fail(name, &error);
    json_decref(command.rows);
    cli_list_free(&command.data);
    return code;
}
