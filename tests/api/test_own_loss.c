/* sifr_own_loss: one that is the cross entropy trains as the built-in one, with logits in one chunk
 * and in several; gradients of others against differences of their losses; what a function that
 * fails leaves; what is refused. timeout: 120 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <string.h>

#include "sifr/engine.h"
#include "support/own_losses.h"

enum { WORDS = 300, WIDTH = 24, LENGTH = 40, SEQUENCES = 4, MICRO = 2, STEPS = 3 };
enum { TOKENS = SEQUENCES * LENGTH * MICRO, ROW = 2 * WORDS * (int)sizeof(float) };

static sifr_error error;
static int64_t length = LENGTH; /* of a sequence */

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

typedef struct shape {
    double scale, softcap;
    bool biased, tied;
} shape;

/* A word's vector, a layer, the head. */
static sifr_model *make_model(const shape *s, const sifr_own_loss_args *own) {
    sifr_model *m;
    OK(sifr_model_create(&m, &error));
    if (own) sifr_own_loss(m, *own);
    sifr_unit(m, "body");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.5);
    sifr_weight layer = sifr_weight_matrix(m, "layer", WIDTH, WIDTH, SIFR_INIT_NORMAL, 0.2);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    x = sifr_tanh(m, sifr_linear(m, x, layer, SIFR_NO_WEIGHT));
    sifr_unit(m, "head");
    sifr_head_args args = {.x = x, .weight = table, .scale = s->scale, .softcap = s->softcap};
    if (!s->tied) args.weight = sifr_weight_matrix(m, "head", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.2);
    if (s->biased) args.bias = sifr_weight_vector(m, "bias", WORDS, SIFR_INIT_ONE);
    sifr_head_loss(m, args);
    OK(sifr_model_finish(m, &error));
    return m;
}

static sifr_engine *open_engine(const sifr_model *m, sifr_precision precision) {
    sifr_settings s = sifr_settings_defaults();
    sifr_engine *engine;
    s.micro_batch_size = SEQUENCES, s.seq_length = length, s.gradient_accumulation_steps = MICRO;
    s.precision = precision;
    s.threads = 2;
    s.optimizer = (sifr_optimizer){.type = SIFR_SGD};
    s.gradient_clipping = 0;
    OK(sifr_engine_create(m, &s, &engine, &error));
    OK(sifr_engine_initialise(engine, 3, &error));
    return engine;
}

static sifr_batch batch_of(int step) {
    static int32_t tokens[TOKENS], labels[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 7 + step * 13) % WORDS;
        labels[i] = i % 5 == 2 ? -100 : (i * 11 + 5) % WORDS;
    }
    return (sifr_batch){.tokens = tokens, .labels = labels};
}

/* All weights, end to end. */
static float *weights_of(const sifr_engine *engine, size_t *count) {
    float *out = NULL;
    sifr_weight_facts w = {.size = sizeof w};
    *count = 0;
    for (size_t i = 0; sifr_engine_weight_at(engine, i, &w); i++) {
        size_t elements = (size_t)(w.shape[0] * (w.rank > 1 ? w.shape[1] : 1));
        out = realloc(out, (*count + elements) * sizeof *out);
        OK(sifr_engine_read_weight(engine, w.name, out + *count, elements, &error));
        *count += elements;
    }
    return out;
}

static float *train(const shape *s, sifr_precision precision, const sifr_own_loss_args *own,
                    double losses[STEPS], size_t *count) {
    sifr_model *m = make_model(s, own);
    sifr_engine *engine = open_engine(m, precision);
    for (int step = 0; step < STEPS; step++) {
        sifr_batch batch = batch_of(step);
        sifr_step_result result;
        OK(sifr_engine_step(engine, &batch, 2, &result, &error));
        assert_true(result.updated);
        losses[step] = result.loss;
    }
    float *out = weights_of(engine, count);
    sifr_engine_free(engine);
    sifr_model_free(m);
    return out;
}

