/* Paths, directories and reading: regular files only, and nothing outside of what was named. */
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/disk.h"
#include "support/scratch.h"

static void test_join(void **state) {
    (void)state;
    char out[BASE_PATH_LENGTH], longest[BASE_PATH_LENGTH];
    sifr_error error = {0};
    assert_int_equal(base_path_join(out, "a/b", "c", &error), SIFR_OK);
    assert_string_equal(out, "a/b/c");
    assert_int_equal(base_path_join(out, "/", "c", &error), SIFR_OK);
    assert_string_equal(out, "/c");
    assert_int_equal(base_path_join(out, "a/", "c/d", &error), SIFR_OK);
    assert_string_equal(out, "a/c/d");
    memset(longest, 'x', sizeof longest);
    longest[BASE_PATH_LENGTH - 3] = '\0'; /* with "/c" and the NUL it fits to the last byte */
    assert_int_equal(base_path_join(out, longest, "c", &error), SIFR_OK);
    assert_int_equal(strlen(out), BASE_PATH_LENGTH - 1);
    assert_int_equal(base_path_join(out, longest, "cd", &error), SIFR_USAGE);
    assert_message(&error, "path longer than 4095 bytes");
}

static void test_kinds(void **state) {
    (void)state;
    const char *file = scratch_text("file", "text"), *link = scratch_path("link"),
               *loose = scratch_path("loose"), *pipe = scratch_path("pipe");
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(symlink("nowhere", loose), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_true(base_is_file(file));
    assert_true(base_is_file(link));
    assert_false(base_is_file(loose));
    assert_false(base_is_file(pipe));
    assert_false(base_is_file(scratch));
    assert_false(base_is_file(scratch_path("absent")));
    assert_true(base_is_directory(scratch));
    assert_false(base_is_directory(file));
    assert_false(base_is_directory(scratch_path("absent")));
}

static void test_make_directories(void **state) {
    (void)state;
    char longest[BASE_PATH_LENGTH + 1];
    sifr_error error = {0};
    assert_int_equal(base_make_directories(scratch_path("a/b//c/"), &error), SIFR_OK);
    assert_true(base_is_directory(scratch_path("a/b/c")));
    assert_int_equal(base_make_directories(scratch_path("a/b"), &error), SIFR_OK); /* there */
    scratch_text("a/file", "text");
    assert_int_equal(base_make_directories(scratch_path("a/file/d"), &error), SIFR_FAILED);
    assert_message(&error, "cannot create the directory");
    assert_int_equal(base_make_directories(scratch_path("a/file"), &error), SIFR_FAILED);
    memset(longest, 'x', sizeof longest);
    longest[BASE_PATH_LENGTH] = '\0';
    assert_int_equal(base_make_directories(longest, &error), SIFR_USAGE);
}

static void test_remove_tree(void **state) {
    (void)state;
    sifr_error error = {0};
    assert_int_equal(base_make_directories(scratch_path("tree/a/b"), &error), SIFR_OK);
    assert_int_equal(base_make_directories(scratch_path("kept"), &error), SIFR_OK);
    scratch_text("kept/file", "kept");
    scratch_text("tree/a/file", "text");
    assert_int_equal(symlink(scratch_path("kept"), scratch_path("tree/a/link")), 0);
    assert_int_equal(base_remove_tree(scratch_path("tree"), &error), SIFR_OK);
    assert_false(base_is_directory(scratch_path("tree")));
    assert_true(base_is_file(scratch_path("kept/file"))); /* the link went, not what it names */
    assert_int_equal(base_remove_tree(scratch_path("tree"), &error), SIFR_OK); /* not there */
    assert_int_equal(base_remove_tree(scratch_path("kept/file"), &error), SIFR_OK);
    assert_false(base_is_file(scratch_path("kept/file")));
    assert_int_equal(base_remove_tree("/proc/self/task", &error), SIFR_FAILED);
    assert_message(&error, "/proc/self/task: cannot remove");
}

static void test_list(void **state) {
    (void)state;
    char **names;
    size_t count;
    sifr_error error = {0};
    static const char *const sorted[] = {".hidden", "10", "9", "B", "a", "\xc3\xa4"};
    assert_int_equal(base_list_directory(scratch, &names, &count, &error), SIFR_OK);
    assert_int_equal(count, 0);
    base_free_names(names, count);
    for (size_t i = 6; i-- > 0;) scratch_text(sorted[i], "");
    assert_int_equal(base_list_directory(scratch, &names, &count, &error), SIFR_OK);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) assert_string_equal(names[i], sorted[i]);
    base_free_names(names, count);
    assert_int_equal(base_list_directory(scratch_path("absent"), &names, &count, &error),
                     SIFR_FAILED);
    assert_message(&error, "absent: cannot read the directory: No such file");
}

