/* Classifiers through sifr/classify.h: rows come back in order with their scores, words with their
 * classes; what is refused leaves a classifier that goes on. */
#include "support/scratch.h"

#include <math.h>

#include "sifr/sifr.h"

enum { ROWS = 20 };

static sifr_context *context;

/* What a caller gets of a run. */
typedef struct taken {
    const sifr_classifier *classifier;
    double first[ROWS];        /* of each row, its first score */
    int64_t rows, words, most; /* most: a row behind these is refused; 0: all are taken */
} taken;

static int setup(void **state) {
    return scratch_setup(state) || sifr_context_create(NULL, &context, NULL) != SIFR_OK;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

/* One of the golden models, with a tokenizer of letters. */
static const char *make_folder(const char *name) {
    static const char *const files[] = {"config.json", "model.safetensors"};
    char from[512], to[512];
    const char *folder = scratch_fresh(name);
    const char *const paths[] = {scratch_text("text", "a bad day, a good one\n")};
    sifr_tokenizer_train_options train = {.size = sizeof train,
                                          .vocab_size = 40,
                                          .type = "wordpiece",
                                          .paths = paths,
                                          .path_count = 1,
                                          .output = folder};
    assert_int_equal(sifr_tokenizer_train(context, &train, NULL, NULL), SIFR_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/tests/golden/decoder_heads/models/%s/%s", getenv("SOURCE"),
                 name, files[i]);
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        assert_int_equal(base_copy_file(from, to, NULL), SIFR_OK);
    }
    return folder;
}

