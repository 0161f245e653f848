/* Says what a classifier makes of each line of standard input, and how good it is on labelled rows:
 *     cc classify.c $(pkg-config --cflags --libs sifr) -o classify
 *     ./classify mail <lines
 *     ./classify mail held-out.tsv */
#include <inttypes.h>
#include <sifr/sifr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LENGTH = 4096, SEQUENCE_LENGTH = 128 };

static sifr_status print_row(void *user, const sifr_classified *row, sifr_error *error) {
    const sifr_classifier *classifier = user;
    (void)error;
    printf("%s %.4f\n", sifr_classifier_label(classifier, row->best[0]), row->scores[row->best[0]]);
    return SIFR_OK;
}

static sifr_status classify_lines(sifr_classifier *classifier, sifr_error *error) {
    char line[LINE_LENGTH];
    while (fgets(line, sizeof line, stdin)) {
        sifr_status status =
            sifr_classifier_add(classifier, line, strcspn(line, "\n"), NULL, 0, error);
        if (status != SIFR_OK) return status;
    }
    return sifr_classifier_run(classifier, print_row, classifier, error);
}

static sifr_status classify(sifr_context *context, const char *model, sifr_error *error) {
    sifr_classifier_options options = {
        .size = sizeof options, .model = model, .name = "standard input"};
    sifr_classifier *classifier = NULL;
    sifr_status status = sifr_classifier_open(context, &options, &classifier, error);
    if (status == SIFR_OK) status = classify_lines(classifier, error);
    sifr_classifier_free(classifier);
    return status;
}

static sifr_status evaluate(sifr_context *context, const char *model, const char *rows,
                            sifr_error *error) {
    sifr_evaluate_options options = {.size = sizeof options,
                                     .model = model,
                                     .paths = &rows,
                                     .path_count = 1,
                                     .seq_length = SEQUENCE_LENGTH};
    sifr_evaluated result = {.size = sizeof result};
    sifr_status status = sifr_evaluate(context, &options, &result, error);
    if (status != SIFR_OK) return status;
    printf("%" PRId64 " rows, loss %.4f\n", result.windows, result.loss);
    for (int i = 0; i < result.score_count; i++)
        printf("%s %.4f\n", result.scores[i].name, result.scores[i].value);
    return SIFR_OK;
}

int main(int argc, char **argv) {
    sifr_error error = {0};
    sifr_context *context = NULL;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: classify MODEL [ROWS]\n");
        return 2;
    }
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK)
        status = argc == 2 ? classify(context, argv[1], &error)
                           : evaluate(context, argv[1], argv[2], &error);
    if (status != SIFR_OK) fprintf(stderr, "classify: %s\n", error.message);
    sifr_context_free(context);
    return (int)status;
}
