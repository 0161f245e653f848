/* Promise 2 of the design: from the third step on our code does not call the allocator, and no
 * product is created, with all of profiling on. The program's own malloc family, below, counts and
 * hands over to glibc's. oneDNN takes a few hundred bytes to execute a primitive, and gives them
 * back: such calls may neither leave anything behind nor take a block of any size. Below AVX-512
 * its products pack their operands, for each by itself, into a block of pages that they take for
 * it. not under sanitizers */
#include "engine/small_model.h"
#include "train/profile/profile.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* What was asked for, by any thread, while counting. */
static atomic_bool counting;
static atomic_long own, foreign;        /* calls from this program's code, and from libraries */
static atomic_long taken, given;        /* blocks, by anybody */
static atomic_size_t largest;           /* block that a library asked for */
extern const char __executable_start[]; /* of the linker */
extern const char etext[];

static void count(const void *caller, size_t size, bool takes) {
    if (!atomic_load(&counting)) return;
    bool ours = (const char *)caller >= __executable_start && (const char *)caller < etext;
    atomic_fetch_add(ours ? &own : &foreign, 1);
    atomic_fetch_add(takes ? &taken : &given, 1);
    if (!ours && size > atomic_load(&largest)) atomic_store(&largest, size);
}

static void start_counting(void) {
    own = foreign = taken = given = 0;
    largest = 0;
    counting = true;
}

/* Libraries find these in place of glibc's only if they are visible. */
#define SEEN __attribute__((visibility("default"), noinline))

SEEN void *malloc(size_t size) {
    count(__builtin_return_address(0), size, true);
    return __libc_malloc(size);
}

SEEN void *calloc(size_t number, size_t size) {
    count(__builtin_return_address(0), number * size, true);
    return __libc_calloc(number, size);
}

SEEN void *realloc(void *block, size_t size) {
    count(__builtin_return_address(0), size, !block);
    return __libc_realloc(block, size);
}

SEEN void *memalign(size_t alignment, size_t size) {
    count(__builtin_return_address(0), size, true);
    return __libc_memalign(alignment, size);
}

SEEN void *aligned_alloc(size_t alignment, size_t size) {
    count(__builtin_return_address(0), size, true);
    return __libc_memalign(alignment, size);
}

SEEN int posix_memalign(void **out, size_t alignment, size_t size) {
    count(__builtin_return_address(0), size, true);
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

SEEN void free(void *block) {
    if (block) count(__builtin_return_address(0), 0, false);
    __libc_free(block);
}

static void run_step(sifr_engine *engine, train_profile *profile, int step) {
    enum { TOKENS = 2 * 2 * 40 };
    static int32_t tokens[TOKENS], labels[TOKENS];
    sifr_step_result result;
    sifr_error error = {0};
    small_batch(step, TOKENS, tokens, labels);
    train_profile_begin_step(profile);
    sifr_status status = sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels},
                                          1e-3, &result, &error);
    train_profile_end_step(profile);
    if (status == SIFR_OK) status = train_profile_step(profile, 1, &error);
    if (status != SIFR_OK) fail_msg("%s", error.message);
    assert_true(result.updated);
}

static void count_steps(small_kind kind, const sifr_settings *options) {
    sifr_model *model = small_model(kind);
    sifr_engine *engine = small_engine(model, options);
    sifr_error error = {0};
    static const train_host host = {0};
    sifr_config config = {.wall_clock_breakdown = true,
                          .comms_logger = {true, true, ~0U},
                          .trace = "/tmp/never-written.json",
                          .trace_first = 2,
                          .trace_last = 99};
    train_profile profile;
    assert_int_equal(train_profile_open(&profile, &config, &host, engine, NULL, 0, 99, &error),
                     SIFR_OK);
    int step = 0;
    while (step < 2) run_step(engine, &profile, step++);
    /* A thread's first product, which may leave a block with the thread for good, need not be in
     * the steps before these: as often as there are threads, and then nothing more. */
    long calls = 0;
    size_t block = 0;
    for (int turn = 0; turn <= options->threads; turn++) {
        start_counting();
        for (int last = step + 4; step < last; step++) run_step(engine, &profile, step);
        counting = false;
        calls += own;
        block = largest > block ? largest : block;
        if (taken == given) break;
    }
    own = calls;
    largest = block;
    assert_int_equal(train_trace_steps(profile.trace), step - 1);
    train_profile_close(&profile);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

static size_t most_of_a_library(void) {
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    bool wide = strncmp(device_isa(dev), "avx512", 6) == 0;
    device_close(dev);
    return wide ? 4096 : 1 << 15;
}

static void test_steps(void **state) {
    size_t most = most_of_a_library();
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        for (int variant = 0; variant < 12; variant++) {
            sifr_settings options = sifr_settings_defaults();
            options.threads = 2;
            options.micro_batch_size = 2;
            options.seq_length = 40;
            options.gradient_accumulation_steps = 2;
            options.precision = (sifr_precision)(variant / 4);
            options.step_order = variant & 1 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            options.recompute = variant & 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            count_steps((small_kind)kind, &options);
            if (own || taken != given || largest >= most) {
                fail_msg("%s, %s, %s order%s: in four steps sifr called the allocator %ld times, "
                         "libraries %ld times; %ld blocks taken, %ld given back; a library's "
                         "largest %zu bytes",
                         small_names[kind],
                         (const char *const[]){"fp32", "bf16", "fp16"}[options.precision],
                         options.step_order == SIFR_STEP_UNIT ? "unit" : "batch",
                         options.recompute ? ", recompute" : "", own, foreign, taken, given,
                         largest);
            }
        }
    }
}

/* The counters see what the test and what other libraries ask for. */
static void test_counters(void **state) {
    (void)state;
    start_counting();
    void *volatile block = malloc(100);
    free(block);
    char *volatile text = strdup(small_names[0]); /* malloc inside libc.so */
    free(text);
    counting = false;
    assert_int_equal(own, 3);
    assert_int_equal(foreign, 1);
    sifr_model *model = small_model(SMALL_LLAMA);
    sifr_settings options = sifr_settings_defaults();
    options.seq_length = 40;
    start_counting();
    sifr_engine *engine = small_engine(model, &options); /* creates products */
    counting = false;
    assert_true(own > 100);
    assert_true(foreign > 100);
    assert_true(largest >= 4096);
    assert_true(taken > given);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counters),
                                       cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