static double distance(const float *a, const float *b, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static void compare(const shape *s, sifr_precision precision, int rows, const double *want,
                    const float *like) {
    static const double near[] = {[SIFR_FP32] = 2e-6, [SIFR_BF16] = 2e-3, [SIFR_FP16] = 1e-3};
    own_loss own = {.kind = OWN_CROSS_ENTROPY};
    sifr_own_loss_args args = {own_compute, &own, rows ? rows * (int64_t)ROW + 8 : 0};
    double have[STEPS];
    size_t count;
    int64_t whole = rows >= 64 ? 64 : rows >= 8 ? 8 : rows, labelled = SEQUENCES * length * 4 / 5;
    float *weights = train(s, precision, &args, have, &count);
    assert_int_equal(own.rows, STEPS * MICRO * labelled);
    assert_int_equal(own.most_rows, whole ? whole : labelled);
    for (int step = 0; step < STEPS; step++)
        assert_true(fabs(have[step] - want[step]) < near[precision] * want[step]);
    if (distance(weights, like, count) > near[precision])
        fail_msg("precision %d, %d rows: weights differ by %g", precision, rows,
                 distance(weights, like, count));
    free(weights);
}

/* With many rows, and with so few that the kernel goes another way. */
static void is_the_built_in_one(void **state) {
    static const shape shapes[] = {{.tied = true}, {0.7, 3, true, false}, {.biased = true}};
    static const int rows[] = {0, 70, 9, 3}; /* of a chunk; 0: all */
    static const int64_t lengths[] = {LENGTH, 25, 25};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
            double want[STEPS];
            size_t count;
            length = lengths[(i + (size_t)p) % 3];
            float *like = train(&shapes[i], (sifr_precision)p, NULL, want, &count);
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                compare(&shapes[i], (sifr_precision)p, rows[r], want, like);
            free(like);
        }
    }
    length = LENGTH;
}

/* --- gradients --- */

static double evaluate(sifr_engine *engine, int64_t *labelled) {
    double sum = 0, loss;
    for (int j = 0; j < MICRO; j++) {
        sifr_batch batch = batch_of(0);
        batch.tokens += j * SEQUENCES * LENGTH, batch.labels += j * SEQUENCES * LENGTH;
        int64_t count;
        OK(sifr_engine_evaluate(engine, &batch, &loss, &count, &error));
        sum += loss;
        *labelled = (j ? *labelled : 0) + count;
    }
    return sum;
}

/* The derivative of the mean loss by one element of a weight. */
static double difference(sifr_engine *engine, const char *name, int64_t at) {
    const float step = 1.0f / 64;
    float value, moved;
    double sum = 0;
    int64_t labelled = 1;
    OK(sifr_engine_read_piece(engine, name, at, &value, 1, &error));
    for (int sign = -1; sign <= 1; sign += 2) {
        moved = value + (float)sign * step;
        OK(sifr_engine_write_piece(engine, name, at, &moved, 1, &error));
        sum += sign * evaluate(engine, &labelled);
    }
    OK(sifr_engine_write_piece(engine, name, at, &value, 1, &error));
    return sum / (2 * (double)step) / (double)labelled;
}

static void check_gradients(own_kind kind, const shape *s) {
    static const char *const names[] = {"table", "layer", "head", "bias"};
    enum { PLACES = 6 };
    own_loss own = {.kind = kind};
    sifr_own_loss_args args = {own_compute, &own, 50 * (int64_t)ROW};
    sifr_model *m = make_model(s, &args);
    sifr_engine *engine = open_engine(m, SIFR_FP32);
    double want[4][PLACES];
    float before[4][PLACES], after;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < PLACES; i++) {
            want[n][i] = difference(engine, names[n], i * 31);
            OK(sifr_engine_read_piece(engine, names[n], i * 31, &before[n][i], 1, &error));
        }
    assert_true(own.evaluations == own.calls && own.calls > 0);
    sifr_batch batch = batch_of(0);
    sifr_step_result result;
    int64_t labelled;
    double sum = evaluate(engine, &labelled);
    OK(sifr_engine_step(engine, &batch, 1, &result, &error));
    assert_true(fabs(result.loss - sum / (double)labelled) < 1e-12 * result.loss);
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < PLACES; i++) {
            OK(sifr_engine_read_piece(engine, names[n], i * 31, &after, 1, &error));
            double have = (double)before[n][i] - (double)after;
            if (fabs(have - want[n][i]) > 2e-6 + 0.01 * fabs(want[n][i]))
                fail_msg("loss %d, %s %d: gradient %g, by differences %g", kind, names[n], i * 31,
                         have, want[n][i]);
        }
    sifr_engine_free(engine);
    sifr_model_free(m);
}

