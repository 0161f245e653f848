/* Training over ranks against PyTorch: twenty steps of eight micro batches at 1, 2 and 4 ranks and
 * every stage, in fp32 and bf16, as close as one rank comes (tests/golden/README.md:
 * make_steps.py). Ranks are threads here; started by an MPI launcher the program is one of real
 * ranks, and goes through all stages at their number.
 *
 * label: full, not under sanitizers: test_zero runs the same paths there, in less time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "comm/launcher.h"
#include "engine/engine_private.h"
#include "formats/safetensors/safetensors.h"
#include "plan/queries.h"
#include "support/comm_threads.h"
#include "support/step_case.h"

enum { STEPS = 20, MICRO_BATCHES = 8, RANKS = 4 };

/* What make_steps.py wrote of one model. */
typedef struct expected {
    const char *name;
    char folder[BASE_PATH_LENGTH];
    json_t *json;
    formats_safetensors file;
    int64_t length, stride;
    const int32_t *tokens, *labels; /* STEPS x MICRO_BATCHES x length */
} expected;

typedef struct variant {
    const expected *want;
    sifr_precision precision;
    int32_t ranks;
    int stage;
    bool unit_order;
} variant;

/* How far a run is from PyTorch's: the largest relative errors over the steps; of the updates, the
 * difference in norm over that of PyTorch's update, and what the tensors' norms and sums miss. */
typedef struct errors {
    double loss, norm, update, totals;
} errors;

typedef struct rank_run {
    const variant *v;
    comm_group *group;
    errors *out; /* the first rank's */
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

static const void *tensor(const expected *e, const char *name, int64_t elements) {
    const formats_tensor *t = formats_safetensors_find(&e->file, name);
    if (!t || t->elements != elements) fail_msg("%s: no tensor %s of that size", e->name, name);
    return t->data;
}

static void open_expected(const char *name, expected *e) {
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    const char *source = getenv("SOURCE");
    *e = (expected){.name = name};
    if (!source) source = ".";
    snprintf(e->folder, sizeof e->folder, "%s/tests/golden/models/%s", source, name);
    snprintf(path, sizeof path, "%s/tests/golden/results/%s-steps.json", source, name);
    if (base_json_load(path, 1 << 20, &e->json, &error)) fail_msg("%s", error.message);
    snprintf(path, sizeof path, "%s/tests/golden/results/%s-steps.safetensors", source, name);
    if (formats_safetensors_open(path, &e->file, &error)) fail_msg("%s", error.message);
    assert_int_equal((int)step_number(e->json, "steps"), STEPS);
    assert_int_equal((int)step_number(e->json, "micro_batches"), MICRO_BATCHES);
    assert_int_equal((int)step_number(e->json, "sequences"), 1);
    e->length = (int64_t)step_number(e->json, "length");
    e->stride = (int64_t)step_number(e->json, "stride");
    int64_t ids = STEPS * MICRO_BATCHES * e->length;
    e->tokens = tensor(e, "step_tokens", ids);
    e->labels = tensor(e, "step_labels", ids);
}

static void close_expected(expected *e) {
    formats_safetensors_close(&e->file);
    json_decref(e->json);
}

static sifr_settings options_of(const variant *v) {
    sifr_settings options = sifr_settings_defaults();
    const json_t *json = v->want->json, *optimizer = json_object_get(json, "optimizer");
    options.precision = v->precision;
    options.threads = 1;
    options.micro_batch_size = 1;
    options.seq_length = v->want->length;
    options.gradient_accumulation_steps = MICRO_BATCHES / v->ranks;
    options.step_order = v->unit_order ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
    options.zero.stage = v->stage;
    options.optimizer.beta1 = step_item(optimizer, "betas", 0);
    options.optimizer.beta2 = step_item(optimizer, "betas", 1);
    options.optimizer.eps = step_number(optimizer, "eps");
    options.optimizer.weight_decay = step_number(optimizer, "weight_decay");
    options.gradient_clipping = step_number(json, "gradient_clipping");
    return options;
}

/* All weights, end to end; every rank calls it. */
static sifr_status read_weights(const sifr_engine *engine, float *out, sifr_error *error) {
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        const model_weight *weight = &engine->model->weights[w];
        size_t count = (size_t)(weight->rows * weight->columns);
        BASE_TRY(sifr_engine_read_weight(engine, weight->name, out, count, error));
        out += count;
    }
    return SIFR_OK;
}

