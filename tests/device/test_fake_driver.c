/* The driver that tests play: that it keeps the rules of a real one (in test_asan, in test_tsan).
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/cuda/arguments.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/fake_parts.h"
#include "support/cuda/least_gpu.h"
#include "support/cuda/shim_run.h"

enum { COUNT = 4096, BYTES = COUNT * 4 };

typedef struct add_arguments {
    float *y;
    const float *x;
    int64_t count;
    float by;
} add_arguments;

static void add(const fake_launch *launch, const void *arguments) {
    const add_arguments *a = arguments;
    if (launch->block[0] != 128) return;
    for (int64_t i = 0; i < a->count; i++) a->y[i] = a->x[i] + a->by;
}

static const fake_kernel kernels[] = {{"sifr_add", sizeof(add_arguments), 256, add, NULL}};

/* A device with a module, two streams, and a pinned block of the host. */
typedef struct gpu {
    cuda_driver driver;
    cuda_context context;
    cuda_module module;
    cuda_function add;
    cuda_stream streams[2];
    float *host;
} gpu;

#define OK(call) assert_int_equal((call), CUDA_OK)

static void open_gpu(gpu *g, uint32_t pause_us) {
    const fake_driver_options options = {
        .memory = 1 << 20, .kernels = kernels, .kernel_count = 1, .pause_us = pause_us, .seed = 5};
    sifr_error error;
    fake_driver_open(&options, &g->driver);
    const cuda_driver *d = &g->driver;
    assert_int_equal(cuda_driver_start(&g->driver, 13000, &error), SIFR_OK);
    OK(d->cuDevicePrimaryCtxRetain(&g->context, 0));
    OK(d->cuCtxSetCurrent(g->context));
    OK(d->cuModuleLoadData(&g->module, "fake"));
    OK(d->cuModuleGetFunction(&g->add, g->module, "sifr_add"));
    for (int i = 0; i < 2; i++)
        OK(d->cuStreamCreateWithPriority(&g->streams[i], CUDA_STREAM_NON_BLOCKING, 0));
    OK(d->cuMemHostAlloc((void **)&g->host, BYTES, CUDA_HOST_PORTABLE));
}

static void close_gpu(gpu *g) {
    const cuda_driver *d = &g->driver;
    for (int i = 0; i < 2; i++) OK(d->cuStreamDestroy(g->streams[i]));
    OK(d->cuMemFreeHost(g->host));
    OK(d->cuModuleUnload(g->module));
    OK(d->cuDevicePrimaryCtxRelease(0));
    const fake_driver_counts left = fake_driver_count();
    assert_int_equal(left.blocks + left.host_blocks + left.streams + left.events + left.modules +
                         left.contexts + left.imports + left.bytes,
                     0);
    fake_driver_close();
}

static cuda_result launch_add(const gpu *g, int stream, cuda_address y, cuda_address x, float by) {
    add_arguments a = {(float *)(uintptr_t)y, (const float *)(uintptr_t)x, COUNT, by};
    void *arguments[] = {&a};
    return g->driver.cuLaunchKernel(g->add, 32, 1, 1, 128, 1, 1, 0, g->streams[stream], arguments,
                                    NULL);
}

static void test_every_function_is_there(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
#define IS_THERE(name, symbol, arguments) assert_non_null(g.driver.name);
    CUDA_DRIVER_FUNCTIONS(IS_THERE)
    close_gpu(&g);
}

