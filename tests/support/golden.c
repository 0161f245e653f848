#include "support/golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

enum { GOLDEN_JSON_LIMIT = 1 << 24 };

/* --- reading --- */

static void golden_path(char out[BASE_PATH_LENGTH], const char *place, const char *directory,
                        const char *name, const char *suffix) {
    const char *source = getenv("SOURCE");
    int used = snprintf(out, BASE_PATH_LENGTH, "%s/tests/golden/%s%s%s%s", source ? source : ".",
                        place, directory, name, suffix);
    if (used < 0 || used >= BASE_PATH_LENGTH) fail_msg("golden: path too long");
}

static json_t *golden_load(const char *place, const char *directory, const char *name) {
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    json_t *json = NULL;
    golden_path(path, place, directory, name, ".json");
    if (base_json_load(path, GOLDEN_JSON_LIMIT, &json, &error)) {
        fail_msg("golden: %s", error.message);
    }
    return json;
}

static const json_t *golden_member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (value == NULL) fail_msg("golden: no member %s", key);
    return value;
}

static double golden_number(const json_t *object, const char *key) {
    return json_number_value(golden_member(object, key));
}

static int64_t golden_integer(const json_t *object, const char *key) {
    return json_integer_value(golden_member(object, key));
}

static const char *golden_text(const json_t *object, const char *key) {
    return json_string_value(golden_member(object, key));
}

static void *golden_block(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    if (block == NULL) fail_msg("golden: out of memory");
    return block;
}

static const formats_tensor *golden_tensor(const golden *g, const char *prefix, const char *name) {
    char full[FORMATS_NAME_LIMIT];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const formats_tensor *tensor = formats_safetensors_find(&g->file, full);
    if (tensor == NULL) fail_msg("golden: %s: no tensor %s", g->name, full);
    return tensor;
}

static void *golden_copy(const golden *g, const char *name, base_dtype dtype, size_t *count) {
    const formats_tensor *tensor = golden_tensor(g, "", name);
    if (tensor->dtype != dtype) fail_msg("golden: %s: %s has another type", g->name, name);
    void *copy = golden_block(tensor->bytes);
    memcpy(copy, tensor->data, tensor->bytes);
    if (count) *count = (size_t)tensor->elements;
    return copy;
}

/* NULL where the file has none, else `expected` numbers. */
static void *golden_optional(const golden *g, const char *name, base_dtype dtype, size_t expected) {
    size_t count;
    if (!formats_safetensors_find(&g->file, name)) return NULL;
    void *copy = golden_copy(g, name, dtype, &count);
    if (count != expected) fail_msg("golden: %s: %s", g->name, name);
    return copy;
}

static size_t golden_ids(const json_t *array, int32_t *out, size_t capacity) {
    size_t count = json_array_size(array);
    if (count > capacity) fail_msg("golden: more than %zu ids", capacity);
    for (size_t i = 0; i < count; i++) {
        out[i] = (int32_t)json_integer_value(json_array_get(array, i));
    }
    return count;
}

static void golden_numbers(const json_t *array, double *out, int64_t count) {
    if ((int64_t)json_array_size(array) != count) fail_msg("golden: a list of another length");
    for (int64_t i = 0; i < count; i++) {
        out[i] = json_number_value(json_array_get(array, (size_t)i));
    }
}

static void golden_read_generation(const json_t *json, golden_generation *out) {
    memset(out, 0, sizeof *out);
    if (json == NULL) return;
    out->text = json_string_value(json_object_get(json, "text"));
    out->prompt_count = golden_ids(golden_member(json, "prompt"), out->prompt, 32);
    out->expected_count = golden_ids(golden_member(json, "new"), out->expected, 32);
}

void golden_list_open_at(golden_list *list, const char *place) {
    list->place = place;
    list->json = golden_load(place, "", "models");
    list->count = json_array_size(golden_member(list->json, "models"));
}

void golden_list_open(golden_list *list) {
    golden_list_open_at(list, "");
}

void golden_list_close(golden_list *list) {
    json_decref(list->json);
    *list = (golden_list){0};
}

static const json_t *golden_entry(const golden_list *list, size_t index) {
    return json_array_get(golden_member(list->json, "models"), index);
}

const char *golden_list_name(const golden_list *list, size_t index) {
    return golden_text(golden_entry(list, index), "name");
}

size_t golden_list_find(const golden_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(golden_list_name(list, i), name) == 0) return i;
    }
    fail_msg("golden: no model %s", name);
    return 0;
}

