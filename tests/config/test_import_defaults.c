/* What other programs take where their config leaves a key out, and keys whose effect depends on
 * others. Further imports: test_config_import.c. */
#include "config/import_case.h"

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
    /* Rows that are too long. */
    says("base_model: m\ndatasets: [{path: a.jsonl, type: alpaca}]\n",
         "its default of excess_length_strategy = \"drop\": sifr.drop_long_rows\n");
    says("base_model: m\ndatasets: [{path: a.jsonl, type: alpaca}]\nexcess_length_strategy: "
         "truncate\n",
         "excess_length_strategy = \"truncate\": no effect here: a row is cut at its end\n");
    refuses("base_model: m\ndatasets: [{path: a.jsonl, type: alpaca}]\nexcess_length_strategy: "
            "raise\n",
            "excess_length_strategy");
    /* The DeepSpeed config has types, sizes and a schedule; its "auto" is axolotl's. */
    makes("base_model: m\nsequence_len: 64\nmax_steps: 5\nbf16: auto\ndeepspeed: {bf16: {enabled: "
          "auto}, train_micro_batch_size_per_gpu: 4, scheduler: {type: WarmupLR}}\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"max_steps\": 5}, \"bf16\": "
          "{\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 4, \"scheduler\": {\"type\": "
          "\"WarmupLR\"}}");
    makes("base_model: m\nsequence_len: 64\nmicro_batch_size: 1\nmax_steps: 5\nbf16: false\n"
          "warmup_steps: 1\n",
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 64, \"per_device_train_batch_size\": 1, "
          "\"max_steps\": 5, \"warmup_steps\": 2, \"lr_scheduler_type\": \"cosine\"}}");
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

/* TRL's two keys are read together (tests/data/test_trl_rows.c has what each learns). */
static void parts_of_trl(void **state) {
    (void)state;
    static const char *const wanted[][2] = {
        {"assistant_only_loss: false", "completion"},
        {"completion_only_loss: true", "completion"},
        {"completion_only_loss: false", "all"},
        {"assistant_only_loss: true", "assistant_only"},
        {"assistant_only_loss: true\ncompletion_only_loss: true", "assistant_only"},
        {"completion_only_loss: false\nassistant_only_loss: true", "assistant_turns"}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char text[160];
        config_imported made;
        sifr_error error = {0};
        snprintf(text, sizeof text, "model_name_or_path: m\n%s\n", wanted[i][0]);
        assert_int_equal(import(text, &made, &error), SIFR_OK);
        const json_t *own = json_object_get(made.config, "sifr");
        assert_string_equal(json_string_value(json_object_get(own, "train_on")), wanted[i][1]);
        json_decref(made.config);
    }
    /* In either order each key's line names what both became. */
    static const char *const both[] = {"completion_only_loss: false\nassistant_only_loss: true\n",
                                       "assistant_only_loss: true\ncompletion_only_loss: false\n"};
    for (size_t i = 0; i < 2; i++) {
        char text[160];
        snprintf(text, sizeof text, "model_name_or_path: m\n%s", both[i]);
        says(text, "completion_only_loss = false: sifr.train_on, assistant_turns\n");
        says(text, "assistant_only_loss = true: sifr.train_on, assistant_turns\n");
    }
}

