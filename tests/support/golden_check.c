/* Bounds and checks of golden.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "support/golden.h"

/* --- bounds --- */

static double golden_bound(const golden *g, golden_precision precision, const json_t *bounds,
                           const char *key) {
    const json_t *value = json_object_get(bounds, key);
    if (!json_is_number(value)) fail_msg("golden: %s: no bf16 bound %s", g->name, key);
    return json_number_value(value) / (precision == GOLDEN_FP16 ? 4 : 1);
}

static double golden_narrow(const golden *g, golden_precision precision, const char *key) {
    return golden_bound(g, precision, json_object_get(g->json, "bf16_bound"), key);
}

double golden_loss_bound(const golden *g, golden_precision precision) {
    return precision == GOLDEN_FP32 ? 1e-5 : golden_narrow(g, precision, "loss");
}

double golden_logit_bound(const golden *g, golden_precision precision) {
    return precision == GOLDEN_FP32 ? 1e-5 : golden_narrow(g, precision, "logits");
}

double golden_gradient_bound(const golden *g, golden_precision precision, const char *name) {
    if (precision == GOLDEN_FP32) return 1e-4;
    const json_t *bounds = json_object_get(json_object_get(g->json, "bf16_bound"), "gradient");
    return golden_bound(g, precision, bounds, name);
}

double golden_zero_bound(const golden *g, golden_precision precision) {
    return precision == GOLDEN_FP32 ? 1e-6 : golden_narrow(g, precision, "zero");
}

/* Weights that are stored in fp16 begin on its grid, and Adam's first step moves all of them by
 * nearly the same: roundings of the copy that kernels read are no noise then, they share a sign
 * with the gradient. */
double golden_step_loss_bound(const golden *g, golden_precision precision) {
    bool on_grid = precision == GOLDEN_FP16 && strcmp(g->stored_dtype, "float16") == 0;
    if (on_grid) precision = GOLDEN_BF16;
    return precision == GOLDEN_FP32 ? 1e-5 : golden_narrow(g, precision, "step_loss");
}

double golden_step_norm_bound(const golden *g, golden_precision precision) {
    return precision == GOLDEN_FP32 ? 1e-4 : golden_narrow(g, precision, "step_norm");
}

double golden_update_bound(const golden *g, golden_precision precision) {
    return precision == GOLDEN_FP32 ? 1e-3 : golden_narrow(g, precision, "update");
}

/* --- checks --- */

/* Fails too where the error is not a number. */
static void golden_require(const golden *g, const char *what, const char *which, double error,
                           double bound) {
    if (!(error <= bound)) {
        fail_msg("%s: %s%s is off by %.3g, bound %.3g", g->name, what, which, error, bound);
    }
}

void golden_check_loss(const golden *g, golden_precision precision, double loss) {
    golden_require(g, "loss", "", golden_relative(loss, g->loss), golden_loss_bound(g, precision));
}

void golden_check_logits(const golden *g, golden_precision precision, const float *logits) {
    golden_require(g, "logits", "", golden_logit_error(g, logits),
                   golden_logit_bound(g, precision));
}

void golden_check_gradient(const golden *g, golden_precision precision, const char *name,
                           const float *values, size_t count) {
    golden_gradient_error error = golden_measure_gradient(g, name, values, count);
    golden_require(g, "gradient of ", name, error.relative,
                   golden_gradient_bound(g, precision, name));
    golden_require(g, "zero gradient in ", name, error.zero_share, golden_zero_bound(g, precision));
}

void golden_check_step(const golden *g, golden_precision precision, int64_t step, double loss,
                       double gradient_norm) {
    if (step < 0 || step >= g->steps) fail_msg("golden: no step %lld", (long long)step);
    char which[32];
    snprintf(which, sizeof which, " of step %lld", (long long)step);
    golden_require(g, "loss", which, golden_relative(loss, g->step_loss[step]),
                   golden_step_loss_bound(g, precision));
    golden_require(g, "gradient norm", which, golden_relative(gradient_norm, g->step_norm[step]),
                   golden_step_norm_bound(g, precision));
}

void golden_check_update(const golden *g, golden_precision precision,
                         const golden_update_error *sum) {
    /* F16 in the file: the sum is the stored norm to some 1e-4 if nothing was left out. */
    golden_require(g, "sum of the updates added (was a parameter left out?)", "",
                   golden_relative(sqrt(sum->update2), g->update_norm), 1e-3);
    golden_require(g, "update", "", sqrt(sum->difference2 / sum->update2),
                   golden_update_bound(g, precision));
}

