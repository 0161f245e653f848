/* What the library refuses of models that learn more than labels: targets that the head cannot
 * read, a step without targets, a micro batch that ends within a pair, and a head that does not
 * learn what was asked for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "sifr/engine.h"

enum { WORDS = 128, WIDTH = 16, LENGTH = 4, SEQUENCES = 2, TOKENS = LENGTH * SEQUENCES };
enum { GIVEN = 4, MOST_COLUMNS = 2 * GIVEN, UNLABELLED = 2, WRONG = 5 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

typedef enum kind { DISTIL, SIGMOID, ORPO, MULTILABEL, REGRESSION, KINDS } kind;

static const int columns_of[KINDS] = {2 * GIVEN, 1, 1, 3, 3};

static sifr_value add_body(sifr_model *m) {
    sifr_unit(m, "model");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.5);
    return sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
}

static void add_head(sifr_model *m, kind k, sifr_value x) {
    bool targets = k == MULTILABEL || k == REGRESSION;
    int rows = targets ? columns_of[k] : WORDS;
    sifr_weight head = sifr_weight_matrix(m, "head", rows, WIDTH, SIFR_INIT_NORMAL, 0.2);
    if (!targets) {
        sifr_head_loss(m, (sifr_head_args){.x = x, .weight = head});
        return;
    }
    sifr_head_targets_args args = {.x = x, .targets = sifr_targets(m, rows), .weight = head};
    if (k == MULTILABEL)
        sifr_head_multilabel(m, args);
    else
        sifr_head_regression(m, args);
}

static void ask(sifr_model *m, kind k) {
    if (k == DISTIL) sifr_distil(m, (sifr_distil_args){GIVEN, 1, 0.5});
    if (k == SIGMOID) sifr_prefer(m, SIFR_PREFERENCE_SIGMOID, 0.1);
    if (k == ORPO) sifr_prefer(m, SIFR_PREFERENCE_ORPO, 0.1);
}

static sifr_model *make_model(kind k) {
    sifr_model *m;
    OK(sifr_model_create(&m, &error));
    ask(m, k);
    add_head(m, k, add_body(m));
    OK(sifr_model_finish(m, &error));
    return m;
}

static sifr_settings settings_of(int64_t sequences) {
    sifr_settings s = sifr_settings_defaults();
    s.micro_batch_size = sequences;
    s.seq_length = LENGTH;
    s.threads = 1;
    return s;
}

static sifr_engine *open_engine(const sifr_model *m) {
    sifr_settings s = settings_of(SEQUENCES);
    sifr_engine *engine;
    OK(sifr_engine_create(m, &s, &engine, &error));
    OK(sifr_engine_initialise(engine, 1, &error));
    return engine;
}

/* A right batch; what the row without a label holds is not read. */
typedef struct numbers {
    int32_t tokens[TOKENS], labels[TOKENS];
    float targets[TOKENS * MOST_COLUMNS];
} numbers;

static float right_target(kind k, int column) {
    switch (k) {
    case DISTIL:
        return column < GIVEN ? (float)(WORDS - 1 - column) : -2;
    case SIGMOID:
        return -4;
    default:
        return column % 2 == 0 ? 1 : 0;
    }
}

static sifr_batch fill(numbers *n, kind k) {
    int columns = columns_of[k];
    for (int i = 0; i < TOKENS; i++) {
        n->tokens[i] = 7 * i % WORDS;
        n->labels[i] = i == UNLABELLED ? -100 : (7 * i + 7) % 3;
        for (int c = 0; c < columns; c++)
            n->targets[i * columns + c] = i == UNLABELLED ? 1e30f : right_target(k, c);
    }
    return (sifr_batch){.tokens = n->tokens, .labels = n->labels, .targets = n->targets};
}

static void right_step(sifr_engine *engine, kind k) {
    numbers n;
    sifr_step_result result;
    sifr_batch batch = fill(&n, k);
    OK(sifr_engine_step(engine, &batch, 1e-2, &result, &error));
    assert_true(result.updated);
    assert_true(isfinite(result.loss));
}

