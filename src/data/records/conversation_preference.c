/* Preferences: a prompt with a chosen and a rejected answer, or two whole conversations or texts
 * that begin alike. */
#include <stdio.h>

#include "base/json.h"
#include "data/records/conversation_internal.h"

static const char *const sides[] = {"chosen", "rejected"};

typedef struct preference {
    const json_t *row;
    const data_form *form;
    const data_row_place *place;
    bool templated;
    json_t *prompt; /* a text or messages; NULL or null: the answers have it */
    json_t *answers[2];
    json_t *tools; /* NULL: none */
} preference;

/* {"prompt", "completion"} with what else goes to the chat template; takes over both references. */
static json_t *make_side(const preference *p, json_t *prompt, json_t *completion) {
    static const char *const shared[] = {"documents", "chat_template_kwargs"};
    json_t *side = json_pack("{s:o*, s:o*}", "prompt", prompt, "completion", completion);
    bool whole = side && (!p->tools || json_object_set(side, "tools", p->tools) == 0);
    for (size_t i = 0; whole && i < sizeof shared / sizeof *shared; i++) {
        json_t *value = json_object_get(p->row, shared[i]);
        whole = !value || json_object_set(side, shared[i], value) == 0;
    }
    if (!whole) {
        json_decref(side);
        side = NULL;
    }
    return side;
}

/* A member as it stands, or the list that its text holds, as in a CSV file; a new reference. */
static json_t *member(const json_t *row, const char *field) {
    json_t *value = field ? data_row_get(row, field) : NULL, *parsed = NULL;
    const char *text = json_string_value(value);
    if (text && text[0] == '[' &&
        base_json_parse(text, json_string_length(value), "", &parsed, NULL) == SIFR_OK) {
        if (json_is_object(json_array_get(parsed, 0))) return parsed;
        json_decref(parsed);
    }
    return json_incref(value);
}

/* Messages first … of a list, a new one. */
static json_t *part_of(const json_t *list, size_t first, size_t end) {
    json_t *part = json_array();
    for (size_t i = first; part && i < end; i++) {
        if (json_array_append(part, json_array_get(list, i)) == 0) continue;
        json_decref(part);
        part = NULL;
    }
    return part;
}

/* How many messages both begin with; where one has no other, as in TRL one less. */
static size_t alike_messages(json_t *const lists[2]) {
    size_t i = 0;
    const json_t *a, *b;
    while ((a = json_array_get(lists[0], i)) && (b = json_array_get(lists[1], i)) &&
           json_equal(a, b))
        i++;
    bool ends = i > 0 && (!json_array_get(lists[0], i) || !json_array_get(lists[1], i));
    return ends ? i - 1 : i;
}

