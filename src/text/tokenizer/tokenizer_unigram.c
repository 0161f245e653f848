/* Unigram: the way through a piece of text whose tokens have the highest sum of scores. */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

#define UNKNOWN_PENALTY 10.0

sifr_status text_unigram_read(text_tokenizer *t, const json_t *model, const char *name,
                              sifr_error *error) {
    const json_t *vocabulary = json_object_get(model, "vocab"), *row;
    int64_t unknown;
    size_t i, size, count = json_array_size(vocabulary);
    double least = INFINITY;
    BASE_TRY(base_json_int(model, "unk_id", -1, &unknown, name, error));
    if (unknown < -1 || unknown >= (int64_t)count)
        return base_fail(error, SIFR_USAGE, "%s: unk_id %lld is not in model.vocab, which has %zu",
                         name, (long long)unknown, count);
    t->unk_id = (int32_t)unknown;
    BASE_TRY(base_json_bool(model, "byte_fallback", false, &t->byte_fallback, name, error));
    BASE_TRY(base_alloc(count, sizeof *t->scores, &t->scores, error));
    json_array_foreach(vocabulary, i, row) {
        const json_t *score = json_array_get(row, 1);
        t->scores[i] = json_number_value(score);
        if (!json_is_number(score) || !(fabs(t->scores[i]) < 1e30))
            return base_fail(error, SIFR_USAGE, "%s: model.vocab[%zu] has no score", name, i);
        if (t->scores[i] < least) least = t->scores[i];
    }
    t->unknown_score = least - UNKNOWN_PENALTY;
    text_prefix *list;
    size_t filled = 0;
    BASE_TRY(base_alloc(t->words.count + 1, sizeof *list, &list, error));
    for (i = 0; i < t->words.count; i++) {
        const uint8_t *bytes = text_table_bytes(&t->words, i, &size);
        if (size) list[filled++] = (text_prefix){bytes, size, t->word_ids[i]};
    }
    sifr_status status = text_prefixes_build(&t->prefixes, list, filled, error);
    free(list);
    return status;
}

/* The best way to each place: its score, where its last token begins, and that token. */
static sifr_status search(const text_tokenizer *t, text_tokenizer_scratch *s, const uint8_t *word,
                          size_t size, sifr_error *error) {
    const text_prefixes *trie = &t->prefixes;
    text_path *paths = s->paths;
    for (size_t i = 0; i <= size; i++) paths[i] = (text_path){0, UINT32_MAX, -1};
    for (size_t at = 0, length; at < size; at += length) {
        double here = paths[at].score;
        bool single = false;
        uint32_t node = 0;
        text_utf8_get(word + at, &length);
        for (size_t i = at; i < size && (node = text_prefixes_step(trie, node, word[i])); i++) {
            int32_t id = trie->nodes[node].value;
            if (id < 0) continue;
            text_path *path = &paths[i + 1];
            double score = t->scores[id] + here;
            if (path->from == UINT32_MAX || score > path->score)
                *path = (text_path){score, (uint32_t)at, id};
            if (i + 1 - at == length) single = true;
        }
        if (single) continue;
        text_path *path = &paths[at + length];
        double score = t->unknown_score + here;
        if (path->from != UINT32_MAX && score <= path->score) continue;
        if (t->unk_id < 0)
            return base_fail(error, SIFR_FAILED,
                             "the text holds \"%.*s\", for which the tokenizer has no token and no "
                             "unk_id",
                             (int)length, (const char *)word + at);
        *path = (text_path){score, (uint32_t)at, t->unk_id};
    }
    return SIFR_OK;
}

static sifr_status append(const text_tokenizer *t, const uint8_t *bytes, size_t size, int32_t id,
                          text_tokenizer_ids *out, sifr_error *error) {
    bool fallback = t->byte_fallback && id == t->unk_id;
    size_t index = id == t->unk_id ? text_table_find(&t->words, bytes, size) : SIZE_MAX;
    if (index != SIZE_MAX) id = t->word_ids[index], fallback = false;
    for (size_t i = 0; i < size && fallback; i++) fallback = t->fallback_ids[bytes[i]] >= 0;
    size_t count = fallback ? size : 1;
    BASE_TRY(base_grow(&out->ids, &out->capacity, out->count + count, sizeof *out->ids, error));
    for (size_t i = 0; i < count; i++)
        out->ids[out->count++] = fallback ? t->fallback_ids[bytes[i]] : id;
    return SIFR_OK;
}

sifr_status text_unigram_word(const text_tokenizer *t, text_tokenizer_scratch *s,
                              const uint8_t *word, size_t size, text_tokenizer_ids *out,
                              sifr_error *error) {
    if (size > INT32_MAX / 2)
        return base_fail(error, SIFR_FAILED,
                         "a single word of %zu bytes: split the text, words go up to 1 GiB", size);
    BASE_TRY(base_grow(&s->paths, &s->path_capacity, size + 1, sizeof *s->paths, error));
    BASE_TRY(search(t, s, word, size, error));
    /* The way back, and with it the links turned round: `from` becomes where the token ends. */
    size_t stop = size;
    uint32_t behind = (uint32_t)size;
    while (stop > 0) {
        uint32_t from = s->paths[stop].from;
        s->paths[stop].from = behind;
        behind = (uint32_t)stop;
        stop = from;
    }
    for (size_t at = 0, end = behind; at < size;) {
        int32_t id = s->paths[end].id;
        uint32_t next = s->paths[end].from;
        while (id == t->unk_id && end < size && s->paths[next].id == t->unk_id) { /* fused */
            end = next;
            next = s->paths[end].from;
        }
        BASE_TRY(append(t, word + at, end - at, id, out, error));
        at = end;
        end = next;
    }
    if (s->path_capacity > 1 << 20) { /* gives back what a very long word took */
        free(s->paths);
        s->paths = NULL;
        s->path_capacity = 0;
    }
    return SIFR_OK;
}
