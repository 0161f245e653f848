/* Every family's golden folder on two tensor ranks, as threads: the losses of its steps are those
 * of one rank within 1e-5, and they and the norms are those of PyTorch within one rank's bounds;
 * how many of its products are cut is as listed here: a rule that is lost, or one more, is seen.
 * Where a head can be divided by words it is, and one of the ranks has none, since the vocabularies
 * are no longer than a block. With tp_exact one rank and two have the same bits, in fp32 and bf16.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "engine/engine_private.h"
#include "engine/handle.h"
#include "model/shard.h"
#include "model/shard_words.h"
#include "support/comm_threads.h"
#include "support/golden.h"

enum { TENSORS = 2, UNEVEN = 4 };

typedef struct rank_run {
    const golden *g;
    comm_threads *world;
    int32_t rank, ranks, exact;
    sifr_vocab_parallel words;
    sifr_precision precision;
    sifr_step_result results[GOLDEN_STEPS];
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

static sifr_settings settings_of(const rank_run *r) {
    const golden *g = r->g;
    sifr_settings options = sifr_settings_defaults();
    options.precision = r->precision;
    options.threads = 1;
    options.micro_batch_size = g->sequences;
    options.seq_length = g->length;
    options.gradient_accumulation_steps = (int32_t)g->micro_batches;
    options.optimizer.beta1 = g->beta1;
    options.optimizer.beta2 = g->beta2;
    options.optimizer.eps = g->epsilon;
    options.optimizer.weight_decay = g->weight_decay;
    options.gradient_clipping = g->clipping;
    options.mesh.tensor_size = r->ranks;
    options.mesh.tp_exact = r->exact;
    options.mesh.vocab_parallel_lm_head = r->words;
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
    sifr_settings options = settings_of(r);
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

/* What two ranks divide. The rest each computes whole: what a norm of whole rows reads; poolers.
 * The column of docs/models.md is this one (tests/scripts/test_models_page.sh). */
typedef struct cut_row {
    const char *name;
    int32_t cut, all; /* products */
} cut_row;
static const cut_row cuts[] = {
    {"gpt2", 8, 8},
    {"gpt2-old-names", 8, 8},
    {"gpt2-gelu", 12, 12},
    {"llama2", 14, 14},
    {"llama3", 14, 14},
    {"llama-bias", 14, 14},
    {"llama-linear", 14, 14},
    {"llama", 7, 7},
    {"llama-dynamic", 7, 7},
    {"llama-yarn", 7, 7},
    {"mistral", 14, 14},
    {"ministral", 14, 14},
    {"qwen2", 14, 14},
    {"qwen3", 14, 14},
    {"phi3", 4, 8},
    {"phi3-longrope", 4, 4},
    {"gemma", 14, 14},
    {"gemma2", 14, 14},
    {"gemma3_text", 14, 14},
    {"smollm3", 6, 14},
    {"olmo2", 6, 14},
    {"granite", 14, 14},
    {"gpt_neox", 8, 8},
    {"starcoder2", 12, 12},
    {"olmo3", 6, 14},
    {"glm4", 12, 12},
    {"ministral3", 14, 14},
    {"lfm2", 13, 17},
    {"lfm2-four", 6, 12},
    {"qwen3_5_text", 13, 23},
    {"qwen3_5_text-three", 6, 15},
    {"bert", 12, 13},
    {"bert-untied", 6, 7},
    {"distilbert", 12, 13},
    {"modernbert", 12, 13},
    {"modernbert-biases", 8, 9},
    {"bert-sequence", 6, 7},
    {"bert-tokens", 6, 6},
    {"bert-regression", 6, 7},
    {"distilbert-sequence", 6, 7},
    {"distilbert-tokens", 6, 6},
    {"distilbert-multilabel", 6, 7},
    {"modernbert-sequence", 4, 5},
    {"modernbert-tokens", 4, 5},
    {"modernbert-mean", 4, 5},
    {"roberta-sequence", 6, 7},
    {"roberta-tokens", 6, 6},
    {"xlm-roberta-sequence", 6, 7},
    {"xlm-roberta-tokens", 6, 6},
    {"deberta", 16, 17},
    {"deberta-tables", 16, 19},
    {"deberta-c2p", 7, 8},
    {"deberta-p2c", 7, 8},
    {"deberta-plain", 12, 14},
    {"deberta-sequence", 8, 9},
    {"deberta-tokens", 8, 8},
    {"roberta", 12, 13},
    {"xlm-roberta", 12, 13},
    {"llama-sequence", 7, 7},
    {"gpt2-sequence", 8, 8},
    {"gemma2-sequence", 14, 14},
    {"qwen3-tokens", 7, 7},
    {"gpt_neox-tokens", 4, 4},
    {"mistral-regression", 7, 7},
    {"qwen3-multilabel", 7, 7},
    {"arcee", 6, 6},
    {"seed_oss", 7, 7},
    {"exaone4", 6, 14},
    {"exaone4-full", 3, 7},
    {"cohere", 7, 7},
    {"cohere-norms", 7, 7},
    {"cohere2", 14, 14},
    {"ernie4_5", 7, 7},
    {"hunyuan_v1_dense", 3, 7},
    {"helium", 7, 7},
    {"internlm3", 7, 7},
    {"cwm", 14, 14},
    {"phi", 6, 6},
    {"phi-norms", 2, 6},
    {"stablelm", 7, 7},
    {"stablelm-parallel", 7, 7},
    {"glm", 6, 6},
    {"vaultgemma", 14, 14},
    {"nemotron", 6, 6},
    {"olmo", 7, 7},
    {"nanochat", 4, 12},
    {"apertus", 4, 12},
    {"stablelm-norms", 3, 7},
    {"opt", 6, 6},
    {"opt-behind", 6, 8},
    {"falcon", 2, 4},
    {"falcon-grouped", 2, 4},
    {"falcon-each", 4, 4},
    {"bloom", 4, 4},
    {"gemma4_text", 10, 13},
    {"gemma4_text-published", 14, 14},
    {"gemma4_unified_text", 10, 13},
    {"gemma4", 10, 13},
    {"gemma4_unified", 10, 13},
    {"gemma4_text-shared", 29, 40},
    {"gemma4-shared", 15, 39},
    {"gemma3", 6, 14},
    {"mistral3", 7, 7},
    {"mistral3-mistral", 7, 7},
    {"qwen2_5_vl", 7, 7},
    {"qwen3_vl", 3, 7},
    {"qwen3_5", 6, 15},
    {"smolvlm", 7, 7},
    {"internvl", 7, 7},
    {"glm4v", 6, 6},
    {"lfm2_vl", 6, 12},
};
enum { CUTS = sizeof cuts / sizeof *cuts };

