/* Which MPI is opened: by SIFR_MPI, by who started this process, by what is in PATH; and what is
 * said of a library that is none.
 * sanitizers in the soak alone (libraries from outside keep what they took) */
#include "support/scratch.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "comm/launcher.h"
#include "comm/mpi_library/mpi_choice.h"
#include "comm/mpi_library/mpi_load.h"

static const char *const names[] = {
    "SIFR_MPI",       "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",     "PMI_RANK",       "PMIX_RANK",
    "PMIX_NAMESPACE", "SLURM_STEP_ID",        "SLURM_PROCID", "MPI_LOCALNRANKS"};
static sifr_error error;

static int nothing_set(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    return setenv("PATH", "/nowhere", 1);
}

/* A program that is there, and files beside its folder. */
static void make_program(const char *folder, const char *program, const char *library) {
    char path[256];
    mkdir(scratch_path(folder), 0755);
    snprintf(path, sizeof path, "%s/bin", folder);
    mkdir(scratch_path(path), 0755);
    snprintf(path, sizeof path, "%s/bin/%s", folder, program);
    chmod(scratch_text(path, "#!/bin/sh\n"), 0755);
    if (!library) return;
    snprintf(path, sizeof path, "%s/lib", folder);
    mkdir(scratch_path(path), 0755);
    snprintf(path, sizeof path, "%s/lib/%s", folder, library);
    scratch_text(path, "no library");
}

static mpi_choice choose(void) {
    mpi_choice choice;
    error.message[0] = '\0';
    if (mpi_choose(&choice, &error) != SIFR_OK) fail_msg("%s", error.message);
    return choice;
}

static void expect(comm_mpi_kind first, comm_mpi_kind second, bool launched, const char *why) {
    mpi_choice choice = choose();
    assert_int_equal(choice.count, second == COMM_NO_MPI ? 1 : 2);
    assert_int_equal(choice.kinds[0], first);
    if (choice.count > 1) assert_int_equal(choice.kinds[1], second);
    assert_int_equal(choice.launched, launched);
    assert_string_equal(choice.why, why);
}

static void test_setting(void **state) {
    (void)state;
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1); /* SIFR_MPI goes first */
    setenv("SIFR_MPI", "mpich", 1);
    expect(COMM_MPICH, COMM_NO_MPI, true, "SIFR_MPI");
    assert_int_equal(comm_mpi_chosen(), COMM_MPICH);
    setenv("SIFR_MPI", "openmpi", 1);
    expect(COMM_OPEN_MPI, COMM_NO_MPI, true, "SIFR_MPI");
    setenv("SIFR_MPI", "off", 1);
    assert_int_equal(choose().count, 0);
    assert_int_equal(comm_mpi_chosen(), COMM_NO_MPI);
    assert_int_equal(comm_mpi_bytes(COMM_NO_MPI), 0);
    setenv("SIFR_MPI", "", 1); /* as if it were not there */
    expect(COMM_OPEN_MPI, COMM_NO_MPI, true, "OMPI_COMM_WORLD_SIZE");
}

/* A path tells its kind by the name of what it leads to. */
static void test_paths(void **state) {
    static const struct {
        const char *file;
        comm_mpi_kind kind;
    } files[] = {{"libmpi.so.40.30.4", COMM_OPEN_MPI},
                 {"libmpi.so.12", COMM_MPICH},
                 {"libmpich.so.12.2.2", COMM_MPICH},
                 {"libother.so", COMM_OTHER_MPI}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *file = scratch_text(files[i].file, "no library"), *link = scratch_path("link");
        unlink(link);
        assert_int_equal(symlink(file, link), 0);
        setenv("SIFR_MPI", link, 1);
        expect(files[i].kind, COMM_NO_MPI, false, "SIFR_MPI");
        assert_string_equal(choose().path, link);
    }
}

static void test_refused_words(void **state) {
    (void)state;
    mpi_choice choice;
    for (int i = 0; i < 3; i++) {
        setenv("SIFR_MPI", (const char *[]){"ompi", "libmpi.so.40", "OFF"}[i], 1);
        assert_int_equal(mpi_choose(&choice, &error), SIFR_USAGE);
        assert_message(&error, "SIFR_MPI=");
        assert_message(&error, "give openmpi, mpich, off, or the path");
        assert_int_equal(comm_mpi_chosen(), COMM_NO_MPI);
    }
}

static void test_launchers(void **state) {
    (void)state;
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1), setenv("PMI_SIZE", "4", 1);
    expect(COMM_OPEN_MPI, COMM_NO_MPI, true, "OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    expect(COMM_MPICH, COMM_NO_MPI, true, "PMI_SIZE");
    setenv("SLURM_STEP_ID", "0", 1), setenv("SLURM_PROCID", "0", 1); /* srun --mpi=pmi2 */
    expect(COMM_MPICH, COMM_OPEN_MPI, true, "");
    setenv("MPI_LOCALNRANKS", "2", 1); /* mpiexec of MPICH in a step of srun's */
    expect(COMM_MPICH, COMM_NO_MPI, true, "PMI_SIZE");
    unsetenv("MPI_LOCALNRANKS"), unsetenv("PMI_SIZE");
    expect(COMM_OPEN_MPI, COMM_MPICH, true, ""); /* srun alone */
    setenv("PMIX_RANK", "0", 1), setenv("PMIX_NAMESPACE", "slurm.pmix.1.0", 1);
    expect(COMM_OPEN_MPI, COMM_MPICH, true, "");
}

