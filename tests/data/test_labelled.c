/* Labelled examples against transformers' encoding of the same rows, and rows that are refused. */
#include "support/scratch.h"

#include <jansson.h>

#include "base/json.h"
#include "data/data.h"
#include "data/labelled/label_names.h"
#include "data/permutation.h"
#include "data/stream/masking.h"

enum { LENGTH = 32, VOCAB = 1000 };

static char said[8192];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};
static char *class_names[] = {"contradiction", "entailment", "neutral"};
static char *tag_names[] = {"B-LOC", "B-PER", "I-PER", "O"};

static const char *golden(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof paths[0], "%s/tests/golden/examples/%s", source ? source : ".", name);
    return path;
}

/* The labels are made again from names, as a folder's would be. */
static model_labels make_labels(char *const *names, int64_t count) {
    model_labels labels = {0};
    assert_int_equal(model_labels_make((const char *const *)names, count, "test", &labels, NULL),
                     SIFR_OK);
    return labels;
}

static data_set_options options_for(const char *path, const char *tokenizer,
                                    const data_labelled *labelled) {
    static const char *paths[1];
    paths[0] = path;
    return (data_set_options){.paths = paths,
                              .count = 1,
                              .tokenizer = tokenizer,
                              .cache = scratch_path("cache"),
                              .vocab_size = VOCAB,
                              .separator = -1,
                              .special = true,
                              .threads = 2,
                              .log = &log_lines,
                              .labelled = labelled};
}

static data_set *open_data(const data_set_options *options) {
    data_set *data;
    sifr_error error = {0};
    said[0] = 0;
    if (data_set_open(options, &data, &error) != SIFR_OK) fail_msg("%s", error.message);
    return data;
}

