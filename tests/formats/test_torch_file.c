/* Files of torch.save: those that PyTorch made, and hostile ones. */
#include "support/scratch.h"
#include "support/zip_case.h"

#include "formats/torch/torch_file.h"
#include "formats/torch/torch_pickle.h"
#include "formats/weights.h"

static sifr_error error;
static formats_torch_file file;

static const char *golden(const char *name) {
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/tests/golden/torch/%s",
             getenv("SOURCE") ? getenv("SOURCE") : ".", name);
    return path;
}

/* --- what PyTorch wrote --- */

/* `left` in the .bin file equals `right`, a safetensors file of the same values. */
static void same_tensors(const char *left, const char *right) {
    formats_safetensors wanted;
    if (formats_torch_open(golden(left), &file, &error)) fail_msg("%s", error.message);
    if (formats_safetensors_open(golden(right), &wanted, &error)) fail_msg("%s", error.message);
    assert_int_equal(file.count, wanted.count);
    for (size_t i = 0; i < file.count; i++) {
        const formats_tensor *a = &file.tensors[i], *b = &wanted.tensors[i];
        assert_string_equal(a->name, b->name);
        if (a->dtype != b->dtype) fail_msg("%s: type %d, not %d", a->name, a->dtype, b->dtype);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->shape, b->shape, sizeof a->shape);
        assert_int_equal(a->elements, b->elements);
        assert_int_equal(a->bytes, b->bytes);
        if (a->bytes && memcmp(a->data, b->data, (size_t)a->bytes) != 0)
            fail_msg("%s: %s has other values", left, a->name);
    }
    formats_torch_close(&file);
    formats_safetensors_close(&wanted);
}

static void values(void **state) {
    (void)state;
    same_tensors("types.bin", "types.safetensors");
    same_tensors("protocol5.bin", "types.safetensors");
    same_tensors("state.bin", "state.safetensors");
}

/* Shards and their index; "total_size" of such an index is not looked at. */
static void shards(void **state) {
    (void)state;
    formats_weights *weights;
    formats_safetensors wanted;
    if (formats_weights_open(golden("shards"), &weights, &error)) fail_msg("%s", error.message);
    if (formats_safetensors_open(golden("state.safetensors"), &wanted, &error))
        fail_msg("%s", error.message);
    assert_int_equal(formats_weights_file_count(weights), 2);
    assert_int_equal(formats_weights_count(weights), wanted.count);
    for (size_t i = 0; i < wanted.count; i++) {
        const formats_tensor *t = formats_weights_at(weights, i);
        assert_string_equal(t->name, wanted.tensors[i].name);
        assert_memory_equal(t->data, wanted.tensors[i].data, (size_t)t->bytes);
    }
    formats_weights_close(weights);
    formats_safetensors_close(&wanted);
}

/* Two names over one storage have the same bytes, not two copies. */
static void shared_storage(void **state) {
    (void)state;
    const void *data[2] = {NULL, NULL};
    assert_int_equal(formats_torch_open(golden("types.bin"), &file, &error), SIFR_OK);
    for (size_t i = 0; i < file.count; i++) {
        if (!strcmp(file.tensors[i].name, "whole")) data[0] = file.tensors[i].data;
        if (!strcmp(file.tensors[i].name, "same")) data[1] = file.tensors[i].data;
    }
    assert_non_null(data[0]);
    assert_ptr_equal(data[0], data[1]);
    formats_torch_close(&file);
}

static void refused_files(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"older.bin", "from before version 1.6"},
        {"nested.bin", "\"state_dict\" is a dict, not a tensor: a checkpoint of a training run"},
        {"number.bin", "\"epoch\" is an int, not a tensor"},
        {"module.bin", "names torch.nn.modules.linear.Linear"},
        {"strided.bin", "tensor w: a view with gaps"},
        {"sparse.bin", "names torch._utils._rebuild_sparse_tensor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(formats_torch_open(golden(cases[i][0]), &file, &error), SIFR_FAILED);
        assert_message(&error, cases[i][1]);
        assert_null(file.tensors);
    }
}

/* Cut short anywhere, and any byte changed: an error or a result, but no crash. */
static void damaged(void **state) {
    (void)state;
    char *bytes;
    size_t size;
    assert_int_equal(base_read_file(golden("state.bin"), 1 << 20, &bytes, &size, &error), SIFR_OK);
    for (size_t i = 0; i < size; i++) {
        char *cut = malloc(i + 1);
        assert_non_null(cut);
        memcpy(cut, bytes, i);
        assert_int_equal(formats_torch_parse(cut, i, "cut", &file, &error), SIFR_FAILED);
        free(cut);
    }
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit += 3) {
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            if (formats_torch_parse(bytes, size, "flipped", &file, &error) == SIFR_OK)
                formats_torch_close(&file);
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
        }
    }
    free(bytes);
}

