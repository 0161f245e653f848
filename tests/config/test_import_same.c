/* Exit code 0 says that sifr trains the same: a key of another training is refused by name, and
 * --allow is the way past. Each key that is only reported was asked whether it is one. */
#include "config/import_case.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

/* A config of another program, and the key that is refused in it; NULL: it is taken over. */
typedef struct same_case {
    const char *text, *refused;
    const char *line; /* that is said of it; NULL: any */
} same_case;

#define CASES(list) list, sizeof(list) / sizeof *(list)

static void check(const same_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const same_case *c = &cases[i];
        config_imported made;
        sifr_error error = {0};
        char wanted[120];
        sifr_status status = import(c->text, &made, &error);
        if (status == SIFR_OK) json_decref(made.config);
        if ((status != SIFR_OK) != (c->refused != NULL))
            fail_msg("%s: %s", c->text, c->refused ? "not refused" : error.message);
        snprintf(wanted, sizeof wanted, "%s is ", c->refused ? c->refused : "");
        if (c->refused && strstr(error.message, " faults: "))
            fail_msg("%s: several faults of one key: %s", c->text, error.message);
        if (c->refused && !strstr(error.message, wanted))
            fail_msg("%s: no \"%s\" in: %s", c->text, wanted, error.message);
        const char *said = c->refused ? error.message : lines;
        if (c->line && !strstr(said, c->line)) fail_msg("no \"%s\" in: %s", c->line, said);
        if (!c->refused) continue;
        config_import_options allowing = {.allow = &c->refused, .allow_count = 1};
        status = config_import(c->text, strlen(c->text), "a.yaml", &allowing, keep_line, NULL,
                               &made, &error);
        if (status != SIFR_OK) fail_msg("%s: --allow %s: %s", c->text, c->refused, error.message);
        json_decref(made.config);
    }
}

#define AX "base_model: m\nlearning_rate: 1e-4\n"
#define TRL "model_name_or_path: m\ndataset_name: a.jsonl\nmax_length: 64\n"
#define LF "model_name_or_path: m\nstage: sft\nfinetuning_type: full\n"
#define PT "model_name_or_path: m\nstage: pt\nfinetuning_type: full\ndataset: a.json\n"
#define HF "model_name_or_path: m\noutput_dir: o\n"
#define CLM HF "train_file: a.json\nblock_size: 64\n"
#define OI HF "dataset_mixer_list: [a, 1.0]\nwith_tracking: true\n"

