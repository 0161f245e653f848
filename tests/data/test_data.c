/* Text as training data: windows, documents, stores that are made of it. */
#include "support/scratch.h"
#include "support/tokenizer_case.h"

#include <jansson.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "data/data.h"
#include "data/permutation.h"
#include "data/stream/token_store.h"

static char said[8192];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};

/* A store of documents; each ends with -1. */
static const char *store(const char *name, const int32_t *documents, size_t count) {
    data_token_writer writer;
    const char *prefix = scratch_path(name);
    assert_int_equal(data_token_writer_open(&writer, prefix, 1000, NULL), SIFR_OK);
    for (size_t d = 0; d < count; d++) {
        size_t length = 0;
        while (documents[length] >= 0) length++;
        assert_int_equal(data_token_writer_append(&writer, documents, length, NULL), SIFR_OK);
        assert_int_equal(data_token_writer_end_document(&writer, NULL), SIFR_OK);
        documents += length + 1;
    }
    assert_int_equal(data_token_writer_commit(&writer, NULL), SIFR_OK);
    return prefix;
}

static data_set_options options_for(const char *const *paths, size_t count) {
    return (data_set_options){.paths = paths,
                              .count = count,
                              .tokenizer = scratch_path("tok"),
                              .cache = scratch_path("cache"),
                              .vocab_size = 1000,
                              .separator = 0,
                              .threads = 2,
                              .log = &log_lines};
}

static data_set *open_data(const data_set_options *options) {
    data_set *data;
    sifr_error error = {0};
    said[0] = 0;
    if (data_set_open(options, &data, &error) != SIFR_OK) fail_msg("%s", error.message);
    return data;
}

static void refuse(const data_set_options *options, sifr_status status, const char *message) {
    data_set *data;
    sifr_error error = {0};
    assert_int_equal(data_set_open(options, &data, &error), status);
    assert_message(&error, message);
}

/* The stream, read in windows of any length, against what it must be. */
static void assert_stream(const data_set *data, const int32_t *stream, int64_t count) {
    assert_int_equal(data_set_tokens(data), count);
    for (int64_t length = 1; length < count; length++) {
        int64_t windows = data_set_windows(data, length);
        assert_int_equal(windows, (count - 1) / length);
        for (int64_t w = 0; w < windows; w++) {
            int32_t tokens[64], labels[64];
            data_rows rows = {.count = 1, .length = length, .tokens = tokens, .labels = labels};
            data_set_window(data, w, &rows, 0);
            assert_memory_equal(tokens, stream + w * length, (size_t)length * sizeof *tokens);
            assert_memory_equal(labels, stream + w * length + 1, (size_t)length * sizeof *labels);
        }
    }
}

/* Separators between, none where a document has its own, none for an empty document. */
static void packs_documents(void **state) {
    (void)state;
    static const int32_t first[] = {5, 6, 7, -1, 8, 0, -1, -1, 9, -1};
    static const int32_t second[] = {1, 0, -1, 2, 3, 0, -1};
    static const int32_t stream[] = {5, 6, 7, 0, 8, 0, 9, 0, 1, 0, 2, 3, 0};
    const char *paths[] = {store("a", first, 4), store("b", second, 2)};
    data_set_options options = options_for(paths, 2);
    data_set *data = open_data(&options);
    assert_stream(data, stream, 13);
    assert_int_equal(data_set_documents(data), 6);
    uint64_t hash = data_set_hash(data);
    data_set_close(data);

    /* Files are named in any of the three ways; what is in the stream makes the hash. */
    const char *named[] = {scratch_path("a.idx"), scratch_path("b.bin")};
    options = options_for(named, 2);
    data = open_data(&options);
    assert_true(data_set_hash(data) == hash);
    data_set_close(data);
    const char *turned[] = {paths[1], paths[0]};
    options = options_for(turned, 2);
    data = open_data(&options);
    assert_false(data_set_hash(data) == hash);
    data_set_close(data);

    static const int32_t bare[] = {5, 6, 7, 8, 0, 9, 1, 0, 2, 3, 0};
    options = options_for(paths, 2);
    options.separator = -1;
    data = open_data(&options);
    assert_stream(data, bare, 11);
    assert_false(data_set_hash(data) == hash);
    data_set_close(data);
}

