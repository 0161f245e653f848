#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "base/float_mode.h"
#include "base/half.h"
#include "support/cuda/least_gpu.h"
#include "support/cuda/shim.h"
#include "support/cuda/shim_kernels.h"
#include "support/cuda/shim_run.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(SIFR_SANITIZED)
#include <sanitizer/asan_interface.h>
#endif

#if defined(SIFR_SANITIZED)
enum { STACK = 512 << 10 };
#else
enum { STACK = 64 << 10 };
#endif

enum {
    ENTRY_FRAME = 4096,
    WARP = 32,
    LANE_WORDS = SHIM_LANE_WORDS,
    SHARED_GUARD = 64,
    FILL = 0xcd
};

SHIM_THREAD shim_index shim_thread, shim_block, shim_threads, shim_blocks;
SHIM_THREAD unsigned char *shim_shared;
SHIM_THREAD uint32_t *shim_lanes;

namespace {

#if defined(__x86_64__)
struct context {
    void *stack, *frame;
    const void *at;
};

/* Neither called nor returned from: a return would go elsewhere than the processor expects. What
 * runs next goes on behind a barrier as this does, so the returns that follow are as expected. */
inline __attribute__((always_inline)) void change(context *from, context *to) {
    asm volatile("movq %%rsp, (%0)\n\t"
                 "movq %%rbp, 8(%0)\n\t"
                 "leaq 1f(%%rip), %%rax\n\t"
                 "movq %%rax, 16(%0)\n\t"
                 "movq (%1), %%rsp\n\t"
                 "movq 8(%1), %%rbp\n\t"
                 "jmpq *16(%1)\n"
                 "1:"
                 : "+D"(from), "+S"(to)
                 :
                 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                   "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

void begin(context *out, char *stack, void (*entry)(void)) {
    void **top = reinterpret_cast<void **>(stack + STACK - 64);
    *--top = nullptr; /* entry does not return */
    *out = {top, nullptr, reinterpret_cast<const void *>(entry)};
}
#else
typedef ucontext_t context;

void change(context *from, context *to) {
    swapcontext(from, to);
}

void begin(context *out, char *stack, void (*entry)(void)) {
    getcontext(out);
    out->uc_stack.ss_sp = stack;
    out->uc_stack.ss_size = STACK;
    out->uc_link = nullptr;
    makecontext(out, entry, 0);
}
#endif

struct copy {
    void *to;
    const void *from;
    int bytes, valid, group;
};

struct fibre {
    context at;
    char *stack;              /* null: it has not begun */
    std::vector<copy> copies; /* started and not waited for */
    int group;
    unsigned turn; /* of results that its warp has made together */
};

/* Threads that meet at a barrier. */
struct meeting {
    unsigned alive, arrived, first, last;
};

/* Operands of a warp's next mma in FP32; what its last mma made, or its last load of matrices. */
struct result {
    float a[16 * 16], b[16 * 8];
    unsigned turn;
    union {
        float product[16 * 8];
        uint16_t rows[WARP][8];
    };
};

enum { BLOCKED = 1, DONE = 2 };

/* Of this thread of the host, kept from launch to launch: the system clears new memory page by
 * page, and each launch needs as much. */
struct run {
    std::vector<fibre> fibres;
    std::vector<unsigned> order, place; /* fibres in their order, and where each is in it */
    std::vector<unsigned char> stopped; /* of those in order: BLOCKED, DONE, or 0: it can go on */
    std::vector<meeting> warps;
    std::vector<uint32_t> lanes;
    std::vector<result> results;
    std::vector<unsigned char> shared;
    std::vector<char *> stacks; /* that no fibre uses */
    meeting block;
    context scheduler;
    size_t at; /* in order, of the fibre that runs */
    bool by_warp;
    bool released; /* threads can go on that could not */
    shim_kernel *kernel;
    const void *arguments;
    ~run() {
        for (char *stack : stacks) free(stack);
    }
};

thread_local run kept;
SHIM_THREAD run *now;

fibre &running(void) {
    return now->fibres[shim_thread.x];
}

void entry(void);

void give_stack(fibre &f) {
#if defined(SIFR_SANITIZED)
    /* entry() does not return, so its frame would stay marked for the next thread here. */
    ASAN_UNPOISON_MEMORY_REGION(f.stack + STACK - ENTRY_FRAME, ENTRY_FRAME);
#endif
    begin(&f.at, f.stack, entry);
}

void take_stack(fibre &f) {
    if (now->stacks.empty()) {
        f.stack = static_cast<char *>(aligned_alloc(64, STACK));
    } else {
        f.stack = now->stacks.back();
        now->stacks.pop_back();
    }
    give_stack(f);
}

/* The first in order that can go on, behind the one that ran; from the start, if that let others go
 * on, or with the two plain orders from the start of its warp. Null where none can. */
fibre *choose(void) {
    run &r = *now;
    const unsigned char *stopped = r.stopped.data(), *found = nullptr;
    size_t count = r.stopped.size(), from = r.at + 1;
    if (r.released) from = r.by_warp ? r.at / WARP * WARP : 0;
    r.released = false;
    if (from < count)
        found = stopped[from] ? (const unsigned char *)memchr(stopped + from, 0, count - from)
                              : stopped + from;
    if (!found) found = (const unsigned char *)memchr(stopped, 0, count);
    if (!found) return nullptr;
    r.at = (size_t)(found - stopped);
    shim_thread.x = r.order[r.at];
    return &running();
}

/* Whichever can goes on in place of this one. */
void yield(void) {
    context *own = &running().at;
    fibre *next = choose();
    if (!next) {
        change(own, &now->scheduler);
        return;
    }
    if (!next->stack) take_stack(*next);
    if (&next->at != own) change(own, &next->at);
}

void release(meeting &m) {
    now->released = true;
    m.arrived = 0;
    for (unsigned i = m.first; i < m.last; i++)
        now->stopped[now->place[i]] &= (unsigned char)~BLOCKED;
}

/* Also the last to arrive yields: who goes on first is the scheduler's choice. */
void meet(meeting &m) {
    now->stopped[now->at] |= BLOCKED;
    if (++m.arrived == m.alive) release(m);
    yield();
}

void leave(meeting &m) {
    if (--m.alive && m.arrived == m.alive) release(m);
}

/* One thread, and on the same stack those after it that have not begun. */
void entry(void) {
    for (;;) {
        now->kernel(now->arguments);
        fibre &own = running();
        now->stopped[now->at] = DONE; /* those that wait for it need not any more */
        if (!own.copies.empty()) {
            fprintf(stderr, "shim: a thread ends with copies that it has not waited for\n");
            abort();
        }
        leave(now->warps[shim_thread.x / WARP]);
        leave(now->block);
        char *stack = own.stack;
        own.stack = nullptr;
        fibre *next = choose();
        if (next && !next->stack) {
            next->stack = stack;
            continue;
        }
        now->stacks.push_back(stack);
        change(&own.at, next ? &next->at : &now->scheduler);
        abort();
    }
}

void start_block(void) {
    unsigned count = (unsigned)now->fibres.size();
    now->block = {count, 0, 0, count};
    for (unsigned w = 0; w < now->warps.size(); w++) {
        unsigned last = (w + 1) * WARP < count ? (w + 1) * WARP : count;
        now->warps[w] = {last - w * WARP, 0, w * WARP, last};
        now->results[w].turn = 0;
    }
    for (fibre &f : now->fibres) f.group = 0, f.turn = 0;
    memset(now->stopped.data(), 0, count);
    memset(now->shared.data(), FILL, now->shared.size());
}

void run_block(void) {
    start_block();
    now->at = 0;
    now->released = true;
    fibre *first = choose();
    take_stack(*first);
    change(&now->scheduler, &first->at);
    if (now->block.alive == 0) return;
    fprintf(stderr,
            "shim: block %u, %u, %u: threads wait at a barrier that the others do not reach\n",
            shim_block.x, shim_block.y, shim_block.z);
    abort();
}

void check_guard(void) {
    const unsigned char *end = now->shared.data() + now->shared.size();
    for (int i = 1; i <= SHARED_GUARD; i++) {
        if (end[-i] == FILL) continue;
        fprintf(stderr, "shim: a thread wrote behind the shared memory of its launch\n");
        abort();
    }
}

std::vector<unsigned> make_order(size_t count, int order) {
    std::vector<unsigned> out(count);
    uint64_t state = (uint64_t)order * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < count; i++) out[i] = (unsigned)(order == SHIM_DOWN ? count - 1 - i : i);
    for (size_t i = count; order > SHIM_DOWN && i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t j = (size_t)(state >> 33) % i;
        unsigned kept = out[i - 1];
        out[i - 1] = out[j];
        out[j] = kept;
    }
    return out;
}

} // namespace

void shim_sync_block(void) {
    meet(now->block);
}

void shim_sync_warp(void) {
    meet(now->warps[shim_thread.x / WARP]);
}

static void multiply(result *out) {
    for (unsigned row = 0; row < 16; row++) {
        float sums[8] = {0};
        for (unsigned k = 0; k < 16; k++) {
            const float a = out->a[row * 16 + k], *b = out->b + k * 8;
            for (unsigned column = 0; column < 8; column++) sums[column] += a * b[column];
        }
        memcpy(out->product + row * 8, sums, sizeof sums);
    }
}

/* The result that the warp's threads make together after they have all shown their operands: the
 * first one to go on makes it. It stays until all threads meet once more, and until then they have
 * read it. */
static result *make_result(bool *first) {
    result *out = &now->results[shim_thread.x / WARP];
    unsigned turn = ++running().turn;
    *first = out->turn != turn;
    out->turn = turn;
    return out;
}

/* A fragment is 8 x 8 numbers, of which each lane has two side by side. The last product is made
 * when operands of the next one come. */
template <float (*widen)(uint16_t)>
static void mma(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]) {
    const unsigned lane = shim_lane_id(), side = lane / 4, pair = lane % 4 * 2;
    result *out = &now->results[shim_thread.x / WARP];
    bool first;
    for (unsigned part = 0; part < 4; part++) {
        float *to = out->a + (part % 2 * 8 + side) * 16 + part / 2 * 8 + pair;
        to[0] = widen((uint16_t)a[part]);
        to[1] = widen((uint16_t)(a[part] >> 16));
    }
    for (unsigned part = 0; part < 2; part++) {
        float *to = out->b + (part * 8 + pair) * 8 + side;
        to[0] = widen((uint16_t)b[part]);
        to[8] = widen((uint16_t)(b[part] >> 16));
    }
    shim_sync_warp();
    make_result(&first);
    if (first) multiply(out);
    const float *of = out->product + side * 8 + pair;
    d[0] = c[0] + of[0];
    d[1] = c[1] + of[1];
    d[2] = c[2] + of[8 * 8];
    d[3] = c[3] + of[8 * 8 + 1];
}

