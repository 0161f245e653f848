/* What sifr_settings_check allows, an engine can be made of: at both ends of
 * every field, and for every optimizer that has it. After steps at an end that
 * its row names the loss is finite. */
#include <float.h>
#include <math.h>

#include "config/keys/config_keys.h"
#include "engine/small_model.h"

enum { LENGTH = 8, SEQUENCES = 2, TOKENS = LENGTH * SEQUENCES, STEPS = 3, MOST_ENDS = 3 };

/* A value of a field. `named`: in its row, and not only the largest of its
 * type. */
typedef struct end {
    bool named;
    union {
        double real;
        int64_t wide;
        int32_t narrow;
    };
} end;

/* Without a number for an end the model, the ranks or another field say what is
 * too large. */
static const char *const open_above[] = {
    "mesh.tensor_size", "mesh.context_size",  "micro_batch_size", "gradient_accumulation_steps",
    "seq_length",       "tile_tokens",        "pipeline.stages",  "mesh.shard_size",
    "mesh.tp_exact",    "optimizer.min_coeff"};

static bool is_open_above(const char *name) {
    for (size_t i = 0; i < sizeof open_above / sizeof *open_above; i++)
        if (strcmp(open_above[i], name) == 0) return true;
    return false;
}

static end real_end(double value, bool named) {
    return (end){.named = named, .real = value};
}

static end whole_end(const config_key *row, int64_t value, bool named) {
    end e = {.named = named};
    if (row->size == sizeof e.wide)
        e.wide = value;
    else
        e.narrow = (int32_t)value;
    return e;
}

/* Of a number; choices, switches and texts have none. */
static int ends_of(const config_key *row, end out[MOST_ENDS]) {
    bool real = row->type == CONFIG_NUMBER, whole = row->type == CONFIG_INT;
    whole |= row->type == CONFIG_BYTES;
    if (!(real || whole) || row->choices || row->is_unsigned) return 0;
    config_range range = config_range_of(row->range);
    bool above = row->most || isfinite(range.high);
    double high = row->most ? strtod(row->most, NULL) : above ? range.high : DBL_MAX;
    int64_t most = row->size == sizeof most ? INT64_MAX : INT32_MAX;
    if (real && !config_fits_kernels(row, high)) high = FLT_MAX;
    if (real) {
        out[0] = real_end(range.open_low ? nextafter(range.low, INFINITY) : range.low, true);
        out[1] = real_end(range.open_high && above ? nextafter(high, -INFINITY) : high, above);
    } else {
        out[0] = whole_end(row, (int64_t)range.low + range.open_low, true);
        out[1] = whole_end(row, above ? (int64_t)high : most, above);
    }
    if (row->least) out[2] = real_end(strtod(row->least, NULL), true);
    return row->least ? 3 : 2;
}

static void run(sifr_engine *engine, const char *name) {
    int32_t tokens[TOKENS], labels[TOKENS];
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    sifr_step_result result;
    sifr_error error = {0};
    double loss = NAN;
    int64_t labelled;
    if (sifr_engine_initialise(engine, 7, &error) != SIFR_OK) fail_msg("%s", error.message);
    for (int t = 0; t < STEPS; t++) {
        small_batch(t, TOKENS, tokens, labels);
        if (sifr_engine_step(engine, &batch, 1e-3, &result, &error) != SIFR_OK)
            fail_msg("%s: step %d: %s", name, t, error.message);
    }
    if (sifr_engine_evaluate(engine, &batch, &loss, &labelled, &error) != SIFR_OK ||
        !isfinite(loss))
        fail_msg("%s: the loss is %g after %d steps %s", name, loss, STEPS, error.message);
}

static void try_end(const config_key *row, sifr_settings settings, const end *e) {
    const char *name = config_field_name(row);
    sifr_model *model = small_model(SMALL_TIED);
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    memcpy((char *)&settings + row->field - 1, &e->real, row->size);
    if (strcmp(name, "optimizer.max_coeff") == 0) settings.optimizer.min_coeff = 0;
    sifr_status status = sifr_settings_check(&settings, &error);
    if (status == SIFR_OK) status = sifr_model_group(model, &settings.optimizer, &error);
    if (status == SIFR_OK) status = sifr_engine_create(model, &settings, &engine, &error);
    if (status != SIFR_OK && (e->named || !is_open_above(name)))
        fail_msg("%s, an end that is allowed: %s", name, error.message);
    bool threads = strcmp(name, "threads") == 0; /* a thousand of them take turns for long */
    if (engine && e->named && !threads) run(engine, name);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

static sifr_settings settings_for(const config_key *row, int type) {
    sifr_settings s = sifr_settings_defaults();
    s.micro_batch_size = SEQUENCES;
    s.seq_length = LENGTH;
    s.threads = 1;
    s.optimizer.type = (sifr_optimizer_type)type;
    if (strncmp(config_field_name(row), "fp16.", 5) == 0) s.precision = SIFR_FP16;
    return s;
}

/* The optimizers that have a field: those of its key. */
static const char *types_with(const config_key *row) {
    const config_key *key = config_key_find(row->path, NULL);
    return key ? key->only : NULL;
}

static int try_ends(const config_key *row) {
    const config_key *types = config_key_find("optimizer.type", NULL);
    const char *only = types_with(row);
    char words[400];
    int type = 0, tried = 0;
    end ends[MOST_ENDS];
    snprintf(words, sizeof words, "%s", types->choices);
    for (char *word = strtok(words, "|"); word; word = strtok(NULL, "|"), type++) {
        if (config_key_has_word(types->later, word, NULL, NULL)) continue;
        if (only ? !config_key_has_word(only, word, NULL, NULL) : type > 0) continue;
        for (int i = ends_of(row, ends); i-- > 0; tried++)
            try_end(row, settings_for(row, type), &ends[i]);
    }
    return tried;
}

static void each_end(void **state) {
    (void)state;
    size_t index = 0;
    int tried = 0;
    for (const config_key *row; (row = config_field_next(&index));)
        if (strcmp(config_field_name(row), "optimizer.group_count") != 0) /* needs groups */
            tried += try_ends(row);
    printf("%d engines\n", tried);
    assert_true(tried > 154);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