/* Host to device on one stream, a kernel on the other, and back, ordered by events alone. */
static void test_events_order_streams(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 200);
    const cuda_driver *d = &g.driver;
    cuda_event in, made;
    cuda_address x, y;
    OK(d->cuEventCreate(&in, CUDA_EVENT_NO_TIMING));
    OK(d->cuEventCreate(&made, CUDA_EVENT_NO_TIMING));
    OK(d->cuMemAlloc(&x, BYTES));
    OK(d->cuMemAlloc(&y, BYTES));
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < COUNT; i++) g.host[i] = (float)(i + turn);
        OK(d->cuMemcpyHtoDAsync(x, g.host, BYTES, g.streams[1]));
        OK(d->cuEventRecord(in, g.streams[1]));
        OK(d->cuStreamWaitEvent(g.streams[0], in, 0));
        OK(launch_add(&g, 0, y, x, 1));
        OK(d->cuEventRecord(made, g.streams[0]));
        OK(d->cuStreamWaitEvent(g.streams[1], made, 0));
        OK(d->cuMemcpyDtoHAsync(g.host, y, BYTES, g.streams[1]));
        OK(d->cuStreamSynchronize(g.streams[1]));
        OK(d->cuEventQuery(made));
        for (int i = 0; i < COUNT; i++) assert_true(g.host[i] == (float)(i + turn + 1));
    }
    assert_int_equal(fake_driver_count().launches, 10);
    assert_int_equal(fake_driver_count().copies, 20);
    assert_int_equal(fake_driver_count().pageable_copies, 0);
    OK(d->cuMemFree(x));
    OK(d->cuMemFree(y));
    OK(d->cuEventDestroy(in));
    OK(d->cuEventDestroy(made));
    assert_int_equal(d->cuEventQuery(made), CUDA_INVALID_HANDLE);
    close_gpu(&g);
}

/* Two streams stand still until the host writes a word: what follows the first's event waits, what
 * does not goes on. */
static void test_streams_wait_only_where_told(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    cuda_event held, free_one;
    cuda_address x, word;
    _Atomic uint32_t *number = (_Atomic uint32_t *)(void *)g.host;
    atomic_store(number, 6);
    OK(d->cuEventCreate(&held, 0));
    OK(d->cuEventCreate(&free_one, 0));
    OK(d->cuMemAlloc(&x, BYTES));
    OK(d->cuMemHostGetDevicePointer(&word, g.host, 0));
    /* An event that was not recorded holds nobody. */
    OK(d->cuStreamWaitEvent(g.streams[1], held, 0));
    OK(d->cuStreamWaitValue32(g.streams[0], word, 7, CUDA_WAIT_AT_LEAST));
    OK(d->cuMemsetD8Async(x, 0, BYTES, g.streams[0]));
    OK(d->cuEventRecord(held, g.streams[0]));
    OK(d->cuEventRecord(free_one, g.streams[1]));
    OK(d->cuStreamSynchronize(g.streams[1]));
    OK(d->cuEventQuery(free_one));
    assert_int_equal(d->cuEventQuery(held), CUDA_NOT_READY);
    OK(d->cuStreamWaitEvent(g.streams[1], held, 0));
    OK(d->cuEventRecord(free_one, g.streams[1]));
    const struct timespec moment = {0, 20000000};
    nanosleep(&moment, NULL);
    assert_int_equal(d->cuEventQuery(free_one), CUDA_NOT_READY);
    atomic_store(number, 7);
    OK(d->cuStreamSynchronize(g.streams[1]));
    OK(d->cuEventQuery(held));
    float ms;
    OK(d->cuEventElapsedTime(&ms, held, free_one));
    assert_true(ms >= 0);
    assert_true(ms < 10000);
    OK(d->cuStreamWriteValue32(g.streams[0], word, 9, 0));
    OK(d->cuStreamSynchronize(g.streams[0]));
    assert_int_equal(atomic_load(number), 9);
    OK(d->cuMemFree(x));
    OK(d->cuEventDestroy(held));
    OK(d->cuEventDestroy(free_one));
    close_gpu(&g);
}

static void test_memory_ends(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    cuda_address a, b;
    size_t capacity, total;
    sifr_error error;
    OK(d->cuMemAlloc(&a, 600 << 10));
    assert_int_equal(a % 256, 0);
    assert_int_equal(d->cuMemAlloc(&b, 600 << 10), CUDA_OUT_OF_MEMORY);
    OK(d->cuMemGetInfo(&capacity, &total));
    assert_int_equal(capacity, 424 << 10);
    assert_int_equal(total, 1 << 20);
    fake_driver_limit(700 << 10);
    assert_int_equal(cuda_driver_status(d, d->cuMemAlloc(&b, 200 << 10), &error, "a block"),
                     SIFR_NO_MEMORY);
    OK(d->cuMemAlloc(&b, 100 << 10));
    /* New memory is no zeros, and what was freed is no memory. */
    assert_int_equal(((unsigned char *)fake_driver_reach(b, 1))[0], 0xff);
    OK(d->cuMemFree(a));
    assert_null(fake_driver_reach(a, 1));
    assert_int_equal(d->cuMemcpyHtoDAsync(a, g.host, 16, g.streams[0]), CUDA_INVALID_VALUE);
    assert_int_equal(d->cuMemFree(a), CUDA_INVALID_VALUE);
    /* Nor is what lies beyond a block. */
    OK(d->cuMemsetD8Async(b, 1, 100 << 10, g.streams[0]));
    assert_int_equal(d->cuMemsetD8Async(b, 1, (100 << 10) + 1, g.streams[0]), CUDA_INVALID_VALUE);
    assert_int_equal(d->cuMemsetD8Async(b + 1, 1, 100 << 10, g.streams[0]), CUDA_INVALID_VALUE);
    OK(d->cuMemFree(b));
    close_gpu(&g);
}

