/* safetensors: round trip, the reference's own files, and every hostile header we know of. */
#include "support/scratch.h"

#include "base/heap.h"
#include "formats/safetensors/safetensors.h"

static sifr_error error;
static formats_safetensors file;

/* A file with this header and `body` bytes of zeros behind it; *size is its length. */
static uint8_t *build(const char *header, size_t length, size_t body, size_t *size) {
    *size = 8 + length + body;
    uint8_t *bytes = calloc(1, *size);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    return bytes;
}

static sifr_status parse(const char *header, size_t length, size_t body) {
    size_t size;
    uint8_t *bytes = build(header, length, body, &size);
    error = (sifr_error){0};
    sifr_status status = formats_safetensors_parse(bytes, size, "x", &file, &error);
    if (status == SIFR_OK) formats_safetensors_close(&file);
    free(bytes);
    return status;
}

static void refused(const char *header, size_t body, const char *part) {
    if (parse(header, strlen(header), body) != SIFR_FAILED) fail_msg("accepted: %.200s", header);
    assert_int_equal(error.status, SIFR_FAILED);
    assert_message(&error, part);
}

static void accepted(const char *header, size_t body) {
    if (parse(header, strlen(header), body) != SIFR_OK) fail_msg("%s: %s", header, error.message);
}

static void lengths(void **state) {
    (void)state;
    uint8_t bytes[64] = {0};
    for (size_t size = 0; size <= 8; size++) {
        assert_int_equal(formats_safetensors_parse(bytes, size, "x", &file, &error), SIFR_FAILED);
    }
    assert_message(&error, "does not begin with '{'");
    static const struct {
        uint64_t length;
        const char *part;
    } wrong[] = {{1, "not valid JSON"},
                 {57, "a header of 57 bytes in a file of 64: cut short"},
                 {100000000, "cut short"},
                 {100000001, "more than the limit"},
                 {UINT64_C(1) << 63, "more than the limit"},
                 {UINT64_MAX - 7, "more than the limit"},
                 {UINT64_MAX, "more than the limit"}};
    memset(bytes, '{', sizeof bytes);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(bytes, &wrong[i].length, 8);
        assert_int_equal(formats_safetensors_parse(bytes, sizeof bytes, "x", &file, &error),
                         SIFR_FAILED);
        assert_message(&error, wrong[i].part);
    }
}

#define T(members) "{\"t\":{" members "}}"
#define TENSOR(dtype, shape, begin, end)                                                           \
    "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void headers(void **state) {
    (void)state;
    accepted("{}", 0);
    accepted("{}   ", 0);
    accepted("{\"__metadata__\":{\"format\":\"pt\"}}", 0);
    accepted("{\"t\":" TENSOR("\"F32\"", "[2,3]", 0, 24) "}", 24);
    accepted("{\"t\":" TENSOR("\"F32\"", "[]", 0, 4) "}", 4);
    accepted("{\"t\":" TENSOR("\"F32\"", "[5,0]", 0, 0) "}", 0);
    accepted("{\"t\":" TENSOR("\"F4\"", "[2]", 0, 1) "}", 1);
    refused(" {}", 0, "does not begin with '{'");
    refused("[]", 0, "does not begin with '{'");
    refused("{", 0, "not valid JSON");
    refused("{}x", 0, "not valid JSON");
    assert_int_equal(parse("{}\0\0", 4, 0), SIFR_FAILED);
    refused("{}", 1, "behind the last tensor");
    refused("{\"__metadata__\":[]}", 0, "__metadata__");
    refused("{\"__metadata__\":7}", 0, "__metadata__");
    refused("{\"__metadata__\":{\"a\":7}}", 0, "__metadata__");
    refused("{\"t\":7}", 0, "not a JSON object");
    refused(T("\"dtype\":\"F32\",\"shape\":[1]"), 4, "exactly");
    refused("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
            "exactly");
    refused("{\"t\":" TENSOR("\"F33\"", "[1]", 0, 4) "}", 4, "unknown dtype F33");
    refused("{\"t\":" TENSOR("32", "[1]", 0, 4) "}", 4, "unknown dtype");
    refused("{\"t\":" TENSOR("\"f32\"", "[1]", 0, 4) "}", 4, "unknown dtype");
}

