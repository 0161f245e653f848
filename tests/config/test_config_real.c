/* Configs in the shapes that people have: of DeepSpeed's docs and examples, transformers,
 * accelerate, axolotl, LLaMA-Factory, TRL, open-instruct and the alignment handbook, written anew
 * (tests/config/ real). Each runs as it is, or is refused by the key that is not built, which the
 * message names first; of an import it is known how many keys have no counterpart. */
#include "config/config_case.h"

#include <dirent.h>

#include "config/import/config_import.h"

static const struct {
    const char *file;
    int faults;        /* 0: runs */
    const char *first; /* key of the first fault */
    size_t left;       /* keys without counterpart, of what is imported and runs */
} real[] = {
    {"acc-cpu-mpirun.yaml", 0, NULL, 1},
    {"acc-ds-file.yaml", 0, NULL, 1},
    {"acc-fp8-tpu.yaml", 1, "mixed_precision", 0},
    {"acc-fsdp.yaml", 0, NULL, 3},
    {"acc-fsdp2.yaml", 0, NULL, 1},
    {"acc-megatron.yaml", 0, NULL, 3},
    {"acc-multi-gpu.yaml", 0, NULL, 1},
    {"acc-zero2.yaml", 0, NULL, 1},
    {"acc-zero3-nodes.yaml", 0, NULL, 4},
    {"acc-zero3-offload.yaml", 0, NULL, 0},
    {"ah-cpt.yaml", 0, NULL, 3},
    {"ah-dpo.yaml", 1, "max_prompt_length", 0},
    {"ah-orpo.yaml", 1, "max_prompt_length", 0},
    {"ah-sft-full.yaml", 0, NULL, 3},
    {"ah-sft-qlora.yaml", 0, NULL, 2},
    {"ah-zero3.yaml", 0, NULL, 1},
    {"ax-completion.yaml", 0, NULL, 1},
    {"ax-custom-rows.yaml", 0, NULL, 0},
    {"ax-dpo.yaml", 0, NULL, 0},
    {"ax-full-deepspeed.yaml", 0, NULL, 1},
    {"ax-liger.yaml", 0, NULL, 2},
    {"ax-lora-options.yaml", 0, NULL, 0},
    {"ax-lora.yaml", 1, "load_in_8bit", 0},
    {"ax-qlora-fsdp.yaml", 4, "lr_scheduler", 0},
    {"ax-zero1.json", 0, NULL, 0},
    {"ax-zero2-compile.json", 0, NULL, 0},
    {"ax-zero2.json", 0, NULL, 0},
    {"ax-zero3-bf16.json", 0, NULL, 0},
    {"ax-zero3-cpuoffload.json", 0, NULL, 0},
    {"ds-adam-warmup.json", 0, NULL, 0},
    {"ds-autocast.json", 1, "torch_autocast.enabled", 0},
    {"ds-autotp.json", 1, "tensor_parallel.autotp_size", 0},
    {"ds-autotuning.json", 1, "autotuning.enabled", 0},
    {"ds-bf16-states.json", 0, NULL, 0},
    {"ds-bing-bert.json", 0, NULL, 0},
    {"ds-chat.json", 0, NULL, 0},
    {"ds-cifar.json", 0, NULL, 0},
    {"ds-comms-logger.json", 0, NULL, 0},
    {"ds-compression.json", 1, "compression_training", 0},
    {"ds-curriculum.json", 1, "curriculum_learning", 0},
    {"ds-data-efficiency.json", 1, "data_efficiency", 0},
    {"ds-deepcompile.json", 1, "compile.deepcompile", 0},
    {"ds-eigenvalue.json", 1, "eigenvalue", 0},
    {"ds-elastic.json", 1, "elasticity.enabled", 0},
    {"ds-first-steps.json", 0, NULL, 0},
    {"ds-flops-profiler.json", 0, NULL, 0},
    {"ds-hybrid-engine.json", 1, "hybrid_engine", 0},
    {"ds-infinity.json", 0, NULL, 0},
    {"ds-lamb.json", 0, NULL, 0},
    {"ds-layer-drop.json", 1, "progressive_layer_drop", 0},
    {"ds-loss-scale.json", 0, NULL, 0},
    {"ds-lr-range-test.json", 0, NULL, 0},
    {"ds-megatron.json", 0, NULL, 0},
    {"ds-monitors.json", 0, NULL, 0},
    {"ds-moq.json", 1, "quantize_training", 0},
    {"ds-muon.json", 0, NULL, 0},
    {"ds-notes.hjson", 0, NULL, 0},
    {"ds-one-cycle.json", 0, NULL, 0},
    {"ds-onebit-adam.json", 1, "optimizer.type", 0},
    {"ds-onebit-lamb.json", 1, "optimizer.type", 0},
    {"ds-pipeline-example.json", 0, NULL, 0},
    {"ds-sparse-attention.json", 1, "sparse_attention", 0},
    {"ds-stage3-tuned.json", 0, NULL, 0},
    {"ds-superoffload.json", 1, "zero_optimization.offload_optimizer.super_offload", 0},
    {"ds-twin-flow.json", 0, NULL, 0},
    {"ds-ulysses.json", 1, "sequence_parallel_size", 0},
    {"ds-universal.json", 0, NULL, 0},
    {"ds-wandb.json", 0, NULL, 0},
    {"ds-zenflow.json", 1, "zero_optimization.zenflow", 0},
    {"ds-zero-one-adam.json", 1, "optimizer.type", 0},
    {"ds-zero1.json", 0, NULL, 0},
    {"ds-zero2.json", 0, NULL, 0},
    {"ds-zero3-offload.json", 0, NULL, 0},
    {"ds-zeropp.json", 1, "zero_optimization.zero_hpz_partition_size", 0}, /* on one rank */
    {"hf-all-arguments.json", 0, NULL, 0},
    {"hf-apex-amp.json", 0, NULL, 0},
    {"hf-arguments.json", 0, NULL, 0},
    {"hf-decay.json", 0, NULL, 0},
    {"hf-galore.yaml", 1, "optim", 0},
    {"hf-sgd.yaml", 0, NULL, 0},
    {"hf-zero0-bf16.json", 0, NULL, 0},
    {"hf-zero2-offload.json", 0, NULL, 0},
    {"hf-zero2.json", 0, NULL, 0},
    {"hf-zero3-nvme.json", 0, NULL, 0},
    {"hf-zero3.json", 0, NULL, 0},
    {"lf-dpo.yaml", 0, NULL, 1},
    {"lf-freeze.yaml", 2, "finetuning_type", 0},
    {"lf-full-sft.yaml", 0, NULL, 1},
    {"lf-lora-sft.yaml", 0, NULL, 1},
    {"lf-orpo.yaml", 1, "pref_loss", 0},
    {"lf-pretrain.yaml", 0, NULL, 1},
    {"lf-reward.yaml", 1, "stage", 0},
    {"lf-simpo.yaml", 1, "pref_loss", 0},
    {"lf-z0.json", 0, NULL, 0},
    {"lf-z2-offload.json", 0, NULL, 0},
    {"lf-z2.json", 0, NULL, 0},
    {"lf-z3-offload.json", 0, NULL, 0},
    {"lf-z3.json", 0, NULL, 0},
    {"oi-dpo.yaml", 1, "dpo_loss_type", 0},
    {"oi-sft.yaml", 1, "reduce_loss", 0},
    {"oi-zero3-offload.json", 0, NULL, 0},
    {"oi-zero3.json", 0, NULL, 0},
    {"trl-dpo-arguments.json", 0, NULL, 0},
    {"trl-greedy.yaml", 1, "sifr.lr_scheduler_type", 0},
    {"trl-kto-arguments.json", 3, "desirable_weight", 0},
    {"trl-orpo.yaml", 1, "max_prompt_length", 0},
    {"trl-sft-arguments.json", 0, NULL, 0},
    {"trl-zero1.yaml", 0, NULL, 1},
};

