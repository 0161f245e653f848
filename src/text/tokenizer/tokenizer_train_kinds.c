/* WordPiece and Unigram as this trainer makes them: steps before the model, special tokens, and the
 * tokenizer.json in the end. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_train_internal.h"

static const char bert_normalizer[] =
    "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
    "\"strip_accents\": null, \"lowercase\": false}";
static const char bert_lowercase[] =
    "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
    "\"strip_accents\": null, \"lowercase\": true}";
static const char nfkc[] =
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, {\"type\": \"Replace\", "
    "\"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}]}";
static const char metaspace[] = "{\"type\": \"Metaspace\", \"replacement\": \"▁\", "
                                "\"prepend_scheme\": \"always\", \"split\": true}";

static const char *const bert_special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
static const char *const unigram_special[] = {"<pad>", "</s>", "<unk>"};

static json_t *normalizer_of(const text_tokenizer_trainer *t) {
    const char *text = t->type == TEXT_TRAIN_UNIGRAM ? nfkc
                       : t->options.lowercase        ? bert_lowercase
                                                     : bert_normalizer;
    return json_loads(text, 0, NULL);
}

static json_t *pretokenizer_of(const text_tokenizer_trainer *t) {
    return json_loads(
        t->type == TEXT_TRAIN_UNIGRAM ? metaspace : "{\"type\": \"BertPreTokenizer\"}", 0, NULL);
}

sifr_status text_train_steps(text_tokenizer_trainer *t, sifr_error *error) {
    json_t *normalizer = normalizer_of(t), *pretokenizer = pretokenizer_of(t);
    sifr_status status =
        normalizer && pretokenizer ? SIFR_OK : base_fail_alloc(error, sizeof metaspace);
    if (status == SIFR_OK)
        status = text_normalizer_read(&t->normalizer, normalizer, "the trainer", error);
    if (status == SIFR_OK)
        status = text_pretokenizer_read(&t->pretokenizer, pretokenizer, "the trainer", error);
    json_decref(normalizer);
    json_decref(pretokenizer);
    return status;
}

static const char *const *special_of(const text_tokenizer_trainer *t, size_t *count) {
    bool unigram = t->type == TEXT_TRAIN_UNIGRAM;
    *count = unigram ? sizeof unigram_special / sizeof *unigram_special
                     : sizeof bert_special / sizeof *bert_special;
    return unigram ? unigram_special : bert_special;
}

/* The characters of all words as tokens, in their own order; those inside of words come when the
 * merges begin. `inside` is how many these will be. */
static sifr_status add_characters(text_tokenizer_trainer *t, int64_t *inside, sifr_error *error) {
    enum { CODES = 0x110000 };
    uint8_t *seen, character[4];
    sifr_status status = SIFR_OK;
    *inside = 0;
    BASE_TRY(base_alloc(CODES, 1, &seen, error));
    for (size_t w = 0; w < t->words.count; w++) {
        size_t size, length;
        const uint8_t *bytes = text_table_bytes(&t->words, w, &size);
        for (size_t i = 0; i < size; i += length)
            seen[text_utf8_get(bytes + i, &length)] |= i == 0 ? 1 : 3;
    }
    for (uint32_t c = 0; c < CODES && status == SIFR_OK; c++) {
        size_t index;
        bool added;
        if (!seen[c]) continue;
        *inside += seen[c] >> 1;
        status = text_table_add(&t->tokens, character, text_utf8_put(c, character), &index, &added,
                                error);
    }
    free(seen);
    return status;
}

sifr_status text_train_kind(text_tokenizer_trainer *t, sifr_error *error) {
    size_t count, index;
    int64_t inside;
    bool added;
    const char *const *special = special_of(t, &count);
    for (size_t i = 0; i < count; i++)
        BASE_TRY(text_table_add(&t->tokens, special[i], strlen(special[i]), &index, &added, error));
    if (t->type == TEXT_TRAIN_UNIGRAM) return text_train_unigram(t, error);
    BASE_TRY(add_characters(t, &inside, error));
    if ((int64_t)t->tokens.count + inside > t->options.vocab_size)
        return base_fail(error, SIFR_USAGE,
                         "vocab size %lld: the characters of the text alone are %lld tokens; give "
                         "more, or text with fewer of them",
                         (long long)t->options.vocab_size, (long long)t->tokens.count + inside);
    return text_train_merges(t, error);
}

