#include "text/tokenizer/tokenizer_train.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_normal.h"
#include "text/tokenizer/tokenizer_train_internal.h"

/* The place of `name` in the list; the first for NULL. */
static sifr_status choose(const char *name, const char *what, const char *const names[3], int *out,
                          sifr_error *error) {
    *out = 0;
    for (int i = 0; name && i < 3; i++) {
        if (strcmp(name, names[i]) == 0) return *out = i, SIFR_OK;
    }
    if (!name) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s \"%.60s\" is not supported yet (supported: %s, %s, %s)",
                     what, name, names[0], names[1], names[2]);
}

static sifr_status check_options(const text_tokenizer_options *options, text_train_type type,
                                 sifr_error *error) {
    if (type == TEXT_TRAIN_BPE && (options->vocab_size < 257 || options->vocab_size > 1 << 24))
        return base_fail(error, SIFR_USAGE,
                         "vocab size %lld: must be from 257 (every byte and " TEXT_END_OF_TEXT
                         ") to 16777216",
                         (long long)options->vocab_size);
    if (options->vocab_size < 8 || options->vocab_size > 1 << 24)
        return base_fail(error, SIFR_USAGE, "vocab size %lld: must be from 8 to 16777216",
                         (long long)options->vocab_size);
    if (type != TEXT_TRAIN_BPE && options->split)
        return base_fail(error, SIFR_USAGE,
                         "split \"%.60s\": only bpe has one; leave it out for %s", options->split,
                         options->type);
    if (type != TEXT_TRAIN_WORDPIECE && options->lowercase)
        return base_fail(error, SIFR_USAGE, "lowercase: only wordpiece has it; leave it out");
    if (type == TEXT_TRAIN_UNIGRAM && options->min_frequency)
        return base_fail(error, SIFR_USAGE, "min frequency: unigram has none; leave it out");
    return SIFR_OK;
}

sifr_status text_tokenizer_trainer_new(const text_tokenizer_options *options,
                                       text_tokenizer_trainer **out, sifr_error *error) {
    static const char *const splits[] = {"gpt2", "llama3", "qwen2"};
    static const char *const types[] = {"bpe", "unigram", "wordpiece"};
    text_tokenizer_trainer *t;
    int split, type;
    BASE_TRY(choose(options->type, "type", types, &type, error));
    BASE_TRY(choose(options->split, "split", splits, &split, error));
    BASE_TRY(check_options(options, (text_train_type)type, error));
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->options = *options;
    t->type = (text_train_type)type;
    t->split = (text_split_kind)split;
    bool normalizes = t->type != TEXT_TRAIN_BPE || t->split == TEXT_SPLIT_QWEN2;
    sifr_status status = text_unicode_build(&t->unicode, normalizes, error);
    if (status == SIFR_OK && t->type != TEXT_TRAIN_BPE) status = text_train_steps(t, error);
    if (status == SIFR_OK)
        *out = t;
    else
        text_tokenizer_trainer_free(t);
    return status;
}

void text_tokenizer_trainer_free(text_tokenizer_trainer *t) {
    if (!t) return;
    text_unicode_free(&t->unicode);
    text_normalizer_free(&t->normalizer);
    text_normalizer_state_free(&t->normalizer_state);
    text_pretokenizer_free(&t->pretokenizer);
    text_pretokenizer_state_free(&t->pretokenizer_state);
    text_table_free(&t->words);
    text_table_free(&t->tokens);
    text_tokenizer_text_free(&t->repaired);
    text_tokenizer_text_free(&t->normal);
    free(t->counts);
    free(t->scores);
    free(t->merges);
    free(t);
}

static sifr_status count_word(text_tokenizer_trainer *t, const uint8_t *word, size_t size,
                              sifr_error *error) {
    size_t index;
    bool added;
    BASE_TRY(text_table_add(&t->words, word, size, &index, &added, error));
    if (added) {
        BASE_TRY(base_grow(&t->counts, &t->count_capacity, index + 1, sizeof *t->counts, error));
        t->counts[index] = 0;
    }
    t->counts[index]++;
    return SIFR_OK;
}

