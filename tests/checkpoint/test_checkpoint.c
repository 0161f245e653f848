/* timeout: 300 */
#include "support/scratch.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/json.h"
#include "checkpoint/manifest.h"
#include "engine/engine_private.h"

static sifr_model *model;
static sifr_engine *engine, *other;

static void build(sifr_model *m) {
    sifr_unit(m, "embed");
    sifr_weight table = sifr_weight_matrix(m, "table", 32, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_unit(m, "block");
    sifr_weight w = sifr_weight_matrix(m, "w", 16, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_weight b = sifr_weight_vector(m, "b", 16, SIFR_INIT_ZERO);
    x = sifr_add(m, x, sifr_linear(m, x, w, b));
    sifr_unit(m, "head");
    sifr_weight head = sifr_weight_matrix(m, "head", 32, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = head});
}

static int make_engines(void **state) {
    sifr_settings options = sifr_settings_defaults();
    options.seq_length = 8;
    options.threads = 1;
    options.precision = SIFR_BF16; /* masters beside parameters */
    if (sifr_model_create(&model, NULL) != SIFR_OK) return -1;
    build(model);
    if (sifr_model_finish(model, NULL) != SIFR_OK ||
        sifr_engine_create(model, &options, &engine, NULL) != SIFR_OK ||
        sifr_engine_create(model, &options, &other, NULL) != SIFR_OK)
        return -1;
    return scratch_setup(state);
}

static int free_engines(void **state) {
    sifr_engine_free(engine);
    sifr_engine_free(other);
    sifr_model_free(model);
    return scratch_teardown(state);
}

static void train(sifr_engine *e, int64_t steps) {
    int32_t tokens[8], labels[8];
    sifr_step_result result;
    for (int64_t i = 0; i < steps; i++) {
        for (int t = 0; t < 8; t++) {
            tokens[t] = (int32_t)((sifr_engine_steps(e) * 8 + t) % 32);
            labels[t] = (tokens[t] + 1) % 32;
        }
        assert_int_equal(sifr_engine_step(e, &(sifr_batch){.tokens = tokens, .labels = labels},
                                          1e-2, &result, NULL),
                         SIFR_OK);
        assert_true(result.updated);
    }
}

static size_t bytes_of(size_t weight) {
    const model_weight *w = &model->weights[weight];
    return (size_t)(w->rows * w->columns) * sizeof(float);
}

static void restart(sifr_engine *e, int64_t steps) {
    for (size_t w = 0; w < model->weight_count; w++) {
        for (int p = 0; p < engine_parts(e); p++)
            memset(engine_state(e, w, (engine_part)p), 0, bytes_of(w));
    }
    e->steps = e->updates = 0;
    assert_int_equal(sifr_engine_initialise(e, 3, NULL), SIFR_OK);
    train(e, steps);
}

static void assert_same(const sifr_engine *a, const sifr_engine *b) {
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->updates, b->updates);
    for (size_t w = 0; w < model->weight_count; w++) {
        for (int p = 0; p < engine_parts(a); p++)
            assert_memory_equal(engine_state(a, w, (engine_part)p),
                                engine_state(b, w, (engine_part)p), bytes_of(w));
    }
}

/* What the caller keeps: `seed` must agree, `note` may differ. */
static json_t *objects[5];

static checkpoint_record record(int seed, int note) {
    for (int i = 0; i < 5; i++) json_decref(objects[i]);
    objects[0] = json_pack("{s:i}", "seed", seed);
    objects[1] = json_pack("{s:i, s:{s:i, s:{s:f}}}", "note", note, "optimizer", "same", 1,
                           "params", "lr", 0.001 * note);
    objects[4] = json_pack("{s:{s:{s:b, s:i, s:i}}}", "optimizer", "params", "amsgrad", 0, "r", 0,
                           "warmup_steps", 0);
    objects[2] = json_pack("{s:i}", "samples", 40);
    objects[3] = json_pack("{s:i}", "global_step", 5);
    return (checkpoint_record){.agree = objects[0],
                               .notes = objects[1],
                               .state = objects[2],
                               .trainer = objects[3],
                               .usual = objects[4]};
}

static char said[8192];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user;
    if (level == SIFR_LOG_DEBUG) return;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};
static const checkpoint_settings pieces = {.file_bytes = 1000}; /* several files, cut weights */

static const char *fresh(const char *name) {
    said[0] = 0;
    return scratch_fresh(name);
}

