/* PowerSGD over ranks that are threads: plain steps before the first compressed one have the plain
 * bits; the same bits from run to run, on each rank, at all stages, in both orders, with copies
 * of the state; full rank gives the plain result; the sum rule of the errors; fp16 steps that are
 * skipped change no error and no factor; wire and memory by the formula; each step moves what its
 * plan says (zero_run.h). in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "plan/queries.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8, START = 2, RANKS = 8 };

static sifr_compression compression_of(int64_t rank, int64_t start) {
    sifr_compression c = sifr_settings_defaults().compression;
    c.type = SIFR_POWER_SGD;
    c.rank = rank;
    c.start = start;
    return c;
}

static zero_variant variant_of(const sifr_compression *c, int32_t ranks) {
    return (zero_variant){.ranks = ranks,
                          .type = "llama",
                          .global = GLOBAL,
                          .steps = ZERO_MOST_STEPS,
                          .compression = c};
}

static void plain_at_first(void **state) {
    (void)state;
    sifr_compression late = compression_of(1, ZERO_MOST_STEPS), off = late;
    off.type = SIFR_COMPRESSION_NONE;
    for (int stage = 0; stage < 2; stage++) {
        zero_variant v = variant_of(&off, 4);
        v.stage = stage;
        v.precision = (sifr_precision)(2 * stage);
        zero_outcome want = zero_run(v);
        v.compression = &late;
        zero_expect_same(&want, v);
        free(want.weights);
    }
    /* With one data rank there is nothing to send. */
    zero_variant v = variant_of(&off, 1);
    zero_outcome want = zero_run(v);
    sifr_compression soon = compression_of(1, START);
    v.compression = &soon;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* --- the same bits --- */

static void repeats(void **state) {
    (void)state;
    sifr_compression c = compression_of(2, START);
    size_t turn = 0;
    for (int t = 0; t < 3; t++) {
        zero_variant v = variant_of(&c, 4);
        v.precision = (sifr_precision)t;
        v.type = t == 1 ? "gpt2" : "llama";
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 8; n++) {
            if (n > 0 && thinned_run(turn++)) continue;
            v.stage = n % 4;
            v.unit_order = n == 2 || n == 5;
            v.recompute = n == 3;
            v.shard_size = n > 3 ? 2 : 0;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
}

/* Beside gathers of stage 3 that come from second copies and carry 8 bits, and state on disk. */
static void with_others(void **state) {
    (void)state;
    sifr_compression c = compression_of(1, START);
    sifr_zero keys = sifr_settings_defaults().zero;
    zero_variant v = variant_of(&c, 4);
    v.stage = 3;
    zero_outcome want = zero_run(v);
    keys.hpz_partition_size = 2;
    keys.overlap_comm = true;
    v.keys = &keys;
    zero_expect_same(&want, v);
    keys.quantized_weights = true;
    zero_outcome coded = zero_run(v);
    keys.hpz_partition_size = 0;
    v.unit_order = true;
    zero_expect_same(&coded, v);
    assert_false(zero_is_same(&want, &coded));
    free(want.weights), free(coded.weights);
}

/* Matrices that are not trained are held in 4 or 8 bits, and cut at stage 3: they have no gradients
 * to compress. */
static void beside_coded(void **state) {
    (void)state;
    static const model_coding codings[] = {MODEL_NF4, MODEL_NF4_DOUBLED, MODEL_INT8};
    sifr_compression c = compression_of(1, START), off = c;
    off.type = SIFR_COMPRESSION_NONE;
    for (size_t n = 0; n < 3; n++) {
        if (n > 0 && thinned_run(n)) continue;
        zero_variant v = variant_of(&c, 2);
        v.coding = codings[n];
        v.intermediate = 1000, v.freeze[0] = "*mlp*";
        v.precision = n ? SIFR_BF16 : SIFR_FP32;
        zero_outcome want = zero_run(v);
        for (v.stage = 1; v.stage <= 3; v.stage++) zero_expect_same(&want, v);
        v.stage = 0, v.compression = &off;
        zero_outcome plain = zero_run(v);
        assert_memory_equal(plain.loss, want.loss, (START + 1) * sizeof *plain.loss);
        assert_false(zero_is_same(&plain, &want));
        free(want.weights), free(plain.weights);
    }
}

/* What each rank has after the last step. */
typedef struct seen {
    uint64_t weights[RANKS];
} seen;

static void note_weights(void *user, const sifr_engine *engine, int step, bool updated) {
    seen *all = user;
    sifr_error error;
    int32_t rank = comm_rank(engine_group(engine));
    (void)updated;
    if (step + 1 < ZERO_MOST_STEPS) return;
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        const model_weight *weight = &engine->model->weights[w];
        size_t count = (size_t)(weight->rows * weight->columns);
        float *values = malloc(count * sizeof *values);
        if (sifr_engine_read_weight(engine, weight->name, values, count, &error) == SIFR_OK)
            all->weights[rank] =
                all->weights[rank] * 31 + base_hash(values, count * sizeof *values);
        free(values);
    }
}

