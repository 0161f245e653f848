/* Heads whose targets are numbers of a batch: losses and gradients against a reference in double
 * precision, the same bits however a step is cut and on any ranks, evaluation with logits, and what
 * a batch may not have.
 * in test_asan */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "infer/inference.h"
#include "plan/queries.h"
#include "support/comm_threads.h"

enum { WORDS = 41, WIDTH = 40, COLUMNS = 3, WEIGHTS = 5, MOST_RANKS = 4 };
enum { SEQUENCES = 3, LENGTH = 7, TOKENS = SEQUENCES * LENGTH, GLOBAL = 4, STEPS = 3 };
enum { ELEMENTS = WORDS * WIDTH + WIDTH * WIDTH + WIDTH + COLUMNS * WIDTH + COLUMNS };
enum { LOGITS = TOKENS * COLUMNS };

#define OK(call)                                                                                   \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static const char *const names[WEIGHTS] = {"table", "weight", "bias", "head", "head_bias"};
static const size_t sizes[WEIGHTS] = {WORDS * WIDTH, WIDTH *WIDTH, WIDTH, COLUMNS *WIDTH, COLUMNS};

static void add_head(sifr_model *m, sifr_value x, bool multilabel) {
    sifr_weight w = sifr_weight_matrix(m, "head", COLUMNS, WIDTH, SIFR_INIT_NORMAL, 0.2);
    sifr_head_targets_args args = {.x = x,
                                   .targets = sifr_targets(m, COLUMNS),
                                   .weight = w,
                                   .bias =
                                       sifr_weight_vector(m, "head_bias", COLUMNS, SIFR_INIT_ZERO)};
    if (multilabel)
        sifr_head_multilabel(m, args);
    else
        sifr_head_regression(m, args);
}

static sifr_status make_model(bool multilabel, sifr_model **out, sifr_error *error) {
    BASE_TRY(sifr_model_create(out, error));
    sifr_model *m = *out;
    sifr_unit(m, "embed");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.5);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_unit(m, "body");
    sifr_weight w = sifr_weight_matrix(m, "weight", WIDTH, WIDTH, SIFR_INIT_NORMAL, 0.2);
    x = sifr_tanh(m, sifr_linear(m, x, w, sifr_weight_vector(m, "bias", WIDTH, SIFR_INIT_ZERO)));
    sifr_unit(m, "head");
    add_head(m, x, multilabel);
    return sifr_model_finish(m, error);
}

typedef struct numbers {
    int32_t tokens[GLOBAL * TOKENS], labels[GLOBAL * TOKENS];
    float targets[GLOBAL * LOGITS];
} numbers;

/* Micro batch `micro_batch` of a step. Rows without a label have what would spoil all. */
static void make_micro_batch(numbers *n, int at, int32_t micro_batch, int step) {
    for (int i = 0; i < TOKENS; i++) {
        base_random4 r = base_philox(7, (uint64_t)(micro_batch * TOKENS + i), (uint64_t)step);
        int token = at * TOKENS + i;
        n->tokens[token] = (int32_t)(r.v[0] % WORDS);
        n->labels[token] = r.v[1] % 3 == 0 ? (int32_t)(r.v[1] % 1000) : -100;
        for (int c = 0; c < COLUMNS; c++) {
            float target = (float)((r.v[2] >> (8 * c)) % 5) / 4;
            bool spoilt = n->labels[token] < 0;
            n->targets[token * COLUMNS + c] = spoilt ? c ? NAN : 1e30f : target;
        }
    }
}

static sifr_batch batch_of(const numbers *n) {
    return (sifr_batch){.tokens = n->tokens, .labels = n->labels, .targets = n->targets};
}

static sifr_settings settings_of(sifr_precision precision) {
    sifr_settings settings = sifr_settings_defaults();
    settings.precision = precision;
    settings.micro_batch_size = SEQUENCES;
    settings.seq_length = LENGTH;
    settings.gradient_clipping = 0;
    settings.threads = 1;
    settings.fp16.loss_scale = 256;
    return settings;
}

