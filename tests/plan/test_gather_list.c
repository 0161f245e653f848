/* Lists of context ranks that gather keys and values, or the rows before a convolution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "plan/pass/passes.h"
#include "support/search_case.h"

/* They do not grow with the number of short sequences, or a search for the largest micro batch
 * would take minutes and gigabytes. */
static void many_sequences(sifr_context_kind kind, const char *config) {
    enum { RANKS = 2 };
    search_case c;
    sifr_error error;
    size_t instructions[2];
    search_case_begin(&c, RANKS);
    if (config) {
        model_config parsed;
        sifr_model_free(c.model);
        assert_int_equal(model_config_parse(config, strlen(config), "list", &parsed, &error),
                         SIFR_OK);
        assert_int_equal(model_from_config(&parsed, &c.model, &error), SIFR_OK);
    }
    c.settings.step.mesh.context_size = RANKS;
    c.settings.step.mesh.context_kind = kind;
    assert_int_equal(plan_mesh_of(&c.settings.step, RANKS, 0, &c.settings.mesh, &error), SIFR_OK);
    for (int i = 0; i < 2; i++) {
        plan_schedule *s;
        c.settings.step.micro_batch_size = i ? 40 : 400;
        assert_int_equal(plan_lower(c.model, c.dev, &c.settings, &s, &error), SIFR_OK);
        instructions[i] = s->instruction_count;
        plan_free(s);
    }
    assert_int_equal(instructions[0], instructions[1]);
    search_case_end(&c);
}

static void gathered_keys(void **state) {
    (void)state;
    many_sequences(SIFR_CONTEXT_GATHER, NULL);
    many_sequences(SIFR_CONTEXT_BOTH, NULL);
}

static void convolutions(void **state) {
    (void)state;
    many_sequences(SIFR_CONTEXT_ULYSSES,
                   "{\"model_type\": \"lfm2\", \"vocab_size\": 97, \"hidden_size\": 32, "
                   "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
                   "\"num_key_value_heads\": 2, \"intermediate_size\": 48, "
                   "\"max_position_embeddings\": 64, \"layer_types\": [\"conv\", "
                   "\"full_attention\"]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gathered_keys),
                                       cmocka_unit_test(convolutions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
