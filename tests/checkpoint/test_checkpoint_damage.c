/* Damaged checkpoints: the one before is taken, and what is wrong is said; saving that fails or is
 * killed leaves a whole one.
 * timeout: 300 */
#include "support/checkpoint_case.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/json.h"

static void two_checkpoints(const char *output) {
    restart(engine, 5);
    save(output, &pieces);
    train(engine, 1);
    save(output, &pieces);
}

/* Checkpoint 6 is damaged in some way: it is said, with the file, and 5 is taken. */
static void falls_back(const char *output, const char *file) {
    said[0] = 0;
    restart(other, 1);
    loads(output, 5);
    if (!strstr(said, "checkpoint-6 is damaged") || !strstr(said, file))
        fail_msg("not said with %s: %s", file, said);
}

static void read_whole(const char *path, char **text, size_t *size) {
    assert_int_equal(base_read_file(path, 1 << 20, text, size, NULL), SIFR_OK);
}

static void overwrite(const char *path, const char *text, size_t size) {
    int file = open(path, O_WRONLY | O_TRUNC);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, size), size);
    close(file);
}

/* The first and last file of state of a checkpoint. */
static void state_names(const char *directory, char first[256], char last[256]) {
    char **names;
    size_t count;
    first[0] = 0;
    assert_int_equal(base_list_directory(directory, &names, &count, NULL), SIFR_OK);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], "state-", 6) != 0) continue;
        if (!first[0]) snprintf(first, 256, "%s", names[i]);
        snprintf(last, 256, "%s", names[i]);
    }
    base_free_names(names, count);
    assert_string_not_equal(first, last);
}

/* One bit anywhere: no byte of a checkpoint goes unverified. */
static void flipped_bits(void **state) {
    (void)state;
    const char *output = fresh("flips");
    char first[256], last[256];
    two_checkpoints(output);
    state_names(scratch_path("flips/checkpoint-6"), first, last);
    const char *files[] = {first, last, "trainer_state.json", "manifest.json"};
    for (size_t f = 0; f < 4; f++) {
        char path[1024], *text;
        size_t size;
        snprintf(path, sizeof path, "%s/checkpoint-6/%s", output, files[f]);
        read_whole(path, &text, &size);
        for (size_t at = 0; at < size; at += size / 37 + 1) {
            /* Blanks between the values of the manifest say nothing. */
            if (f == 3 && (text[at] == ' ' || text[at] == '\n')) continue;
            text[at] ^= 1;
            overwrite(path, text, size);
            falls_back(output, files[f]);
            text[at] ^= 1;
        }
        overwrite(path, text, size);
        free(text);
    }
    loads(output, 6);
}

static void truncated_and_missing(void **state) {
    (void)state;
    const char *output = fresh("short");
    char first[256], last[256], path[1024], *text;
    size_t size;
    two_checkpoints(output);
    state_names(scratch_path("short/checkpoint-6"), first, last);
    snprintf(path, sizeof path, "%s/checkpoint-6/%s", output, first);
    read_whole(path, &text, &size);
    const size_t left[] = {0, 1, 7, 8, 9, size / 2, size - 1};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        overwrite(path, text, left[i]);
        falls_back(output, first);
    }
    free(text);
    assert_int_equal(unlink(path), 0);
    falls_back(output, first);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not hang */
    falls_back(output, first);
}

static void swapped_files(void **state) {
    (void)state;
    const char *output = fresh("swap");
    char first[256], last[256], a[1024], b[1024], old[1024];
    two_checkpoints(output);
    state_names(scratch_path("swap/checkpoint-6"), first, last);
    snprintf(a, sizeof a, "%s/checkpoint-6/%s", output, first);
    snprintf(b, sizeof b, "%s/checkpoint-6/%s", output, last);
    snprintf(old, sizeof old, "%s/checkpoint-5/%s", output, first);
    const char *aside = scratch_path("swap/aside");
    assert_int_equal(rename(a, aside), 0);
    assert_int_equal(rename(b, a), 0);
    assert_int_equal(rename(aside, b), 0);
    falls_back(output, first);
    /* The same file of an older checkpoint: right in all but its checksum. */
    two_checkpoints(output);
    assert_int_equal(base_copy_file(old, a, NULL), SIFR_OK);
    falls_back(output, first);
    assert_non_null(strstr(said, "checksum"));
}

static void missing_manifest(void **state) {
    (void)state;
    const char *output = fresh("manifest");
    json_t *position;
    sifr_error error;
    two_checkpoints(output);
    assert_int_equal(unlink(scratch_path("manifest/checkpoint-6/manifest.json")), 0);
    falls_back(output, "manifest.json");
    assert_int_equal(unlink(scratch_path("manifest/checkpoint-5/manifest.json")), 0);
    restart(other, 1);
    assert_int_equal(load(output, 1, 1, &position, &error), SIFR_FAILED);
    assert_message(&error, "none of its 2 checkpoints is intact");
    assert_int_equal(other->steps, 1);
}

/* A manifest that somebody wrote: its checksum is right, and what it says is not. */
typedef void (*forge)(json_t *manifest);

static void forged(forge change, const char *message) {
    const char *output = fresh("forged");
    json_t *manifest;
    two_checkpoints(output);
    const char *directory = scratch_path("forged/checkpoint-6");
    assert_int_equal(
        base_json_load(scratch_path("forged/checkpoint-6/manifest.json"), 1 << 20, &manifest, NULL),
        SIFR_OK);
    change(manifest);
    assert_int_equal(checkpoint_write_manifest(manifest, directory, NULL), SIFR_OK);
    json_decref(manifest);
    falls_back(output, message);
}

