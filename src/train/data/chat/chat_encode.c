#include "train/data/chat/chat_encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/data/chat/chat_align.h"

void train_chat_row_free(train_chat_row *row) {
    formats_tokenizer_ids_free(&row->ids);
    free(row->learned);
    *row = (train_chat_row){0};
}

void train_chat_encoder_free(train_chat_encoder *encoder) {
    train_chat_text_free(&encoder->text);
    formats_tokenizer_text_free(&encoder->joined);
    formats_tokenizer_ids_free(&encoder->prompt);
}

static sifr_status encode(const train_chat_encoder *e, const char *text, size_t size, bool special,
                          const formats_row_place *place, formats_tokenizer_ids *out,
                          sifr_error *error) {
    sifr_error said = {0};
    sifr_status status =
        formats_tokenizer_encode(e->tokenizer, e->scratch, text, size, special, out, &said);
    if (status == SIFR_FAILED) return formats_row_fail(place, "", error, "%s", said.message);
    return status == SIFR_OK ? status : base_fail(error, status, "%s", said.message);
}

static sifr_status learn_from(train_chat_row *out, size_t first, sifr_error *error) {
    BASE_TRY(base_grow(&out->learned, &out->room, out->ids.count, sizeof *out->learned, error));
    for (size_t i = 0; i < out->ids.count; i++) out->learned[i] = i >= first;
    return SIFR_OK;
}

static sifr_status append_id(formats_tokenizer_ids *ids, int64_t id, sifr_error *error) {
    BASE_TRY(base_grow(&ids->ids, &ids->room, ids->count + 1, sizeof *ids->ids, error));
    ids->ids[ids->count++] = (int32_t)id;
    return SIFR_OK;
}

static sifr_status encode_messages(train_chat_encoder *e, const formats_conversation *c,
                                   const formats_row_place *place, train_chat_row *out,
                                   sifr_error *error) {
    bool placed;
    if (!e->templates->there)
        return base_fail(error, SIFR_USAGE,
                         "%s: rows of messages need the chat template of the model, and its folder "
                         "has none (chat_template.jinja, or \"chat_template\" in "
                         "tokenizer_config.json); put the template of its chat version there",
                         place->file);
    BASE_TRY(train_chat_render(e->templates, e->mask, c, place, &e->text, error));
    out->odd = train_chat_check(c, e->text.text, e->text.size);
    BASE_TRY(encode(e, e->text.text, e->text.size, false, place, &out->ids, error));
    BASE_TRY(learn_from(out, 0, error));
    if (e->text.whole) return SIFR_OK;
    BASE_TRY(train_chat_align(e->tokenizer, e->scratch, e->text.text, e->text.size, e->text.spans,
                              e->text.span_count, &out->ids, out->learned, &placed, error));
    if (placed) return SIFR_OK;
    return formats_row_fail(place, "", error,
                            "the tokenizer changes the text, and a token goes over the edge of a "
                            "turn; write the text in the form that the tokenizer makes of it, or "
                            "train on all");
}

/* As TRL: a completion begins behind as many tokens as the prompt has by itself. */
static sifr_status encode_text(train_chat_encoder *e, const formats_conversation *c,
                               const formats_row_place *place, train_chat_row *out,
                               sifr_error *error) {
    size_t size = c->prompt_size + c->text_size, around = 0, first = 0;
    BASE_TRY(base_grow(&e->joined.bytes, &e->joined.room, size + 1, 1, error));
    if (c->prompt_size) memcpy(e->joined.bytes, c->prompt, c->prompt_size);
    if (c->text_size) memcpy(e->joined.bytes + c->prompt_size, c->text, c->text_size);
    BASE_TRY(encode(e, e->joined.bytes, size, e->special, place, &out->ids, error));
    if (c->completion && e->mask != TRAIN_ON_ALL) {
        e->prompt.count = 0;
        BASE_TRY(encode(e, e->joined.bytes, c->prompt_size, false, place, &e->prompt, error));
        if (e->special) formats_tokenizer_around(e->tokenizer, false, &around);
        first = around + e->prompt.count;
        out->prompt = around;
        while (out->prompt < first && out->prompt < out->ids.count &&
               out->ids.ids[out->prompt] == e->prompt.ids[out->prompt - around])
            out->prompt++;
        out->merged = out->prompt < first;
    }
    int64_t last = out->ids.count ? out->ids.ids[out->ids.count - 1] : -1;
    if (e->separator >= 0 && last != e->separator)
        BASE_TRY(append_id(&out->ids, e->separator, error));
    return learn_from(out, first, error);
}

sifr_status train_chat_encode(train_chat_encoder *encoder, const json_t *row,
                              const formats_form *form, const formats_row_place *place,
                              train_chat_row *out, sifr_error *error) {
    formats_conversation conversation;
    out->ids.count = out->prompt = 0;
    out->merged = false;
    out->odd = (train_chat_odd){0};
    BASE_TRY(formats_conversation_read(row, form, &encoder->format, encoder->templates->there,
                                       place, &conversation, error));
    sifr_status status = conversation.messages
                             ? encode_messages(encoder, &conversation, place, out, error)
                             : encode_text(encoder, &conversation, place, out, error);
    formats_conversation_free(&conversation);
    return status;
}

sifr_status train_chat_encode_pair(train_chat_encoder *encoder, const json_t *row,
                                   const formats_form *form, const formats_row_place *place,
                                   train_chat_row out[2], sifr_error *error) {
    json_t *sides[2];
    BASE_TRY(formats_preference_read(row, form, encoder->templates->there, place, sides, error));
    sifr_status status = SIFR_OK;
    for (int i = 0; status == SIFR_OK && i < 2; i++)
        status =
            train_chat_encode(encoder, sides[i], formats_form_of(FORMATS_ROW_PROMPT_COMPLETION),
                              place, &out[i], error);
    json_decref(sides[0]);
    json_decref(sides[1]);
    if (status != SIFR_OK || !(out[0].merged || out[1].merged)) return status;
    size_t first = out[0].prompt < out[1].prompt ? out[0].prompt : out[1].prompt;
    for (int i = 0; status == SIFR_OK && i < 2; i++) status = learn_from(&out[i], first, error);
    return status;
}
