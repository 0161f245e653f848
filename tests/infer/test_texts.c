/* The loop over tokens: texts in slots are those that each makes alone; a text comes piece by
 * piece, and nothing of a stop string comes; a caller who takes no more ends the generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "infer/generation.h"
#include "support/golden.h"

enum { TEXTS = 3, NEW = 12 };

static const char *const prompts[TEXTS] = {"The sea", "a key", "bf16"};

/* What a caller gets of a text. */
typedef struct taken {
    infer_sequence text;
    char bytes[512];
    size_t count, pieces, first; /* first: bytes of the first piece */
    int begun, ended;
    size_t most_pieces; /* the piece after these is refused; 0: all are taken */
} taken;

static sifr_status take(void *user, const char *bytes, size_t size, sifr_error *error) {
    taken *t = user;
    if (t->most_pieces && t->pieces == t->most_pieces)
        return base_fail(error, SIFR_FAILED, "no more");
    assert_true(size > 0);
    assert_true(t->count + size <= sizeof t->bytes);
    memcpy(t->bytes + t->count, bytes, size);
    t->count += size;
    if (t->pieces == 0) t->first = size;
    t->pieces++;
    return SIFR_OK;
}

static sifr_status begins(void *user, infer_sequence *text, sifr_error *error) {
    (void)user, (void)error;
    taken *t = text->user;
    assert_int_equal(t->begun++, 0);
    return SIFR_OK;
}

static sifr_status ended(void *user, infer_sequence *text, sifr_error *error) {
    (void)error;
    taken *t = text->user;
    assert_true(text->done);
    assert_int_equal(t->begun, 1);
    assert_int_equal(t->ended++, 0);
    ++*(size_t *)user;
    return SIFR_OK;
}

static void open_model(infer_generation *g, int64_t slots) {
    golden_list list;
    golden model;
    sifr_error error = {0};
    sifr_log silent = {0};
    golden_list_open(&list);
    golden_open(&list, golden_list_find(&list, "gpt2"), &model);
    infer_source source = {.model = model.folder, .threads = 1};
    if (infer_generation_open(g, &source, &silent, &error) != SIFR_OK ||
        infer_generation_start(g, slots, 4, 64, false, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    g->name = "gpt2"; /* the list's own is closed */
    golden_close(&model);
    golden_list_close(&list);
}

static sifr_status make(infer_generation *g, taken *texts, size_t count, sifr_error *error) {
    infer_sequence *all[TEXTS];
    size_t done = 0;
    infer_watch watch = {.begins = begins, .ended = ended, .user = &done};
    for (size_t i = 0; i < count; i++) {
        infer_sequence *q = all[i] = &texts[i].text;
        q->take = take;
        q->user = &texts[i];
        q->left = NEW;
        assert_int_equal(
            infer_generation_encode(g, prompts[i], strlen(prompts[i]), false, &q->ids, error),
            SIFR_OK);
    }
    sifr_status status = infer_generation_run(g, all, count, &watch, error);
    if (status == SIFR_OK) assert_int_equal(done, count);
    return status;
}

static void check_taken(const taken *t) {
    assert_int_equal(t->ended, 1);
    assert_int_equal(t->count, t->text.text.count);
    assert_memory_equal(t->bytes, t->text.text.bytes, t->count);
}

/* Three texts in two slots, and each alone. */
static void test_slots(void **state) {
    (void)state;
    infer_generation two, one;
    sifr_error error = {0};
    taken together[TEXTS] = {{.begun = 0}}, alone[TEXTS] = {{.begun = 0}};
    open_model(&two, 2);
    open_model(&one, 1);
    assert_int_equal(make(&two, together, TEXTS, &error), SIFR_OK);
    assert_int_equal(make(&one, alone, TEXTS, &error), SIFR_OK);
    for (int i = 0; i < TEXTS; i++) {
        const infer_sequence *q = &together[i].text;
        check_taken(&together[i]);
        check_taken(&alone[i]);
        assert_true(together[i].pieces > 1);
        assert_int_equal(q->ids.count, q->prompt_ids + NEW);
        assert_int_equal(q->ids.count, alone[i].text.ids.count);
        assert_memory_equal(q->ids.ids, alone[i].text.ids.ids, q->ids.count * sizeof *q->ids.ids);
        infer_sequence_free(&together[i].text);
        infer_sequence_free(&alone[i].text);
    }
    infer_generation_close(&two);
    infer_generation_close(&one);
}

/* Stops at two bytes, the last of the first piece and the one behind it. */
static void test_stop(void **state) {
    (void)state;
    infer_generation g;
    sifr_error error = {0};
    taken whole = {.begun = 0}, cut = {.begun = 0};
    char stop[3] = {0};
    const char *const stops[] = {stop};
    open_model(&g, 1);
    assert_int_equal(make(&g, &whole, 1, &error), SIFR_OK);
    assert_true(whole.first > 1 && whole.count > whole.first);
    memcpy(stop, whole.bytes + whole.first - 1, 2);
    g.stop = stops;
    g.stop_count = 1;
    assert_int_equal(make(&g, &cut, 1, &error), SIFR_OK);
    assert_int_equal(cut.text.end, INFER_END_STOP);
    check_taken(&cut);
    assert_int_equal(cut.count, whole.first - 1);
    assert_memory_equal(cut.bytes, whole.bytes, cut.count);
    infer_sequence_free(&whole.text);
    infer_sequence_free(&cut.text);
    infer_generation_close(&g);
}

static void test_refused(void **state) {
    (void)state;
    infer_generation g;
    sifr_error error = {0};
    taken t = {.most_pieces = 2};
    open_model(&g, 1);
    assert_int_equal(make(&g, &t, 1, &error), SIFR_FAILED);
    assert_string_equal(error.message, "no more");
    assert_int_equal(t.pieces, 2);
    assert_int_equal(t.ended, 0);
    t.text.ids.count = 0;
    t = (taken){.text = t.text};
    assert_int_equal(make(&g, &t, 1, &error), SIFR_OK); /* again, and to its end */
    check_taken(&t);
    infer_sequence_free(&t.text);
    infer_generation_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
