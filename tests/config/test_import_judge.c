/* Forty configs of other programs, in the shapes that people publish: what each trains there, by
 * the programs' own classes (tests/golden/make_import_judge.py), beside what sifr's config trains
 * after the import. What is refused has its reason in that table, and nothing else is refused. */
#include "config/config_case.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/yaml.h"
#include "config/import/config_import.h"
#include "config/schedule/lr_schedule.h"

enum { FILES = 40, PROGRAMS = 5, LEAST_FILES = 6, LEAST_KEYS = 10 };

static const char *const programs[PROGRAMS] = {"acc-", "ax-", "hf-", "lf-", "trl-"};

static const char *place(const char *folder, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/%s/%s", getenv("SOURCE"), folder, name);
    return path;
}

/* A name that the import could not take over, since its files must be there first. */
static void keep_name(void *user, const char *line) {
    json_t *names = user;
    char name[200];
    if (sscanf(line, "dataset = \"%199[^\"]\": not taken over: a name", name) != 1) return;
    for (char *part = strtok(name, ","); part; part = strtok(NULL, ","))
        json_array_append_new(names, json_string(part));
}

/* --- what sifr trains --- */

static const char *type_name(const sifr_config *c) {
    return c->step.precision == SIFR_BF16   ? "bf16"
           : c->step.precision == SIFR_FP16 ? "fp16"
                                            : "fp32";
}

static const char *optimizer_name(const sifr_optimizer *o) {
    static const char *const names[] = {
        [SIFR_ADAMW] = "AdamW",
        [SIFR_ADAM] = "Adam",
        [SIFR_SGD] = "SGD",
        [SIFR_ADAGRAD] = "Adagrad",
        [SIFR_LION] = "Lion",
        [SIFR_SCHEDULE_FREE_ADAMW] = "AdamWScheduleFree",
        [SIFR_ADAM_8BIT] = "Adam8bit",
        [SIFR_ADAMW_8BIT] = "AdamW8bit",
        [SIFR_LAMB] = "Lamb",
        [SIFR_MUON] = "Muon",
        [SIFR_ADAFACTOR] = "Adafactor",
    };
    return names[o->type];
}

static void put(json_t *object, const char *key, json_t *value) {
    assert_int_equal(json_object_set_new(object, key, value), 0);
}

static json_t *number_of(const json_t *object, const char *key, double usual) {
    const json_t *value = json_object_get(object, key);
    return json_real(value ? json_number_value(value) : usual);
}

static json_t *adapter_of(const sifr_config *c) {
    json_t *out = json_object(), *given = (json_t *)(uintptr_t)c->lora, *value;
    if (!given) {
        json_decref(out);
        return json_null();
    }
    put(out, "r", number_of(given, "r", 8));
    put(out, "alpha", number_of(given, "lora_alpha", 8));
    put(out, "dropout", number_of(given, "lora_dropout", 0));
    value = json_object_get(given, "target_modules");
    put(out, "targets", value ? json_incref(value) : json_null());
    value = json_object_get(given, "modules_to_save");
    if (value) put(out, "saved", json_incref(value));
    if (json_is_true(json_object_get(given, "use_rslora"))) put(out, "rslora", json_true());
    return out;
}

static json_t *codes_of(const sifr_config *c) {
    const json_t *q = c->quantization;
    if (!q) return json_null();
    return json_pack("{s:O, s:O}", "type", json_object_get(q, "bnb_4bit_quant_type"), "twice",
                     json_object_get(q, "bnb_4bit_use_double_quant"));
}

/* At the steps 0, 1, the middle and the last one. */
static json_t *rates_of(const sifr_config *c, int64_t total) {
    const int64_t steps[] = {0, 1, total / 2, total - 1};
    json_t *out = json_array();
    for (int i = 0; i < 4; i++)
        json_array_append_new(out, json_real(config_lr_at(&c->schedule, steps[i] - 1)));
    return out;
}

static json_t *paths_of(const sifr_config *c, json_t *names) {
    json_t *out = json_array();
    for (size_t i = 0; i < c->data_count; i++) json_array_append_new(out, json_string(c->data[i]));
    if (c->data_count == 0) json_array_extend(out, names);
    return out;
}

