/* Swap files: room reserved, any bytes through the window, removed at the end and after a crash,
 * and never somebody else's.
 * in test_asan, in test_tsan */
#include "engine/store/swap.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/random.h"
#include "engine/store/swap_directory.h"
#include "support/scratch.h"

enum { BYTES = 9 << 20 }; /* some windows and a part */

static const engine_io_settings settings = {
    .block_bytes = 1 << 20, .queue_depth = 8, .threads = 1, .overlap_events = true};

static engine_swap *open_swap(int32_t rank, int64_t bytes) {
    engine_swap *swap = NULL;
    sifr_error error = {0};
    if (engine_swap_open(scratch, rank, bytes, &settings, 4, &swap, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return swap;
}

static size_t entries(void) {
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(scratch, &names, &count, NULL), SIFR_OK);
    base_free_names(names, count);
    return count;
}

/* Any place and length, across windows, against a copy in memory. */
static void window(void **state) {
    (void)state;
    engine_swap *swap = open_swap(0, BYTES);
    sifr_error error = {0};
    char *copy = calloc(BYTES, 1), *back = malloc(BYTES);
    struct stat about;
    assert_int_equal(fstat(engine_swap_file(swap)->descriptor, &about), 0);
    assert_true(about.st_size == BYTES);
    assert_true(about.st_blocks * 512 >= BYTES); /* reserved */
    assert_int_equal(engine_swap_read(swap, 0, back, BYTES, &error), SIFR_OK);
    assert_memory_equal(back, copy, BYTES); /* zeroed */
    for (uint64_t i = 0; i < 300; i++) {
        base_random4 r = base_philox(3, i, 0);
        int64_t most = i % 40 == 0 ? 5 << 20 : 20000;
        int64_t at = r.v[0] % BYTES, length = 1 + r.v[1] % most;
        if (length > BYTES - at) length = BYTES - at;
        memset(copy + at, (int)i, (size_t)length);
        assert_int_equal(engine_swap_write(swap, at, copy + at, length, &error), SIFR_OK);
        at = r.v[2] % (BYTES - 1000);
        assert_int_equal(engine_swap_read(swap, at, back, 1000, &error), SIFR_OK);
        assert_memory_equal(back, copy + at, 1000);
    }
    assert_int_equal(engine_swap_flush(swap, &error), SIFR_OK);
    engine_io_handle handle; /* what steps then read */
    char *direct = aligned_alloc(ENGINE_IO_ALIGNMENT, BYTES);
    assert_int_equal(engine_io_start_read(engine_swap_io(swap), engine_swap_file(swap), 0, direct,
                                          BYTES, &handle, &error),
                     SIFR_OK);
    assert_int_equal(engine_io_wait(engine_swap_io(swap), handle, NULL, &error), SIFR_OK);
    assert_memory_equal(direct, copy, BYTES);
    free(direct);
    free(copy);
    free(back);
    engine_swap_close(swap);
    assert_int_equal(entries(), 0);
}

/* A run that dies leaves its directory behind; one that lives is left alone. */
static void left_overs(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            engine_swap *swap = NULL;
            sifr_error error;
            engine_swap_directory_clean(scratch);
            _exit(engine_swap_open(scratch, 1, BYTES, &settings, 4, &swap, &error));
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
        assert_int_equal(entries(), 1); /* the second child cleaned up after the first */
    }
    assert_int_equal(engine_swap_directory_clean(scratch), 1);
    engine_swap *alive = open_swap(0, BYTES);
    assert_int_equal(engine_swap_directory_clean(scratch), 0);
    engine_swap *next = open_swap(1, BYTES);
    assert_int_equal(entries(), 2);
    engine_swap_close(next);
    assert_int_equal(entries(), 1);
    sifr_error error = {0};
    char byte = 1; /* still there */
    assert_int_equal(engine_swap_write(alive, 100, &byte, 1, &error), SIFR_OK);
    assert_int_equal(engine_swap_flush(alive, &error), SIFR_OK);
    engine_swap_close(alive);
    assert_int_equal(entries(), 0);
}

static void make(const char *name, const char *lock) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    assert_int_equal(mkdir(path, 0700), 0);
    if (!lock) return;
    strcat(path, "/lock");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(lock, file);
    fclose(file);
}

/* What looks like ours but cannot be told for sure: another host's, another program's, a link. */
static void others(void **state) {
    (void)state;
    char host[256] = "", own[320], other[320];
    gethostname(host, sizeof host - 1);
    snprintf(own, sizeof own, "sifr swap on %s\n", host);
    snprintf(other, sizeof other, "%s", own);
    other[strlen(other) - 2] ^= 1; /* the last letter of the host's name */
    make("sifr-swap-rank0-aaaaaa", other);
    make("sifr-swap-rank0-bbbbbb", "mine\n");
    make("sifr-swap-rank0-cccccc", ""); /* being made at this moment */
    make("other", own);
    assert_int_equal(symlink(scratch_path("other"), scratch_path("sifr-swap-rank0-dddddd")), 0);
    assert_int_equal(engine_swap_directory_clean(scratch), 0);
    assert_int_equal(entries(), 5);
    make("sifr-swap-rank0-eeeeee", own); /* the same, without a doubt */
    make("sifr-swap-rank0-ffffff", NULL);
    assert_int_equal(engine_swap_directory_clean(scratch), 2);
    assert_int_equal(entries(), 5);
    assert_int_equal(base_remove_tree(scratch, NULL), SIFR_OK);
    assert_int_equal(mkdir(scratch, 0700), 0);
}

static void refusals(void **state) {
    (void)state;
    engine_swap *swap = NULL;
    sifr_error error = {0};
    assert_int_equal(
        engine_swap_open(scratch_path("no-such"), 0, BYTES, &settings, 4, &swap, &error),
        SIFR_USAGE);
    assert_message(&error, "no-such: there is no such directory");
    assert_int_equal(engine_swap_open(scratch, 0, (int64_t)1 << 50, &settings, 4, &swap, &error),
                     SIFR_FAILED);
    assert_message(&error, "1.00 PiB");
    assert_message(&error, "are free");
    assert_int_equal(entries(), 0);
}

static void *clean_on(void *stop) {
    while (!atomic_load((atomic_bool *)stop)) engine_swap_directory_clean(scratch);
    return NULL;
}

/* One that is still empty may be taken for a dead run's: it is made again, and nothing is said. */
static void made_beside_cleaning(void **state) {
    (void)state;
    atomic_bool stop = false;
    pthread_t cleaner;
    int made = 0;
    assert_int_equal(pthread_create(&cleaner, NULL, clean_on, &stop), 0);
    for (int i = 0; i < 2000; i++) {
        engine_swap_directory d;
        sifr_error error = {0};
        if (engine_swap_directory_make(scratch, 0, &d, &error) == SIFR_OK) {
            assert_int_equal(error.status, SIFR_OK);
            assert_string_equal(error.message, "");
            made++;
        } else {
            assert_int_not_equal(error.status, SIFR_OK);
        }
        engine_swap_directory_remove(&d);
    }
    atomic_store(&stop, true);
    pthread_join(cleaner, NULL);
    assert_true(made > 1000);
    assert_int_equal(entries(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(window), cmocka_unit_test(left_overs),
                                       cmocka_unit_test(others), cmocka_unit_test(refusals),
                                       cmocka_unit_test(made_beside_cleaning)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
