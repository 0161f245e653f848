/* Two tensor ranks, as threads, beside two of PyTorch's: the losses and norms of twenty steps are
 * those of DTensor over gloo, in fp32 (tests/golden/README.md: make_tensors.py). And what they are
 * asked for of their weights is sent in few messages. */
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
#include "engine/engine_private.h"
#include "formats/safetensors/safetensors.h"
#include "support/comm_threads.h"
#include "support/step_case.h"

enum { STEPS = 20, TENSORS = 2 };

typedef struct golden_case {
    char folder[BASE_PATH_LENGTH];
    json_t *steps, *tensors; /* make_steps.py: ids, rates; make_tensors.py: losses, norms */
    formats_safetensors file;
    int64_t length, micro_batches;
} golden_case;

typedef struct rank_run {
    const golden_case *g;
    comm_group *group;
    double loss_off, norm_off; /* relative, the largest of all steps */
    int64_t messages;          /* in which rank 0 gets a matrix that is cut by columns */
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

static json_t *load(const char *source, const char *name) {
    char path[BASE_PATH_LENGTH];
    json_t *json;
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/results/%s.json", source, name);
    if (base_json_load(path, 1 << 20, &json, &error)) fail_msg("%s", error.message);
    return json;
}

static void open_case(golden_case *g) {
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    const char *source = getenv("SOURCE");
    if (!source) source = ".";
    g->steps = load(source, "llama3-steps");
    g->tensors = load(source, "tensors-llama3");
    snprintf(g->folder, sizeof g->folder, "%s/tests/golden/models/llama3", source);
    snprintf(path, sizeof path, "%s/tests/golden/results/llama3-steps.safetensors", source);
    if (formats_safetensors_open(path, &g->file, &error)) fail_msg("%s", error.message);
    g->length = (int64_t)step_number(g->steps, "length");
    g->micro_batches = (int64_t)step_number(g->steps, "micro_batches");
    assert_int_equal((int)step_number(g->steps, "steps"), STEPS);
    assert_int_equal((int)step_number(g->tensors, "tensors"), TENSORS);
}

static sifr_settings settings_of(const golden_case *g) {
    const json_t *optimizer = json_object_get(g->steps, "optimizer");
    sifr_settings settings = sifr_settings_defaults();
    settings.threads = 1;
    settings.micro_batch_size = 1;
    settings.seq_length = g->length;
    settings.gradient_accumulation_steps = (int32_t)g->micro_batches;
    settings.optimizer.beta1 = step_item(optimizer, "betas", 0);
    settings.optimizer.beta2 = step_item(optimizer, "betas", 1);
    settings.optimizer.eps = step_number(optimizer, "eps");
    settings.optimizer.weight_decay = step_number(optimizer, "weight_decay");
    settings.gradient_clipping = step_number(g->steps, "gradient_clipping");
    settings.mesh.tensor_size = TENSORS;
    return settings;
}

static const int32_t *ids(const golden_case *g, const char *name) {
    const formats_tensor *t = formats_safetensors_find(&g->file, name);
    assert_non_null(t);
    assert_int_equal(t->elements, STEPS * g->micro_batches * g->length);
    return t->data;
}

static sifr_status run_steps(rank_run *r, sifr_engine *engine, sifr_error *error) {
    const golden_case *g = r->g;
    for (size_t s = 0; s < STEPS; s++) {
        int64_t from = (int64_t)s * g->micro_batches * g->length;
        sifr_batch batch = {.tokens = ids(g, "step_tokens") + from,
                            .labels = ids(g, "step_labels") + from};
        sifr_step_result result;
        double loss = step_item(g->tensors, "step_loss", s);
        double norm = step_item(g->tensors, "step_gradient_norm", s);
        BASE_TRY(
            sifr_engine_step(engine, &batch, step_item(g->steps, "step_lr", s), &result, error));
        r->loss_off = fmax(r->loss_off, fabs(result.loss / loss - 1));
        r->norm_off = fmax(r->norm_off, fabs(result.gradient_norm / norm - 1));
    }
    return SIFR_OK;
}

/* Each rank has half of each row: they come packed, and are those that all ranks collect. */
static sifr_status hand_in(rank_run *r, const sifr_engine *engine, sifr_error *error) {
    comm_part part = {.name = "test", .key = comm_rank(r->group), .peers = true};
    comm_group *peers;
    size_t index = 0;
    while (!strstr(engine->model->weights[index].name, "o_proj")) index++;
    const model_weight *w = &engine->model->weights[index];
    int64_t count = w->cut.rows * w->cut.columns;
    assert_true(w->columns * TENSORS == w->cut.columns);
    float *one = calloc((size_t)count, sizeof *one), *all = calloc((size_t)count, sizeof *all);
    BASE_TRY(comm_split(r->group, &part, &peers, error));
    sifr_status status = engine_hand_in(engine, peers, index, ENGINE_MASTER, 0, count, one, error);
    if (status == SIFR_OK)
        status = engine_collect(engine, index, ENGINE_MASTER, 0, count, all, error);
    r->messages = comm_get_ledger(peers)->operation[COMM_RECEIVE].calls;
    if (status == SIFR_OK && comm_rank(peers) == 0 && memcmp(one, all, (size_t)count * sizeof *one))
        status = base_fail(error, SIFR_FAILED, "what was handed in is not what was collected");
    for (int64_t i = 0; i < count && status == SIFR_OK; i++)
        if (all[i] == 0) status = base_fail(error, SIFR_FAILED, "element %d is missing", (int)i);
    comm_close(peers);
    free(one);
    free(all);
    return status;
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    engine_folder folder = {0};
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    sifr_settings settings = settings_of(r->g);
    sifr_status status = engine_folder_open(r->g->folder, &folder, &error);
    if (status == SIFR_OK)
        status = engine_create(folder.model, &settings, r->group, &engine, &error);
    if (status == SIFR_OK)
        status = engine_load_folder(engine, folder.architecture, folder.weights, &error);
    if (status == SIFR_OK) status = run_steps(r, engine, &error);
    if (status == SIFR_OK) status = hand_in(r, engine, &error);
    if (status != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    sifr_engine_free(engine);
    engine_folder_close(&folder);
    return NULL;
}

static void as_dtensor(void **state) {
    (void)state;
    golden_case g = {0};
    rank_run runs[TENSORS] = {0};
    pthread_t threads[TENSORS];
    open_case(&g);
    comm_threads *world = comm_threads_create(TENSORS);
    for (int32_t r = 0; r < TENSORS; r++) {
        runs[r] = (rank_run){.g = &g, .group = comm_threads_group(world, r)};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < TENSORS; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < TENSORS; r++) {
        comm_close(runs[r].group);
        if (runs[r].failure[0]) fail_msg("rank %d: %s", (int)r, runs[r].failure);
        print_message("rank %d: off by %.2g (loss), %.2g (norm)\n", (int)r, runs[r].loss_off,
                      runs[r].norm_off);
        assert_true(runs[r].loss_off < 1e-6 && runs[r].norm_off < 1e-5);
    }
    assert_int_equal(runs[0].messages, 1);
    comm_threads_free(world);
    formats_safetensors_close(&g.file);
    json_decref(g.steps);
    json_decref(g.tensors);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_dtensor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
