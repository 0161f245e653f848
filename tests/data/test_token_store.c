/* Megatron token stores: round trip, other writers' types, and indexes that do not fit. */
#include "support/scratch.h"

#include <sys/stat.h>

#include "data/stream/token_store.h"

static sifr_error error;
static data_token_store store;

static void write_store(const char *prefix, int64_t vocab, int documents) {
    data_token_writer writer;
    assert_int_equal(data_token_writer_open(&writer, prefix, vocab, &error), SIFR_OK);
    for (int d = 0; d < documents; d++) {
        for (int i = 0; i < 3 * d; i++) {
            int32_t id = (int32_t)((1000 * d + i) % vocab);
            assert_int_equal(data_token_writer_append(&writer, &id, 1, &error), SIFR_OK);
        }
        assert_int_equal(data_token_writer_end_document(&writer, &error), SIFR_OK);
    }
    assert_int_equal(data_token_writer_commit(&writer, &error), SIFR_OK);
}

static void check_store(const char *prefix, int64_t vocab, int documents, int token_bytes) {
    if (data_token_store_open(prefix, &store, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(store.documents, documents);
    assert_int_equal(store.sequences, documents);
    assert_int_equal(store.token_bytes, token_bytes);
    assert_int_equal(store.tokens, 3 * documents * (documents - 1) / 2);
    int64_t at = 0;
    for (int d = 0; d < documents; d++) {
        int64_t first, count;
        int32_t ids[64];
        data_token_store_document(&store, d, &first, &count);
        assert_int_equal(first, at);
        assert_int_equal(count, 3 * d);
        data_token_store_read(&store, first, count, ids);
        for (int i = 0; i < count; i++) assert_int_equal(ids[i], (1000 * d + i) % vocab);
        at += count;
    }
    assert_int_equal(data_token_store_check(&store, vocab, prefix, &error), SIFR_OK);
    data_token_store_close(&store);
}

static void round_trip(void **state) {
    (void)state;
    char prefix[BASE_PATH_LENGTH];
    write_store(scratch_path("small"), 65499, 7);
    check_store(scratch_path("small"), 65499, 7, 2);
    write_store(scratch_path("large"), 65500, 20);
    check_store(scratch_path("large"), 65500, 20, 4);
    write_store(scratch_path("small"), 300, 3); /* over the old one */
    check_store(scratch_path("small"), 300, 3, 2);
    write_store(scratch_path("none"), 300, 0);
    check_store(scratch_path("none"), 300, 0, 2);
    static const char *const spelled[] = {"small", "small.idx", "small.bin"};
    for (int i = 0; i < 3; i++) {
        assert_true(data_token_store_prefix(scratch_path(spelled[i]), prefix));
        assert_string_equal(prefix, scratch_path("small"));
    }
    assert_false(data_token_store_prefix(scratch_path("smal"), prefix));
    assert_false(data_token_store_prefix(scratch, prefix));
}

/* Ids that others of the vocabulary have replaced are seen in what sifr wrote; in what has no
 * checksum they are not. */
static void damage(void **state) {
    (void)state;
    const char *prefix = scratch_path("hurt");
    struct stat about;
    write_store(prefix, 65499, 7);
    FILE *file = fopen(scratch_path("hurt.bin"), "r+b");
    assert_int_equal(fseek(file, 40, SEEK_SET), 0);
    fwrite("\1\2", 1, 2, file);
    fclose(file);
    assert_int_equal(data_token_store_open(prefix, &store, &error), SIFR_OK);
    assert_int_equal(data_token_store_check(&store, 65499, prefix, &error), SIFR_FAILED);
    assert_message(&error, "hurt.bin: damaged: its checksum");
    data_token_store_close(&store);
    assert_int_equal(stat(scratch_path("hurt.idx"), &about), 0);
    assert_int_equal(truncate(scratch_path("hurt.idx"), about.st_size - 16), 0); /* Megatron's */
    assert_int_equal(data_token_store_open(prefix, &store, &error), SIFR_OK);
    assert_int_equal(data_token_store_check(&store, 65499, prefix, &error), SIFR_OK);
    data_token_store_close(&store);
}

static void writer_errors(void **state) {
    (void)state;
    data_token_writer writer;
    static const int32_t ids[] = {1, 2, 300};
    const char *prefix = scratch_path("bad");
    assert_int_equal(data_token_writer_open(&writer, prefix, 300, &error), SIFR_OK);
    assert_int_equal(data_token_writer_append(&writer, ids, 3, &error), SIFR_FAILED);
    assert_message(&error, "token id 300 is outside of the vocabulary of 300");
    data_token_writer_abort(&writer);
    assert_false(base_is_file(scratch_path("bad.bin")));
    assert_int_equal(data_token_writer_open(&writer, prefix, 0, &error), SIFR_USAGE);
    assert_int_equal(data_token_writer_open(&writer, "/nonexistent/x", 300, &error), SIFR_FAILED);
}

/* An index for `data_size` bytes of tokens, field by field. */
typedef struct index_text {
    uint8_t bytes[512];
    size_t size;
} index_text;

static void put(index_text *index, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) index->bytes[index->size++] = (uint8_t)(value >> 8 * i);
}

/* Two sequences of 2 and 3 tokens of `width` bytes, in documents that begin at starts[0…2]. */
static index_text make_index(uint8_t code, int width, const int64_t starts[3]) {
    index_text index = {.size = 9};
    memcpy(index.bytes, "MMIDIDX\0", 9);
    put(&index, 1, 8);
    put(&index, code, 1);
    put(&index, 2, 8);
    put(&index, 3, 8);
    put(&index, 2, 4);
    put(&index, 3, 4);
    put(&index, 0, 8);
    put(&index, (uint64_t)(2 * width), 8);
    for (int i = 0; i < 3; i++) put(&index, (uint64_t)starts[i], 8);
    return index;
}

static const int64_t straight[3] = {0, 1, 2};

static sifr_status parse(const index_text *index, const void *data, size_t size) {
    uint8_t *exact = malloc(index->size + 1); /* so that reading on is seen */
    memcpy(exact, index->bytes, index->size);
    sifr_status status =
        data_token_store_parse(exact, index->size, data, size, "p", &store, &error);
    free(exact);
    return status;
}

static void types(void **state) {
    (void)state;
    static const int widths[] = {0, 1, 0, 2, 4, 8, 0, 0, 2, 0};
    static const int8_t negative[40] = {-1, -1, -1, -1, -1, -1, -1, -1};
    for (int code = 0; code < 10; code++) {
        int width = widths[code];
        index_text index = make_index((uint8_t)code, width ? width : 4, straight);
        uint8_t data[40] = {0};
        for (int i = 0; i < 5; i++) data[i * (width ? width : 4)] = (uint8_t)(10 + i);
        size_t size = (size_t)(5 * (width ? width : 4));
        if (!width) {
            assert_int_equal(parse(&index, data, size), SIFR_FAILED);
            assert_message(&error, "holds no token ids");
            continue;
        }
        assert_int_equal(
            data_token_store_parse(index.bytes, index.size, data, size, "p", &store, &error),
            SIFR_OK);
        int32_t ids[5];
        data_token_store_read(&store, 0, 5, ids);
        for (int i = 0; i < 5; i++) assert_int_equal(ids[i], 10 + i);
        assert_int_equal(data_token_store_check(&store, 15, "p", &error), SIFR_OK);
        assert_int_equal(data_token_store_check(&store, 14, "p", &error), SIFR_FAILED);
        assert_message(&error, "token 4 is id 14, outside the vocabulary of 14");
        data_token_store_close(&store);
        assert_int_equal(
            data_token_store_parse(index.bytes, index.size, negative, size, "p", &store, &error),
            SIFR_OK);
        int64_t unsigned_limit = code == 1 ? 256 : 65536;
        assert_int_equal(data_token_store_check(&store, unsigned_limit, "p", &error),
                         code == 1 || code == 8 ? SIFR_OK : SIFR_FAILED);
        data_token_store_close(&store);
    }
}

static void changed(size_t at, uint64_t value, int bytes, size_t data_size, const char *part) {
    static const uint8_t data[64];
    index_text index = make_index(4, 4, straight);
    size_t whole = index.size;
    index.size = at;
    put(&index, value, bytes);
    index.size = whole;
    if (parse(&index, data, data_size) != SIFR_FAILED) fail_msg("byte %zu: accepted", at);
    assert_message(&error, part);
}

static void hostile(void **state) {
    (void)state;
    static const uint8_t data[64];
    index_text good = make_index(4, 4, straight);
    assert_int_equal(parse(&good, data, 20), SIFR_OK);
    for (size_t size = 0; size < good.size; size++) {
        index_text cut = good;
        cut.size = size;
        assert_int_equal(parse(&cut, data, 20), SIFR_FAILED);
    }
    for (size_t more = 1; more <= 3; more++) { /* two bytes more are the optional modes */
        index_text longer = good;
        longer.size += more;
        assert_int_equal(parse(&longer, data, 20), more == 2 ? SIFR_OK : SIFR_FAILED);
    }
    for (size_t size = 0; size < 64; size++) {
        assert_int_equal(parse(&good, data, size), size == 20 ? SIFR_OK : SIFR_FAILED);
    }
    changed(0, 'X', 1, 20, "MMIDIDX");
    changed(9, 2, 8, 20, "version 2");
    changed(18, UINT64_MAX, 8, 20, "do not hold");
    changed(18, (UINT64_MAX / 12) + 1, 8, 20, "do not hold");
    changed(18, 1, 8, 20, "do not hold");
    changed(26, 0, 8, 20, "do not hold");
    changed(26, UINT64_C(1) << 61, 8, 20, "do not hold");
    /* Counts whose products wrap to just the size of the file. */
    index_text wrapped = good;
    wrapped.size = 18;
    put(&wrapped, UINT64_MAX / 12 + 1, 8);
    put(&wrapped, 5, 8);
    wrapped.size = good.size;
    assert_int_equal(parse(&wrapped, data, 20), SIFR_FAILED);
    assert_message(&error, "do not hold");
    changed(34, 0xFFFFFFFF, 4, 20, "sequence 0");
    changed(34, 3, 4, 20, "sequence 1");
    changed(38, 4, 4, 20, "sequence 1");
    changed(38, 2, 4, 20, "its index accounts for 16");
    changed(42, 4, 8, 20, "sequence 0");
    changed(42, UINT64_MAX, 8, 20, "sequence 0");
    changed(50, 4, 8, 20, "sequence 1");
    changed(58, 1, 8, 20, "document entry 0");
    changed(66, 3, 8, 20, "document entry 1");
    changed(66, UINT64_MAX, 8, 20, "document entry 1");
    changed(74, 1, 8, 20, "document entry 2");
    /* Two sequences in one document, and an empty one. */
    static const int64_t joined[3] = {0, 0, 2};
    index_text two = make_index(4, 4, joined);
    assert_int_equal(data_token_store_parse(two.bytes, two.size, data, 20, "p", &store, &error),
                     SIFR_OK);
    int64_t first, count;
    data_token_store_document(&store, 0, &first, &count);
    assert_int_equal(count, 0);
    data_token_store_document(&store, 1, &first, &count);
    assert_int_equal(first, 0);
    assert_int_equal(count, 5);
}

/* --- Megatron's older index --- */

/* Items of 2, 0 and 3 tokens in two documents; `at` of the counts is replaced by `value`. */
static index_text make_legacy(uint64_t code, int width, size_t at, uint64_t value) {
    static const uint64_t dimensions[] = {0, 1, 2, 3}, offsets[] = {0, 2, 2, 5};
    static const uint64_t sizes[] = {2, 0, 3}, documents[] = {0, 2, 3};
    index_text index = {.size = 8};
    memcpy(index.bytes, "TNTIDX\0", 8);
    const uint64_t header[] = {1, code, (uint64_t)width, 3, 3, 3};
    for (int i = 0; i < 6; i++) put(&index, header[i], 8);
    for (int i = 0; i < 4; i++) put(&index, dimensions[i], 8);
    for (int i = 0; i < 4; i++) put(&index, offsets[i], 8);
    for (int i = 0; i < 3; i++) put(&index, sizes[i], 8);
    for (int i = 0; i < 3; i++) put(&index, documents[i], 8);
    size_t whole = index.size;
    if (at) index.size = at, put(&index, value, 8), index.size = whole;
    return index;
}

static void older(void **state) {
    (void)state;
    static const struct { int code, width; } kinds[] = {{1, 1}, {3, 2}, {4, 4}, {5, 8}, {8, 2}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int width = kinds[k].width;
        uint8_t data[40] = {0};
        for (int i = 0; i < 5; i++) data[i * width] = (uint8_t)(10 + i);
        index_text index = make_legacy((uint64_t)kinds[k].code, width, 0, 0);
        assert_int_equal(data_token_store_parse(index.bytes, index.size, data, (size_t)(5 * width),
                                                "p", &store, &error),
                         SIFR_OK);
        assert_int_equal(store.documents, 2);
        assert_int_equal(store.sequences, 3);
        assert_int_equal(store.tokens, 5);
        int64_t first, count;
        int32_t ids[5];
        data_token_store_document(&store, 0, &first, &count);
        assert_true(first == 0);
        assert_true(count == 2);
        data_token_store_document(&store, 1, &first, &count);
        assert_true(first == 2);
        assert_true(count == 3);
        data_token_store_read(&store, 0, 5, ids);
        for (int i = 0; i < 5; i++) assert_int_equal(ids[i], 10 + i);
        data_token_store_close(&store);
    }
}

static void older_changed(size_t at, uint64_t value, const char *part) {
    static const uint8_t data[64];
    index_text index = make_legacy(4, 4, at, value);
    if (parse(&index, data, 20) != SIFR_FAILED) fail_msg("byte %zu: accepted", at);
    assert_message(&error, part);
}

static void older_hostile(void **state) {
    (void)state;
    static const uint8_t data[64];
    index_text good = make_legacy(4, 4, 0, 0);
    assert_int_equal(parse(&good, data, 20), SIFR_OK);
    for (size_t size = 0; size < good.size; size++) {
        index_text cut = good;
        cut.size = size;
        assert_int_equal(parse(&cut, data, 20), SIFR_FAILED);
    }
    for (size_t size = 0; size < 64; size++)
        assert_int_equal(parse(&good, data, size), size == 20 ? SIFR_OK : SIFR_FAILED);
    older_changed(8, 2, "version 2");
    older_changed(16, 6, "type code 6 holds no token ids");
    older_changed(16, UINT64_MAX, "holds no token ids");
    older_changed(24, 8, "tokens of 8 bytes, but of type code 4");
    older_changed(32, UINT64_MAX, "do not hold");
    older_changed(32, UINT64_MAX / 2 + 4, "do not hold"); /* twice as much wraps to the size */
    older_changed(32, 2, "do not hold");
    older_changed(40, UINT64_MAX, "do not hold");
    older_changed(48, 0, "do not hold");
    older_changed(48, UINT64_MAX, "do not hold");
    older_changed(56, 1, "item 0 has no one dimension");
    older_changed(80, 4, "item 3 has no one dimension");
    older_changed(88, 1, "item 0 begins at token 1");
    older_changed(96, 3, "item 1 begins at token 3");
    older_changed(112, 6, "item 3 begins at token 6");
    older_changed(120, 6, "item 0 has 6 tokens");
    older_changed(120, UINT64_MAX, "item 0 has 18446744073709551615 tokens");
    older_changed(136, 2, "item 3 begins at token 5");
    older_changed(144, 1, "document entry 0");
    older_changed(152, UINT64_MAX, "document entry 1");
    older_changed(160, 2, "document entry 2");
}

/* --- llm.c's files --- */

typedef struct llmc_file {
    uint8_t bytes[1024 + 64];
    size_t size;
} llmc_file;

static llmc_file make_llmc(uint32_t magic, uint32_t version, uint32_t count, int width) {
    llmc_file file = {.size = 1024 + 3 * (size_t)width};
    const uint32_t header[] = {magic, version, count};
    for (int i = 0; i < 3; i++)
        for (int b = 0; b < 4; b++) file.bytes[4 * i + b] = (uint8_t)(header[i] >> 8 * b);
    for (int i = 0; i < 3; i++) file.bytes[1024 + i * width] = (uint8_t)(20 + i);
    return file;
}

static void llmc(void **state) {
    (void)state;
    static const struct {
        uint32_t magic, version;
        int width;
    } kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
    for (int k = 0; k < 2; k++) {
        char prefix[BASE_PATH_LENGTH];
        int64_t first, count;
        int32_t ids[3];
        llmc_file file = make_llmc(kinds[k].magic, kinds[k].version, 3, kinds[k].width);
        const char *path = scratch_path("tokens.bin");
        assert_int_equal(base_write_file(path, file.bytes, file.size, &error), SIFR_OK);
        assert_true(data_token_store_prefix(path, prefix));
        assert_string_equal(prefix, path);
        if (data_token_store_open(prefix, &store, &error) != SIFR_OK) fail_msg("%s", error.message);
        assert_int_equal(store.tokens, 3);
        assert_int_equal(store.documents, 1);
        data_token_store_document(&store, 0, &first, &count);
        assert_true(first == 0);
        assert_true(count == 3);
        data_token_store_read(&store, 0, 3, ids);
        for (int i = 0; i < 3; i++) assert_int_equal(ids[i], 20 + i);
        assert_int_equal(data_token_store_check(&store, 22, prefix, &error), SIFR_FAILED);
        assert_message(&error, "tokens.bin: token 2 is id 22");
        data_token_store_close(&store);
        unlink(path);
    }
}

static void refuse_llmc(llmc_file file, const char *part) {
    uint8_t *exact = malloc(file.size + 1);
    memcpy(exact, file.bytes, file.size);
    assert_int_equal(data_token_store_parse_llmc(exact, file.size, "p", &store, &error),
                     SIFR_FAILED);
    assert_message(&error, part);
    free(exact);
}

static void llmc_hostile(void **state) {
    (void)state;
    refuse_llmc(make_llmc(20240521, 1, 3, 2), "not a file of llm.c's tokens");
    refuse_llmc(make_llmc(20240522, 1, 3, 2), "of an evaluation");
    refuse_llmc(make_llmc(20240520, 2, 3, 2), "version 2 of llm.c's file, 1 is known");
    refuse_llmc(make_llmc(20240801, 1, 3, 4), "version 1 of llm.c's file, 7 is known");
    refuse_llmc(make_llmc(20240520, 1, 4, 2), "its header says 4 tokens of 2 bytes");
    refuse_llmc(make_llmc(20240520, 1, 0xFFFFFFFF, 2), "its header says 4294967295 tokens");
    refuse_llmc(make_llmc(20240801, 7, 0x40000003, 4), "tokens of 4 bytes"); /* wraps in 32 bits */
    llmc_file file = make_llmc(20240520, 1, 3, 2);
    for (size_t size = 0; size < file.size; size++) {
        llmc_file cut = file;
        cut.size = size;
        refuse_llmc(cut, size < 4 ? "not a file of" : "cut short");
    }
}

static void files(void **state) {
    (void)state;
    assert_int_equal(data_token_store_open(scratch_path("absent"), &store, &error), SIFR_FAILED);
    write_store(scratch_path("cut"), 300, 5);
    assert_int_equal(truncate(scratch_path("cut.bin"), 7), 0);
    assert_int_equal(data_token_store_open(scratch_path("cut"), &store, &error), SIFR_FAILED);
    assert_message(&error, "not a whole number of tokens");
    assert_int_equal(truncate(scratch_path("cut.idx"), 0), 0);
    assert_int_equal(data_token_store_open(scratch_path("cut"), &store, &error), SIFR_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip),    cmocka_unit_test(damage),
                                       cmocka_unit_test(writer_errors), cmocka_unit_test(types),
                                       cmocka_unit_test(hostile),       cmocka_unit_test(older),
                                       cmocka_unit_test(older_hostile), cmocka_unit_test(llmc),
                                       cmocka_unit_test(llmc_hostile),  cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
