/* Scores of random predictions beside those of scikit-learn, SciPy and seqeval
 * (golden/make_scores.py): rare classes, ties, constant values, tags that no scheme allows. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/evaluate/scores.h"

enum { MOST = 512 };

static json_t *golden;
static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static int open_golden(void **state) {
    (void)state;
    char path[1024];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/scores.json", source ? source : ".");
    golden = json_load_file(path, 0, NULL);
    return golden ? 0 : -1;
}

static int close_golden(void **state) {
    (void)state;
    json_decref(golden);
    return 0;
}

static int64_t whole_numbers(const json_t *entry, const char *name, int32_t *out) {
    const json_t *list = json_object_get(entry, name);
    size_t count = json_array_size(list);
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int64_t)count;
}

static int32_t whole_number(const json_t *entry, const char *name) {
    return (int32_t)json_integer_value(json_object_get(entry, name));
}

static void check_scores(const char *kind, size_t index, const json_t *entry,
                         const train_scores *have) {
    json_t *want = json_object_get(entry, "scores");
    assert_int_equal(have->count, json_object_size(want));
    for (int i = 0; i < have->count; i++) {
        const train_score *score = &have->items[i];
        const json_t *value = json_object_get(want, score->name);
        assert_non_null(value);
        double v = json_is_null(value) ? (double)NAN : json_number_value(value);
        bool same =
            isnan(v) ? isnan(score->value) : fabs(score->value - v) <= 1e-12 * fmax(1, fabs(v));
        if (!same)
            fail_msg("%s %zu: %s is %.17g, expected %.17g", kind, index, score->name, score->value,
                     v);
    }
}

static void classes(void **state) {
    (void)state;
    size_t i;
    const json_t *entry, *entries = json_object_get(golden, "classes");
    json_array_foreach(entries, i, entry) {
        int32_t labels[MOST], predictions[MOST];
        train_scores scores;
        int64_t count = whole_numbers(entry, "labels", labels);
        assert_int_equal(whole_numbers(entry, "predictions", predictions), count);
        OK(train_score_classes(labels, predictions, count, whole_number(entry, "classes"), &scores,
                               &error));
        check_scores("classes", i, entry, &scores);
    }
    assert_true(i > 50);
}

static void multilabel(void **state) {
    (void)state;
    size_t i;
    const json_t *entry, *entries = json_object_get(golden, "multilabel");
    json_array_foreach(entries, i, entry) {
        int32_t labels[MOST], predictions[MOST], columns = whole_number(entry, "columns");
        train_scores scores;
        int64_t count = whole_numbers(entry, "labels", labels);
        assert_int_equal(whole_numbers(entry, "predictions", predictions), count);
        OK(train_score_multilabel(labels, predictions, count / columns, columns, &scores, &error));
        check_scores("multilabel", i, entry, &scores);
    }
    assert_true(i > 20);
}

static void regression(void **state) {
    (void)state;
    size_t i;
    const json_t *entry, *entries = json_object_get(golden, "regression");
    json_array_foreach(entries, i, entry) {
        double x[MOST], y[MOST];
        const json_t *labels = json_object_get(entry, "labels");
        const json_t *predictions = json_object_get(entry, "predictions");
        size_t count = json_array_size(labels);
        train_scores scores;
        for (size_t j = 0; j < count; j++) {
            x[j] = json_number_value(json_array_get(labels, j));
            y[j] = json_number_value(json_array_get(predictions, j));
        }
        OK(train_score_regression(x, y, (int64_t)count, 1, &scores, &error));
        check_scores("regression", i, entry, &scores);
    }
    assert_true(i > 50);
}

static void entities(void **state) {
    (void)state;
    size_t i;
    const json_t *entry, *entries = json_object_get(golden, "entities");
    json_array_foreach(entries, i, entry) {
        int32_t labels[MOST], predictions[MOST], lengths[MOST];
        int64_t starts[MOST] = {0}, sequences = whole_numbers(entry, "lengths", lengths);
        const json_t *list = json_object_get(entry, "names");
        const char *names[MOST];
        train_scores scores;
        for (size_t j = 0; j < json_array_size(list); j++)
            names[j] = json_string_value(json_array_get(list, j));
        for (int64_t s = 0; s < sequences; s++) starts[s + 1] = starts[s] + lengths[s];
        assert_int_equal(whole_numbers(entry, "labels", labels), starts[sequences]);
        assert_int_equal(whole_numbers(entry, "predictions", predictions), starts[sequences]);
        OK(train_score_entities(labels, predictions, starts, sequences, names,
                                (int32_t)json_array_size(list), &scores, &error));
        check_scores("entities", i, entry, &scores);
    }
    assert_true(i > 100);
}

static double value_of(const train_scores *scores, const char *name) {
    for (int i = 0; i < scores->count; i++) {
        if (strcmp(scores->items[i].name, name) == 0) return scores->items[i].value;
    }
    fail_msg("no %s", name);
    return 0;
}

/* What has no label says nothing, whatever is predicted there. */
static void left_out(void **state) {
    (void)state;
    static const int32_t labels[] = {1, -100, 0, 1, -1, 1}, said[] = {1, 99, 1, 1, -7, 0};
    static const int64_t starts[] = {0, 3, 6};
    static const char *const names[] = {"O", "B-X"};
    train_scores scores;
    OK(train_score_classes(labels, said, 6, 2, &scores, &error));
    assert_true(value_of(&scores, "accuracy") == 0.5);
    OK(train_score_entities(labels, said, starts, 2, names, 2, &scores, &error));
    assert_true(value_of(&scores, "accuracy") == 0.5);
    assert_true(fabs(value_of(&scores, "precision") - 2.0 / 3) < 1e-15);
}

static void edges(void **state) {
    (void)state;
    train_scores scores;
    static const int32_t labels[] = {0, 2}, said[] = {0, 3};
    static const int64_t starts[] = {0, 2};
    static const char *const names[] = {"O", "B", "I"};
    static const double few[] = {1, NAN, 3}, more[] = {2, 5, 4}, table[] = {1, 2, 5, 4};
    OK(train_score_classes(labels, said, 0, 3, &scores, &error));
    assert_true(isnan(value_of(&scores, "accuracy")));
    assert_true(value_of(&scores, "f1_macro") == 0);
    assert_int_equal(train_score_classes(labels, said, 2, 3, &scores, &error), SIFR_FAILED);
    assert_string_equal(error.message, "scores: entry 1 has label 2 and prediction 3, but there "
                                       "are classes 0 to 2 only");
    assert_int_equal(train_score_entities(labels, said, starts, 1, names, 3, &scores, &error),
                     SIFR_FAILED);
    OK(train_score_regression(few, more, 0, 1, &scores, &error));
    assert_true(isnan(value_of(&scores, "mse")));
    assert_true(isnan(value_of(&scores, "spearman")));
    OK(train_score_regression(few, more, 3, 1, &scores, &error));
    assert_true(isnan(value_of(&scores, "pearson")));
    assert_true(isnan(value_of(&scores, "spearman")));
    OK(train_score_regression(table, more, 1, 3, &scores, &error));
    assert_int_equal(scores.count, 1);
    assert_true(fabs(value_of(&scores, "mse") - 11.0 / 3) < 1e-15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),  cmocka_unit_test(multilabel), cmocka_unit_test(regression),
        cmocka_unit_test(entities), cmocka_unit_test(left_out),   cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
