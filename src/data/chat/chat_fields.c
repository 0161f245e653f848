#include "data/chat/chat_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* --- names --- */

static bool may_be_absent(const char *field) {
    static const char *const optional[] = {"input", "system",    "history",
                                           "tools", "documents", "chat_template_kwargs"};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (strcmp(field, optional[i]) == 0) return true;
    return false;
}

/* What the row's own fields hold that others take the names of, and no other is. */
static sifr_status keep_replaced(const json_t *named, const json_t *row, json_t *replaced,
                                 sifr_error *error) {
    const char *to;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)named, to, value) {
        json_t *own = json_object_get(row, to);
        if (own && json_object_set(replaced, to, own) != 0) return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

static sifr_status rename_all(const json_t *names, json_t *row, json_t *replaced,
                              const data_row_place *place, sifr_error *error) {
    const char *to;
    json_t *from, *named = names ? json_object() : NULL;
    bool whole = !names || named;
    json_object_foreach((json_t *)(uintptr_t)names, to, from) {
        json_t *value = json_object_get(row, json_string_value(from));
        char field[96];
        if (value) whole &= json_object_set(named, to, value) == 0;
        if (value || may_be_absent(to)) continue;
        json_decref(named);
        snprintf(field, sizeof field, "'%.80s'", json_string_value(from));
        return data_row_fail(place, field, error, "is missing, which is taken as '%s'", to);
    }
    json_object_foreach((json_t *)(uintptr_t)names, to, from)
        json_object_del(row, json_string_value(from));
    sifr_status status = keep_replaced(named, row, replaced, error);
    whole = whole && (!named || json_object_update(row, named) == 0);
    json_decref(named);
    return whole ? status : base_fail_alloc(error, 64);
}

static sifr_status make_lists(data_chat_fields *f, sifr_error *error) {
    if (f->seen) return SIFR_OK;
    f->seen = json_object(), f->taken = json_object(), f->replaced = json_object();
    f->unread = json_array(), f->members = json_array(), f->variables = json_array();
    bool whole = f->seen && f->taken && f->replaced && f->unread && f->members && f->variables;
    return whole ? SIFR_OK : base_fail_alloc(error, 64);
}

sifr_status data_chat_fields_name(data_chat_fields *f, json_t *row, const data_row_place *place,
                                  sifr_error *error) {
    const json_t *item;
    size_t i;
    BASE_TRY(make_lists(f, error));
    for (int list = 0; list < DATA_CHAT_IGNORED; list++) {
        json_array_foreach(f->ignored[list], i, item) {
            const char *name = json_string_value(item);
            bool there = json_object_del(row, name) == 0;
            if (there && json_object_set_new(f->taken, name, json_true()) != 0)
                return base_fail_alloc(error, 64);
        }
    }
    json_object_clear(f->replaced);
    return rename_all(f->names, row, f->replaced, place, error);
}

/* --- what was not read --- */

/* The names of marks; the second one is also that of a class. */
static const char tag[] = "kto_tag", label[] = "label";

static bool holds_nothing(const json_t *value) {
    if (!value) return true;
    if (json_is_string(value)) return json_string_length(value) == 0;
    return json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* What the chat template reads beside the form. */
static bool goes_to_template(const data_chat_fields *f, const data_form *form, const char *name) {
    if (form->type == DATA_ROW_TEXT || !f->templates || !f->templates->there) return false;
    return strcmp(name, "chat_template_kwargs") == 0 ||
           (strcmp(name, "documents") == 0 && data_chat_templates_name(f->templates, name));
}

/* Names a field that is not read, once. */
static sifr_status add_unread(data_chat_fields *f, const char *field, sifr_error *error) {
    const json_t *item;
    size_t i;
    json_array_foreach(f->unread, i, item) {
        if (strcmp(json_string_value(item), field) == 0) return SIFR_OK;
    }
    return json_array_append_new(f->unread, json_string(field)) ? base_fail_alloc(error, 64)
                                                                : SIFR_OK;
}

static bool is_blank(const json_t *value) {
    const char *text = json_string_value(value);
    return holds_nothing(value) || (text && text[strspn(text, " \t\r\n")] == '\0');
}

/* What is neither good nor bad is the name or the number of a class. So are then 0 and 1 of the
 * file's other rows. */
static sifr_status note_class(data_chat_fields *f, const json_t *value, sifr_error *error) {
    if (f->classes || is_blank(value)) return SIFR_OK;
    f->classes = true;
    return add_unread(f, label, error);
}

static sifr_status note_mark(data_chat_fields *f, const data_form *form, const json_t *row,
                             sifr_error *error) {
    const char *field = data_form_field(form, DATA_PART_MARK, row);
    int mark = data_form_mark(form, row);
    f->rows++;
    if (!field) return SIFR_OK;
    bool labels = strcmp(field, label) == 0;
    if (mark == 0) ++*(labels ? &f->bad_labels : &f->bad_tags);
    return mark < 0 && labels ? note_class(f, json_object_get(row, field), error) : SIFR_OK;
}

/* --- of messages --- */

/* What is read of a message or of a turn; the template reads further members of messages alone.
 * Calls and thoughts are held against the text (chat_lost.h). */
static bool is_read(const data_chat_fields *f, const json_t *message, const char *name) {
    static const char *const own[] = {"role", "content", "weight", "train", "training"};
    static const char *const written[] = {"tool_calls", "function_call", "reasoning_content",
                                          "thinking", "reasoning"};
    static const char *const turns[] = {"from",   "value", "input",   "output",
                                        "weight", "train", "training"};
    bool turn = json_object_get(message, "role") == NULL;
    if (turn) {
        for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
            if (strcmp(name, turns[i]) == 0) return true;
    } else {
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (strcmp(name, own[i]) == 0) return true;
        for (size_t i = 0; i < sizeof written / sizeof *written; i++)
            if (strcmp(name, written[i]) == 0) return true;
    }
    if (strcmp(name, "loss") == 0) return data_message_loss(message) >= 0;
    return !turn && f->templates && data_chat_templates_mention(f->templates, name);
}

/* What was noted of members stands beside the fields, as "[].NAME". */
static sifr_status note_message(data_chat_fields *f, const json_t *message, sifr_error *error) {
    const char *name;
    json_t *value;
    char key[128];
    bool said = json_object_get(message, "role") || json_object_get(message, "from") ||
                json_object_get(message, "input");
    if (!said) return SIFR_OK; /* a list of something else */
    json_object_foreach((json_t *)(uintptr_t)message, name, value) {
        if (strcmp(name, "role") == 0 || strcmp(name, "content") == 0 || holds_nothing(value) ||
            is_read(f, message, name))
            continue;
        snprintf(key, sizeof key, "[].%.100s", name);
        if (json_object_get(f->seen, key)) continue;
        if (json_object_set_new(f->seen, key, json_true()) != 0 ||
            json_array_append_new(f->members, json_string(name)) != 0)
            return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

/* The messages of a field; of a CSV file's JSON in its text. */
static sifr_status note_messages(data_chat_fields *f, const json_t *value, sifr_error *error) {
    const char *text = json_string_value(value);
    json_t *parsed = NULL, *message;
    size_t i;
    sifr_status status = SIFR_OK;
    if (text && (text[0] != '[' ||
                 base_json_parse(text, json_string_length(value), "", &parsed, NULL) != SIFR_OK))
        return SIFR_OK;
    const json_t *list = parsed ? parsed : value;
    if (json_is_object(list)) status = note_message(f, list, error);
    json_array_foreach(list, i, message) if (status == SIFR_OK) status =
        note_message(f, message, error);
    json_decref(parsed);
    return status;
}

static sifr_status note_members(data_chat_fields *f, const data_form *form, const json_t *row,
                                sifr_error *error) {
    static const data_form_part parts[] = {DATA_PART_TURNS, DATA_PART_PROMPT, DATA_PART_ANSWER,
                                           DATA_PART_REJECTED};
    if (form->type == DATA_ROW_TEXT || form->type == DATA_ROW_ALPACA) return SIFR_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *field = data_form_field(form, parts[i], row);
        if (field) BASE_TRY(note_messages(f, data_row_get(row, field), error));
    }
    return SIFR_OK;
}

/* --- of a row --- */

sifr_status data_chat_fields_note(data_chat_fields *f, const data_form *form, const json_t *row,
                                  sifr_error *error) {
    const char *name;
    json_t *value;
    BASE_TRY(make_lists(f, error));
    bool whole = true;
    json_object_foreach((json_t *)(uintptr_t)row, name, value) {
        if (holds_nothing(value) || json_object_get(f->seen, name)) continue;
        whole &= json_object_set_new(f->seen, name, json_true()) == 0;
        if (!data_form_reads(form, row, name) && !goes_to_template(f, form, name))
            whole &= json_array_append_new(f->unread, json_string(name)) == 0;
    }
    if (!whole) return base_fail_alloc(error, 64);
    BASE_TRY(note_mark(f, form, row, error));
    return note_members(f, form, row, error);
}

sifr_status data_chat_fields_untemplated(data_chat_fields *f, const json_t *row,
                                         sifr_error *error) {
    static const char *const names[] = {"chat_template_kwargs", "documents"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!holds_nothing(json_object_get(row, names[i])))
            BASE_TRY(add_unread(f, names[i], error));
    return SIFR_OK;
}

sifr_status data_chat_fields_note_replaced(data_chat_fields *f, sifr_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(f->replaced, name, value) if (!holds_nothing(value))
        BASE_TRY(add_unread(f, name, error));
    return SIFR_OK;
}

sifr_status data_chat_fields_variables(data_chat_fields *f, const char *names, sifr_error *error) {
    char key[128];
    for (const char *end; (end = strchr(names, '\n')) != NULL; names = end + 1) {
        size_t size = (size_t)(end - names);
        snprintf(key, sizeof key, "{}.%.*s", (int)(size < 100 ? size : 100), names);
        if (json_object_get(f->seen, key)) continue;
        if (json_object_set_new(f->seen, key, json_true()) != 0 ||
            json_array_append_new(f->variables, json_sprintf("'%.*s'", (int)size, names)) != 0)
            return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

/* --- said --- */

/* Appends ", NAME", and returns false where there is no room for it and a number behind it. */
static bool append(char *to, size_t capacity, size_t *used, const char *name) {
    enum { NUMBER = 32 };
    size_t length = strlen(name), comma = *used && to[*used - 1] != ' ' ? 2 : 0;
    if (*used + comma + length + NUMBER > capacity) return false;
    memcpy(to + *used, ", ", comma);
    memcpy(to + *used + comma, name, length + 1);
    *used += comma + length;
    return true;
}

const char *data_chat_fields_form(const data_form *form, const json_t *row, char out[256]) {
    const char *type = data_row_type_name(form->type);
    if (strcmp(type, form->name) == 0) return type;
    size_t used = (size_t)snprintf(out, 256, "%s (%s: ", type, form->name);
    for (int part = 0; part < DATA_PARTS; part++) {
        const char *field = data_form_field(form, (data_form_part)part, row);
        if (field && data_row_get(row, field)) append(out, 256, &used, field);
    }
    snprintf(out + used, 256 - used, ")");
    return out;
}

enum { NAMES = 1024 };

/* "a, b and 3 more" */
static const char *list_names(const json_t *list, char out[NAMES]) {
    size_t used = 0, count = json_array_size(list), i = 0;
    out[0] = '\0';
    while (i < count && append(out, NAMES, &used, json_string_value(json_array_get(list, i)))) i++;
    if (i < count) snprintf(out + used, NAMES - used, " and %zu more", count - i);
    return out;
}

/* Whether a form of the table has a field of that name: such lists name what another program does
 * not read, there or not. */
static bool is_known(const char *name) {
    const data_form *form;
    for (size_t i = 0; (form = data_form_at(i)) != NULL; i++) {
        for (int part = 0; part < DATA_PARTS; part++)
            for (int n = 0; n < DATA_FIELD_NAMES && form->fields[part].names[n]; n++)
                if (strcmp(form->fields[part].names[n], name) == 0) return true;
        for (int n = 0; n < DATA_FORM_UNREAD && form->unread[n]; n++)
            if (strcmp(form->unread[n], name) == 0) return true;
    }
    return false;
}

static void say_absent(const data_chat_fields *f, const char *file, const sifr_log *log) {
    const json_t *item;
    size_t i;
    for (int list = 0; list < DATA_CHAT_IGNORED; list++) {
        json_array_foreach(f->ignored[list], i, item) {
            const char *name = json_string_value(item);
            if (!json_object_get(f->taken, name) && !is_known(name))
                base_log(log, SIFR_LOG_WARNING,
                         "data: %s: no row has the field '%s', which ignore_fields leaves out",
                         file, name);
        }
    }
}

static void say_unread(const data_chat_fields *f, const char *file, const sifr_log *log) {
    char names[NAMES];
    size_t fields = json_array_size(f->unread), members = json_array_size(f->members);
    size_t variables = json_array_size(f->variables);
    if (fields)
        base_log(log, SIFR_LOG_INFO, "data: %s: field%s not read: %s", file, fields == 1 ? "" : "s",
                 list_names(f->unread, names));
    if (members)
        base_log(log, SIFR_LOG_INFO, "data: %s: field%s of messages not read: %s", file,
                 members == 1 ? "" : "s", list_names(f->members, names));
    if (variables)
        base_log(log, SIFR_LOG_WARNING,
                 "data: %s: the chat template has no variable%s %s of chat_template_kwargs, which "
                 "change%s nothing",
                 file, variables == 1 ? "" : "s", list_names(f->variables, names),
                 variables == 1 ? "s" : "");
}

static sifr_status refuse_bad(const data_chat_fields *f, const char *file, const char *mark,
                              int64_t bad, sifr_error *error) {
    return base_fail(
        error, SIFR_FAILED,
        "%s: '%s' is false or 0 in %lld of %lld rows: an answer that is marked as bad is "
        "not learned as a good one, and learning from both (KTO) is not supported "
        "yet; take those rows out, or give --ignore-fields %s to learn them all",
        file, mark, (long long)bad, (long long)f->rows, mark);
}

sifr_status data_chat_fields_end(const data_chat_fields *f, const char *file, const sifr_log *log,
                                 sifr_error *error) {
    say_unread(f, file, log);
    if (f->seen) say_absent(f, file, log);
    if (f->bad_tags) return refuse_bad(f, file, tag, f->bad_tags, error);
    if (f->bad_labels && !f->classes) return refuse_bad(f, file, label, f->bad_labels, error);
    return SIFR_OK;
}

void data_chat_fields_free(data_chat_fields *f) {
    json_decref(f->seen);
    json_decref(f->unread);
    json_decref(f->members);
    json_decref(f->variables);
    json_decref(f->taken);
    json_decref(f->replaced);
    *f = (data_chat_fields){0};
}
