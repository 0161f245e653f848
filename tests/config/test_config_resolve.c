/* Batch sizes, "auto", schedulers, and what is not built. */
#include "config/config_case.h"

#include <unistd.h>

#include "train/prepare/run_settings.h"

static void batch(const char *text, int64_t ranks, int64_t global, int64_t micro, int64_t steps) {
    config_case *c = config_case_flags(text, ranks, NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.train_batch_size, global);
    assert_int_equal(c->config.step.micro_batch_size, micro);
    assert_int_equal(c->config.step.gradient_accumulation_steps, steps);
    assert_int_equal(c->config.world_size, ranks);
    config_case_free(c);
}

static void any_two_give_the_third(void **state) {
    (void)state;
    batch("{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 4}", 1, 32, 4, 8);
    batch("{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 4}", 4, 32, 4, 2);
    batch("{\"train_batch_size\": 32, \"gradient_accumulation_steps\": 4}", 2, 32, 4, 4);
    batch("{\"train_micro_batch_size_per_gpu\": 3, \"gradient_accumulation_steps\": 5}", 2, 30, 3,
          5);
    batch("{\"train_batch_size\": 24}", 2, 24, 12, 1);
    batch("{\"train_micro_batch_size_per_gpu\": 3}", 2, 6, 3, 1);
    batch("{\"gradient_accumulation_steps\": 2}", 1, 16, 8, 2);
    batch("{}", 1, 8, 8, 1);
    batch("{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\","
          " \"gradient_accumulation_steps\": \"auto\"}",
          2, 16, 8, 1);
    batch("{\"train_batch_size\": 16, \"train_micro_batch_size_per_gpu\": 4,"
          " \"gradient_accumulation_steps\": 2}",
          2, 16, 4, 2);
    batch("{\"train_batch_size\": 16, \"sifr\": {\"per_device_train_batch_size\": 4}}", 1, 16, 4,
          4);
}

static void contradictions(void **state) {
    (void)state;
    config_refused("{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 4,"
                   " \"gradient_accumulation_steps\": 4}",
                   "train_batch_size 32 is not train_micro_batch_size_per_gpu 4 × "
                   "gradient_accumulation_steps 4 × 1 rank = 16; train_batch_size 16 would do, or "
                   "gradient_accumulation_steps 8");
    config_case_refused(
        config_case_flags("{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 4}", 3,
                          NULL),
        "train_batch_size 32 is no multiple of train_micro_batch_size_per_gpu 4 × 3 ranks = 12; "
        "train_batch_size 24 or 36 would do, or 2 or 4 ranks");
    config_case_refused(config_case_flags("{\"train_batch_size\": 10}", 4, NULL),
                        "train_batch_size 10 is no multiple of gradient_accumulation_steps 1 × 4 "
                        "ranks = 4; train_batch_size 8 or 12 would do, or 2 or 5 ranks");
    config_case_refused(config_case_flags("{\"train_batch_size\": \"auto\","
                                          " \"train_micro_batch_size_per_gpu\": \"auto\"}",
                                          4, "train_batch_size", "3", NULL),
                        "train_batch_size 3 is no multiple of gradient_accumulation_steps 1 × 4 "
                        "ranks = 4; train_batch_size 4 would do, or 3 ranks");
    config_refused("{\"train_batch_size\": 2, \"train_micro_batch_size_per_gpu\": 4}",
                   "train_batch_size 2 is no multiple of train_micro_batch_size_per_gpu 4 × 1 rank "
                   "= 4; train_batch_size 4 would do");
    config_refused("{\"train_batch_size\": 9223372036854775807,"
                   " \"train_micro_batch_size_per_gpu\": 4611686018427387904}",
                   "train_batch_size 9223372036854775807 is no multiple of "
                   "train_micro_batch_size_per_gpu 4611686018427387904 × 1 rank = "
                   "4611686018427387904; train_batch_size 4611686018427387904 would do");
    config_refused("{\"train_micro_batch_size_per_gpu\": 9223372036854775807,"
                   " \"gradient_accumulation_steps\": 2}",
                   "train_micro_batch_size_per_gpu 9223372036854775807 × "
                   "gradient_accumulation_steps 2 × 1 rank is too large");
    config_refused("{\"train_micro_batch_size_per_gpu\": 4,"
                   " \"sifr\": {\"per_device_train_batch_size\": 8}}",
                   "ds.json: sifr.per_device_train_batch_size is 8, but "
                   "train_micro_batch_size_per_gpu is 4; leave one of them out");
    config_case_refused(config_case_flags("{}", 0, NULL), "a run needs at least 1 rank");
}