/* Of each source of messages its roles and the ends of its turns; as null: none is asked for. */
static json_t *turns_of(const sifr_config *c) {
    json_t *out = json_array();
    for (size_t i = 0; c->dataset && i < c->data_count; i++) {
        const config_turns *turns = &c->dataset[i].turns;
        const char *type = c->dataset[i].type;
        bool messages = type && (strcmp(type, "messages") == 0 || strcmp(type, "sharegpt") == 0);
        if (!turns->given || !messages) continue;
        json_t *roles = turns->roles ? json_incref((json_t *)(uintptr_t)turns->roles) : json_null();
        json_array_append_new(out, json_pack("[o, s, s]", roles, turns->eos ? turns->eos : "turn",
                                             turns->eot ? turns->eot : "turn"));
    }
    if (json_array_size(out)) return out;
    json_decref(out);
    return json_null();
}

static json_t *list_training(const sifr_config *c, json_t *names, int64_t total) {
    const sifr_optimizer *o = &c->step.optimizer;
    const char *loss = config_get_word(c, "sifr.preference.loss_type");
    bool pairs = loss && strcmp(loss, "none") != 0;
    json_t *out = json_object();
    put(out, "model", c->model ? json_string(c->model) : json_null());
    put(out, "paths", paths_of(c, names));
    put(out, "samples", json_integer(c->max_samples));
    put(out, "long_rows", json_string(c->drop_long ? "out" : "cut"));
    put(out, "held_out", json_real(c->validation_split));
    put(out, "packing", json_boolean(c->packing));
    put(out, "by_length", json_boolean(c->group_by_length));
    put(out, "labels", json_string(c->train_on ? c->train_on : "assistant"));
    put(out, "turns", turns_of(c));
    put(out, "length", c->step.seq_length ? json_integer(c->step.seq_length) : json_null());
    put(out, "micro", json_integer(c->step.micro_batch_size / (pairs ? 2 : 1)));
    put(out, "accumulation", json_integer(c->step.gradient_accumulation_steps));
    if (c->max_steps > 0)
        put(out, "steps", json_integer(c->max_steps));
    else
        put(out, "epochs", json_real(c->num_train_epochs));
    put(out, "precision", json_string(type_name(c)));
    put(out, "optimizer", json_string(optimizer_name(o)));
    put(out, "decay", json_real(o->weight_decay));
    put(out, "betas", json_pack("[f, f]", o->beta1, o->beta2));
    put(out, "clip", json_real(c->step.gradient_clipping));
    put(out, "rates", rates_of(c, total));
    put(out, "adapter", adapter_of(c));
    put(out, "codes", codes_of(c));
    put(out, "loss", json_string(pairs ? loss : "next"));
    put(out, "beta", pairs ? json_real(config_get_number(c, "sifr.preference.beta")) : json_null());
    return out;
}

/* Of a launcher. */
static json_t *list_launch(const sifr_config *c) {
    static const char *const tiers[] = {"none", "cpu", "nvme"};
    return json_pack("{s:s, s:i, s:s, s:s, s:i, s:f}", "precision", type_name(c), "stage",
                     (int)c->step.zero.stage, "optimizer_on",
                     tiers[c->step.offload.optimizer.device], "parameters_on",
                     tiers[c->step.offload.param.device], "accumulation",
                     (int)c->step.gradient_accumulation_steps, "clip", c->step.gradient_clipping);
}

/* --- beside what the program trains --- */

static bool same(const json_t *wanted, const json_t *got) {
    if (json_is_number(wanted) && json_is_number(got)) {
        double a = json_number_value(wanted), b = json_number_value(got);
        return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
    }
    if (!json_is_array(wanted) || !json_is_array(got)) return json_equal(wanted, got);
    bool equal = json_array_size(wanted) == json_array_size(got);
    for (size_t i = 0; equal && i < json_array_size(wanted); i++)
        equal = same(json_array_get(wanted, i), json_array_get(got, i));
    return equal;
}

/* Every member that the program's listing has. */
static bool alike(const char *name, json_t *wanted, json_t *got) {
    const char *key;
    json_t *value;
    bool equal = true;
    json_object_foreach(wanted, key, value) {
        const json_t *other = json_object_get(got, key);
        bool inner = json_is_object(value) && json_is_object(other);
        if (inner ? alike(name, value, (json_t *)(uintptr_t)other) : same(value, other)) continue;
        char *a = json_dumps(value, JSON_ENCODE_ANY), *b = json_dumps(other, JSON_ENCODE_ANY);
        print_message("%s: %s is %s there, %s here\n", name, key, a, b ? b : "nothing");
        free(a);
        free(b);
        equal = false;
    }
    return equal;
}

