/* Weights of an engine, by name and number: in pieces, where they lie, and what is refused. */
#include "support/scratch.h"

#include "sifr/sifr.h"

static sifr_error error;
static sifr_context *context;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)
#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        assert_int_equal(call, SIFR_USAGE);                                                        \
        if (!strstr(error.message, words)) fail_msg("%s", error.message);                          \
    } while (0)

static int setup(void **state) {
    return scratch_setup(state) || sifr_context_create(NULL, &context, NULL) != SIFR_OK;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

static sifr_config *make_config(const char *text) {
    sifr_config *config;
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, strlen(text), "config", &error));
    return config;
}

static sifr_loop *open_loop(const char *more) {
    char text[1024];
    sifr_loop *loop;
    snprintf(text, sizeof text,
             "{\"train_micro_batch_size_per_gpu\": 1, %s \"sifr\": {\"model\": "
             "\"%s/tests/golden/models/gpt2\", \"threads\": 1, \"seq_length\": 16}}",
             more, getenv("SOURCE"));
    sifr_config *config = make_config(text);
    OK(sifr_loop_open(context, config, NULL, &loop, &error));
    sifr_config_free(config);
    return loop;
}

/* The first weight with so many elements or more. */
static sifr_weight_facts find_weight(const sifr_engine *engine, int64_t least, int64_t *elements) {
    sifr_weight_facts w = {.size = sizeof w};
    for (size_t i = 0; sifr_engine_weight_at(engine, i, &w); i++) {
        *elements = 1;
        for (int d = 0; d < w.rank; d++) *elements *= w.shape[d];
        if (*elements >= least) return w;
    }
    fail();
    return w;
}

static void pieces(void **state) {
    (void)state;
    int64_t count;
    sifr_loop *loop = open_loop("");
    sifr_engine *engine = sifr_loop_engine(loop);
    sifr_weight_facts w = find_weight(engine, 300, &count);
    assert_true(w.trained && w.rank == 2);
    float some[100], half[100];
    const float *seen;
    for (int i = 0; i < 100; i++) half[i] = 0.5f;
    OK(sifr_engine_view_weight(engine, w.name, &seen, &error));
    OK(sifr_engine_read_piece(engine, w.name, 150, some, 100, &error));
    assert_memory_equal(some, seen + 150, sizeof some);
    OK(sifr_engine_write_piece(engine, w.name, 150, half, 100, &error));
    assert_memory_equal(half, seen + 150, sizeof half);
    assert_true(seen[149] != 0.5f && seen[250] != 0.5f);
    OK(sifr_engine_read_piece(engine, w.name, count, some, 0, &error));
    REFUSED(sifr_engine_read_piece(engine, w.name, count - 99, some, 100, &error), "not among");
    REFUSED(sifr_engine_write_piece(engine, w.name, -1, half, 100, &error), "not among");
    REFUSED(sifr_engine_view_weight(engine, "nothing", &seen, &error), "no weight of that name");
    sifr_loop_close(loop);
    loop = open_loop("\"bf16\": {\"enabled\": true, \"bf16_master_weights_and_grads\": true, "
                     "\"bf16_optimizer_states\": true},");
    engine = sifr_loop_engine(loop);
    w = find_weight(engine, 300, &count);
    REFUSED(sifr_engine_view_weight(engine, w.name, &seen, &error), "not kept in fp32");
    sifr_loop_close(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