static void other_trainings(void **state) {
    (void)state;
    static const same_case cases[] = {
        {AX "early_stopping_patience: 3\n", "early_stopping_patience", NULL},
        {AX "load_best_model_at_end: true\n", "load_best_model_at_end", NULL},
        {AX "sample_packing_sequentially: true\n", "sample_packing_sequentially", NULL},
        {AX "fix_untrained_tokens: [3]\n", "fix_untrained_tokens", NULL},
        {AX "shrink_embeddings: true\n", "shrink_embeddings", NULL},
        {AX "resize_token_embeddings_to_32x: true\n", "resize_token_embeddings_to_32x", NULL},
        {AX "default_system_message: Be terse.\n", "default_system_message", NULL},
        {AX "pretraining_dataset: a\nsample_packing: true\n", "pretraining_dataset",
         "pass the key with --allow, and give the text to --data"},
        {AX "spectrum_top_fraction: 0.5\n", "spectrum_top_fraction", NULL},
        {AX "bf16: full\n", "bf16", "give true, or bf16.bf16_master_weights_and_grads"},
        {AX "train_on_eos: turn\nroles_to_train: [assistant]\n", NULL,
         "train_on_eos = \"turn\": no effect here: axolotl reads it in an entry of datasets alone, "
         "whose default it is\nroles_to_train = [\"assistant\"]: no effect here: axolotl reads"},
        {AX "train_on_eos: last\n", "train_on_eos", "datasets alone: put it there"},
        {AX "roles_to_train: [user]\n", "roles_to_train", "datasets alone: put it there"},
        {AX "accelerator_config: {split_batches: true}\n", "accelerator_config", "split_batches: "},
        {TRL "eos_token: <|im_end|>\n", "eos_token", NULL},
        {TRL "eos_token: <EOS_TOKEN>\n", NULL, NULL},
        {TRL "pad_token: <|im_end|>\n", NULL, ": no effect here: padding has no labels\n"},
        {TRL "auto_insert_empty_system_msg: true\n", "auto_insert_empty_system_msg", NULL},
        {TRL "lora_task_type: SEQ_2_SEQ_LM\n", "lora_task_type", NULL},
        {TRL "beta: 0.1\nmax_prompt_length: 32\n", "max_prompt_length", NULL},
        {TRL "beta: 0.1\nmax_prompt_length: 64\n", NULL, "rows are cut at max_length before\n"},
        {HF "accelerator_config: {split_batches: true}\n", "accelerator_config", "split_batches: "},
        {HF "accelerator_config: {split_batches: false, even_batches: true}\n", NULL, NULL},
        {HF "split_batches: true\n", "split_batches", NULL},
        {HF "average_tokens_across_devices: false\n", "average_tokens_across_devices", NULL},
        {HF "average_tokens_across_devices: true\n", NULL, NULL},
        {HF "data_seed: 7\n", NULL, ": no effect here: rows are in an order of sifr's own"},
        {CLM "max_train_samples: 0\n", "max_train_samples", NULL},
        {CLM "max_eval_samples: 100\n", NULL,
         "max_eval_samples = 100: not taken over: an evaluation is of all rows that are held out"},
        {CLM "model_type: llama\n", NULL,
         "model_type = \"llama\": no effect here: the model's config.json says\n"},
        {"model_type: gpt2\noutput_dir: o\ntrain_file: a.json\nblock_size: 64\n", "model_type",
         "training begins with a model's weights"},
        {CLM "keep_linebreaks: false\n", "keep_linebreaks", NULL},
        {TRL "max_seq_length: 32\n", "max_seq_length", "max_length gives sifr.seq_length another"},
        {TRL "max_seq_length: 64\n", NULL, "max_seq_length = 64: sifr.seq_length\n"},
        {LF "adapter_name_or_path: 'a,b'\n", "adapter_name_or_path", NULL},
        {LF "max_samples: 0\n", "max_samples", NULL},
        {LF "train_on_prompt: true\nmask_history: true\n", "mask_history", NULL},
        {OI "reduce_loss: sum\n", "reduce_loss", NULL},
        {OI "cache_dataset_only: true\n", "cache_dataset_only", NULL},
        {OI "chat_template_name: tulu\n", "chat_template_name", NULL},
    };
    check(CASES(cases));
}

/* Keys of a set that say what axolotl does anyway, and near ones. */
static void usual_sets(void **state) {
    (void)state;
#define SET(keys_) AX "datasets: [{path: a.jsonl, type: chat_template, " keys_ "}]\n"
    static const same_case cases[] = {
        {SET("roles: {user: [human, user], assistant: [gpt, assistant]}"), NULL,
         ": no effect here: axolotl takes these names of roles anyway\n"},
        {SET("roles: {user: [human], assistant: [gpt], system: [system], tool: [tool]}"), NULL,
         ": no effect here: axolotl takes these names of roles anyway\n"},
        {SET("roles: {assistant: [gpt]}"), NULL, "anyway; here human is always user, and gpt as"},
        {SET("roles: {assistant: [gpt, model]}"), "datasets[0].roles", NULL},
        {SET("roles_to_train: assistant"), "datasets[0].roles_to_train",
         "axolotl takes a list of roles, such as [assistant]"},
        {SET("roles_to_train: [moderator]"), "datasets[0].roles_to_train", "have no such role"},
        {SET("roles: {assistant: gpt}"), "datasets[0].roles", NULL},
        {SET("roles: {user: [gpt]}"), "datasets[0].roles", NULL},
    };
    check(CASES(cases));
}

