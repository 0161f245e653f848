/* Folders of runs: what killed runs left is removed; what lives, what is foreign and what only
 * looks like one of ours stays. */
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

#include "cli/launch/session.h"
#include "support/scratch.h"

/* The folder of the test's own that sessions are made in. */
static const char *base_of(const char *name) {
    const char *path = scratch_path(name);
    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

static const char *parent_of(const char *base) {
    static char path[256];
    snprintf(path, sizeof path, "%s/sifr-%u", base, (unsigned)geteuid());
    return path;
}

static void fill(const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/deep", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/deep/file", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static bool is_there(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0;
}

/* A run that is killed: what it made stays, and the lock goes with the process. */
static void leave(const char *base, char out[CLI_SESSION_LENGTH]) {
    cli_session session;
    assert_int_equal(cli_session_make(base, &session, NULL), SIFR_OK);
    fill(session.path);
    strcpy(out, session.path);
    close(session.lock);
}

static void test_made_and_removed(void **state) {
    (void)state;
    const char *base = base_of("made");
    cli_session one, two, none = {0};
    struct stat about;
    assert_int_equal(cli_session_make(base, &one, NULL), SIFR_OK);
    assert_int_equal(cli_session_make(base, &two, NULL), SIFR_OK);
    assert_string_not_equal(one.path, two.path);
    assert_int_equal(stat(one.path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    assert_int_equal(stat(parent_of(base), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    fill(one.path);
    cli_session_remove(&one);
    assert_string_equal(one.path, "");
    cli_session_remove(&one);
    cli_session_remove(&none);
    assert_true(is_there(two.path));
    cli_session_remove(&two);
    assert_int_equal(rmdir(base), 0); /* nothing is left */
}

static void test_killed_runs(void **state) {
    (void)state;
    const char *base = base_of("killed");
    char first[CLI_SESSION_LENGTH], second[CLI_SESSION_LENGTH];
    cli_session live;
    assert_int_equal(cli_session_clean(base), 0);
    leave(base, first);
    leave(base, second);
    assert_int_equal(cli_session_make(base, &live, NULL), SIFR_OK);
    fill(live.path);
    assert_int_equal(cli_session_clean(base), 2);
    assert_false(is_there(first));
    assert_false(is_there(second));
    assert_true(is_there(live.path));
    assert_int_equal(cli_session_clean(base), 0);
    cli_session_remove(&live);
    leave(base, first);
    assert_int_equal(cli_session_clean(base), 1);
    assert_int_equal(rmdir(base), 0);
}

/* A launcher that outlives its parent holds the lock on. */
static void test_child_holds_the_lock(void **state) {
    (void)state;
    const char *base = base_of("child");
    cli_session session;
    assert_int_equal(cli_session_make(base, &session, NULL), SIFR_OK);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    close(session.lock);
    assert_int_equal(cli_session_clean(base), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(cli_session_clean(base), 1);
    assert_int_equal(rmdir(base), 0);
}

/* `parent`/`first``second`, where both texts are not too long. */
static const char *joined(const char *parent, const char *first, const char *second) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%.200s/%.100s%.100s", parent, first, second);
    return path;
}

static void test_foreign_names_stay(void **state) {
    (void)state;
    const char *base = base_of("foreign"), *parent = parent_of(base);
    const char *kept = scratch_path("kept");
    char stale[CLI_SESSION_LENGTH], name[CLI_SESSION_LENGTH];
    leave(base, stale);
    strcpy(name, strrchr(stale, '/') + 1);
    name[strlen(name) - 6] = '\0'; /* "run-HOST-" */
    assert_int_equal(mkdir(kept, 0700), 0);
    fill(kept);
    const char *beside = joined(base, name, "aaaaaa"), *other = joined(parent, "notes", ""),
               *host = joined(parent, "run-00000000-", "aaaaaa"),
               *file = joined(parent, name, "bbbbbb"), *link = joined(parent, name, "cccccc");
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(mkdir(host, 0700), 0);
    fclose(fopen(file, "w"));
    assert_int_equal(symlink(kept, link), 0);
    assert_int_equal(symlink(kept, joined(stale, "link", "")), 0); /* removed, not followed */
    const char *owned = joined(parent, name, "dddddd");
    if (geteuid() == 0) {
        assert_int_equal(mkdir(owned, 0700), 0);
        assert_int_equal(chown(owned, 1, 1), 0);
    }
    assert_int_equal(cli_session_clean(base), 1);
    assert_false(is_there(stale));
    assert_true(is_there(beside));
    assert_true(is_there(other));
    assert_true(is_there(host));
    assert_true(is_there(file));
    assert_true(is_there(link));
    assert_true(is_there(joined(kept, "deep/file", "")));
    if (geteuid() == 0) assert_true(is_there(owned));
}

/* Somebody else may have made BASE/sifr-UID: it is not used, and nothing in it is removed. */
static void test_foreign_parents(void **state) {
    (void)state;
    const char *base = base_of("squatted"), *parent = parent_of(base);
    char stale[CLI_SESSION_LENGTH];
    cli_session session;
    sifr_error error;
    leave(base, stale);
    assert_int_equal(chmod(parent, 0777), 0);
    assert_int_equal(cli_session_clean(base), 0);
    assert_int_equal(cli_session_make(base, &session, &error), SIFR_FAILED);
    assert_message(&error, "not a folder that only this user may write");
    assert_string_equal(session.path, "");
    cli_session_remove(&session);
    const char *moved = scratch_path("moved");
    assert_int_equal(chmod(parent, 0700), 0);
    assert_int_equal(rename(parent, moved), 0);
    assert_int_equal(symlink(moved, parent), 0);
    assert_int_equal(cli_session_clean(base), 0);
    assert_int_equal(cli_session_make(base, &session, &error), SIFR_FAILED);
    assert_true(is_there(joined(moved, strrchr(stale, '/') + 1, "")));
}

static void test_no_room_for_one(void **state) {
    (void)state;
    static const char far[] = "/tmp/a-folder-whose-name-is-far-too-long-for-the-path-of-a-socket";
    cli_session session;
    sifr_error error;
    assert_int_equal(cli_session_make("/proc", &session, &error), SIFR_FAILED); /* also for root */
    assert_message(&error, "/proc/sifr-");
    assert_int_equal(cli_session_make(scratch_path("nowhere"), &session, &error), SIFR_FAILED);
    assert_int_equal(cli_session_make(scratch_text("file", ""), &session, &error), SIFR_FAILED);
    assert_int_equal(cli_session_make("relative", &session, &error), SIFR_USAGE);
    assert_int_equal(cli_session_make(far, &session, &error), SIFR_USAGE);
    assert_message(&error, "too long");
    assert_int_equal(cli_session_clean("/proc") + cli_session_clean(far), 0);
}

/* Processes that make, clean and remove at once: none loses its folder, and none is left. */
static void test_at_once(void **state) {
    (void)state;
    enum { PROCESSES = 4, TIMES = 100 };
    const char *base = base_of("at-once");
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0) continue;
        for (int i = 0; i < TIMES; i++) {
            cli_session session;
            cli_session_clean(base);
            if (cli_session_make(base, &session, NULL) != SIFR_OK) _exit(1);
            if (i % 3 == 0) usleep(100);
            if (!is_there(session.path)) _exit(2);
            if (i % 5 == 0)
                close(session.lock);
            else
                cli_session_remove(&session);
        }
        _exit(0);
    }
    int failed = 0;
    for (int p = 0, status; p < PROCESSES; p++) failed += wait(&status) < 0 || status != 0;
    assert_int_equal(failed, 0);
    cli_session_clean(base);
    assert_int_equal(rmdir(base), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_made_and_removed),
                                              cmocka_unit_test(test_killed_runs),
                                              cmocka_unit_test(test_child_holds_the_lock),
                                              cmocka_unit_test(test_foreign_names_stay),
                                              cmocka_unit_test(test_foreign_parents),
                                              cmocka_unit_test(test_no_room_for_one),
                                              cmocka_unit_test(test_at_once)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
