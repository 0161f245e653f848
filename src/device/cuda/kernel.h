/* What CUDA sources are written in. nvcc compiles them for GPUs; a C++ compiler compiles the same
 * text for the host, where tests run it (tests/support/cuda/shim.h). A kernel takes one struct by
 * value. Kernels of class A give the same bits on both: only IEEE operations, in an order that
 * shapes alone decide. Numbers of 16 bits are uint16_t in memory. */
#ifndef CUDA_KERNEL_H
#define CUDA_KERNEL_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "base/random.h"

#ifdef __CUDACC__

/* `threads`: the most threads of a block. */
#define KERNEL(name, type, threads)                                                                \
    extern "C" __global__ void __launch_bounds__(threads) sifr_##name(const type a)
#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER static __device__ __forceinline__
/* Before the type of constants that kernels read. */
#define DEVICE_TABLE static __device__ const
/* Memory that the threads of a block share: of a fixed size, and of the size in the launch. */
#define SHARED(type, name, count) __shared__ type name[count]
#define SHARED_DYNAMIC(type, name)                                                                 \
    extern __shared__ __align__(128) unsigned char cuda_shared[];                                  \
    type *name = (type *)cuda_shared

/* d = a b + c of a warp: a 16 x 16, b 16 x 8, d and c 16 x 8 in FP32; fragments as PTX has them. */
DEVICE void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]),
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

DEVICE void mma_fp16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]),
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/* Four 8 x 8 matrices of 16-bit numbers from shared memory; lane l gives the address of row l % 8
 * of matrix l / 8. */
DEVICE void load_matrices(uint32_t out[4], const void *row) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

/* The same, transposed. */
DEVICE void load_matrices_transposed(uint32_t out[4], const void *row) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

/* Starts a copy of 16 bytes from global to shared memory, both aligned; the bytes from `valid` on
 * become 0. */
DEVICE void copy_async(void *shared, const void *global, int valid) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(global), "r"(valid)
                 : "memory");
}

/* The same with 4 bytes, or none. */
DEVICE void copy_async4(void *shared, const void *global, bool valid) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(global),
                 "r"(valid ? 4 : 0)
                 : "memory");
}

/* Ends a group of copies; copy_wait<N>() waits for all but the last N groups of this thread. */
DEVICE void copy_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int groups> DEVICE void copy_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

#else
#include "shim.h"
#endif

/* The types of activations: what a kernel's template takes. */
struct fp32 {
    typedef float stored;
    DEVICE_MEMBER float load(float value) {
        return value;
    }
    DEVICE_MEMBER float store(float value) {
        return value;
    }
};

struct bf16 {
    typedef uint16_t stored;
    DEVICE_MEMBER float load(uint16_t bits) {
        return base_bf16_to_float(bits);
    }
    DEVICE_MEMBER uint16_t store(float value) {
        return base_bf16_from_float(value);
    }
};

struct fp16 {
    typedef uint16_t stored;
    DEVICE_MEMBER float load(uint16_t bits) {
        return base_half_to_float(bits);
    }
    DEVICE_MEMBER uint16_t store(float value) {
        return base_half_from_float(value);
    }
};

#endif
