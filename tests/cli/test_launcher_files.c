/* Who gets folders for the launcher's files, and how its environment names them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/launch/launcher_files.h"
#include "comm/launcher.h"
#include "support/scratch.h"

static const char *const names[] = {
    "OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_btl_vader_backing_directory",
    "PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_btl_sm_backing_directory"};

static int nothing_set(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("TMPDIR", scratch, 1);
    return 0;
}

static void expect_variable(const char *name, const char *value) {
    const char *found = getenv(name);
    assert_string_equal(found ? found : "", value);
}

static const char *value_of(const char *name) {
    return getenv(name) ? getenv(name) : "";
}

static cli_launcher_files made(comm_mpi_kind kind, bool orte, int ranks, char *hosts) {
    cli_launcher launcher = {.kind = kind, .orte = orte};
    cli_launch_choice choice = {.ranks = ranks, .hosts = hosts, .launch = true};
    cli_launcher_files files;
    cli_launcher_files_make("train", &launcher, &choice, &files);
    return files;
}

static void expect_none(cli_launcher_files files) {
    assert_string_equal(files.folder.path, "");
    assert_string_equal(files.memory.path, "");
    cli_launcher_files_hand_over(&files);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_null(getenv(names[i]));
    cli_launcher_files_remove(&files);
    scratch_expect_empty();
}

static void test_none(void **state) {
    (void)state;
    char hosts[] = "a:2,b:2";
    expect_none(made(COMM_MPICH, false, 2, NULL));
    expect_none(made(COMM_OTHER_MPI, false, 2, NULL));
    expect_none(made(COMM_OPEN_MPI, true, 2, hosts));
}

static void test_handed_over(void **state) {
    (void)state;
    for (int orte = 0; orte < 2; orte++) {
        cli_launcher_files files = made(COMM_OPEN_MPI, orte, 2, NULL);
        const char *const *own = names + (orte ? 0 : 2);
        assert_memory_equal(files.folder.path, scratch, strlen(scratch));
        assert_true(fcntl(files.folder.lock, F_GETFD) & FD_CLOEXEC);
        cli_launcher_files_hand_over(&files);
        assert_false(fcntl(files.folder.lock, F_GETFD) & FD_CLOEXEC);
        expect_variable(own[0], files.folder.path);
        if (comm_shared_memory_is_small(2)) {
            expect_variable(own[1], files.folder.path);
        } else {
            assert_memory_equal(files.memory.path, "/dev/shm/sifr-", 14);
            expect_variable(own[1], files.memory.path);
        }
        cli_launcher_files_remove(&files);
        assert_false(base_is_directory(value_of(own[0])) || base_is_directory(value_of(own[1])));
        scratch_expect_empty();
        nothing_set(state);
    }
}

/* More ranks than any /dev/shm has room for: the other folder, as comm_mpi_prepare_environment. */
static void test_small_shared_memory(void **state) {
    (void)state;
    cli_launcher_files files = made(COMM_OPEN_MPI, true, 1 << 30, NULL);
    assert_string_equal(files.memory.path, "");
    cli_launcher_files_hand_over(&files);
    expect_variable(names[1], files.folder.path);
    cli_launcher_files_remove(&files);
}

static void test_users_own(void **state) {
    (void)state;
    setenv(names[0], "/mine", 1);
    setenv(names[1], "/mine too", 1);
    cli_launcher_files files = made(COMM_OPEN_MPI, true, 2, NULL);
    assert_string_equal(files.folder.path, "");
    assert_string_equal(files.memory.path, "");
    cli_launcher_files_hand_over(&files);
    expect_variable(names[0], "/mine");
    expect_variable(names[1], "/mine too");
    cli_launcher_files_remove(&files);
    scratch_expect_empty();
}

/* A folder that cannot be made is no failure of the run. */
static void test_no_room(void **state) {
    (void)state;
    setenv("TMPDIR", "/proc", 1);
    cli_launcher_files files = made(COMM_OPEN_MPI, true, 2, NULL);
    assert_string_equal(files.folder.path, "");
    cli_launcher_files_hand_over(&files);
    assert_null(getenv(names[0]));
    cli_launcher_files_remove(&files);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_none, nothing_set),
        cmocka_unit_test_setup(test_handed_over, nothing_set),
        cmocka_unit_test_setup(test_small_shared_memory, nothing_set),
        cmocka_unit_test_setup(test_users_own, nothing_set),
        cmocka_unit_test_setup(test_no_room, nothing_set)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
