/* Generation with a cache: transformers' greedy ids for every golden model, whatever the chunks of
 * the prompt; the logits are those of a pass without a cache. And the choice of a token, among the
 * candidates that transformers' filters keep. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "infer/inference.h"
#include "support/golden.h"

static const infer_sampling greedily = {.top_p = 1, .repetition_penalty = 1};

typedef void (*golden_visit)(const golden *g);

static void for_each(golden_visit visit) {
    golden_list list;
    golden_list_open(&list);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        visit(&g);
        golden_close(&g);
    }
    golden_list_close(&list);
}

static infer_inference *open_model(const engine_folder *folder, const infer_options *options) {
    infer_inference *inference = NULL;
    sifr_error error = {0};
    if (infer_create(folder->model, options, &inference, &error) != SIFR_OK ||
        infer_load(inference, folder->architecture, folder->weights, &error) != SIFR_OK) {
        fail_msg("%s", error.message);
    }
    return inference;
}

static void generates(const golden *g, const engine_folder *folder, const golden_generation *wanted,
                      int64_t chunk) {
    infer_options options = {
        .mode = PLAN_GENERATE, .threads = 2, .sequences = 1, .length = chunk, .cache_length = 64};
    infer_inference *inference = open_model(folder, &options);
    int64_t words = infer_words(inference), position = (int64_t)wanted->prompt_count;
    float *logits = malloc((size_t)words * sizeof *logits);
    sifr_error error = {0};
    sifr_status status = infer_append(inference, 0, wanted->prompt, position, 0, logits, &error);
    for (size_t i = 0; i < wanted->expected_count; i++) {
        if (status != SIFR_OK) fail_msg("%s", error.message);
        int32_t id = infer_sample(logits, words, NULL, &greedily, 0);
        if (id != wanted->expected[i]) {
            fail_msg("%s, chunks of %d: token %zu is %d, not %d", g->name, (int)chunk, i, id,
                     wanted->expected[i]);
        }
        status = infer_append(inference, 0, &id, 1, position++, logits, &error);
    }
    free(logits);
    infer_free(inference);
}

static void greedy(const golden *g) {
    static const int64_t chunks[] = {1, 3, 8};
    engine_folder folder;
    sifr_error error = {0};
    if (engine_folder_open(g->folder, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        generates(g, &folder, &g->generation, chunks[i]);
        if (g->generation_text.text) generates(g, &folder, &g->generation_text, chunks[i]);
    }
    engine_folder_close(&folder);
}

static void test_greedy(void **state) {
    (void)state;
    for_each(greedy);
}

/* Two of three sequences grow together, one of them begins two tokens later; one is empty. */
static void batch(const golden *g) {
    enum { SEQUENCES = 3, LATE = 2 };
    const golden_generation *wanted = &g->generation;
    engine_folder folder;
    sifr_error error = {0};
    if (engine_folder_open(g->folder, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    infer_options options = {.mode = PLAN_GENERATE,
                             .threads = 2,
                             .sequences = SEQUENCES,
                             .length = 3,
                             .cache_length = 64};
    infer_inference *inference = open_model(&folder, &options);
    int64_t words = infer_words(inference);
    float *logits = malloc(SEQUENCES * (size_t)words * sizeof *logits);
    static const int64_t begins[SEQUENCES] = {0, INT64_MAX, LATE};
    for (int64_t step = 0; step < (int64_t)wanted->expected_count + LATE; step++) {
        int32_t ids[SEQUENCES] = {0}, positions[SEQUENCES] = {0};
        for (int64_t q = 0; q < SEQUENCES; q++) {
            int64_t made = step - begins[q], prompt = (int64_t)wanted->prompt_count;
            if (begins[q] == step)
                assert_int_equal(infer_append(inference, q, wanted->prompt, prompt, 0,
                                              logits + q * words, &error),
                                 SIFR_OK);
            if (made < 0 || made >= (int64_t)wanted->expected_count) continue;
            ids[q] = infer_sample(logits + q * words, words, NULL, &greedily, 0);
            positions[q] = (int32_t)(prompt + made);
            if (ids[q] != wanted->expected[made])
                fail_msg("%s, sequence %d: token %d is %d, not %d", g->name, (int)q, (int)made,
                         ids[q], wanted->expected[made]);
        }
        if (infer_advance(inference, ids, positions, logits, &error) != SIFR_OK)
            fail_msg("%s", error.message);
    }
    static const int32_t beyond[SEQUENCES] = {0, 64, 0}, zeros[SEQUENCES] = {0};
    assert_int_equal(infer_advance(inference, zeros, beyond, logits, &error), SIFR_USAGE);
    free(logits);
    infer_free(inference);
    engine_folder_close(&folder);
}

static void test_batch(void **state) {
    (void)state;
    for_each(batch);
}

/* Row by row with a cache, and all rows at once. */
static void cached(const golden *g) {
    engine_folder folder;
    sifr_error error = {0};
    if (engine_folder_open(g->folder, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    infer_options options = {
        .mode = PLAN_LOGITS, .threads = 2, .sequences = 1, .length = g->length};
    infer_inference *whole = open_model(&folder, &options);
    options.mode = PLAN_GENERATE;
    options.length = 5;
    options.cache_length = g->length;
    infer_inference *stepwise = open_model(&folder, &options);
    size_t words = (size_t)infer_words(whole), count = (size_t)g->length * words;
    float *expected = malloc(count * sizeof *expected), *got = malloc(words * sizeof *got);
    if (infer_logits(whole, &(sifr_batch){.tokens = g->tokens}, expected, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    float largest = 0, worst = 0;
    for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(expected[i]));
    for (int64_t at = 0; at < g->length;) {
        int64_t some = at % 2 ? 1 : 6; /* a chunk and a token, or one token */
        if (some > g->length - at) some = g->length - at;
        if (infer_append(stepwise, 0, g->tokens + at, some, at, got, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        at += some;
        const float *row = expected + (size_t)(at - 1) * words;
        for (size_t w = 0; w < words; w++) worst = fmaxf(worst, fabsf(got[w] - row[w]));
    }
    if (!(worst <= 1e-5f * largest)) fail_msg("%s: logits differ by %g", g->name, (double)worst);
    int32_t token = 1;
    assert_int_equal(infer_append(stepwise, 0, &token, 1, g->length, got, &error), SIFR_USAGE);
    free(expected);
    free(got);
    infer_free(whole);
    infer_free(stepwise);
    engine_folder_close(&folder);
}

static void test_cached(void **state) {
    (void)state;
    for_each(cached);
}

/* --- the choice of a token --- */

/* The largest wherever it stands, the first of equals. */
static void test_most_likely(void **state) {
    (void)state;
    float logits[50];
    for (int words = 1; words <= 50; words++)
        for (int at = 0; at < words; at++) {
            for (int w = 0; w < words; w++) logits[w] = -3.0f - (float)(w % 7);
            logits[at] = logits[words - 1] = -2.5f;
            assert_int_equal(infer_sample(logits, words, NULL, &greedily, 0), at);
            logits[words - 1] = at == words - 1 ? -2.0f : -3.0f;
            assert_int_equal(infer_sample(logits, words, NULL, &greedily, 0), at);
        }
}

enum { WORDS = 6, DRAWS = 20000 };

/* Logarithms of the probabilities 0.4, 0.25, 0.15, 0.1, 0.06, 0.04 in another order. */
static const double probability[WORDS] = {0.1, 0.4, 0.04, 0.25, 0.06, 0.15};

static void draw(double temperature, int64_t top_k, double top_p, double share[WORDS]) {
    float logits[WORDS];
    int32_t order[WORDS];
    infer_sampling sampling = {.temperature = temperature, .top_k = top_k, .top_p = top_p};
    for (int w = 0; w < WORDS; w++) share[w] = 0;
    for (int i = 0; i < DRAWS; i++) {
        for (int w = 0; w < WORDS; w++) logits[w] = (float)(log(probability[w]) + 3);
        double random = (i + 0.5) / DRAWS;
        share[infer_sample(logits, WORDS, order, &sampling, random)] += 1.0 / DRAWS;
    }
}

static void assert_shares(const double share[WORDS], const double expected[WORDS]) {
    double sum = 0;
    for (int w = 0; w < WORDS; w++) sum += expected[w];
    for (int w = 0; w < WORDS; w++) {
        if (fabs(share[w] - expected[w] / sum) > 2e-4)
            fail_msg("word %d: drawn %g of all, not %g", w, share[w], expected[w] / sum);
    }
}

static void test_draw(void **state) {
    (void)state;
    double share[WORDS], expected[WORDS];
    draw(1, 0, 1, share);
    assert_shares(share, probability);
    draw(0.5, 0, 1, share);
    for (int w = 0; w < WORDS; w++) expected[w] = probability[w] * probability[w];
    assert_shares(share, expected);
    draw(1, 2, 1, share);
    assert_shares(share, (double[WORDS]){0, 0.4, 0, 0.25, 0, 0});
    draw(1, 0, 0.7, share); /* 0.4 + 0.25 < 0.7 <= 0.4 + 0.25 + 0.15 */
    assert_shares(share, (double[WORDS]){0, 0.4, 0, 0.25, 0, 0.15});
    draw(1, 3, 0.7, share); /* of the three: 0.5 + 0.3125 >= 0.7 */
    assert_shares(share, (double[WORDS]){0, 0.4, 0, 0.25, 0, 0});
    draw(1, 0, 0.01, share);
    assert_shares(share, (double[WORDS]){0, 1, 0, 0, 0, 0});
    draw(1, WORDS + 5, 1, share);
    assert_shares(share, probability);
}

static void test_equals(void **state) {
    (void)state;
    float logits[3] = {1, 2, 2};
    int32_t order[3];
    assert_int_equal(infer_sample(logits, 3, order, &greedily, 0.9), 1);
    infer_sampling whole = {.temperature = 1, .top_p = 1};
    float padded[3] = {-INFINITY, 0, -INFINITY};
    assert_int_equal(infer_sample(padded, 3, order, &whole, 0.999999), 1);
}

/* --- transformers' filters: tests/golden/make_sampling.py --- */

static double number(const json_t *row, const char *key, double fallback) {
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static size_t read_floats(const json_t *array, float *out) {
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count; i++) out[i] = (float)json_number_value(json_array_get(array, i));
    return count;
}

#define TINY 1e-37 /* below, single precision has nothing but zero */

/* One set of filters on one row of logits: the same candidates with the same probabilities. */
static void check_filters(const json_t *file, const json_t *row) {
    enum { MOST = 512 };
    float logits[MOST];
    int32_t order[MOST], ids[MOST];
    double sum, wanted[MOST] = {0}, got[MOST] = {0};
    size_t which = (size_t)number(row, "logits", 0);
    size_t words = read_floats(json_array_get(json_object_get(file, "logits"), which), logits);
    const json_t *seen = json_object_get(file, "ids"), *kept = json_object_get(row, "kept");
    for (size_t i = 0; i < json_array_size(seen); i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(seen, i));
    infer_sampling s = {.temperature = number(row, "temperature", 1),
                        .top_k = (int64_t)number(row, "top_k", 0),
                        .top_p = number(row, "top_p", 1),
                        .min_p = number(row, "min_p", 0)};
    infer_penalize(logits, (int64_t)words, ids, json_array_size(seen),
                   number(row, "repetition_penalty", 1), order);
    int64_t count = infer_candidates(logits, (int64_t)words, order, &s, &sum);
    for (int64_t i = 0; i < count; i++) {
        int32_t id = order[(int64_t)words - 1 - i];
        got[id] = (double)logits[id] / sum;
    }
    for (size_t i = 0; i < json_array_size(kept); i++) {
        const json_t *pair = json_array_get(kept, i);
        wanted[json_integer_value(json_array_get(pair, 0))] =
            json_number_value(json_array_get(pair, 1));
    }
    for (size_t w = 0; w < words; w++) {
        bool same = (wanted[w] > TINY) == (got[w] > TINY) && fabs(wanted[w] - got[w]) <= 2e-6;
        if (same) continue;
        char *text = json_dumps(row, JSON_COMPACT);
        fail_msg("word %zu: probability %g, not %g; %s", w, got[w], wanted[w], text);
    }
}

static void test_filters(void **state) {
    (void)state;
    char path[BASE_PATH_LENGTH];
    json_error_t where;
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/sampling.json", source ? source : ".");
    json_t *file = json_load_file(path, 0, &where);
    if (!file) fail_msg("%s: %s", path, where.text);
    const json_t *rows = json_object_get(file, "rows");
    assert_true(json_array_size(rows) > 50);
    for (size_t i = 0; i < json_array_size(rows); i++) check_filters(file, json_array_get(rows, i));
    json_decref(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch),       cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_cached),      cmocka_unit_test(test_filters),
        cmocka_unit_test(test_most_likely), cmocka_unit_test(test_draw),
        cmocka_unit_test(test_equals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