static void gradients_are_those_of_the_losses(void **state) {
    (void)state;
    check_gradients(OWN_SMOOTHED, &(shape){.biased = true});
    check_gradients(OWN_FOCAL, &(shape){0.7, 2, true, false});
}

/* --- failures --- */

static void expect_nothing_changed(sifr_engine *engine, const float *weights, size_t count) {
    size_t have;
    float *now = weights_of(engine, &have);
    assert_int_equal(have, count);
    assert_memory_equal(now, weights, count * sizeof *now);
    free(now);
}

typedef struct within {
    sifr_engine *engine;
    int refused;
} within;

/* Calls its engine, and goes on as if it had not. */
static sifr_status call_the_engine(void *user, sifr_loss_chunk *chunk, sifr_error *said) {
    within *w = user;
    (void)said;
    float value = 0;
    double sum;
    int64_t labelled;
    sifr_step_result result;
    sifr_batch batch = batch_of(0);
    sifr_error own = {0};
    w->refused += sifr_engine_step(w->engine, &batch, 1, &result, &own) == SIFR_USAGE;
    w->refused += sifr_engine_evaluate(w->engine, &batch, &sum, &labelled, &own) == SIFR_USAGE;
    w->refused += sifr_engine_write_piece(w->engine, "table", 0, &value, 1, &own) == SIFR_USAGE;
    w->refused += sifr_engine_read_piece(w->engine, "table", 0, &value, 1, &own) == SIFR_USAGE;
    assert_string_equal(own.message, "engine: it is in use, by the step or the evaluation whose "
                                     "loss this call comes from; call it when that has ended");
    chunk->loss = 1;
    return SIFR_OK;
}

static void a_function_that_calls_its_engine(void **state) {
    (void)state;
    within w = {0};
    sifr_own_loss_args args = {.loss = call_the_engine, .user = &w};
    sifr_model *m = make_model(&(shape){.tied = true}, &args);
    sifr_step_result result;
    int64_t labelled;
    sifr_batch batch = batch_of(0);
    w.engine = open_engine(m, SIFR_FP32);
    OK(sifr_engine_step(w.engine, &batch, 1, &result, &error));
    assert_true(w.refused > 0 && w.refused % 4 == 0);
    int stepped = w.refused;
    (void)evaluate(w.engine, &labelled);
    assert_true(w.refused > stepped && w.refused % 4 == 0);
    assert_int_equal(sifr_engine_steps(w.engine), 1);
    sifr_engine_free(w.engine);
    sifr_model_free(m);
}

