/* A GPU as a device, on a driver that a test plays: memory, copies, the step's numbers, room, and
 * what is said when something fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_flags.h"
#include "device/cuda/cuda_launch.h"
#include "device/flag.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/shim_run.h"

enum { ELEMENTS = 1000, BYTES = ELEMENTS * 4 };

static cuda_driver driver;
static const cuda_image image = {.name = "fake", .data = "fake"};

static int start(void **state) {
    fake_driver_options options = {.memory = 1 << 20};
    sifr_error error;
    (void)state;
    options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
    fake_driver_open(&options, &driver);
    return cuda_driver_start(&driver, 0, &error);
}

static int stop(void **state) {
    (void)state;
    fake_driver_close();
    return 0;
}

static device *open_gpu(bool check) {
    device *dev;
    sifr_error error;
    cuda_options options = {
        .driver = &driver, .threads = 1, .images = &image, .image_count = 1, .check = check};
    if (cuda_device_open(&options, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    return dev;
}

static void fails(sifr_status status, sifr_status wanted, const sifr_error *error,
                  const char *part) {
    assert_int_equal(status, wanted);
    if (!strstr(error->message, part)) fail_msg("no \"%s\" in: %s", part, error->message);
}

static device_call add_into(float *y, float *x) {
    device_matrix m = {y, 1, ELEMENTS, ELEMENTS, BASE_FP32};
    device_call call = {.kernel = DEVICE_ADD_INTO, .y = m};
    call.x[0] = m;
    call.x[0].data = x;
    return call;
}

static void memory_and_kernels(void **state) {
    (void)state;
    device *dev = open_gpu(false);
    sifr_error error;
    float *block, *host, out[ELEMENTS];
    assert_true(device_is_separate(dev));
    assert_string_equal(device_isa(dev), "sm_90");
    assert_int_equal(device_take(dev, 2 * BYTES, (void **)&block, &error), SIFR_OK);
    assert_int_equal(device_take_host(dev, BYTES, (void **)&host, &error), SIFR_OK);
    assert_int_equal(device_count(dev).device_bytes, 2 * BYTES);
    assert_int_equal(device_count(dev).host_bytes, BYTES);
    assert_true(device_capacity(dev) <= (1 << 20) - 2 * BYTES);
    for (int i = 0; i < ELEMENTS; i++) host[i] = (float)i;
    assert_int_equal(device_copy(dev, block, host, BYTES, &error), SIFR_OK);
    assert_int_equal(device_copy(dev, out, block + ELEMENTS, BYTES, &error), SIFR_OK);
    for (int i = 0; i < ELEMENTS; i++) assert_true(out[i] == 0); /* memory that is taken is zero */
    device_call call = add_into(block + ELEMENTS, block);
    for (int turn = 1; turn <= 2; turn++) {
        assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
        assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
        assert_int_equal(device_copy(dev, out, block + ELEMENTS, BYTES, &error), SIFR_OK);
        for (int i = 0; i < ELEMENTS; i++) assert_true(out[i] == (float)(turn * i));
    }
    fails(device_copy(dev, out, host, BYTES, &error), SIFR_FAILED, &error,
          "neither end is in the device's memory");
    device_give(dev, host, BYTES);
    device_give(dev, block, 2 * BYTES);
    device_close(dev);
    fake_driver_counts counts = fake_driver_count();
    assert_int_equal(
        counts.blocks + counts.host_blocks + counts.streams + counts.modules + counts.contexts, 0);
}

