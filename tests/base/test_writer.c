/* Files that appear whole or not at all: whatever happens to who writes one, the old file stays. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "support/scratch.h"

enum { LARGE = 700001 }; /* more than the writer's buffer */

static uint8_t pattern(size_t i) {
    return (uint8_t)(i * 31 + i / 251);
}

static uint8_t *large_block(void) {
    uint8_t *block = malloc(LARGE);
    assert_non_null(block);
    for (size_t i = 0; i < LARGE; i++) block[i] = pattern(i);
    return block;
}

static void expect_file(const char *path, const void *data, size_t size) {
    char *read;
    size_t length;
    assert_int_equal(base_read_file(path, 1 << 30, &read, &length, NULL), SIFR_OK);
    assert_int_equal(length, size);
    assert_memory_equal(read, data, size);
    free(read);
}

static size_t files_there(void) {
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(scratch, &names, &count, NULL), SIFR_OK);
    base_free_names(names, count);
    return count;
}

/* The old file is there until the new one is whole. */
static void test_replace(void **state) {
    (void)state;
    const char *path = scratch_text("file", "old");
    char temporary[600];
    base_writer writer;
    sifr_error error = {0};
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    assert_int_equal(base_writer_open(&writer, path, &error), SIFR_OK);
    assert_string_equal(writer.temporary, temporary);
    assert_int_equal(base_writer_write(&writer, "new ", 4, &error), SIFR_OK);
    assert_int_equal(base_writer_write(&writer, "text", 4, &error), SIFR_OK);
    assert_int_equal(base_writer_write(&writer, NULL, 0, &error), SIFR_OK);
    assert_int_equal(writer.written, 8);
    expect_file(path, "old", 3);
    assert_true(base_is_file(temporary));
    assert_int_equal(base_writer_commit(&writer, &error), SIFR_OK);
    expect_file(path, "new text", 8);
    assert_int_equal(files_there(), 1);
    base_writer_abort(&writer); /* harmless */
    assert_true(base_is_file(path));
}

static void test_abort(void **state) {
    (void)state;
    const char *path = scratch_text("file", "old");
    base_writer writer, none = {0};
    sifr_error error = {0};
    assert_int_equal(base_writer_open(&writer, path, &error), SIFR_OK);
    assert_int_equal(base_writer_write(&writer, "new", 3, &error), SIFR_OK);
    base_writer_abort(&writer);
    base_writer_abort(&writer);
    base_writer_abort(&none);
    expect_file(path, "old", 3);
    assert_int_equal(files_there(), 1);
}

/* Pieces of all sizes, across and beyond the buffer. */
static void test_pieces(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 7, 4096, 262143, 262144, 262145, 500000};
    uint8_t *block = large_block();
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        base_writer writer;
        sifr_error error = {0};
        assert_int_equal(base_writer_open(&writer, scratch_path("pieces"), &error), SIFR_OK);
        for (size_t at = 0, size; at < LARGE; at += size) {
            size = at % 3 == 1 ? 5 : pieces[p]; /* small ones between large ones */
            if (size > LARGE - at) size = LARGE - at;
            assert_int_equal(base_writer_write(&writer, block + at, size, &error), SIFR_OK);
        }
        assert_int_equal(writer.written, LARGE);
        assert_int_equal(base_writer_commit(&writer, &error), SIFR_OK);
        expect_file(scratch_path("pieces"), block, LARGE);
    }
    free(block);
}

/* A process that dies while it writes leaves the old file, and one with its own number beside it
 * that nobody else's writing touches or takes for its own. */