static void shapes(void **state) {
    (void)state;
    static const char *const bad[] = {"[-1]",
                                      "[-1,-1]",
                                      "[1e30]",
                                      "[1.0]",
                                      "\"12\"",
                                      "[\"1\"]",
                                      "[9007199254740993]",
                                      "[[1]]",
                                      "[true]",
                                      "[null]",
                                      "{}",
                                      "1",
                                      "null",
                                      "[9223372036854775807,2]",
                                      "[4194305,4194305,211106198978564]",
                                      "[4398046511105,4194304]",
                                      "[0,4294967296,4294967296,4294967296]",
                                      "[1,1,1,1,1,1,1,1,1]",
                                      "[0]",
                                      "[2]"};
    char header[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(header, sizeof header, "{\"t\":" TENSOR("\"F32\"", "%s", 0, 4) "}", bad[i]);
        refused(header, 4, "tensor t");
    }
    refused("{\"t\":" TENSOR("\"F32\"", "[18446744073709551616]", 0, 4) "}", 4,
            "\"shape\" holds something that is not a whole");
    refused("{\"t\":" TENSOR("\"F4\"", "[3]", 0, 1) "}", 1, "tensor t");
    refused("{\"t\":" TENSOR("\"F6_E2M3\"", "[1]", 0, 1) "}", 1, "tensor t");
    /* A million sizes. */
    enum { SIZES = 1000000 };
    char *long_shape = malloc(2 * SIZES + 200);
    assert_non_null(long_shape);
    size_t used = (size_t)sprintf(long_shape, "{\"t\":{\"dtype\":\"F32\",\"shape\":[1");
    for (int i = 1; i < SIZES; i++) memcpy(long_shape + used, ",1", 2), used += 2;
    used += (size_t)sprintf(long_shape + used, "],\"data_offsets\":[0,4]}}");
    refused(long_shape, 4, "at most 8 sizes");
    free(long_shape);
}

static void offsets(void **state) {
    (void)state;
    static const char *const bad[] = {"[4,0]",
                                      "[0]",
                                      "[0,4,4]",
                                      "[]",
                                      "[-4,0]",
                                      "[0,-4]",
                                      "[0,4.0]",
                                      "[\"0\",4]",
                                      "{}",
                                      "7",
                                      "[4,8]",
                                      "[0,5]",
                                      "[0,3]",
                                      "[1000000000000,4]",
                                      "[0,9223372036854775807]"};
    char header[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":%s}}", bad[i]);
        refused(header, 4, "tensor t");
    }
#define TWO(a, b) "{\"a\":" a ",\"b\":" b "}"
    accepted(TWO(TENSOR("\"U8\"", "[4]", 4, 8), TENSOR("\"U8\"", "[4]", 0, 4)), 8);
    accepted(TWO(TENSOR("\"U8\"", "[0]", 4, 4), TENSOR("\"U8\"", "[4]", 0, 4)), 4);
    accepted(TWO(TENSOR("\"U8\"", "[0]", 0, 0), TENSOR("\"U8\"", "[4]", 0, 4)), 4);
    refused("{\"t\":" TENSOR("\"F32\"", "[2]", 0, 8) "}", 4, "damaged or cut short");
    refused(TWO(TENSOR("\"U8\"", "[4]", 0, 4), TENSOR("\"U8\"", "[4]", 0, 4)), 8, "overlap");
    refused(TWO(TENSOR("\"U8\"", "[4]", 0, 4), TENSOR("\"U8\"", "[4]", 3, 7)), 7, "overlap");
    refused(TWO(TENSOR("\"U8\"", "[4]", 0, 4), TENSOR("\"U8\"", "[4]", 5, 9)), 9, "gap");
    refused(TWO(TENSOR("\"U8\"", "[0]", 2, 2), TENSOR("\"U8\"", "[4]", 0, 4)), 4, "overlap");
    refused(TWO(TENSOR("\"U8\"", "[4]", 0, 4), TENSOR("\"U8\"", "[4]", 4, 8)), 9,
            "behind the last");
}