static void alike(void **state) {
    (void)state;
    sifr_compression c = compression_of(1, START);
    seen all = {0};
    zero_variant v = variant_of(&c, RANKS);
    v.stepped = note_weights, v.user = &all;
    zero_outcome out = zero_run(v);
    for (int r = 0; r < RANKS; r++) {
        assert_true(all.weights[r] != 0);
        assert_true(all.weights[r] == all.weights[0]);
    }
    free(out.weights);
}

/* --- the result --- */

static double largest_difference(const zero_outcome *a, const zero_outcome *b, int steps) {
    double most = 0;
    for (int s = 0; s < steps; s++) most = fmax(most, fabs(a->loss[s] / b->loss[s] - 1));
    return most;
}

/* Context ranks of each kind make a part each of a gradient, as data ranks do: the same bits at all
 * stages, on each rank, and at full rank the plain result. */
static void beside_contexts(void **state) {
    (void)state;
    sifr_optimizer sgd = sifr_settings_defaults().optimizer;
    sifr_compression c = compression_of(1, START), full = compression_of(64, START), off = c;
    sgd.type = SIFR_SGD;
    off.type = SIFR_COMPRESSION_NONE;
    full.min_compression_rate = 1e-6;
    for (int n = 0; n < 4; n++) { /* the last of no data ranks beside them */
        if (n > 0 && thinned_run((size_t)n)) continue;
        bool wide = n == SIFR_CONTEXT_BOTH || n == 3;
        seen all = {0};
        zero_variant v = variant_of(&c, wide && n < 3 ? 8 : 4);
        v.contexts = wide ? 4 : 2, v.kind = (sifr_context_kind)(n % 3);
        v.optimizer = &sgd;
        v.stepped = note_weights, v.user = &all;
        zero_outcome want = zero_run(v);
        for (int32_t r = 0; r < v.ranks; r++) assert_true(all.weights[r] == all.weights[0]);
        v.stepped = NULL;
        for (v.stage = 1; v.stage <= 3; v.stage++) {
            v.shard_size = v.stage == 2 && v.ranks > v.contexts ? v.ranks / v.contexts : 0;
            v.recompute = v.stage == 1;
            zero_expect_same(&want, v);
        }
        v.stage = v.shard_size = 0;
        v.compression = &off;
        zero_outcome plain = zero_run(v);
        v.compression = &full;
        zero_outcome whole = zero_run(v);
        assert_memory_equal(plain.loss, want.loss, (START + 1) * sizeof *plain.loss);
        assert_true(largest_difference(&plain, &whole, ZERO_MOST_STEPS) < 2e-6);
        assert_true(largest_difference(&plain, &want, ZERO_MOST_STEPS) > 2e-5);
        free(want.weights), free(plain.weights), free(whole.weights);
    }
}

