/* The gated delta rule of one sequence, 16 heads of 128 x 128 as in Qwen3.5 0.8B, forward and
 * backward: bench_delta LENGTH [bf16|fp32] [RUNS] [THREADS] [ISA]. One JSON object; `operations`
 * are the multiplications and additions of the recurrence in chunks, forward. */
#include "kernel_call.h"

enum { HEADS = 16, WIDTH = 128 };

int main(int argc, char **argv) {
    int64_t length = argc > 1 ? atoll(argv[1]) : 2048;
    base_dtype type = argc > 2 && !strcmp(argv[2], "fp32") ? BASE_FP32 : BASE_BF16;
    int runs = argc > 3 ? atoi(argv[3]) : 3, threads = argc > 4 ? atoi(argv[4]) : 0;
    const int64_t columns = (int64_t)HEADS * WIDTH;
    device *dev;
    sifr_error error = {0};
    if (length < 1 || runs < 1) return 2;
    bench_check(device_open_cpu(threads, argc > 5 ? argv[5] : NULL, &dev, &error), &error);
    device_call call = {.kernel = DEVICE_DELTA, .y = bench_matrix(dev, length, columns, type)};
    for (int i = 0; i < 5; i++)
        call.x[i] = bench_matrix(dev, length, i < 3 ? columns : HEADS, type);
    for (int i = 0; i < 2; i++) call.w[i] = bench_matrix(dev, 1, HEADS, type);
    call.attributes.delta = (device_delta_attributes){
        .key_heads = HEADS, .value_heads = HEADS, .sequences = 1, .length = length};
    printf("{\"length\": %lld, \"precision\": \"%s\", \"threads\": %d,\n", (long long)length,
           base_dtype_name(type), device_threads(dev));
    bench_time(dev, &call, runs, "forward");
    call.kernel = DEVICE_DELTA_BACKWARD;
    call.dy = bench_matrix(dev, length, columns, type);
    call.y = (device_matrix){0};
    for (int i = 0; i < 5; i++)
        call.dx[i] = bench_matrix(dev, length, i < 3 ? columns : HEADS, type);
    for (int i = 0; i < 2; i++) call.dw[i] = bench_matrix(dev, 1, HEADS, BASE_FP32);
    int64_t scratch = bench_time(dev, &call, runs, "backward");
    printf(" \"operations\": %lld, \"scratch\": %lld}\n",
           (long long)length * HEADS * (6 * WIDTH * WIDTH + 4 * 32 * 2 * WIDTH),
           (long long)scratch);
    device_close(dev);
    return 0;
}