/* A key of a set that is null is as if it were not there: the same config is made. */
static void null_in_sets(void **state) {
    (void)state;
    static const char *const nulls[] = {
        "data_files: null",     "data_files: []",       "data_files: [null]",
        "split: null, name: ~", "field_messages: null", "message_property_mappings: null",
        "chat_template: null",  "roles: null",          "ds_type: null, shards: null",
        "train_on_eos: null",   "roles_to_train: null", "field_system: null"};
    json_t *plain = NULL;
    for (size_t i = 0; i <= sizeof nulls / sizeof *nulls; i++) {
        char text[240];
        config_imported made;
        sifr_error error = {0};
        snprintf(text, sizeof text, SET("%s"), i ? nulls[i - 1] : "split: train");
        if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
        if (i == 0) plain = json_incref(made.config);
        if (!json_equal(made.config, plain) || made.left) fail_msg("%s: %s", text, lines);
        json_decref(made.config);
    }
    assert_non_null(json_object_get(json_object_get(plain, "sifr"), "dataset"));
    json_decref(plain);
#undef SET
}

/* The model folder's own end-of-text token, where the folder is here to be asked. */
static void own_end_of_text(void **state) {
    (void)state;
#define HERE "model_name_or_path: eos-model\ndataset_name: a.jsonl\nmax_length: 64\n"
#define AX_HERE "base_model: eos-model\nlearning_rate: 1e-4\n"
    static const same_case cases[] = {
        {HERE "eos_token: <|im_end|>\n", NULL,
         "eos_token = \"<|im_end|>\": no effect here: it is the model folder's own\n"},
        {HERE "eos_token: </s>\n", "eos_token", NULL},
        {TRL "eos_token: <|im_end|>\n", "eos_token", NULL},
        {AX_HERE "special_tokens: {eos_token: <|im_end|>, pad_token: <pad>}\n", NULL,
         ": no effect here: eos_token is the model folder's own, and padding has no labels\n"},
        {AX_HERE "special_tokens: {eos_token: </s>}\n", "special_tokens", "eos_token: special"},
        {AX_HERE "special_tokens: {eos_token: <|im_end|>, bos_token: <s>}\n", "special_tokens",
         "bos_token: special"},
        {AX "special_tokens: {eos_token: <|im_end|>}\n", "special_tokens", NULL},
    };
#undef HERE
#undef AX_HERE
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch), 0);
    assert_int_equal(mkdir("eos-model", 0777), 0);
    scratch_text("eos-model/tokenizer_config.json",
                 "{\"eos_token\": {\"content\": \"<|im_end|>\", \"special\": true}}");
    check(CASES(cases));
    /* An older folder has it beside the config of its tokenizer. */
    scratch_text("eos-model/tokenizer_config.json", "{}");
    scratch_text("eos-model/special_tokens_map.json", "{\"eos_token\": \"<|im_end|>\"}");
    check(CASES(cases));
    assert_int_equal(chdir(before), 0);
}

/* Rows of a split, or of a part of one. */
static void splits(void **state) {
    (void)state;
    static const same_case cases[] = {
        {TRL "dataset_train_split: train[:10]\n", "dataset_train_split", NULL},
        {TRL "dataset_train_split: train+test\n", "dataset_train_split", NULL},
        {TRL "dataset_train_split: train\n", NULL, ": no effect here: a file has this split alone"},
        {TRL "dataset_splits: [train, 'test[5%:]']\n", "dataset_splits", NULL},
    };
    check(CASES(cases));
}

