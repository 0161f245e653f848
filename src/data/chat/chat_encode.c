#include "data/chat/chat_encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/chat/chat_align.h"
#include "data/stream/tokenise.h"

void data_chat_row_free(data_chat_row *row) {
    text_tokenizer_ids_free(&row->ids);
    free(row->learned);
    *row = (data_chat_row){0};
}

void data_chat_encoder_free(data_chat_encoder *encoder) {
    data_chat_text_free(&encoder->text);
    data_chat_text_free(&encoder->other);
    text_tokenizer_text_free(&encoder->joined);
    text_tokenizer_ids_free(&encoder->prompt);
    free(encoder->list.turns);
    encoder->list = (data_chat_turn_list){0};
}

static sifr_status encode(const data_chat_encoder *e, const char *text, size_t size, bool special,
                          const data_row_place *place, text_tokenizer_ids *out, sifr_error *error) {
    sifr_error said = {0};
    sifr_status status =
        text_tokenizer_encode(e->tokenizer, e->scratch, text, size, special, out, &said);
    if (status == SIFR_FAILED) return data_row_fail(place, "", error, "%s", said.message);
    return status == SIFR_OK ? status : base_fail(error, status, "%s", said.message);
}

static sifr_status reserve(data_chat_row *out, sifr_error *error) {
    return base_grow(&out->learned, &out->capacity, out->ids.count, sizeof *out->learned, error);
}

static sifr_status insert_id(text_tokenizer_ids *ids, size_t at, int64_t id, sifr_error *error) {
    BASE_TRY(base_grow(&ids->ids, &ids->capacity, ids->count + 1, sizeof *ids->ids, error));
    memmove(ids->ids + at + 1, ids->ids + at, (ids->count - at) * sizeof *ids->ids);
    ids->ids[at] = (int32_t)id;
    ids->count++;
    return SIFR_OK;
}

static size_t count_around(const data_chat_encoder *e, bool behind) {
    size_t count = 0;
    if (e->special) text_tokenizer_around(e->tokenizer, behind, &count);
    return count;
}

static size_t count_alike(const text_tokenizer_ids *a, const text_tokenizer_ids *b) {
    size_t i = 0;
    while (i < a->count && i < b->count && a->ids[i] == b->ids[i]) i++;
    return i;
}

/* --- completions --- */

/* As in TRL: a completion begins at the first token in which it and the prompt by itself differ.
 * What the post-processor puts behind the prompt is no part of it. */
static void begin_completion(const data_chat_encoder *e, bool special, data_chat_row *out) {
    size_t behind = special ? count_around(e, true) : 0;
    out->first = count_alike(&e->prompt, &out->ids);
    out->merged = out->first + behind < e->prompt.count;
}

/* As TRL's ORPOTrainer (build_tokenized_answer): behind as many tokens as the prompt has by itself,
 * one earlier where any of them is another. A text whose tokens are fewer than its prompt's, for
 * which TRL ends, begins at the first token that differs. */
static void begin_answer(const data_chat_encoder *e, data_chat_row *out) {
    size_t alike = count_alike(&e->prompt, &out->ids), count = e->prompt.count;
    out->merged = alike < count;
    out->first = count > out->ids.count ? alike : count - out->merged;
}

/* Sets what is learned of a completion: all from its first token on, but the parts. */
static void learn_from(data_chat_row *out, size_t first, bool parts) {
    for (size_t i = 0; i < out->ids.count; i++)
        out->learned[i] = i >= first && !(parts && out->learned[i]);
}

/* What is learned of this conversation. */
static data_chat_mask mask_of(const data_chat_encoder *e, const data_conversation *c) {
    if (e->mask != DATA_ON_COMPLETION) return e->mask;
    return c->messages && !c->prompt_messages ? DATA_ON_ALL : DATA_ON_ASSISTANT;
}

/* --- messages --- */

