/* What a checkpoint brings back, what it says of other settings, and its folder.
 * timeout: 300 */
#include "support/checkpoint_case.h"

static void assert_same(const sifr_engine *a, const sifr_engine *b) {
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->updates, b->updates);
    for (size_t w = 0; w < model->weight_count; w++) {
        for (int p = 0; p < engine_parts(a); p++)
            assert_memory_equal(engine_state(a, w, (engine_part)p),
                                engine_state(b, w, (engine_part)p), bytes_of(w));
    }
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
            assert_non_null(strstr(said, "optimizer.params.amsgrad false, this run has true:"));
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back_the_same),
                                       cmocka_unit_test(nothing_there),
                                       cmocka_unit_test(differences),
                                       cmocka_unit_test(fields_that_one_side_lacks),
                                       cmocka_unit_test(folder),
                                       cmocka_unit_test(narrow_states),
                                       cmocka_unit_test(old_one_stays),
                                       cmocka_unit_test(replaces)};
    return cmocka_run_group_tests(tests, make_engines, free_engines);
}
