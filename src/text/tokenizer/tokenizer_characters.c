/* BPE that begins with characters, as SentencePiece makes it: a character without a token becomes
 * the tokens <0x00> … <0xFF> of its bytes, or unk_token. The merges are those of tokenizer_bpe.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { DIRECT = 0x10000, AFFIX_AT_MOST = 256 };

void text_fallback_read(text_tokenizer *t) {
    for (int b = 0; b < 256; b++) {
        char content[8];
        snprintf(content, sizeof content, "<0x%02X>", (unsigned)b);
        size_t index = text_table_find(&t->words, content, 6);
        t->fallback_ids[b] = index == SIZE_MAX ? -1 : t->word_ids[index];
    }
}

static int32_t find(const text_tokenizer *t, const void *bytes, size_t size) {
    size_t index = text_table_find(&t->words, bytes, size);
    return index == SIZE_MAX ? -1 : t->word_ids[index];
}

sifr_status text_characters_read(text_tokenizer *t, sifr_error *error) {
    BASE_TRY(base_alloc(DIRECT, sizeof *t->character_ids, &t->character_ids, error));
    for (uint32_t c = 0; c < DIRECT; c++) {
        uint8_t bytes[4];
        t->character_ids[c] = -1;
        if (c >= 0xD800 && c < 0xE000) continue;
        t->character_ids[c] = find(t, bytes, text_utf8_put(c, bytes));
    }
    text_fallback_read(t);
    return SIFR_OK;
}

/* Whether no merge reaches from a character to a U+2581 behind it: then every run of these begins
 * a part that the model may take by itself. */
bool text_characters_separate(const text_tokenizer *t) {
    if (t->ignore_merges || *t->prefix || *t->suffix || t->character_ids[0x2581] < 0) return false;
    for (size_t i = 0; i <= t->slot_mask; i++) {
        const text_merge_slot *slot = &t->slots[i];
        if (slot->rank == TEXT_NO_MERGE) continue;
        const char *bytes = t->bytes + t->offsets[slot->id];
        size_t size = t->offsets[slot->id + 1] - t->offsets[slot->id];
        for (size_t k = 1; k + 3 <= size; k++) {
            if (memcmp(bytes + k, TEXT_MARK_TEXT, 3) == 0 &&
                (k < 3 || memcmp(bytes + k - 3, TEXT_MARK_TEXT, 3) != 0))
                return false;
        }
    }
    return true;
}

static int32_t character_id(const text_tokenizer *t, const uint8_t *p, size_t length, bool first,
                            bool last) {
    char whole[2 * AFFIX_AT_MOST + 4];
    size_t used = 0;
    if (!((!first && *t->prefix) || (last && *t->suffix))) {
        uint32_t c = text_utf8_get(p, &length);
        return c < DIRECT ? t->character_ids[c] : find(t, p, length);
    }
    if (!first) used = strlen(t->prefix), memcpy(whole, t->prefix, used);
    memcpy(whole + used, p, length);
    used += length;
    if (last) memcpy(whole + used, t->suffix, strlen(t->suffix)), used += strlen(t->suffix);
    return find(t, whole, used);
}

static bool falls_back(const text_tokenizer *t, const uint8_t *p, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (t->fallback_ids[p[i]] < 0) return false;
    }
    return t->byte_fallback;
}

/* An unknown character waits, where unknown ones are fused, for what follows; the bytes of others
 * do not end the wait. */
sifr_status text_characters_begin(const text_tokenizer *t, const uint8_t *word, size_t size,
                                  int32_t *ids, size_t *count, sifr_error *error) {
    bool unknown = false;
    *count = 0;
    for (size_t at = 0, length; at < size; at += length) {
        text_utf8_get(word + at, &length);
        int32_t id = character_id(t, word + at, length, at == 0, at + length == size);
        if (id >= 0) {
            if (unknown) ids[(*count)++] = t->unk_id;
            unknown = false;
            ids[(*count)++] = id;
        } else if (falls_back(t, word + at, length)) {
            for (size_t i = 0; i < length; i++) ids[(*count)++] = t->fallback_ids[word[at + i]];
        } else if (t->unk_id >= 0) {
            if (unknown && !t->fuse_unk) ids[(*count)++] = t->unk_id;
            unknown = true;
        } else {
            return base_fail(error, SIFR_FAILED,
                             "the text holds \"%.*s\", for which the tokenizer has no token and no "
                             "unk_token",
                             (int)length, (const char *)word + at);
        }
    }
    if (unknown) ids[(*count)++] = t->unk_id;
    return SIFR_OK;
}

sifr_status text_characters_piece(const text_tokenizer *t, text_tokenizer_scratch *s,
                                  const uint8_t *p, size_t size, const uint8_t *limit,
                                  text_tokenizer_ids *out, sifr_error *error) {
    const uint8_t *end = p + size;
    if (!t->separate) return text_tokenizer_word(t, s, p, size, limit, out, error);
    while (p < end) { /* marks, and what is not one up to the next */
        const uint8_t *q = p;
        while (end - q >= 3 && memcmp(q, TEXT_MARK_TEXT, 3) == 0) q += 3;
        while (q < end) {
            q = memchr(q, 0xE2, (size_t)(end - q));
            if (!q) q = end;
            if (end - q < 3 || memcmp(q, TEXT_MARK_TEXT, 3) == 0) break;
            q++;
        }
        if (end - q < 3) q = end;
        BASE_TRY(text_tokenizer_word(t, s, p, (size_t)(q - p), limit, out, error));
        p = q;
    }
    return SIFR_OK;
}
