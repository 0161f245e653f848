/* Files and texts that mean harm, or that ask for what is not built: one line of message, no crash,
 * bounded time. */
#include "support/scratch.h"
#include "support/thinned.h"

#include <sys/resource.h>

#include "text/tokenizer/tokenizer.h"

/* tokenizer.json around the parts that vary; a byte alphabet of four letters and the blank. */
static char *description(const char *vocab, const char *merges, const char *model,
                         const char *rest) {
    char *out = malloc(strlen(vocab) + strlen(merges) + strlen(model) + strlen(rest) + 512);
    assert_non_null(out);
    sprintf(out,
            "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
            "\"model\":{\"vocab\":%s,\"merges\":%s%s}%s}",
            vocab, merges, model, rest);
    return out;
}

static const char plain[] = "{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"Ġ\":4,\"ab\":5,\"abc\":6,\"bc\":7}";

static sifr_status parse(const char *json, text_tokenizer **t, sifr_error *error) {
    *t = NULL;
    *error = (sifr_error){0};
    sifr_status status = text_tokenizer_parse(json, strlen(json), "input", t, error);
    assert_null(strchr(error->message, '\n'));
    return status;
}

static void refused(char *json, const char *part) {
    text_tokenizer *t;
    sifr_error error;
    if (parse(json, &t, &error) != SIFR_USAGE) fail_msg("not refused: %.300s", json);
    if (!strstr(error.message, part)) fail_msg("no '%s' in: %s", part, error.message);
    free(json);
}