static void names(void **state) {
    (void)state;
#define NAMED(name) "{\"" name "\":" TENSOR("\"U8\"", "[0]", 0, 0) "}"
    accepted(NAMED("../../etc/passwd"), 0); /* a name, never a path */
    accepted(NAMED("\xC3\xA9"), 0);
    refused(NAMED(""), 0, "0 bytes");
    refused(NAMED("a\\nb"), 0, "control character");
    refused(NAMED("a\\u0000b"), 0, "not valid JSON");
    refused(NAMED("\xFF"), 0, "not valid JSON");
    refused(NAMED("\xC0\xAF"), 0, "not valid JSON");
    refused(NAMED("\\ud800"), 0, "not valid JSON");
    refused("{\"a\":" TENSOR("\"U8\"", "[0]", 0, 0) ",\"a\":" TENSOR("\"U8\"", "[0]", 0, 0) "}", 0,
            "duplicate");
    refused(
        "{\"a\":" TENSOR("\"U8\"", "[0]", 0, 0) ",\"\\u0061\":" TENSOR("\"U8\"", "[0]", 0, 0) "}",
        0, "duplicate");
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG + 200);
    assert_non_null(text);
    strcpy(text, "{\"");
    memset(text + 2, 'a', LONG);
    strcpy(text + 2 + LONG, "\":" TENSOR("\"U8\"", "[0]", 0, 0) "}");
    refused(text, 0, "1048576 bytes");
    free(text);
}

static void many(void **state) {
    (void)state;
    static const struct {
        int count;
        const char *part;
    } cases[] = {{1000000, "4,194,304 values"}, {200000, "200000 tensors, more than the limit"}};
    enum { ENTRY = 80 };
    char *text = malloc((size_t)cases[0].count * ENTRY + 2);
    assert_non_null(text);
    for (int k = 0; k < 2; k++) {
        size_t used = 0;
        for (int i = 0; i < cases[k].count; i++) {
            used += (size_t)sprintf(text + used, "%c\"%d\":" TENSOR("\"U8\"", "[0]", 0, 0),
                                    i ? ',' : '{', i);
        }
        text[used++] = '}';
        assert_int_equal(parse(text, used, 0), SIFR_FAILED);
        assert_message(&error, cases[k].part);
    }
    free(text);
    /* Nesting, and a header that claims a gigabyte. */
    enum { DEEP = 100000 };
    text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '{', DEEP);
    assert_int_equal(parse(text, DEEP, 0), SIFR_FAILED);
    assert_message(&error, "deeper");
    free(text);
}

static const formats_tensor_spec specs[] = {
    {"w", BASE_FP32, 2, {3, 5}},   {"b", BASE_BF16, 1, {7}},       {"h", BASE_FP16, 3, {2, 1, 2}},
    {"scalar", BASE_FP32, 0, {0}}, {"none", BASE_FP32, 2, {0, 9}},
};
enum { SPECS = sizeof specs / sizeof *specs };

static void write_specs(const char *path) {
    formats_safetensors_writer writer;
    formats_tensor_spec sorted[SPECS];
    memcpy(sorted, specs, sizeof specs);
    formats_tensor_spec_sort(sorted, SPECS);
    assert_int_equal(formats_safetensors_writer_open(&writer, path, sorted, SPECS, &error),
                     SIFR_OK);
    for (int i = 0; i < SPECS; i++) {
        uint64_t bytes;
        assert_int_equal(formats_tensor_bytes(&sorted[i], &bytes, &error), SIFR_OK);
        for (uint64_t k = 0; k < bytes; k++) {
            uint8_t byte = (uint8_t)(sorted[i].name[0] + k);
            assert_int_equal(formats_safetensors_append(&writer, &byte, 1, &error), SIFR_OK);
        }
    }
    assert_int_equal(formats_safetensors_commit(&writer, &error), SIFR_OK);
}

