/* Rows of labelled data: CSV, TSV, JSONL, CoNLL, and what is wrong with them. */
#include "support/scratch.h"

#include <jansson.h>

#include "data/records/records.h"

/* All rows as one JSON text. */
static char *read_all(data_records_kind kind, const char *text, size_t size) {
    data_records *records;
    sifr_error error = {0};
    json_t *rows = json_array(), *row;
    if (data_records_parse(kind, text, size, "data", &records, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    for (;;) {
        if (data_records_next(records, &row, &error) != SIFR_OK) fail_msg("%s", error.message);
        if (!row) break;
        assert_true(data_records_line(records) >= 1);
        json_array_append_new(rows, row);
    }
    /* It stays at the end. */
    assert_int_equal(data_records_next(records, &row, &error), SIFR_OK);
    assert_null(row);
    data_records_close(records);
    char *out = json_dumps(rows, JSON_COMPACT);
    json_decref(rows);
    return out;
}

static void assert_rows(data_records_kind kind, const char *text, const char *expected) {
    /* A copy without a NUL, so that a sanitizer sees a read beyond the end. */
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    char *rows = read_all(kind, copy, size);
    assert_string_equal(rows, expected);
    free(rows);
    free(copy);
}

static void refuse_bytes(data_records_kind kind, const char *text, size_t size,
                         const char *message) {
    data_records *records;
    sifr_error error = {0};
    json_t *row = NULL;
    sifr_status status = data_records_parse(kind, text, size, "data", &records, &error);
    if (status == SIFR_OK) {
        do {
            json_decref(row);
            status = data_records_next(records, &row, &error);
        } while (status == SIFR_OK && row);
        json_decref(row);
        data_records_close(records);
    }
    assert_int_equal(status, SIFR_FAILED);
    assert_message(&error, message);
}

static void refuse(data_records_kind kind, const char *text, const char *message) {
    refuse_bytes(kind, text, strlen(text), message);
}

static void reads_csv(void **state) {
    (void)state;
    static const char plain[] =
        "[{\"text\":\"a b\",\"label\":\"1\"},{\"text\":\"\",\"label\":\"0\"}]";
    assert_rows(DATA_RECORDS_CSV, "text,label\na b,1\n,0\n", plain);
    assert_rows(DATA_RECORDS_CSV, "\xEF\xBB\xBFtext,label\r\na b,1\r\n\r\n,0", plain);
    assert_rows(DATA_RECORDS_CSV, "\"text\",\"label\"\n\"a b\",\"1\"\r\n\"\",\"0\"", plain);
    assert_rows(
        DATA_RECORDS_CSV, "text,label\n\"one, two\",x\n\"a \"\"b\"\"\",y\n\"up\r\ndown\n\",\"z\"\n",
        "[{\"text\":\"one, two\",\"label\":\"x\"},{\"text\":\"a \\\"b\\\"\",\"label\":\"y\"},"
        "{\"text\":\"up\\r\\ndown\\n\",\"label\":\"z\"}]");
    /* A quote inside a field that does not begin with one is an ordinary character. */
    assert_rows(DATA_RECORDS_CSV, "text\n5\" wide\n", "[{\"text\":\"5\\\" wide\"}]");
    assert_rows(DATA_RECORDS_CSV, "text,label\n", "[]");
}

static void refuses_csv(void **state) {
    (void)state;
    refuse(DATA_RECORDS_CSV, "", "data: empty");
    refuse(DATA_RECORDS_CSV, "text,text\n", "two columns are named 'text'");
    refuse(DATA_RECORDS_CSV, "text,label\na,1\nb\n",
           "line 3 has 1 field, but the first line names 2 columns");
    refuse(DATA_RECORDS_CSV, "text,label\n\"a\nb\",1\nc,d,2\n", "line 4 has more than 2 fields");
    refuse(DATA_RECORDS_CSV, "text,label\nx,1\n\"a,1\nb,2\n",
           "line 3 begins a row with a quote that is never closed");
    refuse(DATA_RECORDS_CSV, "text,label\n\"a\"b,1\n", "line 2 has text behind a closing quote");
    refuse(DATA_RECORDS_CSV, "text,label\nx,1\n\xC3\x28,1\n", "line 3 is not valid UTF-8");
    refuse_bytes(DATA_RECORDS_CSV, "text,label\na\0b,1\n", 17, "line 2 has a NUL byte");
}

static void reads_tsv(void **state) {
    (void)state;
    assert_rows(DATA_RECORDS_TSV, "sentence\tlabel\nsay \"no\", he\t0\r\n\"open\t1\n\t2\n",
                "[{\"sentence\":\"say \\\"no\\\", he\",\"label\":\"0\"},"
                "{\"sentence\":\"\\\"open\",\"label\":\"1\"},{\"sentence\":\"\",\"label\":\"2\"}]");
    refuse(DATA_RECORDS_TSV, "a\tb\n1\t2\t3\n", "no field may hold a tab");
}

static void reads_jsonl(void **state) {
    (void)state;
    assert_rows(DATA_RECORDS_JSONL,
                "\n{\"text\": \"a\\nb\", \"label\": 1}\r\n  \n{\"tags\": [\"O\"], \"n\": null}",
                "[{\"text\":\"a\\nb\",\"label\":1},{\"tags\":[\"O\"],\"n\":null}]");
    assert_rows(DATA_RECORDS_JSONL, "", "[]");
    refuse(DATA_RECORDS_JSONL, "{\"text\": \"a\"}\n{\"text\": \n", "line 2");
    refuse(DATA_RECORDS_JSONL, "{\"a\": 1}\n\n7\n", "line 3 is not a JSON object");
    refuse(DATA_RECORDS_JSONL, "[{\"text\": \"a\"}]\n", "line 1 is not a JSON object");
    refuse(DATA_RECORDS_JSONL, "{\"a\": 1}\n{\"a\": \"caf\xE9\"}\n",
           "data: line 2 is not valid UTF-8; convert the file");
    char deep[160] = "{\"a\": 1}\n{\"a\": ";
    memset(deep + strlen(deep), '[', 80);
    refuse(DATA_RECORDS_JSONL, deep, "data: line 2: JSON nested deeper than 64 levels");
    data_records *records;
    static const char text[] = "{\"text\": 1, \"label\": 2}\n";
    assert_int_equal(
        data_records_parse(DATA_RECORDS_JSONL, text, strlen(text), "data", &records, NULL),
        SIFR_OK);
    assert_int_equal(json_array_size(data_records_columns(records)), 2);
    data_records_close(records);
}

static void reads_conll(void **state) {
    (void)state;
    assert_rows(DATA_RECORDS_CONLL,
                "-DOCSTART- -X- O\n\nAnna\tB-PER\nsings O\r\n\n\n\nBonn NNP B-NP B-LOC\n",
                "[{\"tokens\":[\"Anna\",\"sings\"],\"tags\":[\"B-PER\",\"O\"]},"
                "{\"tokens\":[\"Bonn\"],\"tags\":[\"B-LOC\"]}]");
    assert_rows(DATA_RECORDS_CONLL, "\n\n", "[]");
    refuse(DATA_RECORDS_CONLL, "Anna B-PER\n\nsings\n", "line 3 has no word and tag");
    refuse(DATA_RECORDS_CONLL, "Anna B-PER\n\xC3\x28 O\n", "not valid UTF-8");
}

static void opens_files(void **state) {
    (void)state;
    data_records *records;
    sifr_error error = {0};
    assert_int_equal(data_records_open(scratch_text("a.txt", "x"), &records, &error), SIFR_USAGE);
    assert_message(&error, "a.txt: rows are read from files named");
    assert_int_equal(data_records_open(scratch_path("none.csv"), &records, &error), SIFR_FAILED);
    assert_message(&error, "none.csv");
    assert_int_equal(data_records_open(scratch_text("e.csv", ""), &records, &error), SIFR_FAILED);
    assert_int_equal(
        data_records_open(scratch_text("a.CSV", "text,label\na,b\n"), &records, &error), SIFR_OK);
    json_t *row;
    assert_int_equal(data_records_next(records, &row, &error), SIFR_OK);
    assert_string_equal(json_string_value(json_object_get(row, "label")), "b");
    assert_int_equal(data_records_line(records), 2);
    assert_non_null(strstr(data_records_name(records), "a.CSV"));
    json_decref(row);
    data_records_close(records);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_csv),   cmocka_unit_test(refuses_csv),
        cmocka_unit_test(reads_tsv),   cmocka_unit_test(reads_jsonl),
        cmocka_unit_test(reads_conll), cmocka_unit_test(opens_files)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