/* What it says comes out of the step; the next step is as if it had not been. */
static void a_function_may_fail(void **state) {
    static const struct {
        sifr_status with, as;
    } kinds[] = {{SIFR_FAILED, SIFR_FAILED},
                 {SIFR_USAGE, SIFR_USAGE},
                 {SIFR_NO_MEMORY, SIFR_NO_MEMORY},
                 {SIFR_LOST_RANK, SIFR_FAILED}, /* no rank is lost by it */
                 {(sifr_status)77, SIFR_FAILED}};
    shape s = {.tied = true};
    double want[STEPS];
    size_t count, kept;
    (void)state;
    own_loss steady = {.kind = OWN_FOCAL}, own = {.kind = OWN_FOCAL};
    sifr_own_loss_args args = {own_compute, &steady, 50 * (int64_t)ROW};
    float *like = train(&s, SIFR_FP16, &args, want, &count);
    args.user = &own;
    sifr_model *m = make_model(&s, &args);
    sifr_engine *engine = open_engine(m, SIFR_FP16);
    for (int step = 0; step < STEPS; step++) {
        sifr_batch batch = batch_of(step);
        sifr_step_result result;
        double sum, scale = sifr_engine_loss_scale(engine);
        int64_t labelled;
        float *before = weights_of(engine, &kept);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            own.fails_at = own.calls + 2, own.with = kinds[i].with;
            assert_int_equal(sifr_engine_step(engine, &batch, 2, &result, &error), kinds[i].as);
            assert_string_equal(error.message, "own_loss: too hot");
            own.fails_at = own.calls + 1;
            assert_int_equal(sifr_engine_evaluate(engine, &batch, &sum, &labelled, &error),
                             kinds[i].as);
            assert_int_equal(sifr_engine_steps(engine), step);
            assert_true(sifr_engine_loss_scale(engine) == scale);
            expect_nothing_changed(engine, before, kept);
        }
        OK(sifr_engine_step(engine, &batch, 2, &result, &error));
        assert_true(result.updated && result.loss == want[step]);
        free(before);
    }
    expect_nothing_changed(engine, like, count);
    free(like);
    sifr_engine_free(engine);
    sifr_model_free(m);
}

static sifr_status forgets(void *user, sifr_loss_chunk *chunk, sifr_error *why) {
    (void)user, (void)chunk, (void)why;
    return SIFR_OK;
}

static sifr_status says_nothing(void *user, sifr_loss_chunk *chunk, sifr_error *why) {
    (void)user, (void)chunk, (void)why;
    return SIFR_FAILED;
}

static sifr_status is_infinite(void *user, sifr_loss_chunk *chunk, sifr_error *why) {
    (void)why;
    chunk->loss = user ? 1 : (double)INFINITY;
    if (user && chunk->gradient) chunk->gradient[chunk->words] = NAN;
    return SIFR_OK;
}

/* A loss that is not set, a loss and a gradient that are not finite; and no reason. */
static void changes_nothing(void **state) {
    shape s = {.tied = true};
    int of_gradient = 1;
    const sifr_own_loss_args losses[] = {{.loss = forgets},
                                         {.loss = is_infinite},
                                         {.loss = is_infinite, .user = &of_gradient},
                                         {.loss = says_nothing}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        size_t count;
        sifr_step_result result = {.updated = true};
        sifr_batch batch = batch_of(0);
        sifr_model *m = make_model(&s, &losses[i]);
        sifr_engine *engine = open_engine(m, SIFR_FP32);
        float *before = weights_of(engine, &count);
        sifr_status status = sifr_engine_step(engine, &batch, 1, &result, &error);
        assert_int_equal(status, i < 3 ? SIFR_OK : SIFR_FAILED);
        if (status)
            assert_string_equal(error.message, "own_loss: the function failed, and gave no reason");
        if (!status) assert_false(result.updated);
        expect_nothing_changed(engine, before, count);
        free(before);
        sifr_engine_free(engine);
        sifr_model_free(m);
    }
}

/* --- memory: all of it is the engine's, taken when it is made --- */

typedef struct looker {
    int64_t chunks;
    const char *low, *high;
} looker;

static void widen(looker *l, const void *at, int64_t bytes) {
    const char *from = at;
    if (!l->low || from < l->low) l->low = from;
    if (from + bytes > l->high) l->high = from + bytes;
}

static sifr_status look(void *user, sifr_loss_chunk *chunk, sifr_error *why) {
    looker *l = user;
    int64_t bytes = chunk->rows * chunk->words * (int64_t)sizeof(float);
    (void)why;
    l->chunks++;
    widen(l, chunk->logits, bytes);
    widen(l, chunk->labels, chunk->rows * (int64_t)sizeof(int32_t));
    if (chunk->gradient) widen(l, chunk->gradient, bytes);
    if (chunk->gradient && llabs(chunk->gradient - chunk->logits) * 4 < bytes) return SIFR_FAILED;
    chunk->loss = 1;
    return chunk->size == sizeof *chunk && chunk->words == WORDS ? SIFR_OK : SIFR_FAILED;
}