static void measure_update(const expected *e, const sifr_model *model, const float *before,
                           const float *after, errors *out) {
    double missed = 0, sampled = 0, whole = step_number(e->json, "update_norm");
    const json_t *totals = json_object_get(e->json, "update");
    assert_int_equal(json_object_size(totals), model->weight_count);
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        int64_t count = weight->rows * weight->columns;
        char name[FORMATS_NAME_LIMIT];
        snprintf(name, sizeof name, "sample/%s", weight->name);
        const float *sample = tensor(e, name, (count + e->stride - 1) / e->stride);
        const json_t *total = json_object_get(totals, weight->name);
        double squares = 0, sum = 0;
        for (int64_t i = 0; i < count; i++) {
            if (step_no_gradient(e->json, weight->name, i)) continue;
            double update = (double)after[i] - (double)before[i];
            squares += update * update;
            sum += update;
            if (i % e->stride) continue;
            double truth = (double)sample[i / e->stride];
            missed += (update - truth) * (update - truth);
            sampled += truth * truth;
        }
        double norm_off = fabs(sqrt(squares) - step_number(total, "norm"));
        double sum_off = fabs(sum - step_number(total, "sum")) / sqrt((double)count);
        out->totals = fmax(out->totals, fmax(norm_off, sum_off) / whole);
        before += count;
        after += count;
    }
    out->update = sqrt(missed / sampled);
}

static sifr_status run_steps(sifr_engine *engine, const variant *v, int32_t rank, errors *out,
                             sifr_error *error) {
    const expected *e = v->want;
    int32_t k = MICRO_BATCHES / v->ranks;
    int64_t length = e->length;
    int32_t tokens[MICRO_BATCHES * 64], labels[MICRO_BATCHES * 64];
    assert_true(length <= 64);
    for (int64_t s = 0; s < STEPS; s++) {
        for (int32_t j = 0; j < k; j++) {
            int64_t g = plan_global_micro_batch(&engine->training->settings, rank, j);
            int64_t from = (s * MICRO_BATCHES + g) * length;
            memcpy(tokens + j * length, e->tokens + from, (size_t)length * sizeof *tokens);
            memcpy(labels + j * length, e->labels + from, (size_t)length * sizeof *labels);
        }
        sifr_step_result result;
        BASE_TRY(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                  step_item(e->json, "step_lr", (size_t)s), &result, error));
        double loss = step_item(e->json, "step_loss", (size_t)s);
        double norm = step_item(e->json, "step_gradient_norm", (size_t)s);
        out->loss = fmax(out->loss, result.updated ? fabs(result.loss / loss - 1) : INFINITY);
        out->norm = fmax(out->norm, fabs(result.gradient_norm / norm - 1));
    }
    return SIFR_OK;
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    const variant *v = r->v;
    engine_folder folder = {0};
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    float *before = NULL, *after = NULL;
    errors found = {0};
    sifr_settings options = options_of(v);
    sifr_status status;
    BASE_TRY_GOTO(status, engine_folder_open(v->want->folder, &folder, &error), done);
    size_t count = (size_t)sifr_model_parameters(folder.model);
    before = calloc(count, sizeof *before);
    after = calloc(count, sizeof *after);
    BASE_TRY_GOTO(status, engine_create(folder.model, &options, r->group, &engine, &error), done);
    BASE_TRY_GOTO(status, engine_load_folder(engine, folder.architecture, folder.weights, &error),
                  done);
    BASE_TRY_GOTO(status, read_weights(engine, before, &error), done);
    BASE_TRY_GOTO(status, run_steps(engine, v, comm_rank(r->group), &found, &error), done);
    BASE_TRY_GOTO(status, read_weights(engine, after, &error), done);
    measure_update(v->want, folder.model, before, after, &found);
    if (comm_rank(r->group) == 0) *r->out = found;
done:
    if (status != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    sifr_engine_free(engine);
    engine_folder_close(&folder);
    free(before);
    free(after);
    return NULL;
}