static void flags_over_batches(void **state) {
    (void)state;
    static const char *const text =
        "{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 4,"
        " \"gradient_accumulation_steps\": 8}";
    config_case_refused(config_case_flags(text, 1, "per-device-train-batch-size", "2", NULL),
                        "train_batch_size 32 is not train_micro_batch_size_per_gpu 2 × "
                        "gradient_accumulation_steps 8 × 1 rank = 16; train_batch_size 16 would "
                        "do, or gradient_accumulation_steps 16");
    config_case *c = config_case_flags(text, 1, "per-device-train-batch-size", "2",
                                       "gradient-accumulation-steps", "3", NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.train_batch_size, 6);
    assert_int_equal(c->config.step.micro_batch_size, 2);
    assert_int_equal(c->config.step.gradient_accumulation_steps, 3);
    assert_non_null(strstr(c->lines, "train_batch_size = 6 (2 × 3 × 1 rank, as the flags say; the "
                                     "config's is dropped)"));
    config_case_free(c);
}

static void again_for_other_ranks(void **state) {
    (void)state;
    config_case *c =
        config_case_text("{\"train_batch_size\": 32, \"gradient_accumulation_steps\": 2}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.micro_batch_size, 16);
    assert_int_equal(config_resolve(&c->config, 4, &c->error), SIFR_OK);
    assert_int_equal(c->config.step.micro_batch_size, 4);
    config_case_free(c);
}

/* The config that Hugging Face's docs show, "auto" throughout. */
static const char *const all_auto =
    "{\"fp16\": {\"enabled\": \"auto\", \"loss_scale\": 0}, \"bf16\": {\"enabled\": \"auto\"},"
    " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\", \"betas\": \"auto\","
    " \"eps\": \"auto\", \"weight_decay\": \"auto\"}},"
    " \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"total_num_steps\": \"auto\","
    " \"warmup_min_lr\": \"auto\", \"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\"}},"
    " \"zero_optimization\": {\"stage\": 0, \"overlap_comm\": true, \"reduce_bucket_size\": "
    "\"auto\","
    " \"stage3_prefetch_bucket_size\": \"auto\"},"
    " \"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\","
    " \"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\"}";

static void trainer_defaults(void **state) {
    (void)state;
    config_case *c = config_case_text(all_auto);
    config_case_accepted(c);
    const sifr_config *t = &c->config;
    assert_int_equal(t->step.precision, SIFR_FP32);
    assert_int_equal(t->step.optimizer.type, SIFR_ADAMW);
    assert_true(t->step.optimizer.decoupled);
    assert_true(t->step.optimizer.bias_correction);
    assert_true(t->lr == 5e-5);
    assert_true(t->step.optimizer.eps == 1e-8);
    assert_true(t->step.optimizer.beta1 == 0.9);
    assert_true(t->step.optimizer.beta2 == 0.999);
    assert_true(t->step.optimizer.weight_decay == 0);
    assert_true(t->step.gradient_clipping == 1.0);
    assert_true(t->num_train_epochs == 3.0);
    assert_int_equal(t->max_steps, 0);
    assert_int_equal(t->step.seed, 42);
    assert_int_equal(t->schedule.kind, CONFIG_LR_WARMUP_DECAY);
    assert_true(t->schedule.warmup_max_lr == 5e-5);
    assert_true(t->schedule.warmup_min_lr == 0);
    assert_int_equal(t->schedule.total_num_steps, 0);
    assert_int_equal(t->step.grad_accum_dtype, SIFR_FP32);
    assert_int_equal(config_set_total_steps(&c->config, 70, &c->error), SIFR_OK);
    assert_int_equal(t->schedule.total_num_steps, 70);
    assert_int_equal(config_set_total_steps(&c->config, 80, &c->error), SIFR_OK);
    assert_int_equal(t->schedule.total_num_steps, 70);
    config_case_free(c);
    config_said(all_auto, "optimizer.params.lr",
                "5e-05 (auto: default of the Hugging Face Trainer)");
    config_said(all_auto, "scheduler.params.warmup_num_steps",
                "0 (auto: default of the Hugging Face Trainer; DeepSpeed counts at least 2)");
    config_said(all_auto, "scheduler.params.total_num_steps",
                "\"auto\" (the steps of the run, known once the data is read)");
    config_said(all_auto, "train_micro_batch_size_per_gpu",
                "8 (auto: default of the Hugging Face Trainer)");
    config_said(all_auto, "bf16.enabled", "false (auto: default)");
    config_said(all_auto, "gradient_clipping", "1 (auto: default)");
    config_said(all_auto, "zero_optimization.stage3_prefetch_bucket_size",
                "no effect, since zero_optimization.stage is 0");
    config_said(all_auto, "fp16.enabled", "false (auto: default)");
    config_said(all_auto, "fp16.loss_scale", "0: no effect, since fp16.enabled is false");
}

static void flags_fill_auto(void **state) {
    (void)state;
    config_case *c = config_case_flags(all_auto, 2, "learning-rate", "3e-4", "max-steps", "100",
                                       "per-device-train-batch-size", "4",
                                       "gradient-accumulation-steps", "2", "bf16", NULL, NULL);
    config_case_accepted(c);
    const sifr_config *t = &c->config;
    assert_true(t->lr == 3e-4);
    assert_true(t->schedule.warmup_max_lr == 3e-4);
    assert_true(t->schedule.base_lr == 3e-4);
    assert_int_equal(t->step.precision, SIFR_BF16);
    assert_int_equal(t->schedule.total_num_steps, 100);
    assert_int_equal(t->train_batch_size, 16);
    assert_non_null(strstr(c->lines, "optimizer.params.lr = 0.0003 (auto: from --learning-rate)"));
    assert_non_null(strstr(c->lines, "bf16.enabled = true (--bf16)"));
    config_case_free(c);
}

static void schedulers(void **state) {
    (void)state;
    config_case *c = config_case_text(
        "{\"scheduler\": {\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 1e-5,"
        " \"cycle_max_lr\": 1e-3, \"cycle_first_step_size\": 50, \"cycle_first_stair_count\": "
        "5}}}");
    config_case_accepted(c);
    assert_int_equal(c->config.schedule.kind, CONFIG_LR_ONE_CYCLE);
    assert_int_equal(c->config.schedule.second_step_size, 50);
    assert_int_equal(c->config.schedule.second_stair_count, 5);
    assert_true(c->config.schedule.cycle_momentum);
    config_case_free(c);
    config_refused("{\"scheduler\": {\"type\": \"OneCycle\"}}",
                   "scheduler.params.cycle_min_lr is missing: OneCycle needs it; give a rate");
    config_refused("{\"scheduler\": {\"type\": \"WarmupDecayLR\"}}",
                   "scheduler.params.total_num_steps is missing: WarmupDecayLR needs it; give a "
                   "number of steps, or \"auto\" for those of the run");
    config_refused(
        "{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"total_num_steps\": 5}}}",
        "ds.json: scheduler.params.total_num_steps is no parameter of WarmupLR; leave it "
        "out, it is one of: WarmupDecayLR, WarmupCosineLR");
    config_refused(
        "{\"scheduler\": {\"params\": {\"warmup_num_steps\": 5}}}",
        "ds.json: scheduler.params.warmup_num_steps is given without scheduler.type; add "
        "the type (one of WarmupLR, WarmupDecayLR, WarmupCosineLR)");
    config_refused(
        "{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"max_coeff\": 0.95}}}",
        "ds.json: optimizer.params.max_coeff is no parameter of AdamW; leave it out, it is "
        "one of: Lamb, OneBitLamb");
    config_case_refused(
        config_case_flags("{\"scheduler\": {\"type\": \"LRRangeTest\"}}", 1, "learning-rate", "1",
                          NULL),
        "--learning-rate would have no effect: LRRangeTest has rates of its own; leave it out");
    config_said(
        "{\"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": {\"total_num_steps\": 5,"
        " \"warmup_num_steps\": 9}}}",
        "scheduler.params.total_num_steps", "less than warmup_num_steps 9");
}

static void not_built(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"fp16\": {\"enabled\": true, \"auto_cast\": true}}",
         "ds.json: fp16.auto_cast is true, which is not supported yet; set it to false or leave it "
         "out "
         "(Casts inputs to fp16.)"},
        {"{\"fp16\": {\"enabled\": true, \"fp16_master_weights_and_grads\": true}}",
         "ds.json: fp16.fp16_master_weights_and_grads is true, which is not supported yet; set it "
         "to "
         "false or leave it out (Master weights and gradients in fp16.)"},
        {"{\"tensor_parallel\": {\"size\": 4}}",
         "ds.json: tensor_parallel.size is 4, which does not divide 1 rank; leave it out, or start "
         "a multiple of 4 ranks"},
        {"{\"tensor_parallel\": {\"size\": 2}, \"pipeline\": {\"stages\": 4}, "
         "\"sequence_parallel_size\": 2}",
         "ds.json: pipeline.stages 4, tensor_parallel.size 2, sequence_parallel_size 2: 4 stages x "
         "2 tensors x 2 contexts take a multiple of 16 ranks, and there is 1; start as many, or "
         "give smaller sizes"},
        {"{\"tensor_parallel\": {\"size\": 4, \"autotp_size\": 2}}",
         "ds.json: tensor_parallel.size is 4 and tensor_parallel.autotp_size is 2; give one"},
        {"{\"tensor_parallel\": {\"autotp_size\": 1, \"preset_model\": \"llama\"}}",
         "ds.json: tensor_parallel.preset_model is \"llama\", which is not supported yet; leave it "
         "out (A known way to split, by architecture.)"},
        {"{\"pipeline\": {\"stages\": 2}}",
         "ds.json: pipeline.stages is 2, which does not divide 1 rank; leave it out, or start a "
         "multiple of 2 ranks"},
        {"{\"compression\": {\"type\": \"powerSGD\", \"rank\": 65}}",
         "ds.json: compression.params.matrix_approximation_rank is 65; give at most 64"},
        {"{\"compression\": {\"type\": \"qgZ\"}}",
         "ds.json: compression.type is \"qgZ\", which is not supported yet (supported: none, "
         "powerSGD); choose one that is supported"},
        {"{\"compression\": {\"type\": \"onebit\"}}",
         "ds.json: compression.type is \"onebit\", which DeepSpeed took out in 0.19.8, and is not "
         "supported (supported: none, powerSGD); choose one that is supported"},
        {"{\"data_types\": {\"grad_accum_dtype\": \"bf16\"}}",
         "ds.json: data_types.grad_accum_dtype is not the model's type, fp32; sums of gradients "
         "are kept in that or in fp32"},
        {"{\"data_types\": {\"grad_accum_dtype\": \"fp16\"}, \"bf16\": {\"enabled\": true}}",
         "ds.json: data_types.grad_accum_dtype is not the model's type, bf16; sums of gradients "
         "are kept in that or in fp32"},
        {"{\"data_types\": {\"grad_accum_dtype\": \"bf16\"}, \"bf16\": {\"enabled\": true},"
         " \"communication_data_type\": \"fp32\"}",
         "ds.json: data_types.grad_accum_dtype is bf16, and sums kept in 16 bits are sent in that "
         "type; leave "
         "communication_data_type out"},
        {"{\"data_types\": {\"grad_accum_dtype\": \"fp32\"}, \"bf16\": {\"enabled\": true,"
         " \"bf16_master_weights_and_grads\": true}}",
         "ds.json: bf16.bf16_master_weights_and_grads is true, which keeps gradients in bf16, but "
         "data_types.grad_accum_dtype is fp32; leave one of them out"},
        {"{\"communication_data_type\": \"fp32\", \"bf16\": {\"enabled\": true,"
         " \"bf16_master_weights_and_grads\": true}}",
         "data_types.grad_accum_dtype is bf16, and sums kept in 16 bits are sent in that type; "
         "leave "
         "communication_data_type out"},
        {"{\"optimizer\": {\"params\": {\"max_grad_norm\": 1.0}}}",
         "ds.json: optimizer.params.max_grad_norm is 1, which is refused: DeepSpeed raises on it; "
         "use gradient_clipping. So leave it out"},
        {"{\"data_efficiency\": {\"data_sampling\": {\"enabled\": true}}}",
         "ds.json: data_efficiency is {\"data_sampling\":{\"enabled\":true}}, which is not "
         "supported yet; leave it out (Curriculum learning, dynamic batches and token dropping.)"},
        {"{\"zero_optimization\": {\"zenflow\": {\"overlap_step\": false}}}",
         "ds.json: zero_optimization.zenflow is {\"overlap_step\":false}, which is not supported "
         "yet; "
         "leave it out (Updates the most important gradients at once and the rest behind; on where "
         "the section is there.)"},
        {"{\"comet\": {\"enabled\": true, \"api_key\": \"sesame\"}}",
         "ds.json: comet.api_key is given, which is refused: a config gets into files, which is no "
         "place for it; set COMET_API_KEY where comet_ml runs. So leave it out"},
        {"{\"wandb\": {\"enabled\": true, \"api_key\": \"sesame\"}}",
         "ds.json: wandb.api_key is given, which is refused: a config gets into files, which is no "
         "place for it; set WANDB_API_KEY where wandb runs. So leave it out"},
        {"{\"data_types\": {\"param_dtype\": \"bf16\"}}",
         "data_types.param_dtype is bf16, but bf16.enabled false means fp32; leave param_dtype "
         "out, "
         "or change bf16.enabled"},
        {"{\"sifr\": {\"max_steps\": 0}}",
         "ds.json: sifr.max_steps is 0; give at least 1, or -1 to let num_train_epochs count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_refused(cases[i].text, cases[i].message);
    }
}

/* The message lists all types that are supported, whichever those are. */
static void removed(void **state) {
    (void)state;
    static const char *const begin =
        "ds.json: optimizer.type is \"OneBitAdam\", which DeepSpeed took out in 0.19.8, and is "
        "not supported (supported: AdamW, Adam, SGD, ";
    static const char *const end = "); choose one that is supported";
    config_case *c = config_case_text("{\"optimizer\": {\"type\": \"OneBitAdam\"}}");
    const char *message = c->error.message;
    assert_int_equal(c->status, SIFR_USAGE);
    assert_memory_equal(message, begin, strlen(begin));
    assert_string_equal(message + strlen(message) - strlen(end), end);
    assert_non_null(strstr(message, "Adafactor"));
    assert_null(strstr(message + strlen(begin), "OneBit"));
    config_case_free(c);
}

static void fp16(void **state) {
    (void)state;
    static const char *const own =
        "{\"fp16\": {\"enabled\": true, \"loss_scale\": 0, \"initial_scale_power\": 12,"
        " \"loss_scale_window\": 500, \"hysteresis\": 3, \"consecutive_hysteresis\": true,"
        " \"min_loss_scale\": 0.5}, \"data_types\": {\"param_dtype\": \"fp16\"}}";
    config_case *c = config_case_text(own);
    config_case_accepted(c);
    sifr_settings options = train_step_settings(&c->config, 16);
    assert_int_equal(options.precision, SIFR_FP16);
    assert_true(options.fp16.loss_scale == 0);
    assert_true(options.fp16.initial_scale_power == 12);
    assert_true(options.fp16.min_loss_scale == 0.5);
    assert_true(options.fp16.loss_scale_window == 500);
    assert_true(options.fp16.hysteresis == 3);
    assert_true(options.fp16.consecutive_hysteresis);
    config_case_free(c);
    /* "auto", as Hugging Face's docs have it, and the Trainer's flag */
    c = config_case_flags(all_auto, 1, "fp16", NULL, NULL);
    config_case_accepted(c);
    options = train_step_settings(&c->config, 16);
    sifr_fp16 wanted = sifr_settings_defaults().fp16;
    assert_int_equal(options.precision, SIFR_FP16);
    assert_true(options.fp16.initial_scale_power == wanted.initial_scale_power);
    assert_true(options.fp16.min_loss_scale == wanted.min_loss_scale);
    assert_true(options.fp16.loss_scale_window == wanted.loss_scale_window);
    assert_true(options.fp16.hysteresis == wanted.hysteresis);
    assert_false(options.fp16.consecutive_hysteresis);
    assert_non_null(strstr(c->lines, "fp16.enabled = true (--fp16): Trains in fp16."));
    assert_non_null(strstr(c->lines, "fp16.hysteresis = 2 (default): "));
    assert_non_null(strstr(c->lines, "bf16.enabled = false (auto: default)"));
    config_case_free(c);
    /* what is off is not listed, and not kept */
    c = config_case_text("{}");
    config_case_accepted(c);
    assert_null(strstr(c->lines, "fp16.hysteresis"));
    json_t *effective = config_effective(&c->config);
    assert_null(json_object_get(json_object_get(effective, "fp16"), "hysteresis"));
    json_decref(effective);
    config_case_free(c);
    config_said("{\"fp16\": {\"enabled\": true, \"loss_scale\": 128, \"hysteresis\": 3}}",
                "fp16.hysteresis", "3 (no effect, loss_scale is fixed): ");
    config_refused("{\"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}",
                   "ds.json: fp16.enabled and ds.json: bf16.enabled are both true; switch one of "
                   "them off");
    config_case_refused(config_case_flags("{\"bf16\": {\"enabled\": true}}", 1, "fp16", NULL, NULL),
                        "--fp16 and ds.json: bf16.enabled are both true; switch one of them off");
    config_refused("{\"fp16\": {\"enabled\": true, \"initial_scale_power\": 127}}",
                   "ds.json: fp16.initial_scale_power is 127; the largest loss scale is 2^126");
    config_refused("{\"fp16\": {\"enabled\": true, \"loss_scale\": 1e39}}",
                   "ds.json: fp16.loss_scale is 1e+39; the largest loss scale is 2^126");
    config_refused("{\"fp16\": {\"enabled\": true, \"loss_scale\": 1e-300}}",
                   "ds.json: fp16.loss_scale is 1e-300; the smallest loss scale is 2^-126");
    c = config_case_text("{\"fp16\": {\"loss_scale\": 1e-300}}"); /* fp16 is off */
    config_case_accepted(c);
    config_case_free(c);
    config_refused("{\"data_types\": {\"param_dtype\": \"bf16\"}, \"fp16\": {\"enabled\": true}}",
                   "data_types.param_dtype is bf16, but fp16.enabled true means fp16; leave "
                   "param_dtype out, or change fp16.enabled");
}

static void stages(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        char text[64];
        snprintf(text, sizeof text, "{\"zero_optimization\": {\"stage\": %d}}", stage);
        for (int64_t ranks = 1; ranks <= 4; ranks += 3) {
            config_case *c = config_case_flags(text, ranks, NULL);
            config_case_accepted(c);
            assert_int_equal(c->config.step.zero.stage, stage);
            assert_int_equal(train_step_settings(&c->config, 16).zero.stage, stage);
            bool said = strstr(c->lines, "(no effect with one rank)") != NULL;
            assert_int_equal(said, stage > 0 && ranks == 1);
            config_case_free(c);
        }
    }
    static const char *const parameters[] = {"none", "nvme", "cpu", "cpu"}; /* the last: no GPU */
    for (int i = 0; i < 4; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"%s\","
                 " \"nvme_path\": \"/nvme\"}}, \"sifr\": {\"device\": \"%s\"}}",
                 parameters[i], i == 3 ? "cpu" : "auto");
        config_case *c = config_case_flags(text, 1, NULL);
        config_case_accepted(c);
        bool said = strstr(c->lines, "(no effect with one rank)") != NULL;
        assert_int_equal(said, i == 0 || i == 3);
        config_case_free(c);
    }
}

