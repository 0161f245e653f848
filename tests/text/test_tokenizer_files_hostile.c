/* Damaged vocabularies and settings of folders without tokenizer.json: one line with the file and
 * the place, in bounded time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_files.h"

static char folder[64];

static void put(const char *name, const void *bytes, size_t size) {
    char path[BASE_PATH_LENGTH];
    assert_int_equal(base_path_join(path, folder, name, NULL), SIFR_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void begin(void) {
    snprintf(folder, sizeof folder, "tokenizer_hostile_%d", (int)getpid());
    assert_int_equal(base_remove_tree(folder, NULL), SIFR_OK);
    assert_int_equal(base_make_directories(folder, NULL), SIFR_OK);
}

static sifr_status convert(sifr_error *error) {
    char path[BASE_PATH_LENGTH], *eos = NULL;
    json_t *root = NULL;
    *error = (sifr_error){0};
    sifr_status status = text_tokenizer_convert(folder, &root, path, &eos, error);
    json_decref(root);
    free(eos);
    if (status != SIFR_OK) {
        assert_true(error->message[0]);
        assert_null(strchr(error->message, '\n'));
    }
    return status;
}

/* The folder is refused with a message that has both parts. */
static void refused(const char *file, const char *why) {
    sifr_error error;
    assert_int_not_equal(convert(&error), SIFR_OK);
    if (!strstr(error.message, file) || !strstr(error.message, why))
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", error.message, file, why);
}

static void text(const char *name, const char *bytes) {
    put(name, bytes, strlen(bytes));
}

static char *golden(const char *name, size_t *size) {
    char path[BASE_PATH_LENGTH], *bytes;
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/tokenizer_files/%s", source ? source : ".", name);
    assert_int_equal(base_read_file(path, 1 << 20, &bytes, size, NULL), SIFR_OK);
    return bytes;
}

/* 1 where the bytes make a LlamaTokenizer. */
static size_t try_bytes(const char *bytes, size_t size) {
    json_t *root = NULL;
    sifr_error error = {0};
    char *copy = malloc(size ? size : 1); /* so that reading behind the end shows */
    memcpy(copy, bytes, size);
    sifr_status status = text_tokenizer_convert_bytes(
        copy, size, json_pack("{s:s}", "tokenizer_class", "LlamaTokenizer"), "model", &root,
        &error);
    free(copy);
    json_decref(root);
    if (status == SIFR_OK) return 1;
    assert_non_null(strstr(error.message, "model: "));
    assert_null(strchr(error.message, '\n'));
    return 0;
}

static void damaged_pieces(void **state) {
    (void)state;
    size_t size, good = 0;
    char *bytes = golden("llama.model", &size);
    begin();
    text("tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizer\"}");
    /* Cut at every byte, and every byte changed: never a crash; where it ends between two pieces,
     * it is a shorter model. */
    for (size_t i = 0; i < size; i += i < 600 ? 1 : 97) {
        good += try_bytes(bytes, i);
        char kept = bytes[i];
        bytes[i] = (char)(kept ^ (1 << i % 8));
        good += try_bytes(bytes, size);
        bytes[i] = kept;
    }
    assert_true(good > 0);
    free(bytes);

    put("tokenizer.model", "", 0);
    refused("tokenizer.model", "byte 0: the file ends without a piece");
    put("tokenizer.model",
        "\x0a\x05\x0a\x01"
        "a\x10\x01",
        7); /* a score of the wrong form */
    refused("tokenizer.model", "byte 5: a field of another form");
    put("tokenizer.model", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    refused("tokenizer.model", "byte 0: a field that is longer than what is left");
    put("tokenizer.model", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11);
    refused("tokenizer.model", "byte 1: a number of more than 64 bits");
    put("tokenizer.model", "\x0b\x0a", 2);
    refused("tokenizer.model", "byte 0: a field of unknown form");
    put("tokenizer.model", "\x0a\x03\x0a\x01\xff", 5);
    refused("tokenizer.model", "byte 2: a piece that is not UTF-8");
    put("tokenizer.model", "\x0a\x03\x0a\x01\0", 5);
    refused("tokenizer.model", "byte 2: a piece that is not UTF-8");
    put("tokenizer.model",
        "\x0a\x08\x0a\x01"
        "a\x15\0\0\xc0\x7f",
        10);
    refused("tokenizer.model", "no finite number");
    put("tokenizer.model",
        "\x0a\x03\x0a\x01"
        "a\x0a\x03\x0a\x01"
        "b\x0a\x03\x0a\x01"
        "a",
        15);
    refused("tokenizer.model", "pieces 0 and 2 are both \"a\"");
    put("tokenizer.model", "\x0a\0", 2);
    refused("tokenizer.model", "byte 2: a piece without text");
}

/* Pieces that are all runs of one letter have the most merges; long ones are refused. */
static void many_merges(void **state) {
    (void)state;
    size_t used = 0, capacity = 1 << 20;
    uint8_t *bytes = malloc(capacity);
    begin();
    text("tokenizer_config.json", "{\"tokenizer_class\": \"GemmaTokenizer\"}");
    for (size_t length = 1; length <= 1000; length++) {
        size_t inner = length < 128 ? length + 2 : length + 3;
        uint8_t head[8], *h = head;
        *h++ = 0x0a;
        for (size_t n = inner; n; n >>= 7) *h++ = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));
        *h++ = 0x0a;
        for (size_t n = length; n; n >>= 7) *h++ = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));
        assert_true(used + length + 8 < capacity);
        memcpy(bytes + used, head, (size_t)(h - head));
        used += (size_t)(h - head);
        memset(bytes + used, 'a', length);
        used += length;
    }
    put("tokenizer.model", bytes, used);
    sifr_error error;
    if (convert(&error) != SIFR_OK) fail_msg("%s", error.message);
    free(bytes);
    bytes = calloc(1, 2000);
    memcpy(bytes, "\x0a\x89\x0c\x0a\x86\x0c", 6); /* 1542 bytes */
    memset(bytes + 6, 'a', 1542);
    put("tokenizer.model", bytes, 1548);
    refused("tokenizer.model", "a piece of 1542 bytes");
    free(bytes);
}

