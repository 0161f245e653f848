/* Tensor ranks x stages x data ranks x context ranks x ZeRO, up to 16 ranks as threads, on models
 * with 8 heads: of grouped and of as many kv heads, of 300 and of 20,000 words, an encoder,
 * DeBERTa, with and without sifr.tp_exact. A run is within 1e-5 of one rank's losses, has the bits
 * of its class (docs/parallelism.md, "What goes together"), or is refused as listed here. With the
 * argument "all" all products, as test_soak_mesh.sh runs it; else runs in which each two values
 * meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/zero_run.h"

enum { GLOBAL = 2, MOST = 16, STEPS = 2 };
enum { MODEL, TENSORS, STAGES, DATA, CONTEXTS, ZERO, EXACT, AXES };
enum { GROUPED, WORDS, BERT, DEBERTA, MODELS, MOST_VALUES = 4 };

static const int32_t values[AXES][MOST_VALUES] = {{0, 1, 2, 3}, {1, 2, 4, 8}, {1, 2}, {1, 2},
                                                  {1, 2},       {0, 1, 2, 3}, {0, 1}};
static const int32_t counts[AXES] = {MODELS, 4, 2, 2, 2, 4, 2};

typedef struct cell {
    int32_t of[AXES]; /* values */
} cell;

static const int32_t kv_heads[MODELS] = {2, 8, 8, 8};
static const char *const names[MODELS] = {"grouped heads", "20,000 words", "BERT", "DeBERTa"};

static model_config parsed(const char *text) {
    model_config c;
    sifr_error error;
    if (model_config_parse(text, strlen(text), "mesh", &c, &error)) fail_msg("%s", error.message);
    return c;
}

/* 8 heads, and an MLP of odd width where nothing is asked to divide it. */
static model_config model_of(int32_t model) {
    static const char *const texts[MODELS] = {
        "{\"model_type\": \"llama\", \"vocab_size\": 300, \"hidden_size\": 32, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 2, "
        "\"intermediate_size\": 57, \"max_position_embeddings\": 64}",
        "{\"model_type\": \"llama\", \"vocab_size\": 20000, \"hidden_size\": 16, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
        "\"head_dim\": 4, \"intermediate_size\": 40, \"max_position_embeddings\": 64, "
        "\"tie_word_embeddings\": true}",
        "{\"model_type\": \"bert\", \"vocab_size\": 300, \"hidden_size\": 32, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"intermediate_size\": 56, "
        "\"max_position_embeddings\": 64, \"hidden_dropout_prob\": 0, "
        "\"attention_probs_dropout_prob\": 0}",
        "{\"model_type\": \"deberta-v2\", \"vocab_size\": 300, \"hidden_size\": 32, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"intermediate_size\": 56, "
        "\"max_position_embeddings\": 64, \"relative_attention\": true, \"position_buckets\": 6, "
        "\"pos_att_type\": \"c2p|p2c\", \"share_att_key\": true, \"norm_rel_ebd\": \"layer_norm\", "
        "\"hidden_dropout_prob\": 0, \"attention_probs_dropout_prob\": 0}"};
    return parsed(texts[model]);
}

static zero_variant variant_of(const cell *c, const model_config *config) {
    const int32_t *of = c->of;
    return (zero_variant){.type = names[of[MODEL]],
                          .config = config,
                          .vocabulary = config->vocab_size,
                          .ranks = of[TENSORS] * of[DATA] * of[CONTEXTS],
                          .tensors = of[TENSORS],
                          .stages = of[STAGES],
                          .contexts = of[CONTEXTS],
                          .stage = of[ZERO],
                          .exact = of[EXACT] ? kv_heads[of[MODEL]] : 0,
                          .global = GLOBAL,
                          .steps = STEPS};
}

static const char *name_of(const cell *c, char out[200]) {
    snprintf(out, 200, "%s: %d tensors, %d stages, %d data, %d contexts, ZeRO %d, tp_exact %d",
             names[c->of[MODEL]], c->of[TENSORS], c->of[STAGES], c->of[DATA], c->of[CONTEXTS],
             c->of[ZERO], c->of[EXACT]);
    return out;
}

/* --- what is refused --- */

/* Part of the message; NULL: it trains. docs/parallelism.md has these rows in words. */
static const char *refusal_of(const cell *c) {
    const int32_t *of = c->of;
    bool contexts = of[CONTEXTS] > 1;
    if (of[EXACT] && of[TENSORS] > kv_heads[of[MODEL]]) return "tensor ranks do not divide";
    if (of[EXACT] && contexts) return "context ranks are not supported with";
    if (contexts && of[MODEL] == DEBERTA) return "rows is not supported with context ranks";
    if (contexts && of[TENSORS] == 8) return "1 head is not divided among 2 ranks";
    return NULL;
}

/* --- classes of bits --- */

/* Two cells of one class have the same bits. */
static cell class_of(cell c) {
    if (c.of[EXACT]) c.of[TENSORS] = 1;
    c.of[STAGES] = 1;
    bool apart = c.of[CONTEXTS] > 1 && c.of[ZERO] < 2;
    if (!apart) c.of[DATA] = 1;
    c.of[ZERO] = apart ? 0 : 3;
    return c;
}

typedef struct kept {
    cell class;
    zero_outcome outcome;
} kept;

typedef struct ledger {
    kept *all;
    size_t count, refused;
    double worst; /* the largest relative difference of a loss to one rank's */
    double losses[MODELS][STEPS];
} ledger;

