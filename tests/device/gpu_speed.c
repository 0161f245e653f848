/* Rates of products and attention by shape, on this machine's first GPU with SIFR_TEST_GPU=1, else
 * in small on the driver that tests play: gpu_speed [BF16 FP32 [bf16]]. BF16, FP32: operations per
 * second that a machine file says, to be written beside; the last word leaves fp32 out. Products as
 * in training: by cuBLASLt where it is found, with SIFR_CUDA_PRODUCTS=own by sifr's own kernels;
 * each row says which. A table; scripts/gpu-check.sh takes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_gpu.h"
#include "support/cuda/gpu_work.h"
#include "support/cuda/shim_run.h"

/* Who computed since `before`. */
static const char *computed_by(const device *dev, const device_ran *before) {
    device_ran now;
    device_ran_of(dev, &now);
    if (now.library_products == before->library_products) return "own";
    return now.own_products == before->own_products ? "cuBLASLt" : "cuBLASLt and own";
}

static sifr_status time_shape(device *dev, const gpu_shape *shape, base_dtype type, double rate,
                              sifr_error *error) {
    static const char *const parts[] = {"forward", "backward"};
    double enough = fake_gpu_is_real() ? 0.02 : 0;
    gpu_work work;
    sifr_status status = gpu_work_open(&work, dev, shape, type, 1, error);
    for (int part = 0; part < GPU_PARTS && status == SIFR_OK; part++) {
        double seconds = 0;
        device_ran before;
        device_ran_of(dev, &before);
        status = gpu_work_time(&work, (gpu_part)part, enough, &seconds, error);
        if (status != SIFR_OK) break;
        double reached = work.operations[part] / seconds;
        printf("| %s %s, %s | %s | %s | %.1f | %.2f |", shape->name,
               shape->heads ? "attention" : "product", parts[part], base_dtype_name(type),
               computed_by(dev, &before), 1e6 * seconds, 1e-12 * reached);
        if (rate > 0)
            printf(" %.0f %% |\n", 100 * reached / rate);
        else
            printf(" |\n");
        fflush(stdout);
    }
    gpu_work_close(&work);
    return status;
}

static sifr_status time_all(const double rates[2], int types_wanted, sifr_error *error) {
    static const base_dtype types[] = {BASE_BF16, BASE_FP32};
    size_t count;
    const gpu_shape *shapes = gpu_shapes(!fake_gpu_is_real(), &count);
    device *dev;
    BASE_TRY(fake_gpu_has_lt() ? fake_gpu_open_lt(&dev, error) : fake_gpu_open(&dev, error));
    sifr_status status = SIFR_OK;
    printf("| | type | by | us | TFLOP/s | of the machine file |\n|---|---|---|---|---|---|\n");
    for (int t = 0; t < types_wanted; t++)
        for (size_t i = 0; i < count && status == SIFR_OK; i++)
            status = time_shape(dev, &shapes[i], types[t], rates[t], error);
    device_close(dev);
    return status;
}

int main(int count, char **arguments) {
    double rates[2] = {count > 2 ? strtod(arguments[1], NULL) : 0,
                       count > 2 ? strtod(arguments[2], NULL) : 0};
    bool bf16_alone = count > 3 && strcmp(arguments[3], "bf16") == 0;
    sifr_error error = {0};
    if (shim_skipped()) return 77;
    if (fake_gpu_start(NULL) != 0) return 1;
    sifr_status status = time_all(rates, bf16_alone ? 1 : 2, &error);
    if (status != SIFR_OK) fprintf(stderr, "gpu_speed: %s\n", error.message);
    fake_gpu_stop(NULL);
    return status == SIFR_OK ? 0 : 1;
}