/* Kernels read a step's numbers in the device's memory, where copies of the same queue put them. */
static void step_numbers(void **state) {
    (void)state;
    device *dev = open_gpu(false);
    sifr_error error;
    float *block, out[2 * ELEMENTS], start_values[2 * ELEMENTS];
    device_step *numbers, *pinned;
    device_step step = {.training = true, .seed = 1};
    assert_int_equal(device_take(dev, 2 * BYTES, (void **)&block, &error), SIFR_OK);
    assert_int_equal(device_take(dev, sizeof step, (void **)&numbers, &error), SIFR_OK);
    assert_int_equal(device_take_host(dev, 2 * sizeof step, (void **)&pinned, &error), SIFR_OK);
    for (int i = 0; i < 2 * ELEMENTS; i++) start_values[i] = 1;
    assert_int_equal(device_copy(dev, block, start_values, 2 * BYTES, &error), SIFR_OK);
    for (int half = 0; half < 2; half++) {
        device_matrix m = {block + half * ELEMENTS, 1, ELEMENTS, ELEMENTS, BASE_FP32};
        device_call call = {.kernel = DEVICE_DROPOUT, .y = m, .step = numbers};
        call.x[0] = m;
        call.attributes.dropout.probability = 0.5f;
        pinned[half] = step;
        pinned[half].seed = (uint64_t)half + 1;
        assert_int_equal(
            device_start_copy(dev, DEVICE_COMPUTE, numbers, &pinned[half], sizeof step, &error),
            SIFR_OK);
        assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
        assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
    }
    assert_int_equal(device_copy(dev, out, block, 2 * BYTES, &error), SIFR_OK);
    device *cpu;
    assert_int_equal(device_open_cpu(1, NULL, &cpu, &error), SIFR_OK);
    for (int half = 0; half < 2; half++) {
        device_matrix m = {start_values + half * ELEMENTS, 1, ELEMENTS, ELEMENTS, BASE_FP32};
        device_call call = {.kernel = DEVICE_DROPOUT, .y = m, .step = &step};
        call.x[0] = m;
        call.attributes.dropout.probability = 0.5f;
        step.seed = (uint64_t)half + 1;
        assert_int_equal(device_prepare(cpu, &call, &error), SIFR_OK);
        assert_int_equal(device_run(cpu, &call, &error), SIFR_OK);
    }
    assert_memory_equal(out, start_values, sizeof out);
    device_close(cpu);
    device_give(dev, pinned, 2 * sizeof step);
    device_give(dev, numbers, sizeof step);
    device_give(dev, block, 2 * BYTES);
    device_close(dev);
}

static cuda_result refuse_host(void **host, size_t bytes, unsigned flags) {
    (void)host;
    (void)bytes;
    (void)flags;
    return CUDA_OUT_OF_MEMORY;
}

/* Ordinary memory in its place: counted, with the same copies, beside blocks that are pinned. */
static void host_memory_unpinned(void **state) {
    (void)state;
    const cuda_driver whole = driver;
    sifr_error error;
    float *block, *plain[2], out[ELEMENTS];
    driver.cuMemHostAlloc = refuse_host;
    device *dev = open_gpu(false);
    driver = whole;
    assert_int_equal(device_take(dev, BYTES, (void **)&block, &error), SIFR_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(device_take_host(dev, BYTES, (void **)&plain[i], &error), SIFR_OK);
    assert_int_equal(device_count(dev).host_bytes, 2 * BYTES);
    assert_int_equal(device_count(dev).unpinned_bytes, 2 * BYTES);
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(plain[0][i] == 0);
        plain[0][i] = (float)i;
    }
    assert_int_equal(device_copy(dev, block, plain[0], BYTES, &error), SIFR_OK);
    assert_int_equal(device_copy(dev, plain[1], block, BYTES, &error), SIFR_OK);
    assert_int_equal(device_copy(dev, out, block, BYTES, &error), SIFR_OK);
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(plain[1][i] == (float)i);
        assert_true(out[i] == (float)i);
    }
    device_give(dev, plain[0], BYTES);
    assert_int_equal(device_count(dev).unpinned_bytes, BYTES);
    device_give(dev, plain[1], BYTES);
    assert_int_equal(device_count(dev).unpinned_bytes, 0);
    device_give(dev, block, BYTES);
    device_close(dev);
    assert_int_equal(fake_driver_count().host_blocks, 0);
    dev = open_gpu(false);
    assert_int_equal(device_take_host(dev, BYTES, (void **)&plain[0], &error), SIFR_OK);
    assert_int_equal(device_count(dev).unpinned_bytes, 0);
    device_give(dev, plain[0], BYTES);
    device_close(dev);
}

/* Ranks on one GPU have equal shares of what is free. */
static void shared_capacity(void **state) {
    (void)state;
    int64_t capacity[2];
    for (int sharers = 1; sharers <= 2; sharers++) {
        device *dev;
        sifr_error error;
        cuda_options options = {.driver = &driver,
                                .threads = 1,
                                .sharers = sharers,
                                .images = &image,
                                .image_count = 1};
        assert_int_equal(cuda_device_open(&options, &dev, &error), SIFR_OK);
        capacity[sharers - 1] = device_capacity(dev);
        device_close(dev);
    }
    assert_true(capacity[0] > 0);
    assert_int_equal(capacity[1], capacity[0] / 2);
}

