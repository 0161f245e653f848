/* WordPiece: the longest token that a word begins with, then the longest that goes on, …; a word
 * that does not come out is unknown as a whole. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

sifr_status text_wordpiece_read(text_tokenizer *t, const json_t *model, const char *name,
                                sifr_error *error) {
    const char *unknown, *prefix;
    int64_t characters;
    BASE_TRY(base_json_string(model, "continuing_subword_prefix", "##", &prefix, name, error));
    BASE_TRY(base_json_int(model, "max_input_chars_per_word", 100, &characters, name, error));
    BASE_TRY(base_json_string(model, "unk_token", "[UNK]", &unknown, name, error));
    if (characters < 0)
        return base_fail(error, SIFR_USAGE, "%s: max_input_chars_per_word is %lld", name,
                         (long long)characters);
    t->word_characters = (size_t)characters;
    t->unk_id = text_tokenizer_id(t, unknown);
    size_t count = t->words.count, size, prefix_size = strlen(prefix), starts = 0, rest = 0;
    text_prefix *list;
    BASE_TRY(base_alloc(2 * count + 1, sizeof *list, &list, error));
    for (size_t i = 0; i < count; i++) { /* a word may begin with a token that goes on words */
        const uint8_t *bytes = text_table_bytes(&t->words, i, &size);
        if (!size) continue;
        list[starts++] = (text_prefix){bytes, size, t->word_ids[i]};
        if (size > prefix_size && memcmp(bytes, prefix, prefix_size) == 0)
            list[count + rest++] =
                (text_prefix){bytes + prefix_size, size - prefix_size, t->word_ids[i]};
    }
    sifr_status status = text_prefixes_build(&t->prefixes, list, starts, error);
    if (status == SIFR_OK)
        status = text_prefixes_build(&t->continuations, list + count, rest, error);
    free(list);
    return status;
}

static size_t characters_of(const uint8_t *word, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += (word[i] & 0xC0) != 0x80;
    return count;
}

static sifr_status append(text_tokenizer_ids *out, int32_t id, sifr_error *error) {
    BASE_TRY(base_grow(&out->ids, &out->capacity, out->count + 1, sizeof *out->ids, error));
    out->ids[out->count++] = id;
    return SIFR_OK;
}

sifr_status text_wordpiece_word(const text_tokenizer *t, const uint8_t *word, size_t size,
                                text_tokenizer_ids *out, sifr_error *error) {
    size_t before = out->count, at = 0;
    bool known = characters_of(word, size) <= t->word_characters;
    while (known && at < size) {
        const text_prefixes *trie = at ? &t->continuations : &t->prefixes;
        uint32_t node = 0;
        int32_t best = -1;
        size_t end = at;
        for (size_t i = at; i < size && (node = text_prefixes_step(trie, node, word[i])); i++) {
            if (trie->nodes[node].value >= 0) best = trie->nodes[node].value, end = i + 1;
        }
        known = best >= 0;
        if (known) BASE_TRY(append(out, best, error));
        at = end;
    }
    if (known) return SIFR_OK;
    out->count = before;
    if (t->unk_id >= 0) return append(out, t->unk_id, error);
    return base_fail(error, SIFR_FAILED,
                     "the text holds \"%.*s\", for which the tokenizer has no tokens and no "
                     "unk_token",
                     (int)(size < 60 ? size : 60), (const char *)word);
}
