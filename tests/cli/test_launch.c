/* label: full */
/* --ranks: this program starts itself on two ranks, which exit, die, or wait for a signal, and
 * looks at the exit code that comes back. */
/* not under sanitizers, each MPI */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/launch/launch.h"
#include "cli/launch/launch_command.h"
#include "cli/launch/stop_signals.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "support/scratch.h"

static int launch(const char *word, int ranks) {
    char name[] = "train", text[32];
    char *argv[] = {name, text, NULL};
    snprintf(text, sizeof text, "%s", word);
    cli_launch_request request = {.ranks = ranks, .ranks_given = true};
    cli_launch_choice choice;
    sifr_error error;
    if (cli_launch_choose(&request, &choice, &error) != SIFR_OK) return (int)error.status;
    if (!choice.launch) return -1;
    int code = cli_launch(2, argv, &choice);
    cli_launch_choice_free(&choice);
    return code;
}

/* In a process of its own, which gets the signal once the ranks are up; their line says so. */
static int launch_and_signal(const char *word, int number) {
    char ready[] = "/tmp/sifr-launch-XXXXXX";
    int file = mkstemp(ready), status = -1;
    assert_true(file >= 0);
    setenv("TEST_READY", ready, 1);
    pid_t child = fork();
    if (child == 0) _exit(launch(word, 2));
    char bytes[2];
    for (int i = 0; i < 600 && pread(file, bytes, 2, 0) < 2; i++) usleep(50000);
    kill(child, number);
    waitpid(child, &status, 0);
    close(file);
    unlink(ready);
    unsetenv("TEST_READY");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool can_run(void) {
    if (!comm_is_there(COMM_MPI)) return false;
    return system("mpirun --version >/dev/null 2>&1") == 0;
}

static void test_exit_codes(void **state) {
    (void)state;
    if (!can_run()) skip();
    assert_int_equal(launch("well", 2), 0);
    assert_int_equal(launch("usage", 2), 2);
    assert_int_equal(launch("killed", 2), 4);
}

static void test_signals(void **state) {
    (void)state;
    if (!can_run()) skip();
    assert_int_equal(launch_and_signal("wait", SIGINT), 130);
    assert_int_equal(launch_and_signal("wait", SIGTERM), 143);
}

/* A launcher that is a script, in the place of the MPI's; two signals (0: none) come to the process
 * in front of it, the second when it has begun for some time. Returns the exit code. */
static int signal_script(const char *script, int number, int second) {
    bool mpich = comm_mpi_chosen() == COMM_MPICH;
    char path[4096], *before = strdup(getenv("PATH"));
    const char *file = scratch_text(mpich ? "mpirun.mpich" : "mpirun.openmpi", script);
    int status = -1;
    chmod(file, 0755);
    snprintf(path, sizeof path, "%.*s:%s", (int)(strrchr(file, '/') - file), file, before);
    setenv("PATH", path, 1);
    pid_t child = fork();
    if (child == 0) _exit(launch("well", 2));
    usleep(150000);
    if (number) kill(child, number);
    usleep(400000);
    if (second) kill(child, second);
    waitpid(child, &status, 0);
    setenv("PATH", before, 1);
    free(before);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Launchers lose signals that come before their ranks are there. */
static void test_early_signal(void **state) {
    (void)state;
    if (!comm_is_there(COMM_MPI)) skip();
    const char *deaf = "#!/bin/sh\ntrap '' USR1 USR2 TERM\nsleep 0.6\n"
                       "trap 'exit 143' USR1 USR2 TERM\necho begun\n"
                       "for i in $(seq 200); do sleep 0.05; done\n";
    assert_int_equal(signal_script(deaf, SIGTERM, 0), 143);
    assert_int_equal(signal_script(deaf, SIGINT, 0), 130);
    assert_int_equal(signal_script(deaf, SIGTERM, SIGTERM), 143); /* one request, as of Slurm */
}

/* Open MPI's launcher would end the ranks at a SIGTERM of its own: it has it blocked, and the
 * process in front takes it for a request. */
static void test_launcher_is_sent_one(void **state) {
    (void)state;
    if (!comm_is_there(COMM_MPI) || comm_mpi_chosen() == COMM_MPICH) skip();
    const char *script = "#!/bin/sh\ntrap 'exit 143' USR2\nkill -TERM $$\n"
                         "for i in $(seq 400); do sleep 0.05; done\n";
    assert_int_equal(signal_script(script, 0, 0), 143);
}

/* A signal of another kind is the same request, and one that was ignored at the start is none. */
static void test_signals_of_schedulers(void **state) {
    (void)state;
    if (!comm_is_there(COMM_MPI)) skip();
    const char *script = "#!/bin/sh\ntrap 'sleep 1; exit 143' USR1 USR2 TERM\necho begun\n"
                         "for i in $(seq 400); do sleep 0.05; done\n";
    assert_int_equal(signal_script(script, SIGUSR1, SIGTERM), 138);
    assert_int_equal(signal_script(script, SIGUSR2, SIGINT), 140);
    signal(SIGUSR1, SIG_IGN);
    assert_int_equal(signal_script(script, SIGUSR1, SIGTERM), 143);
    signal(SIGUSR1, SIG_DFL);
}

/* Nor does one that hangs keep what a second signal ends. */
static void test_hanging_launcher(void **state) {
    (void)state;
    if (!comm_is_there(COMM_MPI)) skip();
    const char *note = scratch_path("left");
    char script[4096];
    snprintf(script, sizeof script,
             "#!/bin/sh\ntrap '' INT USR1 USR2 TERM\n(sleep 5; echo >%s) & wait\n", note);
    assert_int_equal(signal_script(script, SIGINT, SIGINT), 130);
    sleep(2);
    assert_int_not_equal(access(note, F_OK), 0);
}

static void test_refusals(void **state) {
    (void)state;
    assert_int_equal(launch("well", 0), 2);
    assert_int_equal(launch("well", 1000000), 2);
    if (!comm_is_there(COMM_MPI)) skip();
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(launch("well", 2), 2);
    setenv("PATH", path, 1);
    free(path);
}

static void test_choices(void **state) {
    (void)state;
    cli_launch_choice choice;
    sifr_error error;
    cli_launch_request one = {.ranks = 1, .ranks_given = true};
    assert_int_equal(cli_launch_choose(&one, &choice, &error), SIFR_OK);
    assert_false(choice.launch); /* no MPI for one rank */
    cli_launch_request four = {.ranks = 4, .ranks_given = true};
    const char *local = scratch_text("local", "localhost slots=4\n");
    cli_launch_request all = {.hostfile = local};
    assert_int_equal(cli_launch_choose(&all, &choice, &error), SIFR_OK);
    assert_true(choice.launch);
    assert_true(choice.ranks == 4);
    assert_true(!choice.hosts);
    cli_launch_request first = {.hostfile = local, .include = "localhost:3"};
    assert_int_equal(cli_launch_choose(&first, &choice, &error), SIFR_OK);
    assert_false(choice.launch);
    const char *two = scratch_text("two", "a.invalid slots=2\nb.invalid slots=2\n");
    cli_launch_request three = {.ranks = 3, .ranks_given = true, .hostfile = two};
    assert_int_equal(cli_launch_choose(&three, &choice, &error), SIFR_OK);
    assert_true(choice.launch);
    assert_true(choice.ranks == 3);
    assert_string_equal(choice.hosts, "a.invalid:2,b.invalid:1");
    cli_launch_choice_free(&choice);
    cli_launch_request single = {.hostfile = two, .include = "b.invalid:1"};
    assert_int_equal(cli_launch_choose(&single, &choice, &error), SIFR_OK);
    assert_true(choice.launch);
    assert_true(choice.ranks == 1); /* one rank, but not here */
    cli_launch_choice_free(&choice);

    cli_launch_request five = {.ranks = 5, .ranks_given = true, .hostfile = two};
    assert_int_equal(cli_launch_choose(&five, &choice, &error), SIFR_USAGE);
    assert_message(&error, "--ranks: 5, but");
    assert_message(&error, "has 4 slots");
    cli_launch_request nowhere = {.include = "a"};
    assert_int_equal(cli_launch_choose(&nowhere, &choice, &error), SIFR_USAGE);
    assert_message(&error, "of a --hostfile");

    setenv("RANK", "1", 1), setenv("LOCAL_RANK", "1", 1); /* torchrun's, or left over */
    setenv("WORLD_SIZE", "2", 1);
    assert_int_equal(cli_launch_choose(&four, &choice, &error), SIFR_USAGE);
    assert_message(&error, "as one of 2 ranks");
    assert_message(&error, "unset RANK, LOCAL_RANK and WORLD_SIZE");
    unsetenv("RANK"), unsetenv("LOCAL_RANK"), unsetenv("WORLD_SIZE");

    setenv("OMPI_COMM_WORLD_SIZE", "1", 1); /* srun -n1, mpirun -n 1 */
    assert_int_equal(cli_launch_choose(&four, &choice, &error), SIFR_USAGE);
    assert_message(&error, "--ranks 4: a launcher");
    assert_message(&error, "as its only rank");
    assert_int_equal(cli_launch_choose(&one, &choice, &error), SIFR_OK);

    setenv("OMPI_COMM_WORLD_SIZE", "4", 1); /* as one of a launcher's ranks */
    cli_launch_request none = {0};
    assert_int_equal(cli_launch_choose(&none, &choice, &error), SIFR_OK);
    assert_true(!choice.launch);
    assert_true(choice.ranks == 4);
    assert_int_equal(cli_launch_choose(&three, &choice, &error), SIFR_USAGE);
    assert_message(&error, "give the hosts to the launcher");
    assert_int_equal(cli_launch_choose(&one, &choice, &error), SIFR_USAGE);
    assert_message(&error, "--ranks 1: started as one of 4 ranks already");
    setenv(CLI_LAUNCHED, "none", 1); /* sifr's own: the same options again */
    assert_int_equal(cli_launch_choose(&three, &choice, &error), SIFR_OK);
    assert_false(choice.launch);
    unsetenv(CLI_LAUNCHED);
    unsetenv("OMPI_COMM_WORLD_SIZE");
}

/* --- this process is asked to stop --- */

static bool catches(int number) {
    struct sigaction action;
    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

static void leave_signals(void) {
    for (int i = 0; i < CLI_STOP_SIGNALS; i++) signal(cli_stop_signals[i], SIG_DFL);
}

static void test_stop_signals(void **state) {
    (void)state;
    signal(SIGHUP, SIG_IGN); /* nohup */
    signal(SIGUSR1, SIG_IGN);
    cli_catch_stop_signals();
    assert_true(catches(SIGINT));
    assert_false(catches(SIGHUP));
    assert_false(catches(SIGUSR1));
    leave_signals();
    cli_catch_stop_signals();
    for (int i = 0; i < CLI_STOP_SIGNALS; i++) assert_true(catches(cli_stop_signals[i]));
    assert_int_equal(cli_stop_asked(), 0);
    raise(SIGTERM);
    raise(SIGUSR2); /* the first one counts */
    assert_int_equal(cli_stop_asked(), SIGTERM);
    assert_string_equal(cli_stop_name(SIGTERM), "SIGTERM");
    assert_string_equal(cli_stop_name(SIGUSR2), "SIGUSR2");
    assert_true(catches(SIGTERM));
    leave_signals();
}

/* What becomes of a process to which signals are sent so many milliseconds one after the other: the
 * signal that ended it, or 0 where it was asked to stop. */
static int after_two(int one, int two, int pause) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        cli_catch_stop_signals();
        raise(one);
        usleep((unsigned)pause * 1000);
        raise(two);
        _exit(cli_stop_asked() ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Slurm sends each rank two SIGTERM, 7 to 20 ms apart. */
static void test_repeats(void **state) {
    (void)state;
    assert_int_equal(after_two(SIGTERM, SIGTERM, 0), 0);
    assert_int_equal(after_two(SIGTERM, SIGTERM, 15), 0);
    assert_int_equal(after_two(SIGHUP, SIGHUP, 15), 0);
    assert_int_equal(after_two(SIGHUP, SIGTERM, 15), 0);
    assert_int_equal(after_two(SIGINT, SIGINT, 15), SIGINT); /* by hand, and meant */
    assert_int_equal(after_two(SIGTERM, SIGTERM, 2050), SIGTERM);
    assert_int_equal(after_two(SIGUSR1, SIGTERM, 2050), 0); /* Slurm's, at the time limit */
}

/* By the clock: SIGUSR1 at 0, and after its time a scheduler's two SIGTERM. */
static void test_what_ends(void **state) {
    (void)state;
    const cli_stop_seen none = {0}, usr1 = {.kinds = 1u << SIGUSR1},
                        term = {.kinds = 1u << SIGUSR1 | 1u << SIGTERM, .since = 120000000000};
    assert_false(cli_stop_ends(&none, SIGINT, 0));
    assert_false(cli_stop_ends(&usr1, SIGUSR1, 1999999999));
    assert_true(cli_stop_ends(&usr1, SIGUSR1, 2000000000));
    assert_false(cli_stop_ends(&usr1, SIGTERM, 120000000000));
    assert_false(cli_stop_ends(&term, SIGTERM, 120015000000));
    assert_true(cli_stop_ends(&term, SIGTERM, 122000000000));
}

/* A rank of a run that this program's process started, which gets a signal from its parent, as from
 * Open MPI's launcher, or from another process. Returns the exit code, which is the signal that it
 * takes it for, or -1 where it was ended. */
static int take_in_rank(int number, bool of_parent) {
    int ready[2], status;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t rank = fork();
    if (rank == 0) {
        setenv(CLI_LAUNCHED, "none", 1);
        cli_catch_stop_signals();
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (int i = 0; i < 600 && !cli_stop_asked(); i++) usleep(50000);
        _exit(cli_stop_asked());
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
    if (of_parent) {
        kill(rank, number);
    } else {
        pid_t other = fork();
        if (other == 0) _exit(kill(rank, number));
        waitpid(other, NULL, 0);
    }
    waitpid(rank, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_who_sent_it(void **state) {
    (void)state;
    if (!comm_is_there(COMM_MPI) || comm_mpi_chosen() == COMM_MPICH) skip();
    assert_int_equal(take_in_rank(SIGUSR1, true), SIGINT);
    assert_int_equal(take_in_rank(SIGUSR2, true), SIGTERM);
    assert_int_equal(take_in_rank(SIGTERM, true), -1); /* another rank is lost */
    for (int i = 0; i < CLI_STOP_SIGNALS; i++)
        assert_int_equal(take_in_rank(cli_stop_signals[i], false), cli_stop_signals[i]);
}

/* As the first process of a container, which no signal ends by default. */
static void test_first_process(void **state) {
    (void)state;
    int status;
    pid_t outer = fork();
    if (outer == 0) {
        if (unshare(CLONE_NEWPID) != 0) _exit(77);
        pid_t first = fork();
        if (first == 0) {
            cli_catch_stop_signals();
            raise(SIGINT);
            raise(SIGINT);
            _exit(0);
        }
        waitpid(first, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    waitpid(outer, &status, 0);
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 130);
}

/* Kernels may have the stack pointer at the end of a buffer on the heap: a handler must not write
 * there. */
static void test_handlers_have_a_stack(void **state) {
    (void)state;
    struct sigaction action;
    stack_t stack;
    cli_catch_stop_signals();
    for (int i = 0; i < CLI_STOP_SIGNALS; i++) {
        assert_int_equal(sigaction(cli_stop_signals[i], NULL, &action), 0);
        assert_true(action.sa_flags & SA_ONSTACK);
    }
    assert_int_equal(sigaltstack(NULL, &stack), 0);
    assert_int_equal(stack.ss_flags, 0);
    assert_true(stack.ss_size >= (size_t)sysconf(_SC_SIGSTKSZ));
    leave_signals();
}

/* --- the ranks --- */

static int run_rank(const char *word) {
    comm_group *group;
    sifr_error error;
    int ranks;
    if (!comm_under_launcher(&ranks) || ranks != 2) return 9;
    if (comm_open_mpi(&group, &error) != SIFR_OK) return 9;
    int code = comm_size(group) == 2 ? 0 : 9, rank = comm_rank(group);
    if (strcmp(word, "usage") == 0) code = 2;
    if (strcmp(word, "killed") == 0 && rank == 1) raise(SIGKILL);
    if (strcmp(word, "wait") == 0) {
        cli_catch_stop_signals();
        FILE *ready = fopen(getenv("TEST_READY"), "a");
        fputc('x', ready);
        fclose(ready);
        puts("begun"); /* MPICH's launcher gets no signal before */
        fflush(stdout);
        for (int i = 0; i < 600 && !cli_stop_asked(); i++) usleep(50000);
        if (cli_stop_asked()) code = 128 + cli_stop_asked();
    }
    comm_close(group);
    return code;
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_early_signal),
        cmocka_unit_test(test_launcher_is_sent_one),
        cmocka_unit_test(test_signals_of_schedulers),
        cmocka_unit_test(test_hanging_launcher),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_stop_signals),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_what_ends),
        cmocka_unit_test(test_who_sent_it),
        cmocka_unit_test(test_first_process),
        cmocka_unit_test(test_handlers_have_a_stack),
    };
    if (argc == 3 && strcmp(argv[1], "train") == 0) return run_rank(argv[2]);
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
