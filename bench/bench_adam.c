/* One AdamW step over flat parameters: bench_adam [ELEMENTS] [RUNS], in fp32 (28 bytes an element
 * are read and written) and with the bf16 copy that is trained (30). One JSON object. */
#include "kernel_call.h"

int main(int argc, char **argv) {
    int64_t count = argc > 1 ? atoll(argv[1]) : 100000000;
    int runs = argc > 2 ? atoi(argv[2]) : 5;
    device *dev;
    sifr_error error = {0};
    if (count < 1 || runs < 1) return 2;
    bench_check(device_open_cpu(0, NULL, &dev, &error), &error);
    device_step step = {.update_scale = 1,
                        .learning_rate = 1e-4f,
                        .beta1 = 0.9f,
                        .beta2 = 0.999f,
                        .correction1 = 0.1f,
                        .correction2 = 1e-3f,
                        .training = true,
                        .update = true};
    device_call call = {.kernel = DEVICE_ADAM,
                        .x = {bench_matrix(dev, 1, count, BASE_FP32)},
                        .w = {bench_matrix(dev, 1, count, BASE_FP32)},
                        .step = &step};
    for (int i = 0; i < 2; i++)
        call.saved[i] = (device_matrix){bench_take(dev, count * 4), 1, count, count, BASE_FP32};
    call.attributes.update.epsilon = 1e-8f;
    call.attributes.update.lr_scale = 1.0f;
    call.attributes.update.decoupled = true;
    printf("{\"elements\": %lld,\n", (long long)count);
    bench_time(dev, &call, runs, "fp32");
    call.w[1] = bench_matrix(dev, 1, count, BASE_BF16);
    bench_time(dev, &call, runs, "bf16");
    printf(" \"bytes_fp32\": %lld, \"bytes_bf16\": %lld}\n", (long long)(28 * count),
           (long long)(30 * count));
    device_close(dev);
    return 0;
}
