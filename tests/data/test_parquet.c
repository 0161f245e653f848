/* Parquet files against what pyarrow reads (tests/golden/make_parquet.py), and damaged ones: one
 * line of message, and never more rows than the file has. */
#include "support/scratch.h"

#include "base/json.h"
#include "data/parquet/parquet.h"
#include "data/records/records.h"

static const char *golden(const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/parquet/%s", source ? source : ".", name);
    return path;
}

static json_t *load(const char *name) {
    json_t *json;
    sifr_error error = {0};
    if (base_json_load(golden(name), 1 << 24, &json, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return json;
}

static void read_bytes(const char *name, char **out, size_t *size) {
    sifr_error error = {0};
    if (base_read_file(golden(name), 1 << 24, out, size, &error) != SIFR_OK)
        fail_msg("%s", error.message);
}

static void needs_parquet(void) {
    if (!data_parquet_built()) {
        print_message("built without Parquet: skipped\n");
        skip();
    }
}

/* 1 where the file has other rows. */
static int check_file(const char *name, const json_t *rows) {
    data_records *records;
    sifr_error error = {0};
    size_t i;
    json_t *wanted, *row;
    if (data_records_open(golden(name), &records, &error) != SIFR_OK) fail_msg("%s", error.message);
    const json_t *columns = data_records_columns(records);
    assert_int_equal(json_array_size(columns), json_object_size(json_array_get(rows, 0)));
    json_array_foreach(rows, i, wanted) {
        if (data_records_next(records, &row, &error) != SIFR_OK)
            fail_msg("row %zu: %s", i, error.message);
        assert_int_equal(data_records_row(records), i + 1);
        if (!row || !json_equal(row, wanted)) {
            char *text = row ? json_dumps(row, 0) : NULL, *other = json_dumps(wanted, 0);
            print_message("%s, row %zu\nwanted: %s\ngot:    %s\n", name, i, other,
                          text ? text : "none");
            free(text);
            free(other);
            json_decref(row);
            data_records_close(records);
            return 1;
        }
        json_decref(row);
    }
    assert_int_equal(data_records_next(records, &row, &error), SIFR_OK);
    assert_null(row);
    data_records_close(records);
    return 0;
}

static void files_of_pyarrow(void **state) {
    (void)state;
    needs_parquet();
    json_t *index = load("index.json"), *flat = load("flat.json"), *nested = load("nested.json");
    size_t i;
    json_t *file;
    int bad = 0;
    json_array_foreach(json_object_get(index, "files"), i, file) {
        bool is_flat = strcmp(json_string_value(json_array_get(file, 1)), "flat") == 0;
        bad += check_file(json_string_value(json_array_get(file, 0)), is_flat ? flat : nested);
    }
    json_decref(index);
    json_decref(flat);
    json_decref(nested);
    print_message("%zu files of pyarrow\n", i);
    assert_true(i >= 15);
    if (bad) fail_msg("%d files have other rows", bad);
}

/* --- damage --- */

/* Reads all that can be read; the number of rows. */
static size_t read_all(const char *data, size_t size, bool *whole) {
    data_records *records;
    sifr_error error = {0};
    size_t rows = 0;
    *whole = false;
    sifr_status status =
        data_records_parse(DATA_RECORDS_PARQUET, data, size, "input", &records, &error);
    if (status == SIFR_OK) {
        for (;;) {
            json_t *row;
            status = data_records_next(records, &row, &error);
            if (status == SIFR_OK && !row) break;
            if (status != SIFR_OK && !data_records_skippable(records)) break;
            rows++;
            json_decref(row);
        }
        *whole = status == SIFR_OK;
        data_records_close(records);
    }
    if (status != SIFR_OK) {
        assert_true(strncmp(error.message, "input: ", 7) == 0);
        assert_true(!strchr(error.message, '\n'));
    }
    return rows;
}

static void cut_short(void **state) {
    (void)state;
    char *data;
    size_t size;
    bool whole;
    needs_parquet();
    read_bytes("nested-snappy.parquet", &data, &size);
    for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 97) {
        char *copy = malloc(cut + 1); /* so that a sanitizer sees a read behind it */
        memcpy(copy, data, cut);
        assert_int_equal(read_all(copy, cut, &whole), 0);
        assert_false(whole);
        free(copy);
    }
    assert_int_equal(read_all(data, size, &whole), 150);
    assert_true(whole);
    free(data);
}

static void wrong_bytes(void **state) {
    (void)state;
    static const char *const names[] = {"nested-lz4-pages.parquet", "flat-delta.parquet",
                                        "flat-plain.parquet", "nested-gzip-v2.parquet"};
    needs_parquet();
    uint32_t random = 1;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char *data;
        size_t size, refused = 0;
        bool whole;
        read_bytes(names[n], &data, &size);
        for (int i = 0; i < 300; i++) {
            random = random * 1664525 + 1013904223;
            size_t at = random % size;
            char was = data[at];
            data[at] = (char)(was ^ (1 + (random >> 8) % 255));
            size_t rows = read_all(data, size, &whole);
            assert_true(rows <= 150);
            refused += !whole;
            data[at] = was;
        }
        assert_true(refused > 20);
        free(data);
    }
}

/* A changed byte in a page whose checksum is stored is seen. */
static void checksums(void **state) {
    (void)state;
    char *data;
    size_t size;
    bool whole;
    needs_parquet();
    read_bytes("flat-checksums.parquet", &data, &size);
    data[200] = (char)(data[200] ^ 1);
    read_all(data, size, &whole);
    assert_false(whole);
    free(data);
}

static void refused(const void *data, size_t size, const char *file, const char *word) {
    data_records *records;
    sifr_error error = {0};
    scratch_write(file, data, size);
    char path[BASE_PATH_LENGTH + 64];
    snprintf(path, sizeof path, "%s/%s", scratch, file);
    assert_true(data_records_open(path, &records, &error) != SIFR_OK);
    if (!strstr(error.message, word)) fail_msg("%s", error.message);
}

static void no_parquet(void **state) {
    (void)state;
    char *data;
    size_t size;
    read_bytes("flat-snappy.parquet", &data, &size);
    if (!data_parquet_built()) {
        refused(data, size, "a.parquet", "Parquet is not read; convert it, with pandas");
    } else {
        refused("{}", 2, "a.parquet", "no Parquet file: it does not begin with PAR1");
        refused(data, size, "a.parquet.gz", "a packed Parquet file is not read; unpack it");
        data_records *records;
        sifr_error error = {0};
        json_t *row;
        assert_int_equal(data_records_open(golden("brotli.parquet"), &records, &error), SIFR_OK);
        assert_int_equal(data_records_next(records, &row, &error), SIFR_USAGE);
        if (!strstr(error.message, "packed with Brotli, which is not supported"))
            fail_msg("%s", error.message);
        data_records_close(records);
        refused(data, size - 1, "b.parquet", "b.parquet: the Parquet file cannot be read");
    }
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_pyarrow),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(wrong_bytes),
        cmocka_unit_test(checksums),
        cmocka_unit_test_setup_teardown(no_parquet, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
