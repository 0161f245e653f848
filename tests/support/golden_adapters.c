#include "support/golden_adapters.h"

#include <math.h>

#include "base/json.h"
#include "engine/engine_private.h"
#include "support/golden_run.h"
#include "support/step_case.h"

enum { STEPS = 5, MICRO_BATCHES = 4 };

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

static void run_steps(const expected *e, const json_t *case_, sifr_engine *engine, double *loss_off,
                      double *norm_off) {
    const char *name = json_string_value(json_object_get(case_, "name"));
    int64_t each = MICRO_BATCHES * e->length;
    const int32_t *tokens = values_of(e, name, "tokens", STEPS * each);
    const int32_t *labels = values_of(e, name, "labels", STEPS * each);
    for (size_t s = 0; s < STEPS; s++) {
        sifr_batch batch = {.tokens = tokens + (int64_t)s * each,
                            .labels = labels + (int64_t)s * each};
        sifr_step_result result;
        sifr_error error = {0};
        if (sifr_engine_step(engine, &batch, step_number(e->json, "lr"), &result, &error))
            fail_msg("%s", error.message);
        double loss = step_item(case_, "step_loss", s);
        double norm = step_item(case_, "step_gradient_norm", s);
        *loss_off = fmax(*loss_off, fabs(result.loss / loss - 1));
        *norm_off = fmax(*norm_off, fabs(result.gradient_norm / norm - 1));
    }
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

static void check_case(const expected *e, const json_t *case_, const char *place) {
    const char *name = json_string_value(json_object_get(case_, "name"));
    const char *base = json_string_value(json_object_get(case_, "model"));
    const char *from = json_string_value(json_object_get(case_, "adapter"));
    const json_t *own = json_object_get(case_, "torch_fp32_error");
    const json_t *doubled = json_object_get(case_, "double"); /* NULL: not in 4 bits */
    char model[BASE_PATH_LENGTH + 64], adapter[BASE_PATH_LENGTH + 64];
    snprintf(model, sizeof model, "%s/models/%s", e->golden, base);
    snprintf(adapter, sizeof adapter, "%s/lora/%s", e->golden, from ? from : name);
    model_lora lora;
    engine_folder folder;
    sifr_engine *engine;
    sifr_error error = {0};
    sifr_settings settings = settings_of(e);
    if (model_lora_load(adapter, &lora, &error)) fail_msg("%s", error.message);
    engine_folder_options options = {.choice.lora = &lora, .adapter = adapter};
    if (doubled) options.choice.coding = json_is_true(doubled) ? MODEL_NF4_DOUBLED : MODEL_NF4;
    if (engine_folder_open_as(model, &options, &folder, &error)) fail_msg("%s", error.message);
    assert_int_equal(sifr_model_trained(folder.model), (int64_t)step_number(case_, "trained"));
    engine = golden_run_engine(folder.model, &settings);
    if (engine_load_opened(engine, &folder, &error)) fail_msg("%s", error.message);
    double loss = 0, norm = 0;
    run_steps(e, case_, engine, &loss, &norm);
    char out[BASE_PATH_LENGTH], written[BASE_PATH_LENGTH + 64];
    snprintf(out, sizeof out, "%s/%s", place, name);
    snprintf(written, sizeof written, "%s/" ENGINE_ADAPTER_FILE, out);
    if (base_make_directories(out, &error) ||
        engine_save_folder(engine, folder.architecture, folder.weights, BASE_FP32, out, &error))
        fail_msg("%s", error.message);
    double update = update_error(e, name, &folder, written);
    print_message("%s: off by %.2g (loss), %.2g (norm), %.2g (update)\n", name, loss, norm, update);
    assert_true(loss <= fmax(1e-6, 4 * step_number(own, "step_loss")));
    assert_true(norm <= fmax(1e-5, 4 * step_number(own, "step_norm")));
    assert_true(update <= fmax(1e-4, 4 * step_number(own, "update")));
    sifr_engine_free(engine);
    engine_folder_close(&folder);
    model_lora_free(&lora);
}

void golden_adapters_run(const char *results, size_t least, const char *folder) {
    expected e;
    const json_t *case_;
    size_t index;
    open_expected(&e, results);
    json_array_foreach(json_object_get(e.json, "cases"), index, case_)
        check_case(&e, case_, folder);
    assert_true(index >= least);
    formats_safetensors_close(&e.file);
    json_decref(e.json);
}