/* --- pickles made here --- */

#define TEXT(length, text) "X" length "\0\0\0" text
#define STORAGE(class, key, elements)                                                              \
    "(" TEXT("\7", "storage") "ctorch\n" class "\n" TEXT("\1", key) TEXT("\3", "cpu") elements "t" \
                                                                                               "Q"
#define VIEW(storage, offset, shape, stride)                                                       \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage offset shape stride "\x89"                      \
    "ccollections\nOrderedDict\n)RtR"
#define DICT(name, value) "\x80\2}" TEXT("\1", name) value "s."
#define MATRIX VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0", "K\2K\3\x86", "K\3K\1\x86")

typedef struct hostile_pickle {
    const char *bytes;
    size_t size;
    const char *part; /* of the message; NULL: accepted */
} hostile_pickle;

#define CASE(bytes, part)                                                                          \
    { bytes, sizeof(bytes) - 1, part }

static const hostile_pickle pickles[] = {
    CASE(DICT("w", MATRIX), NULL),
    CASE("", "cut short"),
    CASE("\x80\2", "cut short"),
    CASE("\x80\2.", "ends with 0 values"),
    CASE("\x80\1}.", "protocol 1"),
    CASE("\x80\6}.", "protocol 6"),
    CASE("\x80\2}.x", "1 bytes lie behind"),
    CASE("\x80\2(}.", "ends with"),
    CASE("\x80\2N.", "holds None"),
    CASE("\x80\2]h\0e.", "was not stored"),
    CASE("\x80\2}j\xff\xff\xff\xff.", "was not stored"),
    CASE("\x80\2}r\xff\xff\xff\xff.", "past the next place"),
    CASE("\x80\2}q\1.", "past the next place"),
    CASE("\x80\2q\0.", "more from the stack"),
    CASE("\x80\2(\x85.", "more from the stack"),
    CASE("\x80\2t.", "mark is missing"),
    CASE("\x80\2}(K\1u.", "has no value"),
    CASE("\x80\2]K\1K\1s.", "a list where a dict"),
    CASE("\x80\2}K\1K\1s.", "an int names a tensor"),
    CASE("\x80\2}Nb.", "None where a dict"),
    CASE("\x80\2\x8a\x09"
         "123456789.",
         "an int of 9 bytes"),
    CASE("\x80\2X\xff\xff\xff\xff"
         "a.",
         "cut short"),
    CASE("\x80\2\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "cut short"),
    CASE("\x80\2\x81.", "instruction 0x81"),
    CASE("\x80\2i.", "instruction 0x69"),
    CASE("\x80\2"
         "cos\nsystem\n" TEXT("\2", "ls") "\x85R.",
         "names os.system"),
    CASE("\x80\2"
         "c__builtin__\neval\n)R.",
         "names __builtin__.eval"),
    CASE("\x80\4\x8c\5posix\x8c\6system\x93.", "names posix.system"),
    CASE("\x80\2"
         "ctorch\nload\n)R.",
         "names torch.load"),
    CASE("\x80\2"
         "c\n\n)R.",
         "names ."),
    CASE("\x80\2"
         "ctorch\nFloatStorage\n)R.",
         "calls torch.FloatStorage"),
    CASE("\x80\2"
         "ctorch\nfloat32\n)R.",
         "calls torch.float32"),
    CASE("\x80\2"
         "ccollections\nOrderedDict\nN\x85R.",
         "made from arguments"),
    CASE("\x80\2"
         "ctorch._utils\n_rebuild_tensor_v2\n)R.",
         "arguments that make no tensor"),
    CASE("\x80\2NQ.", "None where a tuple"),
    CASE("\x80\2)Q.", "a persistent id that is none"),
    CASE("\x80\2" STORAGE("Size", "0", "K\6") ".", "a persistent id that is none"),
    CASE("\x80\2" STORAGE("FloatStorage", "0", "J\xff\xff\xff\xff") ".", "a persistent id"),
    CASE(DICT("w", "]"), "\"w\" is a list"),
    CASE(DICT("\n", MATRIX), "control character"),
    CASE(DICT("\xff", MATRIX), "not UTF-8"),
    CASE(DICT("w",
              VIEW(STORAGE("FloatStorage", "0", "K\6"), "J\xff\xff\xff\xff", "K\2\x85", "K\1\x85")),
         "make no tensor"),
    CASE(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0", "K\2\x85", ")")),
         "make no tensor"),
    CASE(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0", "N\x85", "K\1\x85")),
         "make no tensor"),
    CASE(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t",
                        "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t")),
         "make no tensor"),
    CASE(DICT("w", VIEW(STORAGE("UntypedStorage", "0", "K\6"), "K\0", "K\2\x85", "K\1\x85")),
         "make no tensor"),
    CASE(DICT("w", VIEW(STORAGE("LongStorage", "0", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
                        "K\0", "K\2\x85", "K\1\x85")),
         "make no tensor"),
    /* A list within itself. */
    CASE("\x80\2}" TEXT("\1", "w") "]q\0h\0as.", "\"w\" is a list"),
};

