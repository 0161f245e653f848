#include "support/cuda/planted.h"

#include "base/half.h"
#include "support/cuda/shim.h"
#include "support/cuda/shim_kernels.h"
#include "support/cuda/shim_run.h"

namespace {
struct arguments {
    const float *in;
    float *out;
    int faulty;
};

enum { COUNT = PLANTED_THREADS };

void early_read(const void *from) {
    const arguments &a = *static_cast<const arguments *>(from);
    SHARED(float, shown, COUNT);
    unsigned t = threadIdx.x;
    shown[t] = a.in[t];
    if (!a.faulty) __syncthreads();
    a.out[t] = shown[(t + 1) % COUNT];
    __syncthreads();
    shown[t] = 0;
}

void early_write(const void *from) {
    const arguments &a = *static_cast<const arguments *>(from);
    SHARED(float, shown, COUNT);
    unsigned t = threadIdx.x;
    shown[t] = a.in[t];
    __syncthreads();
    float next = shown[(t + 1) % COUNT];
    if (!a.faulty) __syncthreads();
    shown[t] = next;
    __syncthreads();
    a.out[t] = shown[(t + 1) % COUNT];
}

void early_copy(const void *from) {
    const arguments &a = *static_cast<const arguments *>(from);
    SHARED(uint4, shown, COUNT / 4);
    unsigned t = threadIdx.x;
    if (t < COUNT / 4) {
        shown[t] = uint4();
        shim_copy_async(&shown[t], a.in + 4 * t, 16, 16);
        shim_copy_commit();
        if (!a.faulty) shim_copy_wait(0);
    }
    __syncthreads();
    memcpy(&a.out[t], reinterpret_cast<const char *>(shown) + 4 * t, sizeof *a.out);
    if (a.faulty) shim_copy_wait(0);
}
} // namespace

void planted_run(planted_fault fault, int faulty, int order, const float *in, float *out) {
    shim_kernel *const kernels[PLANTED_FAULTS] = {early_read, early_write, early_copy};
    arguments a = {in, out, faulty};
    cuda_launch launch = {};
    launch.blocks[0] = launch.blocks[1] = launch.blocks[2] = 1;
    launch.threads = PLANTED_THREADS;
    launch.arguments = &a;
    shim_run_kernel(kernels[fault], sizeof a, &launch, order);
}

int planted_turn(planted_fault fault) {
    const int turns[PLANTED_FAULTS] = {1, 2, 0};
    return turns[fault];
}
