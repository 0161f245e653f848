#include "support/golden_adapters.h"

#include <math.h>
#include <pthread.h>

#include "base/json.h"
#include "engine/engine_private.h"
#include "support/comm_threads.h"
#include "support/golden_run.h"
#include "support/step_case.h"

enum { STEPS = 5, MICRO_BATCHES = 4, MOST_TENSORS = 4 };

typedef struct expected {
    char golden[BASE_PATH_LENGTH];
    json_t *json;
    formats_safetensors file;
    int64_t length;
} expected;

static void open_expected(expected *e, const char *results) {
    char path[BASE_PATH_LENGTH + 64];
    sifr_error error = {0};
    const char *source = getenv("SOURCE");
    *e = (expected){0};
    snprintf(e->golden, sizeof e->golden, "%s/tests/golden", source ? source : ".");
    snprintf(path, sizeof path, "%s/results/%s.json", e->golden, results);
    if (base_json_load(path, 1 << 20, &e->json, &error)) fail_msg("%s", error.message);
    snprintf(path, sizeof path, "%s/results/%s.safetensors", e->golden, results);
    if (formats_safetensors_open(path, &e->file, &error)) fail_msg("%s", error.message);
    assert_int_equal((int)step_number(e->json, "steps"), STEPS);
    assert_int_equal((int)step_number(e->json, "micro_batches"), MICRO_BATCHES);
    e->length = (int64_t)step_number(e->json, "length");
}

static const void *values_of(const expected *e, const char *case_, const char *name,
                             int64_t elements) {
    char key[FORMATS_NAME_LIMIT];
    snprintf(key, sizeof key, "%s/%s", case_, name);
    const formats_tensor *t = formats_safetensors_find(&e->file, key);
    if (!t || t->elements != elements) fail_msg("no tensor %s of that size", key);
    return t->data;
}

static sifr_settings settings_of(const expected *e) {
    sifr_settings settings = sifr_settings_defaults();
    settings.threads = 1;
    settings.micro_batch_size = 1;
    settings.seq_length = e->length;
    settings.gradient_accumulation_steps = MICRO_BATCHES;
    settings.gradient_clipping = step_number(e->json, "gradient_clipping");
    settings.optimizer.beta1 = step_item(e->json, "betas", 0);
    settings.optimizer.beta2 = step_item(e->json, "betas", 1);
    settings.optimizer.eps = step_number(e->json, "eps");
    settings.optimizer.weight_decay = step_number(e->json, "weight_decay");
    return settings;
}

/* How far a run is off, relative to PEFT's. */
typedef struct case_off {
    double loss, norm, update;
} case_off;

static sifr_status run_steps(const expected *e, const json_t *case_, sifr_engine *engine,
                             case_off *off, sifr_error *error) {
    const char *name = json_string_value(json_object_get(case_, "name"));
    int64_t each = MICRO_BATCHES * e->length;
    const int32_t *tokens = values_of(e, name, "tokens", STEPS * each);
    const int32_t *labels = values_of(e, name, "labels", STEPS * each);
    for (size_t s = 0; s < STEPS; s++) {
        sifr_batch batch = {.tokens = tokens + (int64_t)s * each,
                            .labels = labels + (int64_t)s * each};
        sifr_step_result result;
        BASE_TRY(sifr_engine_step(engine, &batch, step_number(e->json, "lr"), &result, error));
        double loss = step_item(case_, "step_loss", s);
        double norm = step_item(case_, "step_gradient_norm", s);
        off->loss = fmax(off->loss, fabs(result.loss / loss - 1));
        off->norm = fmax(off->norm, fabs(result.gradient_norm / norm - 1));
    }
    return SIFR_OK;
}

/* PEFT leaves the biases of "lora_only" out of its folders. */
static const formats_tensor *before(const engine_folder *base, const char *name) {
    const formats_tensor *tensor = formats_weights_find(base->adapter, name);
    char own[FORMATS_NAME_LIMIT];
    const char *layer = strstr(name, "base_layer.bias");
    if (tensor) return tensor;
    assert_non_null(layer);
    int prefix = (int)strlen(MODEL_LORA_PREFIX);
    snprintf(own, sizeof own, "%.*sbias", (int)(layer - name) - prefix, name + prefix);
    tensor = formats_weights_find(base->weights, own);
    assert_non_null(tensor);
    return tensor;
}

