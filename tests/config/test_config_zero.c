/* The keys of zero_optimization: their defaults, what of them reaches the engine, and what is said
 * of those that change nothing. */
#include "config/config_case.h"
#include "train/prepare/run_settings.h"

static sifr_zero zero_of(const char *text) {
    config_case *c = config_case_flags(text, 4, NULL);
    config_case_accepted(c);
    sifr_zero zero = train_step_settings(&c->config, 16).zero;
    config_case_free(c);
    return zero;
}

static void defaults(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"zero_optimization\": {\"stage\": %d, \"reduce_bucket_size\": \"auto\","
                 " \"stage3_prefetch_bucket_size\": \"auto\", \"overlap_comm\": \"auto\"}}",
                 stage);
        sifr_zero zero = zero_of(text);
        assert_int_equal(zero.overlap_comm, stage == 3);
        assert_int_equal(zero.reduce_bucket_size, SIFR_BY_UNITS);
        assert_int_equal(zero.allgather_bucket_size, 500000000);
        assert_int_equal(zero.prefetch_bucket_size, 1);
        assert_int_equal(zero.max_live_parameters, SIFR_BY_UNITS);
        assert_int_equal(zero.max_reuse_distance, 0);
        assert_int_equal(zero.param_persistence_threshold, 0);
        assert_true(zero.model_persistence_threshold == INT64_MAX);
    }
    assert_true(zero_of("{\"zero_optimization\": {\"overlap_comm\": true}}").overlap_comm);
    assert_false(
        zero_of("{\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": false}}").overlap_comm);
}

static void travel(void **state) {
    (void)state;
    static const char *const names[] = {"fp32", "bf16", "fp16"};
    for (int i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"communication_data_type\": \"%s\"}", names[i]);
        config_case *c = config_case_flags(text, 4, NULL);
        config_case_accepted(c);
        assert_int_equal(train_step_settings(&c->config, 16).communication_data_type, i);
        config_case_free(c);
    }
    config_case *c = config_case_text("{}");
    assert_int_equal(train_step_settings(&c->config, 16).communication_data_type, SIFR_FP32);
    config_case_free(c);
}

/* The types of optimizer state and, with master weights, of gradients; only where bf16 is on. */
static void state_types(void **state) {
    (void)state;
    static const char *const switches[] = {"false", "true"};
    for (int n = 0; n < 8; n++) {
        bool enabled = n & 1, masters = n >> 1 & 1, moments = n >> 2;
        char text[200];
        snprintf(text, sizeof text,
                 "{\"bf16\": {\"enabled\": %s, \"bf16_master_weights_and_grads\": %s,"
                 " \"bf16_optimizer_states\": %s}}",
                 switches[enabled], switches[masters], switches[moments]);
        config_case *c = config_case_text(text);
        config_case_accepted(c);
        sifr_settings options = train_step_settings(&c->config, 16);
        assert_int_equal(options.bf16_master_weights, enabled && masters);
        assert_int_equal(options.grad_accum_dtype, enabled && masters ? SIFR_BF16 : SIFR_FP32);
        assert_int_equal(options.communication_data_type,
                         enabled && masters ? SIFR_BF16 : SIFR_FP32);
        assert_int_equal(options.bf16_optimizer_states, enabled && moments);
        if (!enabled && masters)
            assert_non_null(strstr(c->lines, "bf16.bf16_master_weights_and_grads = true: no "
                                             "effect, since bf16.enabled is false"));
        config_case_free(c);
    }
}

/* As DeepSpeed's docs show them. */
static const char *const stage_3 =
    "{\"zero_optimization\": {\"stage\": 3, \"contiguous_gradients\": true,"
    " \"stage3_max_live_parameters\": 2e9, \"stage3_max_reuse_distance\": 3e9,"
    " \"stage3_prefetch_bucket_size\": 1e7, \"stage3_param_persistence_threshold\": 1e5,"
    " \"stage3_model_persistence_threshold\": 7e6, \"reduce_bucket_size\": 2e7,"
    " \"allgather_bucket_size\": 3e7, \"sub_group_size\": 1e8, \"reduce_scatter\": false,"
    " \"round_robin_gradients\": true, \"overlap_comm\": true}}";

