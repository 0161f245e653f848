/* Each key of the config that decides bits of a run is held by its checkpoints: a run that resumes
 * with another value is refused, or says so. A new key belongs into one of the tables below:
 * `changes`, where two values of it give other facts; `elsewhere`, where facts of the model or the
 * data hold it; or `no_bits`, with the reason. */
#include "config/config_case.h"
#include "config/keys/config_keys.h"
#include "data/stream/token_store.h"
#include "data/token_scores.h"
#include "support/scratch.h"
#include "support/zero_run.h"
#include "train/prepare/fingerprint.h"
#include "train/prepare/pinned.h"
#include "train/prepare/run_settings.h"

typedef struct key_reason {
    const char *keys; /* separated by blanks; a * at the end: all that begin so */
    const char *why;
} key_reason;

static const key_reason no_bits[] = {
    {"sifr.output sifr.nvme_path zero_optimization.offload_param.nvme_path "
     "zero_optimization.offload_optimizer.nvme_path sifr.resume",
     "where a run writes, and whether it goes on"},
    {"sifr.eval_data sifr.eval_steps sifr.eval_on_start sifr.max_eval_windows sifr.save_steps "
     "sifr.save_total_limit sifr.logging_steps sifr.trace sifr.trace_steps steps_per_print "
     "wall_clock_breakdown memory_breakdown comms_logger.* csv_monitor.* tensorboard.* "
     "flops_profiler.* "
     "sifr.prometheus_file sifr.prometheus_port sifr.mlflow sifr.mlflow_artifacts",
     "what is said and saved of a run"},
    {"sifr.collective_timeout", "when a run is given up"},
    {"sifr.threads sifr.recompute sifr.activation_memory sifr.tile_tokens sifr.offload_state "
     "sifr.offload_gradients sifr.offload_activations activation_checkpointing.*",
     "time and memory: tests/engine/test_same_bits.c, test_tiles.c, test_offload.c"},
    {"zero_optimization.reduce_bucket_size zero_optimization.allgather_bucket_size "
     "zero_optimization.overlap_comm zero_optimization.sub_group_size zero_optimization.stage3_* "
     "zero_optimization.offload_param.* zero_optimization.offload_optimizer.* aio.*",
     "how state is moved: tests/engine/test_zero_keys.c, test_offload.c"},
    {"zero_optimization.zero_hpz_partition_size", "the same bits: tests/engine/test_hpz.c"},
    {"sifr.sequence_parallel", "the bits without it: tests/engine/test_sequence_layout.c"},
    {"pipeline.*", "the bits of one rank: tests/cli/test_stage_runs.sh"},
    {"gradient_allreduce_op", "it has one value yet"},
    {"sifr.new_head sifr.adapter",
     "the values that a run begins with; a resumed one has those of its checkpoint"},
};

static const key_reason elsewhere[] = {
    {"sifr.data sifr.dataset sifr.data_type sifr.data_fields sifr.ignore_fields "
     "sifr.chat_template sifr.chat_template_kwargs sifr.chat_template_date sifr.train_on "
     "sifr.roles_to_train sifr.train_on_eos sifr.train_on_eot sifr.eot_tokens sifr.packing "
     "sifr.join_texts "
     "sifr.group_by_length sifr.skip_bad_rows sifr.max_samples sifr.drop_long_rows "
     "sifr.validation_split sifr.text_column sifr.pair_column sifr.label_column "
     "sifr.mlm_probability sifr.no_special_tokens",
     "\"data (hash)\": ids, labels, how they are cut, masked, packed and grouped"},
    {"sifr.model", "weights' names and shapes; its config.json, by train/prepare/other_model.h"},
    {"sifr.task sifr.freeze sifr.lora sifr.quantization "
     "zero_optimization.zero_quantized_nontrainable_weights",
     "weights' names and shapes, frozen weights, lora_alpha and lora_dropout, quantization"},
    {"sifr.labels sifr.problem_type", "\"labels (hash)\", \"problem_type\""},
    {"dataloader_drop_last", "a fact of that name, of the epochs"},
    {"sifr.device", "\"machine\""},
    {"data_types.param_dtype", "it says no other than bf16.enabled and fp16.enabled"},
    {"optimizer.params.* scheduler.params.*", "sections that are facts as a whole"},
    {"tensor_parallel.*",
     "\"tensor ranks\" and \"divided vocabulary\": tests/cli/test_tensor_runs.sh, "
     "test_vocabulary_runs.sh"},
    {"sequence_parallel_size sifr.context_parallel.*",
     "\"context ranks\": tests/cli/test_context_runs.sh"},
    {"sifr.tp_exact", "\"tp_exact\": tests/cli/test_exact_runs.sh"},
};

