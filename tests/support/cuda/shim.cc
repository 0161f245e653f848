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

enum { ENTRY_FRAME = 4096, WARP = 32, LANE_WORDS = 8, SHARED_GUARD = 64, FILL = 0xcd };

thread_local shim_index shim_thread, shim_block, shim_threads, shim_blocks;
thread_local unsigned char *shim_shared;

namespace {

#if defined(__x86_64__)
typedef void *context;
extern "C" void shim_switch(void **from, void *to);
asm(".text\n"
    ".globl shim_switch\n"
    "shim_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
    "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n"
    "    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n");

void change(context *from, context *to) {
    shim_switch(from, *to);
}

void begin(context *out, char *stack, void (*entry)(void)) {
    void **top = reinterpret_cast<void **>(stack + STACK - 64);
    *--top = nullptr; /* entry does not return */
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    *out = top;
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
    char *stack;
    bool done, blocked;
    shim_index index;
    std::vector<copy> copies; /* started and not waited for */
    int group;
    unsigned turn; /* of results that its warp has made together */
};

/* Threads that meet at a barrier. */
struct meeting {
    unsigned alive, arrived, first, last;
};

/* Of a warp's last mma, or load of matrices. */
struct result {
    unsigned turn;
    union {
        float product[16 * 8];
        uint16_t rows[WARP][8];
    };
};

struct run {
    std::vector<fibre> fibres;
    std::vector<unsigned> order;
    std::vector<meeting> warps;
    std::vector<uint32_t> lanes;
    std::vector<result> results;
    std::vector<unsigned char> shared;
    meeting block;
    context scheduler;
    unsigned running;
    bool released; /* threads can go on that could not */
    shim_kernel *kernel;
    const void *arguments;
};

thread_local run *now;

/* Stacks of fibres, kept for later launches: the system clears new memory page by page. */
struct stack_pool {
    std::vector<char *> stacks;
    ~stack_pool() {
        for (char *stack : stacks) free(stack);
    }
};

thread_local stack_pool pool;

char *stack_of(size_t fibre) {
    while (pool.stacks.size() <= fibre)
        pool.stacks.push_back(static_cast<char *>(aligned_alloc(64, STACK)));
    return pool.stacks[fibre];
}

void yield(void) {
    change(&now->fibres[now->running].at, &now->scheduler);
}

void release(meeting &m) {
    now->released = true;
    m.arrived = 0;
    for (unsigned i = m.first; i < m.last; i++) now->fibres[i].blocked = false;
}

/* Also the last to arrive yields: who goes on first is the scheduler's choice. */
void meet(meeting &m) {
    now->fibres[now->running].blocked = true;
    if (++m.arrived == m.alive) release(m);
    yield();
}

void leave(meeting &m) {
    if (--m.alive && m.arrived == m.alive) release(m);
}

void entry(void) {
    now->kernel(now->arguments);
    fibre &own = now->fibres[now->running];
    own.done = true; /* those that wait for it need not any more */
    if (!own.copies.empty()) {
        fprintf(stderr, "shim: a thread ends with copies that it has not waited for\n");
        abort();
    }
    leave(now->warps[now->running / WARP]);
    leave(now->block);
    yield();
    abort();
}

void start_block(void) {
    unsigned count = (unsigned)now->fibres.size();
    now->block = {count, 0, 0, count};
    for (unsigned w = 0; w < now->warps.size(); w++) {
        unsigned last = (w + 1) * WARP < count ? (w + 1) * WARP : count;
        now->warps[w] = {last - w * WARP, 0, w * WARP, last};
        now->results[w].turn = 0;
    }
    for (unsigned i = 0; i < count; i++) {
        fibre &f = now->fibres[i];
        f.done = f.blocked = false;
        f.group = 0;
        f.turn = 0;
        f.index = {i % shim_threads.x, i / shim_threads.x, 0};
#if defined(SIFR_SANITIZED)
        /* entry() does not return, so its frame would stay marked for the next thread here. */
        ASAN_UNPOISON_MEMORY_REGION(f.stack + STACK - ENTRY_FRAME, ENTRY_FRAME);
#endif
        begin(&f.at, f.stack, entry);
    }
    memset(now->shared.data(), FILL, now->shared.size());
}

/* The first in order that can go on, as far as it can; with the two plain orders its warp goes on
 * as far as it can. */
void run_block(bool by_warp) {
    start_block();
    size_t count = now->order.size();
    while (now->block.alive) {
        bool moved = false;
        for (size_t i = 0; i < count;) {
            fibre &f = now->fibres[now->order[i]];
            if (f.done || f.blocked) {
                i++;
                continue;
            }
            moved = true;
            now->running = now->order[i];
            shim_thread = f.index;
            now->released = false;
            change(&now->scheduler, &f.at);
            if (!now->released)
                i++;
            else
                i = by_warp ? i / WARP * WARP : 0;
        }
        if (moved || !now->block.alive) continue;
        fprintf(stderr,
                "shim: block %u, %u, %u: threads wait at a barrier that the others do not reach\n",
                shim_block.x, shim_block.y, shim_block.z);
        abort();
    }
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
    meet(now->warps[now->running / WARP]);
}

unsigned shim_lane_id(void) {
    return now->running % WARP;
}

uint32_t *shim_lane(unsigned lane) {
    return &now->lanes[(now->running / WARP * WARP + lane) * LANE_WORDS];
}

/* Widens the fragments of all lanes: a matrix of 8 x 8 numbers is one word a lane. */
static void widen_matrix(float *to, unsigned row_step, unsigned column_step, const uint32_t *lanes,
                         float (*widen)(uint16_t)) {
    for (unsigned lane = 0; lane < WARP; lane++)
        for (unsigned half = 0; half < 2; half++)
            to[lane / 4 * row_step + (lane % 4 * 2 + half) * column_step] =
                widen((uint16_t)(lanes[lane * LANE_WORDS] >> half * 16));
}

static void multiply(result *out, const uint32_t *lanes, float (*widen)(uint16_t)) {
    float a[16 * 16], b[16 * 8];
    for (unsigned part = 0; part < 4; part++)
        widen_matrix(a + part % 2 * 8 * 16 + part / 2 * 8, 16, 1, lanes + part, widen);
    for (unsigned part = 0; part < 2; part++)
        widen_matrix(b + part * 8 * 8, 1, 8, lanes + 4 + part, widen);
    for (unsigned row = 0; row < 16; row++) {
        float sums[8] = {0};
        for (unsigned k = 0; k < 16; k++)
            for (unsigned column = 0; column < 8; column++)
                sums[column] += a[row * 16 + k] * b[k * 8 + column];
        memcpy(out->product + row * 8, sums, sizeof sums);
    }
}

/* The result that the warp's threads make together after they have all shown their operands: the
 * first one to go on makes it. It stays until all threads meet once more, and until then they have
 * read it. */
static result *make_result(bool *first) {
    result *out = &now->results[now->running / WARP];
    unsigned turn = ++now->fibres[now->running].turn;
    *first = out->turn != turn;
    out->turn = turn;
    return out;
}

void shim_mma(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
              float (*widen)(uint16_t)) {
    unsigned lane = shim_lane_id();
    bool first;
    memcpy(shim_lane(lane), a, 16);
    memcpy(shim_lane(lane) + 4, b, 8);
    shim_sync_warp();
    result *out = make_result(&first);
    if (first) multiply(out, shim_lane(0), widen);
    for (unsigned i = 0; i < 4; i++)
        d[i] = c[i] + out->product[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
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
    fibre &own = now->fibres[now->running];
    own.copies.push_back({shared, global, bytes, valid, own.group});
}

void shim_copy_commit(void) {
    now->fibres[now->running].group++;
}

void shim_copy_wait(int groups) {
    fibre &own = now->fibres[now->running];
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
    run r;
    unsigned before = base_flush_floats();
    size_t count = launch->threads, warps = (count + WARP - 1) / WARP;
    unsigned char arguments[1024];
    if (bytes > sizeof arguments) abort();
    memcpy(arguments, launch->arguments, bytes);
    now = &r;
    r.kernel = kernel;
    r.arguments = arguments;
    r.fibres.resize(count);
    r.warps.resize(warps);
    r.results.resize(warps);
    r.lanes.resize(warps * WARP * LANE_WORDS);
    r.shared.resize(launch->shared_bytes + SHARED_GUARD + 128);
    shim_shared = reinterpret_cast<unsigned char *>(((uintptr_t)r.shared.data() + 127) / 128 * 128);
    r.shared.resize((size_t)(shim_shared - r.shared.data()) + launch->shared_bytes + SHARED_GUARD);
    r.order = make_order(count, order);
    for (size_t i = 0; i < count; i++) r.fibres[i].stack = stack_of(i);
    shim_threads = {launch->threads, 1, 1};
    shim_blocks = {(unsigned)launch->blocks[0], (unsigned)launch->blocks[1],
                   (unsigned)launch->blocks[2]};
    size_t blocks = (size_t)(launch->blocks[0] * launch->blocks[1] * launch->blocks[2]);
    std::vector<unsigned> block_order = make_order(blocks, order);
    for (unsigned b : block_order) {
        shim_block = {b % shim_blocks.x, b / shim_blocks.x % shim_blocks.y,
                      b / shim_blocks.x / shim_blocks.y};
        run_block(order <= SHIM_DOWN);
        check_guard();
    }
    now = nullptr;
    base_restore_floats(before);
}
