/* The search of --fit ends where its combinations have no end that anybody waits for: a small
 * DeBERTa on 64 ranks with activations on a disk and 2,520 sequences a rank, which have 48
 * divisors. It ends at the same plan each time, and says that it has ended; where it tried all it
 * does not. */
#include "support/search_case.h"

#include <string.h>

#include "model/model_config.h"

enum { WORK = 16000 };

static const char text[] =
    "{\"model_type\": \"deberta-v2\", \"attention_probs_dropout_prob\": 0.0, \"hidden_act\": "
    "\"gelu\", \"hidden_dropout_prob\": 0.0, \"initializer_range\": 0.02, "
    "\"max_position_embeddings\": 45, \"relative_attention\": true, \"position_buckets\": 6, "
    "\"norm_rel_ebd\": \"layer_norm\", \"share_att_key\": true, \"pos_att_type\": \"p2c|c2p\", "
    "\"layer_norm_eps\": 1e-7, \"max_relative_positions\": 23, \"position_biased_input\": false, "
    "\"type_vocab_size\": 0, \"vocab_size\": 53, \"hidden_size\": 24, \"intermediate_size\": 14, "
    "\"num_attention_heads\": 3, \"num_hidden_layers\": 2, \"pad_token_id\": 0}";

static void begin(search_case *c) {
    model_config config;
    model_choice choice = {.has_task = true, .task = MODEL_MASKED_TOKEN};
    sifr_error error;
    search_case_begin(c, 64);
    sifr_model_free(c->model);
    if (model_config_parse_as(text, strlen(text), "config.json", &choice, &config, &error) !=
            SIFR_OK ||
        model_from_config(&config, &c->model, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    device_only_plan(c->dev);
    c->search.model = c->model;
    c->search.any_order = true;
    c->search.disk_bytes = (int64_t)1 << 40;
    c->search.most_work = WORK;
    c->settings.step.micro_batch_size = 4;
    c->settings.step.gradient_accumulation_steps = 630;
    c->settings.step.offload.activations = SIFR_TIER_NVME;
    c->search.room_bytes = 256 << 10;
}

static plan_outcome fit(search_case *c) {
    plan_outcome out;
    sifr_error error;
    plan_search search = c->search;
    if (plan_fit(&search, &c->settings, &out, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(search.most_work, c->search.most_work);
    c->search.ended = search.ended;
    c->search.tried = search.tried;
    c->search.lowered = search.lowered;
    return out;
}

static void ends(void **state) {
    (void)state;
    search_case c;
    begin(&c);
    for (int open = 0; open < 2; open++) {
        int64_t lowered[2];
        plan_outcome found[2];
        c.search.any_stages = c.search.any_copies = open;
        for (int i = 0; i < 2; i++) {
            c.search.ended = false;
            c.search.lowered = c.search.tried = 0;
            found[i] = fit(&c);
            lowered[i] = c.search.lowered;
            assert_true(c.search.ended);
            /* One more plan at most, of all its stages. */
            assert_true(lowered[i] * (int64_t)c.model->unit_count <=
                        WORK + 2 * 64 * 2520 * (int64_t)c.model->unit_count);
        }
        assert_int_equal(lowered[0], lowered[1]);
        assert_int_equal(found[0].total_bytes, found[1].total_bytes);
        assert_memory_equal(&found[0].settings.step, &found[1].settings.step,
                            sizeof found[0].settings.step);
    }
    search_case_end(&c);
}

/* Where the largest micro batches fit, the bound is far away. */
static void tries_all(void **state) {
    (void)state;
    search_case c;
    begin(&c);
    c.search.room_bytes = INT64_MAX;
    plan_outcome found = fit(&c);
    assert_false(c.search.ended);
    assert_true(found.fits);
    c.search.most_work = 0; /* none */
    plan_outcome again = fit(&c);
    assert_int_equal(found.total_bytes, again.total_bytes);
    c.search.most_work = 1;
    c.search.lowered = 0;
    found = fit(&c);
    assert_true(c.search.ended);
    assert_false(found.fits);
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends), cmocka_unit_test(tries_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