static sifr_classifier *open_classifier(const char *folder) {
    sifr_classifier_options options = {
        .size = sizeof options, .model = folder, .threads = 1, .device = "cpu"};
    sifr_classifier *classifier;
    sifr_error error = {0};
    if (sifr_classifier_open(context, &options, &classifier, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return classifier;
}

static sifr_status take(void *user, const sifr_classified *row, sifr_error *error) {
    taken *t = user;
    int64_t classes = sifr_classifier_count(t->classifier);
    if (t->most && t->rows == t->most) {
        snprintf(error->message, sizeof error->message, "no more");
        return SIFR_FAILED;
    }
    assert_int_equal(row->row, t->rows);
    for (int64_t i = 0; i < row->count; i++) {
        const double *scores = row->scores + i * classes;
        double sum = 0;
        for (int64_t k = 0; k < classes; k++) {
            assert_true(scores[k] <= scores[row->best[i]]);
            sum += scores[k];
        }
        if (sifr_classifier_scores(t->classifier) == SIFR_ONE_CLASS)
            assert_true(fabs(sum - 1) < 1e-12);
    }
    for (int64_t i = 0; i < row->word_count; i++)
        assert_string_equal(row->words[i], i ? "day" : "good");
    t->first[t->rows++] = row->scores[0];
    t->words += row->count;
    return SIFR_OK;
}

static void add(sifr_classifier *classifier, const char *text) {
    assert_int_equal(sifr_classifier_add(classifier, text, strlen(text), NULL, 0, NULL), SIFR_OK);
}

/* More rows than go through the model at a time; then each text alone. */
static void test_rows(void **state) {
    (void)state;
    static const char *const texts[] = {"a good day", "bad", "a bad, bad day"};
    sifr_classifier *classifier = open_classifier(make_folder("gpt2-sequence"));
    taken all = {.classifier = classifier};
    sifr_error error = {0};
    assert_false(sifr_classifier_tags(classifier));
    assert_int_equal(sifr_classifier_scores(classifier), SIFR_ONE_CLASS);
    assert_true(sifr_classifier_count(classifier) > 1);
    assert_true(sifr_classifier_label(classifier, 0)[0] != '\0');
    for (int i = 0; i < ROWS; i++) add(classifier, texts[i % 3]);
    assert_int_equal(sifr_classifier_run(classifier, take, &all, NULL), SIFR_OK);
    assert_int_equal(all.rows, ROWS);
    for (int i = 0; i < 3; i++) {
        taken alone = {.classifier = classifier};
        add(classifier, texts[i]);
        assert_int_equal(sifr_classifier_run(classifier, take, &alone, NULL), SIFR_OK);
        assert_int_equal(alone.rows, 1);
        for (int j = i; j < ROWS; j += 3) assert_true(fabs(all.first[j] - alone.first[0]) < 1e-6);
    }
    assert_true(fabs(all.first[0] - all.first[1]) > 1e-6);
    all = (taken){.classifier = classifier, .most = 1};
    add(classifier, "a");
    add(classifier, "b");
    assert_int_equal(sifr_classifier_run(classifier, take, &all, &error), SIFR_FAILED);
    assert_string_equal(error.message, "no more");
    assert_int_equal(sifr_classifier_run(classifier, take, &all, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "the rows added")); /* there are none */
    assert_int_equal(sifr_classifier_add(classifier, "a\377", 2, NULL, 0, &error), SIFR_FAILED);
    assert_int_equal(sifr_classifier_add_words(classifier, texts, 3, &error), SIFR_USAGE);
    assert_string_equal(error.message,
                        "the model classifies texts; give them, and not their words");
    sifr_classifier_free(classifier);
}

/* From a file, with a pair in it; rows beside it are refused. */
static void test_files(void **state) {
    (void)state;
    sifr_classifier *classifier = open_classifier(make_folder("qwen3-multilabel"));
    const char *const path = scratch_text("rows.tsv", "text\ttext_pair\na day\tgood\na\tbad\n");
    taken files = {.classifier = classifier}, added = {.classifier = classifier};
    sifr_error error = {0};
    assert_int_equal(sifr_classifier_scores(classifier), SIFR_MANY_CLASSES);
    assert_int_equal(sifr_classifier_read(classifier, &path, 1, &error), SIFR_OK);
    assert_int_equal(sifr_classifier_run(classifier, take, &files, &error), SIFR_OK);
    assert_int_equal(files.rows, 2);
    const char *nowhere = "nowhere.tsv"; /* what cannot be read is not to be read */
    assert_int_equal(sifr_classifier_read(classifier, &nowhere, 1, &error), SIFR_FAILED);
    assert_int_equal(sifr_classifier_add(classifier, "a day", 5, "good", 4, NULL), SIFR_OK);
    assert_int_equal(sifr_classifier_add(classifier, "a", 1, "bad", 3, NULL), SIFR_OK);
    assert_int_equal(sifr_classifier_run(classifier, take, &added, &error), SIFR_OK);
    for (int i = 0; i < 2; i++) assert_true(files.first[i] == added.first[i]);
    add(classifier, "a");
    assert_int_equal(sifr_classifier_read(classifier, &path, 1, &error), SIFR_OK);
    assert_int_equal(sifr_classifier_run(classifier, take, &added, &error), SIFR_USAGE);
    sifr_classifier_free(classifier);
}

static void test_words(void **state) {
    (void)state;
    static const char *const words[] = {"good", "day"};
    sifr_classifier *classifier = open_classifier(make_folder("qwen3-tokens"));
    taken t = {.classifier = classifier};
    sifr_error error = {0};
    assert_true(sifr_classifier_tags(classifier));
    for (int i = 0; i < 3; i++)
        assert_int_equal(sifr_classifier_add_words(classifier, words, 2, NULL), SIFR_OK);
    assert_int_equal(sifr_classifier_run(classifier, take, &t, NULL), SIFR_OK);
    assert_int_equal(t.rows, 3);
    assert_int_equal(t.words, 6);
    assert_int_equal(sifr_classifier_add(classifier, "a", 1, NULL, 0, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "the model tags words"));
    assert_int_equal(sifr_classifier_read(classifier, words, 1, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "--data: a tagger reads"));
    sifr_classifier_free(classifier);
}

static void test_refused(void **state) {
    (void)state;
    char path[512];
    sifr_classifier *classifier;
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    sifr_classifier_options options = {.size = sizeof options, .model = path};
    assert_int_equal(sifr_classifier_open(context, &options, &classifier, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "no classifier; train one"));
    options.seq_length = -1;
    assert_int_equal(sifr_classifier_open(context, &options, &classifier, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "--seq-length -1"));
    options = (sifr_classifier_options){.size = sizeof options, .model = path, .device = "tpu"};
    assert_int_equal(sifr_classifier_open(context, &options, &classifier, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "--device tpu is not supported"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