static json_t *entry(json_t *manifest, const char *list) {
    return json_array_get(json_object_get(manifest, list), 0);
}

static void forge_traversal(json_t *m) {
    json_object_set_new(entry(m, "files"), "name", json_string("../checkpoint-5/manifest.json"));
}
static void forge_absolute(json_t *m) {
    json_object_set_new(entry(m, "files"), "name", json_string("/etc/passwd"));
}
static void forge_no_name(json_t *m) {
    json_object_set_new(entry(m, "files"), "name", json_integer(3));
}
static void forge_negative(json_t *m) {
    json_object_set_new(entry(m, "ranges"), "first", json_integer(-1));
}
static void forge_huge(json_t *m) {
    json_object_set_new(entry(m, "ranges"), "first", json_integer(INT64_MAX));
}
static void forge_overlap(json_t *m) {
    json_array_append(json_object_get(m, "ranges"), entry(m, "ranges"));
}
static void forge_hole(json_t *m) {
    json_array_remove(json_object_get(m, "ranges"), 1);
}
static void forge_file(json_t *m) {
    json_object_set_new(entry(m, "ranges"), "file", json_integer(999));
}
static void forge_text_file(json_t *m) {
    size_t last = json_array_size(json_object_get(m, "files")) - 1;
    json_object_set_new(entry(m, "ranges"), "file", json_integer((json_int_t)last));
}
static void forge_weight(json_t *m) {
    json_object_set_new(entry(m, "ranges"), "weight", json_string("nobody"));
}
static void forge_count(json_t *m) {
    json_object_set_new(entry(m, "ranges"), "count", json_integer(1));
}
static void forge_tensor(json_t *m) {
    json_object_set_new(entry(m, "ranges"), "tensor", json_string("master/nobody"));
}
static void forge_version(json_t *m) {
    json_object_set_new(m, "version", json_integer(3));
}
static void forge_state(json_t *m) {
    json_object_del(m, "state");
}
static void forge_step(json_t *m) {
    json_object_set_new(m, "step", json_integer(-6));
}

static void forged_manifests(void **state) {
    (void)state;
    static const struct {
        forge change;
        const char *message;
    } cases[] = {{forge_traversal, "'../checkpoint-5/manifest.json'"},
                 {forge_absolute, "'/etc/passwd'"},
                 {forge_no_name, "not a valid entry of \"files\""},
                 {forge_negative, "invalid range"},
                 {forge_huge, "is missing or stored twice"},
                 {forge_overlap, "is missing or stored twice"},
                 {forge_hole, "is missing or stored twice"},
                 {forge_file, "invalid range"},
                 {forge_text_file, "trainer_state.json"},
                 {forge_weight, "'nobody' is not in the model"},
                 {forge_count, "is missing or stored twice"},
                 {forge_tensor, "'master/nobody' is not there"},
                 {forge_version, "version 3"},
                 {forge_state, "is missing"},
                 {forge_step, "is missing"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        forged(cases[i].change, cases[i].message);
}

/* A limit on the size of files stands for a full disk: the write fails half way. */
static void full_disk(void **state) {
    (void)state;
    const char *output = fresh("full");
    checkpoint_settings whole = {0};
    restart(engine, 5);
    save(output, &whole);
    train(engine, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {4096, 4096};
        sifr_error error = {0};
        checkpoint_record r = record(1, 1);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        sifr_status status = checkpoint_save(engine, output, &r, &whole, NULL, &error);
        bool clear = strstr(error.message, "cannot write") && !strchr(error.message, '\n');
        _exit(status == SIFR_FAILED && clear ? 0 : 1);
    }
    int result;
    char **names;
    size_t count;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(base_list_directory(output, &names, &count, NULL), SIFR_OK);
    assert_int_equal(count, 2); /* checkpoint-5, latest: nothing half written stays */
    base_free_names(names, count);
    loads(output, 5);
}

/* Killed at any instant of saving: what is there afterwards is a whole checkpoint, 5 or 6. */
static void killed_while_saving(void **state) {
    (void)state;
    int sixes = 0, fives = 0;
    for (int i = 0; i < 24; i++) {
        const char *output = fresh("killed");
        json_t *position;
        sifr_error error;
        restart(engine, 5);
        save(output, &pieces);
        train(engine, 1);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            checkpoint_record r = record(1, 1);
            _exit((int)checkpoint_save(engine, output, &r, &pieces, NULL, NULL));
        }
        usleep((useconds_t)(i * i * 150));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_int_equal(checkpoint_clean(output, NULL), SIFR_OK);
        said[0] = 0;
        assert_int_equal(load(output, 1, 1, &position, &error), SIFR_OK);
        json_decref(position);
        assert_string_equal(said, "");
        assert_true(other->steps == 5 || other->steps == 6);
        sixes += other->steps == 6;
        fives += other->steps == 5;
    }
    assert_true(fives > 0); /* the first is killed at once */
    print_message("killed while saving: %d times the old one, %d times the new\n", fives, sixes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bits),       cmocka_unit_test(truncated_and_missing),
        cmocka_unit_test(swapped_files),      cmocka_unit_test(missing_manifest),
        cmocka_unit_test(forged_manifests),   cmocka_unit_test(full_disk),
        cmocka_unit_test(killed_while_saving)};
    return cmocka_run_group_tests(tests, make_engines, free_engines);
}