/* ---- the reference: table, tanh(linear), head; weights end to end ---- */

static double row_loss(const double *logits, const float *targets, bool multilabel) {
    double sum = 0;
    for (int c = 0; c < COLUMNS; c++) {
        double l = logits[c], t = (double)targets[c];
        sum += multilabel ? fmax(l, 0) + log1p(exp(-fabs(l))) - l * t : (l - t) * (l - t);
    }
    return sum / COLUMNS;
}

static void row_logits(const double *weights, int32_t token, double *out) {
    const double *w = weights + WORDS * WIDTH, *b = w + WIDTH * WIDTH, *u = b + WIDTH;
    const double *x = weights + token * WIDTH;
    for (int c = 0; c < COLUMNS; c++) out[c] = u[COLUMNS * WIDTH + c];
    for (int o = 0; o < WIDTH; o++) {
        double z = b[o];
        for (int i = 0; i < WIDTH; i++) z += w[o * WIDTH + i] * x[i];
        for (int c = 0; c < COLUMNS; c++) out[c] += u[c * WIDTH + o] * tanh(z);
    }
}

/* The mean over the labelled rows of one micro batch. */
static double reference_loss(const double *weights, const numbers *n, bool multilabel) {
    double sum = 0, logits[COLUMNS];
    int labelled = 0;
    for (int i = 0; i < TOKENS; i++) {
        if (n->labels[i] < 0) continue;
        row_logits(weights, n->tokens[i], logits);
        sum += row_loss(logits, n->targets + i * COLUMNS, multilabel);
        labelled++;
    }
    return sum / labelled;
}

/* ---- one rank ---- */

/* What the optimizer's instruction of the weight's unit read. */
static const float *gradient_of(const sifr_engine *engine, size_t index) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_UPDATE || in->unit != w->unit) continue;
        const plan_operand *operand = &s->operands[in->first_operand];
        const char *base = engine_buffer(engine->trainer, operand->buffer);
        return (const float *)(const void *)(base + operand->offset) + w->offset;
    }
    fail_msg("no update of unit %d", w->unit);
    return NULL;
}

static void read_weights(const sifr_engine *engine, double *out) {
    static float values[WORDS * WIDTH];
    for (size_t w = 0, at = 0; w < WEIGHTS; at += sizes[w++]) {
        OK(sifr_engine_read_weight(engine, names[w], values, sizes[w], &error));
        for (size_t i = 0; i < sizes[w]; i++) out[at + i] = (double)values[i];
    }
}

static void check_gradients(const sifr_engine *engine, double *weights, const numbers *n,
                            bool multilabel) {
    for (size_t w = 0, at = 0; w < WEIGHTS; at += sizes[w++]) {
        const float *have = gradient_of(engine, w);
        double largest = 0, worst = 0, step = 1e-5;
        for (size_t i = 0; i < sizes[w]; i++) {
            double *weight = &weights[at + i], kept = *weight, sides[2];
            for (int side = 0; side < 2; side++) {
                *weight = side ? kept + step : kept - step;
                sides[side] = reference_loss(weights, n, multilabel);
            }
            *weight = kept;
            double want = (sides[1] - sides[0]) / (2 * step);
            largest = fmax(largest, fabs(want));
            worst = fmax(worst, fabs((double)have[i] - want));
        }
        assert_true(largest > 1e-3);
        if (!(worst <= 1e-5 * largest)) fail_msg("%s: off by %g of %g", names[w], worst, largest);
    }
}

