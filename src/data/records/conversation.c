#include "data/records/conversation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/records/conversation_internal.h"

sifr_status data_row_fail(const data_row_place *place, const char *field, sifr_error *error,
                          const char *format, ...) {
    char said[SIFR_ERROR_LENGTH / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    const char *blank = *field ? " " : "";
    if (!place->line)
        return base_fail(error, SIFR_FAILED, "%.400s: row %lld: %s%s%s", place->file,
                         (long long)place->row, field, blank, said);
    return base_fail(error, SIFR_FAILED, "%.400s: row %lld, line %lld: %s%s%s", place->file,
                     (long long)place->row, (long long)place->line, field, blank, said);
}

const char *data_row_or_skip(const data_row_place *place, const char *ending) {
    return place->skipped ? "" : ending;
}

/* --- members --- */

const char *data_json_kind(const json_t *value) {
    if (!value) return "is missing";
    if (json_is_null(value)) return "is null";
    if (json_is_string(value)) return "is a string";
    if (json_is_array(value)) return "is a list";
    if (json_is_object(value)) return "is an object";
    return json_is_boolean(value) ? "is true or false" : "is a number";
}

sifr_status data_row_sound(const json_t *value, const char *field, const data_row_place *place,
                           sifr_error *error) {
    const char *fault = base_json_fault(value);
    char name[96];
    if (!fault) return SIFR_OK;
    snprintf(name, sizeof name, "'%.80s'", field);
    return data_row_fail(place, name, error, "%s%s", fault,
                         data_row_or_skip(place, "; mend the row, or give --skip-bad-rows"));
}

sifr_status data_row_sound_all(const json_t *row, const data_form *form,
                               const data_row_place *place, sifr_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)row, name, value) {
        if (base_json_fault(value) && data_form_reads(form, row, name))
            return data_row_sound(value, name, place, error);
    }
    return SIFR_OK;
}

sifr_status data_row_string(const json_t *row, const char *field, bool optional,
                            const data_row_place *place, const char **out, size_t *size,
                            sifr_error *error) {
    const json_t *value = field ? data_row_get(row, field) : NULL;
    char name[96];
    *out = json_string_value(value);
    *size = json_string_length(value);
    if (*out) return SIFR_OK;
    *out = "";
    if (optional && (!value || json_is_null(value))) return SIFR_OK;
    BASE_TRY(data_row_sound(value, field, place, error));
    char list[64];
    bool emptied = field && data_row_emptied(row, field, list);
    snprintf(name, sizeof name, "'%.80s'", emptied ? list : field ? field : "");
    if (emptied)
        return data_row_fail(place, name, error, "is an empty list, so there is nothing to learn%s",
                             data_row_or_skip(place, "; take the row out, or give "
                                                     "--skip-bad-rows"));
    return data_row_fail(place, name, error, "%s; it must be a string%s", data_json_kind(value),
                         data_row_or_skip(place, "; mend the row, or give --skip-bad-rows"));
}

static sifr_status parse_list(const char *text, size_t size, const char *name,
                              const data_row_place *place, json_t **out, sifr_error *error) {
    sifr_error said = {0};
    sifr_status status = base_json_parse(text, size, "as JSON", out, &said);
    if (status == SIFR_NO_MEMORY) return base_fail(error, status, "%s", said.message);
    if (status != SIFR_OK)
        return data_row_fail(place, name, error, "is a string that does not hold a list: %.200s",
                             said.message);
    return SIFR_OK;
}

sifr_status data_row_list(const json_t *row, const char *field, const data_row_place *place,
                          json_t **out, sifr_error *error) {
    json_t *value = field ? data_row_get(row, field) : NULL;
    char name[96];
    *out = NULL;
    if (!value || json_is_null(value)) return SIFR_OK;
    BASE_TRY(data_row_sound(value, field, place, error));
    if (json_is_string(value) && json_string_length(value) == 0) return SIFR_OK; /* of a CSV file */
    snprintf(name, sizeof name, "'%.80s'", field);
    if (json_is_string(value))
        BASE_TRY(parse_list(json_string_value(value), json_string_length(value), name, place, out,
                            error));
    else
        *out = json_incref(value);
    if (json_is_array(*out)) return SIFR_OK;
    const char *kind = data_json_kind(*out);
    json_decref(*out);
    *out = NULL;
    return data_row_fail(place, name, error, "%s; it must be a list", kind);
}

