/* What other programs say about rows to fine-tune on: which files, of which form, what of them is
 * learned, and what share is held out. */
#include <stdio.h>
#include <string.h>

#include "config/import/import_private.h"

const char import_on_hub[] =
    "a name on a hub: download it, and write the path of its files there, or give them to --data";

static bool ends_with(const char *text, size_t length, const char *end) {
    size_t size = strlen(end);
    return length > size && memcmp(text + length - size, end, size) == 0;
}

bool import_names_file(const char *path) {
    static const char *const packed[] = {".gz", ".zst"};
    static const char *const ends[] = {".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet"};
    size_t length = path ? strlen(path) : 0;
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (path && ends_with(path, length, packed[i])) length -= strlen(packed[i]);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (path && ends_with(path, length, ends[i])) return true;
    return false;
}

/* Whether a field of the file is one of those that are read, or has the name of one. */
static bool is_read(const json_t *fields, const char *const *reads, const char *field) {
    const char *here;
    json_t *there;
    json_object_foreach((json_t *)(uintptr_t)fields, here, there) {
        if (strcmp(json_string_value(there), field) == 0) return true;
    }
    for (size_t i = 0; reads[i]; i++)
        if (strcmp(reads[i], field) == 0) return !json_object_get(fields, field);
    return false;
}

/* Whether a name is given to another field, while the row's own field of that name is not read. */
static bool is_replaced(const json_t *fields, const char *const *names, const char *name) {
    const char *here;
    json_t *there;
    json_object_foreach((json_t *)(uintptr_t)fields, here, there) {
        if (strcmp(json_string_value(there), name) == 0) return false;
    }
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return false; /* of the list already */
    return true;
}

void import_put_ignored(json_t *source, const json_t *fields, const char *const *names,
                        const char *const *reads) {
    json_t *ignored = json_array(), *there;
    const char *here;
    for (size_t i = 0; names[i]; i++)
        if (!is_read(fields, reads, names[i]))
            json_array_append_new(ignored, json_string(names[i]));
    json_object_foreach((json_t *)(uintptr_t)fields, here, there) {
        if (is_replaced(fields, names, here)) json_array_append_new(ignored, json_string(here));
    }
    json_object_set_new(source, "ignore_fields", ignored);
}

sifr_status import_ignore_as_trl(import_state *s) {
    const json_t *data = import_get(s, "sifr.data");
    if (!json_is_array(data) || !import_names_file(json_string_value(json_array_get(data, 0))))
        return SIFR_OK;
    return import_put(s, "sifr.ignore_fields",
                      json_pack("[s, s, s, s, s, s, s, s, s]", "system", "system_prompt", "input",
                                "instruction", "question", "context", "history", "label",
                                "kto_tag"));
}

sifr_status import_rows_file(import_state *s, const char *key, json_t *value) {
    const char *path = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (!import_names_file(path) || import_get(s, "sifr.data")) {
        import_say_left(s, key, value, path ? import_on_hub : "give its files to --data");
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

/* TRL's two keys together: what of a completion, and whether of all that or of the assistant's.
 * Each one's line names what they became. */
sifr_status import_loss_parts(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.train_on";
    const json_t *assistant = json_object_get(s->source, "assistant_only_loss");
    const json_t *completion = json_object_get(s->source, "completion_only_loss");
    bool whole = json_is_false(completion);
    const char *only = whole ? "assistant_turns" : "assistant_only";
    const char *part = json_is_true(assistant) ? only : whole ? "all" : "completion";
    const char *there = json_string_value(import_get(s, to));
    char where[48];
    if (!json_is_boolean(value) || (there && strcmp(there, part) != 0))
        return train_on(s, key, value, part, part);
    snprintf(where, sizeof where, "%s, %s", to, part);
    import_say_kept(s, key, value, where);
    return there ? SIFR_OK : import_put(s, to, json_string(part));
}

sifr_status import_inputs_too(import_state *s, const char *key, json_t *value) {
    return train_on(s, key, value, "all", NULL);
}

sifr_status import_last_only(import_state *s, const char *key, json_t *value) {
    if (json_is_true(value) && json_is_true(json_object_get(s->source, "train_on_prompt")))
        return import_refuse(s, key, value, "train_on_prompt learns all turns; give one of both");
    return train_on(s, key, value, "last", NULL);
}

sifr_status import_sampling(import_state *s, const char *key, json_t *value) {
    static const char *const to = "sifr.group_by_length";
    const char *word = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (word && strcmp(word, "random") == 0) {
        import_say_idle(s, key, value, "data are always shuffled");
        return SIFR_OK;
    }
    if (!word || strcmp(word, "group_by_length") != 0)
        return import_refuse(s, key, value, "rows are drawn at random, or by length");
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_true());
}

/* axolotl has these keys in a set alone; what a set takes anyway is said without effect. */
sifr_status import_turn_key(import_state *s, const char *key, json_t *value) {
    char text[96];
    if (!import_is_given(value)) return SIFR_OK;
    const char *usual = strcmp(key, "train_on_eos") == 0 ? "\"turn\"" : "[\"assistant\"]";
    if (strcmp(config_value_text(value, text, sizeof text), usual) == 0) {
        import_say_idle(s, key, value,
                        "axolotl reads it in an entry of datasets alone, whose default it is");
        return SIFR_OK;
    }
    return import_refuse(s, key, value,
                         "axolotl reads it in an entry of datasets alone: put it there");
}

/* Text is cut into full windows: what is of rows does nothing, and sifr train refuses it. */
static void drop_places(import_state *s) {
    static const char *const keys[][2] = {{"sample_packing", "sifr.packing"},
                                          {"packing", "sifr.packing"},
                                          {"group_by_length", "sifr.group_by_length"},
                                          {"dataset_text_field", "sifr.data_fields"},
                                          {"text_column", "sifr.data_fields"},
                                          {"template", "sifr.chat_template"},
                                          {"chat_template", "sifr.chat_template"},
                                          {"chat_template_jinja", "sifr.chat_template"},
                                          {"chat_template_path", "sifr.chat_template"},
                                          {"chat_template_kwargs", "sifr.chat_template_kwargs"},
                                          {"enable_thinking", "sifr.chat_template_kwargs"}};
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
    bool text = data && !import_names_file(json_string_value(data));
    text |= !data && import_asks(json_object_get(s->source, "pretraining_dataset"));
    double number = json_number_value(value);
    if (text) drop_places(s);
    if (!import_asks(value)) return SIFR_OK;
    if (text || import_get(s, "sifr.eval_data")) {
        import_say_left(s, share, value, "held-out text is given by --eval-data");
    } else if (number > 0) {
        import_say_kept(s, share, value, to);
        return import_put(s, to, json_incref(value));
    } else {
        return import_refuse(s, share, value, "a share below 1, or a number of rows, is expected");
    }
    return SIFR_OK;
}
