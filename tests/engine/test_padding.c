/* pad_token_id of a Llama: the embedding's use of that row trains nothing, a tied head's does, and
 * a fresh model has zeros there, as torch.nn.Embedding's padding_idx. Gradients are read off a step
 * of Adam whose epsilon is so large that it is plain descent. */
#include <math.h>

#include "engine/small_model.h"

enum { SEQUENCES = 2, LENGTH = 16, WIDTH = 48, PAD = 5, BATCHES = 2 };
enum { TOKENS = SEQUENCES * LENGTH * BATCHES, ELEMENTS = SMALL_WORDS * WIDTH };
#define EPSILON 1e6

static int32_t tokens[TOKENS], labels[TOKENS];
static sifr_error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static sifr_model *make_model(const char *type, bool tied, int pad) {
    char text[512];
    model_config config;
    sifr_model *model = NULL;
    bool llama = strcmp(type, "llama") == 0;
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"vocab_size\": %d, \"%s\": %d, \"%s\": 2, \"%s\": 3, "
             "\"max_position_embeddings\": 64, %s \"tie_word_embeddings\": %s, \"embd_pdrop\": 0, "
             "\"resid_pdrop\": 0, \"attn_pdrop\": 0, \"pad_token_id\": %d}",
             type, SMALL_WORDS, llama ? "hidden_size" : "n_embd", WIDTH,
             llama ? "num_hidden_layers" : "n_layer", llama ? "num_attention_heads" : "n_head",
             llama ? "\"intermediate_size\": 96," : "", tied ? "true" : "false", pad);
    OK(model_config_parse(text, strlen(text), "test", &config, &error));
    OK(model_from_config(&config, &model, &error));
    return model;
}

static sifr_engine *make_engine(const sifr_model *model) {
    sifr_settings options = sifr_settings_defaults();
    options.micro_batch_size = SEQUENCES;
    options.seq_length = LENGTH;
    options.gradient_accumulation_steps = BATCHES;
    options.threads = 2;
    options.optimizer.eps = EPSILON;
    options.optimizer.weight_decay = 0;
    options.gradient_clipping = 0;
    return small_engine(model, &options);
}

/* Many a token is PAD, among inputs and labels. */
static void make_batch(void) {
    small_batch(1, TOKENS, tokens, labels);
    for (int i = 0; i < TOKENS; i += 3) tokens[i] = PAD;
    for (int i = 1; i < TOKENS; i += 5) labels[i] = PAD;
}

static double step_loss(sifr_engine *engine, double rate) {
    sifr_step_result result;
    OK(sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, rate, &result,
                        &error));
    return result.loss;
}

/* The gradients of some weights of `count` elements each, in one step. */
static void gradients(sifr_engine *engine, const char *const *names, double *const *out,
                      int count) {
    static float before[2][ELEMENTS], after[ELEMENTS];
    for (int i = 0; i < count; i++)
        OK(sifr_engine_read_weight(engine, names[i], before[i], ELEMENTS, &error));
    (void)step_loss(engine, EPSILON);
    for (int i = 0; i < count; i++) {
        OK(sifr_engine_read_weight(engine, names[i], after, ELEMENTS, &error));
        for (int e = 0; e < ELEMENTS; e++) out[i][e] = (double)before[i][e] - (double)after[e];
    }
}

static double row_norm(const double *gradient, int row) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += gradient[row * WIDTH + i] * gradient[row * WIDTH + i];
    return sqrt(sum);
}

static const char *const table_and_head[] = {"model.embed_tokens.weight", "lm_head.weight"};

