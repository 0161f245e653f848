/* CUDA kernels as C++ of the host: the other half of device/cuda/kernel.h. Blocks run one after the
 * other; the threads of a block are fibres, and a barrier is a switch between them. Between
 * barriers, fibres run one after the other in an order that the test chooses, each as far as it
 * can, so that what lacks a barrier shows in the results. */
#ifndef SUPPORT_CUDA_SHIM_H
#define SUPPORT_CUDA_SHIM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

struct alignas(8) uint2 {
    uint32_t x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(8) float2 {
    float x, y;
};

struct shim_index {
    unsigned x, y, z;
};

/* Of the fibre that runs: a block has one row of threads. Not thread_local, of which each use would
 * ask whether it is made yet; and no library that is loaded later has them. */
#define SHIM_THREAD __thread __attribute__((tls_model("initial-exec")))
extern SHIM_THREAD shim_index shim_thread, shim_block, shim_threads, shim_blocks;
extern SHIM_THREAD unsigned char *shim_shared;
extern SHIM_THREAD uint32_t *shim_lanes;
enum { SHIM_LANE_WORDS = 8 };

#define threadIdx shim_thread
#define blockIdx shim_block
#define blockDim shim_threads
#define gridDim shim_blocks

#define KERNEL(name, type, threads)                                                                \
    extern "C" {                                                                                   \
    extern const unsigned sifr_threads_##name;                                                     \
    const unsigned sifr_threads_##name = threads;                                                  \
    }                                                                                              \
    extern "C" void sifr_##name(const type a)
#define DEVICE static inline
#define DEVICE_MEMBER static inline
#define DEVICE_TABLE static const
#define SHARED(type, name, count) static thread_local type name[count]
#define SHARED_DYNAMIC(type, name) type *name = (type *)shim_shared
#define __restrict__ __restrict

void shim_sync_block(void);
void shim_sync_warp(void);
void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]);
void mma_fp16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]);
void shim_load_matrices(uint32_t out[4], const void *row, bool transposed);
void shim_copy_async(void *shared, const void *global, int bytes, int valid);
void shim_copy_commit(void);
void shim_copy_wait(int groups);

static inline unsigned shim_lane_id(void) {
    return shim_thread.x % 32;
}

/* 32 bytes that a thread shows the others of its warp. */
static inline uint32_t *shim_lane(unsigned lane) {
    return shim_lanes + (shim_thread.x / 32 * 32 + lane) * SHIM_LANE_WORDS;
}

static inline void __syncthreads(void) {
    shim_sync_block();
}

static inline void __syncwarp(unsigned = ~0u) {
    shim_sync_warp();
}

/* All threads of a warp take part. */
template <class T> static inline T shim_shuffle(T value, unsigned from) {
    static_assert(sizeof(T) <= 32, "a lane shows 32 bytes");
    T out;
    memcpy(shim_lane(shim_lane_id()), &value, sizeof value);
    shim_sync_warp();
    memcpy(&out, shim_lane(from), sizeof out);
    shim_sync_warp();
    return out;
}

template <class T> static inline T __shfl_sync(unsigned, T value, int from) {
    return shim_shuffle(value, (unsigned)from % 32);
}

template <class T> static inline T __shfl_xor_sync(unsigned, T value, int mask) {
    return shim_shuffle(value, shim_lane_id() ^ (unsigned)mask);
}

template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned by) {
    unsigned lane = shim_lane_id();
    return shim_shuffle(value, lane + by < 32 ? lane + by : lane);
}

template <class T> static inline T __shfl_up_sync(unsigned, T value, unsigned by) {
    unsigned lane = shim_lane_id();
    return shim_shuffle(value, lane >= by ? lane - by : lane);
}

static inline unsigned __ballot_sync(unsigned, int predicate) {
    unsigned out = 0, lane = shim_lane_id();
    shim_lane(lane)[0] = predicate != 0;
    shim_sync_warp();
    for (unsigned l = 0; l < 32; l++) out |= shim_lane(l)[0] << l;
    shim_sync_warp();
    return out;
}

/* Of integers: additions of floats would depend on the order. */
static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value) {
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void load_matrices(uint32_t out[4], const void *row) {
    shim_load_matrices(out, row, false);
}

static inline void load_matrices_transposed(uint32_t out[4], const void *row) {
    shim_load_matrices(out, row, true);
}

static inline void copy_async(void *shared, const void *global, int valid) {
    shim_copy_async(shared, global, 16, valid);
}

static inline void copy_async4(void *shared, const void *global, bool valid) {
    shim_copy_async(shared, global, 4, valid ? 4 : 0);
}

static inline void copy_commit(void) {
    shim_copy_commit();
}

template <int groups> static inline void copy_wait(void) {
    shim_copy_wait(groups);
}

#endif