/* --- messages --- */

static bool is_role(const char *role) {
    static const char *const roles[] = {"system",    "developer", "user",     "assistant",
                                        "tool",      "function",  "ipython",  "context",
                                        "documents", "document",  "tool_call"};
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0) return true;
    return false;
}

/* The text of a part: {"type": "text", "text": …}, or "value" as LLaMA-Factory has it. */
static const json_t *part_text(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");
    if (!type || strcmp(type, "text") != 0) return NULL;
    if (!text) text = json_object_get(part, "value");
    return json_is_string(text) ? text : NULL;
}

/* The text of all parts, a new reference; NULL where one is something else. */
static json_t *join_parts(const json_t *parts) {
    json_t *joined = json_string("");
    for (size_t i = 0; joined && i < json_array_size(parts); i++) {
        const json_t *text = part_text(json_array_get(parts, i));
        json_t *longer =
            text ? json_pack("s%+%", json_string_value(joined), json_string_length(joined),
                             json_string_value(text), json_string_length(text))
                 : NULL;
        json_decref(joined);
        joined = longer;
    }
    return joined;
}

/* The messages with parts as texts, which most templates take alone; the row's stay as they are. */
static sifr_status join_all(json_t **messages, sifr_error *error) {
    json_t *list = json_array(), *message;
    size_t i;
    bool whole = list != NULL;
    json_array_foreach(*messages, i, message) {
        json_t *parts = json_object_get(message, "content");
        json_t *text = json_array_size(parts) ? join_parts(parts) : NULL;
        json_t *copy = text ? json_copy(message) : json_incref(message);
        if (text) whole &= json_object_set_new(copy, "content", text) == 0;
        whole &= json_array_append_new(list, copy) == 0;
    }
    json_decref(*messages);
    *messages = list;
    return whole ? SIFR_OK : base_fail_alloc(error, 64);
}

/* Parts that no model of text can read. */
static sifr_status check_parts(const json_t *content, const char *name, const data_row_place *place,
                               sifr_error *error) {
    static const char *const media[] = {"image", "image_url",   "video",
                                        "audio", "input_audio", "input_image"};
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        for (size_t k = 0; type && k < sizeof media / sizeof *media; k++)
            if (strcmp(type, media[k]) == 0)
                return data_row_fail(place, name, error,
                                     "has a part of type \"%s\"; only text is learned here", type);
    }
    return SIFR_OK;
}

static sifr_status check_message(const json_t *message, const char *name,
                                 const data_row_place *place, sifr_error *error) {
    const json_t *role = json_object_get(message, "role");
    const json_t *content = json_object_get(message, "content");
    if (!json_is_object(message))
        return data_row_fail(place, name, error, "%s; it must be {\"role\", \"content\"}",
                             data_json_kind(message));
    if (!json_is_string(role))
        return data_row_fail(place, name, error, "has no role: 'role' %s", data_json_kind(role));
    if (!is_role(json_string_value(role)))
        return data_row_fail(place, name, error,
                             "has the role \"%.40s\"; roles are system, user, assistant, tool",
                             json_string_value(role));
    BASE_TRY(data_flags_check(message, name, place, error));
    BASE_TRY(check_parts(content, name, place, error));
    if (json_is_string(content) || json_is_array(content)) return SIFR_OK;
    bool nothing = !content || json_is_null(content);
    if (nothing && json_array_size(json_object_get(message, "tool_calls"))) return SIFR_OK;
    if (nothing && json_is_object(json_object_get(message, "function_call")))
        return data_row_fail(place, name, error,
                             "has 'function_call', OpenAI's older form, which is not read; "
                             "write it as \"tool_calls\": [{\"type\": \"function\", \"function\": "
                             "{…}}]%s",
                             data_row_or_skip(place, ", or give --skip-bad-rows"));
    return data_row_fail(place, name, error, "has no content: 'content' %s",
                         data_json_kind(content));
}

