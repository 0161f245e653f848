/* Objectives: their rows are whole, and each word of a choice that the config hands on is known in
 * the room that acts on it. */
#include "support/scratch.h"

#include "config/keys/config_keys.h"
#include "train/objective/objectives.h"
#include "train/report/history.h"

#define ADDRESS(row) &(row),
static const train_objective *const rows[] = {TRAIN_OBJECTIVES(ADDRESS)};
enum { ROWS = sizeof rows / sizeof *rows };

static bool find_task(const char *word) {
    model_task out;
    return model_task_find(word, &out);
}
static bool find_problem(const char *word) {
    model_problem out;
    return model_problem_find(word, &out);
}
static bool find_type(const char *word) {
    data_row_type out;
    return data_row_type_find(word, &out);
}
static bool find_mask(const char *word) {
    data_chat_mask out;
    return data_chat_mask_find(word, &out);
}
static bool find_joint(const char *word) {
    data_chat_joint out;
    return data_chat_joint_find(word, &out);
}
static bool find_ends(const char *word) {
    data_chat_ends out;
    return data_chat_ends_find(word, &out);
}

static const struct {
    const char *path;
    bool (*find)(const char *word);
} choices[] = {{"sifr.task", find_task},        {"sifr.problem_type", find_problem},
               {"sifr.data_type", find_type},   {"sifr.train_on", find_mask},
               {"sifr.join_texts", find_joint}, {"sifr.train_on_eos", find_ends},
               {"sifr.train_on_eot", find_ends}};

static void knows_each_word(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const config_key *key = config_key_find(choices[i].path, NULL);
        char words[300];
        assert_non_null(key);
        snprintf(words, sizeof words, "%s", key->choices);
        for (char *word = strtok(words, "|"); word; word = strtok(NULL, "|"))
            if (strcmp(word, "auto") != 0 && !choices[i].find(word))
                fail_msg("%s: %s is known to the config alone", key->path, word);
        assert_false(choices[i].find("word"));
        assert_true(find_task("causal_lm"));
    }
}

/* The keys of its section are those that it reads. */
static void has_its_keys(const train_objective *o) {
    char section[64];
    int keys = 0, found = 0;
    int length = snprintf(section, sizeof section, "sifr.%s.", o->key);
    for (size_t i = 0; i < config_key_count(); i++)
        found += strncmp(config_key_at(i)->path, section, (size_t)length) == 0;
    for (; keys < TRAIN_KEYS && o->keys[keys]; keys++) {
        assert_int_equal(strncmp(o->keys[keys], section, (size_t)length), 0);
        assert_non_null(config_key_find(o->keys[keys], NULL));
    }
    assert_int_equal(keys, found);
}

/* One row without a key for each task; a key is a section of sifr's, and has what it needs. */
static void rows_are_whole(void **state) {
    (void)state;
    sifr_config config;
    assert_int_equal(config_create(&config, NULL), SIFR_OK);
    assert_null(train_objective_asked(&config));
    for (int task = MODEL_NEXT_TOKEN; task <= MODEL_TOKEN_CLASSES; task++) {
        const train_objective *found = train_objective_for((model_task)task);
        assert_non_null(found);
        assert_ptr_equal(train_objective_of(&config, (model_task)task), found);
    }
    for (int i = 0; i < ROWS; i++) {
        const train_objective *o = rows[i];
        assert_true(o->tasks);
        assert_int_equal(o->key != NULL, o->asked != NULL);
        assert_true(!o->key || (o->choose && o->describe));
        assert_true(!o->undropped || o->says_undropped);
        assert_true(!o->pairs || (o->unasked && o->unfit));
        assert_int_equal(o->pairs, o->evaluated && o->evaluated->pairs);
        if (o->key) has_its_keys(o);
    }
    config_free(&config);
}

/* All keys of the history have a bit of a record's head. */
static void history_has_room(void **state) {
    (void)state;
    json_t *record = json_object(), *entry;
    train_history history;
    sifr_error error;
    char out[64];
    const char *name;
    json_object_set_new(record, "step", json_integer(1));
    for (size_t i = 0; (name = train_objective_history(i, out)); i++)
        json_object_set_new(record, name, json_real(1));
    train_history_begin(&history);
    assert_int_equal(train_history_add(&history, record, &error), SIFR_OK);
    entry = train_history_entry(&history, 0);
    assert_int_equal(json_object_size(entry), json_object_size(record));
    json_decref(entry);
    json_decref(record);
    train_history_free(&history);
}

/* By the flag that a key of its own has; each word of a choice is known. */
static void asks(const train_objective *o, const char *flag, const char *text) {
    sifr_config config;
    sifr_error error = {0};
    model_objective objective;
    assert_int_equal(config_create(&config, NULL), SIFR_OK);
    assert_int_equal(config_set(&config, flag, text, &error), SIFR_OK);
    assert_int_equal(config_resolve(&config, 1, &error), SIFR_OK);
    assert_ptr_equal(train_objective_of(&config, MODEL_NEXT_TOKEN), o);
    if (o == &train_preference) {
        assert_int_equal(train_objective_choose(&config, &objective, &error), SIFR_OK);
        assert_ptr_equal(objective.row, &model_objective_pairs);
        assert_true(objective.pairs.beta == 0.1);
    }
    config_free(&config);
}

static void is_asked_for(void **state) {
    (void)state;
    asks(&train_preference, "preference", "sigmoid");
    asks(&train_preference, "preference", "hinge");
    asks(&train_preference, "preference", "ipo");
    asks(&train_preference, "preference", "orpo");
    asks(&train_next_token, "preference", "none");
    asks(&train_distil, "distill", "scores");
    asks(&train_own_loss, "own-loss-memory", "1MiB");
}

/* One of two would be left out without a word. */
static void refuses_two(void **state) {
    (void)state;
    sifr_config config;
    sifr_error error = {0};
    model_objective objective;
    assert_int_equal(config_create(&config, NULL), SIFR_OK);
    assert_int_equal(config_set(&config, "preference", "ipo", &error), SIFR_OK);
    assert_int_equal(config_set(&config, "distill", "scores", &error), SIFR_OK);
    assert_int_equal(config_resolve(&config, 1, &error), SIFR_OK);
    assert_int_equal(train_objective_choose(&config, &objective, &error), SIFR_USAGE);
    assert_string_equal(error.message, "preference and distill are both given; give one of them");
    config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_each_word), cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(history_has_room), cmocka_unit_test(is_asked_for),
        cmocka_unit_test(refuses_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