static sifr_status check_placed(bool placed, const data_row_place *place, sifr_error *error) {
    if (placed) return SIFR_OK;
    return data_row_fail(place, "", error,
                         "the tokenizer changes the text, and a token goes over the edge of a "
                         "turn; write the text in the form that the tokenizer makes of it, or "
                         "train on all");
}

static sifr_status align(data_chat_encoder *e, const data_chat_text *text,
                         const data_row_place *place, data_chat_row *out, sifr_error *error) {
    bool placed;
    BASE_TRY(data_chat_align(e->tokenizer, e->scratch, text->text, text->size, text->spans,
                             text->span_count, &out->ids, out->learned, &placed, error));
    if (placed && text->open) data_chat_align_open(e->tokenizer, &out->ids, out->learned);
    return check_placed(placed, place, error);
}

/* As many as there is room for. */
static void find_unread(const data_chat_templates *templates, const data_conversation *c,
                        data_chat_row *out) {
    size_t used = strlen(out->unread), capacity = sizeof out->unread;
    const char *name;
    json_t *value;
    json_object_foreach(c->variables, name, value) {
        (void)value;
        if (data_chat_templates_name(templates, name) || strlen(name) + 2 > capacity - used)
            continue;
        used += (size_t)snprintf(out->unread + used, capacity - used, "%s\n", name);
    }
}

static sifr_status check_template(const data_chat_encoder *e, const data_row_place *place,
                                  sifr_error *error) {
    if (e->templates->there) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: rows of messages need the chat template of the model, and its folder "
                     "has none (chat_template.jinja, or \"chat_template\" in "
                     "tokenizer_config.json); put the template of its chat version there, or give "
                     "--chat-template: a file, or a name (chatml, llama3, ...)",
                     place->file);
}

/* What is worth a word about a rendered text. */
static sifr_status note_rendered(const data_chat_encoder *e, const data_conversation *c,
                                 const data_chat_text *text, data_chat_row *out,
                                 sifr_error *error) {
    out->templated = true;
    find_unread(e->templates, c, out);
    out->odd = data_chat_check(c, text->text, text->size);
    return data_chat_find_lost(e->templates, mask_of(e, c), c, text->text, text->size, &out->lost,
                               error);
}

static sifr_status render(data_chat_encoder *e, const data_conversation *c,
                          const data_row_place *place, data_chat_text *text, data_chat_row *out,
                          sifr_error *error) {
    BASE_TRY(check_template(e, place, error));
    BASE_TRY(data_messages_answer(c->messages, place, error));
    BASE_TRY(data_chat_render(e->templates, mask_of(e, c), e->odds, c, place, text, error));
    return note_rendered(e, c, text, out, error);
}

/* The ids of a rendered text, and what is learned of them. */
static sifr_status encode_rendered(data_chat_encoder *e, const data_chat_text *text,
                                   const data_row_place *place, data_chat_row *out,
                                   sifr_error *error) {
    BASE_TRY(encode(e, text->text, text->size, false, place, &out->ids, error));
    BASE_TRY(reserve(out, error));
    learn_from(out, 0, false);
    if (text->whole) return SIFR_OK;
    bool parts = text->span_count || !text->completion || text->turns;
    if (parts) BASE_TRY(align(e, text, place, out, error));
    if (!text->completion) return SIFR_OK;
    e->prompt.count = 0;
    BASE_TRY(encode(e, text->prompt, text->prompt_size, false, place, &e->prompt, error));
    if (e->odds)
        begin_answer(e, out);
    else
        begin_completion(e, false, out);
    if (text->turns)
        for (size_t i = 0; i < out->first; i++) out->learned[i] = false;
    else
        learn_from(out, out->first, parts);
    return SIFR_OK;
}

static sifr_status refuse_turns(const data_row_place *place, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s: roles_to_train and the ends of turns are of rows of messages, and this "
                     "file has answers to prompts; leave them out, or give messages",
                     place->file);
}

