/* What other programs say about rows to fine-tune on: which files, of which form, what of them is
 * learned, and what share is held out. */
#include <string.h>

#include "config/import_private.h"

static const char on_hub[] = "a name on a hub: download it, and give its files to --data";

static bool ends_with(const char *text, size_t length, const char *end) {
    size_t size = strlen(end);
    return length > size && memcmp(text + length - size, end, size) == 0;
}

/* A file that sifr reads rows from, by its name; other names are those of data sets on a hub. */
static bool names_file(const char *path) {
    static const char *const packed[] = {".gz", ".zst"};
    static const char *const ends[] = {".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet"};
    size_t length = path ? strlen(path) : 0;
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (path && ends_with(path, length, packed[i])) length -= strlen(packed[i]);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (path && ends_with(path, length, ends[i])) return true;
    return false;
}

/* --- axolotl --- */

/* The name that a set gives a field, where it is another than usual; NULL: none. */
static const char *other_name(const json_t *set, const char *key, const char *usual) {
    const char *name = json_string_value(json_object_get(set, key));
    return name && strcmp(name, usual) != 0 ? name : NULL;
}

/* Fields of a set under names of their own, as sifr.dataset has them; NULL: none. */
static json_t *axolotl_fields(const json_t *set, const char *form) {
    static const char *const keys[][3] = {{"field_messages", "messages", "messages"},
                                          {"field_tools", "tools", "messages"},
                                          {"field", "text", "text"},
                                          {"field_prompt", "prompt", "preference"},
                                          {"field_chosen", "chosen", "preference"},
                                          {"field_rejected", "rejected", "preference"}};
    const json_t *type = json_object_get(set, "type");
    json_t *fields = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *name = other_name(json_is_object(type) ? type : set, keys[i][0], keys[i][1]);
        if (!name || strcmp(form, keys[i][2]) != 0) continue;
        if (!fields) fields = json_object();
        json_object_set_new(fields, keys[i][1], json_string(name));
    }
    return fields;
}

/* A type of preferences by fields alone; formats of prompts have no counterpart. */
static bool names_preference(const json_t *type) {
    static const char *const others[] = {"prompt_format", "chosen_format", "rejected_format",
                                         "field_system"};
    bool alone = json_is_object(type);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        alone &= !import_asks(json_object_get(type, others[i]));
    return alone;
}

/* The form of rows that a type of axolotl's is; NULL where sifr has none. */
static const char *axolotl_form(const json_t *set) {
    static const char *const forms[][2] = {{"chat_template", "messages"},
                                           {"sharegpt", "sharegpt"},
                                           {"alpaca", "alpaca"},
                                           {"completion", "text"}};
    const char *type = json_string_value(json_object_get(set, "type"));
    const char *field = json_string_value(json_object_get(set, "field_messages"));
    const char *form = NULL;
    for (size_t i = 0; type && i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i][0]);
        if (strncmp(type, forms[i][0], length) == 0 && strchr(".:", type[length]))
            form = forms[i][1];
    }
    if (!form || !field || strcmp(form, "messages") != 0) return form;
    return strcmp(field, "conversations") == 0 ? "sharegpt" : form;
}

/* The file of a set: its path, or what data_files names where the path is only a format. */
static const char *axolotl_file(const json_t *set) {
    const json_t *files = json_object_get(set, "data_files");
    if (json_array_size(files) == 1) files = json_array_get(files, 0);
    if (json_array_size(files) > 1) return NULL;
    return json_string_value(files ? files : json_object_get(set, "path"));
}

static sifr_status put_rows(import_state *s, const char *key, json_t *value) {
    size_t i;
    json_t *set, *sources = json_array();
    const char *fault = NULL;
    bool pairs = import_asks(json_object_get(s->source, "rl"));
    json_array_foreach(value, i, set) {
        const char *file = axolotl_file(set), *form = axolotl_form(set);
        if (pairs) form = names_preference(json_object_get(set, "type")) ? "preference" : NULL;
        if (!names_file(file))
            fault = on_hub;
        else if (!form && pairs)
            fault =
                "rows of this type have no form here; give prompt, chosen and rejected to --data";
        else if (!form)
            fault = "rows of this type have no form here; give the file to --data, or name its "
                    "fields in "
                    "sifr.dataset";
        else
            json_array_append_new(sources, json_pack("{s:s, s:s, s:o*}", "path", file, "type", form,
                                                     "fields", axolotl_fields(set, form)));
    }
    if (fault) {
        json_decref(sources);
        import_say_left(s, key, value, fault);
        return SIFR_OK;
    }
    import_say_kept(s, key, value, "sifr.dataset");
    return import_put(s, "sifr.dataset", sources);
}