static void vocabularies(void **state) {
    (void)state;
    static const struct {
        const char *vocab, *part;
    } cases[] = {
        {"{}", "vocab"},
        {"[]", "vocab"},
        {"null", "vocab"},
        {"[[\"a\",-1.5]]", "vocab"},
        {"{\"a\":-1}", "-1"},
        {"{\"a\":0,\"b\":2147483648}", "2147483648"},
        {"{\"a\":0,\"b\":2147483647}", "2147483647"},
        {"{\"a\":0,\"b\":9223372036854775807}", "outside"},
        {"{\"a\":0,\"b\":99999}", "99999"},
        {"{\"a\":0,\"b\":0}", "same id"},
        {"{\"a\":0,\"a\":1}", "duplicate"},
        {"{\"a\":0,\"\\u0061\":1}", "duplicate"},
        {"{\"a\":\"0\"}", "whole number"},
        {"{\"a\":1.5}", "whole number"},
        {"{\"a\":true}", "whole number"},
        {"{\"a\":null}", "whole number"},
        {"{\"\\ud800\":1}", "JSON"},
        {"{\"\\u0000\":1}", "JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(description(cases[i].vocab, "[]", "", ""), cases[i].part);
}

static void merges(void **state) {
    (void)state;
    static const struct {
        const char *merges, *part;
    } cases[] = {
        {"{}", "merges"},
        {"null", "merges"},
        {"[\"a x\"]", "\"x\""},
        {"[\"a d\"]", "makes \"ad\""},
        {"[\"a b\",\"a b\"]", "merges 0 and 1"},
        {"[\"a b\",[\"a\",\"b\"]]", "merges 0 and 1"},
        {"[\"ab\"]", "neither"},
        {"[\"a b c\"]", "neither"},
        {"[\" b\"]", "neither"},
        {"[\"a \"]", "neither"},
        {"[\"\"]", "neither"},
        {"[[\"a\"]]", "neither"},
        {"[[\"a\",\"b\",\"c\"]]", "neither"},
        {"[[\"\",\"b\"]]", "neither"},
        {"[[\"a\",5]]", "neither"},
        {"[7]", "neither"},
        {"[[[\"a\",\"b\"]]]", "neither"},
        {"[\"a \\u4e00\"]", "not in model.vocab"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(description(plain, cases[i].merges, "", ""), cases[i].part);
}

static void parts(void **state) {
    (void)state;
    static const struct {
        const char *model, *rest, *part;
    } cases[] = {
        {",\"type\":\"WordPiece\"", "", "WordPiece"},
        {",\"type\":\"Unigram\"", "", "Unigram"},
        {",\"type\":7", "", "type"},
        {",\"dropout\":0.1", "", "dropout"},
        {",\"byte_fallback\":true", "", "byte_fallback"},
        {",\"continuing_subword_prefix\":\"##\"", "", "##"},
        {",\"end_of_word_suffix\":\"</w>\"", "", "</w>"},
        {",\"unk_token\":\"<unk>\"", "", "<unk>"},
        {",\"ignore_merges\":\"yes\"", "", "ignore_merges"},
        {"", ",\"normalizer\":{\"type\":\"Lowercaser\"}", "Lowercaser"},
        {"",
         ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
         "{\"type\":\"NFX\"}]}",
         "NFX"},
        {"", ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{}}", "pattern"},
        {"",
         ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},"
         "\"content\":\"x\"}",
         "pattern"},
        {"", ",\"normalizer\":{\"type\":\"Prepend\",\"prepend\":7}", "prepend"},
        {"", ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"*\"}", "base64"},
        {"", ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAEAAA==\"}",
         "double array"},
        {"", ",\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":1}", "lowercase"},
        {"", ",\"decoder\":{\"type\":\"CTC\"}", "CTC"},
        {"", ",\"normalizer\":[]", "normalizer"},
        {"", ",\"decoder\":{\"type\":\"Fuse\"}", "ByteLevel alone"},
        {"", ",\"decoder\":{\"type\":\"Metaspace\"}", "replacement"},
        {"", ",\"post_processor\":{\"type\":\"Frobnicate\"}", "Frobnicate"},
        {"",
         ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"a\",0],"
         "\"sep\":[\"x\",77]}",
         "77"},
        {"",
         ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
         "{\"id\":\"x\"}},{\"Sequence\":{\"id\":\"A\"}}]}",
         "no known special"},
        {"", ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}", "one Sequence"},
        {"", ",\"added_tokens\":{}", "added_tokens"},
        {"", ",\"added_tokens\":[7]", "added_tokens[0]"},
        {"", ",\"added_tokens\":[{\"id\":9}]", "content"},
        {"", ",\"added_tokens\":[{\"id\":9,\"content\":\"\"}]", "content"},
        {"", ",\"added_tokens\":[{\"id\":-1,\"content\":\"x\"}]", "\"id\""},
        {"", ",\"added_tokens\":[{\"id\":2147483647,\"content\":\"x\"}]", "2147483647"},
        {"", ",\"added_tokens\":[{\"id\":4294967296,\"content\":\"x\"}]", "4294967296"},
        {"", ",\"added_tokens\":[{\"id\":0,\"content\":\"x\"}]", "same id"},
        {"", ",\"added_tokens\":[{\"id\":9,\"content\":\"a\"}]", "in model.vocab"},
        {"", ",\"added_tokens\":[{\"id\":9,\"content\":\"x\"},{\"id\":9,\"content\":\"y\"}]",
         "same id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(description(plain, "[]", cases[i].model, cases[i].rest), cases[i].part);
}

static void pre_tokenizers(void **state) {
    (void)state;
    static const struct {
        const char *part, *what;
    } splitters[] = {
        {"{\"type\":\"UnicodeScripts\"}", "UnicodeScripts"},
        {"{\"type\":\"Digits\",\"individual_digits\":1}", "individual_digits"},
        {"{\"type\":\"Punctuation\",\"behavior\":\"Frobnicate\"}", "Frobnicate"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"ab\"}", "one character"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"a\",\"prepend_scheme\":\"x\"}",
         "prepend_scheme"},
        {"{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"\"}", "delimiter"},
        {"{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"}}", "behavior"},
        {"{\"type\":\"Sequence\",\"pretokenizers\":7}", "pretokenizers"},
        {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
         "{\"type\":\"ByteLevel\"}]}",
         "ByteLevel"},
    };
    for (size_t i = 0; i < sizeof splitters / sizeof *splitters; i++) {
        char json[1024];
        snprintf(json, sizeof json, "{\"pre_tokenizer\":%s,\"model\":{\"vocab\":%s,\"merges\":[]}}",
                 splitters[i].part, plain);
        refused(strdup(json), splitters[i].what);
    }
    refused(strdup("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1]]},\"pre_tokenizer\":"
                   "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"},"
                   "\"normalizer\":{\"type\":\"Strip\"}}"),
            "prepend_scheme \"first\"");
    refused(strdup("{}"), "model");
    refused(strdup("[]"), "model");
    refused(strdup("{\"model\":7}"), "model");
    refused(strdup(""), "JSON");
    refused(strdup("\xEF\xBB\xBF{}"), "JSON");
}

static void deep(void **state) {
    (void)state;
    char *json = malloc(100001);
    memset(json, '[', 100000);
    json[100000] = 0;
    refused(json, "deep");
    json = malloc(500001);
    for (size_t i = 0; i < 100000; i++) memcpy(json + 5 * i, "{\"a\":", 5);
    json[500000] = 0;
    refused(json, "deep");
}

static void long_added_token(void **state) {
    (void)state;
    char *rest = malloc(4096);
    strcpy(rest, ",\"added_tokens\":[{\"id\":9,\"content\":\"");
    size_t used = strlen(rest);
    memset(rest + used, 'x', 2000);
    strcpy(rest + used + 2000, "\"}]");
    refused(description(plain, "[]", "", rest), "longer than");
    free(rest);
}

/* Every prefix of a good file: refused, never read beyond. */
static void truncated(void **state) {
    (void)state;
    char *json = description(plain, "[\"a b\",\"ab c\"]", "",
                             ",\"added_tokens\":[{\"id\":9,\"content\":\"<x>\",\"special\":true}]");
    text_tokenizer *t;
    sifr_error error;
    assert_int_equal(parse(json, &t, &error), SIFR_OK);
    text_tokenizer_free(t);
    for (size_t size = 0; size < strlen(json); size++) {
        char *copy = malloc(size + 1);
        memcpy(copy, json, size);
        assert_int_equal(text_tokenizer_parse(copy, size, "input", &t, &error), SIFR_USAGE);
        free(copy);
    }
    free(json);
}

static double seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
}

static void small_alphabet(void **state) {
    (void)state;
    char *json = description(plain, "[\"a b\",\"ab c\"]", "", "");
    text_tokenizer *t;
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    sifr_error error;
    assert_int_equal(parse(json, &t, &error), SIFR_OK);
    free(json);
    assert_int_equal(text_tokenizer_scratch_new(t, &s, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_encode(t, s, "abc abd", 7, false, &ids, &error), SIFR_OK);
    static const int32_t want[] = {6, 4, 5, 3};
    assert_int_equal(ids.count, 4);
    assert_memory_equal(ids.ids, want, sizeof want);
    assert_int_equal(text_tokenizer_encode(t, s, "abz", 3, false, &ids, &error), SIFR_FAILED);
    assert_message(&error, "0x7A");
    assert_int_equal(text_tokenizer_id(t, "abc"), 6);
    assert_int_equal(text_tokenizer_id(t, "abd"), -1);
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);

    json = description(plain, "[\"a b\",\"ab c\"]", ",\"unk_token\":\"d\",\"fuse_unk\":true", "");
    assert_int_equal(parse(json, &t, &error), SIFR_OK);
    free(json);
    ids.count = 0;
    assert_int_equal(text_tokenizer_scratch_new(t, &s, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_encode(t, s, "abzzc", 5, false, &ids, &error), SIFR_OK);
    static const int32_t fused[] = {5, 3, 2};
    assert_int_equal(ids.count, 3);
    assert_memory_equal(ids.ids, fused, sizeof fused);
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);
}

/* Ten megabytes without a place to split, for merges that cascade; a quadratic way would take
 * hours. The bound is wide: sanitizers and busy machines. */
static void one_long_word(void **state) {
    (void)state;
    char *json =
        description("{\"a\":0,\"b\":1,\"aa\":2,\"aaaa\":3,\"aaaaaaaa\":4,\"ab\":5,\"abab\":6,"
                    "\"ba\":7,\"bb\":8}",
                    "[\"a a\",\"aa aa\",\"aaaa aaaa\",\"b b\",\"a b\",\"ab ab\",\"b a\"]", "", "");
    size_t size = THINNED(10000000);
    char *text = malloc(size);
    text_tokenizer *t;
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    sifr_error error;
    assert_int_equal(parse(json, &t, &error), SIFR_OK);
    free(json);
    assert_int_equal(text_tokenizer_scratch_new(t, &s, &error), SIFR_OK);
    double begin = seconds();
    memset(text, 'a', size);
    assert_int_equal(text_tokenizer_encode(t, s, text, size, false, &ids, &error), SIFR_OK);
    assert_int_equal(ids.count, size / 8);
    for (size_t i = 0; i < ids.count; i++) assert_int_equal(ids.ids[i], 4);
    uint64_t random = 1;
    for (size_t i = 0; i < size; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        text[i] = random >> 63 ? 'a' : 'b';
    }
    ids.count = 0;
    assert_int_equal(text_tokenizer_encode(t, s, text, size, false, &ids, &error), SIFR_OK);
    text_tokenizer_text back = {0};
    assert_int_equal(text_tokenizer_decode(t, ids.ids, ids.count, false, &back, &error), SIFR_OK);
    assert_int_equal(back.count, size);
    assert_memory_equal(back.bytes, text, size);
    double took = seconds() - begin;
    print_message("two words of %zu bytes: %.2f s\n", size, took);
    assert_true(took < 60);
    text_tokenizer_text_free(&back);
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);
    free(text);
}

/* Millions of combining marks behind one letter, out of order: sorting them must not be quadratic.
 * And white space without end, and added tokens that almost match everywhere. */
static void long_runs(void **state) {
    (void)state;
    char *json = description("{\"a\":0,\"Ì\":1,\"£\":2,\"ģ\":3,\"Ġ\":4,\"Ċ\":5,\"<\":6,\"á\":7,"
                             "\"º\":8,\"¡\":9,\"Â\":10,\"Ã\":11,\"§\":12}",
                             "[]", "",
                             ",\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[{\"id\":20,"
                             "\"content\":\"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<a\"},{\"id\":21,"
                             "\"content\":\"<|>\",\"lstrip\":true,\"rstrip\":true}]");
    text_tokenizer *t;
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    sifr_error error;
    assert_int_equal(parse(json, &t, &error), SIFR_OK);
    free(json);
    assert_int_equal(text_tokenizer_scratch_new(t, &s, &error), SIFR_OK);
    static const char *const units[] = {
        "\xCC\xA3\xCC\x81",        "\xCC\x81\xCC\xA3", " ", "\n", " \n", "<", "<|> ",
        "\xCC\xA7\xCC\xA3\xCC\x81"};
    double begin = seconds();
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t length = strlen(units[u]), size = 1 + THINNED(400000) * length;
        char *text = malloc(size);
        text[0] = 'a';
        for (size_t i = 1; i < size; i += length) memcpy(text + i, units[u], length);
        ids.count = 0;
        if (text_tokenizer_encode(t, s, text, size, false, &ids, &error) != SIFR_OK)
            fail_msg("%zu: %s", u, error.message);
        free(text);
    }
    double took = seconds() - begin;
    print_message("long runs: %.2f s\n", took);
    assert_true(took < 60);
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);
}