#define BATCH "\"train_batch_size\": 36, \"train_micro_batch_size_per_gpu\": 2"
#define SIFR(members) BATCH ", \"sifr\": {" members "}"
#define DECAY(members)                                                                             \
    BATCH ", \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"weight_decay\": 0.1}}, "          \
          "\"sifr\": {" members "}"
#define FP16(members) BATCH ", \"fp16\": {\"enabled\": true" members "}"
#define POWER(params) BATCH ", \"compression\": {\"type\": \"powerSGD\", \"params\": {" params "}}"
#define BF16(members) BATCH ", \"bf16\": {\"enabled\": true" members "}"
#define DECAYING                                                                                   \
    "\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_num_steps\": 2, "          \
    "\"total_num_steps\": \"auto\"}}"
#define PREFERENCE(members) SIFR("\"preference\": {\"loss_type\": \"sigmoid\"" members "}")
#define DISTILL(file, members) SIFR("\"distill\": {\"scores\": \"" file "\"" members "}")

/* Two configs without their braces that differ in the key. */
static const struct {
    const char *key, *one, *other;
} changes[] = {
    {"train_batch_size", BATCH, "\"train_batch_size\": 72, \"train_micro_batch_size_per_gpu\": 2"},
    {"train_micro_batch_size_per_gpu", BATCH,
     "\"train_batch_size\": 36, \"train_micro_batch_size_per_gpu\": 6"},
    {"gradient_accumulation_steps",
     "\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 3",
     "\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 6"},
    {"gradient_clipping", BATCH, BATCH ", \"gradient_clipping\": 0.5"},
    {"communication_data_type", BATCH, BATCH ", \"communication_data_type\": \"bf16\""},
    {"optimizer.type", BATCH, BATCH ", \"optimizer\": {\"type\": \"Lion\"}"},
    {"optimizer.params.lr", BATCH,
     BATCH ", \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.5}}"},
    {"sifr.learning_rate", BATCH, SIFR("\"learning_rate\": 0.5")},
    {"scheduler.type", BATCH, BATCH ", " DECAYING},
    {"sifr.lr_scheduler_type", SIFR("\"lr_scheduler_type\": \"linear\""),
     SIFR("\"lr_scheduler_type\": \"cosine\"")},
    {"sifr.warmup_steps", SIFR("\"lr_scheduler_type\": \"linear\""),
     SIFR("\"lr_scheduler_type\": \"linear\", \"warmup_steps\": 3")},
    {"sifr.warmup_ratio", SIFR("\"lr_scheduler_type\": \"linear\""),
     SIFR("\"lr_scheduler_type\": \"linear\", \"warmup_ratio\": 0.3")},
    {"sifr.max_steps", SIFR("\"max_steps\": 50") ", " DECAYING,
     SIFR("\"max_steps\": 60") ", " DECAYING},
    {"sifr.num_train_epochs", SIFR("\"num_train_epochs\": 2") ", " DECAYING,
     SIFR("\"num_train_epochs\": 3") ", " DECAYING},
    {"bf16.enabled", BATCH, BF16("")},
    {"bf16.bf16_master_weights_and_grads", BF16(""),
     BF16(", \"bf16_master_weights_and_grads\": true")},
    {"bf16.bf16_optimizer_states", BF16(""), BF16(", \"bf16_optimizer_states\": true")},
    {"fp16.enabled", BATCH, FP16("")},
    {"fp16.loss_scale", FP16(""), FP16(", \"loss_scale\": 64")},
    {"fp16.initial_scale_power", FP16(""), FP16(", \"initial_scale_power\": 8")},
    {"fp16.loss_scale_window", FP16(""), FP16(", \"loss_scale_window\": 8")},
    {"fp16.hysteresis", FP16(""), FP16(", \"hysteresis\": 3")},
    {"fp16.consecutive_hysteresis", FP16(""), FP16(", \"consecutive_hysteresis\": true")},
    {"fp16.min_loss_scale", FP16(""), FP16(", \"min_loss_scale\": 2")},
    {"data_types.grad_accum_dtype", BF16(""),
     BF16("") ", \"data_types\": {\"grad_accum_dtype\": \"bf16\"}"},
    {"zero_optimization.stage", SIFR("\"step_order\": \"batch\""),
     SIFR("\"step_order\": \"batch\"") ", \"zero_optimization\": {\"stage\": 2}"},
    {"zero_optimization.mics_shard_size", BATCH ", \"zero_optimization\": {\"stage\": 3}",
     BATCH ", \"zero_optimization\": {\"stage\": 3, \"mics_shard_size\": 2}"},
    {"zero_optimization.zero_quantized_weights", BATCH ", \"zero_optimization\": {\"stage\": 3}",
     BATCH ", \"zero_optimization\": {\"stage\": 3, \"zero_quantized_weights\": true}"},
    {"compression.type", POWER(""), BATCH},
    {"compression.enabled", POWER(""),
     BATCH ", \"compression\": {\"enabled\": false, \"type\": \"powerSGD\"}"},
    {"compression.params.matrix_approximation_rank", POWER(""),
     POWER("\"matrix_approximation_rank\": 2")},
    {"compression.params.start_compressing_after_step", POWER(""),
     POWER("\"start_compressing_after_step\": 2")},
    {"compression.params.min_compression_rate", POWER(""), POWER("\"min_compression_rate\": 3")},
    {"compression.params.use_error_feedback", POWER(""), POWER("\"use_error_feedback\": false")},
    {"compression.params.warm_start", POWER(""), POWER("\"warm_start\": false")},
    {"compression.params.orthogonalization_epsilon", POWER(""),
     POWER("\"orthogonalization_epsilon\": 1e-8")},
    {"compression.params.random_seed", POWER(""), POWER("\"random_seed\": 1")},
    {"zero_optimization.zero_quantized_gradients", BATCH ", \"zero_optimization\": {\"stage\": 3}",
     BATCH ", \"zero_optimization\": {\"stage\": 3, \"zero_quantized_gradients\": true}"},
    {"sifr.shard_size", BATCH ", \"zero_optimization\": {\"stage\": 3}",
     SIFR("\"shard_size\": 2") ", \"zero_optimization\": {\"stage\": 3}"},
    {"sifr.step_order", SIFR("\"step_order\": \"batch\""), SIFR("\"step_order\": \"unit\"")},
    {"sifr.gradient_order", BATCH, SIFR("\"gradient_order\": \"sequential\"")},
    {"sifr.seq_length", SIFR("\"seq_length\": 16"), SIFR("\"seq_length\": 32")},
    {"sifr.seed", BATCH, SIFR("\"seed\": 7")},
    {"sifr.isa", BATCH, SIFR("\"isa\": \"plain\"")},
    {"sifr.no_decay", DECAY(""), DECAY("\"no_decay\": \"transformers\"")},
    {"sifr.layer_decay", DECAY(""), DECAY("\"layer_decay\": 0.5")},
    {"sifr.groups", DECAY(""), DECAY("\"groups\": [{\"match\": \"*\", \"lr_scale\": 0.5}]")},
    {"sifr.ema.decay", DECAY(""), DECAY("\"ema\": {\"decay\": 0.5}")},
    {"sifr.preference.loss_type", PREFERENCE(""),
     SIFR("\"preference\": {\"loss_type\": \"hinge\"}")},
    {"sifr.preference.beta", PREFERENCE(""), PREFERENCE(", \"beta\": 0.5")},
    {"sifr.preference.dropout", PREFERENCE(""), PREFERENCE(", \"dropout\": true")},
    {"sifr.preference.reference", PREFERENCE(""), PREFERENCE(", \"reference\": \"cold\"")},
    {"sifr.preference.reference", PREFERENCE(", \"reference\": \"cold\""),
     PREFERENCE(", \"reference\": \"warm\"")},
    {"sifr.distill.scores", DISTILL("cold", ""), DISTILL("colder", "")},
    {"sifr.distill.weight", DISTILL("cold", ""), DISTILL("cold", ", \"weight\": 0.25")},
    {"sifr.distill.temperature", DISTILL("cold", ", \"temperature\": 1"),
     DISTILL("warm", ", \"temperature\": 2")},
    {"sifr.own_loss.memory", SIFR("\"own_loss\": {\"memory\": \"1MiB\"}"),
     SIFR("\"own_loss\": {\"memory\": \"2MiB\"}")},
};
enum {
    NO_BITS = sizeof no_bits / sizeof *no_bits,
    ELSEWHERE = sizeof elsewhere / sizeof *elsewhere,
    CHANGES = sizeof changes / sizeof *changes
};