static void neutral_values_pass(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"zero_optimization\": {\"stage\": 0, \"reduce_scatter\": false,"
        " \"stage3_max_live_parameters\": 1, \"offload_optimizer\": {\"device\": \"none\","
        " \"pin_memory\": false, \"ratio\": 0.5}}}",
        "{\"fp16\": {\"enabled\": false, \"loss_scale\": 128, \"hysteresis\": 3}}",
        "{\"tensor_parallel\": {\"enabled\": false, \"size\": 4}, \"pipeline\": {\"stages\": "
        "\"auto\","
        " \"partition\": \"parameters\"}, \"compression\": {\"type\": \"none\", \"rank\": 4}}",
        "{\"tensor_parallel\": {\"size\": 1, \"autotp_size\": 1}}",
        "{\"data_efficiency\": {\"enabled\": false, \"data_sampling\": {\"enabled\": false}},"
        " \"hybrid_engine\": {}, \"sparse_gradients\": false, \"amp\": {\"enabled\": false,"
        " \"opt_level\": \"O1\"}}",
        "{\"activation_checkpointing\": {\"partition_activations\": false,"
        " \"number_checkpoints\": null}, \"wall_clock_breakdown\": true}",
        "{\"communication_data_type\": \"FP32\", \"data_types\": {\"grad_accum_dtype\": \"fp32\","
        " \"param_dtype\": \"bf16\"}, \"bf16\": {\"enabled\": true, \"check_grad_overflow\": "
        "false}}",
        "{\"tensorboard\": {\"enabled\": false, \"output_path\": \"x\", \"job_name\": \"y\"}}",
        "{\"tensor_parallel\": {\"enabled\": true, \"vocab_parallel_lm_head\": false}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        config_case *c = config_case_text(texts[i]);
        config_case_accepted(c);
        config_case_free(c);
    }
    config_said(texts[2], "pipeline.partition", "no effect, since pipeline.enabled is false");
    config_said(texts[6], "bf16.check_grad_overflow", "accepted without effect: non-finite");
}