static void test_killed(void **state) {
    (void)state;
    const char *path = scratch_text("file", "old");
    char left[600];
    pid_t child = fork();
    if (child == 0) {
        base_writer writer;
        uint8_t *block = large_block();
        if (base_writer_open(&writer, path, NULL) != SIFR_OK) _exit(1);
        if (base_writer_write(&writer, block, LARGE, NULL) != SIFR_OK) _exit(2);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    snprintf(left, sizeof left, "%s.tmp-%ld", path, (long)child);
    assert_true(base_is_file(left));
    expect_file(path, "old", 3);
    assert_int_equal(base_write_file(path, "new", 3, NULL), SIFR_OK);
    expect_file(path, "new", 3);
    assert_true(base_is_file(left));
}

/* What a process of the same number left is written over, from its start. */
static void test_left_over(void **state) {
    (void)state;
    const char *path = scratch_path("file");
    char name[64];
    snprintf(name, sizeof name, "file.tmp-%ld", (long)getpid());
    scratch_text(name, "a long text that was left behind");
    assert_int_equal(base_write_file(path, "short", 5, NULL), SIFR_OK);
    expect_file(path, "short", 5);
    assert_int_equal(files_there(), 1);
    assert_int_equal(symlink(scratch_text("other", "not ours"), scratch_path(name)), 0);
    sifr_error error = {0}; /* a link is not followed */
    assert_int_equal(base_write_file(path, "longer text", 11, &error), SIFR_FAILED);
    assert_message(&error, path);
    expect_file(scratch_path("other"), "not ours", 8);
    expect_file(path, "short", 5);
}

/* A program that names /dev/null as its output would leave a file in its place. */
static void test_devices_stay(void **state) {
    (void)state;
    sifr_error error = {0};
    struct stat about;
    const char *pipe = scratch_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(base_write_file(pipe, "text", 4, &error), SIFR_FAILED);
    assert_message(&error, "pipe: a device or pipe, and a file would take its place; name another");
    assert_int_equal(stat(pipe, &about), 0);
    assert_true(S_ISFIFO(about.st_mode));
    assert_int_equal(symlink("/dev/null", scratch_path("link")), 0);
    assert_int_equal(base_write_file(scratch_path("link"), "text", 4, &error), SIFR_FAILED);
    assert_message(&error, "link: a device or pipe");
    assert_int_equal(files_there(), 2); /* nothing beside them */
    assert_int_equal(symlink("nowhere", scratch_path("broken")), 0);
    assert_int_equal(base_write_file(scratch_path("broken"), "text", 4, &error), SIFR_OK);
    expect_file(scratch_path("broken"), "text", 4);
}

/* --- no room: a limit on the size of files stands for a full disk --- */

static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN); /* writing fails then, with EFBIG */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_no_room(void **state) {
    (void)state;
    const char *path = scratch_text("file", "old");
    uint8_t *block = large_block();
    sifr_error error = {0};
    base_writer writer;
    limit_files(300000);
    sifr_status whole = base_write_file(path, block, LARGE, &error); /* while it writes */
    assert_int_equal(base_writer_open(&writer, path, NULL), SIFR_OK);
    sifr_status first = base_writer_write(&writer, block, 200000, NULL);
    sifr_status second = base_writer_write(&writer, block, 200000, NULL); /* the first goes out */
    sifr_error late = {0};
    sifr_status commit = base_writer_commit(&writer, &late); /* with what is in the buffer */
    limit_files(RLIM_INFINITY);
    assert_int_equal(whole, SIFR_FAILED);
    assert_message(&error, path);
    assert_message(&error, strerror(EFBIG));
    assert_int_equal(first, SIFR_OK);
    assert_int_equal(second, SIFR_OK);
    assert_int_equal(commit, SIFR_FAILED);
    assert_message(&late, "cannot write");
    expect_file(path, "old", 3);
    assert_int_equal(files_there(), 1); /* nothing is left beside it */
    free(block);
}

static void test_full_device(void **state) {
    (void)state;
    sifr_error error = {0};
    int device = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (device < 0) skip();
    assert_int_equal(base_write_all(device, "text", 4, "some/file", &error), SIFR_FAILED);
    assert_message(&error, "some/file: cannot write: No space left on device");
    close(device);
}