/* Adapters are not lost: without a rank the config would have none, and train all weights. */
static void adapters(void **state) {
    (void)state;
    static const same_case cases[] = {
        {AX "adapter: lora\nlora_alpha: 16\n", "lora_r", NULL},
        {AX "adapter: lora\nlora_r: 8\n", "lora_alpha", NULL},
        {AX "adapter: lora\nlora_model_dir: a\n", NULL, NULL},
        {AX "adapter: qlora\nlora_r: 8\nlora_alpha: 16\nload_in_4bit: false\n", "load_in_4bit",
         NULL},
        {AX "adapter: qlora\nlora_r: 8\nlora_alpha: 16\n", "load_in_4bit", NULL},
    };
    static const char *const allow[] = {"lora_r", "lora_alpha"};
    const config_import_options allowing = {.allow = allow, .allow_count = 2};
    static const char text[] = AX "adapter: lora\n";
    config_imported made;
    sifr_error error;
    check(CASES(cases));
    lines[0] = '\0';
    assert_int_equal(
        config_import(text, sizeof text - 1, "a.yaml", &allowing, keep_line, NULL, &made, &error),
        SIFR_OK);
    assert_null(strstr(lines, "there is no such key"));
    const json_t *lora = json_object_get(json_object_get(made.config, "sifr"), "lora");
    assert_int_equal(json_integer_value(json_object_get(lora, "r")), 8);
    json_decref(made.config);
}

/* Preferences by names of axolotl's types: as a source, with what axolotl does not read. */
static void preferences_by_name(void **state) {
    (void)state;
#define OF(type_) "base_model: m\nrl: dpo\ndatasets: [{path: a.jsonl, type: " type_ "}]\n"
    static const struct {
        const char *text, *fields; /* fields: NULL: not taken over */
    } named[] = {
        {OF("chat_template.default"), "{}"},
        {OF("chat_template"), "{}"},
        {OF("chat_template.default, field_messages: conversations, field_chosen: good"),
         "{\"messages\": \"conversations\", \"chosen\": \"good\"}"},
        {OF("chat_template.argilla_chat"), "{}"},
        {OF("passthrough"), "{}"},
        {OF("chat_template, message_property_mappings: {role: from, content: value}"), NULL},
        {OF("llama3.intel"), NULL},
        {OF("mine.own"), NULL},
    };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        config_imported made;
        sifr_error error = {0};
        if (import(named[i].text, &made, &error) != SIFR_OK)
            fail_msg("%s: %s", named[i].text, error.message);
        const json_t *sets = json_object_get(json_object_get(made.config, "sifr"), "dataset");
        const json_t *set = json_array_get(sets, 0), *fields = json_object_get(set, "fields");
        json_t *wanted = named[i].fields ? json_loads(named[i].fields, 0, NULL) : NULL;
        bool same = wanted
                        ? set && (json_object_size(wanted) ? json_equal(fields, wanted) : !fields)
                        : !set && made.left == 1;
        if (!same) fail_msg("%s: %s", named[i].text, lines);
        json_decref(wanted);
        json_decref(made.config);
    }
#undef OF
}

/* What --allow lets pass is text, which is not packed. */
static void allowed_text(void **state) {
    (void)state;
    static const char *const allow[] = {"pretraining_dataset"};
    static const char text[] = AX "pretraining_dataset: a\nsample_packing: true\n";
    const config_import_options allowing = {.allow = allow, .allow_count = 1};
    config_imported made;
    sifr_error error;
    assert_int_equal(
        config_import(text, sizeof text - 1, "a.yaml", &allowing, keep_line, NULL, &made, &error),
        SIFR_OK);
    assert_null(json_object_get(json_object_get(made.config, "sifr"), "packing"));
    json_decref(made.config);
}

/* Names with commas between them are several. */
static void several_files(void **state) {
    (void)state;
    config_imported made;
    sifr_error error;
    assert_int_equal(import(LF "dataset: a.jsonl, b.jsonl\n", &made, &error), SIFR_OK);
    json_t *wanted = json_pack("[s, s]", "a.jsonl", "b.jsonl");
    assert_true(json_equal(json_object_get(json_object_get(made.config, "sifr"), "data"), wanted));
    json_decref(wanted);
    json_decref(made.config);
}