static errors run_threads(const variant *v) {
    errors out = {0};
    rank_run runs[RANKS] = {0};
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(v->ranks);
    for (int32_t r = 0; r < v->ranks; r++) {
        runs[r] = (rank_run){.v = v, .group = comm_threads_group(world, r), .out = &out};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < v->ranks; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < v->ranks; r++) {
        if (runs[r].failure[0]) fail_msg("rank %d: %s", r, runs[r].failure);
        comm_close(runs[r].group);
    }
    comm_threads_free(world);
    return out;
}

/* The bounds of the one-rank run: those of test_golden_models. */
static void check_bounds(const variant *v, const errors *e) {
    errors bound = {1e-5, 1e-4, 1e-3, 1e-3};
    if (v->precision == SIFR_BF16) {
        const json_t *b = json_object_get(v->want->json, "bf16_bound");
        bound = (errors){step_number(b, "step_loss"), step_number(b, "step_norm"),
                         step_number(b, "update"), step_number(b, "update")};
    }
    bool good = e->loss <= bound.loss && e->norm <= bound.norm && e->update <= bound.update &&
                e->totals <= bound.totals;
    if (!good)
        fail_msg("%s, %s, %d ranks, stage %d: off by %.3g of %.3g (loss), %.3g of %.3g (norm), "
                 "%.3g of %.3g (update), %.3g (its totals)",
                 v->want->name, v->precision == SIFR_BF16 ? "bf16" : "fp32", v->ranks, v->stage,
                 e->loss, bound.loss, e->norm, bound.norm, e->update, bound.update, e->totals);
}

static void check_threads(const expected *want, sifr_precision precision) {
    variant v = {.want = want, .precision = precision, .ranks = 1};
    errors alone = run_threads(&v);
    check_bounds(&v, &alone);
    for (v.ranks = precision == SIFR_FP32 ? 2 : RANKS; v.ranks <= RANKS; v.ranks *= 2) {
        for (v.stage = 0; v.stage < 4; v.stage++) {
            v.unit_order = (v.stage + v.ranks / 2) % 2;
            errors together = run_threads(&v);
            check_bounds(&v, &together);
            if (memcmp(&together, &alone, sizeof alone) != 0)
                fail_msg("%s, %d ranks, stage %d: not exactly as far from PyTorch as one rank",
                         want->name, v.ranks, v.stage);
        }
    }
    print_message("%s, %s: off by %.2g (loss), %.2g (norm), %.2g (update)\n", want->name,
                  precision == SIFR_BF16 ? "bf16" : "fp32", alone.loss, alone.norm, alone.update);
}

static void every_case(void (*check)(const expected *want, sifr_precision precision),
                       sifr_precision last) {
    static const char *const names[] = {"gpt2", "llama3"};
    for (int i = 0; i < 2; i++) {
        expected want;
        open_expected(names[i], &want);
        for (int p = SIFR_FP32; p <= (int)last; p++) check(&want, (sifr_precision)p);
        close_expected(&want);
    }
}

static void steps(void **state) {
    (void)state;
    every_case(check_threads, SIFR_BF16);
}

/* --- one of several processes --- */

static comm_group *mpi;

static void check_process(const expected *want, sifr_precision precision) {
    variant v = {.want = want, .precision = precision, .ranks = comm_size(mpi)};
    for (v.stage = 0; v.stage < 4; v.stage++) {
        errors out = {0};
        rank_run run = {.v = &v, .group = mpi, .out = &out};
        v.unit_order = v.stage % 2;
        run_rank(&run);
        if (run.failure[0]) fail_msg("rank %d: %s", comm_rank(mpi), run.failure);
        if (comm_rank(mpi) == 0) check_bounds(&v, &out);
    }
}

static void process_steps(void **state) {
    sifr_error error = {0};
    (void)state;
    if (comm_open_mpi(&mpi, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_true(MICRO_BATCHES % comm_size(mpi) == 0);
    every_case(check_process, SIFR_FP32);
    if (comm_rank(mpi) == 0) print_message("%d ranks are right\n", comm_size(mpi));
    comm_close(mpi);
}

int main(void) {
    const struct CMUnitTest threads[] = {cmocka_unit_test(steps)};
    const struct CMUnitTest process[] = {cmocka_unit_test(process_steps)};
    int ranks;
    if (comm_under_launcher(&ranks)) return cmocka_run_group_tests(process, NULL, NULL);
    return cmocka_run_group_tests(threads, NULL, NULL);
}