/* The turns that are asked for, and their ends. */
static sifr_status encode_turns(data_chat_encoder *e, const data_conversation *c,
                                const data_row_place *place, data_chat_row *out,
                                sifr_error *error) {
    bool placed;
    BASE_TRY(check_template(e, place, error));
    if (c->prompt_messages) return refuse_turns(place, error);
    BASE_TRY(data_chat_turns_find(e->templates, &e->turns, c, place, &e->text, &e->list, error));
    BASE_TRY(note_rendered(e, c, &e->text, out, error));
    out->lost.empty = 0; /* of a turn that says nothing nothing is learned */
    BASE_TRY(encode(e, e->text.text, e->text.size, false, place, &out->ids, error));
    BASE_TRY(reserve(out, error));
    BASE_TRY(data_chat_turns_learn(e->tokenizer, e->scratch, &e->text, &e->list, &e->turns,
                                   e->end_ids, &out->ids, out->learned, &out->ends, &placed,
                                   error));
    return check_placed(placed, place, error);
}

static sifr_status encode_messages(data_chat_encoder *e, const data_conversation *c,
                                   const data_row_place *place, data_chat_row *out,
                                   sifr_error *error) {
    if (e->turns.asked) return encode_turns(e, c, place, out, error);
    BASE_TRY(render(e, c, place, &e->text, out, error));
    return encode_rendered(e, &e->text, place, out, error);
}

/* --- texts --- */

/* Whether the text ends with the end-of-text token, as a text and as a token. */
static bool has_end(const data_chat_encoder *e, const data_conversation *c,
                    const text_tokenizer_ids *ids, size_t behind) {
    size_t size;
    const char *end = text_tokenizer_bytes(e->tokenizer, (int32_t)e->separator, &size);
    if (ids->count <= behind || ids->ids[ids->count - behind - 1] != e->separator) return false;
    return end && c->text_size >= size && memcmp(c->text + c->text_size - size, end, size) == 0;
}

/* The end-of-text token goes between a text and what the post-processor puts behind it, as in TRL,
 * which writes it into the text. Of Alpaca's rows that token is not doubled, as in axolotl. */
static sifr_status end_text(const data_chat_encoder *e, const data_conversation *c, bool alpaca,
                            text_tokenizer_ids *ids, sifr_error *error) {
    size_t behind = count_around(e, true);
    int64_t last = ids->count ? ids->ids[ids->count - 1] : -1;
    if (e->separator < 0) return SIFR_OK;
    if (alpaca && last == e->separator) return SIFR_OK;
    if (alpaca) behind = 0;
    if (!alpaca && has_end(e, c, ids, behind)) return SIFR_OK;
    return insert_id(ids, ids->count - behind, e->separator, error);
}

static sifr_status join(data_chat_encoder *e, const data_conversation *c, sifr_error *error) {
    size_t size = c->prompt_size + c->text_size;
    BASE_TRY(base_grow(&e->joined.bytes, &e->joined.capacity, size + 1, 1, error));
    if (c->prompt_size) memcpy(e->joined.bytes, c->prompt, c->prompt_size);
    if (c->text_size) memcpy(e->joined.bytes + c->prompt_size, c->text, c->text_size);
    e->joined.count = size;
    return SIFR_OK;
}

/* As in TRL, which ends there. */
static sifr_status check_turns(const data_chat_encoder *e, const data_row_place *place,
                               sifr_error *error) {
    bool only = e->mask == DATA_ON_ASSISTANT_ONLY;
    if (!only && e->mask != DATA_ON_ASSISTANT_TURNS) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: a text has no turns of the assistant, which train_on %s learns; give "
                     "rows of messages, or train_on completion",
                     place->file, only ? "assistant_only" : "assistant_turns");
}