static void of_trl(void **state) {
    (void)state;
    makes(
        "model_name_or_path: m\nassistant_only_loss: true\n",
        "{\"sifr\": {\"model\": \"m\", \"train_on\": \"assistant_only\", \"learning_rate\": 2e-5, "
        "\"seq_length\": 1024, \"lr_scheduler_type\": \"linear\"}, \"bf16\": {\"enabled\": "
        "true}}");
    says("model_name_or_path: m\nuse_peft: true\n",
         "its default of completion_only_loss = \"completion\": sifr.train_on, and all of "
         "messages\n");
    /* TRL's own example of its command line. */
    makes("model_name_or_path: m\ndataset_name: a.jsonl\nmax_length: 1024\npacking: true\n",
          "{\"sifr\": {\"model\": \"m\", \"data\": [\"a.jsonl\"], \"seq_length\": 1024, "
          "\"packing\": true, \"train_on\": \"completion\", \"learning_rate\": 2e-5, "
          "\"lr_scheduler_type\": \"linear\", \"ignore_fields\": [\"system\", "
          "\"system_prompt\", \"input\", \"instruction\", \"question\", \"context\", "
          "\"history\", \"label\", \"kto_tag\"]}, \"bf16\": {\"enabled\": true}}");
    makes("model_name_or_path: m\nloss_type: sigmoid\nmax_length: null\nfp16: true\n"
          "per_device_train_batch_size: 1\n",
          "{\"sifr\": {\"model\": \"m\", \"learning_rate\": 1e-6, \"lr_scheduler_type\": "
          "\"linear\", \"preference\": {\"loss_type\": \"sigmoid\"}, "
          "\"per_device_train_batch_size\": 2}, \"fp16\": {\"enabled\": true}}");
    makes("output_dir: o\ndataset_text_field: text\nlearning_rate: 1e-4\nmax_length: 8\nbf16: "
          "false\n",
          "{\"sifr\": {\"output\": \"o\", \"learning_rate\": 1e-4, \"seq_length\": 8, "
          "\"train_on\": \"completion\", "
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
        "base_model: m\nadapter: qlora\nlora_r: 4\nlora_alpha: 8\nload_in_4bit: "
        "true\nsequence_len: 8\nmicro_batch_size: 1\n"
        "max_steps: 1\nwarmup_steps: 0\nbnb_config_kwargs: {bnb_4bit_use_double_quant: false}\n";
    makes(qlora,
          "{\"sifr\": {\"model\": \"m\", \"seq_length\": 8, \"per_device_train_batch_size\": "
          "1, \"max_steps\": 1, \"warmup_steps\": 0, \"lr_scheduler_type\": \"cosine\", "
          "\"lora\": {\"r\": 4, \"lora_alpha\": 8}, \"quantization\": {\"load_in_4bit\": true, "
          "\"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": false}}, "
          "\"bf16\": {\"enabled\": true}}");
    says("base_model: m\nbnb_config_kwargs: {llm_int8_threshold: 6.0}\n",
         ": no effect here: load_in_4bit is not given\n");
    refuses("base_model: m\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_alpha: 8\n"
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
    refuses("base_model: m\nuse_eaft: true\n", "use_eaft");
    refuses("base_model: m\nspectrum_top_fraction: 0.25\n", "spectrum_top_fraction");
    refuses("base_model: m\nrl: dpo\ndpo_loss_weights: [1.0]\n", "dpo_loss_weights");
    refuses("base_model: m\nlr_groups: [{name: a, modules: [q], lr: 0.1}]\n", "lr_groups");
    refuses("base_model: m\nunfrozen_parameters: [lm_head]\n", "unfrozen_parameters");
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

static void import_with(const char *text, const config_import_options *options,
                        config_imported *made, sifr_error *error, sifr_status wanted) {
    *error = (sifr_error){0};
    lines[0] = '\0';
    sifr_status status =
        config_import(text, strlen(text), "a.yaml", options, keep_line, NULL, made, error);
    if (status != wanted) fail_msg("%s: %s", text, error->message);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no \"%s\" in: %s", part, text);
}

/* Whose file it is, with the reasons. */
static void whose_it_is(void **state) {
    (void)state;
    static const char plain[] = "model_name_or_path: m\nlearning_rate: 1e-4\noutput_dir: o\n";
    config_import_options options = {.from = "trl"};
    config_imported made;
    sifr_error error;
    import_with("model_name_or_path: m\ndataset_name: a.jsonl\nmax_length: 8\npacking: true\n",
                NULL, &made, &error, SIFR_OK);
    assert_string_equal(made.source, "arguments of TRL");
    has(lines, "read as arguments of TRL (TRL 1.16.0): it knows 4 of 4 keys\n");
    has(lines, "not as a LLaMA-Factory config, which does not know dataset_name; --from "
               "llamafactory reads it so\n");
    json_decref(made.config);
    import_with(plain, NULL, &made, &error, SIFR_OK);
    assert_string_equal(made.source, "arguments of the Hugging Face Trainer");
    has(lines, "nothing tells it from arguments of TRL; --from trl reads it so\n");
    json_decref(made.config);
    import_with(plain, &options, &made, &error, SIFR_OK);
    has(lines, "read as arguments of TRL (TRL 1.16.0), as --from says\n");
    has(lines, "its default of max_length = 1024: sifr.seq_length\n");
    json_decref(made.config);
    options.from = "unsloth";
    import_with(plain, &options, &made, &error, SIFR_USAGE);
    has(error.message, "--from unsloth: no such program (known: axolotl, trl, trainer, ");
    /* LLaMA-Factory's later version, and files of it that train nothing. */
    import_with("model: m\ntrain_dataset: d.yaml\nmicro_batch_size: 1\nlearning_rate: 1e-5\n"
                "optim_config: null\npeft_config: {name: lora, r: 8}\n",
                NULL, &made, &error, SIFR_USAGE);
    has(error.message, "a.yaml: is a config of LLaMA-Factory's v1 (model, train_dataset, ");
    import_with("model_name_or_path: m\nadapter_name_or_path: a\ntemplate: llama3\n"
                "finetuning_type: lora\nexport_dir: out\n",
                NULL, &made, &error, SIFR_USAGE);
    has(error.message, "that trains nothing: it merges a model (export_dir): see sifr merge");
    import_with("model_name_or_path: m\ntemplate: llama3\ninfer_backend: vllm\n", NULL, &made,
                &error, SIFR_USAGE);
    has(error.message, "that trains nothing: it infers or evaluates");
}