/* A step without a rate, so that gradients can be compared with the weights that made them. */
static void reference(void **state) {
    (void)state;
    static double weights[ELEMENTS];
    static numbers n;
    for (int multilabel = 0; multilabel < 2; multilabel++) {
        sifr_settings settings = settings_of(SIFR_FP32);
        sifr_model *m;
        sifr_engine *engine;
        sifr_step_result result;
        double sum;
        int64_t labelled, count = 0;
        OK(make_model(multilabel, &m, &error));
        OK(sifr_engine_create(m, &settings, &engine, &error));
        OK(sifr_engine_initialise(engine, 3, &error));
        read_weights(engine, weights);
        make_micro_batch(&n, 0, 0, multilabel);
        for (int i = 0; i < TOKENS; i++) count += n.labels[i] >= 0;
        sifr_batch batch = batch_of(&n);
        double want = reference_loss(weights, &n, multilabel);
        OK(sifr_engine_evaluate(engine, &batch, &sum, &labelled, &error));
        assert_true(fabs(sum / (double)labelled - want) < 1e-6 * want);
        OK(sifr_engine_step(engine, &batch, 0, &result, &error));
        assert_true(result.updated);
        assert_true(count > 3);
        assert_int_equal(result.labelled, count);
        assert_true(fabs(result.loss - want) < 1e-6 * want);
        check_gradients(engine, weights, &n, multilabel);
        sifr_engine_free(engine);
        sifr_model_free(m);
    }
}

static void no_labels(void **state) {
    (void)state;
    static numbers n;
    sifr_settings settings = settings_of(SIFR_FP32);
    sifr_model *m;
    sifr_engine *engine;
    sifr_step_result result;
    OK(make_model(true, &m, &error));
    OK(sifr_engine_create(m, &settings, &engine, &error));
    OK(sifr_engine_initialise(engine, 3, &error));
    make_micro_batch(&n, 0, 0, 0);
    sifr_batch batch = batch_of(&n);
    for (int i = 0; i < TOKENS; i++) n.labels[i] = -100;
    OK(sifr_engine_step(engine, &batch, 1e-2, &result, &error));
    assert_true(!result.updated);
    assert_true(result.labelled == 0);
    assert_true(result.loss == 0);
    sifr_engine_free(engine);
    sifr_model_free(m);
}

static void refusals(void **state) {
    (void)state;
    static numbers n;
    sifr_settings settings = settings_of(SIFR_FP32);
    sifr_model *m;
    sifr_engine *engine;
    sifr_step_result result;
    sifr_error failure = {0};
    OK(make_model(false, &m, &error));
    OK(sifr_engine_create(m, &settings, &engine, &error));
    make_micro_batch(&n, 0, 0, 0);
    sifr_batch batch = batch_of(&n);
    batch.targets = NULL;
    assert_int_equal(sifr_engine_step(engine, &batch, 1e-2, &result, &failure), SIFR_USAGE);
    assert_string_equal(failure.message,
                        "batch: targets are missing; this model reads 3 for each token");
    batch.targets = n.targets;
    n.labels[4] = 0;
    n.targets[4 * COLUMNS] = 1, n.targets[4 * COLUMNS + 1] = 1, n.targets[4 * COLUMNS + 2] = NAN;
    assert_int_equal(sifr_engine_step(engine, &batch, 1e-2, &result, &failure), SIFR_FAILED);
    assert_non_null(strstr(failure.message, "at position 4 is not a finite number"));
    assert_int_equal(sifr_engine_steps(engine), 0);
    sifr_engine_free(engine);
    sifr_model_free(m);
}

/* ---- the same bits ---- */

typedef struct variant {
    bool multilabel, unit_order, recompute, tiles, separate;
    int32_t ranks, threads;
    int stage;
    sifr_precision precision;
} variant;

typedef struct outcome {
    float weights[ELEMENTS], logits[LOGITS];
    double loss[STEPS], evaluated[2];
    int64_t labelled[2];
} outcome;