sifr_status import_axolotl_datasets(import_state *s, const char *key, json_t *value) {
    size_t i;
    json_t *set, *paths = json_array();
    bool texts = json_array_size(value) > 0;
    json_array_foreach(value, i, set) {
        const char *type = json_string_value(json_object_get(set, "type"));
        const char *path = axolotl_file(set);
        texts &= path && !names_file(path) && (!type || strcmp(type, "completion") == 0);
        if (path) json_array_append_new(paths, json_string(path));
    }
    if (texts) {
        import_say_kept(s, key, value, "sifr.data");
        return import_put(s, "sifr.data", paths);
    }
    json_decref(paths);
    return import_asks(value) ? put_rows(s, key, value) : SIFR_OK;
}

sifr_status import_axolotl_tests(import_state *s, const char *key, json_t *value) {
    const char *file = json_array_size(value) == 1 ? axolotl_file(json_array_get(value, 0)) : NULL;
    if (!import_asks(value)) return SIFR_OK;
    if (!names_file(file)) {
        import_say_left(s, key, value, "one file of held-out data is given by --eval-data");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, "sifr.eval_data");
    return import_put(s, "sifr.eval_data", json_string(file));
}

/* --- all of them --- */

sifr_status import_rows_file(import_state *s, const char *key, json_t *value) {
    const char *path = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (!names_file(path) || import_get(s, "sifr.data")) {
        import_say_left(s, key, value, path ? on_hub : "give its files to --data");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, "sifr.data");
    return import_put(s, "sifr.data", json_pack("[s]", path));
}

sifr_status import_text_field(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.data_fields";
    const char *name = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (name && strcmp(name, "text") == 0) {
        import_say_idle(s, key, value, "texts are in the field text");
        return SIFR_OK;
    }
    if (!name) {
        import_say_left(s, key, value, "the name of a field is expected");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_pack("[s+]", "text=", name));
}

/* `yes` and `no` are what true and false learn; NULL is sifr's default. The first key counts. */
static sifr_status train_on(import_state *s, const char *key, json_t *value, const char *yes,
                            const char *no) {
    static const char *const to = "sifr.train_on";
    const char *part = json_is_true(value) ? yes : json_is_false(value) ? no : NULL;
    if (import_asks(value) && !json_is_boolean(value)) {
        import_say_left(s, key, value, "true or false is expected; give --train-on");
        return SIFR_OK;
    }
    if (!part || import_get(s, to)) return SIFR_OK;
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_string(part));
}

sifr_status import_assistant_only(import_state *s, const char *key, json_t *value) {
    return train_on(s, key, value, "assistant", "all");
}

sifr_status import_inputs_too(import_state *s, const char *key, json_t *value) {
    return train_on(s, key, value, "all", NULL);
}

sifr_status import_last_only(import_state *s, const char *key, json_t *value) {
    return train_on(s, key, value, "last", NULL);
}

/* Text is cut into full windows: what is of rows does nothing, and sifr train refuses it. */
static void drop_places(import_state *s) {
    static const char *const keys[][2] = {{"sample_packing", "sifr.packing"},
                                          {"packing", "sifr.packing"},
                                          {"group_by_length", "sifr.group_by_length"},
                                          {"dataset_text_field", "sifr.data_fields"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(s->source, keys[i][0]);
        if (!import_asks(value) || !import_get(s, keys[i][1])) continue;
        import_say_idle(s, keys[i][0], value, "text is cut into full windows");
        import_drop(s, keys[i][1]);
    }
}

sifr_status import_finish_rows(import_state *s, const char *share) {
    static const char *const to = "sifr.validation_split";
    json_t *value = json_object_get(s->source, share), *data = import_get(s, "sifr.data");
    if (json_is_array(data)) data = json_array_get(data, 0);
    bool text = data && !names_file(json_string_value(data));
    double number = json_number_value(value);
    if (text) drop_places(s);
    if (!import_asks(value)) return SIFR_OK;
    if (text || import_get(s, "sifr.eval_data")) {
        import_say_left(s, share, value, "held-out text is given by --eval-data");
    } else if (number > 0 && number < 1) {
        import_say_kept(s, share, value, to);
        return import_put(s, to, json_incref(value));
    } else {
        import_say_left(s, share, value, "give a share below 1 to --validation-split");
    }
    return SIFR_OK;
}