static void save(const char *output, const checkpoint_settings *settings) {
    checkpoint_record r = record(1, 1);
    sifr_error error = {0};
    if (checkpoint_save(engine, output, &r, settings, &log_lines, &error) != SIFR_OK)
        fail_msg("%s", error.message);
}

static sifr_status load(const char *output, int seed, int note, json_t **state, sifr_error *error) {
    checkpoint_record r = record(seed, note);
    *error = (sifr_error){0};
    return checkpoint_load(other, output, &r, state, &log_lines, error);
}

static void loads(const char *output, int64_t step) {
    json_t *state;
    sifr_error error;
    if (load(output, 1, 1, &state, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_non_null(state);
    assert_int_equal(json_integer_value(json_object_get(state, "samples")), 40);
    json_decref(state);
    assert_int_equal(other->steps, step);
}

static void comes_back_the_same(void **state) {
    (void)state;
    static const checkpoint_settings sizes[] = {
        {.file_bytes = 0}, {.file_bytes = 300}, {.file_bytes = 4096}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *output = fresh("same");
        restart(engine, 5);
        save(output, &sizes[i]);
        restart(other, 2);
        loads(output, 5);
        assert_same(engine, other);
        train(engine, 4);
        train(other, 4);
        assert_same(engine, other);
    }
}

static void nothing_there(void **state) {
    (void)state;
    json_t *position;
    sifr_error error;
    assert_int_equal(load(fresh("nothing"), 1, 1, &position, &error), SIFR_OK);
    assert_null(position);
}

static void differences(void **state) {
    (void)state;
    json_t *position;
    sifr_error error;
    const char *output = fresh("differences");
    restart(engine, 5);
    save(output, &pieces);
    restart(other, 1);
    assert_int_equal(load(output, 2, 1, &position, &error), SIFR_USAGE);
    assert_message(&error, "made with seed 1, but this run has 2");
    assert_int_equal(other->steps, 1);
    assert_int_equal(load(output, 1, 7, &position, &error), SIFR_OK);
    json_decref(position);
    assert_non_null(strstr(said, "was made with note 1, this run has 7"));
    assert_non_null(strstr(said, "was made with optimizer.params.lr 0.001, this run has 0.007:"));
    assert_null(strstr(said, "same"));
    assert_null(strchr(said, '{'));
}

/* Of a key that came later checkpoints have nothing, and it counts as the key's default; so does
 * one that is gone. */
static void fields_that_one_side_lacks(void **state) {
    (void)state;
    json_t *position, *params;
    sifr_error error = {0};
    const char *output = fresh("lacks");
    restart(engine, 5);
    checkpoint_record saved = record(1, 1);
    params = json_object_get(json_object_get(objects[1], "optimizer"), "params");
    json_object_set_new(params, "r", json_integer(0));
    assert_int_equal(checkpoint_save(engine, output, &saved, &pieces, &log_lines, &error), SIFR_OK);
    for (int used = 0; used < 2; used++) {
        said[0] = 0;
        checkpoint_record now = record(1, 1);
        params = json_object_get(json_object_get(objects[1], "optimizer"), "params");
        json_object_set_new(params, "amsgrad", json_boolean(used));
        json_object_set_new(params, "warmup_steps", json_integer(0));
        assert_int_equal(checkpoint_load(other, output, &now, &position, &log_lines, &error),
                         SIFR_OK);
        json_decref(position);
        const char *found = strstr(said, "made with");
        if (used)
            assert_non_null(strstr(said, "optimizer.params.amsgrad nothing, this run has true:"));
        else if (found)
            fail_msg("%s", said);
    }
}

/* State in bf16 is stored so, cut anywhere, and comes back; one that keeps it otherwise is told. */
static void narrow_states(void **state) {
    (void)state;
    sifr_engine *wide = engine, *wide_other = other;
    sifr_settings options = wide->settings;
    json_t *position;
    sifr_error error;
    options.bf16_master_weights = options.bf16_optimizer_states = true;
    assert_int_equal(sifr_engine_create(model, &options, &engine, NULL), SIFR_OK);
    assert_int_equal(sifr_engine_create(model, &options, &other, NULL), SIFR_OK);
    for (uint64_t bytes = 0; bytes < 4096; bytes += 333) {
        const char *output = fresh("narrow");
        checkpoint_settings size = {.file_bytes = bytes};
        assert_int_equal(sifr_engine_initialise(engine, 3, NULL), SIFR_OK);
        assert_int_equal(sifr_engine_initialise(other, 4, NULL), SIFR_OK);
        train(engine, 3);
        save(output, &size);
        loads(output, engine->steps);
        for (int more = 0; more < 2; more++) {
            for (size_t w = 0; w < model->weight_count; w++) {
                for (int p = 0; p < engine_parts(engine); p++) {
                    int64_t count = (int64_t)bytes_of(w) / 4;
                    const void *a, *b;
                    assert_int_equal(engine_weight_type(engine, w, (engine_part)p), BASE_BF16);
                    assert_int_equal(
                        engine_view(engine, w, (engine_part)p, 0, count, NULL, &a, NULL), SIFR_OK);
                    assert_int_equal(
                        engine_view(other, w, (engine_part)p, 0, count, NULL, &b, NULL), SIFR_OK);
                    assert_memory_equal(a, b, (size_t)count * 2);
                }
            }
            train(engine, 2);
            train(other, 2);
        }
    }
    sifr_engine_free(other);
    other = wide_other;
    assert_int_equal(load(scratch_path("narrow"), 1, 1, &position, &error), SIFR_USAGE);
    assert_message(&error, "has master in bf16, but this run keeps it in fp32");
    sifr_engine_free(engine);
    engine = wide;
}

/* Pointer, temporary folders, and how many are kept. */
static void folder(void **state) {
    (void)state;
    checkpoint_settings two = {.file_bytes = 1000, .keep = 2};
    const char *output = fresh("folder");
    char *text;
    size_t size, count;
    int64_t *steps;
    restart(engine, 3);
    for (int i = 0; i < 4; i++) {
        save(output, &two);
        if (i < 3) train(engine, 2);
    }
    assert_int_equal(checkpoint_list(output, &steps, &count, NULL), SIFR_OK);
    assert_int_equal(count, 2);
    assert_int_equal(steps[0], 9);
    assert_int_equal(steps[1], 7);
    free(steps);
    assert_int_equal(base_read_file(scratch_path("folder/latest"), 99, &text, &size, NULL),
                     SIFR_OK);
    assert_string_equal(text, "checkpoint-9\n");
    free(text);
    const char *left = scratch_path("folder/checkpoint-11.tmp-77");
    assert_int_equal(base_make_directories(scratch_path("folder/checkpoint-11.tmp-77/x"), NULL),
                     SIFR_OK);
    loads(output, 9); /* what is half made is not looked at */
    assert_int_equal(checkpoint_clean(output, NULL), SIFR_OK);
    assert_false(base_is_directory(left));
    loads(output, 9);
}

/* What stands in the way of removing an old checkpoint does not stand in that of the new one. */
static void old_one_stays(void **state) {
    (void)state;
    checkpoint_settings one = {.file_bytes = 1000, .keep = 1};
    const char *output = fresh("stays");
    char obstacle[64];
    restart(engine, 3);
    save(output, &one);
    snprintf(obstacle, sizeof obstacle, "stays/checkpoint-3.tmp-%ld/x", (long)getpid());
    assert_int_equal(base_make_directories(scratch_path(obstacle), NULL), SIFR_OK);
    train(engine, 1);
    save(output, &one);
    assert_non_null(strstr(said, "checkpoint-3: cannot remove the old checkpoint"));
    loads(output, 4);
}

/* Saving over a checkpoint of the same step replaces it. */
static void replaces(void **state) {
    (void)state;
    const char *output = fresh("replaces");
    char **names;
    size_t count;
    restart(engine, 5);
    save(output, &pieces);
    scratch_text("replaces/checkpoint-5/manifest.json", "{}");
    save(output, &pieces);
    loads(output, 5);
    assert_int_equal(base_list_directory(output, &names, &count, NULL), SIFR_OK);
    assert_int_equal(count, 2); /* checkpoint-5, latest */
    base_free_names(names, count);
}

/* --- damage --- */

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back_the_same),
                                       cmocka_unit_test(nothing_there),
                                       cmocka_unit_test(differences),
                                       cmocka_unit_test(fields_that_one_side_lacks),
                                       cmocka_unit_test(folder),
                                       cmocka_unit_test(narrow_states),
                                       cmocka_unit_test(old_one_stays),
                                       cmocka_unit_test(replaces),
                                       cmocka_unit_test(flipped_bits),
                                       cmocka_unit_test(truncated_and_missing),
                                       cmocka_unit_test(swapped_files),
                                       cmocka_unit_test(missing_manifest),
                                       cmocka_unit_test(forged_manifests),
                                       cmocka_unit_test(full_disk),
                                       cmocka_unit_test(killed_while_saving)};
    int failed = cmocka_run_group_tests(tests, make_engines, free_engines);
    for (int i = 0; i < 5; i++) json_decref(objects[i]);
    return failed;
}