/* A config that is written with all its values has the stages that it had. */
static void stages_are_written(void **state) {
    (void)state;
    for (int stages = 1; stages <= 4; stages *= 2) {
        char text[128], *written;
        snprintf(text, sizeof text, "{\"pipeline\": {\"stages\": %d}, \"train_batch_size\": 8}",
                 stages);
        config_case *c = config_case_flags(text, 4, NULL);
        config_case_accepted(c);
        assert_false(config_opens_stages(&c->config));
        assert_int_equal(config_text(&c->config, &written, &c->error), SIFR_OK);
        config_case *again = config_case_flags(written, 4, NULL);
        config_case_accepted(again);
        assert_int_equal(again->config.step.pipeline.stages, stages);
        assert_int_equal(again->config.step.micro_batch_size, 2 * stages);
        free(written);
        config_case_free(c);
        config_case_free(again);
    }
}

/* "auto" is one stage, and open to `sifr plan --fit`, unless stages are switched off. */
static void stages_are_open(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool open;
    } cases[] = {{"{}", false},
                 {"{\"pipeline\": {\"stages\": \"auto\"}}", true},
                 {"{\"pipeline\": {\"stages\": \"auto\", \"enabled\": true}}", true},
                 {"{\"pipeline\": {\"stages\": \"auto\", \"enabled\": false}}", false},
                 {"{\"pipeline\": {\"stages\": 2}}", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_case *c = config_case_flags(cases[i].text, 4, NULL);
        config_case_accepted(c);
        assert_int_equal(config_opens_stages(&c->config), cases[i].open);
        assert_int_equal(c->config.step.pipeline.stages, i == 4 ? 2 : 1);
        config_case_free(c);
    }
}

