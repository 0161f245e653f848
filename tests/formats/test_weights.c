/* The weights of a model folder: one file, shards with an index, and what an index may not say. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "support/scratch.h"

#include "formats/weights.h"

static sifr_error error;
static formats_weights *weights;

enum { TENSORS = 5 };
static const formats_tensor_spec specs[TENSORS] = {
    {"model.embed", BASE_FP32, 2, {4, 8}}, {"model.a", BASE_FP32, 1, {16}},
    {"model.b", BASE_BF16, 1, {16}},       {"model.c", BASE_FP16, 2, {4, 4}},
    {"lm_head", BASE_FP32, 2, {4, 10}},
};

static sifr_status fill(void *user, size_t position, formats_safetensors_writer *writer,
                        sifr_error *e) {
    (void)user;
    uint64_t bytes;
    BASE_TRY(formats_tensor_bytes(&specs[position], &bytes, e));
    for (uint64_t i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(position * 50 + i);
        BASE_TRY(formats_safetensors_append(writer, &byte, 1, e));
    }
    return SIFR_OK;
}

static void check_tensors(void) {
    assert_int_equal(formats_weights_count(weights), TENSORS);
    assert_int_equal(formats_weights_bytes(weights), 128 + 64 + 32 + 32 + 160);
    for (size_t i = 0; i < TENSORS; i++) {
        const formats_tensor *t = formats_weights_find(weights, specs[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, specs[i].dtype);
        assert_memory_equal(t->shape, specs[i].shape, sizeof t->shape);
        for (uint64_t k = 0; k < t->bytes; k++) {
            assert_int_equal(((const uint8_t *)t->data)[k], (uint8_t)(i * 50 + k));
        }
    }
    for (size_t i = 1; i < TENSORS; i++) {
        assert_true(strcmp(formats_weights_at(weights, i - 1)->name,
                           formats_weights_at(weights, i)->name) < 0);
    }
    assert_null(formats_weights_find(weights, "model.d"));
}

/* A fresh folder below the scratch directory, with the tensors in it. */
static const char *make_folder(const char *name, uint64_t max_shard) {
    const char *folder = scratch_path(name);
    assert_int_equal(mkdir(folder, 0777), 0);
    sifr_status status =
        formats_weights_write(folder, specs, TENSORS, max_shard, fill, NULL, &error);
    if (status != SIFR_OK) fail_msg("%s", error.message);
    return folder;
}

static void one_file(void **state) {
    (void)state;
    const char *folder = make_folder("one", 0);
    assert_true(base_is_file(scratch_path("one/model.safetensors")));
    assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
    assert_int_equal(formats_weights_file_count(weights), 1);
    check_tensors();
    formats_weights_close(weights);
    assert_int_equal(formats_weights_open(scratch_path("one/model.safetensors"), &weights, &error),
                     SIFR_OK);
    check_tensors();
    formats_weights_close(weights);
    /* Another layout in the same folder would be ambiguous. */
    assert_int_equal(formats_weights_write(folder, specs, TENSORS, 200, fill, NULL, &error),
                     SIFR_FAILED);
    assert_message(&error, "another layout");
}

static void shards(void **state) {
    (void)state;
    const char *folder = make_folder("three", 200);
    assert_true(base_is_file(scratch_path("three/model-00003-of-00003.safetensors")));
    assert_false(base_is_file(scratch_path("three/model.safetensors")));
    assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
    assert_int_equal(formats_weights_file_count(weights), 3);
    check_tensors();
    formats_weights_close(weights);
    /* A limit below the largest tensor gives one shard a tensor. */
    assert_int_equal(formats_weights_open(make_folder("five", 1), &weights, &error), SIFR_OK);
    assert_int_equal(formats_weights_file_count(weights), 5);
    check_tensors();
    formats_weights_close(weights);
}

static sifr_status too_few(void *user, size_t position, formats_safetensors_writer *writer,
                           sifr_error *e) {
    return position == 3 ? SIFR_OK : fill(user, position, writer, e);
}

static void failed_write(void **state) {
    (void)state;
    const char *folder = scratch_path("failed");
    char **names;
    size_t count;
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(formats_weights_write(folder, specs, TENSORS, 1, too_few, NULL, &error),
                     SIFR_FAILED);
    assert_message(&error, "model.c: 0 bytes came, not 32");
    assert_int_equal(base_list_directory(folder, &names, &count, &error), SIFR_OK);
    assert_int_equal(count, 0);
    base_free_names(names, count);
}

