#include "support/tokenizer_case.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

static void path_of(const char *name, char out[BASE_PATH_LENGTH]) {
    const char *source = getenv("SOURCE");
    snprintf(out, BASE_PATH_LENGTH, "%s/tests/golden/tokenizer/%s", source ? source : ".", name);
}

json_t *tokenizer_golden(const char *name) {
    char path[BASE_PATH_LENGTH];
    json_error_t where;
    path_of(name, path);
    json_t *value = json_load_file(path, JSON_ALLOW_NUL, &where);
    if (!value) fail_msg("%s: %s", path, where.text);
    return value;
}

text_tokenizer *tokenizer_golden_load(const char *name) {
    char file[128], path[BASE_PATH_LENGTH];
    text_tokenizer *tokenizer = NULL;
    sifr_error error = {0};
    snprintf(file, sizeof file, "%s.json", name);
    path_of(file, path);
    if (text_tokenizer_load(path, &tokenizer, &error) != SIFR_OK) fail_msg("%s", error.message);
    return tokenizer;
}

static uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32;
}

char *tokenizer_corpus(uint64_t seed, size_t size, size_t *actual) {
    json_t *phrases = tokenizer_golden("phrases.json");
    char *text = malloc(size + 4096);
    size_t count = 0;
    assert_non_null(text);
    while (count < size) {
        uint64_t first = draw(&seed), second = draw(&seed);
        size_t index = ((first * second >> 32) * json_array_size(phrases)) >> 32;
        const json_t *phrase = json_array_get(phrases, index);
        size_t length = json_string_length(phrase);
        assert_true(length < 4096);
        memcpy(text + count, json_string_value(phrase), length);
        count += length;
    }
    json_decref(phrases);
    *actual = count;
    return text;
}

size_t tokenizer_chunk_end(const char *text, size_t size, size_t at, size_t chunk) {
    size_t end = at + chunk < size ? at + chunk : size;
    while (end < size && (text[end] & 0xC0) == 0x80) end++;
    return end;
}

uint64_t tokenizer_hash(const int32_t *ids, size_t count) {
    uint64_t value = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) value = (value ^ (uint32_t)ids[i]) * 0x100000001b3u;
    return value;
}

void tokenizer_same(const char *what, const text_tokenizer_ids *ids, int64_t count,
                    const char *hash) {
    char mine[17];
    snprintf(mine, sizeof mine, "%016" PRIx64, tokenizer_hash(ids->ids, ids->count));
    if ((int64_t)ids->count != count || strcmp(mine, hash) != 0)
        fail_msg("%s: %zu ids with hash %s, not %" PRId64 " with %s", what, ids->count, mine, count,
                 hash);
}