/* A model of another kind, whole. */
static void kinds_refused(void **state) {
    (void)state;
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}", "array with tokens"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "array with tokens"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[7]}}", "vocab[0]"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[7,0.5]]}}", "vocab[0]"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "vocab[0]"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}", "vocab[0] has no score"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1e999]]}}", "vocab[0] has no score"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1]],\"unk_id\":1}}", "unk_id 1"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1]],\"unk_id\":-2}}", "unk_id -2"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":[]}}", "object with tokens"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},"
         "\"max_input_chars_per_word\":-1}}",
         "max_input_chars_per_word"},
        {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}", "WordLevel"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "\"b\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":"
         "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}}],"
         "\"pair\":[{\"Sequence\":{\"id\":\"A\"}},{\"Sequence\":{\"id\":\"A\"}}]}}",
         "pair must have"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":"
         "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\","
         "\"type_id\":256}}]}}",
         "type_id is 256"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(strdup(cases[i].json), cases[i].part);
    char *json = malloc(4096);
    size_t used = (size_t)sprintf(json, "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"");
    memset(json + used, 'a', 1025);
    strcpy(json + used + 1025, "\",1]]}}");
    refused(json, "longer than 1024");
}

static text_tokenizer *load(const char *json) {
    text_tokenizer *t;
    sifr_error error;
    if (parse(json, &t, &error) != SIFR_OK) fail_msg("%s", error.message);
    return t;
}