typedef struct rank_run {
    const variant *v;
    comm_threads *world;
    int32_t rank;
    outcome *out; /* rank 0's */
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

static sifr_status train(const rank_run *r, sifr_engine *engine, numbers *n, sifr_error *error) {
    const plan_settings *settings = &engine->training->settings;
    sifr_step_result result;
    sifr_batch batch = batch_of(n);
    for (int step = 0; step < STEPS; step++) {
        for (int32_t j = 0; j < GLOBAL / r->v->ranks; j++)
            make_micro_batch(n, j, plan_global_micro_batch(settings, r->rank, j), step);
        BASE_TRY(sifr_engine_step(engine, &batch, 1e-2, &result, error));
        if (!result.updated) return base_fail(error, SIFR_FAILED, "step %d: no update", step);
        if (r->rank == 0) r->out->loss[step] = result.loss;
    }
    return SIFR_OK;
}

/* The same micro batch on all ranks, with and without logits. */
static sifr_status evaluate(const rank_run *r, sifr_engine *engine, numbers *n, sifr_error *error) {
    static _Thread_local outcome own;
    make_micro_batch(n, 0, 99, 0);
    sifr_batch batch = batch_of(n);
    BASE_TRY(engine_evaluate_logits(engine, &batch, &own.evaluated[0], &own.labelled[0], own.logits,
                                    error));
    BASE_TRY(sifr_engine_evaluate(engine, &batch, &own.evaluated[1], &own.labelled[1], error));
    if (r->rank != 0) return SIFR_OK;
    memcpy(r->out->evaluated, own.evaluated, sizeof own.evaluated);
    memcpy(r->out->labelled, own.labelled, sizeof own.labelled);
    memcpy(r->out->logits, own.logits, sizeof own.logits);
    return SIFR_OK;
}

static sifr_status run_engine(const rank_run *r, sifr_engine *engine, sifr_error *error) {
    static _Thread_local numbers n;
    static _Thread_local float weights[ELEMENTS];
    BASE_TRY(sifr_engine_initialise(engine, 5, error));
    BASE_TRY(train(r, engine, &n, error));
    BASE_TRY(evaluate(r, engine, &n, error));
    for (size_t w = 0, at = 0; w < WEIGHTS; at += sizes[w++])
        BASE_TRY(sifr_engine_read_weight(engine, names[w], weights + at, sizes[w], error));
    if (r->rank == 0) memcpy(r->out->weights, weights, sizeof weights);
    return SIFR_OK;
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    const variant *v = r->v;
    sifr_settings settings = settings_of(v->precision);
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    device *dev = NULL;
    sifr_error error = {0};
    settings.gradient_accumulation_steps = GLOBAL / v->ranks;
    settings.step_order = v->unit_order ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
    settings.recompute = v->recompute ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
    settings.tile_tokens = v->tiles ? 1024 : 0;
    settings.zero.stage = v->stage;
    settings.gradient_clipping = 1;
    comm_group *group = comm_threads_group(r->world, r->rank);
    sifr_status status = make_model(v->multilabel, &model, &error);
    if (status == SIFR_OK)
        status =
            (v->separate ? device_open_separate : device_open_cpu)(v->threads, NULL, &dev, &error);
    if (status == SIFR_OK) status = engine_create_on(dev, model, &settings, group, &engine, &error);
    if (status == SIFR_OK) status = run_engine(r, engine, &error);
    if (status != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    return NULL;
}

static void run(const variant *v, outcome *out) {
    rank_run runs[MOST_RANKS] = {0};
    pthread_t threads[MOST_RANKS];
    comm_threads *world = comm_threads_create(v->ranks);
    memset(out, 0, sizeof *out);
    for (int32_t r = 0; r < v->ranks; r++) {
        runs[r] = (rank_run){.v = v, .world = world, .rank = r, .out = out};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < v->ranks; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < v->ranks; r++) {
        if (runs[r].failure[0]) fail_msg("rank %d: %s", r, runs[r].failure);
    }
    comm_threads_free(world);
}

static void expect_same(const outcome *want, const variant *v) {
    static outcome have;
    run(v, &have);
    if (memcmp(&have, want, sizeof have) != 0)
        fail_msg("%d ranks, stage %d, %s order, precision %d%s%s%s: other bits", v->ranks, v->stage,
                 v->unit_order ? "unit" : "batch", v->precision, v->recompute ? ", recomputed" : "",
                 v->tiles ? ", in tiles" : "", v->separate ? ", separate memory" : "");
}

/* Logits have the loss of the same evaluation, which is that without them. */
static void check_logits(const outcome *o, const variant *v) {
    static numbers n;
    double sum = 0, bound = v->precision == SIFR_FP32 ? 1e-5 : 3e-2;
    int64_t labelled = 0;
    make_micro_batch(&n, 0, 99, 0);
    for (int i = 0; i < TOKENS; i++) {
        double logits[COLUMNS];
        if (n.labels[i] < 0) continue;
        for (int c = 0; c < COLUMNS; c++) logits[c] = (double)o->logits[i * COLUMNS + c];
        sum += row_loss(logits, n.targets + i * COLUMNS, v->multilabel);
        labelled++;
    }
    assert_true(o->evaluated[0] == o->evaluated[1]);
    assert_true(o->labelled[0] == labelled);
    assert_int_equal(o->labelled[1], labelled);
    if (!(fabs(sum - o->evaluated[0]) <= bound * sum))
        fail_msg("the loss is %.9g, of the logits %.9g", o->evaluated[0], sum);
    for (int i = 0; i < LOGITS; i++) assert_true(isfinite(o->logits[i])); /* of all rows */
}

static void same_bits(void **state) {
    (void)state;
    static outcome want;
    for (int p = 0; p < 3; p++) {
        variant one = {
            .multilabel = p % 2, .ranks = 1, .threads = 1, .precision = (sifr_precision)p};
        run(&one, &want);
        check_logits(&want, &one);
        assert_true(want.loss[2] != want.loss[0]);
        for (int i = 0; i < 5; i++) {
            variant v = one;
            v.threads = i == 0 ? 3 : 1;
            v.recompute = i >= 1, v.tiles = i >= 2, v.unit_order = i >= 3, v.separate = i == 4;
            expect_same(&want, &v);
        }
        for (int i = 0; i < 8; i++) {
            variant v = one;
            v.ranks = i < 4 ? 2 : 4, v.stage = i % 4;
            v.unit_order = i % 2, v.recompute = i % 3 == 0, v.separate = i == 7;
            expect_same(&want, &v);
        }
    }
}

static void fill(const void *user, size_t weight, int64_t first, int64_t count, float *out) {
    model_initial_values(user, weight, 5, first, count, out);
}

/* Logits beside the loss, and alone. */
static void inference(void **state) {
    (void)state;
    static numbers n;
    static float logits[2][LOGITS];
    sifr_model *m;
    double sum;
    int64_t labelled;
    OK(make_model(true, &m, &error));
    make_micro_batch(&n, 0, 1, 0);
    sifr_batch batch = batch_of(&n);
    for (int i = 0; i < 2; i++) {
        infer_options options = {.mode = i ? PLAN_LOGITS : PLAN_EVALUATE,
                                 .logits = true,
                                 .sequences = SEQUENCES,
                                 .length = LENGTH,
                                 .threads = 1};
        infer_inference *inference;
        OK(infer_create(m, &options, &inference, &error));
        assert_int_equal(infer_words(inference), COLUMNS);
        OK(infer_fill(inference, fill, m, &error));
        if (i) {
            sifr_batch tokens = {.tokens = n.tokens};
            OK(infer_logits(inference, &tokens, logits[i], &error));
        } else {
            OK(infer_loss(inference, &batch, &sum, &labelled, logits[i], &error));
        }
        infer_free(inference);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    double expected = 0;
    for (int i = 0; i < TOKENS; i++) {
        double row[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) row[c] = (double)logits[0][i * COLUMNS + c];
        if (n.labels[i] >= 0) expected += row_loss(row, n.targets + i * COLUMNS, true);
    }
    assert_true(labelled > 0);
    assert_true(fabs(sum - expected) < 1e-5 * expected);
    sifr_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference), cmocka_unit_test(no_labels),
                                       cmocka_unit_test(refusals), cmocka_unit_test(same_bits),
                                       cmocka_unit_test(inference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
