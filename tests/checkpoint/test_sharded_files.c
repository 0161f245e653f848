/* label: full; timeout: 300
 * Files of checkpoints of several ranks (threads of this process): each byte is written once;
 * damage and trouble end alike on all ranks; kills lose nothing. */
#include "support/scratch.h"
#include "support/sharded_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint/checkpoint.h"

static uint64_t file_size(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* Files of state of a checkpoint, their count, and the sum, least and most of their sizes. */
typedef struct state_files {
    size_t count;
    uint64_t sum, least, most;
} state_files;

static state_files list_state(const char *directory) {
    state_files found = {.least = UINT64_MAX};
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(directory, &names, &count, NULL), SIFR_OK);
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        if (strncmp(names[i], "state-", 6) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        uint64_t size = file_size(path);
        found.count++;
        found.sum += size;
        if (size < found.least) found.least = size;
        if (size > found.most) found.most = size;
    }
    base_free_names(names, count);
    return found;
}

/* Nothing is written twice, at any stage: the files of 4 ranks hold as much as those of one. */
static void each_byte_once(void **state) {
    (void)state;
    const char *output = scratch_fresh("once");
    sharded_succeeds((sharded_task){.shape = {1, 0, SIFR_FP32, 0}, .to = output});
    uint64_t one = list_state(scratch_path("once/checkpoint-0")).sum;
    for (int stage = 0; stage < 4; stage++) {
        output = scratch_fresh("once");
        sharded_succeeds((sharded_task){.shape = {4, stage, SIFR_FP32, 0}, .to = output});
        state_files four = list_state(scratch_path("once/checkpoint-0"));
        assert_in_range(four.sum, one, one + 200 * 100); /* headers */
        assert_in_range(four.count, 4, 40);
    }
}

/* --- damage --- */

typedef enum damage { FLIPPED, CUT, GONE, DAMAGES } damage;

static void do_damage(const char *path, damage how) {
    uint64_t size = file_size(path);
    int file = open(path, O_RDWR);
    char byte;
    assert_true(file >= 0);
    if (how == FLIPPED) {
        off_t at = (off_t)(size / 2);
        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= 4;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
    } else if (how == CUT) {
        assert_int_equal(ftruncate(file, (off_t)size - 2), 0);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    close(file);
}

/* Any file, damaged in any way, and it is another rank that verifies it: alone it is refused on all
 * ranks alike; with an older checkpoint beside it, that one is taken on all. */
static void damage_is_refused_alike(void **state) {
    (void)state;
    char **names;
    size_t count;
    const char *saved = scratch_fresh("saved"), *output = scratch_path("damaged");
    uint64_t wanted[SHARDED_MOST_STEPS];
    sharded_reference(SIFR_BF16, 2, wanted);
    sharded_succeeds(
        (sharded_task){.shape = {4, 3, SIFR_BF16, 0}, .to = saved, .steps = 2, .save_each = 1});
    const char *newest = scratch_path("saved/checkpoint-2");
    assert_int_equal(base_list_directory(newest, &names, &count, NULL), SIFR_OK);
    assert_true(count > 6);
    for (size_t i = 0; i < count; i++) {
        for (damage how = 0; how < DAMAGES; how++) {
            char path[1024], aside[1024], command[4096];
            snprintf(path, sizeof path, "%s/checkpoint-2/%s", output, names[i]);
            snprintf(aside, sizeof aside, "%s/checkpoint-1", output);
            snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", output, saved, output);
            assert_int_equal(system(command), 0);
            do_damage(path, how);
            sharded_task load = {.shape = {3, 3, SIFR_BF16, 0}, .from = output, .go_on = 1};
            sharded_succeeds(load);
            bool told = strstr(sharded_last()->said, "checkpoint-2 is damaged") &&
                        strstr(sharded_last()->said, names[i]);
            if (!told || sharded_last()->step != 1)
                fail_msg("%s, damage %d: step %d, %s", names[i], (int)how,
                         (int)sharded_last()->step, sharded_last()->said);
            assert_int_equal(sharded_last()->hash, wanted[1]);
            assert_int_equal(base_remove_tree(aside, NULL), SIFR_OK);
            assert_int_equal(sharded_run(load), SIFR_FAILED);
            assert_message(&sharded_last()->error, "none of its 1 checkpoints is intact");
            assert_message(&sharded_last()->error, names[i]);
            assert_int_equal(sharded_last()->step, 0);
        }
    }
    base_free_names(names, count);
}

/* One rank's folder is another one, as where hosts share nothing. */
static void folders_not_shared(void **state) {
    (void)state;
    const char *output = scratch_fresh("shared"), *elsewhere = scratch_fresh("elsewhere");
    sharded_task t = {
        .shape = {3, 3, SIFR_FP32, 0}, .to = output, .elsewhere = elsewhere, .go_on = 1};
    assert_int_equal(sharded_run(t), SIFR_FAILED);
    assert_message(&sharded_last()->error, "rank 2: ");
    assert_message(&sharded_last()->error, "a file system that all hosts share");
    state_files left = {0};
    char **names;
    assert_int_equal(base_list_directory(output, &names, &left.count, NULL), SIFR_OK);
    assert_int_equal(left.count, 0);
    base_free_names(names, left.count);
    t.elsewhere = NULL;
    sharded_succeeds(t);
    t = (sharded_task){
        .shape = {3, 3, SIFR_FP32, 0}, .from = output, .elsewhere = elsewhere, .go_on = 1};
    assert_int_equal(sharded_run(t), SIFR_FAILED);
    assert_message(&sharded_last()->error,
                   "rank 2: the output must be on a file system that all hosts");
    sharded_succeeds((sharded_task){
        .shape = {3, 3, SIFR_FP32, 0}, .to = elsewhere, .steps = 1}); /* another run's */
    sharded_succeeds((sharded_task){.shape = {3, 3, SIFR_FP32, 0}, .to = output, .steps = 0});
    assert_int_equal(
        rename(scratch_path("elsewhere/checkpoint-1"), scratch_path("elsewhere/checkpoint-0")), 0);
    assert_int_equal(sharded_run(t), SIFR_FAILED);
    assert_message(&sharded_last()->error, "not the same file that rank 0 reads under this name");
}

/* --- trouble while saving --- */

/* A limit on the size of files stands for a full disk, and only some ranks meet it: all say the
 * same, no half of a checkpoint stays, and the run goes on to one that is whole. */
static void fill_disk(const char *output, uint64_t size) {
    struct rlimit limit;
    sifr_error error;
    sharded_task t = {
        .shape = {8, 3, SIFR_BF16, 0}, .to = output, .steps = 2, .whole = true, .go_on = 1};
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = size;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    sifr_status status = sharded_run(t);
    error = sharded_last()->error;
    limit.rlim_cur = before;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(3);
    if (status != SIFR_FAILED || !strstr(error.message, "cannot write")) _exit(4);
    if (base_is_directory(scratch_path("full/checkpoint-2"))) _exit(5);
    t.steps = 3;
    _exit(sharded_run(t) == SIFR_OK ? 0 : 6);
}

static void full_disk(void **state) {
    (void)state;
    const char *output = scratch_fresh("full");
    char **names;
    size_t count;
    int result;
    sharded_succeeds(
        (sharded_task){.shape = {8, 3, SIFR_BF16, 0}, .to = output, .steps = 1, .whole = true});
    state_files sizes = list_state(scratch_path("full/checkpoint-1"));
    assert_true(sizes.count > 1);
    assert_true(sizes.least < sizes.most); /* some ranks have nothing */
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) fill_disk(output, (sizes.least + sizes.most) / 2);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(base_list_directory(output, &names, &count, NULL), SIFR_OK);
    assert_int_equal(count, 3); /* checkpoint-1, checkpoint-3, latest */
    base_free_names(names, count);
}