static void check_cuts(const golden *g, size_t row) {
    engine_folder folder;
    sifr_error error = {0};
    model_layouts layouts;
    if (row >= CUTS || strcmp(cuts[row].name, g->name) != 0)
        fail_msg("%s is not in the list: give it a row", g->name);
    if (engine_folder_open(g->folder, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (model_find_layouts(folder.model, TENSORS, false, &layouts, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    if (layouts.cut_count != cuts[row].cut || layouts.kept_count != cuts[row].all - cuts[row].cut)
        fail_msg("%s: %d products are cut and %d are not", g->name, (int)layouts.cut_count,
                 (int)layouts.kept_count);
    model_layouts_free(&layouts);
    engine_folder_close(&folder);
}

/* Whether anything is cut where no rank may make a part of a gradient (tp_exact). */
static bool divides_exactly(const golden *g) {
    engine_folder folder;
    sifr_error error = {0};
    model_layouts layouts;
    if (engine_folder_open(g->folder, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (model_find_layouts(folder.model, TENSORS, true, &layouts, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    bool divides = layouts.cut_count > 0;
    model_layouts_free(&layouts);
    engine_folder_close(&folder);
    return divides;
}

/* Whether words are divided: those of a head over the tokens' own, with no other loss than that of
 * labels. */
static bool splits_words(const golden *g) {
    engine_folder folder;
    sifr_error error = {0};
    if (engine_folder_open(g->folder, &folder, &error) != SIFR_OK) fail_msg("%s", error.message);
    uint8_t *products = calloc(folder.model->node_count, sizeof *products);
    bool splits = model_find_words(folder.model, SIFR_VOCAB_SPLIT, TENSORS, false, products,
                                   &error) == SIFR_OK;
    bool other = strstr(g->name, "-sequence") || strstr(g->name, "-tokens") ||
                 strstr(g->name, "-regression") || strstr(g->name, "-multilabel") ||
                 strstr(g->name, "-mean");
    if (splits == other) fail_msg("%s: its words are%s divided", g->name, splits ? "" : " not");
    free(products);
    engine_folder_close(&folder);
    return splits;
}

/* Some folders wait for their architecture. */
static bool opens(const golden *g) {
    engine_folder folder;
    if (engine_folder_open(g->folder, &folder, NULL) != SIFR_OK) return false;
    engine_folder_close(&folder);
    return true;
}

/* What the last of so many ranks has of the steps. `divides`: something is cut; else the run is
 * refused. */
static rank_run run_ranks(const golden *g, int32_t ranks, int32_t exact, bool words,
                          sifr_precision precision, bool divides) {
    comm_threads *world = comm_threads_create(ranks);
    rank_run runs[UNEVEN] = {0};
    pthread_t threads[UNEVEN];
    for (int32_t r = 0; r < ranks; r++) {
        runs[r] = (rank_run){.g = g,
                             .world = world,
                             .rank = r,
                             .ranks = ranks,
                             .exact = exact,
                             .words = words ? SIFR_VOCAB_SPLIT : SIFR_VOCAB_BY_BLOCKS,
                             .precision = precision};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < ranks; r++) {
        bool refused = strstr(runs[r].failure, "cannot divide any product of this model") != NULL;
        if (divides ? runs[r].failure[0] != 0 : !refused)
            fail_msg("%s, rank %d of %d: \"%s\"", g->name, (int)r, (int)ranks, runs[r].failure);
    }
    return runs[ranks - 1];
}

static void check_losses(const golden *g, int32_t ranks, bool divides) {
    bool words = splits_words(g);
    rank_run run = run_ranks(g, ranks, 0, words, SIFR_FP32, divides || words);
    if (!divides && !words) return;
    rank_run one = run_ranks(g, 1, 0, false, SIFR_FP32, true);
    for (int64_t s = 0; s < g->steps; s++) {
        double loss = run.results[s].loss, want = one.results[s].loss;
        if (!(fabs(loss - want) <= 1e-5 * want))
            fail_msg("%s, step %d: the loss is %.9g, %.9g on one rank", g->name, (int)s, loss,
                     want);
        golden_check_step(g, GOLDEN_FP32, s, run.results[s].loss, run.results[s].gradient_norm);
    }
}

static void check_steps(const golden *g, bool divides) {
    check_losses(g, TENSORS, divides);
    /* Six heads of which two ranks have one, in room for two: their slopes go by the model's. */
    if (strcmp(g->name, "bloom") == 0) check_losses(g, UNEVEN, divides);
}

/* Norms are of all gradients, and the next losses of all weights. */
static void check_bits(const golden *g, bool divides) {
    for (int precision = SIFR_FP32; precision <= SIFR_BF16; precision++) {
        rank_run one = run_ranks(g, 1, TENSORS, false, (sifr_precision)precision, divides);
        rank_run two = run_ranks(g, TENSORS, TENSORS, false, (sifr_precision)precision, divides);
        for (int64_t s = 0; s < g->steps && divides; s++) {
            const sifr_step_result *a = &one.results[s], *b = &two.results[s];
            if (precision == SIFR_FP32)
                golden_check_step(g, GOLDEN_FP32, s, a->loss, a->gradient_norm);
            if (memcmp(&a->loss, &b->loss, sizeof a->loss) == 0 &&
                memcmp(&a->gradient_norm, &b->gradient_norm, sizeof a->gradient_norm) == 0)
                continue;
            fail_msg("%s, step %d: %.17g and %.17g on one rank, %.17g and %.17g on two", g->name,
                     (int)s, a->loss, a->gradient_norm, b->loss, b->gradient_norm);
        }
    }
}

static void families(void **state) {
    (void)state;
    static const char *const places[] = {"",       "families/", "encoders/",  "decoder_heads/",
                                         "dense/", "gemma4/",   "multimodal/"};
    size_t row = 0;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        golden_list list;
        golden_list_open_at(&list, places[p]);
        for (size_t i = 0; i < list.count; i++) {
            golden g;
            golden_open(&list, i, &g);
            if (opens(&g)) {
                bool divides = cuts[row].cut > 0;
                check_cuts(&g, row++);
                check_steps(&g, divides);
                check_bits(&g, divides_exactly(&g));
            }
            golden_close(&g);
        }
        golden_list_close(&list);
    }
    assert_int_equal(row, CUTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
