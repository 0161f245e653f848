/* Each optimizer against the library that it comes from: twenty steps of eight micro batches in
 * fp32, as close as that library comes in fp32 (tests/golden/README.md: make_optimizers.py); groups
 * of settings and averages against those of torch (make_groups.py); LAMB (make_lamb.py); Adafactor
 * (make_adafactor.py); five steps of Muon (make_muon.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/engine_private.h"
#include "formats/safetensors/safetensors.h"
#include "support/step_case.h"

enum { STEPS = 20, MICRO_BATCHES = 8, MOST_LENGTH = 64, MOST_GROUPS = 8 };

/* What make_optimizers.py or make_groups.py wrote, and the data of make_steps.py. */
typedef struct expected {
    char folder[BASE_PATH_LENGTH];
    json_t *json;
    formats_safetensors file, steps;
    int64_t length, stride;
    size_t count; /* of steps */
} expected;

static double number(const json_t *object, const char *key, double fallback) {
    const json_t *value = json_object_get(object, key);
    if (json_is_boolean(value)) return json_is_true(value);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static const void *tensor(const formats_safetensors *file, const char *name, int64_t elements) {
    const formats_tensor *t = formats_safetensors_find(file, name);
    if (!t || t->elements != elements) fail_msg("no tensor %s of that size", name);
    return t->data;
}

static void open_expected(expected *e, const char *name) {
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    const char *source = getenv("SOURCE");
    *e = (expected){0};
    if (!source) source = ".";
    snprintf(path, sizeof path, "%s/tests/golden/results/%s.json", source, name);
    if (base_json_load(path, 1 << 20, &e->json, &error)) fail_msg("%s", error.message);
    const char *model = json_string_value(json_object_get(e->json, "model"));
    snprintf(e->folder, sizeof e->folder, "%s/tests/golden/models/%s", source, model);
    snprintf(path, sizeof path, "%s/tests/golden/results/%s.safetensors", source, name);
    if (formats_safetensors_open(path, &e->file, &error)) fail_msg("%s", error.message);
    snprintf(path, sizeof path, "%s/tests/golden/results/%s-steps.safetensors", source, model);
    if (formats_safetensors_open(path, &e->steps, &error)) fail_msg("%s", error.message);
    e->count = (size_t)number(e->json, "steps", 0);
    assert_in_range(e->count, 1, STEPS);
    assert_int_equal((int)number(e->json, "micro_batches", 0), MICRO_BATCHES);
    e->length = (int64_t)number(e->json, "length", 0);
    e->stride = (int64_t)number(e->json, "stride", 0);
    assert_in_range(e->length, 1, MOST_LENGTH);
}

static void close_expected(expected *e) {
    formats_safetensors_close(&e->file);
    formats_safetensors_close(&e->steps);
    json_decref(e->json);
}

static sifr_optimizer_type type_of(const char *name) {
    static const char *const names[] = {
        "AdamW",    "Adam",      "SGD",  "Adagrad", "Lion",     "AdamWScheduleFree",
        "Adam8bit", "AdamW8bit", "Lamb", "Muon",    "Adafactor"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) return (sifr_optimizer_type)i;
    fail_msg("no optimizer %s", name);
    return SIFR_ADAMW;
}

/* Into a list of MOST_GROUPS. */
static void read_groups(const json_t *case_, sifr_optimizer_group *list, sifr_optimizer *o) {
    const json_t *group;
    size_t index;
    json_array_foreach(json_object_get(case_, "groups"), index, group) {
        assert_in_range(index, 0, MOST_GROUPS - 1);
        list[index] =
            (sifr_optimizer_group){.match = json_string_value(json_object_get(group, "match")),
                                   .lr_scale = number(group, "lr_scale", 1),
                                   .weight_decay = number(group, "weight_decay", -1)};
        o->group_count++;
    }
    o->groups = list;
    o->no_decay = number(case_, "no_decay", 0) != 0 ? SIFR_NO_DECAY_TRANSFORMERS : SIFR_DECAY_ALL;
    o->layer_decay = number(case_, "layer_decay", 1);
    o->ema_decay = number(case_, "ema_decay", 0);
}

static void set_adafactor(const json_t *params, sifr_optimizer *o) {
    o->eps = step_item(params, "eps", 0);
    o->least_scale = step_item(params, "eps", 1);
    o->clip_threshold = number(params, "clip_threshold", 0);
    o->decay_rate = number(params, "decay_rate", 0);
    o->scale_parameter = number(params, "scale_parameter", 0) != 0;
    o->has_momentum = json_is_number(json_object_get(params, "beta1"));
    o->beta1 = number(params, "beta1", 0);
}

static sifr_settings options_of(const expected *e, const json_t *case_) {
    sifr_settings options = sifr_settings_defaults();
    const json_t *params = json_object_get(case_, "params");
    sifr_optimizer *o = &options.optimizer;
    options.threads = 1;
    options.micro_batch_size = 1;
    options.seq_length = e->length;
    options.gradient_accumulation_steps = MICRO_BATCHES;
    options.gradient_clipping = number(e->json, "gradient_clipping", 0);
    o->type = type_of(json_string_value(json_object_get(case_, "type")));
    o->decoupled = o->type != SIFR_ADAM;
    if (json_object_get(params, "betas")) {
        o->beta1 = step_item(params, "betas", 0);
        o->beta2 = step_item(params, "betas", 1);
    }
    o->eps = number(params, "eps", o->eps);
    o->weight_decay = number(params, "weight_decay", 0);
    o->amsgrad = number(params, "amsgrad", 0) != 0;
    o->momentum = number(params, "momentum", 0);
    o->dampening = number(params, "dampening", 0);
    o->nesterov = number(params, "nesterov", 0) != 0;
    o->lr_decay = number(params, "lr_decay", 0);
    o->warmup_steps = (int64_t)number(params, "warmup_steps", 0);
    o->r = number(params, "r", 0);
    o->weight_lr_power = number(params, "weight_lr_power", 0);
    o->min_coeff = number(params, "min_coeff", 0);
    o->max_coeff = number(params, "max_coeff", 0);
    o->muon_scale = number(params, "muon_scale", 0);
    o->adam_scale = number(params, "adam_scale", 0);
    const char *method = json_string_value(json_object_get(params, "ns_method"));
    if (method && strcmp(method, "standard") == 0) o->ns_method = SIFR_NS_STANDARD;
    o->min_8bit_size = (int64_t)number(params, "min_8bit_size", 0);
    if (o->type == SIFR_ADAFACTOR) set_adafactor(params, o);
    return options;
}

/* A weight, or its average. */
static float *read_part(const sifr_engine *engine, size_t w, engine_part part) {
    const model_weight *weight = &engine->model->weights[w];
    int64_t count = weight->rows * weight->columns;
    sifr_error error = {0};
    float *values = calloc((size_t)count, sizeof *values);
    if (engine_collect(engine, w, part, 0, count, values, &error)) fail_msg("%s", error.message);
    return values;
}

/* Relative to the norm of the true update, at the elements that are stored. */
static double update_error(const expected *e, const char *name, const sifr_engine *engine,
                           engine_part part, float *const *before) {
    double missed = 0, sampled = 0;
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        const model_weight *weight = &engine->model->weights[w];
        int64_t count = weight->rows * weight->columns;
        char key[FORMATS_NAME_LIMIT];
        snprintf(key, sizeof key, "%s/%s", name, weight->name);
        const float *truth = tensor(&e->file, key, (count + e->stride - 1) / e->stride);
        float *after = read_part(engine, w, part);
        for (int64_t i = 0; i < count; i += e->stride) {
            if (step_no_gradient(e->json, weight->name, i)) continue;
            double update = (double)after[i] - (double)before[w][i];
            double off = update - (double)truth[i / e->stride];
            missed += off * off;
            sampled += (double)truth[i / e->stride] * (double)truth[i / e->stride];
        }
        free(after);
    }
    return sqrt(missed / sampled);
}

