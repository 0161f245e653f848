#include "data/chat/chat_turns.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "data/chat/chat_align.h"

bool data_chat_ends_find(const char *word, data_chat_ends *out) {
    static const char *const words[] = {[DATA_ENDS_TURN] = "turn",
                                        [DATA_ENDS_ALL] = "all",
                                        [DATA_ENDS_LAST] = "last",
                                        [DATA_ENDS_NONE] = "none"};
    int found;
    bool known = base_find_word(words, sizeof words / sizeof *words, word, &found);
    *out = (data_chat_ends)found;
    return known;
}

/* --- tokens that end turns --- */

static sifr_status encode_end(const text_tokenizer *t, text_tokenizer_scratch *scratch,
                              const json_t *text, int32_t *out, sifr_error *error) {
    text_tokenizer_ids ids = {0};
    sifr_status status = text_tokenizer_encode(t, scratch, json_string_value(text),
                                               json_string_length(text), false, &ids, error);
    if (status == SIFR_OK && ids.count != 1)
        status = base_fail(error, SIFR_USAGE,
                           "eot_tokens: \"%.60s\" is %zu tokens of the tokenizer; give texts that "
                           "are one token each",
                           json_string_value(text), ids.count);
    if (status == SIFR_OK) *out = ids.ids[0];
    text_tokenizer_ids_free(&ids);
    return status;
}

sifr_status data_chat_ends_open(const text_tokenizer *t, text_tokenizer_scratch *scratch,
                                const json_t *tokens, data_chat_end_ids *out, sifr_error *error) {
    size_t given = json_array_size(tokens);
    bool names = text_tokenizer_names_eos(t);
    *out = (data_chat_end_ids){.eos = names ? text_tokenizer_eos(t) : -1};
    BASE_TRY(base_alloc(given + 1, sizeof *out->eot, &out->eot, error));
    for (; out->count < given; out->count++)
        BASE_TRY(encode_end(t, scratch, json_array_get(tokens, out->count), &out->eot[out->count],
                            error));
    if (!tokens && out->eos >= 0) out->eot[out->count++] = out->eos;
    out->alone = out->count == 1 && out->eot[0] == out->eos;
    return SIFR_OK;
}

void data_chat_ends_close(data_chat_end_ids *ends) {
    free(ends->eot);
    *ends = (data_chat_end_ids){0};
}

static bool is_end(const data_chat_end_ids *ends, bool eot, int32_t id) {
    if (!eot) return id == ends->eos;
    for (size_t i = 0; i < ends->count; i++)
        if (ends->eot[i] == id) return true;
    return false;
}

sifr_status data_chat_ends_check(const data_chat_end_ids *ends, const data_chat_turns *turns,
                                 sifr_error *error) {
    bool both = ends->eos >= 0 && !ends->alone && is_end(ends, true, ends->eos);
    if (!turns->asked || turns->eos == turns->eot || !both) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "train_on_eot: the end-of-text token is one of eot_tokens, so train_on_eot and "
        "train_on_eos must be the same; leave one out");
}

/* --- finding turns --- */

/* Without a common first or last byte, so that what a template has in common with one of them at an
 * edge shows by the other. They are axolotl's. */
static const char *const placeholders[2] = {"[[dummy_message]]", "zzdummymessagezz"};

typedef struct turn_finder {
    const data_chat_templates *templates;
    const data_conversation *conversation;
    const data_row_place *place;
    const data_chat_text *text;
    sifr_error *error;
} turn_finder;

/* The messages, with a placeholder for one of them; a new reference, NULL without memory. */
static json_t *replace(const json_t *messages, size_t index, const char *content) {
    json_t *out = json_copy((json_t *)(uintptr_t)messages);
    json_t *role = json_object_get(json_array_get(messages, index), "role");
    json_t *other = json_pack("{s:O, s:s}", "role", role, "content", content);
    if (out && other && json_array_set(out, index, other) == 0) {
        json_decref(other);
        return out;
    }
    json_decref(other);
    json_decref(out);
    return NULL;
}