/* Without a launcher's word the first one in PATH that tells its kind: by its name, or by what lies
 * beside it, which is then the library. */
static void test_path(void **state) {
    (void)state;
    char path[BASE_PATH_LENGTH], list[1024];
    expect(COMM_OPEN_MPI, COMM_MPICH, false, "");
    assert_int_equal(comm_mpi_chosen(), COMM_OTHER_MPI); /* nothing is opened to know more */
    make_program("a", "mpirun", NULL);
    make_program("b", "mpiexec", "libmpi.so.12");
    make_program("c", "mpirun.openmpi", "libmpi.so.40");
    snprintf(list, sizeof list, "%s/a/bin:%s/b/bin:%s/c/bin", scratch, scratch, scratch);
    setenv("PATH", list, 1);
    expect(COMM_MPICH, COMM_NO_MPI, false, scratch_path("b/bin/mpiexec"));
    assert_int_equal(comm_mpi_chosen(), COMM_MPICH);
    mpi_choice choice = choose();
    assert_false(mpi_choice_place(&choice, COMM_OPEN_MPI, path)); /* a/bin/mpirun may be its */
    snprintf(list, sizeof list, "%s/c/bin", scratch);
    setenv("PATH", list, 1);
    expect(COMM_OPEN_MPI, COMM_NO_MPI, false, scratch_path("c/bin/mpirun.openmpi"));
    choice = choose();
    assert_true(mpi_choice_place(&choice, COMM_OPEN_MPI, path));
    assert_string_equal(path, scratch_path("c/lib/libmpi.so.40"));
    assert_false(mpi_choice_place(&choice, COMM_MPICH, path));
}

static void refuse(const char *part, const char *other_part) {
    mpi_library mpi;
    assert_int_not_equal(mpi_library_open(&mpi, &error), SIFR_OK);
    assert_message(&error, part);
    assert_message(&error, other_part);
    assert_int_equal(mpi.kind, COMM_NO_MPI);
}

static void test_refused_libraries(void **state) {
    (void)state;
    setenv("SIFR_MPI", "off", 1);
    refuse("SIFR_MPI=off", "unset SIFR_MPI");
    setenv("SIFR_MPI", "/nowhere/libmpi.so.40", 1);
    refuse("SIFR_MPI: /nowhere/libmpi.so.40: cannot open", "give the file of Open MPI's");
    setenv("SIFR_MPI", scratch_text("libmpi.so.40", "no library"), 1);
    refuse("SIFR_MPI: /tmp/", "give the file of Open MPI's");
    unsetenv("SIFR_MPI");
    make_program("d", "mpirun", "libmpi.so.12");
    setenv("PATH", scratch_path("d/bin"), 1);
    refuse("d/bin/mpirun means ranks of MPICH, whose library cannot be opened (", "install mpich,");
}

/* In a process of its own, since what is loaded stays. */
static int open_and_look(const char *word) {
    mpi_library mpi;
    char path[BASE_PATH_LENGTH];
    comm_mpi_kind kind;
    int there = 1;
    setenv("SIFR_MPI", word, 1);
    signal(SIGHUP, SIG_IGN), signal(SIGFPE, SIG_DFL);
    if (mpi_library_open(&mpi, &error) != SIFR_OK) return 77;
    if (signal(SIGHUP, SIG_DFL) != SIG_IGN || signal(SIGFPE, SIG_DFL) != SIG_DFL) return 7;
    if (mpi.calls.initialized(&mpi, &there) != 0 || there) return 1;
    if (!mpi_find_loaded(&kind, path) || kind != mpi.kind || strcmp(path, mpi.path) != 0) return 2;
    setenv("SIFR_MPI", mpi.kind == COMM_MPICH ? "openmpi" : "mpich", 1);
    if (mpi_library_open(&mpi, &error) != SIFR_USAGE) return 3;
    if (!strstr(error.message, "has loaded") || !strstr(error.message, "unset SIFR_MPI")) return 4;
    unsetenv("SIFR_MPI");
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1), setenv("PMI_SIZE", "2", 1);
    if (comm_mpi_chosen() != kind) return 5;
    setenv("SIFR_MPI", path, 1);
    return mpi_library_open(&mpi, &error) == SIFR_OK ? 0 : 6;
}

/* Those that this machine has; no MPI is started, and a second one is refused. */
static void test_open(void **state) {
    static const char *const words[] = {"openmpi", "mpich"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(open_and_look(words[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            print_message("%s is not here\n", words[i]);
        else
            assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_setting, nothing_set),
        cmocka_unit_test_setup(test_paths, nothing_set),
        cmocka_unit_test_setup(test_refused_words, nothing_set),
        cmocka_unit_test_setup(test_launchers, nothing_set),
        cmocka_unit_test_setup(test_path, nothing_set),
        cmocka_unit_test_setup(test_refused_libraries, nothing_set),
        cmocka_unit_test_setup(test_open, nothing_set),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