sifr_status data_messages_check(const json_t *messages, const char *field,
                                const data_row_place *place, sifr_error *error) {
    char name[96];
    size_t i;
    json_t *message;
    snprintf(name, sizeof name, "'%.60s'", field);
    if (json_array_size(messages) == 0) return data_row_fail(place, name, error, "is empty");
    json_array_foreach((json_t *)(uintptr_t)messages, i, message) {
        snprintf(name, sizeof name, "'%.60s[%zu]'", field, i);
        BASE_TRY(check_message(message, name, place, error));
    }
    return SIFR_OK;
}

sifr_status data_messages_add(json_t *messages, const char *role, const char *content, size_t size,
                              sifr_error *error) {
    json_t *message = json_pack("{s:s, s:s%}", "role", role, "content", content, size);
    return json_array_append_new(messages, message) ? base_fail_alloc(error, size) : SIFR_OK;
}

sifr_status data_messages_add_system(json_t *messages, const json_t *row, const data_form *form,
                                     const data_row_place *place, sifr_error *error) {
    const char *field = data_form_field(form, DATA_PART_SYSTEM, row), *words;
    const json_t *text = field ? json_object_get(row, field) : NULL;
    const char *role = json_string_value(json_object_get(json_array_get(messages, 0), "role"));
    size_t size = 0;
    if (field) BASE_TRY(data_row_string(row, field, true, place, &words, &size, error));
    if (!size) return SIFR_OK;
    if (role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0)) return SIFR_OK;
    json_t *message = json_pack("{s:s, s:O}", "role", "system", "content", text);
    return json_array_insert_new(messages, 0, message) ? base_fail_alloc(error, 64) : SIFR_OK;
}

/* An answer that stands beside the messages. */
static sifr_status add_answer(const json_t *row, const data_form *form, const data_row_place *place,
                              json_t *messages, sifr_error *error) {
    const char *field = data_form_field(form, DATA_PART_ANSWER, row), *text;
    size_t size;
    if (!field) return SIFR_OK;
    BASE_TRY(data_row_string(row, field, false, place, &text, &size, error));
    return data_messages_add(messages, "assistant", text, size, error);
}

static sifr_status read_messages(const json_t *row, const data_form *form,
                                 const data_row_place *place, data_conversation *out,
                                 sifr_error *error) {
    const char *field = data_form_field(form, DATA_PART_TURNS, row);
    BASE_TRY(data_row_list(row, field, place, &out->messages, error));
    if (!out->messages) return data_row_fail(place, "'messages'", error, "is missing");
    BASE_TRY(data_messages_check(out->messages, field, place, error));
    BASE_TRY(join_all(&out->messages, error));
    BASE_TRY(data_messages_add_system(out->messages, row, form, place, error));
    BASE_TRY(add_answer(row, form, place, out->messages, error));
    return data_row_list(row, data_form_field(form, DATA_PART_TOOLS, row), place, &out->tools,
                         error);
}

/* --- prompt and completion --- */

static bool are_messages(const json_t *row, const char *field) {
    json_t *first = data_first_of(row, field);
    bool messages = json_object_get(first, "role") != NULL;
    json_decref(first);
    return messages;
}

static sifr_status read_prompt_messages(const json_t *row, const data_row_place *place,
                                        data_conversation *out, sifr_error *error) {
    json_t *completion;
    BASE_TRY(data_row_list(row, "prompt", place, &out->messages, error));
    BASE_TRY(data_messages_check(out->messages, "prompt", place, error));
    out->prompt_messages = json_array_size(out->messages);
    BASE_TRY(data_row_list(row, "completion", place, &completion, error));
    sifr_status status = data_messages_check(completion, "completion", place, error);
    json_t *both = status == SIFR_OK ? json_copy(out->messages) : NULL;
    if (status == SIFR_OK && (!both || json_array_extend(both, completion) != 0))
        status = base_fail_alloc(error, 64);
    json_decref(completion);
    json_decref(out->messages);
    out->messages = both;
    BASE_TRY(status);
    BASE_TRY(join_all(&out->messages, error));
    return data_row_list(row, "tools", place, &out->tools, error);
}