/* What the plan has more than that of the labels' cross entropy follows from the size of a chunk.
 */
static void memory_is_planned(void **state) {
    shape s = {.tied = true};
    int64_t bytes[3];
    static const int64_t rows[] = {64, 128, 192};
    (void)state;
    for (int i = 0; i < 3; i++) {
        looker l = {0};
        sifr_own_loss_args args = {look, &l, rows[i] * ROW};
        sifr_model *m = make_model(&s, &args);
        sifr_engine *engine = open_engine(m, SIFR_FP32);
        sifr_batch batch = batch_of(0);
        sifr_step_result result;
        OK(sifr_engine_step(engine, &batch, 0, &result, &error)); /* oneDNN's own is taken */
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        int64_t chunks = l.chunks;
        OK(sifr_engine_step(engine, &batch, 0, &result, &error));
        assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < before + 16 * ROW);
        assert_int_equal(l.chunks - chunks, i < 1 ? 4 : 2);
        bytes[i] = sifr_engine_planned_bytes(engine);
        assert_true(l.high - l.low <= bytes[i]);
        sifr_engine_free(engine);
        sifr_model_free(m);
    }
    assert_true(bytes[1] >= bytes[0] + 64 * ROW);
    assert_true(bytes[2] >= bytes[1] + 64 * ROW);
}

/* --- refusals --- */

static void expect_refused(sifr_model *m, const char *message) {
    shape s = {.tied = true};
    sifr_unit(m, "unit");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.5);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = table, .scale = s.scale});
    assert_int_equal(sifr_model_finish(m, &error), SIFR_USAGE);
    assert_string_equal(error.message, message);
    sifr_model_free(m);
}

static sifr_model *begin(void) {
    sifr_model *m;
    OK(sifr_model_create(&m, &error));
    return m;
}

static void is_refused(void **state) {
    const sifr_own_loss_args good = {.loss = forgets};
    (void)state;
    sifr_model *m = begin();
    sifr_own_loss(m, (sifr_own_loss_args){.memory = 1});
    expect_refused(m, "sifr_own_loss: loss is NULL; give a function");
    m = begin();
    sifr_own_loss(m, (sifr_own_loss_args){.loss = forgets, .memory = -1});
    expect_refused(m, "sifr_own_loss: memory -1; give 0 or more bytes");
    m = begin();
    sifr_distil(m, (sifr_distil_args){4, 1, 0.5});
    sifr_own_loss(m, good);
    expect_refused(m, "sifr_own_loss: sifr_distil was called before; leave one of them out");
    m = begin();
    sifr_own_loss(m, good);
    sifr_prefer(m, SIFR_PREFERENCE_SIGMOID, 0.1);
    expect_refused(m, "sifr_prefer: sifr_own_loss was called before; leave one of them out");
    m = begin();
    sifr_own_loss(m, good);
    sifr_unit(m, "unit");
    sifr_weight w = sifr_weight_matrix(m, "w", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.5);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = w});
    sifr_head_regression(
        m, (sifr_head_targets_args){.x = x, .targets = sifr_targets(m, WORDS), .weight = w});
    assert_int_equal(sifr_model_finish(m, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "sifr_own_loss"));
    sifr_model_free(m);
    sifr_settings s = sifr_settings_defaults();
    sifr_engine *engine;
    m = make_model(&(shape){.tied = true},
                   &(sifr_own_loss_args){.loss = forgets, .memory = ROW - 1});
    s.seq_length = LENGTH;
    assert_int_equal(sifr_engine_create(m, &s, &engine, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message,
                           "own_loss: memory 2399 holds no row of logits and gradient, which takes "
                           "2400 bytes"));
    sifr_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_the_built_in_one),
                                       cmocka_unit_test(gradients_are_those_of_the_losses),
                                       cmocka_unit_test(a_function_that_calls_its_engine),
                                       cmocka_unit_test(a_function_may_fail),
                                       cmocka_unit_test(changes_nothing),
                                       cmocka_unit_test(memory_is_planned),
                                       cmocka_unit_test(is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
