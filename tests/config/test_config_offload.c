/* offload_optimizer, offload_param and aio: what reaches the engine, what is said, what is refused.
 */
#include "config/config_case.h"

#include "train/prepare/run_settings.h"

#define OFFLOAD "zero_optimization.offload_optimizer"
#define SIFR(text) "\"sifr\": {" text "}"

static sifr_offload options_of(const char *text) {
    config_case *c = config_case_text(text);
    config_case_accepted(c);
    static char path[64];
    sifr_offload options = train_step_settings(&c->config, 16).offload;
    if (options.nvme_path) {
        snprintf(path, sizeof path, "%s", options.nvme_path);
        options.nvme_path = path;
    }
    config_case_free(c);
    return options;
}

/* Without a device, and on the host's memory, nothing is on disk. */
static void in_memory(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"zero_optimization\": {\"stage\": 3}}",
        "{\"zero_optimization\": {\"offload_optimizer\": {\"nvme_path\": \"/nvme\"}}}",
        ("{\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\","
         " \"nvme_path\": \"/nvme\", \"pin_memory\": true, \"pipeline_read\": true}}}"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(options_of(texts[i]).nvme_path);
    config_said(texts[2], OFFLOAD ".nvme_path", "no effect, since " OFFLOAD ".device is \"none\"");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(options_of(texts[i]).optimizer.device,
                         i == 3 ? SIFR_TIER_CPU : SIFR_TIER_NONE);
    config_said(texts[3], OFFLOAD ".device",
                "= \"cpu\" (no effect on CPU ranks: the state is in the host's memory)");
    config_said(texts[3], OFFLOAD ".pipeline_read",
                "no effect, since " OFFLOAD ".device is \"cpu\" (on GPUs it has one)");
    config_said("{\"aio\": {\"queue_depth\": 32}}", "aio.queue_depth", "no effect, since");
}

static void defaults(void **state) {
    (void)state;
    static const char *const text =
        "{\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\","
        " \"nvme_path\": \"/nvme\", \"buffer_count\": \"auto\"}, \"sub_group_size\": \"auto\"}}";
    sifr_offload o = options_of(text), like = sifr_settings_defaults().offload;
    assert_string_equal(o.nvme_path, "/nvme");
    like.nvme_path = o.nvme_path;
    assert_int_equal(o.sub_group_size, like.sub_group_size);
    assert_int_equal(o.optimizer.buffer_count, like.optimizer.buffer_count);
    assert_true(o.optimizer.pin_memory);
    assert_true(o.optimizer.pipeline_read);
    assert_true(o.optimizer.pipeline_write);
    assert_true(like.optimizer.pin_memory);
    assert_true(like.optimizer.pipeline_read);
    assert_true(like.optimizer.pipeline_write);
    assert_int_equal(o.aio.block_size, like.aio.block_size);
    assert_int_equal(o.aio.queue_depth, like.aio.queue_depth);
    assert_int_equal(o.aio.intra_op_parallelism, like.aio.intra_op_parallelism);
    assert_true(!o.aio.single_submit);
    assert_true(o.aio.overlap_events);
    assert_true(!like.aio.single_submit);
    assert_true(like.aio.overlap_events);
}

static void given(void **state) {
    (void)state;
    static const char *const text =
        "{\"zero_optimization\": {\"stage\": 1, \"sub_group_size\": 1e9,"
        " \"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/nvme\","
        " \"buffer_count\": 5, \"pin_memory\": false, \"pipeline_read\": false,"
        " \"pipeline_write\": false, \"fast_init\": true, \"ratio\": 0.75}},"
        " \"aio\": {\"block_size\": 262144, \"queue_depth\": 24, \"thread_count\": 4,"
        " \"single_submit\": true, \"overlap_events\": false, \"use_gds\": false}}";
    sifr_offload o = options_of(text);
    assert_int_equal(o.sub_group_size, 1000000000);
    assert_int_equal(o.optimizer.buffer_count, 5);
    assert_true(o.optimizer.ratio == 0.75);
    assert_true(!o.optimizer.pin_memory);
    assert_true(o.param.pin_memory);
    assert_true(!o.optimizer.pin_memory);
    assert_true(!o.optimizer.pipeline_read);
    assert_true(!o.optimizer.pipeline_write);
    assert_int_equal(o.aio.block_size, 262144);
    assert_int_equal(o.aio.queue_depth, 24);
    assert_int_equal(o.aio.intra_op_parallelism, 4);
    assert_true(o.aio.single_submit);
    assert_true(!o.aio.overlap_events);
    config_said(text, OFFLOAD ".fast_init", "accepted without effect: moments");
    config_said(text, OFFLOAD ".device", "= \"nvme\": Where the optimizer state is kept");
    config_said(text, "zero_optimization.sub_group_size",
                "= 1000000000: With state or parameters on nvme");
}

#define NVME "\"device\": \"nvme\", \"nvme_path\": \"/nvme\""
#define WITH(offload, rest)                                                                        \
    "{\"zero_optimization\": {\"offload_optimizer\": {" offload "}}" rest "}"

static void refusals(void **state) {
    (void)state;
    config_refused(WITH("\"device\": \"nvme\"", ""),
                   OFFLOAD ".nvme_path is missing: device nvme needs a directory on the disk that "
                           "is to hold the state");
    config_refused(WITH(NVME ", \"super_offload\": true", ""),
                   "ds.json: " OFFLOAD
                   ".super_offload is true, which is not supported yet; set it to "
                   "false or leave it out (Offload for superchips.)");
    config_refused(WITH(NVME, ", \"aio\": {\"block_size\": 100000}"),
                   "ds.json: aio.block_size is 100000; give a multiple of 4096");
    config_refused(WITH(NVME, ", \"aio\": {\"queue_depth\": 100000}"),
                   "ds.json: aio.queue_depth is 100000; give at most 4096");
    config_refused(
        WITH(NVME, ", \"aio\": {\"use_gds\": true}"),
        "ds.json: aio.use_gds is true, which is not supported yet; set it to false or leave "
        "it out (Reads from NVMe straight into GPU memory; here files go through pinned host "
        "memory.)");
    /* the numbers that are named work */
    options_of(WITH(NVME ", \"buffer_count\": 1048576",
                    ", \"aio\": {\"block_size\": 4096, \"queue_depth\": 4096}"));
    config_refused(WITH(NVME ", \"buffer_count\": 1048577", ""),
                   "ds.json: " OFFLOAD ".buffer_count is 1048577; give at most 1048576");
    config_refused(WITH(NVME, ", \"aio\": {\"block_size\": 1073745920}"),
                   "ds.json: aio.block_size is 1073745920; give at most 1073741824");
    config_refused(WITH(NVME, ", \"aio\": {\"intra_op_parallelism\": 257}"),
                   "ds.json: aio.intra_op_parallelism is 257; give at most 256");
    options_of(WITH(NVME, ", \"aio\": {\"block_size\": 1073741824, \"thread_count\": 256}"));
    static const char *const out_of_range[] = {WITH(NVME ", \"buffer_count\": 0", ""),
                                               WITH(NVME ", \"ratio\": 1.5", "")};
    for (int i = 0; i < 2; i++) {
        config_case *c = config_case_text(out_of_range[i]);
        assert_int_equal(c->status, SIFR_USAGE);
        config_case_free(c);
    }
}

#define PARAM "zero_optimization.offload_param"
#define WITH_PARAM(param, rest)                                                                    \
    "{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {" param "}" rest "}}"

static void parameters(void **state) {
    (void)state;
    sifr_offload o = options_of(WITH_PARAM(NVME, ""));
    assert_string_equal(o.nvme_path, "/nvme");
    assert_int_equal(o.param.device, SIFR_TIER_NVME);
    assert_int_not_equal(o.optimizer.device, SIFR_TIER_NVME);
    assert_true(o.param.buffer_count == 0);
    assert_true(o.param.buffer_size == 0);
    assert_true(o.param.max_in_cpu == 0);
    o = options_of(WITH_PARAM(NVME ", \"buffer_count\": \"auto\", \"buffer_size\": \"auto\","
                                   " \"max_in_cpu\": \"auto\", \"pin_memory\": true",
                              ", \"offload_optimizer\": {" NVME "}"));
    assert_int_equal(o.param.device, SIFR_TIER_NVME);
    assert_int_equal(o.optimizer.device, SIFR_TIER_NVME);
    assert_true(o.param.buffer_count == 0);
    assert_true(o.param.buffer_size == 0);
    assert_true(o.param.max_in_cpu == 0);
    o = options_of(WITH_PARAM(NVME ", \"buffer_count\": 7, \"buffer_size\": 1e8,"
                                   " \"max_in_cpu\": 1e9",
                              ", \"sub_group_size\": 5000"));
    assert_true(o.param.buffer_count == 7);
    assert_true(o.param.buffer_size == 100000000);
    assert_true(o.param.max_in_cpu == 1000000000);
    assert_int_equal(o.sub_group_size, 5000);
    assert_null(options_of(WITH_PARAM("\"device\": \"cpu\"", "")).nvme_path);
    assert_int_equal(options_of(WITH_PARAM("\"device\": \"cpu\"", "")).param.device, SIFR_TIER_CPU);
    o = options_of(WITH_PARAM("\"device\": \"cpu\"", ", \"offload_optimizer\": {" NVME "}"));
    assert_int_equal(o.optimizer.device, SIFR_TIER_NVME);
    assert_int_not_equal(o.param.device, SIFR_TIER_NVME);
    config_said(WITH_PARAM("\"device\": \"cpu\", \"buffer_count\": 5", ""), PARAM ".device",
                "= \"cpu\" (no effect on CPU ranks: the parameters are in the host's memory)");
    config_said(WITH_PARAM("\"device\": \"cpu\", \"buffer_count\": 5", ""), PARAM ".buffer_count",
                "no effect, since " PARAM ".device is \"cpu\" (on GPUs it has one)");
    assert_true(options_of(WITH_PARAM(NVME, "")).param.pin_memory);
    assert_true(sifr_settings_defaults().offload.param.pin_memory);
    o = options_of(WITH_PARAM(NVME ", \"pin_memory\": false", ""));
    assert_true(o.optimizer.pin_memory);
    assert_true(!o.param.pin_memory);
    config_said(WITH_PARAM("\"device\": \"cpu\", \"pin_memory\": true", ""), PARAM ".pin_memory",
                "no effect, since " PARAM ".device is \"cpu\"");
    config_said(WITH_PARAM(NVME, ", \"sub_group_size\": 5000"), "zero_optimization.sub_group_size",
                "= 5000: With state or parameters on nvme");
}

static void parameters_refused(void **state) {
    (void)state;
    config_refused("{\"zero_optimization\": {\"stage\": 2, \"offload_param\": {" NVME "}}}",
                   "ds.json: " PARAM ".device is \"nvme\", and zero_optimization.stage is 2; "
                   "parameters are offloaded at stage 3 only");
    config_refused("{\"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}}}",
                   "ds.json: " PARAM ".device is \"cpu\", and zero_optimization.stage is 0; "
                   "parameters are offloaded at stage 3 only");
    config_refused(WITH_PARAM("\"device\": \"nvme\"", ""),
                   PARAM ".nvme_path is missing: device nvme needs a directory on the disk that is "
                         "to hold the parameters");
    config_refused(WITH_PARAM(NVME, ", \"offload_optimizer\": {\"device\": \"nvme\","
                                    " \"nvme_path\": \"/other\"}"),
                   OFFLOAD ".nvme_path is /other and " PARAM ".nvme_path is /nvme; two are not "
                           "supported yet: give the same");
    config_case *c = config_case_text(WITH_PARAM(NVME ", \"buffer_size\": 0", ""));
    assert_int_equal(c->status, SIFR_USAGE);
    config_case_free(c);
}

/* One kind of the state alone; what is not there is refused. */
static void kinds(void **state) {
    (void)state;
    static const char *const names[] = {"all", "master_weights", "moments"};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"zero_optimization\": {\"offload_optimizer\": {%s}},"
                 " \"fp16\": {\"enabled\": true}, \"sifr\": {\"offload_state\": \"%s\"}}",
                 NVME, names[i]);
        sifr_offload o = options_of(text);
        assert_int_equal(o.optimizer.device, SIFR_TIER_NVME);
        assert_int_equal(o.optimizer.state, i);
    }
    sifr_offload o = options_of(WITH(NVME, ""));
    assert_int_equal(o.optimizer.device, SIFR_TIER_NVME);
    assert_int_equal(o.optimizer.state, SIFR_STATE_ALL);
    config_said("{" SIFR("\"offload_state\": \"moments\"") "}", "sifr.offload_state",
                "no effect, since " OFFLOAD ".device is \"none\"");
    config_refused(WITH(NVME, ", " SIFR("\"offload_state\": \"master_weights\"")),
                   "ds.json: sifr.offload_state is \"master_weights\", and training in fp32 has "
                   "none; give \"moments\" or \"all\"");
    static const char low[] =
        "\"bf16\": {\"enabled\": true, \"bf16_master_weights_and_grads\": true}";
    char text[512];
    snprintf(text, sizeof text,
             WITH(NVME, ", " SIFR("\"offload_state\": \"master_weights\"") ", %s"), low);
    config_refused(text,
                   "ds.json: sifr.offload_state is \"master_weights\", and "
                   "bf16.bf16_master_weights_and_grads has none; give \"moments\" or \"all\"");
}

