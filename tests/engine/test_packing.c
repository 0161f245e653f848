/* Packed sequences: the gradients of documents that share a sequence are those that they have each
 * in a sequence of its own, whatever positions, windows and heads a model has; they agree with
 * differences of the loss; each micro batch has its own positions; what is not there is counted. */
#include <math.h>

#include "engine/small_model.h"

enum { LENGTH = 96, DOCUMENTS = 6, PACKED = 2, WIDTH = 32 };
#define EPSILON 1e6 /* of Adam, so large that a step is plain descent */

static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

/* Documents that cross the kernels' blocks of 64, one of a single token; 2 tokens are left in the
 * first sequence. */
static const int lengths[DOCUMENTS] = {70, 1, 23, 33, 59, 4}, in_first = 3;

static const char *const types[] = {
    /* rotary positions, grouped queries */
    "{\"model_type\": \"llama\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48, ",
    /* learned positions */
    "{\"model_type\": \"gpt2\", \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 4, \"embd_pdrop\": 0, "
    "\"resid_pdrop\": 0, \"attn_pdrop\": 0, ",
    /* a window that ends within a document */
    "{\"model_type\": \"mistral\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 48, "
    "\"sliding_window\": 20, ",
    /* scores with a soft cap, layers with and without a window, norms of its own */
    "{\"model_type\": \"gemma2\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"intermediate_size\": 48, "
    "\"head_dim\": 16, \"sliding_window\": 20, ",
    /* short convolutions, in the first layer alone */
    "{\"model_type\": \"lfm2\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48, "
    "\"full_attn_idxs\": [1], \"block_multiple_of\": 4, \"conv_bias\": true, "
    "\"pad_token_id\": null, ",
    /* the gated delta rule, in the first layer alone */
    "{\"model_type\": \"qwen3_5_text\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"intermediate_size\": 48, "
    "\"head_dim\": 16, \"full_attention_interval\": 2, \"linear_num_key_heads\": 2, "
    "\"linear_num_value_heads\": 4, \"linear_key_head_dim\": 6, \"linear_value_head_dim\": 7, ",
    /* a part of each head turns */
    "{\"model_type\": \"gpt_neox\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"intermediate_size\": 48, ",
    /* heads of two sizes, keys that are values, a part of whole heads turns; no padding, whose row
     * has no gradient of the embedding */
    "{\"model_type\": \"gemma4_unified_text\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48, "
    "\"head_dim\": 8, \"global_head_dim\": 16, \"num_global_key_value_heads\": 1, "
    "\"attention_k_eq_v\": true, \"sliding_window\": 20, \"layer_types\": "
    "[\"sliding_attention\", \"full_attention\"], \"pad_token_id\": null, ",
};
enum { TYPES = sizeof types / sizeof *types };

static sifr_model *make_model(int type, bool packed) {
    char text[640];
    model_config config;
    sifr_model *model = NULL;
    snprintf(text, sizeof text, "%s\"vocab_size\": %d, \"max_position_embeddings\": %d}",
             types[type], SMALL_WORDS, LENGTH);
    OK(model_config_parse_as(text, strlen(text), "test", &(model_choice){.packed = packed}, &config,
                             &error));
    OK(model_from_config(&config, &model, &error));
    return model;
}

/* A batch of `count` sequences, or of their micro batches. */
typedef struct numbers {
    int64_t count;
    int32_t tokens[DOCUMENTS * LENGTH], labels[DOCUMENTS * LENGTH];
    int32_t segments[DOCUMENTS * LENGTH], positions[DOCUMENTS * LENGTH];
} numbers;

static void clear(numbers *n, int64_t count) {
    *n = (numbers){.count = count};
    for (int i = 0; i < DOCUMENTS * LENGTH; i++) n->labels[i] = -100;
}

static void put_document(numbers *n, int document, int at, int segment) {
    int32_t tokens[LENGTH], labels[LENGTH];
    small_batch(document, lengths[document], tokens, labels);
    for (int i = 0; i < lengths[document]; i++) {
        n->tokens[at + i] = tokens[i];
        n->labels[at + i] = labels[i];
        n->segments[at + i] = segment;
        n->positions[at + i] = i;
    }
}

/* What is left of a sequence is a segment of its own. */
static void fill_up(numbers *n, int at, int end, int segment) {
    for (int i = at; i < end; i++) n->segments[i] = segment, n->positions[i] = i - at;
}

static numbers alone, together;

static void make_batches(void) {
    int at = 0;
    clear(&alone, DOCUMENTS);
    clear(&together, PACKED);
    for (int d = 0; d < DOCUMENTS; d++) {
        put_document(&alone, d, d * LENGTH, 0);
        if (d == in_first) fill_up(&together, at, LENGTH, d), at = LENGTH;
        put_document(&together, d, at, d);
        at += lengths[d];
    }
    assert_int_equal(at, 2 * LENGTH);
}

