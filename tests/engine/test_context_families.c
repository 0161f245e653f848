/* Every family's golden folder on two context ranks, or three, as threads, of each kind: the
 * losses and norms of its steps are those of PyTorch within one rank's bounds, or it is refused as
 * listed here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_private.h"
#include "engine/handle.h"
#include "support/comm_threads.h"
#include "support/golden.h"

enum { MOST = 4, TRAINED = 74, GATHERED = 87 };

typedef struct rank_run {
    const golden *g;
    comm_threads *world;
    int32_t rank, ranks;
    sifr_context_kind kind;
    sifr_step_result results[GOLDEN_STEPS];
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

static sifr_settings settings_of(const golden *g, int32_t ranks, sifr_context_kind kind) {
    sifr_settings options = sifr_settings_defaults();
    options.threads = 1;
    options.micro_batch_size = g->sequences;
    options.seq_length = g->length;
    options.gradient_accumulation_steps = (int32_t)g->micro_batches;
    options.optimizer.beta1 = g->beta1;
    options.optimizer.beta2 = g->beta2;
    options.optimizer.eps = g->epsilon;
    options.optimizer.weight_decay = g->weight_decay;
    options.gradient_clipping = g->clipping;
    options.mesh.context_size = ranks;
    options.mesh.context_kind = kind;
    return options;
}

static sifr_batch step_of(const golden *g, int64_t step) {
    int64_t first = step * g->micro_batches * g->sequences * g->length;
    return (sifr_batch){.tokens = g->step_tokens + first,
                        .labels = g->step_labels + first,
                        .token_types = g->step_token_types ? g->step_token_types + first : NULL,
                        .segments = g->step_segments ? g->step_segments + first : NULL,
                        .targets =
                            g->step_targets ? g->step_targets + first * g->vocab_size : NULL};
}

static sifr_status train(rank_run *r, const engine_folder *folder, comm_group *group,
                         sifr_error *error) {
    sifr_engine *engine;
    sifr_settings options = settings_of(r->g, r->ranks, r->kind);
    BASE_TRY(engine_create(folder->model, &options, group, &engine, error));
    sifr_status status = engine_load_folder(engine, folder->architecture, folder->weights, error);
    for (int64_t s = 0; s < r->g->steps && status == SIFR_OK; s++) {
        sifr_batch batch = step_of(r->g, s);
        status = sifr_engine_step(engine, &batch, r->g->step_lr[s], &r->results[s], error);
    }
    sifr_engine_free(engine);
    return status;
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    engine_folder folder;
    sifr_error error = {0};
    comm_group *group = comm_threads_group(r->world, r->rank);
    sifr_status status = engine_folder_open(r->g->folder, &folder, &error);
    if (status == SIFR_OK) {
        status = train(r, &folder, group, &error);
        engine_folder_close(&folder);
    }
    if (status != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    comm_close(group);
    return NULL;
}

/* What two ranks do not train, and why: part of the message. */
typedef struct refused_row {
    const char *why, *names; /* " a b " */
} refused_row;
static const refused_row refused[] = {
    {"3 heads are not divided", " smollm3 bert bert-untied distilbert modernbert modernbert-biases "
                                "bert-sequence bert-tokens bert-regression distilbert-sequence "
                                "distilbert-tokens distilbert-multilabel modernbert-sequence "
                                "modernbert-tokens modernbert-mean roberta-sequence roberta-tokens "
                                "xlm-roberta-sequence xlm-roberta-tokens deberta-plain roberta "
                                "xlm-roberta gpt2-sequence "},
    {"delta", " qwen3_5_text qwen3_5_text-three "},
    {"rows", " deberta deberta-tables deberta-c2p deberta-p2c deberta-sequence "
             "deberta-tokens "},
    {"attention with a bias by distance", " bloom "},
    {"head_regression", " mistral-regression "},
    {"head_multilabel", " qwen3-multilabel "},
};

/* What ranks that gather keys and values do not train, whether or not neighbours exchange: heads do
 * not matter. */
static const refused_row ungathered[] = {
    {"delta", " qwen3_5_text qwen3_5_text-three "},
    {"unfold", " deberta-plain "},
    {"attention with a bias by distance", " bloom "},
    {"rows", " deberta deberta-tables deberta-c2p deberta-p2c deberta-sequence "
             "deberta-tokens "},
    {"head_regression", " bert-regression mistral-regression "},
    {"head_multilabel", " distilbert-multilabel qwen3-multilabel "},
};

/* Of those, what three ranks train: they divide its three heads, and its sequences. */
static const char on_three[] =
    " bert-sequence distilbert-sequence modernbert-sequence modernbert-mean roberta-sequence "
    "xlm-roberta-sequence gpt2-sequence ";

static bool has(const char *names, const char *name) {
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(names, word) != NULL;
}

static const char *refusal_in(const refused_row *rows, size_t count, const golden *g) {
    for (size_t i = 0; i < count; i++)
        if (has(rows[i].names, g->name)) return rows[i].why;
    return NULL;
}

/* Some folders wait for their architecture. */
static bool opens(const golden *g) {
    engine_folder folder;
    if (engine_folder_open(g->folder, &folder, NULL) != SIFR_OK) return false;
    engine_folder_close(&folder);
    return true;
}

/* `why`: it is refused. Returns 1 where it trains. */
static int check_steps(const golden *g, int32_t ranks, sifr_context_kind kind, const char *why) {
    comm_threads *world = comm_threads_create(ranks);
    rank_run runs[MOST] = {0};
    pthread_t threads[MOST];
    for (int32_t r = 0; r < ranks; r++) {
        runs[r] = (rank_run){.g = g, .world = world, .rank = r, .ranks = ranks, .kind = kind};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < ranks; r++)
        if (why ? !strstr(runs[r].failure, why) : runs[r].failure[0])
            fail_msg("%s, rank %d of %d: %s", g->name, (int)r, (int)ranks, runs[r].failure);
    if (why) return 0;
    for (int64_t s = 0; s < g->steps; s++)
        golden_check_step(g, GOLDEN_FP32, s, runs[1].results[s].loss,
                          runs[1].results[s].gradient_norm);
    return 1;
}

static void families(void **state) {
    (void)state;
    static const char *const places[] = {"",       "families/", "encoders/", "decoder_heads/",
                                         "dense/", "gemma4/"};
    int trained = 0, gathered = 0, both = 0;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        golden_list list;
        golden_list_open_at(&list, places[p]);
        for (size_t i = 0; i < list.count; i++) {
            golden g;
            golden_open(&list, i, &g);
            if (opens(&g)) {
                const char *why = refusal_in(refused, sizeof refused / sizeof *refused, &g);
                trained += check_steps(&g, 2, SIFR_CONTEXT_ULYSSES, why);
                why = refusal_in(ungathered, sizeof ungathered / sizeof *ungathered, &g);
                gathered += check_steps(&g, g.length % 4 && g.length % 6 == 0 ? 3 : 2,
                                        SIFR_CONTEXT_GATHER, why);
                int32_t ranks = g.length % 8 == 0 ? 4 : g.length % 4 == 0 ? 2 : 3;
                both += check_steps(&g, ranks, SIFR_CONTEXT_BOTH, why);
            }
            if (has(on_three, g.name)) trained += check_steps(&g, 3, SIFR_CONTEXT_ULYSSES, NULL);
            golden_close(&g);
        }
        golden_list_close(&list);
    }
    assert_int_equal(trained, TRAINED);
    assert_int_equal(gathered, GATHERED);
    assert_int_equal(both, GATHERED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
