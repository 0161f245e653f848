/* An embedding whose numbers begin behind the first rows of its table (RoBERTa's positions): the
 * same training to the bit as with a table that lacks those rows, which stay as they are; numbers
 * beyond the rows that are left are refused. */
#include "engine/small_model.h"

enum { FIRST = 2, SEQUENCES = 2, LENGTH = 9, WIDTH = 40, TYPES = 3, TOKENS = SEQUENCES * LENGTH };

static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_value rows_of(sifr_model *m, sifr_input input, const char *name, int64_t rows,
                          int64_t first, bool padded) {
    sifr_weight table = sifr_weight_matrix(m, name, first + rows, WIDTH, SIFR_INIT_NORMAL, 0.1);
    return sifr_embedding(m, (sifr_embedding_args){.ids = sifr_input_value(m, input),
                                                   .table = table,
                                                   .first = first,
                                                   .padded = padded,
                                                   .padding = first - 1});
}

static sifr_model *make_model(int64_t first) {
    sifr_model *m;
    OK(sifr_model_create(&m, &error));
    sifr_unit(m, "model");
    sifr_value x = rows_of(m, SIFR_TOKENS, "words", SMALL_WORDS, 0, false);
    x = sifr_add(m, x, rows_of(m, SIFR_POSITIONS, "positions", LENGTH, first, first > 0));
    x = sifr_add(m, x, rows_of(m, SIFR_TOKEN_TYPES, "types", TYPES, first, false));
    sifr_weight head = sifr_weight_matrix(m, "head", SMALL_WORDS, WIDTH, SIFR_INIT_NORMAL, 0.1);
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = head});
    OK(sifr_model_finish(m, &error));
    return m;
}

static sifr_settings settings_of(sifr_precision precision) {
    sifr_settings settings = sifr_settings_defaults();
    settings.micro_batch_size = SEQUENCES;
    settings.seq_length = LENGTH;
    settings.precision = precision;
    settings.optimizer.weight_decay = 0;
    return settings;
}

static const char *const names[] = {"words", "head", "positions", "types"};
static const int64_t numbered[] = {SMALL_WORDS, SMALL_WORDS, LENGTH, TYPES};

/* Rows that have no number are of `unused`. */
static sifr_engine *open_engine(const sifr_model *m, sifr_precision precision, int64_t first,
                                float unused) {
    static float values[(FIRST + SMALL_WORDS) * WIDTH];
    sifr_engine *engine;
    sifr_settings settings = settings_of(precision);
    OK(sifr_engine_create(m, &settings, &engine, &error));
    for (int w = 0; w < 4; w++) {
        int64_t before = w < 2 ? 0 : first, count = (before + numbered[w]) * WIDTH;
        for (int64_t i = 0; i < count; i++) {
            base_random4 r = base_philox((uint64_t)w, (uint64_t)(i - before * WIDTH), 0);
            values[i] = i < before * WIDTH ? unused : (float)(0.4 * base_uniform(r.v[0]) - 0.2);
        }
        OK(sifr_engine_write_weight(engine, names[w], values, (size_t)count, &error));
    }
    return engine;
}

static double train(sifr_engine *engine) {
    int32_t tokens[TOKENS], labels[TOKENS], types[TOKENS];
    sifr_batch batch = {.tokens = tokens, .labels = labels, .token_types = types};
    sifr_step_result result = {0};
    for (int step = 0; step < 3; step++) {
        small_batch(step, TOKENS, tokens, labels);
        for (int i = 0; i < TOKENS; i++) types[i] = (i + step) % TYPES;
        OK(sifr_engine_step(engine, &batch, 1e-2, &result, &error));
        assert_true(result.updated);
    }
    return result.loss;
}

static void same_as_a_shorter_table(void **state) {
    (void)state;
    static float want[SMALL_WORDS * WIDTH], have[(FIRST + SMALL_WORDS) * WIDTH];
    sifr_model *shorter = make_model(0), *longer = make_model(FIRST);
    for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
        sifr_engine *a = open_engine(shorter, (sifr_precision)p, 0, 0);
        sifr_engine *b = open_engine(longer, (sifr_precision)p, FIRST, 0.25f);
        assert_true(train(a) == train(b));
        for (int w = 0; w < 4; w++) {
            size_t count = (size_t)(numbered[w] * WIDTH), before = w < 2 ? 0 : FIRST * WIDTH;
            OK(sifr_engine_read_weight(a, names[w], want, count, &error));
            OK(sifr_engine_read_weight(b, names[w], have, before + count, &error));
            for (size_t i = 0; i < before; i++) assert_true(have[i] == 0.25f);
            assert_memory_equal(have + before, want, count * sizeof *want);
        }
        sifr_engine_free(a);
        sifr_engine_free(b);
    }
    sifr_model_free(shorter);
    sifr_model_free(longer);
}

/* The padding's row, which no number chooses, is 0 in a fresh model. */
static void fresh(void **state) {
    (void)state;
    float values[(FIRST + LENGTH) * WIDTH];
    sifr_model *m = make_model(FIRST);
    sifr_settings settings = settings_of(SIFR_FP32);
    sifr_engine *engine = small_engine(m, &settings);
    OK(sifr_engine_read_weight(engine, "positions", values, (FIRST + LENGTH) * WIDTH, &error));
    for (int i = 0; i < (FIRST + LENGTH) * WIDTH; i++)
        assert_int_equal(values[i] == 0, i / WIDTH == FIRST - 1);
    sifr_engine_free(engine);
    sifr_model_free(m);
}

static void refusals(void **state) {
    (void)state;
    int32_t tokens[TOKENS], labels[TOKENS], types[TOKENS] = {TYPES - 1};
    sifr_batch batch = {.tokens = tokens, .labels = labels, .token_types = types};
    sifr_model *m = make_model(FIRST);
    sifr_engine *engine = open_engine(m, SIFR_FP32, FIRST, 0);
    double sum;
    int64_t labelled;
    small_batch(0, TOKENS, tokens, labels);
    OK(sifr_engine_evaluate(engine, &batch, &sum, &labelled, &error));
    types[5] = TYPES; /* inside the table, but for the rows without a number */
    assert_int_equal(sifr_engine_evaluate(engine, &batch, &sum, &labelled, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "token type 3 at position 5"));
    sifr_engine_free(engine);
    sifr_settings settings = settings_of(SIFR_FP32);
    settings.seq_length = LENGTH + 1;
    assert_int_equal(sifr_engine_create(m, &settings, &engine, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "learned positions for 9 only (positions)"));
    sifr_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_a_shorter_table),
                                       cmocka_unit_test(fresh), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