/* --- short writes --- */

static void on_alarm(int number) {
    (void)number;
}

static void *read_slowly(void *argument) {
    int from = *(int *)argument;
    uint8_t piece[3001];
    size_t at = 0, wrong = 0;
    for (ssize_t got; (got = read(from, piece, sizeof piece)) != 0;) {
        if (got < 0) continue;
        for (ssize_t i = 0; i < got; i++) wrong += piece[i] != pattern(at + (size_t)i);
        at += (size_t)got;
        if (at % 7 == 0) usleep(50);
    }
    return (void *)(uintptr_t)(wrong == 0 ? at : 0);
}

/* A pipe takes what it has room for, and a signal may come at any time. */
static void test_interrupted(void **state) {
    (void)state;
    struct sigaction act = {.sa_handler = on_alarm}, before; /* without SA_RESTART */
    struct itimerval often = {{0, 300}, {0, 300}}, never = {0};
    int ends[2];
    void *read_well;
    pthread_t reader;
    sigset_t alarms;
    uint8_t *block = large_block();
    sifr_error error = {0};
    assert_int_equal(pipe(ends), 0);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* they are the writer's */
    assert_int_equal(pthread_create(&reader, NULL, read_slowly, &ends[0]), 0);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    sifr_status status = base_write_all(ends[1], block, LARGE, "pipe", &error);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    close(ends[1]);
    pthread_join(reader, &read_well);
    close(ends[0]);
    free(block);
    assert_int_equal(status, SIFR_OK);
    assert_int_equal((uintptr_t)read_well, LARGE);
}

/* --- what cannot be --- */

static void test_refused(void **state) {
    (void)state;
    char longest[BASE_PATH_LENGTH + 10];
    sifr_error error = {0};
    base_writer writer;
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(base_writer_open(&writer, longest, &error), SIFR_USAGE);
    assert_message(&error, "path too long");
    longest[BASE_PATH_LENGTH - 3] = '\0'; /* it is the temporary name that has no room */
    assert_int_equal(base_writer_open(&writer, longest, &error), SIFR_USAGE);
    const char *nowhere = scratch_path("nowhere/file");
    assert_int_equal(base_write_file(nowhere, "a", 1, &error), SIFR_FAILED);
    assert_message(&error, "nowhere/file: cannot create: No such file or directory");
    assert_int_equal(base_make_directories(scratch_path("folder/in"), &error), SIFR_OK);
    assert_int_equal(base_write_file(scratch_path("folder"), "a", 1, &error), SIFR_FAILED);
    assert_message(&error, "folder: a directory, and a file of this name is to be written");
    assert_true(base_is_directory(scratch_path("folder/in")));
    assert_int_equal(files_there(), 1);
}

static void test_copy(void **state) {
    (void)state;
    sifr_error error = {0};
    uint8_t *block = large_block();
    const char *from = scratch_write("from", block, LARGE), *to = scratch_text("to", "old");
    assert_int_equal(base_copy_file(from, to, &error), SIFR_OK);
    expect_file(to, block, LARGE);
    expect_file(from, block, LARGE);
    assert_int_equal(base_copy_file(scratch_text("empty", ""), to, &error), SIFR_OK);
    expect_file(to, "", 0);
    assert_int_equal(base_copy_file(scratch_path("absent"), to, &error), SIFR_FAILED);
    assert_message(&error, "absent: cannot open");
    assert_int_equal(base_copy_file(scratch, to, &error), SIFR_FAILED);
    expect_file(to, "", 0);
    free(block);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        EACH(test_replace),   EACH(test_abort),   EACH(test_pieces),       EACH(test_killed),
        EACH(test_left_over), EACH(test_no_room), EACH(test_full_device),  EACH(test_interrupted),
        EACH(test_refused),   EACH(test_copy),    EACH(test_devices_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
