/* The post-processor: which tokens go around one text, and around and between two. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

static sifr_status append(text_post *post, int32_t id, int64_t type, sifr_error *error) {
    BASE_TRY(base_grow(&post->items, &post->capacity, post->count + 1, sizeof *post->items, error));
    post->items[post->count++] = (text_post_item){id, (int32_t)type};
    return SIFR_OK;
}

static sifr_status append_token(const text_tokenizer *t, text_post *post, const json_t *id,
                                int64_t type, const char *name, sifr_error *error) {
    int64_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    size_t size;
    if (value < 0 || value >= t->vocab_size || !text_tokenizer_bytes(t, (int32_t)value, &size))
        return base_fail(error, SIFR_USAGE, "%s: post_processor: there is no token with id %lld",
                         name, (long long)value);
    return append(post, (int32_t)value, type, error);
}

/* "single" or "pair": [{"SpecialToken": {"id": NAME, "type_id": 0}} | {"Sequence": {"id": "A",
 * "type_id": 0}} …]; "special_tokens": {NAME: {"ids": […]}}. */
static sifr_status read_template(text_tokenizer *t, const json_t *part, const char *key,
                                 const char *name, text_post *post, sifr_error *error) {
    const json_t *list = json_object_get(part, key), *piece, *id;
    char where[SIFR_ERROR_LENGTH / 2];
    size_t i, j, texts[2] = {0, 0}, want = strcmp(key, "pair") == 0;
    snprintf(where, sizeof where, "%.400s: post_processor.%s", name, key);
    if (!json_is_array(list)) return base_fail(error, SIFR_USAGE, "%s must be an array", where);
    json_array_foreach(list, i, piece) {
        const json_t *token = json_object_get(piece, "SpecialToken");
        const json_t *text = json_object_get(piece, "Sequence");
        const char *which = json_string_value(json_object_get(token ? token : text, "id"));
        int64_t type;
        BASE_TRY(base_json_int(token ? token : text, "type_id", 0, &type, where, error));
        if (type < 0 || type > 255)
            return base_fail(error, SIFR_USAGE, "%s[%zu]: the type_id is %lld", where, i,
                             (long long)type);
        if (text) {
            int32_t second = which && strcmp(which, "B") == 0;
            texts[second]++;
            BASE_TRY(append(post, second ? TEXT_POST_SECOND : TEXT_POST_FIRST, type, error));
            continue;
        }
        const json_t *known = json_object_get(part, "special_tokens");
        const json_t *ids = which ? json_object_get(json_object_get(known, which), "ids") : NULL;
        if (!json_is_array(ids))
            return base_fail(error, SIFR_USAGE, "%s[%zu] names no known special token", where, i);
        json_array_foreach(ids, j, id) BASE_TRY(append_token(t, post, id, type, name, error));
    }
    if (texts[0] == 1 && texts[1] == want) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s must have one Sequence %s, not %zu and %zu", where,
                     want ? "A and one B" : "A", texts[0], texts[1]);
}

/* cls A sep, and cls A sep B sep, where Roberta has a second sep and no types. */
static sifr_status read_pair_of_tokens(text_tokenizer *t, const json_t *part, bool roberta,
                                       const char *name, sifr_error *error) {
    const json_t *cls = json_array_get(json_object_get(part, "cls"), 1);
    const json_t *sep = json_array_get(json_object_get(part, "sep"), 1);
    BASE_TRY(append_token(t, &t->single, cls, 0, name, error));
    BASE_TRY(append(&t->single, TEXT_POST_FIRST, 0, error));
    BASE_TRY(append_token(t, &t->single, sep, 0, name, error));
    BASE_TRY(append_token(t, &t->pair, cls, 0, name, error));
    BASE_TRY(append(&t->pair, TEXT_POST_FIRST, 0, error));
    BASE_TRY(append_token(t, &t->pair, sep, 0, name, error));
    if (roberta) BASE_TRY(append_token(t, &t->pair, sep, 0, name, error));
    BASE_TRY(append(&t->pair, TEXT_POST_SECOND, roberta ? 0 : 1, error));
    return append_token(t, &t->pair, sep, roberta ? 0 : 1, name, error);
}

/* What stands before and behind the one text. */
static sifr_status read_around(text_tokenizer *t, sifr_error *error) {
    bool behind = false;
    BASE_TRY(base_alloc(t->single.count + 1, sizeof *t->before, &t->before, error));
    BASE_TRY(base_alloc(t->single.count + 1, sizeof *t->after, &t->after, error));
    for (size_t i = 0; i < t->single.count; i++) {
        int32_t id = t->single.items[i].id;
        if (id < 0)
            behind = true;
        else if (behind)
            t->after[t->after_count++] = id;
        else
            t->before[t->before_count++] = id;
    }
    return SIFR_OK;
}

