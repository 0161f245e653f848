/* Operands of op tests in the memory of a device that the host cannot reach: slices of one matrix
 * stay one, a call in place stays in place, inputs come back as they were, and a write beside the
 * operands is found. */
#include "support/cuda/mirror.h"

#include "device/cuda/product/cuda_gemm.h"
#include "device/matrix_case.h"
#include "support/cuda/op_gpu.h"

enum { ROWS = 3, COLUMNS = 40 };

static device *open_fake(void) {
    device *dev = NULL;
    sifr_error error = {0};
    if (shim_skipped()) skip();
    if (op_gpu_open_kind(OP_GPU_FAKE, 0, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    return dev;
}

/* y = x0 + x1, all three slices of one matrix, or y = x0 in place. */
static void check_slices(bool in_place) {
    device *dev = open_fake();
    device_matrix wide = case_matrix(ROWS, 3 * COLUMNS + 2, BASE_FP32, 1, 1), parts[3];
    device_matrix before = case_copy(&wide);
    for (int i = 0; i < 3; i++) {
        parts[i] = wide;
        parts[i].columns = COLUMNS;
        parts[i].data = (float *)wide.data + i * (COLUMNS + 1);
    }
    device_call call = {.kernel = DEVICE_ADD, .x = {parts[0], parts[1]}, .y = parts[2]};
    if (in_place) call.y = parts[0];
    case_run(dev, &call);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < wide.columns; c++) {
            int64_t first = in_place ? 0 : 2 * (COLUMNS + 1), at = c - first;
            double want = case_get(&before, r, c);
            if (at >= 0 && at < COLUMNS)
                want = (double)(float)(case_get(&before, r, at) +
                                       case_get(&before, r, COLUMNS + 1 + at));
            assert_true(case_get(&wide, r, c) == want);
        }
    free(before.data);
    free(wide.data);
    device_close(dev);
}

static void slices_stay_one(void **state) {
    (void)state;
    check_slices(false);
    check_slices(true);
}

/* The last rows of the result were not shown. */
static void writes_beside_are_found(void **state) {
    enum { N = 16, LESS = 2 };
    (void)state;
    device *dev = open_fake();
    sifr_error error = {0};
    device_matrix a = case_matrix(N, N, BASE_FP32, 1, 1), c = case_matrix(N, N, BASE_FP32, 2, 1);
    cuda_gemm gemm = {.form = CUDA_GEMM_NT, .a = a, .b = a, .c = c};
    for (int less = LESS; less >= 0; less -= LESS) {
        device_matrix shown = c;
        shown.rows -= less;
        mirror_show_matrix(dev, &a);
        mirror_show_matrix(dev, &shown);
        assert_int_equal(cuda_gemm_run(dev, &gemm, &error), less > 0 ? SIFR_FAILED : SIFR_OK);
        mirror_forget(dev);
        if (less > 0) assert_non_null(strstr(error.message, "beside its operands"));
    }
    free(a.data);
    free(c.data);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_stay_one),
        cmocka_unit_test(writes_beside_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