static void wrong_step(sifr_engine *engine, const sifr_batch *batch, sifr_status status,
                       const char *message) {
    sifr_step_result result;
    sifr_error error = {0};
    int64_t steps = sifr_engine_steps(engine);
    assert_int_equal(sifr_engine_step(engine, batch, 1e-2, &result, &error), status);
    assert_string_equal(error.message, message);
    assert_int_equal(sifr_engine_steps(engine), steps);
}

/* --- labels --- */

/* -1, or -101: an id that is off by one, or a list whose own mark for "none" is another. */
static void wrong_labels(void **state) {
    (void)state;
    sifr_model *m = make_model(DISTIL);
    sifr_engine *engine = open_engine(m);
    const int32_t wrong[] = {-1, -99, -101, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        numbers n;
        sifr_batch batch = fill(&n, DISTIL);
        char message[100];
        n.labels[5] = wrong[i];
        snprintf(message, sizeof message,
                 "data: label %d at position 5 is below 0; -100 where there is none", wrong[i]);
        wrong_step(engine, &batch, SIFR_FAILED, message);
        double loss;
        int64_t labelled;
        sifr_error failure = {0};
        assert_int_equal(sifr_engine_evaluate(engine, &batch, &loss, &labelled, &failure),
                         SIFR_FAILED);
        assert_string_equal(failure.message, message);
    }
    right_step(engine, DISTIL);
    sifr_engine_free(engine);
    sifr_model_free(m);
}

/* --- targets --- */

#define FAR_ID "an id of the vocabulary, which is a whole number in [0, 127]"
#define LOGARITHM "the logarithm of a probability, which is a number in [-inf, 0.001]"
#define OF_ORPO "1 of the answer or 0 of the prompt, which is a whole number in [0, 1]"
#define OF_LABEL "the probability of a label, which is a number in [0, 1]"

static const struct {
    kind kind;
    int column;
    float value;
    const char *text, *is; /* of what is not a finite number: NULL */
} wrong[] = {
    {DISTIL, 0, 1e30f, "1e+30", FAR_ID},
    {DISTIL, 3, 2147483648.0f, "2.14748e+09", FAR_ID},
    {DISTIL, 1, WORDS, "128", FAR_ID},
    {DISTIL, 1, -1, "-1", FAR_ID},
    {DISTIL, 2, -3.5f, "-3.5", FAR_ID},
    {DISTIL, 2, 0.5f, "0.5", FAR_ID},
    {DISTIL, 0, NAN, "nan", NULL},
    {DISTIL, 4, 5, "5", LOGARITHM},
    {DISTIL, 7, 0.0011f, "0.0011", LOGARITHM},
    {DISTIL, 6, -INFINITY, "-inf", NULL},
    {SIGMOID, 0, 2, "2", LOGARITHM},
    {ORPO, 0, 2, "2", OF_ORPO},
    {ORPO, 0, 0.5f, "0.5", OF_ORPO},
    {ORPO, 0, -1, "-1", OF_ORPO},
    {MULTILABEL, 1, 1.5f, "1.5", OF_LABEL},
    {MULTILABEL, 2, -0.5f, "-0.5", OF_LABEL},
    {REGRESSION, 2, INFINITY, "inf", NULL},
};

static void refuses_targets(sifr_engine *engine, kind k) {
    numbers n;
    sifr_batch batch = fill(&n, k);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        float *target = &n.targets[WRONG * columns_of[k] + wrong[i].column], kept = *target;
        char message[160];
        if (wrong[i].kind != k) continue;
        snprintf(message, sizeof message, "data: target %s at position %d is not %s", wrong[i].text,
                 WRONG, wrong[i].is ? wrong[i].is : "a finite number");
        *target = wrong[i].value;
        wrong_step(engine, &batch, SIFR_FAILED, message);
        *target = kept;
    }
}

static void same_weights(const sifr_engine *a, const sifr_engine *b) {
    float x[WORDS * WIDTH], y[WORDS * WIDTH];
    OK(sifr_engine_read_weight(a, "table", x, WORDS * WIDTH, &error));
    OK(sifr_engine_read_weight(b, "table", y, WORDS * WIDTH, &error));
    assert_memory_equal(x, y, sizeof x);
}