/* No room for the second shard: one line, and nothing stays. */
static void full_disk(void **state) {
    (void)state;
    struct rlimit old, low;
    char **names;
    size_t count;
    const char *folder = scratch_path("full");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    low = old;
    low.rlim_cur = 300;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    sifr_status status = formats_weights_write(folder, specs, TENSORS, 200, fill, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, SIFR_FAILED);
    assert_message(&error, "cannot write: File too large");
    assert_int_equal(base_list_directory(folder, &names, &count, &error), SIFR_OK);
    assert_int_equal(count, 0);
    base_free_names(names, count);
}

static void refused_folder(const char *folder, const char *part) {
    if (formats_weights_open(folder, &weights, &error) != SIFR_FAILED) {
        fail_msg("%s: accepted", folder);
    }
    assert_null(weights);
    assert_message(&error, part);
}

static void put_index(const char *folder, const char *text) {
    char name[256];
    snprintf(name, sizeof name, "%s/model.safetensors.index.json", folder);
    scratch_text(name, text);
}

#define SHARD(n) "model-0000" #n "-of-00003.safetensors"

static void wrong_index(void **state) {
    (void)state;
    const char *folder = make_folder("wrong", 200);
    static const char *const cases[][2] = {
        {"", "not valid JSON"},
        {"[]", "weight_map"},
        {"{}", "weight_map"},
        {"{\"weight_map\":{}}", "weight_map"},
        {"{\"weight_map\":[]}", "weight_map"},
        {"{\"weight_map\":{\"a\":7}}", "no name of a .safetensors file"},
        {"{\"weight_map\":{\"a\":\"\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\".safetensors\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"../../etc/passwd\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"../one/model.safetensors\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"/etc/x.safetensors\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"..\\\\x.safetensors\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"x\\n.safetensors\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"/dev/zero\"}}", "no name"},
        {"{\"weight_map\":{\"a\":\"absent.safetensors\"}}", "missing"},
        {"{\"weight_map\":{\"a\":\"folder.safetensors\"}}", "directory"},
        {"{\"weight_map\":{\"a\":\"pipe.safetensors\"}}", "a device or pipe"},
        {"{\"weight_map\":{\"a\":\"zero.safetensors\"}}", "leads out of its folder"},
        {"{\"weight_map\":{\"a\":\"out.safetensors\"}}", "leads out of its folder"},
        {"{\"metadata\":7,\"weight_map\":{\"a\":\"" SHARD(1) "\"}}", "metadata"},
        {"{\"metadata\":{\"total_size\":-5},\"weight_map\":{\"a\":\"" SHARD(1) "\"}}",
         "total_size"},
        {"{\"metadata\":{\"total_size\":\"5\"},\"weight_map\":{\"a\":\"" SHARD(1) "\"}}",
         "total_size"},
        /* Tensors that the index lacks, places elsewhere, or has too many of. */
        {"{\"weight_map\":{\"model.embed\":\"" SHARD(1) "\",\"model.a\":\"" SHARD(2) "\"}}",
         "but the index says"},
        {"{\"weight_map\":{\"model.embed\":\"" SHARD(1) "\",\"model.a\":\"" SHARD(
             1) "\",\"model.z\":\"" SHARD(1) "\"}}",
         "model.z is not in"},
    };
    assert_int_equal(mkdir(scratch_path("wrong/folder.safetensors"), 0777), 0);
    assert_int_equal(mkfifo(scratch_path("wrong/pipe.safetensors"), 0666), 0);
    assert_int_equal(symlink("/dev/zero", scratch_path("wrong/zero.safetensors")), 0);
    assert_int_equal(symlink("../one/model.safetensors", scratch_path("wrong/out.safetensors")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_index("wrong", cases[i][0]);
        refused_folder(folder, cases[i][1]);
    }
    /* The same tensor in two shards. */
    assert_int_equal(base_copy_file(scratch_path("wrong/" SHARD(1)),
                                    scratch_path("wrong/twin.safetensors"), &error),
                     SIFR_OK);
    put_index("wrong", "{\"weight_map\":{\"model.embed\":\"" SHARD(
                           1) "\",\"model.a\":\"twin.safetensors\"}}");
    refused_folder(folder, "but the index says");
    /* A whole file, with and without its size. */
    put_index("wrong",
              "{\"weight_map\":{\"model.embed\":\"" SHARD(1) "\",\"model.a\":\"" SHARD(1) "\"}}");
    assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
    formats_weights_close(weights);
}

static void take_line(void *user, sifr_log_level level, const char *line) {
    assert_int_equal(level, SIFR_LOG_WARNING);
    strcat(strcat(user, line), "\n");
}

/* What transformers only warns of, or does not look at. */
static void harmless_index(void **state) {
    (void)state;
    char said[1024] = "";
    sifr_log log = {.write = take_line, .user = said};
    const char *folder = make_folder("harmless", 200);
    put_index(
        "harmless",
        "{\"metadata\":{\"total_size\":191},\"weight_map\":{\"model.embed\":\"" SHARD(1) "\"}}");
    assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
    assert_non_null(formats_weights_find(weights, "model.a"));
    formats_weights_warn(weights, &log);
    formats_weights_close(weights);
    assert_non_null(strstr(said, "does not list 1 tensor of its files, model.a; read anyway"));
    assert_non_null(strstr(said, "\"total_size\" is 191, but the tensors take 192 bytes"));
    *said = 0;
    put_index("harmless",
              "{\"metadata\":{\"total_size\":192},\"weight_map\":{\"model.embed\":\"" SHARD(
                  1) "\",\"model.a\":\"" SHARD(1) "\"}}");
    assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
    formats_weights_warn(weights, &log);
    formats_weights_close(weights);
    assert_string_equal(said, "");
    /* A tensor that two files hold, and the index does not name. */
    assert_int_equal(base_copy_file(scratch_path("harmless/" SHARD(1)),
                                    scratch_path("harmless/twin.safetensors"), &error),
                     SIFR_OK);
    put_index("harmless",
              "{\"weight_map\":{\"model.embed\":\"" SHARD(1) "\",\"b\":\"twin.safetensors\"}}");
    refused_folder(folder, "but the index says");
}

static void wrong_folder(void **state) {
    (void)state;
    refused_folder("/nonexistent", "cannot open");
    assert_int_equal(mkdir(scratch_path("bare"), 0777), 0);
    refused_folder(scratch_path("bare"), "neither model.safetensors nor");
    scratch_text("bare/pytorch_model.bin", "x");
    refused_folder(scratch_path("bare"), "no zip archive");
    make_folder("both", 0);
    put_index("both", "{}");
    refused_folder(scratch_path("both"), "remove the one");
}

/* A snapshot in the hub's cache holds links to ../../blobs. */
static void hub_cache(void **state) {
    (void)state;
    assert_int_equal(mkdir(scratch_path("hub"), 0777), 0);
    assert_int_equal(mkdir(scratch_path("hub/snapshots"), 0777), 0);
    assert_int_equal(mkdir(scratch_path("hub/snapshots/0a1b"), 0777), 0);
    make_folder("hub/blobs", 200);
    static const char *const names[] = {SHARD(1), SHARD(2), SHARD(3),
                                        "model.safetensors.index.json"};
    for (int i = 0; i < 4; i++) {
        char to[256], from[256];
        snprintf(to, sizeof to, "../../blobs/%s", names[i]);
        snprintf(from, sizeof from, "hub/snapshots/0a1b/%s", names[i]);
        assert_int_equal(symlink(to, scratch_path(from)), 0);
    }
    assert_int_equal(formats_weights_open(scratch_path("hub/snapshots/0a1b"), &weights, &error),
                     SIFR_OK);
    check_tensors();
    formats_weights_close(weights);
}

/* Shards that transformers saved; written again as one file and in shards, the tensors stay. */
static sifr_status fill_original(void *user, size_t position, formats_safetensors_writer *writer,
                                 sifr_error *e) {
    const formats_weights *from = user;
    const formats_tensor *t = formats_weights_at(from, position);
    return formats_safetensors_append(writer, t->data, (size_t)t->bytes, e);
}

static void from_transformers(void **state) {
    (void)state;
    char golden[1024];
    formats_tensor_spec list[32];
    formats_weights *from;
    snprintf(golden, sizeof golden, "%s/tests/golden/formats/sharded",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    if (formats_weights_open(golden, &from, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(formats_weights_file_count(from), 4);
    size_t count = formats_weights_count(from);
    assert_int_equal(count, 16);
    for (size_t i = 0; i < count; i++) {
        const formats_tensor *t = formats_weights_at(from, i);
        list[i] = (formats_tensor_spec){t->name, t->dtype, t->rank, {0}};
        memcpy(list[i].shape, t->shape, sizeof t->shape);
    }
    for (int sharded = 0; sharded < 2; sharded++) {
        const char *folder = scratch_path(sharded ? "resharded" : "joined");
        assert_int_equal(mkdir(folder, 0777), 0);
        assert_int_equal(formats_weights_write(folder, list, count, sharded ? 3000 : 0,
                                               fill_original, from, &error),
                         SIFR_OK);
        assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
        assert_true((formats_weights_file_count(weights) > 1) == sharded);
        for (size_t i = 0; i < count; i++) {
            const formats_tensor *a = formats_weights_at(from, i),
                                 *b = formats_weights_at(weights, i);
            assert_string_equal(a->name, b->name);
            assert_int_equal(a->bytes, b->bytes);
            assert_memory_equal(a->data, b->data, (size_t)a->bytes);
        }
        formats_weights_close(weights);
    }
    formats_weights_close(from);
}

static sifr_status fill_nothing(void *user, size_t position, formats_safetensors_writer *writer,
                                sifr_error *e) {
    const formats_tensor_spec *list = user;
    static const uint8_t zeros[1 << 16];
    uint64_t left;
    BASE_TRY(formats_tensor_bytes(&list[position], &left, e));
    while (left) {
        size_t part = left < sizeof zeros ? (size_t)left : sizeof zeros;
        BASE_TRY(formats_safetensors_append(writer, zeros, part, e));
        left -= part;
    }
    return SIFR_OK;
}

/* The shapes of GPT-2 124M in bf16: opened in less than 0.2 s. */
static void large(void **state) {
    (void)state;
    enum { LAYERS = 12, EACH = 12, COUNT = LAYERS * EACH + 4 };
    static formats_tensor_spec list[COUNT];
    static char names[COUNT][64];
    static const formats_tensor_spec layer[EACH] = {
        {"ln_1.weight", BASE_BF16, 1, {768}},
        {"ln_1.bias", BASE_BF16, 1, {768}},
        {"attn.c_attn.weight", BASE_BF16, 2, {768, 2304}},
        {"attn.c_attn.bias", BASE_BF16, 1, {2304}},
        {"attn.c_proj.weight", BASE_BF16, 2, {768, 768}},
        {"attn.c_proj.bias", BASE_BF16, 1, {768}},
        {"ln_2.weight", BASE_BF16, 1, {768}},
        {"ln_2.bias", BASE_BF16, 1, {768}},
        {"mlp.c_fc.weight", BASE_BF16, 2, {768, 3072}},
        {"mlp.c_fc.bias", BASE_BF16, 1, {3072}},
        {"mlp.c_proj.weight", BASE_BF16, 2, {3072, 768}},
        {"mlp.c_proj.bias", BASE_BF16, 1, {768}},
    };
    static const formats_tensor_spec outer[] = {{"wte.weight", BASE_BF16, 2, {50257, 768}},
                                                {"wpe.weight", BASE_BF16, 2, {1024, 768}},
                                                {"ln_f.weight", BASE_BF16, 1, {768}},
                                                {"ln_f.bias", BASE_BF16, 1, {768}}};
    for (int i = 0; i < COUNT; i++) {
        list[i] = i < 4 ? outer[i] : layer[(i - 4) % EACH];
        if (i < 4) continue;
        snprintf(names[i], sizeof names[i], "h.%d.%s", (i - 4) / EACH, list[i].name);
        list[i].name = names[i];
    }
    const char *folder = scratch_path("large");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(formats_weights_write(folder, list, COUNT, 0, fill_nothing, list, &error),
                     SIFR_OK);
    double seconds = 1e9; /* the quickest: other work on the machine disturbs some */
    for (int i = 0; i < 5; i++) {
        struct timespec begin, end;
        if (i) formats_weights_close(weights);
        clock_gettime(CLOCK_MONOTONIC, &begin);
        assert_int_equal(formats_weights_open(folder, &weights, &error), SIFR_OK);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double taken =
            (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
        if (taken < seconds) seconds = taken;
    }
    assert_int_equal(formats_weights_bytes(weights), 2 * 124439808);
    printf("opened %zu tensors in %.6f s\n", formats_weights_count(weights), seconds);
    assert_true(seconds < 0.2);
    formats_weights_close(weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file),          cmocka_unit_test(shards),
        cmocka_unit_test(failed_write),      cmocka_unit_test(full_disk),
        cmocka_unit_test(wrong_index),       cmocka_unit_test(harmless_index),
        cmocka_unit_test(wrong_folder),      cmocka_unit_test(hub_cache),
        cmocka_unit_test(from_transformers), cmocka_unit_test(large)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