static void given(void **state) {
    (void)state;
    sifr_zero zero = zero_of(stage_3);
    assert_true(zero.overlap_comm);
    assert_int_equal(zero.max_live_parameters, 2000000000);
    assert_int_equal(zero.max_reuse_distance, 3000000000);
    assert_int_equal(zero.prefetch_bucket_size, 10000000);
    assert_int_equal(zero.param_persistence_threshold, 100000);
    assert_int_equal(zero.model_persistence_threshold, 7000000);
    assert_int_equal(zero.reduce_bucket_size, 20000000);
    assert_int_equal(zero.allgather_bucket_size, 30000000);
    config_said(stage_3, "zero_optimization.sub_group_size",
                "no effect, since zero_optimization.offload_optimizer.device is \"none\"");
    config_said(stage_3, "zero_optimization.reduce_scatter", "accepted without effect: a gradient");
    config_said(stage_3, "zero_optimization.stage3_max_live_parameters", "= 2000000000: No unit");
}

/* DeepSpeed's defaults, given: limits as any other. Not given, the units decide, and the effective
 * config leaves it at that. */
static void limits_by_units(void **state) {
    (void)state;
    sifr_zero zero = zero_of("{\"zero_optimization\": {\"stage\": 3, \"reduce_bucket_size\": 5e8,"
                             " \"stage3_max_live_parameters\": 1e9}}");
    assert_int_equal(zero.reduce_bucket_size, 500000000);
    assert_int_equal(zero.max_live_parameters, 1000000000);
    config_case *c = config_case_flags("{\"zero_optimization\": {\"stage\": 3}}", 4, NULL);
    config_case_accepted(c);
    json_t *effective = config_effective(&c->config);
    json_t *section = json_object_get(effective, "zero_optimization");
    assert_null(json_object_get(section, "stage3_max_live_parameters"));
    assert_null(json_object_get(section, "reduce_bucket_size"));
    assert_non_null(strstr(c->lines, "stage3_max_live_parameters = not given"));
    json_decref(effective);
    config_case_free(c);
    assert_int_equal(sifr_settings_defaults().zero.reduce_bucket_size, SIFR_BY_UNITS);
    assert_int_equal(sifr_settings_defaults().zero.max_live_parameters, SIFR_BY_UNITS);
}

/* The effective config says no more of stage 3 than was given, and repeats the run. */
static void below_stage_3(void **state) {
    (void)state;
    static const char *const text =
        "{\"zero_optimization\": {\"stage\": 2, \"stage3_max_reuse_distance\": 5}}";
    config_said(text, "zero_optimization.stage3_max_reuse_distance",
                "= 5: no effect, since zero_optimization.stage is 2");
    config_said("{\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": false,"
                " \"stage3_prefetch_bucket_size\": 5}}",
                "zero_optimization.stage3_prefetch_bucket_size",
                "= 5 (no effect, overlap_comm is false)");
    config_said("{}", "zero_optimization.overlap_comm", "= false (default at stages 0 to 2)");
    config_case *c = config_case_flags(text, 4, NULL);
    config_case_accepted(c);
    assert_null(strstr(c->lines, "stage3_max_live"));
    json_t *effective = config_effective(&c->config);
    json_t *zero = json_object_get(effective, "zero_optimization");
    assert_null(json_object_get(zero, "stage3_max_live_parameters"));
    assert_int_equal(json_integer_value(json_object_get(zero, "stage3_max_reuse_distance")), 5);
    char *again = json_dumps(effective, 0);
    sifr_zero was = zero_of(text), is = zero_of(again);
    assert_int_equal(was.overlap_comm, is.overlap_comm);
    assert_memory_equal(&was.reduce_bucket_size, &is.reduce_bucket_size,
                        sizeof was - offsetof(sifr_zero, reduce_bucket_size));
    free(again);
    json_decref(effective);
    config_case_free(c);
}

/* What would change a result is never passed over. */
static void refused(void **state) {
    (void)state;
    config_refused(
        "{\"zero_optimization\": {\"stage\": 2, \"load_from_fp32_weights\": false}}",
        "ds.json: zero_optimization.load_from_fp32_weights is false, which is not "
        "supported yet; set it to true or leave it out (false rebuilds the masters from 16-bit "
        "weights on load.)");
    config_refused("{\"zero_optimization\": {\"stage\": 3, \"stage3_max_reuse_distance\": -1}}",
                   "ds.json: zero_optimization.stage3_max_reuse_distance must be a whole number "
                   ">= 0 or \"auto\", not -1; its default is 0");
}