/* Ranks that save after every step, in a process of their own; they have begun. */
static pid_t start_saving(const char *output, sharded_shape ranks, int64_t steps, int *hears) {
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit((int)sharded_run((sharded_task){.shape = ranks,
                                              .from = output,
                                              .to = output,
                                              .steps = steps,
                                              .save_each = 1,
                                              .ready = ends[1]}));
    close(ends[1]);
    *hears = ends[0];
    assert_int_equal(read(*hears, &byte, 1), 1);
    return child;
}

static void kill_them(pid_t child, int hears) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(hears);
}

/* Ranks save after every step and are killed at some instant of the first saves, others go on from
 * there, and so on: what is there is always whole, and the state of its step. How long saves take
 * is not measured: on a busy machine this process hears of several at once. The delay doubles after
 * a kill that came before the first save's end, and is halved after another, so about as many come
 * before as behind, at any speed. */
static void killed_while_saving(void **state) {
    (void)state;
    enum { KILLS = 24 };
    static const sharded_shape shapes[] = {
        {4, 3, SIFR_BF16, 0}, {2, 1, SIFR_BF16, 0}, {8, 2, SIFR_BF16, 4}};
    const char *output = scratch_fresh("killed");
    uint64_t wanted[SHARDED_MOST_STEPS];
    int moved = 0, hears;
    int64_t before = 1;
    double span = 4e-3;
    sharded_reference(SIFR_BF16, SHARDED_MOST_STEPS - 1, wanted);
    sharded_succeeds((sharded_task){.shape = {2, 2, SIFR_BF16, 0}, .to = output, .steps = 1});
    for (int i = 0; i < KILLS; i++) {
        pid_t child = start_saving(output, shapes[i % 3], SHARDED_MOST_STEPS - 1 - before, &hears);
        usleep((useconds_t)(1e6 * span * (i * 7 % KILLS) / KILLS));
        kill_them(child, hears);
        assert_int_equal(checkpoint_clean(output, NULL), SIFR_OK);
        sharded_succeeds((sharded_task){.shape = {3, 3, SIFR_BF16, 0}, .from = output});
        assert_string_equal(sharded_last()->said, "");
        assert_true(sharded_last()->step >= before);
        assert_int_equal(sharded_last()->hash, wanted[sharded_last()->step]);
        bool behind = sharded_last()->step > before;
        moved += behind;
        span = behind ? span / 2 : 2 * span;
        before = sharded_last()->step;
    }
    print_message("killed %d times, %d times behind a new checkpoint, step %d\n", KILLS, moved,
                  (int)before);
    assert_true(moved > 0);
    assert_true(moved < KILLS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_once), cmocka_unit_test(damage_is_refused_alike),
        cmocka_unit_test(folders_not_shared), cmocka_unit_test(full_disk),
        cmocka_unit_test(killed_while_saving)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
