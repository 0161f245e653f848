#include "train/data/chat/chat_fields.h"

#include <stdio.h>
#include <string.h>

/* --- names --- */

static bool may_be_absent(const char *field) {
    static const char *const optional[] = {"input", "system",    "history",
                                           "tools", "documents", "chat_template_kwargs"};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (strcmp(field, optional[i]) == 0) return true;
    return false;
}

static sifr_status rename_all(const json_t *names, json_t *row, const formats_row_place *place,
                              sifr_error *error) {
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
        return formats_row_fail(place, field, error, "is missing, which is taken as '%s'", to);
    }
    json_object_foreach((json_t *)(uintptr_t)names, to, from)
        json_object_del(row, json_string_value(from));
    whole = whole && (!named || json_object_update(row, named) == 0);
    json_decref(named);
    return whole ? SIFR_OK : base_fail_alloc(error, 64);
}

sifr_status train_chat_fields_name(const train_chat_fields *f, json_t *row,
                                   const formats_row_place *place, sifr_error *error) {
    const json_t *name;
    size_t i;
    for (int list = 0; list < TRAIN_CHAT_IGNORED; list++)
        json_array_foreach((json_t *)(uintptr_t)f->ignored[list], i, name)
            json_object_del(row, json_string_value(name));
    return rename_all(f->names, row, place, error);
}

/* --- what was not read --- */

static bool holds_nothing(const json_t *value) {
    if (json_is_string(value)) return json_string_length(value) == 0;
    return json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* What the chat template reads beside the form. */
static bool goes_to_template(const train_chat_fields *f, const formats_form *form,
                             const char *name) {
    if (form->type == FORMATS_ROW_TEXT || !f->templated) return false;
    return strcmp(name, "chat_template_kwargs") == 0 ||
           (f->documents && strcmp(name, "documents") == 0);
}

static void note_mark(train_chat_fields *f, const formats_form *form, const json_t *row) {
    int mark = formats_form_mark(form, row);
    if (mark < 0) return;
    f->marks[mark]++;
    snprintf(f->mark, sizeof f->mark, "%s", formats_form_field(form, FORMATS_PART_MARK, row));
}

sifr_status train_chat_fields_note(train_chat_fields *f, const formats_form *form,
                                   const json_t *row, sifr_error *error) {
    const char *name;
    json_t *value;
    if (!f->seen) f->seen = json_object(), f->unread = json_array();
    bool whole = f->seen && f->unread;
    json_object_foreach((json_t *)(uintptr_t)row, name, value) {
        if (holds_nothing(value) || json_object_get(f->seen, name)) continue;
        whole &= json_object_set_new(f->seen, name, json_true()) == 0;
        if (!formats_form_reads(form, row, name) && !goes_to_template(f, form, name))
            whole &= json_array_append_new(f->unread, json_string(name)) == 0;
    }
    note_mark(f, form, row);
    return whole ? SIFR_OK : base_fail_alloc(error, 64);
}

/* Appends ", NAME", and returns false where there is no room for it and a number behind it. */
static bool append(char *to, size_t room, size_t *used, const char *name) {
    enum { NUMBER = 32 };
    size_t length = strlen(name), comma = *used && to[*used - 1] != ' ' ? 2 : 0;
    if (*used + comma + length + NUMBER > room) return false;
    memcpy(to + *used, ", ", comma);
    memcpy(to + *used + comma, name, length + 1);
    *used += comma + length;
    return true;
}

const char *train_chat_fields_form(const formats_form *form, const json_t *row, char out[256]) {
    const char *type = formats_row_type_name(form->type);
    if (strcmp(type, form->name) == 0) return type;
    size_t used = (size_t)snprintf(out, 256, "%s (%s: ", type, form->name);
    for (int part = 0; part < FORMATS_PARTS; part++) {
        const char *field = formats_form_field(form, (formats_part)part, row);
        if (field && formats_row_get(row, field)) append(out, 256, &used, field);
    }
    snprintf(out + used, 256 - used, ")");
    return out;
}

static void say_unread(const train_chat_fields *f, const char *file, const sifr_log *log) {
    char names[1024] = "";
    size_t used = 0, count = json_array_size(f->unread), i = 0;
    while (i < count &&
           append(names, sizeof names, &used, json_string_value(json_array_get(f->unread, i))))
        i++;
    if (i < count) snprintf(names + used, sizeof names - used, " and %zu more", count - i);
    if (count)
        base_log(log, SIFR_LOG_INFO, "data: %s: field%s not read: %s", file, count == 1 ? "" : "s",
                 names);
}

sifr_status train_chat_fields_end(const train_chat_fields *f, const char *file, const sifr_log *log,
                                  sifr_error *error) {
    say_unread(f, file, log);
    if (!f->marks[0]) return SIFR_OK;
    return base_fail(
        error, SIFR_FAILED,
        "%s: '%s' is false or 0 in %lld of %lld rows: an answer that is marked as bad is "
        "not learned as a good one, and learning from both (KTO) is not supported "
        "yet; take those rows out, or give --ignore-fields %s to learn them all",
        file, f->mark, (long long)f->marks[0], (long long)(f->marks[0] + f->marks[1]), f->mark);
}

void train_chat_fields_free(train_chat_fields *f) {
    json_decref(f->seen);
    json_decref(f->unread);
    *f = (train_chat_fields){0};
}