static bool continues(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* What of the text is not in the other one, in whole characters: what both begin with is taken off
 * first, then what both end with. */
static text_template_span differing(const data_chat_text *text, const text_template_output *other) {
    size_t least = text->size < other->size ? text->size : other->size, front = 0, back = 0;
    while (front < least && text->text[front] == other->text[front]) front++;
    while (front > 0 && (continues(text->text[front]) || continues(other->text[front]))) front--;
    while (back < least - front &&
           text->text[text->size - 1 - back] == other->text[other->size - 1 - back])
        back++;
    while (back > 0 && continues(text->text[text->size - back])) back--;
    return (text_template_span){front, text->size - back};
}

static sifr_status find_span(const turn_finder *f, size_t message, text_template_span *out) {
    *out = (text_template_span){f->text->size, 0};
    for (int i = 0; i < 2; i++) {
        text_template_output other;
        json_t *messages = replace(f->conversation->messages, message, placeholders[i]);
        BASE_TRY(data_chat_write(f->templates, f->conversation, messages, false, f->place, &other,
                                 f->error));
        text_template_span span = differing(f->text, &other);
        text_template_output_free(&other);
        if (span.begin < out->begin) out->begin = span.begin;
        if (span.end > out->end) out->end = span.end;
    }
    if (out->end < out->begin) out->end = out->begin;
    return SIFR_OK;
}

/* --- whose turns --- */

/* axolotl's names of roles, which rows may have as well. */
static const char *plain_role(const char *name) {
    if (strcmp(name, "human") == 0) return "user";
    return strcmp(name, "gpt") == 0 ? "assistant" : name;
}

static bool names_role(const data_chat_turns *asked, const char *role) {
    if (!asked->roles) return strcmp(role, "assistant") == 0;
    for (size_t i = 0; i < json_array_size(asked->roles); i++)
        if (strcmp(plain_role(json_string_value(json_array_get(asked->roles, i))), role) == 0)
            return true;
    return false;
}

static const char *role_of(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return plain_role(role ? role : "");
}

/* What a message says of itself counts more than its role. */
static bool is_learned(const data_chat_turns *asked, const json_t *message) {
    if (data_message_unlearned(message)) return false;
    if (data_message_learned(message)) return true;
    return asked->every || names_role(asked, role_of(message));
}

static bool says_something(const json_t *message) {
    const json_t *parts = json_object_get(message, "content");
    const char *content = json_string_value(parts);
    while (content && isspace((unsigned char)*content)) content++;
    return content ? *content : json_array_size(parts) > 0;
}

static sifr_status check_found(const turn_finder *f, const data_chat_turns *asked, size_t index,
                               const data_chat_turn *turn) {
    const json_t *message = json_array_get(f->conversation->messages, index);
    bool found = turn->span.begin < turn->span.end;
    if (found || !turn->learned || asked->every || !says_something(message)) return SIFR_OK;
    return data_row_fail(f->place, "", f->error,
                         "the chat template does not write message %zu, of the role \"%.40s\" "
                         "whose turns are to be learned (roles_to_train); leave that role out, "
                         "or give another template",
                         index + 1, role_of(message));
}

/* Turns that are not learned count where all ends are. */
static sifr_status find_all(const turn_finder *f, const data_chat_turns *asked,
                            data_chat_turn_list *out) {
    const json_t *messages = f->conversation->messages;
    bool all = asked->eos == DATA_ENDS_ALL || asked->eot == DATA_ENDS_ALL;
    out->count = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        data_chat_turn turn = {.learned = is_learned(asked, json_array_get(messages, i))};
        if (!turn.learned && !all) continue;
        BASE_TRY(find_span(f, i, &turn.span));
        BASE_TRY(check_found(f, asked, i, &turn));
        BASE_TRY(base_grow(&out->turns, &out->capacity, out->count + 1, sizeof turn, f->error));
        out->turns[out->count++] = turn;
    }
    return SIFR_OK;
}