void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]) {
    mma<base_bf16_to_float>(d, a, b, c);
}

void mma_fp16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]) {
    mma<base_half_to_float>(d, a, b, c);
}

void shim_load_matrices(uint32_t out[4], const void *row, bool transposed) {
    unsigned lane = shim_lane_id();
    bool first;
    if ((uintptr_t)row % 16 != 0) {
        fprintf(stderr, "shim: a row of load_matrices is not aligned to 16 bytes\n");
        abort();
    }
    memcpy(shim_lane(lane), row, 16);
    shim_sync_warp();
    result *rows = make_result(&first);
    if (first)
        for (unsigned l = 0; l < WARP; l++) memcpy(rows->rows[l], shim_lane(l), 16);
    for (unsigned m = 0; m < 4; m++) {
        uint32_t pair[2];
        for (unsigned h = 0; h < 2; h++) {
            unsigned r = transposed ? lane % 4 * 2 + h : lane / 4;
            unsigned c = transposed ? lane / 4 : lane % 4 * 2 + h;
            pair[h] = rows->rows[m * 8 + r][c];
        }
        out[m] = pair[0] | pair[1] << 16;
    }
}

/* Done at the wait alone, so that a missing wait shows. */
void shim_copy_async(void *shared, const void *global, int bytes, int valid) {
    if ((uintptr_t)shared % bytes != 0 || (uintptr_t)global % bytes != 0) {
        fprintf(stderr, "shim: copy_async of %d bytes is not aligned to them\n", bytes);
        abort();
    }
    fibre &own = running();
    own.copies.push_back({shared, global, bytes, valid, own.group});
}

