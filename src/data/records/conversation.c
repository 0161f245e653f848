#include "data/records/conversation.h"

#include <stdio.h>
#include <string.h>

#include "data/records/conversation_internal.h"

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

/* The parts as {"type": "text", "text": …}, a new reference; NULL where one is something else. */
static json_t *name_parts(const json_t *parts) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(parts); i++) {
        json_t *part = json_array_get(parts, i);
        json_t *text = json_incref((json_t *)(uintptr_t)part_text(part));
        json_t *copy = text ? json_copy(part) : NULL;
        bool whole =
            copy && json_object_set(copy, "text", text) == 0 && json_array_append(list, copy) == 0;
        json_decref(copy);
        json_decref(text);
        if (whole) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static unsigned role_bit(const json_t *message) {
    static const struct {
        const char *role;
        data_list_roles bit;
    } bits[] = {{"system", DATA_LIST_SYSTEM},
                {"developer", DATA_LIST_SYSTEM},
                {"user", DATA_LIST_USER},
                {"assistant", DATA_LIST_ASSISTANT},
                {"tool", DATA_LIST_TOOL}};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof bits / sizeof *bits; i++)
        if (strcmp(role, bits[i].role) == 0) return bits[i].bit;
    return 0;
}

/* The row's messages stay as they are. */
sifr_status data_conversation_join(data_conversation *c, unsigned lists, sifr_error *error) {
    json_t *list = c->messages ? json_array() : NULL, *message;
    size_t i;
    bool whole = list != NULL;
    if (!c->messages) return SIFR_OK;
    json_array_foreach(c->messages, i, message) {
        json_t *parts = json_object_get(message, "content"), *content = NULL;
        if (json_array_size(parts))
            content = role_bit(message) & lists ? name_parts(parts) : join_parts(parts);
        json_t *copy = content ? json_copy(message) : json_incref(message);
        if (content) whole &= json_object_set_new(copy, "content", content) == 0;
        whole &= json_array_append_new(list, copy) == 0;
    }
    json_decref(c->messages);
    c->messages = list;
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
    json_array_foreach(messages, i, message) {
        snprintf(name, sizeof name, "'%.60s[%zu]'", field, i);
        BASE_TRY(check_message(message, name, place, error));
    }
    return SIFR_OK;
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