/* A 32-bit number of a kernel's arguments is not taken for an address, even with the upper half of
 * one in the padding above it. The blocks fill two ranges of addresses. */
static void test_addresses_are_no_numbers(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    const size_t bytes = (size_t)700 << 20;
    cuda_address x[4];
    fake_driver_limit((uint64_t)4 << 30);
    for (int i = 0; i < 4; i++) {
        OK(d->cuMemAlloc(&x[i], bytes));
        assert_true((uint32_t)x[i] >= (uint32_t)1 << 31);
        assert_int_equal((x[i] + bytes) >> 32, x[i] >> 32);
        uint64_t words[2] = {x[i], x[i] >> 32 << 32 | 3};
        fake_translate(words, sizeof words);
        assert_ptr_equal((void *)(uintptr_t)words[0], fake_driver_reach(x[i], 1));
        assert_int_equal(words[1], x[i] >> 32 << 32 | 3);
    }
    assert_int_not_equal(x[0] >> 32, x[3] >> 32);
    for (int i = 0; i < 4; i++) OK(d->cuMemFree(x[i]));
    close_gpu(&g);
}

/* Runs it in a process of its own, and returns whether that ended by itself with 0. */
static bool survives(void (*run)(gpu *g, cuda_address x), gpu *g, cuda_address x) {
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler goes on with the next test */
        signal(SIGBUS, SIG_DFL);
        close(2); /* a sanitizer's report */
        run(g, x);
        _exit(0);
    }
    int code = 0;
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static void read_as_host(gpu *g, cuda_address x) {
    g->host[0] = *(volatile float *)(uintptr_t)x;
}

static void read_reached(gpu *g, cuda_address x) {
    g->host[0] = *(volatile float *)fake_driver_reach(x, 4);
}

static void write_behind(gpu *g, cuda_address x) {
    (void)g;
    char *real = fake_driver_reach(x, BYTES);
    *(volatile char *)(real + BYTES) = 1;
}

static void test_stray_accesses_fault(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
    cuda_address x;
    OK(g.driver.cuMemAlloc(&x, BYTES));
    assert_false(survives(read_as_host, &g, x));
    assert_true(survives(read_reached, &g, x));
    assert_false(survives(write_behind, &g, x));
    OK(g.driver.cuMemFree(x));
    close_gpu(&g);
}