/* The gradient of the table of a model, with `pad`, that has the table `table`. */
static void table_gradient(const char *type, bool tied, int pad, const float *table, double *out) {
    const char *name = strcmp(type, "llama") == 0 ? table_and_head[0] : "transformer.wte.weight";
    sifr_model *model = make_model(type, tied, pad);
    sifr_engine *engine = make_engine(model);
    OK(sifr_engine_write_weight(engine, name, table, ELEMENTS, &error));
    gradients(engine, &name, &out, 1);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

static float table[ELEMENTS];
static double with[ELEMENTS], without[ELEMENTS], head[ELEMENTS];

static void make_table(void) {
    make_batch();
    for (int i = 0; i < ELEMENTS; i++) table[i] = 0.05f * (float)sin(1.7 * i);
}

/* Own head: the row has none, and every other row what it had. */
static void untied(void **state) {
    (void)state;
    make_table();
    table_gradient("llama", false, PAD, table, with);
    table_gradient("llama", false, -1, table, without);
    assert_true(row_norm(without, PAD) > 1e-3);
    for (int row = 0; row < SMALL_WORDS; row++) {
        for (int i = row * WIDTH; i < (row + 1) * WIDTH; i++) {
            if (row == PAD ? with[i] != 0 : with[i] != without[i])
                fail_msg("row %d: %g, without padding %g", row, with[i], without[i]);
        }
    }
}

/* Tied: the row's gradient is that of the head's use alone, which a model with a head of its own
 * and the same values has by itself, and which differences of the loss along it show. */
static void tied(void **state) {
    (void)state;
    double largest = 0;
    make_table();
    table_gradient("llama", true, PAD, table, with);
    table_gradient("llama", true, -1, table, without);
    sifr_model *model = make_model("llama", false, -1);
    sifr_engine *engine = make_engine(model);
    for (int i = 0; i < 2; i++)
        OK(sifr_engine_write_weight(engine, table_and_head[i], table, ELEMENTS, &error));
    static double unused[ELEMENTS];
    gradients(engine, table_and_head, (double *const[]){unused, head}, 2);
    sifr_engine_free(engine);
    assert_true(row_norm(head, PAD) > 1e-3);
    for (int i = PAD * WIDTH; i < (PAD + 1) * WIDTH; i++) {
        largest = fmax(largest, fabs(with[i] - without[i]));
        if (!(fabs(with[i] - head[i]) <= 1e-5 * row_norm(head, PAD) + 1e-8))
            fail_msg("element %d: %g, of the head alone %g", i, with[i], head[i]);
    }
    assert_true(largest > 1e-4); /* the input's use did count without padding */

    double norm = row_norm(with, PAD), sides[2];
    for (int side = 0; side < 2; side++) {
        static float moved[ELEMENTS];
        memcpy(moved, table, sizeof moved);
        for (int i = PAD * WIDTH; i < (PAD + 1) * WIDTH; i++)
            moved[i] += (float)((side ? -0.05 : 0.05) * with[i] / norm);
        engine = make_engine(model);
        OK(sifr_engine_write_weight(engine, table_and_head[0], table, ELEMENTS, &error));
        OK(sifr_engine_write_weight(engine, table_and_head[1], moved, ELEMENTS, &error));
        sides[side] = step_loss(engine, 0);
        sifr_engine_free(engine);
    }
    double slope = (sides[0] - sides[1]) / 0.1;
    if (!(fabs(slope - norm) <= 0.01 * norm)) fail_msg("slope %g, gradient %g", slope, norm);
    sifr_model_free(model);
}

/* GPT2Model's embedding has no padding_idx, and an id past the table pads nothing. */
static void no_padding(void **state) {
    (void)state;
    make_table();
    table_gradient("gpt2", true, PAD, table, with);
    table_gradient("gpt2", true, -1, table, without);
    assert_memory_equal(with, without, sizeof with);
    table_gradient("llama", false, SMALL_WORDS, table, with);
    table_gradient("llama", false, -1, table, without);
    assert_memory_equal(with, without, sizeof with);
}

static void fresh(void **state) {
    (void)state;
    static float values[ELEMENTS], others[ELEMENTS];
    for (int pad = -1; pad < PAD + 1; pad += PAD + 1) {
        sifr_model *model = make_model("llama", true, pad);
        sifr_engine *engine = make_engine(model);
        OK(sifr_engine_read_weight(engine, table_and_head[0], pad < 0 ? others : values, ELEMENTS,
                                   &error));
        sifr_engine_free(engine);
        sifr_model_free(model);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(others[i] != 0);
        if (values[i] != (i / WIDTH == PAD ? 0 : others[i])) fail_msg("element %d", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(untied), cmocka_unit_test(tied),
                                       cmocka_unit_test(no_padding), cmocka_unit_test(fresh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