static bool trains_alike(const char *name, json_t *wanted) {
    config_imported made;
    sifr_config config;
    sifr_error error = {0};
    char *text = NULL;
    json_t *names = json_array(), *got;
    const json_t *refused = json_object_get(wanted, "refused");
    sifr_status status =
        config_import_file(place("config/imports", name), NULL, keep_name, names, &made, &error);
    if (status != SIFR_OK || refused) {
        bool right = status == SIFR_USAGE && refused;
        if (!right) print_message("%s: %s\n", name, refused ? "not refused" : error.message);
        if (status == SIFR_OK) json_decref(made.config);
        json_decref(names);
        return right;
    }
    assert_int_equal(config_json_text(made.config, &text, &error), SIFR_OK);
    assert_int_equal(config_create(&config, &error), SIFR_OK);
    status = config_parse(&config, text, strlen(text), name, &error);
    if (status == SIFR_OK) status = config_resolve(&config, 1, &error);
    int64_t total = config.max_steps > 0 ? config.max_steps : 100;
    if (status == SIFR_OK) status = config_set_total_steps(&config, total, &error);
    if (status != SIFR_OK) fail_msg("%s", error.message);
    config_case_is_taken(&config);
    got =
        strncmp(name, "acc-", 4) == 0 ? list_launch(&config) : list_training(&config, names, total);
    bool equal = alike(name, wanted, got);
    json_decref(got);
    json_decref(names);
    json_decref(made.config);
    free(text);
    config_free(&config);
    return equal;
}

static json_t *read_expected(void) {
    json_error_t fault;
    json_t *all = json_load_file(place("golden", "imports.json"), 0, &fault);
    if (!all) fail_msg("%s", fault.text);
    return all;
}

static void files_are_alike(void **state) {
    (void)state;
    json_t *all = read_expected(), *files = json_object_get(all, "files"), *wanted;
    const char *name;
    int count = 0, right = 0;
    json_object_foreach(files, name, wanted) {
        count++;
        right += trains_alike(name, wanted);
    }
    print_message("%d files, %d alike\n", count, right);
    json_decref(all);
    assert_int_equal(count, FILES);
    assert_int_equal(right, FILES);
}

/* --- the files are of many shapes --- */

/* Adds the paths of all values to the object `to`. */
static void collect(json_t *value, const char *path, json_t *to) {
    const char *key;
    json_t *member;
    if (!json_is_object(value) || json_object_size(value) == 0) put(to, path, json_true());
    json_object_foreach(value, key, member) {
        char longer[300];
        snprintf(longer, sizeof longer, "%s%s%s", path, *path ? "." : "", key);
        collect(member, longer, to);
    }
}

static json_t *keys_of(const char *name) {
    json_t *root = NULL, *out = json_object();
    char *text;
    size_t size;
    sifr_error error = {0};
    assert_int_equal(base_read_file(place("config/imports", name), 1 << 16, &text, &size, &error),
                     SIFR_OK);
    assert_int_equal(base_yaml_parse(text, size, name, &root, &error), SIFR_OK);
    collect(root, "", out);
    json_decref(root);
    free(text);
    return out;
}

static void shapes_differ(void **state) {
    (void)state;
    json_t *all = read_expected(), *value, *other, *keys = json_object();
    const char *name, *second, *key;
    int files[PROGRAMS] = {0};
    json_object_foreach(json_object_get(all, "files"), name, value) {
        put(keys, name, keys_of(name));
        for (int i = 0; i < PROGRAMS; i++)
            files[i] += strncmp(name, programs[i], strlen(programs[i])) == 0;
    }
    for (int i = 0; i < PROGRAMS; i++) assert_true(files[i] >= LEAST_FILES);
    json_object_foreach(keys, name, value) {
        if (json_object_size(value) < LEAST_KEYS)
            fail_msg("%s: %zu keys", name, json_object_size(value));
        json_object_foreach(keys, second, other) {
            json_t *one;
            size_t shared = 0;
            json_object_foreach(value, key, one) shared += json_object_get(other, key) != NULL;
            if (value != other && 2 * shared > json_object_size(value))
                print_message("%s: %zu of its %zu keys are in %s, too\n", name, shared,
                              json_object_size(value), second),
                    files[0] = -1;
        }
    }
    assert_true(files[0] >= 0);
    json_decref(keys);
    json_decref(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_alike),
        cmocka_unit_test(shapes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