/* llm.c's file of some ids. */
static const char *llmc_file(const char *name, const uint16_t *ids, size_t count) {
    int32_t header[256] = {20240520, 1, (int32_t)count};
    char bytes[1024 + 64];
    memcpy(bytes, header, sizeof header);
    memcpy(bytes + sizeof header, ids, count * sizeof *ids);
    const char *path = scratch_path(name);
    assert_int_equal(base_write_file(path, bytes, sizeof header + count * sizeof *ids, NULL),
                     SIFR_OK);
    return path;
}

/* Their documents are cut anywhere, so nothing stands between them; a pattern names several, and a
 * pair of files once. */
static void stores_of_others(void **state) {
    (void)state;
    static const uint16_t first[] = {0, 5, 6}, second[] = {7, 0, 8};
    static const int32_t pair[] = {1, 2, -1, 3, -1};
    static const int32_t stream[] = {0, 5, 6, 7, 0, 8, 1, 2, 0, 3, 0};
    llmc_file("shard_1.bin", first, 3);
    llmc_file("shard_2.bin", second, 3);
    store("trio.b", pair, 2);
    store("trio.b.c", pair, 2); /* its names stand between those of the other */
    const char *paths[] = {scratch_path("shard_*.bin"), scratch_path("trio.b")};
    data_set_options options = options_for(paths, 2);
    data_set *data = open_data(&options);
    assert_stream(data, stream, 11);
    assert_int_equal(data_set_documents(data), 4);
    data_set_close(data);
    const char *pairs[] = {scratch_path("trio*")};
    options = options_for(pairs, 1);
    data = open_data(&options);
    assert_int_equal(data_set_tokens(data), 10);
    data_set_close(data);
    options = options_for(paths, 1);
    options.vocab_size = 8;
    refuse(&options, SIFR_FAILED, "shard_2.bin: token 2 is id 8, outside the vocabulary of 8");
    scratch_text("shard_3.bin", "text");
    options = options_for(paths, 1);
    refuse(&options, SIFR_FAILED, "shard_1.bin: not text");
}

static void wrong_ids(void **state) {
    (void)state;
    static const int32_t tokens[] = {5, 6, 7, -1, 8, 600, 3, -1};
    const char *paths[] = {store("wrong", tokens, 2)};
    data_set_options options = options_for(paths, 1);
    options.vocab_size = 600;
    refuse(&options, SIFR_FAILED, "600");
    options.vocab_size = 601;
    data_set_close(open_data(&options));
}

static void samples_follow_the_permutation(void **state) {
    (void)state;
    int32_t tokens[302], a[3], b[3], c[3], d[3];
    for (int i = 0; i < 301; i++) tokens[i] = i + 1;
    tokens[301] = -1;
    const char *paths[] = {store("long", tokens, 1)};
    data_set_options options = options_for(paths, 1);
    options.separator = -1;
    data_set *data = open_data(&options);
    int64_t windows = data_set_windows(data, 3);
    assert_int_equal(windows, 100);
    for (int64_t sample = 0; sample < 3 * windows; sample++) {
        int64_t index = data_permute(9, sample / windows, windows, sample % windows);
        data_set_sample(data, 9, sample,
                        &(data_rows){.count = 1, .length = 3, .tokens = a, .labels = b}, 0);
        data_set_window(data, index,
                        &(data_rows){.count = 1, .length = 3, .tokens = c, .labels = d}, 0);
        assert_memory_equal(a, c, sizeof a);
        assert_memory_equal(b, d, sizeof b);
    }
    data_set_close(data);
}

/* --- text --- */

/* A byte-level tokenizer without merges: ids are bytes, in GPT-2's alphabet of visible characters
 * (bytes that are none are moved behind 255). */