/* --- all rows are in one of the tables --- */

static bool is_named(const char *path, const char *names, size_t length) {
    bool all = length > 0 && names[length - 1] == '*';
    return all ? strncmp(path, names, length - 1) == 0
               : strlen(path) == length && strncmp(path, names, length) == 0;
}

/* Which of the blank-separated names is the key's; -1: none. */
static int name_of(const char *path, const char *names) {
    for (int i = 0; *names; i++) {
        size_t length = strcspn(names, " ");
        if (is_named(path, names, length)) return i;
        names += length + (names[length] == ' ');
    }
    return -1;
}

static bool is_among(const char *path, const key_reason *reasons, int count) {
    for (int i = 0; i < count; i++)
        if (name_of(path, reasons[i].keys) >= 0) return true;
    return false;
}

static bool is_changed(const char *path) {
    for (int i = 0; i < CHANGES; i++)
        if (strcmp(changes[i].key, path) == 0) return true;
    return false;
}

static void each_key_is_held(void **state) {
    (void)state;
    for (size_t i = 0; i < config_key_count(); i++) {
        const config_key *key = config_key_at(i);
        if (key->type == CONFIG_SECTION || key->status != CONFIG_BUILT) continue;
        const char *path = key->over ? key->over : key->path; /* what it gives a value to */
        bool held = is_changed(path) || is_among(path, elsewhere, ELSEWHERE);
        if (!held && !is_among(path, no_bits, NO_BITS))
            fail_msg("%s: does it decide bits of a run? Hold it in train/prepare/fingerprint.c, or "
                     "say in this test why not",
                     path);
        if (held && is_among(path, no_bits, NO_BITS))
            fail_msg("%s: it is held, and said to decide no bits", path);
    }
}