/* Gradients go with the optimizer's state, or by themselves to a directory of their own. */
static void gradients(void **state) {
    (void)state;
    static const char sifr[] = ", \"sifr\": {\"offload_gradients\": \"nvme\"}";
    char text[512];
    snprintf(text, sizeof text, "{\"zero_optimization\": {\"offload_optimizer\": {%s}}%s}", NVME,
             sifr);
    assert_int_equal(options_of(text).gradients, SIFR_TIER_NVME);
    assert_int_not_equal(options_of(text).param.device, SIFR_TIER_NVME);
    assert_string_equal(options_of(text).nvme_path, "/nvme");
    assert_int_not_equal(options_of(WITH(NVME, "")).gradients, SIFR_TIER_NVME);
    sifr_offload o =
        options_of("{" SIFR("\"offload_gradients\": \"nvme\", \"nvme_path\": \"/own\"") "}");
    assert_int_equal(o.gradients, SIFR_TIER_NVME);
    assert_int_not_equal(o.optimizer.device, SIFR_TIER_NVME);
    assert_int_not_equal(o.param.device, SIFR_TIER_NVME);
    assert_int_not_equal(o.activations, SIFR_TIER_NVME);
    assert_string_equal(o.nvme_path, "/own");
    config_refused("{" SIFR("\"offload_gradients\": \"nvme\"") "}",
                   "sifr.nvme_path is missing: sifr.offload_gradients nvme needs a directory on "
                   "the disk that is to hold the gradients");
    config_case *c = config_case_flags(text, 2, NULL);
    assert_int_equal(c->status, SIFR_USAGE);
    assert_non_null(strstr(c->error.message,
                           "is \"nvme\", and zero_optimization.stage is 0; with "
                           "several ranks that is supported at stages 2 and 3 only"));
    config_case_free(c);
}