static void assert_numbers(const int32_t *numbers, const json_t *list) {
    assert_int_equal(json_array_size(list), LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(numbers[i], json_integer_value(json_array_get(list, i)));
}

/* Every `stride`-th expected example from `first` on. */
static void compare(const char *tokenizer, const char *part, const char *file,
                    const data_labelled *labelled, size_t first, size_t stride) {
    json_t *all;
    assert_int_equal(base_json_load(golden("expected.json"), 1 << 20, &all, NULL), SIFR_OK);
    const json_t *expected = json_object_get(json_object_get(all, tokenizer), part);
    data_set_options options = options_for(golden(file), golden(tokenizer), labelled);
    data_set *data = open_data(&options);
    int64_t count = data_set_windows(data, LENGTH);
    data_rows rows;
    assert_int_equal(data_set_rows(data, 2, LENGTH, &rows, NULL), SIFR_OK);
    assert_int_equal(count, json_array_size(expected) / stride);
    for (int64_t i = 0; i < count; i++) {
        const json_t *e = json_array_get(expected, first + (size_t)i * stride);
        const json_t *label = json_object_get(e, "label"), *types = json_object_get(e, "types");
        data_set_window(data, i, &rows, 1);
        const int32_t *labels = rows.labels + LENGTH;
        assert_numbers(rows.tokens + LENGTH, json_object_get(e, "ids"));
        if (types) assert_numbers(rows.token_types + LENGTH, types);
        if (!label) assert_numbers(labels, json_object_get(e, "labels"));
        int64_t last = 0;
        for (int64_t t = 0; t < LENGTH; t++) {
            int64_t real =
                json_integer_value(json_array_get(json_object_get(e, "mask"), (size_t)t));
            assert_int_equal(rows.segments[LENGTH + t], !real);
            if (real) last = t;
        }
        for (int64_t t = 0; label && t < LENGTH; t++) {
            bool here = t == (labelled->last ? last : 0);
            assert_int_equal(labels[t], here ? json_integer_value(label) : -100);
        }
    }
    data_rows_free(&rows);
    data_set_close(data);
    json_decref(all);
}

static void encodes_pairs(void **state) {
    (void)state;
    static const char *const tokenizers[] = {"wordpiece", "byte_level"};
    model_labels labels = make_labels(class_names, 3);
    for (int t = 0; t < 2; t++) {
        data_labelled labelled = {
            .task = MODEL_SEQUENCE_CLASSES, .labels = &labels, .length = LENGTH, .padding = t};
        const char *tokenizer = tokenizers[t];
        compare(tokenizer, "pairs", "pairs.tsv", &labelled, 0, 2);
        assert_non_null(strstr(said, "text from 'premise' and 'hypothesis', labels from 'label'"));
        assert_non_null(strstr(said, "longer than seq_length 32"));
        compare(tokenizer, "pairs", "pairs.csv", &labelled, 0, 2);
        compare(tokenizer, "pairs", "pairs.jsonl", &labelled, 0, 2);
        labelled.last = true;
        labelled.columns = (data_label_columns){.text = "sentence1", .label = "label"};
        compare(tokenizer, "pairs", "pairs.csv", &labelled, 1, 2);
        assert_null(strstr(said, "text from"));
    }
    model_labels_free(&labels);
}

static void tags_words(void **state) {
    (void)state;
    model_labels labels = make_labels(tag_names, 4);
    data_labelled labelled = {.task = MODEL_TOKEN_CLASSES, .labels = &labels, .length = LENGTH};
    compare("wordpiece", "tagged", "tagged.jsonl", &labelled, 0, 1);
    compare("wordpiece", "tagged", "tagged.conll", &labelled, 0, 1);
    labelled.padding = 1;
    compare("byte_level", "tagged", "tagged.jsonl", &labelled, 0, 1);
    model_labels_free(&labels);
}

/* --- targets --- */

static void has_targets(void **state) {
    (void)state;
    static char *names[] = {"a", "b", "c"};
    model_labels labels = make_labels(names, 3);
    const char *path = scratch_text("multi.jsonl", "{\"text\": \"Bonn\", \"labels\": [\"c\", 0]}\n"
                                                   "{\"text\": \"She\", \"labels\": []}\n"
                                                   "{\"text\": \"She\", \"labels\": \"a| b\"}\n");
    data_labelled labelled = {.task = MODEL_SEQUENCE_CLASSES,
                              .problem = MODEL_MULTI_LABEL,
                              .labels = &labels,
                              .length = 8};
    data_set_options options = options_for(path, golden("wordpiece"), &labelled);
    data_set *data = open_data(&options);
    data_rows rows;
    static const float wanted[3][3] = {{1, 0, 1}, {0, 0, 0}, {1, 1, 0}};
    assert_int_equal(data_set_rows(data, 3, 8, &rows, NULL), SIFR_OK);
    assert_int_equal(rows.columns, 3);
    for (int64_t i = 0; i < 3; i++) {
        data_set_window(data, i, &rows, i);
        assert_memory_equal(rows.targets + i * 8 * 3, wanted[i], sizeof wanted[i]);
        assert_int_equal(rows.labels[i * 8], 0);
        assert_int_equal(rows.labels[i * 8 + 1], -100);
    }
    data_rows_free(&rows);
    data_set_close(data);
    model_labels_free(&labels);

    labels = make_labels(names, 1);
    labelled.problem = MODEL_REGRESSION;
    options = options_for(scratch_text("score.csv", "sentence,label\nBonn,-2.5\nShe,1e2 \n"),
                          golden("wordpiece"), &labelled);
    data = open_data(&options);
    assert_int_equal(data_set_rows(data, 1, 8, &rows, NULL), SIFR_OK);
    data_set_window(data, 0, &rows, 0);
    assert_true(rows.targets[0] == -2.5f);
    data_set_window(data, 1, &rows, 0);
    assert_true(rows.targets[0] == 100);
    data_rows_free(&rows);
    data_set_close(data);
    model_labels_free(&labels);
}

/* The label of a decoder stands at the last token that is not pad_token_id, though the text ends
 * in it; at the first where there is no other. */
static int64_t label_at(int64_t passed_over, int32_t *last) {
    static char *names[] = {"a", "b"};
    model_labels labels = make_labels(names, 2);
    const char *path = scratch_text("ends.jsonl", "{\"text\": \"She\", \"label\": \"b\"}\n");
    data_labelled labelled = {.task = MODEL_SEQUENCE_CLASSES,
                              .labels = &labels,
                              .length = 8,
                              .padding = 0,
                              .last = true,
                              .passed_over = passed_over};
    data_set_options options = options_for(path, golden("wordpiece"), &labelled);
    data_set *data = open_data(&options);
    data_rows rows;
    int64_t at = -1;
    assert_int_equal(data_set_rows(data, 1, 8, &rows, NULL), SIFR_OK);
    data_set_window(data, 0, &rows, 0);
    for (int64_t i = 0; i < 8; i++) {
        if (!rows.segments[i]) *last = rows.tokens[i];
        if (rows.labels[i] == -100) continue;
        assert_int_equal(at, -1);
        assert_int_equal(rows.labels[i], 1);
        at = i;
    }
    data_rows_free(&rows);
    data_set_close(data);
    model_labels_free(&labels);
    return at;
}

static void passes_over_padding(void **state) {
    (void)state;
    int32_t last;
    int64_t end = label_at(-1, &last);
    assert_true(end > 0);
    assert_int_equal(label_at(last, &last), end - 1);
    assert_int_equal(label_at(0, &last), end); /* padding behind the text is passed over anyway */
}

/* --- what is refused --- */

static void refuse(const char *name, const char *text, const data_labelled *labelled,
                   const char *message) {
    data_set *data;
    sifr_error error = {0};
    data_set_options options = options_for(scratch_text(name, text), golden("wordpiece"), labelled);
    assert_true(data_set_open(&options, &data, &error) != SIFR_OK);
    assert_message(&error, message);
    assert_message(&error, name);
}

static void refuses_rows(void **state) {
    (void)state;
    model_labels labels = make_labels(class_names, 3);
    data_labelled l = {.task = MODEL_SEQUENCE_CLASSES, .labels = &labels, .length = 16};
    refuse("a.csv", "words,label\nx,neutral\n", &l,
           "no column of text has a usual name; it has "
           "'words', 'label': name one with text_column");
    refuse("a.csv", "text,class\nx,neutral\n", &l, "no column of labels has a usual name");
    refuse("a.csv", "text,label\n", &l, "no rows");
    refuse("a.csv", "text,label\nx,neutral\n,neutral\n", &l, "line 3: 'text' is empty");
    refuse("a.csv", "text,text_pair,label\n,,neutral\n", &l, "the second text are empty");
    refuse("a.csv", "text,label\nx,neutral\ny,neutrl\n", &l,
           "line 3: 'label' has the label 'neutrl', which the model does not have (it has 3: "
           "contradiction, entailment, neutral)");
    refuse("a.csv", "text,label\nx,3\n", &l, "label '3'");
    refuse("a.csv", "text,label\nx,-1\n", &l, "label '-1'");
    refuse("a.csv", "text,label\nx,01\n", &l, "label '01'");
    refuse("a.jsonl", "{\"text\": 5, \"label\": 0}\n", &l, "line 1: 'text' is no text");
    refuse("a.jsonl", "{\"text\": \"x\", \"label\": 0}\n{\"label\": 0}\n", &l,
           "line 2: 'text' is missing");
    refuse("a.jsonl", "{\"text\": \"x\", \"label\": 0.5}\n", &l,
           "line 1: 'label' is a number; it must be a label's name or number");
    refuse("a.jsonl", "{\"text\": \"x\", \"label\": 0}\n{\"text\": \"x\"}\n", &l,
           "line 2: 'label' is missing");
    refuse("a.txt", "x", &l, "rows are read from files named");
    l.columns.pair = "other";
    refuse("a.csv", "text,label\nx,0\n", &l, "no column is named 'other' (pair_column)");
    l.columns.pair = NULL;
    l.length = 2;
    refuse("a.csv", "text,label\nx,0\n", &l, "has no room for text");
    l.length = 16;
    l.problem = MODEL_REGRESSION;
    labels.count = 1;
    refuse("a.csv", "text,label\nx,high\n", &l, "'label' is 'high'; a regression needs a number");
    refuse("a.csv", "text,label\nx,nan\n", &l, "no finite number");
    labels.count = 3;
    l.task = MODEL_TOKEN_CLASSES;
    refuse("a.jsonl", "{\"tokens\": [\"a\"], \"tags\": [0, 1]}\n", &l, "has 2 tags for 1 words");
    refuse("a.jsonl", "{\"tokens\": [], \"tags\": []}\n", &l, "'tokens' is empty");
    refuse("a.jsonl", "{\"tokens\": \"a b\", \"tags\": [0]}\n", &l, "must be a list of words");
    refuse("a.jsonl", "{\"tokens\": [1], \"tags\": [0]}\n", &l, "word 1 is no text");
    model_labels_free(&labels);
}

/* The first wrong row is named, however many threads read. */
static void names_the_first(void **state) {
    (void)state;
    model_labels labels = make_labels(class_names, 3);
    data_labelled l = {.task = MODEL_SEQUENCE_CLASSES, .labels = &labels, .length = 16};
    char *text = calloc(1, 200000), *end = text;
    end += sprintf(end, "text,label\n");
    for (int i = 2; i < 5000; i++)
        end += sprintf(end, "Bonn,%s\n", i == 3001 || i == 3002 ? "x" : "neutral");
    refuse("long.csv", text, &l, "line 3001: ");
    free(text);
    model_labels_free(&labels);
}

static void finds_names(void **state) {
    (void)state;
    model_labels labels = {0};
    sifr_error error = {0};
    data_label_columns none = {0};
    const char *paths[] = {scratch_text("n.csv", "text,label\na,10\nb,9\nc,no\nd,-1\ne,apple\n")};
    assert_int_equal(
        data_label_names(paths, 1, MODEL_SEQUENCE_CLASSES, false, &none, &labels, &error), SIFR_OK);
    static const char *const sorted[] = {"-1", "9", "10", "apple", "no"};
    assert_int_equal(labels.count, 5);
    for (int i = 0; i < 5; i++) assert_string_equal(labels.names[i], sorted[i]);
    paths[0] = scratch_text("one.csv", "text,label\na,x\nb,x\n");
    assert_int_equal(
        data_label_names(paths, 1, MODEL_SEQUENCE_CLASSES, false, &none, &labels, &error),
        SIFR_FAILED);
    assert_message(&error, "the label column has one label");
    paths[0] = golden("tagged.jsonl");
    assert_int_equal(data_label_names(paths, 1, MODEL_TOKEN_CLASSES, false, &none, &labels, &error),
                     SIFR_OK);
    assert_int_equal(labels.count, 4);
    const char *listed[] = {"no,yes,may be"};
    assert_int_equal(data_label_names_listed(listed, 1, "labels", &labels, &error), SIFR_OK);
    assert_int_equal(labels.count, 3);
    assert_string_equal(labels.names[2], "may be");
    model_labels_free(&labels);
}

/* --- masking --- */

static void masks_as_asked(void **state) {
    (void)state;
    enum { COUNT = 1000, WINDOWS = 200 };
    data_masking masking;
    int64_t chosen = 0, masked = 0, kept = 0;
    int32_t tokens[COUNT], labels[COUNT], again[COUNT], other[COUNT];
    assert_int_equal(data_masking_open(golden("wordpiece"), VOCAB, 0.15, &masking, NULL), SIFR_OK);
    assert_int_equal(masking.mask, 4);
    for (int64_t w = 0; w < WINDOWS; w++) {
        for (int i = 0; i < COUNT; i++) again[i] = tokens[i] = i % 100;
        data_masking_apply(&masking, data_masking_key(7, w), COUNT, tokens, labels);
        data_masking_apply(&masking, data_masking_key(7, w), COUNT, again, other);
        assert_memory_equal(tokens, again, sizeof tokens);
        for (int i = 0; i < COUNT; i++) {
            if (labels[i] == -100) {
                assert_int_equal(tokens[i], i % 100);
                continue;
            }
            assert_int_equal(labels[i], i % 100);
            assert_true(i % 100 >= 5); /* special tokens are never hidden */
            assert_true(tokens[i] >= 0);
            assert_true(tokens[i] < masking.words);
            chosen++;
            masked += tokens[i] == 4;
            kept += tokens[i] == i % 100;
        }
    }
    /* 95 % of 200,000 tokens: within five standard deviations. */
    double share = (double)chosen / (0.95 * COUNT * WINDOWS);
    assert_true(share > 0.146);
    assert_true(share < 0.154);
    assert_true((double)masked / (double)chosen > 0.787);
    assert_true((double)masked / (double)chosen < 0.815);
    assert_true((double)kept / (double)chosen > 0.09);
    assert_true((double)kept / (double)chosen < 0.112);
    data_masking_close(&masking);
}

static void masks_windows(void **state) {
    (void)state;
    enum { SOME = 8 };
    const char *text =
        scratch_text("t.txt", "The river rose after the long rain. She reads. It was "
                              "cold in the mountains.");
    data_set_options options = options_for(text, golden("wordpiece"), NULL);
    options.mask_probability = 0.5;
    data_set *data = open_data(&options);
    int64_t windows = data_set_windows(data, SOME);
    assert_int_equal(windows, data_set_tokens(data) / SOME);
    data_rows rows;
    assert_int_equal(data_set_rows(data, 4, SOME, &rows, NULL), SIFR_OK);
    assert_null(rows.segments);
    data_set_window(data, 0, &rows, 0);
    data_set_window(data, 0, &rows, 1);
    assert_memory_equal(rows.labels, rows.labels + SOME, SOME * sizeof *rows.labels);
    /* The same window in two epochs has two masks, and one text. */
    int64_t other = 0;
    while (data_permute(3, 1, windows, other) != data_permute(3, 0, windows, 0)) other++;
    data_set_sample(data, 3, 0, &rows, 2);
    data_set_sample(data, 3, windows + other, &rows, 3);
    bool differ = false;
    for (int i = 0; i < SOME; i++) {
        const int32_t *t = rows.tokens + 2 * SOME + i, *l = rows.labels + 2 * SOME + i;
        differ |= *l != l[SOME];
        assert_int_equal(*l == -100 ? *t : *l, l[SOME] == -100 ? t[SOME] : l[SOME]);
    }
    assert_true(differ);
    data_rows_free(&rows);
    data_set_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_pairs), cmocka_unit_test(tags_words),
        cmocka_unit_test(has_targets),   cmocka_unit_test(passes_over_padding),
        cmocka_unit_test(refuses_rows),  cmocka_unit_test(names_the_first),
        cmocka_unit_test(finds_names),   cmocka_unit_test(masks_as_asked),
        cmocka_unit_test(masks_windows)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