static bool has_row(const char *name, size_t length) {
    for (size_t i = 0; i < config_key_count(); i++)
        if (is_named(config_key_at(i)->path, name, length)) return true;
    return false;
}

static void each_reason_has_a_key(const key_reason *reasons, int count) {
    for (int i = 0; i < count; i++) {
        for (const char *name = reasons[i].keys; *name;) {
            size_t length = strcspn(name, " ");
            if (!has_row(name, length)) fail_msg("no key of the config: %.*s", (int)length, name);
            name += length + (name[length] == ' ');
        }
    }
}

static void no_reason_is_stale(void **state) {
    (void)state;
    each_reason_has_a_key(no_bits, NO_BITS);
    each_reason_has_a_key(elsewhere, ELSEWHERE);
    for (int i = 0; i < CHANGES; i++) assert_non_null(config_key_find(changes[i].key, NULL));
}

/* --- what is held changes the facts --- */

enum { RANKS = 6, STEPS_AN_EPOCH = 10 };

static data_set *data;

static void write_scores(const char *name, float logprob, double temperature) {
    data_score_writer writer;
    int32_t top = 1;
    assert_int_equal(
        data_score_writer_open(scratch_path(name), 1, 1, 1, temperature, &writer, NULL), SIFR_OK);
    writer.offsets[0] = 0, writer.offsets[1] = 1, writer.ids[0] = 1;
    assert_int_equal(data_score_writer_put(&writer, logprob, &top, &logprob, NULL), SIFR_OK);
    assert_int_equal(data_score_writer_commit(&writer, NULL), SIFR_OK);
    data_score_writer_free(&writer);
}