static void run_steps(const expected *e, const json_t *case_, sifr_engine *engine, double *loss_off,
                      double *norm_off) {
    int64_t ids = STEPS * MICRO_BATCHES * e->length;
    const int32_t *tokens = tensor(&e->steps, "step_tokens", ids);
    const int32_t *labels = tensor(&e->steps, "step_labels", ids);
    for (size_t s = 0; s < e->count; s++) {
        int64_t from = (int64_t)s * MICRO_BATCHES * e->length;
        sifr_batch batch = {.tokens = tokens + from, .labels = labels + from};
        sifr_step_result result;
        sifr_error error = {0};
        if (sifr_engine_step(engine, &batch, step_item(case_, "step_lr", s), &result, &error))
            fail_msg("%s", error.message);
        double loss = step_item(case_, "step_loss", s),
               norm = step_item(case_, "step_gradient_norm", s);
        *loss_off = fmax(*loss_off, fabs(result.loss / loss - 1));
        *norm_off = fmax(*norm_off, fabs(result.gradient_norm / norm - 1));
    }
}

static void check_average(const expected *e, const char *name, const sifr_engine *engine,
                          float *const *before, double bound) {
    char text[64];
    if (!engine_optimizer(engine)->ema) return;
    snprintf(text, sizeof text, "%s/average", name);
    double off = update_error(e, text, engine, (engine_part)(engine_parts(engine) - 1), before);
    print_message("%s: off by %.2g\n", text, off);
    assert_true(off <= bound);
}

