/* label: full */
/* --ranks: this program starts itself on two ranks, which exit, die, or wait for a signal, and
 * looks at the exit code that comes back. */
/* not under sanitizers */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/launch.h"
#include "comm/comm.h"
#include "comm/launcher.h"

static int launch(const char *word, int ranks) {
    char name[] = "train", text[32];
    char *argv[] = {name, text, NULL};
    snprintf(text, sizeof text, "%s", word);
    cli_launch_request request = {.ranks = ranks, .ranks_given = true};
    int code = -1; /* of one rank: nothing is started */
    cli_launch(2, argv, &request, &code);
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
    if (!comm_has_mpi()) return false;
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

static void test_refusals(void **state) {
    (void)state;
    assert_int_equal(launch("well", 0), 2);
    assert_int_equal(launch("well", 1000000), 2);
    if (!comm_has_mpi()) skip();
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(launch("well", 2), 2);
    setenv("PATH", path, 1);
    free(path);
}

static void test_threads(void **state) {
    (void)state;
    int all = cli_threads_per_rank(1);
    assert_true(all >= 1);
    assert_int_equal(cli_threads_per_rank(all), 1);
    assert_int_equal(cli_threads_per_rank(100000), 1);
    assert_int_equal(cli_stop_signals()[0].number, SIGINT);
}

/* --- the ranks --- */

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

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
        const cli_stop_signal *stops = cli_stop_signals();
        struct sigaction action = {.sa_handler = on_signal};
        for (int i = 0; i < 2; i++) sigaction(stops[i].number, &action, NULL);
        FILE *ready = fopen(getenv("TEST_READY"), "a");
        fputc('x', ready);
        fclose(ready);
        for (int i = 0; i < 600 && !caught; i++) usleep(50000);
        for (int i = 0; i < 2; i++)
            if (stops[i].number == caught) code = 128 + stops[i].meaning;
    }
    comm_close(group);
    return code;
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_threads),
    };
    if (argc == 3 && strcmp(argv[1], "train") == 0) return run_rank(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