static void write_tokenizer(void) {
    json_t *vocab = json_object();
    int moved = 256;
    for (int byte = 0; byte < 256; byte++) {
        bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
        int code = visible ? byte : moved++;
        char text[3] = {(char)code, 0, 0};
        if (code >= 0x80) {
            text[0] = (char)(0xc0 | code >> 6);
            text[1] = (char)(0x80 | (code & 63));
        }
        json_object_set_new(vocab, text, json_integer(byte));
    }
    json_t *file = json_pack(
        "{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b}, s:{s:s, "
        "s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
        "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1,
        "post_processor", "decoder", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets", 1,
        "use_regex", 1, "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab,
        "merges");
    assert_non_null(file);
    assert_int_equal(base_make_directories(scratch_path("tok"), NULL), SIFR_OK);
    assert_int_equal(json_dump_file(file, scratch_path("tok/tokenizer.json"), 0), 0);
    json_decref(file);
}

static void set_time(const char *path, time_t seconds) {
    struct timeval times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimes(path, times), 0);
}

static size_t files_in(const char *directory) {
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(directory, &names, &count, NULL), SIFR_OK);
    base_free_names(names, count);
    return count;
}

static void text_becomes_a_store(void **state) {
    (void)state;
    static const char bytes[] = "ab\n\0cd\0";
    int32_t stream[8];
    write_tokenizer();
    assert_int_equal(base_make_directories(scratch_path("text"), NULL), SIFR_OK);
    scratch_text("text/1", "ab\n");
    scratch_text("text/2", "cd");
    scratch_text("text/3", "");
    for (int i = 0; i < 7; i++) stream[i] = bytes[i];
    const char *paths[] = {scratch_path("text")};
    data_set_options options = options_for(paths, 1);
    data_set *data = open_data(&options);
    assert_stream(data, stream, 7);
    uint64_t hash = data_set_hash(data);
    data_set_close(data);
    assert_non_null(strstr(said, "1 empty file"));
    assert_non_null(strstr(said, "1 document without a newline at the end"));
    assert_int_equal(files_in(scratch_path("cache")), 2);

    /* The same again: found. */
    data = open_data(&options);
    assert_non_null(strstr(said, "from the store of an earlier run"));
    assert_true(data_set_hash(data) == hash);
    data_set_close(data);
    assert_int_equal(files_in(scratch_path("cache")), 2);

    /* Touched: made anew, to the same stream. Changed: another. */
    set_time(scratch_path("text/2"), 1000000);
    data = open_data(&options);
    assert_null(strstr(said, "from the store of an earlier run"));
    assert_true(data_set_hash(data) == hash);
    data_set_close(data);
    scratch_text("text/2", "ce");
    data = open_data(&options);
    assert_null(strstr(said, "from the store of an earlier run"));
    assert_false(data_set_hash(data) == hash);
    data_set_close(data);

    /* A store that was damaged since is made anew. */
    scratch_text("text/2", "cd");
    set_time(scratch_path("text/2"), 2000000);
    data_set_close(open_data(&options));
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(scratch_path("cache"), &names, &count, NULL), SIFR_OK);
    for (size_t i = 0; i < count; i++) {
        char path[300];
        snprintf(path, sizeof path, "cache/%.255s", names[i]);
        assert_int_equal(truncate(scratch_path(path), 5), 0);
    }
    base_free_names(names, count);
    data = open_data(&options);
    assert_non_null(strstr(said, "damaged"));
    assert_stream(data, stream, 7);
    data_set_close(data);

    /* So is one with an id that the model has no row for, and one with another id. */
    static const char wrong[2][2] = {{'\xff', '\xfe'}, {'\4', '\0'}};
    for (int w = 0; w < 2; w++) {
        assert_int_equal(base_list_directory(scratch_path("cache"), &names, &count, NULL), SIFR_OK);
        for (size_t i = 0; i < count; i++) {
            char path[300];
            snprintf(path, sizeof path, "cache/%.255s", names[i]);
            FILE *file = strstr(path, ".bin") ? fopen(scratch_path(path), "r+") : NULL;
            if (!file) continue;
            assert_int_equal(fwrite(wrong[w], 1, 2, file), 2);
            assert_int_equal(fclose(file), 0);
        }
        base_free_names(names, count);
        data = open_data(&options);
        assert_non_null(strstr(said, "damaged and is made again"));
        assert_stream(data, stream, 7);
        data_set_close(data);
    }
}