static cuda_result refuse_context(cuda_context *context, cuda_device_handle gpu) {
    (void)context;
    (void)gpu;
    return CUDA_OUT_OF_MEMORY;
}

static void full_gpu(void **state) {
    (void)state;
    device *dev;
    sifr_error error;
    cuda_options options = {.driver = &driver, .threads = 1, .images = &image, .image_count = 1};
    const cuda_driver whole = driver;
    driver.cuDevicePrimaryCtxRetain = refuse_context;
    fails(cuda_device_open(&options, &dev, &error), SIFR_NO_MEMORY, &error,
          "memory: Fake GPU (GPU-00010203-0405-0607-0809-0a0b0c0d0e0f) has no room for this "
          "process's context");
    driver = whole;
    assert_int_equal(fake_driver_count().contexts, 0);
}

/* A run may leave less than the scratch of products in bf16 takes: its own idle memory is used, and
 * without that their rate is not known. */
static void measures_where_little_is_left(void **state) {
    (void)state;
    enum { IDLE = 40 << 20 };
    sifr_error error;
    void *block;
    for (int idle = 0; idle < 2; idle++) {
        device_limits limits = {0};
        fake_driver_limit(idle ? IDLE : 1 << 20);
        device *dev = open_gpu(false);
        if (idle) assert_int_equal(device_take(dev, IDLE, &block, &error), SIFR_OK);
        if (device_measure(dev, idle ? block : NULL, idle ? IDLE : 1 << 16, &limits, &error) !=
            SIFR_OK)
            fail_msg("%s", error.message);
        assert_true(limits.bytes > 0);
        assert_true(limits.fp32_operations > 0);
        assert_true((limits.bf16_operations == limits.fp32_operations) == !idle);
        if (idle) device_give(dev, block, IDLE);
        device_close(dev);
        assert_int_equal(fake_driver_count().blocks, 0);
    }
}

static void too_much(void **state) {
    (void)state;
    device *dev = open_gpu(false);
    sifr_error error;
    void *block;
    fails(device_take(dev, 2 << 20, &block, &error), SIFR_NO_MEMORY, &error,
          "memory: 2.00 MiB of the GPU are needed, and 1.00 MiB of its 1.00 MiB are free; "
          "nvidia-smi");
    assert_int_equal(device_count(dev).device_bytes, 0);
    device_close(dev);
}

