/* State of a GPU, which a fake driver plays, goes through two pinned pieces: all bytes, in as few
 * copies as there are pieces, the next copy beside the work on a piece, from a checkpoint of a GPU
 * to the CPU and back. label: full, not under sanitizers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "checkpoint/checkpoint.h"
#include "plan/queries.h"
#include "support/cuda/fake_driver.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/scratch.h"
#include "support/zero_run.h"

enum { PIECE = 4096, BYTES = 2 * PIECE + 100, WORDS = 140000 };

static void expect_ok(sifr_status status, const sifr_error *error) {
    if (status != SIFR_OK) fail_msg("%s", error->message);
}

/* --- pieces by themselves --- */

typedef struct taken {
    char bytes[BYTES];
    int64_t copies[3]; /* given by the time of each call */
    int calls;
} taken;

static sifr_status take(void *user, const void *bytes, int64_t first, int64_t count,
                        sifr_error *error) {
    taken *t = user;
    (void)error;
    assert_true(t->calls < 3);
    assert_true(first == (int64_t)t->calls * PIECE);
    assert_true(first + count <= BYTES);
    t->copies[t->calls++] = fake_driver_count().copies;
    memcpy(t->bytes + first, bytes, (size_t)count);
    return SIFR_OK;
}

static void by_pieces(void **state) {
    (void)state;
    static char from[BYTES];
    static taken to;
    sifr_error error = {0};
    engine_pieces *pieces;
    device *dev;
    void *memory, *piece;
    expect_ok(fake_gpu_open(&dev, &error), &error);
    expect_ok(device_take(dev, BYTES, &memory, &error), &error);
    expect_ok(engine_pieces_open(dev, PIECE, &pieces, &error), &error);
    assert_int_equal(device_count(dev).host_bytes, 2 * PIECE);
    for (int i = 0; i < BYTES; i++) from[i] = (char)(i * 7 + i / 251);
    fake_driver_counts before = fake_driver_count();
    expect_ok(engine_pieces_write(pieces, memory, from, BYTES, &error), &error);
    assert_int_equal(fake_driver_count().copies - before.copies, 3);
    expect_ok(engine_pieces_next(pieces, &piece, &error), &error); /* out of a piece: one copy */
    memset(piece, 5, 100);
    expect_ok(engine_pieces_write(pieces, (char *)memory + 50, piece, 100, &error), &error);
    memset(from + 50, 5, 100);
    assert_int_equal(fake_driver_count().copies - before.copies, 4);
    expect_ok(engine_pieces_read(pieces, memory, BYTES, take, &to, &error), &error);
    assert_int_equal(to.calls, 3);
    assert_memory_equal(to.bytes, from, BYTES);
    for (int i = 0; i < 3; i++) /* the next one is under way */
        assert_int_equal(to.copies[i] - before.copies, 4 + base_min_i64(i + 2, 3));
    expect_ok(engine_pieces_fetch(pieces, (char *)memory + PIECE, 100, &piece, &error), &error);
    assert_memory_equal(piece, from + PIECE, 100);
    assert_int_equal(fake_driver_count().pageable_copies, before.pageable_copies);
    engine_pieces_close(pieces);
    device_give(dev, memory, BYTES);
    device_close(dev);
}

/* --- a model whose words take more than a piece --- */

static sifr_model *model;

static sifr_engine *open_engine(sifr_precision precision, bool gpu, uint64_t seed) {
    sifr_settings options = sifr_settings_defaults();
    sifr_error error = {0};
    comm_group *group;
    device *dev;
    sifr_engine *engine = NULL;
    options.precision = precision;
    options.threads = 1;
    options.seq_length = ZERO_LENGTH;
    expect_ok(gpu ? fake_gpu_open(&dev, &error) : device_open_cpu(1, NULL, &dev, &error), &error);
    expect_ok(comm_open_self(&group, &error), &error);
    expect_ok(engine_create_on(dev, model, &options, group, &engine, &error), &error);
    engine->own_group = group;
    expect_ok(sifr_engine_initialise(engine, seed, &error), &error);
    return engine;
}

/* Of all parts of all weights. */
static int64_t pieces_of_state(const sifr_engine *engine) {
    int64_t count = 0, piece = plan_piece_bytes(engine->training);
    for (size_t w = 0; w < model->weight_count; w++) {
        for (int p = 0; p < engine_parts(engine); p++) {
            int64_t first, elements;
            assert_true(engine_range(engine, w, (engine_part)p, &first, &elements));
            int64_t bytes =
                elements * base_dtype_bytes(engine_weight_type(engine, w, (engine_part)p));
            count += (bytes + piece - 1) / piece;
        }
    }
    return count;
}