sifr_status text_tokenizer_read_post(text_tokenizer *t, const json_t *post, const char *name,
                                     sifr_error *error) {
    const json_t *list[TEXT_STEPS_AT_MOST];
    size_t count;
    bool seen = false;
    BASE_TRY(
        text_tokenizer_flatten(post, "post_processor", "processors", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_object_get(list[i], "type"));
        if (!type) type = "(no type)";
        if (strcmp(type, "ByteLevel") == 0) { /* only offsets into the text */
            t->trims |= !json_is_false(json_object_get(list[i], "trim_offsets"));
            continue;
        }
        bool roberta = strcmp(type, "RobertaProcessing") == 0;
        if (strcmp(type, "TemplateProcessing") == 0 && !seen) {
            BASE_TRY(read_template(t, list[i], "single", name, &t->single, error));
            if (json_array_size(json_object_get(list[i], "pair")))
                BASE_TRY(read_template(t, list[i], "pair", name, &t->pair, error));
        } else if ((roberta || strcmp(type, "BertProcessing") == 0) && !seen) {
            BASE_TRY(read_pair_of_tokens(t, list[i], roberta, name, error));
        } else {
            return text_tokenizer_refuse(error, name, "post_processor", type,
                                         "ByteLevel and one of TemplateProcessing, "
                                         "RobertaProcessing, BertProcessing");
        }
        seen = true;
    }
    if (!t->single.count) BASE_TRY(append(&t->single, TEXT_POST_FIRST, 0, error));
    if (!t->pair.count) {
        BASE_TRY(append(&t->pair, TEXT_POST_FIRST, 0, error));
        BASE_TRY(append(&t->pair, TEXT_POST_SECOND, 1, error));
    }
    return read_around(t, error);
}

bool text_tokenizer_trims(const text_tokenizer *t) {
    return t->trims;
}

const int32_t *text_tokenizer_around(const text_tokenizer *t, bool behind, size_t *count) {
    *count = behind ? t->after_count : t->before_count;
    return behind ? t->after : t->before;
}

/* Tokens are taken from the end of the longer text until both have `limit`; then from both. The
 * library's rule, to the letter. */
static void truncate_longest_first(size_t counts[2], size_t limit) {
    size_t less = counts[0] < counts[1] ? counts[0] : counts[1];
    size_t more = counts[0] < counts[1] ? counts[1] : counts[0];
    bool swapped = counts[0] > counts[1];
    if (counts[0] + counts[1] <= limit) return;
    more = less > limit ? less : less > limit - less ? less : limit - less;
    if (less + more > limit) {
        less = limit / 2;
        more = less + limit % 2;
    }
    counts[0] = swapped ? more : less;
    counts[1] = swapped ? less : more;
}

sifr_status text_tokenizer_encode_pair(const text_tokenizer *t, text_tokenizer_scratch *s,
                                       const text_tokenizer_pair *pair, text_tokenizer_ids *ids,
                                       text_tokenizer_ids *types, bool *truncated,
                                       sifr_error *error) {
    const text_post *post = pair->second ? &t->pair : &t->single;
    size_t counts[2] = {0, 0}, around = 0, texts = pair->second ? 2 : 1;
    for (size_t i = 0; i < post->count; i++) around += post->items[i].id >= 0;
    for (size_t i = 0; i < texts; i++) {
        s->pair[i].count = 0;
        BASE_TRY(text_tokenizer_encode(t, s, i ? pair->second : pair->first,
                                       i ? pair->second_size : pair->first_size, false, &s->pair[i],
                                       error));
        counts[i] = s->pair[i].count;
    }
    *truncated = false;
    if (pair->max_length > 0) {
        size_t length = (size_t)pair->max_length;
        if (length <= around)
            return base_fail(error, SIFR_USAGE,
                             "a length of %zu has no room for text: the tokenizer adds %zu tokens",
                             length, around);
        if (pair->second)
            truncate_longest_first(counts, length - around);
        else if (counts[0] > length - around)
            counts[0] = length - around;
        *truncated = counts[0] + counts[1] < s->pair[0].count + (texts == 2 ? s->pair[1].count : 0);
    }
    for (size_t i = 0; i < post->count; i++) {
        const text_post_item *item = &post->items[i];
        size_t which = item->id == TEXT_POST_SECOND, count = item->id < 0 ? counts[which] : 1;
        const int32_t *from = item->id < 0 ? s->pair[which].ids : &item->id;
        BASE_TRY(base_grow(&ids->ids, &ids->capacity, ids->count + count, sizeof *ids->ids, error));
        BASE_TRY(base_grow(&types->ids, &types->capacity, types->count + count, sizeof *types->ids,
                           error));
        if (count) memcpy(ids->ids + ids->count, from, count * sizeof *from);
        for (size_t k = 0; k < count; k++) types->ids[types->count + k] = item->type;
        ids->count += count;
        types->count += count;
    }
    return SIFR_OK;
}
