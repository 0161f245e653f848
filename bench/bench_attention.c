/* Causal attention of one sequence, 12 heads of 64, forward and backward:
 * bench_attention LENGTH [bf16|fp32] [RUNS]. One JSON object; `bytes` are those of all operands and
 * of the larger scratch. */
#include <math.h>

#include "kernel_call.h"

enum { HEADS = 12, WIDTH = 64 };

int main(int argc, char **argv) {
    int64_t length = argc > 1 ? atoll(argv[1]) : 1024;
    base_dtype type = argc > 2 && !strcmp(argv[2], "fp32") ? BASE_FP32 : BASE_BF16;
    int runs = argc > 3 ? atoi(argv[3]) : 3;
    const int64_t columns = (int64_t)HEADS * WIDTH;
    device *dev;
    sifr_error error = {0};
    if (length < 1 || runs < 1) return 2;
    bench_check(device_open_cpu(0, NULL, &dev, &error), &error);
    device_step step = {.seed = 1, .training = true};
    device_call call = {.kernel = DEVICE_ATTENTION,
                        .y = bench_matrix(dev, length, columns, type),
                        .saved = {bench_matrix(dev, HEADS, length, BASE_FP32)},
                        .step = &step};
    for (int i = 0; i < 3; i++) call.x[i] = bench_matrix(dev, length, columns, type);
    call.attributes.attention.heads = call.attributes.attention.kv_heads = HEADS;
    call.attributes.attention.head_dim = WIDTH;
    call.attributes.attention.sequences = 1;
    call.attributes.attention.length = length;
    call.attributes.attention.scale = (float)(1 / sqrt(WIDTH));
    printf("{\"length\": %lld, \"precision\": \"%s\",\n", (long long)length, base_dtype_name(type));
    int64_t scratch = bench_time(dev, &call, runs, "forward");
    call.kernel = DEVICE_ATTENTION_BACKWARD;
    call.dy = bench_matrix(dev, length, columns, type);
    for (int i = 0; i < 3; i++) call.dx[i] = bench_matrix(dev, length, columns, type);
    int64_t more = bench_time(dev, &call, runs, "backward");
    int64_t operands =
        8 * length * columns * base_dtype_bytes(type) + HEADS * length * (int64_t)sizeof(float);
    printf(" \"bytes\": %lld}\n", (long long)(operands + (more > scratch ? more : scratch)));
    device_close(dev);
    return 0;
}
