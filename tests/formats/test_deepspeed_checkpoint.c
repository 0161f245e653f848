/* Checkpoints that DeepSpeed saved (tests/golden/make_deepspeed.py): the weights are those that its
 * own zero_to_fp32 finds, bit by bit; missing, foreign and damaged files are refused. */
#include "support/scratch.h"
#include "support/zip_case.h"

#include "base/json.h"
#include "formats/deepspeed/deepspeed_checkpoint.h"
#include "formats/torch/torch_tree.h"

static const char *golden(const char *name) {
    static char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/deepspeed/%s", source ? source : ".", name);
    return path;
}

static void compare(const formats_deepspeed *c, const formats_safetensors *expected) {
    assert_int_equal(formats_deepspeed_count(c), expected->count);
    for (size_t i = 0; i < expected->count; i++) {
        const formats_deepspeed_weight *w = formats_deepspeed_at(c, i);
        const formats_tensor *t = &expected->tensors[i];
        assert_string_equal(w->name, t->name);
        assert_int_equal(w->rank, t->rank);
        assert_memory_equal(w->shape, t->shape, (size_t)t->rank * sizeof *t->shape);
        float *values = malloc(t->bytes);
        /* In two parts, so that pieces are met in their midst. */
        int64_t half = t->elements / 3;
        formats_deepspeed_read(c, i, 0, half, values);
        formats_deepspeed_read(c, i, half, t->elements - half, values + half);
        assert_memory_equal(values, t->data, t->bytes);
        free(values);
    }
}

static void checkpoints(void **state) {
    (void)state;
    json_t *index, *row;
    sifr_error error = {0};
    size_t i;
    if (base_json_load(golden("index.json"), 1 << 20, &index, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    json_array_foreach(json_object_get(index, "cases"), i, row) {
        const char *name = json_string_value(json_array_get(row, 0));
        int64_t ranks = json_integer_value(json_array_get(row, 1));
        char file[128];
        formats_deepspeed *c;
        formats_safetensors expected;
        if (formats_deepspeed_open(golden(name), &c, &error) != SIFR_OK)
            fail_msg("%s: %s", name, error.message);
        snprintf(file, sizeof file, "%s/expected.safetensors", name);
        if (formats_safetensors_open(golden(file), &expected, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        assert_int_equal(formats_deepspeed_stage(c), json_integer_value(json_array_get(row, 2)));
        if (ranks) {
            assert_int_equal(formats_deepspeed_ranks(c), ranks);
            assert_int_equal(formats_deepspeed_step(c), 3);
        }
        compare(c, &expected);
        formats_safetensors_close(&expected);
        formats_deepspeed_close(c);
    }
    assert_true(i >= 4);
    json_decref(index);
}

static void refused(sifr_status wanted, const char *word) {
    formats_deepspeed *c;
    sifr_error error = {0};
    assert_int_equal(formats_deepspeed_open(scratch, &c, &error), wanted);
    if (!strstr(error.message, word)) fail_msg("no '%s' in: %s", word, error.message);
    assert_null(strchr(error.message, '\n'));
}

static void foreign_folders(void **state) {
    (void)state;
    refused(SIFR_USAGE, "no checkpoint of DeepSpeed");
    scratch_write("latest", "../up", 5);
    refused(SIFR_FAILED, "names no folder beside it");
    scratch_write("latest", "global_step9\n", 13);
    refused(SIFR_USAGE, "global_step9: no such folder");
    char path[BASE_PATH_LENGTH + 64];
    snprintf(path, sizeof path, "%s/latest", scratch);
    remove(path);
    scratch_write("__0_0.distcp", "x", 1);
    refused(SIFR_USAGE, "(DCP: .metadata, *.distcp) are not supported; convert it");
    snprintf(path, sizeof path, "%s/__0_0.distcp", scratch);
    remove(path);
    scratch_write("mp_rank_01_model_states.pt", "x", 1);
    refused(SIFR_USAGE, "tensor or pipeline parallel");
}

static void copy(const char *name, const char *to) {
    char *data;
    size_t size;
    sifr_error error = {0};
    if (base_read_file(golden(name), 1 << 24, &data, &size, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    scratch_write(to, data, size);
    free(data);
}

/* A rank's file that is missing, or cut short. */
static void missing_ranks(void **state) {
    (void)state;
    copy("stage2/global_step3/mp_rank_00_model_states.pt", "mp_rank_00_model_states.pt");
    copy("stage2/global_step3/zero_pp_rank_0_mp_rank_00_optim_states.pt",
         "zero_pp_rank_0_mp_rank_00_optim_states.pt");
    refused(SIFR_FAILED, "saved by 3 ranks, but there are the files of 1");
    copy("stage2/global_step3/zero_pp_rank_1_mp_rank_00_optim_states.pt",
         "zero_pp_rank_1_mp_rank_00_optim_states.pt");
    copy("stage2/global_step3/zero_pp_rank_2_mp_rank_00_optim_states.pt",
         "zero_pp_rank_3_mp_rank_00_optim_states.pt");
    refused(SIFR_FAILED,
            "the file of rank 2 (zero_pp_rank_2_mp_rank_00_optim_states.pt) is missing");
    scratch_write("zero_pp_rank_2_mp_rank_00_optim_states.pt", "PK", 2);
    char path[BASE_PATH_LENGTH + 64];
    snprintf(path, sizeof path, "%s/zero_pp_rank_3_mp_rank_00_optim_states.pt", scratch);
    remove(path);
    refused(SIFR_FAILED, "zero_pp_rank_2_mp_rank_00_optim_states.pt");
}

/* Any byte of a file changed: read or refused, never worse. */
static void wrong_bytes(void **state) {
    (void)state;
    char *data;
    size_t size, refusals = 0;
    sifr_error error = {0};
    if (base_read_file(golden("stage1/global_step3/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"),
                       1 << 24, &data, &size, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    for (size_t at = 0; at < size; at += 7) {
        formats_torch_tree *tree;
        char was = data[at];
        data[at] = (char)(was ^ 0x11);
        if (formats_torch_tree_parse(data, size, "input", &tree, &error) == SIFR_OK)
            formats_torch_tree_close(tree);
        else
            refusals++;
        data[at] = was;
    }
    free(data);
    assert_true(refusals > 20);
}

/* A file may have a list where names are looked for. */
static void lists_have_no_keys(void **state) {
    (void)state;
    static const uint8_t pickle[] = {0x80, 2, ']', '(', 'K', 1, 'K', 2, 'K', 3, 'e', '.'};
    zip_case zip = {0};
    sifr_error error = {0};
    formats_torch_tree *tree;
    zip_add(&zip, "archive/data.pkl", pickle, sizeof pickle);
    zip_finish(&zip);
    if (formats_torch_tree_parse(zip.bytes, zip.size, "input", &tree, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    formats_torch_node root = formats_torch_root(tree);
    assert_int_equal(formats_torch_kind_of(tree, root), FORMATS_TORCH_LIST);
    assert_int_equal(formats_torch_count(tree, root), 3);
    for (size_t i = 0; i < 3; i++) assert_null(formats_torch_key(tree, root, i).at);
    formats_torch_tree_close(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints),
        cmocka_unit_test_setup_teardown(foreign_folders, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(missing_ranks, scratch_setup, scratch_teardown),
        cmocka_unit_test(wrong_bytes),
        cmocka_unit_test(lists_have_no_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