void golden_check_eval(const golden *g, golden_precision precision, double loss) {
    golden_require(g, "evaluation loss", "", golden_relative(loss, g->eval_loss),
                   golden_loss_bound(g, precision));
}

/* --- initialisation --- */

bool golden_init_open_at(golden_init *init, const char *place, size_t index) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    sifr_error error = {0};
    *init = (golden_init){0};
    snprintf(path, sizeof path, "%s/tests/golden/%sinit.json", source ? source : ".", place);
    if (base_json_load(path, 1 << 24, &init->json, &error)) fail_msg("golden: %s", error.message);
    const char *name;
    json_t *entry;
    json_object_foreach(init->json, name, entry) {
        if (index-- > 0) continue;
        init->name = name;
        init->tensors = json_object_get(entry, "tensors");
        init->config = json_dumps(json_object_get(entry, "config"), JSON_INDENT(2));
        if (init->config == NULL) fail_msg("golden: %s has no config", name);
        return true;
    }
    golden_init_close(init);
    return false;
}

bool golden_init_open(golden_init *init, size_t index) {
    return golden_init_open_at(init, "", index);
}

void golden_init_close(golden_init *init) {
    json_decref(init->json);
    free(init->config);
    *init = (golden_init){0};
}

size_t golden_init_tensors(const golden_init *init) {
    return json_object_size(init->tensors);
}

const char *golden_init_name(const golden_init *init, size_t position) {
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)init->tensors, name, entry) {
        if (position-- == 0) return name;
    }
    return NULL;
}

size_t golden_init_count(const golden_init *init, const char *name) {
    const json_t *entry = json_object_get(init->tensors, name);
    return (size_t)json_integer_value(json_object_get(entry, "count"));
}

/* Rows that transformers leaves at 0: the padding of an embedding. */
static void check_zero_rows(const golden_init *init, const char *name, const json_t *entry,
                            const float *values) {
    const json_t *rows = json_object_get(entry, "zero_rows");
    int64_t width = 0;
    json_t *config = json_loads(init->config, 0, NULL);
    const char *key = "hidden_size", *const others[] = {"dim", "embedding_size"};
    for (int i = 0; i < 2; i++) /* DistilBERT's, and DeBERTa's where tables are narrower */
        if (json_object_get(config, others[i])) key = others[i];
    if (json_array_size(rows)) width = json_integer_value(json_object_get(config, key));
    json_decref(config);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        int64_t row = json_integer_value(json_array_get(rows, i));
        for (int64_t k = 0; k < width; k++) {
            if (values[row * width + k] != 0)
                fail_msg("%s: %s: row %lld is not 0", init->name, name, (long long)row);
        }
        if (width == 0) fail_msg("%s: no %s", init->name, key);
    }
}

void golden_check_init(const golden_init *init, const char *name, const float *values,
                       size_t count) {
    const json_t *entry = json_object_get(init->tensors, name);
    if (entry == NULL) fail_msg("%s: transformers has no parameter %s", init->name, name);
    double expected_count = json_number_value(json_object_get(entry, "count"));
    double expected_mean = json_number_value(json_object_get(entry, "mean"));
    double expected = json_number_value(json_object_get(entry, "deviation"));
    if ((double)count != expected_count) fail_msg("%s: %s: other size", init->name, name);
    check_zero_rows(init, name, entry, values);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) sum += (double)values[i];
    double n = (double)count, mean = sum / n;
    for (size_t i = 0; i < count; i++) squares += pow((double)values[i] - mean, 2);
    double deviation = sqrt(squares / n);
    /* Standard errors of the difference of two samples' means, s sqrt(2/n), and of their
     * deviations, s sqrt(1/n), of a normal distribution; both 0 where the tensor is constant. */
    double mean_bound = 5 * expected * sqrt(2 / n), deviation_bound = 5 * expected * sqrt(1 / n);
    if (!(fabs(mean - expected_mean) <= mean_bound)) {
        fail_msg("%s: mean of %s is %.6g, expected %.6g within %.2g", init->name, name, mean,
                 expected_mean, mean_bound);
    }
    if (!(fabs(deviation - expected) <= deviation_bound)) {
        fail_msg("%s: deviation of %s is %.6g, expected %.6g within %.2g", init->name, name,
                 deviation, expected, deviation_bound);
    }
}
