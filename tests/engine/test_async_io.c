/* File I/O beside computing: both ways of it, any block size and depth, errors by name.
 * in test_asan, in test_tsan */
#include "engine/store/async_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/random.h"
#include "support/refuse_calls.h"
#include "support/scratch.h"

enum { UNIT = ENGINE_IO_ALIGNMENT, FILE_BYTES = 96 * UNIT, PARTS = 8 };

static refused_calls refused; /* of this process, by now */

static engine_io_settings settings_of(bool plain) {
    return (engine_io_settings){.block_bytes = 3 * UNIT,
                                .queue_depth = 4,
                                .threads = 1,
                                .overlap_events = true,
                                .plain = plain};
}

static engine_io *open_io(const engine_io_settings *settings) {
    engine_io *io = NULL;
    sifr_error error = {0};
    if (engine_io_open(settings, 2 * PARTS, &io, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (settings->plain || refused.rings) assert_false(engine_io_uses_rings(io));
    return io;
}

static void open_file(engine_io_file *file, const char *path) {
    sifr_error error = {0};
    if (engine_io_file_open(file, path, false, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (refused.direct) assert_false(file->direct);
}

static char *aligned(size_t bytes) {
    char *memory = aligned_alloc(UNIT, bytes);
    assert_non_null(memory);
    return memory;
}

static void fill(char *memory, uint64_t seed) {
    for (size_t i = 0; i < FILE_BYTES; i += 16) {
        base_random4 r = base_philox(seed, i, 0);
        memcpy(memory + i, r.v, 16);
    }
}

static void must_wait(engine_io *io, engine_io_handle handle) {
    sifr_error error = {0};
    engine_io_times times = {0};
    if (engine_io_wait(io, handle, &times, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_true(times.begun > 0);
    assert_true(times.ended >= times.begun);
}

static void pin(engine_io *io, const struct iovec *memory, unsigned count) {
    int number;
    bool pinned = engine_io_pin(io, memory, count, &number);
    assert_int_equal(pinned, engine_io_uses_rings(io));
    assert_int_equal(number, 0);
    for (unsigned i = 0; i < count; i++) {
        char *start = memory[i].iov_base, *end = start + memory[i].iov_len;
        assert_int_equal(engine_io_is_pinned(io, start, end - start), pinned);
        assert_int_equal(engine_io_is_pinned(io, end - UNIT, UNIT), pinned);
        assert_false(engine_io_is_pinned(io, start, end - start + 1));
        assert_false(engine_io_is_pinned(io, start - 1, UNIT));
    }
}

/* Writes a file in parts that are all under way at once, and reads it the same way. */
static void round_trip(engine_io_settings settings, bool pinned) {
    const char *path = scratch_write("data", "", 0);
    engine_io *io = open_io(&settings);
    engine_io_file file;
    sifr_error error = {0};
    char *out = aligned(FILE_BYTES), *in = aligned(FILE_BYTES);
    engine_io_handle handles[PARTS];
    open_file(&file, path);
    fill(out, 5);
    memset(in, 0, FILE_BYTES);
    const struct iovec memory[] = {{out, FILE_BYTES}, {in, FILE_BYTES}};
    if (pinned) pin(io, memory, 2);
    const int64_t part = FILE_BYTES / PARTS;
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(
            engine_io_start_write(io, &file, i * part, out + i * part, part, &handles[i], &error),
            SIFR_OK);
    for (int i = PARTS; i-- > 0;) must_wait(io, handles[i]);
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(
            engine_io_start_read(io, &file, i * part, in + i * part, part, &handles[i], &error),
            SIFR_OK);
    for (int i = 0; i < PARTS; i++) must_wait(io, handles[i]);
    assert_memory_equal(in, out, FILE_BYTES);
    engine_io_close(io);
    engine_io_file_close(&file);
    free(out);
    free(in);
}

static void settings_change_nothing(void **state) {
    (void)state;
    static const int64_t blocks[] = {UNIT, 5 * UNIT, 1 << 20};
    for (int plain = 0; plain < 2; plain++) {
        for (int n = 0; n < 3 * 2 * 2 * 2; n++) {
            engine_io_settings settings = settings_of(plain);
            settings.block_bytes = blocks[n % 3];
            settings.single_submit = n / 3 % 2;
            settings.overlap_events = n / 6 % 2;
            settings.threads = 1 + n / 12 * 2;
            settings.queue_depth = 1 + n % 5 * 3;
            round_trip(settings, n % 2);
        }
    }
}

/* What is written last to a place is there: transfers of one place are the caller's to order. */
static void in_turn(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        engine_io_settings settings = settings_of(plain);
        engine_io *io = open_io(&settings);
        engine_io_file file;
        sifr_error error = {0};
        char *memory = aligned(2 * UNIT);
        engine_io_handle handle;
        open_file(&file, scratch_write("turns", "", 0));
        for (int i = 0; i < 200; i++) { /* more than there is room for at a time */
            memset(memory, i, UNIT);
            assert_int_equal(
                engine_io_start_write(io, &file, i % 3 * UNIT, memory, UNIT, &handle, &error),
                SIFR_OK);
            must_wait(io, handle);
            assert_int_equal(
                engine_io_start_read(io, &file, i % 3 * UNIT, memory + UNIT, UNIT, &handle, &error),
                SIFR_OK);
            must_wait(io, handle);
            assert_memory_equal(memory, memory + UNIT, UNIT);
        }
        engine_io_close(io);
        engine_io_file_close(&file);
        free(memory);
    }
}

/* A short write beside a long read that was started first; true: it did not wait for all of that.
 */
static bool write_passes_read(bool plain, const engine_io_file *file, char *memory, int64_t bytes) {
    engine_io_settings settings = settings_of(plain);
    settings.block_bytes = UNIT;
    settings.queue_depth = 1;
    engine_io *io = open_io(&settings);
    engine_io_handle read, write;
    engine_io_times reading, writing;
    sifr_error error = {0};
    assert_int_equal(engine_io_start_read(io, file, UNIT, memory + UNIT, bytes, &read, &error),
                     SIFR_OK);
    assert_int_equal(engine_io_start_write(io, file, 0, memory, UNIT, &write, &error), SIFR_OK);
    assert_int_equal(engine_io_wait(io, write, &writing, &error), SIFR_OK);
    assert_int_equal(engine_io_wait(io, read, &reading, &error), SIFR_OK);
    engine_io_close(io);
    return writing.ended < reading.ended;
}

/* Both directions are under way at a time: neither waits until the other's line is empty. */
static void both_ways(void **state) {
    (void)state;
    const int64_t bytes = 2048 * UNIT;
    char *memory = aligned((size_t)bytes + UNIT);
    memset(memory, 1, (size_t)bytes + UNIT);
    const char *path = scratch_write("both", memory, (size_t)bytes + UNIT);
    engine_io_file file;
    open_file(&file, path);
    for (int plain = 0; plain < 2; plain++) {
        bool passed = false; /* on a busy machine the read may be over before the write starts */
        for (int i = 0; i < 10 && !passed; i++)
            passed = write_passes_read(plain, &file, memory, bytes);
        assert_true(passed);
    }
    engine_io_file_close(&file);
    free(memory);
}

static void expect_failure(bool plain, const char *path, bool write, int64_t offset, int64_t bytes,
                           const char *part) {
    engine_io_settings settings = settings_of(plain);
    engine_io *io = open_io(&settings);
    engine_io_file file;
    sifr_error error = {0};
    char *memory = aligned(FILE_BYTES);
    engine_io_handle handle;
    open_file(&file, path);
    memset(memory, 1, FILE_BYTES);
    sifr_status status =
        write ? engine_io_start_write(io, &file, offset, memory, bytes, &handle, &error)
              : engine_io_start_read(io, &file, offset, memory, bytes, &handle, &error);
    assert_int_equal(status, SIFR_OK);
    assert_int_equal(engine_io_wait(io, handle, NULL, &error), SIFR_FAILED);
    assert_message(&error, path);
    assert_message(&error, part);
    /* what comes after it is not harmed */
    engine_io_file good;
    open_file(&good, scratch_write("good", "", 0));
    error = (sifr_error){0};
    assert_int_equal(engine_io_start_write(io, &good, 0, memory, FILE_BYTES, &handle, &error),
                     SIFR_OK);
    must_wait(io, handle);
    engine_io_close(io);
    engine_io_file_close(&file);
    engine_io_file_close(&good);
    free(memory);
}

static void failures(void **state) {
    (void)state;
    static const char text[10 * UNIT + 100] = "short";
    for (int plain = 0; plain < 2; plain++) {
        const char *path = scratch_write("short", text, sizeof text);
        expect_failure(plain, "/dev/full", true, 0, 40 * UNIT, "No space left on device");
        /* ends in the middle of a block, at one, and long before */
        expect_failure(plain, path, false, 0, 40 * UNIT, path);
        expect_failure(plain, path, false, 0, 11 * UNIT, path); /* only the last block is short */
        expect_failure(plain, path, false, 8 * UNIT, 12 * UNIT, path);
        expect_failure(plain, path, false, 60 * UNIT, 12 * UNIT,
                       "the file ends before byte 245760");
    }
}

static void not_aligned(void **state) {
    (void)state;
    engine_io_settings settings = settings_of(false);
    engine_io *io = open_io(&settings);
    engine_io_file file;
    engine_io_handle handle;
    sifr_error error = {0};
    char *memory = aligned(2 * UNIT);
    open_file(&file, scratch_write("odd", "", 0));
    if (file.direct) {
        assert_int_equal(engine_io_start_read(io, &file, 0, memory + 512, UNIT, &handle, &error),
                         SIFR_FAILED);
        assert_int_equal(engine_io_start_read(io, &file, 100, memory, UNIT, &handle, &error),
                         SIFR_FAILED);
        assert_int_equal(engine_io_start_write(io, &file, 0, memory, 100, &handle, &error),
                         SIFR_FAILED);
        assert_message(&error, "not aligned");
    }
    engine_io_close(io);
    engine_io_file_close(&file);
    free(memory);
}

/* More under way than was said; and closing with transfers that nobody waited for. */
static void too_many(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        engine_io_settings settings = settings_of(plain);
        engine_io *io = open_io(&settings);
        engine_io_file file;
        sifr_error error = {0};
        char *memory = aligned(UNIT);
        engine_io_handle handle;
        memset(memory, 7, UNIT);
        open_file(&file, scratch_write("many", "", 0));
        for (int i = 0; i < 2 * PARTS; i++)
            assert_int_equal(
                engine_io_start_write(io, &file, i * UNIT, memory, UNIT, &handle, &error), SIFR_OK);
        assert_int_equal(engine_io_start_write(io, &file, 0, memory, UNIT, &handle, &error),
                         SIFR_FAILED);
        assert_message(&error, "more than 16 transfers");
        engine_io_close(io); /* finishes them */
        struct stat about;
        assert_int_equal(fstat(file.descriptor, &about), 0);
        assert_int_equal(about.st_size, 2 * PARTS * UNIT);
        engine_io_file_close(&file);
        free(memory);
    }
}

static void wrong_settings(void **state) {
    (void)state;
    const engine_io_settings wrong[] = {{.block_bytes = 1000, .queue_depth = 1, .threads = 1},
                                        {.block_bytes = 0, .queue_depth = 1, .threads = 1},
                                        {.block_bytes = UNIT, .queue_depth = 0, .threads = 1},
                                        {.block_bytes = UNIT, .queue_depth = 1, .threads = 0},
                                        {.block_bytes = UNIT, .queue_depth = 1, .threads = 1000}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        engine_io *io = NULL;
        sifr_error error = {0};
        assert_int_equal(engine_io_open(&wrong[i], 1, &io, &error), SIFR_USAGE);
        assert_message(&error, "block_size");
    }
    engine_io_file file;
    sifr_error error = {0};
    assert_int_equal(engine_io_file_open(&file, scratch_path("no/such"), true, &error),
                     SIFR_FAILED);
    assert_message(&error, "no/such");
}

/* A file that cannot be opened past the page cache is made all the same, and takes what is not
 * aligned. */
static void made_without_direct(void **state) {
    (void)state;
    engine_io_settings settings = settings_of(false);
    engine_io *io = open_io(&settings);
    engine_io_file file;
    engine_io_handle handle;
    sifr_error error = {0};
    char text[] = "odd";
    const char *path = scratch_path("made");
    (void)unlink(path);
    assert_int_equal(engine_io_file_open(&file, path, true, &error), SIFR_OK);
    assert_false(file.direct);
    assert_int_equal(engine_io_start_write(io, &file, 5, text, sizeof text, &handle, &error),
                     SIFR_OK);
    must_wait(io, handle);
    memset(text, 0, sizeof text);
    assert_int_equal(engine_io_start_read(io, &file, 5, text, sizeof text, &handle, &error),
                     SIFR_OK);
    must_wait(io, handle);
    assert_string_equal(text, "odd");
    engine_io_close(io);
    engine_io_file_close(&file);
}

/* All of the above in a process of its own, in which the kernel refuses something. */
static int run_refused(refused_calls calls) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(settings_change_nothing),
                                       cmocka_unit_test(in_turn), cmocka_unit_test(failures),
                                       cmocka_unit_test(not_aligned), cmocka_unit_test(too_many)};
    const struct CMUnitTest made[] = {cmocka_unit_test(made_without_direct)};
    refused = calls;
    if (!refuse_calls(calls)) return REFUSE_SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return calls.direct ? failed + cmocka_run_group_tests(made, NULL, NULL) : failed;
}

static void refused_by_kernel(void **state) {
    (void)state;
    static const refused_calls calls[] = {
        {.rings = ENOSYS}, {.rings = EPERM}, {.direct = true}, {.rings = EPERM, .direct = true}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int result;
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) exit(run_refused(calls[i]));
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        if (WEXITSTATUS(result) == REFUSE_SKIPPED) skip();
        assert_int_equal(WEXITSTATUS(result), 0);
    }
}

/* Descriptors of this process; and the lowest one that is free. */
static int count_open(int *next) {
    int count = 0, file = dup(0);
    *next = file;
    close(file);
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* The kernel gives some of the rings that were asked for, and then none: they are given back. */
static void too_few_rings(void **state) {
    (void)state;
    engine_io_settings settings = settings_of(false);
    engine_io *io = open_io(&settings);
    bool rings = engine_io_uses_rings(io);
    struct rlimit before, few;
    int next, count;
    engine_io_close(io);
    if (!rings) skip();
    settings.threads = 3;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    count = count_open(&next);
    few = before;
    few.rlim_cur = (rlim_t)next + 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    io = open_io(&settings);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(engine_io_uses_rings(io));
    assert_int_equal(count_open(&next), count);
    engine_io_close(io);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(settings_change_nothing),
                                       cmocka_unit_test(in_turn),
                                       cmocka_unit_test(both_ways),
                                       cmocka_unit_test(failures),
                                       cmocka_unit_test(not_aligned),
                                       cmocka_unit_test(too_many),
                                       cmocka_unit_test(wrong_settings),
                                       cmocka_unit_test(refused_by_kernel),
                                       cmocka_unit_test(too_few_rings)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