static void golden_read_parameters(golden *g, const json_t *array) {
    g->parameter_count = json_array_size(array);
    g->parameters = golden_block(g->parameter_count * sizeof *g->parameters);
    for (size_t i = 0; i < g->parameter_count; i++) {
        const json_t *entry = json_array_get(array, i), *shape = json_array_get(entry, 1);
        golden_parameter *p = &g->parameters[i];
        *p = (golden_parameter){.name = json_string_value(json_array_get(entry, 0)), .elements = 1};
        p->rank = (int)json_array_size(shape);
        if (p->rank > 4) fail_msg("golden: %s: rank %d", p->name, p->rank);
        for (int axis = 0; axis < p->rank; axis++) {
            p->shape[axis] = json_integer_value(json_array_get(shape, (size_t)axis));
            p->elements *= (size_t)p->shape[axis];
        }
    }
}

static void golden_read_step(golden *g) {
    const json_t *optimizer = golden_member(g->json, "optimizer");
    double betas[2];
    if (g->steps > GOLDEN_STEPS) fail_msg("golden: more than %d steps", GOLDEN_STEPS);
    golden_numbers(golden_member(g->json, "step_loss"), g->step_loss, g->steps);
    golden_numbers(golden_member(g->json, "step_gradient_norm"), g->step_norm, g->steps);
    golden_numbers(golden_member(g->json, "step_lr"), g->step_lr, g->steps);
    golden_numbers(golden_member(optimizer, "betas"), betas, 2);
    g->beta1 = betas[0], g->beta2 = betas[1];
    g->epsilon = golden_number(optimizer, "eps");
    g->weight_decay = golden_number(optimizer, "weight_decay");
    g->base_lr = golden_number(optimizer, "lr");
    g->clipping = golden_number(g->json, "gradient_clipping");
    g->scheduler = golden_member(g->json, "scheduler");
    g->update_norm = golden_number(g->json, "update_norm");
    g->update_scale = golden_number(g->json, "update_scale");
}

static void golden_read_tensors(golden *g) {
    size_t tokens, labels, rows;
    size_t expected = (size_t)(g->sequences * g->length);
    g->tokens = golden_copy(g, "tokens", BASE_INT32, &tokens);
    g->labels = golden_copy(g, "labels", BASE_INT32, &labels);
    if (tokens != expected || labels != expected) fail_msg("golden: %s: tokens", g->name);
    g->token_types = golden_optional(g, "token_types", BASE_INT32, expected);
    g->segments = golden_optional(g, "segments", BASE_INT32, expected);
    g->targets = golden_optional(g, "targets", BASE_FP32, expected * (size_t)g->vocab_size);
    expected *= (size_t)(g->steps * g->micro_batches);
    g->step_tokens = golden_copy(g, "step_tokens", BASE_INT32, &tokens);
    g->step_labels = golden_copy(g, "step_labels", BASE_INT32, &labels);
    if (tokens != expected || labels != expected) fail_msg("golden: %s: step_tokens", g->name);
    g->step_token_types = golden_optional(g, "step_token_types", BASE_INT32, expected);
    g->step_segments = golden_optional(g, "step_segments", BASE_INT32, expected);
    g->step_targets =
        golden_optional(g, "step_targets", BASE_FP32, expected * (size_t)g->vocab_size);
    g->logit_rows = golden_copy(g, "logit_rows", BASE_INT32, &g->logit_row_count);
    g->logits = golden_copy(g, "logits", BASE_FP32, &rows);
    if (rows != g->logit_row_count * (size_t)g->vocab_size) fail_msg("golden: %s: logits", g->name);
    g->eval_tokens = golden_copy(g, "eval_tokens", BASE_INT32, &g->eval_token_count);
}

void golden_open(const golden_list *list, size_t index, golden *g) {
    const json_t *entry = golden_entry(list, index);
    char path[BASE_PATH_LENGTH];
    sifr_error error = {0};
    memset(g, 0, sizeof *g);
    g->name = golden_text(entry, "name");
    g->stored_dtype = golden_text(entry, "dtype");
    golden_path(g->folder, list->place, "models/", g->name, "");
    const char *results = golden_text(entry, "results");
    const json_t *owner = golden_entry(list, golden_list_find(list, results));
    golden_read_parameters(g, golden_member(owner, "parameters"));

    g->json = golden_load(list->place, "results/", results);
    golden_path(path, list->place, "results/", results, ".safetensors");
    if (formats_safetensors_open(path, &g->file, &error)) fail_msg("golden: %s", error.message);

    g->vocab_size = golden_integer(g->json, "vocab_size");
    g->sequences = golden_integer(g->json, "sequences");
    g->length = golden_integer(g->json, "length");
    g->micro_batches = golden_integer(g->json, "micro_batches");
    g->steps = golden_integer(g->json, "steps");
    g->masked = json_is_true(golden_member(g->json, "masked"));
    g->labelled = golden_integer(g->json, "labelled");
    g->loss = golden_number(g->json, "loss");
    g->gradient_norm = golden_number(g->json, "gradient_norm");
    g->logit_largest = golden_number(g->json, "logit_largest");
    golden_read_step(g);
    golden_read_tensors(g);

    const json_t *zero = golden_member(g->json, "zero_gradient");
    g->zero_count = json_array_size(zero);
    if (g->zero_count > GOLDEN_ZERO_RANGES) fail_msg("golden: too many zero ranges");
    for (size_t i = 0; i < g->zero_count; i++) {
        const json_t *range = json_array_get(zero, i);
        g->zero[i].tensor = golden_text(range, "tensor");
        g->zero[i].begin = (size_t)golden_integer(range, "begin");
        g->zero[i].end = (size_t)golden_integer(range, "end");
    }
    const json_t *eval = golden_member(g->json, "eval");
    g->eval_window = golden_integer(eval, "window");
    g->eval_windows = golden_integer(eval, "windows");
    g->eval_loss = golden_number(eval, "loss");
    golden_read_generation(json_object_get(g->json, "generate"), &g->generation);
    golden_read_generation(json_object_get(g->json, "generate_text"), &g->generation_text);
}