static sifr_batch batch_of(const numbers *n, bool packed) {
    return (sifr_batch){.tokens = n->tokens,
                        .labels = n->labels,
                        .segments = packed ? n->segments : NULL,
                        .positions = packed ? n->positions : NULL};
}

static sifr_settings settings_of(int64_t sequences) {
    sifr_settings options = sifr_settings_defaults();
    options.micro_batch_size = sequences;
    options.seq_length = LENGTH;
    options.threads = 2;
    options.optimizer.eps = EPSILON;
    options.optimizer.weight_decay = 0;
    options.gradient_clipping = 0;
    return options;
}

static double step(sifr_engine *engine, const sifr_batch *batch, double rate) {
    sifr_step_result result;
    OK(sifr_engine_step(engine, batch, rate, &result, &error));
    return result.loss;
}

static size_t elements_of(const sifr_model *model, size_t w) {
    return (size_t)(model->weights[w].rows * model->weights[w].columns);
}

static float *read_weights(const sifr_model *model, const sifr_engine *engine) {
    float *values = malloc((size_t)sifr_model_parameters(model) * sizeof *values), *at = values;
    for (size_t w = 0; w < model->weight_count; at += elements_of(model, w++))
        OK(sifr_engine_read_weight(engine, model->weights[w].name, at, elements_of(model, w),
                                   &error));
    return values;
}

/* What a step of descent takes off all weights, end to end; and its loss. */
static double *descend(const sifr_model *model, sifr_engine *engine, const sifr_batch *batch,
                       double *loss) {
    size_t count = (size_t)sifr_model_parameters(model);
    float *before = read_weights(model, engine);
    *loss = step(engine, batch, EPSILON);
    float *after = read_weights(model, engine);
    double *gradient = malloc(count * sizeof *gradient);
    for (size_t i = 0; i < count; i++) gradient[i] = (double)before[i] - (double)after[i];
    free(before);
    free(after);
    return gradient;
}

static double *gradient_of(int type, const numbers *n, bool packed, double *loss) {
    sifr_model *model = make_model(type, packed);
    sifr_settings options = settings_of(n->count);
    sifr_engine *engine = small_engine(model, &options);
    sifr_batch batch = batch_of(n, packed);
    double *gradient = descend(model, engine, &batch, loss);
    sifr_engine_free(engine);
    sifr_model_free(model);
    return gradient;
}

/* The largest difference of two gradients of a weight, as a share of its norm. */
static double difference(const double *a, const double *b, size_t count) {
    double most = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        norm += b[i] * b[i];
    }
    return most / (sqrt(norm) + 1e-6);
}

/* Of any weight. */
static double compare(int type, const double *a, const double *b, const char **name) {
    static char text[256];
    sifr_model *model = make_model(type, true);
    double most = 0;
    *name = text;
    for (size_t w = 0, at = 0; w < model->weight_count; at += elements_of(model, w++)) {
        double here = difference(a + at, b + at, elements_of(model, w));
        if (here > most) snprintf(text, sizeof text, "%s", model->weights[w].name), most = here;
    }
    sifr_model_free(model);
    return most;
}

static void as_alone(void **state) {
    (void)state;
    make_batches();
    for (int t = 0; t < TYPES; t++) {
        const char *name;
        double losses[2], *want = gradient_of(t, &alone, false, &losses[0]);
        double *have = gradient_of(t, &together, true, &losses[1]);
        double most = compare(t, have, want, &name);
        if (most > 2e-5 || fabs(losses[1] - losses[0]) > 1e-6 * losses[0])
            fail_msg("type %d: %s: %g of its norm; loss %.9g, alone %.9g", t, name, most, losses[1],
                     losses[0]);
        free(have);
        free(want);
    }
}

/* With positions that go on, or documents that see each other, gradients are other ones: the
 * comparison sees that. */
static void others_differ(void **state) {
    (void)state;
    for (int what = 0; what < 2; what++) {
        const char *name;
        double loss, *want, *have;
        make_batches();
        want = gradient_of(1, &alone, false, &loss);
        for (int i = 0; i < PACKED * LENGTH; i++) {
            if (what == 0) together.positions[i] = i % LENGTH;
            if (what == 1) together.segments[i] = 0;
        }
        have = gradient_of(1, &together, true, &loss);
        assert_true(compare(1, have, want, &name) > 1e-2);
        free(have);
        free(want);
    }
}

static void add_along(const sifr_model *model, sifr_engine *engine, const double *gradient,
                      double by) {
    float *values = read_weights(model, engine), *at = values;
    for (size_t i = 0; i < (size_t)sifr_model_parameters(model); i++)
        values[i] += (float)(by * gradient[i]);
    for (size_t w = 0; w < model->weight_count; at += elements_of(model, w++))
        OK(sifr_engine_write_weight(engine, model->weights[w].name, at, elements_of(model, w),
                                    &error));
    free(values);
}