void shim_copy_commit(void) {
    running().group++;
}

void shim_copy_wait(int groups) {
    fibre &own = running();
    size_t left = 0;
    for (const copy &c : own.copies) {
        if (c.group >= own.group - groups) {
            own.copies[left++] = c;
            continue;
        }
        memset(c.to, 0, (size_t)c.bytes);
        memcpy(c.to, c.from, (size_t)c.valid);
    }
    own.copies.resize(left, copy());
}

/* As a driver would refuse it: of any GPU that there are kernels for. */
static void check_launch(const cuda_launch *launch) {
    unsigned most = *shim_most_threads[launch->kernel];
    if (launch->threads <= most && launch->shared_bytes <= LEAST_GPU_SHARED) return;
    fprintf(stderr, "shim: kernel %s: a block of %u threads with %u bytes; at most %u and %d\n",
            cuda_kernel_name(launch->kernel), launch->threads, launch->shared_bytes, most,
            (int)LEAST_GPU_SHARED);
    abort();
}

void shim_run(const cuda_launch *launch, int order) {
    check_launch(launch);
    shim_run_kernel(shim_kernels[launch->kernel], cuda_argument_bytes(launch->kernel), launch,
                    order);
}

void shim_run_kernel(shim_kernel *kernel, size_t bytes, const cuda_launch *launch, int order) {
    run &r = kept;
    unsigned before = base_flush_floats();
    size_t count = launch->threads, warps = (count + WARP - 1) / WARP;
    unsigned char arguments[1024];
    if (bytes > sizeof arguments) abort();
    memcpy(arguments, launch->arguments, bytes);
    now = &r;
    r.kernel = kernel;
    r.arguments = arguments;
    r.by_warp = order <= SHIM_DOWN;
    r.fibres.resize(count);
    r.stopped.resize(count);
    r.warps.resize(warps);
    r.results.assign(warps, result());
    r.lanes.assign(warps * WARP * LANE_WORDS, 0);
    r.shared.resize(launch->shared_bytes + SHARED_GUARD + 128);
    shim_lanes = r.lanes.data();
    shim_shared = reinterpret_cast<unsigned char *>(((uintptr_t)r.shared.data() + 127) / 128 * 128);
    r.shared.resize((size_t)(shim_shared - r.shared.data()) + launch->shared_bytes + SHARED_GUARD);
    r.order = make_order(count, order);
    r.place.resize(count);
    for (size_t i = 0; i < count; i++) r.place[r.order[i]] = (unsigned)i;
    shim_thread = {0, 0, 0};
    shim_threads = {launch->threads, 1, 1};
    shim_blocks = {(unsigned)launch->blocks[0], (unsigned)launch->blocks[1],
                   (unsigned)launch->blocks[2]};
    size_t blocks = (size_t)(launch->blocks[0] * launch->blocks[1] * launch->blocks[2]);
    std::vector<unsigned> block_order = make_order(blocks, order);
    for (unsigned b : block_order) {
        shim_block = {b % shim_blocks.x, b / shim_blocks.x % shim_blocks.y,
                      b / shim_blocks.x / shim_blocks.y};
        run_block();
        check_guard();
    }
    now = nullptr;
    base_restore_floats(before);
}