static sifr_status encode_text(data_chat_encoder *e, const data_conversation *c, bool alpaca,
                               const data_row_place *place, data_chat_row *out, sifr_error *error) {
    BASE_TRY(check_turns(e, place, error));
    BASE_TRY(join(e, c, error));
    BASE_TRY(encode(e, e->joined.bytes, e->joined.count, e->special, place, &out->ids, error));
    size_t around = count_around(e, false);
    if (e->special && out->ids.count > around)
        out->odd.doubled =
            data_tokenise_doubles(e->tokenizer, out->ids.ids + around, out->ids.count - around);
    BASE_TRY(end_text(e, c, alpaca, &out->ids, error));
    BASE_TRY(reserve(out, error));
    if (c->completion && mask_of(e, c) != DATA_ON_ALL) {
        e->prompt.count = 0;
        BASE_TRY(encode(e, e->joined.bytes, c->prompt_size, e->special, place, &e->prompt, error));
        begin_completion(e, e->special, out);
    }
    learn_from(out, out->first, false);
    return SIFR_OK;
}

/* --- rows --- */

static void clear(data_chat_row *out) {
    out->ids.count = out->first = out->ends = 0;
    out->merged = false;
    out->unread[0] = '\0';
    out->templated = false;
    out->odd = (data_chat_odd){0};
    out->lost = (data_chat_lost){0};
}

static sifr_status encode_row(data_chat_encoder *e, const data_conversation *c, bool alpaca,
                              const data_row_place *place, data_chat_row *out, sifr_error *error) {
    clear(out);
    return c->messages ? encode_messages(e, c, place, out, error)
                       : encode_text(e, c, alpaca, place, out, error);
}

/* With what else goes to the chat template. */
static sifr_status read_conversation(const data_chat_encoder *e, const json_t *row,
                                     const data_form *form, const data_row_place *place,
                                     data_conversation *out, sifr_error *error) {
    bool documents = data_chat_templates_name(e->templates, "documents");
    BASE_TRY(data_conversation_read(row, form, &e->format, e->templates->there, place, out, error));
    if (!out->messages) return SIFR_OK;
    sifr_status status =
        data_conversation_variables(row, e->variables, documents, place, out, error);
    if (status == SIFR_OK)
        status =
            data_conversation_join(out, e->templates->manners[out->tools != NULL].lists, error);
    if (status != SIFR_OK) data_conversation_free(out);
    return status;
}

sifr_status data_chat_encode(data_chat_encoder *encoder, const json_t *row, const data_form *form,
                             const data_row_place *place, data_chat_row *out, sifr_error *error) {
    data_conversation conversation;
    BASE_TRY(read_conversation(encoder, row, form, place, &conversation, error));
    sifr_status status =
        encode_row(encoder, &conversation, form->type == DATA_ROW_ALPACA, place, out, error);
    out->odd.replaced = data_chat_replaces_system(row, conversation.messages);
    data_conversation_free(&conversation);
    return status;
}

/* --- preferences --- */

/* As TRL's DPOTrainer: both answers begin where the first of them does. */
static sifr_status encode_both(data_chat_encoder *e, const data_conversation sides[2],
                               const data_row_place *place, data_chat_row out[2],
                               sifr_error *error) {
    for (int i = 0; i < 2; i++) BASE_TRY(encode_row(e, &sides[i], false, place, &out[i], error));
    if ((e->mask == DATA_ON_LAST || e->mask == DATA_ON_ALL) && sides[0].messages) return SIFR_OK;
    size_t first = out[0].first < out[1].first ? out[0].first : out[1].first;
    for (int i = 0; i < 2; i++)
        for (size_t k = first; k < out[i].first; k++) out[i].learned[k] = true;
    return SIFR_OK;
}

