/* A GPU that is only described: what it prepares is what a device with the same kernels prepares,
 * its plans need no GPU, and all that would need one is refused by name. */
#include "device/cuda/cuda_dispatch.h"
#include "device/kinds.h"
#include "support/cuda/shim_run.h"
#include "support/disk_plan.h"

static device *described;

static int setup(void **state) {
    sifr_error error = {0};
    device_description gpu = {.compute_capability = 86, .multiprocessors = 84};
    return disk_plan_setup(state) ||
           device_open_described(SIFR_DEVICE_CUDA, 1, &gpu, &described, &error);
}

static int teardown(void **state) {
    device_close(described);
    return disk_plan_teardown(state);
}

static void says(void **state) {
    (void)state;
    char text[200], small[20];
    device_describe(described, text, sizeof text);
    assert_string_equal(text, "cuda, described, compute capability 8.6, 84 multiprocessors");
    device_describe(described, small, sizeof small);
    assert_string_equal(small, "cuda, described, co");
    assert_string_equal(device_isa(described), "cuda");
    assert_true(device_is_separate(described));
    assert_int_equal(device_threads(described), 1);
    device *bare;
    device_description nothing = {0};
    assert_int_equal(device_open_described(SIFR_DEVICE_CUDA, 2, &nothing, &bare, NULL), SIFR_OK);
    device_describe(bare, text, sizeof text);
    assert_string_equal(text, "cuda, described");
    device_close(bare);
}

static void expect_refusal(sifr_status status, const sifr_error *error, const char *what) {
    assert_int_equal(status, SIFR_USAGE);
    assert_non_null(strstr(error->message, what));
    assert_non_null(strstr(error->message, "this GPU is only described"));
}

static void refusals(void **state) {
    (void)state;
    sifr_error error = {0};
    device_limits limits;
    float number = 7;
    void *block;
    int file;
    device_call call = {.kernel = DEVICE_CLEAR,
                        .y = {.data = &number, 1, .columns = 1, .stride = 1, .dtype = BASE_FP32}};
    assert_int_equal(device_prepare(described, &call, &error), SIFR_OK);
    expect_refusal(device_run(described, &call, &error), &error, "clear: ");
    assert_true(number == 7);
    expect_refusal(device_measure(described, NULL, DEVICE_MEASURE_BYTES, &limits, &error), &error,
                   "measuring");
    expect_refusal(device_take(described, 4096, &block, &error), &error, "device memory");
    expect_refusal(device_take_host(described, 4096, &block, &error), &error, "host memory");
    expect_refusal(device_take_shared(described, 4096, &block, &file, &error), &error, "shared");
    expect_refusal(device_copy(described, &number, &number, 4, &error), &error, "a copy");
    call.y.dtype = BASE_NONE; /* operands are checked as for any device */
    assert_int_equal(device_prepare(described, &call, &error), SIFR_USAGE);
    assert_null(strstr(error.message, "described"));
}

static plan_settings settings_of(int n) {
    static const sifr_precision types[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    plan_settings settings = disk_plan_settings(1, 0, types[n % 3], (sifr_offload){0});
    settings.step.micro_batch_size = n % 2 ? 1 : 80;
    settings.step.recompute = n % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
    return settings;
}

/* A kernel that GPUs have needs the same scratch, one that they do not have is named. */
static void expect_same(device *shim, const device_call *of) {
    device_call here = *of, there = *of;
    sifr_error error = {0}, other = {0};
    sifr_status status = device_prepare(described, &here, &error);
    assert_int_equal(status, device_prepare(shim, &there, &other));
    if (status != SIFR_OK) assert_string_equal(error.message, other.message);
    if (cuda_has(of->kernel)) {
        if (status == SIFR_OK) assert_int_equal(here.scratch_bytes, there.scratch_bytes);
        return;
    }
    assert_int_equal(status, SIFR_USAGE);
    assert_non_null(strstr(error.message, device_kernel_name(of->kernel)));
    assert_non_null(strstr(error.message, "not built for GPUs yet"));
}

static void same_preparation(void **state) {
    (void)state;
    device *shim;
    assert_int_equal(device_open_shim(SHIM_UP, &shim, NULL), SIFR_OK);
    for (int n = 0; n < 6; n++) {
        plan_settings settings = settings_of(n);
        plan_schedule *s = disk_plan_lower(&settings);
        assert_true(s->call_count > 0);
        for (size_t c = 0; c < s->call_count; c++) expect_same(shim, &s->calls[c]);
        plan_free(s);
    }
    device_close(shim);
}

/* Whether GPUs have all kernels of the plan. */
static bool all_built(const plan_schedule *s) {
    for (size_t c = 0; c < s->call_count; c++) {
        if (!cuda_has(s->calls[c].kernel)) return false;
    }
    return true;
}

static void expect_plan(const plan_settings *settings, const plan_schedule *of_cpu) {
    sifr_error error = {0};
    plan_schedule *s = NULL;
    sifr_status status = plan_lower(model, described, settings, &s, &error);
    if (!all_built(of_cpu)) {
        assert_int_equal(status, SIFR_USAGE);
        assert_non_null(strstr(error.message, "not built for GPUs yet"));
        return;
    }
    if (status != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(s->instruction_count, of_cpu->instruction_count);
    assert_int_equal(s->peak_bytes[PLAN_PARAMETERS], of_cpu->peak_bytes[PLAN_PARAMETERS]);
    plan_free(s);
}

static void plans(void **state) {
    (void)state;
    for (int n = 0; n < 6; n++) {
        plan_settings settings = settings_of(n);
        plan_schedule *of_cpu = disk_plan_lower(&settings);
        expect_plan(&settings, of_cpu);
        plan_free(of_cpu);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says), cmocka_unit_test(refusals),
                                       cmocka_unit_test(same_preparation), cmocka_unit_test(plans)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
