/* sifr classify: what a classifier says of texts, or of the words of texts. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cli/commands.h"
#include "cli/read_flags.h"
#include "sifr/classify.h"

static const char name[] = "classify";

/* Bytes of standard input. */
enum { INPUT_LIMIT = 1 << 30 };

typedef struct classify_command {
    cli_read_flags read;
    const char *text, *pair;
    cli_list data;
    const char *text_column, *pair_column;
    int64_t length;
    bool json;
} classify_command;

/* --- input --- */

static sifr_status add_words(sifr_classifier *classifier, char *line, sifr_error *error) {
    const char **words = NULL;
    size_t count = 0, capacity = 0;
    char *rest = NULL;
    sifr_status status = SIFR_OK;
    for (char *word = strtok_r(line, " \t", &rest); word && status == SIFR_OK;
         word = strtok_r(NULL, " \t", &rest)) {
        status = base_grow(&words, &capacity, count + 1, sizeof *words, error);
        if (status == SIFR_OK) words[count++] = word;
    }
    if (status == SIFR_OK) status = sifr_classifier_add_words(classifier, words, count, error);
    free(words);
    return status;
}

static sifr_status add_texts(sifr_classifier *classifier, const char *text, const char *pair,
                             sifr_error *error) {
    return sifr_classifier_add(classifier, text, strlen(text), pair, pair ? strlen(pair) : 0,
                               error);
}

/* A text, or two with a tab between them; of a tagger its words. */
static sifr_status add_line(sifr_classifier *classifier, char *line, sifr_error *error) {
    if (sifr_classifier_tags(classifier)) return add_words(classifier, line, error);
    char *tab = strchr(line, '\t');
    if (tab) *tab = '\0';
    return add_texts(classifier, line, tab ? tab + 1 : NULL, error);
}

static sifr_status add_input_line(sifr_classifier *classifier, char *line, size_t number,
                                  sifr_error *error) {
    sifr_status status = add_line(classifier, line, error);
    if (status != SIFR_FAILED) return status;
    return base_fail(error, status, "standard input: line %zu is not valid UTF-8", number);
}

static sifr_status read_lines(sifr_classifier *classifier, sifr_error *error) {
    char *line = NULL;
    size_t capacity = 0, number = 0, bytes = 0;
    ssize_t size;
    sifr_status status = SIFR_OK;
    while (status == SIFR_OK && (size = getline(&line, &capacity, stdin)) >= 0) {
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
            status = add_input_line(classifier, line, number, error);
    }
    free(line);
    return status;
}

static sifr_status read_text(const classify_command *command, sifr_classifier *classifier,
                             sifr_error *error) {
    char *copy;
    sifr_status status;
    if (sifr_classifier_tags(classifier)) {
        BASE_TRY(base_copy_text(command->text, strlen(command->text), &copy, error));
        status = add_words(classifier, copy, error);
        free(copy);
    } else {
        status = add_texts(classifier, command->text, command->pair, error);
    }
    if (status != SIFR_FAILED) return status;
    return base_fail(error, SIFR_USAGE, "--text: not valid UTF-8");
}

static sifr_status read_input(const classify_command *command, sifr_classifier *classifier,
                              sifr_error *error) {
    bool by_word = sifr_classifier_tags(classifier);
    if (command->data.count)
        return sifr_classifier_read(classifier, command->data.items, command->data.count, error);
    if (command->pair && (by_word || !command->text))
        return base_fail(error, SIFR_USAGE,
                         by_word ? "--pair: a tagger reads one text"
                                 : "--pair: the first text is given by --text");
    if (command->text) return read_text(command, classifier, error);
    return read_lines(classifier, error);
}

/* --- output --- */

/* What answers are printed with. */
typedef struct classify_printer {
    const sifr_classifier *classifier;
    int64_t classes;
    bool json;
} classify_printer;

static const char *label_name(const classify_printer *p, int64_t k) {
    return sifr_classifier_label(p->classifier, k);
}

static json_t *scores_json(const classify_printer *p, const double *scores) {
    json_t *all = json_object();
    for (int64_t k = 0; k < p->classes; k++)
        json_object_set_new(all, label_name(p, k), json_real(scores[k]));
    return all;
}

static void print_json(json_t *line) {
    json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(line);
}

static void print_text(const classify_printer *p, const sifr_classified *row) {
    const char *between = "";
    sifr_class_scores kind = sifr_classifier_scores(p->classifier);
    const double *scores = row->scores;
    int64_t best = row->best[0];
    if (p->json) {
        json_t *line = json_pack("{s:o}", "scores", scores_json(p, scores));
        if (kind == SIFR_ONE_CLASS)
            json_object_set_new(line, "label", json_string(label_name(p, best)));
        print_json(line);
    } else if (kind == SIFR_ONE_CLASS) {
        printf("%s %.4f\n", label_name(p, best), scores[best]);
    } else {
        bool numbers = kind == SIFR_NUMBERS;
        for (int64_t k = 0; k < p->classes; k++) {
            if (!numbers && scores[k] <= 0.5) continue;
            if (!numbers || p->classes > 1) printf("%s%s ", between, label_name(p, k));
            printf("%.4f", scores[k]);
            between = "  ";
        }
        putchar('\n');
    }
}

static void print_words_json(const classify_printer *p, const sifr_classified *row) {
    json_t *words = json_array(), *tags = json_array();
    for (int64_t i = 0; i < row->word_count; i++)
        json_array_append_new(words, json_string(row->words[i]));
    for (int64_t i = 0; i < row->count; i++)
        json_array_append_new(tags, json_string(label_name(p, row->best[i])));
    print_json(json_pack("{s:o, s:o}", "tokens", words, "tags", tags));
}

/* A line for each word that was read; a blank one behind them. */
static void print_words(const classify_printer *p, const sifr_classified *row) {
    for (int64_t i = 0; i < row->count; i++)
        printf("%s\t%s\n", i < row->word_count ? row->words[i] : "", label_name(p, row->best[i]));
    putchar('\n');
}

static sifr_status print_row(void *user, const sifr_classified *row, sifr_error *error) {
    const classify_printer *p = user;
    (void)error;
    if (!sifr_classifier_tags(p->classifier))
        print_text(p, row);
    else
        (p->json ? print_words_json : print_words)(p, row);
    return SIFR_OK;
}

static sifr_status classify(const classify_command *command, sifr_error *error) {
    sifr_classifier_options options = {.size = sizeof options,
                                       .model = command->read.model,
                                       .adapter = command->read.adapter,
                                       .precision = command->read.precision,
                                       .device = command->read.device,
                                       .threads = command->read.threads,
                                       .seq_length = command->length,
                                       .text_column = command->text_column,
                                       .pair_column = command->pair_column,
                                       .name = command->text ? "--text" : "standard input"};
    sifr_context *context = NULL;
    sifr_classifier *classifier = NULL;
    sifr_status status = cli_context(name, &context, error);
    if (status == SIFR_OK) status = sifr_classifier_open(context, &options, &classifier, error);
    if (status == SIFR_OK) status = read_input(command, classifier, error);
    if (status == SIFR_OK) {
        classify_printer printer = {classifier, sifr_classifier_count(classifier), command->json};
        status = sifr_classifier_run(classifier, print_row, &printer, error);
    }
    sifr_classifier_free(classifier);
    sifr_context_free(context);
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
        {"text-column", CLI_TEXT, "NAME", "column of the texts", &command.text_column, NULL, false},
        {"pair-column", CLI_TEXT, "NAME", "column of the second text of each pair",
         &command.pair_column, NULL, false},
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
    cli_list_free(&command.data);
    return code;
}
