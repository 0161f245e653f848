/* The table itself: every row must be well formed, and every key of DeepSpeed's must be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/config_private.h"
#include "config/keys/config_keys.h"

static void rows_are_well_formed(void **state) {
    (void)state;
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        size_t first;
        assert_ptr_equal(config_key_find(key->path, &first), key); /* no path twice */
        assert_int_equal(first, i);
        assert_non_null(key->unit);
        assert_true(key->doc[0] != 0);
        assert_true(key->doc[strlen(key->doc) - 1] != ' ');
        const char *dot = strrchr(key->path, '.');
        if (dot) {
            char parent[256];
            memcpy(parent, key->path, (size_t)(dot - key->path));
            parent[dot - key->path] = 0;
            const config_key *section = config_key_find(parent, NULL);
            assert_non_null(section);
            assert_int_equal(section->type, CONFIG_SECTION);
        }
        if (key->fallback) {
            json_t *value = config_value_default(key);
            if (!value) fail_msg("%s: its default does not pass its own checks", key->path);
            json_decref(value);
        }
        if (key->type == CONFIG_CHOICE) assert_non_null(key->choices);
        if (key->alias) assert_non_null(config_key_find(key->alias, NULL));
        if (key->over) assert_non_null(config_key_find(key->over, NULL));
        if (key->gate) assert_non_null(config_key_find(key->gate, NULL));
        assert_int_equal(key->status == CONFIG_ALIAS, key->alias != NULL);
        if (key->later) {
            assert_int_equal(key->status, CONFIG_BUILT);
            assert_non_null(key->choices);
        }
        if (key->field) {
            assert_int_equal(key->status, CONFIG_BUILT);
            assert_in_range(key->field, 1, sizeof(sifr_config));
        }
    }
}

/* Names as DeepSpeed's source and its users spell them, at least one of each section. */
static void known_names(void **state) {
    (void)state;
    static const char *const paths[] = {
        "train_batch_size",
        "gradient_clipping",
        "steps_per_print",
        "bf16.enabled",
        "fp16.hysteresis",
        "data_types.grad_accum_dtype",
        "zero_optimization.stage3_prefetch_bucket_size",
        "zero_optimization.offload_param.max_in_cpu",
        "zero_optimization.zenflow.topk_ratio",
        "zero_optimization.offload_optimizer.ratio",
        "zero_optimization.leaf_module.classes",
        "activation_checkpointing.cpu_checkpointing",
        "aio.intra_op_parallelism",
        "aio.thread_count",
        "checkpoint.writer.io_buffer_size",
        "checkpoint.parallel_write.pipeline_stage",
        "comms_logger.prof_ops",
        "flops_profiler.module_depth",
        "tensorboard.output_path",
        "csv_monitor.job_name",
        "wandb.team",
        "comet.samples_log_interval",
        "elasticity.prefer_larger_batch",
        "autotuning.tuner_num_trials",
        "pipeline.stages",
        "pipeline.partition",
        "pipeline.enabled",
        "tensor_parallel.enabled",
        "tensor_parallel.size",
        "tensor_parallel.autotp_size",
        "expert_parallel",
        "compression.type",
        "compile.deepcompile",
        "compression_training",
        "data_efficiency",
        "curriculum_learning",
        "progressive_layer_drop",
        "eigenvalue",
        "hybrid_engine",
        "sparse_attention",
        "amp.enabled",
        "torch_autocast.dtype",
        "nebula.persistent_time_interval",
        "datastates_ckpt",
        "scheduler.params.cos_min_ratio",
        "optimizer.params.adam_w_mode",
        "optimizer.params.torch_adam",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!config_key_find(paths[i], NULL)) fail_msg("%s is not in the table", paths[i]);
    }
}