static void round_trip(void **state) {
    (void)state;
    const char *path = scratch_path("round.safetensors");
    write_specs(path);
    assert_int_equal(formats_safetensors_open(path, &file, &error), SIFR_OK);
    assert_int_equal(file.count, SPECS);
    for (int i = 0; i < SPECS; i++) {
        const formats_tensor *t = formats_safetensors_find(&file, specs[i].name);
        uint64_t bytes;
        assert_non_null(t);
        assert_int_equal(formats_tensor_bytes(&specs[i], &bytes, &error), SIFR_OK);
        assert_int_equal(t->dtype, specs[i].dtype);
        assert_int_equal(t->rank, specs[i].rank);
        assert_memory_equal(t->shape, specs[i].shape, sizeof t->shape);
        assert_int_equal(t->bytes, bytes);
        for (uint64_t k = 0; k < bytes; k++) {
            assert_int_equal(((const uint8_t *)t->data)[k], (uint8_t)(specs[i].name[0] + k));
        }
    }
    assert_null(formats_safetensors_find(&file, "absent"));
    /* The first tensor's data begin at a multiple of 8, as in files of the reference writer. */
    const formats_tensor *w = formats_safetensors_find(&file, "none");
    assert_int_equal((size_t)((const uint8_t *)w->data - file.map.data) % 8, 0);
    assert_memory_equal(file.map.data + 8, "{\"__metadata__\":{\"format\":\"pt\"},", 32);
    formats_safetensors_close(&file);
}

/* Cut at every byte of the header and at some of the body; or a byte too long. */
static void truncated(void **state) {
    (void)state;
    char *bytes;
    size_t size;
    write_specs(scratch_path("cut.safetensors"));
    assert_int_equal(
        base_read_file(scratch_path("cut.safetensors"), 1 << 20, &bytes, &size, &error), SIFR_OK);
    for (size_t cut = 0; cut < size; cut++) {
        char *copy = malloc(cut + 1); /* of the exact size, so that reading on is seen */
        memcpy(copy, bytes, cut);
        assert_int_equal(formats_safetensors_parse(copy, cut, "x", &file, &error), SIFR_FAILED);
        free(copy);
    }
    assert_int_equal(formats_safetensors_parse(bytes, size, "x", &file, &error), SIFR_OK);
    formats_safetensors_close(&file);
    assert_int_equal(formats_safetensors_parse(bytes, size + 1, "x", &file, &error), SIFR_FAILED);
    free(bytes);
}

static void writer_errors(void **state) {
    (void)state;
    formats_safetensors_writer writer;
    static const formats_tensor_spec twice[] = {{"a", BASE_FP32, 1, {1}}, {"a", BASE_FP32, 1, {1}}};
    static const formats_tensor_spec vast[] = {{"a", BASE_FP32, 2, {INT64_MAX, 4}}};
    const char *path = scratch_path("bad.safetensors");
    assert_int_equal(formats_safetensors_writer_open(&writer, path, twice, 2, &error), SIFR_FAILED);
    assert_message(&error, "declared twice");
    assert_int_equal(formats_safetensors_writer_open(&writer, path, vast, 1, &error), SIFR_FAILED);
    assert_int_equal(formats_safetensors_writer_open(&writer, path, twice, 1, &error), SIFR_OK);
    assert_int_equal(formats_safetensors_append(&writer, "12345", 5, &error), SIFR_FAILED);
    assert_int_equal(formats_safetensors_append(&writer, "123", 3, &error), SIFR_OK);
    assert_int_equal(formats_safetensors_commit(&writer, &error), SIFR_FAILED);
    assert_message(&error, "1 bytes less");
    assert_false(base_is_file(path));
    char **left;
    size_t count;
    assert_int_equal(base_list_directory(scratch, &left, &count, &error), SIFR_OK);
    for (size_t i = 0; i < count; i++) assert_null(strstr(left[i], "bad."));
    base_free_names(left, count);
}