static void compare_with_one(ledger *l, const cell *c, const zero_outcome *o) {
    char name[200];
    for (int s = 0; s < STEPS; s++) {
        double one = l->losses[c->of[MODEL]][s], off = fabs(o->loss[s] - one) / one;
        l->worst = fmax(l->worst, off);
        if (!(off <= 1e-5))
            fail_msg("%s: loss %.9g of step %d, one rank's %.9g", name_of(c, name), o->loss[s],
                     s + 1, one);
    }
}

/* Keeps the first of a class. */
static void compare_with_class(ledger *l, const cell *c, zero_outcome *o) {
    char name[200];
    cell class = class_of(*c);
    for (size_t i = 0; i < l->count; i++) {
        if (memcmp(&l->all[i].class, &class, sizeof class) != 0) continue;
        if (!zero_is_same(&l->all[i].outcome, o))
            fail_msg("%s: other bits than its class has", name_of(c, name));
        free(o->weights);
        return;
    }
    l->all = realloc(l->all, (l->count + 1) * sizeof *l->all);
    l->all[l->count++] = (kept){class, *o};
}

static void run(ledger *l, const cell *c) {
    char why[SIFR_ERROR_LENGTH], name[200];
    const char *refusal = refusal_of(c);
    model_config config = model_of(c->of[MODEL]);
    zero_outcome outcome;
    bool trained = zero_try(variant_of(c, &config), &outcome, why);
    if (getenv("MESH_SAY")) print_message("%s: %s\n", name_of(c, name), trained ? "trains" : why);
    if (getenv("MESH_SAY") && !trained) return;
    if (trained && refusal) fail_msg("%s: is not refused", name_of(c, name));
    if (!trained && !(refusal && strstr(why, refusal))) fail_msg("%s: %s", name_of(c, name), why);
    l->refused += !trained;
    if (!trained) return;
    compare_with_one(l, c, &outcome);
    compare_with_class(l, c, &outcome);
}

static void begin(ledger *l) {
    for (int32_t m = 0; m < MODELS; m++) {
        cell one = {{m, 1, 1, 1, 1, 0, 0}};
        model_config config = model_of(m);
        zero_outcome o = zero_run(variant_of(&one, &config));
        memcpy(l->losses[m], o.loss, sizeof l->losses[m]);
        free(o.weights);
    }
}

static void end(ledger *l) {
    for (size_t i = 0; i < l->count; i++) free(l->all[i].outcome.weights);
    free(l->all);
}

/* --- which cells --- */

static bool next(int32_t at[AXES]) {
    for (int a = AXES - 1; a >= 0; a--) {
        if (++at[a] < counts[a]) return true;
        at[a] = 0;
    }
    return false;
}

static cell cell_of(const int32_t at[AXES]) {
    cell c;
    for (int a = 0; a < AXES; a++) c.of[a] = values[a][at[a]];
    return c;
}

static bool is_cell(const cell *c) {
    return c->of[TENSORS] * c->of[STAGES] * c->of[DATA] * c->of[CONTEXTS] <= MOST;
}

typedef bool pairs[AXES][AXES][MOST_VALUES][MOST_VALUES];

/* How many pairs of values the cell has that have not met; `meet`: they have then. */
static int new_pairs(pairs met, const int32_t at[AXES], bool meet) {
    int count = 0;
    for (int a = 0; a < AXES; a++)
        for (int b = a + 1; b < AXES; b++) {
            bool *pair = &met[a][b][at[a]][at[b]];
            count += !*pair;
            *pair |= meet;
        }
    return count;
}

/* The cell with the most pairs that have not met; false: all have. A cell that is refused shows
 * nothing of the others' pairs, so its pairs count only where no cell that trains has them. */
static bool choose(pairs met, bool refused, int32_t best[AXES]) {
    int most = 0;
    int32_t at[AXES] = {0};
    do {
        cell c = cell_of(at);
        if (!is_cell(&c) || (refusal_of(&c) != NULL) != refused) continue;
        int count = new_pairs(met, at, false);
        if (count <= most) continue;
        most = count;
        memcpy(best, at, sizeof at);
    } while (next(at));
    return most > 0;
}

static void covering(void **state) {
    (void)state;
    ledger l = {0};
    static pairs met;
    int32_t at[AXES];
    int trained = 0;
    begin(&l);
    for (int refused = 0; refused < 2; refused++)
        while (choose(met, refused, at)) {
            cell c = cell_of(at);
            run(&l, &c);
            new_pairs(met, at, true);
            trained += !refused;
        }
    print_message("%d cells, %zu refused, losses within %.1e\n", trained, l.refused, l.worst);
    end(&l);
}

static void all(void **state) {
    (void)state;
    ledger l = {0};
    int32_t at[AXES] = {0};
    int cells = 0;
    begin(&l);
    do {
        cell c = cell_of(at);
        if (!is_cell(&c)) continue;
        run(&l, &c);
        cells++;
    } while (next(at));
    print_message("%d cells, of which %zu are refused, losses within %.1e\n", cells, l.refused,
                  l.worst);
    end(&l);
}

int main(int argc, char **argv) {
    const struct CMUnitTest each[] = {cmocka_unit_test(all)}, some[] = {cmocka_unit_test(covering)};
    bool whole = argc > 1 && strcmp(argv[1], "all") == 0;
    return whole ? cmocka_run_group_tests(each, NULL, NULL)
                 : cmocka_run_group_tests(some, NULL, NULL);
}