/* As TRL's add_bos_token_if_needed and add_eos_token_if_needed, with messages too. */
static sifr_status put_ends(const data_chat_encoder *e, data_chat_row *out, sifr_error *error) {
    text_tokenizer_ids *ids = &out->ids;
    int32_t bos = e->special ? text_tokenizer_bos(e->tokenizer) : -1;
    size_t count = ids->count;
    bool begins = bos >= 0 && (out->first == 0 || ids->ids[0] != bos);
    bool ends = e->separator >= 0 && (out->first == count || ids->ids[count - 1] != e->separator);
    if (ends) BASE_TRY(insert_id(ids, count, e->separator, error));
    if (begins) BASE_TRY(insert_id(ids, 0, bos, error));
    BASE_TRY(reserve(out, error));
    if (begins) memmove(out->learned + 1, out->learned, count * sizeof *out->learned);
    if (begins) out->learned[0] = false;
    if (ends) out->learned[ids->count - 1] = true;
    out->first += begins;
    return SIFR_OK;
}

/* The prompt of rendered answers is what both and the prompt by itself begin with: whole
 * characters. */
static void share_prompt(data_chat_text *chosen, data_chat_text *rejected) {
    size_t n = 0, most = chosen->prompt_size;
    if (most > chosen->size) most = chosen->size;
    if (most > rejected->size) most = rejected->size;
    while (n < most && chosen->text[n] == chosen->prompt[n] && rejected->text[n] == chosen->text[n])
        n++;
    while (n > 0 && n < chosen->prompt_size && ((unsigned char)chosen->prompt[n] & 0xc0) == 0x80)
        n--;
    chosen->prompt_size = n;
    rejected->prompt_size = n < rejected->prompt_size ? n : rejected->prompt_size;
}

static sifr_status encode_answer(data_chat_encoder *e, const data_conversation *c,
                                 const data_row_place *place, data_chat_row *out,
                                 sifr_error *error) {
    BASE_TRY(join(e, c, error));
    BASE_TRY(encode(e, e->joined.bytes, e->joined.count, false, place, &out->ids, error));
    e->prompt.count = 0;
    BASE_TRY(encode(e, e->joined.bytes, c->prompt_size, false, place, &e->prompt, error));
    begin_answer(e, out);
    BASE_TRY(reserve(out, error));
    learn_from(out, out->first, false);
    return SIFR_OK;
}

static sifr_status encode_odds(data_chat_encoder *e, const data_conversation sides[2],
                               const data_row_place *place, data_chat_row out[2],
                               sifr_error *error) {
    data_chat_text *texts[2] = {&e->text, &e->other};
    bool messages = sides[0].messages && sides[1].messages;
    for (int i = 0; i < 2; i++) {
        clear(&out[i]);
        if (messages) BASE_TRY(render(e, &sides[i], place, texts[i], &out[i], error));
    }
    if (messages && e->text.completion) share_prompt(&e->text, &e->other);
    for (int i = 0; i < 2; i++) {
        BASE_TRY(messages ? encode_rendered(e, texts[i], place, &out[i], error)
                          : encode_answer(e, &sides[i], place, &out[i], error));
        BASE_TRY(put_ends(e, &out[i], error));
    }
    return SIFR_OK;
}

sifr_status data_chat_encode_pair(data_chat_encoder *encoder, const json_t *row,
                                  const data_form *form, const data_row_place *place,
                                  data_chat_row out[2], sifr_error *error) {
    const data_form *side = data_form_of(DATA_ROW_PROMPT_COMPLETION);
    json_t *rows[2];
    data_conversation sides[2] = {0};
    if (encoder->turns.asked) return refuse_turns(place, error);
    BASE_TRY(data_preference_read(row, form, encoder->templates->there, place, rows, error));
    sifr_status status = SIFR_OK;
    for (int i = 0; status == SIFR_OK && i < 2; i++)
        status = read_conversation(encoder, rows[i], side, place, &sides[i], error);
    if (status == SIFR_OK)
        status = encoder->odds ? encode_odds(encoder, sides, place, out, error)
                               : encode_both(encoder, sides, place, out, error);
    out[0].odd.replaced = data_chat_replaces_system(row, sides[0].messages);
    for (int i = 0; i < 2; i++) {
        data_conversation_free(&sides[i]);
        json_decref(rows[i]);
    }
    return status;
}