static void dry_run_names_what_is_refused(void **state) {
    (void)state;
    config_case *c = config_case_text(
        "{\"tensor_parallel\": {\"preset_model\": \"llama\"}, \"steps_per_print\": 5}");
    assert_int_equal(c->status, SIFR_USAGE);
    assert_non_null(
        strstr(c->lines, "tensor_parallel.preset_model = \"llama\": refused: not supported yet"));
    assert_non_null(strstr(c->lines, "steps_per_print = 5: Prints a progress line"));
    config_case_free(c);
}

/* Every field, bit by bit, but the pointers. */
static void same_fields(const sifr_config *a, const sifr_config *b) {
    assert_int_equal(a->train_batch_size, b->train_batch_size);
    assert_int_equal(a->step.micro_batch_size, b->step.micro_batch_size);
    assert_int_equal(a->step.gradient_accumulation_steps, b->step.gradient_accumulation_steps);
    assert_int_equal(a->steps_per_print, b->steps_per_print);
    assert_true(a->step.gradient_clipping == b->step.gradient_clipping);
    assert_int_equal(a->step.precision, b->step.precision);
    assert_true(a->lr == b->lr);
    assert_memory_equal(&a->step.optimizer, &b->step.optimizer, sizeof a->step.optimizer);
    assert_memory_equal(&a->schedule, &b->schedule, sizeof a->schedule);
    assert_int_equal(a->max_steps, b->max_steps);
    assert_true(a->num_train_epochs == b->num_train_epochs);
    assert_int_equal(a->step.seed, b->step.seed);
    assert_int_equal(a->step.step_order, b->step.step_order);
    assert_int_equal(a->step.recompute, b->step.recompute);
    assert_int_equal(a->data_count, b->data_count);
    for (size_t i = 0; i < a->data_count; i++) assert_string_equal(a->data[i], b->data[i]);
    assert_string_equal(a->output, b->output);
}

