/* tokenizer.json and text, any bytes: no crash, one line of message, ids that have tokens, and the
 * same ids again from the parts that text_tokenizer_cut allows. Input: one byte that chooses;
 * then, even: a tokenizer.json, a NUL and a text; odd: a text for a small built-in tokenizer: from
 * bytes with (1) or without (3) added tokens that forbid cuts, from characters with byte fallback
 * (5), WordPiece (7), Unigram (9), by a general pattern (11). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

/* All bytes, and a few merges; splits as Qwen2, with NFC, and added tokens of all sorts. */
static char *built_in(int plain_only) {
    static const char parts[] =
        "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
        "\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|"
        "'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+"
        "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\"},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
        "\"added_tokens\":[{\"id\":300,\"content\":\"<a>\",\"special\":true},"
        "{\"id\":301,\"content\":\"b?c\",\"lstrip\":true},"
        "{\"id\":302,\"content\":\"ww\",\"single_word\":true}";
    static const char odd[] = ",{\"id\":303,\"content\":\"b c\"},"
                              "{\"id\":304,\"content\":\"<ab\",\"rstrip\":true}";
    static const char model[] =
        "],\"model\":{\"merges\":[\"a b\",\"ab ab\",\"c ab\",\"Ġ a\"],\"vocab\":{";
    static const char tail[] = "\"ab\":256,\"abab\":257,\"cab\":258,\"Ġa\":259}}}";
    char *json = malloc(16384);
    must(json != NULL);
    size_t used = (size_t)sprintf(json, "%s%s%s", parts, plain_only ? "" : odd, model);
    for (unsigned b = 0, next = 0x100; b < 256; b++) {
        int plain = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        unsigned c = plain ? b : next++, digits[3] = {b / 100, b / 10 % 10, b % 10};
        const char *hex = "0123456789abcdef";
        memcpy(json + used, "\"\\u", 3);
        used += 3;
        for (int shift = 12; shift >= 0; shift -= 4) json[used++] = hex[c >> shift & 15];
        memcpy(json + used, "\":", 2);
        used += 2;
        for (int i = b >= 100 ? 0 : b >= 10 ? 1 : 2; i < 3; i++)
            json[used++] = (char)('0' + digits[i]);
        json[used++] = ',';
    }
    memcpy(json + used, tail, sizeof tail);
    return json;
}

/* The other kinds, from characters; what a text holds besides a, b, c and blanks is unknown. */
static const char *const kinds[] = {
    /* from characters, U+2581 for blanks, its own parts for the word cache */
    "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"},"
    "\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true}],"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
    "\"String\":"
    "\"\\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"fuse_unk\":true,\"byte_fallback\":true,"
    "\"vocab\":{\"<s>\":0,\"u\":1,\"a\":2,\"b\":3,\"\\u2581\":4,\"ab\":5,\"\\u2581a\":6,"
    "\"\\u2581\\u2581\":7,"
    "\"<0xC3>\":8,\"<0xA9>\":9},\"merges\":[\"a b\",\"\\u2581 a\",\"\\u2581 \\u2581\"]}}",
    "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
    "\"BertPreTokenizer\"},"
    "\"decoder\":{\"type\":\"WordPiece\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\","
    "\"max_input_chars_per_word\":9,\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"##a\":3,\"##ab\":4,"
    "\"abb\":5,"
    "\"##b\":6,\".\":7}}}",
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":"
    "\"Replace\","
    "\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" "
    "\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\","
    "\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\",\"replacement\":"
    "\"\\u2581\"}]},\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\"},"
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"u\",0],["
    "\"a\",-1],"
    "[\"b\",-1.5],[\"ab\",-2],[\"\\u2581\",-2],[\"\\u2581ab\",-3],[\"<0xC3>\",-9],[\"<0xA9>\",-9]]}"
    "}",
    "{\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
    "\"pretokenizers\":[{\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"},{\"type\":"
    "\"Digits\"},"
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[^\\\\r\\\\n\\\\p{L}]?\\\\p{L}+?(?!b)|\\\\p{N}{1,"
    "3}|[^\\\\s\\\\p{L}]++|\\\\s+\"},"
    "\"behavior\":\"Isolated\"}]},\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":"
    "0,"
    "\"a\":1,\"b\":2,\"ab\":3},\"merges\":[\"a b\"]}}",
};

static void use(const text_tokenizer *t, const char *text, size_t size) {
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0}, parts = {0};
    text_tokenizer_text out = {0};
    text_tokenizer_stream stream = {0};
    sifr_error error = {0};
    must(text_tokenizer_scratch_new(t, &s, &error) == SIFR_OK);
    if (text_tokenizer_encode(t, s, text, size, false, &ids, &error) == SIFR_OK) {
        must(text_tokenizer_decode(t, ids.ids, ids.count, false, &out, &error) == SIFR_OK);
        for (size_t i = 0; i < ids.count; i++)
            must(text_tokenizer_stream_push(t, &stream, ids.ids[i], &out, &error) == SIFR_OK);
        must(text_tokenizer_stream_end(&stream, &out, &error) == SIFR_OK);
        for (size_t at = 0, end; at < size; at = end) {
            end = text_tokenizer_cut(t, text, size, at + 1);
            must(text_tokenizer_encode(t, s, text + at, end - at, false, &parts, &error) ==
                 SIFR_OK);
        }
        must(ids.count == parts.count &&
             (!ids.count || !memcmp(ids.ids, parts.ids, ids.count * sizeof *ids.ids)));
    } else {
        must(error.message[0] && !strchr(error.message, '\n'));
    }
    text_tokenizer_ids_free(&ids);
    text_tokenizer_ids_free(&parts);
    text_tokenizer_text_free(&out);
    text_tokenizer_scratch_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static text_tokenizer *fixed[6]; /* made once: their tables take longer than an input */
    int which = size ? data[0] / 2 % 6 : 0;
    const char *text = (const char *)data + 1;
    sifr_error error = {0};
    if (size < 1) return 0;
    size--;
    if (data[0] & 1) {
        if (!fixed[which]) {
            char *json = which < 2 ? built_in(which) : strdup(kinds[which - 2]);
            must(text_tokenizer_parse(json, strlen(json), "built-in", &fixed[which], &error) ==
                 SIFR_OK);
            free(json);
        }
        use(fixed[which], text, size);
        return 0;
    }
    const char *nul = memchr(text, 0, size);
    size_t json_size = nul ? (size_t)(nul - text) : size;
    text_tokenizer *t = NULL;
    if (text_tokenizer_parse(text, json_size, "input", &t, &error) != SIFR_OK) {
        must(error.message[0] && !strchr(error.message, '\n'));
        return 0;
    }
    use(t, nul ? nul + 1 : text, nul ? size - json_size - 1 : size);
    text_tokenizer_free(t);
    return 0;
}