/* Of the folder that is written now, relative to the true update; and that it is PEFT's but for the
 * values. */
static double update_error(const expected *e, const char *case_, const engine_folder *base,
                           const char *folder) {
    formats_weights *after;
    sifr_error error = {0};
    double missed = 0, size = 0;
    if (formats_weights_open(folder, &after, &error)) fail_msg("%s", error.message);
    assert_true(formats_weights_count(after) >= formats_weights_count(base->adapter));
    for (size_t i = 0; i < formats_weights_count(after); i++) {
        const formats_tensor *a = formats_weights_at(after, i), *b = before(base, a->name);
        assert_int_equal(a->dtype, BASE_FP32);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
        const char *from = b->data, *to = a->data;
        const float *truth = values_of(e, case_, a->name, a->elements);
        for (int64_t v = 0; v < a->elements; v++) {
            float old, now;
            memcpy(&old, from + 4 * v, sizeof old);
            memcpy(&now, to + 4 * v, sizeof now);
            double off = (double)now - (double)old - (double)truth[v];
            missed += off * off;
            size += (double)truth[v] * (double)truth[v];
        }
    }
    formats_weights_close(after);
    return sqrt(missed / size);
}

/* Of each matrix that a tensor rank has a part of, it has a part of one factor: of B where the
 * matrix is cut by outputs, else of A. Some matrix is. */
static sifr_status check_factors(const sifr_model *part, sifr_error *error) {
    bool any = false;
    for (size_t w = 0; w < part->weight_count; w++) {
        const model_weight *weight = &part->weights[w];
        if (weight->adapter == 0) continue;
        const model_weight *a = &part->weights[weight->adapter], *b = a + 1;
        any |= !weight->replicated;
        if (weight->replicated ? !a->replicated || !b->replicated
                               : a->replicated == b->replicated || a->replicated != a->partial)
            return base_fail(error, SIFR_FAILED, "%s: its factors are not cut with it",
                             weight->name);
    }
    return any ? SIFR_OK : base_fail(error, SIFR_FAILED, "no adapted matrix is cut");
}

/* A case as it is opened: by each rank for itself. */
typedef struct case_run {
    const expected *e;
    const json_t *of;
    const char *place;
    int32_t rank;
    comm_threads *world; /* NULL: one rank, on the device of golden_run_on */
    case_off off;
    char failure[SIFR_ERROR_LENGTH];
} case_run;

static sifr_status train_case(case_run *r, const engine_folder *folder, sifr_error *error) {
    const char *name = json_string_value(json_object_get(r->of, "name"));
    sifr_settings settings = settings_of(r->e);
    sifr_engine *engine;
    comm_group *group = r->world ? comm_threads_group(r->world, r->rank) : NULL;
    char out[BASE_PATH_LENGTH], written[BASE_PATH_LENGTH + 64];
    assert_int_equal(sifr_model_trained(folder->model), (int64_t)step_number(r->of, "trained"));
    if (group) settings.mesh.tensor_size = comm_size(group);
    if (group)
        BASE_TRY(engine_create(folder->model, &settings, group, &engine, error));
    else
        engine = golden_run_engine(folder->model, &settings);
    snprintf(out, sizeof out, "%s/%s", r->place, name);
    snprintf(written, sizeof written, "%s/" ENGINE_ADAPTER_FILE, out);
    sifr_status status = group ? check_factors(engine->model, error) : SIFR_OK;
    if (status == SIFR_OK) status = engine_load_opened(engine, folder, error);
    if (status == SIFR_OK) status = run_steps(r->e, r->of, engine, &r->off, error);
    if (status == SIFR_OK) status = base_make_directories(out, error);
    if (status == SIFR_OK)
        status = engine_save_folder(engine, folder->architecture, folder->weights, BASE_FP32, out,
                                    error);
    if (status == SIFR_OK && r->rank == 0)
        r->off.update = update_error(r->e, name, folder, written);
    sifr_engine_free(engine);
    if (group) comm_close(group);
    return status;
}

