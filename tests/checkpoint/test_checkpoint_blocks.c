/* timeout: 120
 * Checkpoints of weights in blocks: two local models, as two ranks of a tensor axis would have
 * them, from one whole model and back; and manifests that lie. */
#include "support/block_case.h"

#include "base/json.h"
#include "checkpoint/manifest.h"

/* --- a whole model, and its halves --- */

enum { WORDS = 32, WIDTH = 16, GROUPS = 3, INNER = GROUPS * WIDTH, HALF = WIDTH / 2 };
enum { TABLE, UP, BIAS, DOWN, HEAD, WEIGHTS, WHOLE = 2 };

static sifr_model *models[3]; /* of the first half, of the second, whole */
static sifr_engine *engines[3];

/* Columns INNER of `up` are three groups (q, k and v, say); each half has half of each group. */
static void build(sifr_model *m, int which) {
    int64_t inner = which == WHOLE ? INNER : INNER / 2;
    sifr_unit(m, "embed");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.1);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_unit(m, "block");
    sifr_weight up = sifr_weight_matrix(m, "up", WIDTH, inner, SIFR_INIT_NORMAL, 0.1);
    sifr_weight bias = sifr_weight_vector(m, "bias", inner, SIFR_INIT_ZERO);
    sifr_weight down = sifr_weight_matrix(m, "down", inner, WIDTH, SIFR_INIT_NORMAL, 0.1);
    sifr_value y = sifr_gelu(m, sifr_conv1d(m, x, up, bias), false);
    x = sifr_add(m, x, sifr_conv1d(m, y, down, SIFR_NO_WEIGHT));
    sifr_unit(m, "head");
    sifr_weight head = sifr_weight_matrix(m, "head", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.1);
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = head});
}

static void cut(model_weight *w, bool by_rows, int which) {
    model_cut c = {.rows = by_rows ? INNER : w->rows,
                   .columns = by_rows ? w->columns : INNER,
                   .count = GROUPS};
    for (int b = 0; b < GROUPS; b++) {
        model_block block = {{0, c.rows}, {0, c.columns}};
        int64_t *ends = by_rows ? block.rows : block.columns;
        ends[0] = b * WIDTH + which * HALF;
        ends[1] = ends[0] + HALF;
        c.blocks[b] = block;
    }
    w->cut = c;
}

static int make_engines(void **state) {
    for (int i = 0; i < 3; i++) {
        if (sifr_model_create(&models[i], NULL) != SIFR_OK) return -1;
        build(models[i], i);
        if (sifr_model_finish(models[i], NULL) != SIFR_OK) return -1;
        if (i != WHOLE) {
            cut(&models[i]->weights[UP], false, i);
            cut(&models[i]->weights[BIAS], false, i);
            cut(&models[i]->weights[DOWN], true, i);
        }
        engines[i] = make_engine(models[i]);
    }
    return scratch_setup(state);
}

static int free_engines(void **state) {
    for (int i = 0; i < 3; i++) sifr_engine_free(engines[i]), sifr_model_free(models[i]);
    return scratch_teardown(state);
}

/* The element of a whole weight that is element `local` of a half's. */
static int64_t whole_of(size_t weight, int64_t local, int which) {
    bool by_rows = weight == DOWN;
    if (weight == TABLE || weight == HEAD) return local;
    int64_t columns = by_rows ? WIDTH : INNER / 2, row = local / columns, column = local % columns;
    int64_t *inner = by_rows ? &row : &column;
    *inner = *inner / HALF * WIDTH + which * HALF + *inner % HALF;
    return row * (by_rows ? WIDTH : INNER) + column;
}

static void expect_halves(const sifr_engine *half, int which, const sifr_engine *whole) {
    for (size_t w = 0; w < WEIGHTS; w++) {
        const model_weight *weight = &half->model->weights[w];
        for (int p = 0; p < engine_parts(half); p++) {
            const float *mine = engine_state(half, w, (engine_part)p);
            const float *all = engine_state(whole, w, (engine_part)p);
            for (int64_t i = 0; i < weight->rows * weight->columns; i++)
                if (mine[i] != all[whole_of(w, i, which)])
                    fail_msg("%s, part %d, element %d of half %d is another", weight->name, p,
                             (int)i, which);
        }
    }
}

static json_t *manifest_of(const char *name) {
    char path[256];
    json_t *json;
    snprintf(path, sizeof path, "%s/checkpoint-3/manifest.json", name);
    assert_int_equal(base_json_load(scratch_path(path), 1 << 20, &json, NULL), SIFR_OK);
    return json;
}

static int64_t version_of(const json_t *manifest) {
    return json_integer_value(json_object_get(manifest, "version"));
}

