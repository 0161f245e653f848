#include "support/cuda/op_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_gpu.h"
#include "support/cuda/mirror.h"
#include "support/cuda/shim_run.h"

static device *the_gpu; /* opening one takes its time */

op_gpu op_gpu_kind(void) {
    const char *value = getenv("SIFR_TEST_GPU");
    if (fake_gpu_is_real()) return OP_GPU_REAL;
    return value && strcmp(value, "fake") == 0 ? OP_GPU_FAKE : OP_GPU_SHIM;
}

static void close_gpu(void) {
    device_close(the_gpu);
    fake_gpu_stop(NULL);
}

static sifr_status open_gpu(sifr_error *error) {
    if (the_gpu) return SIFR_OK;
    if (fake_gpu_start(NULL) != 0) return base_fail(error, SIFR_FAILED, "no GPU to test");
    BASE_TRY(fake_gpu_open(&the_gpu, error));
    return atexit(close_gpu) == 0 ? SIFR_OK : base_fail(error, SIFR_FAILED, "atexit");
}

sifr_status op_gpu_open_kind(op_gpu kind, int order, device **out, sifr_error *error) {
    if (kind == OP_GPU_SHIM) return device_open_shim(order, out, error);
    BASE_TRY(open_gpu(error));
    return device_open_mirror(the_gpu, out, error);
}

sifr_status op_gpu_open(int order, device **out, sifr_error *error) {
    return op_gpu_open_kind(op_gpu_kind(), order, out, error);
}
