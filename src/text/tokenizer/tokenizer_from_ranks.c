/* tiktoken's text form: lines of a token in base64 and its rank. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_files.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { RESERVED_LIMIT = 1 << 16 }; /* ids without a token, up to the largest that has one */

static int digit_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 with its padding into `out`, which has room; false where it is none. */
static bool decode_base64(const char *text, size_t size, uint8_t *out, size_t *count) {
    size_t padding = 0;
    *count = 0;
    if (!size || size % 4) return false;
    while (padding < 2 && text[size - 1 - padding] == '=') padding++;
    for (size_t i = 0; i < size; i += 4) {
        uint32_t bits = 0;
        size_t bytes = i + 4 == size ? 3 - padding : 3;
        for (size_t k = 0; k < 4; k++) {
            int value = k > bytes ? 0 : digit_value(text[i + k]);
            if (value < 0) return false;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k < bytes; k++) out[(*count)++] = (uint8_t)(bits >> (16 - 8 * k));
    }
    return true;
}

static size_t line_length(const char *text, size_t size) {
    const char *end = size ? memchr(text, '\n', size) : NULL;
    return end ? (size_t)(end - text) : size;
}

bool text_is_ranks(const char *text, size_t size) {
    size_t length = line_length(text, size), i = 0;
    while (i < length && (digit_value(text[i]) >= 0 || text[i] == '=')) i++;
    return i > 0 && i + 1 < length && text[i] == ' ' && text[i + 1] >= '0' && text[i + 1] <= '9';
}

/* The rank behind the blank at text[at]; -1 where it is none. */
static int64_t read_rank(const char *text, size_t at, size_t size) {
    int64_t rank = 0;
    if (at >= size || text[at] != ' ' || ++at == size) return -1;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
        rank = rank * 10 + (text[at] - '0');
        if (rank > INT32_MAX) return -1;
    }
    return at == size ? rank : -1;
}

/* Tokens and ranks of all lines, as words and their ids. */
static sifr_status read_lines(text_files *files, const char *text, size_t size, sifr_error *error) {
    uint8_t bytes[TEXT_PIECE_LENGTH];
    size_t number = 0, count;
    while (size) {
        size_t all = line_length(text, size), length = all, blank = 0;
        number++;
        if (length && text[length - 1] == '\r') length--;
        while (blank < length && text[blank] != ' ') blank++;
        if (length) {
            int64_t rank = read_rank(text, blank, length);
            if (blank > TEXT_PIECE_LENGTH || rank < 0 || !decode_base64(text, blank, bytes, &count))
                return base_fail(error, SIFR_USAGE,
                                 "%s: line %zu is no token in base64 and its rank",
                                 files->vocabulary_path, number);
            if (text_table_find(&files->words, bytes, count) != SIZE_MAX)
                return base_fail(error, SIFR_USAGE, "%s: line %zu: the token occurs before",
                                 files->vocabulary_path, number);
            BASE_TRY(text_files_add_word(files, (const char *)bytes, count, rank, error));
        }
        all += all < size;
        text += all;
        size -= all;
    }
    return SIFR_OK;
}

/* {"model": …} and, in the end, `words` as the byte alphabet spells them. */
static sifr_status set_ranks(text_files *files, sifr_error *error) {
    json_t *model = json_object_get(files->root, "model"), *merges = NULL, **names;
    json_t *vocabulary = json_object();
    text_table spelled = {0};
    text_tokenizer_text text = {0};
    size_t count = files->words.count, index;
    sifr_status status = base_alloc(count + 1, sizeof *names, &names, error);
    for (size_t i = 0; i < count && status == SIFR_OK; i++) {
        size_t size;
        bool added;
        const uint8_t *bytes = text_table_bytes(&files->words, i, &size);
        text.count = 0;
        status = text_content_of_bytes(bytes, size, &text, error);
        if (status == SIFR_OK)
            status = text_table_add(&spelled, text.bytes, text.count, &index, &added, error);
        if (status != SIFR_OK) break;
        names[i] = json_stringn(text.bytes, text.count);
        if (!names[i] || json_object_setn_new(vocabulary, text.bytes, text.count,
                                              json_integer((json_int_t)files->word_ids[i])))
            status = base_fail_alloc(error, text.count);
    }
    if (status == SIFR_OK) status = text_files_merges(files, names, true, NULL, &merges, error);
    if (status == SIFR_OK &&
        (json_object_set(model, "vocab", vocabulary) || json_object_set(model, "merges", merges)))
        status = base_fail_alloc(error, 64);
    if (status == SIFR_OK) { /* the ids stay where they are */
        text_table raw = files->words;
        files->words = spelled;
        spelled = raw;
    }
    for (size_t i = 0; names && i < count; i++) json_decref(names[i]);
    free(names);
    json_decref(vocabulary);
    json_decref(merges);
    text_table_free(&spelled);
    text_tokenizer_text_free(&text);
    return status;
}

/* The special tokens that the vocabulary goes on with: those of the decoder, with made-up ones
 * between them, then the others. */
static sifr_status add_special(text_files *files, sifr_error *error) {
    int64_t largest = 0, base = files->model_size;
    const json_t *pair;
    json_t *item, *list = json_array(), *by_id = json_object();
    sifr_status status = SIFR_OK;
    char key[32];
    size_t i;
    if (!list || !by_id) status = base_fail_alloc(error, 64);
    json_array_foreach(files->decoder, i, pair) {
        int64_t id = json_integer_value(json_array_get(pair, 0));
        if (id > largest) largest = id;
        snprintf(key, sizeof key, "%lld", (long long)id);
        json_object_set_new(by_id, key, json_string(text_token_content(json_array_get(pair, 1))));
    }
    if (status == SIFR_OK && largest >= base + RESERVED_LIMIT)
        status = base_fail(error, SIFR_USAGE,
                           "%s: id %lld in \"added_tokens_decoder\" is far beyond the %lld tokens "
                           "of %s",
                           files->config_path, (long long)largest, (long long)base,
                           files->vocabulary_path);
    json_t *taken = json_object();
    for (int64_t id = base; id <= largest && status == SIFR_OK; id++) {
        char name[64];
        snprintf(key, sizeof key, "%lld", (long long)id);
        snprintf(name, sizeof name, "<|reserved_token_%lld|>", (long long)id);
        item = json_object_get(by_id, key);
        item = item ? json_incref(item) : json_string(name);
        json_object_set_new(taken, json_string_value(item), json_true());
        if (json_array_append_new(list, item)) status = base_fail_alloc(error, 64);
    }
    json_array_foreach(files->extra, i, item) {
        const char *content = text_token_content(item);
        if (!json_object_get(taken, content)) json_array_append_new(list, json_string(content));
    }
    if (status == SIFR_OK) status = text_files_add_list(files, list, error);
    json_decref(list);
    json_decref(by_id);
    json_decref(taken);
    return status;
}

sifr_status text_files_ranks(text_files *files, const char *text, size_t size, sifr_error *error) {
    BASE_TRY(read_lines(files, text, size, error));
    files->model_size = (int64_t)files->words.count;
    BASE_TRY(set_ranks(files, error));
    return add_special(files, error);
}
