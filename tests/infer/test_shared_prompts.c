/* Prompts that begin alike are not computed again, of models with keys and values alone, and of
 * those with a state, which is copied: samples of a prompt, in one slot and in several; prompts
 * with a common beginning; one that goes on with a text that was made. Each text is that which a
 * generator of its own makes, and the tokens that were computed are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "infer/generation.h"

enum { MOST = 4, NEW = 5, CHUNK = 4 };

static const char *const folders[] = {"qwen3", "qwen3_5", "lfm2"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static sifr_error error;

static void must(sifr_status status) {
    if (status != SIFR_OK) fail_msg("%s", error.message);
}

static void open_model(infer_generation *g, const char *name, int64_t slots) {
    static char path[1024];
    sifr_log silent = {0};
    snprintf(path, sizeof path, "%s/tests/golden/gguf/%s",
             getenv("SOURCE") ? getenv("SOURCE") : ".", name);
    infer_source source = {
        .model = path, .threads = 1, .precision_given = true, .precision = SIFR_FP32};
    must(infer_generation_open(g, &source, &silent, &error));
    g->sampling = (infer_sampling){.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    must(infer_generation_start(g, slots, CHUNK, 90, false, &error));
}

/* The ids first, first + 1 … of so many tokens, but for the last `own`. */
static void set_prompt(infer_sequence *q, size_t count, size_t own, uint64_t draw) {
    *q = (infer_sequence){.left = NEW, .draw = draw};
    q->ids.ids = malloc(count * sizeof *q->ids.ids);
    assert_non_null(q->ids.ids);
    q->ids.capacity = q->ids.count = count;
    for (size_t i = 0; i < count; i++)
        q->ids.ids[i] = (int32_t)(40 + i * 7 % 90 + (i + own >= count ? 100 + 3 * draw : 0));
}

static void run(infer_generation *g, infer_sequence *texts, size_t count) {
    infer_sequence *all[MOST];
    for (size_t i = 0; i < count; i++) all[i] = &texts[i];
    must(infer_generation_run(g, all, count, NULL, &error));
}

/* Each text is that of a generator of its own. */
static void check_alone(const char *name, infer_sequence *texts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        infer_generation alone;
        infer_sequence q = {.left = NEW, .draw = texts[i].draw};
        size_t prompt = texts[i].prompt_ids;
        open_model(&alone, name, 1);
        q.ids.ids = malloc(prompt * sizeof *q.ids.ids);
        assert_non_null(q.ids.ids);
        q.ids.capacity = q.ids.count = prompt;
        memcpy(q.ids.ids, texts[i].ids.ids, prompt * sizeof *q.ids.ids);
        run(&alone, &q, 1);
        if (q.ids.count != texts[i].ids.count ||
            memcmp(q.ids.ids, texts[i].ids.ids, q.ids.count * sizeof *q.ids.ids))
            fail_msg("%s: text %zu is not that which it is alone", name, i);
        infer_sequence_free(&q);
        infer_generation_close(&alone);
    }
}

static void computed(const infer_generation *g, const char *name, const char *what,
                     int64_t wanted) {
    if (g->computed != wanted)
        fail_msg("%s, %s: %lld tokens of prompts were computed, not %lld", name, what,
                 (long long)g->computed, (long long)wanted);
}

static void free_texts(infer_sequence *texts, size_t count) {
    for (size_t i = 0; i < count; i++) infer_sequence_free(&texts[i]);
}

/* Of a sample behind the first one token is computed for its logits, or, with a state, none. */
static void samples(void **state) {
    (void)state;
    for (int f = 0; f < FOLDERS; f++) {
        for (int64_t slots = 1; slots <= 3; slots += 2) {
            infer_generation g;
            infer_sequence texts[MOST];
            open_model(&g, folders[f], slots);
            for (size_t i = 0; i < MOST; i++) set_prompt(&texts[i], 11, 0, i);
            run(&g, texts, MOST);
            computed(&g, folders[f], "samples", 11 + (f ? 0 : MOST - 1));
            check_alone(folders[f], texts, MOST);
            assert_memory_not_equal(texts[0].ids.ids + 11, texts[1].ids.ids + 11,
                                    NEW * sizeof *texts[0].ids.ids);
            free_texts(texts, MOST);
            infer_generation_close(&g);
        }
    }
}

/* 14 tokens, the first 9 of them alike. A state is copied behind 8 of them, two chunks, when the
 * second prompt shows what they have in common. */
static void beginnings(void **state) {
    (void)state;
    for (int f = 0; f < FOLDERS; f++) {
        infer_generation g;
        infer_sequence texts[4];
        open_model(&g, folders[f], 1);
        for (size_t i = 0; i < 4; i++) set_prompt(&texts[i], 14, 5, i + 1);
        run(&g, texts, 4);
        computed(&g, folders[f], "beginnings", f ? 14 + 14 + 6 + 6 : 14 + 5 + 5 + 5);
        check_alone(folders[f], texts, 4);
        free_texts(texts, 4);
        infer_generation_close(&g);
    }
}

/* A prompt that is another's with its text and more, and, behind it, the first once more. */
static void turns(void **state) {
    (void)state;
    for (int f = 0; f < FOLDERS; f++) {
        infer_generation g;
        infer_sequence texts[3];
        open_model(&g, folders[f], 1);
        set_prompt(&texts[0], 8, 0, 1);
        run(&g, texts, 1);
        set_prompt(&texts[1], texts[0].ids.count + 3, 2, 2);
        memcpy(texts[1].ids.ids, texts[0].ids.ids, texts[0].ids.count * sizeof(int32_t));
        run(&g, texts + 1, 1);
        /* Nothing was computed of the last token that was made. */
        computed(&g, folders[f], "turns", 8 + 1 + 3);
        set_prompt(&texts[2], 8, 0, 3);
        run(&g, texts + 2, 1);
        computed(&g, folders[f], "turns", 8 + 1 + 3 + (f ? 8 : 1));
        check_alone(folders[f], texts, 3);
        free_texts(texts, 3);
        infer_generation_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples), cmocka_unit_test(beginnings),
                                       cmocka_unit_test(turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
