/* LLaMA-Factory's data sets: their names stand in dataset_info.json, with their files, the form of
 * their rows and what is read of those. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "config/config_private.h"
#include "config/import/import_private.h"

enum { INFO_LIMIT = 16 << 20 };

static const char info_name[] = "dataset_info.json";

/* A set, as far as it was read. */
typedef struct factory_set {
    import_state *s;
    const char *name;
    const json_t *info, *columns, *tags;
    bool turns, pairs; /* sharegpt; ranking */
    json_t *source, *fields;
    const char *reads[8]; /* fields here, in which a column is */
    size_t read;
} factory_set;

static const char *stage_of(const import_state *s) {
    const char *stage = json_string_value(json_object_get(s->source, "stage"));
    return stage ? stage : "sft";
}

/* --- the file --- */

/* The folder of dataset_info.json: `dataset_dir`, in the working directory or beside the config;
 * false: it is in neither. */
static bool find_folder(const import_state *s, char folder[BASE_PATH_LENGTH],
                        char path[BASE_PATH_LENGTH]) {
    const char *given = json_string_value(json_object_get(s->source, "dataset_dir"));
    const char *slash = strrchr(s->name, '/'), *name = given && *given ? given : "data";
    int before = slash ? (int)(slash - s->name + 1) : 0;
    for (int beside = 0; beside < (*name == '/' ? 1 : 2); beside++) {
        snprintf(folder, BASE_PATH_LENGTH, "%.*s%s", beside ? before : 0, s->name, name);
        if (base_path_join(path, folder, info_name, NULL) == SIFR_OK && access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* --- a set --- */

static sifr_status refuse(const factory_set *f, const char *member, const json_t *value,
                          const char *why) {
    char key[200];
    snprintf(key, sizeof key, "%s.%.60s%s%.60s", info_name, f->name, *member ? "." : "", member);
    return import_refuse(f->s, key, value, why);
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? text : NULL;
}

/* A column's name in the file; `usual` where the set names no columns at all; NULL: none. */
static const char *column(const factory_set *f, const char *name, const char *usual) {
    return f->columns ? text_of(f->columns, name) : usual;
}

/* A column is the field `here`. */
static void read_as(factory_set *f, const char *here, const char *there) {
    if (!there) return;
    f->reads[f->read++] = here;
    if (strcmp(here, there) != 0) json_object_set_new(f->fields, here, json_string(there));
}

/* A line where nothing is at the path, which is taken over all the same: it may come later. */
static void say_missing(const factory_set *f, const json_t *value, const char *path) {
    char key[200], why[300];
    if (base_is_file(path) || base_is_directory(path)) return;
    snprintf(key, sizeof key, "%s.%.60s.file_name", info_name, f->name);
    snprintf(why, sizeof why, "there is no file %.200s yet: put it there before the run", path);
    import_say_left(f->s, key, value, why);
}

/* Where the rows are; what is not a file is refused. */
static sifr_status put_path(factory_set *f, const char *folder) {
    static const char *const places[][2] = {
        {"hf_hub_url", "it is on a hub: download it, and give it a file_name"},
        {"ms_hub_url", "it is on a hub: download it, and give it a file_name"},
        {"om_hub_url", "it is on a hub: download it, and give it a file_name"},
        {"script_url", "a script is not run: write its rows into a file"},
        {"cloud_file_name", "it is in a cloud: download it, and give it a file_name"}};
    char path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const json_t *value = json_object_get(f->info, places[i][0]);
        if (!value) continue;
        json_object_set(f->source, "path", (json_t *)(uintptr_t)value); /* where it is allowed */
        return refuse(f, places[i][0], value, places[i][1]);
    }
    const json_t *value = json_object_get(f->info, "file_name");
    const char *file = json_string_value(value);
    if (!file) return refuse(f, "file_name", value, "the name of a file is expected");
    BASE_TRY(base_path_join(path, folder, file, f->s->error));
    if (!import_names_file(path) && !base_is_directory(path))
        return refuse(f, "file_name", value,
                      "rows are in JSON, JSON lines, CSV or Parquet; write them so");
    say_missing(f, value, path);
    json_object_set_new(f->source, "path", json_string(path));
    return SIFR_OK;
}

/* What chooses rows, or adds something to them that is no text. */
static sifr_status check_members(const factory_set *f) {
    static const char *const media[] = {"images", "videos", "audios"};
    const json_t *split = json_object_get(f->info, "split"),
                 *some = json_object_get(f->info, "num_samples");
    const char *word = json_string_value(split);
    for (size_t i = 0; i < sizeof media / sizeof *media; i++)
        if (column(f, media[i], NULL))
            BASE_TRY(refuse(f, media[i], json_object_get(f->columns, media[i]),
                            "models of text alone are trained"));
    if (split && !(word && strcmp(word, "train") == 0))
        BASE_TRY(refuse(f, "split", split, "files have the split train alone"));
    if (import_is_given(some))
        BASE_TRY(refuse(f, "num_samples", some,
                        "rows drawn at random have no counterpart; max_samples takes the first"));
    if (column(f, "kto_tag", NULL))
        BASE_TRY(refuse(f, "kto_tag", json_object_get(f->columns, "kto_tag"),
                        "only pairs of answers are learned from yet, by DPO or ORPO"));
    const json_t *ranking = json_object_get(f->info, "ranking");
    bool dpo = strcmp(stage_of(f->s), "dpo") == 0;
    if (f->pairs == dpo) return SIFR_OK;
    return refuse(f, "ranking", ranking ? ranking : json_false(),
                  dpo ? "stage: dpo learns from pairs of answers alone"
                      : "pairs of answers are learned from by stage: dpo alone");
}

/* Tools are written by LLaMA-Factory's own rules for each template. */
static sifr_status read_common(factory_set *f) {
    const char *tools = column(f, "tools", NULL);
    read_as(f, "system", column(f, "system", NULL));
    if (!tools) return SIFR_OK;
    BASE_TRY(refuse(f, "tools", json_object_get(f->columns, "tools"),
                    "LLaMA-Factory writes tools by rules of its own, which are not supported yet; "
                    "--allow lets the chat template write them"));
    read_as(f, "tools", tools);
    return SIFR_OK;
}

/* Of answers that are chosen and rejected both are there. */
static sifr_status read_pair(factory_set *f) {
    const char *chosen = column(f, "chosen", NULL), *rejected = column(f, "rejected", NULL);
    if (!chosen || !rejected)
        return refuse(f, "columns", f->columns ? f->columns : json_null(),
                      "a set with ranking names the columns chosen and rejected");
    read_as(f, "chosen", chosen);
    read_as(f, "rejected", rejected);
    return SIFR_OK;
}

static void put_type(factory_set *f, const char *type) {
    json_object_set_new(f->source, "type", json_string(type));
}

static sifr_status read_alpaca(factory_set *f) {
    const char *prompt = column(f, "prompt", "instruction"), *query = column(f, "query", "input");
    const char *response = column(f, "response", "output");
    if (!prompt && query) prompt = query, query = NULL;
    if (!prompt || (!response && !f->pairs))
        return refuse(f, "columns", f->columns,
                      f->pairs ? "a column of prompts is expected"
                               : "columns of prompts and responses are expected");
    put_type(f, f->pairs ? "preference" : "alpaca");
    read_as(f, "instruction", prompt);
    read_as(f, "input", query);
    read_as(f, "history", column(f, "history", NULL));
    if (f->pairs) return read_pair(f);
    read_as(f, "output", response);
    return SIFR_OK;
}

/* A tag's word: where tags are given, those that are left out are none. */
static const char *tag(const factory_set *f, const char *name, const char *usual) {
    return f->tags ? text_of(f->tags, name) : usual;
}

static bool is_one_of(const char *word, const char *words, bool may_be_absent) {
    return word ? config_key_has_word(words, word, NULL, NULL) : may_be_absent;
}

/* The form that has these names of a turn's members and of who says it; NULL: none. */
static const char *form_of_turns(const factory_set *f) {
    const char *role = tag(f, "role_tag", "from"), *content = tag(f, "content_tag", "value");
    const char *user = tag(f, "user_tag", "human"), *answer = tag(f, "assistant_tag", "gpt");
    const char *system = tag(f, "system_tag", "system");
    const char *result = tag(f, "observation_tag", "observation");
    const char *call = tag(f, "function_tag", "function_call");
    if (!role || !content || !is_one_of(system, "system", true)) return NULL;
    bool plain = strcmp(role, "role") == 0 && strcmp(content, "content") == 0;
    if (plain)
        return is_one_of(user, "user", false) && is_one_of(answer, "assistant", false) &&
                       is_one_of(result, "tool|observation", true)
                   ? "messages"
                   : NULL;
    bool turns = strcmp(role, "from") == 0 && strcmp(content, "value") == 0 &&
                 is_one_of(user, "human|user", false) &&
                 is_one_of(answer, "gpt|assistant|chatgpt|model|bing|bard", false) &&
                 is_one_of(result, "observation|tool|function_response", true) &&
                 is_one_of(call, "function_call", true);
    return turns ? "sharegpt" : NULL;
}

static sifr_status read_sharegpt(factory_set *f) {
    const char *list = column(f, "messages", "conversations"), *form = form_of_turns(f);
    if (!form)
        return refuse(f, "tags", f->tags,
                      "turns have role and content of user and assistant, or from and value of "
                      "human and gpt");
    if (!list) return refuse(f, "columns", f->columns, "a column of messages is expected");
    bool plain = strcmp(form, "messages") == 0;
    put_type(f, f->pairs ? "preference" : form);
    read_as(f, plain ? "messages" : "conversations", list);
    return f->pairs ? read_pair(f) : SIFR_OK;
}

/* Texts to learn whole. */
static sifr_status read_pretraining(factory_set *f) {
    const char *prompt = column(f, "prompt", NULL), *query = column(f, "query", NULL);
    if (f->turns || !prompt || query)
        return refuse(f, "columns", f->columns ? f->columns : json_null(),
                      "stage: pt reads one column, prompt, of a set in the form alpaca");
    put_type(f, "text");
    read_as(f, "text", prompt);
    return SIFR_OK;
}

/* What sifr would read of such rows, or take for another form, unless a column has it. */
static void put_ignored(factory_set *f, const char *type) {
    static const char *const turns[] = {"system", "system_prompt", "tools", "functions",
                                        "label",  "kto_tag",       NULL};
    static const char *const alpaca[] = {"input",         "context", "system",
                                         "system_prompt", "history", "tools",
                                         "label",         "kto_tag", NULL};
    static const char *const pairs[] = {"prompt",  "instruction", "question",      "input",
                                        "context", "system",      "system_prompt", "history",
                                        "tools",   "messages",    "conversation",  "conversations",
                                        NULL};
    static const char *const text[] = {"label", "kto_tag", NULL};
    const char *const *names = f->pairs                      ? pairs
                               : strcmp(type, "text") == 0   ? text
                               : strcmp(type, "alpaca") == 0 ? alpaca
                                                             : turns;
    f->reads[f->read] = NULL;
    import_put_ignored(f->source, f->fields, names, f->reads);
}

static sifr_status read_set(factory_set *f, const char *folder) {
    const json_t *formatting = json_object_get(f->info, "formatting");
    const char *word = formatting ? json_string_value(formatting) : "alpaca";
    f->turns = word && strcmp(word, "sharegpt") == 0;
    f->pairs = json_is_true(json_object_get(f->info, "ranking"));
    if (!f->turns && !(word && strcmp(word, "alpaca") == 0))
        return refuse(f, "formatting", formatting,
                      word && strcmp(word, "openai") == 0
                          ? "LLaMA-Factory 0.9.5 puts \"detailed thinking off\" into the system's "
                            "turn of these rows; sharegpt with tags reads them as they are"
                          : "rows are in the form alpaca or sharegpt");
    BASE_TRY(put_path(f, folder));
    BASE_TRY(check_members(f));
    if (strcmp(stage_of(f->s), "pt") == 0) {
        BASE_TRY(read_pretraining(f));
    } else {
        BASE_TRY(f->turns ? read_sharegpt(f) : read_alpaca(f));
        BASE_TRY(read_common(f));
    }
    const char *type = json_string_value(json_object_get(f->source, "type"));
    if (type) put_ignored(f, type);
    if (json_object_size(f->fields)) json_object_set(f->source, "fields", f->fields);
    return SIFR_OK;
}

/* Appends the set's source of rows. */
static sifr_status add_set(import_state *s, const json_t *all, const char *folder, const char *name,
                           json_t *sources) {
    factory_set set = {.s = s, .name = name, .info = json_object_get(all, name)};
    set.columns = json_object_get(set.info, "columns");
    set.tags = json_object_get(set.info, "tags");
    if (!set.info) return refuse(&set, "", json_null(), "there is no set of this name in the file");
    set.source = json_object();
    set.fields = json_object();
    sifr_status status = set.source && set.fields && sources ? read_set(&set, folder)
                                                             : base_fail_alloc(s->error, 64);
    if (status == SIFR_OK && json_array_append(sources, set.source) != 0)
        status = base_fail_alloc(s->error, 64);
    json_decref(set.fields);
    json_decref(set.source);
    return status;
}

/* --- the keys --- */

/* Names divided by commas, or a list of them. */
static json_t *names_of(const json_t *value) {
    json_t *names = json_array();
    const char *text = json_string_value(value);
    if (json_is_array(value)) json_array_extend(names, (json_t *)(uintptr_t)value);
    while (text && *text) {
        text += strspn(text, ", ");
        size_t size = strcspn(text, ","), length = size;
        while (length && text[length - 1] == ' ') length--;
        if (length) json_array_append_new(names, json_stringn(text, length));
        text += size;
    }
    return names;
}

static sifr_status read_sets(import_state *s, const json_t *value, json_t *sources) {
    char folder[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH];
    json_t *all, *names, *name;
    size_t i;
    if (!find_folder(s, folder, path)) return SIFR_OK;
    BASE_TRY(base_json_load(path, INFO_LIMIT, &all, s->error));
    names = names_of(value);
    sifr_status status = SIFR_OK;
    json_array_foreach(names, i, name) {
        const char *word = json_string_value(name);
        if (word && status == SIFR_OK) status = add_set(s, all, folder, word, sources);
    }
    json_decref(names);
    json_decref(all);
    return status;
}

/* A line for want of the file, which ends in what follows from that. */
static void say_unknown(import_state *s, const char *key, const json_t *value) {
    char why[300];
    const char *given = json_string_value(json_object_get(s->source, "dataset_dir"));
    snprintf(why, sizeof why,
             "a name of %.80s/%s, which is neither here nor beside the config: give its files to "
             "--data, and fields of theirs that no column names to --ignore-fields",
             given && *given ? given : "data", info_name);
    import_say_left(s, key, value, why);
}

static bool are_files(const json_t *names) {
    bool files = json_array_size(names) > 0;
    for (size_t i = 0; i < json_array_size(names); i++)
        files &= import_names_file(json_string_value(json_array_get(names, i)));
    return files;
}

sifr_status import_factory_datasets(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.dataset";
    char folder[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH], where[BASE_PATH_LENGTH + 40];
    if (!import_asks(value)) return SIFR_OK;
    if (s->kind != &import_factory) return import_rows_file(s, key, value);
    if (!find_folder(s, folder, path)) {
        json_t *names = names_of(value);
        if (are_files(names) && !import_get(s, "sifr.data")) {
            import_say_kept(s, key, value, "sifr.data");
            return import_put(s, "sifr.data", names);
        }
        json_decref(names);
        say_unknown(s, key, value);
        return SIFR_OK;
    }
    snprintf(where, sizeof where, "%s, as %s says", to, path);
    import_say_kept(s, key, value, where);
    json_t *sources = json_array();
    sifr_status status = read_sets(s, value, sources);
    if (status == SIFR_OK && json_array_size(sources) > 0) return import_put(s, to, sources);
    json_decref(sources);
    return status;
}

static bool has_name(const json_t *list, const json_t *name) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), name)) return true;
    return false;
}