static void full_rank(void **state) {
    (void)state;
    sifr_optimizer sgd = sifr_settings_defaults().optimizer;
    sgd.type = SIFR_SGD;
    sifr_compression off = compression_of(64, START), full = off, low = compression_of(1, START);
    off.type = SIFR_COMPRESSION_NONE;
    full.min_compression_rate = 1e-6;
    for (int t = 0; t < 2; t++) {
        zero_variant v = variant_of(&off, 4);
        v.optimizer = &sgd;
        v.precision = t ? SIFR_FP16 : SIFR_FP32;
        if (t) v.first_scale = 64;
        zero_outcome plain = zero_run(v);
        v.compression = &full;
        zero_outcome all = zero_run(v);
        v.compression = &low;
        zero_outcome one = zero_run(v);
        assert_true(largest_difference(&plain, &all, ZERO_MOST_STEPS) < (t ? 2e-4 : 2e-6));
        assert_true(largest_difference(&plain, &one, ZERO_MOST_STEPS) > 2e-5);
        assert_memory_equal(plain.loss, one.loss, (START + 1) * sizeof *plain.loss);
        free(plain.weights), free(all.weights), free(one.weights);
    }
}

/* Errors of all ranks after the first compressed step, by weight as in the outcome; 0 elsewhere. */
typedef struct errors_of {
    pthread_mutex_t lock;
    double *sum;
    size_t count;
    float *last[RANKS];
    int64_t elements;
    int skipped, moved; /* compressed steps */
    int wrong[RANKS];   /* asserts are the first thread's */
} errors_of;

static bool is_compressed(const sifr_compression *c, const model_weight *w) {
    int64_t rank = base_min_i64(c->rank, base_min_i64(w->rows, w->columns));
    return !w->vector && (double)((w->rows + w->columns) * rank) * c->min_compression_rate <
                             (double)(w->rows * w->columns);
}

static void add_errors(void *user, const sifr_engine *engine, int step, bool updated) {
    errors_of *e = user;
    const sifr_compression *c = &engine_settings(engine)->compression;
    int64_t elements;
    size_t at = 0;
    (void)updated;
    const float *errors = engine_compressed(engine, 0, &elements);
    if (step != START) return;
    pthread_mutex_lock(&e->lock);
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        const model_weight *weight = &engine->model->weights[w];
        size_t count = (size_t)(weight->rows * weight->columns);
        bool compressed = is_compressed(c, weight);
        for (size_t i = 0; compressed && i < count; i++) e->sum[at + i] += (double)*errors++;
        if (compressed) elements -= (int64_t)count;
        at += count;
    }
    e->count = at;
    e->wrong[0] += elements != 0;
    pthread_mutex_unlock(&e->lock);
}

/* SGD moves weights by the rate times the sum that was made; what that lacks of the plain sum is
 * what the ranks have kept. */
static void sum_rule(void **state) {
    (void)state;
    enum { MOST = 1 << 20 };
    const double rate = 1e-2; /* of zero_run.h */
    sifr_optimizer sgd = sifr_settings_defaults().optimizer;
    sifr_compression off = compression_of(1, START), low = off;
    errors_of e = {.lock = PTHREAD_MUTEX_INITIALIZER, .sum = calloc(MOST, sizeof *e.sum)};
    double lost = 0;
    sgd.type = SIFR_SGD;
    off.type = SIFR_COMPRESSION_NONE;
    zero_variant v = variant_of(&off, 4);
    v.optimizer = &sgd;
    v.no_clipping = true;
    v.steps = START + 1;
    zero_outcome plain = zero_run(v);
    v.compression = &low;
    v.stepped = add_errors, v.user = &e;
    zero_outcome one = zero_run(v);
    assert_int_equal(e.count, plain.count);
    assert_int_equal(e.wrong[0], 0);
    for (size_t i = 0; i < e.count; i++) {
        double lacks = ((double)one.weights[i] - (double)plain.weights[i]) / rate;
        assert_true(fabs(lacks - e.sum[i]) < 2e-5);
        lost += fabs(e.sum[i]);
    }
    assert_true(lost > 1e-2);
    free(e.sum), free(plain.weights), free(one.weights);
}

/* --- steps that are skipped --- */