/* With the check on, the kernel that failed is named, not a later one. */
static void failed_kernel(void **state) {
    (void)state;
    device *dev = open_gpu(true);
    sifr_error error;
    float *block;
    assert_int_equal(device_take(dev, 2 * BYTES, (void **)&block, &error), SIFR_OK);
    device_call call = add_into(block + ELEMENTS, block);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
    assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
    fake_driver_fail_launch(0, CUDA_ILLEGAL_ADDRESS);
    fails(device_run(dev, &call, &error), SIFR_FAILED, &error, "kernel ");
    fails(device_run(dev, &call, &error), SIFR_FAILED, &error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    device_close(dev);
}

/* A queue that waits for a word: what it has before goes on, the rest does not begin. */
typedef struct awaited {
    device *dev;
    float *block, *out; /* out: of the host */
    device_flag *words; /* two */
    device_call call;
    device_mark out_mark; /* of DEVICE_OUT */
    _Atomic int given;
} awaited;

static awaited begin_flag_wait(void) {
    awaited a = {.dev = open_gpu(false)};
    sifr_error error;
    assert_int_equal(device_take(a.dev, 2 * BYTES, (void **)&a.block, &error), SIFR_OK);
    assert_int_equal(device_take_host(a.dev, BYTES, (void **)&a.out, &error), SIFR_OK);
    assert_int_equal(device_take_host(a.dev, 8, (void **)&a.words, &error), SIFR_OK);
    for (int i = 0; i < ELEMENTS; i++) a.out[i] = 1;
    assert_int_equal(device_copy(a.dev, a.block, a.out, BYTES, &error), SIFR_OK);
    a.call = add_into(a.block + ELEMENTS, a.block);
    assert_int_equal(device_prepare(a.dev, &a.call, &error), SIFR_OK);
    return a;
}

static void end_flag_wait(awaited *a, float sum) {
    sifr_error error;
    assert_int_equal(
        device_start_copy(a->dev, DEVICE_COMPUTE, a->out, a->block + ELEMENTS, BYTES, &error),
        SIFR_OK);
    assert_int_equal(device_finish_queue(a->dev, DEVICE_COMPUTE, &error), SIFR_OK);
    for (int i = 0; i < ELEMENTS; i++) assert_true(a->out[i] == sum);
    device_give(a->dev, a->words, 8);
    device_give(a->dev, a->out, BYTES);
    device_give(a->dev, a->block, 2 * BYTES);
    device_close(a->dev);
    assert_int_equal(fake_driver_count().host_blocks, 0);
}

static void rest(void) {
    const struct timespec nap = {.tv_nsec = 20000000};
    nanosleep(&nap, NULL);
}

/* An old mark stands for the same point though its event was used again, behind the wait. */
static void awaits_a_word(void **state) {
    (void)state;
    awaited a = begin_flag_wait();
    device_mark old, behind;
    bool reached;
    sifr_error error;
    assert_true(device_can_wait_flags(a.dev, a.words));
    assert_int_equal(device_run(a.dev, &a.call, &error), SIFR_OK);
    assert_int_equal(device_mark_here(a.dev, DEVICE_COMPUTE, &old, &error), SIFR_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(device_mark_here(a.dev, DEVICE_COMPUTE, &behind, &error), SIFR_OK);
    assert_int_equal(device_wait_flag(a.dev, a.words, 1, &error), SIFR_OK);
    assert_int_equal(device_run(a.dev, &a.call, &error), SIFR_OK);
    for (int i = 0; i < 200; i++)
        assert_int_equal(device_mark_here(a.dev, DEVICE_COMPUTE, &behind, &error), SIFR_OK);
    assert_int_equal(device_finish(a.dev, old, &error), SIFR_OK);
    rest();
    assert_int_equal(device_reached(a.dev, behind, &reached, &error), SIFR_OK);
    assert_false(reached);
    assert_int_equal(device_reached(a.dev, old, &reached, &error), SIFR_OK);
    assert_true(reached);
    device_flag_set(a.words, 1);
    end_flag_wait(&a, 2);
}

enum { FAR = 3 * CUDA_AHEAD };

static void *give_kernels(void *argument) {
    awaited *a = argument;
    sifr_error error;
    for (a->given = 0; a->given < FAR; a->given++)
        if (device_run(a->dev, &a->call, &error) != SIFR_OK) abort();
    return NULL;
}

static void *give_copies(void *argument) {
    awaited *a = argument;
    sifr_error error;
    for (a->given = 0; a->given < FAR; a->given++)
        if (device_start_copy(a->dev, DEVICE_COMPUTE, a->block + ELEMENTS, a->block, BYTES,
                              &error) != SIFR_OK)
            abort();
    return NULL;
}

/* For a mark that lies behind the word, too. */
static void *give_waits(void *argument) {
    awaited *a = argument;
    sifr_error error;
    for (a->given = 0; a->given < FAR; a->given++)
        if (device_queue_wait(a->dev, DEVICE_COMPUTE, a->out_mark, &error) != SIFR_OK) abort();
    return NULL;
}

/* The host that gives work goes so far ahead of a word and no further, however it is counted. */
static void stops_ahead(void *(*give)(void *), float sum) {
    awaited a = begin_flag_wait();
    pthread_t thread;
    sifr_error error;
    device_flag_set(&a.words[1], UINT32_MAX);
    assert_int_equal(device_wait_flag(a.dev, &a.words[0], 1, &error), SIFR_OK);
    assert_int_equal(device_wait_flag(a.dev, &a.words[1], 1, &error), SIFR_OK);
    assert_int_equal(pthread_create(&thread, NULL, give, &a), 0);
    for (int w = 0; w < 2; w++) {
        while (a.given < CUDA_AHEAD - 2 + w) rest();
        rest();
        assert_int_equal(a.given, CUDA_AHEAD - 2 + w);
        device_flag_set(&a.words[w], 1);
    }
    pthread_join(thread, NULL);
    end_flag_wait(&a, sum);
}

static void not_too_far_ahead(void **state) {
    (void)state;
    stops_ahead(give_kernels, FAR);
    stops_ahead(give_copies, 1);
}

/* Waits for another queue, whose work is behind the word. */
static void not_too_many_waits(void **state) {
    (void)state;
    awaited a = begin_flag_wait();
    pthread_t thread;
    device_mark before;
    sifr_error error;
    assert_int_equal(device_mark_here(a.dev, DEVICE_COMPUTE, &before, &error), SIFR_OK);
    assert_int_equal(device_finish(a.dev, before, &error), SIFR_OK);
    assert_int_equal(device_wait_flag(a.dev, &a.words[0], 1, &error), SIFR_OK);
    assert_int_equal(device_mark_here(a.dev, DEVICE_COMPUTE, &before, &error), SIFR_OK);
    assert_int_equal(device_queue_wait(a.dev, DEVICE_OUT, before, &error), SIFR_OK);
    assert_int_equal(device_mark_here(a.dev, DEVICE_OUT, &a.out_mark, &error), SIFR_OK);
    assert_int_equal(pthread_create(&thread, NULL, give_waits, &a), 0);
    while (a.given < CUDA_AHEAD - 2) rest();
    rest();
    assert_int_equal(a.given, CUDA_AHEAD - 2);
    assert_true(fake_driver_count().deepest <= CUDA_AHEAD);
    device_flag_set(&a.words[0], 1);
    pthread_join(thread, NULL);
    end_flag_wait(&a, 0);
}

static void *write_late(void *argument) {
    rest();
    device_flag_set(argument, 1);
    return NULL;
}

/* New memory is clear for every queue, also where DEVICE_COMPUTE has not come so far. */
static void new_memory_is_clear(void **state) {
    (void)state;
    awaited a = begin_flag_wait();
    pthread_t thread;
    sifr_error error;
    float *block;
    assert_int_equal(device_wait_flag(a.dev, a.words, 1, &error), SIFR_OK);
    assert_int_equal(pthread_create(&thread, NULL, write_late, a.words), 0);
    assert_int_equal(device_take(a.dev, BYTES, (void **)&block, &error), SIFR_OK);
    assert_int_equal(device_start_copy(a.dev, DEVICE_OUT, a.out, block, BYTES, &error), SIFR_OK);
    assert_int_equal(device_finish_queue(a.dev, DEVICE_OUT, &error), SIFR_OK);
    for (int i = 0; i < ELEMENTS; i++) assert_true(a.out[i] == 0);
    pthread_join(thread, NULL);
    device_give(a.dev, block, BYTES);
    end_flag_wait(&a, 0);
}

static cuda_result refuse_value(cuda_stream stream, cuda_address address, uint32_t value,
                                unsigned flags) {
    (void)stream, (void)address, (void)value, (void)flags;
    return CUDA_NOT_SUPPORTED;
}

/* With the check, as was asked, without pinned memory, by a GPU that cannot. */
static void cannot_wait(void **state) {
    (void)state;
    static const char *const why[] = {"SIFR_DEVICE_CHECK=1", "the host",
                                      "cuMemHostGetDevicePointer",
                                      "cuStreamWaitValue32: CUDA_ERROR_NOT_SUPPORTED 801"};
    const cuda_driver whole = driver;
    for (int how = 0; how < 4; how++) {
        cuda_options options = {.driver = &driver,
                                .threads = 1,
                                .images = &image,
                                .image_count = 1,
                                .check = how == 0,
                                .host_waits = how == 1 ? "the host" : NULL};
        device *dev;
        device_flag *word;
        sifr_error error;
        if (how == 2) driver.cuMemHostAlloc = refuse_host;
        if (how == 3) driver.cuStreamWaitValue32 = refuse_value;
        assert_int_equal(cuda_device_open(&options, &dev, &error), SIFR_OK);
        assert_int_equal(device_take_host(dev, 4, (void **)&word, &error), SIFR_OK);
        assert_false(device_can_wait_flags(dev, word));
        device_note_host_wait(dev, "the first step");
        device_ran ran;
        device_ran_of(dev, &ran);
        assert_int_equal(ran.word_waits, 0);
        assert_int_equal(ran.host_waits, 1);
        if (strncmp(ran.waits_why, why[how], strlen(why[how])) != 0) fail_msg("%s", ran.waits_why);
        assert_int_equal(ran.unpinned_bytes, how == 2 ? 4 : 0);
        device_give(dev, word, 4);
        device_close(dev);
        driver = whole;
    }
}

/* Kernels in three images, in turn, as nvcc's are in one for each file. */
typedef struct split_images {
    cuda_image images[3];
    char text[3][CUDA_KERNELS * 48];
    uint16_t kernels[3][CUDA_KERNELS];
} split_images;

static void split(split_images *s) {
    size_t used[3] = {0};
    for (int i = 0; i < 3; i++)
        s->images[i] = (cuda_image){.name = "split", .data = s->text[i], .kernels = s->kernels[i]};
    for (int k = 0; k < CUDA_KERNELS; k++) {
        cuda_image *in = &s->images[k % 3];
        s->kernels[k % 3][in->kernel_count++] = (uint16_t)k;
        used[k % 3] +=
            (size_t)snprintf(s->text[k % 3] + used[k % 3], sizeof s->text[0] - used[k % 3],
                             "sifr_%s ", cuda_kernel_name((cuda_kernel)k));
    }
}

/* Each kernel is found where the table says, and nothing is looked up where it is not. A table that
 * is wrong is an error. */
static void each_kernel_in_its_image(void **state) {
    (void)state;
    static split_images s;
    sifr_error error;
    device *dev;
    float *block, out[ELEMENTS];
    cuda_options options = {.driver = &driver, .threads = 1, .images = s.images, .image_count = 3};
    split(&s);
    assert_int_equal(cuda_device_open(&options, &dev, &error), SIFR_OK);
    assert_int_equal(fake_driver_count().lookups, CUDA_KERNELS);
    assert_int_equal(fake_driver_count().missed, 0);
    assert_int_equal(device_take(dev, 2 * BYTES, (void **)&block, &error), SIFR_OK);
    device_call call = add_into(block + ELEMENTS, block);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
    assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
    assert_int_equal(device_copy(dev, out, block + ELEMENTS, BYTES, &error), SIFR_OK);
    device_give(dev, block, 2 * BYTES);
    device_close(dev);
    s.kernels[1][0] = s.kernels[0][0];
    fails(cuda_device_open(&options, &dev, &error), SIFR_FAILED, &error,
          "kernel clear in the image split: CUDA_ERROR_NOT_FOUND");
    assert_int_equal(fake_driver_count().missed, 1);
    assert_int_equal(fake_driver_count().modules, 0);
}

static void no_kernels(void **state) {
    (void)state;
    device *dev;
    sifr_error error;
    cuda_options options = {.driver = &driver, .threads = 1, .images = &image, .image_count = 0};
    fails(cuda_device_open(&options, &dev, &error), SIFR_FAILED, &error, "no kernels for GPUs");
    assert_int_equal(fake_driver_count().contexts, 0);
}

int main(void) {
    if (shim_skipped()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_and_kernels, start, stop),
        cmocka_unit_test_setup_teardown(step_numbers, start, stop),
        cmocka_unit_test_setup_teardown(host_memory_unpinned, start, stop),
        cmocka_unit_test_setup_teardown(shared_capacity, start, stop),
        cmocka_unit_test_setup_teardown(full_gpu, start, stop),
        cmocka_unit_test_setup_teardown(measures_where_little_is_left, start, stop),
        cmocka_unit_test_setup_teardown(too_much, start, stop),
        cmocka_unit_test_setup_teardown(failed_kernel, start, stop),
        cmocka_unit_test_setup_teardown(awaits_a_word, start, stop),
        cmocka_unit_test_setup_teardown(not_too_far_ahead, start, stop),
        cmocka_unit_test_setup_teardown(not_too_many_waits, start, stop),
        cmocka_unit_test_setup_teardown(new_memory_is_clear, start, stop),
        cmocka_unit_test_setup_teardown(cannot_wait, start, stop),
        cmocka_unit_test_setup_teardown(each_kernel_in_its_image, start, stop),
        cmocka_unit_test_setup_teardown(no_kernels, start, stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
