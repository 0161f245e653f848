/* ShareGPT's turns, {"from", "value"}, as messages. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/records/conversation_internal.h"

static const char *role_of(const char *from) {
    static const char *const roles[][2] = {{"human", "user"},
                                           {"user", "user"},
                                           {"gpt", "assistant"},
                                           {"assistant", "assistant"},
                                           {"chatgpt", "assistant"},
                                           {"model", "assistant"},
                                           {"bing", "assistant"},
                                           {"bard", "assistant"},
                                           {"system", "system"},
                                           {"tool", "tool"},
                                           {"observation", "tool"},
                                           {"function_response", "tool"},
                                           {"function_call", "assistant"}};
    for (size_t i = 0; from && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(from, roles[i][0]) == 0) return roles[i][1];
    return NULL;
}

static sifr_status parse_calls(json_t *value, const char *name, const data_row_place *place,
                               json_t **out, sifr_error *error) {
    json_t *parsed;
    sifr_error said = {0};
    if (!json_is_string(value))
        parsed = json_incref(value);
    else if (base_json_parse(json_string_value(value), json_string_length(value), "as JSON",
                             &parsed, &said) != SIFR_OK)
        return data_row_fail(place, name, error, "does not hold a call: %.200s", said.message);
    *out = json_is_array(parsed) ? json_incref(parsed) : json_pack("[O]", parsed);
    json_decref(parsed);
    return *out ? SIFR_OK : base_fail_alloc(error, 64);
}

sifr_status data_calls_add(json_t *messages, json_t *value, const char *name,
                           const data_row_place *place, sifr_error *error) {
    json_t *list, *calls, *call;
    size_t i;
    sifr_status status = SIFR_OK;
    BASE_TRY(parse_calls(value, name, place, &list, error));
    calls = json_array();
    json_array_foreach(list, i, call) {
        if (!json_is_string(json_object_get(call, "name")))
            status = data_row_fail(place, name, error, "is a call without \"name\"");
        else if (json_array_append_new(
                     calls, json_pack("{s:s, s:O}", "type", "function", "function", call)) != 0)
            status = base_fail_alloc(error, 64);
        if (status != SIFR_OK) break;
    }
    json_decref(list);
    json_t *message =
        json_pack("{s:s, s:s, s:o}", "role", "assistant", "content", "", "tool_calls", calls);
    if (json_array_append_new(messages, message) != 0 && status == SIFR_OK)
        status = base_fail_alloc(error, 64);
    return status;
}

static sifr_status add_turn(json_t *messages, const json_t *turn, const char *name,
                            const data_row_place *place, sifr_error *error) {
    json_t *from = json_object_get(turn, "from"), *value = json_object_get(turn, "value");
    if (!json_is_string(from) || !json_is_string(value))
        return data_row_fail(place, name, error, "must be {\"from\", \"value\"}, both strings");
    const char *role = role_of(json_string_value(from));
    if (!role)
        return data_row_fail(place, name, error,
                             "is from \"%.40s\"; turns are from human, gpt, system, "
                             "function_call or observation",
                             json_string_value(from));
    bool calls = strcmp(json_string_value(from), "function_call") == 0;
    BASE_TRY(calls ? data_calls_add(messages, value, name, place, error)
                   : data_messages_add(messages, role, json_string_value(value),
                                       json_string_length(value), error));
    json_t *message = json_array_get(messages, json_array_size(messages) - 1);
    BASE_TRY(data_flags_copy(turn, message, error));
    return data_flags_check(message, name, place, error);
}

sifr_status data_turn_add(json_t *messages, json_t *turn, const char *name,
                          const data_row_place *place, sifr_error *error) {
    if (!json_object_get(turn, "role")) return add_turn(messages, turn, name, place, error);
    return json_array_append(messages, turn) ? base_fail_alloc(error, 64) : SIFR_OK;
}

static sifr_status add_text(json_t *messages, const char *role, const json_t *text,
                            sifr_error *error) {
    return data_messages_add(messages, role, json_string_value(text), json_string_length(text),
                             error);
}

/* A turn of any of the kinds of lists: ShareGPT's, a text (the user's, then the assistant's), or
 * both as {"input", "output"}. */
static sifr_status add_any(json_t *messages, json_t *turn, size_t index, const char *name,
                           const data_row_place *place, sifr_error *error) {
    const json_t *asked = json_object_get(turn, "input"), *said = json_object_get(turn, "output");
    if (json_is_string(turn))
        return add_text(messages, index % 2 ? "assistant" : "user", turn, error);
    if (!json_is_string(asked) || !json_is_string(said))
        return add_turn(messages, turn, name, place, error);
    BASE_TRY(add_text(messages, "user", asked, error));
    return add_text(messages, "assistant", said, error);
}

sifr_status data_tools_read(const json_t *row, const data_form *form, const data_row_place *place,
                            json_t **out, sifr_error *error) {
    json_t *given, *tool;
    size_t i;
    *out = NULL;
    BASE_TRY(data_row_list(row, data_form_field(form, DATA_PART_TOOLS, row), place, &given, error));
    if (json_array_size(given) == 0) {
        json_decref(given);
        return SIFR_OK;
    }
    *out = json_array();
    bool whole = *out != NULL;
    json_array_foreach(given, i, tool) {
        json_t *item = json_object_get(tool, "function")
                           ? json_incref(tool)
                           : json_pack("{s:s, s:O}", "type", "function", "function", tool);
        whole &= json_array_append_new(*out, item) == 0;
    }
    json_decref(given);
    return whole ? SIFR_OK : base_fail_alloc(error, 64);
}

sifr_status data_read_sharegpt(const json_t *row, const data_form *form,
                               const data_row_place *place, data_conversation *out,
                               sifr_error *error) {
    const char *field = data_form_field(form, DATA_PART_TURNS, row), *system;
    char name[96];
    size_t size, i;
    json_t *turns, *turn;
    out->messages = json_array();
    if (!out->messages) return base_fail_alloc(error, 64);
    BASE_TRY(data_row_string(row, data_form_field(form, DATA_PART_SYSTEM, row), true, place,
                             &system, &size, error));
    BASE_TRY(data_row_list(row, field, place, &turns, error));
    sifr_status status = SIFR_OK;
    snprintf(name, sizeof name, "'%s'", field);
    if (json_array_size(turns) == 0)
        status = data_row_fail(place, name, error, turns ? "is empty" : "is missing");
    json_array_foreach(turns, i, turn) {
        snprintf(name, sizeof name, "'%s[%zu]'", field, i);
        status = add_any(out->messages, turn, i, name, place, error);
        if (status != SIFR_OK) break;
    }
    json_decref(turns);
    BASE_TRY(status);
    /* Of a system turn and a field beside it the turn counts, as in LLaMA-Factory. */
    BASE_TRY(data_messages_add_system(out->messages, row, form, place, error));
    return data_tools_read(row, form, place, &out->tools, error);
}