/* A pipe that nobody writes to does not hold it up. */
static void test_open_read(void **state) {
    (void)state;
    int file;
    uint64_t size;
    char text[8] = "";
    sifr_error error = {0};
    assert_int_equal(base_open_read(scratch_text("file", "1234"), &file, &size, &error), SIFR_OK);
    assert_int_equal(size, 4);
    assert_int_equal(read(file, text, sizeof text), 4);
    assert_string_equal(text, "1234");
    close(file);
    assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
    assert_int_equal(base_open_read(scratch_path("pipe"), &file, &size, &error), SIFR_FAILED);
    assert_message(&error, "a device or pipe, not a regular file");
    assert_int_equal(base_open_read("/dev/null", &file, &size, &error), SIFR_FAILED);
    assert_int_equal(base_open_read(scratch, &file, &size, &error), SIFR_FAILED);
    assert_message(&error, "a directory, not a regular file");
    assert_int_equal(base_open_read(scratch_path("absent"), &file, &size, &error), SIFR_FAILED);
    assert_message(&error, "absent: cannot open: No such file");
    assert_int_equal(base_open_read("~/absent", &file, &size, &error), SIFR_FAILED);
    assert_message(&error, "~/absent: cannot open (~ is your home folder in a shell alone: write "
                           "the folder out): No such file");
    assert_string_equal(base_home_hint("~x/absent"), ""); /* a folder may be called so */
}

static void test_read_file(void **state) {
    (void)state;
    char *data = NULL;
    size_t size;
    sifr_error error = {0};
    const char *path = scratch_write("file", "a\0b", 3);
    assert_int_equal(base_read_file(path, 3, &data, &size, &error), SIFR_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4); /* and a NUL behind */
    free(data);
    assert_int_equal(base_read_file(path, 2, &data, &size, &error), SIFR_FAILED);
    assert_message(&error, "3 bytes, more than the limit of 2");
    assert_int_equal(base_read_file(scratch_text("empty", ""), 0, &data, &size, &error), SIFR_OK);
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    free(data);
    assert_int_equal(base_read_file(scratch, 9, &data, &size, &error), SIFR_FAILED);
}

static void test_map(void **state) {
    (void)state;
    enum { SIZE = 3 * 4096 + 5 };
    static uint8_t block[SIZE];
    base_map map = {0};
    sifr_error error = {0};
    for (int i = 0; i < SIZE; i++) block[i] = (uint8_t)(i * 7);
    assert_int_equal(base_map_file(scratch_write("file", block, SIZE), &map, &error), SIFR_OK);
    assert_int_equal(map.size, SIZE);
    base_read_by_pieces(&map); /* both change when it is read, and not what */
    base_read_ahead(map.data + 4097, 4096);
    assert_memory_equal(map.data, block, SIZE);
    base_unmap(&map);
    assert_null(map.data);
    base_unmap(&map);
    assert_int_equal(base_map_file(scratch_text("empty", ""), &map, &error), SIFR_OK);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    base_read_by_pieces(&map);
    base_unmap(&map);
    map = (base_map){block, SIZE};
    assert_int_equal(base_map_file(scratch_path("absent"), &map, &error), SIFR_FAILED);
    assert_null(map.data); /* so that closing it is harmless */
}

static void test_sync(void **state) {
    (void)state;
    sifr_error error = {0};
    assert_int_equal(base_sync_directory(scratch, &error), SIFR_OK);
    assert_int_equal(base_sync_directory(scratch_path("absent"), &error), SIFR_FAILED);
    assert_int_equal(base_sync_directory(scratch_text("file", ""), &error), SIFR_FAILED);
    assert_message(&error, "file: cannot open: Not a directory");
}

/* --- the disk below a path --- */

static void test_free_space(void **state) {
    (void)state;
    uint64_t bytes = 0;
    struct statvfs info;
    sifr_error error = {0};
    assert_int_equal(statvfs(scratch, &info), 0);
    assert_int_equal(base_free_space(scratch, &bytes, &error), SIFR_OK);
    assert_in_range(bytes, 1, (uint64_t)info.f_blocks * info.f_frsize);
    assert_int_equal(base_free_space(scratch_path("absent"), &bytes, &error), SIFR_FAILED);
    assert_message(&error, "absent: cannot read the free space");
}

static void test_disk(void **state) {
    (void)state;
    base_disk here, below, other;
    struct stat info;
    char longest[BASE_PATH_LENGTH + 10];
    sifr_error error = {0};
    assert_int_equal(stat(scratch, &info), 0);
    assert_int_equal(base_disk_find(scratch, &here, &error), SIFR_OK);
    assert_int_equal(here.id, info.st_dev);
    assert_in_range(here.free_bytes, 1, UINT64_MAX - 1);
    assert_int_equal(base_disk_find(scratch_path("not/made/yet"), &below, &error), SIFR_OK);
    assert_int_equal(below.id, here.id);
    assert_int_equal(base_disk_find("not-made-yet", &other, &error), SIFR_OK); /* the working one */
    assert_int_equal(stat(".", &info), 0);
    assert_int_equal(other.id, info.st_dev);
    assert_int_equal(stat("/", &info), 0);
    assert_int_equal(base_disk_find("/not-made-yet", &other, &error), SIFR_OK);
    assert_int_equal(other.id, info.st_dev);
    assert_int_equal(base_disk_find("/proc/self", &other, &error), SIFR_OK);
    assert_true(other.id != here.id);
    scratch_text("file", "");
    assert_int_equal(base_disk_find(scratch_path("file/below"), &other, &error), SIFR_FAILED);
    assert_message(&error, "file/below: cannot find its file system: Not a directory");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(base_disk_find(longest, &other, &error), SIFR_USAGE);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        EACH(test_join),        EACH(test_kinds), EACH(test_make_directories),
        EACH(test_remove_tree), EACH(test_list),  EACH(test_open_read),
        EACH(test_read_file),   EACH(test_map),   EACH(test_sync),
        EACH(test_free_space),  EACH(test_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