/* Words of ten megabytes for every model: ids in bounded time. */
static void long_words(void **state) {
    (void)state;
    enum { SIZE = THINNED(10000000), SLOW = THINNED(200000) };
    static const struct {
        const char *json;
        size_t count; /* of ids of the word of all a */
    } cases[] = {
        {"{\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"a\":0,\"b\":1,\"aa\":2,"
         "\"aaaa\":3,\"ab\":4,\"abab\":5,\"u\":6},\"merges\":[\"a a\",\"aa aa\",\"a b\",\"ab "
         "ab\"]}}",
         SIZE / 4},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0],[\"a\",-1],[\"b\",-1],"
         "[\"aaaa\",-1.5],[\"ab\",-1.2]]}}",
         SIZE / 4},
        {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"max_input_chars_per_word\":"
         "1000000000,\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"##a\":3,\"##b\":4,\"##aaaa\":5}}}",
         SIZE / 4 + 3},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:a+)+c|[ab]\"},"
         "\"behavior\":\"Isolated\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},"
         "\"merges\":[]}}",
         0},
    };
    char *text = malloc(SIZE);
    double begin = seconds();
    assert_non_null(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_tokenizer *t = load(cases[i].json);
        text_tokenizer_scratch *s = NULL;
        text_tokenizer_ids ids = {0};
        sifr_error error = {0};
        uint64_t random = 1;
        assert_int_equal(text_tokenizer_scratch_new(t, &s, &error), SIFR_OK);
        memset(text, 'a', SIZE);
        sifr_status status =
            text_tokenizer_encode(t, s, text, cases[i].count ? SIZE : SLOW, false, &ids, &error);
        assert_int_equal(status, cases[i].count ? SIFR_OK : SIFR_FAILED);
        assert_int_equal(ids.count, cases[i].count);
        if (!cases[i].count) assert_message(&error, "takes too long");
        for (size_t k = 0; k < SIZE / 10 && cases[i].count; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[k] = random >> 63 ? 'a' : 'b';
        }
        if (cases[i].count)
            assert_int_equal(text_tokenizer_encode(t, s, text, SIZE / 10, false, &ids, &error),
                             SIFR_OK);
        text_tokenizer_ids_free(&ids);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
    free(text);
    double took = seconds() - begin;
    print_message("words for every model: %.2f s\n", took);
    assert_true(took < 120);
}