/* Runs without blocks write what they wrote before there were any. */
static void halves_from_whole(void **state) {
    (void)state;
    const char *output = scratch_fresh("whole");
    assert_int_equal(sifr_engine_initialise(engines[WHOLE], 3, NULL), SIFR_OK);
    train(engines[WHOLE], 3, WORDS);
    save(engines[WHOLE], output);
    json_t *manifest = manifest_of("whole");
    assert_int_equal(version_of(manifest), 1);
    size_t i;
    json_t *range;
    json_array_foreach(json_object_get(manifest, "ranges"), i, range) {
        assert_null(json_object_get(range, "rows"));
        assert_null(json_object_get(range, "columns"));
        assert_null(strchr(json_string_value(json_object_get(range, "tensor")), '['));
    }
    json_decref(manifest);
    for (int half = 0; half < 2; half++) {
        loads(engines[half], output);
        assert_int_equal(engines[half]->steps, 3);
        expect_halves(engines[half], half, engines[WHOLE]);
        train(engines[half], 1, WORDS); /* its parameters are of these shapes */
    }
}

/* The same first weights, however they are cut. */
static void first_weights(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        for (size_t w = 0; w < WEIGHTS; w++) {
            const model_weight *weight = &models[i]->weights[w];
            for (int p = 0; p < engine_parts(engines[i]); p++)
                memset(engine_state(engines[i], w, (engine_part)p), 0,
                       (size_t)(weight->rows * weight->columns) * sizeof(float));
        }
        assert_int_equal(sifr_engine_initialise(engines[i], 11, NULL), SIFR_OK);
    }
    for (int half = 0; half < 2; half++) expect_halves(engines[half], half, engines[WHOLE]);
}

static bool is_cut(const json_t *range) {
    return json_object_get(range, "rows") != NULL;
}

/* Puts the second half's files and ranges into the first one's checkpoint, as ranks that save
 * together would: what is not cut is there once. */
static void join_halves(const char *first, const char *second) {
    json_t *a = manifest_of(first), *b = manifest_of(second), *entry;
    json_t *files = json_object_get(a, "files"), *ranges = json_object_get(a, "ranges");
    size_t before = json_array_size(files), i;
    assert_int_equal(version_of(a), 2);
    json_array_foreach(json_object_get(b, "files"), i, entry) {
        char from[256], to[256], name[128];
        const char *old = json_string_value(json_object_get(entry, "name"));
        snprintf(name, sizeof name, "other-%s", old);
        snprintf(from, sizeof from, "%s/checkpoint-3/%s", second, old);
        snprintf(to, sizeof to, "%s/checkpoint-3/%s", first, name);
        assert_int_equal(base_copy_file(scratch_path(from), scratch_path(to), NULL), SIFR_OK);
        json_object_set_new(entry, "name", json_string(name));
        json_array_append(files, entry);
    }
    json_array_foreach(json_object_get(b, "ranges"), i, entry) {
        json_int_t file = json_integer_value(json_object_get(entry, "file"));
        if (!is_cut(entry)) continue;
        json_object_set_new(entry, "file", json_integer(file + (json_int_t)before));
        json_array_append(ranges, entry);
    }
    char directory[256];
    snprintf(directory, sizeof directory, "%s/checkpoint-3", first);
    assert_int_equal(checkpoint_write_manifest(a, scratch_path(directory), NULL), SIFR_OK);
    json_decref(a);
    json_decref(b);
}

/* Two halves with states of their own, but for what both have whole, of which the first's count. */
static void save_halves(void) {
    for (int half = 0; half < 2; half++) {
        engines[half]->steps = engines[half]->updates = 0;
        assert_int_equal(sifr_engine_initialise(engines[half], 5 + (uint64_t)half, NULL), SIFR_OK);
        train(engines[half], 3, WORDS - half);
    }
    for (size_t w = 0; w < WEIGHTS; w++) {
        if (models[1]->weights[w].cut.count) continue;
        for (int p = 0; p < engine_parts(engines[0]); p++)
            memcpy(engine_state(engines[1], w, (engine_part)p),
                   engine_state(engines[0], w, (engine_part)p),
                   (size_t)(models[0]->weights[w].rows * models[0]->weights[w].columns) * 4);
    }
    save(engines[0], scratch_fresh("first"));
    save(engines[1], scratch_fresh("second"));
}

static void whole_from_halves(void **state) {
    (void)state;
    sifr_error error;
    save_halves();
    assert_int_equal(load(engines[WHOLE], scratch_path("first"), &error), SIFR_FAILED);
    assert_message(&error, "the blocks of master of 'up' leave gaps or lie over each other");
    join_halves("first", "second");
    loads(engines[WHOLE], scratch_path("first"));
    for (int half = 0; half < 2; half++) expect_halves(engines[half], half, engines[WHOLE]);
    sifr_engine *again = make_engine(models[1]); /* and a half from two halves */
    loads(again, scratch_path("first"));
    expect_halves(again, 1, engines[WHOLE]);
    sifr_engine_free(again);
}

/* --- manifests that lie --- */

/* One range with another value: absent, or JSON. */
typedef struct lie {
    const char *key, *value, *message;
} lie;

static void set_value(json_t *object, const char *key, const char *value) {
    if (value)
        json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(object, key);
}

typedef void (*forge)(json_t *manifest, json_t *range);

static void twice(json_t *m, json_t *range) {
    json_array_append(json_object_get(m, "ranges"), range);
}