static void check_case(const expected *e, const json_t *case_) {
    const char *name = json_string_value(json_object_get(case_, "name"));
    const json_t *own = json_object_get(case_, "torch_fp32_error");
    sifr_settings options = options_of(e, case_);
    sifr_optimizer_group groups[MOST_GROUPS];
    read_groups(case_, groups, &options.optimizer);
    engine_folder folder;
    sifr_engine *engine;
    sifr_error error = {0};
    if (engine_folder_open(e->folder, &folder, &error)) fail_msg("%s", error.message);
    if (sifr_model_group(folder.model, &options.optimizer, &error) ||
        sifr_engine_create(folder.model, &options, &engine, &error) ||
        engine_load_folder(engine, folder.architecture, folder.weights, &error))
        fail_msg("%s", error.message);
    size_t weights = folder.model->weight_count;
    float **before = calloc(weights, sizeof *before);
    for (size_t w = 0; w < weights; w++) before[w] = read_part(engine, w, ENGINE_MASTER);
    double loss = 0, norm = 0;
    run_steps(e, case_, engine, &loss, &norm);
    double update = update_error(e, name, engine, ENGINE_MASTER, before);
    print_message("%s: off by %.2g (loss), %.2g (norm), %.2g (update)\n", name, loss, norm, update);
    assert_true(loss <= fmax(1e-5, 4 * number(own, "step_loss", 0)));
    assert_true(norm <= fmax(1e-4, 4 * number(own, "step_norm", 0)));
    assert_true(update <= fmax(1e-3, 4 * number(own, "update", 0)));
    check_average(e, name, engine, before, fmax(1e-3, 4 * number(own, "update", 0)));
    for (size_t w = 0; w < weights; w++) free(before[w]);
    free(before);
    sifr_engine_free(engine);
    engine_folder_close(&folder);
}

static void check_file(const char *name, size_t cases) {
    expected e;
    const json_t *case_;
    size_t index;
    open_expected(&e, name);
    json_array_foreach(json_object_get(e.json, "cases"), index, case_) check_case(&e, case_);
    assert_int_equal(index, cases);
    close_expected(&e);
}

static void optimizers(void **state) {
    (void)state;
    check_file("optimizers", 9);
}

static void lamb(void **state) {
    (void)state;
    check_file("lamb-llama3", 2);
}

static void muon(void **state) {
    (void)state;
    check_file("muon-llama3", 2);
    check_file("muon-gpt2", 1);
}

static void adafactor(void **state) {
    (void)state;
    check_file("adafactor-llama3", 4);
}

static void groups(void **state) {
    (void)state;
    check_file("groups-gpt2", 5);
    check_file("groups-llama3", 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(optimizers), cmocka_unit_test(lamb),
                                       cmocka_unit_test(muon), cmocka_unit_test(adafactor),
                                       cmocka_unit_test(groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