static void save(const sifr_engine *engine, const char *output) {
    json_t *nothing = json_object();
    checkpoint_record record = {
        .must_match = nothing, .may_differ = nothing, .state = nothing, .trainer = nothing};
    checkpoint_settings settings = {0};
    sifr_error error = {0};
    expect_ok(checkpoint_save(engine, output, &record, &settings, NULL, &error), &error);
    json_decref(nothing);
}

static void load(sifr_engine *engine, const char *output) {
    json_t *nothing = json_object(), *state = NULL;
    checkpoint_record record = {
        .must_match = nothing, .may_differ = nothing, .state = nothing, .trainer = nothing};
    sifr_error error = {0};
    expect_ok(checkpoint_load(engine, output, &record, &state, NULL, &error), &error);
    json_decref(state);
    json_decref(nothing);
}

static void read_buffer(const sifr_engine *engine, int32_t buffer, char **out, int64_t *bytes) {
    sifr_error error = {0};
    *bytes = engine->training->buffers[buffer].bytes;
    *out = malloc((size_t)*bytes);
    expect_ok(engine_get(engine->trainer, buffer, 0, *out, *bytes, &error), &error);
}

/* All state, and the parameters that kernels read. */
static void expect_same(const sifr_engine *a, const sifr_engine *b) {
    const plan_schedule *s = a->training, *t = b->training;
    for (size_t u = 0; u < model->segment_count; u++) {
        const int32_t ours[] = {s->parameters[u], s->masters[u], s->states[0][u], s->states[1][u]};
        const int32_t theirs[] = {t->parameters[u], t->masters[u], t->states[0][u],
                                  t->states[1][u]};
        for (int i = 0; i < 4; i++) {
            char *x, *y;
            int64_t m, n;
            if (ours[i] < 0) continue;
            read_buffer(a, ours[i], &x, &m);
            read_buffer(b, theirs[i], &y, &n);
            assert_int_equal(m, n);
            if (memcmp(x, y, (size_t)m) != 0) fail_msg("segment %zu, state %d: other bytes", u, i);
            free(x);
            free(y);
        }
    }
}

static void there_and_back(void **state) {
    (void)state;
    for (int n = 0; n < 2; n++) {
        sifr_precision precision = n ? SIFR_BF16 : SIFR_FP32;
        sifr_error error = {0};
        sifr_engine *gpu = open_engine(precision, true, 3), *cpu = open_engine(precision, false, 4);
        assert_int_equal(plan_piece_bytes(gpu->training), PLAN_MOST_PIECE);
        fake_driver_counts opened = fake_driver_count();
        expect_ok(sifr_engine_initialise(gpu, 3, &error), &error);
        fake_driver_counts before = fake_driver_count();
        assert_int_equal(before.pageable_copies, opened.pageable_copies);
        save(gpu, scratch_path("there"));
        fake_driver_counts saved = fake_driver_count(); /* written, and compared with the file */
        assert_int_equal(saved.copies - before.copies, 2 * pieces_of_state(gpu));
        assert_int_equal(saved.pageable_copies, before.pageable_copies);
        load(cpu, scratch_path("there"));
        expect_same(gpu, cpu);
        sifr_engine *made = open_engine(precision, false, 3); /* the seed gives one model */
        expect_same(gpu, made);
        sifr_engine_free(made);
        save(cpu, scratch_path("back"));
        sifr_engine *back = open_engine(precision, true, 5);
        opened = fake_driver_count();
        load(back, scratch_path("back"));
        fake_driver_counts loaded = fake_driver_count();
        if (!n) assert_int_equal(loaded.copies - opened.copies, pieces_of_state(back));
        assert_int_equal(loaded.pageable_copies, opened.pageable_copies);
        expect_same(back, cpu);
        sifr_engine_free(gpu);
        sifr_engine_free(cpu);
        sifr_engine_free(back);
        assert_int_equal(base_remove_tree(scratch_path("there"), NULL), SIFR_OK);
        assert_int_equal(base_remove_tree(scratch_path("back"), NULL), SIFR_OK);
    }
}

static int begin(void **state) {
    sifr_error error = {0};
    model_config config = zero_config("llama");
    config.vocab_size = WORDS;
    if (model_from_config(&config, &model, &error) != SIFR_OK) return -1;
    return scratch_setup(state) || fake_gpu_start(state);
}

static int end(void **state) {
    int result = fake_gpu_stop(state);
    sifr_model_free(model);
    return scratch_teardown(state) || result;
}

int main(void) {
    if (shim_skipped()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_pieces),
                                       cmocka_unit_test(there_and_back)};
    return cmocka_run_group_tests(tests, begin, end);
}
