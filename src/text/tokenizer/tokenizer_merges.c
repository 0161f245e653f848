/* The merges of a BPE, of bytes or, for WordPiece, of characters: the most frequent pair first, of
 * equals the one with the smallest ids. A heap holds each pair with the count it had when it was
 * put in and the words where it was new then; an entry whose count has changed goes back with the
 * right one. This bookkeeping decides which merges come out in rare cases (two merges that spell
 * the same token), so that it follows the library's to the letter. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_train_internal.h"

typedef struct places {
    uint32_t *words;
    size_t count, capacity;
} places;

typedef struct pair {
    uint64_t key; /* left id << 32 | right id */
    int64_t count;
    places fresh;   /* words where this step made it */
    bool collected; /* it is in the list of pairs that this step made */
} pair;

typedef struct candidate {
    int64_t count;
    uint64_t key;
    places where;
} candidate;

typedef struct state {
    text_tokenizer_trainer *trainer;
    pair *pairs;
    size_t pair_count, pair_capacity;
    uint32_t *slots; /* pair + 1, or 0 */
    size_t slot_count;
    candidate *heap;
    size_t heap_count, heap_capacity;
    uint32_t *made; /* pairs with fresh places */
    size_t made_count, made_capacity;
    int32_t *symbols; /* of all words, one after another */
    size_t *starts;
    uint32_t *lengths;
} state;

static size_t slot_of(const state *s, uint64_t key) {
    size_t mask = s->slot_count - 1, at = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (s->slots[at] && s->pairs[s->slots[at] - 1].key != key) at = (at + 1) & mask;
    return at;
}

static sifr_status find_pair(state *s, uint64_t key, size_t *index, sifr_error *error) {
    if (s->pair_count * 2 >= s->slot_count) {
        size_t count = s->slot_count ? s->slot_count * 2 : 4096;
        uint32_t *slots;
        BASE_TRY(base_alloc(count, sizeof *slots, &slots, error));
        free(s->slots);
        s->slots = slots;
        s->slot_count = count;
        for (size_t i = 0; i < s->pair_count; i++)
            s->slots[slot_of(s, s->pairs[i].key)] = (uint32_t)i + 1;
    }
    size_t at = slot_of(s, key);
    if (!s->slots[at]) {
        if (s->pair_count >= UINT32_MAX - 1) return base_fail_alloc(error, SIZE_MAX);
        BASE_TRY(
            base_grow(&s->pairs, &s->pair_capacity, s->pair_count + 1, sizeof *s->pairs, error));
        s->pairs[s->pair_count++] = (pair){.key = key};
        s->slots[at] = (uint32_t)s->pair_count;
    }
    *index = s->slots[at] - 1;
    return SIFR_OK;
}

/* Adds to the count of (left, right); where it grows, the word is one of its fresh places. */
static sifr_status change(state *s, int32_t left, int32_t right, int64_t by, uint32_t word,
                          sifr_error *error) {
    size_t index;
    BASE_TRY(find_pair(s, (uint64_t)(uint32_t)left << 32 | (uint32_t)right, &index, error));
    pair *p = &s->pairs[index];
    p->count += by;
    if (by <= 0) return SIFR_OK;
    if (!p->collected) {
        BASE_TRY(base_grow(&s->made, &s->made_capacity, s->made_count + 1, sizeof *s->made, error));
        s->made[s->made_count++] = (uint32_t)index;
        p->collected = true;
    }
    places *fresh = &p->fresh;
    if (fresh->count && fresh->words[fresh->count - 1] == word) return SIFR_OK;
    if (fresh->count == fresh->capacity) { /* most pairs are in one or two words */
        size_t capacity = fresh->capacity ? fresh->capacity * 2 : 2;
        uint32_t *words = realloc(fresh->words, capacity * sizeof *words);
        if (!words) return base_fail_alloc(error, capacity * sizeof *words);
        fresh->words = words;
        fresh->capacity = capacity;
    }
    fresh->words[fresh->count++] = word;
    return SIFR_OK;
}

