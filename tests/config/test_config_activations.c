/* activation_checkpointing, recompute and activation_memory: what reaches the engine, what is said,
 * and what contradicts itself. */
#include "config/config_case.h"
#include "train/prepare/run_settings.h"

static sifr_settings options_of(const char *text) {
    config_case *c = config_case_text(text);
    config_case_accepted(c);
    sifr_settings options = train_step_settings(&c->config, 16);
    config_case_free(c);
    return options;
}

#define SECTION(text) "{\"activation_checkpointing\": {" text "}}"
#define SIFR(text) "{\"sifr\": {" text "}}"

static void recomputation(void **state) {
    (void)state;
    static const struct {
        const char *text;
        sifr_recompute recompute;
        int64_t bytes;
        int32_t checkpoints;
    } cases[] = {
        {"{}", SIFR_RECOMPUTE_NONE, 0, 0},
        {SECTION("\"partition_activations\": false, \"cpu_checkpointing\": false"),
         SIFR_RECOMPUTE_NONE, 0, 0},
        {SECTION("\"profile\": true, \"synchronize_checkpoint_boundary\": true"),
         SIFR_RECOMPUTE_NONE, 0, 0},
        {SECTION("\"partition_activations\": true"), SIFR_RECOMPUTE_UNIT, 0, 0},
        {SECTION("\"cpu_checkpointing\": true"), SIFR_RECOMPUTE_UNIT, 0, 0},
        {SECTION("\"number_checkpoints\": 3"), SIFR_RECOMPUTE_UNIT, 0, 3},
        {SECTION("\"number_checkpoints\": \"auto\""), SIFR_RECOMPUTE_NONE, 0, 0},
        {SECTION("\"number_checkpoints\": false"), SIFR_RECOMPUTE_NONE, 0, 0},
        {SECTION("\"partition_activations\": true, \"contiguous_memory_optimization\": true,"
                 " \"number_checkpoints\": 12"),
         SIFR_RECOMPUTE_UNIT, 0, 12},
        {"{\"activation_checkpointing\": {\"number_checkpoints\": 3},"
         " \"sifr\": {\"recompute\": \"none\"}}",
         SIFR_RECOMPUTE_NONE, 0, 0},
        {SIFR("\"recompute\": \"auto\""), SIFR_RECOMPUTE_AUTO, 0, 0},
        {SIFR("\"activation_memory\": \"auto\""), SIFR_RECOMPUTE_AUTO, 0, 0},
        {SIFR("\"activation_memory\": \"1.5GiB\""), SIFR_RECOMPUTE_AUTO, 3LL << 29, 0},
        {SIFR("\"activation_memory\": 12345, \"recompute\": \"auto\""), SIFR_RECOMPUTE_AUTO, 12345,
         0},
        {SIFR("\"activation_memory\": \"auto\", \"recompute\": \"none\""), SIFR_RECOMPUTE_NONE, 0,
         0},
        {"{\"activation_checkpointing\": {\"cpu_checkpointing\": true},"
         " \"sifr\": {\"activation_memory\": \"2MB\"}}",
         SIFR_RECOMPUTE_AUTO, 2000000, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sifr_settings options = options_of(cases[i].text);
        assert_int_equal(options.recompute, cases[i].recompute);
        assert_int_equal(options.activation_memory, cases[i].bytes);
        assert_int_equal(options.number_checkpoints, cases[i].checkpoints);
    }
}

/* From a flag, too, and the effective config says the same run. */
static void flags(void **state) {
    (void)state;
    config_case *c = config_case_flags("{}", 1, "activation-memory", "24MiB", NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.step.recompute, SIFR_RECOMPUTE_AUTO);
    assert_int_equal(c->config.step.activation_memory, 24 << 20);
    char *text;
    assert_int_equal(config_text(&c->config, &text, &c->error), SIFR_OK);
    sifr_settings options = options_of(text);
    assert_int_equal(options.activation_memory, 24 << 20);
    free(text);
    config_case_free(c);
}

static void tiles(void **state) {
    (void)state;
    assert_int_equal(options_of("{}").tile_tokens, 0);
    assert_int_equal(options_of(SIFR("\"tile_tokens\": 2048")).tile_tokens, 2048);
}

static void what_is_said(void **state) {
    (void)state;
    config_said(SECTION("\"partition_activations\": true"),
                "activation_checkpointing.partition_activations", "tensor parallelism");
    config_said(SECTION("\"partition_activations\": true"), "sifr.recompute",
                "\"unit\" (from activation_checkpointing)");
    config_said(SECTION("\"cpu_checkpointing\": true"),
                "activation_checkpointing.cpu_checkpointing",
                "= true (no effect on CPU ranks: the activations are in the host's memory)");
    config_said(SIFR("\"activation_memory\": \"1GiB\""), "sifr.recompute",
                "\"auto\" (from activation_memory)");
    config_said("{\"activation_checkpointing\": {\"number_checkpoints\": 3},"
                " \"sifr\": {\"recompute\": \"none\"}}",
                "activation_checkpointing.number_checkpoints",
                "no effect, since sifr.recompute is \"none\"");
}

static void contradictions(void **state) {
    (void)state;
    config_refused(SECTION("\"contiguous_memory_optimization\": true"),
                   "ds.json: activation_checkpointing.contiguous_memory_optimization is true "
                   "without partition_activations, which DeepSpeed refuses, too; set that to true, "
                   "or leave this out");
    config_refused(SECTION("\"contiguous_memory_optimization\": true,"
                           " \"partition_activations\": true"),
                   "ds.json: activation_checkpointing.contiguous_memory_optimization is true "
                   "without number_checkpoints, which DeepSpeed refuses, too; give the model's "
                   "layers there, or leave this out");
    config_refused(SIFR("\"activation_memory\": 5, \"recompute\": \"unit\""),
                   "ds.json: sifr.activation_memory would have no effect: recompute is \"unit\"; "
                   "set that to \"auto\", or leave one of them out");
    config_refused("{\"activation_checkpointing\": {\"number_checkpoints\": 3},"
                   " \"sifr\": {\"activation_memory\": \"1GiB\"}}",
                   "ds.json: activation_checkpointing.number_checkpoints would have no effect: "
                   "with recompute \"auto\" the memory says what is kept; leave one of them out");
    config_refused(SIFR("\"tile_tokens\": 1500"),
                   "ds.json: sifr.tile_tokens is 1500: tiles are whole chunks of 1024 tokens, in "
                   "which gradients are added; give a multiple of that, or 0");
    config_refused(SIFR("\"activation_memory\": \"much\""),
                   "ds.json: sifr.activation_memory must be bytes, such as 1073741824 or \"1GiB\", "
                   "> 0 or \"auto\", not \"much\"");
    config_refused(SECTION("\"number_checkpoints\": 0"),
                   "ds.json: activation_checkpointing.number_checkpoints must be a whole number > "
                   "0 or \"auto\", not 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(recomputation), cmocka_unit_test(flags),
                                       cmocka_unit_test(tiles), cmocka_unit_test(what_is_said),
                                       cmocka_unit_test(contradictions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
