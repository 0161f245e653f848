/* Added tokens: found in the text before the pre-tokenizer, leftmost first, then longest. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

static sifr_status read_token(text_added_token *token, const json_t *part, size_t index,
                              const char *name, sifr_error *error) {
    char where[SIFR_ERROR_LENGTH / 2];
    const char *content;
    int64_t id;
    snprintf(where, sizeof where, "%.400s: added_tokens[%zu]", name, index);
    if (!json_is_object(part)) return base_fail(error, SIFR_USAGE, "%s: no object", where);
    BASE_TRY(base_json_string(part, "content", NULL, &content, where, error));
    BASE_TRY(base_json_int(part, "id", -1, &id, where, error));
    if (!content || !*content)
        return base_fail(error, SIFR_USAGE, "%s: \"content\" is missing or empty", where);
    if (id < 0 || id > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "%s: \"id\" must be 0 or more, and is %lld", where,
                         (long long)id);
    token->size = strlen(content);
    if (token->size > TEXT_ADDED_LENGTH)
        return base_fail(error, SIFR_USAGE, "%s: \"content\" is longer than %d bytes", where,
                         TEXT_ADDED_LENGTH);
    token->id = (int32_t)id;
    BASE_TRY(base_json_bool(part, "single_word", false, &token->single_word, where, error));
    BASE_TRY(base_json_bool(part, "lstrip", false, &token->lstrip, where, error));
    BASE_TRY(base_json_bool(part, "rstrip", false, &token->rstrip, where, error));
    BASE_TRY(base_json_bool(part, "special", false, &token->special, where, error));
    BASE_TRY(base_json_bool(part, "normalized", !token->special, &token->normalized, where, error));
    return base_copy_text(content, token->size, &token->content, error);
}

sifr_status text_tokenizer_read_added(text_tokenizer *t, const json_t *list, const char *name,
                                      sifr_error *error) {
    if (!list || json_is_null(list)) return SIFR_OK;
    if (!json_is_array(list))
        return base_fail(error, SIFR_USAGE, "%s: added_tokens must be an array", name);
    BASE_TRY(base_alloc(json_array_size(list), sizeof *t->added, &t->added, error));
    for (size_t i = 0; i < json_array_size(list); i++) {
        text_added_token *token = &t->added[t->added_count];
        BASE_TRY(read_token(token, json_array_get(list, i), i, name, error));
        t->added_count++;
        /* A blank or line end behind a letter or so inside of a token, or one that a token takes
         * along, must not be where a text is cut. */
        if (token->rstrip || strpbrk(token->content, " \n")) t->no_cut = true;
    }
    return SIFR_OK;
}

static sifr_status insert(text_trie *trie, const uint8_t *bytes, size_t size, int32_t token,
                          sifr_error *error) {
    uint32_t at = 0;
    for (size_t i = 0; i < size; i++) {
        uint32_t child = trie->count ? trie->nodes[at].child : 0;
        while (child && trie->nodes[child].byte != bytes[i]) child = trie->nodes[child].sibling;
        if (!child) {
            if (trie->count > UINT32_MAX - 2) return base_fail_alloc(error, SIZE_MAX);
            size_t first = trie->count ? trie->count : 1;
            BASE_TRY(
                base_grow(&trie->nodes, &trie->capacity, first + 1, sizeof *trie->nodes, error));
            if (!trie->count) trie->nodes[0] = (text_trie_node){.token = -1};
            child = (uint32_t)first;
            trie->nodes[child] =
                (text_trie_node){.sibling = trie->nodes[at].child, .token = -1, .byte = bytes[i]};
            trie->nodes[at].child = child;
            trie->count = first + 1;
        }
        at = child;
    }
    if (trie->nodes[at].token < 0) trie->nodes[at].token = token;
    return SIFR_OK;
}

static void finish(text_trie *trie) {
    int kinds = 0;
    trie->only = -1;
    for (uint32_t child = trie->count ? trie->nodes[0].child : 0; child;
         child = trie->nodes[child].sibling) {
        trie->root[trie->nodes[child].byte] = child;
        trie->only = trie->nodes[child].byte;
        kinds++;
    }
    if (kinds != 1) trie->only = -1;
}