static sifr_status read_prompt(const json_t *row, const data_row_place *place,
                               data_conversation *out, sifr_error *error) {
    if (json_is_array(json_object_get(row, "prompt")) ||
        (are_messages(row, "prompt") && are_messages(row, "completion")))
        return read_prompt_messages(row, place, out, error);
    out->completion = true;
    BASE_TRY(data_row_string(row, "prompt", false, place, &out->prompt, &out->prompt_size, error));
    return data_row_string(row, "completion", false, place, &out->text, &out->text_size, error);
}

/* --- rows --- */

static sifr_status unknown_form(const json_t *row, const data_row_place *place, sifr_error *error) {
    char fields[160] = "";
    size_t used = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)row, name, value) {
        BASE_TRY(data_row_sound(value, name, place, error));
        int more = snprintf(fields + used, sizeof fields - used, "%s%.40s", used ? ", " : "", name);
        if (more < 0 || (size_t)more >= sizeof fields - used) break;
        used += (size_t)more;
    }
    return data_row_fail(place, "", error,
                         "no known form: its fields are %s; give rows with messages, "
                         "conversations, instruction and output, prompt and completion, "
                         "chosen and rejected, or text, or say which these are with "
                         "--data-fields, such as prompt=question",
                         used ? fields : "none");
}

sifr_status data_row_form_find(const json_t *row, data_row_type type, const data_row_place *place,
                               const data_form **out, sifr_error *error) {
    *out = data_form_match(row, type);
    if (*out && (*out)->refused)
        return data_row_fail(place, "", error, "rows of the form %s are not trained on: %s",
                             (*out)->name, (*out)->refused);
    if (*out) return SIFR_OK;
    if (type == DATA_ROW_TYPES) return unknown_form(row, place, error);
    *out = data_form_of(type);
    return SIFR_OK;
}

static sifr_status read_row(const json_t *row, const data_form *form, const data_row_format *format,
                            bool templated, const data_row_place *place, data_conversation *out,
                            sifr_error *error) {
    switch (form->type) {
    case DATA_ROW_MESSAGES:
        return read_messages(row, form, place, out, error);
    case DATA_ROW_SHAREGPT:
        return data_read_sharegpt(row, form, place, out, error);
    case DATA_ROW_ALPACA:
        return data_read_alpaca(row, form, format, templated, place, out, error);
    case DATA_ROW_PROMPT_COMPLETION:
        return read_prompt(row, place, out, error);
    case DATA_ROW_TEXT:
    case DATA_ROW_PREFERENCE:
    case DATA_ROW_TYPES:
        break;
    }
    return data_row_string(row, data_form_field(form, DATA_PART_ANSWER, row), false, place,
                           &out->text, &out->text_size, error);
}

sifr_status data_conversation_read(const json_t *row, const data_form *form,
                                   const data_row_format *format, bool templated,
                                   const data_row_place *place, data_conversation *out,
                                   sifr_error *error) {
    *out = (data_conversation){.prompt = "", .text = ""};
    BASE_TRY(data_row_sound_all(row, form, place, error));
    sifr_status status = read_row(row, form, format, templated, place, out, error);
    if (status == SIFR_OK) status = data_row_check_unread(row, form, place, error);
    if (status != SIFR_OK) data_conversation_free(out);
    return status;
}

void data_conversation_free(data_conversation *c) {
    json_decref(c->messages);
    json_decref(c->tools);
    json_decref(c->documents);
    json_decref(c->variables);
    json_decref(c->strings);
    *c = (data_conversation){0};
}
