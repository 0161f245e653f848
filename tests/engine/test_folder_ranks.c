/* Model folders and several ranks (threads): each reads and works out only what it holds, what they
 * write is the file that one rank writes, and a failure of the one that writes comes back on all.
 * in test_tsan */
#include "support/scratch.h"

#include <pthread.h>

#include "base/checked.h"
#include "engine/engine_private.h"
#include "support/comm_threads.h"
#include "support/model_case.h"

/* The embedding has more elements than travel at a time, and its rows fall across the cuts. */
enum { WORDS = 27011, HIDDEN = 40, LENGTH = 8, MOST_RANKS = 8 };

typedef struct rank_run {
    comm_threads *world;
    int32_t rank;
    int stage;
    sifr_precision precision;
    const char *from, *to; /* folders; from NULL: weights are initialised */
    sifr_status status;
    sifr_error error;
    int64_t held; /* elements of all weights */
    int64_t came; /* bytes of the collectives that wrote the folder */
} rank_run;

static model_config config_of(void) {
    model_config c = model_case_llama();
    c.vocab_size = WORDS;
    c.tie_word_embeddings = true;
    return c;
}

static sifr_status work(rank_run *run, const sifr_model *model, sifr_engine *engine,
                        sifr_error *error) {
    const model_architecture *architecture = model_architecture_find("llama");
    formats_weights *weights = NULL;
    for (size_t w = 0; w < model->weight_count; w++) {
        int64_t first, count;
        engine_held(engine, w, &first, &count);
        run->held += count;
    }
    if (run->from) {
        BASE_TRY(formats_weights_open(run->from, &weights, error));
        sifr_status status = engine_load_folder(engine, architecture, weights, error);
        formats_weights_close(weights);
        if (status != SIFR_OK) return status;
    } else {
        BASE_TRY(sifr_engine_initialise(engine, 5, error));
    }
    const comm_ledger *ledger = comm_get_ledger(engine->group);
    int64_t before = (int64_t)ledger->operation[COMM_CONTROL].bytes;
    BASE_TRY(engine_save_folder(engine, architecture, NULL, BASE_FP32, run->rank ? NULL : run->to,
                                error));
    run->came = (int64_t)ledger->operation[COMM_CONTROL].bytes - before;
    return SIFR_OK;
}

static void *run_rank(void *argument) {
    rank_run *run = argument;
    model_config config = config_of();
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.seq_length = LENGTH;
    options.precision = run->precision;
    options.zero.stage = run->stage;
    run->status = model_from_config(&config, &model, &run->error);
    if (run->status == SIFR_OK)
        run->status = engine_create(model, &options, comm_threads_group(run->world, run->rank),
                                    &engine, &run->error);
    if (run->status == SIFR_OK) run->status = work(run, model, engine, &run->error);
    sifr_engine_free(engine);
    sifr_model_free(model);
    return NULL;
}

static rank_run runs[MOST_RANKS];

/* The same status and message on all ranks. */
static sifr_status run_all(int32_t ranks, int stage, sifr_precision precision, const char *from,
                           const char *to) {
    pthread_t threads[MOST_RANKS];
    comm_threads *world = comm_threads_create(ranks);
    for (int32_t r = 0; r < ranks; r++) {
        runs[r] = (rank_run){.world = world,
                             .rank = r,
                             .stage = stage,
                             .precision = precision,
                             .from = from,
                             .to = to};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &runs[r]), 0);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 1; r < ranks; r++) {
        assert_int_equal(runs[r].status, runs[0].status);
        assert_string_equal(runs[r].error.message, runs[0].error.message);
    }
    return runs[0].status;
}

static void read_model(const char *folder, char **text, size_t *size) {
    char path[600];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(base_read_file(path, 1 << 28, text, size, NULL), SIFR_OK);
}

static const char *folder_of(const char *name) {
    const char *path = scratch_fresh(name);
    assert_int_equal(base_make_directories(path, NULL), SIFR_OK);
    return path;
}

static void writes(int32_t ranks, int stage, sifr_precision precision, const char *from,
                   const char *to) {
    if (run_all(ranks, stage, precision, from, to) != SIFR_OK)
        fail_msg("stage %d, %d ranks: %s", stage, ranks, runs[0].error.message);
}

static void the_same_file(void **state) {
    (void)state;
    static const int32_t counts[] = {2, 3, 4, 8};
    for (int p = 0; p < 2; p++) {
        sifr_precision precision = p ? SIFR_BF16 : SIFR_FP32;
        char *wanted, *text;
        size_t wanted_size, size;
        const char *one = folder_of("one"), *many = folder_of("many"), *again = folder_of("again");
        writes(1, 0, precision, NULL, one);
        read_model(one, &wanted, &wanted_size);
        for (int i = 0; i < 4; i++) {
            int stage = (i + 2 + p) % 4;
            writes(counts[i], stage, precision, NULL, many);
            read_model(many, &text, &size);
            assert_int_equal(size, wanted_size);
            assert_memory_equal(text, wanted, size);
            free(text);
            writes(counts[i], 3, precision, many, again);
            read_model(again, &text, &size);
            assert_int_equal(size, wanted_size);
            assert_memory_equal(text, wanted, size);
            free(text);
        }
        free(wanted);
    }
}

/* The pieces go to the rank that writes and to no other: all that all ranks hear is what it asks
 * for. */
static void to_one_rank(void **state) {
    (void)state;
    for (int stage = 1; stage < 4; stage += 2) {
        writes(8, stage, SIFR_BF16, NULL, folder_of("pieces"));
        for (int r = 0; r < 8; r++) assert_in_range(runs[r].came, 1, 8000);
    }
}

/* At stage 3 the ranks hold each element once between them. */
static void slices(void **state) {
    (void)state;
    const char *to = folder_of("slices");
    for (int stage = 0; stage < 4; stage++) {
        int64_t sum = 0, most = 0, elements;
        writes(4, stage, SIFR_BF16, NULL, to);
        for (int r = 0; r < 4; r++) {
            sum += runs[r].held;
            most = base_max_i64(most, runs[r].held);
        }
        model_config config = config_of();
        sifr_model *model;
        assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
        elements = sifr_model_parameters(model);
        sifr_model_free(model);
        assert_int_equal(sum, stage == 3 ? elements : 4 * elements);
        if (stage == 3) assert_true(most <= elements / 4 + 4096);
    }
}

static void no_folder_to_write(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage += 3) {
        assert_int_equal(run_all(3, stage, SIFR_FP32, NULL, scratch_path("none/there")),
                         SIFR_FAILED);
        assert_message(&runs[0].error, "none/there/model.safetensors: cannot create");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_file),
                                       cmocka_unit_test(to_one_rank), cmocka_unit_test(slices),
                                       cmocka_unit_test(no_folder_to_write)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