sifr_status text_tokenizer_build_tries(text_tokenizer *t, sifr_error *error) {
    text_normalizer_state normal = {0};
    sifr_status status = SIFR_OK;
    for (int special = 1; special >= 0; special--) { /* of two alike, a special one is first */
        for (size_t i = 0; i < t->added_count; i++) {
            text_added_token *token = &t->added[i];
            const uint8_t *bytes = (const uint8_t *)token->content;
            size_t size = token->size;
            if (token->special != (special == 1)) continue;
            if (token->normalized) {
                BASE_TRY_GOTO(status,
                              text_normalizer_apply(&t->normalizer, &t->unicode, &normal,
                                                    (text_normalizer_place){false, false}, &bytes,
                                                    &size, error),
                              done);
                if (size > 4 * TEXT_ADDED_LENGTH) {
                    status = base_fail(error, SIFR_USAGE,
                                       "the added token \"%.60s\" has %zu bytes when normalized",
                                       token->content, size);
                    goto done;
                }
                if (size != token->size || memcmp(bytes, token->content, size) != 0) {
                    token->normal_size = size;
                    BASE_TRY_GOTO(status,
                                  base_copy_text((const char *)bytes, size, &token->normal, error),
                                  done);
                }
                if (!size) continue; /* nothing is left of it that a text could hold */
            }
            BASE_TRY_GOTO(
                status,
                insert(token->normalized ? &t->normal : &t->raw, bytes, size, (int32_t)i, error),
                done);
        }
    }
    finish(&t->raw);
    finish(&t->normal);
done:
    text_normalizer_state_free(&normal);
    return status;
}

static bool space_at(const text_tokenizer *t, const uint8_t *p, size_t *length) {
    uint32_t c = text_utf8_get(p, length);
    return (text_unicode_flags(&t->unicode, c) & TEXT_CLASS) == TEXT_SPACE;
}

/* Whether the match may stand, and its bounds with the white space that it takes along. */
static bool accept(const text_tokenizer *t, const text_added_token *token, const uint8_t *text,
                   size_t size, size_t floor, size_t *start, size_t *stop) {
    size_t length;
    if (token->single_word) {
        if (*start > 0 &&
            text_unicode_is_word(text_utf8_get(text_utf8_back(text + *start, text), &length)))
            return false;
        if (*stop < size && text_unicode_is_word(text_utf8_get(text + *stop, &length)))
            return false;
    }
    while (token->lstrip && *start > floor) {
        const uint8_t *before = text_utf8_back(text + *start, text);
        if (!space_at(t, before, &length)) break;
        *start = (size_t)(before - text);
    }
    while (token->rstrip && *stop < size && space_at(t, text + *stop, &length)) *stop += length;
    return true;
}

const text_added_token *text_tokenizer_match(const text_tokenizer *t, const text_trie *trie,
                                             const uint8_t *text, size_t size, size_t floor,
                                             size_t *resume, size_t *start, size_t *stop) {
    if (!trie->count) return NULL;
    for (size_t i = *resume; i < size; i++) {
        if (trie->only >= 0) {
            const uint8_t *found = memchr(text + i, trie->only, size - i);
            if (!found) return NULL;
            i = (size_t)(found - text);
        }
        uint32_t at = trie->root[text[i]];
        int32_t best = -1;
        for (size_t j = i + 1; at; j++) {
            if (trie->nodes[at].token >= 0) best = trie->nodes[at].token, *stop = j;
            if (j == size) break;
            at = trie->nodes[at].child;
            while (at && trie->nodes[at].byte != text[j]) at = trie->nodes[at].sibling;
        }
        if (best < 0) continue;
        *start = i;
        *resume = *stop;
        if (accept(t, &t->added[best], text, size, floor, start, stop)) return &t->added[best];
        i = *resume - 1;
    }
    return NULL;
}

bool text_tokenizer_strips_behind(const text_tokenizer *t, int32_t id) {
    for (size_t i = 0; i < t->added_count; i++)
        if (t->added[i].id == id) return t->added[i].rstrip;
    return false;
}
