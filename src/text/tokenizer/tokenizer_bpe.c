/* One piece of text to ids, through a cache of words; and BPE's merges: the pair with the lowest
 * rank first, the leftmost of equals. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { SHORT_WORD = 96 }; /* symbols up to which a plain search for the lowest rank is quickest */

static uint32_t rank_of(const text_tokenizer *t, int32_t left, int32_t right) {
    const text_merge_slot *slot = text_find_merge(t, left, right);
    return slot ? slot->rank : TEXT_NO_MERGE;
}

/* ids[count], ranks[i] = rank of the pair (i, i + 1); returns the number of ids left. */
static size_t merge_short(const text_tokenizer *t, int32_t *ids, uint32_t *ranks, size_t count) {
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            if (ranks[i] < ranks[best]) best = i;
        }
        if (ranks[best] == TEXT_NO_MERGE) break;
        ids[best] = t->merge_ids[ranks[best]];
        count--;
        for (size_t i = best + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            ranks[i - 1] = ranks[i];
        }
        if (best > 0) ranks[best - 1] = rank_of(t, ids[best - 1], ids[best]);
        if (best + 1 < count) ranks[best] = rank_of(t, ids[best], ids[best + 1]);
    }
    return count;
}

static void sift_down(uint64_t *heap, size_t count, size_t at) {
    uint64_t value = heap[at];
    for (;;) {
        size_t child = at * 4 + 1, least = child, end = child + 4 < count ? child + 4 : count;
        if (child >= count) break;
        for (size_t i = child + 1; i < end; i++) {
            if (heap[i] < heap[least]) least = i;
        }
        if (heap[least] >= value) break;
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = value;
}

static void push(uint64_t *heap, size_t *count, uint64_t value) {
    size_t at = (*count)++;
    while (at > 0 && heap[(at - 1) / 4] > value) {
        heap[at] = heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap[at] = value;
}

/* The same with a list of neighbours and a heap of (rank, place): O(n log n). Each merge takes one
 * entry out and puts at most two in, so that 2 count entries are room enough. */
static size_t merge_long(const text_tokenizer *t, text_tokenizer_scratch *s, size_t count) {
    int32_t *ids = s->ids, *next = s->next, *previous = s->previous, last = (int32_t)count;
    uint32_t *ranks = s->ranks;
    uint64_t *heap = s->heap;
    size_t entries = 0, kept = 0;
    ranks[count - 1] = TEXT_NO_MERGE;
    for (int32_t i = 0; i < last; i++) {
        next[i] = i + 1;
        previous[i] = i - 1;
        if (ranks[i] != TEXT_NO_MERGE) heap[entries++] = (uint64_t)ranks[i] << 32 | (uint32_t)i;
    }
    for (size_t i = entries / 4 + 1; i-- > 0;) {
        if (i < entries) sift_down(heap, entries, i);
    }
    while (entries) {
        uint32_t rank = (uint32_t)(heap[0] >> 32);
        int32_t at = (int32_t)(uint32_t)heap[0], gone, before, after;
        heap[0] = heap[--entries];
        if (entries) sift_down(heap, entries, 0);
        if (ranks[at] != rank) continue; /* merged away or changed since */
        gone = next[at], after = next[gone], before = previous[at];
        ids[at] = t->merge_ids[rank];
        ranks[gone] = TEXT_NO_MERGE;
        ranks[at] = TEXT_NO_MERGE;
        ids[gone] = -1;
        next[at] = after;
        if (after < last) {
            previous[after] = at;
            ranks[at] = rank_of(t, ids[at], ids[after]);
            if (ranks[at] != TEXT_NO_MERGE)
                push(heap, &entries, (uint64_t)ranks[at] << 32 | (uint32_t)at);
        }
        if (before >= 0) {
            ranks[before] = rank_of(t, ids[before], ids[at]);
            if (ranks[before] != TEXT_NO_MERGE)
                push(heap, &entries, (uint64_t)ranks[before] << 32 | (uint32_t)before);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= 0) ids[kept++] = ids[i];
    }
    return kept;
}

static sifr_status reserve(text_tokenizer_scratch *s, size_t size, sifr_error *error) {
    size_t capacity = s->capacity, links = s->link_capacity;
    if (size > INT32_MAX / 2)
        return base_fail(error, SIFR_FAILED,
                         "a single word of %zu bytes: split the text, words go up to 1 GiB", size);
    if (size > capacity) {
        BASE_TRY(base_grow(&s->ids, &capacity, size, sizeof *s->ids, error));
        capacity = s->capacity;
        BASE_TRY(base_grow(&s->ranks, &capacity, size, sizeof *s->ranks, error));
        s->capacity = capacity;
    }
    if (size > SHORT_WORD && size > links) {
        BASE_TRY(base_grow(&s->next, &links, size, sizeof *s->next, error));
        links = s->link_capacity;
        BASE_TRY(base_grow(&s->previous, &links, size, sizeof *s->previous, error));
        links = s->link_capacity * 2;
        BASE_TRY(base_grow(&s->heap, &links, size * 2, sizeof *s->heap, error));
        s->link_capacity = links / 2;
    }
    return SIFR_OK;
}

/* Gives back what a very long word took. */
static void shrink(text_tokenizer_scratch *s) {
    if (s->capacity < 1 << 20) return;
    free(s->ids), free(s->ranks), free(s->next), free(s->previous), free(s->heap);
    s->ids = s->next = s->previous = NULL;
    s->ranks = NULL;
    s->heap = NULL;
    s->capacity = s->link_capacity = 0;
}

static sifr_status append_ids(text_tokenizer_ids *out, const int32_t *ids, size_t count,
                              sifr_error *error) {
    BASE_TRY(base_grow(&out->ids, &out->capacity, out->count + count, sizeof *ids, error));
    memcpy(out->ids + out->count, ids, count * sizeof *ids);
    out->count += count;
    return SIFR_OK;
}

/* The word's bytes as ids; bytes without a token become unk_token, or are refused. */
static sifr_status begin_word(const text_tokenizer *t, text_tokenizer_scratch *s,
                              const uint8_t *word, size_t size, size_t *count, sifr_error *error) {
    bool was_unknown = false, plain = true;
    *count = 0;
    for (size_t i = 0; i < size; i++) {
        int32_t id = t->byte_ids[word[i]];
        if (id >= 0) {
            s->ids[(*count)++] = id;
            was_unknown = false;
            continue;
        }
        plain = false;
        if (t->unk_id < 0)
            return base_fail(error, SIFR_FAILED,
                             "the text holds the byte 0x%02X, for which the tokenizer has no token "
                             "and no unk_token",
                             word[i]);
        if (!was_unknown || !t->fuse_unk) s->ids[(*count)++] = t->unk_id;
        was_unknown = true;
    }
    for (size_t i = 0; i + 1 < *count; i++)
        s->ranks[i] = plain ? t->byte_pairs[word[i] << 8 | word[i + 1]]
                            : rank_of(t, s->ids[i], s->ids[i + 1]);
    return SIFR_OK;
}

static sifr_status merge_word(const text_tokenizer *t, text_tokenizer_scratch *s,
                              const uint8_t *word, size_t size, text_tokenizer_ids *out,
                              sifr_error *error) {
    size_t count;
    if (t->ignore_merges) {
        size_t index = text_table_find(&t->words, word, size);
        if (index != SIZE_MAX) return append_ids(out, &t->word_ids[index], 1, error);
    }
    BASE_TRY(reserve(s, size, error));
    if (t->model == TEXT_MODEL_CHARACTERS) {
        BASE_TRY(text_characters_begin(t, word, size, s->ids, &count, error));
        for (size_t i = 0; i + 1 < count; i++) s->ranks[i] = rank_of(t, s->ids[i], s->ids[i + 1]);
    } else {
        BASE_TRY(begin_word(t, s, word, size, &count, error));
    }
    if (count > SHORT_WORD)
        count = merge_long(t, s, count);
    else if (count > 1)
        count = merge_short(t, s->ids, s->ranks, count);
    sifr_status status = append_ids(out, s->ids, count, error);
    shrink(s);
    return status;
}

static sifr_status look_up_word(const text_tokenizer *t, text_tokenizer_scratch *s,
                                const uint8_t *word, size_t size, text_tokenizer_ids *out,
                                sifr_error *error) {
    if (t->model == TEXT_MODEL_WORDPIECE) return text_wordpiece_word(t, word, size, out, error);
    if (t->model == TEXT_MODEL_UNIGRAM) return text_unigram_word(t, s, word, size, out, error);
    return merge_word(t, s, word, size, out, error);
}

/* The word's bytes in three words, zeroes behind; `limit` tells how far memory may be read. */
static inline void key_of(const uint8_t *word, size_t size, const uint8_t *limit, uint64_t key[3]) {
    if (limit - word >= TEXT_CACHE_WORD)
        memcpy(key, word, TEXT_CACHE_WORD);
    else
        memset(key, 0, TEXT_CACHE_WORD), memcpy(key, word, size);
    for (size_t i = 0; i < 3; i++) {
        size_t inside = size > i * 8 ? size - i * 8 : 0;
        if (inside < 8) key[i] &= ((uint64_t)1 << inside * 8) - 1;
    }
}

sifr_status text_tokenizer_word(const text_tokenizer *t, text_tokenizer_scratch *s,
                                const uint8_t *word, size_t size, const uint8_t *limit,
                                text_tokenizer_ids *out, sifr_error *error) {
    if (size > TEXT_CACHE_WORD) return look_up_word(t, s, word, size, out, error);
    uint64_t key[3];
    key_of(word, size, limit, key);
    uint64_t hash = (key[0] ^ size) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29 ^ key[1]) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 32 ^ key[2]) * 0x94D049BB133111EBu;
    text_cache_slot *slot = &s->cache[hash >> (64 - TEXT_CACHE_BITS)];
    text_cache_slot *other = &s->cache[(hash >> (64 - TEXT_CACHE_BITS)) ^ 1];
    if (slot->size != size || memcmp(slot->key, key, sizeof key) != 0) {
        if (other->size == size && memcmp(other->key, key, sizeof key) == 0) {
            slot = other;
        } else {
            size_t before = out->count;
            BASE_TRY(look_up_word(t, s, word, size, out, error));
            if (out->count - before <= TEXT_CACHE_IDS) {
                if (slot->size) *other = *slot; /* the older one of the two goes */
                memcpy(slot->key, key, sizeof key);
                slot->size = (uint8_t)size;
                slot->count = (uint8_t)(out->count - before);
                memcpy(slot->ids, out->ids + before, slot->count * sizeof *slot->ids);
            }
            return SIFR_OK;
        }
    }
    if (out->capacity - out->count < TEXT_CACHE_IDS)
        BASE_TRY(base_grow(&out->ids, &out->capacity, out->count + TEXT_CACHE_IDS, sizeof *out->ids,
                           error));
    memcpy(out->ids + out->count, slot->ids, sizeof slot->ids);
    out->count += slot->count;
    return SIFR_OK;
}
