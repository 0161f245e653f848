/* What other programs take where their config leaves a key out, and keys whose effect depends on
 * others. Further imports: test_config_import.c. */
#include "config/config_case.h"

#include "config/config_import.h"

static char lines[16384];

static void keep_line(void *user, const char *line) {
    (void)user;
    size_t used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "%s\n", line);
}

static sifr_status import(const char *text, config_imported *made, sifr_error *error) {
    lines[0] = '\0';
    return config_import(text, strlen(text), "a.yaml", keep_line, NULL, made, error);
}

/* Made as this config. */
static void makes(const char *text, const char *wanted) {
    config_imported made;
    sifr_error error = {0};
    if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
    json_t *other = json_loads(wanted, 0, NULL);
    assert_non_null(other);
    if (!json_equal(made.config, other)) {
        char *got = json_dumps(made.config, JSON_INDENT(1) | JSON_SORT_KEYS);
        fail_msg("%s: made\n%s\n%s", text, got, lines);
    }
    json_decref(other);
    json_decref(made.config);
}

static void says(const char *text, const char *line) {
    config_imported made;
    sifr_error error = {0};
    if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
    if (!strstr(lines, line)) fail_msg("no line \"%s\" in:\n%s", line, lines);
    json_decref(made.config);
}

static void refuses(const char *text, const char *key) {
    config_imported made;
    sifr_error error = {0};
    char wanted[120];
    snprintf(wanted, sizeof wanted, "a.yaml: %s is ", key);
    assert_int_equal(import(text, &made, &error), SIFR_USAGE);
    if (strncmp(error.message, wanted, strlen(wanted)) != 0) fail_msg("%s", error.message);
}

static void of_axolotl(void **state) {
    (void)state;
    makes("base_model: m\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 512, \"per_device_train_batch_size\": 1, "
          "\"num_train_epochs\": 1, \"warmup_ratio\": 0.03, \"lr_scheduler_type\": \"cosine\"}, "
          "\"bf16\": {\"enabled\": true}}");
    says("base_model: m\n", "its default of num_epochs = 1: sifr.num_train_epochs\n");
    says("base_model: m\n",
         "its default of warmup_ratio = 0.03: sifr.warmup_ratio (there at most 100 steps)\n");
    makes("base_model: m\nsequence_len: 64\nmicro_batch_size: 2\nbatch_size: 8\nmax_steps: 5\n"
          "fp16: true\nwarmup_steps: 0\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"per_device_train_batch_size\": 2, "
          "\"gradient_accumulation_steps\": 4, \"max_steps\": 5, \"warmup_steps\": 0, "
          "\"lr_scheduler_type\": \"cosine\"}, \"fp16\": {\"enabled\": true}}");
    /* Its packs come in full micro batches. */
    says("base_model: m\nsample_packing: true\n",
         "its default of dataloader_drop_last = true: dataloader_drop_last (of packed rows)\n");
    makes(
        "base_model: m\nsample_packing: true\nbf16: false\nsequence_len: 64\nmicro_batch_size: 2\n"
        "max_steps: 5\nwarmup_steps: 0\ndataloader_drop_last: false\n",
        "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"per_device_train_batch_size\": 2, "
        "\"max_steps\": 5, \"warmup_steps\": 0, \"packing\": true, \"lr_scheduler_type\": "
        "\"cosine\"}, \"dataloader_drop_last\": false}");
    /* The DeepSpeed config has types, sizes and a schedule; its "auto" is axolotl's. */
    makes("base_model: m\nsequence_len: 64\nmax_steps: 5\nbf16: auto\ndeepspeed: {bf16: {enabled: "
          "auto}, train_micro_batch_size_per_gpu: 4, scheduler: {type: WarmupLR}}\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"max_steps\": 5}, \"bf16\": "
          "{\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 4, \"scheduler\": {\"type\": "
          "\"WarmupLR\"}}");
    makes("base_model: m\nsequence_len: 64\nmicro_batch_size: 1\nmax_steps: 5\nbf16: false\n"
          "warmup_steps: 1\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"per_device_train_batch_size\": 1, "
          "\"max_steps\": 5, \"warmup_steps\": 1, \"lr_scheduler_type\": \"cosine\"}}");
}

static void of_llama_factory(void **state) {
    (void)state;
    makes("model_name_or_path: m\nstage: sft\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 2048, \"lr_scheduler_type\": \"linear\", "
          "\"lora\": {\"r\": 8, \"lora_alpha\": 16, \"target_modules\": \"all-linear\"}}}");
    says("model_name_or_path: m\nstage: sft\n",
         "its default of finetuning_type = \"lora\": sifr.lora\n");
    makes("model_name_or_path: m\nfinetuning_type: full\ncutoff_len: 64\nneat_packing: true\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"packing\": true, "
          "\"lr_scheduler_type\": \"linear\"}}");
}

static void of_open_instruct(void **state) {
    (void)state;
    makes("model_name_or_path: m\nuse_lora: true\n",
          "{\"sifr\": {\"model\": \"m\", \"learning_rate\": 2e-5, \"num_train_epochs\": 2, "
          "\"warmup_ratio\": 0.03, \"lr_scheduler_type\": \"linear\", \"lora\": {\"r\": 64, "
          "\"lora_alpha\": 16, \"lora_dropout\": 0.1, \"target_modules\": \"all-linear\"}}, "
          "\"gradient_clipping\": 0}");
    makes("model_name_or_path: m\nclip_grad_norm: -1\nlearning_rate: 1e-5\nmax_train_steps: 9\n"
          "warmup_ratio: 0.1\n",
          "{\"sifr\": {\"model\": \"m\", \"learning_rate\": 1e-5, \"max_steps\": 9, "
          "\"warmup_ratio\": 0.1, \"lr_scheduler_type\": \"linear\"}, \"gradient_clipping\": 0}");
}

