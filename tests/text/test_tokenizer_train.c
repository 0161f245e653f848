/* The trainer against the library's BpeTrainer on the same documents, and what it writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "support/tokenizer_case.h"
#include "text/tokenizer/tokenizer_train.h"

static json_t *train(const char *split, int64_t vocab_size, const char *directory) {
    json_t *expected = tokenizer_golden("expected.json"), *out = NULL;
    size_t chunk = (size_t)json_integer_value(json_object_get(expected, "chunk")), size;
    char *text = tokenizer_corpus(
        (uint64_t)json_integer_value(json_object_get(expected, "seed")) + 1,
        (size_t)json_integer_value(json_object_get(expected, "training_bytes")), &size);
    text_tokenizer_options options = {
        .vocab_size = vocab_size, .split = split, .model_max_length = 512};
    text_tokenizer_trainer *trainer = NULL;
    sifr_error error = {0};
    char path[BASE_PATH_LENGTH];
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, &error), SIFR_OK);
    for (size_t at = 0, end; at < size; at = end) {
        end = tokenizer_chunk_end(text, size, at, chunk);
        assert_int_equal(text_tokenizer_trainer_feed(trainer, text + at, end - at, &error),
                         SIFR_OK);
    }
    assert_int_equal(text_tokenizer_trainer_finish(trainer, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_trainer_size(trainer), vocab_size);
    assert_int_equal(text_tokenizer_trainer_write(trainer, directory, &error), SIFR_OK);
    assert_int_equal(base_path_join(path, directory, "tokenizer.json", &error), SIFR_OK);
    assert_int_equal(base_json_load(path, 1 << 24, &out, &error), SIFR_OK);
    text_tokenizer_trainer_free(trainer);
    json_decref(expected);
    free(text);
    return out;
}

static void like_the_library(void **state) {
    (void)state;
    static const struct {
        const char *split, *file;
    } cases[] = {
        {"gpt2", "gpt2.json"}, {"llama3", "llama3_trained.json"}, {"qwen2", "qwen2_trained.json"}};
    char directory[] = "/tmp/sifr-train.XXXXXX";
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < 3; i++) {
        json_t *want = tokenizer_golden(cases[i].file);
        const json_t *model = json_object_get(want, "model");
        json_t *got = train(cases[i].split,
                            (int64_t)json_object_size(json_object_get(model, "vocab")), directory);
        const json_t *mine = json_object_get(got, "model");
        if (!json_equal(json_object_get(mine, "merges"), json_object_get(model, "merges")))
            fail_msg("%s: other merges", cases[i].split);
        assert_true(json_equal(json_object_get(mine, "vocab"), json_object_get(model, "vocab")));
        assert_true(
            json_equal(json_object_get(got, "normalizer"), json_object_get(want, "normalizer")));
        assert_true(json_equal(json_object_get(got, "added_tokens"),
                               json_object_get(want, "added_tokens")));
        json_decref(got);
        json_decref(want);

        text_tokenizer *t = NULL;
        assert_int_equal(text_tokenizer_load(directory, &t, NULL), SIFR_OK);
        assert_int_equal(text_tokenizer_eos(t), 0);
        text_tokenizer_free(t);
    }
    assert_int_equal(base_remove_tree(directory, NULL), SIFR_OK);
}

static void refusals(void **state) {
    (void)state;
    text_tokenizer_trainer *trainer = NULL;
    sifr_error error = {0};
    text_tokenizer_options options = {.vocab_size = 256, .split = "gpt2"};
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, &error), SIFR_USAGE);
    options = (text_tokenizer_options){.vocab_size = 300, .split = "t5"};
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "t5"));
    options.split = "gpt2";
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_trainer_finish(trainer, &error), SIFR_FAILED);
    text_tokenizer_trainer_free(trainer);

    /* Fewer pairs than asked for; invalid UTF-8 is counted. */
    assert_int_equal(text_tokenizer_trainer_new(&options, &trainer, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_trainer_feed(trainer, "ab ab\xFF", 6, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_trainer_finish(trainer, &error), SIFR_OK);
    assert_int_equal(text_tokenizer_trainer_invalid(trainer), 1);
    assert_true(text_tokenizer_trainer_size(trainer) < 270);
    text_tokenizer_trainer_free(trainer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_the_library),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