static void invalid_text(void **state) {
    (void)state;
    /* Two wrong sequences, each read as U+FFFD: EF BF BD. */
    static const uint8_t bytes[] = {'a', 0xff, 'b', 0xe2, 0x82, 'c', '\n'};
    static const int32_t stream[] = {'a', 0xef, 0xbf, 0xbd, 'b', 0xef, 0xbf, 0xbd, 'c', '\n', 0};
    write_tokenizer();
    const char *paths[] = {scratch_write("invalid.txt", bytes, sizeof bytes)};
    data_set_options options = options_for(paths, 1);
    data_set *data = open_data(&options);
    assert_stream(data, stream, 11);
    assert_non_null(strstr(said, "2 sequences in 1 document"));
    data_set_close(data);

    /* A NUL is no text; nothing half made stays. */
    size_t before = files_in(scratch_path("cache"));
    const char *binary[] = {scratch_write("binary.txt", "text first, then\0", 17)};
    options = options_for(binary, 1);
    refuse(&options, SIFR_FAILED, "binary.txt");
    assert_int_equal(files_in(scratch_path("cache")), before);
    const char *none[] = {scratch_path("not-there")};
    options = options_for(none, 1);
    refuse(&options, SIFR_FAILED, "not-there");
}

/* Large documents are cut into pieces that several threads read; the store does not show it. */
static void threads_change_nothing(void **state) {
    (void)state;
    enum { BYTES = 3 << 20 };
    char *text = malloc(BYTES);
    uint64_t hash[3];
    assert_non_null(text);
    write_tokenizer();
    for (int i = 0; i < BYTES; i++)
        text[i] = i % 61 == 60 ? '\n' : i % 7 == 6 ? ' ' : (char)('a' + i * 7 % 26);
    assert_int_equal(base_make_directories(scratch_path("large"), NULL), SIFR_OK);
    scratch_write("large/a", text, BYTES);
    scratch_write("large/b", text + 1, BYTES / 2);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "large/c%d", i);
        scratch_write(name, text + i, (size_t)i * 1000 + 1);
    }
    const char *paths[] = {scratch_path("large")};
    static const int threads[] = {1, 2, 7};
    for (int i = 0; i < 3; i++) {
        char cache[32];
        snprintf(cache, sizeof cache, "cache-%d", threads[i]);
        data_set_options options = options_for(paths, 1);
        options.threads = threads[i];
        options.cache = scratch_path(cache);
        data_set *data = open_data(&options);
        assert_int_equal(data_set_tokens(data), BYTES + BYTES / 2 + 19 * 20 / 2 * 1000 + 20 + 22);
        hash[i] = data_set_hash(data);
        if (i == 0) {
            static int32_t tokens[BYTES], labels[BYTES];
            data_set_window(
                data, 0,
                &(data_rows){.count = 1, .length = BYTES, .tokens = tokens, .labels = labels}, 0);
            for (int b = 0; b < BYTES; b++) {
                if (tokens[b] != (uint8_t)text[b]) fail_msg("token %d differs", b);
            }
            assert_int_equal(labels[BYTES - 1], 0);
        }
        data_set_close(data);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[1] == hash[2]);
    free(text);
}

/* The texts of the golden file, one document each, as `tokenizers` encodes them with and without
 * add_special_tokens; the ids that the stream must hold. */
static size_t golden_documents(bool special, int32_t *stream, size_t capacity) {
    json_t *golden = tokenizer_golden("expected.json");
    size_t count = 0;
    const json_t *cases = json_object_get(golden, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *row = json_array_get(cases, i), *ids = json_array_get(row, 3);
        const char *text = json_string_value(json_array_get(row, 1));
        if (strcmp(json_string_value(json_array_get(row, 0)), "llama3") != 0 || !*text) continue;
        if (json_is_true(json_array_get(row, 2)) != special) continue;
        char name[32];
        snprintf(name, sizeof name, "golden/%03zu", i);
        scratch_text(name, text);
        assert_true(count + json_array_size(ids) < capacity);
        for (size_t k = 0; k < json_array_size(ids); k++)
            stream[count++] = (int32_t)json_integer_value(json_array_get(ids, k));
        if (stream[count - 1] != 0) stream[count++] = 0;
    }
    json_decref(golden);
    return count;
}

