/* A model of one's own: described with sifr's builder, trained on text that repeats, and asked for
 * what comes next. Build it with
 *     cc own_model.c $(pkg-config --cflags --libs sifr) -lm -o own_model
 * The whole of it is explained in docs/c-interface.md. */
#include <math.h>
#include <sifr/sifr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 128, WIDTH = 64, HEADS = 4, BLOCKS = 2, LENGTH = 64, SEQUENCES = 8, STEPS = 60 };

/* One transformer block, as one would write it on paper. */
static sifr_value block(sifr_model *m, sifr_value x, int index) {
    char name[64];
    double frequencies[WIDTH / HEADS / 2];
    for (int i = 0; i < WIDTH / HEADS / 2; i++)
        frequencies[i] = pow(10000.0, -2.0 * i / (WIDTH / HEADS));

        /* The weight `part` of this block: rows x columns, normal with deviation 0.02. */
#define WEIGHT(part, rows, columns)                                                                \
    (snprintf(name, sizeof name, "blocks.%d." part ".weight", index),                              \
     sifr_weight_matrix(m, name, rows, columns, SIFR_INIT_NORMAL, 0.02))
#define SCALE(part)                                                                                \
    (snprintf(name, sizeof name, "blocks.%d." part ".weight", index),                              \
     sifr_weight_vector(m, name, WIDTH, SIFR_INIT_ONE))

    sifr_value n =
        sifr_rms_norm(m, (sifr_norm_args){.x = x, .scale = SCALE("norm_1"), .epsilon = 1e-5});
    sifr_value q = sifr_linear(m, n, WEIGHT("q", WIDTH, WIDTH), SIFR_NO_WEIGHT);
    sifr_value k = sifr_linear(m, n, WEIGHT("k", WIDTH, WIDTH), SIFR_NO_WEIGHT);
    sifr_value v = sifr_linear(m, n, WEIGHT("v", WIDTH, WIDTH), SIFR_NO_WEIGHT);
    sifr_rope_args rope = {.head_dim = WIDTH / HEADS, .frequencies = frequencies};
    rope.x = q;
    q = sifr_rope(m, rope);
    rope.x = k;
    k = sifr_rope(m, rope);
    sifr_value a = sifr_attention(
        m, (sifr_attention_args){.q = q, .k = k, .v = v, .heads = HEADS, .kv_heads = HEADS});
    sifr_value h = sifr_add(m, x, sifr_linear(m, a, WEIGHT("o", WIDTH, WIDTH), SIFR_NO_WEIGHT));

    n = sifr_rms_norm(m, (sifr_norm_args){.x = h, .scale = SCALE("norm_2"), .epsilon = 1e-5});
    sifr_value gate = sifr_linear(m, n, WEIGHT("gate", 4 * WIDTH, WIDTH), SIFR_NO_WEIGHT);
    sifr_value up = sifr_linear(m, n, WEIGHT("up", 4 * WIDTH, WIDTH), SIFR_NO_WEIGHT);
    sifr_value g = sifr_silu_gate(m, gate, up);
    return sifr_add(m, h, sifr_linear(m, g, WEIGHT("down", WIDTH, 4 * WIDTH), SIFR_NO_WEIGHT));
}

/* Mistakes in the calls are remembered, and reported by sifr_model_finish. */
static sifr_status describe(sifr_model *m, sifr_error *error) {
    sifr_unit(m, "embedding");
    sifr_weight table =
        sifr_weight_matrix(m, "embedding.weight", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.02);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    for (int i = 0; i < BLOCKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d", i);
        sifr_unit(m, name);
        x = block(m, x, i);
    }
    sifr_unit(m, "head");
    sifr_weight scale = sifr_weight_vector(m, "norm.weight", WIDTH, SIFR_INIT_ONE);
    x = sifr_rms_norm(m, (sifr_norm_args){.x = x, .scale = scale, .epsilon = 1e-5});
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = table}); /* tied to the embedding */
    return sifr_model_finish(m, error);
}

int main(void) {
    static const char text[] = "zero is a number, and sifr is its name; ";
    static int32_t tokens[SEQUENCES * LENGTH], labels[SEQUENCES * LENGTH];
    sifr_error error = {0};
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    sifr_step_result result = {0};
    double first = 0;

    printf("sifr %s\n", sifr_version());
    if (sifr_model_create(&model, &error) != SIFR_OK) goto failed;
    if (describe(model, &error) != SIFR_OK) goto failed;
    printf("%lld parameters\n", (long long)sifr_model_parameters(model));

    sifr_settings options = sifr_settings_defaults();
    options.micro_batch_size = SEQUENCES;
    options.seq_length = LENGTH;
    if (sifr_engine_create(model, &options, &engine, &error) != SIFR_OK) goto failed;
    if (sifr_engine_initialise(engine, 42, &error) != SIFR_OK) goto failed;

    /* Each sequence begins elsewhere in the text; the label of a token is the one behind it. */
    for (int i = 0; i < SEQUENCES; i++) {
        for (int t = 0; t < LENGTH; t++) {
            size_t at = (size_t)(i * 5 + t), around = strlen(text);
            tokens[i * LENGTH + t] = text[at % around];
            labels[i * LENGTH + t] = text[(at + 1) % around];
        }
    }
    for (int step = 1; step <= STEPS; step++) {
        if (sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 3e-3,
                             &result, &error) != SIFR_OK)
            goto failed;
        if (step == 1) first = result.loss;
        if (step == 1 || step % 20 == 0) printf("step %d: loss %.3f\n", step, result.loss);
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
    return result.loss < first / 4 ? 0 : 1;

failed:
    fprintf(stderr, "own_model: %s\n", error.message);
    sifr_engine_free(engine);
    sifr_model_free(model);
    return 1;
}
