/* The merges of a tokenizer.json, as a table by pair. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

/* The id of a part of a merge, and its raw bytes appended to `joined`. */
static sifr_status merge_part(const text_tokenizer *t, const char *text, size_t size,
                              uint8_t *joined, size_t *used, size_t rank, const char *name,
                              int32_t *id, sifr_error *error) {
    size_t count = size, index = SIZE_MAX, affix = t->prefix && *used ? strlen(t->prefix) : 0;
    if (t->model == TEXT_MODEL_CHARACTERS) {
        index = text_table_find(&t->words, text, size);
        if (affix > size) affix = size; /* the prefix of what goes on goes */
        memcpy(joined + *used, text + affix, size - affix);
        count = size - affix;
    } else if (text_bytes_of_content(text, size, joined + *used, &count)) {
        index = text_table_find(&t->words, joined + *used, count);
    }
    if (index == SIZE_MAX)
        return base_fail(error, SIFR_USAGE,
                         "%s: merge %zu names \"%.*s\", which is not in model.vocab", name, rank,
                         (int)(size < 60 ? size : 60), text);
    *used += count;
    *id = t->word_ids[index];
    return SIFR_OK;
}

/* A merge as "a b" or ["a", "b"]. */
static sifr_status split_merge(const json_t *merge, size_t rank, const char *name,
                               const char *text[2], size_t size[2], sifr_error *error) {
    if (json_is_string(merge)) {
        const char *blank = strchr(json_string_value(merge), ' ');
        text[0] = json_string_value(merge);
        if (blank && !strchr(blank + 1, ' ')) {
            size[0] = (size_t)(blank - text[0]);
            text[1] = blank + 1;
            size[1] = strlen(text[1]);
            if (size[0] && size[1]) return SIFR_OK;
        }
    } else if (json_is_array(merge) && json_array_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++) {
            const json_t *part = json_array_get(merge, i);
            text[i] = json_string_value(part);
            size[i] = json_string_length(part);
        }
        if (text[0] && text[1] && size[0] && size[1]) return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE, "%s: merge %zu is neither \"a b\" nor [\"a\", \"b\"]", name,
                     rank);
}

static sifr_status enter_merge(text_tokenizer *t, int32_t left, int32_t right, uint32_t rank,
                               int32_t id, const char *name, sifr_error *error) {
    const text_merge_slot *there = text_find_merge(t, left, right);
    if (there)
        return base_fail(error, SIFR_USAGE, "%s: merges %u and %u join the same two tokens", name,
                         there->rank, rank);
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & t->slot_mask;
    while (t->slots[at].rank != TEXT_NO_MERGE) at = (at + 1) & t->slot_mask;
    t->slots[at] = (text_merge_slot){left, right, rank, id};
    t->merge_ids[rank] = id;
    return SIFR_OK;
}

static void fill_byte_pairs(text_tokenizer *t) {
    for (size_t a = 0; a < 256; a++) {
        for (size_t b = 0; b < 256; b++) {
            const text_merge_slot *slot = NULL;
            if (t->byte_ids[a] >= 0 && t->byte_ids[b] >= 0)
                slot = text_find_merge(t, t->byte_ids[a], t->byte_ids[b]);
            t->byte_pairs[a << 8 | b] = slot ? slot->rank : TEXT_NO_MERGE;
        }
    }
}

sifr_status text_tokenizer_read_merges(text_tokenizer *t, const json_t *merges, const char *name,
                                       sifr_error *error) {
    size_t count = json_array_size(merges), slots = 1024, capacity = 0;
    uint8_t *joined = NULL;
    sifr_status status = SIFR_OK;
    if (!json_is_array(merges))
        return base_fail(error, SIFR_USAGE, "%s: model.merges must be an array", name);
    while (slots < count * 2) slots *= 2;
    BASE_TRY(base_alloc(slots, sizeof *t->slots, &t->slots, error));
    for (size_t i = 0; i < slots; i++) t->slots[i].rank = TEXT_NO_MERGE;
    t->slot_mask = slots - 1;
    BASE_TRY(base_alloc(count + 1, sizeof *t->merge_ids, &t->merge_ids, error));
    BASE_TRY(base_alloc(65536, sizeof *t->byte_pairs, &t->byte_pairs, error));
    for (size_t rank = 0; rank < count; rank++) {
        const char *text[2] = {NULL, NULL};
        size_t size[2] = {0, 0}, used = 0;
        int32_t id[2];
        BASE_TRY_GOTO(
            status, split_merge(json_array_get(merges, rank), rank, name, text, size, error), done);
        BASE_TRY_GOTO(status, base_grow(&joined, &capacity, size[0] + size[1], 1, error), done);
        for (int i = 0; i < 2; i++) {
            BASE_TRY_GOTO(status,
                          merge_part(t, text[i], size[i], joined, &used, rank, name, &id[i], error),
                          done);
        }
        size_t whole = text_table_find(&t->words, joined, used);
        if (whole == SIZE_MAX) {
            status = base_fail(error, SIFR_USAGE,
                               "%s: merge %zu makes \"%.*s%.*s\", which is not in model.vocab",
                               name, rank, (int)(size[0] < 60 ? size[0] : 60), text[0],
                               (int)(size[1] < 60 ? size[1] : 60), text[1]);
            goto done;
        }
        BASE_TRY_GOTO(status,
                      enter_merge(t, id[0], id[1], (uint32_t)rank, t->word_ids[whole], name, error),
                      done);
    }
    if (t->model == TEXT_MODEL_BYTES) fill_byte_pairs(t);
done:
    free(joined);
    return status;
}