static void effective_repeats_the_run(void **state) {
    (void)state;
    config_case *first = config_case_flags(
        all_auto, 2, "learning-rate", "0.1", "data", "a.txt", "data", "b.txt", "output", "out",
        "per-device-train-batch-size", "3", "recompute", "unit", "resume", NULL, NULL);
    config_case_accepted(first);
    assert_int_equal(config_set_total_steps(&first->config, 70, &first->error), SIFR_OK);
    json_t *effective = config_effective(&first->config);
    assert_non_null(effective);
    char *text = json_dumps(effective, 0);
    assert_non_null(text);
    static const char *const left_out[] = {"learning_rate", "per_device", "resume", "lr\": \"auto"};
    for (size_t i = 0; i < 4; i++) assert_null(strstr(text, left_out[i]));
    config_case *second = config_case_flags(text, 2, NULL);
    config_case_accepted(second);
    same_fields(&first->config, &second->config);
    assert_false(second->config.resume);
    json_t *again = config_effective(&second->config);
    assert_true(json_equal(effective, again));
    json_decref(again);
    free(text);
    char path[] = "/tmp/sifr-test-config-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_int_equal(config_save(&first->config, path, &first->error), SIFR_OK);
    json_t *saved = json_load_file(path, 0, NULL);
    assert_true(json_equal(effective, saved));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char lines[16384];
    lines[fread(lines, 1, sizeof lines - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(lines, "\"betas\": [0.9, 0.999]"));
    assert_non_null(strstr(lines, "\"lr\": 0.1,"));
    unlink(path);
    json_decref(saved);
    json_decref(effective);
    config_case_free(first);
    config_case_free(second);
}

static void instruction_set(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"sifr\": {\"isa\": \"avx2\"}}");
    config_case_accepted(c);
    assert_string_equal(train_step_settings(&c->config, 16).isa, "avx2");
    config_case_free(c);
    c = config_case_flags("{\"sifr\": {\"isa\": \"avx2\"}}", 1, "isa", "plain", NULL);
    config_case_accepted(c);
    assert_string_equal(train_step_settings(&c->config, 16).isa, "plain");
    config_case_free(c);
    c = config_case_text("{}");
    config_case_accepted(c);
    assert_null(train_step_settings(&c->config, 16).isa);
    config_case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_give_the_third),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(flags_over_batches),
        cmocka_unit_test(again_for_other_ranks),
        cmocka_unit_test(trainer_defaults),
        cmocka_unit_test(flags_fill_auto),
        cmocka_unit_test(schedulers),
        cmocka_unit_test(instruction_set),
        cmocka_unit_test(not_built),
        cmocka_unit_test(removed),
        cmocka_unit_test(fp16),
        cmocka_unit_test(stages),
        cmocka_unit_test(neutral_values_pass),
        cmocka_unit_test(stages_are_written),
        cmocka_unit_test(stages_are_open),
        cmocka_unit_test(dry_run_names_what_is_refused),
        cmocka_unit_test(effective_repeats_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