static sifr_status open_case(case_run *r, sifr_error *error) {
    const char *name = json_string_value(json_object_get(r->of, "name"));
    const char *base = json_string_value(json_object_get(r->of, "model"));
    const char *from = json_string_value(json_object_get(r->of, "adapter"));
    const json_t *doubled = json_object_get(r->of, "double"); /* NULL: not in 4 bits */
    char model[BASE_PATH_LENGTH + 64], adapter[BASE_PATH_LENGTH + 64];
    snprintf(model, sizeof model, "%s/models/%s", r->e->golden, base);
    snprintf(adapter, sizeof adapter, "%s/lora/%s", r->e->golden, from ? from : name);
    model_lora lora;
    engine_folder folder;
    BASE_TRY(model_lora_load(adapter, &lora, error));
    engine_folder_options options = {.choice.lora = &lora, .adapter = adapter};
    if (doubled) options.choice.coding = json_is_true(doubled) ? MODEL_NF4_DOUBLED : MODEL_NF4;
    sifr_status status = engine_folder_open_as(model, &options, &folder, error);
    if (status == SIFR_OK) {
        status = train_case(r, &folder, error);
        engine_folder_close(&folder);
    }
    model_lora_free(&lora);
    return status;
}

static void *run_rank(void *argument) {
    case_run *r = argument;
    sifr_error error = {0};
    if (open_case(r, &error) != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    return NULL;
}

static void run_ranks(case_run *runs, int32_t ranks) {
    pthread_t threads[MOST_TENSORS];
    comm_threads *world = comm_threads_create(ranks);
    for (int32_t r = 0; r < ranks; r++) {
        runs[r] = runs[0];
        runs[r].rank = r;
        runs[r].world = world;
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
}

/* `least`: what losses, norms and updates may be off by at least. */
static void check_case(const expected *e, const json_t *case_, const char *place, int32_t tensors,
                       const case_off *least) {
    const char *name = json_string_value(json_object_get(case_, "name"));
    const json_t *own = json_object_get(case_, "torch_fp32_error");
    case_run runs[MOST_TENSORS] = {{.e = e, .of = case_, .place = place}};
    if (tensors == 1)
        run_rank(&runs[0]);
    else
        run_ranks(runs, tensors);
    for (int32_t r = 0; r < tensors; r++)
        if (runs[r].failure[0]) fail_msg("%s, rank %d: %s", name, (int)r, runs[r].failure);
    case_off off = runs[0].off;
    print_message("%s: off by %.2g (loss), %.2g (norm), %.2g (update)\n", name, off.loss, off.norm,
                  off.update);
    assert_true(off.loss <= fmax(least->loss, 4 * step_number(own, "step_loss")));
    assert_true(off.norm <= fmax(least->norm, 4 * step_number(own, "step_norm")));
    assert_true(off.update <= fmax(least->update, 4 * step_number(own, "update")));
}

static void check_cases(const char *results, size_t least, const char *folder, int32_t tensors,
                        case_off off) {
    expected e;
    const json_t *case_;
    size_t index;
    open_expected(&e, results);
    json_array_foreach(json_object_get(e.json, "cases"), index, case_)
        check_case(&e, case_, folder, tensors, &off);
    assert_true(index >= least);
    formats_safetensors_close(&e.file);
    json_decref(e.json);
}

void golden_adapters_run(const char *results, size_t least, const char *folder) {
    check_cases(results, least, folder, 1, (case_off){1e-6, 1e-5, 1e-4});
}

void golden_adapters_divide(const char *results, size_t least, const char *folder,
                            int32_t tensors) {
    assert_true(tensors > 1 && tensors <= MOST_TENSORS);
    check_cases(results, least, folder, tensors, (case_off){1e-5, 1e-4, 1e-3});
}