enum { REAL = sizeof real / sizeof *real };

static bool is_imported(const char *file) {
    return strstr(file, ".yaml") || strstr(file, "arguments.json");
}

static void count_left(void *user, const char *line) {
    *(size_t *)user += strstr(line, ": not taken over: ") != NULL;
}

static sifr_status import_into(sifr_config *config, const char *path, size_t *left,
                               sifr_error *error) {
    config_imported made;
    char *text = NULL;
    sifr_status status = config_import_file(path, NULL, count_left, left, &made, error);
    if (status != SIFR_OK) return status;
    assert_int_equal(made.left, *left);
    assert_int_equal(config_json_text(made.config, &text, error), SIFR_OK);
    status = config_parse(config, text, strlen(text), "made", error);
    json_decref(made.config);
    free(text);
    return status;
}

/* "2 faults: (1) file: key is …", or "file: key is …". */
static void check_message(size_t i, const char *message) {
    char wanted[200];
    int faults = 1, skip = 0;
    sscanf(message, "%d faults%n", &faults, &skip);
    if (faults != real[i].faults) fail_msg("%s: %s", real[i].file, message);
    snprintf(wanted, sizeof wanted, ": %s is ", real[i].first);
    const char *at = strstr(message, wanted), *second = strstr(message, "(2)");
    if (!at || (second && at > second)) fail_msg("%s: %s", real[i].file, message);
}

static void each_runs_or_names_its_key(void **state) {
    (void)state;
    assert_non_null(getenv("SOURCE"));
    for (size_t i = 0; i < REAL; i++) {
        char path[4096];
        size_t left = 0;
        sifr_config config;
        sifr_error error = {0};
        snprintf(path, sizeof path, "%s/tests/config/real/%s", getenv("SOURCE"), real[i].file);
        assert_int_equal(config_create(&config, &error), SIFR_OK);
        sifr_status status = is_imported(real[i].file) ? import_into(&config, path, &left, &error)
                                                       : config_load(&config, path, &error);
        if (status == SIFR_OK) status = config_resolve(&config, 1, &error);
        if (status == SIFR_OK && real[i].faults > 0) fail_msg("%s runs", real[i].file);
        if (status != SIFR_OK && real[i].faults == 0) fail_msg("%s", error.message);
        if (status == SIFR_OK) config_case_is_taken(&config);
        if (status != SIFR_OK)
            check_message(i, error.message);
        else if (left != real[i].left)
            fail_msg("%s: %zu keys left, not %zu", real[i].file, left, real[i].left);
        config_free(&config);
    }
}

static void all_are_in_the_table(void **state) {
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/config/real", getenv("SOURCE"));
    DIR *directory = opendir(path);
    assert_non_null(directory);
    size_t files = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        files += entry->d_name[0] != '.';
    closedir(directory);
    assert_int_equal(files, REAL);
    assert_true(files >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_runs_or_names_its_key),
        cmocka_unit_test(all_are_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