/* Of Unigram, in bytes: bounds the memory that a word takes. */
enum { LONGEST_WORD = 4096 };

/* The words of a document for UNIGRAM and WORDPIECE. */
static sifr_status feed_steps(text_tokenizer_trainer *t, const uint8_t *p, size_t size,
                              sifr_error *error) {
    const text_pieces *pieces;
    BASE_TRY(text_normalizer_apply(&t->normalizer, &t->unicode, &t->normalizer_state,
                                   (text_normalizer_place){true, true}, &p, &size, error));
    BASE_TRY(text_pretokenizer_apply(&t->pretokenizer, &t->unicode, &t->pretokenizer_state, true,
                                     &p, &size, &pieces, error));
    for (size_t i = 0; i < pieces->count; i++) {
        const uint8_t *at = p + pieces->items[i].start, *end = p + pieces->items[i].stop;
        while (at < end) { /* text without blanks is one word, however long: in parts */
            const uint8_t *stop = end;
            if (t->type == TEXT_TRAIN_UNIGRAM && end - at > LONGEST_WORD)
                stop = text_utf8_back(at + LONGEST_WORD + 1, at);
            BASE_TRY(count_word(t, at, (size_t)(stop - at), error));
            at = stop;
        }
    }
    return SIFR_OK;
}

sifr_status text_tokenizer_trainer_feed(text_tokenizer_trainer *t, const char *text, size_t size,
                                        sifr_error *error) {
    const uint8_t *p = (const uint8_t *)text, *end;
    if (text_utf8_valid(p, size) != size) {
        t->repaired.count = 0;
        BASE_TRY(text_utf8_repair(p, size, &t->repaired, &t->invalid, error));
        p = (const uint8_t *)t->repaired.bytes;
        size = t->repaired.count;
    }
    if (t->type != TEXT_TRAIN_BPE) return feed_steps(t, p, size, error);
    if (t->unicode.normalizes && text_normal_prefix(&t->unicode, p, size) < size) {
        t->normal.count = 0;
        BASE_TRY(text_normalize(&t->unicode, p, size, &t->normal, error));
        p = (const uint8_t *)t->normal.bytes;
        size = t->normal.count;
    }
    for (end = p + size; p < end;) {
        const uint8_t *next = text_split_next(t->split, &t->unicode, p, end);
        BASE_TRY(count_word(t, p, (size_t)(next - p), error));
        p = next;
    }
    return SIFR_OK;
}

static int compare_characters(const void *a, const void *b) {
    uint32_t x = text_byte_character(*(const uint8_t *)a);
    uint32_t y = text_byte_character(*(const uint8_t *)b);
    return x < y ? -1 : x > y;
}

sifr_status text_tokenizer_trainer_finish(text_tokenizer_trainer *t, sifr_error *error) {
    uint8_t alphabet[256];
    size_t index;
    bool added;
    if (!t->words.count) return base_fail(error, SIFR_FAILED, "no text to train a tokenizer on");
    if (t->type != TEXT_TRAIN_BPE) return text_train_kind(t, error);
    BASE_TRY(text_table_add(&t->tokens, TEXT_END_OF_TEXT, strlen(TEXT_END_OF_TEXT), &index, &added,
                            error));
    for (int i = 0; i < 256; i++) alphabet[i] = (uint8_t)i;
    qsort(alphabet, 256, 1, compare_characters);
    for (int i = 0; i < 256; i++)
        BASE_TRY(text_table_add(&t->tokens, &alphabet[i], 1, &index, &added, error));
    return text_train_merges(t, error);
}

int64_t text_tokenizer_trainer_size(const text_tokenizer_trainer *t) {
    return (int64_t)t->tokens.count;
}

uint64_t text_tokenizer_trainer_invalid(const text_tokenizer_trainer *t) {
    return t->invalid;
}

/* The token's spelling in the byte alphabet. */
static json_t *spell(const text_tokenizer_trainer *t, int32_t id, text_tokenizer_text *text) {
    size_t size;
    const uint8_t *bytes = text_table_bytes(&t->tokens, (size_t)id, &size);
    text->count = 0;
    if (text_content_of_bytes(bytes, size, text, NULL) != SIFR_OK) return NULL;
    return json_stringn(text->bytes, text->count);
}

