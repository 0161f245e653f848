/* Lines and fields of the system's small files. */
#include "base/lines.h"

#include "support/scratch.h"

static void test_lines(void **state) {
    (void)state;
    char line[8];
    base_lines lines;
    assert_true(base_lines_open(&lines, scratch_text("some", "one\n\nseven..\ntoo long\nlast")));
    assert_true(base_lines_next(&lines, line, sizeof line));
    assert_string_equal(line, "one");
    assert_true(base_lines_next(&lines, line, sizeof line));
    assert_string_equal(line, "");
    assert_true(base_lines_next(&lines, line, sizeof line));
    assert_string_equal(line, "seven..");
    assert_true(lines.whole);
    assert_true(base_lines_next(&lines, line, sizeof line));
    assert_string_equal(line, "too lon");
    assert_false(lines.whole);
    assert_true(base_lines_next(&lines, line, sizeof line)); /* no newline at the end */
    assert_string_equal(line, "last");
    assert_true(lines.whole);
    assert_false(base_lines_next(&lines, line, sizeof line));
    base_lines_close(&lines);
}

/* Lines across the edges of the buffer. */
static void test_many_lines(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    char text[COUNT * 8], line[32], expected[32];
    size_t used = 0;
    base_lines lines;
    for (int i = 0; i < COUNT; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d\n", i * 7);
    assert_true(base_lines_open(&lines, scratch_write("many", text, used)));
    for (int i = 0; i < COUNT; i++) {
        snprintf(expected, sizeof expected, "%d", i * 7);
        assert_true(base_lines_next(&lines, line, sizeof line));
        assert_string_equal(line, expected);
    }
    assert_false(base_lines_next(&lines, line, sizeof line));
    base_lines_close(&lines);
}

static void test_first_line(void **state) {
    (void)state;
    char line[32] = "before";
    assert_true(base_read_line(scratch_text("first", "the first\nthe second\n"), line, 32));
    assert_string_equal(line, "the first");
    assert_false(base_read_line(scratch_text("empty", ""), line, 32));
    assert_string_equal(line, "");
    strcpy(line, "before");
    assert_false(base_read_line(scratch_path("absent"), line, 32));
    assert_string_equal(line, "");
    assert_false(base_read_line(scratch, line, 32)); /* a directory opens, and cannot be read */
    assert_string_equal(line, "");
}

static void test_field(void **state) {
    (void)state;
    const char *path = scratch_text("fields", "model\nmodel name\t: A processor\nVmData:\t  12 kB\n"
                                              "Odd:\tno number\nLess:\t-3 kB\nLast:");
    char value[16] = "before";
    uint64_t bytes = 5;
    assert_true(base_read_field(path, "model name", value, sizeof value));
    assert_string_equal(value, "A processor");
    assert_true(base_read_field(path, "model", value, 4)); /* the first with a colon, cut */
    assert_string_equal(value, "A p");
    assert_true(base_read_field(path, "Last", value, sizeof value));
    assert_string_equal(value, "");
    strcpy(value, "kept");
    assert_false(base_read_field(path, "Absent", value, sizeof value));
    assert_string_equal(value, "kept");
    assert_true(base_read_kilobytes(path, "VmData", &bytes));
    assert_int_equal(bytes, 12 * 1024);
    assert_false(base_read_kilobytes(path, "Odd", &bytes));
    assert_false(base_read_kilobytes(path, "Less", &bytes));
    assert_false(base_read_kilobytes(path, "Last", &bytes));
    assert_false(base_read_kilobytes(path, "Absent", &bytes));
    assert_false(base_read_kilobytes(scratch_path("absent"), "VmData", &bytes));
    assert_int_equal(bytes, 12 * 1024);
}

/* As the system writes it: more than nothing, and what it says itself by another way. */
static void test_system_file(void **state) {
    (void)state;
    uint64_t bytes = 0, pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    assert_true(base_read_kilobytes("/proc/meminfo", "MemTotal", &bytes));
    assert_in_range(bytes / (uint64_t)sysconf(_SC_PAGESIZE), pages / 2, pages * 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_first_line),  cmocka_unit_test(test_field),
        cmocka_unit_test(test_system_file),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
