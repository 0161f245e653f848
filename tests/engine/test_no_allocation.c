/* Promise 2 of the design: once a run is under way, a step does not call the allocator. The
 * program's own malloc family, below, counts and hands over to glibc's. not under sanitizers */
#include "engine/small_model.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static atomic_bool counting;
static atomic_long calls; /* of any thread while counting */

/* Libraries find these in place of glibc's only if they are visible. */
#define SEEN __attribute__((visibility("default")))

static void count(void) {
    if (atomic_load(&counting)) atomic_fetch_add(&calls, 1);
}

SEEN void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

SEEN void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

SEEN void *realloc(void *block, size_t size) {
    count();
    return __libc_realloc(block, size);
}

SEEN void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

SEEN void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

SEEN int posix_memalign(void **out, size_t alignment, size_t size) {
    count();
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

SEEN void free(void *block) {
    if (block) count();
    __libc_free(block);
}

static long calls_of_steps(small_kind kind, const sifr_engine_options *options) {
    enum { TOKENS = 2 * 2 * 40 };
    static int32_t tokens[TOKENS], labels[TOKENS];
    sifr_model *model = small_model(kind);
    sifr_engine *engine = small_engine(model, options);
    sifr_step_result result;
    sifr_error error = {0};
    calls = 0;
    for (int step = 0; step < 6; step++) {
        small_batch(step, TOKENS, tokens, labels);
        counting = step >= 2;
        sifr_status status = sifr_engine_step(engine, tokens, labels, 1e-3, &result, &error);
        counting = false;
        if (status != SIFR_OK) fail_msg("%s", error.message);
        assert_true(result.updated);
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
    return calls;
}

static void test_steps(void **state) {
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        for (int variant = 0; variant < 8; variant++) {
            sifr_engine_options options = sifr_engine_defaults();
            options.threads = 2;
            options.sequences = 2;
            options.length = 40;
            options.micro_batches = 2;
            options.precision = variant & 1 ? SIFR_BF16 : SIFR_FP32;
            options.unit_order = variant & 2;
            options.recompute = variant & 4;
            long made = calls_of_steps((small_kind)kind, &options);
            if (made) {
                fail_msg("%s, %s, %s order%s: %ld calls of the allocator in four steps",
                         small_names[kind], variant & 1 ? "bf16" : "fp32",
                         options.unit_order ? "unit" : "batch",
                         options.recompute ? ", recompute" : "", made);
            }
        }
    }
}

/* The counter sees what the test and what other libraries ask for. */
static void test_counter(void **state) {
    (void)state;
    calls = 0;
    counting = true;
    void *volatile block = malloc(100);
    free(block);
    char *volatile text = strdup(small_names[0]); /* malloc inside libc.so */
    free(text);
    counting = false;
    assert_int_equal(calls, 4);
}

/* What a product's library allocates is counted too: creating one does. */
static void test_libraries(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_LLAMA);
    sifr_engine_options options = sifr_engine_defaults();
    options.length = 40;
    calls = 0;
    counting = true;
    sifr_engine *engine = small_engine(model, &options);
    counting = false;
    assert_true(calls > 100);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counter),
cmocka_unit_test(test_libraries),
                                       cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