#define ACTIVATIONS "sifr.offload_activations"
#define ON_DISK "\"offload_activations\": \"nvme\""

/* Activations go with the rest, or to a directory of their own where nothing else is on disk. */
static void activations(void **state) {
    (void)state;
    sifr_offload o = options_of("{" SIFR(ON_DISK ", \"nvme_path\": \"/own\"") "}");
    assert_string_equal(o.nvme_path, "/own");
    assert_int_equal(o.activations, SIFR_TIER_NVME);
    assert_int_not_equal(o.optimizer.device, SIFR_TIER_NVME);
    assert_int_not_equal(o.param.device, SIFR_TIER_NVME);
    assert_int_not_equal(o.gradients, SIFR_TIER_NVME);
    o = options_of(WITH(NVME, ", " SIFR(ON_DISK)));
    assert_string_equal(o.nvme_path, "/nvme");
    assert_int_equal(o.activations, SIFR_TIER_NVME);
    assert_int_equal(o.optimizer.device, SIFR_TIER_NVME);
    o = options_of(
        WITH_PARAM(NVME, "}, " SIFR(ON_DISK ", \"nvme_path\": \"/nvme\"") ", \"aio\": {"));
    assert_string_equal(o.nvme_path, "/nvme");
    assert_int_equal(o.activations, SIFR_TIER_NVME);
    assert_int_equal(o.param.device, SIFR_TIER_NVME);
    assert_int_not_equal(options_of(WITH(NVME, "")).activations, SIFR_TIER_NVME);
    static const char cpu[] = "{" SIFR("\"offload_activations\": \"cpu\"") "}";
    assert_null(options_of(cpu).nvme_path);
    assert_int_not_equal(options_of(cpu).activations, SIFR_TIER_NVME);
    assert_int_equal(options_of(cpu).activations, SIFR_TIER_CPU);
    o = options_of("{\"activation_checkpointing\": {\"cpu_checkpointing\": true},"
                   " \"sifr\": {\"offload_gradients\": \"cpu\"}}");
    assert_int_equal(o.activations, SIFR_TIER_CPU);
    assert_int_equal(o.gradients, SIFR_TIER_CPU);
    assert_int_equal(o.optimizer.device, SIFR_TIER_NONE);
    assert_int_equal(o.param.device, SIFR_TIER_NONE);
    config_said("{" SIFR("\"offload_gradients\": \"cpu\"") "}", "sifr.offload_gradients",
                "no effect on CPU ranks: the gradients are in the host's memory");
    config_said(cpu, ACTIVATIONS,
                "= \"cpu\" (no effect on CPU ranks: the activations are in the host's memory)");
    config_said("{" SIFR("\"nvme_path\": \"/own\"") "}", "sifr.nvme_path",
                "no effect, since " ACTIVATIONS " is \"none\"");
    config_said("{" SIFR(ON_DISK ", \"nvme_path\": \"/own\"") ", \"aio\": {\"queue_depth\": 32}}",
                "aio.queue_depth", "= 32: Requests in flight");
}