static void damaged_ranks(void **state) {
    (void)state;
    begin();
    text("tokenizer.model", "YQ== 0\nYg== 1\nYWI= 2\n");
    sifr_error error;
    if (convert(&error) != SIFR_OK) fail_msg("%s", error.message);
    text("tokenizer.model", "YQ== 0\nYg= 1\n");
    refused("tokenizer.model", "line 2 is no token in base64");
    text("tokenizer.model", "YQ== 0\n\nY*== 1\n");
    refused("tokenizer.model", "line 3 is no token in base64");
    text("tokenizer.model", "YQ== 0\nYg== 99999999999999999999\n");
    refused("tokenizer.model", "line 2 is no token in base64");
    text("tokenizer.model", "YQ== 0\nYg== 1 2\n");
    refused("tokenizer.model", "line 2 is no token in base64");
    text("tokenizer.model", "YQ== 0\nYQ== 1\n");
    refused("tokenizer.model", "line 2: the token occurs before");
    text("tokenizer.model", "YQ== 0\n");
    text("tokenizer_config.json",
         "{\"added_tokens_decoder\": {\"16000000\": {\"content\": \"<x>\"}}}");
    refused("tokenizer_config.json", "id 16000000");
}

static void damaged_lists(void **state) {
    (void)state;
    begin();
    text("config.json", "{\"model_type\": \"bert\"}");
    text("tekken.json", "{}");
    refused("BertTokenizer, which is made from vocab.txt", "the folder has tekken.json");
    text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\na \n");
    refused("vocab.txt", "line 8 holds token \"a\", which line 6 has already");
    put("vocab.txt", "[PAD]\n\xc3\x28\n", 9);
    refused("vocab.txt", "line 2 is not UTF-8");
    put("vocab.txt", "[PAD]\na\0b\n", 10);
    refused("vocab.txt", "line 2 is not UTF-8");
    text("config.json", "{\"model_type\": \"gpt2\"}");
    refused("its tokenizer is a GPT2Tokenizer, which is made from vocab.json", "vocab.txt");
    text("vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3}");
    refused("merges.txt", "No such file");
    text("merges.txt", "#version: 0.2\na b\na  b\n");
    refused("merges.txt", "line 3 is no merge");
    text("merges.txt", "a b\n\n");
    refused("merges.txt", "line 2 is no merge");
    text("vocab.json", "{\"a\": 0, \"b\": 9223372036854775807}");
    refused("vocab.json", "token \"b\"");
    text("vocab.json", "{\"a\": 0, \"b\": -1}");
    refused("vocab.json", "token \"b\"");
    text("vocab.json", "[1]");
    refused("vocab.json", "must be an object");
    text("vocab.json", "{\"a\": 0, \"a\": 1}");
    refused("vocab.json", "duplicate");
}

static void wrong_settings(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"{\"tokenizer_class\": \"XLNetTokenizer\"}", "class \"XLNetTokenizer\" is not supported"},
        {"{\"bos_token\": 5}", "\"bos_token\" must be a token"},
        {"{\"bos_token\": {\"lstrip\": true}}", "\"bos_token\" must be a token"},
        {"{\"bos_token\": {\"content\": \"a\", \"lstrip\": 1}}", "\"lstrip\" of \"bos_token\""},
        {"{\"add_bos_token\": \"yes\"}", "\"add_bos_token\" must be true or false"},
        {"{\"additional_special_tokens\": \"a\"}", "must be a list of tokens"},
        {"{\"additional_special_tokens\": [\"a\", 1]}", "must be a token"},
        {"{\"extra_special_tokens\": {\"a_token\": []}}", "must be a token"},
        {"{\"added_tokens_decoder\": []}", "must be an object"},
        {"{\"added_tokens_decoder\": {\"-1\": {\"content\": \"a\"}}}", "\"-1\""},
        {"{\"added_tokens_decoder\": {\"99999999999999999999\": {\"content\": \"a\"}}}",
         "no token id"},
        {"{\"added_tokens_decoder\": {\"1\": 7}}", "must be a token"},
        {"[]", "must be a JSON object"},
        {"{", "tokenizer_config.json"},
        {"{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": -1}", "\"extra_ids\" is -1"},
        {"{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": 1e12}", "\"extra_ids\""},
        {"{\"tokenizer_class\": \"XLMRobertaTokenizer\", \"pad_token\": null}",
         "\"pad_token\" is null"},
        {"{\"tokenizer_class\": \"BertTokenizer\"}", "BertTokenizer"}};
    size_t size;
    char *bytes = golden("t5.model", &size);
    begin();
    put("tokenizer.model", bytes, size);
    free(bytes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text("tokenizer_config.json", bad[i][0]);
        refused("", bad[i][1]);
    }
    text("tokenizer_config.json", "{}");
    text("added_tokens.json", "{\"a\": -1}");
    refused("added_tokens.json", "the id of token \"a\"");
    assert_int_equal(base_remove_tree(folder, NULL), SIFR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_pieces), cmocka_unit_test(many_merges),
        cmocka_unit_test(damaged_ranks), cmocka_unit_test(damaged_lists),
        cmocka_unit_test(wrong_settings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