/* Each key that is given has a line, also what asks for nothing. */
static void lines_for_all(void **state) {
    (void)state;
    static const same_case cases[] = {
        {AX "strict: false\ntrain_on_inputs: false\nval_set_size: 0.0\nbf16: true\n", NULL,
         "\nval_set_size = 0: no effect here: it asks for nothing\n"},
        {AX "strict: false\n", NULL, "\nstrict = false: no effect here: it asks for nothing\n"},
        {AX "lr_scheduler: linear\ncosine_min_lr_ratio: 0.1\n", NULL,
         "\ncosine_min_lr_ratio = 0.1: no effect here: the schedule is no cosine\n"},
        {TRL "use_peft: true\n", NULL, "\nuse_peft = true: sifr.lora\n"},
        {TRL "use_peft: true\n", NULL,
         "\nits default of lora_dropout = 0.05: sifr.lora.lora_dropout\n"},
        {"model_name_or_path: m\nstage: sft\n", NULL,
         "\nits default of lora_alpha = 16: sifr.lora.lora_alpha\n"},
        {HF "eval_strategy: steps\neval_steps: 5\n", NULL,
         "\neval_strategy = \"steps\": no effect here: eval_steps counts\n"},
        {HF "save_strategy: steps\n", NULL, "\nsave_strategy = \"steps\": no effect here: "},
        {"mixed_precision: 'no'\nuse_cpu: false\nnum_processes: 1\n", NULL,
         "\nuse_cpu = false: no effect here: it asks for nothing\n"},
    };
    check(CASES(cases));
}

/* Of no public shape is a key left to the line that fits all. */
static void lines_of_public_files(void **state) {
    (void)state;
    char folder[4096], path[8192];
    snprintf(folder, sizeof folder, "%s/tests/config/imports", getenv("SOURCE"));
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    int files = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        config_imported made;
        sifr_error error = {0};
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        lines[0] = '\0';
        if (config_import_file(path, NULL, keep_line, NULL, &made, &error) == SIFR_OK)
            json_decref(made.config);
        if (strstr(lines, "other keys say")) fail_msg("%s: %s", entry->d_name, lines);
        files++;
    }
    closedir(directory);
    assert_int_equal(files, 40);
}

/* One line a key, with the words of its program. */
static void lines_about_defaults(void **state) {
    (void)state;
    static const same_case cases[] = {
        {AX "datasets: [{path: a.jsonl, type: alpaca}]\n", NULL,
         "its default of excess_length_strategy = \"drop\": sifr.drop_long_rows\n"},
        {AX "warmup_steps: 1\n", NULL, "\nwarmup_steps = 1: sifr.warmup_steps, 2 as axolotl has"},
    };
    check(CASES(cases));
    assert_null(strstr(lines, "warmup_steps = 1: sifr.warmup_steps\n"));
}

static void expect_share(const char *text, double wanted) {
    config_imported made;
    sifr_error error = {0};
    if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
    const json_t *share = json_object_get(json_object_get(made.config, "sifr"), "validation_split");
    if (json_number_value(share) != wanted)
        fail_msg("%s: %g, not %g", text, json_number_value(share), wanted);
    json_decref(made.config);
}

