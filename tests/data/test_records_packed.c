/* Rows of packed files and of JSON arrays, and reading on behind a row that is not well formed. */
#include "support/scratch.h"

#include <jansson.h>
#include <zlib.h>
#include <zstd.h>

#include "data/records/records.h"

/* Rows that are longer and shorter than what is unpacked at a time. */
static size_t make_rows(data_records_kind kind, char **out) {
    size_t capacity = 4 << 20, size = 0;
    char *text = malloc(capacity);
    size += (size_t)snprintf(text, capacity, "%s",
                             kind == DATA_RECORDS_CSV    ? "a,n\n"
                             : kind == DATA_RECORDS_JSON ? "\n [\n"
                                                         : "");
    for (int i = 0; i < 40; i++) {
        size_t fill = i % 7 == 3 ? 300000 : (size_t)i * 13;
        const char *begin = kind == DATA_RECORDS_CSV ? "\"" : "{\"a\": \"";
        size += (size_t)snprintf(text + size, capacity - size, "%s%s", begin,
                                 kind == DATA_RECORDS_CSV ? "x\n\"\"," : "\\\"{[");
        memset(text + size, 'a' + i % 26, fill);
        size += fill;
        size += (size_t)snprintf(text + size, capacity - size,
                                 kind == DATA_RECORDS_CSV ? "\",%d\r\n" : "\", \"n\": %d}%s\n", i,
                                 kind == DATA_RECORDS_JSON && i < 39 ? " ," : "");
    }
    if (kind == DATA_RECORDS_JSON) size += (size_t)snprintf(text + size, capacity - size, "] \n");
    *out = text;
    return size;
}

static size_t pack(data_packing packing, const char *text, size_t size, int parts, char **out) {
    size_t capacity = 2 * size + 4096, used = 0;
    *out = malloc(capacity);
    for (int p = 0; p < parts; p++) {
        size_t from = size * (size_t)p / (size_t)parts, to = size * (size_t)(p + 1) / (size_t)parts;
        if (packing == DATA_ZSTD) {
            used += ZSTD_compress(*out + used, capacity - used, text + from, to - from, 1);
            continue;
        }
        z_stream z = {.next_in = (Bytef *)(uintptr_t)(text + from),
                      .avail_in = (uInt)(to - from),
                      .next_out = (Bytef *)*out + used,
                      .avail_out = (uInt)(capacity - used)};
        assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        used = capacity - z.avail_out;
        deflateEnd(&z);
    }
    return used;
}