static void expect_kept(void *user, const sifr_engine *engine, int step, bool updated) {
    errors_of *e = user;
    int32_t rank = comm_rank(engine_group(engine));
    int64_t elements, factors;
    const float *errors = engine_compressed(engine, 0, &elements);
    const float *bases = engine_compressed(engine, 1, &factors);
    size_t bytes = (size_t)elements * sizeof *errors, more = (size_t)factors * sizeof *bases;
    char *now = malloc(bytes + more);
    memcpy(now, errors, bytes);
    memcpy(now + bytes, bases, more);
    if (!e->last[rank]) e->last[rank] = calloc(bytes + more, 1);
    bool same = memcmp(now, e->last[rank], bytes + more) == 0;
    e->wrong[rank] += same != (!updated || step < START);
    memcpy(e->last[rank], now, bytes + more);
    free(now);
    if (rank > 0 || step < START) return;
    e->skipped += !updated;
    e->moved += updated;
}

static void skipped(void **state) {
    (void)state;
    sifr_compression c = compression_of(2, START);
    errors_of e = {0};
    zero_variant v = variant_of(&c, 2);
    v.precision = SIFR_FP16;
    v.first_scale = 0x1p18;
    v.scale_window = 1;
    v.stepped = expect_kept, v.user = &e;
    zero_outcome out = zero_run(v);
    if (e.skipped == 0 || e.moved == 0) fail_msg("%d skipped, %d not", e.skipped, e.moved);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(e.wrong[r], 0);
        free(e.last[r]);
    }
    free(out.weights);
}

/* --- what it costs --- */

static void add_sizes(void *user, const sifr_engine *engine, int step, bool updated) {
    int64_t *sizes = user;
    const sifr_compression *c = &engine_settings(engine)->compression;
    (void)updated;
    if (step > 0 || comm_rank(engine_group(engine)) > 0) return;
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        const model_weight *weight = &engine->model->weights[w];
        int64_t rank = base_min_i64(c->rank, base_min_i64(weight->rows, weight->columns));
        bool compressed = is_compressed(c, weight);
        sizes[0] += compressed ? rank * weight->rows : 0;
        sizes[1] += compressed ? rank * weight->columns : 0;
        sizes[2] += compressed ? 0 : weight->rows * weight->columns;
        sizes[3] += compressed ? weight->rows * weight->columns : 0;
    }
}

static void costs(void **state) {
    (void)state;
    for (int32_t ranks = 2; ranks <= 8; ranks += 3) { /* 2, 5 and 8 */
        sifr_compression c = compression_of(2, START);
        int64_t sizes[4] = {0}, sent = 0;
        zero_variant v = variant_of(&c, ranks);
        v.global = 2 * ranks;
        v.stepped = add_sizes, v.user = sizes;
        zero_outcome out = zero_run(v);
        for (int i = 0; i < 3; i++) sent += base_ceil_to(sizes[i], ranks) / ranks * (ranks - 1) * 4;
        assert_true(sizes[0] > 0 && sizes[2] > 0);
        assert_int_equal(out.gathered, sent);
        assert_int_equal(out.reduced, sent);
        assert_int_equal(out.gathers, 3);
        assert_int_equal(out.reductions, 3);
        assert_true(out.peak[PLAN_ERRORS] >= 4 * (sizes[3] + sizes[1]));
        assert_true(out.peak[PLAN_ERRORS] < 4 * (sizes[3] + sizes[1]) + 1024);
        free(out.weights);
    }
}

/* Without errors and factors of the last step: none of either is kept, and runs repeat. */
static void without(void **state) {
    (void)state;
    sifr_compression c = compression_of(1, 0);
    c.error_feedback = c.warm_start = false;
    zero_variant v = variant_of(&c, 2);
    zero_outcome want = zero_run(v);
    assert_int_equal(want.peak[PLAN_ERRORS], 0);
    zero_expect_same(&want, v);
    c.seed = 1;
    zero_outcome other = zero_run(v);
    assert_false(zero_is_same(&want, &other));
    for (int s = 0; s < ZERO_MOST_STEPS; s++) assert_true(isfinite(other.loss[s]));
    free(want.weights), free(other.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_at_first),  cmocka_unit_test(repeats),
        cmocka_unit_test(with_others),     cmocka_unit_test(beside_coded),
        cmocka_unit_test(beside_contexts), cmocka_unit_test(alike),
        cmocka_unit_test(full_rank),       cmocka_unit_test(sum_rule),
        cmocka_unit_test(skipped),         cmocka_unit_test(costs),
        cmocka_unit_test(without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
