/* Fields that a form does not read, though they would change its text. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/records/conversation_internal.h"

typedef struct words {
    const char *text;
    size_t size;
} words;

/* A text without the blanks around it. */
static words words_of(const json_t *value) {
    words w = {json_string_value(value), json_string_length(value)};
    while (w.size && strchr(" \t\r\n", w.text[w.size - 1])) w.size--;
    while (w.size && strchr(" \t\r\n", *w.text)) w.text++, w.size--;
    return w;
}

static bool is_within(words inner, words outer) {
    return inner.size <= outer.size && memmem(outer.text, outer.size, inner.text, inner.size);
}

/* Calls `see` for each text in a value, until one returns false: not for who says a message. */
static bool each_text(const json_t *value, bool (*see)(void *user, words text), void *user) {
    const char *name;
    json_t *member;
    size_t i;
    words text = words_of(value);
    if (json_is_string(value)) return !text.size || see(user, text);
    json_array_foreach(value, i, member) {
        if (!each_text(member, see, user)) return false;
    }
    json_object_foreach((json_t *)(uintptr_t)value, name, member) {
        if (strcmp(name, "role") != 0 && strcmp(name, "from") != 0 && !each_text(member, see, user))
            return false;
    }
    return true;
}

static bool is_none(void *user, words text) {
    (void)user, (void)text;
    return false;
}

/* A row beside one of its texts. */
typedef struct unread_text {
    const json_t *row;
    const data_form *form;
    int except; /* a part that does not count as read; DATA_PARTS: all do */
    words text;
} unread_text;

static bool each_read(const unread_text *u, bool (*see)(void *user, words text), void *user) {
    for (int part = 0; part < DATA_PARTS; part++) {
        const char *field = data_form_field(u->form, (data_form_part)part, u->row);
        if (field && part != u->except && !each_text(data_row_get(u->row, field), see, user))
            return false;
    }
    return true;
}

static bool ends_with_it(void *user, words read) {
    return !is_within(((unread_text *)user)->text, read);
}

static bool goes_on(void *user, words read) {
    return is_within(read, ((unread_text *)user)->text);
}

/* Whether the text is in one that is read, or has all of those in it. */
static bool is_known(void *user, words text) {
    unread_text *u = user;
    u->text = text;
    return !each_read(u, ends_with_it, u) || each_read(u, goes_on, u);
}

/* Columns of what a text speaks of, as rows for models that see or hear have them. */
static sifr_status check_media(const json_t *row, const data_form *form,
                               const data_row_place *place, sifr_error *error) {
    static const char *const names[] = {"images", "image", "videos", "video", "audios", "audio"};
    char field[96];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(row, names[i]);
        bool some = json_array_size(value) || json_object_size(value) || json_string_length(value);
        if (!some || data_form_reads(form, row, names[i])) continue;
        snprintf(field, sizeof field, "'%s'", names[i]);
        return data_row_fail(place, field, error,
                             "holds something to see or hear, and only text is learned here; leave "
                             "such rows out, or learn their text with --ignore-fields %s",
                             names[i]);
    }
    return SIFR_OK;
}

sifr_status data_row_check_unread(const json_t *row, const data_form *form,
                                  const data_row_place *place, sifr_error *error) {
    char field[96];
    BASE_TRY(check_media(row, form, place, error));
    for (size_t i = 0; i < DATA_FORM_UNREAD && form->unread[i]; i++) {
        const char *name = form->unread[i];
        const json_t *value = json_object_get(row, name);
        unread_text unread = {row, form, DATA_PARTS, {0}};
        if (!value || each_text(value, is_none, NULL) || data_form_reads(form, row, name) ||
            each_text(value, is_known, &unread))
            continue;
        snprintf(field, sizeof field, "'%s'", name);
        return data_row_fail(place, field, error,
                             "holds text that rows of the form %s do not read; name with "
                             "--data-fields the field that it is, or pass it with "
                             "--ignore-fields %s",
                             form->name, name);
    }
    return SIFR_OK;
}

