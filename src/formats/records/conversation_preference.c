/* Preferences: a prompt with a chosen and a rejected answer, or two whole conversations or texts
 * that begin alike. */
#include <stdio.h>

#include "base/json.h"
#include "formats/records/conversation_internal.h"

static const char *const sides[] = {"chosen", "rejected"};

/* {"prompt", "completion", "tools"}; takes over both references. */
static json_t *make_side(const json_t *row, json_t *prompt, json_t *completion) {
    json_t *side = json_pack("{s:o*, s:o*}", "prompt", prompt, "completion", completion);
    json_t *tools = json_object_get(row, "tools");
    if (side && tools && json_object_set(side, "tools", tools) != 0) {
        json_decref(side);
        side = NULL;
    }
    return side;
}

/* A member as it stands, or the list that its text holds, as in a CSV file; a new reference. */
static json_t *member(const json_t *row, const char *field) {
    json_t *value = json_object_get(row, field), *parsed = NULL;
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

/* How many messages both begin with. */
static size_t alike_messages(json_t *const lists[2]) {
    size_t i = 0;
    const json_t *a, *b;
    while ((a = json_array_get(lists[0], i)) && (b = json_array_get(lists[1], i)) &&
           json_equal(a, b))
        i++;
    return i;
}

/* How many bytes both begin with: whole characters, and as in TRL without a last blank. */
static size_t alike_bytes(const json_t *a, const json_t *b) {
    const char *x = json_string_value(a), *y = json_string_value(b);
    size_t n = 0;
    while (x[n] && x[n] == y[n]) n++;
    while (n > 0 && ((unsigned char)x[n] & 0xc0) == 0x80) n--;
    return n > 0 && x[n - 1] == ' ' ? n - 1 : n;
}

/* Both are whole: the prompt is what they begin with. */
static sifr_status cut_prompt(const json_t *row, json_t *const answers[2],
                              const formats_row_place *place, json_t *out[2], sifr_error *error) {
    bool lists = json_is_array(answers[0]);
    size_t n = lists ? alike_messages(answers) : alike_bytes(answers[0], answers[1]);
    if (lists && n == 0)
        return formats_row_fail(place, "'chosen' and 'rejected'", error,
                                "begin with different messages; give them one prompt");
    for (int i = 0; i < 2; i++) {
        const char *text = json_string_value(answers[i]);
        json_t *prompt = lists ? part_of(answers[i], 0, n) : json_stringn(text, n);
        json_t *rest =
            lists ? part_of(answers[i], n, json_array_size(answers[i])) : json_string(text + n);
        if (lists && rest && json_array_size(rest) == 0) {
            json_decref(prompt);
            json_decref(rest);
            return formats_row_fail(place, i ? "'rejected'" : "'chosen'", error,
                                    "has no answer of its own: the other one begins with all of "
                                    "it");
        }
        out[i] = prompt && rest ? make_side(row, prompt, rest) : NULL;
        if (!out[i]) return base_fail_alloc(error, 256);
    }
    return SIFR_OK;
}

static sifr_status check_answer(const json_t *answer, const char *name,
                                const formats_row_place *place, sifr_error *error) {
    char field[32];
    if (json_is_string(answer) || json_is_array(answer)) return SIFR_OK;
    snprintf(field, sizeof field, "'%s'", name);
    return formats_row_fail(place, field, error,
                            answer ? "must be a text or a list of messages" : "is missing");
}

static sifr_status split(const json_t *row, json_t *prompt, json_t *const answers[2],
                         const formats_row_place *place, json_t *out[2], sifr_error *error) {
    for (int i = 0; i < 2; i++) BASE_TRY(check_answer(answers[i], sides[i], place, error));
    if (json_is_array(answers[0]) != json_is_array(answers[1]))
        return formats_row_fail(place, "'chosen' and 'rejected'", error,
                                "are a text and a list of messages; both must be of one kind");
    bool lists = json_is_array(answers[0]);
    /* A prompt that is a text beside answers that are messages repeats what they begin with. */
    if (!prompt || json_is_null(prompt) || (lists && !json_is_array(prompt)))
        return cut_prompt(row, answers, place, out, error);
    if (!lists && !json_is_string(prompt))
        return formats_row_fail(place, "'prompt'", error, "must be a text, as the answers are");
    for (int i = 0; i < 2; i++) {
        out[i] = make_side(row, json_incref(prompt), json_incref(answers[i]));
        if (!out[i]) return base_fail_alloc(error, 256);
    }
    return SIFR_OK;
}

sifr_status formats_preference_read(const json_t *row, const formats_form *form,
                                    const formats_row_place *place, json_t *out[2],
                                    sifr_error *error) {
    json_t *prompt = member(row, formats_form_field(form, FORMATS_PART_PROMPT, row));
    json_t *answers[2] = {member(row, formats_form_field(form, FORMATS_PART_ANSWER, row)),
                          member(row, formats_form_field(form, FORMATS_PART_REJECTED, row))};
    out[0] = out[1] = NULL;
    sifr_status status = split(row, prompt, answers, place, out, error);
    json_decref(prompt);
    json_decref(answers[0]);
    json_decref(answers[1]);
    if (status == SIFR_OK) return SIFR_OK;
    json_decref(out[0]);
    json_decref(out[1]);
    out[0] = out[1] = NULL;
    return status;
}