static int set_up(void **state) {
    int32_t ids[90];
    if (scratch_setup(state) != 0 || chdir(scratch) != 0) return -1;
    for (int i = 0; i < 90; i++) ids[i] = i;
    data_token_writer writer;
    if (data_token_writer_open(&writer, "store", 97, NULL) != SIFR_OK ||
        data_token_writer_append(&writer, ids, 90, NULL) != SIFR_OK ||
        data_token_writer_end_document(&writer, NULL) != SIFR_OK ||
        data_token_writer_commit(&writer, NULL) != SIFR_OK)
        return -1;
    write_scores("cold", -1, 1);
    write_scores("colder", -2, 1);
    write_scores("warm", -1, 2);
    const char *path = "store";
    data_set_options options = {
        .paths = &path, .count = 1, .cache = "cache", .vocab_size = 97, .threads = 1};
    return data_set_open(&options, &data, NULL) == SIFR_OK ? 0 : -1;
}

static int tear_down(void **state) {
    data_set_close(data);
    return chdir("/") == 0 ? scratch_teardown(state) : -1;
}

static void put(json_t *facts, const char *key, json_t *value) {
    assert_non_null(value);
    assert_int_equal(json_object_set_new(facts, key, value), 0);
}

/* Of the types of its states, which a checkpoint has beside its facts. */
static json_t *types_of(const sifr_engine *engine) {
    json_t *types = json_object();
    const char *part;
    base_dtype type;
    for (int n = 0; engine_named_part(engine, n, &part, &type); n++)
        put(types, part, json_string(base_dtype_name(type)));
    return types;
}

