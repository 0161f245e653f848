#include "data/chat/chat_lost.h"

#include <stdio.h>
#include <string.h>

typedef struct chat_loser {
    const data_chat_templates *templates;
    const data_conversation *conversation;
    const char *text;
    size_t size;
} chat_loser;

static bool has_text(const chat_loser *l, const char *words, size_t size) {
    return memmem(l->text, l->size, words, size) != NULL;
}

static bool holds(const json_t *value) {
    if (json_is_string(value)) return json_string_length(value) > 0;
    return json_array_size(value) > 0 || json_object_size(value) > 0;
}

/* Whether the names of all called functions are in the text, of a template that writes calls. */
static bool shows_calls(const chat_loser *l, const json_t *calls) {
    bool shown = l->templates->calls[l->conversation->tools != NULL];
    for (size_t i = 0; shown && i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        const json_t *function = json_object_get(call, "function");
        const json_t *name = json_object_get(function ? function : call, "name");
        shown =
            json_is_string(name) && has_text(l, json_string_value(name), json_string_length(name));
    }
    return shown;
}

/* Members of the assistant's message that are said. Thoughts count in its last turn alone, since
 * templates leave out those before it. */
static const char *const members[] = {"tool_calls", "function_call", "reasoning_content",
                                      "thinking", "reasoning"};
enum { CALLS = 2, MEMBERS = sizeof members / sizeof *members };

/* The first that may not be in the text; NULL: all are. */
static const char *find_doubtful(const chat_loser *l, const json_t *message, bool last) {
    for (size_t i = 0; i < (last ? MEMBERS : CALLS); i++) {
        const json_t *value = json_object_get(message, members[i]);
        const char *words = json_string_value(value);
        bool shown =
            i == 0 ? shows_calls(l, value) : words && has_text(l, words, json_string_length(value));
        if (holds(value) && !shown) return members[i];
    }
    return NULL;
}

/* Whether the text is the same without a member of message `at`; a template that cannot do without
 * it has read it. */
static sifr_status is_same_without(const chat_loser *l, size_t at, const char *member, bool *same,
                                   sifr_error *error) {
    text_template_output other;
    json_t *messages = json_copy(l->conversation->messages);
    json_t *message = json_copy(json_array_get(messages, at));
    bool whole = message && json_array_set(messages, at, message) == 0;
    if (whole) json_object_del(message, member);
    sifr_status status =
        whole ? data_chat_render_plain(l->templates, l->conversation, messages, &other, NULL)
              : base_fail_alloc(error, 64);
    json_decref(message);
    json_decref(messages);
    *same = status == SIFR_OK && other.size == l->size && memcmp(other.text, l->text, l->size) == 0;
    if (status == SIFR_OK) text_template_output_free(&other);
    return status == SIFR_NO_MEMORY ? status : SIFR_OK;
}

static bool says_nothing(const json_t *message) {
    const json_t *content = json_object_get(message, "content");
    const char *words = json_string_value(content);
    return words ? words[strspn(words, " \t\r\n")] == '\0' : json_array_size(content) == 0;
}

static bool is_assistant(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "assistant") == 0;
}

/* The assistant's last message; the number of all where there is none. */
static size_t find_last(const json_t *messages) {
    size_t count = json_array_size(messages);
    for (size_t i = count; i-- > 0;)
        if (is_assistant(json_array_get(messages, i))) return i;
    return count;
}

/* --- tools --- */

/* Whether the words stand in quotes in the text. */
static bool quotes(const json_t *text, const json_t *words) {
    size_t size = json_string_length(words);
    const char *at = json_string_value(text), *end = at ? at + json_string_length(text) : NULL;
    if (!at || !size) return false;
    while ((at = memmem(at, (size_t)(end - at), json_string_value(words), size)) != NULL) {
        bool quoted = at > json_string_value(text) && at + size < end &&
                      (at[-1] == '"' || at[-1] == '\'') && at[size] == at[-1];
        if (quoted) return true;
        at += size;
    }
    return false;
}

/* Whether the conversation begins with a system's turn that names every tool. */
static bool names_tools(const data_conversation *c) {
    const json_t *first = json_array_get(c->messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    bool named = role && strcmp(role, "system") == 0;
    for (size_t i = 0; named && i < json_array_size(c->tools); i++) {
        const json_t *tool = json_array_get(c->tools, i);
        const json_t *function = json_object_get(tool, "function");
        named = quotes(json_object_get(first, "content"),
                       json_object_get(function ? function : tool, "name"));
    }
    return named;
}

static void check_tools(const chat_loser *l, data_chat_lost *out) {
    const data_conversation *c = l->conversation;
    if (json_array_size(c->tools) == 0) return;
    out->tools = !text_template_names(l->templates->tools.parsed, "tools");
    out->twice = !out->tools && names_tools(c);
}

sifr_status data_chat_find_lost(const data_chat_templates *templates, data_chat_mask mask,
                                const data_conversation *conversation, const char *text,
                                size_t size, data_chat_lost *out, sifr_error *error) {
    chat_loser l = {templates, conversation, text, size};
    size_t last = find_last(conversation->messages), i;
    json_t *message;
    *out = (data_chat_lost){0};
    check_tools(&l, out);
    json_array_foreach(conversation->messages, i, message) {
        bool lost = false;
        const char *member = is_assistant(message) ? find_doubtful(&l, message, i == last) : NULL;
        if (member) BASE_TRY(is_same_without(&l, i, member, &lost, error));
        if (!lost) continue;
        if (!out->empty) snprintf(out->member, sizeof out->member, "%s", member);
        bool learned = i >= conversation->prompt_messages && !data_message_unlearned(message) &&
                       (mask != DATA_ON_LAST || i == last);
        if (learned && says_nothing(message) && !out->empty) out->empty = i + 1;
    }
    return SIFR_OK;
}

sifr_status data_chat_check_lost(const data_chat_lost *lost, const data_row_place *place,
                                 sifr_error *error) {
    if (!lost->empty) return SIFR_OK;
    return data_row_fail(place, "", error,
                         "message %zu of the assistant has nothing but '%s', which the chat "
                         "template does not write, so an empty answer would be learned; give a "
                         "template that writes it (--chat-template)%s",
                         lost->empty, lost->member,
                         data_row_or_skip(place, ", or --skip-bad-rows to leave such rows "
                                                 "out"));
}