void golden_close(golden *g) {
    formats_safetensors_close(&g->file);
    json_decref(g->json);
    free(g->parameters);
    free(g->tokens);
    free(g->labels);
    free(g->logit_rows);
    free(g->logits);
    free(g->token_types);
    free(g->segments);
    free(g->step_token_types);
    free(g->step_segments);
    free(g->targets);
    free(g->step_targets);
    free(g->step_tokens);
    free(g->step_labels);
    free(g->eval_tokens);
    memset(g, 0, sizeof *g);
}

float *golden_gradient(const golden *g, const char *name, size_t *count) {
    char full[FORMATS_NAME_LIMIT];
    snprintf(full, sizeof full, "gradient/%s", name);
    return golden_copy(g, full, BASE_FP32, count);
}

/* IEEE half precision, every value. */
static double golden_half(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction == 0 ? (double)INFINITY : (double)NAN)
                                    : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -value : value;
}

float *golden_update(const golden *g, const char *name, size_t *count) {
    const formats_tensor *tensor = golden_tensor(g, "update/", name);
    if (tensor->dtype != BASE_FP16) fail_msg("golden: %s: update is not F16", name);
    float *out = golden_block((size_t)tensor->elements * sizeof *out);
    for (size_t i = 0; i < (size_t)tensor->elements; i++) {
        uint16_t bits;
        memcpy(&bits, (const uint8_t *)tensor->data + 2 * i, 2);
        out[i] = (float)(golden_half(bits) * g->update_scale);
    }
    *count = (size_t)tensor->elements;
    return out;
}

/* --- measuring --- */

double golden_relative(double value, double expected) {
    return fabs(value - expected) / fabs(expected);
}

double golden_logit_error(const golden *g, const float *logits) {
    double largest = 0;
    for (size_t i = 0; i < g->logit_row_count * (size_t)g->vocab_size; i++) {
        double error = fabs((double)logits[i] - (double)g->logits[i]);
        if (isnan(error)) return (double)NAN;
        if (error > largest) largest = error;
    }
    return largest / g->logit_largest;
}

static bool golden_is_zero(const golden *g, const char *name, size_t element) {
    for (size_t i = 0; i < g->zero_count; i++) {
        if (element >= g->zero[i].begin && element < g->zero[i].end &&
            strcmp(g->zero[i].tensor, name) == 0) {
            return true;
        }
    }
    return false;
}

golden_gradient_error golden_measure_gradient(const golden *g, const char *name,
                                              const float *values, size_t count) {
    size_t expected_count;
    double difference2 = 0, expected2 = 0, zero2 = 0;
    float *expected = golden_gradient(g, name, &expected_count);
    if (count != expected_count) {
        fail_msg("%s: gradient of %s has %zu elements, not %zu", g->name, name, count,
                 expected_count);
    }
    for (size_t i = 0; i < count; i++) {
        double value = (double)values[i], truth = (double)expected[i];
        if (golden_is_zero(g, name, i)) {
            zero2 += value * value;
        } else {
            difference2 += (value - truth) * (value - truth);
            expected2 += truth * truth;
        }
    }
    free(expected);
    return (golden_gradient_error){
        .relative = difference2 == 0 ? 0 : sqrt(difference2 / expected2),
        .zero_share = sqrt(zero2) / g->gradient_norm,
    };
}

void golden_add_update(const golden *g, golden_update_error *sum, const char *name,
                       const float *initial, const float *trained, size_t count) {
    size_t expected_count;
    float *expected = golden_update(g, name, &expected_count);
    if (count != expected_count) {
        fail_msg("%s: %s has %zu elements, not %zu", g->name, name, count, expected_count);
    }
    for (size_t i = 0; i < count; i++) {
        if (golden_is_zero(g, name, i)) continue;
        double truth = (double)expected[i];
        double difference = (double)trained[i] - (double)initial[i] - truth;
        sum->difference2 += difference * difference;
        sum->update2 += truth * truth;
    }
    free(expected);
}