/* --- a prompt that is written out of messages --- */

/* As many pieces are looked for in a prompt: each costs a look at all messages. */
enum { PIECES_AT_MOST = 256 };

static bool is_blank(char c) {
    return strchr(" \t\r\n", c) != NULL; /* the end too */
}

/* What is left of a prompt, and the longest piece that it begins with. */
typedef struct prompt_left {
    words rest;
    size_t piece;
} prompt_left;

/* A whole text of a message. */
static bool take_text(void *user, words text) {
    prompt_left *left = user;
    words rest = left->rest;
    bool begins = text.size > left->piece && text.size <= rest.size &&
                  memcmp(rest.text, text.text, text.size) == 0;
    if (begins && (text.size == rest.size || is_blank(rest.text[text.size])))
        left->piece = text.size;
    return true;
}

/* Or a whole line of one; false: it is. */
static bool take_line(void *user, words text) {
    prompt_left *left = user;
    const char *from = text.text, *end = text.text + text.size, *found;
    words line = left->rest;
    const char *feed = memchr(line.text, '\n', line.size);
    if (feed) line.size = (size_t)(feed - line.text);
    while (line.size && is_blank(line.text[line.size - 1])) line.size--;
    while (line.size && (found = memmem(from, (size_t)(end - from), line.text, line.size))) {
        const char *behind = found + line.size;
        bool begins = found == text.text || found[-1] == '\n';
        from = behind;
        if (!begins || (behind < end && *behind != '\n' && *behind != '\r')) continue;
        left->piece = line.size;
        return false;
    }
    return true;
}

/* "Human:" … before what someone says; its size, 0: there is none. */
static size_t role_at(words rest) {
    static const char *const roles[] = {"human:", "user:", "assistant:", "system:", "gpt:"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        size_t size = strlen(roles[i]);
        bool is = size <= rest.size && strncasecmp(rest.text, roles[i], size) == 0;
        if (is && (size == rest.size || is_blank(rest.text[size]))) return size;
    }
    return 0;
}

/* Whether the prompt is made of texts of the messages, or of their lines, with blanks and words for
 * roles between them. */
static bool is_written_of(words prompt, json_t *const answers[2]) {
    prompt_left left = {prompt, 0};
    bool any = false;
    for (int pieces = 0; left.rest.size && pieces < PIECES_AT_MOST; pieces++) {
        left.piece = 0;
        for (int a = 0; a < 2; a++) (void)each_text(answers[a], take_text, &left);
        bool role = !left.piece && (left.piece = role_at(left.rest)) > 0;
        for (int a = 0; a < 2 && !left.piece; a++) (void)each_text(answers[a], take_line, &left);
        if (!left.piece) return false;
        any |= !role;
        left.rest.text += left.piece, left.rest.size -= left.piece;
        while (left.rest.size && is_blank(*left.rest.text)) left.rest.text++, left.rest.size--;
    }
    return any && !left.rest.size;
}

sifr_status data_row_check_prompt(const json_t *row, const data_form *form,
                                  json_t *const answers[2], const data_row_place *place,
                                  sifr_error *error) {
    const char *name = data_form_field(form, DATA_PART_PROMPT, row);
    const json_t *prompt = name ? data_row_get(row, name) : NULL;
    unread_text unread = {row, form, DATA_PART_PROMPT, {0}};
    char field[96];
    if (!name || each_text(prompt, is_known, &unread) || is_written_of(words_of(prompt), answers))
        return SIFR_OK;
    snprintf(field, sizeof field, "'%.80s'", name);
    return data_row_fail(place, field, error,
                         "is a text that the answers do not have, which are lists of messages "
                         "and read alone; put it into both lists, or pass it with "
                         "--ignore-fields %.80s",
                         name);
}