static void flags_come_from_the_table(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "model",
        "data",
        "output",
        "seq-length",
        "max-steps",
        "num-train-epochs",
        "learning-rate",
        "per-device-train-batch-size",
        "gradient-accumulation-steps",
        "seed",
        "dataset",
        "groups",
        "lora",
        "quantization",
        "data-type",
        "chat-template",
        "chat-template-kwargs",
        "train-on",
        "roles-to-train",
        "train-on-eos",
        "train-on-eot",
        "eot-tokens",
        "packing",
        "group-by-length",
        "join-texts",
        "skip-bad-rows",
        "max-samples",
        "drop-long-rows",
        "validation-split",
        "task",
        "labels",
        "problem-type",
        "new-head",
        "text-column",
        "pair-column",
        "label-column",
        "mlm-probability",
        "no-special-tokens",
        "eval-data",
        "eval-steps",
        "eval-on-start",
        "max-eval-windows",
        "save-steps",
        "resume",
        "pipeline-stages",
        "shard-size",
        "context-size",
        "context-kind",
        "tp-exact",
        "step-order",
        "gradient-order",
        "device",
        "threads",
        "isa",
        "collective-timeout",
        "recompute",
        "activation-memory",
        "offload-state",
        "offload-gradients",
        "offload-activations",
        "tile-tokens",
        "nvme-path",
        "logging-steps",
        "save-total-limit",
        "trace",
        "trace-steps",
        "prometheus-file",
        "prometheus-port",
        "mlflow",
        "mlflow-artifacts",
        "lr-scheduler-type",
        "warmup-steps",
        "warmup-ratio",
        "bf16",
        "fp16",
        "freeze",
        "data-fields",
        "ignore-fields",
        "no-decay",
        "layer-decay",
        "ema-decay",
        "adapter",
        "preference",
        "preference-beta",
        "preference-dropout",
        "reference",
        "distill",
        "distill-temperature",
        "distill-weight",
        "own-loss-memory",
        "chat-template-date",
        "sequence-parallel",
    };
    size_t count = 0, found = 0;
    for (config_flag flag; config_flag_at(count, &flag); count++) {
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            if (strcmp(flag.name, wanted[i]) == 0) found++;
        }
        assert_non_null(config_key_find(flag.path, NULL));
        bool is_switch =
            strcmp(flag.name, "resume") == 0 || strcmp(flag.name, "new-head") == 0 ||
            strcmp(flag.name, "no-special-tokens") == 0 ||
            strcmp(flag.name, "eval-on-start") == 0 || strcmp(flag.name, "packing") == 0 ||
            strcmp(flag.name, "group-by-length") == 0 || strcmp(flag.name, "skip-bad-rows") == 0 ||
            strcmp(flag.name, "bf16") == 0 || strcmp(flag.name, "fp16") == 0 ||
            strcmp(flag.name, "preference-dropout") == 0 ||
            strcmp(flag.name, "sequence-parallel") == 0 ||
            strcmp(flag.name, "drop-long-rows") == 0 || strcmp(flag.name, "mlflow") == 0;
        assert_int_equal(flag.argument == NULL, is_switch);
        bool many = strcmp(flag.name, "data") == 0 || strcmp(flag.name, "freeze") == 0 ||
                    strcmp(flag.name, "labels") == 0 || strcmp(flag.name, "data-fields") == 0 ||
                    strcmp(flag.name, "ignore-fields") == 0 ||
                    strcmp(flag.name, "roles-to-train") == 0 ||
                    strcmp(flag.name, "eot-tokens") == 0;
        assert_int_equal(flag.many, many);
    }
    assert_int_equal(found, sizeof wanted / sizeof *wanted);
    assert_int_equal(count, found);
}

/* A path that is not in the table is not taken for the first row. */
static void unknown_paths_have_no_value(void **state) {
    (void)state;
    static const char text[] = "{\"train_batch_size\": 32}";
    sifr_config config;
    sifr_error error;
    char where[300];
    assert_string_equal(config_key_at(0)->path, "train_batch_size");
    assert_int_equal(config_create(&config, &error), SIFR_OK);
    assert_int_equal(config_parse(&config, text, strlen(text), "ds.json", &error), SIFR_OK);
    assert_int_equal(config_resolve(&config, 1, &error), SIFR_OK);
    assert_true(config_gives(&config, "train_batch_size"));
    assert_false(config_gives(&config, "train_batch_siz"));
    assert_int_equal(config_setting_int(&config, "train_batch_siz"), 0);
    assert_string_equal(config_path_where(&config, "train_batch_siz", where), "train_batch_siz");
    assert_int_equal(
        config_setting_put(&config, "train_batch_siz", json_integer(8), &error, "a test"),
        SIFR_FAILED);
    assert_non_null(strstr(error.message, "train_batch_siz is no key of the config"));
    assert_int_equal(config_setting_int(&config, "train_batch_size"), 32);
    config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(known_names),
        cmocka_unit_test(unknown_paths_have_no_value),
        cmocka_unit_test(flags_come_from_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
