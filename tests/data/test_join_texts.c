/* Texts of rows that are joined and cut into sequences, as LLaMA-Factory 0.9.5 pre-trains
 * (PretrainDatasetProcessor) and as run_clm.py of transformers does (group_texts), each written
 * here once more. */
#include "data/finetune_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { TEXTS = 2300, BOS = 0, BATCH = 1000 };

static const char begins[] =
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
    "\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":"
    "{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"
    "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[0],\"tokens\":[\"<s>\"]}}}";

/* The tokenizer, with a BOS before each text. */
static void put_bos(void) {
    static const char none[] = "\"post_processor\":null";
    char *text, *at, *whole;
    size_t size;
    assert_int_equal(base_read_file(scratch_path("tokenizer.json"), 1 << 20, &text, &size, NULL),
                     SIFR_OK);
    at = strstr(text, none);
    assert_non_null(at);
    whole = malloc(size + sizeof begins);
    assert_non_null(whole);
    snprintf(whole, size + sizeof begins, "%.*s%s%s", (int)(at - text), text, begins,
             at + strlen(none));
    scratch_text("tokenizer.json", whole);
    free(whole);
    free(text);
}

static void text_of(int i, char text[64]) {
    snprintf(text, 64, "text %d%.*s", i, i % 23, " and more of it in words");
}

static const char *write_texts(void) {
    static char rows[TEXTS * 80];
    char text[64];
    size_t used = 0;
    for (int i = 0; i < TEXTS; i++) {
        text_of(i, text);
        used += (size_t)snprintf(rows + used, sizeof rows - used, "{\"text\": \"%s\"}\n", text);
    }
    return scratch_text("texts.jsonl", rows);
}

/* The sequences of all texts, as either program makes them. */
static int64_t make_blocks(bool eos, bool bos, int32_t *blocks, int64_t *left) {
    text_tokenizer *tokenizer;
    text_tokenizer_scratch *work;
    text_tokenizer_ids ids = {0};
    int32_t stream[BATCH * 64];
    int64_t count = 0, used = 0;
    char text[64];
    assert_int_equal(text_tokenizer_load(scratch, &tokenizer, NULL), SIFR_OK);
    assert_int_equal(text_tokenizer_scratch_new(tokenizer, &work, NULL), SIFR_OK);
    *left = 0;
    for (int i = 0; i < TEXTS; i++) {
        text_of(i, text);
        ids.count = 0;
        assert_int_equal(
            text_tokenizer_encode(tokenizer, work, text, strlen(text), !eos, &ids, NULL), SIFR_OK);
        memcpy(stream + used, ids.ids, ids.count * sizeof *stream);
        used += (int64_t)ids.count;
        if (eos) stream[used++] = EOS;
        if ((i + 1) % BATCH && i + 1 < TEXTS) continue;
        for (int64_t at = 0; at + LENGTH <= used; at += LENGTH) {
            memcpy(blocks + count * LENGTH, stream + at, LENGTH * sizeof *stream);
            if (eos && bos) blocks[count * LENGTH] = BOS;
            count++;
        }
        *left += used % LENGTH;
        used = 0;
    }
    text_tokenizer_ids_free(&ids);
    text_tokenizer_scratch_free(work);
    text_tokenizer_free(tokenizer);
    return count;
}

static void compare(data_chat_joint joint, bool bos) {
    static int32_t blocks[TEXTS * 64];
    data_chat_source source = source_of(write_texts());
    data_chat_options options = options_for(&source, 1);
    options.joint = joint;
    data_chat *chat = open_rows(&options);
    sifr_error error = {0};
    data_rows rows;
    int64_t left, count = make_blocks(joint == DATA_JOIN_EOS, bos, blocks, &left);
    assert_int_equal(data_chat_join(chat, &error), SIFR_OK);
    assert_true(data_chat_is_joined(chat));
    assert_true(!data_chat_is_packed(chat));
    assert_int_equal(data_chat_sequences(chat), count);
    assert_int_equal(data_chat_windows(chat), count);
    assert_int_equal(data_chat_count(chat)->unfilled, left);
    assert_int_equal(data_rows_make(1, LENGTH, DATA_ROWS_PLAIN, 0, &rows, NULL), SIFR_OK);
    for (int64_t i = 0; i < count; i++) {
        data_chat_read(chat, i, &rows, 0);
        assert_memory_equal(rows.tokens, blocks + i * LENGTH, LENGTH * sizeof *blocks);
        /* Labels are the tokens themselves, of which a model compares each with the one before. */
        assert_memory_equal(rows.labels, rows.tokens + 1, (LENGTH - 1) * sizeof *blocks);
        assert_int_equal(rows.labels[LENGTH - 1], -100);
    }
    data_rows_free(&rows);
    data_chat_close(chat);
}

static void as_the_programs(void **state) {
    (void)state;
    set_template(NULL);
    compare(DATA_JOIN_EOS, false);
    compare(DATA_JOIN_PLAIN, false);
    put_bos();
    compare(DATA_JOIN_EOS, true);
    compare(DATA_JOIN_PLAIN, true);
}

/* Held-out texts are joined by themselves, and keep the BOS. */
static void after_a_split(void **state) {
    (void)state;
    set_template(NULL);
    put_bos();
    data_chat_source source = source_of(write_texts());
    data_chat_options options = options_for(&source, 1);
    options.joint = DATA_JOIN_EOS;
    data_chat *chat = open_rows(&options), *held;
    const int32_t *ids;
    const bool *learned;
    int64_t whole, tokens = data_chat_count(chat)->tokens;
    assert_int_equal(data_chat_split(chat, 0.1, 7, &held, NULL), SIFR_OK);
    assert_int_equal(data_chat_count(held)->rows, TEXTS / 10);
    assert_int_equal(data_chat_join(chat, NULL), SIFR_OK);
    assert_int_equal(data_chat_join(held, NULL), SIFR_OK);
    assert_int_equal(data_chat_count(chat)->tokens + data_chat_count(chat)->unfilled +
                         data_chat_count(held)->tokens + data_chat_count(held)->unfilled,
                     tokens);
    assert_int_equal(data_chat_row_at(held, 1, &ids, &learned, &whole), LENGTH);
    assert_int_equal(ids[0], BOS);
    data_chat_close(chat);
    data_chat_close(held);
}

static void what_is_refused(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source source =
        source_of(scratch_text("few.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n"));
    data_chat_options options = options_for(&source, 1);
    sifr_error error = {0};
    options.joint = DATA_JOIN_PLAIN;
    data_chat *chat = open_rows(&options);
    assert_int_equal(data_chat_join(chat, &error), SIFR_FAILED);
    assert_string_equal(error.message,
                        "join_texts: 2 tokens in 2 texts do not fill a sequence of 64; give more, "
                        "or a shorter seq-length");
    data_chat_close(chat);
    source.path = scratch_text("pairs.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
    error = (sifr_error){0};
    assert_int_equal(data_chat_open(&options, &chat, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "pairs.jsonl: rows of type prompt_completion are"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_the_programs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(after_a_split, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(what_is_refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