/* The loss's slope along the gradient is its norm. */
static void finite_differences(void **state) {
    (void)state;
    make_batches();
    for (int t = 0; t < TYPES; t++) {
        double loss, norm = 0, sides[2];
        double *gradient = gradient_of(t, &together, true, &loss);
        sifr_model *model = make_model(t, true);
        sifr_settings options = settings_of(PACKED);
        sifr_batch batch = batch_of(&together, true);
        for (size_t i = 0; i < (size_t)sifr_model_parameters(model); i++)
            norm += gradient[i] * gradient[i];
        norm = sqrt(norm);
        for (int side = 0; side < 2; side++) {
            sifr_engine *engine = small_engine(model, &options);
            add_along(model, engine, gradient, (side ? -1e-3 : 1e-3) / norm);
            sides[side] = step(engine, &batch, 0);
            sifr_engine_free(engine);
        }
        double slope = (sides[0] - sides[1]) / 2e-3;
        if (!(fabs(slope - norm) <= 0.01 * norm))
            fail_msg("type %d: slope %g, gradient %g", t, slope, norm);
        sifr_model_free(model);
        free(gradient);
    }
}

/* Sequences as micro batches, in both orders, recomputed: each with its own positions. */
static void micro_batches(void **state) {
    (void)state;
    make_batches();
    for (int t = 0; t < 2; t++) {
        const char *name;
        float *want = NULL;
        double loss, whole, *gradient = gradient_of(t, &together, true, &whole);
        sifr_model *model = make_model(t, true);
        sifr_batch batch = batch_of(&together, true);
        for (int how = 0; how < 4; how++) {
            sifr_settings options = settings_of(1);
            options.gradient_accumulation_steps = PACKED;
            options.step_order = how % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            options.recompute = how / 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            sifr_engine *engine = small_engine(model, &options);
            double *parts = descend(model, engine, &batch, &loss);
            float *have = read_weights(model, engine);
            assert_true(compare(t, parts, gradient, &name) < 2e-5);
            if (want)
                assert_memory_equal(have, want,
                                    (size_t)sifr_model_parameters(model) * sizeof *have);
            free(want);
            want = have;
            free(parts);
            sifr_engine_free(engine);
        }
        free(want);
        free(gradient);
        sifr_model_free(model);
    }
}

/* Without positions they are counted, also after a batch that had some; and an evaluation has the
 * loss of the step. */
static void counted(void **state) {
    (void)state;
    make_batches();
    sifr_model *models[2] = {make_model(1, false), make_model(1, true)};
    sifr_settings options = settings_of(PACKED);
    sifr_batch plain = batch_of(&together, false), packed = batch_of(&together, true);
    double losses[2], evaluated;
    int64_t labelled;
    for (int i = 0; i < 2; i++) {
        sifr_engine *engine = small_engine(models[i], &options);
        if (i) losses[0] = step(engine, &packed, 0);
        if (i) assert_true(fabs(losses[0] - losses[1]) > 1e-4);
        losses[!i] = step(engine, &plain, 0);
        if (i) assert_true(losses[0] == losses[1]);
        if (i) losses[0] = step(engine, &packed, 0);
        OK(sifr_engine_evaluate(engine, i ? &packed : &plain, &evaluated, &labelled, &error));
        assert_true(fabs(evaluated / (double)labelled - losses[!i]) < 1e-6 * evaluated);
        sifr_engine_free(engine);
        sifr_model_free(models[i]);
    }
}

static void refused(void **state) {
    (void)state;
    make_batches();
    sifr_step_result result;
    sifr_settings options = settings_of(PACKED);
    sifr_batch batch = batch_of(&together, true);
    static const int32_t wrong[] = {-1, LENGTH};
    for (int i = 0; i < 3; i++) {
        sifr_model *model = make_model(0, i > 0);
        sifr_engine *engine = small_engine(model, &options);
        if (i) together.positions[5] = wrong[i - 1];
        assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error),
                         i ? SIFR_FAILED : SIFR_USAGE);
        assert_non_null(strstr(error.message, i == 0   ? "the model counts them"
                                              : i == 1 ? "position -1 of token 5"
                                                       : "position 96 of token 5"));
        sifr_engine_free(engine);
        sifr_model_free(model);
    }
    sifr_model *model;
    OK(sifr_model_create(&model, &error));
    sifr_unit(model, "first");
    sifr_pack(model);
    assert_int_equal(sifr_model_finish(model, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "pack: a unit has begun already"));
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_alone),
                                       cmocka_unit_test(others_differ),
                                       cmocka_unit_test(finite_differences),
                                       cmocka_unit_test(micro_batches),
                                       cmocka_unit_test(counted),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