sifr_status data_chat_turns_find(const data_chat_templates *templates, const data_chat_turns *asked,
                                 const data_conversation *conversation, const data_row_place *place,
                                 data_chat_text *text, data_chat_turn_list *out,
                                 sifr_error *error) {
    turn_finder f = {templates, conversation, place, text, error};
    text_template_output output;
    json_t *messages = json_incref(conversation->messages);
    BASE_TRY(data_chat_write(templates, conversation, messages, false, place, &output, error));
    sifr_status status = base_grow(&text->text, &text->capacity, output.size + 1, 1, error);
    if (status == SIFR_OK) memcpy(text->text, output.text, output.size + 1);
    text->size = output.size;
    text_template_output_free(&output);
    return status == SIFR_OK ? find_all(&f, asked, out) : status;
}

/* --- learning them --- */

/* Ends of one kind: those of text, or those of turns. */
typedef struct turn_ends {
    data_chat_ends which;
    bool eot;
    size_t last; /* that was found; SIZE_MAX: none */
} turn_ends;

/* The first one from token `from` on; SIZE_MAX: none is near. Of a turn without tokens it is sought
 * as Python does from -1 on: the last token, for which there is no place, then from the first. */
static size_t find_end(const data_chat_end_ids *end_ids, bool eot, const text_tokenizer_ids *ids,
                       size_t from) {
    enum { NEAR = 3 };
    bool nowhere = from == SIZE_MAX;
    if (nowhere && ids->count && is_end(end_ids, eot, ids->ids[ids->count - 1])) return SIZE_MAX;
    size_t first = nowhere ? 0 : from, behind = nowhere ? NEAR : from + NEAR + 1;
    for (size_t i = first; i < ids->count && i < behind; i++)
        if (is_end(end_ids, eot, ids->ids[i])) return i;
    return SIZE_MAX;
}

static void learn_end(turn_ends *kind, const data_chat_end_ids *end_ids,
                      const text_tokenizer_ids *ids, size_t from, bool of_learned, bool *learned,
                      size_t *ends) {
    size_t at = find_end(end_ids, kind->eot, ids, from);
    if (at == SIZE_MAX) return;
    kind->last = at;
    if (kind->which != DATA_ENDS_ALL && !(kind->which == DATA_ENDS_TURN && of_learned)) return;
    learned[at] = true;
    ++*ends;
}

sifr_status data_chat_turns_learn(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                                  const data_chat_text *text, const data_chat_turn_list *list,
                                  const data_chat_turns *asked, const data_chat_end_ids *end_ids,
                                  const text_tokenizer_ids *ids, bool *learned, size_t *ends,
                                  bool *placed, sifr_error *error) {
    turn_ends kinds[2] = {{asked->eot, true, SIZE_MAX}, {asked->eos, false, SIZE_MAX}};
    bool trims = text_tokenizer_trims(tokenizer);
    memset(learned, 0, ids->count * sizeof *learned);
    *ends = 0;
    *placed = true;
    for (size_t i = 0; i < list->count; i++) {
        const data_chat_turn *turn = &list->turns[i];
        data_chat_run run = {SIZE_MAX, SIZE_MAX};
        if (turn->span.begin < turn->span.end)
            BASE_TRY(data_chat_find_run(tokenizer, scratch, text->text, text->size, &turn->span,
                                        trims, ids, &run, placed, error));
        if (!*placed) return SIFR_OK;
        bool there = run.first != SIZE_MAX;
        for (size_t k = run.first; there && turn->learned && k < run.end; k++) learned[k] = true;
        for (int k = 0; k < 2; k++)
            learn_end(&kinds[k], end_ids, ids, there ? run.end : SIZE_MAX, turn->learned, learned,
                      ends);
    }
    for (int k = 0; k < 2; k++) {
        if (kinds[k].which != DATA_ENDS_LAST || kinds[k].last == SIZE_MAX) continue;
        learned[kinds[k].last] = true;
        ++*ends;
    }
    return SIFR_OK;
}