/* Replacements of replacements, and decoders that do the same. */
static void growth(void **state) {
    (void)state;
    char *json = malloc(65536), step[256];
    size_t used = (size_t)sprintf(json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},"
                                        "\"merges\":[]},\"normalizer\":{\"type\":\"Sequence\","
                                        "\"normalizers\":[");
    snprintf(step, sizeof step,
             "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":"
             "\"%s\"}",
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    for (int i = 0; i < 20; i++) used += (size_t)sprintf(json + used, "%s%s", i ? "," : "", step);
    strcpy(json + used, "]}}");
    text_tokenizer *t = load(json);
    text_tokenizer_scratch *s = NULL;
    text_tokenizer_ids ids = {0};
    sifr_error error = {0};
    assert_int_equal(text_tokenizer_scratch_new(t, &s, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_encode(t, s, "aaaa", 4, false, &ids, &error), SIFR_FAILED);
    assert_message(&error, "64 times");
    text_tokenizer_scratch_free(s);
    text_tokenizer_free(t);
    used =
        (size_t)sprintf(json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},"
                              "\"merges\":[]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[");
    for (int i = 0; i < 20; i++) used += (size_t)sprintf(json + used, "%s%s", i ? "," : "", step);
    strcpy(json + used, "]}}");
    sifr_status status = parse(json, &t, &error); /* what tokens decode to is made at once */
    assert_int_equal(status, SIFR_FAILED);
    assert_message(&error, "64 times");
    free(json);
}