/* run_clm.py holds out 5 % where no other file is given. */
static void held_out_by_scripts(void **state) {
    (void)state;
    static const same_case cases[] = {
        {HF "train_file: a.txt\nvalidation_split_percentage: 20\n", NULL,
         "validation_split_percentage = 20: not taken over: the first of the data are held out"},
        {CLM "validation_split_percentage: some\n", "validation_split_percentage", NULL},
        {CLM "validation_split_percentage: 100\n", "validation_split_percentage",
         "it leaves no rows to learn from"},
        {HF "train_file: a.txt\nvalidation_split_percentage: 250\n", "validation_split_percentage",
         "it leaves no rows to learn from"},
    };
    check(CASES(cases));
    expect_share(HF "train_file: a.json\nvalidation_split_percentage: 20\n", 0.2);
    expect_share(CLM, 0.05);
    expect_share(CLM "validation_split_percentage: 0\n", 0);
    expect_share(CLM "validation_split_percentage: 99\n", 0.99);
    expect_share(CLM "validation_file: b.json\nvalidation_split_percentage: 20\n", 0);
    expect_share(CLM "validation_file: b.json\nvalidation_split_percentage: 100\n", 0);
    expect_share(HF "train_file: a.json\n", 0);
}

static const char *joint_of(const char *text) {
    static char out[16];
    config_imported made;
    sifr_error error = {0};
    if (import(text, &made, &error) != SIFR_OK) fail_msg("%s: %s", text, error.message);
    const json_t *sifr = json_object_get(made.config, "sifr");
    const char *word = json_string_value(json_object_get(sifr, "join_texts"));
    bool packs = json_object_get(sifr, "packing") != NULL;
    snprintf(out, sizeof out, "%s%s", word ? word : "none", packs ? " packed" : "");
    json_decref(made.config);
    return out;
}

/* Texts of rows that the source joins are joined. */
static void joined_texts(void **state) {
    (void)state;
    static const same_case cases[] = {
        {PT "packing: true\n", NULL, "packing = true: sifr.join_texts, as stage says\n"},
        {PT "packing: false\n", NULL, "packing = false: no effect here: each row is a sequence\n"},
        {PT, NULL, "stage = \"pt\": sifr.join_texts, eos (for text files leave it out)\n"},
        {CLM "max_train_samples: 10\n", "max_train_samples", NULL},
        {HF "train_file: a.json\nvalidation_split_percentage: 5\n", NULL,
         "its default of block_size = 1024: sifr.seq_length"},
    };
    check(CASES(cases));
    assert_string_equal(joint_of(PT), "eos");
    assert_string_equal(joint_of(PT "neat_packing: true\n"), "eos");
    assert_string_equal(joint_of(PT "packing: false\n"), "none");
    assert_string_equal(joint_of(LF "neat_packing: true\n"), "none packed");
    assert_string_equal(joint_of(CLM), "plain");
    assert_string_equal(joint_of(HF "train_file: a.txt\nblock_size: 64\n"), "none");
    assert_string_equal(joint_of(HF "train_file: a.json\nmax_seq_length: 64\n"), "none");
}

/* Files that train nothing. */
static void nothing_is_trained(void **state) {
    (void)state;
    static const char *const texts[] = {LF "do_train: false\n", CLM "do_train: false\n"};
    config_imported made;
    sifr_error error;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(import(texts[i], &made, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "that trains nothing"));
    }
    /* A script of one's own calls train() by itself, and TRL's does. */
    static const same_case cases[] = {{HF "do_train: false\n", NULL, NULL},
                                      {TRL "do_train: false\n", NULL, NULL}};
    check(CASES(cases));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_trainings),
        cmocka_unit_test_setup_teardown(own_end_of_text, scratch_setup, scratch_teardown),
        cmocka_unit_test(usual_sets),
        cmocka_unit_test(null_in_sets),
        cmocka_unit_test(splits),
        cmocka_unit_test(adapters),
        cmocka_unit_test(several_files),
        cmocka_unit_test(lines_about_defaults),
        cmocka_unit_test(lines_for_all),
        cmocka_unit_test(lines_of_public_files),
        cmocka_unit_test(allowed_text),
        cmocka_unit_test(preferences_by_name),
        cmocka_unit_test(held_out_by_scripts),
        cmocka_unit_test(joined_texts),
        cmocka_unit_test(nothing_is_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