static void hostile_pickles(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        formats_pickle pickle;
        error = (sifr_error){0};
        sifr_status status = formats_pickle_parse((const uint8_t *)pickles[i].bytes,
                                                  pickles[i].size, "p", &pickle, &error);
        if (status != (pickles[i].part ? SIFR_FAILED : SIFR_OK))
            fail_msg("case %zu: status %d, %s", i, status, error.message);
        if (pickles[i].part)
            assert_message(&error, pickles[i].part);
        else
            formats_pickle_free(&pickle);
    }
}

/* Many objects from few bytes: refused before memory runs out. */
static void many_objects(void **state) {
    (void)state;
    formats_pickle pickle;
    size_t size = FORMATS_PICKLE_LIMIT;
    uint8_t *bytes = malloc(size + 1);
    assert_non_null(bytes);
    memset(bytes, '}', size + 1);
    assert_int_equal(formats_pickle_parse(bytes, size, "p", &pickle, &error), SIFR_FAILED);
    assert_message(&error, "objects");
    assert_int_equal(formats_pickle_parse(bytes, size + 1, "p", &pickle, &error), SIFR_FAILED);
    assert_message(&error, "more than the limit");
    memset(bytes, '(', size);
    assert_int_equal(formats_pickle_parse(bytes, size, "p", &pickle, &error), SIFR_FAILED);
    free(bytes);
}

/* --- archives made here --- */

static zip_case zip;

static void start_zip(const char *pickle, size_t size, size_t storage) {
    static const uint8_t zeros[256];
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "m/data.pkl", pickle, size);
    zip_add(&zip, "m/byteorder", "little", 6);
    zip_add(&zip, "m/data/0", zeros, storage);
}

static void refused_zip(const char *part) {
    error = (sifr_error){0};
    if (formats_torch_parse(zip.bytes, zip.size, "zip", &file, &error) != SIFR_FAILED)
        fail_msg("accepted, not: %s", part);
    assert_message(&error, part);
}

#define START(pickle, storage) start_zip(pickle, sizeof(pickle) - 1, storage)

/* Another offset or length where the whole archive was right. */
static void refused_change(size_t at, uint64_t value, int bytes, const char *part) {
    START(DICT("w", MATRIX), 24);
    zip_finish(&zip);
    assert_int_equal(formats_torch_parse(zip.bytes, zip.size, "zip", &file, &error), SIFR_OK);
    assert_int_equal(file.tensors[0].bytes, 24);
    formats_torch_close(&file);
    zip_number(zip.bytes + at, value, bytes);
    refused_zip(part);
}

static void hostile_archives(void **state) {
    (void)state;
    START(DICT("w", MATRIX), 24);
    zip_finish(&zip);
    size_t end = zip.end, central = zip.central;
    refused_change(end, 0, 4, "no zip archive");
    refused_change(end + 20, 1, 2, "no zip archive");
    refused_change(end + 10, 0, 2, "without one data.pkl");
    refused_change(end + 10, 4, 2, "too short");
    refused_change(end + 10, 0xffff, 2, "too short");
    refused_change(end + 12, 0xffffffff, 4, "outside of the file");
    refused_change(end + 16, 0xfffffff0, 4, "outside of the file");
    refused_change(end + 16, central + 1, 4, "is broken");
    refused_change(central, 0, 4, "is broken");
    refused_change(central + 8, 1, 2, "encrypted");
    refused_change(central + 10, 8, 2, "compressed");
    refused_change(central + 20, 7, 4, "does not lie where");
    refused_change(central + 28, 0xffff, 2, "is broken");
    refused_change(central + 30, 0xffff, 2, "is broken");
    refused_change(central + 42, 0xfffffff0, 4, "does not lie where");
    refused_change(central + 42, 0xffffffff, 4, "does not lie where");
    refused_change(central + 42, 1, 4, "does not lie where");
    refused_change(central + 46, 'x', 1, "does not lie where");
    refused_change(26, 0xffff, 2, "does not lie where");
    refused_change(28, 0xffff, 2, "does not lie where");
}