/* The model, which knows what it learns; its head is that of labels alone. */
static sifr_model *model_of(const sifr_config *config, const model_config *form) {
    sifr_model *model = NULL;
    sifr_error error = {0};
    if (model_from_config(form, &model, &error) != SIFR_OK ||
        train_group(config, model, NULL, &error) != SIFR_OK ||
        train_objective_choose(config, &model->objective, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return model;
}

/* Planned for one rank. */
static sifr_engine *engine_of(const sifr_model *model, sifr_settings step, comm_group *group) {
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    step.mesh.shard_size = 0;
    if (engine_plan(model, &step, group, &engine, &error) != SIFR_OK) fail_msg("%s", error.message);
    return engine;
}

/* All that a checkpoint of the run says of how it came about. */
static json_t *facts_of(const sifr_config *config) {
    engine_folder folder = {.config = zero_config("llama")};
    comm_group *group;
    json_t *facts = json_object(), *pinned = json_object();
    sifr_settings step =
        train_step_settings(config, config->step.seq_length ? config->step.seq_length : 32);
    step.threads = 1;
    if (step.step_order == SIFR_STEP_AUTO) step.step_order = SIFR_STEP_BATCH;
    assert_int_equal(comm_open_self(&group, NULL), SIFR_OK);
    folder.config.undropped = train_objective_undropped(config);
    folder.model = model_of(config, &folder.config);
    model_objective objective = folder.model->objective;
    folder.model->objective = (model_objective){0};
    sifr_engine *engine = engine_of(folder.model, step, group);
    folder.model->objective = objective;
    plan_settings many = train_plan_settings(&step, group);
    assert_int_equal(plan_mesh_of(&step, RANKS, 0, &many.mesh, NULL), SIFR_OK);
    put(facts, "must_match", train_fingerprint_must_match(config, &folder, data, step.seq_length));
    put(facts, "may_differ", train_fingerprint_may_differ(config, engine));
    put(facts, "sums", train_fingerprint_sums(&many));
    put(facts, "types", types_of(engine));
    assert_true(train_pinned_put(pinned, &many));
    put(facts, "pinned", pinned);
    sifr_engine_free(engine);
    sifr_model_free(folder.model);
    comm_close(group);
    return facts;
}

static json_t *facts_of_text(const char *members) {
    char text[1000];
    snprintf(text, sizeof text, "{%s}", members);
    config_case *c = config_case_flags(text, RANKS, NULL);
    config_case_accepted(c);
    double steps = c->config.max_steps > 0 ? (double)c->config.max_steps
                                           : c->config.num_train_epochs * STEPS_AN_EPOCH;
    assert_int_equal(config_set_total_steps(&c->config, (int64_t)steps, NULL), SIFR_OK);
    json_t *facts = facts_of(&c->config);
    config_case_free(c);
    return facts;
}

static void other_values_give_other_facts(void **state) {
    (void)state;
    for (int i = 0; i < CHANGES; i++) {
        json_t *one = facts_of_text(changes[i].one), *other = facts_of_text(changes[i].other);
        if (json_equal(one, other)) fail_msg("%s: a resumed run would not say so", changes[i].key);
        json_decref(one);
        json_decref(other);
    }
}

static void same_values_give_the_same(void **state) {
    (void)state;
    json_t *one = facts_of_text(changes[0].one), *again = facts_of_text(changes[0].one);
    assert_true(json_equal(one, again));
    json_decref(one);
    json_decref(again);
}

/* Checkpoints from before a hash lack it: nothing is said of it. */
static void older_checkpoints_lack_hashes(void **state) {
    (void)state;
    static const char key[] = "sifr.preference.reference (hash)";
    json_t *facts = facts_of_text(PREFERENCE(", \"reference\": \"cold\""));
    json_t *may_differ = json_object_get(facts, "may_differ");
    sifr_optimizer optimizer = sifr_settings_defaults().optimizer;
    json_t *defaults = train_fingerprint_defaults(may_differ, &optimizer);
    assert_non_null(json_object_get(may_differ, key));
    assert_true(json_equal(json_object_get(may_differ, key), json_object_get(defaults, key)));
    json_decref(defaults);
    json_decref(facts);
}

static void assert_words(const char *was, const char *now, const char *wanted_was,
                         const char *wanted_now) {
    const char *texts[4] = {was, now, wanted_was, wanted_now};
    json_t *facts[4];
    for (int i = 0; i < 4; i++) assert_non_null(facts[i] = json_loads(texts[i], 0, NULL));
    assert_true(train_fingerprint_words(facts[0], facts[1]));
    if (!json_equal(facts[0], facts[2])) fail_msg("%s: not %s", was, wanted_was);
    if (!json_equal(facts[1], facts[3])) fail_msg("%s: not %s", now, wanted_now);
    for (int i = 0; i < 4; i++) json_decref(facts[i]);
}

/* A message shows no JSON that is cut in its middle, and no difference that follows from another.
 */
static void differences_are_words(void **state) {
    static const char tree[] = "{\"gradient sums\": \"tree\"}";
    static const char one_tree[] =
        "{\"gradient sums\": \"in one tree, whatever the number of ranks\"}";
    static const char power[] =
        "{\"gradient sums\": {\"ranks\": 2, \"gradient_accumulation_steps\": 1, \"reduced\": "
        "\"once a step (ZeRO stage 0 or 1, or "
        "step_order unit)\", \"compression\": {\"type\": \"powerSGD\", "
        "\"matrix_approximation_rank\": 4}}}";
    static const char of_two[] =
        "{\"gradient sums\": \"of 2 data ranks, 1 micro batch of each, reduced once a step, "
        "compressed (powerSGD of rank 4)\"}";
    static const char three[] =
        "{\"gradient sums\": {\"ranks\": 3, \"gradient_accumulation_steps\": 6, \"reduced\": "
        "\"each micro batch (ZeRO stage 2)\"}}";
    (void)state;
    assert_words(power, tree, of_two, one_tree);
    assert_words(tree, power, one_tree, of_two);
    assert_words(
        tree, three, one_tree,
        "{\"gradient sums\": \"of 3 data ranks, 6 micro batches of each, reduced one by one\"}");
    assert_words(power, three, power, three); /* member by member */
    assert_words("{\"gathers\": \"8 bits\"}", "{}", "{\"gathers\": \"in 8 bits\"}",
                 "{\"gathers\": \"of whole values\"}");
    assert_words("{\"tp_exact\": 4}", "{\"tensor ranks\": 2, \"divided vocabulary\": true}",
                 "{\"tp_exact\": 4}", "{}");
    assert_words("{\"tensor ranks\": 2}", "{\"tensor ranks\": 4}", "{\"tensor ranks\": 2}",
                 "{\"tensor ranks\": 4}");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences_are_words),
                                       cmocka_unit_test(each_key_is_held),
                                       cmocka_unit_test(no_reason_is_stale),
                                       cmocka_unit_test(other_values_give_other_facts),
                                       cmocka_unit_test(same_values_give_the_same),
                                       cmocka_unit_test(older_checkpoints_lack_hashes)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