/* Whether fields that are left out of held-out rows are left out of all others too. */
static bool leave_out(const import_state *s, const json_t *ignored) {
    const json_t *sources = import_get(s, "sifr.dataset");
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const json_t *own = json_object_get(json_array_get(sources, i), "ignore_fields");
        for (size_t k = 0; k < json_array_size(ignored); k++)
            if (!has_name(own, json_array_get(ignored, k))) return false;
    }
    return true;
}

sifr_status import_factory_held_out(import_state *s, const char *key, json_t *value) {
    if (s->kind != &import_factory && import_asks(value))
        import_say_left(s, key, value, "held-out data are given by --eval-data");
    return SIFR_OK;
}

/* A source as held-out data, which have the type and the fields of data. */
static sifr_status put_held_out(import_state *s, const json_t *source) {
    json_t *names = json_array(), *there, *ignored = json_object_get(source, "ignore_fields");
    const char *here;
    json_object_foreach(json_object_get(source, "fields"), here, there)
        json_array_append_new(names, json_pack("s++", here, "=", json_string_value(there)));
    BASE_TRY(import_put(s, "sifr.eval_data", json_incref(json_object_get(source, "path"))));
    BASE_TRY(import_put(s, "sifr.data_type", json_incref(json_object_get(source, "type"))));
    BASE_TRY(import_put(s, "sifr.ignore_fields", json_incref(ignored)));
    if (json_array_size(names)) return import_put(s, "sifr.data_fields", names);
    json_decref(names);
    return SIFR_OK;
}

sifr_status import_factory_eval(import_state *s) {
    static const char *const key = "eval_dataset";
    char folder[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH];
    const json_t *value = json_object_get(s->source, key);
    if (!import_asks(value)) return SIFR_OK;
    if (!find_folder(s, folder, path)) {
        say_unknown(s, key, value);
        return SIFR_OK;
    }
    json_t *sources = json_array();
    sifr_status status = read_sets(s, value, sources);
    const json_t *source = json_array_get(sources, 0);
    bool whole = text_of(source, "path") && text_of(source, "type");
    bool alone =
        json_array_size(sources) == 1 && leave_out(s, json_object_get(source, "ignore_fields"));
    if (status == SIFR_OK && whole && alone) {
        import_say_kept(s, key, value, "sifr.eval_data");
        status = put_held_out(s, source);
    } else if (status == SIFR_OK && whole) {
        import_say_left(s, key, value,
                        "held-out rows are one file, of which the same fields are read as of all "
                        "others: give --eval-data");
    }
    json_decref(sources);
    return status;
}