static void of_trl(void **state) {
    (void)state;
    makes("model_name_or_path: m\nassistant_only_loss: true\n",
          "{\"sifr\": {\"model\": \"m\", \"train_on\": \"assistant\", \"learning_rate\": 2e-5, "
          "\"seq_length\": 1024, \"lr_scheduler_type\": \"linear\"}, \"bf16\": {\"enabled\": "
          "true}}");
    says("model_name_or_path: m\nuse_peft: true\n",
         "its default of assistant_only_loss = false: of messages TRL learns all, and sifr what "
         "the assistant writes; give --train-on all to learn all\n");
    makes("model_name_or_path: m\nloss_type: sigmoid\nmax_length: null\nfp16: true\n"
          "per_device_train_batch_size: 1\n",
          "{\"sifr\": {\"model\": \"m\", \"learning_rate\": 1e-6, \"lr_scheduler_type\": "
          "\"linear\", \"preference\": {\"loss_type\": \"sigmoid\"}, "
          "\"per_device_train_batch_size\": 2}, \"fp16\": {\"enabled\": true}}");
    makes("output_dir: o\ndataset_text_field: text\nlearning_rate: 1e-4\nmax_length: 8\nbf16: "
          "false\n",
          "{\"sifr\": {\"output\": \"o\", \"learning_rate\": 1e-4, \"seq_length\": 8, "
          "\"lr_scheduler_type\": \"linear\"}, \"bf16\": {\"enabled\": false}}");
}

/* Keys that count only beside others. */
static void together(void **state) {
    (void)state;
    says("output_dir: o\neval_steps: 5\n", "eval_steps = 5: no effect here: eval_strategy is no\n");
    says("output_dir: o\nsave_strategy: epoch\nsave_steps: 5\n",
         "save_steps = 5: no effect here: save_strategy is epoch\n");
    says("output_dir: o\nsave_steps: 5\n", "save_steps = 5: sifr.save_steps\n");
    static const char qlora[] =
        "base_model: m\nadapter: qlora\nload_in_4bit: true\nsequence_len: 8\nmicro_batch_size: 1\n"
        "max_steps: 1\nwarmup_steps: 0\nbnb_config_kwargs: {bnb_4bit_use_double_quant: false}\n";
    makes(qlora,
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 8, \"per_device_train_batch_size\": "
          "1, \"max_steps\": 1, \"warmup_steps\": 0, \"lr_scheduler_type\": \"cosine\", "
          "\"lora\": {}, \"quantization\": {\"load_in_4bit\": true, "
          "\"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": false}}, "
          "\"bf16\": {\"enabled\": true}}");
    says("base_model: m\nbnb_config_kwargs: {llm_int8_threshold: 6.0}\n",
         ": no effect here: load_in_4bit is not given\n");
    refuses("base_model: m\nadapter: qlora\nload_in_4bit: true\n"
            "bnb_config_kwargs: {bnb_4bit_quant_type: fp4}\n",
            "bnb_config_kwargs");
    config_imported made;
    sifr_error error = {0};
    assert_int_equal(import("base_model: m\ndatasets: [{path: a.jsonl, type: chat_template, "
                            "roles_to_train: [assistant], train_on_eos: turn}]\n",
                            &made, &error),
                     SIFR_OK);
    assert_int_equal(made.left, 0);
    json_decref(made.config);
}

/* Another training by a key that no one may overlook. */
static void other_trainings(void **state) {
    (void)state;
    refuses("base_model: m\nreinit_weights: true\n", "reinit_weights");
    refuses("base_model: m\nembedding_lr: 1e-5\n", "embedding_lr");
    refuses("base_model: m\nfp8: true\n", "fp8");
    refuses("output_dir: o\nuse_galore: true\n", "use_galore");
    refuses("output_dir: o\nuse_dft_loss: true\n", "use_dft_loss");
    refuses("output_dir: o\ntrain_from_scratch: true\n", "train_from_scratch");
}

/* What is beyond 16 bits, as Python's json writes it; YAML does not read it. */
static void json_of_python(void **state) {
    (void)state;
    makes("\n{\"output_dir\": \"a \\ud83d\\ude80\", \"learning_rate\": 1e-4}",
          "{\"sifr\": {\"output\": \"a \xf0\x9f\x9a\x80\", \"learning_rate\": 1e-4, "
          "\"lr_scheduler_type\": \"linear\"}}");
    /* YAML's own mappings in braces are read, too. */
    makes("{output_dir: o, learning_rate: 1e-4}",
          "{\"sifr\": {\"output\": \"o\", \"learning_rate\": 1e-4, \"lr_scheduler_type\": "
          "\"linear\"}}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_axolotl),       cmocka_unit_test(of_llama_factory),
        cmocka_unit_test(of_open_instruct), cmocka_unit_test(of_trl),
        cmocka_unit_test(together),         cmocka_unit_test(other_trainings),
        cmocka_unit_test(json_of_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
