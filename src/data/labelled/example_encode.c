#include "data/labelled/example_encode.h"

#include <string.h>

#include "base/heap.h"
#include "base/json.h"

/* Where a row stands, for messages. */
typedef struct row_place {
    const char *file;
    int64_t line;
} row_place;

/* What a value is that is not what it must be. */
static const char *what_is(const json_t *value, const char *otherwise) {
    const char *fault = base_json_fault(value);
    if (fault) return fault;
    return value ? otherwise : "is missing";
}

static sifr_status take_text(const json_t *row, const char *column, const row_place *place,
                             const char **text, size_t *size, sifr_error *error) {
    const json_t *value = json_object_get(row, column);
    *text = json_string_value(value);
    *size = json_string_length(value);
    if (*text) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: line %lld: '%.60s' %s; it must be a text",
                     place->file, (long long)place->line, column, what_is(value, "is no text"));
}

static sifr_status encode_texts(data_encoder *e, const json_t *row,
                                const data_label_columns *columns, const row_place *place,
                                data_encoded *out, sifr_error *error) {
    text_tokenizer_pair pair = {.max_length = e->labelled->length};
    BASE_TRY(take_text(row, columns->text, place, &pair.first, &pair.first_size, error));
    if (columns->pair)
        BASE_TRY(take_text(row, columns->pair, place, &pair.second, &pair.second_size, error));
    if (pair.first_size + pair.second_size == 0)
        return base_fail(error, SIFR_FAILED, "%s: line %lld: '%.60s'%s empty; remove the row",
                         place->file, (long long)place->line, columns->text,
                         columns->pair ? " and the second text are" : " is");
    sifr_status status = text_tokenizer_encode_pair(e->tokenizer, e->scratch, &pair, &out->ids,
                                                    &out->types, &out->truncated, error);
    if (status != SIFR_OK)
        return base_fail_in(error, status, "%s: line %lld", place->file, (long long)place->line);
    if (out->ids.count) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: line %lld: '%.60s' has no token; remove the row",
                     place->file, (long long)place->line, columns->text);
}

static sifr_status append_label(text_tokenizer_ids *labels, int32_t label, sifr_error *error) {
    BASE_TRY(
        base_grow(&labels->ids, &labels->capacity, labels->count + 1, sizeof *labels->ids, error));
    labels->ids[labels->count++] = label;
    return SIFR_OK;
}

static sifr_status append_around(data_encoder *e, bool behind, data_encoded *out,
                                 sifr_error *error) {
    size_t count;
    const int32_t *ids = text_tokenizer_around(e->tokenizer, behind, &count);
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(append_label(&out->ids, ids[i], error));
        BASE_TRY(append_label(&out->labels, -100, error));
    }
    return SIFR_OK;
}

/* Encodes a word as it is in the middle of a text. */
static sifr_status encode_word(data_encoder *e, const char *text, size_t size, data_encoded *out,
                               sifr_error *error) {
    if (e->space && size && text[0] != ' ') {
        BASE_TRY(base_grow(&e->spaced.bytes, &e->spaced.capacity, size + 1, 1, error));
        e->spaced.bytes[0] = ' ';
        memcpy(e->spaced.bytes + 1, text, size);
        text = e->spaced.bytes, size++;
    }
    return text_tokenizer_encode(e->tokenizer, e->scratch, text, size, false, &out->ids, error);
}

/* The label of a word stands at its first token. What is too long is cut off at the end. */
static sifr_status encode_words(data_encoder *e, const json_t *words, const row_place *place,
                                data_encoded *out, sifr_error *error) {
    size_t behind, limit, i;
    const json_t *word;
    BASE_TRY(append_around(e, false, out, error));
    text_tokenizer_around(e->tokenizer, true, &behind);
    limit = (size_t)e->labelled->length;
    if (limit <= out->ids.count + behind)
        return base_fail(error, SIFR_USAGE,
                         "%s: a length of %zu has no room for text: the tokenizer adds %zu tokens",
                         place->file, limit, out->ids.count + behind);
    limit -= behind;
    json_array_foreach((json_t *)words, i, word) {
        if (!json_is_string(word))
            return base_fail(error, SIFR_FAILED, "%s: line %lld: word %zu is no text", place->file,
                             (long long)place->line, i + 1);
        size_t before = out->ids.count;
        BASE_TRY(encode_word(e, json_string_value(word), json_string_length(word), out, error));
        for (size_t t = before; t < out->ids.count; t++)
            BASE_TRY(append_label(&out->labels, t == before ? e->word_labels.ids[i] : -100, error));
        if (out->ids.count <= limit) continue;
        out->truncated = true;
        out->ids.count = out->labels.count = limit;
        break;
    }
    return append_around(e, true, out, error);
}

static sifr_status encode_sentence(data_encoder *e, const json_t *row,
                                   const data_label_columns *columns, const data_label_place *place,
                                   data_encoded *out, sifr_error *error) {
    const json_t *words = json_object_get(row, columns->text);
    const row_place where = {place->file, place->line};
    size_t count = json_array_size(words);
    if (!json_is_array(words))
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld: '%.60s' %s; it must be a list of words", place->file,
                         (long long)place->line, columns->text, what_is(words, "is no list"));
    if (count == 0)
        return base_fail(error, SIFR_FAILED, "%s: line %lld: '%.60s' is empty; remove the row",
                         place->file, (long long)place->line, columns->text);
    BASE_TRY(base_grow(&e->word_labels.ids, &e->word_labels.capacity, count,
                       sizeof *e->word_labels.ids, error));
    if (e->labelled->unknown)
        memset(e->word_labels.ids, 0, count * sizeof *e->word_labels.ids);
    else
        BASE_TRY(data_label_list(place, json_object_get(row, columns->label), count,
                                 e->word_labels.ids, error));
    return encode_words(e, words, &where, out, error);
}

sifr_status data_encode(data_encoder *e, const json_t *row, const data_label_columns *columns,
                        const char *file, int64_t line, data_encoded *out, sifr_error *error) {
    const data_labelled *labelled = e->labelled;
    const data_label_place place = {labelled->labels, file, columns->label, line};
    const row_place where = {file, line};
    const json_t *label = labelled->unknown ? NULL : json_object_get(row, columns->label);
    out->ids.count = out->types.count = out->labels.count = 0;
    out->truncated = false;
    if (labelled->task == MODEL_TOKEN_CLASSES)
        return encode_sentence(e, row, columns, &place, out, error);
    BASE_TRY(encode_texts(e, row, columns, &where, out, error));
    BASE_TRY(append_label(&out->labels, 0, error));
    if (labelled->unknown) {
        for (int64_t i = 0; data_has_targets(labelled) && i < labelled->labels->count; i++)
            out->targets[i] = 0;
        return SIFR_OK;
    }
    if (labelled->problem == MODEL_SINGLE_LABEL)
        return data_label_number(&place, label, &out->labels.ids[0], error);
    return labelled->problem == MODEL_MULTI_LABEL
               ? data_label_set(&place, label, out->targets, error)
               : data_label_reals(&place, label, out->targets, error);
}