static void activations_refused(void **state) {
    (void)state;
    config_refused("{" SIFR(ON_DISK) "}", "sifr.nvme_path is missing: " ACTIVATIONS
                                          " nvme needs a directory on the disk that is to hold the "
                                          "activations");
    config_refused(WITH("\"device\": \"cpu\", \"nvme_path\": \"/nvme\"", ", " SIFR(ON_DISK)),
                   "sifr.nvme_path is missing: " ACTIVATIONS
                   " nvme needs a directory on the disk that is to hold the activations");
    config_refused(WITH(NVME, ", " SIFR(ON_DISK ", \"nvme_path\": \"/own\"")),
                   "sifr.nvme_path is /own and " OFFLOAD ".nvme_path is /nvme; two are not "
                   "supported yet: give the same");
    config_refused(
        "{" SIFR(ON_DISK ", \"nvme_path\": \"/own\"") ", \"aio\": {\"block_size\": 5000}}",
        "ds.json: aio.block_size is 5000; give a multiple of 4096");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),   cmocka_unit_test(defaults),
        cmocka_unit_test(given),       cmocka_unit_test(refusals),
        cmocka_unit_test(parameters),  cmocka_unit_test(parameters_refused),
        cmocka_unit_test(kinds),       cmocka_unit_test(gradients),
        cmocka_unit_test(activations), cmocka_unit_test(activations_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