static bool comes_first(const candidate *a, const candidate *b) {
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static sifr_status push(state *s, candidate c, sifr_error *error) {
    BASE_TRY(base_grow(&s->heap, &s->heap_capacity, s->heap_count + 1, sizeof *s->heap, error));
    size_t at = s->heap_count++;
    while (at > 0 && comes_first(&c, &s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = c;
    return SIFR_OK;
}

static candidate pop(state *s) {
    candidate top = s->heap[0], value = s->heap[--s->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= s->heap_count) break;
        if (child + 1 < s->heap_count && comes_first(&s->heap[child + 1], &s->heap[child])) child++;
        if (!comes_first(&s->heap[child], &value)) break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    if (s->heap_count) s->heap[at] = value;
    return top;
}

/* The pairs that the last step made go into the heap. */
static sifr_status collect(state *s, sifr_error *error) {
    for (size_t i = 0; i < s->made_count; i++) {
        pair *p = &s->pairs[s->made[i]];
        if (p->count > 0)
            BASE_TRY(push(s, (candidate){p->count, p->key, p->fresh}, error));
        else
            free(p->fresh.words);
        p->fresh = (places){0};
        p->collected = false;
    }
    s->made_count = 0;
    return SIFR_OK;
}

/* Replaces left right by `made` in one word, left to right, and counts the pairs anew. */
static sifr_status merge_in(state *s, uint32_t word, int32_t left, int32_t right, int32_t made,
                            sifr_error *error) {
    int32_t *symbols = s->symbols + s->starts[word];
    uint32_t length = s->lengths[word], kept = 0;
    int64_t count = s->trainer->counts[word];
    for (uint32_t i = 0; i < length; i++) {
        if (symbols[i] != left || i + 1 == length || symbols[i + 1] != right) {
            symbols[kept++] = symbols[i];
            continue;
        }
        if (kept > 0) {
            BASE_TRY(change(s, symbols[kept - 1], left, -count, word, error));
            BASE_TRY(change(s, symbols[kept - 1], made, count, word, error));
        }
        if (i + 2 < length) {
            BASE_TRY(change(s, right, symbols[i + 2], -count, word, error));
            BASE_TRY(change(s, made, symbols[i + 2], count, word, error));
        }
        symbols[kept++] = made;
        i++;
    }
    s->lengths[word] = kept;
    return SIFR_OK;
}

static void begin_with_bytes(state *s) {
    const text_table *words = &s->trainer->words;
    int32_t ids[256];
    for (int b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        ids[b] = (int32_t)text_table_find(&s->trainer->tokens, &byte, 1);
    }
    for (size_t i = 0; i < words->byte_count; i++) s->symbols[i] = ids[words->bytes[i]];
    for (size_t w = 0; w < words->count; w++) s->lengths[w] = words->items[w].size;
}

/* The characters of each word; those that do not begin it are tokens with ## in front. */
static sifr_status begin_with_characters(state *s, sifr_error *error) {
    const text_table *words = &s->trainer->words;
    for (size_t w = 0; w < words->count; w++) {
        size_t size, length, count = 0, index;
        const uint8_t *bytes = text_table_bytes(words, w, &size);
        char text[8] = "##";
        for (size_t i = 0; i < size; i += length) {
            bool added;
            text_utf8_get(bytes + i, &length);
            memcpy(text + 2, bytes + i, length);
            const char *begin = i == 0 ? text + 2 : text;
            BASE_TRY(text_table_add(&s->trainer->tokens, begin, length + (i == 0 ? 0 : 2), &index,
                                    &added, error));
            s->symbols[words->items[w].offset + count++] = (int32_t)index;
        }
        s->lengths[w] = (uint32_t)count;
    }
    return SIFR_OK;
}

static sifr_status begin(state *s, sifr_error *error) {
    const text_table *words = &s->trainer->words;
    BASE_TRY(base_alloc(words->byte_count + 1, sizeof *s->symbols, &s->symbols, error));
    BASE_TRY(base_alloc(words->count, sizeof *s->starts, &s->starts, error));
    BASE_TRY(base_alloc(words->count, sizeof *s->lengths, &s->lengths, error));
    if (s->trainer->type == TEXT_TRAIN_WORDPIECE)
        BASE_TRY(begin_with_characters(s, error));
    else
        begin_with_bytes(s);
    for (size_t w = 0; w < words->count; w++) {
        const int32_t *symbols = s->symbols + (s->starts[w] = words->items[w].offset);
        for (uint32_t i = 0; i + 1 < s->lengths[w]; i++)
            BASE_TRY(
                change(s, symbols[i], symbols[i + 1], s->trainer->counts[w], (uint32_t)w, error));
    }
    return collect(s, error);
}

/* The id of the token that the two spell together: new, or one that other merges made before. */
static sifr_status join(state *s, int32_t left, int32_t right, text_tokenizer_text *text,
                        int32_t *made, sifr_error *error) {
    text_tokenizer_trainer *t = s->trainer;
    int32_t parts[2] = {left, right};
    size_t index;
    bool added;
    text->count = 0;
    for (int i = 0; i < 2; i++) {
        size_t size;
        const uint8_t *bytes = text_table_bytes(&t->tokens, (size_t)parts[i], &size);
        if (i && t->type == TEXT_TRAIN_WORDPIECE && size > 2 && memcmp(bytes, "##", 2) == 0) {
            bytes += 2;
            size -= 2;
        }
        BASE_TRY(text_tokenizer_text_append(text, bytes, size, error));
    }
    BASE_TRY(text_table_add(&t->tokens, text->bytes, text->count, &index, &added, error));
    *made = (int32_t)index;
    BASE_TRY(
        base_grow(&t->merges, &t->merge_capacity, t->merge_count + 1, sizeof *t->merges, error));
    t->merges[t->merge_count++] = (text_train_merge){left, right};
    return SIFR_OK;
}

static sifr_status step(state *s, candidate top, text_tokenizer_text *text, sifr_error *error) {
    int32_t left = (int32_t)(top.key >> 32), right = (int32_t)(uint32_t)top.key, made;
    BASE_TRY(join(s, left, right, text, &made, error));
    for (size_t i = 0; i < top.where.count; i++)
        BASE_TRY(merge_in(s, top.where.words[i], left, right, made, error));
    return collect(s, error);
}

/* A pair can be merged twice where two merges spell one token: the last is what the file keeps. */
static sifr_status drop_repeated(text_tokenizer_trainer *t, sifr_error *error) {
    text_table seen = {0};
    size_t kept = t->merge_count, index;
    bool added;
    sifr_status status = SIFR_OK;
    for (size_t i = t->merge_count; i-- > 0;) {
        BASE_TRY_GOTO(
            status,
            text_table_add(&seen, &t->merges[i], sizeof t->merges[i], &index, &added, error), done);
        if (added) t->merges[--kept] = t->merges[i];
    }
    t->merge_count -= kept;
    memmove(t->merges, t->merges + kept, t->merge_count * sizeof *t->merges);
done:
    text_table_free(&seen);
    return status;
}

sifr_status text_train_merges(text_tokenizer_trainer *t, sifr_error *error) {
    state s = {.trainer = t};
    text_tokenizer_text text = {0};
    sifr_status status = SIFR_OK;
    BASE_TRY_GOTO(status, begin(&s, error), done);
    while ((int64_t)t->tokens.count < t->options.vocab_size && s.heap_count) {
        candidate top = pop(&s);
        size_t index;
        status = find_pair(&s, top.key, &index, error);
        int64_t count = status == SIFR_OK ? s.pairs[index].count : 0;
        if (status == SIFR_OK && count != top.count) {
            top.count = count;
            status = push(&s, top, error);
            if (status == SIFR_OK) continue;
        }
        bool over = top.count < 1 || top.count < t->options.min_frequency;
        if (status == SIFR_OK && !over) status = step(&s, top, &text, error);
        free(top.where.words);
        if (over || status != SIFR_OK) break;
    }
    if (status == SIFR_OK && t->merge_count) status = drop_repeated(t, error);
done:
    for (size_t i = 0; i < s.heap_count; i++) free(s.heap[i].where.words);
    for (size_t i = 0; i < s.pair_count; i++) free(s.pairs[i].fresh.words);
    free(s.pairs);
    free(s.slots);
    free(s.heap);
    free(s.made);
    free(s.symbols);
    free(s.starts);
    free(s.lengths);
    text_tokenizer_text_free(&text);
    return status;
}