static void put_llama3(void) {
    char path[512];
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/tokenizer/llama3.json",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    assert_int_equal(base_make_directories(scratch_path("bos"), NULL), SIFR_OK);
    assert_int_equal(base_copy_file(path, scratch_path("bos/tokenizer.json"), &error), SIFR_OK);
}

/* What a post-processor puts around a text stands around each document, as in transformers. */
static void special_tokens_as_transformers(void **state) {
    (void)state;
    enum { CAPACITY = 4096 };
    static int32_t wanted[CAPACITY], tokens[CAPACITY], labels[CAPACITY];
    put_llama3();
    for (int special = 0; special < 2; special++) {
        assert_int_equal(base_remove_tree(scratch_path("golden"), NULL), SIFR_OK);
        assert_int_equal(base_make_directories(scratch_path("golden"), NULL), SIFR_OK);
        size_t count = golden_documents(special, wanted, CAPACITY);
        assert_true(count > 50);
        const char *paths[] = {scratch_path("golden")};
        data_set_options options = options_for(paths, 1);
        options.vocab_size = 2000;
        options.tokenizer = scratch_path("bos");
        options.special = special;
        data_set *data = open_data(&options);
        assert_int_equal(data_set_tokens(data), count);
        data_set_window(
            data, 0,
            &(data_rows){
                .count = 1, .length = (int64_t)count - 1, .tokens = tokens, .labels = labels},
            0);
        tokens[count - 1] = labels[count - 2];
        assert_memory_equal(tokens, wanted, count * sizeof *tokens);
        bool told = strstr(said, "each document is <|begin|> … <|endoftext|>\n") != NULL;
        assert_int_equal(told, special);
        data_set_close(data);
    }
}

/* Once a document, however many pieces it is cut into; and not where the model has no row for it.
 */
static void special_tokens_once(void **state) {
    (void)state;
    enum { BYTES = 3 << 19 };
    static char text[BYTES];
    static int32_t tokens[BYTES + 2], labels[BYTES + 2];
    put_llama3();
    for (int i = 0; i < BYTES; i++) text[i] = i % 13 == 12 ? '\n' : i % 5 == 4 ? ' ' : 'a';
    const char *paths[] = {scratch_write("long.txt", text, BYTES)};
    data_set_options options = options_for(paths, 1);
    options.vocab_size = 1803;
    options.tokenizer = scratch_path("bos");
    options.special = true;
    refuse(&options, SIFR_FAILED,
           "puts id 1803 around each text, but the model has rows for only 1803");
    options.vocab_size = 1804;
    data_set *data = open_data(&options);
    int64_t count = data_set_tokens(data), begins = 0;
    data_set_window(
        data, 0, &(data_rows){.count = 1, .length = count - 1, .tokens = tokens, .labels = labels},
        0);
    for (int64_t i = 0; i < count - 1; i++) begins += tokens[i] == 1803;
    assert_int_equal(begins, 1);
    assert_int_equal(tokens[0], 1803);
    assert_int_equal(labels[count - 2], 0);
    data_set_close(data);
    /* Without it: another stream, which is not taken from the first one's store. */
    options.special = false;
    options.vocab_size = 1803;
    data = open_data(&options);
    assert_int_equal(data_set_tokens(data), count - 1);
    data_set_close(data);
    /* A tokenizer that ordinary text could lead past the model's rows. */
    options.vocab_size = 1802;
    options.cache = scratch_path("cache-small");
    refuse(&options, SIFR_FAILED,
           "the tokenizer makes ids up to 1802, but the model has rows for only 1802");
    assert_false(base_is_directory(options.cache));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(packs_documents),
                                       cmocka_unit_test(stores_of_others),
                                       cmocka_unit_test(wrong_ids),
                                       cmocka_unit_test(samples_follow_the_permutation),
                                       cmocka_unit_test(text_becomes_a_store),
                                       cmocka_unit_test(invalid_text),
                                       cmocka_unit_test(threads_change_nothing),
                                       cmocka_unit_test(special_tokens_as_transformers),
                                       cmocka_unit_test(special_tokens_once)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