static json_t *describe_model(const text_tokenizer_trainer *t) {
    json_t *vocabulary = json_object(), *merges = json_array();
    text_tokenizer_text text = {0};
    bool bad = !vocabulary || !merges;
    for (size_t id = 0; id < t->tokens.count && !bad; id++) {
        json_t *name = spell(t, (int32_t)id, &text);
        bad = !name || json_object_set_new(vocabulary, json_string_value(name),
                                           json_integer((json_int_t)id));
        json_decref(name);
    }
    for (size_t i = 0; i < t->merge_count && !bad; i++) {
        json_t *left = spell(t, t->merges[i].left, &text);
        json_t *right = spell(t, t->merges[i].right, &text);
        bad = json_array_append_new(merges, json_pack("[o, o]", left, right)) != 0;
    }
    text_tokenizer_text_free(&text);
    if (bad) {
        json_decref(vocabulary);
        json_decref(merges);
        return NULL;
    }
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocabulary, "merges", merges);
}

static json_t *describe_byte_level(bool use_regex) {
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", use_regex ? 1 : 0);
}

static json_t *describe_tokenizer(const text_tokenizer_trainer *t) {
    const char *pattern = text_split_pattern(t->split);
    json_t *normalizer =
        t->split == TEXT_SPLIT_QWEN2 ? json_pack("{s:s}", "type", "NFC") : json_null();
    json_t *splitter = describe_byte_level(pattern == NULL);
    if (pattern) {
        splitter = json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence",
                             "pretokenizers", "type", "Split", "pattern", "Regex", pattern,
                             "behavior", "Isolated", "invert", 0, splitter);
    }
    json_t *added =
        json_pack("[{s:i, s:s, s:b, s:b, s:b, s:b, s:b}]", "id", 0, "content", TEXT_END_OF_TEXT,
                  "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added, "normalizer", normalizer,
                     "pre_tokenizer", splitter, "post_processor", describe_byte_level(true),
                     "decoder", describe_byte_level(true), "model", describe_model(t));
}

static json_t *describe_config(const text_tokenizer_trainer *t) {
    json_t *config =
        json_pack("{s:s, s:s, s:s, s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                  "bos_token", TEXT_END_OF_TEXT, "eos_token", TEXT_END_OF_TEXT, "unk_token",
                  TEXT_END_OF_TEXT, "clean_up_tokenization_spaces", 0);
    if (config && t->options.model_max_length > 0)
        json_object_set_new(config, "model_max_length", json_integer(t->options.model_max_length));
    return config;
}

sifr_status text_tokenizer_trainer_write(const text_tokenizer_trainer *t, const char *directory,
                                         sifr_error *error) {
    char path[BASE_PATH_LENGTH], config_path[BASE_PATH_LENGTH];
    bool bpe = t->type == TEXT_TRAIN_BPE;
    json_t *tokenizer = bpe ? describe_tokenizer(t) : text_train_describe(t);
    json_t *config = bpe ? describe_config(t) : text_train_describe_config(t);
    sifr_status status = SIFR_OK;
    bool there = false;
    if (!tokenizer || !config) {
        status = base_fail(error, SIFR_NO_MEMORY, "out of memory: the tokenizer's description");
        goto done;
    }
    BASE_TRY_GOTO(status, base_make_directories(directory, error), done);
    BASE_TRY_GOTO(status, base_path_join(config_path, directory, "tokenizer_config.json", error),
                  done);
    there = base_is_file(config_path);
    BASE_TRY_GOTO(status, base_json_save(config, config_path, error), done);
    BASE_TRY_GOTO(status, base_path_join(path, directory, "tokenizer.json", error), done);
    status = base_json_save(tokenizer, path, error);
    /* Half a tokenizer is none. */
    if (status != SIFR_OK && !there) (void)!base_remove_tree(config_path, NULL);
done:
    json_decref(tokenizer);
    json_decref(config);
    return status;
}
