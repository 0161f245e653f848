/* label: full; timeout: 400, not under sanitizers (calls of the system are replaced)
 * Ranks of a mesh of 2 pipeline stages x 2 shards (threads of this process) are killed in front of
 * each call of the system that changes a file, one after the other, while they save. What is there
 * then is the checkpoint before or the new one, and any ranks go on from it to the right bits. */
#include "support/scratch.h"
#include "support/sharded_run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "checkpoint/checkpoint.h"

/* --- the calls --- */

static _Atomic int64_t left; /* calls until the process is killed; 0: it lives */

static void instant(void) {
    if (atomic_fetch_sub(&left, 1) == 1) kill(getpid(), SIGKILL);
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (flags & O_CREAT) instant();
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Also killed in its midst. */
ssize_t write(int file, const void *data, size_t size) {
    instant();
    if (atomic_load(&left) == 1) size = (size + 1) / 2; /* the rest is another call */
    return syscall(SYS_write, file, data, size);
}

int fsync(int file) {
    instant();
    return (int)syscall(SYS_fsync, file);
}

int mkdir(const char *path, mode_t mode) {
    instant();
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to) {
    instant();
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int directory, const char *path, int flags) {
    instant();
    return (int)syscall(SYS_unlinkat, directory, path, flags);
}

/* --- the runs --- */

enum { SAVED = 2 }; /* steps that are there before */

/* One more step, and its checkpoint; with `calls` it is killed. False: it lived. */
static bool save_and_die(sharded_task t, int64_t calls) {
    int result;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        t.steps = 1;
        t.to = t.from;
        atomic_store(&left, calls);
        _exit((int)sharded_run(t));
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    if (WIFSIGNALED(result)) {
        assert_int_equal(WTERMSIG(result), SIGKILL);
        return true;
    }
    assert_int_equal(WEXITSTATUS(result), SIFR_OK);
    return false;
}

static void restore(const char *output, const char *saved) {
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", output, saved, output);
    assert_int_equal(system(command), 0);
}

/* Meshes that go on: one rank, two shards, the same mesh, two stages, copies of the state. */
static sharded_task others(int64_t number) {
    static const struct {
        int32_t ranks, stages, shard_size;
        int zero;
    } meshes[] = {{1, 1, 0, 0}, {2, 1, 0, 3}, {4, 2, 0, 3}, {2, 2, 0, 0}, {4, 1, 2, 2}};
    const size_t at = (size_t)number % (sizeof meshes / sizeof *meshes);
    return (sharded_task){
        .shape = {meshes[at].ranks, meshes[at].zero, SIFR_BF16, meshes[at].shard_size},
        .stages = meshes[at].stages};
}

/* `latest` names a checkpoint that is there. */
static void expect_latest(void) {
    char *text, path[128];
    size_t size;
    assert_int_equal(base_read_file(scratch_path("killed/latest"), 99, &text, &size, NULL),
                     SIFR_OK);
    assert_true(size > 1);
    assert_true(text[size - 1] == '\n');
    snprintf(path, sizeof path, "killed/%.*s", (int)size - 1, text);
    assert_true(base_is_directory(scratch_path(path)));
    free(text);
}

static void each_instant(int zero) {
    uint64_t wanted[SHARDED_MOST_STEPS];
    char saved[128], output[128]; /* scratch_path's do not live so long */
    sharded_task mesh = {
        .shape = {4, zero, SIFR_BF16, 0}, .stages = 2, .whole = true, .from = output};
    int64_t olds = 0, news = 0;
    snprintf(saved, sizeof saved, "%s", scratch_fresh("saved"));
    snprintf(output, sizeof output, "%s", scratch_fresh("killed"));
    sharded_reference(SIFR_BF16, SAVED + 2, wanted);
    sharded_succeeds((sharded_task){.shape = mesh.shape,
                                    .stages = 2,
                                    .whole = true,
                                    .to = saved,
                                    .steps = SAVED,
                                    .save_each = 1});
    for (int64_t calls = 1;; calls++) {
        restore(output, saved);
        bool killed = save_and_die(mesh, calls);
        assert_int_equal(checkpoint_clean(output, NULL), SIFR_OK);
        expect_latest();
        sharded_task t = others(calls);
        t.from = output, t.steps = 1;
        sharded_succeeds(t);
        assert_string_equal(sharded_last()->said, ""); /* nothing is damaged */
        int64_t step = sharded_last()->step;
        if (step != SAVED + 1 && step != SAVED + 2)
            fail_msg("killed at call %d: goes on to step %d", (int)calls, (int)step);
        if (sharded_last()->hash != wanted[step])
            fail_msg("killed at call %d: other bits at step %d", (int)calls, (int)step);
        olds += step == SAVED + 1;
        news += step == SAVED + 2;
        if (!killed) break;
        if (step == SAVED + 1) assert_int_equal(news, 0); /* a new one stays */
    }
    print_message("ZeRO %d: killed %d times, %d times the old checkpoint, %d times the new one\n",
                  zero, (int)(olds + news - 1), (int)olds, (int)news - 1);
    assert_true(olds > 20);
    assert_true(news > 5); /* `latest`, and the oldest one that goes */
}

static void optimizer_cut(void **state) {
    (void)state;
    each_instant(1);
}

static void all_cut(void **state) {
    (void)state;
    each_instant(3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(optimizer_cut), cmocka_unit_test(all_cut)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
