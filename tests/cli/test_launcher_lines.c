/* What passes of a launcher's standard error before and after the ranks were asked to stop. */
#include "cli/launch/launcher_lines.h"

#include <fcntl.h>

#include "support/scratch.h"

/* Passes `before`, then, after the signal, `after` in pieces of `piece` bytes. */
static void check(const char *before, const char *after, size_t piece, const char *wanted) {
    char passed[32768];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    cli_launcher_lines lines = {.out = ends[1]};
    cli_launcher_lines_pass(&lines, before, strlen(before));
    lines.asked = true;
    for (size_t at = 0, left = strlen(after); left > 0;) {
        size_t part = left < piece ? left : piece;
        cli_launcher_lines_pass(&lines, after + at, part);
        at += part;
        left -= part;
    }
    cli_launcher_lines_end(&lines);
    close(ends[1]);
    size_t used = 0;
    ssize_t count;
    while ((count = read(ends[0], passed + used, sizeof passed - 1 - used)) > 0)
        used += (size_t)count;
    close(ends[0]);
    passed[used] = '\0';
    assert_string_equal(passed, wanted);
}

#define RULE "--------------------------------------------------------------------------\n"
#define BOX                                                                                        \
    RULE "Primary job  terminated normally, but 1 process returned\n"                              \
         "a non-zero exit code. Per user-direction, the job has been aborted.\n" RULE

static const char open_mpi[] =
    "mpirun.openmpi: Forwarding signal 10 to job\n" BOX "sifr train: warning: step 4 skipped\n" BOX
    "[host:123] 1 more process has sent help message\n"
    "sifr train: rank 1: no room\n" RULE "mpirun noticed that";
static const char mpich[] =
    "[mpiexec@host] Sending Ctrl-C to processes as requested\n\n"
    "=========\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=========\n"
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)\n"
    "This typically refers to a problem with your application.\n"
    "Please see the FAQ page for debugging suggestions\n"
    "stopped by a signal after step 4 of 8; saved, continue with --resume\n";

static void before_a_signal_all_passes(void **state) {
    (void)state;
    check(open_mpi, "", 1, open_mpi);
    check(mpich, "", 1, mpich);
}

static void after_it_only_the_ranks_lines(void **state) {
    const size_t pieces[] = {1, 7, 64, 4096};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        check("", open_mpi, pieces[i],
              "sifr train: warning: step 4 skipped\nsifr train: rank 1: no room\n");
        check("", mpich, pieces[i],
              "stopped by a signal after step 4 of 8; saved, continue with --resume\n");
    }
}

static void a_line_under_way_is_finished(void **state) {
    (void)state;
    check("mpirun was lo", "oking\nmpirun: gone\nlast, without an end", 5,
          "mpirun was looking\nlast, without an end");
}

static void a_long_line_passes(void **state) {
    char text[20000];
    (void)state;
    memset(text, 'x', sizeof text - 2);
    memcpy(text + sizeof text - 2, "\n", 2);
    check("", text, 1000, text);
}

/* Whether a rank has said why it ends, in pieces of any size. */
static bool finds_reason(const char *text) {
    bool found[3];
    const size_t pieces[] = {1, 9, 4096};
    int nowhere = open("/dev/null", O_WRONLY);
    for (size_t i = 0; i < 3; i++) {
        cli_launcher_lines lines = {.out = nowhere};
        for (size_t at = 0, part; at < strlen(text); at += part) {
            part = strlen(text) - at < pieces[i] ? strlen(text) - at : pieces[i];
            cli_launcher_lines_pass(&lines, text + at, part);
        }
        found[i] = lines.reason;
    }
    close(nowhere);
    assert_true(found[0] == found[1]);
    assert_true(found[1] == found[2]);
    return found[0];
}

/* Whether the ranks were asked to stop, as their line says, which takes the live line's place. */
static bool finds_stop(const char *text) {
    int nowhere = open("/dev/null", O_WRONLY);
    cli_launcher_lines lines = {.out = nowhere};
    for (; *text; text++) cli_launcher_lines_pass(&lines, text, 1);
    close(nowhere);
    return lines.stopped;
}

static void a_stop_is_found(void **state) {
    (void)state;
    assert_true(finds_stop("stopped by SIGUSR1 after step 4 of 8; saved, continue\n"));
    assert_true(
        finds_stop("\r\033[Kstep 3 loss 2.1 and more of it\r\033[Kstopped by SIGTERM after\n"));
    assert_false(finds_stop("it was stopped by SIGTERM after step 4 of 8\n"));
    assert_false(finds_stop("stopped\nby SIGTERM after step 4 of 8\n"));
}

static void a_reason_is_found(void **state) {
    (void)state;
    assert_true(finds_reason(open_mpi));
    assert_true(finds_reason("sifr bench comm: no\n"));
    assert_true(finds_reason(RULE "a long line before it, longer than its head\n"
                                  "sifr train: rank 1: o: No space left on device\n"));
    assert_true(finds_reason("sifr train: rank 1: no room\r\n"));
    assert_false(finds_reason(BOX));
    assert_false(finds_reason("sifr train: warning: step 4 skipped, and nothing else is wrong\n"));
    assert_false(finds_reason("mpirun: sifr train: was not found\n\n\nsifr"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(before_a_signal_all_passes),
                                       cmocka_unit_test(after_it_only_the_ranks_lines),
                                       cmocka_unit_test(a_line_under_way_is_finished),
                                       cmocka_unit_test(a_long_line_passes),
                                       cmocka_unit_test(a_stop_is_found),
                                       cmocka_unit_test(a_reason_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