/* DeepSpeed's pydantic config takes the alias stage3_x and the field's name x. */
static void field_names_without_stage3(void **state) {
    (void)state;
    config_case *c = config_case_text(
        "{\"zero_optimization\": {\"stage\": 3, \"prefetch_bucket_size\": 11,"
        " \"param_persistence_threshold\": 12, \"model_persistence_threshold\": 13,"
        " \"max_live_parameters\": 14, \"max_reuse_distance\": 15,"
        " \"gather_16bit_weights_on_model_save\": true, \"module_granularity_threshold\": 16,"
        " \"use_all_reduce_for_fetch_params\": false, \"allgather_sequential\": true,"
        " \"partition_stream_chunk_size\": 17}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.zero.prefetch_bucket_size, 11);
    assert_int_equal(c->config.step.zero.param_persistence_threshold, 12);
    assert_int_equal(c->config.step.zero.model_persistence_threshold, 13);
    assert_int_equal(c->config.step.zero.max_live_parameters, 14);
    assert_int_equal(c->config.step.zero.max_reuse_distance, 15);
    config_case_free(c);
    config_refused("{\"zero_optimization\": {\"max_live_parameters\": -1}}",
                   "ds.json: zero_optimization.stage3_max_live_parameters must be a whole number "
                   ">= 0 or \"auto\", not -1");
    config_refused("{\"zero_optimization\": {\"max_live_parameters\": 1,"
                   " \"stage3_max_live_parameters\": 1}}",
                   "ds.json: zero_optimization.max_live_parameters is another name of "
                   "zero_optimization.stage3_max_live_parameters, and both are given; leave "
                   "zero_optimization.max_live_parameters out");
}

static void reduce_bucket_of_nothing(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"zero_optimization\": {\"reduce_bucket_size\": 0}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.zero.reduce_bucket_size, 0);
    config_case_free(c);
}

static void shard_size(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"zero_optimization\": {\"mics_shard_size\": 4}}",
        "{\"sifr\": {\"shard_size\": 4}}",
        "{\"zero_optimization\": {\"mics_shard_size\": 4}, \"sifr\": {\"shard_size\": 4}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        config_case *c = config_case_flags(texts[i], 8, NULL);
        config_case_accepted(c);
        assert_int_equal(c->config.step.mesh.shard_size, 4);
        config_case_free(c);
    }
    config_case *c = config_case_text("{\"zero_optimization\": {\"mics_shard_size\": -1,"
                                      " \"mics_hierarchical_params_gather\": true}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.mesh.shard_size, 0);
    config_case_free(c);
}

static void shard_refused(const char *text, int64_t ranks, const char *message) {
    config_case_refused(config_case_flags(text, ranks, NULL), message);
}

static void shard_sizes_that_do_not_fit(void **state) {
    (void)state;
    shard_refused("{\"sifr\": {\"shard_size\": 3}}", 8,
                  "ds.json: sifr.shard_size is 3: 8 ranks cannot be divided into groups of that "
                  "many; give 2, 4 or 8");
    shard_refused("{\"zero_optimization\": {\"mics_shard_size\": 16}}", 12,
                  "ds.json: zero_optimization.mics_shard_size is 16: 12 ranks cannot be divided "
                  "into groups of that many; give 2, 3, 4, 6 or 12");
    shard_refused("{\"sifr\": {\"shard_size\": 1}}", 4,
                  "ds.json: sifr.shard_size is 1: each rank would hold all states, as at "
                  "zero_optimization.stage 0; set that and leave the size out, or give 2 or 4");
    shard_refused("{\"sifr\": {\"shard_size\": 2}}", 1,
                  "ds.json: sifr.shard_size is 2, and the run has one rank; leave it out, or start "
                  "more ranks");
    shard_refused(
        "{\"zero_optimization\": {\"mics_shard_size\": 4}, \"sifr\": {\"shard_size\": 2}}", 8,
        "ds.json: sifr.shard_size is 2 and zero_optimization.mics_shard_size is 4; give "
        "one");
    shard_refused("{\"pipeline\": {\"stages\": 2}, \"sifr\": {\"shard_size\": 8}}", 8,
                  "ds.json: sifr.shard_size is 8: 4 ranks of a stage cannot be divided into groups "
                  "of that many; give 2 or 4");
    shard_refused("{\"pipeline\": {\"stages\": 2}, \"sifr\": {\"shard_size\": 2}}", 2,
                  "ds.json: sifr.shard_size is 2, and a stage has one rank; leave it out, or start "
                  "more ranks");
}

#define HPZ(size) "{\"zero_optimization\": {\"stage\": 3, \"zero_hpz_partition_size\": " size "}}"

static void hpz(void **state) {
    (void)state;
    static const char key[] = "zero_optimization.zero_hpz_partition_size";
    config_case *c = config_case_flags(HPZ("4"), 8, NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.step.zero.hpz_partition_size, 4);
    assert_false(config_opens_near(&c->config));
    config_case_free(c);
    c = config_case_flags(HPZ("\"auto\""), 8, NULL);
    config_case_accepted(c);
    assert_true(config_opens_near(&c->config));
    assert_int_equal(c->config.step.zero.hpz_partition_size, 1);
    config_case_free(c);
    c = config_case_flags(HPZ("8"), 8, NULL); /* as DeepSpeed takes it on one host */
    config_case_accepted(c);
    assert_non_null(strstr(c->lines, "no effect, these are all ranks that share the state"));
    config_case_free(c);
    config_said(HPZ("0"), key, "= 0");
    config_said("{\"zero_optimization\": {\"stage\": 2, \"zero_hpz_partition_size\": 4}}", key,
                "no effect, since zero_optimization.stage is 2");
    shard_refused(
        HPZ("3"), 8,
        "ds.json: zero_optimization.zero_hpz_partition_size is 3: the 8 ranks that share "
        "the state cannot be divided into groups of that many; give 2, 4 or 8, of these one "
        "that divides the ranks on a host or is a multiple of them");
    shard_refused(HPZ("4"), 1,
                  "ds.json: zero_optimization.zero_hpz_partition_size is 4, and one rank holds all "
                  "the state; leave it out, or start more ranks");
    shard_refused("{\"zero_optimization\": {\"stage\": 3, \"zero_hpz_partition_size\": 8}, "
                  "\"sifr\": {\"shard_size\": 4}}",
                  8,
                  "ds.json: zero_optimization.zero_hpz_partition_size is 8: the 4 ranks that share "
                  "the state cannot be divided into groups of that many; give 2 or 4, of these one "
                  "that divides the ranks on a host or is a multiple of them");
    shard_refused("{\"zero_optimization\": {\"stage\": 3, \"zero_hpz_partition_size\": 4}, "
                  "\"pipeline\": {\"stages\": 4}}",
                  8,
                  "ds.json: zero_optimization.zero_hpz_partition_size is 4: the 2 ranks that share "
                  "the state cannot be divided into groups of that many; give 2, of these one "
                  "that divides the ranks on a host or is a multiple of them");
}

static void loco_is_not_supported_yet(void **state) {
    (void)state;
    config_refused(
        "{\"zero_optimization\": {\"stage\": 2, \"zeropp_loco_param\": {\"err_beta\": 0.5}}}",
        "ds.json: zero_optimization.zeropp_loco_param is {\"err_beta\":0.5}, which is not "
        "supported yet; leave it out (ZeRO++: LoCo error feedback, which DeepSpeed took out in "
        "0.19.8.)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(travel),
        cmocka_unit_test(state_types),
        cmocka_unit_test(given),
        cmocka_unit_test(limits_by_units),
        cmocka_unit_test(below_stage_3),
        cmocka_unit_test(refused),
        cmocka_unit_test(field_names_without_stage3),
        cmocka_unit_test(reduce_bucket_of_nothing),
        cmocka_unit_test(shard_size),
        cmocka_unit_test(shard_sizes_that_do_not_fit),
        cmocka_unit_test(hpz),
        cmocka_unit_test(loco_is_not_supported_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