static void hostile_records(void **state) {
    (void)state;
    START(DICT("w", MATRIX), 20); /* a storage too short */
    zip_finish(&zip);
    refused_zip("its storage is missing or has another size");
    START(DICT("w", VIEW(STORAGE("FloatStorage", "7", "K\6"), "K\0", "K\2\x85", "K\1\x85")), 24);
    zip_finish(&zip);
    refused_zip("its storage is missing");
    START(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\5", "K\2\x85", "K\1\x85")), 24);
    zip_finish(&zip);
    refused_zip("outside of its storage");
    START(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0", "K\2K\3\x86",
                         "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\1\x86")),
          24);
    zip_finish(&zip);
    refused_zip("outside of its storage");
    START(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0", "K\6K\6\x86", "K\0K\1\x86")),
          24);
    zip_finish(&zip);
    refused_zip("repeated elements");
    START(DICT("w", VIEW(STORAGE("FloatStorage", "0", "K\6"), "K\0",
                         "\x8a\x08\0\0\0\0\0\0\0\x40K\4\x86", "K\0K\0\x86")),
          24);
    zip_finish(&zip);
    refused_zip("no size that fits");
    START("\x80\2}" TEXT("\1", "w") MATRIX "s" TEXT("\1", "w") MATRIX "s.", 24);
    zip_finish(&zip);
    refused_zip("two tensors have the name w");
    START(DICT("w", MATRIX), 24);
    zip_add(&zip, "m/data/0", "", 0);
    zip_finish(&zip);
    refused_zip("two zip entries have the name m/data/0");
    START(DICT("w", MATRIX), 24);
    zip_add(&zip, "n/data.pkl", "", 0);
    zip_finish(&zip);
    refused_zip("without one data.pkl");
    memset(&zip, 0, sizeof zip);
    zip_add(&zip, "m/data.pkl", "", 0);
    zip_add(&zip, "m/byteorder", "big", 3);
    zip_finish(&zip);
    refused_zip("byte order");
}

/* Many transposed views over one storage would be many copies. */
static void many_copies(void **state) {
    (void)state;
    static const char head[] = "\x80\2}", value[] = VIEW(STORAGE("FloatStorage", "0", "K\x40"),
                                                         "K\0", "K\x08K\x08\x86", "K\1K\x08\x86");
    char pickle[8192];
    size_t size = sizeof head - 1;
    memcpy(pickle, head, size);
    for (int i = 0; i < 26; i++) {
        char key[] = TEXT("\1", "a");
        key[5] = (char)('a' + i);
        memcpy(pickle + size, key, sizeof key - 1);
        size += sizeof key - 1;
        if (i == 0) {
            memcpy(pickle + size, value, sizeof value - 1);
            size += sizeof value - 1;
            pickle[size++] = 'q';
            pickle[size++] = 0;
        } else {
            pickle[size++] = 'h';
            pickle[size++] = 0;
        }
        pickle[size++] = 's';
    }
    pickle[size++] = '.';
    start_zip(pickle, size, 256);
    zip_finish(&zip);
    refused_zip("the transposed tensors take more bytes than the file");
}

static void not_the_file(void **state) {
    (void)state;
    assert_int_equal(formats_torch_open(scratch_text("empty.bin", ""), &file, &error), SIFR_FAILED);
    assert_int_equal(
        formats_torch_open(
            scratch_text("pointer.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0"),
            &file, &error),
        SIFR_FAILED);
    assert_message(&error, "git lfs pull");
    assert_int_equal(formats_torch_open("/dev/zero", &file, &error), SIFR_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),          cmocka_unit_test(shards),
        cmocka_unit_test(shared_storage),  cmocka_unit_test(refused_files),
        cmocka_unit_test(damaged),         cmocka_unit_test(hostile_pickles),
        cmocka_unit_test(many_objects),    cmocka_unit_test(hostile_archives),
        cmocka_unit_test(hostile_records), cmocka_unit_test(many_copies),
        cmocka_unit_test(not_the_file),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