static void files(void **state) {
    (void)state;
    assert_int_equal(formats_safetensors_open(scratch_path("no"), &file, &error), SIFR_FAILED);
    assert_int_equal(formats_safetensors_open("/dev/zero", &file, &error), SIFR_FAILED);
    assert_int_equal(formats_safetensors_open(scratch, &file, &error), SIFR_FAILED);
    scratch_write("empty", "", 0);
    assert_int_equal(formats_safetensors_open(scratch_path("empty"), &file, &error), SIFR_FAILED);
    assert_message(&error, "empty or cut short");
}

/* The reference writer's file of all types: read, and written again to the same bytes. */
static void reference_layout(void **state) {
    (void)state;
    char golden[1024];
    snprintf(golden, sizeof golden, "%s/tests/golden/formats/types.safetensors",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    if (formats_safetensors_open(golden, &file, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(file.count, 17);
    formats_tensor_spec list[17];
    for (size_t i = 0; i < file.count; i++) {
        const formats_tensor *t = &file.tensors[i];
        int number = atoi(t->name + 1);
        list[i] = (formats_tensor_spec){t->name, t->dtype, t->rank, {0}};
        memcpy(list[i].shape, t->shape, sizeof t->shape);
        for (uint64_t k = 0; k < t->bytes; k++) {
            assert_int_equal(((const uint8_t *)t->data)[k],
                             (7 * number + (int)k) % (t->dtype == BASE_BOOL ? 2 : 251));
        }
    }
    formats_tensor_spec_sort(list, file.count);
    formats_safetensors_writer writer;
    const char *path = scratch_path("again.safetensors");
    assert_int_equal(formats_safetensors_writer_open(&writer, path, list, file.count, &error),
                     SIFR_OK);
    for (size_t i = 0; i < file.count; i++) {
        const formats_tensor *t = formats_safetensors_find(&file, list[i].name);
        assert_int_equal(formats_safetensors_append(&writer, t->data, (size_t)t->bytes, &error),
                         SIFR_OK);
    }
    assert_int_equal(formats_safetensors_commit(&writer, &error), SIFR_OK);
    char *again;
    size_t size;
    assert_int_equal(base_read_file(path, 1 << 20, &again, &size, &error), SIFR_OK);
    assert_int_equal(size, file.map.size);
    assert_memory_equal(again, file.map.data, size);
    free(again);
    formats_safetensors_close(&file);
}

/* Files of another writer, beside the tree. */
static void from_elsewhere(void **state) {
    (void)state;
    static const struct {
        const char *name;
        base_dtype dtype;
        int rank;
    } known[] = {{"tensor-1d-int32", BASE_INT32, 1},
                 {"tensor-2d-float64", BASE_FP64, 2},
                 {"tensor-3d-float32", BASE_FP32, 3},
                 {"tensor-4d-float32", BASE_FP32, 4}};
    const char *source = getenv("SOURCE");
    char path[1024];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        snprintf(path, sizeof path, "%s/../shared/data/safetensors/%s.safetensors",
                 source ? source : ".", known[i].name);
        if (!base_is_file(path)) skip();
        assert_int_equal(formats_safetensors_open(path, &file, &error), SIFR_OK);
        assert_int_equal(file.count, 1);
        assert_int_equal(file.tensors[0].dtype, known[i].dtype);
        assert_int_equal(file.tensors[0].rank, known[i].rank);
        formats_safetensors_close(&file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths),
                                       cmocka_unit_test(headers),
                                       cmocka_unit_test(shapes),
                                       cmocka_unit_test(offsets),
                                       cmocka_unit_test(names),
                                       cmocka_unit_test(many),
                                       cmocka_unit_test(round_trip),
                                       cmocka_unit_test(truncated),
                                       cmocka_unit_test(writer_errors),
                                       cmocka_unit_test(files),
                                       cmocka_unit_test(reference_layout),
                                       cmocka_unit_test(from_elsewhere)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