/* Each between two right steps, which go on as if it had not been. */
static void targets(void **state) {
    (void)state;
    for (kind k = 0; k < KINDS; k++) {
        numbers n;
        sifr_model *m = make_model(k);
        sifr_engine *plain = open_engine(m), *engine = open_engine(m);
        sifr_batch batch = fill(&n, k);
        char missing[100];
        snprintf(missing, sizeof missing,
                 "batch: targets are missing; this model reads %d for each token", columns_of[k]);
        for (int t = 0; t < 2; t++) {
            right_step(plain, k);
            right_step(engine, k);
            refuses_targets(engine, k);
            batch.targets = NULL;
            wrong_step(engine, &batch, SIFR_USAGE, missing);
        }
        same_weights(plain, engine);
        sifr_engine_free(engine);
        sifr_engine_free(plain);
        sifr_model_free(m);
    }
}

/* Of what is distilled by its labels alone; of others it needs targets as a step does. */
static void evaluates_without_targets(void **state) {
    (void)state;
    for (kind k = 0; k < KINDS; k++) {
        numbers n;
        sifr_model *m = make_model(k);
        sifr_engine *engine = open_engine(m);
        sifr_batch batch = fill(&n, k);
        double loss = 0, alone = 0;
        int64_t labelled;
        sifr_error failure = {0};
        OK(sifr_engine_evaluate(engine, &batch, &loss, &labelled, &error));
        batch.targets = NULL;
        sifr_status status = sifr_engine_evaluate(engine, &batch, &alone, &labelled, &failure);
        assert_int_equal(status, k == DISTIL ? SIFR_OK : SIFR_USAGE);
        if (k == DISTIL) assert_true(loss == alone);
        sifr_engine_free(engine);
        sifr_model_free(m);
    }
}

/* --- pairs --- */

static void whole_pairs(void **state) {
    (void)state;
    sifr_model *pairs = make_model(ORPO), *single = make_model(DISTIL);
    for (int64_t sequences = 1; sequences <= 4; sequences++) {
        sifr_settings s = settings_of(sequences);
        sifr_engine *engine = NULL;
        sifr_error failure = {0};
        char message[200];
        snprintf(message, sizeof message,
                 "micro_batch_size: %d, but two sequences, the chosen answer and the rejected one, "
                 "make a loss of sifr_prefer; give an even number",
                 (int)sequences);
        sifr_status status = sifr_engine_create(pairs, &s, &engine, &failure);
        assert_int_equal(status, sequences % 2 ? SIFR_USAGE : SIFR_OK);
        if (sequences % 2) assert_string_equal(failure.message, message);
        sifr_engine_free(engine);
        OK(sifr_engine_create(single, &s, &engine, &error));
        sifr_engine_free(engine);
    }
    sifr_model_free(single);
    sifr_model_free(pairs);
}

/* --- heads --- */

static void other_heads(void **state) {
    (void)state;
    for (kind asked = 0; asked <= ORPO; asked++) {
        for (kind head = MULTILABEL; head <= REGRESSION; head++) {
            sifr_model *m;
            sifr_error failure = {0};
            char message[200];
            snprintf(message, sizeof message,
                     "unit model: %s: %s was called before, whose model ends with sifr_head_loss; "
                     "leave one of them out",
                     head == MULTILABEL ? "head_multilabel" : "head_regression",
                     asked == DISTIL ? "sifr_distil" : "sifr_prefer");
            OK(sifr_model_create(&m, &error));
            ask(m, asked);
            add_head(m, head, add_body(m));
            assert_int_equal(sifr_model_finish(m, &failure), SIFR_USAGE);
            assert_string_equal(failure.message, message);
            sifr_model_free(m);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_labels),
        cmocka_unit_test(targets),
        cmocka_unit_test(evaluates_without_targets),
        cmocka_unit_test(whole_pairs),
        cmocka_unit_test(other_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
