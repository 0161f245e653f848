#include "data/chat/chat_check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Messages are sought behind each other; so often one may stand before, which bounds the time. */
enum { BACKWARDS = 8 };

/* Templates may strip what others write: the assistant's thoughts, or the results of tools, which
 * they write as JSON. */
static bool is_kept(const json_t *message) {
    static const char *const roles[] = {"system", "developer", "user", "context"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0) return true;
    return false;
}

/* A text whose messages are sought in their order. */
typedef struct chat_seeker {
    const char *text;
    size_t size, from;
    int back;
} chat_seeker;

/* Whether the words, without blanks around, stand in the text; true where too many were sought
 * before. */
static bool finds(chat_seeker *s, const char *words, size_t length) {
    while (length && isspace((unsigned char)words[length - 1])) length--;
    while (length && isspace((unsigned char)*words)) words++, length--;
    if (!length) return true;
    const char *at = memmem(s->text + s->from, s->size - s->from, words, length);
    if (!at && s->from && s->back++ < BACKWARDS) at = memmem(s->text, s->from, words, length);
    if (!at) return s->back > BACKWARDS;
    if ((size_t)(at - s->text) >= s->from) s->from = (size_t)(at - s->text) + length;
    return true;
}

/* The content is a text, or a list of parts. */
static bool finds_content(chat_seeker *s, const json_t *content) {
    size_t i;
    json_t *part;
    if (json_is_string(content))
        return finds(s, json_string_value(content), json_string_length(content));
    json_array_foreach(content, i, part) {
        const json_t *text = json_object_get(part, "text");
        if (json_is_string(text) && !finds(s, json_string_value(text), json_string_length(text)))
            return false;
    }
    return true;
}

static bool leaves_out(const json_t *messages, const char *text, size_t size) {
    chat_seeker s = {.text = text, .size = size};
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        if (s.back > BACKWARDS) return false;
        if (is_kept(message) && !finds_content(&s, json_object_get(message, "content")))
            return true;
    }
    return false;
}

/* The first arguments that are JSON in a string; NULL: there are none. */
static const json_t *find_string(const json_t *messages) {
    size_t i, k;
    json_t *message, *call;
    json_array_foreach(messages, i, message) {
        json_array_foreach(json_object_get(message, "tool_calls"), k, call) {
            const json_t *function = json_object_get(call, "function");
            const json_t *arguments = json_object_get(function ? function : call, "arguments");
            const char *words = json_string_value(arguments);
            if (words && strchr(words, '"')) return arguments;
        }
    }
    return NULL;
}

static bool quotes(const json_t *messages, const char *text, size_t size) {
    const json_t *arguments = find_string(messages);
    char *quoted = arguments ? json_dumps(arguments, JSON_ENCODE_ANY) : NULL;
    bool found = quoted && memmem(text, size, quoted, strlen(quoted));
    free(quoted);
    return found;
}

/* Whether a content, a text or a list of parts, is the text. */
static bool is_text(const json_t *content, const json_t *text) {
    const char *words = json_string_value(text);
    size_t i, at = 0, size = json_string_length(text);
    json_t *part;
    if (json_is_string(content)) return json_equal(content, text);
    json_array_foreach(content, i, part) {
        const json_t *said = json_object_get(part, "text");
        size_t length = json_string_length(said);
        if (!json_is_string(said) || length > size - at ||
            memcmp(words + at, json_string_value(said), length) != 0)
            return false;
        at += length;
    }
    return at == size;
}

bool data_chat_replaces_system(const json_t *row, const json_t *messages) {
    static const char *const fields[] = {"system", "system_prompt"};
    const json_t *first = json_array_get(messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    const json_t *content = json_object_get(first, "content");
    if (!role || (strcmp(role, "system") != 0 && strcmp(role, "developer") != 0)) return false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *text = json_object_get(row, fields[i]);
        if (json_string_length(text)) return !is_text(content, text);
    }
    return false;
}

data_chat_odd data_chat_check(const data_conversation *conversation, const char *text,
                              size_t size) {
    return (data_chat_odd){.left_out = leaves_out(conversation->messages, text, size),
                           .quoted = quotes(conversation->messages, text, size)};
}
