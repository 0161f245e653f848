/* --data PATH…: files, directories, patterns; what is no text is refused by name. */
#include <sys/stat.h>

#include "support/scratch.h"

#include "data/stream/text_source.h"

static sifr_error error;
static data_text_source source;

static sifr_status open_paths(const char *a, const char *b) {
    const char *paths[] = {a, b};
    return data_text_source_open(paths, b ? 2 : 1, &source, &error);
}

static void assert_names(const char *const *names, size_t count) {
    assert_int_equal(source.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(source.documents[i].path, scratch_path(names[i]));
    }
    data_text_source_close(&source);
}

static void listing(void **state) {
    (void)state;
    assert_int_equal(mkdir(scratch_path("d"), 0777), 0);
    assert_int_equal(mkdir(scratch_path("d/b"), 0777), 0);
    assert_int_equal(mkdir(scratch_path("d/.git"), 0777), 0);
    scratch_text("d/c.txt", "third");
    scratch_text("d/a.txt", "first");
    scratch_text("d/b/z", "second, \xFF is kept");
    scratch_text("d/empty", "");
    scratch_text("d/.hidden", "x");
    scratch_text("d/.git/x", "x");
    assert_int_equal(symlink("..", scratch_path("d/b/up")), 0);
    const char *folder = scratch_path("d");
    assert_int_equal(data_text_source_list(&folder, 1, &source, &error), SIFR_OK);
    assert_names((const char *[]){"d/a.txt", "d/b/z", "d/c.txt", "d/empty"}, 4);
    assert_int_equal(open_paths(scratch_path("d"), NULL), SIFR_OK);
    assert_int_equal(source.empty_files, 1);
    assert_int_equal(source.links, 1);
    assert_int_equal(source.bytes, 5 + 5 + 17);
    base_map map;
    assert_int_equal(data_text_source_map(&source, 1, &map, &error), SIFR_OK);
    assert_int_equal(map.size, 17);
    assert_memory_equal(map.data, "second, \xFF is kept", 17);
    base_unmap(&map);
    assert_names((const char *[]){"d/a.txt", "d/b/z", "d/c.txt"}, 3);

    assert_int_equal(open_paths(scratch_path("d/c.txt"), scratch_path("d/[a-b]*")), SIFR_OK);
    assert_names((const char *[]){"d/c.txt", "d/a.txt", "d/b/z"}, 3);
    assert_int_equal(open_paths(scratch_path("d/?.txt"), NULL), SIFR_OK);
    assert_names((const char *[]){"d/a.txt", "d/c.txt"}, 2);
    scratch_text("d/[x]", "a name, not a pattern");
    assert_int_equal(open_paths(scratch_path("d/[x]"), NULL), SIFR_OK);
    assert_names((const char *[]){"d/[x]"}, 1);
}

static void refused(const char *path, sifr_status status, const char *part) {
    if (open_paths(path, NULL) != status) fail_msg("%s: not %d", path, status);
    assert_message(&error, part);
    assert_int_equal(source.count, 0);
}

static void refusals(void **state) {
    (void)state;
    refused(scratch_path("absent"), SIFR_FAILED, "no such file or directory");
    refused(scratch_path("*.none"), SIFR_FAILED, "no file matches");
    assert_int_equal(mkdir(scratch_path("e"), 0777), 0);
    refused(scratch_path("e"), SIFR_FAILED, "no text to read");
    scratch_text("e/empty", "");
    refused(scratch_path("e"), SIFR_FAILED, "files found: 1, all of them empty");
    scratch_write("e/image.png", "ab\0c", 4);
    refused(scratch_path("e"), SIFR_FAILED, "image.png: not text: it has a NUL byte at 2");
    assert_int_equal(unlink(scratch_path("e/image.png")), 0);
    scratch_write("e/wide.txt",
                  "\xff\xfe"
                  "a\0",
                  4);
    refused(scratch_path("e"), SIFR_FAILED, "wide.txt: is UTF-16, not UTF-8; save it as UTF-8");
    assert_int_equal(unlink(scratch_path("e/wide.txt")), 0);
    assert_int_equal(mkfifo(scratch_path("e/pipe"), 0666), 0);
    refused(scratch_path("e"), SIFR_FAILED, "a device or pipe");
    refused("/dev/zero", SIFR_FAILED, "a device or pipe");
    assert_int_equal(unlink(scratch_path("e/pipe")), 0);
    assert_int_equal(symlink("nowhere", scratch_path("e/broken")), 0);
    refused(scratch_path("e"), SIFR_FAILED, "broken: cannot open");
    assert_int_equal(unlink(scratch_path("e/broken")), 0);
    if (geteuid() != 0) {
        assert_int_equal(chmod(scratch_text("e/secret", "x"), 0), 0);
        refused(scratch_path("e"), SIFR_FAILED, "secret: cannot open");
    }
    /* A NUL far behind the beginning is found when the text is mapped. */
    static char late[100000];
    memset(late, 'x', sizeof late);
    late[90000] = 0;
    assert_int_equal(open_paths(scratch_write("late", late, sizeof late), NULL), SIFR_OK);
    base_map map;
    assert_int_equal(data_text_source_map(&source, 0, &map, &error), SIFR_FAILED);
    assert_message(&error, "NUL byte at 90000");
    data_text_source_close(&source);
}

/* Files of records are told by their names, packed ones and Parquet are never read. */
static void records(void **state) {
    (void)state;
    static const char *const records[][2] = {{"x.json", "JSON"},
                                             {"x.jsonl", "JSON"},
                                             {"x.NDJSON", "JSON"},
                                             {"x.csv", "CSV"},
                                             {"x.tsv", "CSV"}};
    static const char *const binary[] = {"x.parquet", "x.arrow",  "x.jsonl.gz",   "x.json.zst",
                                         "x.txt.gz",  "x.csv.xz", "x.parquet.zst"};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        const char *path;
        assert_int_equal(open_paths(scratch_text(records[i][0], "{\"a\": 1}\n"), NULL), SIFR_OK);
        assert_string_equal(data_text_source_records(&source, &path), records[i][1]);
        assert_int_equal(data_text_source_check(&source, &error), SIFR_USAGE);
        assert_message(&error, records[i][0]);
        assert_message(&error, "plain text (.txt)");
        assert_message(&error, "sifr tokenize");
        data_text_source_close(&source);
    }
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        refused(scratch_text(binary[i], "x"), SIFR_USAGE, "is not read");
    refused(scratch_path("x.json.zst"), SIFR_USAGE, "a packed file of rows is not read as text");
    static const char *const texts[] = {"json", "x.json.txt", "xjson", "x.gz.md"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(open_paths(scratch_text(texts[i], "x"), NULL), SIFR_OK);
        assert_int_equal(data_text_source_check(&source, &error), SIFR_OK);
        data_text_source_close(&source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(listing), cmocka_unit_test(refusals),
                                       cmocka_unit_test(records)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
