/* Files written as torch.save writes them: read back by our own reader, which reads PyTorch's (that
 * PyTorch reads these is what tests/golden/check_universal.py compares). */
#include "support/scratch.h"

#include "formats/torch/torch_tree.h"
#include "formats/torch/torch_write.h"

static sifr_error error;

/* Element i is i / 8; fails at `stop`. */
static sifr_status give(void *user, int64_t first, int64_t count, float *out, sifr_error *e) {
    const int64_t *stop = user;
    assert_true(count <= FORMATS_TORCH_PIECE);
    if (first >= *stop) return base_fail(e, SIFR_FAILED, "no more");
    for (int64_t i = 0; i < count; i++) out[i] = (float)(first + i) / 8;
    return SIFR_OK;
}

static formats_torch_tree *open_written(const char *name) {
    formats_torch_tree *tree;
    if (formats_torch_tree_open(scratch_path(name), &tree, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return tree;
}

static void put_file(const char *name, const json_t *value, const formats_tensor_spec *tensor) {
    int64_t stop = INT64_MAX;
    if (formats_torch_write(scratch_path(name), value, tensor, give, &stop, &error) != SIFR_OK)
        fail_msg("%s", error.message);
}

/* More than a piece, so that pieces meet. */
static void tensors(void **state) {
    (void)state;
    const formats_tensor_spec spec = {"param", BASE_FP32, 2, {3, FORMATS_TORCH_PIECE / 2}};
    formats_torch_node node;
    formats_tensor tensor;
    json_t *value = json_pack("{s:i}", "cat_dim", 0);
    put_file("a.pt", value, &spec);
    formats_torch_tree *tree = open_written("a.pt");
    assert_int_equal(formats_torch_count(tree, formats_torch_root(tree)), 2);
    assert_true(formats_torch_find(tree, formats_torch_root(tree), "param", &node));
    if (formats_torch_tensor(tree, node, &tensor, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(tensor.dtype, BASE_FP32);
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.shape[0], 3);
    assert_int_equal(tensor.elements, 3 * FORMATS_TORCH_PIECE / 2);
    for (int64_t i = 0; i < tensor.elements; i++) {
        float element;
        memcpy(&element, (const char *)tensor.data + 4 * i, 4);
        assert_true(element == (float)i / 8);
    }
    json_decref(value);
    formats_torch_tree_close(tree);
}

/* As the step of an optimizer is written. */
static void a_scalar_alone(void **state) {
    (void)state;
    const formats_tensor_spec spec = {.name = "step", .dtype = BASE_FP32};
    formats_tensor tensor;
    put_file("step.pt", NULL, &spec);
    formats_torch_tree *tree = open_written("step.pt");
    if (formats_torch_tensor(tree, formats_torch_root(tree), &tensor, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(tensor.rank, 0);
    assert_int_equal(tensor.bytes, 4);
    formats_torch_tree_close(tree);
}

static void empty_tensors(void **state) {
    (void)state;
    const formats_tensor_spec spec = {"param", BASE_FP32, 2, {0, 5}};
    formats_tensor tensor;
    put_file("none.pt", NULL, &spec);
    formats_torch_tree *tree = open_written("none.pt");
    if (formats_torch_tensor(tree, formats_torch_root(tree), &tensor, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(tensor.elements, 0);
    formats_torch_tree_close(tree);
}

static int64_t int_at(const formats_torch_tree *tree, formats_torch_node list, size_t index) {
    formats_torch_node node = formats_torch_item(tree, list, index);
    assert_int_equal(formats_torch_kind_of(tree, node), FORMATS_TORCH_INT);
    return formats_torch_int(tree, node);
}

static void values(void **state) {
    (void)state;
    static const int64_t ints[] = {0, -1, INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1, INT64_MIN};
    json_t *list = json_array(),
           *value = json_pack("{s:o, s:s, s:[], s:{}, s:b, s:n, s:f}", "ints", list, "text",
                              "\u00fc\n", "empty", "nothing", "yes", 1, "null", "half", 0.5);
    formats_torch_node node;
    for (size_t i = 0; i < 6; i++) json_array_append_new(list, json_integer(ints[i]));
    put_file("v.pt", value, NULL);
    formats_torch_tree *tree = open_written("v.pt");
    formats_torch_node root = formats_torch_root(tree);
    assert_int_equal(formats_torch_count(tree, root), 7);
    assert_true(formats_torch_find(tree, root, "ints", &node));
    assert_int_equal(formats_torch_count(tree, node), 6);
    for (size_t i = 0; i < 6; i++) assert_int_equal(int_at(tree, node, i), ints[i]);
    assert_true(formats_torch_find(tree, root, "text", &node));
    formats_pickle_text text = formats_torch_text(tree, node);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.at, "\u00fc\n", 3);
    assert_true(formats_torch_find(tree, root, "empty", &node));
    assert_int_equal(formats_torch_kind_of(tree, node), FORMATS_TORCH_LIST);
    assert_true(formats_torch_find(tree, root, "nothing", &node));
    assert_int_equal(formats_torch_kind_of(tree, node), FORMATS_TORCH_DICT);
    json_decref(value);
    formats_torch_tree_close(tree);
}

/* What torch.save does for mapping: data at multiples of 64 bytes; sums as zip has them. */
static void layout(void **state) {
    (void)state;
    const formats_tensor_spec spec = {.name = "step", .dtype = BASE_FP32};
    char *data;
    size_t size, found = 0;
    put_file("s.pt", NULL, &spec);
    assert_int_equal(base_read_file(scratch_path("s.pt"), 1 << 20, &data, &size, &error), SIFR_OK);
    for (size_t i = 0; i + 64 < size; i++) {
        if (memcmp(data + i, "PK\3\4", 4) != 0) continue;
        const uint8_t *p = (const uint8_t *)data + i;
        size_t begin = i + 30 + p[26] + 256 * p[27] + p[28] + 256 * p[29];
        assert_int_equal(begin % 64, 0);
        found++;
    }
    assert_int_equal(found, 4);
    /* crc32 of "3\n", behind the data and in the list */
    found = 0;
    for (size_t i = 0; i + 4 <= size; i++) found += memcmp(data + i, "\xd1\x9e\x67\x55", 4) == 0;
    assert_int_equal(found, 2);
    free(data);
}

static void failures_leave_nothing(void **state) {
    (void)state;
    const formats_tensor_spec spec = {"param", BASE_FP32, 1, {3 * FORMATS_TORCH_PIECE}};
    int64_t stop = 2 * FORMATS_TORCH_PIECE;
    assert_int_equal(formats_torch_write(scratch_path("f.pt"), NULL, &spec, give, &stop, &error),
                     SIFR_FAILED);
    assert_message(&error, "no more");
    assert_int_equal(formats_torch_write(scratch_path("no/f.pt"), NULL, &spec, give, &stop, &error),
                     SIFR_FAILED);
    assert_message(&error, "no/f.pt");
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tensors, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_scalar_alone, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(empty_tensors, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(values, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(layout, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(failures_leave_nothing, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