/* Changes all ranges of the block of `up`'s master weights that begins at column 0: removes them if
 * the pair is empty. */
static void change_block(json_t *m, const char *name, json_int_t a, json_int_t b) {
    json_t *ranges = json_object_get(m, "ranges");
    for (size_t i = json_array_size(ranges); i-- > 0;) {
        json_t *range = json_array_get(ranges, i), *columns = json_object_get(range, "columns");
        const char *weight = json_string_value(json_object_get(range, "weight"));
        const char *part = json_string_value(json_object_get(range, "part"));
        if (strcmp(weight, "up") || strcmp(part, "master") || !columns) continue;
        if (json_integer_value(json_array_get(columns, 0)) != 0) continue;
        if (a == b)
            json_array_remove(ranges, i);
        else
            json_object_set_new(range, name, json_pack("[I, I]", a, b));
    }
}
static void gap(json_t *m, json_t *range) {
    (void)range;
    change_block(m, "columns", 0, 0);
}
static void moved(json_t *m, json_t *range) { /* of the same size, over its neighbour */
    (void)range;
    change_block(m, "columns", 1, 9);
}
static void same_as_neighbour(json_t *m, json_t *range) { /* of the same size, stored twice */
    (void)range;
    change_block(m, "columns", 8, 16);
}
static void lower_half(json_t *m, json_t *range) { /* a gap, and more elements than there are */
    (void)range;
    change_block(m, "rows", 8, 16);
}
static void whole_beside_blocks(json_t *m, json_t *range) {
    json_t *copy = json_deep_copy(range);
    set_value(copy, "rows", NULL);
    set_value(copy, "columns", NULL);
    set_value(copy, "count", "768");
    json_array_append_new(json_object_get(m, "ranges"), copy);
}
static void version_1(json_t *m, json_t *range) {
    (void)range;
    set_value(m, "version", "1");
}
static void version_3(json_t *m, json_t *range) {
    (void)range;
    set_value(m, "version", "3");
}

/* A first half and a second, as one checkpoint, whose manifest is changed: refused, by one line. */
static void expect_refused(json_t *manifest, const char *message) {
    char directory[128];
    sifr_error error;
    snprintf(directory, sizeof directory, "%s/first/checkpoint-3", scratch);
    assert_int_equal(checkpoint_write_manifest(manifest, directory, NULL), SIFR_OK);
    assert_int_equal(load(engines[WHOLE], scratch_path("first"), &error), SIFR_FAILED);
    assert_message(&error, message);
}

static json_t *first_cut(const json_t *manifest) {
    const json_t *ranges = json_object_get(manifest, "ranges");
    size_t i = 0;
    while (!is_cut(json_array_get(ranges, i))) i++;
    return json_array_get(ranges, i);
}

static void lies(void **state) {
    (void)state;
    static const char invalid[] = "invalid range of 'up'";
    static const char blocks[] = "the blocks of master of 'up' leave gaps or lie over each other";
    static const char missing[] = "master of 'up' is missing or stored twice from element 0 on";
    static const lie values[] = {{"columns", NULL, invalid},
                                 {"columns", "[8, 0]", invalid},
                                 {"columns", "[8, 8]", invalid},
                                 {"columns", "[0, 49]", invalid},
                                 {"rows", "[-1, 16]", invalid},
                                 {"rows", "[0, 9223372036854775807]", invalid},
                                 {"rows", "[0, 16, 3]", invalid},
                                 {"rows", "[0.0, 16.0]", invalid},
                                 {"rows", "\"all\"", invalid},
                                 {"each", "2", invalid},
                                 {"count", "9223372036854775807", missing},
                                 {"first", "9223372036854775807", missing}};
    static const struct {
        forge change;
        const char *message;
    } changes[] = {
        {version_1, invalid},
        {version_3, "version 3, but this sifr reads \"sifr checkpoint\" versions 1 to 2"},
        {twice, blocks},
        {gap, blocks},
        {moved, blocks},
        {same_as_neighbour, blocks},
        {lower_half, "master of 'up' is missing or stored twice"},
        {whole_beside_blocks, blocks}};
    save_halves();
    join_halves("first", "second");
    json_t *whole = manifest_of("first");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_t *manifest = json_deep_copy(whole);
        set_value(first_cut(manifest), values[i].key, values[i].value);
        expect_refused(manifest, values[i].message);
        json_decref(manifest);
    }
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        json_t *manifest = json_deep_copy(whole);
        changes[i].change(manifest, first_cut(manifest));
        expect_refused(manifest, changes[i].message);
        json_decref(manifest);
    }
    assert_int_equal(checkpoint_write_manifest(whole, scratch_path("first/checkpoint-3"), NULL),
                     SIFR_OK);
    json_decref(whole);
    loads(engines[WHOLE], scratch_path("first"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_weights),
                                       cmocka_unit_test(halves_from_whole),
                                       cmocka_unit_test(whole_from_halves), cmocka_unit_test(lies)};
    return cmocka_run_group_tests(tests, make_engines, free_engines);
}