static void test_launches_are_checked(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    cuda_address x;
    cuda_function none;
    OK(d->cuMemAlloc(&x, BYTES));
    add_arguments a = {(float *)(uintptr_t)x, (const float *)(uintptr_t)x, COUNT, 1};
    void *arguments[] = {&a};
    const struct {
        unsigned grid, grid_y, threads, shared;
        cuda_result result;
    } cases[] = {
        {1, 1, 128, 0, CUDA_OK},
        {0, 1, 128, 0, CUDA_INVALID_VALUE},
        {1, 65536, 128, 0, CUDA_INVALID_VALUE},
        {1, 1, 512, 0, CUDA_INVALID_VALUE}, /* above the kernel's own bound */
        {1, 1, 128, 48 << 10, CUDA_OK},
        {1, 1, 128, (48 << 10) + 1, CUDA_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(d->cuLaunchKernel(g.add, cases[i].grid, cases[i].grid_y, 1,
                                           cases[i].threads, 1, 1, cases[i].shared, g.streams[0],
                                           arguments, NULL),
                         cases[i].result);
    OK(d->cuFuncSetAttribute(g.add, CUDA_FUNCTION_SHARED_BYTES, LEAST_GPU_SHARED));
    OK(d->cuLaunchKernel(g.add, 1, 1, 1, 128, 1, 1, LEAST_GPU_SHARED, g.streams[0], arguments,
                         NULL));
    assert_int_equal(d->cuFuncSetAttribute(g.add, CUDA_FUNCTION_SHARED_BYTES, LEAST_GPU_SHARED + 1),
                     CUDA_INVALID_VALUE);
    assert_int_equal(d->cuModuleGetFunction(&none, g.module, "sifr_none"), CUDA_NOT_FOUND);
    OK(d->cuMemFree(x));
    close_gpu(&g);
}

static void test_a_sticky_error(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    cuda_address x;
    cuda_event after;
    OK(d->cuMemAlloc(&x, BYTES));
    OK(d->cuEventCreate(&after, 0));
    OK(d->cuMemsetD8Async(x, 0, BYTES, g.streams[0]));
    fake_driver_fail_launch(2, CUDA_ILLEGAL_ADDRESS);
    /* Enqueued while none has run, so each is taken. */
    cuda_address word;
    _Atomic uint32_t *number = (_Atomic uint32_t *)(void *)g.host;
    atomic_store(number, 0);
    OK(d->cuMemHostGetDevicePointer(&word, g.host, 0));
    OK(d->cuStreamWaitValue32(g.streams[0], word, 1, CUDA_WAIT_EQUAL));
    for (int i = 0; i < 4; i++) OK(launch_add(&g, 0, x, x, 1));
    OK(d->cuEventRecord(after, g.streams[0]));
    OK(d->cuStreamWaitEvent(g.streams[1], after, 0));
    atomic_store(number, 1);
    assert_int_equal(d->cuStreamSynchronize(g.streams[1]), CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(d->cuEventQuery(after), CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(launch_add(&g, 0, x, x, 1), CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(d->cuMemFree(x), CUDA_ILLEGAL_ADDRESS);
    assert_true(((float *)fake_driver_reach(x, BYTES))[COUNT - 1] == 2);
    fake_driver_close(); /* frees what the lost device holds */
}

typedef struct other_thread {
    const gpu *g;
    cuda_result before, after;
} other_thread;

static void *call_without_context(void *argument) {
    other_thread *t = argument;
    const cuda_driver *d = &t->g->driver;
    cuda_address x;
    t->before = d->cuMemAlloc(&x, 16);
    d->cuCtxSetCurrent(t->g->context);
    t->after = d->cuMemAlloc(&x, 16);
    if (t->after == CUDA_OK) d->cuMemFree(x);
    return NULL;
}

static void test_threads_need_the_context(void **state) {
    (void)state;
    gpu g;
    pthread_t thread;
    other_thread t = {.g = &g};
    open_gpu(&g, 0);
    assert_int_equal(pthread_create(&thread, NULL, call_without_context, &t), 0);
    pthread_join(thread, NULL);
    assert_int_equal(t.before, CUDA_INVALID_CONTEXT);
    assert_int_equal(t.after, CUDA_OK);
    close_gpu(&g);
}

static void test_host_memory_that_is_not_pinned(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 200);
    const cuda_driver *d = &g.driver;
    cuda_address x;
    float *mine = malloc(BYTES);
    assert_non_null(mine);
    for (int i = 0; i < COUNT; i++) mine[i] = (float)i;
    OK(d->cuMemAlloc(&x, BYTES));
    OK(d->cuMemcpyHtoDAsync(x, mine, BYTES, g.streams[0]));
    for (int i = 0; i < COUNT; i++) mine[i] = 0; /* it was read before the call returned */
    OK(d->cuMemcpyDtoHAsync(mine, x, BYTES, g.streams[0]));
    assert_true(mine[COUNT - 1] == COUNT - 1);
    assert_int_equal(fake_driver_count().pageable_copies, 2);
    OK(d->cuMemHostRegister(mine, BYTES, CUDA_HOST_PORTABLE));
    OK(d->cuMemcpyDtoHAsync(mine, x, BYTES, g.streams[0]));
    assert_int_equal(fake_driver_count().pageable_copies, 2);
    OK(d->cuStreamSynchronize(g.streams[0]));
    OK(d->cuMemHostUnregister(mine));
    OK(d->cuMemFree(x));
    free(mine);
    close_gpu(&g);
}

typedef struct handles {
    cuda_ipc_memory memory;
    cuda_ipc_event event;
} handles;

/* Another rank: adds to the neighbour's block once the neighbour's event is reached. */
static int neighbour(int from, int to) {
    gpu g;
    handles h;
    cuda_address x;
    cuda_event ready;
    if (read(from, &h, sizeof h) != sizeof h) return 2;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    if (d->cuIpcOpenMemHandle(&x, h.memory, CUDA_IPC_PEER_ACCESS)) return 3;
    if (d->cuIpcOpenEventHandle(&ready, h.event)) return 4;
    if (d->cuStreamWaitEvent(g.streams[0], ready, 0)) return 5;
    if (write(to, "w", 1) != 1) return 6; /* it follows; the event is not reached yet */
    if (launch_add(&g, 0, x, x, 5)) return 7;
    if (d->cuStreamSynchronize(g.streams[0])) return 8;
    if (d->cuMemFree(x) != CUDA_INVALID_VALUE) return 9;
    if (d->cuIpcCloseMemHandle(x)) return 10;
    if (d->cuEventDestroy(ready)) return 11;
    close_gpu(&g);
    return 0;
}

static void test_other_processes_open_handles(void **state) {
    (void)state;
    int there[2], back[2], code = 0;
    assert_int_equal(pipe(there) | pipe(back), 0);
    pid_t child = fork(); /* before there are threads */
    if (child == 0) _exit(neighbour(there[0], back[1]));
    gpu g;
    open_gpu(&g, 0);
    const cuda_driver *d = &g.driver;
    handles h;
    cuda_address x, word, same;
    cuda_event ready;
    char byte;
    _Atomic uint32_t *number = (_Atomic uint32_t *)(void *)g.host;
    atomic_store(number, 0);
    OK(d->cuMemAlloc(&x, BYTES));
    OK(d->cuEventCreate(&ready, CUDA_EVENT_NO_TIMING | CUDA_EVENT_INTERPROCESS));
    OK(d->cuIpcGetMemHandle(&h.memory, x));
    OK(d->cuIpcGetEventHandle(&h.event, ready));
    assert_int_equal(d->cuIpcOpenMemHandle(&same, h.memory, CUDA_IPC_PEER_ACCESS),
                     CUDA_INVALID_CONTEXT);
    OK(d->cuMemHostGetDevicePointer(&word, g.host, 0));
    OK(d->cuStreamWaitValue32(g.streams[0], word, 1, CUDA_WAIT_EQUAL));
    OK(d->cuMemsetD8Async(x, 0, BYTES, g.streams[0]));
    OK(d->cuEventRecord(ready, g.streams[0]));
    assert_int_equal(write(there[1], &h, sizeof h), sizeof h);
    assert_int_equal(read(back[0], &byte, 1), 1);
    atomic_store(number, 1);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
    OK(d->cuStreamSynchronize(g.streams[0]));
    assert_true(((float *)fake_driver_reach(x, BYTES))[COUNT - 1] == 5);
    OK(d->cuMemFree(x));
    OK(d->cuEventDestroy(ready));
    close_gpu(&g);
    for (int i = 0; i < 2; i++) close(there[i]), close(back[i]);
}

/* Two streams are captured, the second by an event of the first; the graph runs three times. */
static void test_a_graph_repeats_its_work(void **state) {
    (void)state;
    gpu g;
    open_gpu(&g, 50);
    const cuda_driver *d = &g.driver;
    cuda_address x, y;
    cuda_event fork_event, join_event;
    cuda_graph graph;
    cuda_graph_program program;
    OK(d->cuMemAlloc(&x, BYTES));
    OK(d->cuMemAlloc(&y, BYTES));
    OK(d->cuEventCreate(&fork_event, CUDA_EVENT_NO_TIMING));
    OK(d->cuEventCreate(&join_event, CUDA_EVENT_NO_TIMING));
    OK(d->cuMemsetD8Async(x, 0, BYTES, g.streams[0]));
    OK(d->cuStreamSynchronize(g.streams[0]));
    OK(d->cuStreamBeginCapture(g.streams[0], CUDA_CAPTURE_THIS_THREAD));
    OK(launch_add(&g, 0, y, x, 1));
    OK(d->cuEventRecord(fork_event, g.streams[0]));
    OK(d->cuStreamWaitEvent(g.streams[1], fork_event, 0));
    OK(launch_add(&g, 1, x, y, 2));
    OK(d->cuEventRecord(join_event, g.streams[1]));
    OK(d->cuStreamWaitEvent(g.streams[0], join_event, 0));
    assert_int_equal(d->cuStreamSynchronize(g.streams[0]), CUDA_CAPTURE_UNSUPPORTED);
    OK(d->cuStreamEndCapture(g.streams[0], &graph));
    assert_int_equal(d->cuStreamEndCapture(g.streams[0], &graph), CUDA_CAPTURE_UNMATCHED);
    OK(d->cuStreamSynchronize(g.streams[1])); /* is captured no longer */
    assert_true(((float *)fake_driver_reach(x, BYTES))[0] == 0);
    OK(d->cuGraphInstantiate(&program, graph, 0));
    OK(d->cuGraphDestroy(graph));
    for (int i = 0; i < 3; i++) OK(d->cuGraphLaunch(program, g.streams[0]));
    OK(d->cuStreamSynchronize(g.streams[0]));
    assert_true(((float *)fake_driver_reach(x, BYTES))[COUNT - 1] == 9);
    OK(d->cuGraphExecDestroy(program));
    OK(d->cuMemFree(x));
    OK(d->cuMemFree(y));
    OK(d->cuEventDestroy(fork_event));
    OK(d->cuEventDestroy(join_event));
    close_gpu(&g);
}

/* The kernels themselves, as kernel_list.h lists them: one clears a block but for its last byte. */
static void test_kernels_run_over_the_shim(void **state) {
    (void)state;
    if (shim_skipped()) skip();
    fake_driver_options options = {0};
    gpu g = {0};
    sifr_error error;
    cuda_address x;
    options.kernels = fake_shim_kernels(SHIM_DOWN, &options.kernel_count);
    fake_driver_open(&options, &g.driver);
    const cuda_driver *d = &g.driver;
    assert_int_equal(cuda_driver_start(&g.driver, 0, &error), SIFR_OK);
    OK(d->cuDevicePrimaryCtxRetain(&g.context, 0));
    OK(d->cuCtxSetCurrent(g.context));
    OK(d->cuModuleLoadData(&g.module, "fake"));
    for (int k = 0; k < CUDA_KERNELS; k++) {
        char name[128];
        snprintf(name, sizeof name, "sifr_%s", cuda_kernel_name((cuda_kernel)k));
        OK(d->cuModuleGetFunction(&g.add, g.module, name));
    }
    OK(d->cuModuleGetFunction(&g.add, g.module, "sifr_clear"));
    OK(d->cuStreamCreateWithPriority(&g.streams[0], CUDA_STREAM_NON_BLOCKING, 0));
    OK(d->cuMemAlloc(&x, 5000));
    clear_arguments a = {
        .y = (unsigned char *)(uintptr_t)x, .rows = 1, .bytes = 4999, .stride = 4999};
    void *arguments[] = {&a};
    OK(d->cuLaunchKernel(g.add, 2, 1, 1, 256, 1, 1, 0, g.streams[0], arguments, NULL));
    OK(d->cuStreamSynchronize(g.streams[0]));
    const unsigned char *bytes = fake_driver_reach(x, 5000);
    for (int i = 0; i < 4999; i++) assert_int_equal(bytes[i], 0);
    assert_int_equal(bytes[4999], 0xff);
    fake_driver_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_processes_open_handles),
        cmocka_unit_test(test_every_function_is_there),
        cmocka_unit_test(test_events_order_streams),
        cmocka_unit_test(test_streams_wait_only_where_told),
        cmocka_unit_test(test_memory_ends),
        cmocka_unit_test(test_addresses_are_no_numbers),
        cmocka_unit_test(test_stray_accesses_fault),
        cmocka_unit_test(test_launches_are_checked),
        cmocka_unit_test(test_a_sticky_error),
        cmocka_unit_test(test_threads_need_the_context),
        cmocka_unit_test(test_host_memory_that_is_not_pinned),
        cmocka_unit_test(test_a_graph_repeats_its_work),
        cmocka_unit_test(test_kernels_run_over_the_shim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