/* All keys that are not known are named at once, and may be let pass. */
static void what_is_not_known(void **state) {
    (void)state;
    static const char text[] =
        "output_dir: o\nlearning_rat: 3\nwarm: 0\nempty: []\nnone: null\n"
        "\"a\\nb\": 3\nlabel_smoothing_factor: 0.1\nfull_determinism: false\n";
    static const char *const allow[] = {
        "learning_rat",      "warm",     "a\nb",    "label_smoothing_factor", "warmup_ratio",
        "datasets[0].roles", "out.json", "dir/out", "learning_rates"};
    config_import_options options = {.allow = allow, .allow_count = 3};
    config_imported made;
    sifr_error error;
    import_with(text, NULL, &made, &error, SIFR_USAGE);
    has(error.message,
        "2 faults: (1) a.yaml: label_smoothing_factor is 0.1: label smoothing is not "
        "supported yet");
    has(error.message,
        "(2) a.yaml: no counterpart is known of 3 keys of arguments of the Hugging Face Trainer "
        "(transformers 5.24.0): learning_rat = 3 (did you mean learning_rate?), warm = 0, "
        "\"a\\nb\" = 3; take them out, or let them pass with --allow KEY");
    import_with(text, &options, &made, &error, SIFR_USAGE);
    has(error.message, "a.yaml: label_smoothing_factor is 0.1");
    options.allow_count = 6;
    import_with(text, &options, &made, &error, SIFR_OK);
    has(lines, "--allow warmup_ratio: the file has no such key\n");
    assert_null(strstr(lines, "--allow datasets"));
    has(lines, "warm = 0: not taken over: allowed by --allow\n");
    assert_int_equal(made.left, 4);
    json_decref(made.config);
    /* What no program has is no key, but may be the file to write. */
    options.allow_count = 9;
    import_with(text, &options, &made, &error, SIFR_USAGE);
    has(error.message, "3 faults: (1) --allow out.json: there is no such key; all words behind "
                       "--allow are keys, so OUT stands before it (2) --allow dir/out: ");
    has(error.message, "(3) --allow learning_rates: ");
    /* A key of another program is none of this one; its own, at their defaults, ask for nothing. */
    refuses("output_dir: o\nstage: sft\nfinetuning_type: full\npacking: true\n", "packing");
    says("output_dir: o\nstage: sft\nfinetuning_type: full\nfreeze_trainable_layers: 2\n",
         "freeze_trainable_layers = 2: no effect here: its default\n");
    says("base_model: m\nadapter: lora\nlora_r: 4\nlora_alpha: 8\nlora_dropout: "
         "0.0\nlora_exclude_modules: "
         "[lm_head]\n",
         "lora_exclude_modules = [\"lm_head\"]: sifr.lora.exclude_modules\n");
    says("output_dir: o\nuse_peft: true\nlora_dropout: 0.0\n",
         "lora_dropout = 0: sifr.lora.lora_dropout\n");
}

/* 0 is a value like others, but where the source program takes it for none. */
static void of_zero(void **state) {
    (void)state;
    static const struct {
        const char *key, *why;
    } values[] = {
        /* axolotl: embeddings get a group of their own, without weight decay */
        {"base_model: m\nembedding_lr: 0\n", "embedding_lr"},
        {"base_model: m\nembedding_lr: 0.0\n", "embedding_lr"},
        {"base_model: m\nembedding_lr_scale: 0\n", "embedding_lr_scale"},
        {"base_model: m\nloraplus_lr_ratio: 0\n", "loraplus_lr_ratio"},
        {"base_model: m\ndpo_beta: 0\n", "dpo_beta"},
        {"output_dir: o\nstage: sft\nfinetuning_type: lora\nloraplus_lr_ratio: 0\n",
         "loraplus_lr_ratio"},
        {"output_dir: o\nuse_peft: true\nbeta: 0.1\nld_alpha: 0\n", "ld_alpha"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        refuses(values[i].key, values[i].why);
    says("base_model: m\nloss_watchdog_threshold: 0\n", "loss_watchdog_threshold = 0: not taken");
    says("output_dir: o\ndata_seed: 7\n",
         "data_seed = 7: no effect here: rows are in an order of sifr's own, which follows seed\n");
    says("base_model: m\nrl: dpo\nrl_beta: 0.0\norpo_alpha: 0.2\n",
         "rl_beta = 0: sifr.preference.beta\n");
    says("stage: sft\nlearning_rate: 1.0e-5\nfinetuning_type: lora\nlora_rank: 4\nlora_alpha: 0\n",
         "lora_alpha = 0: no effect here: 0 is none: alpha follows the rank\n");
    says("output_dir: o\nsave_steps: 0\n", "save_steps = 0: no effect here: 0 is none\n");
    /* none */
    says("base_model: m\nneftune_noise_alpha: 0\nlisa_n_layers: 0\nsaves_per_epoch: 0\n"
         "cosine_constant_lr_ratio: 0\nmicro_batch_size: 2\n",
         "micro_batch_size = 2: ");
    says("output_dir: o\nlabel_smoothing_factor: 0.0\nneftune_noise_alpha: 0\n",
         "output_dir = \"o\": ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_axolotl),        cmocka_unit_test(of_llama_factory),
        cmocka_unit_test(of_open_instruct),  cmocka_unit_test(of_trl),
        cmocka_unit_test(together),          cmocka_unit_test(other_trainings),
        cmocka_unit_test(json_of_python),    cmocka_unit_test(whose_it_is),
        cmocka_unit_test(what_is_not_known), cmocka_unit_test(of_zero),
        cmocka_unit_test(parts_of_trl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