static json_t *describe_model(const text_tokenizer_trainer *t) {
    bool unigram = t->type == TEXT_TRAIN_UNIGRAM;
    json_t *vocabulary = unigram ? json_array() : json_object();
    for (size_t id = 0; id < t->tokens.count; id++) {
        size_t size;
        const char *bytes = (const char *)text_table_bytes(&t->tokens, id, &size);
        int bad = unigram
                      ? json_array_append_new(vocabulary,
                                              json_pack("[s%, f]", bytes, size, t->scores[id]))
                      : json_object_setn_new(vocabulary, bytes, size, json_integer((json_int_t)id));
        if (!bad) continue;
        json_decref(vocabulary);
        return NULL;
    }
    if (unigram)
        return json_pack("{s:s, s:i, s:o, s:b}", "type", "Unigram", "unk_id", 2, "vocab",
                         vocabulary, "byte_fallback", 0);
    return json_pack("{s:s, s:s, s:s, s:i, s:o}", "type", "WordPiece", "unk_token", "[UNK]",
                     "continuing_subword_prefix", "##", "max_input_chars_per_word", 100, "vocab",
                     vocabulary);
}

/* [CLS] text [SEP], and a second text with [SEP]. */
static json_t *describe_post(void) {
    return json_loads(
        "{\"type\": \"TemplateProcessing\","
        " \"single\": [{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}},"
        "  {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}},"
        "  {\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}}],"
        " \"pair\": [{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}},"
        "  {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}},"
        "  {\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}},"
        "  {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}},"
        "  {\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 1}}],"
        " \"special_tokens\": {\"[CLS]\": {\"id\": \"[CLS]\", \"ids\": [2], \"tokens\": "
        "[\"[CLS]\"]}, \"[SEP]\": {\"id\": \"[SEP]\", \"ids\": [3], \"tokens\": [\"[SEP]\"]}}}",
        0, NULL);
}

json_t *text_train_describe(const text_tokenizer_trainer *t) {
    bool unigram = t->type == TEXT_TRAIN_UNIGRAM;
    size_t count;
    const char *const *special = special_of(t, &count);
    json_t *added = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(added,
                              json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i,
                                        "content", special[i], "single_word", 0, "lstrip", 0,
                                        "rstrip", 0, "normalized", 0, "special", 1));
    }
    json_t *decoder =
        unigram ? json_loads(metaspace, 0, NULL)
                : json_pack("{s:s, s:s, s:b}", "type", "WordPiece", "prefix", "##", "cleanup", 1);
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added, "normalizer", normalizer_of(t),
                     "pre_tokenizer", pretokenizer_of(t), "post_processor",
                     unigram ? json_null() : describe_post(), "decoder", decoder, "model",
                     describe_model(t));
}

json_t *text_train_describe_config(const text_tokenizer_trainer *t) {
    json_t *config = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                               "clean_up_tokenization_spaces", 0);
    static const char *const names[] = {"pad_token", "unk_token", "cls_token", "sep_token",
                                        "mask_token"};
    static const char *const unigram_names[] = {"pad_token", "eos_token", "unk_token"};
    size_t count;
    const char *const *special = special_of(t, &count);
    for (size_t i = 0; config && i < count; i++)
        json_object_set_new(config, t->type == TEXT_TRAIN_UNIGRAM ? unigram_names[i] : names[i],
                            json_string(special[i]));
    if (config && t->options.model_max_length > 0)
        json_object_set_new(config, "model_max_length", json_integer(t->options.model_max_length));
    return config;
}