/* Precompiled maps of random units: no read outside of them. */
static void charsmaps(void **state) {
    (void)state;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t random = 1;
    char *json = malloc(65536);
    for (int round = 0; round < 60; round++) {
        uint8_t map[1024] = {0};
        size_t units = 4 * (1 + (size_t)round), size = 4 + units + 32;
        size_t used =
            (size_t)sprintf(json, "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"a\","
                                  "\"vocab\":{\"a\":0},\"merges\":[]},\"normalizer\":"
                                  "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
        map[0] = (uint8_t)units, map[1] = (uint8_t)(units >> 8);
        for (size_t i = 4; i < size; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            map[i] = (uint8_t)(random >> 60); /* small labels and offsets, which are followed */
            if (i < 4 + units && i % 4 == 1) map[i] = (uint8_t)(random >> 56 & 0xFF);
        }
        for (size_t i = 0; i < size; i += 3) {
            uint32_t bits = (uint32_t)map[i] << 16 | (uint32_t)map[i + 1] << 8 | map[i + 2];
            for (int shift = 18; shift >= 0; shift -= 6) json[used++] = digits[bits >> shift & 63];
        }
        strcpy(json + used, "\"}}");
        text_tokenizer *t = load(json);
        text_tokenizer_scratch *s = NULL;
        text_tokenizer_ids ids = {0};
        char text[256];
        for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i % 16 + 1);
        assert_int_equal(text_tokenizer_scratch_new(t, &s, NULL), SIFR_OK);
        assert_int_equal(text_tokenizer_encode(t, s, text, sizeof text, false, &ids, NULL),
                         SIFR_OK);
        text_tokenizer_ids_free(&ids);
        text_tokenizer_scratch_free(s);
        text_tokenizer_free(t);
    }
    free(json);
}

static void folders(void **state) {
    (void)state;
    text_tokenizer *t = NULL;
    sifr_error error = {0};
    assert_int_equal(text_tokenizer_load(scratch, &t, &error), SIFR_FAILED);
    assert_message(&error, "tokenizer.json");
    char *json = description(plain, "[]", "", "");
    scratch_text("tokenizer.json", json);
    free(json);
    assert_int_equal(text_tokenizer_load(scratch, &t, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_eos(t), -1);
    text_tokenizer_free(t);
    scratch_text("tokenizer_config.json", "{\"eos_token\":{\"content\":\"abc\"}}");
    assert_int_equal(text_tokenizer_load(scratch, &t, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_eos(t), 6);
    text_tokenizer_free(t);
    scratch_text("tokenizer_config.json", "{\"eos_token\":\"</s>\"}");
    assert_int_equal(text_tokenizer_load(scratch, &t, &error), SIFR_USAGE);
    assert_message(&error, "</s>");
    scratch_text("tokenizer_config.json", "{\"eos_token\":");
    assert_int_equal(text_tokenizer_load(scratch, &t, &error), SIFR_USAGE);
    assert_int_equal(text_tokenizer_load("/dev/zero", &t, &error), SIFR_FAILED);
    assert_int_equal(text_tokenizer_load("/nowhere/at/all", &t, &error), SIFR_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabularies),  cmocka_unit_test(merges),
        cmocka_unit_test(parts),         cmocka_unit_test(pre_tokenizers),
        cmocka_unit_test(deep),          cmocka_unit_test(long_added_token),
        cmocka_unit_test(truncated),     cmocka_unit_test(small_alphabet),
        cmocka_unit_test(one_long_word), cmocka_unit_test(long_runs),
        cmocka_unit_test(kinds_refused), cmocka_unit_test(long_words),
        cmocka_unit_test(growth),        cmocka_unit_test(charsmaps),
        cmocka_unit_test(folders)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
