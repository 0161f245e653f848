/* Folders of encoders as old versions wrote them, and folders that are opened for another task. */
#include "support/scratch.h"

#include <sys/stat.h>

#include "engine/handle.h"
#include "support/golden_run.h"

static sifr_error error;

/* --- names of old versions --- */

typedef struct renamed {
    formats_weights *weights;
    char names[64][128];
    formats_tensor_spec specs[64];
    const formats_tensor *from[64];
    size_t count;
} renamed;

static void add(renamed *r, const char *name, const formats_tensor *from) {
    formats_tensor_spec *spec = &r->specs[r->count];
    assert_true(r->count < 64);
    assert_true(from);
    snprintf(r->names[r->count], sizeof r->names[0], "%s", name);
    *spec =
        (formats_tensor_spec){.name = r->names[r->count], .dtype = from->dtype, .rank = from->rank};
    memcpy(spec->shape, from->shape, sizeof spec->shape);
    r->from[r->count++] = from;
}

static sifr_status fill(void *user, size_t position, formats_safetensors_writer *writer,
                        sifr_error *e) {
    const renamed *r = user;
    return formats_safetensors_append(writer, r->from[position]->data, r->from[position]->bytes, e);
}

static void old_name(char out[128], const char *name) {
    char *at;
    snprintf(out, 128, "%s", strncmp(name, "bert.", 5) ? name : name + 5);
    if ((at = strstr(out, "LayerNorm.weight"))) strcpy(at, "LayerNorm.gamma");
    if ((at = strstr(out, "LayerNorm.bias"))) strcpy(at, "LayerNorm.beta");
}

/* The golden folder under the names of the first BERT, with what lay beside its weights. */
static void write_old(const golden *g, const char *folder) {
    static renamed r;
    char path[BASE_PATH_LENGTH], name[128], *text;
    size_t size;
    assert_int_equal(formats_weights_open(g->folder, &r.weights, &error), SIFR_OK);
    for (size_t i = 0; i < formats_weights_count(r.weights); i++) {
        const formats_tensor *tensor = formats_weights_at(r.weights, i);
        old_name(name, tensor->name);
        add(&r, name, tensor);
    }
    const formats_tensor *words =
        formats_weights_find(r.weights, "bert.embeddings.word_embeddings.weight");
    const formats_tensor *bias = formats_weights_find(r.weights, "cls.predictions.bias");
    add(&r, "embeddings.position_ids", bias);
    add(&r, "cls.seq_relationship.bias", bias);
    add(&r, "pooler.dense.bias", bias);
    add(&r, "cls.predictions.decoder.weight", words);
    add(&r, "cls.predictions.decoder.bias", bias);
    if (formats_weights_write(folder, r.specs, r.count, 0, fill, &r, &error))
        fail_msg("%s", error.message);
    formats_weights_close(r.weights);
    assert_int_equal(base_path_join(path, g->folder, "config.json", &error), SIFR_OK);
    assert_int_equal(base_read_file(path, 1 << 20, &text, &size, &error), SIFR_OK);
    assert_int_equal(base_path_join(path, folder, "config.json", &error), SIFR_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(text);
}

/* A folder that comes out has the names of the one that came in. */
static void check_names(const engine_folder *folder) {
    engine_stored stored;
    bool gamma = false, tied = false;
    assert_int_equal(engine_stored_make(folder->model, folder->architecture, folder->weights,
                                        BASE_FP32, &stored, &error),
                     SIFR_OK);
    for (size_t i = 0; i < stored.count; i++) {
        gamma |= !strcmp(stored.tensors[i].name, "embeddings.LayerNorm.gamma");
        tied |= !strcmp(stored.tensors[i].name, "cls.predictions.decoder.weight");
    }
    assert_true(gamma);
    assert_true(tied);
    engine_stored_free(&stored);
}

static void old_names(void **state) {
    (void)state;
    golden_list list;
    golden g;
    golden_list_open_at(&list, "encoders/");
    golden_open(&list, golden_list_find(&list, "bert"), &g);
    const char *path = scratch_path("old");
    assert_int_equal(mkdir(path, 0777), 0);
    write_old(&g, path);
    snprintf(g.folder, sizeof g.folder, "%s", path);
    golden_run_evaluation(&g, GOLDEN_FP32);
    engine_folder folder;
    if (engine_folder_open(path, &folder, &error)) fail_msg("%s", error.message);
    check_names(&folder);
    engine_folder_close(&folder);
    golden_close(&g);
    golden_list_close(&list);
}

/* --- another task --- */

/* What a head for labels needs that the folder of a model for masked words has not. */
static void other_task(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int sequence, tokens;
    } cases[] = {{"bert", 4, 2},
                 {"roberta", 4, 2},
                 {"xlm-roberta", 4, 2},
                 {"distilbert", 4, 2},
                 {"modernbert", 2, 2}};
    static const char *const names[] = {"a", "b", "c"};
    model_labels labels = {0};
    assert_int_equal(model_labels_make(names, 3, "test", &labels, &error), SIFR_OK);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char path[1024];
        engine_folder folder;
        engine_folder_options options = {.choice.has_task = true, .labels = &labels};
        options.choice.task = i % 2 ? MODEL_TOKEN_CLASSES : MODEL_SEQUENCE_CLASSES;
        snprintf(path, sizeof path, "%s/tests/golden/encoders/models/%s",
                 getenv("SOURCE") ? getenv("SOURCE") : ".", cases[i / 2].name);
        if (engine_folder_open_as(path, &options, &folder, &error)) fail_msg("%s", error.message);
        assert_int_equal(folder.made_count, i % 2 ? cases[i / 2].tokens : cases[i / 2].sequence);
        assert_int_equal(folder.config.num_labels, 3);
        engine_folder_close(&folder);
    }
    model_labels_free(&labels);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(old_names), cmocka_unit_test(other_task)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