static json_t *read_rows(data_records_kind kind, data_packing packing, const char *data,
                         size_t size, int64_t *lines) {
    data_records *records;
    sifr_error error = {0};
    json_t *rows = json_array(), *row;
    if (data_records_parse_packed(kind, packing, data, size, "data", &records, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    *lines = 0;
    for (;;) {
        if (data_records_next(records, &row, &error) != SIFR_OK) fail_msg("%s", error.message);
        if (!row) break;
        assert_int_equal(data_records_row(records), (int64_t)json_array_size(rows) + 1);
        *lines = (*lines * 31 + data_records_line(records)) % 1000000007;
        json_array_append_new(rows, row);
    }
    data_records_close(records);
    return rows;
}

static void unpacks_rows(void **state) {
    (void)state;
    static const data_records_kind kinds[] = {DATA_RECORDS_JSONL, DATA_RECORDS_JSON,
                                              DATA_RECORDS_CSV};
    for (size_t k = 0; k < 3; k++) {
        char *text, *packed;
        int64_t lines, packed_lines;
        size_t size = make_rows(kinds[k], &text);
        json_t *plain = read_rows(kinds[k], DATA_PLAIN, text, size, &lines);
        assert_int_equal(json_array_size(plain), 40);
        for (int how = 0; how < 4; how++) {
            data_packing packing = how % 2 ? DATA_ZSTD : DATA_GZIP;
            size_t bytes = pack(packing, text, size, how < 2 ? 1 : 5, &packed);
            json_t *rows = read_rows(kinds[k], packing, packed, bytes, &packed_lines);
            assert_true(json_equal(plain, rows));
            assert_int_equal(lines, packed_lines);
            json_decref(rows);
            free(packed);
        }
        json_decref(plain);
        free(text);
    }
}

/* "ok" and "bad" for each row, up to the end or to a failure behind which nothing is read. */
static void assert_course(data_records_kind kind, data_packing packing, const char *data,
                          size_t size, const char *expected, const char *message) {
    char course[64] = "";
    size_t used = 0;
    data_records *records;
    sifr_error error = {0};
    json_t *row = NULL;
    sifr_status status =
        data_records_parse_packed(kind, packing, data, size, "data", &records, &error);
    bool opened = status == SIFR_OK, more = opened;
    while (more) {
        status = data_records_next(records, &row, &error);
        more = status == SIFR_OK ? row != NULL : data_records_skippable(records);
        if (status != SIFR_OK) assert_int_equal(status, SIFR_FAILED);
        if (more || status != SIFR_OK) course[used++] = status == SIFR_OK ? 'r' : more ? 'b' : 'f';
        json_decref(row);
    }
    assert_string_equal(opened ? course : "f", expected);
    if (opened) data_records_close(records);
    if (message) assert_message(&error, message);
}

static void assert_text_course(data_records_kind kind, const char *text, const char *expected,
                               const char *message) {
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1), *packed;
    memcpy(copy, text, size);
    assert_course(kind, DATA_PLAIN, copy, size, expected, message);
    for (int p = DATA_GZIP; p <= DATA_ZSTD; p++) {
        size_t bytes = pack((data_packing)p, copy, size, 1, &packed);
        assert_course(kind, (data_packing)p, packed, bytes, expected, message);
        free(packed);
    }
    free(copy);
}

static void reads_arrays(void **state) {
    (void)state;
    const data_records_kind json = DATA_RECORDS_JSON;
    assert_text_course(json, "\xEF\xBB\xBF[]", "", NULL);
    assert_text_course(json, "", "", NULL);
    assert_text_course(json, "[{\"a\": [1, {\"b\": \"]}\\\\\"}]},\n{\"a\": 2}]\n", "rr", NULL);
    assert_text_course(json, "\n{\"a\": 1}\n{\"a\": 2}\n", "rr", NULL);
    assert_text_course(json, "{\n\"a\": {\"b\": 1}\n}\n\n{\"a\":\n2}", "rr", NULL);
    assert_text_course(json, "{\n\"a\": 1}\n7", "rf", "data: line 3: no object begins there");
    assert_text_course(json, "{\"a\": 1}\n{\"a\"\n{\"a\": 2}\n", "rbr", NULL);
    assert_text_course(json, "[{\"a\": 1}\n {\"a\": 2}]", "rf",
                       "data: line 2: a comma must stand between rows");
    assert_text_course(json, "[{\"a\": 1},]", "rf", "data: line 1: a comma before the ]");
    assert_text_course(json, "[{\"a\": 1}", "rf", "data: the array is not closed");
    assert_text_course(json, "[{\"a\": 1}, {\"a\":\n", "rf",
                       "data: the file ends inside row 2, which begins at line 1");
    assert_text_course(json, "[{\"a\": 1}, 7]", "rb", "data: row 2, at line 1, is not an object");
    assert_text_course(json, "[{\"a\": 1}, 7,\"],\\\"\" ,\n[1, {}],\n\n{\"a\": 1}, -1.5]", "rbbbrb",
                       "data: row 6, at line 4, is not an object");
    assert_text_course(json, "[{\"a\": 1}, \"x]", "rf", "data: the array is not closed");
    assert_text_course(json, "[{\"a\": 1},, {\"a\": 1}]", "rf", "data: row 2, at line 1");
    assert_text_course(json, "[{\"a\": 1}] x", "rf", "data: line 1: text behind the array");
    assert_text_course(json, "[{\"a\": 1},\n\n{\"a\" 2}, {\"a\": 3}]", "rbr",
                       "data: not valid JSON at line 3");
}

static void reads_on(void **state) {
    (void)state;
    assert_text_course(DATA_RECORDS_JSONL, "{\"a\": 1}\n{\"a\":\n{\"a\": 3}\n[1]\n{\"a\": 5}",
                       "rbrbr", NULL);
    assert_text_course(DATA_RECORDS_CSV, "a,b\n1,2\n3\n4,5,6,7\n8,9\n", "rbbr", NULL);
    assert_text_course(DATA_RECORDS_CSV, "a,b\n1,2\n\xC3\x28,5\n8,9\n", "rbr",
                       "data: line 3 is not valid UTF-8");
    assert_text_course(DATA_RECORDS_CSV, "a,b\n1,2\n\"3,4\n8,9\n", "rf",
                       "a quote that is never closed");
}

static void refuses_damage(void **state) {
    (void)state;
    char *text, *packed;
    size_t size = make_rows(DATA_RECORDS_JSONL, &text);
    for (int p = DATA_GZIP; p <= DATA_ZSTD; p++) {
        size_t bytes = pack((data_packing)p, text, size / 8, 1, &packed);
        assert_course(DATA_RECORDS_JSONL, (data_packing)p, packed, 0, "f", "there is none");
        assert_course(DATA_RECORDS_JSONL, (data_packing)p, packed, 8, "f", "cut short");
        assert_course(DATA_RECORDS_JSONL, (data_packing)p, text, 100, "f", "damaged");
        packed[0] ^= 1;
        assert_course(DATA_RECORDS_JSONL, (data_packing)p, packed, bytes, "f", "damaged");
        free(packed);
    }
    free(text);
}

static void bounds_rows(void **state) {
    (void)state;
    /* More than a row may have, packed into little. */
    size_t size = (size_t)80 << 20;
    char *text = malloc(size), *packed;
    memset(text, 'a', size);
    for (int p = DATA_GZIP; p <= DATA_ZSTD; p++) {
        size_t bytes = pack((data_packing)p, text, size, 1, &packed);
        assert_course(DATA_RECORDS_JSONL, (data_packing)p, packed, bytes, "f",
                      "the row at line 1 has more than 67108864 bytes");
        text[0] = '[', text[1] = '{';
        free(packed);
        bytes = pack((data_packing)p, text, size, 1, &packed);
        assert_course(DATA_RECORDS_JSON, (data_packing)p, packed, bytes, "f",
                      "has more than 67108864 bytes");
        text[0] = text[1] = 'a';
        free(packed);
    }
    free(text);
    /* The lines around one are read, though it is not held at once. */
    size = (size_t)160 << 20;
    text = malloc(size);
    memset(text, 'a', size);
    memcpy(text, "{}\n", 3);
    memcpy(text + size - 4, "\n{}\n", 4);
    for (int p = DATA_GZIP; p <= DATA_ZSTD; p++) {
        size_t bytes = pack((data_packing)p, text, size, 1, &packed);
        assert_course(DATA_RECORDS_JSONL, (data_packing)p, packed, bytes, "rbr",
                      "the row at line 2 has more than 67108864 bytes");
        free(packed);
    }
    free(text);
}

static void knows_names(void **state) {
    (void)state;
    data_records_kind kind;
    assert_true(data_records_kind_of("x.jsonl.gz", &kind));
    assert_true(kind == DATA_RECORDS_JSONL);
    assert_true(data_records_kind_of("x.JSON.zst", &kind));
    assert_true(kind == DATA_RECORDS_JSON);
    assert_true(data_records_kind_of("a/x.csv", &kind));
    assert_true(kind == DATA_RECORDS_CSV);
    assert_false(data_records_kind_of("x.txt.gz", &kind));
    assert_false(data_records_kind_of(".csv", &kind));
    assert_false(data_records_kind_of(".csv.gz", &kind));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacks_rows), cmocka_unit_test(reads_arrays),
        cmocka_unit_test(reads_on),     cmocka_unit_test(refuses_damage),
        cmocka_unit_test(bounds_rows),  cmocka_unit_test(knows_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