static bool is_inside(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* How many bytes both begin with: whole characters, and as in TRL without a last blank or, where
 * one has no other characters, without the last. */
static size_t alike_bytes(const json_t *a, const json_t *b) {
    const char *x = json_string_value(a), *y = json_string_value(b);
    size_t n = 0;
    while (x[n] && x[n] == y[n]) n++;
    bool ends = !x[n] || !y[n];
    if (ends && n > 0) n--;
    while (n > 0 && is_inside(x[n])) n--;
    return !ends && n > 0 && x[n - 1] == ' ' ? n - 1 : n;
}

/* Both are whole: the prompt is what they begin with. */
static sifr_status cut_prompt(const preference *p, json_t *out[2], sifr_error *error) {
    json_t *const *answers = p->answers;
    bool lists = json_is_array(answers[0]);
    size_t n = lists ? alike_messages(answers) : alike_bytes(answers[0], answers[1]);
    if (lists && n == 0)
        return data_row_fail(p->place, "'chosen' and 'rejected'", error,
                             "begin with different messages; give them one prompt");
    for (int i = 0; i < 2; i++) {
        const char *text = json_string_value(answers[i]);
        json_t *prompt = lists ? part_of(answers[i], 0, n) : json_stringn(text, n);
        json_t *rest =
            lists ? part_of(answers[i], n, json_array_size(answers[i])) : json_string(text + n);
        out[i] = prompt && rest ? make_side(p, prompt, rest) : NULL;
        if (!out[i]) return base_fail_alloc(error, 256);
    }
    return SIFR_OK;
}

static sifr_status check_answer(const preference *p, int i, sifr_error *error) {
    char field[32];
    if (json_is_string(p->answers[i]) || json_is_array(p->answers[i])) return SIFR_OK;
    snprintf(field, sizeof field, "'%s'", sides[i]);
    return data_row_fail(p->place, field, error,
                         p->answers[i] ? "must be a text or a list of messages" : "is missing");
}

static sifr_status split(const preference *p, json_t *out[2], sifr_error *error) {
    for (int i = 0; i < 2; i++) BASE_TRY(check_answer(p, i, error));
    if (json_is_array(p->answers[0]) != json_is_array(p->answers[1]))
        return data_row_fail(p->place, "'chosen' and 'rejected'", error,
                             "are a text and a list of messages; both must be of one kind");
    bool lists = json_is_array(p->answers[0]);
    /* A prompt that is a text beside answers that are messages repeats what they begin with. */
    bool repeats = lists && json_is_string(p->prompt);
    if (lists && !repeats && p->prompt && !json_is_null(p->prompt) && !json_is_array(p->prompt))
        return data_row_fail(p->place, "'prompt'", error,
                             "%s; it must be a text or a list of messages",
                             data_json_kind(p->prompt));
    if (repeats) BASE_TRY(data_row_check_prompt(p->row, p->form, p->answers, p->place, error));
    if (!p->prompt || json_is_null(p->prompt) || repeats) return cut_prompt(p, out, error);
    if (!lists && !json_is_string(p->prompt))
        return data_row_fail(p->place, "'prompt'", error, "must be a text, as the answers are");
    for (int i = 0; i < 2; i++) {
        out[i] = make_side(p, json_incref(p->prompt), json_incref(p->answers[i]));
        if (!out[i]) return base_fail_alloc(error, 256);
    }
    return SIFR_OK;
}

/* --- the parts, as messages where they are --- */

/* A list of messages or of ShareGPT's turns, or one of them, in place of the value. */
static sifr_status as_list(json_t **value, const char *field, const data_row_place *place,
                           sifr_error *error) {
    json_t *list = json_array(), *one = json_is_object(*value) ? json_pack("[O]", *value) : NULL;
    json_t *given = one ? one : *value, *turn;
    char name[96];
    size_t i;
    sifr_status status = list ? SIFR_OK : base_fail_alloc(error, 64);
    json_array_foreach(given, i, turn) {
        snprintf(name, sizeof name, one ? "'%.60s'" : "'%.60s[%zu]'", field, i);
        if (status == SIFR_OK) status = data_turn_add(list, turn, name, place, error);
    }
    json_decref(one);
    json_decref(*value);
    *value = list;
    return status;
}

/* Whether a value is a list of ShareGPT's turns, or a single message. */
static bool is_other(const json_t *value) {
    const json_t *first = json_array_get(value, 0);
    return json_is_object(value) ||
           (json_object_get(first, "from") && !json_object_get(first, "role"));
}

/* A text that answers messages. */
static sifr_status as_message(json_t **text, sifr_error *error) {
    json_t *list = json_pack("[{s:s, s:O}]", "role", "assistant", "content", *text);
    if (!list) return base_fail_alloc(error, 64);
    json_decref(*text);
    *text = list;
    return SIFR_OK;
}

static sifr_status read_prompt_of(preference *p, sifr_error *error) {
    const data_form *form = p->form;
    bool lists = json_is_array(p->answers[0]);
    const char *turns = data_form_field(form, DATA_PART_TURNS, p->row);
    if (turns) {
        BASE_TRY(data_row_list(p->row, turns, p->place, &p->prompt, error));
        BASE_TRY(as_list(&p->prompt, turns, p->place, error));
        return data_messages_add_system(p->prompt, p->row, form, p->place, error);
    }
    if (form->fields[DATA_PART_SYSTEM].names[0])
        return data_read_asked(p->row, form, p->templated || lists, p->place, &p->prompt, error);
    p->prompt = member(p->row, data_form_field(form, DATA_PART_PROMPT, p->row));
    return SIFR_OK;
}

static sifr_status read_parts(preference *p, sifr_error *error) {
    static const data_form_part parts[] = {DATA_PART_ANSWER, DATA_PART_REJECTED};
    for (int i = 0; i < 2; i++) {
        const char *field = data_form_field(p->form, parts[i], p->row);
        p->answers[i] = member(p->row, field);
        if (is_other(p->answers[i])) BASE_TRY(as_list(&p->answers[i], field, p->place, error));
    }
    BASE_TRY(read_prompt_of(p, error));
    bool own = json_is_array(p->prompt) && p->form->fields[DATA_PART_PROMPT].names[0] == NULL;
    bool asked = p->form->fields[DATA_PART_SYSTEM].names[0] != NULL;
    for (int i = 0; i < 2; i++)
        if ((own || (asked && json_is_array(p->prompt))) && json_is_string(p->answers[i]))
            BASE_TRY(as_message(&p->answers[i], error));
    if (own || asked) return data_tools_read(p->row, p->form, p->place, &p->tools, error);
    p->tools =
        json_incref(json_object_get(p->row, data_form_field(p->form, DATA_PART_TOOLS, p->row)));
    return SIFR_OK;
}

sifr_status data_preference_read(const json_t *row, const data_form *form, bool templated,
                                 const data_row_place *place, json_t *out[2], sifr_error *error) {
    preference p = {.row = row, .form = form, .place = place, .templated = templated};
    out[0] = out[1] = NULL;
    BASE_TRY(data_row_sound_all(row, form, place, error));
    sifr_status status = read_parts(&p, error);
    if (status == SIFR_OK) status = split(&p, out, error);
    if (status == SIFR_OK) status = data_row_check_unread(row, form, place, error);
    json_decref(p.prompt);
    json_decref(p.answers[0]);
    json_decref(p.answers[1]);
    json_decref(p.tools);
    if (status == SIFR_OK) return SIFR_OK;
    json_decref(out[0]);
    json_decref(out[1]);
    out[0] = out[1] = NULL;
    return status;
}
